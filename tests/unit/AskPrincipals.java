import java.util.Scanner;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * The name that Kafka makes of a certificate's. Lines of standard input: the distinguished name, a tab, and
 * ssl.principal.mapping.rules. Prints the principal of each, or "none".
 */
public class AskPrincipals {
    public static void main(String[] none) {
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            String[] asked = lines.nextLine().split("\t", 2);
            try {
                System.out.println("User:" + SslPrincipalMapper.fromRules(asked[1]).getName(asked[0]));
            } catch (Exception refused) {
                System.out.println("none");
            }
        }
    }
}
