package shelf;

import static io.trino.spi.StandardErrorCode.TRANSACTION_CONFLICT;
import static java.net.URLEncoder.encode;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;

import io.trino.spi.TrinoException;
import io.trino.spi.connector.SchemaTableName;
import java.io.*;
import java.net.URLDecoder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** The folder of a catalog: one folder per schema, and in it one per table. */
class ShelfStore {
    private static final String STATE = "state";
    private final Path folder;

    ShelfStore(Path folder) {
        this.folder = folder;
    }

    List<String> schemas() {
        return names(folder);
    }

    List<String> tables(String schema) {
        return names(folder.resolve(encode(schema, UTF_8)));
    }

    void createSchema(String schema) {
        run(() -> Files.createDirectories(folder.resolve(encode(schema, UTF_8))));
    }

    void dropSchema(String schema) {
        run(() -> Files.delete(folder.resolve(encode(schema, UTF_8))));
    }

    Optional<TableState> state(SchemaTableName name) {
        Path file = folderOf(name).resolve(STATE);
        if (!Files.exists(file)) {
            return Optional.empty();
        }
        try (ObjectInputStream in = new ObjectInputStream(Files.newInputStream(file))) {
            return Optional.of((TableState) in.readObject());
        }
        catch (IOException | ClassNotFoundException e) {
            throw new IllegalStateException("The state of " + name + " cannot be read", e);
        }
    }

    /** Replaces the state of a table; the version that it is made from must be the current one. */
    synchronized void commit(TableState state) {
        long current = state(state.name()).map(TableState::version).orElse(0L);
        if (current != state.version() - 1) {
            throw new TrinoException(
                    TRANSACTION_CONFLICT, state.name() + " has the version " + current + " by now");
        }
        Path table = folderOf(state.name());
        run(() -> {
            Files.createDirectories(table);
            Path next = table.resolve(STATE + ".next");
            try (ObjectOutputStream out = new ObjectOutputStream(Files.newOutputStream(next))) {
                out.writeObject(state);
            }
            Files.move(next, table.resolve(STATE), ATOMIC_MOVE);
        });
    }

    void drop(SchemaTableName name) {
        removeFiles(name, file -> true);
        run(() -> Files.deleteIfExists(folderOf(name)));
    }

    Path file(SchemaTableName table, String name) {
        return folderOf(table).resolve(name);
    }

    void removeUnnamedFiles() {
        for (String schema : schemas()) {
            for (String table : tables(schema)) {
                SchemaTableName name = new SchemaTableName(schema, table);
                state(name).ifPresent(state -> removeFiles(
                        name, file -> !file.equals(STATE) && !state.files().containsKey(file)));
            }
        }
    }

    void removeFiles(SchemaTableName table, Predicate<String> selection) {
        run(() -> {
            if (Files.exists(folderOf(table))) {
                try (Stream<Path> files = Files.list(folderOf(table))) {
                    for (Path file : files.filter(path -> selection.test(path.getFileName().toString())).toList()) {
                        Files.deleteIfExists(file);
                    }
                }
            }
        });
    }

    private Path folderOf(SchemaTableName name) {
        return folder.resolve(encode(name.getSchemaName(), UTF_8)).resolve(encode(name.getTableName(), UTF_8));
    }

    private static List<String> names(Path parent) {
        if (!Files.isDirectory(parent)) {
            return List.of();
        }
        try (Stream<Path> paths = Files.list(parent)) {
            return paths.map(path -> URLDecoder.decode(path.getFileName().toString(), UTF_8)).sorted().toList();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private interface Action {
        void run() throws IOException;
    }

    private static void run(Action action) {
        try {
            action.run();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
