import java.util.TreeSet;

/** The configs that this Kafka's brokers take while they run: DynamicBrokerConfig.AllDynamicConfigs, DynamicConfig.Broker. */
public class PrintDynamicConfigs {
    public static void main(String[] none) {
        TreeSet<String> names = new TreeSet<>();
        scala.collection.Iterator<String> some = kafka.server.DynamicBrokerConfig.AllDynamicConfigs().iterator();
        while (some.hasNext()) {
            names.add(some.next());
        }
        names.addAll(kafka.server.DynamicConfig.Broker$.MODULE$.names());
        names.forEach(System.out::println);
    }
}
