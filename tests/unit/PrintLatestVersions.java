import org.apache.kafka.common.protocol.ApiKeys;

/** Prints of each API that this Kafka's Java clients know its name and the latest version that they speak. */
public class PrintLatestVersions {
    public static void main(String[] none) {
        for (ApiKeys api : ApiKeys.values()) {
            System.out.println(api.name + " " + api.latestVersion());
        }
    }
}
