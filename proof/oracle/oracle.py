"""MERGE, UPDATE and DELETE one row at a time, in plain Python: the reference for the engine.

It follows the text of the SQL standard (ISO/IEC 9075-2, "merge statement") and of Trino's developer
guide ("Supporting MERGE"), and shares no code with the engine: statements are data, not text, and
rows are tuples.

The two texts differ on source rows that match the same target row; both rules are implemented:

``standard``
    A target row that more than one source row would *change* is an error. Source rows for which no
    clause fires do not count.
``trino``
    "In each MERGE case, a single target table row must match at most one source row": a repeated
    pair of target row and case number is an error, and "no case" (−1) is such a number. Different
    clauses may change one target row; each update then leaves its version of the row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from proof.oracle.evaluation import OutOfRangeError, aggregate, coerce, evaluate, rows_in_scope
from proof.statements.model import (
    DeleteAction,
    InsertAction,
    Literal,
    MergeStatement,
    QuerySource,
    TableSource,
    UpdateAction,
    UpdateStatement,
    ValuesSource,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from proof.statements.model import (
        Assignment,
        Clause,
        DeleteStatement,
        Expression,
        GroupSource,
        Row,
        Scenario,
        Source,
    )

__all__ = ["DUPLICATE", "NOT_NULL", "OUT_OF_RANGE", "Outcome", "multiset", "predict", "source_rows"]

DUPLICATE: Final = "duplicate"
"""More than one source row matched a target row."""
NOT_NULL: Final = "not null"
"""NULL was assigned to a column that is NOT NULL."""
OUT_OF_RANGE: Final = "out of range"
"""A value does not fit its column."""

NO_CASE: Final = -1


@dataclass(frozen=True)
class Outcome:
    """The outcome of a statement, predicted or actual.

    Args:
        rows: the target's rows afterwards, each with its number of copies; None after an error.
        count: rows changed; None after an error.
        errors: the possible classes of error, since engines may process rows in any order. An
            actual outcome has at most one. Empty if the statement succeeds.
        message: an engine's error message.
    """

    rows: frozenset[tuple[Row, int]] | None
    count: int | None
    errors: frozenset[str] = frozenset()
    message: str = field(default="", compare=False)


def multiset(rows: Iterable[Row]) -> frozenset[tuple[Row, int]]:
    """Return rows with their numbers of copies.

    >>> sorted(multiset([(1,), (2,), (1,)]))
    [((1,), 2), ((2,), 1)]
    """
    return frozenset(Counter(rows).items())


def predict(scenario: Scenario, rule: str | None = None) -> Outcome:
    """Return the predicted outcome of a statement.

    Args:
        scenario: the statement and its tables.
        rule: ``standard`` or ``trino``, for duplicates; None for that of the scenario's settings.
    """
    statement = scenario.statement
    work = _Work(scenario)
    if isinstance(statement, MergeStatement):
        rows, count = _merge(work, statement, rule or scenario.settings.duplicates)
    elif isinstance(statement, UpdateStatement):
        rows, count = _update(work, statement)
    else:
        rows, count = _delete(work, statement)
    if work.errors:
        return Outcome(None, None, frozenset(work.errors))
    return Outcome(multiset(rows), count)


@dataclass
class _Work:
    """A running statement; errors are collected, since engines may meet any of them first."""

    scenario: Scenario
    errors: set[str] = field(default_factory=set)

    def true(self, condition: Expression | None, row: Mapping[tuple[str, str], Any]) -> bool:
        """Return whether a condition is TRUE or absent."""
        return condition is None or evaluate(condition, row, self.scenario) is True

    def stored(self, column: str, value: Expression, row: Mapping[tuple[str, str], Any]) -> Any:
        """Return the value of an expression as its column stores it."""
        definition = self.scenario.target.column(column)
        try:
            result = coerce(evaluate(value, row, self.scenario), definition.type)
        except OutOfRangeError:
            self.errors.add(OUT_OF_RANGE)
            return None
        if result is None and not definition.nullable:
            self.errors.add(NOT_NULL)
        return result

    def assigned(
        self, assignments: Sequence[Assignment], old: Row, row: Mapping[tuple[str, str], Any]
    ) -> Row:
        """Return the new version of a row; expressions see the old one."""
        new = {
            assignment.column: self.stored(assignment.column, assignment.value, row)
            for assignment in assignments
        }
        return tuple(
            new.get(name, value)
            for name, value in zip(self.scenario.target.names, old, strict=True)
        )

    def inserted(self, action: InsertAction, row: Mapping[tuple[str, str], Any]) -> Row:
        """Return a new row; unlisted columns become NULL."""
        target = self.scenario.target
        columns = action.columns or target.names
        null = {name: Literal(None, target.column(name).type) for name in target.names}
        values = null | dict(zip(columns, action.values, strict=True))
        return tuple(self.stored(name, values[name], row) for name in target.names)


def source_rows(source: Source, scenario: Scenario) -> list[Row]:
    """Return the rows of a MERGE's source."""
    if isinstance(source, TableSource):
        return list(scenario.table(source.table).rows)
    if isinstance(source, ValuesSource):
        return list(source.rows)
    table = scenario.table(source.table)
    if isinstance(source, QuerySource):
        rows = [row for row in rows_in_scope(table) if _Work(scenario).true(source.where, row)]
        scopes = [
            tuple(
                coerce(evaluate(value, row, scenario), column.type)
                for value, column in zip(source.values, source.columns, strict=True)
            )
            for row in rows
        ]
        return scopes * 2 if source.doubled else scopes
    return _grouped(source, scenario)


def _grouped(source: GroupSource, scenario: Scenario) -> list[Row]:
    table = scenario.table(source.table)
    positions = [table.names.index(key) for key in source.keys]
    groups: dict[Row, list[Row]] = {}
    for row in table.rows:
        groups.setdefault(tuple(row[i] for i in positions), []).append(row)
    return [
        key
        + tuple(
            aggregate(a.function, [row[table.names.index(a.column)] for row in rows])
            for a in source.aggregates
        )
        for key, rows in groups.items()
    ]


def _merge(work: _Work, statement: MergeStatement, rule: str) -> tuple[list[Row], int]:
    scenario = work.scenario
    target = scenario.target
    names = [column.name for column in statement.source.columns]
    no_target = {(statement.alias, name): None for name in target.names}
    # Per target row, the case number and the row in scope for each matching source row.
    matches: dict[int, list[tuple[int, Mapping[tuple[str, str], Any]]]] = {}
    inserts: list[Row] = []
    for values in source_rows(statement.source, scenario):
        source = {
            (statement.source.alias, name): value for name, value in zip(names, values, strict=True)
        }
        matched = False
        for number, old in enumerate(target.rows):
            of_target = {
                (statement.alias, name): value
                for name, value in zip(target.names, old, strict=True)
            }
            both = of_target | source
            if work.true(statement.on, both):
                matched = True
                matches.setdefault(number, []).append(
                    (_case_number(work, statement.clauses, both, matched=True), both)
                )
        if not matched:
            case = _case_number(work, statement.clauses, no_target | source, matched=False)
            if case != NO_CASE:
                action = statement.clauses[case].action
                assert isinstance(action, InsertAction)
                inserts.append(work.inserted(action, no_target | source))
    rows: list[Row] = []
    count = len(inserts)
    for number, old in enumerate(target.rows):
        acting = [(case, row) for case, row in matches.get(number, ()) if case != NO_CASE]
        _check_duplicates(work, [case for case, _ in matches.get(number, ())], rule)
        count += len(acting)
        rows += [] if acting else [old]
        for case, row in acting:
            action = statement.clauses[case].action
            if isinstance(action, UpdateAction):
                rows.append(work.assigned(action.assignments, old, row))
            else:
                assert isinstance(action, DeleteAction)
    return rows + inserts, count


def _case_number(
    work: _Work, clauses: Sequence[Clause], row: Mapping[tuple[str, str], Any], *, matched: bool
) -> int:
    """Return the number of the first clause whose condition is TRUE, or -1."""
    fitting = (
        n
        for n, clause in enumerate(clauses)
        if clause.matched is matched and work.true(clause.condition, row)
    )
    return next(fitting, NO_CASE)


def _check_duplicates(work: _Work, cases: list[int], rule: str) -> None:
    acting = [case for case in cases if case != NO_CASE]
    repeated = len(acting) > 1 if rule == "standard" else len(set(cases)) < len(cases)
    # A store that changes single columns cannot hold two versions of a row; the result would depend
    # on order.
    versions = len(acting) > 1 and work.scenario.settings.paradigm == "CHANGE_ONLY_UPDATED_COLUMNS"
    if repeated or versions:
        work.errors.add(DUPLICATE)


def _update(work: _Work, statement: UpdateStatement) -> tuple[list[Row], int]:
    target = work.scenario.target
    rows: list[Row] = []
    count = 0
    for old, row in zip(target.rows, rows_in_scope(target), strict=True):
        if work.true(statement.where, row):
            rows.append(work.assigned(statement.assignments, old, row))
            count += 1
        else:
            rows.append(old)
    return rows, count


def _delete(work: _Work, statement: DeleteStatement) -> tuple[list[Row], int]:
    target = work.scenario.target
    pairs = zip(target.rows, rows_in_scope(target), strict=True)
    rest = [old for old, row in pairs if not work.true(statement.where, row)]
    return rest, len(target.rows) - len(rest)
