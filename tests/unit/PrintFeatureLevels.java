import java.lang.reflect.Method;
import java.util.List;
import org.apache.kafka.server.common.MetadataVersion;

/** Each level of metadata.version of this Kafka: number, name, whether it changed metadata; then the supported range of every feature. */
public class PrintFeatureLevels {
    public static void main(String[] none) throws Exception {
        MetadataVersion before = null;
        for (MetadataVersion version : MetadataVersion.values()) {
            if (version.featureLevel() <= 0) {
                continue;
            }
            boolean changed = before == null || MetadataVersion.checkIfMetadataChanged(before, version);
            System.out.println("level " + version.featureLevel() + " " + version.version() + " " + changed);
            before = version;
        }
        Class<?> features = Class.forName("org.apache.kafka.server.common." + (found("Feature") ? "Feature" : "Features"));
        System.out.println("range metadata.version " + lowest() + " " + MetadataVersion.latestProduction().featureLevel());
        for (Object each : (List<?>) features.getField("PRODUCTION_FEATURES").get(null)) {
            Method name = features.getMethod("featureName");
            Method latest = features.getMethod("latestProduction");
            System.out.println("range " + name.invoke(each) + " 0 " + latest.invoke(each));
        }
    }

    private static boolean found(String name) {
        try {
            Class.forName("org.apache.kafka.server.common." + name);
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    private static short lowest() throws Exception {
        for (String name : new String[] {"MINIMUM_VERSION", "MINIMUM_KRAFT_VERSION"}) {
            try {
                return ((MetadataVersion) MetadataVersion.class.getField(name).get(null)).featureLevel();
            } catch (NoSuchFieldException e) {
                continue;
            }
        }
        throw new IllegalStateException("no lowest metadata.version");
    }
}
