package servioticy.monitoring;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Writes measurements to the monitor's pipe, in a thread of its own; who is full drops. */
final class Outbox implements Runnable {

    private static final Properties SETTINGS = read();
    private static final int MOST = 4096;
    /** So much is written as one, whoever else writes (PIPE_BUF). */
    private static final int WHOLE = 4096;
    private static final long LOOK_NANOSECONDS = 1000000000L;
    private static final long CLOSE_MILLISECONDS = 2000L;
    static final Outbox HERE = new Outbox();

    private final ArrayBlockingQueue waiting = new ArrayBlockingQueue(MOST);
    private final List steps = new CopyOnWriteArrayList();
    private final AtomicLong dropped = new AtomicLong();
    private final String node;
    private final Thread writer;
    private final State state;
    private long published;
    private volatile boolean ends;

    private Outbox() {
        String host = "";
        try {
            host = InetAddress.getLocalHost().getHostName();
        } catch (IOException unknown) {
            host = "unknown";
        }
        String name = setting("name", "jvm");
        this.state = new State(setting("processes", ""), name);
        this.node = host + "/" + name + "/" + ManagementFactory.getRuntimeMXBean().getPid();
        this.writer = new Thread(this, "monitoring");
        this.writer.setDaemon(true);
        this.writer.start();
        Runtime.getRuntime().addShutdownHook(new Thread("monitoring-ends") {
            public void run() {
                end();
            }
        });
    }

    static String setting(String name, String otherwise) {
        return SETTINGS.getProperty(name, otherwise);
    }

    /** Lets what waits be written, and waits for that a little. */
    private void end() {
        this.ends = true;
        try {
            this.writer.join(CLOSE_MILLISECONDS);
        } catch (InterruptedException hurried) {
            return;
        }
    }

    boolean isWriting() {
        return this.writer.isAlive();
    }

    void add(Step step) {
        this.steps.add(step);
    }

    void drop() {
        this.dropped.incrementAndGet();
    }

    void put(String line) {
        if (!this.waiting.offer(line)) {
            drop();
        }
    }

    public void run() {
        RandomAccessFile pipe = null;
        Figures before = Figures.ofProcess();
        long at = Figures.now();
        long looked = System.nanoTime();
        boolean last = false;
        while (true) {
            try {
                String line = (String) this.waiting.poll(100, TimeUnit.MILLISECONDS);
                boolean ending = line == null && this.ends;
                if (ending && last) {
                    this.state.forget();
                    return;
                }
                last = ending;
                if (ending || System.nanoTime() - looked > LOOK_NANOSECONDS) {
                    looked = System.nanoTime();
                    Figures now = Figures.ofProcess();
                    long then = at;
                    at = Figures.now();
                    look(then, at, before, now);
                    this.state.tell(this.published, this.dropped.get());
                    before = now;
                }
                if (line == null) {
                    continue;
                }
                if (pipe == null) {
                    pipe = opened();
                }
                byte[] bytes = (line + "\n").getBytes(StandardCharsets.UTF_8);
                if (bytes.length > WHOLE) {
                    drop();
                } else {
                    pipe.write(bytes);
                    this.published++;
                }
            } catch (IOException gone) {
                drop();
                pipe = null;
            } catch (InterruptedException ends) {
                return;
            }
        }
    }

    /**
     * Opened to be read, too: else it would be waited for whoever reads, and what is written
     * would be lost whenever that one begins anew.
     */
    private static RandomAccessFile opened() throws IOException {
        File pipe = new File(setting("pipe", "/dev/null"));
        if (!pipe.exists()) {
            throw new FileNotFoundException(pipe.getPath());
        }
        return new RandomAccessFile(pipe, "rw");
    }

    private void look(long start, long end, Figures before, Figures now) {
        boolean profiles = false;
        for (Iterator each = this.steps.iterator(); each.hasNext();) {
            Step step = (Step) each.next();
            step.tellCalls();
            profiles = profiles || step.isProfiling();
        }
        if (profiles) {
            put(head("ResourceProfile", "jvm", "java.lang.management")
                + figures(start, end, "", before, now));
        }
    }

    static String head(String type, String purpose, String place) {
        return "{\"type\":\"" + type + "\",\"node\":{\"nodeId\":" + text(HERE.node)
            + ",\"nodePurpose\":" + text(purpose) + "},\"place\":" + text(place);
    }

    static String figures(long start, long end, String sequence, Figures before, Figures after) {
        return ",\"start\":" + start + ",\"end\":" + end + ",\"sequence\":" + text(sequence)
            + ",\"processor\":" + (after.processor - before.processor)
            + ",\"memory\":" + (after.memory - before.memory)
            + ",\"collections\":" + (after.collections - before.collections) + "}";
    }

    /** As JSON has it. */
    static String text(String value) {
        StringBuilder told = new StringBuilder("\"");
        for (int place = 0; place < value.length(); place++) {
            char each = value.charAt(place);
            if (each == '"' || each == '\\' || each < ' ') {
                String digits = Integer.toHexString(each);
                told.append("\\u").append("0000".substring(digits.length())).append(digits);
            } else {
                told.append(each);
            }
        }
        return told.append('"').toString();
    }

    private static Properties read() {
        Properties found = new Properties();
        InputStream file = Outbox.class.getResourceAsStream("/META-INF/servioticy-aspects.properties");
        try {
            if (file != null) {
                found.load(file);
                file.close();
            }
        } catch (IOException unreadable) {
            System.err.println("the aspects of this JVM cannot be read: " + unreadable);
        }
        return found;
    }
}
