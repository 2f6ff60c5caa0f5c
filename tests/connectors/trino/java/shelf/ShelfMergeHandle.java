package shelf;

import io.trino.spi.connector.ConnectorMergeTableHandle;
import io.trino.spi.connector.ConnectorTableHandle;
import java.util.List;

/** The target of a MERGE. */
public record ShelfMergeHandle(
        ShelfTableHandle table,
        String transaction,
        List<ShelfColumnHandle> stored)
        implements ConnectorMergeTableHandle {
    @Override
    public ConnectorTableHandle getTableHandle() {
        return table;
    }
}
