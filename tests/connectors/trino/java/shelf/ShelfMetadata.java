package shelf;

import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;
import static io.trino.spi.StandardErrorCode.TABLE_ALREADY_EXISTS;

import io.airlift.slice.Slice;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.*;
import io.trino.spi.security.TrinoPrincipal;
import io.trino.spi.statistics.ComputedStatistics;
import io.trino.spi.type.TypeManager;
import java.util.*;

/** The metadata of one transaction, which sees each table as it was at its first use. */
public class ShelfMetadata implements ConnectorMetadata {
    private final ShelfStore store;
    private final TypeManager types;
    private final ShelfTransactionHandle transaction;
    private final Map<SchemaTableName, TableState> states = new HashMap<>();

    ShelfMetadata(ShelfStore store, TypeManager types, ShelfTransactionHandle transaction) {
        this.store = store;
        this.types = types;
        this.transaction = transaction;
    }

    TableState state(ConnectorTableHandle table) {
        return states.get(((ShelfTableHandle) table).name());
    }

    @Override
    public List<String> listSchemaNames(ConnectorSession session) {
        return store.schemas();
    }

    @Override
    public void createSchema(
            ConnectorSession session, String schema, Map<String, Object> properties, TrinoPrincipal owner) {
        store.createSchema(schema);
    }

    @Override
    public void dropSchema(ConnectorSession session, String schema, boolean cascade) {
        store.dropSchema(schema);
    }

    @Override
    public List<SchemaTableName> listTables(ConnectorSession session, Optional<String> schema) {
        return schema.map(List::of).orElseGet(store::schemas).stream()
                .flatMap(name -> store.tables(name).stream().map(table -> new SchemaTableName(name, table)))
                .toList();
    }

    @Override
    public ConnectorTableHandle getTableHandle(
            ConnectorSession session,
            SchemaTableName name,
            Optional<ConnectorTableVersion> start,
            Optional<ConnectorTableVersion> end) {
        if (!states.containsKey(name)) {
            store.state(name).ifPresent(state -> states.put(name, state));
        }
        TableState state = states.get(name);
        return state == null ? null : new ShelfTableHandle(name, state.version(), state.handles(types));
    }

    @Override
    public ConnectorTableMetadata getTableMetadata(ConnectorSession session, ConnectorTableHandle table) {
        TableState state = state(table);
        return new ConnectorTableMetadata(
                state.name(), state.metadata(types), state.properties(), Optional.ofNullable(state.comment()));
    }

    @Override
    public Map<String, ColumnHandle> getColumnHandles(ConnectorSession session, ConnectorTableHandle table) {
        Map<String, ColumnHandle> handles = new LinkedHashMap<>();
        ((ShelfTableHandle) table).columns().forEach(column -> handles.put(column.name(), column));
        return handles;
    }

    @Override
    public ColumnMetadata getColumnMetadata(
            ConnectorSession session, ConnectorTableHandle table, ColumnHandle handle) {
        ShelfColumnHandle column = (ShelfColumnHandle) handle;
        return new ColumnMetadata(column.name(), column.type());
    }

    @Override
    public void createTable(ConnectorSession session, ConnectorTableMetadata metadata, SaveMode mode) {
        if (mode == SaveMode.REPLACE) {
            throw new TrinoException(NOT_SUPPORTED, "This connector does not support replacing tables");
        }
        for (ColumnMetadata column : metadata.getColumns()) {
            if (!RowFile.canStore(column.getType())) {
                throw new TrinoException(NOT_SUPPORTED, "A shelf cannot store the type " + column.getType());
            }
        }
        SchemaTableName name = metadata.getTable();
        if (store.state(name).isPresent()) {
            throw new TrinoException(TABLE_ALREADY_EXISTS, "The table " + name + " exists");
        }
        store.commit(new TableState(
                name.getSchemaName(),
                name.getTableName(),
                1,
                metadata.getColumns().stream().map(TableState.Column::of).toList(),
                metadata.getComment().orElse(null),
                (int) metadata.getProperties().get("buckets"),
                metadata.getProperties().get("paradigm").toString(),
                new TreeMap<>()));
    }

    @Override
    public void dropTable(ConnectorSession session, ConnectorTableHandle table) {
        store.drop(((ShelfTableHandle) table).name());
    }

    @Override
    public void truncateTable(ConnectorSession session, ConnectorTableHandle table) {
        store.commit(state(table).withFiles(new TreeMap<>()));
    }

    @Override
    public ConnectorInsertTableHandle beginInsert(
            ConnectorSession session, ConnectorTableHandle table, List<ColumnHandle> columns, RetryMode retries) {
        return new ShelfInsertHandle((ShelfTableHandle) table, transaction.id());
    }

    @Override
    public Optional<ConnectorOutputMetadata> finishInsert(
            ConnectorSession session,
            ConnectorInsertTableHandle handle,
            List<ConnectorTableHandle> sources,
            Collection<Slice> fragments,
            Collection<ComputedStatistics> statistics) {
        SchemaTableName name = ((ShelfInsertHandle) handle).table().name();
        // New rows go with all other changes, so they are added to the newest version.
        synchronized (store) {
            store.commit(store.state(name).orElseThrow().with(fragments.stream().map(Fragment::of).toList()));
        }
        return Optional.empty();
    }

    @Override
    public RowChangeParadigm getRowChangeParadigm(ConnectorSession session, ConnectorTableHandle table) {
        return RowChangeParadigm.valueOf(state(table).paradigm());
    }

    @Override
    public ColumnHandle getMergeRowIdColumnHandle(ConnectorSession session, ConnectorTableHandle table) {
        return ShelfColumnHandle.ROW_ID;
    }

    @Override
    public Optional<ConnectorTableLayout> getInsertLayout(ConnectorSession session, ConnectorTableHandle table) {
        String first = ((ShelfTableHandle) table).columns().getFirst().name();
        return partitioning(table, false)
                .map(handle -> new ConnectorTableLayout(handle, List.of(first), true));
    }

    @Override
    public Optional<ConnectorPartitioningHandle> getUpdateLayout(
            ConnectorSession session, ConnectorTableHandle table) {
        return partitioning(table, true);
    }

    private Optional<ConnectorPartitioningHandle> partitioning(ConnectorTableHandle table, boolean byRowId) {
        int buckets = state(table).buckets();
        return buckets == 0 ? Optional.empty() : Optional.of(new ShelfPartitioningHandle(buckets, byRowId));
    }

    @Override
    public ConnectorMergeTableHandle beginMerge(
            ConnectorSession session,
            ConnectorTableHandle handle,
            Map<Integer, Collection<ColumnHandle>> updated,
            RetryMode retries) {
        ShelfTableHandle table = (ShelfTableHandle) handle;
        return new ShelfMergeHandle(table, transaction.id(), table.columns());
    }

    @Override
    public void finishMerge(
            ConnectorSession session,
            ConnectorMergeTableHandle handle,
            List<ConnectorTableHandle> sources,
            Collection<Slice> fragments,
            Collection<ComputedStatistics> statistics) {
        TableState read = state(handle.getTableHandle());
        store.commit(read.with(fragments.stream().map(Fragment::of).toList()));
    }

    /** Removes the files of this transaction that no table names: those of failed attempts. */
    void removeUnnamedFiles() {
        for (SchemaTableName name : states.keySet()) {
            store.state(name).ifPresent(state -> store.removeFiles(
                    name, file -> file.startsWith(transaction.id()) && !state.files().containsKey(file)));
        }
    }
}
