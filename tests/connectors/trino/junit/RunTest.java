import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the tests of a class as JUnit does: with a new folder, and exit code 1 after a failure. */
public final class RunTest {
    private RunTest() {}

    public static void main(String[] arguments) throws Exception {
        int code = 1;
        try {
            Class<?> type = Class.forName(arguments[0]);
            Constructor<?> constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            Object test = constructor.newInstance();
            for (Field field : type.getDeclaredFields()) {
                if (field.isAnnotationPresent(TempDir.class)) {
                    field.setAccessible(true);
                    field.set(test, Files.createTempDirectory(Path.of(arguments[1]), "junit"));
                }
            }
            for (Method method : type.getDeclaredMethods()) {
                if (method.isAnnotationPresent(Test.class)) {
                    method.setAccessible(true);
                    method.invoke(test);
                    System.out.println(method.getName() + " passed");
                    code = 0;
                }
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            code = 1;
        }
        // Threads of the plugin may run on.
        System.exit(code);
    }
}
