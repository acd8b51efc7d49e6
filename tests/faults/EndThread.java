import java.lang.instrument.Instrumentation;
import java.lang.reflect.Field;

/** Attached to a broker: ends one of its threads as a defect does, by an exception between two turns of its loop. A listener's ends when it is interrupted. */
public final class EndThread {
    public static void agentmain(String part, Instrumentation instrumentation) throws ReflectiveOperationException, InterruptedException {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().contains(part)) {
                if (!part.endsWith("-event-process-thread")) {
                    Field asked = thread.getClass().getDeclaredField("controllerNodeProvider");
                    asked.setAccessible(true);
                    asked.set(thread, null);
                }
                thread.interrupt();
                thread.join(60_000);
                return;
            }
        }
        throw new IllegalArgumentException("no thread's name holds " + part);
    }
}
