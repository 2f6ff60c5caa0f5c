package org.junit.jupiter.api;

import java.util.Objects;

/** JUnit's assertions, as far as written tests use them. */
public final class Assertions {
    private Assertions() {}

    /** A statement that may throw. */
    public interface Executable {
        void execute() throws Throwable;
    }

    public static void assertEquals(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError("expected: <" + expected + "> but was: <" + actual + ">");
        }
    }

    public static <T extends Throwable> T assertThrows(Class<T> type, Executable executable) {
        try {
            executable.execute();
        } catch (Throwable thrown) {
            if (type.isInstance(thrown)) {
                return type.cast(thrown);
            }
            throw new AssertionError("another exception than " + type.getName(), thrown);
        }
        throw new AssertionError("no exception, and expected " + type.getName());
    }
}
