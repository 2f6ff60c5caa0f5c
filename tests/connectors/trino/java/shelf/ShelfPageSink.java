package shelf;

import io.airlift.slice.Slice;
import io.trino.spi.Page;
import io.trino.spi.connector.ConnectorPageSink;
import java.util.*;
import java.util.concurrent.CompletableFuture;

/** Stores the rows of an INSERT. */
public class ShelfPageSink implements ConnectorPageSink {
    private final RowWriter writer;

    ShelfPageSink(RowWriter writer) {
        this.writer = writer;
    }

    @Override
    public CompletableFuture<?> appendPage(Page page) {
        for (int position = 0; position < page.getPositionCount(); position++) {
            writer.write(page, position);
        }
        return NOT_BLOCKED;
    }

    @Override
    public CompletableFuture<Collection<Slice>> finish() {
        return CompletableFuture.completedFuture(
                writer.finish().stream()
                        .map(file -> new Fragment(Optional.of(file), Map.of()).toSlice())
                        .toList());
    }

    @Override
    public void abort() {
        writer.abort();
    }
}
