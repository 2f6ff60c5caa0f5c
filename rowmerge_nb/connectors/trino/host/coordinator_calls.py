"""Calls of the driver: metadata, tables, and the beginning and end of writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.connectors.trino.host.alteration_calls import AlterationCalls
from rowmerge_nb.connectors.trino.host.constraints import tuple_domain
from rowmerge_nb.connectors.trino.host.fragments import fragment_slices
from rowmerge_nb.connectors.trino.host.host_transactions import HostTransaction, HostTransactions
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import (
    call_plugin,
    from_optional,
    has_vectors,
    java_class,
    java_list,
    java_text,
)
from rowmerge_nb.connectors.trino.host.sessions import Sessions
from rowmerge_nb.connectors.trino.host.spi_versions import block_builder
from rowmerge_nb.connectors.trino.host.table_calls import TableCalls, describe_properties
from rowmerge_nb.connectors.trino.host.updatable_calls import UpdatableCalls
from rowmerge_nb.connectors.trino.host.versions import SPI, no_retries

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.plugin_loading import LoadedPlugin

Request = dict[str, Any]
Result = Any
_TABLE: Final = "ConnectorTableHandle"
_MERGE: Final = "ConnectorMergeTableHandle"
_COLUMN: Final = "ColumnHandle"
_CREDENTIALS: Final = "ConnectorTableCredentials"


class CoordinatorCalls:
    def __init__(self, plugin: LoadedPlugin, sessions: Sessions) -> None:
        self._plugin = plugin
        self._sessions = sessions
        self._transactions = HostTransactions(plugin)
        self._tables = TableCalls(plugin, self._transactions)
        self._builder = block_builder(plugin.version)
        self.calls: dict[str, Callable[[Request, memoryview], Result]] = {
            "hello": self._hello,
            "begin_transaction": self._begin_transaction,
            "commit": lambda request, _: self._transactions.end(request, commit=True),
            "rollback": lambda request, _: self._transactions.end(request, commit=False),
            "row_change_paradigm": self._row_change_paradigm,
            "merge_row_id": self._merge_row_id,
            "insert_layout": self._insert_layout,
            "update_layout": self._update_layout,
            "begin_insert": self._begin_insert,
            "finish_insert": self._finish_insert,
            "new_table_layout": self._new_table_layout,
            "begin_create_table": self._begin_create_table,
            "finish_create_table": self._finish_create_table,
            "begin_merge": self._begin_merge,
            "finish_merge": self._finish_merge,
            "apply_delete": self._apply_delete,
            "execute_delete": self._execute_delete,
            "splits": self._splits,
            "json_report": self._json_report,
            **self._tables.calls,
            **AlterationCalls(plugin, self._transactions, self._tables).calls,
            **UpdatableCalls(self._transactions).calls,
        }

    # The host and its transactions

    def _hello(self, request: Request, payload: memoryview) -> Result:
        connector, settings = self._plugin.connector, self._plugin.settings
        return {
            "trino": self._plugin.version.number,
            "features": self._plugin.version.features,
            "connector": self._plugin.factory,
            "class": self._plugin.plugin_class,
            "pid": os.getpid(),
            "session_properties": describe_properties(connector.getSessionProperties()),
            "table_properties": describe_properties(connector.getTableProperties()),
            "schema_properties": describe_properties(connector.getSchemaProperties()),
            "column_properties": describe_properties(connector.getColumnProperties()),
            # Trino writes by several statements of a transaction only if the plugin can still undo
            # them in its commit.
            "commits_in_finish": bool(connector.isSingleStatementWritesOnly()),
            "flows": ["updatable" if self._plugin.version.has_older_flow else "merge"],
            "capabilities": sorted(str(each) for each in connector.getCapabilities()),
            "java": str(java_class("java.lang.System").getProperty(java_text("java.version"))),
            "vector": has_vectors(settings.java_home),
        }

    def _begin_transaction(self, request: Request, payload: memoryview) -> Result:
        number = self._transactions.begin(
            self._sessions.session(request.get("session") or {}),
            request.get("isolation"),
            read_only=bool(request.get("read_only")),
        )
        transaction = self._transactions.get({"transaction": number})
        interface = "ConnectorTransactionHandle"
        return {
            "transaction": number,
            "handle": self._transactions.to_wire(transaction, interface, transaction.handle),
        }

    # Writes

    def _row_change_paradigm(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        return str(
            call_plugin(transaction.metadata, "getRowChangeParadigm", transaction.session, table)
        )

    def _merge_row_id(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        metadata, session = transaction.metadata, transaction.session
        handle = call_plugin(metadata, "getMergeRowIdColumnHandle", session, table)
        column = call_plugin(metadata, "getColumnMetadata", session, table, handle)
        return {
            "handle": self._transactions.to_wire(transaction, _COLUMN, handle),
            "type": str(column.getType().getDisplayName()),
            "name": str(column.getName()),
        }

    def _insert_layout(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        layout = from_optional(
            call_plugin(transaction.metadata, "getInsertLayout", transaction.session, table)
        )
        return None if layout is None else self._layout(transaction, layout)

    def _update_layout(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        partitioning = from_optional(
            call_plugin(transaction.metadata, "getUpdateLayout", transaction.session, table)
        )
        if partitioning is None:
            return None
        return {
            "columns": [],
            "partitioning": self._partitioning(transaction, partitioning),
        }

    def _layout(self, transaction: HostTransaction, layout: JavaObject) -> Result:
        return {
            "columns": [str(name) for name in layout.getPartitionColumns()],
            "partitioning": self._partitioning(transaction, layout.getPartitioning().orElse(None)),
            "several_writers": self._plugin.version.has_several_writers(layout),
        }

    def _partitioning(self, transaction: HostTransaction, handle: JavaObject | None) -> Result:
        interface = "ConnectorPartitioningHandle"
        return self._transactions.to_wire(transaction, interface, handle)

    def _begin_insert(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        columns = [self._transactions.from_wire(transaction, c) for c in request["columns"]]
        handle = call_plugin(
            transaction.metadata,
            "beginInsert",
            transaction.session,
            table,
            java_list(columns),
            no_retries(),
        )
        return self._writable(transaction, "ConnectorInsertTableHandle", handle)

    def _finish_insert(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        self._plugin.version.finish_insert(
            transaction.metadata,
            transaction.session,
            self._transactions.from_wire(transaction, request["handle"]),
            self._sources(transaction, request),
            fragment_slices(request, payload),
        )

    def _new_table_layout(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        table = self._tables.new_table(request)
        layout = from_optional(transaction.metadata.getNewTableLayout(transaction.session, table))
        return None if layout is None else self._layout(transaction, layout)

    def _begin_create_table(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        table = self._tables.new_table(request)
        metadata, session = transaction.metadata, transaction.session
        layout = metadata.getNewTableLayout(session, table)
        replaces = bool(request.get("replace"))
        handle = self._plugin.version.begin_create_table(
            metadata, session, table, layout, replace=replaces
        )
        return self._writable(transaction, "ConnectorOutputTableHandle", handle)

    def _finish_create_table(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        transaction.metadata.finishCreateTable(
            transaction.session,
            self._transactions.from_wire(transaction, request["handle"]),
            fragment_slices(request, payload),
            java_list([]),
        )

    def _writable(
        self, transaction: HostTransaction, interface: str, handle: JavaObject
    ) -> dict[str, Any]:
        credentials = self._credentials(transaction, "ConnectorWritableTableHandle", handle)
        return {
            "handle": self._transactions.to_wire(transaction, interface, handle),
            "credentials": credentials,
        }

    def _begin_merge(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        cases = java_class("java.util.HashMap")()
        for case, columns in (request.get("updated") or {}).items():
            handles = [self._transactions.from_wire(transaction, column) for column in columns]
            cases.put(java_class("java.lang.Integer").valueOf(int(case)), java_list(handles))
        handle = call_plugin(
            transaction.metadata, "beginMerge", transaction.session, table, cases, no_retries()
        )
        merged_table = call_plugin(handle, "getTableHandle")
        return {
            "handle": self._transactions.to_wire(transaction, _MERGE, handle),
            "table": self._transactions.to_wire(transaction, _TABLE, merged_table),
            "credentials": self._credentials(transaction, _TABLE, merged_table),
        }

    def _finish_merge(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        transaction.metadata.finishMerge(
            transaction.session,
            self._transactions.from_wire(transaction, request["handle"]),
            self._sources(transaction, request),
            fragment_slices(request, payload),
            java_list([]),
        )

    def _sources(self, transaction: HostTransaction, request: Request) -> JavaObject:
        """Return the handles of the tables that the statement has read."""
        sources = request.get("sources") or []
        return java_list(
            [self._transactions.from_wire(transaction, source, _TABLE) for source in sources]
        )

    def _apply_delete(self, request: Request, payload: memoryview) -> Result:
        """Return the table that executeDelete gets; None if the plugin leaves rows to the engine."""
        transaction, table = self._transactions.of_table(request)
        metadata, session = transaction.metadata, transaction.session
        if request["constraint"]:
            domain = self._domain(transaction, table, request["constraint"])
            if domain.isNone():
                return None
            constraint = java_class(f"{SPI}Constraint")(domain)
            applied = from_optional(metadata.applyFilter(session, table, constraint))
            if applied is None or not applied.getRemainingFilter().isAll():
                return None
            table = java_class(SPI + _TABLE) @ applied.getHandle()
        deleted = from_optional(metadata.applyDelete(session, table))
        return (
            None
            if deleted is None
            else {"table": self._transactions.to_wire(transaction, _TABLE, deleted)}
        )

    def _execute_delete(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        rows = transaction.metadata.executeDelete(transaction.session, table)
        return {"rows": int(rows.getAsLong()) if rows.isPresent() else None}

    # Reads

    def _splits(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        metadata, session = transaction.metadata, transaction.session
        if request.get("constraint"):
            domain = self._domain(transaction, table, request["constraint"])
            if domain.isNone():
                # As in Trino, whose planner does not read such a table.
                return {"splits": [], "table": request["table"], "credentials": None}
            constraint = java_class(f"{SPI}Constraint")(domain)
            applied = from_optional(metadata.applyFilter(session, table, constraint))
            if applied is not None:
                table = java_class(SPI + _TABLE) @ applied.getHandle()
        splits = self._plugin.version.get_splits(
            call_plugin(self._plugin.connector, "getSplitManager"),
            transaction.handle,
            session,
            table,
            # As in Trino: the domains are in the table handle, if the plugin takes them.
            java_class(f"{SPI}Constraint").alwaysTrue(),
        )
        return {
            "splits": [
                self._transactions.to_wire(
                    transaction, "ConnectorSplit", split, read_back=number == 0
                )
                for number, split in enumerate(splits)
            ],
            "table": self._transactions.to_wire(transaction, _TABLE, table),
            "credentials": self._credentials(transaction, _TABLE, table),
        }

    def _domain(
        self, transaction: HostTransaction, table: JavaObject, constraint: dict[str, Any]
    ) -> JavaObject:
        metadata, session = transaction.metadata, transaction.session
        columns = {
            str(name): (handle, metadata.getColumnMetadata(session, table, handle).getType())
            for name, handle in metadata.getColumnHandles(session, table).items()
            if str(name) in constraint
        }
        return tuple_domain(constraint, columns, self._builder)

    def _json_report(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        interface = request["handle"]["interface"].removeprefix(SPI)
        handle = self._transactions.from_wire(transaction, request["handle"])
        return self._plugin.handles.report(interface, jpype.JObject(handle))

    # What several calls need

    def _credentials(
        self, transaction: HostTransaction, interface: str, handle: JavaObject
    ) -> Result:
        if not self._plugin.version.has_credentials:
            return None
        credentials = from_optional(
            transaction.metadata.getTableCredentials(
                transaction.session, java_class(SPI + interface) @ handle
            )
        )
        return self._transactions.to_wire(transaction, _CREDENTIALS, credentials)
