import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;

/** Each key of this Kafka's brokers and controllers: its type, and whether its documentation speaks of a class. */
public class AskConfigTypes {
    public static void main(String[] none) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(KafkaConfig.configDef().configKeys()).values()) {
            String words = String.valueOf(key.documentation).toLowerCase();
            boolean names = words.contains("class") || key.name.contains("class");
            System.out.println(key.name + " " + key.type + " " + names);
        }
    }
}
