package shelf;

import io.trino.spi.connector.*;
import java.util.*;

/** One split per file. */
public class ShelfSplitManager implements ConnectorSplitManager {
    private final Map<ConnectorTransactionHandle, ShelfMetadata> open;

    ShelfSplitManager(Map<ConnectorTransactionHandle, ShelfMetadata> open) {
        this.open = open;
    }

    @Override
    public ConnectorSplitSource getSplits(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorTableHandle table,
            Set<ColumnHandle> dynamicFilterColumns,
            Constraint constraint) {
        return new FixedSplitSource(open.get(transaction).state(table).files().entrySet().stream()
                .map(file -> new ShelfSplit(file.getKey(), List.copyOf(file.getValue())))
                .toList());
    }
}
