package servioticy.monitoring;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;

/** Where the id of a sequence stands: an argument, then keys, places in lists, getters, fields. */
final class Argument {

    private static final int MOST_LENGTH = 64;

    private final int number;
    private final String[] path;

    /** As `arg0.values.0`. */
    Argument(String text) {
        this.path = text.split("\\.");
        this.number = Integer.parseInt(this.path[0].substring("arg".length()));
    }

    /** What stands there among these arguments; null where nothing does. */
    String in(Object[] arguments) {
        Object found = this.number < arguments.length ? arguments[this.number] : null;
        for (int place = 1; place < this.path.length && found != null; place++) {
            found = of(found, this.path[place]);
        }
        if (found == null) {
            return null;
        }
        String text = found.toString();
        return text.length() > MOST_LENGTH ? text.substring(0, MOST_LENGTH) : text;
    }

    private static Object of(Object held, String name) {
        if (held instanceof Map) {
            return ((Map) held).get(name);
        }
        boolean isPlace = Character.isDigit(name.charAt(0));
        if (isPlace) {
            int place = Integer.parseInt(name);
            if (held instanceof List) {
                return place < ((List) held).size() ? ((List) held).get(place) : null;
            }
            boolean has = held.getClass().isArray() && place < Array.getLength(held);
            return has ? Array.get(held, place) : null;
        }
        String getter = "get" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        Method[] methods = held.getClass().getMethods();
        for (int each = 0; each < methods.length; each++) {
            String called = methods[each].getName();
            boolean takesNothing = methods[each].getParameterTypes().length == 0;
            if (takesNothing && (called.equals(name) || called.equals(getter))) {
                try {
                    return methods[each].invoke(held, new Object[0]);
                } catch (Exception hidden) {
                    continue;
                }
            }
        }
        try {
            Field field = held.getClass().getField(name);
            return field.get(held);
        } catch (Exception none) {
            return null;
        }
    }
}
