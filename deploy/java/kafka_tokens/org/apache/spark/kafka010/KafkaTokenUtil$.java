package org.apache.spark.kafka010;

import java.util.Map;
import org.apache.spark.SparkConf;
import scala.Option;

/** Kerberos delegation tokens, of which there are none: nothing matches, nothing is to renew. */
public class KafkaTokenUtil$ {
    public static final KafkaTokenUtil$ MODULE$ = new KafkaTokenUtil$();

    public boolean needTokenUpdate(Map settings, Option cluster) {
        return false;
    }

    public Option findMatchingTokenClusterConfig(SparkConf configuration, String servers) {
        return Option.empty();
    }
}
