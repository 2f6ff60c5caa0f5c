"""Reduction of a scenario that shows a difference: fewer rows, fewer clauses, simpler expressions,
usual settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from proof.statements.model import (
    Call,
    Cast,
    Expression,
    InsertAction,
    MergeStatement,
    Scenario,
    Settings,
    Statement,
    Table,
    UpdateAction,
    UpdateStatement,
)

__all__ = ["reduced"]


def reduced(scenario: Scenario, still: Callable[[Scenario], bool], tries: int = 100) -> Scenario:
    """Return a smaller scenario that also satisfies ``still``.

    Args:
        scenario: a scenario that satisfies ``still``.
        still: whether a scenario shows the same difference.
        tries: the maximum number of calls of ``still``.

    >>> from proof.statements.scenarios import numbered_scenario
    >>> scenario = next(made for made in (numbered_scenario(1, n) for n in range(99)) if len(made.target.rows) > 5)
    >>> len(reduced(scenario, lambda smaller: len(smaller.target.rows) > 0).target.rows)
    1
    """
    smaller_exists = True
    while smaller_exists:
        smaller_exists = False
        for candidate in _smaller(scenario):
            if tries <= 0:
                return scenario
            tries -= 1
            if still(candidate):
                scenario, smaller_exists = candidate, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield scenarios reduced by one element, the largest reductions first."""
    for position, table in enumerate(scenario.tables):
        for fewer in _fewer_rows(table):
            yield replace(
                scenario,
                tables=(*scenario.tables[:position], fewer, *scenario.tables[position + 1 :]),
            )
    for statement in _smaller_statements(scenario.statement):
        yield replace(scenario, statement=statement)
    usual = Settings()
    for name in ("partitioned_by", "bucketed_by", "trace", "rules", "era", "paradigm"):
        if getattr(scenario.settings, name) != getattr(usual, name):
            changed: dict[str, Any] = {name: getattr(usual, name)}
            yield replace(scenario, settings=replace(scenario.settings, **changed))


def _fewer_rows(table: Table) -> Iterator[Table]:
    rows = table.rows
    if len(rows) > 3:
        half = len(rows) // 2
        yield replace(table, rows=rows[:half])
        yield replace(table, rows=rows[half:])
    for position in range(len(rows)):
        yield replace(table, rows=rows[:position] + rows[position + 1 :])


def _smaller_statements(statement: Statement) -> Iterator[Statement]:
    if isinstance(statement, MergeStatement):
        clauses = statement.clauses
        for position in range(len(clauses)):
            rest = (clauses[:position], clauses[position + 1 :])
            if len(clauses) > 1:
                yield replace(statement, clauses=rest[0] + rest[1])
            for condition in _smaller_conditions(clauses[position].condition):
                yield replace(
                    statement,
                    clauses=(*rest[0], replace(clauses[position], condition=condition), *rest[1]),
                )
            for action in _smaller_actions(clauses[position].action):
                yield replace(
                    statement,
                    clauses=(*rest[0], replace(clauses[position], action=action), *rest[1]),
                )
        for on in _smaller_expressions(statement.on):
            yield replace(statement, on=on)
        return
    for where in _smaller_conditions(statement.where):
        yield replace(statement, where=where)
    if isinstance(statement, UpdateStatement):
        for action in _smaller_actions(UpdateAction(statement.assignments)):
            yield replace(statement, assignments=action.assignments)


def _smaller_conditions(condition: Expression | None) -> Iterator[Expression | None]:
    if condition is not None:
        yield None
        yield from _smaller_expressions(condition)


def _smaller_actions(action: Any) -> Iterator[Any]:
    """Yield actions with one assignment less, or with a simpler value."""
    if isinstance(action, UpdateAction):
        for position, assignment in enumerate(action.assignments):
            before, after = action.assignments[:position], action.assignments[position + 1 :]
            if before or after:
                yield UpdateAction(before + after)
            for value in _smaller_expressions(assignment.value):
                yield UpdateAction((*before, replace(assignment, value=value), *after))
    elif isinstance(action, InsertAction):
        for position, old_value in enumerate(action.values):
            first, last = action.values[:position], action.values[position + 1 :]
            if action.columns is not None and (first or last):
                yield InsertAction(
                    action.columns[:position] + action.columns[position + 1 :], first + last
                )
            for value in _smaller_expressions(old_value):
                yield InsertAction(action.columns, (*first, value, *last))


def _smaller_expressions(expression: Expression) -> Iterator[Expression]:
    """Yield parts of an expression; engines reject those of another type."""
    if isinstance(expression, Cast):
        yield expression.argument
    if not isinstance(expression, Call):
        return
    yield from expression.arguments
    for position, argument in enumerate(expression.arguments):
        for smaller in _smaller_expressions(argument):
            yield Call(
                expression.name,
                (*expression.arguments[:position], smaller, *expression.arguments[position + 1 :]),
            )
