"""A star matches the fields of rows by name, like columns; an assignment matches by position, as in Trino."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.plan.rules import RuleSettings

pytestmark = pytest.mark.spark

STAR = ("UPDATE SET *", "INSERT *")
SHUFFLED = 'CAST(ROW(20, 10) AS row(b integer, "A" integer))'
COLUMNS = {
    "row(a integer, b integer)": (SHUFFLED, {"a": 10, "b": 20}),
    "row(a bigint, b double)": (SHUFFLED, {"a": 10, "b": 20.0}),
    "array(row(a integer, b integer))": (f"ARRAY[{SHUFFLED}, NULL]", [{"a": 10, "b": 20}, None]),
    "map(varchar, row(a integer, b integer))": (
        f"MAP(ARRAY['k', 'n'], ARRAY[{SHUFFLED}, NULL])",
        [("k", {"a": 10, "b": 20}), ("n", None)],
    ),
    "map(row(a integer, b integer), integer)": (
        f"MAP(ARRAY[{SHUFFLED}], ARRAY[1])",
        [({"a": 10, "b": 20}, 1)],
    ),
    "row(x row(a integer, b integer), y integer)": (
        f"CAST(ROW(5, {SHUFFLED}) AS row(y integer, x row(b integer, a integer)))",
        {"x": {"a": 10, "b": 20}, "y": 5},
    ),
    "array(array(map(varchar, row(a integer, b integer))))": (
        f"ARRAY[ARRAY[MAP(ARRAY['k'], ARRAY[{SHUFFLED}])], NULL]",
        [[[("k", {"a": 10, "b": 20})]], None],
    ),
    "row(a integer, b integer) ": ("ROW(10, 20)", {"a": 10, "b": 20}),
    " row(a integer, b integer)": ("CAST(NULL AS row(b integer, a integer))", None),
}


def engine_on(spark: Any, **settings: int) -> Engine:
    return Engine(
        spark=spark,
        dialect="extended",
        rule_settings=RuleSettings(**settings) if settings else None,
    )


def merged(
    engine: Engine, kind: str, value: str, words: str = "", clauses: tuple[str, str] = STAR
) -> list[Any]:
    """Return the column of an updated row and of an inserted one."""
    kind = kind.strip()
    engine.run("DROP TABLE IF EXISTS t")
    engine.run(f"CREATE TABLE t AS SELECT 1 AS id, CAST(NULL AS {kind}) AS c")
    engine.run(
        f"MERGE {words} INTO t USING (SELECT {value} AS c, n AS id FROM (VALUES 1, 2) v (n)) s ON t.id = s.id "
        f"WHEN MATCHED THEN {clauses[0]} WHEN NOT MATCHED THEN {clauses[1]}"
    )
    table = engine.run("SELECT c FROM t ORDER BY id").table
    assert table is not None
    return table.column("c").to_pylist()


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("words", ["", "WITH SCHEMA EVOLUTION"])
def test_a_star_stores_each_field_under_its_name(spark: Any, kind: str, words: str) -> None:
    value, stored = COLUMNS[kind]
    assert merged(engine_on(spark), kind, value, words) == [stored, stored]


@pytest.mark.parametrize("settings", [{"small_rows": 0, "key_rows": 0}, {"one_task_bytes": 0}])
def test_fields_match_by_name_in_every_form_of_the_plan(
    spark: Any, settings: dict[str, int]
) -> None:
    value, stored = COLUMNS["row(a integer, b integer)"]
    assert merged(engine_on(spark, **settings), "row(a integer, b integer)", value) == [
        stored,
        stored,
    ]


def test_fields_match_by_name_on_iceberg(spark: Any, tmp_path: Path) -> None:
    engine = Engine(spark=spark, dialect="extended", catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path))
    value, stored = COLUMNS["array(row(a integer, b integer))"]
    assert merged(engine, "array(row(a integer, b integer))", value) == [stored, stored]


def test_an_assignment_matches_fields_by_position(spark: Any) -> None:
    clauses = ("UPDATE SET c = s.c", "INSERT (id, c) VALUES (s.id, s.c)")
    assert (
        merged(engine_on(spark), "row(a integer, b integer)", SHUFFLED, clauses=clauses)
        == [{"a": 20, "b": 10}] * 2
    )


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (
            "row(a integer)",
            "CAST(ROW(1, 2) AS row(a integer, c integer))",
            "the target has no field 'c'",
        ),
        (
            "row(a integer, b integer)",
            "CAST(ROW(1) AS row(a integer))",
            "the source has no field 'b'",
        ),
        (
            "row(a integer, b integer)",
            "CAST(ROW(1, 2) AS row(a integer, c integer))",
            "the source has no field 'b'",
        ),
        (
            "row(a integer, b integer)",
            "CAST(ROW(1, 2) AS row(a integer, a integer))",
            "has field 'a' more than once",
        ),
        (
            "array(row(a integer))",
            "ARRAY[CAST(ROW(1) AS row(c integer))]",
            "Column c.element is row",
        ),
        (
            "map(varchar, row(a integer))",
            "MAP(ARRAY['k'], ARRAY[CAST(ROW(1) AS row(c integer))])",
            "Column c.value is row",
        ),
        (
            "row(x row(a integer))",
            "CAST(ROW(ROW(1)) AS row(x row(c integer)))",
            "Column c.x is row",
        ),
    ],
)
def test_other_fields_are_refused_with_their_path(
    spark: Any, kind: str, value: str, words: str
) -> None:
    with pytest.raises(RowMergeError, match=words) as caught:
        merged(engine_on(spark), kind, value)
    assert (caught.value.code, caught.value.line) == ("TYPE_MISMATCH", 1)
    assert caught.value.hint
