"""The plan of a MERGE as EXPLAIN prints it: like Trino 483, with numbers for the rows of both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rowmerge_nb.plan.plan_nodes import (
    Assignment,
    AssignUniqueId,
    Join,
    MarkDistinct,
    MergeProcessor,
    Output,
    PlanNode,
    Project,
    Symbol,
)
from rowmerge_nb.plan.planner import UNIQUE_ID
from rowmerge_nb.plan.rules import chain, rewritten
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.page import CASE_NUMBER
from rowmerge_nb.spi.types import BIGINT
from rowmerge_nb.sql.typed.expressions import Apply, Column

SOURCE_UNIQUE_ID: Final = "source_unique_id"
_NUMBER: Final = Symbol(UNIQUE_ID, BIGINT)
_OF_TARGET: Final = Symbol("target_unique_id", BIGINT)
_OF_SOURCE: Final = Symbol(SOURCE_UNIQUE_ID, BIGINT)


def number_both_sides(plan: Output) -> Output:
    """Return a plan in which the source's rows have numbers beside the target's.

    Trino 483 takes the number of either side, so that a row without a target row is distinct by its
    own number. What is executed here has the target's numbers alone: a row without one is distinct.
    """
    nodes = chain(plan)
    has_numbers = any(isinstance(node, MarkDistinct) for node in nodes) and any(
        isinstance(node, MergeProcessor) and node.layout.era is Era.CURRENT for node in nodes
    )
    return rewritten(plan, _with_numbers) if has_numbers else plan


def _with_numbers(node: PlanNode) -> PlanNode:
    if isinstance(node, AssignUniqueId):
        return replace(node, outputs=_renamed(node), symbol=_OF_TARGET)
    if isinstance(node, Join):
        source = AssignUniqueId(
            id=f"{node.right.id}u",
            outputs=(*node.right.outputs, _OF_SOURCE),
            source=node.right,
            symbol=_OF_SOURCE,
        )
        return replace(node, right=source, outputs=(*_renamed(node), _OF_SOURCE))
    if not isinstance(node, Project) or _NUMBER not in node.outputs:
        return node
    if node.case is not None:
        others = tuple(symbol for symbol in node.outputs if symbol != _NUMBER)
        return replace(node, outputs=(*others, _OF_SOURCE, _OF_TARGET))
    if all(assignment.symbol.name != CASE_NUMBER for assignment in node.assignments):
        return replace(node, outputs=_renamed(node))
    either = Apply(
        BIGINT, "coalesce", (Column(BIGINT, _OF_TARGET.name), Column(BIGINT, SOURCE_UNIQUE_ID))
    )
    text = f"COALESCE({_OF_TARGET.name}, {SOURCE_UNIQUE_ID})"
    return replace(node, assignments=(Assignment(_NUMBER, either, text), *node.assignments))


def _renamed(node: PlanNode) -> tuple[Symbol, ...]:
    return tuple(_OF_TARGET if symbol == _NUMBER else symbol for symbol in node.outputs)
