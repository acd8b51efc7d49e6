import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/**
 * Whether Kafka takes a key store. Lines of standard input: its type, its path, its password and the key's, "-" for
 * none. Prints "taken" or "refused" for each.
 */
public class AskKeyStores {
    public static void main(String[] none) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] asked = lines.nextLine().split(" ");
            Map<String, Object> given = new HashMap<>(Map.of("ssl.protocol", "TLSv1.3"));
            given.put("ssl.keystore.type", asked[0]);
            given.put("ssl.keystore.location", asked[1]);
            if (!asked[2].equals("-"))
                given.put("ssl.keystore.password", new Password(asked[2]));
            if (!asked[3].equals("-"))
                given.put("ssl.key.password", new Password(asked[3]));
            try {
                new DefaultSslEngineFactory().configure(given);
                System.out.println("taken");
            } catch (RuntimeException refused) {
                System.out.println("refused");
            }
        }
    }
}
