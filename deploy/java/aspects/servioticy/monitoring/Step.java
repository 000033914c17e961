package servioticy.monitoring;

import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.ObjectName;
import org.aspectj.lang.JoinPoint;

/** One aspect: measures the calls that its pointcut names, and never raises. */
public final class Step implements StepMXBean {

    private final boolean times;
    private final boolean profiles;
    private final boolean counts;
    private final double sample;
    private final String purpose;
    private final Argument sequence;
    private final AtomicLong calls = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicLong nanoseconds = new AtomicLong();
    private long toldCalls;
    private long toldFailed;
    private volatile String place = "";

    Step(String aspect) {
        String measures = "," + Outbox.setting(aspect + ".measures", "runtime") + ",";
        this.times = measures.contains(",runtime,");
        this.profiles = measures.contains(",profile,");
        this.counts = measures.contains(",count,");
        this.sample = Double.parseDouble(Outbox.setting(aspect + ".sample", "1"));
        this.purpose = Outbox.setting(aspect + ".purpose", aspect);
        String place = Outbox.setting(aspect + ".sequence", "");
        this.sequence = place.isEmpty() ? null : new Argument(place);
        Outbox.HERE.add(this);
        try {
            String name = "servioticy.monitoring:type=Step,name=" + ObjectName.quote(this.purpose);
            ManagementFactory.getPlatformMBeanServer().registerMBean(this, new ObjectName(name));
        } catch (Exception taken) {
            // Another aspect of the same purpose is told there.
        }
    }

    Call enter(JoinPoint.StaticPart part, JoinPoint call) {
        try {
            String named = part.getSignature().getDeclaringTypeName() + "."
                + part.getSignature().getName();
            this.place = named;
            String id = this.sequence == null ? null : this.sequence.in(call.getArgs());
            String about = id == null ? null : Outbox.setting("name", "jvm") + ":" + id;
            return Call.begin(about, named, this.sample, this.profiles);
        } catch (Throwable ours) {
            Outbox.HERE.drop();
            return null;
        }
    }

    void leave(Call call, Throwable error) {
        this.calls.incrementAndGet();
        if (error != null) {
            this.failed.incrementAndGet();
        }
        if (call == null) {
            return;
        }
        try {
            call.end();
            long lasted = System.nanoTime() - call.began;
            this.nanoseconds.addAndGet(lasted);
            if (call.id.isEmpty()) {
                return;
            }
            if (call.figures != null) {
                Figures now = Figures.ofThread();
                profile(call.place, call.at, call.at + lasted, call.sequence, call.figures, now);
            }
            if (this.times) {
                Outbox.HERE.put(head("RuntimePerformance", call.place)
                    + ",\"start\":" + call.at + ",\"end\":" + (call.at + lasted)
                    + ",\"sequence\":" + Outbox.text(call.sequence) + ",\"error\":"
                    + Outbox.text(error == null ? "" : error.getClass().getSimpleName())
                    + ",\"step\":\"" + call.id + "\",\"parent\":\"" + call.parent() + "\"}");
            }
        } catch (Throwable ours) {
            Outbox.HERE.drop();
        }
    }

    /** Tells how often it was called since the last time. For one thread. */
    void tellCalls() {
        long now = this.calls.get();
        long wrong = this.failed.get();
        if (this.counts && now != this.toldCalls) {
            Outbox.HERE.put(head("Calls", this.place) + ",\"end\":" + Figures.now()
                + ",\"calls\":" + (now - this.toldCalls)
                + ",\"failed\":" + (wrong - this.toldFailed) + "}");
        }
        this.toldCalls = now;
        this.toldFailed = wrong;
    }

    boolean isProfiling() {
        return this.profiles;
    }

    private void profile(
        String where, long start, long end, String sequence, Figures before, Figures after
    ) {
        Outbox.HERE.put(head("ResourceProfile", where)
            + Outbox.figures(start, end, sequence, before, after));
    }

    private String head(String type, String where) {
        return Outbox.head(type, this.purpose, where);
    }

    public long getCalls() {
        return this.calls.get();
    }

    public long getFailed() {
        return this.failed.get();
    }

    public long getNanoseconds() {
        return this.nanoseconds.get();
    }
}
