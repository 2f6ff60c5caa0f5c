package shelf;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Makes the trouble that a test asks for: a file has the place, the trouble and its argument. */
public final class Trouble {
    private static final Path REQUEST = Path.of(System.getProperty("shelf.trouble"));
    private static final Path REACHED = REQUEST.resolveSibling("reached");

    private Trouble() {}

    /** Makes the requested trouble if this is its place, once. */
    public static void at(String place) {
        String[] request;
        try {
            request = Files.exists(REQUEST) ? Files.readString(REQUEST).strip().split(" ") : new String[] {""};
            if (!request[0].equals(place) || !Files.deleteIfExists(REQUEST)) {
                return;
            }
            Files.writeString(REACHED, place);
        }
        catch (IOException e) {
            throw new IllegalStateException(e);
        }
        make(request[1], request.length > 2 ? request[2] : "");
    }

    private static void make(String trouble, String argument) {
        switch (trouble) {
            case "kill" -> kill(argument.isEmpty() ? ProcessHandle.current().pid() : Long.parseLong(argument));
            case "hang" -> sleep(600_000);
            case "wait" -> sleep(2_000);
            case "exit" -> System.exit(3);
            case "memory" -> fillMemory(new ArrayList<>());
            case "overflow" -> overflow(0);
            case "missing" -> throw new NoClassDefFoundError(argument);
            case "print" -> print();
            default -> throw new IllegalArgumentException(trouble);
        }
    }

    private static void kill(long process) {
        try {
            new ProcessBuilder("kill", "-9", Long.toString(process)).start().waitFor();
            Thread.sleep(500);
        }
        catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        }
        catch (InterruptedException e) {
            try {
                Files.writeString(REACHED.resolveSibling("interrupted"), "");
            }
            catch (IOException failure) {
                throw new IllegalStateException(failure);
            }
            throw new IllegalStateException("The call was interrupted", e);
        }
    }

    private static void fillMemory(List<long[]> all) {
        while (all.size() < 1_000_000) {
            all.add(new long[1 << 20]);
        }
    }

    private static int overflow(int depth) {
        return overflow(depth + 1) + depth;
    }

    private static void print() {
        String line = "x".repeat(100_000);
        for (int i = 0; i < 1_000; i++) {
            System.err.println(line);
        }
    }
}
