package servioticy;

import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.spark.unsafe.Platform;

/**
 * The partition in four bytes, and the bundles, one after the other; the last one is empty.
 *
 * <p>Spark writes a row to the Python worker only when it knows whether there is another.
 * So this says that there is, before it is known; the empty bundle keeps the promise.
 */
final class Taken implements Iterator {
    private final int partition;
    private final Waiting waiting;
    private boolean begun = false;
    private boolean ended = false;

    Taken(int partition, Waiting waiting) {
        this.partition = partition;
        this.waiting = waiting;
    }

    public boolean hasNext() {
        return !ended;
    }

    public Object next() {
        if (!begun) {
            begun = true;
            return ByteBuffer.allocate(4).putInt(partition).array();
        }
        byte[] bundle = null;
        try {
            bundle = waiting.take();
        } catch (Throwable error) {
            // As it is: Spark knows by its type whether the task was interrupted.
            Platform.throwException(error);
        }
        ended = bundle.length == 0;
        return bundle;
    }
}
