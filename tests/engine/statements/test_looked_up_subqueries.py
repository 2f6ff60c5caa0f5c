"""Correlated subqueries and IN, which tasks look up by keys, have the answers of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowmerge_nb import Engine, ExecutionError
from tests.engine.statements.pages.test_both_ways import COLUMNS, NULLS, ROWS

pytestmark = pytest.mark.spark

KEYS = [
    "b",
    "ti",
    "i",
    "k",
    "r",
    "x",
    "n",
    "w",
    "v",
    "f",
    "c",
    "u",
    "y",
    "d",
    "tm",
    "ts",
    "t3",
    "tz",
]
BY_SPARK = frozenset({"change_in_task"})
STATEMENTS = [
    "DELETE FROM t WHERE {}",
    "UPDATE t SET n = 100 WHERE {}",
    "UPDATE t SET n = CASE WHEN {} THEN 1 WHEN n > 2 THEN 2 END",
]
CONDITIONS = [
    "EXISTS (SELECT 1 FROM s WHERE s.k = t.k)",
    "NOT EXISTS (SELECT n FROM s WHERE s.k = t.k AND s.n > 10)",
    "NOT EXISTS (SELECT 1 FROM s WHERE t.w = s.w AND s.k = t.k)",
    "EXISTS (SELECT 1 FROM s WHERE s.x IS NOT DISTINCT FROM t.x AND s.w IS NOT DISTINCT FROM t.w)",
    "EXISTS (SELECT 1 FROM s JOIN s o ON s.k = o.k WHERE s.w = t.w LIMIT 1)",
    "(k, w) IN (SELECT k, w FROM s)",
    "(k, w) NOT IN (SELECT k, w FROM s)",
    "k IN (SELECT k FROM s)",
    "k NOT IN (SELECT k FROM s)",
    "k NOT IN (SELECT k FROM s WHERE k IS NOT NULL)",
    "k NOT IN (SELECT k FROM s WHERE k > 100)",
    "(k IN (SELECT k FROM s)) IS NULL",
    "k IN (SELECT k FROM s) OR w IN (SELECT w FROM s WHERE n > 10)",
    "EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.n > t.n)",
    "EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.n > t.n + 9.5)",
    "NOT EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.w <> t.w)",
    "EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND (s.w < t.w OR t.w IS NULL) AND s.n > 10)",
    "NOT EXISTS (SELECT 1 FROM s WHERE s.w IS NOT DISTINCT FROM t.w AND s.x < t.x)",
    "EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.k > 100 AND s.n > t.n)",
    "w IN (SELECT s.w FROM s WHERE s.k = t.k)",
    "w NOT IN (SELECT s.w FROM s WHERE s.k = t.k)",
    "w NOT IN (SELECT s.w FROM s WHERE s.k = t.k AND s.n > 100)",
    "(w IN (SELECT s.w FROM s WHERE s.k = t.k)) IS NULL",
    "(w IN (SELECT DISTINCT s.w FROM s WHERE s.k = t.k AND s.n > 10)) IS NULL",
    "n NOT IN (SELECT s.n FROM s WHERE s.k IS NOT DISTINCT FROM t.k)",
    "coalesce(k, 10) NOT IN (SELECT s.n FROM s WHERE s.k IS NOT DISTINCT FROM t.k)",
    "k IN (SELECT s.k FROM s WHERE s.k = t.k) AND w NOT IN (SELECT s.w FROM s WHERE s.k <> 3)",
]
VALUES = [
    "(SELECT max(s.n) FROM s WHERE s.k = t.k)",
    "(SELECT count(*) FROM s WHERE s.k = t.k)",
    "(SELECT coalesce(sum(s.n), 7) FROM s WHERE s.k = t.k AND s.n <> 11)",
    "(SELECT s.n FROM s WHERE s.k = t.k AND s.n <> 11)",
    "(SELECT s.n FROM s WHERE s.k = t.k AND s.n > t.n AND s.w = 'a')",
    "(SELECT s.n FROM s WHERE s.k = t.k AND s.w <> t.w)",
    "CASE WHEN w NOT IN (SELECT s.w FROM s WHERE s.k = t.k) THEN 1 END",
    "(SELECT s.n FROM s WHERE s.k = t.k AND s.n <> 11) + (SELECT min(s.n) FROM s WHERE s.w = t.w)",
]


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[Engine]:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE s (k bigint, w varchar, x double, n integer)")
    engine.run(
        "INSERT INTO s VALUES (1, 'a', 1, 10), (1, 'x', 2, 11), (3, NULL, 3, 30), (NULL, 'd', 4, 40), (2, 'b', nan(), 20)"
    )
    engine.run(f"CREATE TABLE types ({COLUMNS})")
    engine.run(f"INSERT INTO types VALUES {NULLS}, {ROWS}")
    yield engine
    for table in ("s", "types"):
        engine.run(f"DROP TABLE {table}")


def changed(engine: Engine, statement: str, off: frozenset[str] = frozenset()) -> list[list[Any]]:
    engine.run("CREATE TABLE t (k bigint, w varchar, x double, n integer)")
    try:
        engine.run(
            "INSERT INTO t VALUES (1, 'a', 1, 1), (2, 'b', 2, 2), (3, NULL, 3, 3), (NULL, 'd', 4, 4), (5, 'e', nan(), 5)"
        )
        engine.run(statement, rules_off=off)
        return sorted(map(repr, engine.run("SELECT * FROM t").table.to_pylist()))
    finally:
        engine.run("DROP TABLE t")


def on_pages(engine: Engine, statement: str) -> bool:
    engine.run("CREATE TABLE t (k bigint, w varchar, x double, n integer)")
    try:
        return "Spark's operators" not in str(engine.run(f"EXPLAIN {statement}"))
    finally:
        engine.run("DROP TABLE t")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_with_a_subquery_chooses_the_rows_that_spark_chooses(
    engine: Engine, condition: str
) -> None:
    statement = STATEMENTS[CONDITIONS.index(condition) % len(STATEMENTS)].format(condition)
    assert on_pages(engine, statement)
    assert changed(engine, statement) == changed(engine, statement, BY_SPARK)


@pytest.mark.parametrize("value", VALUES)
def test_a_subquery_as_a_value_is_the_value_that_spark_computes(engine: Engine, value: str) -> None:
    statement = f"UPDATE t SET n = CAST({value} AS integer)"
    assert on_pages(engine, statement)
    assert changed(engine, statement) == changed(engine, statement, BY_SPARK)


@pytest.mark.parametrize("off", [frozenset(), BY_SPARK])
def test_several_rows_of_a_scalar_subquery_are_an_error_at_its_value(
    engine: Engine, off: frozenset[str]
) -> None:
    with pytest.raises(ExecutionError, match="SUBQUERY_MULTIPLE_ROWS: line 1:16") as caught:
        changed(engine, "UPDATE t SET n=(SELECT s.n FROM s WHERE s.k=t.k)", off)
    assert "in the value for column 'n'" in str(caught.value)


@pytest.mark.parametrize("off", [frozenset(), BY_SPARK])
def test_only_pairs_that_satisfy_the_whole_condition_are_rows_of_the_subquery(
    engine: Engine, off: frozenset[str]
) -> None:
    with pytest.raises(ExecutionError, match="SUBQUERY_MULTIPLE_ROWS"):
        changed(engine, "UPDATE t SET n=(SELECT s.n FROM s WHERE s.k=t.k AND s.n > t.n)", off)


def test_only_requested_rows_need_a_single_row(engine: Engine) -> None:
    statement = "UPDATE t SET n = (SELECT s.n FROM s WHERE s.k = t.k) WHERE k = 3"
    assert changed(engine, statement) == changed(engine, statement, BY_SPARK)


def test_keys_of_every_type_match_as_on_spark(engine: Engine) -> None:
    def marks(off: frozenset[str]) -> list[dict[str, Any]]:
        columns = ", ".join(f"e_{key} boolean, i_{key} boolean" for key in KEYS)
        engine.run(f"CREATE TABLE g ({COLUMNS}, {columns})")
        try:
            engine.run(f"INSERT INTO g SELECT *{', NULL' * 2 * len(KEYS)} FROM types")
            sets = [
                f"e_{key} = EXISTS (SELECT 1 FROM types o WHERE o.{key} = g.{key} AND o.id <> 3)"
                for key in KEYS
            ]
            listed = [key for key in KEYS if key not in {"r", "x", "tz"}]
            sets += [f"i_{key} = {key} IN (SELECT {key} FROM types WHERE id > 1)" for key in listed]
            engine.run(f"UPDATE g SET {', '.join(sets)}", rules_off=off)
            rows = engine.run("SELECT * FROM g ORDER BY id").table.to_pylist()
            return [
                {name: value for name, value in row.items() if name[:2] in {"e_", "i_"}}
                for row in rows
            ]
        finally:
            engine.run("DROP TABLE g")

    answers = marks(frozenset())
    assert answers == marks(BY_SPARK)
    assert {row["e_v"] for row in answers} == {True, False}


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("EXISTS (SELECT 1 FROM s WHERE s.k > t.k)", "without equal keys in WHERE"),
        ("EXISTS (SELECT 1 FROM s WHERE s.k + 1 = t.k)", "without equal keys in WHERE"),
        (
            "EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.n + 1 > t.n)",
            "a comparison that may fail or a subquery",
        ),
        (
            "EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.n > (SELECT count(*) FROM s o WHERE o.n > t.n))",
            "a correlated subquery",
        ),
        (
            "n = (SELECT max(s.n) FROM s WHERE s.k = t.k AND s.n > t.n)",
            "an aggregate whose WHERE compares more than equal keys",
        ),
        (
            "n IN (SELECT s.n FROM s WHERE s.k = t.k AND s.n > t.n)",
            "IN or an aggregate whose WHERE compares more than equal keys",
        ),
        ("n IN (SELECT s.n + 1 FROM s WHERE s.k = t.k)", "IN of values that may fail"),
        ("n IN (SELECT max(s.n) FROM s WHERE s.k = t.k)", "IN and an aggregate"),
        ("x IN (SELECT s.x FROM s WHERE s.k = t.k)", "IN a query of floating point numbers"),
        (
            "EXISTS (SELECT max(n) FROM s WHERE s.k = t.k)",
            "EXISTS of a query whose rows do not depend on WHERE",
        ),
        ("EXISTS (SELECT k FROM s WHERE s.k = t.k GROUP BY k)", "GROUP BY"),
        ("n = (SELECT s.n + t.n FROM s WHERE s.k = t.k)", "whose value reads the row"),
        ("n = (SELECT s.n FROM s WHERE s.k = t.k ORDER BY n LIMIT 1)", "LIMIT"),
        ("n = (SELECT max_by(s.n, s.x) FROM s WHERE s.k = t.k)", "the aggregate max_by"),
        (
            "n = (SELECT 100 / count(*) FROM s WHERE s.k = t.k)",
            "whose value cannot be computed for every key",
        ),
    ],
)
def test_other_correlated_subqueries_are_left_to_spark(
    engine: Engine, condition: str, why: str
) -> None:
    engine.run("CREATE TABLE t (k bigint, w varchar, x double, n integer)")
    try:
        text = str(engine.run(f"EXPLAIN DELETE FROM t WHERE {condition}"))
    finally:
        engine.run("DROP TABLE t")
    assert "Spark's operators execute the nodes below: " in text
    assert why in text


def test_a_value_that_fails_for_keys_of_no_row_fails_no_statement(engine: Engine) -> None:
    value = "(SELECT 100 / count(s.w) FROM s WHERE s.k = t.k)"
    statement = f"UPDATE t SET n = CAST({value} AS integer) WHERE k < 3"
    assert changed(engine, statement) == changed(engine, statement, BY_SPARK)
