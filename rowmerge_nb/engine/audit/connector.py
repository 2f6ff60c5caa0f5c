"""The tables of an audit: those of stores as they were at some version, whose change is noted and never written."""

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
"""The catalog of audited tables; no statement can name it."""


@dataclass(frozen=True)
class TableState:
    """A table as it is or was.

    Args:
        connector: what has it.
        name: its name there.
        version: which version is meant; None for the table as it is.
    """

    connector: Connector
    name: SchemaTableName
    version: ConnectorTableVersion | None = None

    def handle(self, metadata: ConnectorMetadata, session: ConnectorSession) -> ConnectorTableHandle | None:
        """Look it up; None if there is no such table.

        Args:
            metadata: the metadata of its connector.
            session: the session.

        Raises:
            ConnectorError: the version is not kept.
        """
        if self.version is None:
            return metadata.get_table_handle(session, self.name)
        return metadata.get_former_table_handle(session, self.name, self.version)


@dataclass
class _Opened:
    """The transactions of the stores that take part, by the connectors' identities."""

    stores: dict[int, tuple[Connector, ConnectorTransactionHandle, ConnectorMetadata]] = field(default_factory=dict)


class AuditedTables(Connector):
    """Tables as they were. No statement begins anything in the stores that have them, and nothing is written.

    Args:
        kind: the kind of store that the audited table is in.

    Attributes:
        tables: the tables, by the names that they have here.
        change: what the last statement would have changed.
    """

    get_page_source_provider = always(AuditingSourceProvider())
    get_page_sink_provider = always(AuditingSinkProvider())

    def __init__(self, kind: str) -> None:
        self.name = kind
        self.tables: dict[SchemaTableName, TableState] = {}
        self.change = Bag.none()
        self._open = Transactions[_Opened]("audit")

    def begin_transaction(self) -> NumberedTransactionHandle:
        """Begin a transaction; those of the stores begin when a table of theirs is looked up."""
        return self._open.begin(lambda _: _Opened())

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """End the transaction; nothing was changed in it."""
        self.rollback(transaction_handle)

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """End the transactions of the stores, which have only read."""
        opened = self._open.pop(self._open.number(transaction_handle), _Opened())
        for connector, handle, _ in opened.stores.values():
            connector.rollback(handle)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorMetadata:
        """Return the metadata of a transaction."""
        return _AuditedMetadata(self, self._open.of(transaction_handle))

    def get_split_manager(self) -> ConnectorSplitManager:
        """Return what asks the stores for splits."""
        return _AuditedSplits(self)

    def store(self, opened: _Opened, connector: Connector) -> tuple[Connector, ConnectorTransactionHandle, ConnectorMetadata]:
        """Return a store with its transaction, which begins with the first call."""
        if id(connector) not in opened.stores:
            handle = connector.begin_transaction()
            try:
                opened.stores[id(connector)] = connector, handle, connector.get_metadata(handle)
            except BaseException:
                connector.rollback(handle)
                raise
        return opened.stores[id(connector)]

    def splits(self, handle: AuditedTableHandle, session: ConnectorSession, constraint: Constraint) -> list[AuditedSplit]:
        """Ask the store of a table for its splits."""
        manager = self.tables[handle.name].connector.get_split_manager()
        found = manager.get_splits(handle.transaction, session, handle.table, constraint)
        return [AuditedSplit(split, number) for number, split in enumerate(found)]


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
        """Return the store's splits."""
        return self._connector.splits(own(table_handle, AuditedTableHandle), session, constraint)


class _AuditedMetadata(ConnectorMetadata):
    """The stores' metadata of the audited tables; a statement may go up to its finish call, which notes the change."""

    def __init__(self, connector: AuditedTables, opened: _Opened) -> None:
        self._connector = connector
        self._opened = opened

    def get_table_handle(self, session: ConnectorSession, name: SchemaTableName) -> AuditedTableHandle | None:
        """Look a table up where it is, as it was."""
        state = self._connector.tables.get(name)
        if state is None:
            return None
        connector, transaction, metadata = self._connector.store(self._opened, state.connector)
        handle = state.handle(metadata, session)
        if handle is None:
            return None
        columns = metadata.get_column_handles(session, handle)
        return AuditedTableHandle(name, handle, transaction, connector.get_page_source_provider(), columns)

    def get_table_metadata(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableMetadata:
        """Return what the store says of the table."""
        return self._metadata(table_handle).get_table_metadata(session, own(table_handle, AuditedTableHandle).table)

    def get_column_handles(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> tuple[ColumnHandle, ...]:
        """Return the store's own handles."""
        return own(table_handle, AuditedTableHandle).columns

    def row_count(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> int | None:
        """Return what the store says."""
        return self._metadata(table_handle).row_count(session, own(table_handle, AuditedTableHandle).table)

    def get_table_statistics(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> TableStatistics:
        """Return what the store says."""
        return self._metadata(table_handle).get_table_statistics(session, own(table_handle, AuditedTableHandle).table)

    def get_version_time(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> dt.datetime | None:
        """Return what the store says."""
        return self._metadata(table_handle).get_version_time(session, own(table_handle, AuditedTableHandle).table)

    def get_row_change_paradigm(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> RowChangeParadigm:
        """Return the paradigm by which old and new rows come apart."""
        return RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW

    def get_merge_row_id_column_handle(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> AuditedColumn:
        """Return the row id, which says what the row was."""
        return AuditedColumn("$row_id", ROW_ID)

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> AuditingMergeHandle:
        """Begin nothing."""
        handle = own(table_handle, AuditedTableHandle)
        return AuditingMergeHandle(handle, tuple(column.type.arrow for column in handle.columns))

    def finish_merge(
        self, session: ConnectorSession, merge_handle: ConnectorMergeTableHandle, fragments: Collection[bytes]
    ) -> None:
        """Note what the statement would have changed."""
        self._connector.change = reduce(add, map(Bag.from_bytes, fragments), Bag.none())

    def _metadata(self, table_handle: ConnectorTableHandle) -> ConnectorMetadata:
        state = self._connector.tables[own(table_handle, AuditedTableHandle).name]
        return self._connector.store(self._opened, state.connector)[2]
