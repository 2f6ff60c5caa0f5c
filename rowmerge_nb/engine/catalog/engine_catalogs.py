"""An engine's catalogs: connectors by name, tables in memory, views, and copies."""

from __future__ import annotations

import copy
import uuid
from collections import ChainMap
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from rowmerge_nb.base.arguments import checked, checked_name
from rowmerge_nb.base.errors import AnalysisError, ConnectorError, RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.engine.api.frames.dataframes import whole_frame
from rowmerge_nb.engine.api.statement_options import Options
from rowmerge_nb.engine.catalog.connecting import Connection
from rowmerge_nb.engine.catalog.faulty import StatementFault
from rowmerge_nb.engine.catalog.inputs import names_of, user_name
from rowmerge_nb.engine.catalog.name_resolution import StatementTables
from rowmerge_nb.engine.catalog.transaction import StatementTransaction
from rowmerge_nb.engine.catalog.views import Views
from rowmerge_nb.spi.handles import ConnectorSession, SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.missing_catalog import unconnected_catalog
from rowmerge_nb.sql.parser.statement_reader import name_parts
from rowmerge_nb.sql.session_properties import TIME_ZONE
from rowmerge_nb.sql.typed.type_rules import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from rowmerge_nb.engine.catalog.explicit import ExplicitTransaction
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import ConnectorTableHandle, ConnectorTableVersion
    from rowmerge_nb.spi.metadata import IndependentRows

TableName = tuple[str, str, str]
"""Catalog, schema and table, in lower case."""


class Catalogs:
    """The catalogs of one engine, always including ``memory``.

    The Spark session is requested only when rows are needed.
    """

    def __init__(self, catalog: str, schema: str, spark: Callable[[], Any]) -> None:
        checked(catalog, "catalog", str, "the name of a catalog")
        checked(schema, "schema", str, "the name of a schema")
        self.default = (catalog.lower(), schema.lower())
        self.memory = MemoryConnector(
            schemas=("default", self.default[1]) if self.default[0] == "memory" else ("default",)
        )
        self.views = Views()
        self.connectors: dict[str, Connector] = {"memory": self.memory}
        self.connections: dict[str, Connection] = {}
        """The catalogs that were connected by the names of their stores."""
        self.failures: dict[str, RowMergeError] = {}
        """The catalogs of a project's file that could not be connected."""
        self.settings: Mapping[str, str] = {}
        """The values of session properties that were set, by their names."""
        self._spark = spark
        self._registered: dict[str, int] = {}
        self._copies: Mapping[TableName, TableName] = {}

    def add(self, name: str, connector: Connector) -> None:
        checked(
            name,
            "name",
            lambda argument: isinstance(argument, str) and bool(argument),
            "the name of a catalog",
        )
        checked(
            connector,
            "connector",
            lambda argument: (
                hasattr(argument, "begin_transaction") and not isinstance(argument, type)
            ),
            "a connector, as IcebergConnector('warehouse')",
        )
        if name.lower() in self.connectors:
            raise ConnectorError(
                f"Catalog '{name.lower()}' already exists",
                code="ALREADY_EXISTS",
                hint=f"Choose a name other than: {', '.join(self.connectors)}.",
            )
        self.connectors[name.lower()] = connector

    def describe(self, name: str) -> Connection:
        if name in self.connections:
            return self.connections[name]
        connector = self.connectors[name]
        return Connection(name, connector.name, str(connector.shared_directory or ""))

    def descriptions(self) -> list[Connection]:
        failures = [
            Connection(name, "", problem=error.message)
            for name, error in self.failures.items()
            if name not in self.connectors
        ]
        connections = [*map(self.describe, self.connectors), *failures]
        return sorted(connections, key=lambda connection: connection.name)

    def with_copies(
        self, connectors: Mapping[str, Connector], copies: Mapping[TableName, TableName]
    ) -> Catalogs:
        """Return these catalogs with further ones; ``copies`` maps full names of tables to those of
        their copies.
        """
        twin = copy.copy(self)
        twin.connectors = {**self.connectors, **connectors}
        # The mappings may get further names later, so they are chained and not copied.
        twin._copies = ChainMap(cast("Any", copies), cast("Any", self._copies))  # noqa: SLF001 - it is one of us
        return twin

    @property
    def time_zone(self) -> str:
        return self.settings.get(TIME_ZONE, "UTC")

    def close(self) -> dict[str, Exception]:
        failures: dict[str, Exception] = {}
        for name, connector in self.connectors.items():
            try:
                connector.close()
            except Exception as error:  # noqa: BLE001 - the others must be closed too; the caller reports it
                failures[f"catalog '{name}'"] = error
        return failures

    def register(
        self,
        name: str,
        frame: Any,
        *,
        paradigm: Any,
        partitioned_by: Sequence[str],
        bucketed_by: Sequence[str],
        bucket_count: int | None,
        primary_key: Sequence[str],
        not_null: Sequence[str],
        check_constraints: Sequence[str],
    ) -> None:
        checked(name, "name", str, "'table' or 'schema.table'")
        checked(bucket_count, "bucket_count", (int, type(None)), "a whole number")
        table_name = self.memory_table(name)
        identity = id(frame)
        data = whole_frame(name, frame)
        if untyped := next(
            (column.name for column in data.columns if UNKNOWN in parts_of(column.type)), None
        ):
            raise AnalysisError(
                f"Column type is unknown: {untyped}. No value of DataFrame '{name}'"
                " shows what the column holds",
                code="COLUMN_TYPE_UNKNOWN",
                hint="Give the column a type, as frame.astype({...}) does.",
            )
        required = _required_columns(data.columns, not_null, primary_key)
        properties = {
            "paradigm": getattr(paradigm, "name", paradigm),
            "partitioned_by": names_of(partitioned_by, "partitioned_by"),
            "bucketed_by": names_of(bucketed_by, "bucketed_by"),
            "bucket_count": bucket_count,
            "primary_key": names_of(primary_key, "primary_key"),
            "check_constraints": names_of(
                check_constraints,
                "check_constraints",
                "a condition in SQL, or a list of conditions",
            ),
        }
        metadata = ConnectorTableMetadata(
            table_name,
            tuple(
                replace(column, nullable=column.name.lower() not in required)
                for column in data.columns
            ),
            properties,
        )
        self._check_constraints(metadata)
        self.memory.put(metadata, data.table)
        self._registered[f"memory.{table_name.schema}.{table_name.table}"] = identity

    def _check_constraints(self, metadata: ConnectorTableMetadata) -> None:
        checks = tuple(metadata.properties["check_constraints"])
        if not checks:
            return
        from rowmerge_nb.sql.analyzer.analysis import TableBinding
        from rowmerge_nb.sql.analyzer.statements.constraints import read_constraints
        from rowmerge_nb.sql.parser.column_names import name_in_sql

        name = ("memory", metadata.name.schema, metadata.name.table)
        table = TableBinding(
            name_in_sql(name[-1:]),
            name[0],
            name,
            metadata.columns,
            "",
            metadata=replace(metadata, check_constraints=checks),
        )
        transaction = self.transaction(Options())
        try:
            read_constraints("", self.tables(transaction, {}), table)
        finally:
            transaction.rollback()

    def memory_table(self, name: str) -> SchemaTableName:
        parts = str(name).lower().split(".")
        if len(parts) == 3 and parts[0] == "memory":
            parts = parts[1:]
        if len(parts) > 2 or not all(parts):
            raise RowMergeError.invalid(
                f"'{name}' is not a name for a table in memory",
                hint="Give 'table' or 'schema.table'.",
            )
        return SchemaTableName(*((self.default[1], parts[0]) if len(parts) == 1 else parts))

    def full_name(self, name: str) -> TableName:
        parts = name_parts(checked_name(name, "name", "table").lower())
        if len(parts) > 3:
            raise RowMergeError.invalid(
                f"'{name}' has {len(parts)} parts; a table's name has one to three:"
                " catalog.schema.table",
                hint="Remove the extra parts.",
            )
        catalog, schema, table = (*self.default[: 3 - len(parts)], *parts)
        return catalog, schema, table

    def meant_by(self, name: str) -> TableName:
        full_name = self.full_name(name)
        return self._copies.get(full_name, full_name)

    def transaction(
        self, options: Options, changes: str = "", explicit: ExplicitTransaction | None = None
    ) -> StatementTransaction:
        properties: dict[str, Any] = {"era": str(options.era)}
        if options.paradigm is not None:
            properties["row_change_paradigm"] = options.paradigm.name
        session = ConnectorSession(
            f"rowmerge-{uuid.uuid4().hex[:12]}", user_name(), self.time_zone, properties
        )
        fault = None if options.fault is None else StatementFault(options.fault, changes)
        return StatementTransaction(dict(self.connectors), session, self._spark, fault, explicit)

    def tables(
        self,
        transaction: StatementTransaction,
        namespace: Mapping[str, Any],
        versions: Mapping[TableName, ConnectorTableVersion] | None = None,
    ) -> StatementTables:
        """Return the table resolver of one statement; ``versions`` applies to tables without a
        version in it.
        """
        return StatementTables(
            transaction,
            dict(self.connectors),
            self.default,
            namespace,
            self._spark,
            self._registered,
            self.views,
            self._copies,
            versions,
            self.settings,
            self.failures,
        )

    def store(self, name: TableName | None) -> str:
        return self.connectors[name[0]].name if name and name[0] in self.connectors else ""

    def metadata(self, name: TableName, options: Options) -> ConnectorTableMetadata | None:
        if name[0] not in self.connectors:
            if name[0] in self.failures:
                raise unconnected_catalog(name[0], self.failures[name[0]])
            raise ConnectorError(
                f"Catalog '{name[0]}' does not exist",
                code="CATALOG_NOT_FOUND",
                hint=f"There are: {', '.join(self.connectors)}.",
            )
        transaction = self.transaction(options)
        try:
            metadata = transaction.metadata(name[0])
            handle = metadata.get_table_handle(
                transaction.session, SchemaTableName(name[1], name[2])
            )
            return (
                None if handle is None else metadata.get_table_metadata(transaction.session, handle)
            )
        finally:
            transaction.rollback()

    def rows(
        self,
        name: TableName | None,
        options: Options,
        version: ConnectorTableVersion | None,
        most: int,
    ) -> pa.Table | None:
        """Read a table like any reader after the commit; None above the row limit.

        See `row_count`.
        """
        if name is None:
            return None
        with self._reading(name, options, version) as (transaction, handle):
            columns = transaction.metadata(name[0]).get_column_handles(transaction.session, handle)
            return transaction.scans.rows_up_to(name[0], handle, columns, most)

    def independent_rows(
        self, name: TableName | None, options: Options, most: int
    ) -> IndependentRows | None:
        """Read a table by a library other than its connector, see
        `ConnectorMetadata.read_independently`.
        """
        if name is None:
            return None
        with self._reading(name, options) as (transaction, handle):
            return transaction.metadata(name[0]).read_independently(
                transaction.session, handle, most
            )

    def version(self, name: TableName | None, options: Options) -> ConnectorTableVersion | None:
        """Read a table's current version in a new transaction; None without versions."""
        if name is None:
            return None
        with self._reading(name, options) as (transaction, handle):
            return transaction.metadata(name[0]).get_table_version(transaction.session, handle)

    def row_count(
        self, name: TableName | None, options: Options, version: ConnectorTableVersion | None
    ) -> int | None:
        """Count a table's rows in a new transaction, like any reader after the commit.

        ``version`` is the committed one, since others may follow.
        """
        if name is None:
            return None
        with self._reading(name, options, version) as (transaction, handle):
            return transaction.metadata(name[0]).row_count(transaction.session, handle)

    @contextmanager
    def _reading(
        self, name: TableName, options: Options, version: ConnectorTableVersion | None = None
    ) -> Iterator[tuple[StatementTransaction, ConnectorTableHandle]]:
        """Yield a new transaction and a committed table's handle, or raise TABLE_NOT_FOUND."""
        transaction = self.transaction(options)
        try:
            metadata, table = transaction.metadata(name[0]), SchemaTableName(name[1], name[2])
            if version is None:
                handle = metadata.get_table_handle(transaction.session, table)
            else:
                handle = metadata.get_versioned_table_handle(transaction.session, table, version)
            if handle is None:
                missing = "" if version is None else f" in version {version.version}"
                raise ConnectorError(
                    f"Table '{table}' is not there{missing}",
                    code="TABLE_NOT_FOUND",
                    hint=f"SHOW TABLES FROM {name[0]}.{name[1]} lists those that exist.",
                )
            yield transaction, handle
        finally:
            with suppress(Exception):
                transaction.rollback()


def _required_columns(
    columns: Sequence[ColumnMetadata], not_null: Sequence[str], primary_key: Sequence[str]
) -> set[str]:
    """Return the lower-case names of the NOT NULL columns of a registered DataFrame."""
    required = {
        column.lower()
        for column in (*names_of(not_null, "not_null"), *names_of(primary_key, "primary_key"))
    }
    if missing := sorted(required - {column.name.lower() for column in columns}):
        raise AnalysisError(
            f"'{missing[0]}' is declared NOT NULL, but the table has no such column",
            code="COLUMN_NOT_FOUND",
            hint=f"Its columns are: {', '.join(column.name for column in columns)}.",
        )
    return required
