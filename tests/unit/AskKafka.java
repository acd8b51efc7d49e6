import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;

/** What Java and Kafka themselves make of what this project renders. One run answers everything: java AskKafka.java DIRECTORY. */
public class AskKafka {
    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        try (PrintStream out = new PrintStream(Files.newOutputStream(directory.resolve("answers.txt")), false, "US-ASCII")) {
            for (Map.Entry<String, ConfigDef.ConfigKey> each : new TreeMap<>(kafka.server.KafkaConfig.configDef().configKeys()).entrySet()) {
                Object value = each.getValue().hasDefault() ? each.getValue().defaultValue : null;
                out.println("default " + each.getKey() + " " + base64(value == null ? "" : ConfigDef.convertToString(value, each.getValue().type)) + " " + (value == null));
                out.println("type " + each.getKey() + " " + each.getValue().type);
            }
            for (Path file : files(directory, ".text")) read(out, file);
            for (Path file : files(directory, ".config")) parse(out, file);
        }
    }

    private static List<Path> files(Path directory, String ending) throws IOException {
        try (var found = Files.list(directory)) {
            return found.filter(path -> path.toString().endsWith(ending)).sorted().toList();
        }
    }

    /** As Kafka reads its configuration (bytes), and as FileConfigProvider reads its file (UTF-8). */
    private static void read(PrintStream out, Path file) throws IOException {
        Properties bytes = new Properties(), characters = new Properties();
        String name = file.getFileName().toString();
        try (InputStream stream = Files.newInputStream(file)) {
            bytes.load(stream);
        } catch (IllegalArgumentException error) {
            out.println("malformed " + name);
            return;
        }
        try (Reader reader = new InputStreamReader(Files.newInputStream(file), StandardCharsets.UTF_8)) {
            characters.load(reader);
        }
        for (String key : bytes.stringPropertyNames()) out.println("bytes " + name + " " + base64(key) + " " + base64(bytes.getProperty(key)));
        for (String key : characters.stringPropertyNames()) out.println("characters " + name + " " + base64(key) + " " + base64(characters.getProperty(key)));
    }

    /** Whether a node could start with the file: the same constructor that Kafka's start calls. A controller named calls- also logs in to brokers. */
    private static void parse(PrintStream out, Path file) throws IOException {
        Properties properties = new Properties();
        try (InputStream stream = Files.newInputStream(file)) {
            properties.load(stream);
        }
        String said = "";
        try {
            var config = new kafka.server.KafkaConfig(properties, false);
            if (file.getFileName().toString().startsWith("calls-")) call(config);
        } catch (Exception error) {
            said = String.valueOf(error.getMessage());
        }
        out.println("config " + file.getFileName() + " " + base64(said));
    }

    /** What ControllerChannelManager.addNewBroker does before it connects. */
    private static void call(kafka.server.KafkaConfig config) {
        org.apache.kafka.common.network.ChannelBuilders.clientChannelBuilder(
            config.interBrokerSecurityProtocol(), org.apache.kafka.common.security.JaasContext.Type.SERVER, config, config.interBrokerListenerName(),
            config.saslMechanismInterBrokerProtocol(), org.apache.kafka.common.utils.Time.SYSTEM, config.saslInterBrokerHandshakeRequestEnable(),
            new org.apache.kafka.common.utils.LogContext()).close();
    }

    private static String base64(String text) {
        return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_16BE));
    }
}
