package servioticy;

import java.util.Iterator;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.UninterruptibleThread;
import scala.Tuple2;

/**
 * Reads the records of one task while the task's own thread hands bundles over.
 *
 * <p>Spark's Kafka source asks for this kind of thread: there are moments when a consumer must
 * not be interrupted.
 */
final class Reader extends UninterruptibleThread implements TaskCompletionListener {
    private static final long PATIENCE_MS = 100;

    private final Iterator records;
    private final Waiting waiting;
    private final TaskContext task;

    Reader(Iterator records, Waiting waiting, TaskContext task) {
        super("bundle-reader");
        setDaemon(true);
        this.records = records;
        this.waiting = waiting;
        this.task = task;
    }

    public void run() {
        Throwable failure = null;
        try {
            // The source asks for the task of the thread that it is read by.
            org.apache.spark.TaskContext$.MODULE$.setTaskContext(task);
            while (records.hasNext()) {
                Tuple2 record = (Tuple2) records.next();
                waiting.put(((Long) record._1()).longValue(), (byte[]) record._2());
            }
        } catch (Throwable error) {
            failure = error;
        }
        waiting.end(failure);
    }

    /** Waits until this thread has ended: the source is closed next, and serves one thread. */
    public void onTaskCompletion(TaskContext completed) {
        boolean interrupted = false;
        while (isAlive()) {
            interrupt();
            try {
                join(PATIENCE_MS);
            } catch (InterruptedException error) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
