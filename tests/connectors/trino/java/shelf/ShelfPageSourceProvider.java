package shelf;

import io.airlift.slice.Slices;
import io.trino.spi.Page;
import io.trino.spi.PageBuilder;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.block.RowBlockBuilder;
import io.trino.spi.connector.*;
import io.trino.spi.type.*;
import java.io.*;
import java.nio.file.Files;
import java.util.*;

/** Reads files, and numbers their rows. */
public class ShelfPageSourceProvider implements ConnectorPageSourceProvider {
    private final ShelfStore store;

    ShelfPageSourceProvider(ShelfStore store) {
        this.store = store;
    }

    @Override
    public ConnectorPageSource createPageSource(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorSplit split,
            ConnectorTableHandle table,
            Optional<ConnectorTableCredentials> credentials,
            List<ColumnHandle> columns,
            DynamicFilter filter,
            MemoryContext memory) {
        List<ShelfColumnHandle> requested =
                columns.stream().map(ShelfColumnHandle.class::cast).toList();
        try {
            return new FixedPageSource(read((ShelfTableHandle) table, (ShelfSplit) split, requested));
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private List<Page> read(ShelfTableHandle table, ShelfSplit split, List<ShelfColumnHandle> requested)
            throws IOException {
        Set<Long> deleted = new HashSet<>(split.deleted());
        PageBuilder builder = new PageBuilder(requested.stream().map(ShelfColumnHandle::type).toList());
        List<Page> pages = new ArrayList<>();
        Object[] row = new Object[table.columns().size()];
        try (DataInputStream in = new DataInputStream(
                new BufferedInputStream(Files.newInputStream(store.file(table.name(), split.file()))))) {
            in.mark(1);
            for (long position = 0; in.read() >= 0; position++, in.mark(1)) {
                in.reset();
                for (ShelfColumnHandle column : table.columns()) {
                    row[column.index()] = RowFile.readValue(in, column.type());
                }
                if (deleted.contains(position)) {
                    continue;
                }
                builder.declarePosition();
                for (int channel = 0; channel < requested.size(); channel++) {
                    ShelfColumnHandle column = requested.get(channel);
                    BlockBuilder block = builder.getBlockBuilder(channel);
                    if (column.index() < 0) {
                        writeRowId(block, split.file(), position);
                    }
                    else {
                        TypeUtils.writeNativeValue(column.type(), block, row[column.index()]);
                    }
                }
                if (builder.isFull()) {
                    pages.add(builder.build());
                    builder.reset();
                }
            }
        }
        pages.add(builder.build());
        return pages;
    }

    private static void writeRowId(BlockBuilder block, String file, long position) {
        ((RowBlockBuilder) block).buildEntry(fields -> {
            VarcharType.VARCHAR.writeSlice(fields.get(0), Slices.utf8Slice(file));
            BigintType.BIGINT.writeLong(fields.get(1), position);
        });
    }
}
