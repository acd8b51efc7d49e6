import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import kafka.cluster.EndPoint;
import kafka.network.SocketServer;
import kafka.server.DynamicListenerConfig;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.SimpleApiVersionManager;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.message.ApiMessageType.ListenerType;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.security.CredentialProvider;
import org.apache.kafka.server.common.FinalizedFeatures;

/**
 * What becomes of a broker's dynamic configs where they arrive before its listeners are made (KafkaServer.startup) and
 * after (BrokerServer.startup). Out: the names of DynamicListenerConfig.ReconfigurableConfigs; then a line for each
 * section of standard input, which an empty line ends, of "file key=value" and "dynamic key=value": what the listener OWN
 * has of the first dynamic config, before and after, each "taken", "not taken" or "refused".
 */
public class AskLateConfigs {
    public static void main(String[] none) throws Exception {
        Thread.currentThread().setContextClassLoader(AskLateConfigs.class.getClassLoader());
        System.out.println(String.join(",", scala.jdk.javaapi.CollectionConverters.asJava(
            kafka.server.DynamicListenerConfig.ReconfigurableConfigs())));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Map<String, String> file = new HashMap<>(), dynamic = new LinkedHashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                System.out.println(ask(file, dynamic, true) + ", " + ask(file, dynamic, false));
                file.clear();
                dynamic.clear();
                continue;
            }
            String[] words = line.split(" ", 2), pair = words[1].split("=", 2);
            (words[0].equals("file") ? file : dynamic).put(pair[0], pair[1].replace("\\n", "\n"));
        }
    }

    static String ask(Map<String, String> file, Map<String, String> dynamic, boolean before) throws Exception {
        Map<String, String> all = new HashMap<>(file);
        all.putAll(Map.of("process.roles", "broker", "node.id", "1", "controller.quorum.voters", "9@localhost:1",
            "controller.listener.names", "CONTROLLER", "num.network.threads", "1"));
        KafkaConfig config = new KafkaConfig(all, false);
        config.dynamicConfig().initialize(scala.Option.empty(), scala.Option.empty());
        Properties given = new Properties();
        given.putAll(dynamic);
        if (before) {
            config.dynamicConfig().updateBrokerConfig(1, given, false);
        }
        Metrics metrics = new Metrics();
        SocketServer server = new SocketServer(config, metrics, Time.SYSTEM,
            new CredentialProvider(ScramMechanism.mechanismNames(), new DelegationTokenCache(ScramMechanism.mechanismNames())),
            new SimpleApiVersionManager(ListenerType.BROKER, false, false, () -> FinalizedFeatures.fromKRaftVersion(
                org.apache.kafka.server.common.MetadataVersion.latestProduction())));
        try {
            if (!before) {
                InvocationHandler known = (self, method, arguments) -> method.getName().equals("config") ? config : server;
                config.dynamicConfig().addBrokerReconfigurable(new DynamicListenerConfig((KafkaBroker) Proxy.newProxyInstance(
                    AskLateConfigs.class.getClassLoader(), new Class<?>[] {KafkaBroker.class}, known)));
                config.dynamicConfig().addBrokerReconfigurable(server);
                config.dynamicConfig().updateBrokerConfig(1, given, false);
            }
            Map.Entry<String, String> asked = dynamic.entrySet().iterator().next();
            if (!Objects.equals(config.originals().get(asked.getKey()), asked.getValue())) {
                return "refused";
            }
            String base = asked.getKey().replaceFirst("^listener\\.name\\.[^.]+\\.", "");
            return shown(inForce(server, base)).equals(shown(new HashMap<>(config.valuesWithPrefixOverride(
                "listener.name.own.")).get(base))) ? "taken" : "not taken";
        } finally {
            server.shutdown();
            metrics.close();
        }
    }

    /** What the channels of the listener OWN have of this key: of TLS what its engines are made with. */
    static Object inForce(SocketServer server, String base) throws Exception {
        for (Map.Entry<?, ?> acceptor : ((Map<?, ?>) get(server, "dataPlaneAcceptors")).entrySet()) {
            if (!((EndPoint) acceptor.getKey()).listenerName().value().equals("OWN")) {
                continue;
            }
            Object processor = ((scala.collection.Seq<?>) get(acceptor.getValue(), "processors")).head();
            Object builder = get(get(processor, "selector"), "channelBuilder");
            Object tls = has(builder, "sslFactory") ? get(builder, "sslFactory") : null;
            if (tls != null && base.startsWith("ssl.") && !base.equals("ssl.principal.mapping.rules")) {
                return ((Map<?, ?>) get(tls, "sslEngineFactoryConfig")).get(base);
            }
            return ((Map<?, ?>) get(builder, "configs")).get(base);
        }
        throw new IllegalStateException("no listener OWN");
    }

    static String shown(Object value) {
        return value instanceof Password ? ((Password) value).value() : String.valueOf(value);
    }

    static Field field(Object of, String name) {
        for (Class<?> each = of.getClass(); each != null; each = each.getSuperclass()) {
            for (Field found : each.getDeclaredFields()) {
                if (found.getName().equals(name) || found.getName().endsWith("$$" + name)) {
                    found.setAccessible(true);
                    return found;
                }
            }
        }
        return null;
    }

    static boolean has(Object of, String name) {
        return field(of, name) != null;
    }

    static Object get(Object of, String name) throws Exception {
        return field(of, name).get(of);
    }

    /** A builder of principals beside Kafka's own. */
    public static class Other extends DefaultKafkaPrincipalBuilder {
        public Other() {
            super(null, null);
        }
    }
}
