"""Name resolution: catalogs, defaults, and the notebook's DataFrames."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import AnalysisError, ConnectorError, RowMergeError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.api.frames.dataframes import read_frame, spark_columns
from rowmerge_nb.engine.catalog.information_schema import information_rows
from rowmerge_nb.engine.spark.constants import constants
from rowmerge_nb.engine.spark.errors.translate import translate
from rowmerge_nb.engine.spark.frames import frame_name, is_frame, is_spark_frame
from rowmerge_nb.engine.spark.job import collect
from rowmerge_nb.spi.handles import PointerType, SchemaTableName
from rowmerge_nb.spi.information_schema import INFORMATION_SCHEMA, TABLES, TABLES_OF_ROLES
from rowmerge_nb.spi.metadata import ColumnMetadata, SystemTable, TableStatistics
from rowmerge_nb.sql.analyzer.analysis import Notice, TableBinding, ViewBinding
from rowmerge_nb.sql.missing_catalog import unknown_catalog
from rowmerge_nb.sql.parser.column_names import name_in_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.catalog.views import Views
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorSession,
        ConnectorTableHandle,
        ConnectorTableVersion,
    )
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.procedures import Procedure, TableProcedure
    from rowmerge_nb.sql.typed.expressions import Typed

_views = itertools.count(1)


class StatementTables:
    """Resolves names for one statement (`rowmerge_nb.sql.analyzer.analysis.AnalyzerCatalogs`).

    Args:
        registered: the identity of the DataFrame behind each table in memory, to suppress notices.
    """

    def __init__(
        self,
        transaction: StatementTransaction,
        connectors: Mapping[str, Connector],
        default: tuple[str, str],
        namespace: Mapping[str, Any],
        spark: Callable[[], Any],
        registered: Mapping[str, int],
        views: Views,
        copies: Mapping[tuple[str, str, str], tuple[str, str, str]] | None = None,
        versions: Mapping[tuple[str, str, str], ConnectorTableVersion] | None = None,
        settings: Mapping[str, str] | None = None,
        failures: Mapping[str, RowMergeError] | None = None,
    ) -> None:
        self._settings = settings or {}
        self.failures = failures or {}
        self._versions = versions or {}
        self._copies = {} if copies is None else copies
        self._registered = registered
        self._views = views
        self.notices: list[Notice] = []
        self._hidden_frames: dict[str, str] = {}
        self._transaction = transaction
        self._connectors = connectors
        self._default = default
        self._namespace = namespace
        self._spark = spark
        self._bindings: dict[
            tuple[tuple[str, ...], ConnectorTableVersion | None], TableBinding | None
        ] = {}

    def resolve(
        self, parts: Sequence[str], version: ConnectorTableVersion | None = None
    ) -> TableBinding | None:
        frames = self._frame_names(parts[0]) if len(parts) == 1 else ()
        # The spelling decides between several frames.
        name = tuple(part.lower() for part in parts) if len(frames) < 2 else tuple(parts)
        if (name, version) not in self._bindings:
            self._bindings[name, version] = self._resolve(name, frames, version)
        return self._bindings[name, version]

    def _resolve(
        self, parts: tuple[str, ...], frames: Sequence[str], version: ConnectorTableVersion | None
    ) -> TableBinding | None:
        full_name = self._completed(parts)
        pinned_version = self._versions.get(full_name) if version is None else None
        # A copy has no former versions; the original table has them.
        catalog, schema, table = (
            self._copies.get(full_name, full_name)
            if version is None and pinned_version is None
            else full_name
        )
        if schema == INFORMATION_SCHEMA:
            return self._information(parts, full_name, version) if table in TABLES else None
        system_table = (
            None
            if "$" not in table
            else self._transaction.metadata(catalog).get_system_table(
                self._transaction.session, SchemaTableName(schema, table)
            )
        )
        if system_table is not None:
            return self._read_only_binding(parts, full_name, system_table, version)
        session, metadata = self._transaction.session, self._transaction.metadata(catalog)
        name = SchemaTableName(schema, table)
        if pinned_version is not None:
            version = pinned_version
            handle = metadata.get_former_table_handle(session, name, pinned_version)
        elif version is None:
            handle = metadata.get_table_handle(session, name)
        else:
            handle = metadata.get_versioned_table_handle(session, name, version)
        if handle is None:
            return self._frame(str(frame_name(parts[0], frames)), version) if frames else None
        self._notice_hidden_frames(parts[0], (catalog, schema, table), frames)
        table_metadata = metadata.get_table_metadata(session, handle)
        rows = metadata.row_count(session, handle)
        return TableBinding(
            display=_display(parts, version),
            catalog=catalog,
            name=(catalog, schema, table),
            columns=table_metadata.columns,
            view=f"rowmerge_{next(_views)}_view",
            handle=handle,
            metadata=table_metadata,
            row_count=rows,
            statistics=cache(partial(_statistics, metadata, session, handle)),
            is_read_by_tasks=cache(
                partial(self._transaction.scans.is_read_by_tasks, catalog, handle)
            ),
            version=version,
            checks_reads=metadata.checks_reads,
        )

    def _notice_hidden_frames(
        self, word: str, name: tuple[str, str, str], frames: Sequence[str]
    ) -> None:
        """Add a notice on DataFrames that have the name of a table and not its rows."""
        registered_frame = self._registered.get(".".join(name))
        unread = [frame for frame in frames if registered_frame != id(self._namespace[frame])]
        if unread:
            table_name = name_in_sql(name)
            self._hidden_frames |= dict.fromkeys(unread, table_name)
            self.notices.append(
                Notice(
                    f"'{word}' is the table {table_name}; the DataFrame of that name is not"
                    f" read. To read it, give it another name: {unread[0]}_df = {unread[0]}"
                )
            )

    def _information(
        self,
        parts: tuple[str, ...],
        name: tuple[str, str, str],
        version: ConnectorTableVersion | None,
    ) -> TableBinding:
        catalog, _, table = name
        transaction = self._transaction
        rows = information_rows(
            table, catalog, transaction.metadata(catalog), transaction.session, self._views
        )
        return self._read_only_binding(parts, name, SystemTable(TABLES[table], rows), version)

    def _read_only_binding(
        self,
        parts: tuple[str, ...],
        name: tuple[str, str, str],
        system_table: SystemTable,
        version: ConnectorTableVersion | None,
    ) -> TableBinding:
        if version is not None:
            raise AnalysisError.unsupported(
                f"'{'.'.join(parts)}' has no versions",
                hint="Remove FOR ... AS OF.",
            )
        return TableBinding(
            display=name_in_sql(parts),
            catalog="",
            name=name,
            columns=system_table.columns,
            view=f"rowmerge_{next(_views)}_view",
            dataframe=system_table.rows,
            row_count=system_table.rows.num_rows,
            is_read_by_tasks=partial(
                self._transaction.scans.is_read_by_tasks, "", None, system_table.rows
            ),
        )

    def _frame_names(self, frame: str) -> Sequence[str]:
        matches = (
            name
            for name in self._namespace
            if isinstance(name, str) and name.lower() == frame.lower()
        )
        return tuple(name for name in matches if is_frame(self._namespace[name]))

    def _frame(self, name: str, version: ConnectorTableVersion | None) -> TableBinding:
        if version is not None:
            raise AnalysisError.unsupported(
                f"'{name}' is a DataFrame of the notebook, which has no versions",
                hint="Remove FOR ... AS OF.",
            )
        frame = self._namespace[name]
        read = spark_columns(name, frame) if is_spark_frame(frame) else read_frame(name, frame)
        return TableBinding(
            display=name_in_sql([name]),
            catalog="",
            name=(name,),
            columns=read.columns,
            view=f"rowmerge_{next(_views)}_view",
            dataframe=frame if read.table is None else read.table,
            refused_columns=read.refused_columns,
            row_count=None if read.table is None else read.table.num_rows,
            deterministic=read.table is not None,
            is_read_by_tasks=partial(self._transaction.scans.is_read_by_tasks, "", None, frame),
        )

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        catalog, schema, table = self._completed(parts)
        if not self.has_schema(catalog, schema):
            schemas = self.schemas(catalog)
            raise AnalysisError(
                f"Schema '{schema}' does not exist",
                code="SCHEMA_NOT_FOUND",
                hint=(self._catalog_hint(schema, table) if len(parts) == 2 else None)
                or did_you_mean(schema, schemas)
                or f"CREATE SCHEMA makes one. There are: {', '.join(schemas)}.",
            )
        return catalog, schema, table

    def _catalog_hint(self, name: str, table: str) -> str | None:
        """Return the full name of a table whose schema was forgotten, or None."""
        if name not in self._connectors:
            return None
        schemas = [schema for schema in self.schemas(name) if schema != INFORMATION_SCHEMA]
        return (
            f"{name} is a catalog; name the schema too: {name_in_sql((name, schemas[0], table))}"
            if schemas
            else None
        )

    def columns(self, parts: Sequence[str]) -> Sequence[ColumnMetadata] | None:
        catalog, schema, table = self._completed(parts)
        if schema == INFORMATION_SCHEMA:
            return TABLES.get(table)
        session, metadata = self._transaction.session, self._transaction.metadata(catalog)
        handle = metadata.get_table_handle(session, SchemaTableName(schema, table))
        if handle is not None:
            return metadata.get_table_metadata(session, handle).columns
        view = self.view(parts)
        return None if view is None else view.definition.columns

    def wait_for_turn(self, parts: Sequence[str], seconds: float) -> bool:
        """Call the connector's ``wait_for_turn``; unknown names do not wait, since the analyzer
        reports them.
        """
        names = tuple(part.lower() for part in parts)
        if len(names) > len(self._default) + 1:
            return True
        catalog, schema, table = (*self._default[: 3 - len(names)], *names)
        if catalog not in self._connectors:
            return True
        catalog, schema, table = self._copies.get(
            (catalog, schema, table), (catalog, schema, table)
        )
        metadata, session = self._transaction.metadata(catalog), self._transaction.session
        return metadata.wait_for_turn(session, SchemaTableName(schema, table), seconds)

    def viewed(self, parts: Sequence[str]) -> tuple[str, ...] | None:
        """Return the full name of the table below a view; None if the name is no view's."""
        from rowmerge_nb.sql.analyzer.statements.updatable_views import viewed_table

        name: tuple[str, ...] | None = None
        views: set[str] = set()
        with suppress(RowMergeError):
            while (view := self.view(name or parts)) is not None and view.qualified not in views:
                views.add(view.qualified)
                name = viewed_table(view)
                if name is None:
                    break
        return name

    def below(self, parts: Sequence[str]) -> Sequence[tuple[str, str]]:
        """Return names that may follow the first parts of a table's name, each with ``table``,
        ``schema`` or ``catalog``.
        """
        catalog, schema = self._default
        prefix = tuple(part.lower() for part in parts)
        tables: Sequence[str] = ()
        schemas: Sequence[str] = ()
        match prefix:
            case ():
                tables, schemas = self.relations(catalog, schema), self.schemas(catalog)
            case (first,):
                schemas = self.schemas(first) if first in self._connectors else ()
                tables = self.relations(catalog, first)
            case (first, second) if first in self._connectors:
                tables = self.relations(first, second)
        catalogs = () if prefix else self.catalogs()
        groups = (("table", tables), ("schema", schemas), ("catalog", catalogs))
        return [(name, object_type) for object_type, names in groups for name in names]

    def view(self, parts: Sequence[str]) -> ViewBinding | None:
        catalog, schema, name = self._completed(parts)
        metadata = self._transaction.metadata(catalog)
        definition = self._views.get(
            catalog, metadata, self._transaction.session, SchemaTableName(schema, name)
        )
        return None if definition is None else ViewBinding((catalog, schema, name), definition)

    def catalogs(self) -> Sequence[str]:
        return sorted(self._connectors)

    def default(self) -> tuple[str, str]:
        return self._default

    def settings(self) -> Mapping[str, str]:
        return self._settings

    def user(self) -> str:
        return self._transaction.session.user

    def schemas(self, catalog: str) -> Sequence[str]:
        return sorted(
            {
                *self._transaction.metadata(catalog).list_schemas(self._transaction.session),
                INFORMATION_SCHEMA,
            }
        )

    def has_schema(self, catalog: str, schema: str) -> bool:
        return schema == INFORMATION_SCHEMA or self._transaction.metadata(catalog).schema_exists(
            self._transaction.session, schema
        )

    def store(self, catalog: str) -> ConnectorMetadata:
        return self._transaction.metadata(catalog)

    def branches(self, table: TableBinding) -> Sequence[str]:
        if table.handle is None:
            return ()
        metadata = self._transaction.metadata(table.catalog)
        return metadata.list_branches(self._transaction.session, table.handle)

    def evolved(self, table: TableBinding, columns: Sequence[ColumnMetadata]) -> TableBinding:
        metadata = self._transaction.metadata(table.catalog)
        session = self._transaction.session
        handle = table.handle
        if handle is None:
            raise ValueError(f"'{table.display}' has no handle")
        evolved_handle = self._transaction.log.call(
            "get_evolved_table_handle",
            lambda: metadata.get_evolved_table_handle(session, handle, columns),
            ", ".join(f"{column.name} {column.type}" for column in columns),
        )
        evolved_metadata = metadata.get_table_metadata(session, evolved_handle)
        expected_names = list(
            dict.fromkeys(column.name.lower() for column in (*table.columns, *columns))
        )
        if [column.name.lower() for column in evolved_metadata.columns] != expected_names:
            has = ", ".join(column.name for column in evolved_metadata.columns)
            raise ConnectorError(
                f"{type(metadata).__name__}.get_evolved_table_handle returned a handle"
                f" of a table with the columns {has}; it must return one with"
                f" {', '.join(expected_names)}",
                code="GENERIC_INTERNAL_ERROR",
            )
        return replace(
            table,
            columns=evolved_metadata.columns,
            handle=evolved_handle,
            metadata=evolved_metadata,
        )

    def hidden(self, table: TableBinding) -> tuple[ColumnHandle, ...]:
        if table.handle is None:
            return ()
        hidden_columns = self._transaction.metadata(table.catalog).get_hidden_column_handles(
            self._transaction.session, table.handle
        )
        names = {column.name.lower() for column in table.columns}
        return tuple(column for column in hidden_columns if column.name not in names)

    def relations(self, catalog: str, schema: str) -> Sequence[str]:
        if schema == INFORMATION_SCHEMA:
            return sorted(TABLES)
        return sorted(name.table for name in self._listed(catalog) if name.schema == schema)

    def procedures(self, catalog: str) -> Sequence[Procedure]:
        return self._connectors[catalog].get_procedures()

    def table_procedures(self, catalog: str) -> Sequence[TableProcedure]:
        return self._connectors[catalog].get_table_procedures()

    def procedures_below(self, parts: Sequence[str]) -> Sequence[tuple[str, str]]:
        """Return names that may follow the first parts of a procedure's name; after the whole name,
        its arguments.
        """
        if not parts:
            return [(name, "catalog") for name in self.catalogs() if self.procedures(name)]
        catalog, *rest = parts
        procedures = self.procedures(catalog) if catalog in self._connectors else ()
        match rest:
            case []:
                return [(schema, "schema") for schema in sorted({one.schema for one in procedures})]
            case [schema]:
                return [(one.name, "procedure") for one in procedures if one.schema == schema]
            case [schema, name]:
                matches = (one for one in procedures if (one.schema, one.name) == (schema, name))
                return [
                    (argument.name, str(argument.type))
                    for one in matches
                    for argument in one.arguments
                ]
        return []

    def table_properties(self, parts: Sequence[str]) -> Sequence[tuple[str, str]]:
        catalog, _, _ = self._completed(parts)
        return sorted(
            (name, str(meaning))
            for name, meaning in self._connectors[catalog].get_table_properties().items()
        )

    def _listed(self, catalog: str) -> Sequence[SchemaTableName]:
        session, metadata = self._transaction.session, self._transaction.metadata(catalog)
        return (*metadata.list_tables(session), *self._views.names(catalog, metadata, session))

    def _completed(self, parts: Sequence[str]) -> tuple[str, str, str]:
        names = tuple(part.lower() for part in parts)
        catalog, schema, table = (*self._default[: 3 - len(names)], *names)
        if catalog not in self._connectors:
            raise unknown_catalog(catalog, self._connectors, self.failures)
        if schema == INFORMATION_SCHEMA and table in TABLES_OF_ROLES:
            raise AnalysisError.unsupported(
                f"The table {INFORMATION_SCHEMA}.{table} is not supported by this engine",
                hint=f"{INFORMATION_SCHEMA} has the tables {', '.join(TABLES)}.",
            )
        return catalog, schema, table

    def source_hint(self, name: str) -> str | None:
        for variable, value in self._namespace.items():
            if isinstance(variable, str) and variable.lower() == name.lower():
                value_type = type(value).__name__
                if isinstance(value, list | tuple | dict) or value_type == "ndarray":
                    return (
                        f"{variable} is a {value_type}; a DataFrame of it is a source: {variable} ="
                        f" pd.DataFrame({variable})"
                    )
                if hasattr(value, "to_frame"):
                    return (
                        f"{variable} is a {value_type}; a DataFrame of it is a source: {variable} ="
                        f" {variable}.to_frame()"
                    )
                if hasattr(value, "to_pandas"):
                    return (
                        f"{variable} is a {value_type}; a DataFrame of it is a source: {variable} ="
                        f" {variable}.to_pandas()"
                    )
                if hasattr(value, "collect"):
                    return (
                        f"{variable} is a {value_type}; its rows are a source: {variable} ="
                        f" {variable}.collect()"
                    )
        catalog = self._connectors.get(self._default[0])
        if catalog is not None and catalog.name == "memory" and not self.candidates([name]):
            return (
                "There are no tables: those in memory end with the process, which is a notebook's"
                " kernel. Create the table again."
            )
        return None

    def frame_hint(self, column: str) -> str | None:
        for frame, table in self._hidden_frames.items():
            value = self._namespace[frame]
            # The columns of an Arrow table are its values.
            columns: Any = getattr(value, "column_names", None) or getattr(value, "columns", ())
            if column.lower() in (str(name).lower() for name in columns):
                return (
                    f"{frame} is the table {table}, and {column} is a column of the DataFrame of"
                    f" that name. To read the DataFrame, give it another name: {frame}_df = {frame}"
                )
        for name, _ in self._bindings:
            # A table may have been made of the frame, without its index.
            for frame in self._frame_names(name[-1]):
                index = getattr(self._namespace[frame], "index", None)
                levels = [
                    str(level) for level in getattr(index, "names", None) or () if level is not None
                ]
                if column.lower() in map(str.lower, levels):
                    return (
                        f"{column} is the index of {frame}; make it a column: {frame} ="
                        f" {frame}.reset_index()"
                    )
        return None

    def candidates(self, parts: Sequence[str]) -> Sequence[str]:
        candidates = [
            name for name, value in self._namespace.items() if len(parts) == 1 and is_frame(value)
        ]
        for catalog in self._connectors:
            listed: Sequence[SchemaTableName] = ()
            # Names only serve hints: ignore a failing catalog.
            with suppress(Exception):
                listed = self._listed(catalog)
            for name in listed:
                if (catalog, name.schema) == self._default:
                    candidates.append(name.table)
                else:
                    candidates.append(f"{catalog}.{name}")
        return candidates

    def evaluate(self, values: Sequence[Typed]) -> Sequence[Any]:
        transaction, spark = self._transaction, self._spark()
        tag, cancelled = transaction.session.query_id, transaction.cancelled
        try:
            return constants(spark, values, lambda rows: collect(spark, rows, tag, cancelled))
        except Exception as error:
            raise translate(error, "analyze") from error


def _display(parts: Sequence[str], version: ConnectorTableVersion | None) -> str:
    name = name_in_sql(parts)
    is_branch = version is not None and version.pointer_type is PointerType.BRANCH
    return f"{name} {version}" if is_branch else name


def _statistics(
    metadata: ConnectorMetadata, session: ConnectorSession, handle: ConnectorTableHandle
) -> TableStatistics:
    statistics: object = metadata.get_table_statistics(session, handle)
    if not isinstance(statistics, TableStatistics):
        raise ConnectorError(
            f"{type(metadata).__name__}.get_table_statistics gave {type(statistics).__name__}; it"
            " gives TableStatistics",
            code="GENERIC_INTERNAL_ERROR",
        )
    return statistics
