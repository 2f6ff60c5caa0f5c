"""Reading a plugin's tables: splits on the driver, pages in tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.connectors.trino.domains_on_wire import constraint_on_wire
from rowmerge_nb.connectors.trino.host_channel import unpack_batch
from rowmerge_nb.connectors.trino.host_process import TaskConnection
from rowmerge_nb.connectors.trino.trino_handles import (
    TaskContext,
    TrinoColumnHandle,
    TrinoSplit,
    TrinoTableHandle,
    wire_of,
)
from rowmerge_nb.connectors.trino.trino_updatable import (
    TrinoUpdatablePageSource,
    TrinoUpdatableTableHandle,
)
from rowmerge_nb.spi.handles import own
from rowmerge_nb.spi.page_source import (
    ConnectorPageSource,
    ConnectorPageSourceProvider,
    ConnectorSplitManager,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.trino.trino_connector import TrinoConnector
    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorSession,
        ConnectorSplit,
        ConnectorTableHandle,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_source import Constraint


class TrinoSplitManager(ConnectorSplitManager):
    def __init__(self, connector: TrinoConnector) -> None:
        self._connector = connector

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[ConnectorSplit]:
        """Return the plugin's splits, in the same order in every call of the transaction."""
        transaction = self._connector.transaction_of(transaction_handle)
        table = own(table_handle, TrinoTableHandle)
        return transaction.splits(
            session, table, constraint_on_wire(constraint.domains, table.column_types)
        )


@dataclass(frozen=True)
class TrinoPageSourceProvider(ConnectorPageSourceProvider):
    """Opens the plugin's page sources in the process of the tasks."""

    socket_path: str

    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        """Open a page source of the plugin; it changes rows for the handles of the older flow."""
        table = own(table_handle, TrinoTableHandle)
        own_columns, own_split = table.columns_of(columns), own(split, TrinoSplit)
        if not isinstance(table, TrinoUpdatableTableHandle):
            return self._source(own_split, table, own_columns)
        omitted = [column for column in own_columns if table.is_omitted(column)]
        values = self._split_values(own_split, table.original, omitted)
        kept_columns = [column for column in own_columns if column not in omitted]
        source = self._source(own_split, table, kept_columns)
        return TrinoUpdatablePageSource(source, table, own_columns, values)

    def _source(
        self, split: TrinoSplit, table: TrinoTableHandle, columns: Sequence[TrinoColumnHandle]
    ) -> TrinoPageSource:
        return TrinoPageSource(self.socket_path, table.context, split, table, columns)

    def _split_values(
        self,
        split: TrinoSplit,
        table: TrinoTableHandle | None,
        columns: Sequence[TrinoColumnHandle],
    ) -> Page | None:
        if table is None or not columns:
            return None
        # The filtered table is the one of the UPDATE.
        source = self._source(replace(split, table=None), table, columns)
        try:
            page = source.get_next_page()
        finally:
            source.close()
        return None if page is None else page.slice(0, 1)


class TrinoPageSource(ConnectorPageSource):
    def __init__(
        self,
        socket_path: str,
        context: TaskContext,
        split: TrinoSplit,
        table: TrinoTableHandle,
        columns: Sequence[TrinoColumnHandle],
    ) -> None:
        self._schema = pa.schema([(column.name, column.type.arrow) for column in columns])
        self.connection = TaskConnection(socket_path)
        try:
            self.connection.request(
                "open_scan",
                **context.wire,
                split=split.java.wire,
                table=(split.table or table.java).wire,
                columns=[wire_of(column.java) for column in columns],
                types=[column.signature for column in columns],
                credentials=wire_of(split.credentials),
                changes_rows=isinstance(table, TrinoUpdatableTableHandle),
            )
        except BaseException:
            self.connection.close()
            raise

    def get_next_page(self) -> Page | None:
        result, payload = self.connection.request("next_page")
        if result.get("end"):
            return None
        if not len(self._schema):
            return pa.RecordBatch.from_struct_array(pa.nulls(result["rows"], pa.struct([])))
        return conformed(unpack_batch(payload), self._schema)

    def close(self) -> None:
        self.connection.close()


def conformed(page: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a page with a schema's names and types.

    >>> page = pa.record_batch({"0": pa.array([1, 2], pa.int32())})
    >>> conformed(page, pa.schema([("id", pa.int64())])).schema
    id: int64
    """
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(page.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
