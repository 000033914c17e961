package salesman;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;

/** The salesman as a topology of Storm: a spout that creates, and a bolt for each other step. */
public final class Topology {

    private static final Fields VALUE = new Fields(new String[] {"id", "value"});
    private static final long SECONDS = 3000;
    private static CountDownLatch left;

    private Topology() {
    }

    private static List tuple(Map value) {
        List values = new ArrayList();
        values.add(value.get("id"));
        values.add(value);
        return values;
    }

    /** Creates so many inputs, with a break between two. */
    public static class Creation extends BaseRichSpout {
        private final int runs;
        private final long pause;
        private final int vertices;
        private final int characters;
        private SpoutOutputCollector collector;
        private int number;

        Creation(int runs, long pause, int vertices, int characters) {
            this.runs = runs;
            this.pause = pause;
            this.vertices = vertices;
            this.characters = characters;
        }

        public void open(Map conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        public void nextTuple() {
            if (this.number < this.runs) {
                String name = "run-" + this.number++;
                this.collector.emit(tuple(Salesman.create(name, this.vertices, this.characters)));
                rest(this.pause);
            } else {
                rest(50);
            }
        }

        private static void rest(long milliseconds) {
            try {
                Thread.sleep(milliseconds);
            } catch (InterruptedException ends) {
                Thread.currentThread().interrupt();
            }
        }

        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(VALUE);
        }
    }

    /** What the bolts have in common. */
    public abstract static class Step extends BaseRichBolt {
        protected OutputCollector collector;

        public void prepare(Map conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        public void execute(Tuple tuple) {
            take((Map) tuple.getValue(1));
            this.collector.ack(tuple);
        }

        protected abstract void take(Map value);

        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(VALUE);
        }
    }

    /** From texts to nodes. */
    public static class Extraction extends Step {
        protected void take(Map value) {
            this.collector.emit(tuple(Salesman.extract(value)));
        }
    }

    /** From nodes to parts of all paths: several tuples for one. */
    public static class Paths extends Step {
        private final int parts;

        Paths(int parts) {
            this.parts = parts;
        }

        protected void take(Map value) {
            for (Iterator each = Salesman.paths(value, this.parts).iterator(); each.hasNext();) {
                this.collector.emit(tuple((Map) each.next()));
            }
        }
    }

    /** From a part to its shortest path. */
    public static class Distance extends Step {
        protected void take(Map value) {
            this.collector.emit(tuple(Salesman.distance(value)));
        }
    }

    /** From all parts of an input to the shortest of all. */
    public static class Summary extends Step {
        private final Map waiting = new HashMap();

        protected void take(Map value) {
            Object id = value.get("id");
            List parts = (List) this.waiting.get(id);
            if (parts == null) {
                parts = new ArrayList();
                this.waiting.put(id, parts);
            }
            parts.add(value);
            if (parts.size() == ((Integer) value.get("parts")).intValue()) {
                this.waiting.remove(id);
                System.out.println(id + " " + Salesman.summarize(parts).get("least"));
                left.countDown();
            }
        }
    }

    public static void main(String[] words) throws Exception {
        Map chosen = new HashMap();
        for (int place = 0; place + 1 < words.length; place += 2) {
            chosen.put(words[place], words[place + 1]);
        }
        int runs = number(chosen, "--runs", "25");
        int parts = number(chosen, "--parts", "4");
        long pause = (long) (1000 * Double.parseDouble(of(chosen, "--pause", "1")));
        int vertices = number(chosen, "--vertices", "8");
        int characters = number(chosen, "--characters", "17000000");
        left = new CountDownLatch(runs);
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("creation", new Creation(runs, pause, vertices, characters));
        builder.setBolt("extraction", new Extraction()).shuffleGrouping("creation");
        builder.setBolt("paths", new Paths(parts)).shuffleGrouping("extraction");
        builder.setBolt("distance", new Distance(), Integer.valueOf(2)).shuffleGrouping("paths");
        builder.setBolt("summary", new Summary()).shuffleGrouping("distance");
        Config config = new Config();
        config.put("topology.message.timeout.secs", Integer.valueOf((int) SECONDS));
        LocalCluster cluster = new LocalCluster();
        int code = 1;
        try {
            cluster.submitTopology("salesman", config, builder.createTopology());
            code = left.await(SECONDS, TimeUnit.SECONDS) ? 0 : 1;
        } finally {
            cluster.close();
        }
        System.exit(code);
    }

    private static String of(Map chosen, String name, String otherwise) {
        Object found = chosen.get(name);
        return found == null ? otherwise : (String) found;
    }

    private static int number(Map chosen, String name, String otherwise) {
        return Integer.parseInt(of(chosen, name, otherwise));
    }
}
