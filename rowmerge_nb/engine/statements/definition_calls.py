"""Running statements that are calls of connectors alone: definitions of tables, views and schemas,
TRUNCATE, SHOW and CALL.

Only arguments of CALL that are not plain constants need Spark.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.spark.constants import constants
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.spi.alterations import RenameTable
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.operations import SaveMode
from rowmerge_nb.sql.analyzer.analysis import (
    CallAnalysis,
    CheckConstraint,
    CreateTableAnalysis,
    DefinitionAnalysis,
    DropTableAnalysis,
    ListingAnalysis,
    TableBinding,
    TypedExpression,
)
from rowmerge_nb.sql.parser.column_names import name_in_sql
from rowmerge_nb.sql.typed.expressions import Apply, Constant, Typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class CreateTableRun(StatementRun):
    analysis: CreateTableAnalysis

    def work(self) -> None:
        with self.steps.timed("run"):
            self.skipped = self.analysis.exists
            if not self.skipped and not self.options.dry_run:
                check_defined(
                    self, make_table(self, self.analysis, self.change), self.analysis.property_spans
                )


def make_table(
    run: StatementRun, analysis: CreateTableAnalysis, make: Callable[..., object]
) -> TableBinding:
    """Create a table, which becomes the statement's target, and return it without a handle."""
    catalog, _, table = analysis.name
    session, metadata = run.transaction.session, run.transaction.metadata(catalog)
    binding = TableBinding(
        name_in_sql([table]), catalog, analysis.name, analysis.metadata.columns, ""
    )
    run.transaction.target = binding
    replaces = analysis.replaced is not None
    # Connectors that replace no tables need not know the argument.
    mode = {"save_mode": SaveMode.REPLACE} if replaces else {}
    with placed(analysis.property_spans):
        make(
            "create_table",
            lambda: metadata.create_table(session, analysis.metadata, **mode),
            f"{analysis.metadata.name}{', save_mode=REPLACE' if replaces else ''}",
        )
    return binding


def check_defined(
    run: StatementRun, binding: TableBinding, property_spans: Mapping[str, Span]
) -> tuple[CheckConstraint, ...]:
    """Read the CHECK constraints of the table that the statement has made, if its connector shows
    them: none may be wrong.
    """
    session, metadata = run.transaction.session, run.transaction.metadata(binding.catalog)
    handle = (
        metadata.get_table_handle(session, SchemaTableName(*binding.name[1:]))
        if metadata.shows_own_changes
        else None
    )
    if handle is None:
        return ()
    table_metadata = metadata.get_table_metadata(session, handle)
    table = replace(binding, columns=table_metadata.columns, metadata=table_metadata)
    checks, origins, read = run.services.read_constraints(
        table, run.analysis.origins, property_spans.get("check_constraints")
    )
    run.analysis = replace(run.analysis, origins=origins, bindings=(*run.analysis.bindings, *read))
    return checks


@contextmanager
def placed(property_spans: Mapping[str, Span]) -> Iterator[None]:
    """Add the position of a property to an error of the connector, which does not know it."""
    try:
        yield
    except AnalysisError as error:
        span = next(
            (span for name, span in property_spans.items() if name in error.properties), None
        )
        if span is not None and error.line is None:
            error.at(span)
        raise


@dataclass(kw_only=True)
class DropTableRun(StatementRun):
    analysis: DropTableAnalysis

    def work(self) -> None:
        with self.steps.timed("run"):
            self._drop()

    def _drop(self) -> None:
        target = self.analysis.target
        if target is None or self.options.dry_run:
            self.skipped = target is None
            return
        handle = target.handle
        if handle is None:
            raise AnalysisError(
                f"'{target.display}' is a DataFrame of the notebook, not a table",
                code="TABLE_NOT_FOUND",
                line=1,
                column=1,
                hint=f"Use Python to remove it: del {target.name[-1]}",
            )
        self.transaction.target = target
        session, metadata = self.transaction.session, self.transaction.metadata(target.catalog)
        self.change("drop_table", lambda: metadata.drop_table(session, handle), target.qualified)


@dataclass(kw_only=True)
class DefinitionRun(StatementRun):
    """The run of a statement on a view, a schema, or a table as a whole."""

    analysis: DefinitionAnalysis

    def __post_init__(self) -> None:
        self.skipped = self.analysis.skipped

    def work(self) -> None:
        with self.steps.timed("run"):
            if not self.options.dry_run and not self.skipped:
                self._define(*self.analysis.name)

    def _define(self, catalog: str, *rest: str) -> None:
        self.transaction.target = self.analysis.target or TableBinding(
            name_in_sql(rest[-1:]), catalog, self.analysis.name, (), ""
        )
        method, call = self._call(catalog, rest)
        with placed(self.analysis.property_spans):
            self.change(method, call, ".".join(rest), at_once=self._keeps_view(catalog))
        if self.analysis.alteration is not None and not isinstance(
            self.analysis.alteration, RenameTable
        ):
            check_defined(self, self.transaction.target, self.analysis.property_spans)

    def _keeps_view(self, catalog: str) -> bool:
        """Return whether the statement is about a view of the engine, which no transaction guards."""
        is_of_view = (
            self.analysis.view is not None
            or self.analysis.kind == "DROP VIEW"
            or self.analysis.cascades
        )
        return is_of_view and not self.transaction.metadata(catalog).stores_views

    def _call(self, catalog: str, rest: tuple[str, ...]) -> tuple[str, Callable[[], Any]]:
        analysis = self.analysis
        session = self.transaction.session
        metadata = self.transaction.metadata(catalog)
        if analysis.kind == "ALTER VIEW" and analysis.view is not None:
            return "rename_view", partial(
                self.services.views.rename,
                catalog,
                metadata,
                session,
                SchemaTableName(*rest),
                analysis.view,
            )
        if analysis.view is not None:
            return "create_view", partial(
                self.services.views.create, catalog, metadata, session, analysis.view
            )
        if analysis.kind == "DROP VIEW":
            return "drop_view", partial(
                self.services.views.drop, catalog, metadata, session, SchemaTableName(*rest)
            )
        if analysis.kind == "TRUNCATE TABLE":
            handle = analysis.target.handle if analysis.target is not None else None
            if handle is None:
                raise ConnectorError(f"'{'.'.join(analysis.name)}' has no handle")
            return "truncate_table", partial(metadata.truncate_table, session, handle)
        if (
            analysis.alteration is not None
            and analysis.target is not None
            and analysis.target.handle is not None
        ):
            return "alter_table", partial(
                metadata.alter_table, session, analysis.target.handle, analysis.alteration
            )
        if analysis.kind == "CREATE SCHEMA":
            return "create_schema", partial(metadata.create_schema, session, rest[0])
        if analysis.cascades:
            return "drop_schema", partial(self._drop_with_all, catalog, rest[0])
        return "drop_schema", partial(metadata.drop_schema, session, rest[0])

    def _drop_with_all(self, catalog: str, schema: str) -> None:
        session, metadata = self.transaction.session, self.transaction.metadata(catalog)
        for name in self.services.views.names(catalog, metadata, session):
            if name.schema == schema:
                self.services.views.drop(catalog, metadata, session, name)
        for name in metadata.list_tables(session):
            handle = metadata.get_table_handle(session, name) if name.schema == schema else None
            if handle is not None:
                metadata.drop_table(session, handle)
        metadata.drop_schema(session, schema)


@dataclass(kw_only=True)
class ListingRun(StatementRun):
    """The run of a SHOW, whose rows the analyzer has; SET and RESET have none."""

    rehearsable: ClassVar[bool] = True
    analysis: ListingAnalysis

    def work(self) -> None:
        if not self.analysis.columns:
            return
        with self.steps.timed("run"):
            columns = (
                zip(*self.analysis.rows, strict=True)
                if self.analysis.rows
                else ((),) * len(self.analysis.columns)
            )
            fields = [(name, sql_type.arrow) for name, sql_type in self.analysis.columns]
            arrays = [
                pa.array(column, arrow_type)
                for column, (_, arrow_type) in zip(columns, fields, strict=True)
            ]
            self.rows = pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def result(self, trace: Trace) -> Result:
        result = super().result(trace)
        if result.table is not None and self.analysis.kind.startswith("SHOW CREATE"):
            result.explained = str(result.table.column(0)[0])
        return result


@dataclass(kw_only=True)
class CallRun(StatementRun):
    analysis: CallAnalysis

    def work(self) -> None:
        with self.steps.timed("run"):
            if not self.options.dry_run:
                self._call_procedure()

    def _call_procedure(self) -> None:
        procedure = self.analysis.procedure
        values = {
            argument.name: argument.default for argument in procedure.arguments
        } | self._constants(self.analysis.arguments)
        call = partial(procedure.call, self.transaction.session, **values)
        name = f"{procedure.schema}.{procedure.name}"
        arguments = ", ".join(map(repr, values.values()))
        # A procedure has transactions of its own: its changes are permanent, and a failure may
        # leave a part of them.
        self.change(name, call, arguments, at_once=True, catalog=self.analysis.name[0], whole=False)

    def _constants(self, arguments: Mapping[str, TypedExpression]) -> dict[str, Any]:
        plain = {
            name: text.value
            for name, value in arguments.items()
            if (text := _plain(value.tree)) is not None
        }
        others = {name: value for name, value in arguments.items() if name not in plain}
        if not others:
            return plain
        spark = self.services.spark()
        computed = constants(
            spark,
            [value.tree for value in others.values()],
            lambda rows: self.collect(spark, rows, 1),
        )
        return plain | dict(zip(others, computed, strict=True))


def _plain(value: Typed) -> Constant | None:
    if isinstance(value, Apply) and value.name == "cast" and str(value.type) == "varchar":
        return _plain(value.arguments[0])
    return (
        value
        if isinstance(value, Constant) and (value.value is None or value.type.base == "varchar")
        else None
    )
