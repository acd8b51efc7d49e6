import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;

/** What kafka-reassign-partitions --generate proposes: ReassignPartitionsCommand asks this for each topic. */
public final class AdminUtilsPeer {
    /** Arguments: topics, partitions a topic, replication factor, then a broker each as id:rack. */
    public static void main(String[] arguments) {
        int topics = Integer.parseInt(arguments[0]);
        int partitions = Integer.parseInt(arguments[1]);
        int factor = Integer.parseInt(arguments[2]);
        List<BrokerMetadata> brokers = new ArrayList<>();
        for (int at = 3; at < arguments.length; at++) {
            String[] broker = arguments[at].split(":");
            brokers.add(new BrokerMetadata(Integer.parseInt(broker[0]), Optional.of(broker[1])));
        }
        StringBuilder said = new StringBuilder();
        for (int topic = 0; topic < topics; topic++) {
            Map<Integer, List<Integer>> proposed = AdminUtils.assignReplicasToBrokers(brokers, partitions, factor);
            for (Map.Entry<Integer, List<Integer>> each : proposed.entrySet()) {
                said.append(topic).append(' ').append(each.getKey());
                for (int broker : each.getValue()) {
                    said.append(' ').append(broker);
                }
                said.append('\n');
            }
        }
        System.out.print(said);
    }
}
