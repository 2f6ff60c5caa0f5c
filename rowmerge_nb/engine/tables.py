"""Running everything but MERGE: queries, INSERT, CREATE TABLE [AS], DROP TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowmerge_nb.engine.action import fragments_and_records
from rowmerge_nb.engine.blame import place_of, place_of_message
from rowmerge_nb.engine.edge import conform, shown_zones
from rowmerge_nb.engine.lowering import Context, lower
from rowmerge_nb.engine.recorder import sum_up
from rowmerge_nb.engine.statement_run import UNKNOWN_SIZE, StatementRun, error_record
from rowmerge_nb.engine.trace import Trace
from rowmerge_nb.engine.transaction import layout_text
from rowmerge_nb.errors import AnalysisError, ConnectorError, RowMergeError
from rowmerge_nb.plan.explain import describe
from rowmerge_nb.plan.planner import plan_insert, plan_query
from rowmerge_nb.plan.rules import RuleSettings, apply_rules, is_small, spark_text
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.sql.analysis import (
    Analysis,
    CreateTableAnalysis,
    DropTableAnalysis,
    InsertAnalysis,
    QueryAnalysis,
    TableBinding,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from rowmerge_nb.plan.nodes import Output
    from rowmerge_nb.sql.statements import Span

__all__ = ["TableRun"]


@dataclass(kw_only=True)
class TableRun(StatementRun):
    """One statement other than MERGE on its way.

    Args:
        analysis: the statement, resolved.
        settings: sizes that decide which form of a plan is taken.

    Attributes:
        skipped: IF EXISTS or IF NOT EXISTS left everything as it was.
    """

    analysis: Analysis
    settings: RuleSettings = field(default_factory=RuleSettings)
    skipped: bool = False

    def run(self) -> tuple[Trace, pa.Table | None]:
        """Run the statement; give its trace and, of a query, its rows.

        Raises:
            RowMergeError: it failed and nothing was changed; ``failure`` of this object is the trace of the attempt.
        """
        try:
            with self.timed("run"):
                rows = self._run()
            if self.options.dry_run:
                self.transaction.rollback()
                return self._trace("planned"), None
            self.begin_step("commit")
            self.transaction.commit()
        except BaseException as failure:
            error = self.error_of(failure, "run")
            if error.line is None:
                _place(error, failure, self.analysis)
            fact = self.roll_back()
            self.failure = replace(self._trace("failed"), error=error_record(error, (fact,)))
            raise error from failure
        # From here on the change is there, whatever happens while it is told.
        return self._trace("finished"), rows

    def _run(self) -> pa.Table | None:
        analysis = self.analysis
        if isinstance(analysis, QueryAnalysis):
            return self._query(analysis)
        if isinstance(analysis, InsertAnalysis):
            self._insert(analysis.target, analysis.spark)
        elif isinstance(analysis, CreateTableAnalysis):
            self._create(analysis)
        elif isinstance(analysis, DropTableAnalysis):
            self._drop(analysis)
        else:
            msg = f"{type(analysis).__name__} has no runner"
            raise TypeError(msg)
        return None

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
        self.transaction.make_views(self.analysis.bindings, spark_text(plan))
        context = Context(spark=spark, tables=self.transaction, partitions=usual, writers=usual)
        return self.collect(spark, lower(plan, context), usual if is_small(plan) else usual * UNKNOWN_SIZE)

    def _insert(self, target: TableBinding, spark: str) -> None:
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
            return
        columns = self.transaction.own_columns(target, [ColumnHandle(column.name, column.type) for column in target.columns])
        insert = log.call("begin_insert", lambda: metadata.begin_insert(session, handle, columns))
        self.transaction.insert_handle = insert
        fragments, records = fragments_and_records(self._collect(self.plan))
        self.account = sum_up(records)
        if self.account.errors:
            raise self.account.errors[0]
        self.finish("finish_insert", fragments, lambda: metadata.finish_insert(session, insert, fragments))

    def _create(self, analysis: CreateTableAnalysis) -> None:
        if analysis.exists or self.options.dry_run:
            self.skipped = analysis.exists
            return
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
            return
        handle = metadata.get_table_handle(session, name)
        known = metadata.get_table_metadata(session, handle) if handle is not None else analysis.metadata
        self._insert(replace(binding, handle=handle, metadata=known), analysis.spark)

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

    def _trace(self, state: str) -> Trace:
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
            rows_after=self.row_count() if done and writes else None,
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
