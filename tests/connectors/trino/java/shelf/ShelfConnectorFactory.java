package shelf;

import io.trino.spi.connector.*;
import java.nio.file.Path;
import java.util.Map;

/** Creates the connector of a catalog with the property {@code shelf.folder}. */
public class ShelfConnectorFactory implements ConnectorFactory {
    @Override
    public String getName() {
        return "shelf";
    }

    @Override
    public Connector create(String catalog, Map<String, String> config, ConnectorContext context) {
        String folder = config.get("shelf.folder");
        if (folder == null) {
            throw new IllegalArgumentException("The property shelf.folder is missing");
        }
        return new ShelfConnector(new ShelfStore(Path.of(folder)), context.getTypeManager());
    }
}
