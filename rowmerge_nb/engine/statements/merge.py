"""Running a MERGE: the join, repeated matches, RETURNING, and the sinks that store the rows of the
clauses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain as chained
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import DuplicateMatchError
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.lowering import lower
from rowmerge_nb.engine.spark.lowering_context import LoweringContext
from rowmerge_nb.engine.statements.account import Account, check_fragments
from rowmerge_nb.engine.statements.duplicates import duplicate_error, groups_of, two_versions
from rowmerge_nb.engine.statements.merge_sinks import (
    ask_target,
    begin_merge,
    check_stored,
    finish_merge,
    lowered,
)
from rowmerge_nb.engine.statements.returning import check_returned, returned_table
from rowmerge_nb.engine.statements.row_change import (
    Named,
    NodeRows,
    act,
    action_context,
    call_facts,
    counted,
    plan_change,
    plan_of,
    row_change_trace,
)
from rowmerge_nb.engine.statements.source_answer import answer_source, answered_node
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.plan.plan_nodes import (
    CheckConstraints,
    DuplicateCheck,
    Join,
    MarkDistinct,
    PlanNode,
    Project,
    SemiJoin,
    Symbol,
    TableScan,
)
from rowmerge_nb.plan.planner import plan_merge
from rowmerge_nb.plan.rules import chain, join_of, joined_rows
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.typed.expressions import references
from rowmerge_nb.trace.clause_record import ClauseRecord
from rowmerge_nb.trace.node_records import JoinType
from rowmerge_nb.trace.notice_record import CHANGED_TWICE, NoticeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.engine.statements.action import Action, PlannedChange
    from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
    from rowmerge_nb.trace.error_record import Consequence
    from rowmerge_nb.trace.join_record import DuplicateGroup
    from rowmerge_nb.trace.trace import Trace


@dataclass(kw_only=True)
class MergeRun(StatementRun):
    rehearsable: ClassVar[bool] = True
    changes_rows: ClassVar[bool] = True
    analysis: MergeAnalysis

    def work(self) -> Callable[[], None] | None:
        analysis, planned = self.analysis, self.planned()
        if self.options.dry_run:
            return None
        check_returned(
            analysis.returning, analysis.target, self.transaction.left_to_store(analysis)
        )
        begin_merge(self, analysis)
        planned = answer_source(self, planned)
        action = act(self, planned, lambda: self.context(planned), partial(lowered, self))
        self._check_duplicates(action, planned)
        check_fragments(action.account, action.fragments)
        check_stored(analysis, action.account, planned.facts.paradigm)
        self.observers.after_checks(self, action)
        self.rows = returned_table(action.account.returned, analysis.returning)
        return partial(finish_merge, self, analysis, action.fragments)

    # -- steps

    def planned(self) -> PlannedChange:
        analysis, options = self.analysis, self.options
        return plan_change(
            self,
            analysis,
            partial(ask_target, self, analysis),
            lambda facts: plan_merge(analysis, facts, era=options.era, rule=options.duplicates),
        )

    def context(self, planned: PlannedChange) -> LoweringContext:
        join = self._join()
        fields = {f.symbol: f.name for f in self.analysis.source.fields}
        source = _named([s for s in join.right.outputs if s.name in fields], fields)
        targets, sources = (
            frozenset(chained.from_iterable(references(pair[side]) for pair in join.equalities))
            for side in (0, 1)
        )
        return action_context(
            self,
            planned.settings,
            joined_rows(join),
            self._target_symbols(),
            source,
            (targets, sources),
        )

    def _target_symbols(self) -> Named:
        pairs = zip(self.analysis.target.columns, self.analysis.target_fields, strict=True)
        return tuple((column.name, Symbol(field.symbol, field.type)) for column, field in pairs)

    def _check_duplicates(self, action: Action, planned: PlannedChange) -> None:
        account = action.account
        if account.failing:
            if not action.context.witness:
                account.witnesses = self._diagnose(account, action.context, planned.whole())
            raise duplicate_error(account, self.analysis, self.options.duplicates)

    def _diagnose(
        self, account: Account, context: LoweringContext, whole: PlanNode
    ) -> list[pa.RecordBatch]:
        """Fetch both sides' values of the duplicates, which rows of large statements do not carry."""
        self.begin_step("fetch the rows matched more than once")
        from pyspark.sql import functions as F  # noqa: N812

        node = next(node for node in chain(whole) if isinstance(node, MarkDistinct))
        witnessed = replace(context, witness=True, target=self._target_symbols())
        with interrupts_afterwards():
            duplicates = lower(node.source, witnessed).where(
                F.col("unique_id").isin(account.failing[:20])
            )
            rows = duplicates.select("unique_id", "case_number", "row_id", "`$witness`")
        pages = self.collect(context.spark, rows, context.partitions).combine_chunks().to_batches()
        names = ["unique_id", "case_number", "row_id", "witness"]
        return [
            pa.RecordBatch.from_arrays(
                [*page.columns[:3], conform(page.column(3), witnessed.witness_type)], names=names
            )
            for page in pages
        ]

    # -- account

    def trace(self, state: StatementState) -> Trace:
        trace = row_change_trace(self, self.analysis, super().trace(state), self._sizes)
        account, is_finished = self.account, state is StatementState.FINISHED
        counts = account if account is not None and (is_finished or account.has_counts) else None
        groups = (
            groups_of(account, self.analysis, failing=not is_finished)
            if account is not None
            else ()
        )
        added = tuple((column.name, str(column.type)) for column in self.analysis.added)
        no_clause = counted(ClauseRecord(-1, Operation.NONE, None, "", 0, None), counts)
        return replace(
            trace,
            clauses=(*trace.clauses, no_clause),
            returned=self.rows.num_rows if self.rows is not None and is_finished else None,
            target=replace(
                trace.target,
                added_columns=added,
                type_changes=self.analysis.type_changes,
                filled_columns=tuple(c.name for c in self.analysis.target.columns if c.filled),
            ),
            join=replace(
                trace.join,
                unmatched_target_rows=(
                    counts.unmatched_rows if counts and self._join().type is JoinType.FULL else None
                ),
                source_rows=self._source_rows(),
                duplicate_groups=groups,
            ),
            notices=trace.notices
            + (self._warning(account, groups) if account is not None and is_finished else ()),
        )

    def _warning(
        self, account: Account, groups: tuple[DuplicateGroup, ...]
    ) -> tuple[NoticeRecord, ...]:
        if not account.warning:
            return ()
        count = sum(pattern.rows for pattern in account.patterns if pattern.acting > 1)
        return (
            NoticeRecord(
                two_versions(groups, count, self.analysis, rehearsed=self.options.rehearse),
                kind=CHANGED_TWICE,
            ),
        )

    def locate(self, error: RowMergeError, failure: BaseException) -> int | None:
        if not isinstance(error, DuplicateMatchError):
            return super().locate(error, failure)
        if error.line is None and error.groups:
            numbers = {source.case_number for source in error.groups[0].sources}
            clauses = [clause for clause in self.analysis.clauses if clause.number in numbers]
            error.at(clauses[-1].span if clauses else self.analysis.on.span)
        return None

    def facts(self) -> list[Consequence]:
        return call_facts(self, "merge", "sink")

    def _source_rows(self) -> int | None:
        node = answered_node(self.plan)
        binding = self.analysis.source.binding if node is None else node.table
        return binding.row_count if binding is not None else None

    def _sizes(self, account: Account) -> Iterator[NodeRows]:
        join, source_rows = self._join(), self._source_rows()
        for node in chain(plan_of(self)):
            if isinstance(node, MarkDistinct | DuplicateCheck | CheckConstraints) or (
                isinstance(node, Project) and node not in chain(join)
            ):
                yield node, (account.joined,), account.joined
        target_rows = self.analysis.target.row_count
        # A connector does not report how many rows it skips by a constraint.
        pruned = any(
            isinstance(inner, SemiJoin)
            or (isinstance(inner, TableScan) and inner.constraint.domains)
            for inner in chain(join.left)
        )
        yield join, (None if pruned else target_rows, source_rows), account.joined
        for inner in chain(join.right):
            yield inner, (source_rows,) if inner.sources else (), source_rows
        for inner in chain(join.left):
            scan = not inner.sources
            yield (
                inner,
                () if scan else (target_rows if not pruned else None,),
                target_rows if scan or not pruned else None,
            )

    def _join(self) -> Join:
        join = join_of(plan_of(self))
        assert join is not None
        return join


def _named(symbols: Sequence[Symbol], names: Mapping[str, str | None]) -> Named:
    labels = [names.get(symbol.name) or symbol.name for symbol in symbols]
    return tuple(
        (label if labels.count(label) == 1 else s.name, s)
        for label, s in zip(labels, symbols, strict=True)
    )
