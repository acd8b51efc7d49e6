import java.util.stream.Collectors;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * Prints of each API its name, who answers it, and a mark for each version from 0 on: "-" is not answered, "d" is
 * answered and counted as deprecated (DeprecatedRequestsPerSec), "." is answered. The jars on the class path say so.
 */
public class PrintRequestVersions {
    public static void main(String[] none) {
        for (ApiKeys api : ApiKeys.values()) {
            StringBuilder marks = new StringBuilder();
            for (short version = 0; version <= api.latestVersion(true); version++) {
                boolean answered = version >= api.messageType.lowestSupportedVersion();
                marks.append(!answered ? '-' : deprecated(api, version) ? 'd' : '.');
            }
            String listeners = api.messageType.listeners().stream().map(Enum::name).collect(Collectors.joining(","));
            System.out.println(api.name + " " + (listeners.isEmpty() ? "none" : listeners) + " " + (marks.length() == 0 ? "-" : marks));
        }
    }

    /** Only 3.x has deprecated versions, so that 4.x has no such method. */
    private static boolean deprecated(ApiKeys api, short version) {
        try {
            return (boolean) ApiKeys.class.getMethod("isVersionDeprecated", short.class).invoke(api, version);
        } catch (ReflectiveOperationException gone) {
            return false;
        }
    }
}
