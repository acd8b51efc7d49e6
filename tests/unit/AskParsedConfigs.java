import java.util.Arrays;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;

/** What Kafka parses of texts: a properties file, its keys a type, a dot and anything. Prints key, "=" and value or refusal. */
public class AskParsedConfigs {
    public static void main(String[] file) throws Exception {
        Properties given = new Properties();
        try (java.io.FileReader reader = new java.io.FileReader(file[0])) {
            given.load(reader);
        }
        for (String key : new TreeSet<>(given.stringPropertyNames())) {
            ConfigDef.Type type = ConfigDef.Type.valueOf(key.substring(0, key.indexOf('.')));
            String said;
            try {
                Object value = ConfigDef.parseType(key, given.getProperty(key), type);
                said = value instanceof java.util.List ? ((java.util.List<?>) value).size() + " " + value : "" + value;
            } catch (Exception e) {
                said = "refused";
            }
            System.out.println(key + "=" + said);
        }
    }
}
