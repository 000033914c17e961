package servioticy.monitoring;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.OperatingSystemMXBean;
import java.lang.management.ThreadMXBean;
import java.util.Iterator;
import java.util.List;

/** What JMX says of this JVM, at a moment. */
final class Figures {

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    final long processor;
    final long memory;
    final long collections;

    private Figures(long processor) {
        this.processor = processor;
        this.memory = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        long sum = 0;
        List beans = ManagementFactory.getGarbageCollectorMXBeans();
        for (Iterator each = beans.iterator(); each.hasNext();) {
            sum += Math.max(0L, ((GarbageCollectorMXBean) each.next()).getCollectionCount());
        }
        this.collections = sum;
    }

    /** With the processor time of the calling thread. */
    static Figures ofThread() {
        boolean told = THREADS.isCurrentThreadCpuTimeSupported();
        return new Figures(told ? THREADS.getCurrentThreadCpuTime() : 0L);
    }

    /** With that of the process. */
    static Figures ofProcess() {
        OperatingSystemMXBean bean = ManagementFactory.getOperatingSystemMXBean();
        long used = 0L;
        if (bean instanceof com.sun.management.OperatingSystemMXBean) {
            used = ((com.sun.management.OperatingSystemMXBean) bean).getProcessCpuTime();
        }
        return new Figures(used);
    }

    /** Nanoseconds since 1970. */
    static long now() {
        java.time.Instant now = java.time.Instant.now();
        return now.getEpochSecond() * 1000000000L + now.getNano();
    }
}
