package org.apache.spark.kafka010;

import java.util.HashMap;
import java.util.Map;
import scala.Option;

/** Collects the settings of a Kafka client; authentication is left as the settings have it. */
public class KafkaConfigUpdater {
    private final HashMap settings;

    public KafkaConfigUpdater(String module, scala.collection.immutable.Map settings) {
        this.settings = new HashMap(scala.jdk.javaapi.CollectionConverters.asJava(settings));
    }

    public KafkaConfigUpdater set(String key, Object value) {
        settings.put(key, value);
        return this;
    }

    public KafkaConfigUpdater setIfUnset(String key, Object value) {
        if (!settings.containsKey(key)) {
            settings.put(key, value);
        }
        return this;
    }

    public KafkaConfigUpdater setAuthenticationConfigIfNeeded() {
        return this;
    }

    public KafkaConfigUpdater setAuthenticationConfigIfNeeded(Option cluster) {
        return this;
    }

    public Map build() {
        return settings;
    }
}
