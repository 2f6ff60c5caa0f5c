import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import io.trino.spi.HostAddress;
import io.trino.spi.Node;
import io.trino.spi.Page;
import io.trino.spi.PageBuilder;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.Connector;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorFactory;
import io.trino.spi.connector.ConnectorInsertTableHandle;
import io.trino.spi.connector.ConnectorMergeSink;
import io.trino.spi.connector.ConnectorMergeTableHandle;
import io.trino.spi.connector.ConnectorMetadata;
import io.trino.spi.connector.ConnectorPageSink;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.ConnectorPageSourceProvider;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorSplit;
import io.trino.spi.connector.ConnectorSplitSource;
import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.ConnectorTableMetadata;
import io.trino.spi.connector.ConnectorTransactionHandle;
import io.trino.spi.connector.Constraint;
import io.trino.spi.connector.DynamicFilter;
import io.trino.spi.connector.DynamicFilterSnapshot;
import io.trino.spi.connector.MemoryContext;
import io.trino.spi.connector.RetryMode;
import io.trino.spi.connector.SaveMode;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.connector.SourcePage;
import io.trino.spi.security.PrincipalType;
import io.trino.spi.security.TrinoPrincipal;
import io.trino.spi.session.PropertyMetadata;
import io.trino.spi.transaction.IsolationLevel;
import io.trino.spi.type.BigintType;
import io.trino.spi.type.IntegerType;
import io.trino.spi.type.TinyintType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;
import io.trino.split.RecordPageSourceProvider;
import io.trino.testing.TestingConnectorContext;
import io.trino.testing.TestingConnectorSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Replay of MERGE default.accounts on make_shop: no call failed, and the resulting rows are correct.
 * <p>
 * For Trino 0: the class path has the plugin, trino-main and JUnit 5.
 */
final class TestAccounts
{
    private static final ConnectorContext CONTEXT = createContext();
    private static final SchemaTableName TABLE = new SchemaTableName("default", "accounts");
    private static final List<String> COLUMNS = List.of("id", "name");
    private static final List<Type> TYPES = Stream.of("bigint", "varchar")
            .map(CONTEXT.getTypeManager()::fromSqlType)
            .toList();

    private static final List<List<Object>> ROWS = List.of(
            row(1L, "a"),
            row(2L, "b"),
            row(3L, null));

    private static final List<List<Object>> EXPECTED_ROWS = List.of(
            row(2L, "b"),
            row(3L, null),
            row(1L, "x"),
            row(9L, "it's \"new\"\n"));

    @TempDir
    Path folder;

    @Test
    void testRowsThatAreLeft()
            throws Exception
    {
        Connector connector = createConnector();
        try {
            run(connector);
            assertEquals(counted(objects(page(EXPECTED_ROWS))), counted(readTable(connector)));
        }
        finally {
            connector.shutdown();
        }
    }

    private static void run(Connector connector)
            throws Exception
    {
        createTable(connector);
        insertRows(connector);

        Statement statement = new Statement(connector);
        ConnectorTableHandle table = statement.table();
        ColumnHandle rowIdColumn = statement.metadata.getMergeRowIdColumnHandle(statement.session, table);
        Type rowIdType = statement.metadata.getColumnMetadata(statement.session, table, rowIdColumn).getType();
        Map<String, ColumnHandle> columns = statement.metadata.getColumnHandles(statement.session, table);
        Map<Integer, Collection<ColumnHandle>> updatedColumns = Map.of(
                0, List.of(columns.get("name")));
        ConnectorMergeTableHandle handle = statement.metadata.beginMerge(statement.session, table, updatedColumns, RetryMode.NO_RETRIES);
        List<Block> rowIds = statement.rowIds(handle.getTableHandle(), rowIdColumn, rowIdType);
        List<Slice> fragments = new ArrayList<>();

        // Writer 0
        ConnectorMergeSink sink0 = statement.createMergeSink(handle, 0);
        sink0.storeMergedRows(mergePage(rowIdType, rowIds,
                change(ConnectorMergeSink.UPDATE_DELETE_OPERATION_NUMBER, 0, 0, 1L, "a"),
                change(ConnectorMergeSink.UPDATE_INSERT_OPERATION_NUMBER, null, 0, 1L, "x")));
        sink0.storeMergedRows(mergePage(rowIdType, rowIds));
        fragments.addAll(sink0.finish().get());

        // Writer 1
        ConnectorMergeSink sink1 = statement.createMergeSink(handle, 1);
        sink1.storeMergedRows(mergePage(rowIdType, rowIds,
                change(ConnectorMergeSink.INSERT_OPERATION_NUMBER, null, 1, 9L, "it's \"new\"\n")));
        fragments.addAll(sink1.finish().get());

        statement.metadata.finishMerge(statement.session, handle, List.of(), fragments, List.of());
        connector.commit(statement.transaction);
    }

    private Connector createConnector()
    {
        for (ConnectorFactory factory : new shop.ShopPlugin().getConnectorFactories()) {
            if (factory.getName().equals("memory")) {
                return factory.create("memory", Map.ofEntries(
                        Map.entry("shop.folder", "" + folder + "/shop"),
                        Map.entry("connection-password", Objects.requireNonNull(System.getenv("CONNECTION_PASSWORD"), "Set CONNECTION_PASSWORD"))), CONTEXT);
            }
        }
        throw new IllegalStateException("The plugin has no connector " + "memory");
    }

    /**
     * Trino's context for tests has no current node, which some plugins need.
     */
    private static ConnectorContext createContext()
    {
        ConnectorContext context = new TestingConnectorContext();
        Node node = new Node()
        {
            @Override
            public String getHost()
            {
                return "127.0.0.1";
            }

            @Override
            public HostAddress getHostAndPort()
            {
                return HostAddress.fromParts("127.0.0.1", 8080);
            }

            @Override
            public String getNodeIdentifier()
            {
                return "test";
            }

            @Override
            public String getVersion()
            {
                return "0";
            }

            @Override
            public boolean isCoordinator()
            {
                return true;
            }
        };
        return (ConnectorContext) Proxy.newProxyInstance(
                ConnectorContext.class.getClassLoader(),
                new Class<?>[] {ConnectorContext.class},
                (_, method, arguments) -> switch (method.getName()) {
                    case "getCurrentNode" -> node;
                    case "getSpiVersion" -> "0";
                    default -> method.invoke(context, arguments);
                });
    }

    private static void createTable(Connector connector)
    {
        Statement statement = new Statement(connector);
        if (!statement.metadata.schemaExists(statement.session, TABLE.getSchemaName())) {
            Map<String, Object> properties = decode(connector.getSchemaProperties(), Map.of());
            TrinoPrincipal owner = new TrinoPrincipal(PrincipalType.USER, statement.session.getUser());
            statement.metadata.createSchema(statement.session, TABLE.getSchemaName(), properties, owner);
        }
        List<ColumnMetadata> columns = new ArrayList<>();
        for (int column = 0; column < COLUMNS.size(); column++) {
            columns.add(ColumnMetadata.builder()
                    .setName(COLUMNS.get(column))
                    .setType(TYPES.get(column))
                    .setNullable(!Set.of("id").contains(COLUMNS.get(column)))
                    .build());
        }
        Map<String, Object> properties = decode(connector.getTableProperties(), Map.ofEntries(Map.entry("format", "ORC")));
        statement.metadata.createTable(statement.session, new ConnectorTableMetadata(TABLE, columns, properties), SaveMode.FAIL);
        connector.commit(statement.transaction);
    }

    private static void insertRows(Connector connector)
            throws Exception
    {
        if (ROWS.isEmpty()) {
            return;
        }
        Statement statement = new Statement(connector);
        ConnectorTableHandle table = statement.table();
        ConnectorInsertTableHandle handle = statement.metadata.beginInsert(statement.session, table, statement.columns(table), RetryMode.NO_RETRIES);
        ConnectorPageSink sink = statement.createPageSink(handle, 0);
        sink.appendPage(page(ROWS)).get();
        statement.metadata.finishInsert(statement.session, handle, List.of(), sink.finish().get(), List.of());
        connector.commit(statement.transaction);
    }

    private static List<List<Object>> readTable(Connector connector)
            throws Exception
    {
        Statement statement = new Statement(connector);
        List<List<Object>> rows = new ArrayList<>();
        ConnectorTableHandle table = statement.table();
        for (Page page : statement.read(table, statement.columns(table), TYPES)) {
            rows.addAll(objects(page));
        }
        connector.commit(statement.transaction);
        return rows;
    }

    private static Map<String, Object> decode(List<PropertyMetadata<?>> properties, Map<String, Object> values)
    {
        Map<String, Object> decoded = new HashMap<>();
        for (PropertyMetadata<?> property : properties) {
            Object value = property.getDefaultValue();
            if (values.containsKey(property.getName())) {
                value = property.decode(encoded(property, values));
            }
            if (value != null) {
                decoded.put(property.getName(), value);
            }
        }
        return decoded;
    }

    private static Object encoded(PropertyMetadata<?> property, Map<String, Object> values)
    {
        Object value = values.get(property.getName());
        return switch (property.getSqlType().getDisplayName()) {
            case "integer" -> ((Number) value).intValue();
            case "bigint" -> ((Number) value).longValue();
            case "double" -> ((Number) value).doubleValue();
            default -> value;
        };
    }

    private static List<Object> row(Object... values)
    {
        return Arrays.asList(values);
    }

    private record Change(int operation, Integer target, int caseNumber, List<Object> values) {}

    /**
     * @param target the position of the changed row in ROWS, or null for a new row
     */
    private static Change change(int operation, Integer target, int caseNumber, Object... values)
    {
        return new Change(operation, target, caseNumber, Arrays.asList(values));
    }

    private static Page mergePage(Type rowIdType, List<Block> rowIds, Change... changes)
    {
        List<Type> types = new ArrayList<>(TYPES);
        types.addAll(List.of(TinyintType.TINYINT, IntegerType.INTEGER, rowIdType));
        PageBuilder page = new PageBuilder(types);
        for (Change change : changes) {
            page.declarePosition();
            for (int channel = 0; channel < TYPES.size(); channel++) {
                write(TYPES.get(channel), page.getBlockBuilder(channel), change.values().get(channel));
            }
            TinyintType.TINYINT.writeLong(page.getBlockBuilder(TYPES.size()), change.operation());
            IntegerType.INTEGER.writeLong(page.getBlockBuilder(TYPES.size() + 1), change.caseNumber());
            BlockBuilder rowId = page.getBlockBuilder(TYPES.size() + 2);
            if (change.target() == null) {
                rowId.appendNull();
            }
            else {
                Block block = rowIds.get(change.target());
                rowId.append(block.getUnderlyingValueBlock(), block.getUnderlyingValuePosition(0));
            }
        }
        return page.build();
    }

    private static Page page(List<List<Object>> rows)
    {
        PageBuilder page = new PageBuilder(TYPES);
        for (List<Object> row : rows) {
            page.declarePosition();
            for (int channel = 0; channel < TYPES.size(); channel++) {
                write(TYPES.get(channel), page.getBlockBuilder(channel), row.get(channel));
            }
        }
        return page.build();
    }

    private static void write(Type type, BlockBuilder builder, Object value)
    {
        if (value == null) {
            builder.appendNull();
            return;
        }
        switch (type) {
            case BigintType t -> t.writeLong(builder, (Long) value);
            case VarcharType t -> t.writeSlice(builder, Slices.utf8Slice((String) value));
            default -> throw new IllegalArgumentException("No value of " + type);
        }
    }

    private static List<List<Object>> objects(Page page)
    {
        List<List<Object>> rows = new ArrayList<>();
        for (int position = 0; position < page.getPositionCount(); position++) {
            List<Object> row = new ArrayList<>();
            for (int channel = 0; channel < TYPES.size(); channel++) {
                row.add(TYPES.get(channel).getObjectValue(page.getBlock(channel), position));
            }
            rows.add(row);
        }
        return rows;
    }

    private static Map<List<Object>, Long> counted(List<List<Object>> rows)
    {
        return rows.stream().collect(Collectors.groupingBy(row -> row, Collectors.counting()));
    }

    private static final class Statement
    {
        private final Connector connector;
        private final ConnectorSession session;
        private final ConnectorTransactionHandle transaction;
        private final ConnectorMetadata metadata;

        private Statement(Connector connector)
        {
            this.connector = connector;
            session = TestingConnectorSession.builder()
                    .setPropertyMetadata(connector.getSessionProperties())
                    .build();
            transaction = connector.beginTransaction(IsolationLevel.READ_UNCOMMITTED, false, true);
            metadata = connector.getMetadata(session, transaction);
        }

        private ConnectorTableHandle table()
        {
            return metadata.getTableHandle(session, TABLE, Optional.empty(), Optional.empty());
        }

        private List<ColumnHandle> columns(ConnectorTableHandle table)
        {
            Map<String, ColumnHandle> columns = metadata.getColumnHandles(session, table);
            return COLUMNS.stream().map(columns::get).toList();
        }

        private ConnectorPageSink createPageSink(ConnectorInsertTableHandle handle, int writer)
        {
            return connector.getPageSinkProvider().createPageSink(transaction, session, handle, metadata.getTableCredentials(session, handle), () -> writer);
        }

        private ConnectorMergeSink createMergeSink(ConnectorMergeTableHandle handle, int writer)
        {
            return connector.getPageSinkProvider().createMergeSink(transaction, session, handle, metadata.getTableCredentials(session, handle.getTableHandle()), () -> writer);
        }

        /**
         * Returns the row id of each of ROWS, which the table has in any order.
         */
        private List<Block> rowIds(ConnectorTableHandle table, ColumnHandle rowIdColumn, Type rowIdType)
                throws Exception
        {
            if (ROWS.isEmpty()) {
                return List.of();
            }
            List<ColumnHandle> columns = new ArrayList<>(columns(table));
            columns.add(rowIdColumn);
            List<Type> types = new ArrayList<>(TYPES);
            types.add(rowIdType);
            Map<List<Object>, Deque<Block>> idsByRow = new HashMap<>();
            for (Page page : read(table, columns, types)) {
                List<List<Object>> rows = objects(page);
                for (int position = 0; position < rows.size(); position++) {
                    idsByRow.computeIfAbsent(rows.get(position), _ -> new ArrayDeque<>())
                            .add(page.getBlock(TYPES.size()).getRegion(position, 1));
                }
            }
            return objects(page(ROWS)).stream()
                    .map(row -> idsByRow.get(row).remove())
                    .toList();
        }

        private List<Page> read(ConnectorTableHandle table, List<ColumnHandle> columns, List<Type> types)
                throws Exception
        {
            List<Page> pages = new ArrayList<>();
            try (ConnectorSplitSource splits = connector.getSplitManager().getSplits(transaction, session, table, Set.of(), Constraint.alwaysTrue())) {
                while (!splits.isFinished()) {
                    for (ConnectorSplit split : splits.getNextBatch(1000, DynamicFilterSnapshot.EMPTY).get()) {
                        try (ConnectorPageSource source = pageSources(connector).createPageSource(transaction, session, split, table, metadata.getTableCredentials(session, table), columns, DynamicFilter.EMPTY, MemoryContext.NO_LIMIT)) {
                            while (!source.isFinished()) {
                                SourcePage page = source.getNextSourcePage();
                                if (page == null) {
                                    source.isBlocked().get();
                                }
                                else {
                                    pages.add(page.getPage());
                                }
                            }
                        }
                    }
                }
            }
            return pages;
        }

        private static ConnectorPageSourceProvider pageSources(Connector connector)
        {
            try {
                return connector.getPageSourceProviderFactory().createPageSourceProvider();
            }
            catch (UnsupportedOperationException e) {
                // An older way to read follows
            }
            try {
                return connector.getPageSourceProvider();
            }
            catch (UnsupportedOperationException e) {
                return new RecordPageSourceProvider(connector.getRecordSetProvider());
            }
        }
    }
}
