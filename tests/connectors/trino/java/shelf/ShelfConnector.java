package shelf;

import io.trino.spi.connector.*;
import io.trino.spi.session.PropertyMetadata;
import io.trino.spi.transaction.IsolationLevel;
import io.trino.spi.type.TypeManager;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

/** One catalog. */
public class ShelfConnector implements Connector {
    private final ShelfStore store;
    private final TypeManager types;
    private final Map<ConnectorTransactionHandle, ShelfMetadata> open = new ConcurrentHashMap<>();

    public ShelfConnector(ShelfStore store, TypeManager types) {
        this.store = store;
        this.types = types;
    }

    @Override
    public ConnectorTransactionHandle beginTransaction(
            IsolationLevel level, boolean readOnly, boolean autoCommit) {
        if (open.isEmpty()) {
            // A process that was killed has left its files.
            store.removeUnnamedFiles();
        }
        ShelfTransactionHandle transaction = new ShelfTransactionHandle(UUID.randomUUID().toString());
        open.put(transaction, new ShelfMetadata(store, types, transaction));
        return transaction;
    }

    @Override
    public ConnectorMetadata getMetadata(
            ConnectorSession session, ConnectorTransactionHandle transaction) {
        return open.get(transaction);
    }

    @Override
    public void commit(ConnectorTransactionHandle transaction) {
        open.remove(transaction).removeUnnamedFiles();
    }

    @Override
    public void rollback(ConnectorTransactionHandle transaction) {
        open.remove(transaction).removeUnnamedFiles();
    }

    @Override
    public ConnectorSplitManager getSplitManager() {
        return new ShelfSplitManager(open);
    }

    @Override
    public ConnectorPageSourceProvider getPageSourceProvider() {
        return new ShelfPageSourceProvider(store);
    }

    @Override
    public ConnectorPageSinkProvider getPageSinkProvider() {
        return new ShelfPageSinkProvider(store);
    }

    @Override
    public ConnectorNodePartitioningProvider getNodePartitioningProvider() {
        return new ShelfPartitioningProvider();
    }

    @Override
    public List<PropertyMetadata<?>> getTableProperties() {
        return List.of(
                PropertyMetadata.integerProperty("buckets", "Number of buckets of the first column", 0, false),
                PropertyMetadata.enumProperty(
                        "paradigm",
                        "How rows are changed",
                        RowChangeParadigm.class,
                        RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW,
                        false));
    }

    @Override
    public void shutdown() {}
}
