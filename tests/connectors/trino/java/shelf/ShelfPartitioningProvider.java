package shelf;

import static io.trino.spi.connector.ConnectorBucketNodeMap.createBucketNodeMap;

import io.trino.spi.block.Block;
import io.trino.spi.block.RowBlock;
import io.trino.spi.connector.*;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeUtils;
import java.util.*;

/** Assigns rows to buckets: new rows by their first column, others by the file of their row id. */
public class ShelfPartitioningProvider implements ConnectorNodePartitioningProvider {
    @Override
    public Optional<ConnectorBucketNodeMap> getBucketNodeMapping(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorPartitioningHandle partitioning) {
        return Optional.of(createBucketNodeMap(((ShelfPartitioningHandle) partitioning).buckets()));
    }

    @Override
    public BucketFunction getBucketFunction(
            ConnectorTransactionHandle transaction,
            ConnectorSession session,
            ConnectorPartitioningHandle partitioning,
            List<Type> types,
            int bucketCount) {
        boolean byRowId = ((ShelfPartitioningHandle) partitioning).byRowId();
        return (page, position) -> {
            Block block = page.getBlock(0);
            Type type = types.getFirst();
            if (byRowId) {
                block = RowBlock.getRowFieldsFromBlock(block).getFirst();
                type = type.getTypeParameters().getFirst();
            }
            int hash = Objects.hashCode(TypeUtils.readNativeValue(type, block, position));
            return Math.floorMod(hash, bucketCount);
        };
    }
}
