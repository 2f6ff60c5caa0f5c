package shelf;

import io.trino.spi.connector.ColumnMetadata;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.type.TypeManager;
import java.io.Serializable;
import java.util.*;

/** What a table is after a commit: its definition, its files, and their deleted rows. */
record TableState(
        String schema,
        String table,
        long version,
        List<Column> columns,
        String comment,
        int buckets,
        String paradigm,
        TreeMap<String, TreeSet<Long>> files)
        implements Serializable {
    record Column(String name, String type, boolean nullable, String comment) implements Serializable {
        static Column of(ColumnMetadata column) {
            return new Column(
                    column.getName(),
                    column.getType().getDisplayName(),
                    column.isNullable(),
                    column.getComment().orElse(null));
        }
    }

    SchemaTableName name() {
        return new SchemaTableName(schema, table);
    }

    List<ShelfColumnHandle> handles(TypeManager types) {
        List<ShelfColumnHandle> handles = new ArrayList<>();
        for (Column column : columns) {
            handles.add(new ShelfColumnHandle(column.name(), types.fromSqlType(column.type()), handles.size()));
        }
        return handles;
    }

    List<ColumnMetadata> metadata(TypeManager types) {
        return columns.stream()
                .map(column -> ColumnMetadata.builder()
                        .setName(column.name())
                        .setType(types.fromSqlType(column.type()))
                        .setNullable(column.nullable())
                        .setComment(Optional.ofNullable(column.comment()))
                        .build())
                .toList();
    }

    Map<String, Object> properties() {
        return Map.of("buckets", buckets, "paradigm", paradigm);
    }

    TableState with(List<Fragment> fragments) {
        TreeMap<String, TreeSet<Long>> changed = new TreeMap<>();
        files.forEach((file, deleted) -> changed.put(file, new TreeSet<>(deleted)));
        for (Fragment fragment : fragments) {
            fragment.file().ifPresent(file -> changed.put(file, new TreeSet<>()));
            fragment.deleted().forEach((file, positions) -> changed.get(file).addAll(positions));
        }
        return withFiles(changed);
    }

    TableState withFiles(TreeMap<String, TreeSet<Long>> changed) {
        return new TableState(schema, table, version + 1, columns, comment, buckets, paradigm, changed);
    }
}
