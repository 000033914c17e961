package servioticy.monitoring;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.aspectj.bridge.IMessage;
import org.aspectj.bridge.IMessageHandler;

/** Is told by the weaver what it weaves, method by method, and counts it. */
public final class Told implements IMessageHandler {

    private static final String ASPECT = "'servioticy.monitoring.Aspect";
    private static final int MOST = 1000;
    private static final int MOST_TOLD = 500;
    /** By the number of an aspect the methods that it is woven into. */
    private static final Map WOVEN = new TreeMap();
    private static String wrong = "";

    public Told() {
        // Not here: a class is being loaded, and whoever counts loads others.
        Thread first = new Thread("monitoring-begins") {
            public void run() {
                Outbox.HERE.isWriting();
            }
        };
        first.setDaemon(true);
        first.start();
    }

    public boolean handleMessage(IMessage message) {
        if (message.getKind() == IMessage.WEAVEINFO) {
            note(message.getMessage());
        } else if (!isIgnoring(message.getKind())) {
            fail(message.toString());
        }
        return true;
    }

    public boolean isIgnoring(IMessage.Kind kind) {
        return kind != IMessage.WEAVEINFO
            && kind != IMessage.ERROR && kind != IMessage.FAIL && kind != IMessage.ABORT;
    }

    public void dontIgnore(IMessage.Kind kind) {
        // What is of interest is so from the beginning.
    }

    public void ignore(IMessage.Kind kind) {
        // As above.
    }

    private static synchronized void note(String text) {
        int at = text.indexOf(ASPECT);
        int end = text.indexOf('\'', at + 1);
        int method = text.indexOf(" advised by");
        if (at < 0 || end < 0 || method < 0) {
            return;
        }
        String number = text.substring(at + ASPECT.length(), end);
        Set methods = (Set) WOVEN.get(number);
        if (methods == null) {
            methods = new TreeSet();
            WOVEN.put(number, methods);
        }
        if (methods.size() < MOST) {
            methods.add(text.substring(0, method));
        }
    }

    private static synchronized void fail(String text) {
        System.err.println("aspects: " + text);
        wrong = text.length() > MOST_TOLD ? text.substring(0, MOST_TOLD) : text;
    }

    static synchronized String wrong() {
        return wrong;
    }

    /** How many methods each aspect is woven into, in JSON, as Python's processes tell it. */
    static synchronized String reports() {
        StringBuilder told = new StringBuilder("[");
        int count = Integer.parseInt(Outbox.setting("aspects", "0"));
        for (int number = 0; number < count; number++) {
            Set methods = (Set) WOVEN.get(Integer.toString(number));
            String pointcut = Outbox.setting("Aspect" + number + ".pointcut", "");
            told.append(number == 0 ? "" : ",").append("{\"pointcut\":")
                .append(Outbox.text(pointcut)).append(",\"woven\":")
                .append(methods == null ? 0 : methods.size()).append(",\"not_woven\":{}}");
        }
        return told.append(']').toString();
    }
}
