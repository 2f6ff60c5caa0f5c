"""The plan of a statement on its way through the rules, and the outcome of its one Spark action."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.plan.carried import mark_carried
from rowmerge_nb.plan.rules import RuleSettings, apply_rules

if TYPE_CHECKING:
    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.plan.plan_nodes import Output
    from rowmerge_nb.plan.planner import TargetFacts


@dataclass(frozen=True)
class Planned:
    """A plan before the rules, with what they need.

    Args:
        read_columns: columns of the target that count as read though no expression below the
            writer reads them; None for an INSERT.
    """

    first: Output
    settings: RuleSettings
    read_columns: frozenset[str] | None = None

    def plan(self) -> Output:
        plan = apply_rules(self.first, self.settings)
        return plan if self.read_columns is None else mark_carried(plan, self.read_columns)


@dataclass(frozen=True, kw_only=True)
class PlannedChange(Planned):
    facts: TargetFacts

    def whole(self) -> Output:
        return apply_rules(self.first, whole_rows(self.settings))


@dataclass(frozen=True)
class Action:
    context: LoweringContext
    account: Account
    fragments: list[bytes]
    planned: PlannedChange | None = None


def whole_rows(settings: RuleSettings) -> RuleSettings:
    """Return settings under which all columns of the target are read, because old rows are shown
    whole.
    """
    return replace(settings, off=settings.off | {"prune_target_columns", "prune_updatable_scan"})
