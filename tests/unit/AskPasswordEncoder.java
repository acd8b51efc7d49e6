import java.util.Scanner;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.security.PasswordEncoder;

/**
 * Kafka's EncryptingPasswordEncoder. Lines of standard input: "encode SECRET CIPHER PASSWORD" prints the encoded
 * password; "decode SECRET CIPHER ENCODED" the password, or "refused". (It decodes what its own cipher encoded alone.)
 */
public class AskPasswordEncoder {
    public static void main(String[] none) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] asked = lines.nextLine().split(" ");
            PasswordEncoder encoder = PasswordEncoder.encrypting(new Password(asked[1]), null, asked[2], 128, 1024);
            try {
                String said =
                    asked[0].equals("encode") ? encoder.encode(new Password(asked[3])) : encoder.decode(asked[3]).value();
                System.out.println(said.replaceAll("[^ -~]", "?"));  // what a wrong key decodes to may be anything
            } catch (Exception refused) {
                System.out.println("refused");
            }
        }
    }
}
