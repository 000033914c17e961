package org.apache.spark.kafka010;

/** Where delegation tokens would come from; there are none here, so there is never one of these. */
public class KafkaTokenClusterConf {
}
