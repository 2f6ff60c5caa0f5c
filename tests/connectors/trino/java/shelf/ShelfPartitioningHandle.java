package shelf;

import io.trino.spi.connector.ConnectorPartitioningHandle;

/** Buckets of the first column, or of the file in the row id. */
public record ShelfPartitioningHandle(int buckets, boolean byRowId)
        implements ConnectorPartitioningHandle {}
