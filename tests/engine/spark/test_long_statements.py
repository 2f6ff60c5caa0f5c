"""Long runs of one operator are executed: they yield the same result as the nested run, in both flows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.spark.errors.translate import translate
from rowmerge_nb.engine.spark.long_statements import long_settings
from rowmerge_nb.sql.parser import expression_reader as grammar
from rowmerge_nb.sql.spark import chains as spark_chains

pytestmark = pytest.mark.spark

SUMS = {
    "integers": ["+ i", "- 3", "+ l", "- i"],
    "decimals": ["+ n", "- 0.125", "+ n", "- i"],
    "decimals, then doubles": ["+ n"] * 15 + ["- d"] * 15,
    "products": ["* 2", "/ 2", "* i", "% 1000"],
    "what may fail": ["+ i / l", "- abs(i)"],
}
"""Operators with their operands, repeated to thirty."""


def values(engine: Engine, *expressions: str) -> list[list[Any]]:
    table = engine.run(
        f"SELECT {', '.join(f'{text} AS c{place}' for place, text in enumerate(expressions))} FROM v ORDER BY k"
    ).table
    assert table is not None
    return [column.to_pylist() for column in table.columns]


@pytest.fixture(scope="module")
def engine(spark: Any) -> Engine:
    made = Engine(spark=spark)
    made.run(
        "CREATE TABLE v (k integer, i integer, l bigint, n decimal(10,2), d double, s varchar, made date, tags array(varchar))"
    )
    made.run(
        "INSERT INTO v VALUES (1, 5, 7, 1.25, 0.5, 'x', DATE '2024-02-28', ARRAY['a']), (2, -1, 3, -0.75, 1E-3, '', NULL, ARRAY[]), "
        "(3, NULL, 1, 2.00, 0.1, NULL, DATE '2000-01-01', NULL)"
    )
    return made


def test_a_list_of_operators_has_the_value_of_nesting(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"k {' '.join((signs * 15)[:30])}" for signs in SUMS.values()]
    texts += ["made" + " + INTERVAL '1' DAY" * 12, f"s{' || s' * 30}", f"tags{' || s' * 30}"]
    monkeypatch.setattr(spark_chains, "_PART", 4)
    monkeypatch.setattr(grammar, "NESTED_CHAIN", 3)
    listed = values(engine, *texts)
    monkeypatch.setattr(grammar, "NESTED_CHAIN", 1000)
    assert listed == values(engine, *texts)


def test_terms_after_a_null_are_not_computed(engine: Engine) -> None:
    assert values(engine, f"CAST(NULL AS integer) + k{' + k' * 150} + 1 / 0") == [[None] * 3]


def test_the_first_error_of_a_long_run_is_the_error(engine: Engine) -> None:
    with pytest.raises(RowMergeError) as raised:
        engine.run(f"SELECT k{' + k' * 150} + 9223372036854775807 - 1 / (k - k) FROM v")
    assert raised.value.code == "NUMERIC_VALUE_OUT_OF_RANGE"


def test_try_turns_an_overflowing_long_run_into_null(engine: Engine) -> None:
    assert values(engine, f"TRY(l{' + 1' * 150} + 9223372036854775807)") == [[None] * 3]


def test_a_long_run_over_groups_reads_aggregates(engine: Engine) -> None:
    table = engine.run(
        f"SELECT sum(l){' + count(*)' * 200} AS c, k{' + k' * 200} AS g FROM v GROUP BY k ORDER BY g"
    ).table
    assert table is not None
    assert table.to_pydict() == {"c": [207, 203, 201], "g": [201, 402, 603]}


MANY = 3_000
STATEMENTS = {
    "OR": f"DELETE FROM t WHERE {' OR '.join(f'id * 3 = {3 * k} + v' for k in range(MANY))}",
    "AND": f"DELETE FROM t WHERE id < {MANY} AND {' AND '.join(f'id <> v - {k}' for k in range(1, MANY - 1))}",
    "+": f"UPDATE t SET v = v{' + 1 - 1' * (MANY // 2 - 1)} + 1",
    "||": f"DELETE FROM t WHERE length({' || '.join(['name'] * MANY)}) = {MANY}",
}


@pytest.mark.parametrize("word", STATEMENTS)
def test_a_chain_of_thousands_of_terms_is_executed(word: str, spark: Any) -> None:
    made = Engine(spark=spark)
    made.register(
        "t",
        pa.table(
            {
                "id": [1, MANY - 1, MANY + 1],
                "v": pa.array([0, 0, 0], pa.int64()),
                "name": ["a", "b", ""],
            }
        ),
    )
    made.run(STATEMENTS[word])
    rows = made.table("t").sort_by("id").to_pydict()
    assert (rows["id"], rows["v"]) == (
        ([MANY + 1], [0]) if word != "+" else ([1, MANY - 1, MANY + 1], [1, 1, 1])
    )


def test_a_merge_with_long_conditions_is_executed(spark: Any) -> None:
    made = Engine(spark=spark)
    made.register("t", pa.table({"id": list(range(100)), "v": [0] * 100}))
    made.register("s", pa.table({"id": list(range(50, 150)), "v": [1] * 100}))
    terms = " OR ".join(f"s.v * {k} + t.v = {k + 7}" for k in range(1000))
    names = list(long_settings(spark))
    before = [spark.conf.get(name, None) for name in names]
    made.run(
        f"MERGE INTO t USING s ON t.id = s.id AND ({terms} OR s.id < 60) WHEN MATCHED AND ({terms} OR s.v = 1) THEN UPDATE SET v = 5"
    )
    assert sum(made.table("t")["v"].to_pylist()) == 50
    assert [spark.conf.get(name, None) for name in names] == before


def test_a_statement_that_exhausts_sparks_stack_is_an_error_with_a_next_step(spark: Any) -> None:
    error = translate(overflow(spark), "run")
    assert (error.code, error.message.split(":")[0]) == (
        "NOT_SUPPORTED",
        "The statement is too large for Spark",
    )
    assert "Split the statement" in str(error.hint)


def overflow(spark: Any) -> Exception:
    """Spark's error for a sum of 100,000 terms."""
    with pytest.raises(Exception) as raised:
        spark.sql(f"SELECT 1{' + 1' * 100_000}").collect()
    return raised.value


def test_sixty_tables_are_joined_one_to_the_next(engine):
    joins = "".join(
        f" JOIN (VALUES 1) t{place}(x) ON t{place}.x = t{place - 1}.x" for place in range(1, 60)
    )
    table = engine.run(f"SELECT * FROM (VALUES 1) t0(x){joins}").table
    assert [column.to_pylist() for column in table.columns] == [[1]] * 60


THIRTEEN = " CROSS JOIN ".join(f"v AS v{number}" for number in range(13))
"""Three rows to the thirteenth power, 1.6 million."""


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("SELECT i, tag FROM v CROSS JOIN UNNEST(tags) AS u (tag)", "FALLBACK"),
        ("SELECT k FROM v WHERE EXISTS (SELECT 1 FROM v AS w WHERE w.l > v.l)", "NO_CODEGEN"),
        ("SELECT k FROM v WHERE i IN (SELECT w.l - 2 FROM v AS w WHERE w.k <> v.k)", "NO_CODEGEN"),
        (f"SELECT v0.k FROM {THIRTEEN} WHERE EXISTS (SELECT 1 FROM v WHERE l > v0.l) LIMIT 1", "FALLBACK"),
        ("SELECT k FROM v WHERE EXISTS (SELECT 1 FROM v AS w WHERE w.l > v.l) AND TRY(regexp_like(s, s))", "FALLBACK"),
    ],
)  # fmt: skip
def test_expressions_of_few_rows_are_interpreted(
    engine: Engine, spark: Any, monkeypatch: pytest.MonkeyPatch, sql: str, mode: str
) -> None:
    from rowmerge_nb.engine.statements import statement
    from rowmerge_nb.plan import rules

    modes = []
    collect = statement.collect

    def spied(*arguments: Any) -> Any:
        modes.append(spark.conf.get("spark.sql.codegen.factoryMode"))
        return collect(*arguments)

    monkeypatch.setattr(rules, "_FEW_COMBINATIONS", 1_000_000)
    monkeypatch.setattr(statement, "collect", spied)
    rows = engine.run(sql).table
    monkeypatch.setattr(rules, "_FEW_COMBINATIONS", -1)
    assert rows == engine.run(sql).table
    assert modes == [mode, "FALLBACK"]
