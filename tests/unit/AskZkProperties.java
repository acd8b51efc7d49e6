import org.apache.kafka.server.config.ZkConfigs;

/** Writes each of Kafka's properties of TLS at ZooKeeper with the Java property that it stands for. */
public class AskZkProperties {
    public static void main(String[] arguments) {
        ZkConfigs.ZK_SSL_CONFIG_TO_SYSTEM_PROPERTY_MAP.forEach((key, property) -> System.out.println(key + " " + property));
    }
}
