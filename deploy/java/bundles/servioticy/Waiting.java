package servioticy;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/**
 * The records that one thread has put and another has not taken yet: the next bundle.
 *
 * <p>Each is its offset in eight bytes, the length of its value in four (-1: there is none),
 * and the value. `pipeline/spark/bundles.py` reads it.
 */
final class Waiting {
    private static final int HEAD = 12;
    private static final int NONE = -1;

    private final int mostBytes;
    private final int mostRecords;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(bytes);
    private int records = 0;
    private boolean ended = false;
    private Throwable failure = null;

    Waiting(int mostBytes, int mostRecords) {
        this.mostBytes = mostBytes;
        this.mostRecords = mostRecords;
    }

    /** Adds a record as soon as there is room; there always is where nothing else waits. */
    synchronized void put(long offset, byte[] value) throws InterruptedException, IOException {
        int length = value == null ? NONE : value.length;
        while (records > 0 && !hasRoom(HEAD + Math.max(length, 0))) {
            wait();
        }
        out.writeLong(offset);
        out.writeInt(length);
        if (value != null) {
            out.write(value);
        }
        records += 1;
        if (records == 1) {
            notifyAll();
        }
    }

    /** Notes that no more records come, and why where it is not the end of the task. */
    synchronized void end(Throwable failure) {
        this.failure = failure;
        ended = true;
        notifyAll();
    }

    /**
     * Takes all that waits, as soon as there is something; nothing where no more will come.
     *
     * <p>Throws what the reading ended with, after the last record.
     */
    synchronized byte[] take() throws Throwable {
        while (records == 0 && !ended) {
            wait();
        }
        if (records == 0 && failure != null) {
            throw failure;
        }
        byte[] bundle = bytes.toByteArray();
        bytes.reset();
        records = 0;
        notifyAll();
        return bundle;
    }

    private boolean hasRoom(int size) {
        return records < mostRecords && bytes.size() + size <= mostBytes;
    }
}
