"""Random scenarios: tables, a statement on them, and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from proof.oracle.oracle import predict
from proof.statements.expressions import ASSIGNABLE, Expressions, random_type, random_value
from proof.statements.model import (
    Aggregate,
    Assignment,
    Call,
    Cast,
    Clause,
    Column,
    ColumnDefinition,
    DeleteAction,
    DeleteStatement,
    Expression,
    GroupSource,
    InsertAction,
    Literal,
    MergeStatement,
    QuerySource,
    Row,
    Scenario,
    Settings,
    Source,
    Table,
    TableSource,
    UpdateAction,
    UpdateStatement,
    ValuesSource,
)
from rowmerge_nb.spi.types import BIGINT, INTEGER, VARCHAR

__all__ = ["KINDS", "numbered_scenario", "random_scenario"]

KINDS: Final = ("MERGE", "UPDATE", "DELETE")
"""The kinds of statement."""

TRIES: Final = 3
TARGET_ALIAS: Final = "t"
SOURCE_ALIAS: Final = "s"


def numbered_scenario(seed: int, number: int, kinds: Sequence[str] = KINDS) -> Scenario:
    """Return a scenario of a series, determined by seed and number alone.

    Several are tried, since many random statements do nothing: the first one predicted to change a
    row, or sometimes to fail, is returned.

    >>> numbered_scenario(7, 1) == numbered_scenario(7, 1)
    True
    """
    random = Random(f"{seed} {number}")  # noqa: S311 - nothing is secret here
    for _ in range(TRIES):
        scenario = random_scenario(random, kinds)
        predicted = predict(scenario)
        if predicted.count or (predicted.errors and _one_in(random, 3)):
            break
    return scenario


def random_scenario(random: Random, kinds: Sequence[str] = KINDS) -> Scenario:
    """Return a scenario of one of the kinds ``MERGE``, ``UPDATE`` and ``DELETE``."""
    # A MERGE has more features than the others.
    statement_kind = random.choice([*kinds, *(["MERGE"] * 4 if "MERGE" in kinds else [])])
    target = _table(random, "target", is_target=True)
    tables = (target, _table(random, "changes", is_target=False))
    settings = _settings(random, target)
    if statement_kind == "MERGE":
        return Scenario(tables, _merge(random, tables), settings)
    scope = tuple((target.name, column) for column in target.columns)
    expressions = Expressions(random, scope, tables if _one_in(random, 3) else ())
    where = None if _one_in(random, 8) else expressions.condition()
    if statement_kind == "DELETE":
        return Scenario(tables, DeleteStatement(target.name, where), settings)
    return Scenario(
        tables, UpdateStatement(target.name, _assignments(expressions, target), where), settings
    )


def _one_in(random: Random, number: int) -> bool:
    return random.randint(1, number) == number


def _sample(random: Random, items: Sequence[Any], most: int) -> list[Any]:
    """Draw at least one of several items, in any order."""
    return random.sample(list(items), random.randint(1, min(most, len(items))))


# -- tables


def _table(random: Random, name: str, *, is_target: bool) -> Table:
    """Draw a table: two keys, and up to four columns of any type."""
    columns = [
        ColumnDefinition("k", INTEGER),
        ColumnDefinition("k2", random.choice([VARCHAR, INTEGER, BIGINT])),
    ]
    for letter in "abcd"[: random.randint(1, 4)]:
        nullable = not (is_target and _one_in(random, 10))
        columns.append(ColumnDefinition(letter, random_type(random), nullable))
    if is_target and _one_in(random, 3):
        random.shuffle(columns)
    rows = _rows(random, columns, 0 if _one_in(random, 12) else random.randint(1, 8))
    if not _one_in(random, 3):
        # Mostly one row per key: repeated matches end a MERGE with an error.
        at = next(position for position, column in enumerate(columns) if column.name == "k")
        rows = tuple({row[at]: row for row in rows}.values())
    return Table(name, tuple(columns), rows)


def _rows(random: Random, columns: Sequence[ColumnDefinition], count: int) -> tuple[Row, ...]:
    return tuple(tuple(_cell(random, column) for column in columns) for _ in range(count))


def _cell(random: Random, column: ColumnDefinition) -> Any:
    """Draw a value of a column: keys from a small set, so that they match; sometimes NULL."""
    if column.nullable and _one_in(random, 7):
        return None
    if column.name == "k":
        return random.randint(1, 8)
    if column.name == "k2":
        return (
            random.choice(("a", "b", "")) if column.type.base == "varchar" else random.randint(1, 3)
        )
    return random_value(random, column.type)


def _settings(random: Random, target: Table) -> Settings:
    # Doubles are no partition keys: -0.0 and 0.0 are equal.
    placing = [column.name for column in target.columns if column.type.base != "double"]
    place_columns = tuple(_sample(random, placing, 2))
    storage = random.choice(["none", "none", "partitioned", "bucketed"])
    return Settings(
        paradigm=random.choice(["DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS"]),
        era=random.choice(["documents", "current"]),
        duplicates=random.choice(["trino", "standard"]),
        trace=random.choice(["auto", "off"]),
        partitioned_by=place_columns if storage == "partitioned" else (),
        bucketed_by=place_columns if storage == "bucketed" else (),
        rules=not _one_in(random, 4),
    )


# -- MERGE


def _merge(random: Random, tables: tuple[Table, ...]) -> MergeStatement:
    target = tables[0]
    source = _source(random, tables)
    of_target = tuple((TARGET_ALIAS, column) for column in target.columns)
    of_source = tuple((SOURCE_ALIAS, column) for column in source.columns)
    read = tables if _one_in(random, 4) else ()
    both = Expressions(random, of_target + of_source, read)
    inserting = Expressions(random, of_source, read)
    clauses = [_clause(random, both, inserting, target) for _ in range(random.randint(1, 5))]
    if not _one_in(random, 6):
        clauses = _reachable(clauses, both, inserting)
    return MergeStatement(
        target.name, TARGET_ALIAS, source, _on(random, both, source), tuple(clauses)
    )


def _reachable(clauses: list[Clause], both: Expressions, inserting: Expressions) -> list[Clause]:
    """Add conditions to clauses that would hide later ones, which Trino accepts and most others
    reject.
    """
    result = []
    for number, clause in enumerate(clauses):
        hides = clause.condition is None and any(
            later.matched is clause.matched for later in clauses[number + 1 :]
        )
        expressions = both if clause.matched else inserting
        result.append(replace(clause, condition=expressions.condition()) if hides else clause)
    return result


def _on(random: Random, both: Expressions, source: Source) -> Expression:
    """Draw an ON condition, including those with special join strategies."""
    key = Call("=", (Column(TARGET_ALIAS, "k"), Column(SOURCE_ALIAS, "k")))
    null_safe = Call("IS NOT DISTINCT FROM", key.arguments)
    target_k2 = next(
        column for relation, column in both.scope if (relation, column.name) == (TARGET_ALIAS, "k2")
    )
    like_k2 = [c.name for c in source.columns if c.name != "k" and _like(c, target_k2)]
    second = (
        Call("=", (Column(TARGET_ALIAS, "k2"), Column(SOURCE_ALIAS, random.choice(like_k2))))
        if like_k2
        else null_safe
    )
    both_keys = Call("AND", (key, second))
    form = random.choice(
        ["key"] * 4
        + ["both"] * 3
        + ["residual"] * 2
        + ["shifted", "safe", "range", "constant", "or", "any"]
    )
    uncorrelated = Expressions(random, both.scope, both.tables, correlated=False)
    if form == "residual":
        return Call("AND", (random.choice([key, both_keys]), uncorrelated.condition(1)))
    if form == "shifted":
        amount = Literal(random.randint(-1, 1), INTEGER)
        return Call(
            "=", (Call("+", (Column(TARGET_ALIAS, "k"), amount)), Column(SOURCE_ALIAS, "k"))
        )
    if form == "safe":
        return random.choice((null_safe, Call("AND", (null_safe, second))))
    if form == "range":
        return Call(random.choice(["<", ">=", "<>"]), key.arguments)
    if form == "constant":
        return uncorrelated.literal("boolean")
    if form == "or":
        return Call("OR", (key, uncorrelated.condition(1)))
    if form == "any":
        return uncorrelated.condition()
    return both_keys if form == "both" else key


def _like(one: ColumnDefinition, other: ColumnDefinition) -> bool:
    """Return whether columns can be compared for equality."""
    numbers = {"integer", "bigint"}
    return one.type.base == other.type.base or {one.type.base, other.type.base} <= numbers


def _clause(random: Random, both: Expressions, inserting: Expressions, target: Table) -> Clause:
    action_kind = random.choice(["UPDATE", "UPDATE", "DELETE", "INSERT", "INSERT"])
    expressions = inserting if action_kind == "INSERT" else both
    condition = None if _one_in(random, 3) else expressions.condition()
    if action_kind == "UPDATE":
        return Clause(condition, UpdateAction(_assignments(both, target)))
    if action_kind == "DELETE":
        return Clause(condition, DeleteAction())
    listed = None if _one_in(random, 3) else _some(random, target)
    insert_columns = listed if listed is not None else target.columns
    values = tuple(_value(inserting, column) for column in insert_columns)
    return Clause(
        condition,
        InsertAction(
            None if listed is None else tuple(column.name for column in insert_columns), values
        ),
    )


def _some(random: Random, target: Table) -> tuple[ColumnDefinition, ...]:
    """Draw columns in any order, mostly with the NOT NULL ones."""
    columns = _sample(random, target.columns, len(target.columns))
    if not _one_in(random, 4):
        columns = [
            *columns,
            *(column for column in target.columns if not column.nullable and column not in columns),
        ]
    return tuple(columns)


def _assignments(expressions: Expressions, target: Table) -> tuple[Assignment, ...]:
    columns = _sample(expressions.random, target.columns, 3)
    return tuple(Assignment(column.name, _value(expressions, column)) for column in columns)


def _value(expressions: Expressions, column: ColumnDefinition) -> Expression:
    """Draw an assigned value, mostly not NULL if the column is NOT NULL."""
    if _one_in(expressions.random, 10):
        return Literal(None, column.type, bare=True)
    value = expressions.of(expressions.random.choice(ASSIGNABLE[column.type.base]))
    if column.nullable or _one_in(expressions.random, 6):
        return value
    return Call(
        "COALESCE",
        (
            expressions.of(column.type.base),
            Literal(random_value(expressions.random, column.type), column.type),
        ),
    )


# -- sources


def _source(random: Random, tables: tuple[Table, ...]) -> Source:
    table = random.choice([tables[1]] * 4 + [tables[0]])
    form = random.choice(["table", "table", "table", "query", "query", "group", "values"])
    if form == "table":
        # Both sides may be the same table, which is read in its old state.
        return TableSource(
            table.name, SOURCE_ALIAS, tuple(ColumnDefinition(c.name, c.type) for c in table.columns)
        )
    if form == "query":
        return _query(random, table, tables)
    if form == "group":
        return _group(random, table)
    columns = (
        ColumnDefinition("k", INTEGER),
        *(ColumnDefinition(name, random_type(random)) for name in "abc"[: random.randint(1, 3)]),
    )
    return ValuesSource(SOURCE_ALIAS, columns, _rows(random, columns, random.randint(1, 6)))


def _query(random: Random, table: Table, tables: tuple[Table, ...]) -> QuerySource:
    scope = tuple((table.name, column) for column in table.columns)
    expressions = Expressions(random, scope, tables if _one_in(random, 4) else ())
    columns = [ColumnDefinition("k", INTEGER)]
    expressions_list: list[Expression] = [Column(table.name, "k")]
    for column in _sample(random, [c for c in table.columns if c.name != "k"], 3):
        columns.append(ColumnDefinition(column.name, column.type))
        plain = _one_in(random, 2)
        expressions_list.append(
            Column(table.name, column.name) if plain else _typed(expressions, column)
        )
    where = None if _one_in(random, 2) else expressions.condition(1)
    return QuerySource(
        table.name,
        SOURCE_ALIAS,
        tuple(columns),
        tuple(expressions_list),
        where,
        doubled=_one_in(random, 6),
    )


def _typed(expressions: Expressions, column: ColumnDefinition) -> Expression:
    """Draw an expression and cast it to exactly the column's type, except decimals, which may not
    fit.
    """
    if column.type.base == "decimal":
        return Column(
            next(
                relation for relation, scope_column in expressions.scope if scope_column is column
            ),
            column.name,
        )
    return Cast(expressions.of(column.type.base, 1), column.type)


def _group(random: Random, table: Table) -> GroupSource:
    others = [column for column in table.columns if column.name != "k"]
    # Not all engines have a maximum of booleans.
    measured = [column for column in others if column.type.base != "boolean"]
    keys = [table.column("k"), *(_sample(random, others, 1) if _one_in(random, 3) else [])]
    columns = [ColumnDefinition(key.name, key.type) for key in keys]
    aggregates = []
    for column in _sample(random, measured, 2):
        if column in keys:
            continue
        function = random.choice(["max", "min", "count"])
        aggregates.append(Aggregate(function, column.name))
        columns.append(
            ColumnDefinition(column.name, BIGINT if function == "count" else column.type)
        )
    return GroupSource(
        table.name, SOURCE_ALIAS, tuple(columns), tuple(key.name for key in keys), tuple(aggregates)
    )
