"""Running what makes or removes views and schemas, TRUNCATE, SHOW, and CALL: calls of connectors alone.

Spark is needed for arguments of CALL only, and of them for those that are not plain constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rowmerge_nb.engine.result import Result
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.sql.analyzer.analysis import CallAnalysis, DefinitionAnalysis, ListingAnalysis, TableBinding, TypedExpression
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.typed.expressions import Apply, Constant, Typed
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from rowmerge_nb.engine.catalog.views import Views

__all__ = ["DefinitionRun"]


@dataclass(kw_only=True)
class DefinitionRun(StatementRun):
    """One such statement on its way.

    Args:
        analysis: the statement, resolved.
        views: where views are kept.
    """

    analysis: DefinitionAnalysis | ListingAnalysis | CallAnalysis
    views: Views

    def work(self) -> None:
        """Make the connector's call."""
        with self.timed("run"):
            self._run()

    def result(self, trace: Trace) -> Result:
        """Give the result: of SHOW with its rows, and of SHOW CREATE with the statement as a text."""
        rows = self._listed() if trace.state == "finished" else None
        text = str(rows.column(0)[0]) if rows is not None and self.analysis.kind.startswith("SHOW CREATE") else None
        return Result(trace, rows, text)

    def rehearsable(self) -> bool:
        """Whether a rollback leaves nothing of the statement."""
        return isinstance(self.analysis, ListingAnalysis)

    def _run(self) -> None:
        analysis = self.analysis
        if isinstance(analysis, ListingAnalysis) or self.options.dry_run:
            return
        if isinstance(analysis, CallAnalysis):
            self._call_procedure(analysis)
            return
        catalog, *rest = analysis.name
        if analysis.skipped:
            return
        self.transaction.target = TableBinding(rest[-1], catalog, analysis.name, (), "")
        method, call = self._call(analysis, catalog, rest)
        self.transaction.log.call(method, call, lambda _: ".".join(rest))

    def _call(self, analysis: DefinitionAnalysis, catalog: str, rest: list[str]) -> tuple[str, Callable[[], Any]]:
        """Give the method of the contract that the statement comes to, and what calls it."""
        session, metadata = self.transaction.session, self.transaction.metadata(catalog)
        if analysis.view is not None:
            return "create_view", partial(self.views.create, catalog, metadata, session, analysis.view)
        if analysis.kind == "DROP VIEW":
            return "drop_view", partial(self.views.drop, catalog, metadata, session, SchemaTableName(*rest))
        if analysis.kind == "TRUNCATE TABLE":
            handle = analysis.target.handle if analysis.target is not None else None
            if handle is None:
                msg = f"'{'.'.join(analysis.name)}' has no handle"
                raise ConnectorError(msg)
            return "truncate_table", partial(metadata.truncate_table, session, handle)
        if analysis.kind == "CREATE SCHEMA":
            return "create_schema", partial(metadata.create_schema, session, rest[0])
        return "drop_schema", partial(metadata.drop_schema, session, rest[0])

    def _call_procedure(self, analysis: CallAnalysis) -> None:
        procedure = analysis.procedure
        values = {argument.name: argument.default for argument in procedure.arguments} | self._constants(analysis.given)
        call = partial(procedure.call, self.transaction.session, **values)
        self.transaction.log.call(f"{procedure.schema}.{procedure.name}", call, lambda _: ", ".join(map(repr, values.values())))

    def _constants(self, given: Mapping[str, TypedExpression]) -> dict[str, Any]:
        """Give the values of expressions that read no rows; Spark computes them all at once."""
        plain = {name: text.value for name, value in given.items() if (text := _plain(value.tree)) is not None}
        others = {name: value for name, value in given.items() if name not in plain}
        if not others:
            return plain
        texts = [f"{print_spark(value.tree)} AS `{place}`" for place, value in enumerate(others.values())]
        columns = self.collect(self.spark(), self.spark().sql(f"SELECT {', '.join(texts)}"), 1).columns
        found = [conform(c.combine_chunks(), v.type.arrow)[0].as_py() for c, v in zip(columns, others.values(), strict=True)]
        return plain | dict(zip(others, found, strict=True))

    def _listed(self) -> pa.Table | None:
        if not isinstance(self.analysis, ListingAnalysis):
            return None
        import pyarrow as pa

        columns = zip(*self.analysis.rows, strict=True) if self.analysis.rows else ((),) * len(self.analysis.columns)
        return pa.Table.from_arrays([pa.array(column, pa.string()) for column in columns], names=list(self.analysis.columns))

    def trace(self, state: str) -> Trace:
        """Give the trace as far as it is known."""
        analysis = self.analysis
        name = analysis.name if isinstance(analysis, DefinitionAnalysis | CallAnalysis) else ()
        return Trace(
            statement=analysis.text,
            kind=analysis.kind,
            state=state,
            skipped=isinstance(analysis, DefinitionAnalysis) and analysis.skipped,
            target=name[-1] if name else "",
            qualified=".".join(name),
            connector=self.connector,
            catalog=name[0] if name else "",
            era=str(self.options.era),
            duplicates=self.options.duplicates,
            level=self.options.trace,
            calls=self.calls(),
            notices=self.notice_records(*analysis.notices, *self.transaction.notices),
            seconds=dict(self.seconds),
        )


def _plain(value: Typed) -> Constant | None:
    """Give a value that is a text, or NULL, as it was written; None for all others."""
    if isinstance(value, Apply) and value.name == "cast" and str(value.type) == "varchar":
        return _plain(value.arguments[0])
    return value if isinstance(value, Constant) and (value.value is None or value.type.base == "varchar") else None
