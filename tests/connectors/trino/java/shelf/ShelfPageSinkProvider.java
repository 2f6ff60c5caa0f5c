package shelf;

import io.trino.spi.connector.*;
import java.util.*;

/** Creates sinks, each with a file of its own. */
public class ShelfPageSinkProvider implements ConnectorPageSinkProvider {
    private final ShelfStore store;

    ShelfPageSinkProvider(ShelfStore store) {
        this.store = store;
    }

    @Override
    public ConnectorPageSink createPageSink(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorOutputTableHandle handle,
            Optional<ConnectorTableCredentials> credentials,
            ConnectorPageSinkId id) {
        throw new UnsupportedOperationException("CREATE TABLE AS is not supported");
    }

    @Override
    public ConnectorPageSink createPageSink(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorInsertTableHandle handle,
            Optional<ConnectorTableCredentials> credentials,
            ConnectorPageSinkId id) {
        ShelfInsertHandle insert = (ShelfInsertHandle) handle;
        return new ShelfPageSink(writer(insert.table(), insert.transaction(), insert.table().columns()));
    }

    @Override
    public ConnectorMergeSink createMergeSink(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorMergeTableHandle handle,
            Optional<ConnectorTableCredentials> credentials,
            ConnectorPageSinkId id) {
        ShelfMergeHandle merge = (ShelfMergeHandle) handle;
        return new ShelfMergeSink(writer(merge.table(), merge.transaction(), merge.stored()), merge.table().columns().size());
    }

    private RowWriter writer(ShelfTableHandle table, String transaction, List<ShelfColumnHandle> columns) {
        return new RowWriter(store.file(table.name(), transaction + "-" + UUID.randomUUID() + ".rows"), columns);
    }
}
