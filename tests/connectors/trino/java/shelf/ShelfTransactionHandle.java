package shelf;

import io.trino.spi.connector.ConnectorTransactionHandle;

/** A transaction; the names of the files that it writes begin with its identifier. */
public record ShelfTransactionHandle(String id) implements ConnectorTransactionHandle {}
