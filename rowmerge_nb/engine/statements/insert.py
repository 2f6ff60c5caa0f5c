"""Running INSERT and CREATE TABLE AS: rows go into a table through page sinks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.engine.catalog.call_log import layout_text
from rowmerge_nb.engine.statements.action import Planned
from rowmerge_nb.engine.statements.definition_calls import check_defined, make_table, placed
from rowmerge_nb.engine.statements.query import stored_fragments
from rowmerge_nb.engine.statements.returning import check_returned, returned_table
from rowmerge_nb.engine.statements.source_answer import answer_source
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.engine.statements.table_turns import await_turn
from rowmerge_nb.plan.planner import plan_insert
from rowmerge_nb.plan.rules import apply_rules
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.sql.analyzer.analysis import CreateTableAnalysis, InsertAnalysis, TableBinding
from rowmerge_nb.sql.parser.column_names import name_in_sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.plan.plan_nodes import Output
    from rowmerge_nb.spi.layout import ConnectorTableLayout
    from rowmerge_nb.sql.analyzer.analysis import CheckConstraint, Returning
    from rowmerge_nb.sql.typed.queries import Query
    from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class InsertRun(StatementRun):
    rehearsable: ClassVar[bool] = True
    changes_rows: ClassVar[bool] = True
    analysis: InsertAnalysis

    def work(self) -> Callable[[], None] | None:
        with self.steps.timed("run"):
            analysis = self.analysis
            return _inserted(
                self, analysis.target, analysis.tree, analysis.returning, analysis.checks
            )

    def wait_for_turn(self) -> None:
        """Wait for the changes that began before this INSERT came to its end."""
        target, transaction = self.analysis.target, self.transaction
        assert target.metadata is not None
        wait = partial(
            transaction.metadata(target.catalog).wait_for_turn,
            transaction.session,
            target.metadata.name,
            appends=True,
        )
        await_turn(wait, transaction.cancelled, "finish_insert", self.options.step)

    def trace(self, state: StatementState) -> Trace:
        is_finished = state is StatementState.FINISHED
        returned = self.rows.num_rows if self.rows is not None and is_finished else None
        trace = super().trace(state)
        rows_before = self.rows_before(self.analysis.target.row_count)
        return replace(
            trace, returned=returned, target=replace(trace.target, rows_before=rows_before)
        )

    def locate(self, error: RowMergeError, failure: BaseException) -> int | None:
        origin = super().locate(error, failure)
        if error.line is None and self.analysis.stored_rows is not None:
            span = self.analysis.stored_rows.span_of(error.code, error.message)
            if span is not None:
                error.at(span)
        return origin


@dataclass(kw_only=True)
class CreateTableAsRun(StatementRun):
    rehearsable: ClassVar[bool] = True
    changes_rows: ClassVar[bool] = True
    analysis: CreateTableAnalysis

    def work(self) -> Callable[[], None] | None:
        analysis = self.analysis
        with self.steps.timed("run"):
            if analysis.exists or self.options.dry_run:
                self.skipped = analysis.exists
                if analysis.tree is not None and not analysis.exists:
                    self.plan = apply_rules(self._planned(analysis.tree), self.services.settings)
                return None
            if self.transaction.metadata(analysis.name[0]).creates_filled_tables:
                return self._created()
            binding = make_table(self, analysis, self.transaction.log.call)
            checks = check_defined(self, binding, analysis.property_spans)
            session, metadata = self.transaction.session, self.transaction.metadata(binding.catalog)
            handle = metadata.get_table_handle(session, analysis.metadata.name)
            table_metadata = (
                metadata.get_table_metadata(session, handle)
                if handle is not None
                else analysis.metadata
            )
            table = replace(binding, handle=handle, metadata=table_metadata)
            assert analysis.tree is not None
            return _inserted(self, table, analysis.tree, checks=checks)

    def _created(self) -> Callable[[], None]:
        analysis, log, session = self.analysis, self.transaction.log, self.transaction.session
        metadata, query = self.transaction.metadata(analysis.name[0]), analysis.tree
        assert query is not None
        self.transaction.target = _new_table(analysis)
        with placed(analysis.property_spans):
            layout = log.call(
                "get_new_table_layout",
                lambda: metadata.get_new_table_layout(session, analysis.metadata),
                gave=layout_text,
            )
            planned = Planned(self._planned(query, layout), self.services.settings)
            self.plan = planned.plan()
            output = log.call(
                "begin_create_table",
                lambda: metadata.begin_create_table(
                    session, analysis.metadata, layout, replace=analysis.replaced is not None
                ),
                str(analysis.metadata.name),
                gave=lambda handle: type(handle).__name__,
            )
        self.transaction.insert_handle = log.handle = output
        answer_source(self, planned)
        fragments = stored_fragments(self, self.plan)
        return partial(
            self.finish,
            "finish_create_table",
            fragments,
            partial(metadata.finish_create_table, session, output, fragments),
        )

    def _planned(self, query: Query, layout: ConnectorTableLayout | None = None) -> Output:
        analysis = self.analysis
        metadata = self.transaction.metadata(analysis.name[0])
        call = "finish_create_table" if metadata.creates_filled_tables else "finish_insert"
        return plan_insert(
            _new_table(analysis), query, analysis.text, analysis.bindings, layout, call=call
        )


def _new_table(analysis: CreateTableAnalysis) -> TableBinding:
    return TableBinding(
        name_in_sql(analysis.name[-1:]),
        analysis.name[0],
        analysis.name,
        tuple(analysis.metadata.columns),
        view="",
        metadata=analysis.metadata,
    )


def _inserted(
    run: StatementRun,
    target: TableBinding,
    query: Query,
    returning: Returning | None = None,
    checks: tuple[CheckConstraint, ...] = (),
) -> Callable[[], None] | None:
    """Insert up to the finish call, and return the function that makes it; None for a dry run."""
    run.transaction.target = target
    session, log = run.transaction.session, run.transaction.log
    metadata, handle = run.transaction.metadata(target.catalog), target.handle
    if handle is None:
        raise ConnectorError(
            f"'{target.display}' is {target.kind}; rows cannot be inserted into it",
            line=1,
            column=1,
        )
    log.handle = handle
    layout = log.call(
        "get_insert_layout", lambda: metadata.get_insert_layout(session, handle), gave=layout_text
    )
    first = plan_insert(
        target, query, run.analysis.text, run.analysis.bindings, layout, returning, checks
    )
    planned = Planned(first, run.services.settings)
    run.plan = planned.plan()
    if run.options.dry_run:
        return None
    omitted = run.transaction.left_to_store(run.analysis)
    check_returned(returning, target, omitted)
    inserted = [
        ColumnHandle(column.name, column.type)
        for column in target.columns
        if column.name not in omitted
    ]
    columns = run.transaction.scans.own_columns(target, inserted)
    insert = log.call("begin_insert", lambda: metadata.begin_insert(session, handle, columns))
    run.transaction.insert_handle = log.handle = insert
    answer_source(run, planned)
    fragments = stored_fragments(run, run.plan)
    assert run.account is not None
    run.rows = returned_table(run.account.returned, returning)
    return partial(
        run.finish,
        "finish_insert",
        fragments,
        partial(metadata.finish_insert, session, insert, fragments),
    )
