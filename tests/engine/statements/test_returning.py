"""RETURNING: any number of rows, after every exchange, of every type, and none of a failed statement."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.plan.rules import RuleSettings
from rowmerge_nb.report import build_report
from rowmerge_nb.testing.faults import Fault, FaultyConnector
from rowmerge_nb.trace.saved.traces import load_trace, save_trace

pytestmark = pytest.mark.spark

TARGET = pa.table({"id": [1, 2, 3], "v": [10, 20, 30]})
SOURCE = pa.table({"id": [2, 3, 9], "v": [5, 0, 7]})
MERGE = "MERGE INTO t USING s ON t.id = s.id "
UPSERT = MERGE + "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT * "


def engine(spark: Any, settings: RuleSettings | None = None, **properties: Any) -> Engine:
    made = Engine(spark=spark, dialect="extended", rule_settings=settings)
    made.register("t", TARGET, **properties)
    made.register("s", SOURCE)
    return made


def test_the_report_and_the_rows_are_both_shown(spark: Any) -> None:
    result = engine(spark).run(
        UPSERT + "RETURNING merge_action() AS action, t.id, old.v AS was, t.v AS is_now"
    )
    assert result.table is not None
    assert result.table.schema.names == ["action", "id", "was", "is_now"]
    assert [str(kind) for kind in result.table.schema.types] == [
        "string",
        "int64",
        "int64",
        "int64",
    ]
    shown = result._repr_mimebundle_()
    assert str(result) == shown["text/plain"]
    for part in ("INSERT", "is_now", "MERGE INTO t: 1 row inserted, 2 updated; 3 rows returned."):
        assert part in " ".join(shown["text/plain"].split())
    assert shown["text/html"].index("is_now</th>") < shown["text/html"].index("3 rows returned")
    assert result.to_pandas().shape == (3, 4)
    assert result.count == 3


def test_the_number_of_rows_is_in_a_saved_trace(spark: Any, tmp_path: Any) -> None:
    result = engine(spark).run(UPSERT + "WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING t.id")
    save_trace(result.trace, tmp_path / "trace.json")
    again = load_trace(tmp_path / "trace.json")
    assert (again.returned, again.join.unmatched_target_rows) == (4, 1)
    assert again.clauses == result.trace.clauses
    pages = build_report(again).pages
    assert pages is not None
    assert [row.source for row in pages.rows] == ["0", "1", "2", "none"], (
        "a target row without a source row comes last"
    )
    assert [
        branch.by_source
        for branch in again.plan[[bool(r.branches) for r in again.plan].index(True)].branches
    ] == [
        False,
        False,
        True,
        False,
    ]


def test_values_of_every_type_are_returned_unchanged(spark: Any) -> None:
    values = {
        "n": Decimal("12.50"),
        "text": "it's",
        "day": dt.date(2024, 2, 29),
        "at": dt.datetime(2024, 2, 29, 12, 30, 0, 123456),  # noqa: DTZ001 - a timestamp without time zone
        "time": dt.time(12, 30, 0, 5),
        "flag": True,
        "list": [1, None],
        "row": {"x": 1, "y": "z"},
        "real": 1.5,
        "bytes": b"\x00\xff",
        "nothing": None,
    }
    source = pa.table(
        {
            "id": pa.array([9], pa.int64()),
            **{name: [value] for name, value in values.items() if name != "nothing"},
        }
    )
    made = engine(spark)
    made.register("s", source)
    names = ", ".join(f's."{name}"' if name != "nothing" else "NULL AS nothing" for name in values)
    result = made.run(f"{MERGE}WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) RETURNING {names}")
    assert result.table is not None
    assert result.table.to_pylist() == [values]
    assert result.table.schema.field("time").type == pa.time64("us")


@pytest.mark.parametrize(
    "layout", [{}, {"partitioned_by": ["v"]}], ids=["fused", "behind an exchange"]
)
def test_many_rows_are_returned(spark: Any, layout: dict[str, Any]) -> None:
    made = engine(spark, RuleSettings(small_rows=0), **layout)
    many = pa.table({"id": range(30_000), "v": [i % 7 for i in range(30_000)]})
    made.register("s", many)
    result = made.run(UPSERT + "RETURNING t.*", trace="off")
    assert result.table is not None
    assert result.table.sort_by("id").to_pydict() == many.to_pydict()
    assert result.trace.returned == 30_000


def test_an_error_in_returning_undoes_the_statement_and_points_at_its_position(spark: Any) -> None:
    made = engine(spark)
    with pytest.raises(RowMergeError) as caught:
        made.run(UPSERT + "RETURNING t.id, 1 / s.v AS x")
    error = caught.value
    assert (error.code, error.line, error.column) == (
        "DIVISION_BY_ZERO",
        1,
        len(UPSERT) + len("RETURNING t.id, ") + 1,
    )
    row = "The first such row has s.id = 3, s.v = 0."
    assert (
        error.hint
        == f"It happened in RETURNING. {row} With NULLIF(divisor, 0), the quotient is NULL."
    )
    assert made.table("t").equals(TARGET)
    assert error.result.table is None


def test_an_expression_is_not_evaluated_for_rows_that_do_not_change(spark: Any) -> None:
    result = engine(spark).run(
        MERGE
        + "WHEN MATCHED AND s.v > 0 THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN DO NOTHING RETURNING 10 / s.v AS x"
    )
    assert result.table is not None
    assert result.table.to_pydict() == {"x": [2]}


def test_a_statement_that_fails_while_it_writes_returns_nothing(spark: Any) -> None:
    made = Engine(spark=spark, dialect="extended")
    made.register("s", SOURCE)
    made.add_catalog(
        "faulty", FaultyConnector(MemoryConnector(), Fault("finish_merge", after=True))
    )
    made.run("CREATE TABLE faulty.default.t (id BIGINT, v BIGINT)")
    with pytest.raises(RowMergeError) as caught:
        made.run(
            "MERGE INTO faulty.default.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT * RETURNING t.id"
        )
    assert caught.value.result.table is None
    assert caught.value.result.trace.returned is None


# -- DO NOTHING and the duplicate rules


TWICE = "MERGE INTO t USING (SELECT * FROM s UNION ALL SELECT 2, -1) s ON t.id = s.id WHEN MATCHED AND s.v < 0 THEN DO NOTHING "


@pytest.mark.parametrize("paradigm", ["DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS"])
def test_a_row_that_does_nothing_does_not_act_under_either_rule(spark: Any, paradigm: str) -> None:
    for rule in ("standard", "trino"):
        made = engine(spark, paradigm=paradigm)
        result = made.run(TWICE + "WHEN MATCHED THEN UPDATE SET v = s.v", duplicates=rule)
        assert result.counts == {"INSERT": 0, "UPDATE": 2, "DELETE": 0, "none": 2}
        assert not result.trace.join.duplicate_groups
        assert dict(zip(*made.table("t").to_pydict().values(), strict=True)) == {1: 10, 2: 5, 3: 0}


def test_a_repeated_do_nothing_is_a_repeated_key_only_for_trinos_rule(spark: Any) -> None:
    merge = TWICE.replace("s.v < 0", "t.id = 2") + "WHEN MATCHED THEN DELETE"
    with pytest.raises(RowMergeError) as caught:
        engine(spark).run(merge)
    assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    made = engine(spark)
    made.run(merge, duplicates="standard")
    assert sorted(made.table("t").column("id").to_pylist()) == [1, 2]


# -- errors of clauses about unmatched target rows

BY_SOURCE = [
    ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET id = NULL", "CONSTRAINT_VIOLATION", 49),
    ("WHEN NOT MATCHED BY SOURCE AND 1 / (t.v - 10) > 0 THEN DELETE", "DIVISION_BY_ZERO", 32),
    ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 1 / (t.v - 10)", "DIVISION_BY_ZERO", 48),
]


@pytest.mark.parametrize(("clause", "code", "column"), BY_SOURCE)
def test_errors_point_into_a_clause_about_what_the_source_lacks(
    spark: Any, clause: str, code: str, column: int
) -> None:
    made = engine(spark, not_null=["id"])
    with pytest.raises(RowMergeError) as caught:
        made.run(f"{MERGE}\nWHEN MATCHED THEN DO NOTHING\n{clause}")
    assert (caught.value.code, caught.value.line, caught.value.column) == (code, 3, column)
    assert made.table("t").equals(TARGET)


def test_the_statement_is_refused_without_the_option_which_the_hint_names(
    spark: Any,
) -> None:
    made = engine(spark)
    with pytest.raises(RowMergeError) as caught:
        made.run(UPSERT + "RETURNING t.id", dialect="trino")
    assert caught.value.code == "SYNTAX_ERROR"
    assert 'dialect="extended"' in str(caught.value.hint)


def test_rows_within_rows_keep_the_names_of_their_fields(spark: Any) -> None:
    made = Engine(spark=spark, dialect="extended")
    made.run("CREATE TABLE r (k INTEGER, v ROW(x INTEGER, y VARCHAR))")
    made.run("INSERT INTO r VALUES (1, ROW(1, 'a')), (2, ROW(2, 'b'))")
    result = made.run(
        "MERGE INTO r t USING (VALUES 1) s (k) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = ROW(7, 'z') "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING t.v, new.v.y AS y"
    )
    assert sorted(result.table.to_pylist(), key=repr) == [
        {"v": {"x": 2, "y": "b"}, "y": None},
        {"v": {"x": 7, "y": "z"}, "y": "z"},
    ]


def test_the_first_of_many_rows_are_shown(spark: Any) -> None:
    made = Engine(spark=spark, dialect="extended")
    made.register("many", pa.table({"id": list(range(500))}))
    result = made.run(
        "MERGE INTO many t USING many s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id RETURNING t.id"
    )
    assert result.table.num_rows == 500
    assert "500 rows, the first 60 shown" in str(result)
    assert "\n60  60" not in str(result)


# -- UPDATE and DELETE


@pytest.mark.parametrize(
    "layout", [{}, {"partitioned_by": ["id"]}, {"bucketed_by": ["id"], "bucket_count": 3}], ids=str
)
@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize(
    ("statement", "returned", "left"),
    [
        (
            "UPDATE t SET v = v + 1, id = id * 10 WHERE v >= 20 RETURNING id, old.id AS was, new.v AS n, v - old.v",
            [(20, 2, 21, 1), (30, 3, 31, 1)],
            [(1, 10), (20, 21), (30, 31)],
        ),
        (
            "UPDATE t SET v = NULL WHERE id = 1 RETURNING *",
            [(1, None)],
            [(1, None), (2, 20), (3, 30)],
        ),
        ("UPDATE t SET v = 1 WHERE id > 9 RETURNING t.*", [], [(1, 10), (2, 20), (3, 30)]),
        (
            "DELETE FROM t WHERE v < 30 RETURNING *, old.v + 1, new.v AS n",
            [(1, 10, 11, None), (2, 20, 21, None)],
            [(3, 30)],
        ),
        ("DELETE FROM t RETURNING count_if_even(id)", None, None),
        (
            "DELETE FROM t WHERE id IN (SELECT id FROM s) RETURNING (SELECT max(v) FROM s) - v",
            [(-13,), (-23,)],
            [(1, 10)],
        ),
        (
            "UPDATE t SET v = (SELECT max(v) FROM s) RETURNING v, id",
            [(7, 1), (7, 2), (7, 3)],
            [(1, 7), (2, 7), (3, 7)],
        ),
    ],
)
def test_update_and_delete_return_their_rows(
    spark: Any, statement: str, returned: Any, left: Any, era: str, layout: dict[str, Any]
) -> None:
    made = engine(spark, **layout)
    if returned is None:
        with pytest.raises(RowMergeError, match="FUNCTION_NOT_FOUND"):
            made.run(statement, era=era)
        assert made.table("t").num_rows == 3
        return
    result = made.run(statement, era=era)
    assert result.table is not None
    assert sorted(map(tuple, (row.values() for row in result.table.to_pylist()))) == sorted(
        returned
    )
    assert (result.count, result.trace.returned) == (len(returned), len(returned))
    assert sorted(tuple(row.values()) for row in made.table("t").to_pylist()) == left


@pytest.mark.parametrize(
    "settings",
    [RuleSettings(), RuleSettings(small_rows=0, few_tasks_rows=0)],
    ids=["small", "large"],
)
def test_many_rows_are_returned_by_every_executor(spark: Any, settings: RuleSettings) -> None:
    made = engine(spark, settings)
    made.register("big", pa.table({"id": range(30_000), "v": [1] * 30_000}))
    changed = made.run("UPDATE big SET v = 2 WHERE id % 3 = 0 RETURNING id, old.v, new.v")
    assert changed.table is not None
    assert sorted(changed.table.column("id").to_pylist()) == list(range(0, 30_000, 3))
    gone = made.run("DELETE FROM big WHERE v = 2 RETURNING id")
    assert gone.table is not None
    assert sorted(gone.table.column("id").to_pylist()) == list(range(0, 30_000, 3))
    assert made.table("big").num_rows == 20_000


def test_an_update_that_fails_or_is_rolled_back_returns_no_row(spark: Any) -> None:
    made = engine(spark)
    with pytest.raises(RowMergeError, match="DIVISION_BY_ZERO"):
        made.run("UPDATE t SET v = 1 RETURNING 1 / (v - 1)")
    assert made.table("t").equals(TARGET)
    result = made.run("DELETE FROM t RETURNING id", rehearse=True)
    assert result.table is not None
    assert result.table.num_rows == 3
    assert made.table("t").equals(TARGET)


@pytest.mark.parametrize(
    ("statement", "options", "code", "said"),
    [
        (
            "UPDATE t SET v = 1 RETURNING nope",
            {},
            "COLUMN_NOT_FOUND",
            "Column 'nope' cannot be resolved",
        ),
        (
            "DELETE FROM t RETURNING merge_action()",
            {},
            "FUNCTION_NOT_FOUND",
            "Function 'merge_action' not registered",
        ),
        (
            "DELETE FROM t RETURNING",
            {},
            "SYNTAX_ERROR",
            "mismatched input '<EOF>'. Expecting: '*', <expression>",
        ),
        (
            "DELETE FROM t RETURNING sum(v)",
            {},
            "EXPRESSION_NOT_SCALAR",
            "RETURNING cannot contain aggregations",
        ),
        (
            "DELETE FROM t RETURNING id",
            {"flow": "updatable"},
            "NOT_SUPPORTED",
            "The flow 'updatable' has no RETURNING",
        ),
        (
            "DELETE FROM t RETURNING id",
            {"dialect": "trino"},
            "SYNTAX_ERROR",
            "mismatched input 'RETURNING'",
        ),
        (
            "UPDATE t SET v = 1 WHERE id = 1 RETURNING id",
            {"dialect": "trino"},
            "SYNTAX_ERROR",
            "mismatched input 'RETURNING'",
        ),
    ],
)
def test_impossible_returning_lists_are_refused_before_anything_changes(
    spark: Any, statement: str, options: dict[str, Any], code: str, said: str
) -> None:
    made = engine(spark)
    with pytest.raises(RowMergeError) as caught:
        made.run(statement, **options)
    assert caught.value.code == code
    assert said in caught.value.message
    if options:
        assert "--dialect extended" in (caught.value.hint or "") or "flow" in (
            caught.value.hint or ""
        )
    assert made.table("t").equals(TARGET)


def test_update_star_is_update_set_star(spark: Any) -> None:
    made = engine(spark)
    assert made.run(MERGE + "WHEN MATCHED THEN UPDATE * WHEN NOT MATCHED THEN INSERT *").count == 3
    assert sorted(tuple(row.values()) for row in made.table("t").to_pylist()) == [
        (1, 10),
        (2, 5),
        (3, 0),
        (9, 7),
    ]


# -- INSERT


@pytest.mark.parametrize(
    "properties",
    [{}, {"partitioned_by": ["kind"]}, {"bucketed_by": ["id"], "bucket_count": 2}],
    ids=["plain", "partitioned", "bucketed"],
)
@pytest.mark.parametrize("rows", [3, 30_000], ids=["few", "many"])
def test_an_insert_returns_its_rows_from_every_plan(
    spark: Any, properties: dict[str, Any], rows: int
) -> None:
    made = engine(spark)
    made.register(
        "i",
        pa.table(
            {
                "id": pa.array([], pa.int64()),
                "kind": pa.array([], pa.string()),
                "returning": pa.array([], pa.int32()),
            }
        ),
        **properties,
    )
    result = made.run(
        f"INSERT INTO i (id, kind) SELECT n, CAST(n % 3 AS varchar) FROM TABLE(sequence(1, {rows})) AS s (n)"
        ' RETURNING id, upper(kind) AS k, i.id + 1 AS next, old.id AS was, new.id AS is_now, "returning"'
    )
    assert result.table is not None
    assert result.table.column_names == ["id", "k", "next", "was", "is_now", "returning"]
    found = sorted(tuple(row.values()) for row in result.table.to_pylist())
    assert found == [(n, str(n % 3), n + 1, None, n, None) for n in range(1, rows + 1)]
    assert (result.count, result.trace.returned) == (rows, rows)
    assert "rows returned." in " ".join(str(result).split())
    assert made.run("SELECT count(*) FROM i").table.column(0).to_pylist() == [rows]


def test_an_insert_returns_the_stored_rows(spark: Any) -> None:
    made = engine(spark)
    made.run(
        "CREATE TABLE stored (c char(4), d decimal(4,1), t timestamp(3), n integer, m varchar)"
    )
    sql = "INSERT INTO stored (d, c, n, t) VALUES (1.25, 'ab', 2, TIMESTAMP '2024-01-01 00:00:00.123456'), (NULL, NULL, NULL, NULL)"
    result = made.run(f"{sql} RETURNING *")
    assert result.table is not None
    wanted = made.run("SELECT * FROM stored").table
    assert wanted is not None
    assert sorted(map(repr, result.table.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
    assert result.table.schema == wanted.schema


def test_returning_is_not_an_alias_after_the_query_of_an_insert(spark: Any) -> None:
    made = engine(spark)
    for query in (
        "SELECT id, v FROM s",
        "SELECT id, v FROM s x",
        "SELECT id, v FROM s WHERE id > 0",
        "(SELECT id, v FROM s)",
        "TABLE s",
    ):
        result = made.run(f"INSERT INTO t {query} RETURNING id")
        assert result.table is not None
        assert sorted(result.table.column(0).to_pylist()) == [2, 3, 9]
    assert made.run("SELECT returning.id FROM s returning").table.num_rows == 3  # type: ignore[union-attr]
    assert made.run('INSERT INTO t SELECT id, v FROM s AS "returning"').table is None


def test_an_insert_computes_with_the_old_values_that_a_new_row_lacks(spark: Any) -> None:
    engine = Engine(spark=spark, dialect="extended")
    engine.run("CREATE TABLE t (a integer, b integer)")
    result = engine.run(
        "INSERT INTO t VALUES (1, 2) RETURNING old.b * 2, old.b + a, 2 - old.b, -old.b,"
        " coalesce(old.b / 2, 7)"
    )
    assert result.table is not None
    assert [column.to_pylist() for column in result.table.columns] == [[None]] * 4 + [[7]]


def test_an_insert_of_no_rows_returns_none(spark: Any) -> None:
    result = engine(spark).run("INSERT INTO t SELECT * FROM s WHERE id > 100 RETURNING id")
    assert result.table is not None
    assert (result.table.num_rows, result.table.column_names, result.count) == (0, ["id"], 0)


def test_an_insert_that_fails_or_is_rolled_back_returns_nothing_and_leaves_the_table(
    spark: Any,
) -> None:
    made = engine(spark)
    with pytest.raises(RowMergeError, match="DIVISION_BY_ZERO") as failed:
        made.run("INSERT INTO t SELECT * FROM s RETURNING 1 / v")
    assert (failed.value.line, failed.value.column) == (1, 41)
    assert failed.value.result.table is None
    rehearsed = made.run("INSERT INTO t SELECT * FROM s RETURNING id", rehearse=True)
    assert rehearsed.table is not None
    assert made.run("SELECT count(*) FROM t").table.column(0).to_pylist() == [3]  # type: ignore[union-attr]
    planned = made.run("INSERT INTO t SELECT * FROM s RETURNING id", dry_run=True)
    assert planned.table is None


@pytest.mark.parametrize(
    ("returning", "code"),
    [
        ("nope", "COLUMN_NOT_FOUND"),
        ("s.id", "COLUMN_NOT_FOUND"),
        ("merge_action()", "FUNCTION_NOT_FOUND"),
        ("count(*)", "EXPRESSION_NOT_SCALAR"),
        ("", "SYNTAX_ERROR"),
    ],
)
def test_impossible_returning_lists_of_an_insert_are_refused(
    spark: Any, returning: str, code: str
) -> None:
    made = engine(spark)
    with pytest.raises(RowMergeError) as failed:
        made.run(f"INSERT INTO t SELECT * FROM s RETURNING {returning}")
    assert (failed.value.code, failed.value.line) == (code, 1)
    assert made.run("SELECT count(*) FROM t").table.column(0).to_pylist() == [3]  # type: ignore[union-attr]


def test_an_insert_that_returns_is_checked_verified_and_explained(spark: Any) -> None:
    made = engine(spark)
    result = made.run("INSERT INTO t SELECT * FROM s RETURNING v, id", check=True, verify="duckdb")
    assert result.table is not None
    assert result.table.num_rows == 3
    assert result.verification is not None
    assert result.verification.state == "agrees"
    explained = made.run(
        "EXPLAIN (TYPE LOGICAL) INSERT INTO t SELECT * FROM s RETURNING v, id"
    ).explained
    assert explained is not None
    assert "returning := row(v, id)" in explained


def test_trinos_dialect_has_no_returning_after_an_insert(spark: Any) -> None:
    made = engine(spark)
    with pytest.raises(RowMergeError, match="The option --dialect extended accepts it"):
        made.run("INSERT INTO t VALUES (1, 2) RETURNING id", dialect="trino")
