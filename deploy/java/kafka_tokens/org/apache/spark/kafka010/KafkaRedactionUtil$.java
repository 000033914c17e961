package org.apache.spark.kafka010;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.regex.Pattern;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/** Hides what must not be read in a log: values whose names speak of secrets. */
public class KafkaRedactionUtil$ {
    public static final KafkaRedactionUtil$ MODULE$ = new KafkaRedactionUtil$();

    private static final Pattern SECRET =
        Pattern.compile("(?i)secret|password|token|access[.]?key|jaas");

    public Seq redactParams(Seq parameters) {
        ArrayList shown = new ArrayList();
        Iterator pairs = scala.jdk.javaapi.CollectionConverters.asJava(parameters).iterator();
        while (pairs.hasNext()) {
            Tuple2 pair = (Tuple2) pairs.next();
            String name = String.valueOf(pair._1());
            Object value = pair._2();
            if (value != null) {
                value = SECRET.matcher(name).find() ? "*********(redacted)" : value.toString();
            }
            shown.add(new Tuple2(name, value));
        }
        return scala.jdk.javaapi.CollectionConverters.asScala(shown).toSeq();
    }
}
