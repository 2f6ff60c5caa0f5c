"""Running UPDATE and DELETE by the older flow: the page source of each split reads, and changes
what it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import MERGE_FLOW, ConnectorError, RowMergeError
from rowmerge_nb.base.next_steps import null_refusal
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.lowering import with_answers
from rowmerge_nb.engine.spark.page_lowering import check_columns, page_expression, page_query
from rowmerge_nb.engine.spark.printed_expressions import answer
from rowmerge_nb.engine.statements.account import Account, check_fragments
from rowmerge_nb.engine.statements.naming import kind_of
from rowmerge_nb.engine.statements.row_change import (
    NodeRows,
    act,
    action_context,
    call_facts,
    checked,
    plan_change,
    plan_of,
    row_change_trace,
    target_handle,
    target_metadata,
)
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.engine.statements.update_delete import shown_columns, target_scan
from rowmerge_nb.engine.tasks.page_program import (
    AssignedColumn,
    PageEvaluator,
    PageProgram,
    PageQuery,
    require_duckdb,
)
from rowmerge_nb.engine.tasks.updatable_pages import SplitPass
from rowmerge_nb.plan.older_flow import QueryJoin, UpdateRows, plan_updatable, updated_columns
from rowmerge_nb.plan.plan_nodes import CheckConstraints, Filter, Project, TableScan
from rowmerge_nb.plan.planner import TargetFacts
from rowmerge_nb.plan.rules import chain, estimated_rows, read_views
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorTableHandle
from rowmerge_nb.spi.operations import Era, RowChangeParadigm
from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, UpdateAnalysis
from rowmerge_nb.sql.duckdb.printer import PagePrinter

if TYPE_CHECKING:
    from rowmerge_nb.base.choices import StatementState
    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.statements.action import PlannedChange
    from rowmerge_nb.trace.error_record import Consequence
    from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class UpdatableRun(StatementRun):
    rehearsable: ClassVar[bool] = True
    changes_rows: ClassVar[bool] = True
    analysis: UpdateAnalysis | DeleteAnalysis
    handle: ConnectorTableHandle | None = None

    @property
    def verb(self) -> str:
        """The verb of the connector's calls: ``begin_update``, ``finish_delete``."""
        return kind_of(self.analysis).lower()

    def work(self) -> Callable[[], None] | None:
        analysis = self.analysis
        planned = plan_change(
            self, analysis, self._facts, lambda facts: plan_updatable(analysis, facts.row_id)
        )
        if self.options.dry_run:
            return None
        self._begin()
        action = act(self, planned, lambda: self._context(planned), self._lowered)
        # There are no sinks whose rows could be counted: page sources change what they read.
        check_fragments(action.account, action.fragments)
        return partial(self._finish, action.fragments)

    # -- steps

    def _facts(self) -> TargetFacts:
        if self.options.paradigm is not None:
            raise ConnectorError(
                "The flow 'updatable' has no row change paradigms: page sources change what they"
                " have read",
                hint="Omit one of the options flow and paradigm.",
            )
        if self.analysis.returning is not None:
            raise ConnectorError(
                "The flow 'updatable' has no RETURNING: its page sources report only"
                " how many rows they changed",
                hint=MERGE_FLOW,
            )
        if not self.options.dry_run:
            require_duckdb()
        method = f"get_{self.verb}_row_id_column_handle"
        metadata = target_metadata(self, self.analysis)
        row_id: ColumnHandle = self._call_about_target(
            method,
            gave=lambda column: f"{column.name} {column.type}",
            check=lambda answer: checked(metadata, method, answer, ColumnHandle),
        )
        # This flow does not use the paradigm.
        return TargetFacts(row_id, RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS, None, None)

    def _call_about_target(
        self,
        method: str,
        arguments_text: str = "",
        *,
        gave: Callable[[Any], str] = lambda _: "",
        check: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        metadata = target_metadata(self, self.analysis)
        arguments = (self.transaction.session, target_handle(self.analysis), *self._updated())
        try:
            return self.transaction.log.call(
                method,
                lambda: check(getattr(metadata, method)(*arguments)),
                arguments_text,
                gave=gave,
            )
        except RowMergeError as error:
            if error.code == "NOT_SUPPORTED" and error.hint is None:
                error.hint = MERGE_FLOW
            raise

    def _updated(self) -> tuple[tuple[ColumnHandle, ...], ...]:
        """Return the last argument of an UPDATE's calls, in the connector's own handles; a DELETE
        has none.
        """
        if not isinstance(self.analysis, UpdateAnalysis):
            return ()
        return (
            tuple(
                self.transaction.scans.own_columns(
                    self.analysis.target, updated_columns(self.analysis)
                )
            ),
        )

    def _check_program(self) -> None:
        program, scan = self._program(), target_scan(plan_of(self))
        empty = pa.schema(
            [pa.field(symbol.name, symbol.type.arrow) for symbol in scan.data_outputs]
        ).empty_table()
        answers = [query.no_answer for query in program.queries]
        evaluator = PageEvaluator(program, answers)
        try:
            evaluator.check(
                pa.RecordBatch.from_arrays(
                    [column.combine_chunks() for column in empty.columns], schema=empty.schema
                )
            )
        finally:
            evaluator.close()

    def _begin(self) -> None:
        """Begin; afterwards splits and page sources get the connector's new handle."""
        method, log = f"begin_{self.verb}", self.transaction.log
        self.steps.current, log.handle = method, target_handle(self.analysis)
        self._check_program()
        self.begin_step(method)
        column_names = ", ".join(column.name for columns in self._updated() for column in columns)
        with self.steps.timed(method):
            handle = self._call_about_target(method, column_names)
        self.handle = log.handle = checked(
            target_metadata(self, self.analysis), method, handle, ConnectorTableHandle
        )

    def _context(self, planned: PlannedChange) -> LoweringContext:
        scan = target_scan(plan_of(self))
        return action_context(
            self, planned.settings, estimated_rows(scan), shown_columns(self.analysis, scan)
        )

    @interrupts_afterwards()
    def _lowered(self, context: LoweringContext) -> Any:
        self.begin_step("run")
        plan, scan = plan_of(self), target_scan(plan_of(self))
        if self.handle is None:
            raise ValueError("The statement has not begun")
        self.transaction.scans.make_views(self.analysis.bindings, read_views(plan))
        provider, transaction, splits, columns = self.transaction.scans.opened_splits(
            scan, self.handle
        )
        rows, carried_rows = self.transaction.scans.split_rows(splits)
        task = SplitPass(
            provider=provider,
            transaction=transaction,
            session=self.transaction.session,
            table=self.handle,
            splits=() if carried_rows else splits,
            carries_splits=carried_rows,
            columns=tuple(columns),
            symbols=tuple(symbol.name for symbol in scan.data_outputs),
            program=self._program(),
            channels=next(
                (node.channels for node in chain(plan) if isinstance(node, UpdateRows)), ()
            ),
            table_columns=tuple(
                pa.field(column.name, column.type.arrow) for column in self.analysis.target.columns
            ),
            per_clause=context.per_clause,
            witness=context.witness,
            keeping=context.keeping,
        )
        rows = with_answers(rows, len(splits), self.sql(), self.transaction.scans)
        return self.transaction.scans.outcome_of(rows, task)

    def _queries(self) -> list[QueryJoin]:
        return [node for node in chain(plan_of(self)) if isinstance(node, QueryJoin)][::-1]

    def sql(self) -> Sequence[str]:
        return (
            [answer(node.query, node.symbol.name) for node in self._queries()]
            if self.plan is not None
            else []
        )

    def _program(self) -> PageProgram:
        """Print what the plan computes on pages, in the order of the planner, so that queries get
        the same names.
        """
        nodes = chain(plan_of(self))
        where = next((node for node in nodes if isinstance(node, Filter)), None)
        printer = PagePrinter([field.symbol for field in self.analysis.target_fields])
        printed = (
            None if where is None else page_expression(where.predicate, printer, condition=True)
        )
        return PageProgram(
            printed, self._assigned(printer), self._page_queries(), checks=self._checks()
        )

    def _checks(self) -> tuple[AssignedColumn, ...]:
        checking = next(
            (node for node in chain(plan_of(self)) if isinstance(node, CheckConstraints)), None
        )
        pairs = zip(self.analysis.target.columns, self.analysis.target_fields, strict=True)
        return (
            ()
            if checking is None
            else check_columns(
                checking.checks, {column.name: field.symbol for column, field in pairs}
            )
        )

    def _assigned(self, printer: PagePrinter) -> tuple[AssignedColumn, ...]:
        project = next((node for node in chain(plan_of(self)) if isinstance(node, Project)), None)
        update = next((node for node in chain(plan_of(self)) if isinstance(node, UpdateRows)), None)
        if project is None or update is None:
            return ()
        # Channel 0 is the row id; the assignments follow in their order.
        names = dict(zip(update.channels, (column.name for column in update.columns), strict=False))
        assigned_values = {
            names[channel]: assignment.value
            for channel, assignment in enumerate(project.assignments, 1)
        }
        columns = {
            column.name: column
            for column in self.analysis.target.columns
            if column.name in assigned_values
        }
        # Subqueries are numbered in the order of the table's columns, values are in the order of
        # the statement.
        printed = {
            name: page_expression(assigned_values[name], printer, condition=False)
            for name in columns
        }
        return tuple(
            AssignedColumn(
                name,
                columns[name].type.arrow,
                printed[name],
                None if columns[name].nullable else null_refusal(name, "INVALID_ARGUMENTS"),
            )
            for name in assigned_values
        )

    def _page_queries(self) -> tuple[PageQuery, ...]:
        return tuple(page_query(node.symbol.name, node.query) for node in self._queries())

    def _finish(self, fragments: list[bytes]) -> None:
        method = f"finish_{self.verb}"
        session = self.transaction.session
        metadata = target_metadata(self, self.analysis)
        handle = self.handle
        self.finish(
            method, fragments, lambda: getattr(metadata, method)(session, handle, fragments)
        )

    # -- account

    def trace(self, state: StatementState) -> Trace:
        trace = row_change_trace(self, self.analysis, super().trace(state), self._sizes)
        settings = replace(trace.settings, flow=Flow.UPDATABLE, era=str(Era.DOCUMENTS))
        return replace(trace, settings=settings)

    def facts(self) -> list[Consequence]:
        return call_facts(self, self.verb, "page source")

    def _sizes(self, account: Account) -> Iterator[NodeRows]:
        for node in chain(plan_of(self)):
            if isinstance(node, Project | CheckConstraints):
                yield node, (account.joined,), account.joined
            elif isinstance(node, Filter):
                yield node, (account.read,), account.joined
            elif isinstance(node, QueryJoin):
                yield node, (account.read,), account.read
            elif isinstance(node, TableScan):
                yield node, (), account.read
