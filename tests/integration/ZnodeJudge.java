import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import kafka.server.DelegationTokenManagerZk;
import kafka.server.DynamicBrokerConfig;
import kafka.server.TopicConfigHandler;
import kafka.utils.Json;
import kafka.zk.ConfigEntityZNode;
import kafka.zk.FeatureZNode;
import kafka.zk.ProducerIdBlockZNode;
import kafka.zk.TopicPartitionStateZNode;
import kafka.zk.TopicZNode;
import kafka.zk.migration.ZkConfigMigrationClient;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metadata.AccessControlEntryRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.security.scram.internals.ScramCredentialUtils;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.DelegationTokenData;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.QuotaConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.zookeeper.data.Stat;
import scala.Option;

/** Reads znodes, "path base64(data)" a line, and says for each what Kafka's own classes throw on: the copy, a broker's start, both or nothing. */
public final class ZnodeJudge {
    interface Reading {
        void run() throws Exception;
    }

    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", 2);
            byte[] data = parts.length > 1 ? Base64.getDecoder().decode(parts[1]) : new byte[0];
            Set<String> found = new TreeSet<>();
            judge(new String(Base64.getDecoder().decode(parts[0]), "UTF-8"), data, found);
            System.out.println(String.join(",", found));
        }
    }

    static void judge(String path, byte[] data, Set<String> found) {
        String[] at = path.split("/");
        String kind = at[1] + (at.length > 2 ? "/" + at[2] : "");
        if (path.endsWith("/state")) {
            ends(found, "copy", () -> TopicPartitionStateZNode.decode(data, new Stat()));
        } else if (kind.equals("brokers/topics")) {
            ends(found, "copy", () -> copyTopic(at[3], data));
        } else if (kind.equals("config/topics")) {
            ends(found, "copy", () -> record(at[3], ConfigEntityZNode.decode(data)));
            ends(found, "start", () -> startTopic(ConfigEntityZNode.decode(data)));
        } else if (kind.equals("config/brokers")) {
            ends(found, "copy", () -> copyBroker(at[3], ConfigEntityZNode.decode(data)));
            ends(found, "start", () -> startBroker(at[3], ConfigEntityZNode.decode(data)));
        } else if (kind.startsWith("config/")) {
            ends(found, "copy", () -> copyQuotas(at, ConfigEntityZNode.decode(data)));
            ends(found, "start", () -> startQuotas(at, ConfigEntityZNode.decode(data)));
        } else if (kind.startsWith("kafka-acl/")) {
            ends(found, "copy", () -> copyAcls(at[3], data));
            ends(found, "start", () -> AclEntry.fromBytes(data));
        } else if (kind.equals("delegation_token/tokens")) {
            ends(found, "copy", () -> copyToken(data));
        } else if (kind.startsWith("latest_producer_id_block")) {
            ends(found, "copy", () -> ProducerIdBlockZNode.parseProducerIdBlockData(data).nextBlockFirstId());
        } else if (kind.startsWith("feature")) {
            ends(found, "start", () -> FeatureZNode.decode(data));
        }
    }

    static void ends(Set<String> found, String what, Reading reading) {
        try {
            reading.run();
        } catch (Throwable thrown) {
            found.add(what);
        }
    }

    /** LogManager.fetchTopicConfigOverrides, then TopicConfigHandler.processConfigChanges in ZooKeeper mode. */
    static void startTopic(Properties overrides) throws Exception {
        Properties props = new Properties();
        props.putAll(overrides);
        String format = overrides.getProperty("message.format.version");
        if (format != null && new LogConfig.MessageFormatVersion(format, "3.9-IV0").shouldIgnore()) props.remove("message.format.version");
        LogConfig config = new LogConfig(props);
        LogConfig.validateNoInvalidRemoteStorageConfigsInZK(config.values());
        for (String throttled : new String[] {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}) {
            if (overrides.containsKey(throttled) && !overrides.getProperty(throttled).isEmpty()) {
                for (int broker : new int[] {1, 2}) new TopicConfigHandler(null, null, null, Option.empty()).parseThrottledPartitions(overrides, broker, throttled);
            }
        }
    }

    /** ZkTopicMigrationClient.iterateTopics asks for the id; a topic that has none is told by another check. */
    static void copyTopic(String name, byte[] data) {
        TopicZNode.decode(name, data);
        if (Json.parseBytes(data).isEmpty()) throw new NoSuchElementException("no id");
    }

    static void copyBroker(String name, Properties props) {
        if (!name.equals("<default>")) Integer.valueOf(name);
        record(name, props);
    }

    /** ZkConfigMigrationClient; what it decodes as a password is judged elsewhere. */
    static void record(String name, Properties props) {
        props.forEach((key, value) -> {
            if (!DynamicBrokerConfig.isPasswordConfig((String) key)) append(new ConfigRecord().setResourceName(name).setName((String) key).setValue((String) value));
        });
    }

    /** ZkAclMigrationClient. */
    static void copyAcls(String name, byte[] data) throws Exception {
        for (Iterator<AclEntry> entries = AclEntry.fromBytes(data).iterator(); entries.hasNext(); ) {
            AclEntry entry = entries.next();
            append(new AccessControlEntryRecord().setResourceName(name).setPrincipal(entry.principal()).setHost(entry.host()));
        }
    }

    /** ZkDelegationTokenMigrationClient, then ZkMigrationClient.migrateDelegationTokens. */
    static void copyToken(byte[] data) {
        Option<TokenInformation> token = DelegationTokenManagerZk.fromBytes(data);
        if (token.isDefined()) append(new DelegationTokenData(token.get()).toRecord());
    }

    /** The controller measures each record before it appends it. */
    static void append(ApiMessage record) {
        new MetadataRecordSerde().recordSize(new ApiMessageAndVersion(record, (short) 0), new ObjectSerializationCache());
    }

    static void startBroker(String name, Properties props) {
        if (!name.equals("<default>")) Integer.parseInt(name.trim());
        ConfigDef rates = QuotaConfigs.brokerQuotaConfigs();
        for (String rate : rates.names()) {
            if (props.containsKey(rate) && isValid(rates, rate, props)) Long.parseLong(props.getProperty(rate));
        }
    }

    /** DynamicBrokerConfig.removeInvalidConfigs. */
    static boolean isValid(ConfigDef rates, String rate, Properties props) {
        try {
            rates.parse(Map.of(rate, props.getProperty(rate)));
            return true;
        } catch (ConfigException ignored) {
            return false;
        }
    }

    /** ZkConfigMigrationClient.iterateClientQuotas. */
    static void copyQuotas(String[] at, Properties props) {
        for (int name = 3; name < at.length; name += 2) Sanitizer.desanitize(at[name]);
        if (at.length == 4) {
            for (ScramMechanism mechanism : ScramMechanism.values()) {
                String value = mechanism == ScramMechanism.UNKNOWN ? null : props.getProperty(mechanism.mechanismName());
                if (value != null) {
                    ScramCredentialUtils.credentialFromString(value);
                    props.remove(mechanism.mechanismName());
                }
            }
        }
        props.values().forEach(value -> Double.parseDouble((String) value));
    }

    /** How the sync that follows the copy spells an ip's name. */
    static String afterTheCopy(String name) {
        return ZkConfigMigrationClient.getSanitizedClientQuotaZNodeName(Map.of("ip", Sanitizer.desanitize(name)), "ip").get();
    }

    /** QuotaConfigHandler and UserConfigHandler, IpConfigHandler; names of hosts are not looked up. */
    static void startQuotas(String[] at, Properties props) throws Exception {
        if (at[2].equals("ips")) {
            if (at[3].contains(":") || at[3].contains("%")) {
                InetAddress.getByName(at[3]);
                if (!props.isEmpty()) InetAddress.getByName(afterTheCopy(at[3]));
            }
            if (props.containsKey("connection_creation_rate")) Integer.parseInt(props.getProperty("connection_creation_rate"));
            return;
        }
        for (int name = 3; name < at.length; name += 2) Sanitizer.desanitize(at[name]);
        for (String rate : new String[] {"producer_byte_rate", "consumer_byte_rate"}) if (props.containsKey(rate)) Long.parseLong(props.getProperty(rate));
        for (String rate : new String[] {"request_percentage", "controller_mutation_rate"}) if (props.containsKey(rate)) Double.parseDouble(props.getProperty(rate));
        if (at[2].equals("users") && at.length == 4 && !at[3].equals("<default>")) {
            for (String mechanism : org.apache.kafka.common.security.scram.internals.ScramMechanism.mechanismNames()) {
                if (props.containsKey(mechanism)) ScramCredentialUtils.credentialFromString(props.getProperty(mechanism));
            }
        }
    }
}
