"""A read-only connector over stores' tables at some version; a statement's change is recorded, not
written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Final

from rowmerge_nb.engine.tasks.audit_passes import (
    ROW_ID,
    AuditedColumn,
    AuditedSplit,
    AuditedTableHandle,
    AuditingMergeHandle,
    AuditingSinkProvider,
    AuditingSourceProvider,
)
from rowmerge_nb.engine.tasks.bags import Bag
from rowmerge_nb.spi.connector import Connector, always
from rowmerge_nb.spi.handles import ConnectorTransactionHandle, own
from rowmerge_nb.spi.metadata import ConnectorMetadata, ConnectorTableMetadata, TableStatistics
from rowmerge_nb.spi.operations import RowChangeParadigm
from rowmerge_nb.spi.page_source import ConnectorSplitManager
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions

if TYPE_CHECKING:
    import datetime as dt

    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorMergeTableHandle,
        ConnectorSession,
        ConnectorTableHandle,
        ConnectorTableVersion,
        SchemaTableName,
    )
    from rowmerge_nb.spi.page_source import Constraint

AUDITED: Final = "$audited"
"""The catalog of audited tables, a name that statements cannot contain."""


@dataclass(frozen=True)
class TableState:
    """A table in a version.

    Args:
        version: None for the current version.
    """

    connector: Connector
    name: SchemaTableName
    version: ConnectorTableVersion | None = None

    def handle(
        self, metadata: ConnectorMetadata, session: ConnectorSession
    ) -> ConnectorTableHandle | None:
        if self.version is None:
            return metadata.get_table_handle(session, self.name)
        return metadata.get_former_table_handle(session, self.name, self.version)


@dataclass
class _Opened:
    stores: dict[int, tuple[Connector, ConnectorTransactionHandle, ConnectorMetadata]] = field(
        default_factory=dict
    )


class AuditedTables(Connector):
    """Tables as they were, read without beginning a statement in their stores."""

    get_page_source_provider = always(AuditingSourceProvider())
    get_page_sink_provider = always(AuditingSinkProvider())

    def __init__(self, kind: str) -> None:
        self.name = kind
        self.tables: dict[SchemaTableName, TableState] = {}
        self.change = Bag.none()
        self._open = Transactions[_Opened]("audit")

    def begin_transaction(self) -> NumberedTransactionHandle:
        return self._open.begin(lambda _: _Opened())

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> None:
        self.rollback(transaction_handle)

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        stores_in_use = self._open.pop(self._open.number(transaction_handle), _Opened())
        for connector, handle, _ in stores_in_use.stores.values():
            connector.rollback(handle)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorMetadata:
        return _AuditedMetadata(self, self._open.of(transaction_handle))

    def get_split_manager(self) -> ConnectorSplitManager:
        return _AuditedSplits(self)

    def store(
        self, transaction: _Opened, connector: Connector
    ) -> tuple[Connector, ConnectorTransactionHandle, ConnectorMetadata]:
        if id(connector) not in transaction.stores:
            handle = connector.begin_transaction()
            try:
                transaction.stores[id(connector)] = (
                    connector,
                    handle,
                    connector.get_metadata(handle),
                )
            except BaseException:
                connector.rollback(handle)
                raise
        return transaction.stores[id(connector)]

    def splits(
        self, handle: AuditedTableHandle, session: ConnectorSession, constraint: Constraint
    ) -> list[AuditedSplit]:
        manager = self.tables[handle.name].connector.get_split_manager()
        splits = manager.get_splits(handle.transaction, session, handle.table, constraint)
        return [AuditedSplit(split, number) for number, split in enumerate(splits)]


class _AuditedSplits(ConnectorSplitManager):
    def __init__(self, connector: AuditedTables) -> None:
        self._connector = connector

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[AuditedSplit]:
        return self._connector.splits(own(table_handle, AuditedTableHandle), session, constraint)


class _AuditedMetadata(ConnectorMetadata):
    def __init__(self, connector: AuditedTables, transaction: _Opened) -> None:
        self._connector = connector
        self._transaction = transaction

    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> AuditedTableHandle | None:
        state = self._connector.tables.get(name)
        if state is None:
            return None
        connector, transaction, metadata = self._connector.store(self._transaction, state.connector)
        handle = state.handle(metadata, session)
        if handle is None:
            return None
        columns = metadata.get_column_handles(session, handle)
        return AuditedTableHandle(
            name, handle, transaction, connector.get_page_source_provider(), columns
        )

    def get_table_metadata(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableMetadata:
        return self._metadata(table_handle).get_table_metadata(
            session, own(table_handle, AuditedTableHandle).table
        )

    def get_column_handles(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> tuple[ColumnHandle, ...]:
        return own(table_handle, AuditedTableHandle).columns

    def row_count(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> int | None:
        return self._metadata(table_handle).row_count(
            session, own(table_handle, AuditedTableHandle).table
        )

    def get_table_statistics(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> TableStatistics:
        return self._metadata(table_handle).get_table_statistics(
            session, own(table_handle, AuditedTableHandle).table
        )

    def get_version_time(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> dt.datetime | None:
        return self._metadata(table_handle).get_version_time(
            session, own(table_handle, AuditedTableHandle).table
        )

    def get_row_change_paradigm(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> RowChangeParadigm:
        return RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW

    def get_merge_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> AuditedColumn:
        return AuditedColumn("$row_id", ROW_ID)

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> AuditingMergeHandle:
        handle = own(table_handle, AuditedTableHandle)
        return AuditingMergeHandle(handle, tuple(column.type.arrow for column in handle.columns))

    def finish_merge(
        self,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
        fragments: Collection[bytes],
    ) -> None:
        self._connector.change = reduce(add, map(Bag.from_bytes, fragments), Bag.none())

    def _metadata(self, table_handle: ConnectorTableHandle) -> ConnectorMetadata:
        state = self._connector.tables[own(table_handle, AuditedTableHandle).name]
        return self._connector.store(self._transaction, state.connector)[2]
