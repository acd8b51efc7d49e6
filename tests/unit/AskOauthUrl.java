import java.util.Map;
import org.apache.kafka.common.security.oauthbearer.internals.secured.ConfigurationUtils;

/** Whether this Kafka takes the URL of the first argument under each key that follows; else why not. */
public class AskOauthUrl {
    public static void main(String[] given) {
        for (int each = 1; each < given.length; each++) {
            try {
                new ConfigurationUtils(Map.of(given[each], given[0])).validateUrl(given[each]);
                System.out.println("takes");
            } catch (RuntimeException error) {
                System.out.println(error.getMessage());
            }
        }
    }
}
