package servioticy.monitoring;

import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.aspectj.lang.annotation.Pointcut;

/**
 * What is woven around methods: aop.xml has a concrete aspect of it for each pointcut, by whose
 * name its settings are found.
 */
@Aspect
public abstract class Measured {

    private final Step step = new Step(getClass().getSimpleName());

    @Pointcut
    public abstract void scope();

    /** Calls what was there, and tells how long that took. */
    @Around(value = "scope()", argNames = "call")
    public Object measured(ProceedingJoinPoint call) throws Throwable {
        Call begun = this.step.enter(call.getStaticPart(), call);
        try {
            Object answer = call.proceed();
            this.step.leave(begun, null);
            return answer;
        } catch (Throwable error) {
            this.step.leave(begun, error);
            throw error;
        }
    }
}
