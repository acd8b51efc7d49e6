import java.lang.reflect.InvocationTargetException;
import java.nio.file.Path;
import java.util.Optional;

/** Whether this Kafka reads the bootstrap.checkpoint of each directory at a start: "reads" or "ends". */
public class AskBootstrap {
    public static void main(String[] directories) throws Exception {
        for (String each : directories) {
            try {
                read(each);
                System.out.println("reads");
            } catch (InvocationTargetException e) {
                System.out.println("ends");
            }
        }
    }

    private static void read(String directory) throws ReflectiveOperationException {
        String home = "org.apache.kafka.metadata.bootstrap.Bootstrap";
        Class<?> reader;
        try {
            reader = Class.forName(home + "Directory");
        } catch (ClassNotFoundException e) { // 4.4
            Class.forName(home + "Metadata").getMethod("fromDirectory", Path.class).invoke(null, Path.of(directory));
            return;
        }
        Object itself;
        try {
            itself = reader.getConstructor(String.class).newInstance(directory);
        } catch (NoSuchMethodException e) { // 3.9: with inter.broker.protocol.version
            itself = reader.getConstructor(String.class, Optional.class).newInstance(directory, Optional.empty());
        }
        reader.getMethod("read").invoke(itself);
    }
}
