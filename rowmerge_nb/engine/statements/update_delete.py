"""Running UPDATE and DELETE: the way of MERGE with another plan, and without matches to check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rowmerge_nb.engine.statements.row_change import RowChangeRun
from rowmerge_nb.plan.nodes import Filter, Project, TableScan
from rowmerge_nb.plan.rules import chain, estimated_rows
from rowmerge_nb.plan.update_delete import plan_delete, plan_update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.plan.nodes import Output, PlanNode, Symbol
    from rowmerge_nb.plan.planner import TargetFacts
    from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, UpdateAnalysis

__all__ = ["DeleteRun", "UpdateRun", "WhereRun"]


class WhereRun(RowChangeRun):
    """One statement that changes the rows that a condition chooses."""

    analysis: UpdateAnalysis | DeleteAnalysis

    def _driving(self) -> TableScan:
        return next(node for node in chain(self._plan()) if isinstance(node, TableScan))

    def _sides(self) -> tuple[tuple[tuple[str, Symbol], ...], tuple[tuple[str, Symbol], ...]]:
        read = {symbol.name: symbol for symbol in self._driving().outputs}
        pairs = zip(self.analysis.target.columns, self.analysis.target_fields, strict=True)
        return tuple((column.name, read[field.symbol]) for column, field in pairs if field.symbol in read), ()

    def _sizes(self, account: Account) -> Iterator[tuple[PlanNode, tuple[int | None, ...], int | None]]:
        scan = self._driving()
        rows = estimated_rows(scan)
        for node in chain(self._plan()):
            if isinstance(node, Project):
                yield node, (account.joined,), account.joined
            elif isinstance(node, Filter):
                yield node, (rows,), account.joined
        yield scan, (), rows


@dataclass(kw_only=True)
class UpdateRun(WhereRun):
    """One UPDATE on its way."""

    kind: ClassVar[str] = "UPDATE"
    analysis: UpdateAnalysis

    def _planned(self, facts: TargetFacts) -> Output:
        return plan_update(self.analysis, facts, era=self.options.era)


@dataclass(kw_only=True)
class DeleteRun(WhereRun):
    """One DELETE on its way."""

    kind: ClassVar[str] = "DELETE"
    analysis: DeleteAnalysis

    def _planned(self, facts: TargetFacts) -> Output:
        return plan_delete(self.analysis, facts, era=self.options.era)
