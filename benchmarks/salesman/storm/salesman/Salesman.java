package salesman;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The travelling salesman as five steps that hand on plain values, as salesman.py has them.
 * Nothing of it measures.
 */
public final class Salesman {

    private static final Pattern VERTEX = Pattern.compile("<(-?\\d+\\.\\d+),(-?\\d+\\.\\d+)>");
    private static final String NOISE = "abcdefghijklmnopqrstuvwxyz ,.;";

    private Salesman() {
    }

    /** Returns an input with so many vertices among so many characters, the same for each name. */
    public static Map create(String name, int vertices, int characters) {
        Random chance = new Random(name.hashCode());
        int noise = Math.max(1, characters / (vertices + 1));
        StringBuilder around = new StringBuilder(noise);
        for (int place = 0; place < noise; place++) {
            int each = place < 1000 ? chance.nextInt(NOISE.length()) : -1;
            around.append(each < 0 ? around.charAt(place - 1000) : NOISE.charAt(each));
        }
        StringBuilder text = new StringBuilder(around);
        for (int number = 0; number < vertices; number++) {
            text.append(vertex(chance)).append(around);
        }
        Map given = new HashMap();
        given.put("id", name);
        given.put("text", text.toString());
        return given;
    }

    private static String vertex(Random chance) {
        Object[] place = {
            Double.valueOf(200 * chance.nextDouble() - 100),
            Double.valueOf(200 * chance.nextDouble() - 100)
        };
        return String.format(Locale.ROOT, "<%.3f,%.3f>", place);
    }

    /** Finds the vertices of a text. */
    public static Map extract(Map given) {
        List nodes = new ArrayList();
        Matcher found = VERTEX.matcher((String) given.get("text"));
        while (found.find()) {
            double[] node = {Double.parseDouble(found.group(1)), Double.parseDouble(found.group(2))};
            nodes.add(node);
        }
        Map extracted = new HashMap();
        extracted.put("id", given.get("id"));
        extracted.put("nodes", nodes);
        return extracted;
    }

    /** Shares out all paths: each part has those whose second node is one of its own. */
    public static List paths(Map given, int parts) {
        int nodes = ((List) given.get("nodes")).size();
        List shares = new ArrayList();
        for (int part = 0; part < parts; part++) {
            List paths = new ArrayList();
            for (int second = 1 + part; second < nodes; second += parts) {
                boolean[] used = new boolean[nodes];
                int[] path = new int[nodes];
                path[1] = second;
                used[0] = true;
                used[second] = true;
                go(path, 2, used, paths);
            }
            Map share = new HashMap(given);
            share.put("parts", Integer.valueOf(parts));
            share.put("paths", paths);
            shares.add(share);
        }
        return shares;
    }

    private static void go(int[] path, int place, boolean[] used, List paths) {
        if (place >= path.length) {
            paths.add(path.clone());
            return;
        }
        for (int node = 1; node < used.length; node++) {
            if (!used[node]) {
                used[node] = true;
                path[place] = node;
                go(path, place + 1, used, paths);
                used[node] = false;
            }
        }
    }

    /** Finds the shortest of the paths of one part. */
    public static Map distance(Map given) {
        List nodes = (List) given.get("nodes");
        double least = Double.POSITIVE_INFINITY;
        for (Iterator each = ((List) given.get("paths")).iterator(); each.hasNext();) {
            int[] path = (int[]) each.next();
            double length = 0;
            for (int place = 1; place < path.length; place++) {
                double[] a = (double[]) nodes.get(path[place - 1]);
                double[] b = (double[]) nodes.get(path[place]);
                length += Math.hypot(a[0] - b[0], a[1] - b[1]);
            }
            least = Math.min(least, length);
        }
        Map found = new HashMap();
        found.put("id", given.get("id"));
        found.put("parts", given.get("parts"));
        found.put("least", Double.valueOf(least));
        return found;
    }

    /** Finds the shortest of all parts of one input. */
    public static Map summarize(List found) {
        double least = Double.POSITIVE_INFINITY;
        for (Iterator each = found.iterator(); each.hasNext();) {
            double one = ((Double) ((Map) each.next()).get("least")).doubleValue();
            least = Math.min(least, one);
        }
        Map told = new HashMap();
        told.put("id", ((Map) found.get(0)).get("id"));
        told.put("least", Double.valueOf(least));
        return told;
    }
}
