package shelf;

import io.trino.spi.connector.ConnectorInsertTableHandle;

/** The target of an INSERT. */
public record ShelfInsertHandle(ShelfTableHandle table, String transaction)
        implements ConnectorInsertTableHandle {}
