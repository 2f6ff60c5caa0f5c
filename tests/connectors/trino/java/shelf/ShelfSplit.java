package shelf;

import io.trino.spi.connector.ConnectorSplit;
import java.util.List;

/** A file without its deleted rows. */
public record ShelfSplit(String file, List<Long> deleted) implements ConnectorSplit {}
