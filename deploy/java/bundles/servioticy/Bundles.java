package servioticy;

import java.util.Iterator;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;

/**
 * Puts the records of a partition, pairs of offset and value, into bundles.
 *
 * <p>A bundle is whatever waits: one record when it is quiet, many when it is not. Before them
 * comes which partition of the log it is: tasks are numbered as Spark likes.
 */
public final class Bundles implements MapPartitionsFunction {
    private final int partition;
    private final int mostBytes;
    private final int mostRecords;

    /** A single record may be larger than `mostBytes`: then it is a bundle of its own. */
    public Bundles(int partition, int mostBytes, int mostRecords) {
        this.partition = partition;
        this.mostBytes = mostBytes;
        this.mostRecords = mostRecords;
    }

    public Iterator call(Iterator records) {
        Waiting waiting = new Waiting(mostBytes, mostRecords);
        TaskContext task = TaskContext.get();
        Reader reader = new Reader(records, waiting, task);
        // Spark asks listeners in reverse order: ours before the one that closes the source.
        task.addTaskCompletionListener(reader);
        reader.start();
        return new Taken(partition, waiting);
    }
}
