package shelf;

import io.trino.spi.Plugin;
import io.trino.spi.connector.ConnectorFactory;
import java.util.List;

/** A plugin whose tables are files in a folder. */
public class ShelfPlugin implements Plugin {
    @Override
    public Iterable<ConnectorFactory> getConnectorFactories() {
        return List.of(new ShelfConnectorFactory());
    }
}
