package shelf;

import io.trino.spi.connector.ConnectorTableHandle;
import io.trino.spi.connector.SchemaTableName;
import java.util.List;

/** A table in one version. */
public record ShelfTableHandle(SchemaTableName name, long version, List<ShelfColumnHandle> columns)
        implements ConnectorTableHandle {}
