package shelf;

import io.trino.spi.Page;
import java.io.*;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Writes a file, which exists from the first row on. */
final class RowWriter {
    private final Path file;
    private final List<ShelfColumnHandle> columns;
    private DataOutputStream out;

    RowWriter(Path file, List<ShelfColumnHandle> columns) {
        this.file = file;
        this.columns = List.copyOf(columns);
    }

    void write(Page page, int position) {
        try {
            if (out == null) {
                out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file)));
            }
            RowFile.writeRow(out, page, position, columns);
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Ends the file, and returns its name if it has rows. */
    Optional<String> finish() {
        if (out == null) {
            return Optional.empty();
        }
        close();
        return Optional.of(file.getFileName().toString());
    }

    void abort() {
        if (out != null) {
            close();
            try {
                Files.deleteIfExists(file);
            }
            catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private void close() {
        try {
            out.close();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
