import java.lang.instrument.Instrumentation;
import java.lang.reflect.Field;

/** Attached to a broker: ends one of its threads as Kafka's own defect does, by an exception between two turns of its loop. */
public final class EndThread {
    public static void agentmain(String part, Instrumentation instrumentation) throws ReflectiveOperationException {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().contains(part)) {
                Field asked = thread.getClass().getDeclaredField("controllerNodeProvider");
                asked.setAccessible(true);
                asked.set(thread, null);
                thread.interrupt();
                return;
            }
        }
        throw new IllegalArgumentException("no thread's name holds " + part);
    }
}
