import org.apache.kafka.server.common.MetadataVersion;

/** Each released metadata.version of this Kafka, and its feature level: those of ZooKeeper's time have none. */
public class PrintMetadataVersions {
    public static void main(String[] none) {
        for (MetadataVersion version : MetadataVersion.values()) {
            if (version.featureLevel() > 0 && !MetadataVersion.latestProduction().isLessThan(version)) {
                System.out.println(version.version() + " " + version.featureLevel());
            }
        }
    }
}
