"""A volatile value is written once, whatever uses it."""

from __future__ import annotations

import itertools

import pytest

from rowmerge_nb.spi.types import Type, parse_type
from rowmerge_nb.sql.analyzer.analysis import UpdateAnalysis
from rowmerge_nb.sql.functions.overloads import Overload, known, overloads
from rowmerge_nb.sql.functions.signatures import resolve
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.spark.volatile import calls
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.cast_rules import can_cast, is_cast_supported
from tests.sql.support import meaning

KINDS = [
    *(
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "decimal(10,2)",
        "decimal(38,10)",
        "real",
        "double",
    ),
    *(
        "varchar",
        "varchar(5)",
        "char(4)",
        "varbinary",
        "date",
        "time(3)",
        "timestamp(3)",
        "timestamp(3) with time zone",
    ),
    *("interval day to second", "interval year to month", "uuid", "json"),
    *(
        "array(double)",
        "array(varchar)",
        "map(varchar,double)",
        "map(varchar,varchar)",
        "row(a double)",
        "row(b varchar)",
    ),
]
EXAMPLES = {
    "varchar(x)": "varchar",
    "varchar(y)": "varchar",
    "decimal(p,s)": "decimal(10,2)",
    "decimal(q,t)": "decimal(12,3)",
}


def volatile(kind: Type) -> e.Apply:
    """Return the call of a type whose value differs each time."""
    return e.Apply(
        kind, "function", (), Overload("random", (), str(kind), "rand()", variadic=False)
    )


PAIRS = [
    (a, b)
    for a, b in itertools.product(map(parse_type, KINDS), repeat=2)
    if a != b and can_cast(a, b) and is_cast_supported(a, b)
]


@pytest.mark.parametrize("how", [None, "try"])
def test_the_argument_of_a_cast_is_written_once(how: str | None) -> None:
    texts = {(a, b): print_spark(e.Apply(b, "cast", (volatile(a),), how)) for a, b in PAIRS}
    assert {pair for pair, text in texts.items() if calls(text) != 1} == set()
    assert len(texts) > 100


def test_the_argument_of_a_cast_that_stores_is_written_once() -> None:
    a, b = parse_type("varchar"), parse_type("varchar(3)")
    assert calls(print_spark(e.Apply(b, "cast", (volatile(a),), "store"))) == 1


def test_the_arguments_of_every_function_are_written_once() -> None:
    wrong, seen = [], 0
    for overload in itertools.chain.from_iterable(map(overloads, known())):
        patterns = [EXAMPLES.get(pattern, pattern) for pattern in overload.parameters]
        if (
            not patterns
            or not overload.spark
            or "{rows}" in overload.spark
            or any("function" in p for p in patterns)
        ):
            continue
        try:
            kinds = [
                parse_type("".join("bigint" if c.isupper() else c for c in pattern))
                for pattern in patterns
            ]
        except Exception:  # noqa: BLE001 - a pattern that is no type
            continue
        found = resolve(overload.name, kinds)
        if (
            found is None
            or "{rows}" in found.overload.spark
            or any(p.startswith("function") for p in found.overload.parameters)
        ):
            continue
        node = e.Apply(
            found.result, "function", tuple(map(volatile, found.arguments)), found.overload
        )
        text, seen = print_spark(node), seen + 1
        # An argument may be omitted, but never written twice; a volatile function has its own call.
        if calls(text) > len(kinds) + calls(found.overload.spark):
            wrong.append((str(overload), text))
    assert wrong == []
    assert seen > 150


@pytest.mark.not_quick
@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("CASE random(3) WHEN 0 THEN 1 WHEN 1 THEN 2 ELSE 3 END", 1),
        ("CASE WHEN random(3) BETWEEN 1 AND 2 THEN 1 END", 1),
        ("nullif(random(2), 0)", 1),
        ("CAST(CAST(CAST(random() AS varchar) AS double) AS integer)", 1),
        ("try(CAST(CAST(random() AS varchar) AS integer))", 1),
        ("random(5) + 1 - random(4)", 2),
        ("-random(5)", 1),
        ("10 / random(5)", 1),
        ("greatest(random(5), 2)", 1),
        ("ARRAY[1, 2, 3][random(3) + 1]", 1),
        ("CASE WHEN random() IN (1e0, 2e0) OR random() IS DISTINCT FROM 3e0 THEN 1 END", 2),
        ("coalesce(nullif(random(2), 0), random(4))", 2),
        ("if(random() > 5e-1, 1, 2)", 1),
        ("i + 1 - 2 + i + random(5) + 3 + i - 4 + i + 6 + 7 + i + random(9) + 2 + 1 + i + 4", 2),
        (
            "reduce(transform(ARRAY[1], x -> CAST(random() AS integer)), 0, (s, x) -> s + x, s -> s)",
            1,
        ),
        ("random(5) * random(5)", 2),
    ],
)
def test_expressions_written_once_are_evaluated_once(value: str, count: int) -> None:
    found = meaning(f"UPDATE numbers SET i = {value}")
    assert isinstance(found, UpdateAnalysis)
    (tree,) = (value.tree for value in found.clauses[0].values if value is not None)
    assert calls(print_spark(tree)) == count


def test_deterministic_expressions_are_not_bound() -> None:
    kind = parse_type("double")
    column = e.Column(kind, "a")
    assert "$v" not in print_spark(e.Apply(parse_type("varchar"), "cast", (column,)))
