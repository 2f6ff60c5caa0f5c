"""Running INSERT and CREATE TABLE AS: rows go into a table through page sinks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.engine.catalog.call_log import layout_text
from rowmerge_nb.engine.spark.job import fragments_and_records
from rowmerge_nb.engine.statements.account import check_fragments, sum_up
from rowmerge_nb.engine.statements.definition_calls import check_defined, make_table
from rowmerge_nb.engine.statements.query import plan_rows
from rowmerge_nb.engine.statements.returning import check_returned, returned_table
from rowmerge_nb.engine.statements.source_answer import answered_plan
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.engine.statements.table_turns import await_turn
from rowmerge_nb.plan.planner import plan_insert
from rowmerge_nb.plan.rules import apply_rules
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.sql.analyzer.analysis import CreateTableAnalysis, InsertAnalysis, TableBinding

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.plan.plan_nodes import Output
    from rowmerge_nb.sql.analyzer.analysis import CheckConstraint, Returning
    from rowmerge_nb.sql.typed.queries import Query
    from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class InsertRun(StatementRun):
    """One INSERT on its way."""

    rehearsable: ClassVar[bool] = True
    changes_rows: ClassVar[bool] = True
    analysis: InsertAnalysis

    def work(self) -> Callable[[], None] | None:
        """Insert up to the finish call."""
        with self.timed("run"):
            analysis = self.analysis
            return _inserted(self, analysis.target, analysis.tree, analysis.returning, analysis.checks)

    def wait_for_turn(self) -> None:
        """Wait for the changes that began before this INSERT came to its end."""
        target, transaction = self.analysis.target, self.transaction
        assert target.metadata is not None
        wait = partial(
            transaction.metadata(target.catalog).wait_for_turn, transaction.session, target.metadata.name, appends=True
        )
        await_turn(wait, transaction.cancelled, "finish_insert", self.options.step)

    def trace(self, state: StatementState) -> Trace:
        """Return the trace as far as it is known."""
        done = state is StatementState.FINISHED
        returned = self.rows.num_rows if self.rows is not None and done else None
        return replace(super().trace(state), rows_before=self.rows_before(self.analysis.target.row_count), returned=returned)

    def locate(self, error: RowMergeError, failure: BaseException) -> None:
        """Describe in an error which expression of the statement it is about, or which of its constants."""
        super().locate(error, failure)
        if error.line is None and self.analysis.stored is not None:
            span = self.analysis.stored.span_of(error.code, error.message)
            if span is not None:
                error.at(span)


@dataclass(kw_only=True)
class CreateTableAsRun(StatementRun):
    """One CREATE TABLE AS on its way."""

    rehearsable: ClassVar[bool] = True
    changes_rows: ClassVar[bool] = True
    analysis: CreateTableAnalysis

    def work(self) -> Callable[[], None] | None:
        """Make the table, and insert into it up to the finish call."""
        analysis = self.analysis
        with self.timed("run"):
            if analysis.exists or self.options.dry_run:
                self.skipped = analysis.exists
                if analysis.tree is not None and not analysis.exists:
                    self.plan = apply_rules(_planned(analysis, analysis.tree), self.settings)
                return None
            binding = make_table(self, analysis, self.transaction.log.call)
            checks = check_defined(self, binding, analysis.property_spans)
            session, metadata = self.transaction.session, self.transaction.metadata(binding.catalog)
            handle = metadata.get_table_handle(session, analysis.metadata.name)
            known = metadata.get_table_metadata(session, handle) if handle is not None else analysis.metadata
            table = replace(binding, handle=handle, metadata=known)
            assert analysis.tree is not None
            return _inserted(self, table, analysis.tree, checks=checks)


def _planned(analysis: CreateTableAnalysis, query: Query) -> Output:
    """Plan what would be written into a table that is not there: no connector has a layout for it yet."""
    table = TableBinding(analysis.name[-1], analysis.name[0], analysis.name, tuple(analysis.metadata.columns), view="")
    return plan_insert(table, query, analysis.text, analysis.bindings)


def _inserted(
    run: StatementRun,
    target: TableBinding,
    query: Query,
    returning: Returning | None = None,
    checks: tuple[CheckConstraint, ...] = (),
) -> Callable[[], None] | None:
    """Insert up to the finish call, and give what makes that.

    Args:
        run: the statement's run.
        target: the table.
        query: the query of the rows, whose columns are the table's.
        returning: what is given back of every row.
        checks: the table's CHECK constraints.
    """
    run.transaction.target = target
    session, log = run.transaction.session, run.transaction.log
    metadata, handle = run.transaction.metadata(target.catalog), target.handle
    if handle is None:
        raise ConnectorError(f"'{target.display}' is {target.kind}; rows cannot be inserted into it", line=1, column=1)
    log.handle = handle
    layout = log.call("get_insert_layout", lambda: metadata.get_insert_layout(session, handle), gave=layout_text)
    plan = plan_insert(target, query, run.analysis.text, run.analysis.bindings, layout, returning, checks)
    run.plan = apply_rules(plan, run.settings)
    if run.options.dry_run:
        return None
    omitted = run.transaction.left_to_store(run.analysis)
    check_returned(returning, target, omitted)
    filled = [ColumnHandle(column.name, column.type) for column in target.columns if column.name not in omitted]
    columns = run.transaction.scans.own_columns(target, filled)
    insert = log.call("begin_insert", lambda: metadata.begin_insert(session, handle, columns))
    run.transaction.insert_handle = log.handle = insert
    if (with_answer := answered_plan(run, plan, run.settings)) is not None:
        run.plan = apply_rules(*with_answer)
    fragments, records = fragments_and_records(plan_rows(run, run.plan))
    run.account = sum_up(records)
    if run.account.errors:
        raise run.account.errors[0]
    check_fragments(run.account, fragments)
    run.rows = returned_table(run.account.returned, returning)
    return partial(run.finish, "finish_insert", fragments, partial(metadata.finish_insert, session, insert, fragments))
