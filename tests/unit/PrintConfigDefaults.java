import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;

/** Each key of this Kafka's brokers and controllers: its type, then "=" and its default, which may be empty; no "=": none. */
public class PrintConfigDefaults {
    public static void main(String[] none) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(KafkaConfig.configDef().configKeys()).values()) {
            Object value = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE ? null : key.defaultValue;
            String shown = value == null ? "" : " =" + ConfigDef.convertToString(value, key.type);
            System.out.println(key.name + " " + key.type + shown);
        }
    }
}
