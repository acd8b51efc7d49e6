import java.util.Set;
import org.apache.kafka.common.config.provider.FileConfigProvider;

/** What Kafka's FileConfigProvider reads under the key "word" of each file, as numbers of its characters; or "none". */
public class AskFileProvider {
    public static void main(String[] files) {
        for (String file : files) {
            FileConfigProvider provider = new FileConfigProvider();
            provider.configure(java.util.Map.of());
            try {
                String found = provider.get(file, Set.of("word")).data().get("word");
                System.out.println(found == null ? "none" : java.util.Arrays.toString(found.chars().toArray()));
            } catch (RuntimeException refused) {
                System.out.println("none");
            }
        }
    }
}
