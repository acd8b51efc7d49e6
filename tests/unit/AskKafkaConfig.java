import java.util.Properties;
import java.util.TreeSet;
import kafka.server.KafkaConfig;

/** Every key that this Kafka's configuration has; then, for each file given, what it says to it: nothing where it takes it. */
public class AskKafkaConfig {
    public static void main(String[] files) throws Exception {
        for (String name : new TreeSet<>(KafkaConfig.configDef().names())) {
            System.out.println("key " + name);
        }
        for (String file : files) {
            Properties given = new Properties();
            try (java.io.FileReader reader = new java.io.FileReader(file)) {
                given.load(reader);
            }
            String said = "";
            try {
                new KafkaConfig(given);
            } catch (Exception e) {
                said = String.valueOf(e.getMessage()).replace('\n', ' ');
            }
            System.out.println("file " + said);
        }
    }
}
