package servioticy.monitoring;

/** What JMX tells of a step. */
public interface StepMXBean {

    long getCalls();

    long getFailed();

    long getNanoseconds();
}
