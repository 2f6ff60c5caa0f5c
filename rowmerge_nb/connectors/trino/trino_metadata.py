"""The metadata of a plugin in a transaction: each method is a request to the coordinator's process."""

from __future__ import annotations

import importlib.util
import math
import re
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.connectors.trino.domains_on_wire import constraint_on_wire, version_on_wire
from rowmerge_nb.connectors.trino.host_channel import unpack_batch
from rowmerge_nb.connectors.trino.trino_alterations import alteration_call, column_on_wire
from rowmerge_nb.connectors.trino.trino_errors import PluginError
from rowmerge_nb.connectors.trino.trino_handles import (
    JavaHandle,
    TrinoColumnHandle,
    TrinoInsertTableHandle,
    TrinoMergeTableHandle,
    TrinoOutputTableHandle,
    TrinoPartitioningHandle,
    TrinoTableHandle,
    java_handle,
    optional_handle,
    wire_of,
)
from rowmerge_nb.connectors.trino.trino_scans import conformed
from rowmerge_nb.connectors.trino.trino_updatable import ROW_ID, UpdatableTrinoMetadata
from rowmerge_nb.connectors.trino.type_names import type_of
from rowmerge_nb.spi.handles import SchemaTableName, own
from rowmerge_nb.spi.layout import ConnectorTableLayout
from rowmerge_nb.spi.metadata import (
    ColumnMetadata,
    ConnectorTableMetadata,
    IndependentRows,
    SystemTable,
    TableStatistics,
)
from rowmerge_nb.spi.operations import RowChangeParadigm, SaveMode
from rowmerge_nb.spi.output import ConnectorOutputMetadata

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rowmerge_nb.connectors.trino.trino_transactions import TrinoTransaction
    from rowmerge_nb.spi.alterations import Alteration
    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorOutputTableHandle,
        ConnectorSession,
        ConnectorTableHandle,
        ConnectorTableVersion,
    )
    from rowmerge_nb.spi.page_source import Constraint

_AFTER_COLUMNS = ("tinyint", "integer")
"""The types of the channels ``operation`` and ``case_number``."""

_DOCUMENTS_ERA: Final = (
    "The sink got the halves of an update as operations 2 (delete) and 1 (insert), as in the design"
    ' documents. Today\'s Trino sends 5 and 4: --era current (era="current") does, too.'
)


class TrinoMetadata(UpdatableTrinoMetadata):
    stores_comments = True
    alters_fields = True
    replaces_tables = True
    creates_filled_tables = True

    def __init__(
        self,
        transaction: TrinoTransaction,
        connector_name: str = "",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._transaction = transaction
        self._connector_name = connector_name
        self._properties = properties or {}

    @property
    def stores_defaults(self) -> bool:
        """Whether the plugin has Trino's capability DEFAULT_COLUMN_VALUE."""
        return self._transaction.has_capability("DEFAULT_COLUMN_VALUE")

    # -- tables

    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> TrinoTableHandle | None:
        return self._table(session, name)

    def get_versioned_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> TrinoTableHandle | None:
        return self._table(session, name, version=version_on_wire(version))

    def get_system_table(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> SystemTable | None:
        answer, payload = self._transaction.request_payload(
            session, "system_table", schema=name.schema, table=name.table
        )
        if answer is None:
            return None
        columns = tuple(
            ColumnMetadata(column["name"], type_of(column["type"], column["name"]))
            for column in answer["columns"]
        )
        schema = pa.schema([(column.name, column.type.arrow) for column in columns])
        page = conformed(unpack_batch(payload), schema)
        return SystemTable(columns, pa.Table.from_batches([page]))

    def read_independently(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, most: int
    ) -> IndependentRows | None:
        """Read a table of Iceberg in local files by PyIceberg, if it is installed."""
        if self._connector_name != "iceberg" or importlib.util.find_spec("pyiceberg") is None:
            return None
        table = own(table_handle, TrinoTableHandle)
        log_name = SchemaTableName(table.name.schema, f"{table.name.table}$metadata_log_entries")
        log = self.get_system_table(session, log_name)
        if log is None or not log.rows.num_rows:
            return None
        # PyIceberg is large.
        from rowmerge_nb.connectors.trino.pyiceberg_reading import read_table

        newest = max(
            log.rows.select(["timestamp", "file"]).to_pylist(), key=itemgetter("timestamp")
        )
        return read_table(newest["file"], self._properties, table.columns, most)

    def get_table_statistics(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> TableStatistics:
        """Return the plugin's estimates; as in Trino, a plugin that fails has none."""
        try:
            answer = self._request(session, "statistics", table=_java(table_handle).wire)
        except PluginError as error:
            self._transaction.notices.append(
                f"The plugin has no statistics of the table: {error.message}"
            )
            return TableStatistics()
        row_count, data_size = (
            None if answer[name] is None else math.ceil(answer[name])
            for name in ("row_count", "data_size")
        )
        return TableStatistics(row_count, data_size)

    def _table(
        self, session: ConnectorSession, name: SchemaTableName, **version: Any
    ) -> TrinoTableHandle | None:
        context = self._transaction.context(session)
        answer = self._request(
            session, "table_handle", schema=name.schema, table=name.table, **version
        )
        java = optional_handle(answer and answer.get("handle"))
        if java is None:
            return None
        definition = self._request(session, "table_metadata", table=java.wire)
        handles = self._request(session, "column_handles", table=java.wire)
        columns = [_column(column, handles) for column in definition["columns"]]
        visible = [not column.get("hidden") for column in definition["columns"]]
        metadata = ConnectorTableMetadata(
            name,
            tuple(
                ColumnMetadata(
                    handle.name,
                    handle.type,
                    nullable=bool(column.get("nullable", True)),
                    comment=column.get("comment"),
                    default=column.get("default"),
                )
                for column, handle, is_visible in zip(
                    definition["columns"], columns, visible, strict=True
                )
                if is_visible and handle is not None
            ),
            definition.get("properties") or {},
            definition.get("comment"),
        )
        visible_columns = [
            c for c, is_visible in zip(columns, visible, strict=True) if is_visible and c
        ]
        hidden_columns = [
            c for c, is_visible in zip(columns, visible, strict=True) if not is_visible and c
        ]
        return TrinoTableHandle(
            name, java, context, tuple(visible_columns), tuple(hidden_columns), metadata
        )

    def get_table_metadata(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableMetadata:
        table = own(table_handle, TrinoTableHandle)
        if table.metadata is None:
            raise TypeError(f"{table!r} has no definition")
        return table.metadata

    def get_column_handles(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> tuple[ColumnHandle, ...]:
        return own(table_handle, TrinoTableHandle).columns

    def get_hidden_column_handles(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> tuple[ColumnHandle, ...]:
        return own(table_handle, TrinoTableHandle).hidden_columns

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        return [
            SchemaTableName(name["schema"], name["table"])
            for name in self._request(session, "list_tables")
        ]

    def create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        save_mode: SaveMode = SaveMode.FAIL,
    ) -> None:
        """Create or replace a table by the plugin's createTable."""
        with _named_properties(metadata.properties):
            self._request(
                session, "create_table", save_mode=str(save_mode), **_definition(metadata)
            )

    def get_new_table_layout(
        self, session: ConnectorSession, metadata: ConnectorTableMetadata
    ) -> ConnectorTableLayout | None:
        with _named_properties(metadata.properties):
            answer = self._request(session, "new_table_layout", **_definition(metadata))
        return None if answer is None else self._layout(session, answer)

    def begin_create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        layout: ConnectorTableLayout | None,
        *,
        replace: bool = False,
    ) -> TrinoOutputTableHandle:
        with _named_properties(metadata.properties):
            answer = self._request(
                session, "begin_create_table", replace=replace, **_definition(metadata)
            )
        return TrinoOutputTableHandle(
            self._transaction.context(session),
            java_handle(answer["handle"]),
            tuple(str(column.type) for column in metadata.columns),
            optional_handle(answer.get("credentials")),
        )

    def finish_create_table(
        self,
        session: ConnectorSession,
        output_handle: ConnectorOutputTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        handle = own(output_handle, TrinoOutputTableHandle)
        self._transaction.finish(session, "finish_create_table", fragments, handle=handle.java.wire)
        return self._output()

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        self._request(session, "drop_table", table=_java(table_handle).wire)

    def truncate_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        self._request(session, "truncate_table", table=_java(table_handle).wire)

    def alter_table(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, alteration: Alteration
    ) -> None:
        """Call the method of the plugin's metadata for the alteration, such as addColumn."""
        table = own(table_handle, TrinoTableHandle)
        call, arguments = alteration_call(table, alteration)
        with _named_properties(arguments.get("properties") or {}):
            self._request(session, call, table=table.java.wire, **arguments)

    # -- schemas

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        return schema in self.list_schemas(session)

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        return sorted(self._request(session, "list_schemas"))

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        self._request(session, "create_schema", schema=schema, properties={})

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        self._request(session, "drop_schema", schema=schema)

    # -- INSERT

    def begin_insert(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> TrinoInsertTableHandle:
        table = own(table_handle, TrinoTableHandle)
        answer = self._request(
            session,
            "begin_insert",
            table=table.java.wire,
            columns=[wire_of(column.java) for column in table.columns_of(columns)],
        )
        insert = java_handle(answer["handle"])
        self._transaction.note_lost_fields(insert)
        return TrinoInsertTableHandle(
            table.context,
            insert,
            tuple(column.signature for column in table.columns),
            optional_handle(answer.get("credentials")),
        )

    def finish_insert(
        self,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        handle = own(insert_handle, TrinoInsertTableHandle)
        self._transaction.finish(session, "finish_insert", fragments, handle=handle.java.wire)
        return self._output()

    # -- MERGE

    def get_row_change_paradigm(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> RowChangeParadigm:
        self._check_merge(session)
        answer = self._request(session, "row_change_paradigm", table=_java(table_handle).wire)
        return RowChangeParadigm[answer]

    def get_merge_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> TrinoColumnHandle:
        self._check_merge(session)
        answer = self._transaction.row_id(session, own(table_handle, TrinoTableHandle))
        return TrinoColumnHandle(
            ROW_ID,
            type_of(answer["type"], ROW_ID),
            java=java_handle(answer["handle"]),
            signature=answer["type"],
        )

    def get_insert_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        answer = self._request(session, "insert_layout", table=_java(table_handle).wire)
        return None if answer is None else self._layout(session, answer)

    def get_update_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        answer = self._request(session, "update_layout", table=_java(table_handle).wire)
        if answer is None or answer.get("partitioning") is None:
            return None
        return replace(self._layout(session, answer), partition_columns=())

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> TrinoMergeTableHandle:
        table = own(table_handle, TrinoTableHandle)
        row_id = self.get_merge_row_id_column_handle(session, table)
        updated = self._updated(session, table, updated_columns)
        if updated and updated_columns is None:
            self._transaction.notices.append(_DOCUMENTS_ERA)
        answer = self._request(
            session,
            "begin_merge",
            table=table.java.wire,
            updated={
                str(case): [wire_of(column.java) for column in table.columns_of(columns)]
                for case, columns in updated.items()
            },
        )
        signatures = (column.signature for column in table.columns)
        scanned = optional_handle(answer.get("table"))
        merge = java_handle(answer["handle"])
        self._transaction.note_lost_fields(merge, scanned)
        return TrinoMergeTableHandle(
            table if scanned is None else replace(table, java=scanned),
            merge,
            (*signatures, *_AFTER_COLUMNS, row_id.signature),
            optional_handle(answer.get("credentials")),
        )

    def finish_merge(
        self,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        handle = own(merge_handle, TrinoMergeTableHandle)
        self._transaction.finish(
            session,
            "finish_merge",
            fragments,
            handle=handle.java.wire,
            sources=[_java(handle.table_handle).wire],
        )
        return self._output()

    # -- DELETE by the plugin itself

    def apply_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, constraint: Constraint
    ) -> TrinoTableHandle | None:
        table = own(table_handle, TrinoTableHandle)
        domains = constraint_on_wire(constraint.domains, table.column_types)
        if domains.keys() != constraint.domains.keys():
            return None
        answer = self._request(session, "apply_delete", table=table.java.wire, constraint=domains)
        java = optional_handle(answer and answer.get("table"))
        return None if java is None else replace(table, java=java)

    def execute_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> int | None:
        answer = self._transaction.finish(session, "execute_delete", table=_java(table_handle).wire)
        rows: int | None = answer["rows"]
        return rows

    def _updated(
        self,
        session: ConnectorSession,
        table: TrinoTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None,
    ) -> Mapping[int, Sequence[ColumnHandle]]:
        """Return the updated columns per case; in the era of the documents, as one case."""
        if updated_columns is not None:
            return updated_columns
        names = session.properties.get("updated_columns") or ()
        columns = [column for column in table.columns if column.name in names]
        return {0: columns} if columns else {}

    def _layout(self, session: ConnectorSession, answer: Mapping[str, Any]) -> ConnectorTableLayout:
        columns = tuple(answer.get("columns") or ())
        java = optional_handle(answer.get("partitioning"))
        return ConnectorTableLayout(
            columns,
            None
            if java is None
            else TrinoPartitioningHandle(java, self._transaction.context(session), columns),
            multiple_writers_per_partition_supported=bool(answer.get("several_writers")),
        )

    def _output(self) -> ConnectorOutputMetadata:
        return ConnectorOutputMetadata(notices=tuple(self._transaction.notices))

    def _request(self, session: ConnectorSession, call: str, **arguments: Any) -> Any:
        return self._transaction.request(session, call, **arguments)


@contextmanager
def _named_properties(properties: Mapping[str, Any]) -> Iterator[None]:
    """Raise a plugin's INVALID_TABLE_PROPERTY as an AnalysisError with the names of properties."""
    try:
        yield
    except PluginError as error:
        if error.code != "INVALID_TABLE_PROPERTY":
            raise
        words = set(re.findall(r"\w+", error.message.partition(". ")[0]))
        raise AnalysisError(
            error.message,
            code=error.code,
            hint=error.hint,
            properties=[name for name in properties if name in words],
        ) from error


def _definition(metadata: ConnectorTableMetadata) -> dict[str, Any]:
    return {
        "schema": metadata.name.schema,
        "table": metadata.name.table,
        "columns": [column_on_wire(column) for column in metadata.columns],
        "properties": dict(metadata.properties),
        "comment": metadata.comment,
    }


def _java(table_handle: ConnectorTableHandle) -> JavaHandle:
    return own(table_handle, TrinoTableHandle).java


def _column(column: Mapping[str, Any], handles: Mapping[str, Any]) -> TrinoColumnHandle | None:
    """Return a column; None for a hidden one whose type pages cannot hold."""
    name, signature = column["name"], column["type"]
    if column.get("hidden") and (name not in handles or not _is_known(signature, name)):
        return None
    return TrinoColumnHandle(
        name,
        type_of(signature, name),
        java=optional_handle(handles.get(name)),
        signature=signature,
    )


def _is_known(signature: str, name: str) -> bool:
    try:
        type_of(signature, name)
    except ConnectorError:
        return False
    return True
