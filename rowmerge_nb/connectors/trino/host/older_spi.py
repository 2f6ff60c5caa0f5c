"""The SPI of versions with the older flow of UPDATE and DELETE, such as Trino 380.

Their page sources change the rows that they have read. They have no MERGE, which came with 393.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.jvm import call_plugin, java_class, java_list
from rowmerge_nb.connectors.trino.host.metastore_relay import relayed_properties
from rowmerge_nb.connectors.trino.host.versions import (
    SPI,
    SpiVersion,
    no_retries,
    package_private,
    page_source_provider,
    spi_number_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject

_BATCH: Final = 1000


@dataclass(frozen=True)
class OlderSpi(SpiVersion):
    has_older_flow: ClassVar[bool] = True

    @classmethod
    def detect(cls, engine_folder: str) -> OlderSpi:
        return cls(
            number=spi_number_of(engine_folder),
            has_validity_bitmaps=False,
            has_credentials=False,
            has_filter_snapshots=False,
            has_memory_contexts=False,
            has_column_positions=False,
            object_value_takes_session=True,
        )

    def read_validity(self, block: JavaObject, count: int) -> NDArray[np.uint8] | None:
        """Return the validity of a value block as Arrow's packed bits, or None without NULLs.

        The block has its values from position 0 on.
        """
        if not block.mayHaveNull():
            return None
        is_null = package_private(block, "valueIsNull", "rowIsNull", "mapIsNull")
        if is_null is None:
            return None
        return np.packbits(np.array(is_null)[:count] == 0, bitorder="little")

    def catalog_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties that the plugin gets: a Hive Metastore is reached by a relay."""
        return relayed_properties(properties)

    def table_handle(
        self,
        metadata: JavaObject,
        session: JavaObject,
        name: JavaObject,
        version: Callable[[], JavaObject],
    ) -> JavaObject | None:
        """Return a table; NOT_SUPPORTED for a former version."""
        if version().isPresent():
            raise ConnectorError(
                f"Trino {self.number} does not pass versions of tables to plugins here",
                hint="Read the current version, or use a later version of the plugin.",
            )
        return metadata.getTableHandle(session, name)

    def create_table(
        self, metadata: JavaObject, session: JavaObject, table: JavaObject, mode: str
    ) -> None:
        """Create a table; NOT_SUPPORTED for replacing one."""
        self._check_mode(replace=mode == "REPLACE")
        metadata.createTable(session, table, mode == "IGNORE")

    def begin_create_table(
        self,
        metadata: JavaObject,
        session: JavaObject,
        table: JavaObject,
        layout: JavaObject,
        *,
        replace: bool,
    ) -> JavaObject:
        """Begin CREATE TABLE AS; NOT_SUPPORTED for replacing a table."""
        self._check_mode(replace=replace)
        return metadata.beginCreateTable(session, table, layout, no_retries())

    def finish_insert(
        self,
        metadata: JavaObject,
        session: JavaObject,
        handle: JavaObject,
        sources: JavaObject,
        fragments: JavaObject,
    ) -> None:
        """Finish an INSERT, whose source tables these versions do not receive."""
        metadata.finishInsert(session, handle, fragments, java_list([]))

    def drop_schema(
        self, metadata: JavaObject, session: JavaObject, schema: JavaObject, *, cascade: bool
    ) -> None:
        """Drop a schema; NOT_SUPPORTED for one with its tables."""
        if cascade:
            raise ConnectorError(
                f"Trino {self.number} does not drop schemas with their tables",
                hint="Drop the tables first.",
            )
        metadata.dropSchema(session, schema)

    def has_several_writers(self, layout: JavaObject) -> bool:
        """Return False: layouts of these versions do not have this property."""
        return False

    def get_splits(
        self,
        manager: JavaObject,
        transaction: JavaObject,
        session: JavaObject,
        table: JavaObject,
        constraint: JavaObject,
    ) -> list[JavaObject]:
        strategy = java_class(f"{SPI}ConnectorSplitManager$SplitSchedulingStrategy")
        return self.all_splits(
            call_plugin(
                manager,
                "getSplits",
                transaction,
                session,
                table,
                strategy.UNGROUPED_SCHEDULING,
                java_class(f"{SPI}DynamicFilter").EMPTY,
                constraint,
            )
        )

    def all_splits(self, source: JavaObject) -> list[JavaObject]:
        whole = java_class(f"{SPI}NotPartitionedPartitionHandle").NOT_PARTITIONED
        splits: list[JavaObject] = []
        try:
            while not source.isFinished():
                splits.extend(source.getNextBatch(whole, _BATCH).get().getSplits())
        finally:
            source.close()
        return splits

    def create_page_source(
        self,
        connector: JavaObject,
        transaction: JavaObject,
        session: JavaObject,
        split: JavaObject,
        table: JavaObject,
        credentials: JavaObject | None,
        columns: JavaObject,
    ) -> JavaObject:
        return call_plugin(
            page_source_provider(connector),
            "createPageSource",
            transaction,
            session,
            split,
            table,
            columns,
            java_class(f"{SPI}DynamicFilter").EMPTY,
        )

    def next_page(self, source: JavaObject) -> JavaObject | None:
        return source.getNextPage()

    def sink_arguments(
        self, credentials: JavaObject | None, identifier: int
    ) -> tuple[JavaObject, ...]:
        """Return nothing: sinks of these versions have no identifier."""
        return ()

    def bucket_count(self, provider: JavaObject, *arguments: JavaObject) -> int | None:
        return int(call_plugin(provider, "getBucketNodeMap", *arguments).getBucketCount())

    def property_manager(self, catalog: JavaObject, properties: JavaObject) -> JavaObject:
        manager = java_class("io.trino.metadata.SessionPropertyManager")(
            java_class("io.trino.SystemSessionProperties")()
        )
        manager.addConnectorSessionProperties(catalog, java_list(list(properties.values())))
        return manager

    def _check_mode(self, *, replace: bool) -> None:
        if replace:
            raise ConnectorError(
                f"Trino {self.number} has no CREATE OR REPLACE TABLE",
                hint="Drop the table, and create it again.",
            )
