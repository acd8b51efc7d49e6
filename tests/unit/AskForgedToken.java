import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.internals.BrokerSecurityConfigs;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler;

/**
 * What a listener's own handler of OAUTHBEARER, whose keys are at this URL, does with a token that nobody signed: "asks"
 * if it goes there for the keys, "lets in" if it takes the token.
 */
public class AskForgedToken {
    public static void main(String[] url) throws Exception {
        Map<String, Object> given = Map.of("sasl.oauthbearer.jwks.endpoint.url", url[0]);
        Map<String, ?> configs = new AbstractConfig(BrokerSecurityConfigs.CONFIG_DEF, given, false).values();
        AppConfigurationEntry entry = new AppConfigurationEntry("any", LoginModuleControlFlag.REQUIRED, Map.of());
        OAuthBearerValidatorCallbackHandler handler = new OAuthBearerValidatorCallbackHandler();
        String said = "asks";
        try {
            handler.configure(configs, "OAUTHBEARER", List.of(entry));
            OAuthBearerValidatorCallback forged = new OAuthBearerValidatorCallback(token());
            handler.handle(new Callback[] {forged});
            said = forged.token() == null ? "does not let in" : "lets in";
        } catch (RuntimeException error) {
            said = "asks";
        }
        System.out.println(said);
        System.exit(0);
    }

    private static String token() {
        long now = System.currentTimeMillis() / 1000;
        String claims = "{\"sub\":\"admin\",\"scope\":\"x\",\"iat\":" + now + ",\"exp\":" + (now + 600) + "}";
        return encoded("{\"alg\":\"RS256\"}") + "." + encoded(claims) + "." + encoded("signed by nobody");
    }

    private static String encoded(String text) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
