import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * What this Kafka's definitions of configuration know and take. For brokers and for topics, each key: its type, and of
 * numbers the least and the greatest that its own validator takes; "-" where it takes any of its type. Then of lists
 * whether they may be empty ("filled": no) and have an empty entry ("entries": no, too), else "-"; then the default,
 * "-" where it has none or an empty one; last the words that a text or a list may hold, else "-".
 */
public class PrintConfigBounds {
    public static void main(String[] none) throws Exception {
        print("broker", KafkaConfig.configDef());
        ConfigDef topics;
        try {
            topics = (ConfigDef) LogConfig.class.getMethod("configDefCopy").invoke(null);
        } catch (NoSuchMethodException e) {
            topics = new ConfigDef((ConfigDef) LogConfig.class.getField("CONFIG_DEF").get(null));
        }
        print("topic", topics);
    }

    private static void print(String kind, ConfigDef def) {
        for (Map.Entry<String, ConfigDef.ConfigKey> each : new TreeMap<>(def.configKeys()).entrySet()) {
            ConfigDef.ConfigKey key = each.getValue();
            String[] bounds = bounds(key);
            System.out.println(kind + " " + key.name + " " + key.type + " " + bounds[0] + " " + bounds[1]
                + " " + list(key) + " " + byDefault(key) + " " + words(key));
        }
    }

    private static String list(ConfigDef.ConfigKey key) {
        if (key.type != ConfigDef.Type.LIST || key.validator == null || valid(key, List.of("one", ""))) {
            return "-";
        }
        return valid(key, List.of()) ? "entries" : "filled";
    }

    private static String words(ConfigDef.ConfigKey key) {
        String shown = String.valueOf(key.validator).replace(" ", "");
        boolean isText = key.type == ConfigDef.Type.LIST || key.type == ConfigDef.Type.STRING;
        return isText && shown.matches("\\[.+]") ? shown.substring(1, shown.length() - 1) : "-";
    }

    private static String byDefault(ConfigDef.ConfigKey key) {
        Object value = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE ? null : key.defaultValue;
        String text = value == null ? "" : ConfigDef.convertToString(value, key.type).replace(" ", "");
        return text.isEmpty() ? "-" : text;
    }

    private static boolean valid(ConfigDef.ConfigKey key, Object given) {
        try {
            key.validator.ensureValid(key.name, given);
            return true;
        } catch (RuntimeException e) {
            return false;
        }
    }

    private static String[] bounds(ConfigDef.ConfigKey key) {
        long low;
        long high;
        switch (key.type) {
            case SHORT: low = Short.MIN_VALUE; high = Short.MAX_VALUE; break;
            case INT: low = Integer.MIN_VALUE; high = Integer.MAX_VALUE; break;
            case LONG: low = Long.MIN_VALUE; high = Long.MAX_VALUE; break;
            default: return new String[] {"-", "-"};
        }
        if (key.validator == null) {
            return new String[] {"-", "-"};
        }
        Long good = some(key, low, high);
        if (good == null) {
            throw new IllegalStateException("no value found that is taken: " + key.name);
        }
        return new String[] {
            takes(key, low) ? "-" : String.valueOf(edge(key, low, good)),
            takes(key, high) ? "-" : String.valueOf(edge(key, high, good))
        };
    }

    private static Long some(ConfigDef.ConfigKey key, long low, long high) {
        List<Long> tried = new ArrayList<>(List.of(0L, 1L, -1L, low, high));
        if (key.defaultValue instanceof Number) {
            tried.add(0, ((Number) key.defaultValue).longValue());
        }
        for (int power = 1; power < 62; power++) {
            tried.add(1L << power);
        }
        for (long value : tried) {
            if (value >= low && value <= high && takes(key, value)) {
                return value;
            }
        }
        return null;
    }

    /** The last value from good on towards bad that is taken; the validators take a single range. */
    private static long edge(ConfigDef.ConfigKey key, long bad, long good) {
        while (!BigInteger.valueOf(good).subtract(BigInteger.valueOf(bad)).abs().equals(BigInteger.ONE)) {
            long middle = good / 2 + bad / 2 + (good % 2 + bad % 2) / 2;
            if (takes(key, middle)) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        return good;
    }

    private static boolean takes(ConfigDef.ConfigKey key, long value) {
        Object given;
        switch (key.type) {
            case SHORT: given = (short) value; break;
            case INT: given = (int) value; break;
            default: given = value;
        }
        return valid(key, given);
    }
}
