"""Running everything but MERGE: queries, INSERT, CREATE TABLE [AS], DROP TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from rowmerge_nb.engine.catalog.call_log import layout_text
from rowmerge_nb.engine.result import Result
from rowmerge_nb.engine.spark.job import fragments_and_records
from rowmerge_nb.engine.spark.lowering import Context, lower
from rowmerge_nb.engine.statements.account import check_fragments, sum_up
from rowmerge_nb.engine.statements.blame import place_of, place_of_message
from rowmerge_nb.engine.statements.statement import UNKNOWN_SIZE, StatementRun
from rowmerge_nb.engine.tasks.arrow import conform, shown_zones
from rowmerge_nb.errors import AnalysisError, ConnectorError, RowMergeError
from rowmerge_nb.plan.explain import describe
from rowmerge_nb.plan.planner import plan_insert, plan_query
from rowmerge_nb.plan.rules import RuleSettings, apply_rules, is_small, spark_text
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.sql.analyzer.analysis import (
    Analysis,
    CreateTableAnalysis,
    DropTableAnalysis,
    InsertAnalysis,
    QueryAnalysis,
    TableBinding,
)
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from rowmerge_nb.plan.nodes import Output
    from rowmerge_nb.sql.tree.statements import Span

__all__ = ["TableRun"]


@dataclass(kw_only=True)
class TableRun(StatementRun):
    """One statement other than MERGE on its way.

    Args:
        analysis: the statement, resolved.
        settings: sizes that decide which form of a plan is taken.

    Attributes:
        skipped: IF EXISTS or IF NOT EXISTS left everything as it was.
        rows: the rows of a query.
    """

    analysis: Analysis
    settings: RuleSettings = field(default_factory=RuleSettings)
    skipped: bool = False
    rows: pa.Table | None = None

    def work(self) -> Callable[[], None] | None:
        """Run a query, insert up to the finish call, or tell the connector what to make or to drop."""
        analysis = self.analysis
        with self.timed("run"):
            if isinstance(analysis, QueryAnalysis):
                self.rows = self._query(analysis)
            elif isinstance(analysis, InsertAnalysis):
                return self._insert(analysis.target, analysis.spark)
            elif isinstance(analysis, CreateTableAnalysis):
                return self._create(analysis)
            elif isinstance(analysis, DropTableAnalysis):
                self._drop(analysis)
            else:
                msg = f"{type(analysis).__name__} has no runner"
                raise TypeError(msg)
        return None

    def result(self, trace: Trace) -> Result:
        """Give the result, with a query's rows."""
        return Result(trace, self.rows if trace.state == "finished" else None, rehearsed=self.rehearsed)

    def rehearsable(self) -> bool:
        """Whether a rollback leaves nothing of the statement: of one that makes or drops a table that is the connector's affair."""
        made = isinstance(self.analysis, CreateTableAnalysis) and self.analysis.spark is not None
        return made or isinstance(self.analysis, QueryAnalysis | InsertAnalysis)

    def place(self, error: RowMergeError, failure: BaseException) -> None:
        """Say which expression a run-time error comes from."""
        if error.line is None:
            _place(error, failure, self.analysis)

    def _query(self, analysis: QueryAnalysis) -> pa.Table | None:
        import pyarrow as pa

        self.plan = plan_query(analysis)
        if self.options.dry_run:
            return None
        table = self._collect(self.plan)
        columns = [
            shown_zones(conform(column.combine_chunks(), f.type.arrow), f.type)
            for column, f in zip(table.columns, analysis.fields, strict=True)
        ]
        names = [field.name or f"_col{i}" for i, field in enumerate(analysis.fields)]
        return pa.Table.from_arrays(columns, names=names)

    def _collect(self, plan: Output) -> pa.Table:
        self.begin_step("start Spark")
        spark = self.spark()
        self.begin_step("run")
        usual = int(spark.conf.get("spark.sql.shuffle.partitions"))
        self.transaction.scans.make_views(self.analysis.bindings, spark_text(plan))
        context = Context(spark=spark, tables=self.transaction.scans, partitions=usual, writers=usual)
        return self.collect(spark, lower(plan, context), usual if is_small(plan) else usual * UNKNOWN_SIZE)

    def _insert(self, target: TableBinding, spark: str) -> Callable[[], None] | None:
        """Insert up to the finish call, and give what makes that."""
        self.transaction.target = target
        session, log = self.transaction.session, self.transaction.log
        metadata, handle = self.transaction.metadata(target.catalog), target.handle
        if handle is None:
            msg = f"'{target.display}' is a DataFrame of the notebook; rows cannot be inserted into it"
            raise ConnectorError(msg, line=1, column=1)
        layout = log.call("get_insert_layout", lambda: metadata.get_insert_layout(session, handle), layout_text)
        plan = plan_insert(target, spark, self.analysis.text, self.analysis.bindings, layout)
        self.plan = apply_rules(plan, self.settings)
        if self.options.dry_run:
            return None
        columns = self.transaction.scans.own_columns(
            target, [ColumnHandle(column.name, column.type) for column in target.columns]
        )
        insert = log.call("begin_insert", lambda: metadata.begin_insert(session, handle, columns))
        self.transaction.insert_handle = insert
        fragments, records = fragments_and_records(self._collect(self.plan))
        self.account = sum_up(records)
        if self.account.errors:
            raise self.account.errors[0]
        check_fragments(self.account, fragments)
        finish = partial(metadata.finish_insert, session, insert, fragments)
        return partial(self.finish, "finish_insert", fragments, finish)

    def _create(self, analysis: CreateTableAnalysis) -> Callable[[], None] | None:
        """Make a table, and insert into it up to the finish call."""
        if analysis.exists or self.options.dry_run:
            self.skipped = analysis.exists
            return None
        catalog, schema, table = analysis.name
        session, metadata = self.transaction.session, self.transaction.metadata(catalog)
        name = analysis.metadata.name
        binding = TableBinding(table, catalog, f"{catalog}.{schema}.{table}", analysis.metadata.columns, "")
        self.transaction.target = binding
        try:
            self.transaction.log.call(
                "create_table", lambda: metadata.create_table(session, analysis.metadata), lambda _: str(name)
            )
        except RowMergeError as error:
            _place_property(error, analysis.property_spans)
            raise
        if analysis.spark is None:
            return None
        handle = metadata.get_table_handle(session, name)
        known = metadata.get_table_metadata(session, handle) if handle is not None else analysis.metadata
        return self._insert(replace(binding, handle=handle, metadata=known), analysis.spark)

    def _drop(self, analysis: DropTableAnalysis) -> None:
        target = analysis.target
        if target is None or self.options.dry_run:
            self.skipped = target is None
            return
        handle = target.handle
        if handle is None:
            msg = f"'{target.display}' is a DataFrame of the notebook, not a table"
            raise AnalysisError(
                msg, code="TABLE_NOT_FOUND", line=1, column=1, hint=f"Use Python to remove it: del {target.display}"
            )
        self.transaction.target = target
        session, metadata = self.transaction.session, self.transaction.metadata(target.catalog)
        self.transaction.log.call("drop_table", lambda: metadata.drop_table(session, handle), lambda _: target.qualified)

    def _kind(self) -> str:
        if isinstance(self.analysis, CreateTableAnalysis):
            return "CREATE TABLE AS" if self.analysis.spark is not None else "CREATE TABLE"
        kinds = {InsertAnalysis: "INSERT", DropTableAnalysis: "DROP TABLE", QueryAnalysis: "SELECT"}
        return kinds.get(type(self.analysis), "")

    def _name(self) -> tuple[str, str, str]:
        """Give the target's name as written, its full name, and its catalog."""
        analysis = self.analysis
        if isinstance(analysis, CreateTableAnalysis):
            return analysis.name[2], ".".join(analysis.name), analysis.name[0]
        target = analysis.target if isinstance(analysis, InsertAnalysis | DropTableAnalysis) else None
        return (target.display, target.qualified, target.catalog) if target is not None else ("", "", "")

    def trace(self, state: str) -> Trace:
        """Give the trace as far as it is known."""
        account, done = self.account, state == "finished"
        display, qualified, catalog = self._name()
        writes = isinstance(self.analysis, InsertAnalysis) or self._kind() == "CREATE TABLE AS"
        before = self.analysis.target.row_count if isinstance(self.analysis, InsertAnalysis) else None
        return Trace(
            statement=self.analysis.text,
            kind=self._kind(),
            state=state,
            skipped=self.skipped,
            target=display,
            qualified=qualified,
            connector=self.connector,
            catalog=catalog,
            era=str(self.options.era),
            duplicates=self.options.duplicates,
            level=self.options.trace,
            plan=describe(self.plan) if self.plan is not None else (),
            count=(account.counted if account else 0) if done and writes else None,
            rows_before=before,
            rows_after=self.rows_after() if done and writes else None,
            unread=self.unread,
            writers=account.writers if account else (),
            output=self.output if done else None,
            calls=self.calls(),
            notices=self.notice_records(*self.analysis.notices, *self.transaction.notices),
            seconds=dict(self.seconds),
        )


def _place_property(error: RowMergeError, spans: Mapping[str, Span]) -> None:
    """Point at the property that an error speaks of: the connector, which raised it, does not know where it stands."""
    if error.code == "INVALID_TABLE_PROPERTY" and error.line is None:
        span = next((span for name, span in spans.items() if name in error.message), None)
        if span is not None:
            error.line, error.column, error.length = span.line, span.column, span.end - span.start


def _place(error: RowMergeError, failure: BaseException, analysis: Analysis) -> None:
    """Say which expression a run-time error comes from."""
    span = place_of(failure, analysis.placed) or place_of_message(error.code, error.message, analysis.placed)
    if span is None and isinstance(analysis, InsertAnalysis) and analysis.stored is not None:
        span = analysis.stored.span_of(error.code, error.message)
    if span is not None:
        error.line, error.column, error.length = span.line, span.column, span.end - span.start
