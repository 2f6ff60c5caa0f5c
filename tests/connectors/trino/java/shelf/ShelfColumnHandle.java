package shelf;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.VarcharType.VARCHAR;

import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.type.RowType;
import io.trino.spi.type.Type;

/** A column, or the row id, whose index is negative. */
public record ShelfColumnHandle(String name, Type type, int index) implements ColumnHandle {
    public static final ShelfColumnHandle ROW_ID =
            new ShelfColumnHandle(
                    "$row_id",
                    RowType.rowType(RowType.field("file", VARCHAR), RowType.field("position", BIGINT)),
                    -1);
}
