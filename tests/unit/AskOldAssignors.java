import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import kafka.common.TopicAndPartition;
import kafka.consumer.AssignmentContext;
import kafka.consumer.ConsumerThreadId;
import kafka.consumer.PartitionAssignor$;
import kafka.utils.ZKStringSerializer$;
import kafka.utils.ZkUtils;
import org.I0Itec.zkclient.InMemoryConnection;
import org.I0Itec.zkclient.ZkClient;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.PartitionAssignor.Subscription;
import org.apache.kafka.common.TopicPartition;
import scala.collection.JavaConverters;

/** One case a line of standard input, one answer a line: who owns what by the 1.1.1 client, over a ZooKeeper in memory,
 *  and how RoundRobinAssignor deals partitions to threads. */
public class AskOldAssignors {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) {
        int ended = 1; // ZkClient's threads would keep the process alive
        try {
            answer();
            ended = 0;
        } catch (Exception failed) {
            failed.printStackTrace();
        }
        System.exit(ended);
    }

    static void answer() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            System.out.println(JSON.writeValueAsString(asked.has("threads") ? subdivided(asked) : assigned(asked)));
        }
    }

    static List<Object> assigned(JsonNode asked) throws Exception {
        ZkClient client = new ZkClient(new InMemoryConnection(), 10000, ZKStringSerializer$.MODULE$);
        for (Iterator<Map.Entry<String, JsonNode>> each = asked.get("znodes").fields(); each.hasNext(); ) {
            Map.Entry<String, JsonNode> znode = each.next();
            String path = znode.getKey();
            for (int end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) {
                if (!client.exists(path.substring(0, end))) {
                    client.createPersistent(path.substring(0, end)); // a parent is not asked for in memory
                }
            }
            client.createPersistent(path);
            client.writeData(path, znode.getValue().asText());
        }
        ZkUtils zookeeper = new ZkUtils(client, null, false);
        List<Object> found = new ArrayList<>();
        for (JsonNode member : asked.get("members")) {
            AssignmentContext context = new AssignmentContext("g", member.asText(), true, zookeeper);
            var all = PartitionAssignor$.MODULE$.createInstance(asked.get("strategy").asText()).assign(context);
            scala.collection.mutable.Map<TopicAndPartition, ConsumerThreadId> mine = all.getAndMaybePut(member.asText());
            JavaConverters.mapAsJavaMapConverter(mine).asJava().forEach((partition, thread) ->
                found.add(List.of(partition.topic(), partition.partition(), thread.toString())));
        }
        client.close();
        return found;
    }

    static List<Object> subdivided(JsonNode asked) {
        Map<String, Integer> counts = new HashMap<>();
        asked.get("counts").fields().forEachRemaining(each -> counts.put(each.getKey(), each.getValue().asInt()));
        Map<String, Subscription> threads = new HashMap<>();
        asked.get("threads").fields().forEachRemaining(each -> {
            List<String> topics = new ArrayList<>();
            each.getValue().forEach(topic -> topics.add(topic.asText()));
            threads.put(each.getKey(), new Subscription(topics));
        });
        List<Object> found = new ArrayList<>();
        new RoundRobinAssignor().assign(counts, threads).forEach((thread, partitions) -> {
            for (TopicPartition each : partitions) {
                found.add(List.of(each.topic(), each.partition(), thread));
            }
        });
        return found;
    }
}
