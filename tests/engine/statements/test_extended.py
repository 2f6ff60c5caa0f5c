"""The extended dialect on Spark: the results of PostgreSQL for the same statements, in every paradigm, era, layout and form of the join."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.plan.rules import RULES, RuleSettings

pytestmark = pytest.mark.spark

RECORDED = json.loads(
    (Path(__file__).parents[2] / "goldens" / "postgresql" / "merge.json").read_text(
        encoding="utf-8"
    )
)
NAMES = ["id", "v", "p"]
TINY = RuleSettings(small_rows=0, key_rows=0)
"""All tables count as large."""
MERGE = "MERGE INTO t USING s ON t.id = s.id "
ALL = (
    MERGE
    + "WHEN NOT MATCHED BY SOURCE AND t.v > 20 THEN UPDATE SET v = v + 1, p = 'kept' WHEN NOT MATCHED BY SOURCE THEN DELETE "
    "WHEN MATCHED AND s.id = 4 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY TARGET THEN INSERT * "
    "RETURNING merge_action(), merge_clause() AS clause, t.id, t.v, t.p, old.p AS old_p, s.v AS sv"
)
AFTER = [
    [2, 200, "x"],
    [3, None, "y"],
    [4, 40, "d"],
    [9, 900, "w"],
    [None, 51, "kept"],
    [None, 1000, None],
]
RETURNED = [
    ["DELETE", 2, 1, 10, "a", "a", None],
    ["INSERT", 5, 9, 900, "w", None, 900],
    ["INSERT", 5, None, 1000, None, None, 1000],
    ["UPDATE", 1, None, 51, "kept", "n", None],
    ["UPDATE", 4, 2, 200, "x", "b", 200],
    ["UPDATE", 4, 3, None, "y", None, None],
]


def table(rows: list[list[Any]]) -> pa.Table:
    kinds = [pa.int64(), pa.int64(), pa.string()]
    return pa.table(
        [
            pa.array(column, kind)
            for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
        ],
        names=NAMES,
    )


def rows(found: pa.Table | None) -> list[list[Any]]:
    assert found is not None
    return sorted(
        map(list, zip(*(column.to_pylist() for column in found.columns), strict=True)), key=str
    )


def engine(spark: Any, settings: RuleSettings | None = None, **properties: Any) -> Engine:
    made = Engine(spark=spark, dialect="extended", rule_settings=settings)
    made.register("t", table(RECORDED["target"]), **properties)
    made.register("s", table(RECORDED["source"]))
    return made


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["id"])
def test_a_statement_does_and_returns_what_it_does_in_postgresql(
    spark: Any, case: dict[str, Any]
) -> None:
    made = engine(spark)
    if "error" in case["expect"]:
        with pytest.raises(RowMergeError) as caught:
            made.run(case["sql"])
        assert (caught.value.code, case["expect"]["error"]) == (
            "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
            "21000",
        )
        assert rows(made.table("t")) == sorted(RECORDED["target"], key=str)
        return
    result = made.run(case["sql"])
    assert rows(made.table("t")) == case["expect"]["table"]
    # Without its own columns, a row list cannot be distinguished from no rows.
    assert rows(result.table) == case["expect"]["returned"]
    assert result.trace.returned == result.count == len(case["expect"]["returned"])


DELETE_AND_INSERT, ONLY_CHANGED = "DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS"
PARTITIONED, BUCKETED = {"partitioned_by": ["p"]}, {"bucketed_by": ["id"], "bucket_count": 3}
STORES = [
    ("documents", ONLY_CHANGED, {}),
    ("current", DELETE_AND_INSERT, {}),
    ("documents", DELETE_AND_INSERT, PARTITIONED),
    ("current", DELETE_AND_INSERT, PARTITIONED),
    ("current", ONLY_CHANGED, PARTITIONED),
    ("documents", DELETE_AND_INSERT, BUCKETED),
    ("documents", ONLY_CHANGED, {**PARTITIONED, **BUCKETED}),
    ("current", DELETE_AND_INSERT, {**PARTITIONED, **BUCKETED}),
]


@pytest.mark.parametrize(
    ("era", "paradigm", "layout"), STORES, ids=[f"{e}-{p}-{'+'.join(x)}" for e, p, x in STORES]
)
def test_every_layout_paradigm_and_era_returns_the_same_rows(
    spark: Any, era: str, paradigm: str, layout: dict[str, Any]
) -> None:
    made = engine(spark, paradigm=paradigm, **layout)
    result = made.run(ALL, era=era)
    assert rows(made.table("t")) == sorted(AFTER, key=str)
    assert rows(result.table) == sorted(RETURNED, key=str)
    assert result.counts == {"INSERT": 2, "UPDATE": 3, "DELETE": 1, "none": 1}
    assert [(clause.number, clause.rows) for clause in result.trace.clauses] == [
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 2),
        (-1, 0),
    ]
    trace = result.trace
    assert (
        trace.join.rows,
        trace.join.matched_rows,
        trace.join.unmatched_rows,
        trace.join.unmatched_target_rows,
    ) == (7, 3, 2, 2)


FORMS = [
    ("t.id = s.id", RuleSettings(), "small"),
    ("t.id = s.id", TINY, "large"),
    ("t.id <= s.id AND t.id >= s.id", TINY, "large, no equal keys"),
    ("t.id <= s.id AND t.id >= s.id", RuleSettings(small_rows=4), "small source, no equal keys"),
]


WITHOUT_KEYS = {"prune_target", "prune_source_columns"}
"""Rules unrelated to a join without equal keys."""
CHOICES = [
    pytest.param(
        on,
        settings,
        off,
        id=f"{form}-{'+'.join(off) or 'all rules'}",
        # A specific rule is disabled where most of them apply.
        marks=[pytest.mark.long] if len(off) == 1 and form != "large" else [],
    )
    for on, settings, form in FORMS
    for off in ([], *([rule] for rule in RULES), list(RULES))
    if len(off) != 1 or on == "t.id = s.id" or off[0] not in WITHOUT_KEYS
]


@pytest.mark.parametrize(("on", "settings", "off"), CHOICES)
def test_no_rule_changes_the_rows_under_a_full_join(
    spark: Any, on: str, settings: RuleSettings, off: list[str]
) -> None:
    made = engine(spark, settings)
    result = made.run(ALL.replace("t.id = s.id", on, 1), rules_off=off)
    assert rows(made.table("t")) == sorted(AFTER, key=str)
    assert rows(result.table) == sorted(RETURNED, key=str)


def test_rows_of_do_nothing_are_distinguished_from_those_without_a_clause(spark: Any) -> None:
    engine = Engine(spark=spark, dialect="extended")
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES 1, 2, 3, 4) AS v (id)")
    report = engine.run(
        "MERGE INTO t USING (VALUES 1, 2, 9) AS s (id) ON t.id = s.id"
        " WHEN MATCHED AND t.id = 1 THEN DO NOTHING WHEN NOT MATCHED THEN DO NOTHING"
        " WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE"
    ).text()
    assert "2 for which no clause fired, 1 by DO NOTHING" in report
    assert "clause 0 DO NOTHING" in report
    assert "NONE" not in report
    rows = [line.split() for line in report.splitlines() if line.startswith("=")]
    assert [(row[1], row[2]) for row in rows[:2]] == [("1", "0"), ("2", "\N{MINUS SIGN}1")]
