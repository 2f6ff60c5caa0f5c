package shelf;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.TinyintType.TINYINT;
import static io.trino.spi.type.VarcharType.VARCHAR;

import io.airlift.slice.Slice;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.RowBlock;
import io.trino.spi.connector.ConnectorMergeSink;
import java.util.*;
import java.util.concurrent.CompletableFuture;

/** Stores the rows of a MERGE: new rows in a file, deleted ones as positions in their files. */
public class ShelfMergeSink implements ConnectorMergeSink {
    private final RowWriter writer;
    private final int columnCount;
    private final Map<String, TreeSet<Long>> deleted = new TreeMap<>();

    ShelfMergeSink(RowWriter writer, int columnCount) {
        this.writer = writer;
        this.columnCount = columnCount;
    }

    @Override
    public void storeMergedRows(Page page) {
        Block operations = page.getBlock(columnCount);
        List<Block> rowId = RowBlock.getRowFieldsFromBlock(page.getBlock(columnCount + 2));
        for (int position = 0; position < page.getPositionCount(); position++) {
            switch (TINYINT.getByte(operations, position)) {
                case INSERT_OPERATION_NUMBER, UPDATE_INSERT_OPERATION_NUMBER -> writer.write(page, position);
                case DELETE_OPERATION_NUMBER, UPDATE_DELETE_OPERATION_NUMBER -> delete(rowId, position);
                case UPDATE_OPERATION_NUMBER -> {
                    delete(rowId, position);
                    writer.write(page, position);
                }
                default -> throw new IllegalArgumentException("No operation has this number");
            }
        }
    }

    private void delete(List<Block> rowId, int position) {
        String file = VARCHAR.getSlice(rowId.get(0), position).toStringUtf8();
        deleted.computeIfAbsent(file, name -> new TreeSet<>()).add(BIGINT.getLong(rowId.get(1), position));
    }

    @Override
    public CompletableFuture<Collection<Slice>> finish() {
        Optional<String> file = writer.finish();
        return CompletableFuture.completedFuture(List.of(new Fragment(file, deleted).toSlice()));
    }

    @Override
    public void abort() {
        writer.abort();
    }
}
