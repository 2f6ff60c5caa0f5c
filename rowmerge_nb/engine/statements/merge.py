"""Running a MERGE: what it has beside other statements that change rows, the join and the duplicates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from rowmerge_nb.engine.spark.lowering import Context, lower
from rowmerge_nb.engine.statements.account import Account
from rowmerge_nb.engine.statements.duplicates import duplicate_error, groups_of, two_versions
from rowmerge_nb.engine.statements.returning import returned_table
from rowmerge_nb.engine.statements.row_change import RowChangeRun
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.plan.nodes import (
    DuplicateCheck,
    Join,
    MarkDistinct,
    PlanNode,
    Project,
    SemiJoin,
    Symbol,
    TableScan,
)
from rowmerge_nb.plan.planner import TargetFacts, plan_merge
from rowmerge_nb.plan.rules import chain, estimated_rows, joined_rows
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.trace.nodes import JoinType
from rowmerge_nb.trace.trace import CHANGED_TWICE, ClauseRecord, NoticeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rowmerge_nb.plan.nodes import Output
    from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.trace.trace import DuplicateGroup

__all__ = ["MergeRun"]


@dataclass(kw_only=True)
class MergeRun(RowChangeRun):
    """One MERGE on its way."""

    kind: ClassVar[str] = "MERGE"
    analysis: MergeAnalysis

    def _planned(self, facts: TargetFacts) -> Output:
        return plan_merge(self.analysis, facts, era=self.options.era, rule=self.options.duplicates)

    def _driving(self) -> PlanNode:
        return self._join().right

    def _returned(self, account: Account) -> pa.Table | None:
        return returned_table(account.returned, self.analysis.returning)

    def _flowing(self) -> int | None:
        return joined_rows(self._join())

    def _is_full(self) -> bool:
        return self._join().type is JoinType.FULL

    def _sides(self) -> tuple[tuple[tuple[str, Symbol], ...], tuple[tuple[str, Symbol], ...]]:
        fields = {f.symbol: f.name for f in self.analysis.source.fields}
        return self._target_symbols(), _named([s for s in self._join().right.outputs if s.name in fields], fields)

    def _target_symbols(self) -> tuple[tuple[str, Symbol], ...]:
        pairs = zip(self.analysis.target.columns, self.analysis.target_fields, strict=True)
        return tuple((column.name, Symbol(field.symbol, field.type)) for column, field in pairs)

    def _check(self, account: Account, context: Context, whole: Callable[[], PlanNode]) -> None:
        super()._check(account, context, whole)
        if account.failing:
            if not context.witness:
                account.witnesses = self._diagnose(account, context, whole())
            raise duplicate_error(account, self.analysis, self.options.duplicates)

    def _diagnose(self, account: Account, context: Context, whole: PlanNode) -> list[pa.RecordBatch]:
        """Fetch both sides' values of the duplicates: rows of large statements do not carry them."""
        self.begin_step("fetch the rows matched more than once")
        from pyspark.sql import functions as F  # noqa: N812

        node = next(node for node in chain(whole) if isinstance(node, MarkDistinct))
        witnessed = replace(context, witness=True, target=self._target_symbols())
        wanted = lower(node.source, witnessed).where(F.col("unique_id").isin(account.failing[:20]))
        rows = wanted.select("unique_id", "case_number", "row_id", "`$witness`")
        pages = self.collect(context.spark, rows, context.partitions).combine_chunks().to_batches()
        names = ["unique_id", "case_number", "row_id", "witness"]
        return [
            pa.RecordBatch.from_arrays([*page.columns[:3], conform(page.column(3), witnessed.witness_type)], names=names)
            for page in pages
        ]

    def _groups(self, account: Account, *, failing: bool) -> tuple[DuplicateGroup, ...]:
        return groups_of(account, self.analysis, failing=failing)

    def _warning(self, groups: tuple[DuplicateGroup, ...], *, done: bool) -> tuple[NoticeRecord, ...]:
        if not done or self.account is None or not self.account.warning:
            return ()
        count = sum(pattern.rows for pattern in self.account.patterns if pattern.acting > 1)
        return (NoticeRecord(two_versions(groups, count, self.analysis), kind=CHANGED_TWICE),)

    def _unmatched_span(self) -> Span:
        return self.analysis.on.span

    def _source_rows(self) -> int | None:
        binding = self.analysis.source.binding
        return binding.row_count if binding is not None else None

    def _uncounted_clauses(self) -> list[ClauseRecord]:
        return [*super()._uncounted_clauses(), ClauseRecord(-1, Operation.NONE, None, "", 0, None)]

    def _sizes(self, account: Account) -> Iterator[tuple[PlanNode, tuple[int | None, ...], int | None]]:
        join, source_rows = self._join(), self._source_rows()
        for node in chain(self._plan()):
            if isinstance(node, MarkDistinct | DuplicateCheck) or (isinstance(node, Project) and node not in chain(join)):
                yield node, (account.joined,), account.joined
        left = estimated_rows(join.left)
        # How much of the table a connector leaves out by a constraint is not told.
        pruned = any(
            isinstance(inner, SemiJoin) or (isinstance(inner, TableScan) and inner.constraint.domains)
            for inner in chain(join.left)
        )
        yield join, (None if pruned else left, source_rows), account.joined
        for inner in chain(join.right):
            yield inner, (source_rows,) if inner.sources else (), source_rows
        for inner in chain(join.left):
            scan = not inner.sources
            yield inner, () if scan else (left if not pruned else None,), left if scan or not pruned else None

    def _join(self) -> Join:
        return next(node for node in chain(self._plan()) if isinstance(node, Join))


def _named(symbols: Sequence[Symbol], names: Mapping[str, str | None]) -> tuple[tuple[str, Symbol], ...]:
    """Give symbols under the names that people know them by; where a name is missing or not unique, under the symbol itself."""
    known = [names.get(symbol.name) or symbol.name for symbol in symbols]
    return tuple((name if known.count(name) == 1 else s.name, s) for name, s in zip(known, symbols, strict=True))
