"""A row change is the same in every executor: one task, many tasks with the whole source or with that of their keys, or Spark."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector, RowMergeError
from rowmerge_nb.connectors.memory.reading import MemorySplit
from rowmerge_nb.plan.join_keys import NO_KEYS, SEVERAL_KEYS
from rowmerge_nb.plan.range_keys import RANGE_TOO_LARGE
from rowmerge_nb.plan.rules import RuleSettings

pytestmark = [pytest.mark.spark, pytest.mark.local_inserts]

BY_SPARK = frozenset({"change_in_task"})
LARGE = RuleSettings(small_rows=0, few_tasks_rows=1 << 40)
FORMS = {
    "one task": (RuleSettings(), frozenset()),
    "one task, paged": (LARGE, frozenset()),
    "many tasks": (replace(LARGE, one_task_bytes=0), frozenset()),
    "many tasks, to writers": (replace(LARGE, one_task_bytes=0), frozenset()),
    "by keys": (replace(LARGE, one_task_bytes=0, source_bytes=0, packed_bytes=0), frozenset()),
    "by keys, to writers": (
        replace(LARGE, one_task_bytes=0, source_bytes=0, packed_bytes=0),
        frozenset(),
    ),
    "spark": (RuleSettings(), BY_SPARK),
    "spark, large": (LARGE, BY_SPARK),
}
PARTITIONED = {"partitioned_by": ["part"]}
SAID = {
    "one task": "run in the task that reads the target",
    "one task, paged": "run in the task that reads the target",
    "many tasks": "run in the tasks that read the target",
    "many tasks, to writers": "run in the tasks that read the target",
    "by keys": "run on pages, in tasks that get the rows of both sides by their keys",
    "by keys, to writers": "run on pages, in tasks that get the rows of both sides by their keys",
    "spark": None,
    "spark, large": None,
}
TARGET = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, None, 6], pa.int32()),
        "part": ["a", None, "b", "b", "a", "c"],
        "v": pa.array([10, 20, None, 40, 50, 60], pa.int64()),
        "x": [1.5, float("nan"), -0.0, None, 2.5, 0.0],
    }
)
SOURCE = pa.table(
    {
        "id": pa.array([2, 3, None, 4, 9, 10], pa.int64()),
        "part": [None, "b", "a", "b", "z", None],
        "v": pa.array([1, 2, 3, None, 5, 6], pa.int64()),
    }
)
MERGES = {
    "all clauses": "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v > 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = t.v + s.v "
    "WHEN NOT MATCHED AND s.v = 5 THEN INSERT (id, v) VALUES (s.id, s.v * 2) WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new', s.v, 1e0)",
    "no NOT MATCHED": "MERGE INTO t USING s ON t.id = s.id AND t.part = s.part WHEN MATCHED THEN UPDATE SET part = upper(s.part)",
    "nothing else": "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "rest of ON": "MERGE INTO t USING s ON t.id = s.id AND t.x <> 2.5 AND s.v IS NOT NULL WHEN MATCHED THEN DELETE",
    "one key or another": "MERGE INTO t USING s ON t.id = s.id AND s.v > 1 OR t.part = s.part AND t.v < 30 AND s.id IS NULL OR t.v = s.v * 10 AND t.x = 2.5 "
    "WHEN MATCHED AND s.v = 2 THEN UPDATE SET v = -s.v WHEN MATCHED AND s.id > 3 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
    "one key or another, by source": "MERGE INTO t USING s ON t.id = s.id OR t.part = s.part AND t.id IS NULL WHEN MATCHED AND s.v = 1 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "a query": "MERGE INTO t USING (SELECT id, max(v) AS v FROM s GROUP BY id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET v = q.v "
    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (q.id, q.v)",
    "a query of one table": "MERGE INTO t USING (SELECT id + 0 AS i, upper(part) AS p, v AS w FROM s WHERE v > 1 OR v IS NULL) q ON t.id = q.i "
    "WHEN MATCHED AND q.w = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET part = q.p WHEN NOT MATCHED THEN INSERT (id, part) VALUES (q.i, q.p)",
    "a query of one table, by source": "MERGE INTO t USING (SELECT id AS i, v FROM s WHERE part = 'b') q ON t.id = q.i WHEN MATCHED THEN UPDATE SET v = q.v "
    "WHEN NOT MATCHED BY SOURCE AND t.v > 10 THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (q.i)",
    "a query with a list": "MERGE INTO t USING (SELECT id, v FROM s WHERE 7 NOT IN (SELECT v FROM s WHERE v > 0) OR id IN (SELECT id FROM t)) q "
    "ON t.id = q.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (q.id, q.v)",
    "values": "MERGE INTO t USING (VALUES (2, 'x'), (77, NULL)) AS q (id, p) ON q.id = t.id WHEN MATCHED THEN UPDATE SET part = q.p "
    "WHEN NOT MATCHED THEN INSERT (id, part) VALUES (q.id, q.p)",
    "by source": "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.v > 10 THEN UPDATE SET v = -1 "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN UPDATE SET part = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "do nothing": "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.v = 40 THEN DO NOTHING WHEN MATCHED THEN DELETE",
    "queries in every place": "MERGE INTO t USING s ON t.id = s.id AND t.x < (SELECT sum(v) FROM s) AND s.v IN (SELECT v FROM s) "
    "WHEN MATCHED AND s.v IN (SELECT v FROM s WHERE v > 1) AND EXISTS (SELECT 1 FROM s WHERE v = 6) THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = (SELECT max(v) FROM s) + t.v, part = (SELECT min(part) FROM t) "
    "WHEN NOT MATCHED AND s.v < (SELECT max(v) FROM s) THEN INSERT (id, v) VALUES (s.id, (SELECT min(v) FROM t WHERE v > 20)) "
    "WHEN NOT MATCHED AND s.id NOT IN (SELECT id FROM s WHERE id > 9) THEN INSERT (id, part) VALUES (s.id, (SELECT 'no row' WHERE false))",
    "queries beside a query": "MERGE INTO t USING (SELECT id, max(v) AS v FROM s GROUP BY id) q ON t.id = q.id "
    "WHEN MATCHED AND q.v IN (SELECT v FROM s) THEN UPDATE SET v = (SELECT count(*) FROM s) "
    "WHEN NOT MATCHED AND q.v IN (SELECT v FROM s WHERE v > 3) THEN INSERT (id, v) VALUES (q.id, (SELECT max(id) FROM s))",
    "queries for rows that the source lacks": "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.v < (SELECT avg(v) FROM t) "
    "THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = (SELECT sum(v) FROM s) WHEN MATCHED AND EXISTS (SELECT 1 FROM s WHERE v > 9) "
    "THEN DELETE WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, (SELECT max(part) FROM s))",
    "RETURNING of all clauses": "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v > 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = t.v + s.v "
    "WHEN NOT MATCHED AND s.v = 5 THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 'new') "
    "RETURNING merge_action() AS action, merge_clause() AS clause, t.*, old.v AS was, new.v AS is_now, s.v + 1 AS plus, "
    "(SELECT max(v) FROM s) AS most, concat(new.part, '!') AS shout",
    "RETURNING by source": "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.v > 10 THEN UPDATE SET v = -1 "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN UPDATE SET part = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) "
    "RETURNING merge_action() AS action, t.id, s.id AS sid, new.part, old.part AS was, row(t.v, new.v) AS both",
    "UPDATE ... RETURNING": "UPDATE t SET v = v * 2 WHERE x < 2 RETURNING t.id, old.v AS was, new.v, part || '!' AS shout, "
    "v IN (SELECT v * 20 FROM s) AS among",
    "DELETE ... RETURNING": "DELETE FROM t WHERE part = 'b' OR v = (SELECT max(v) FROM t) RETURNING id, part, new.v AS nothing, old.v",
    "update": "UPDATE t SET v = v * 2, part = coalesce(part, 'none') WHERE x < 2 OR x IS NULL",
    "update all": "UPDATE t SET v = id",
    "delete": "DELETE FROM t WHERE part = 'b'",
    "delete all": "DELETE FROM t",
    "queries in condition and value": "UPDATE t SET v = (SELECT max(v) FROM s) + v, part = (SELECT min(part) FROM s) || part "
    "WHERE id IN (SELECT id FROM s) OR EXISTS (SELECT 1 FROM s WHERE v > 100) OR v = (SELECT max(v) FROM s) * 10",
    "a query in two places": "UPDATE t SET v = (SELECT max(v) FROM s) WHERE v > (SELECT max(v) FROM s)",
    "no row in a query": "UPDATE t SET v = (SELECT v FROM s WHERE id = 999) WHERE id NOT IN (SELECT id FROM s WHERE v > 100)",
    "NULL in a list": "DELETE FROM t WHERE id NOT IN (SELECT id FROM s)",
    "a list of texts": "DELETE FROM t WHERE part IN (SELECT part FROM s WHERE part <> 'z')",
    "the target in a query": "DELETE FROM t WHERE v < (SELECT avg(v) FROM t)",
}


def made(
    spark: Any,
    form: str,
    source: pa.Table = SOURCE,
    *,
    table: Mapping[str, Any] | None = None,
    **options: Any,
) -> Engine:
    """Return an engine for a form, with a source and a target; `Engine.register` gets the table's properties."""
    settings, off = FORMS[form]
    engine = Engine(spark=spark, rule_settings=settings, dialect="extended", **options)
    engine.options = engine.options.changed(rules_off=off)
    placed_by = PARTITIONED if form.endswith("to writers") else {}
    engine.register("t", TARGET, **{**placed_by, **(table or {})})
    engine.register("s", source)
    return engine


def seen(engine: Engine, statement: str) -> dict[str, Any]:
    """Run a statement, and return its result and report."""
    result = engine.run(statement)
    trace = result.trace
    return {
        "rows": sorted(map(repr, engine.table("t").to_pylist())),
        "count": result.count,
        "clauses": [clause.rows for clause in trace.clauses],
        "matched": (
            trace.join.rows,
            trace.join.matched_rows,
            trace.join.unmatched_rows,
            trace.join.unmatched_target_rows,
        ),
        "patterns": trace.join.multiple_matches,
        "stored": sum((Counter(writer.rows) for writer in trace.writers), Counter()),
        "rows after": trace.target.rows_after,
        "returned": None if result.table is None else sorted(map(repr, result.table.to_pylist())),
    }


FLOWS = (("documents", "DELETE_ROW_AND_INSERT_ROW"), ("current", "CHANGE_ONLY_UPDATED_COLUMNS"))
IN_BOTH_FLOWS = {"all clauses", "by source"}
"""Statements that run in either flow and in all forms; the others alternate between flows and forms."""
LARGE_FORMS = (
    "one task, paged",
    "many tasks",
    "many tasks, to writers",
    "by keys",
    "by keys, to writers",
)


@pytest.mark.parametrize(
    ("name", "flow"),
    [
        (name, flow)
        for at, name in enumerate(MERGES)
        for number, flow in enumerate(FLOWS)
        if name in IN_BOTH_FLOWS or (at + number) % 2
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_all_forms_leave_the_same_rows_and_report_the_same(
    spark: Any, name: str, flow: tuple[str, str]
) -> None:
    era, paradigm = flow
    at = list(MERGES).index(name)
    turn = (LARGE_FORMS[at % 5], LARGE_FORMS[(at + 2) % 5], *(["spark"] if at % 3 == 0 else []))
    forms = FORMS if name in IN_BOTH_FLOWS else ("one task", "spark, large", *turn)
    found = {
        form: seen(made(spark, form, table={"paradigm": paradigm}, era=era), MERGES[name])
        for form in forms
    }
    assert found["one task"] == found.get("spark", found["one task"])
    for form in LARGE_FORMS:
        assert found.get(form, found["spark, large"]) == found["spark, large"]
    assert found["one task"]["rows"] == found["spark, large"]["rows"]


@pytest.mark.parametrize("form", FORMS)
def test_the_plan_names_its_form(spark: Any, form: str) -> None:
    text = str(made(spark, form).run(f"EXPLAIN {MERGES['all clauses']}"))
    said = SAID[form]
    assert (said in text) if said is not None else ("The nodes below" not in text)


KEYED = """VALUES
  (CAST('ab' AS char(4)), UUID '00000000-0000-0000-0000-00000000000a', X'00', TIME '01:02:03.5', TIMESTAMP '2026-01-01 00:00:00 UTC', {0}),
  (CAST('ab  ' AS char(4)), UUID '00000000-0000-0000-0000-00000000000A', X'0000', TIME '01:02:03.5', TIMESTAMP '2026-01-01 00:00:00 UTC', {0} + 1),
  (CAST('' AS char(4)), UUID '00000000-0000-0000-0000-00000000000b', X'', TIME '00:00:00', TIMESTAMP '1969-12-31 23:59:59 UTC', {0} + 2),
  (CAST('ab' AS char(4)), UUID '00000000-0000-0000-0000-00000000000a', X'00', TIME '01:02:03.5', TIMESTAMP '2026-01-01 00:00:00.000001 UTC', {0} + 3),
  (CAST('x' AS char(4)), NULL, X'00', TIME '01:02:03.5', TIMESTAMP '2026-01-01 00:00:00 UTC', {0} + 4)"""


def test_keys_of_every_type_match_the_same_rows_in_all_forms(spark: Any) -> None:
    types = "c char(4), u uuid, b varbinary, m time(6), z timestamp(6) with time zone, v integer"
    matches = {}
    for form in ("many tasks", "by keys", "spark, large"):
        engine = made(spark, form, duplicates="standard")
        for name, value in (("kt", 0), ("ks", 10)):
            engine.run(f"CREATE TABLE {name} ({types})")
            engine.run(f"INSERT INTO {name} {KEYED.format(value)}")
        for columns in ("c", "u", "b", "m", "z", "cubmz"):
            on = " AND ".join(f"kt.{column} = ks.{column}" for column in columns)
            statement = f"MERGE INTO kt USING ks ON {on} WHEN MATCHED AND kt.v > 99 THEN DELETE WHEN NOT MATCHED THEN INSERT (v) VALUES (ks.v)"
            assert (SAID[form] or "") in str(engine.run(f"EXPLAIN {statement}")), (form, columns)
            trace = engine.run(statement).trace
            matches[form, columns] = (
                trace.join.rows,
                trace.join.matched_rows,
                trace.join.unmatched_rows,
            )
    for (form, columns), counts in matches.items():
        assert counts == matches["spark, large", columns], (form, columns, matches)
    assert matches["many tasks", "cubmz"] != matches["many tasks", "z"]


JOINED = """SELECT CAST(n AS bigint) AS n, name, CAST(amount AS decimal(9, 2)) AS amount, d, CAST(d AS real) AS f, n % 2 = 0 AS flag,
  CAST(row(CAST(n AS bigint), name) AS row(a bigint, b varchar)) AS r, CASE WHEN n <> 4 THEN ARRAY[name, 'x'] ELSE ARRAY[]  END AS a, at, k
FROM (VALUES {}) AS v (n, name, amount, d, at, k)"""
SIDES = {
    "kt": "(1, 'Ann', 1.5, 1e0, TIMESTAMP '2026-01-01 00:00:00', '1'), (2, 'BOB', 2, nan(), TIMESTAMP '2026-01-02 00:00:00', '2'), "
    "(3, NULL, 3, -0e0, NULL, 'x'), (4, 'dan', NULL, infinity(), TIMESTAMP '2026-01-04 00:00:00', '7'), (NULL, 'é', 0, NULL, NULL, '7')",
    "ks": "(2, 'ann', 1.5, 0e0, TIMESTAMP '2026-01-01 00:00:00', '1'), (3, 'bob', 2.5, nan(), TIMESTAMP '2026-01-03 00:00:00', '02'), "
    "(1, 'Ann', 1, 1e0, NULL, 'x'), (4, 'dan', 4, infinity(), TIMESTAMP '2026-01-04 00:00:00', NULL), (NULL, NULL, NULL, NULL, NULL, '8')",
}
CONDITIONS = [
    "lower(kt.name) = lower(ks.name)",
    "CAST(kt.n AS varchar) = ks.k",
    "kt.n + 1 = ks.n",
    "kt.n = ks.amount",
    "kt.n = ks.d",
    "kt.amount = ks.d",
    "kt.d = ks.d",
    "kt.f = ks.f AND kt.n >= ks.n - 1",
    "kt.flag = ks.flag AND kt.n = ks.n",
    "kt.r = ks.r",
    "kt.a = ks.a",
    "kt.n IS NOT DISTINCT FROM ks.n",
    "kt.d IS NOT DISTINCT FROM ks.d",
    "(kt.n = ks.n OR (kt.n IS NULL AND ks.n IS NULL))",
    "kt.r IS NOT DISTINCT FROM ks.r",
    "kt.a IS NOT DISTINCT FROM ks.a",
    "kt.name IS NOT DISTINCT FROM ks.name AND upper(kt.name) = upper(ks.name)",
    "kt.name IS NOT DISTINCT FROM ks.name AND kt.n IS NOT DISTINCT FROM ks.n",
    "kt.at IS NOT DISTINCT FROM ks.at",
    "date_trunc('month', kt.at) = date_trunc('month', ks.at) AND kt.at BETWEEN ks.at AND ks.at + INTERVAL '1' DAY",
    "kt.name <> 'nobody' AND kt.k <> 'x' AND CAST(kt.k AS bigint) = ks.n",
]


def in_turn(form: str, forms: tuple[str, ...], number: int, config: pytest.Config) -> bool:
    """Return whether a case of that number runs in a form: in one of several, with --long in all."""
    return (
        form not in forms or forms.index(form) == number % len(forms) or config.getoption("--long")
    )


def third(conditions: list[str], config: pytest.Config) -> list[str]:
    """Return every third condition, with --long all."""
    return conditions if config.getoption("--long") else conditions[::3]


def test_keys_of_every_form_match_the_same_rows_in_every_join(
    spark: Any, pytestconfig: pytest.Config
) -> None:
    matches = {}
    forms = ("one task", "many tasks", "by keys")
    for form in (*forms, "spark, large"):
        engine = made(spark, form, duplicates="standard")
        for name, rows in SIDES.items():
            engine.run(f"CREATE TABLE {name} AS {JOINED.format(rows)}")
        for number, on in enumerate(third(CONDITIONS, pytestconfig)):
            if not in_turn(form, forms, number, pytestconfig):
                continue
            statement = f"MERGE INTO kt USING ks ON {on} WHEN MATCHED AND kt.n > 99 THEN DELETE"
            assert (SAID[form] or "") in str(engine.run(f"EXPLAIN {statement}")), (form, on)
            trace = engine.run(statement).trace
            matches[form, on] = trace.join.rows, trace.join.matched_rows, trace.join.unmatched_rows
    for (form, on), counts in matches.items():
        assert counts == matches["spark, large", on], (
            form,
            on,
            counts,
            matches["spark, large", on],
        )
        assert counts[1], on


def test_values_of_both_sides_are_searched_in_a_query(spark: Any) -> None:
    on = "t.id + s.id IN (SELECT 2 * id FROM s) OR t.v = s.v"
    matches = set()
    for form in ("one task", "spark, large"):
        trace = (
            made(spark, form, duplicates="standard")
            .run(f"MERGE INTO t USING s ON {on} WHEN MATCHED AND t.v > 99 THEN DELETE")
            .trace
        )
        matches.add((trace.join.rows, trace.join.matched_rows, trace.join.unmatched_rows))
    assert len(matches) == 1


def test_rows_equal_by_one_key_or_another_match_once(spark: Any) -> None:
    on = "t.id = s.id OR t.part = s.part OR lower(t.part) = lower(s.part) AND t.v = s.v"
    matches = set()
    for form in ("one task", "one task, paged", "many tasks", "spark, large"):
        engine = made(spark, form, duplicates="standard")
        plan = str(
            engine.run(
                f"EXPLAIN MERGE INTO t USING s ON {on} WHEN MATCHED AND t.v > 99 THEN DELETE"
            )
        )
        assert (SAID[form] or "") in plan
        trace = engine.run(
            f"MERGE INTO t USING s ON {on} WHEN MATCHED AND t.v > 99 THEN DELETE"
        ).trace
        matches.add((trace.join.rows, trace.join.matched_rows, trace.join.unmatched_rows))
    assert len(matches) == 1
    plan = str(
        made(spark, "by keys").run(f"EXPLAIN MERGE INTO t USING s ON {on} WHEN MATCHED THEN DELETE")
    )
    assert SEVERAL_KEYS in plan


RANGES = [
    "kt.n BETWEEN ks.n AND ks.n + 1",
    "ks.n < kt.n",
    "kt.amount >= ks.amount AND ks.n <> 3",
    "kt.d BETWEEN ks.d AND ks.d",
    "kt.f <= ks.f",
    "kt.n >= ks.amount AND kt.amount <= ks.amount + 2 AND kt.n < ks.n + 5",
    "kt.n <= ks.n + 2 AND kt.n + 2 > ks.n AND kt.amount < 9",
    "kt.at >= date_trunc('month', ks.at) AND ks.at + INTERVAL '1' DAY > kt.at",
    "CAST(kt.at AS date) >= CAST(ks.at AS date)",
    "CAST(kt.amount AS decimal(38, 9)) BETWEEN ks.amount AND ks.amount + 1",
]


def test_a_range_matches_the_same_rows_in_every_join(
    spark: Any, pytestconfig: pytest.Config
) -> None:
    matches = {}
    forms = ("one task", "one task, paged", "many tasks")
    for form in (*forms, "spark, large"):
        engine = made(spark, form, duplicates="standard")
        for name, rows in SIDES.items():
            engine.run(f"CREATE TABLE {name} AS {JOINED.format(rows)}")
        for number, on in enumerate(third(RANGES, pytestconfig)):
            if not in_turn(form, forms, number, pytestconfig):
                continue
            for clause in ("WHEN NOT MATCHED BY SOURCE AND kt.n > 99 THEN DELETE", ""):
                statement = f"MERGE INTO kt USING ks ON {on} WHEN MATCHED AND kt.n > 99 THEN DELETE {clause}"
                assert (SAID[form] or "") in str(engine.run(f"EXPLAIN {statement}")), (form, on)
                trace = engine.run(statement).trace
                matches[form, on, clause] = (
                    trace.join.rows,
                    trace.join.matched_rows,
                    trace.join.unmatched_rows,
                )
    for (form, on, clause), counts in matches.items():
        assert counts == matches["spark, large", on, clause], (form, on, clause)
        assert counts[1], on


@pytest.mark.parametrize("form", ["one task", "one task, paged", "many tasks", "spark, large"])
@pytest.mark.parametrize(
    ("on", "code"),
    [
        ("t.id BETWEEN s.id AND s.id + (9223372036854775806 + s.v)", "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("t.id < s.id AND t.id > s.id + (9223372036854775806 + s.v)", "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("10 / (s.id - 2) < 0 AND t.id >= s.id", "DIVISION_BY_ZERO"),
        ("t.id > 99 AND t.id > s.id AND t.id < 10 / (s.id - 2)", None),
    ],
)
def test_a_range_fails_only_for_pairs_that_reach_it(
    spark: Any, form: str, on: str, code: str | None
) -> None:
    engine = made(spark, form)
    statement = f"MERGE INTO t USING s ON {on} WHEN MATCHED AND t.v > 99 THEN DELETE"
    if code is None:
        assert engine.run(statement).count == 0
        return
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement)
    assert caught.value.code == code


def test_a_range_with_a_large_source_is_joined_by_spark(spark: Any) -> None:
    plan = str(
        made(spark, "by keys").run(
            "EXPLAIN MERGE INTO t USING s ON t.id < s.id WHEN MATCHED THEN DELETE"
        )
    )
    assert RANGE_TOO_LARGE in plan


@pytest.mark.parametrize("form", [form for form in FORMS if "writers" not in form])
def test_a_key_that_cannot_be_computed_ends_the_statement_with_its_row(
    spark: Any, form: str
) -> None:
    engine = made(spark, form)
    with pytest.raises(RowMergeError) as caught:
        engine.run("MERGE INTO t USING s ON t.id = 10 / (s.v - 2) WHEN MATCHED THEN DELETE")
    assert (caught.value.code, caught.value.column) == ("DIVISION_BY_ZERO", 25)
    assert engine.table("t").num_rows == TARGET.num_rows


@pytest.mark.parametrize("form", ["many tasks", "by keys"])
def test_two_rows_of_a_computed_key_are_duplicates(spark: Any, form: str) -> None:
    engine = made(spark, form, pa.table({"id": [3, 3], "v": [1, 2]}))
    with pytest.raises(RowMergeError) as caught:
        engine.run("MERGE INTO t USING s ON t.id + 1 = s.id WHEN MATCHED THEN UPDATE SET v = s.v")
    assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"


@pytest.mark.parametrize(
    ("on", "why"),
    [
        ("t.id <> s.id", NO_KEYS),
        ("t.part < s.part", NO_KEYS),
        ("t.id > (SELECT min(v) FROM s)", NO_KEYS),
        ("format('%s', t.id) = s.part", "pages do not support the function format"),
        (
            "map(ARRAY[1], ARRAY[t.id]) = map(ARRAY[1], ARRAY[s.v])",
            "pages do not support = of map(integer, bigint)",
        ),
    ],
)
def test_the_plan_names_why_a_join_is_not_on_pages(spark: Any, on: str, why: str) -> None:
    assert why in str(
        made(spark, "many tasks").run(
            f"EXPLAIN MERGE INTO t USING s ON {on} WHEN MATCHED THEN DELETE"
        )
    )


@pytest.mark.parametrize("store", ["memory", "hive", "iceberg", "a frame"])
def test_long_texts_count_with_their_bytes(spark: Any, tmp_path: Path, store: str) -> None:
    settings = RuleSettings(small_rows=0, one_task_bytes=1 << 20)
    engine = Engine(spark=spark, rule_settings=settings)
    if store in {"hive", "iceberg"}:
        engine.add_catalog(
            "c", {"hive": HiveAcidConnector, "iceberg": IcebergConnector}[store](tmp_path)
        )
    texts = pa.array([os.urandom(20_000).hex() for _ in range(100)])
    frames = {
        "long": pa.table({"id": range(100), "x": texts}),
        "short": pa.table({"id": range(100), "x": ["x"] * 100}),
    }
    for name, rows in frames.items():
        if store == "memory":
            engine.register(name, rows)
        elif store != "a frame":
            engine.run(
                f"CREATE TABLE c.default.{name} AS SELECT * FROM frame", namespace={"frame": rows}
            )
    prefix = "c.default." if store in {"hive", "iceberg"} else ""
    engine.register("t", frames["short"])
    for name, said in (("short", SAID["one task"]), ("long", SAID["many tasks"])):
        for target, source in (("t", f"{prefix}{name}"), (f"{prefix}{name}", "t")):
            if store != "a frame" or target == "t":
                merge = f"EXPLAIN MERGE INTO {target} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = t.x || s.x"
                assert said in str(engine.run(merge, namespace=frames)), (name, target)


def test_the_maximum_size_of_a_source_is_a_setting_and_shown_in_the_plan(spark: Any) -> None:
    engine = Engine(
        spark=spark, rule_settings=RuleSettings(small_rows=0, source_bytes=0, one_task_bytes=0)
    )
    engine.register("t", TARGET)
    engine.register("s", SOURCE)
    text = str(engine.run("EXPLAIN MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"))
    said = (
        f"{SAID['by keys']}: the source, about 0 MiB, is not read by every task: the limit"
        " is 0 MiB (source_bytes)"
    )
    assert said in text
    assert engine.run("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE").count == 3


def test_rows_that_spark_would_recompute_for_another_stage_are_partitioned_by_their_keys(
    spark: Any,
) -> None:
    engine = made(spark, "many tasks")
    statement = "EXPLAIN MERGE INTO t USING ({}) q ON t.id = q.id WHEN MATCHED THEN DELETE"
    text = str(
        engine.run(
            statement.format(
                "SELECT id FROM (SELECT * FROM s WHERE id IN (SELECT id FROM t WHERE t.id = s.id))"
            )
        )
    )
    assert f"{SAID['by keys']}: the source is a query with IN or EXISTS" in text
    assert str(SAID["many tasks"]) in str(
        engine.run(statement.format("SELECT id FROM s WHERE v < (SELECT max(v) FROM s)"))
    )


@pytest.mark.parametrize(
    "source", ["s", "arrow s", "(SELECT * FROM s) s", "spark_frame s", "unpinned s"]
)
def test_a_source_that_each_task_reads_itself_may_be_larger_than_one_that_is_sent(
    spark: Any, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    engine = Engine(
        spark=spark, rule_settings=RuleSettings(small_rows=0, packed_bytes=0, one_task_bytes=0)
    )
    # With fewer rows, both sides would be sent by their keys.
    engine.register("t", pa.concat_tables([TARGET] * 40))
    engine.register("s", SOURCE)
    engine.register("unpinned", SOURCE)
    if source == "unpinned s":
        monkeypatch.setattr(MemorySplit, "is_repeatable", False)
    statement = f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN DELETE"
    frames = {"arrow": SOURCE, "spark_frame": spark.createDataFrame(SOURCE)}
    text = str(engine.run(f"EXPLAIN {statement}", namespace=frames))
    if source in {"s", "arrow s"}:
        assert (
            "The nodes below run in the tasks that read the target, each of which"
            " gets the whole source, on pages" in text
        )
    elif source == "spark_frame s":
        assert f"{SAID['by keys']}: the size of the source is unknown" in text
    else:
        assert (
            f"{SAID['by keys']}: the source, about 0 MiB, is not sent to every task:"
            " the limit is 0 MiB (packed_bytes)" in text
        )
    assert engine.run(statement, namespace=frames).count == 120


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.v > (SELECT max(v) FROM s r WHERE r.id < s.id) THEN DELETE",
            "a correlated subquery without equal keys in WHERE",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.x IN (SELECT x FROM t) THEN DELETE",
            "IN a query of floating point numbers",
        ),
        (
            "DELETE FROM t WHERE id IN (SELECT n FROM s CROSS JOIN UNNEST(sequence(1, 3)) AS u (n))",
            "of unknown size",
        ),
        (MERGES["delete"].replace("'b'", "format('%s', v)"), "the function format"),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE RETURNING format('%s', t.id) AS text",
            "the function format",
        ),
    ],
)
def test_conditions_that_pages_cannot_compute_are_named_in_the_plan(
    spark: Any, statement: str, why: str
) -> None:
    text = str(made(spark, "one task").run(f"EXPLAIN {statement}"))
    assert "Spark's operators execute the nodes below: " in text
    assert why in text


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t WHERE id IN (SELECT id FROM s)",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.id IN (SELECT id FROM s) THEN DELETE",
    ],
)
def test_a_list_of_a_query_is_sent_to_every_task_up_to_a_size(spark: Any, statement: str) -> None:
    for rows, said in (
        (6, SAID["one task"]),
        (
            5,
            (
                "a list of up to 6 rows: the result of a subquery is sent to every task up to"
                " 5 rows (key_rows)"
            ),
        ),
    ):
        engine = Engine(spark=spark, rule_settings=RuleSettings(key_rows=rows))
        engine.register("t", TARGET)
        engine.register("s", SOURCE)
        assert said in str(engine.run(f"EXPLAIN {statement}"))
        assert engine.run(statement).count == 3


@pytest.mark.parametrize(
    ("statement", "code", "column"),
    [
        ("UPDATE t SET v = (SELECT v FROM s)", "SUBQUERY_MULTIPLE_ROWS", 18),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.v > (SELECT v FROM s) THEN DELETE",
            "SUBQUERY_MULTIPLE_ROWS",
            54,
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, (SELECT v FROM s))",
            "SUBQUERY_MULTIPLE_ROWS",
            88,
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = (SELECT sum(1 / (v - 1)) FROM s)",
            "DIVISION_BY_ZERO",
            70,
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE RETURNING 1 / (old.v - 20) AS x",
            "DIVISION_BY_ZERO",
            72,
        ),
        (
            "DELETE FROM t WHERE 1 / (v - (SELECT 10 * max(id - 9) FROM s)) = 0",
            "DIVISION_BY_ZERO",
            21,
        ),
        ("DELETE FROM t WHERE id IN (SELECT 1 / (v - 1) FROM s)", "DIVISION_BY_ZERO", 21),
        (
            "MERGE INTO t USING s ON t.id = s.id AND 1 / (t.v - 20) = 0 WHEN MATCHED THEN DELETE",
            "DIVISION_BY_ZERO",
            25,
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND 1 / (s.v - 1) = 0 THEN DELETE",
            "DIVISION_BY_ZERO",
            54,
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id * 1000000000)",
            "NUMERIC_VALUE_OUT_OF_RANGE",
            79,
        ),
        ("UPDATE t SET v = 1 / (v - 60)", "DIVISION_BY_ZERO", 18),
    ],
)
def test_an_error_of_a_row_has_the_same_code_and_position_in_every_form(
    spark: Any, statement: str, code: str, column: int, pytestconfig: pytest.Config
) -> None:
    told = set()
    large = ("one task, paged", "many tasks", "by keys")
    forms = [
        form
        for form in FORMS
        if in_turn(form.removesuffix(", to writers"), large, column, pytestconfig)
    ]
    for form in ("one task", "by keys", "spark, large") if "(SELECT" in statement else forms:
        engine = made(spark, form)
        with pytest.raises(RowMergeError) as caught:
            engine.run(statement)
        error = caught.value
        # If tasks compute it, the row is named too.
        told.add(
            (
                error.code,
                error.message,
                error.line,
                error.column,
                re.sub(r" The first such row has .*?\.(?= [A-Z]|$)", "", error.hint or ""),
            )
        )
        assert engine.table("t").num_rows == TARGET.num_rows
    ((found, _, line, place, _),) = told
    assert (found, line, place) == (code, 1, column)


@pytest.mark.parametrize("form", [form for form in FORMS if "spark" not in form])
@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = {} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, {})",
        "MERGE INTO t USING (SELECT * FROM s) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = {} WHEN NOT MATCHED THEN INSERT (v) VALUES ({})",
        "UPDATE t SET v = {} WHERE id IS NOT NULL",
    ],
    ids=["a table", "a query", "UPDATE"],
)
def test_a_query_that_is_another_at_every_time_has_one_answer_for_all_rows(
    spark: Any, tmp_path: Path, form: str, statement: str
) -> None:
    engine = Engine(spark=spark, catalog="c", rule_settings=FORMS[form][0], dialect="extended")
    engine.add_catalog("c", IcebergConnector(tmp_path))
    placed = "WITH (partitioning = ARRAY['part'])" if form.endswith("to writers") else ""
    engine.run(f"CREATE TABLE t (id bigint, v bigint, part varchar) {placed}")
    # Several files, so that many tasks request it.
    for first in range(100, 400, 100):
        rows = pa.table({"id": range(first, first + 20), "part": ["a", "b"] * 10})
        engine.run("INSERT INTO t (id, part) SELECT id, part FROM news", namespace={"news": rows})
    engine.register("s", pa.table({"id": [105, 205, 305, *range(1000, 1100)]}))
    random = "(SELECT random(1000000000000))"
    changing = (
        statement.replace("{}", random)
        .replace("USING s", "USING memory.default.s AS s")
        .replace("FROM s", "FROM memory.default.s")
    )
    result = engine.run(f"{changing} RETURNING {random} AS any, old.id IS NULL AS new, new.v")
    assert "on pages" in " ".join(detail for node in result.trace.plan for detail in node.details)
    assert result.count == len(result.table) >= 60
    assert len(result.table["any"].unique()) == 1
    assert len(
        set(zip(result.table["new"].to_pylist(), result.table["v"].to_pylist(), strict=True))
    ) == statement.count("{}")


@pytest.mark.parametrize("form", FORMS)
def test_a_target_row_that_two_source_rows_match_ends_the_statement_with_both_rows_named(
    spark: Any, form: str
) -> None:
    engine = made(spark, form, pa.table({"id": [4, 4, 9], "v": [1, 2, 3]}))
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        )
    assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    (group,) = caught.value.groups
    assert len(group.sources) == 2
    assert engine.table("t").num_rows == TARGET.num_rows


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", ["one for very many", "each for many"])
def test_a_statement_with_very_many_matches_ends_with_the_first_ones_named(
    spark: Any, form: str, key: str
) -> None:
    ids = (
        [4] * 300_000 + [77] if key == "one for very many" else [n % 1_000 for n in range(300_000)]
    )
    engine = made(spark, form, pa.table({"id": ids, "v": range(len(ids))}))
    if key == "each for many":
        engine.run("DROP TABLE t")
        engine.register(
            "t",
            pa.table(
                {"id": pa.array(range(1_000), pa.int32()), "v": pa.array([0] * 1_000, pa.int64())}
            ),
        )
    before = engine.table("t").num_rows
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        )
    assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    assert len(caught.value.groups) == (1 if key == "one for very many" else 20)
    assert engine.table("t").num_rows == before


@pytest.mark.parametrize("form", ["one task, paged", "many tasks", "by keys"])
def test_millions_of_repeated_matches_are_not_all_counted(spark: Any, form: str) -> None:
    engine = made(spark, form, pa.table({"id": [7] * 1_500, "v": range(1_500)}))
    engine.run("DROP TABLE t")
    engine.register(
        "t",
        pa.table(
            {"id": pa.array([7] * 2_500, pa.int32()), "v": pa.array(range(2_500), pa.int64())}
        ),
    )
    with pytest.raises(RowMergeError) as caught:
        engine.run("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    assert "is matched by 1500 source rows by clause 0. At least " in (caught.value.hint or "")
    assert caught.value.result is not None
    trace = caught.value.result.trace
    assert (
        trace.join.rows,
        trace.join.matched_rows,
        trace.join.multiple_matches,
        trace.clauses[0].rows,
    ) == (
        None,
        None,
        None,
        None,
    )
    assert engine.table("t").num_rows == 2_500


@pytest.mark.parametrize("form", FORMS)
def test_very_many_matches_without_an_action_are_counted(spark: Any, form: str) -> None:
    """The standard's rule allows any number of matches of a target row, as long as it is changed once."""
    engine = made(
        spark, form, pa.table({"id": [4] * 300_000, "v": range(300_000)}), duplicates="standard"
    )
    result = engine.run(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v = 299999 THEN UPDATE SET v = s.v"
    )
    assert result.count == 1
    assert result.trace.join.matched_rows == 300_000
    assert max(engine.table("t")["v"].drop_null().to_pylist()) == 299_999


@pytest.mark.parametrize("form", FORMS)
def test_a_clause_is_computed_only_for_the_rows_that_reach_it(spark: Any, form: str) -> None:
    engine = made(spark, form)
    result = engine.run(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v IS NULL THEN DELETE "
        "WHEN MATCHED AND 10 / (coalesce(s.v, 0)) > 0 THEN UPDATE SET v = 1"
    )
    assert result.count == 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("empty", ["source", "target", "both"])
def test_a_side_without_rows(spark: Any, form: str, empty: str) -> None:
    engine = made(spark, form, SOURCE.slice(0, 0) if empty != "target" else SOURCE)
    if empty != "source":
        engine.run("DELETE FROM t")
    result = engine.run(MERGES["by source"])
    assert result.count == {"source": 6, "target": 6, "both": 0}[empty]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["by source", "queries for rows that the source lacks"])
def test_a_source_query_known_to_be_empty_on_spark_is_merged(
    spark: Any, form: str, name: str
) -> None:
    engine = made(spark, form)
    merge = MERGES[name].replace("USING s", "USING (SELECT * FROM s WHERE 1 = 0) s")
    assert engine.run(merge).count == TARGET.num_rows


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, CAST(random(1000) AS bigint) AS v FROM big",
        "SELECT id, v FROM big WHERE random() < 0.5",
        "SELECT id, v FROM big LIMIT 4000",
    ],
)
@pytest.mark.parametrize(
    "form", ["many tasks", "many tasks, to writers", "by keys", "by keys, to writers"]
)
def test_a_source_that_is_another_at_every_reading_is_read_once(
    spark: Any, query: str, form: str
) -> None:
    engine = made(spark, form)
    engine.register("big", pa.table({"id": range(200_000), "v": [0] * 200_000}))
    placed = (
        "WITH (bucketed_by = ARRAY['id'], bucket_count = 2)" if form.endswith("to writers") else ""
    )
    engine.run(f"CREATE TABLE b {placed} AS SELECT id, v FROM big WHERE id % 2 = 0")
    result = engine.run(
        f"MERGE INTO b USING (SELECT * FROM ({query}) q ORDER BY v % 7) s ON b.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    )
    told = str(
        engine.run(
            "EXPLAIN MERGE INTO b USING (SELECT id, v FROM big) s ON b.id = s.id WHEN MATCHED THEN DELETE"
        )
    )
    assert SAID[form] in told
    assert ("each writer takes" in told) is (form == "many tasks, to writers")
    ids = engine.table("b").column("id").to_pylist()
    assert len(ids) == len(set(ids)) == 100_000 + result.trace.join.unmatched_rows


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("UPDATE t SET part = 'moved'", 6),
        ("DELETE FROM t", 6),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = NULL", 3),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            6,
        ),
    ],
)
def test_partition_columns_are_read_even_if_no_expression_needs_them(
    spark: Any, form: str, era: str, statement: str, count: int
) -> None:
    engine = made(spark, form, table=PARTITIONED, era=era)
    assert engine.run(statement).count == count


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_a_partitioned_table_go_to_the_same_writers(spark: Any, form: str) -> None:
    engine = made(spark, form, table=PARTITIONED)
    trace = engine.run(MERGES["all clauses"], trace="full").trace
    assert trace.samples.pages is not None
    by_spark = "spark" if form == "one task" else "spark, large"
    found = made(spark, by_spark, table=PARTITIONED).run(MERGES["all clauses"], trace="full").trace
    assert trace.samples.pages.complete
    assert [(writer.writer, writer.rows) for writer in trace.writers] == [
        (writer.writer, writer.rows) for writer in found.writers
    ]
    assert sorted(trace.samples.pages.before.column("hash").to_pylist()) == sorted(
        found.samples.pages.before.column("hash").to_pylist()
    )
    assert sorted(trace.samples.pages.writers) == sorted(found.samples.pages.writers)


ERAS = ("documents", "current")
PLACED = {
    "memory, partitions": "WITH (partitioned_by = ARRAY['part'])",
    "memory, buckets": "WITH (bucketed_by = ARRAY['id'], bucket_count = 3)",
    "memory, transforms": "WITH (partitioned_by = ARRAY['bucket(id, 5)'])",
    "hive, partitions": "WITH (partitioned_by = ARRAY['part'])",
    "hive, buckets": "WITH (bucketed_by = ARRAY['id'], bucket_count = 3)",
    "iceberg, partitions": "WITH (partitioning = ARRAY['part', 'bucket(id, 3)'])",
}
MOVES = {
    "moved and inserted": "MERGE INTO t USING memory.default.s AS s ON t.id = s.id WHEN MATCHED AND s.v % 5 = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET part = s.part WHEN NOT MATCHED AND s.v % 7 = 0 THEN INSERT (id, part) VALUES (s.id, s.part) "
    "WHEN NOT MATCHED AND s.v % 7 < 5 THEN INSERT (id, v, part) VALUES (s.id, s.v, s.part)",
    "changed alone": "MERGE INTO t USING memory.default.s AS s ON t.id = s.id AND s.v % 2 = 0 WHEN MATCHED THEN UPDATE SET v = t.v + s.v",
    "inserted alone": "MERGE INTO t USING memory.default.s AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, s.part)",
    "by source": "MERGE INTO t USING memory.default.s AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.v > 100 THEN UPDATE SET part = 'gone' "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, s.part)",
    "a query": "MERGE INTO t USING (SELECT id, max(part) AS part FROM memory.default.s GROUP BY id) q ON t.id = q.id "
    "WHEN MATCHED THEN UPDATE SET part = q.part WHEN NOT MATCHED THEN INSERT (id, part) VALUES (q.id, q.part)",
}


def placed(
    spark: Any, place: str, folder: Path, form: str = "many tasks", **options: Any
) -> Engine:
    """Create a partitioned table of several files, and a source with some new rows and some rows without a key."""
    store = place.partition(",")[0]
    catalog = "memory" if store == "memory" else "c"
    engine = Engine(
        spark=spark, catalog=catalog, dialect="extended", rule_settings=FORMS[form][0], **options
    )
    if catalog == "c":
        engine.add_catalog(
            "c", {"hive": HiveAcidConnector, "iceberg": IcebergConnector}[store](folder)
        )
    engine.run(f"CREATE TABLE t (id integer, v bigint, part varchar) {PLACED[place]}")
    for first in (0, 100):
        rows = range(first, first + 100)
        ids = pa.array([n if n % 40 else None for n in rows], pa.int32())
        parts = [f"p{n % 4}" if n % 9 else None for n in rows]
        engine.run(
            "INSERT INTO t SELECT * FROM news",
            namespace={"news": pa.table({"id": ids, "v": rows, "part": parts})},
        )
    rows = range(100, 300)
    ids = pa.array([n if n % 30 else None for n in rows], pa.int32())
    engine.register(
        "s",
        pa.table({"id": ids, "v": rows, "part": [f"p{n % 5}" if n % 8 else None for n in rows]}),
    )
    return engine


@pytest.mark.parametrize(
    ("place", "era"), [(place, ERAS[number % 2]) for number, place in enumerate(PLACED)]
)
@pytest.mark.parametrize("form", ["many tasks", "by keys"])
def test_tasks_that_join_send_the_same_rows_to_the_same_writers_as_spark(
    spark: Any, tmp_path: Path, form: str, place: str, era: str
) -> None:
    """Both forms report the same, and would leave the same rows."""
    engine = placed(spark, place, tmp_path, form, era=era)
    for name, move in MOVES.items():
        rehearsal = engine.run(move, trace="full", rehearse=True, rules_off=BY_SPARK)
        rehearsed = where_rows_go(rehearsal)
        found = where_rows_go(engine.run(move, trace="full"))
        assert found.pop("replicated") is (form == "many tasks"), name
        assert not rehearsed.pop("replicated"), name
        assert found == rehearsed, name
        assert found["matched"][0] > 0, name
        if rehearsal.rehearsed is not None:
            left = [rows.to_pylist() for rows in (rehearsal.rehearsed, engine.table("t"))]
            assert sorted(map(repr, left[0])) == sorted(map(repr, left[1]))


def where_rows_go(result: Any) -> dict[str, Any]:
    """Return the report of a statement, and all rows with their writers."""
    trace = result.trace
    assert trace.samples.pages is not None
    assert trace.samples.pages.complete
    rows = zip(trace.samples.pages.after.to_pylist(), trace.samples.pages.writers, strict=True)
    # In the current era, the first row of a task without a target row is marked, and one form has more tasks than the other.
    before = trace.samples.pages.before.drop_columns(["is_distinct"])
    join, exchange = (
        next(node for node in trace.plan if node.kind == kind) for kind in ("Join", "Exchange")
    )
    return {
        "replicated": join.facts.distribution == "REPLICATED",
        "exchange": exchange.facts,
        "count": result.count,
        "clauses": [clause.rows for clause in trace.clauses],
        "matched": (
            trace.join.rows,
            trace.join.matched_rows,
            trace.join.unmatched_rows,
            trace.join.unmatched_target_rows,
            trace.target.rows_after,
        ),
        "writers": [(writer.writer, writer.rows, writer.counted) for writer in trace.writers],
        "rows": sorted(map(repr, rows)),
        "before": sorted(map(repr, before.to_pylist())),
    }


def test_explain_names_the_writers_of_unmatched_source_rows(spark: Any, tmp_path: Path) -> None:
    engine = placed(spark, "memory, partitions", tmp_path)
    assert (
        "the whole source, on pages; each writer takes its share of the unmatched source rows"
        in str(engine.run(f"EXPLAIN {MOVES['a query']}"))
    )


@pytest.mark.parametrize("store", ["hive", "iceberg"])
def test_a_small_table_stays_small_when_rows_of_it_have_been_deleted(
    spark: Any, tmp_path: Path, store: str
) -> None:
    engine = Engine(spark=spark, catalog="c")
    engine.add_catalog(
        "c", {"hive": HiveAcidConnector, "iceberg": IcebergConnector}[store](tmp_path)
    )
    engine.register("t", TARGET)
    engine.register("s", SOURCE)
    engine.run("CREATE TABLE t AS SELECT * FROM memory.default.t")
    engine.run("CREATE TABLE s AS SELECT * FROM memory.default.s")
    engine.run("DELETE FROM t WHERE id = 1")
    result = engine.run(f"EXPLAIN {MERGES['nothing else']}")
    assert SAID["one task"] in str(result)
    trace = engine.run(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    ).trace
    assert trace.target.rows_before is None, "a bound is no count"
    assert trace.samples.pages is not None
    assert trace.samples.pages.complete
    assert [edge for edge in trace.rows.values() if 8 in (edge[1], *edge[0])] == []


def test_a_small_source_of_a_large_target_is_joined_where_the_target_is_read(
    spark: Any, tmp_path: Path
) -> None:
    """The writers' exchange of small statements does not justify that Spark executes all of it."""
    engine = Engine(
        spark=spark, catalog="c", rule_settings=RuleSettings(small_rows=6, one_task_bytes=0)
    )
    engine.add_catalog("c", IcebergConnector(tmp_path))
    engine.run("CREATE TABLE t AS SELECT n AS id, n AS v FROM UNNEST(sequence(0, 99)) AS u (n)")
    engine.run("CREATE TABLE s AS SELECT n AS id, 0 AS v FROM UNNEST(ARRAY[5, 1000]) AS u (n)")
    statement = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    assert SAID["many tasks"] in str(engine.run(f"EXPLAIN {statement}"))
    assert "Exchange" not in [node.kind for node in engine.run(statement, dry_run=True).trace.plan]
    assert (engine.run(statement).count, engine.table("t").num_rows) == (2, 100)
    assert "Exchange" in [
        node.kind
        for node in engine.run(
            statement, dry_run=True, rules_off={"write_where_rows_are"}
        ).trace.plan
    ]
    assert engine.run(statement, rules_off={"write_where_rows_are"}).count == 2


@pytest.mark.parametrize("statement", ["UPDATE t SET v = v + 1", "DELETE FROM t WHERE v >= 0"])
def test_changed_rows_of_a_large_table_stay_where_they_were_read_and_few_tasks_write_them(
    spark: Any, tmp_path: Path, statement: str
) -> None:
    engine = Engine(
        spark=spark, catalog="c", rule_settings=RuleSettings(small_rows=0, few_tasks_rows=0)
    )
    engine.add_catalog("c", IcebergConnector(tmp_path))
    engine.run("CREATE TABLE t (id bigint, v bigint)")
    for part in range(5):
        engine.run(
            "INSERT INTO t "
            + " UNION ALL ".join(f"SELECT {part * 3 + row}, {row}" for row in range(3))
        )
    trace = engine.run(statement).trace
    assert "Exchange" not in [node.kind for node in trace.plan]
    assert len(trace.writers) == int(spark.conf.get("spark.sql.shuffle.partitions"))
    assert sum(sum(writer.rows.values()) for writer in trace.writers) == (
        30 if "UPDATE" in statement else 15
    )
    left = Counter(engine.table("t").column("v").to_pylist())
    assert left == (Counter({1: 5, 2: 5, 3: 5}) if "UPDATE" in statement else Counter())


@pytest.mark.parametrize("function", ["upper({})", "CASE WHEN v > 5 THEN {} END"])
@pytest.mark.parametrize(("form", "depth"), [("one task", 200), ("spark", 40)])
def test_deeply_nested_expressions_are_planned_and_computed(
    spark: Any, form: str, depth: int, function: str
) -> None:
    """By Spark, up to some hundred levels: its analyzer gives up after a hundred rounds."""
    nested = "part"
    for _ in range(depth):
        nested = function.format(nested)
    engine = made(spark, form)
    assert engine.run(f"UPDATE t SET part = {nested} WHERE id = 1").count == 1


@pytest.mark.parametrize("unpinned", [False, True])
@pytest.mark.parametrize("off", [frozenset(), frozenset({"prune_target"}), BY_SPARK])
@pytest.mark.parametrize("source", ["twice", "(SELECT * FROM twice) s"])
def test_the_rows_of_a_duplicate_are_found_again_for_any_columns_read(
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    source: str,
    off: frozenset[str],
    *,
    unpinned: bool,
) -> None:
    engine = Engine(spark=spark, rule_settings=RuleSettings(small_rows=0, one_task_bytes=0))
    engine.add_catalog("ice", IcebergConnector(tmp_path))
    engine.run("CREATE TABLE ice.default.many (id bigint, part varchar)")
    # One file each: by the keys, all but one are omitted if allowed, and a row's number counts the read files.
    for part in range(6):
        engine.run(
            f"INSERT INTO ice.default.many SELECT n, 'p{part}' FROM TABLE(sequence({part}0, {part}9)) AS t (n)"
        )
    engine.register("twice", pa.table({"id": [47, 47], "w": [1, 2]}))
    if unpinned:
        monkeypatch.setattr(MemorySplit, "is_repeatable", False)
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            f"MERGE INTO ice.default.many m USING {source} ON m.id = {source.rpartition(' ')[2]}.id WHEN MATCHED AND w > 0 THEN DELETE",
            rules_off=off,
        )
    (group,) = caught.value.groups  # type: ignore[attr-defined]
    assert group.target == {"id": 47, "part": "p4"}
    assert [row.values["w"] for row in group.sources] == [1, 2]


@pytest.mark.parametrize(
    "name", ["by source", pytest.param("all clauses", marks=pytest.mark.long), "a query"]
)
def test_a_full_trace_has_the_same_rows_of_both_sides_in_all_forms(spark: Any, name: str) -> None:
    shown = {}
    for form in FORMS:
        # All in partitions, since a deleted row keeps the values that identify its partition.
        trace = made(spark, form, table=PARTITIONED).run(MERGES[name], trace="full").trace
        assert trace.samples.pages is not None
        assert trace.samples.pages.witness is not None
        sides = trace.samples.pages.witness.drop_columns(["source_row"]).to_pylist()
        before = trace.samples.pages.before.column(
            trace.samples.pages.layout.before.merge_row
        ).to_pylist()
        shown[form] = sorted(map(repr, zip(sides, before, strict=True)))
    assert all(rows == shown["one task"] for rows in shown.values())


@pytest.mark.parametrize("form", [form for form in FORMS if "spark" not in form])
@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("UPDATE t SET v = 1 WHERE 100 / (v - 40) > 0", "t.id = 4, t.v = 40"),
        ("UPDATE t SET v = CAST(part AS bigint)", "t.id = 1, t.part = 'a'"),
        (
            "MERGE INTO t USING s ON t.id = s.id AND 1 / (t.v - s.v - 19) = 0 WHEN MATCHED THEN DELETE",
            "s.id = 2, s.v = 1, t.v = 20",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND 1 / (s.v - 2) > 0 THEN DELETE",
            "s.id = 3, s.v = 2",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 1 / (s.v - 5))",
            "s.id = 9, s.v = 5",
        ),
    ],
)
def test_an_error_names_the_row(spark: Any, form: str, statement: str, row: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        made(spark, form).run(statement)
    # The other columns that an UPDATE reads depend on the form.
    _, told, rest = (caught.value.hint or "").partition(" The first such row has ")
    assert set(row.split(", ")) <= set(told and rest.partition(". ")[0].split(", "))


def test_the_row_is_named_if_a_column_refuses_null(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register("t", pa.table({"id": [1, 2, 3], "v": [1, 1, 1]}), not_null=["v"])
    with pytest.raises(
        RowMergeError, match="NULL value not allowed for NOT NULL column: v"
    ) as caught:
        engine.run("UPDATE t SET v = NULLIF(id, 2)")
    assert "The first such row has t.id = 2, t.v = 1." in (caught.value.hint or "")


@pytest.mark.parametrize("off", [frozenset(), frozenset({"prune_target_columns"})])
def test_the_rows_of_a_duplicate_are_found_again_after_skipped_row_groups(
    spark: Any, tmp_path: Path, off: frozenset[str]
) -> None:
    engine = Engine(spark=spark, catalog="c", rule_settings=RuleSettings(small_rows=0))
    engine.add_catalog("c", IcebergConnector(tmp_path))
    engine.run("CREATE TABLE t (id bigint, v bigint)")
    for ids in ((1, 9), (7, 8), (7, 10)):
        engine.run(f"INSERT INTO t VALUES ({ids[0]}, {ids[0] * 10}), ({ids[1]}, {ids[1] * 10 + 1})")
    engine.register("s", pa.table({"id": [7, 7, 10]}))
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "MERGE INTO t USING memory.default.s AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
            rules_off=off,
        )
    assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    groups = getattr(caught.value, "groups")  # noqa: B009 - of this kind of error
    assert [group.target for group in groups] == [{"id": 7, "v": 70}, {"id": 7, "v": 70}]
