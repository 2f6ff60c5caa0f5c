"""The façade: tables, options, several statements, notices, and bad input."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError

pytestmark = pytest.mark.spark

TARGET = pa.table({"id": [1, 2, 3], "name": ["a", "b", None], "v": [10, 20, 30]})
SOURCE = pa.table({"id": [2, 3, 9], "name": ["x", "y", "z"], "n": [5, 0, 7]})


@pytest.fixture
def engine(spark: Any) -> Engine:
    made = Engine(spark=spark)
    made.register("t", TARGET, not_null=["id"])
    made.register("s", SOURCE)
    return made


BAD = [
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN INSERT VALUES (1)",
        "SYNTAX_ERROR",
        (1, 55),
    ),
    ("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN DELETE", "SYNTAX_ERROR", (1, 59)),
    (
        "MERGE INTO nope USING s ON nope.id = s.id WHEN MATCHED THEN DELETE",
        "TABLE_NOT_FOUND",
        (1, 1),
    ),
    (
        "MERGE INTO t USING nope ON t.id = nope.id WHEN MATCHED THEN DELETE",
        "TABLE_NOT_FOUND",
        (1, 20),
    ),
    ("MERGE INTO t USING s ON t.idd = s.id WHEN MATCHED THEN DELETE", "COLUMN_NOT_FOUND", (1, 25)),
    ("MERGE INTO t USING s ON id = 2 WHEN MATCHED THEN DELETE", "AMBIGUOUS_NAME", (1, 25)),
    ("MERGE INTO t USING s ON t.id = s.name WHEN MATCHED THEN DELETE", "TYPE_MISMATCH", (1, 30)),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.name",
        "TYPE_MISMATCH",
        (1, 37),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1, v = 2",
        "DUPLICATE_COLUMN_NAME",
        (1, 1),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)",
        "DUPLICATE_COLUMN_NAME",
        (1, 1),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET w = 1",
        "COLUMN_NOT_FOUND",
        (1, 1),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (name, v) VALUES ('x', 1)",
        "CONSTRAINT_VIOLATION",
        (1, 37),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = NULL",
        "CONSTRAINT_VIOLATION",
        (1, 71),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = CAST(s.name AS BIGINT)",
        "INVALID_CAST_ARGUMENT",
        (1, 70),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id AND random() < 2 WHEN MATCHED THEN DELETE",
        "NOT_SUPPORTED",
        (1, 25),
    ),
    (
        "MERGE INTO t USING s ON " + "(" * 3000 + "true" + ")" * 3000 + " WHEN MATCHED THEN DELETE",
        "SYNTAX_ERROR",
        None,
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 10 / s.n",
        "DIVISION_BY_ZERO",
        (1, 70),
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id\nWHEN MATCHED AND 1 / s.n > 0 THEN DELETE",
        "DIVISION_BY_ZERO",
        (2, 18),
    ),
    (
        "MERGE INTO t USING s ON t.id = 1 / s.n WHEN MATCHED THEN DELETE",
        "DIVISION_BY_ZERO",
        (1, 25),
    ),
    (
        "MERGE INTO t USING s ON t.id < s.id WHEN MATCHED THEN DELETE",
        "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
        (1, 37),
    ),
    ("MERGE INTO memory.nope.t USING s ON true WHEN MATCHED THEN DELETE", None, None),
    ("MERGE INTO lake.x.t USING s ON true WHEN MATCHED THEN DELETE", "TABLE_NOT_FOUND", None),
]


@pytest.mark.parametrize(
    ("sql", "code", "place"), BAD, ids=[f"{code}-{i}" for i, (_, code, _) in enumerate(BAD)]
)
def test_bad_input_gets_a_code_a_position_and_a_sentence_and_changes_nothing(
    engine: Engine, sql: str, code: str | None, place: tuple[int, int] | None
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql)
    error = caught.value
    assert code is None or error.code == code
    assert place is None or (error.line, error.column) == place
    assert len(error.message) > 10
    assert error.statement == sql
    if place is not None:
        assert "^" in error.excerpt()
    assert error.result.trace.state == "failed"
    assert engine.table("t").equals(TARGET)
    assert "Traceback" not in str(error)
    assert "org.apache.spark" not in str(error)


def test_a_wrong_number_of_values_is_reported_with_both_numbers(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match=r"\b3\b.*\b1\b|\b1\b.*\b3\b"):
        engine.run(
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, name, v) VALUES (1)"
        )


def test_a_connector_without_merge_is_reported(engine: Engine) -> None:
    from rowmerge_nb import spi

    class Reader(spi.Connector):
        get_metadata = lambda self, transaction: Tables()
        get_split_manager = get_page_source_provider = lambda self: None

    class Tables(spi.ConnectorMetadata):
        def get_table_handle(self, session: Any, name: Any) -> Any:
            return spi.ConnectorTableHandle()

        def get_table_metadata(self, session: Any, table: Any) -> Any:
            columns = (spi.ColumnMetadata("id", spi.parse_type("bigint")),)
            return spi.ConnectorTableMetadata(spi.SchemaTableName("default", "r"), columns)

    engine.add_catalog("readonly", Reader())
    with pytest.raises(RowMergeError) as caught:
        engine.run("MERGE INTO readonly.default.r USING s ON r.id = s.id WHEN MATCHED THEN DELETE")
    assert caught.value.code == "NOT_SUPPORTED"
    assert "Tables has no get_merge_row_id_column_handle" in caught.value.message


def test_a_dataframe_can_be_a_source_but_not_a_target(engine: Engine) -> None:
    frame = pd.DataFrame({"id": [1, 7], "v": [100.0, None]})
    result = engine.run(
        "MERGE INTO t USING frame f ON t.id = f.id WHEN MATCHED THEN UPDATE SET v = f.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (f.id, f.v)",
        namespace={"frame": frame},
    )
    assert result.counts == {"INSERT": 1, "UPDATE": 1, "DELETE": 0, "none": 0}
    assert {row["id"]: row["v"] for row in engine.table("t").to_pylist()} == {
        1: 100,
        2: 20,
        3: 30,
        7: None,
    }
    with pytest.raises(RowMergeError, match="CREATE TABLE frame AS SELECT"):
        engine.run(
            "MERGE INTO frame USING s ON frame.id = s.id WHEN MATCHED THEN DELETE",
            namespace={"frame": frame},
        )


def test_a_spark_dataframe_can_be_a_source(engine: Engine, spark: Any) -> None:
    result = engine.run(
        "MERGE INTO t USING numbers n ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
        namespace={"numbers": spark.range(1, 6)},
    )
    assert result.counts == {"INSERT": 2, "UPDATE": 0, "DELETE": 0, "none": 3}


def test_a_table_wins_over_a_dataframe_of_its_name_with_a_notice(engine: Engine) -> None:
    result = engine.run("SELECT count(*) AS n FROM t", namespace={"t": pd.DataFrame({"id": []})})
    assert result.to_pandas()["n"].tolist() == [3]
    assert "DataFrame of that name is not read" in result.trace.notices[0].message
    assert str(result).endswith(
        "\n\nNotice: 't' is the table memory.default.t; the DataFrame of that name is not read. To"
        "\n  read it, give it another name: t_df = t"
    )


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_a_column_of_a_hidden_dataframe_is_answered_with_the_name_that_is_read(
    engine: Engine, make: Any
) -> None:
    with pytest.raises(RowMergeError) as raised:
        engine.run('SELECT "region" FROM t', namespace={"t": make({"region": ["x"]})})
    assert raised.value.hint == (
        "t is the table memory.default.t, and region is a column of the DataFrame of that name. To"
        " read the DataFrame, give it another name: t_df = t"
    )


@pytest.mark.parametrize(
    ("statement", "options", "told"),
    [
        (
            "DROP TABLE t",
            {"near": True},
            "The option 'near' has no effect on DROP TABLE: it applies to MERGE",
        ),
        (
            "SELECT * FROM t",
            {"check": True},
            (
                "The option 'check' has no effect on SELECT: it applies to MERGE, UPDATE,"
                " DELETE and INSERT"
            ),
        ),
        (
            "INSERT INTO t SELECT * FROM t",
            {"why": "id = 7"},
            "The option 'why' has no effect on INSERT: it applies to MERGE, UPDATE and DELETE",
        ),
        ("INSERT INTO t SELECT * FROM t", {"check": True, "record": True, "near": False}, None),
    ],
)
def test_an_option_without_effect_on_a_statement_is_reported_as_such(
    engine: Engine, statement: str, options: dict[str, Any], told: str | None
) -> None:
    notices = [notice.message for notice in engine.run(statement, **options).trace.notices]
    assert notices == ([] if told is None else [told])


SOURCES = [
    ("s", 3),
    ("(SELECT id, n FROM s WHERE n > 0) AS q", 2),
    ("(VALUES (2, 5), (9, 7)) AS q(id, n)", 2),
    ("(SELECT a.id, b.n FROM s a JOIN s b ON a.id = b.id) q", 3),
    ("(WITH w AS (SELECT id, max(n) AS n FROM s GROUP BY id) SELECT * FROM w) q", 3),
    ("(SELECT id, n FROM s UNION ALL SELECT 50, 1) q", 4),
]


@pytest.mark.parametrize(("source", "joined"), SOURCES)
def test_every_form_of_source(engine: Engine, source: str, joined: int) -> None:
    alias = "s" if source == "s" else "q"
    result = engine.run(
        f"MERGE INTO t USING {source} ON t.id = {alias}.id "
        f"WHEN MATCHED THEN UPDATE SET v = {alias}.n WHEN NOT MATCHED THEN INSERT (id, v) VALUES ({alias}.id, {alias}.n)"
    )
    assert result.trace.join.rows == joined
    assert result.count == joined


def test_a_self_merge_reads_the_old_rows(engine: Engine) -> None:
    result = engine.run(
        "MERGE INTO t USING t AS o ON t.id = o.id + 1 WHEN MATCHED THEN UPDATE SET v = o.v WHEN NOT MATCHED THEN INSERT VALUES (o.id + 1, o.name, o.v)"
    )
    assert result.counts == {"INSERT": 1, "UPDATE": 2, "DELETE": 0, "none": 0}
    assert sorted(engine.table("t").to_pydict()["v"]) == [10, 10, 20, 30]


SUBQUERIES = [
    ("s.n = (SELECT max(n) FROM s)", 0),
    ("s.n IN (SELECT n FROM s WHERE n > 1)", 1),
    ("EXISTS (SELECT 1 FROM s x WHERE x.id = t.id AND x.n = 5)", 1),
    ("s.n > (SELECT min(x.n) FROM s x WHERE x.id = t.id OR x.id = 3)", 1),
    ("t.id NOT IN (SELECT id FROM s WHERE n = 0)", 1),
]


@pytest.mark.parametrize(("condition", "fires"), SUBQUERIES)
def test_subqueries_in_conditions(engine: Engine, condition: str, fires: int) -> None:
    result = engine.run(
        f"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND {condition} THEN DELETE"
    )
    assert result.counts["DELETE"] == fires


def test_subqueries_in_on_and_in_values(engine: Engine) -> None:
    result = engine.run(
        "MERGE INTO t USING s ON t.id = s.id AND s.n IN (SELECT n FROM s WHERE n > 0) "
        "WHEN MATCHED THEN UPDATE SET v = (SELECT sum(n) FROM s x WHERE x.id >= t.id) "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id + 100, (SELECT count(*) FROM t))"
    )
    assert result.counts == {"INSERT": 2, "UPDATE": 1, "DELETE": 0, "none": 0}
    rows = {row["id"]: row["v"] for row in engine.table("t").to_pylist()}
    assert rows == {1: 10, 2: 12, 3: 30, 103: 3, 109: 3}


def test_an_error_in_a_clause_that_no_row_reaches_is_not_evaluated(engine: Engine) -> None:
    result = engine.run(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.n = 0 THEN DELETE WHEN MATCHED AND 10 / s.n > 0 THEN UPDATE SET v = 10 / s.n"
    )
    assert result.counts == {"INSERT": 0, "UPDATE": 1, "DELETE": 1, "none": 1}


def test_an_empty_source_changes_nothing_and_still_finishes(engine: Engine) -> None:
    result = engine.run(
        "MERGE INTO t USING (SELECT * FROM s WHERE false) q ON t.id = q.id WHEN MATCHED THEN DELETE"
    )
    assert result.count == 0
    assert [c.method for c in result.trace.calls][-2:] == ["finish_merge", "commit"]
    assert not any(call.method == "create_merge_sink" for call in result.trace.calls)
    assert str(result)


def test_an_empty_target_accepts_all_rows(engine: Engine) -> None:
    engine.run("CREATE TABLE fresh AS SELECT * FROM t WITH NO DATA")
    result = engine.run(
        "MERGE INTO fresh f USING t ON f.id = t.id WHEN NOT MATCHED THEN INSERT VALUES (t.id, t.name, t.v)"
    )
    assert result.count == 3
    assert engine.table("fresh").equals(TARGET)


def test_several_statements_each_stay_until_one_fails(engine: Engine) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run_script("INSERT INTO t VALUES (4, 'd', 40); SELECT nope FROM t; DROP TABLE t;")
    assert caught.value.code == "COLUMN_NOT_FOUND"
    assert "Statement 1 stays done; statement 2 of 3 failed" in (caught.value.hint or "")
    assert engine.table("t").num_rows == 4


def test_create_table_as_that_fails_leaves_no_table(engine: Engine) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run("CREATE TABLE u AS SELECT 1 / n AS q FROM s")
    assert caught.value.code == "DIVISION_BY_ZERO"
    assert "memory.default.u" not in [table[0] for table in engine.tables()]


def test_drop_table(engine: Engine) -> None:
    engine.run("DROP TABLE t")
    with pytest.raises(RowMergeError) as caught:
        engine.run("DROP TABLE t")
    assert caught.value.code == "TABLE_NOT_FOUND"
    assert engine.run("DROP TABLE IF EXISTS t").trace.state == "finished"


def test_insert_checks_not_null_and_keeps_the_table(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match="NOT NULL column: id") as caught:
        engine.run("INSERT INTO t (name) VALUES ('x')")
    assert caught.value.code == "CONSTRAINT_VIOLATION"
    assert engine.table("t").num_rows == 3


def test_duplicates_standard_lets_idle_rows_pass_and_refuses_two_clauses(engine: Engine) -> None:
    twice = pa.table({"id": [1, 1], "k": [0, 1]})
    idle = "MERGE INTO t USING w ON t.id = w.id WHEN MATCHED AND w.k > 5 THEN DELETE"
    crossing = "MERGE INTO t USING w ON t.id = w.id WHEN MATCHED AND w.k = 0 THEN UPDATE SET v = 1 WHEN MATCHED THEN UPDATE SET v = 2"
    assert engine.run(idle, duplicates="standard", namespace={"w": twice}).count == 0
    for sql, rule in ((idle, "trino"), (crossing, "standard")):
        with pytest.raises(RowMergeError) as caught:
            engine.run(sql, duplicates=rule, namespace={"w": twice})
        assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    with pytest.raises(RowMergeError, match="matched more than one"):
        engine.run(crossing, paradigm="CHANGE_ONLY_UPDATED_COLUMNS", namespace={"w": twice})
    result = engine.run(crossing, namespace={"w": twice})
    assert "more than one clause" in result.trace.notices[0].message
    assert engine.table("t").num_rows == 4, "Trino keeps a version per clause, and says so here"


def test_deep_nesting_that_can_be_read_is_run(engine: Engine) -> None:
    sum_of_many = " + ".join(["s.n"] * 300)
    result = engine.run(
        f"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND {'(' * 200}true{')' * 200} THEN UPDATE SET v = {sum_of_many}"
    )
    assert result.counts["UPDATE"] == 2


def test_a_closed_engine_is_reported() -> None:
    closed = Engine()
    closed.close()
    with pytest.raises(RowMergeError, match="The engine is closed"):
        closed.run("SELECT 1")


def test_unknown_options_name_the_nearest(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match="Did you mean 'duplicates'"):
        engine.run("SELECT 1", duplicate="trino")
    with pytest.raises(RowMergeError, match="documents, current"):
        engine.run("SELECT 1", era="then")


def test_odd_column_names_are_carried(engine: Engine) -> None:
    odd = pa.table(
        {
            "operation": [1],
            "present": [1],
            "row_id": [1],
            "case_number": [5],
            "we`ird \"na'me": ["x"],
            "$position": [3],
        }
    )
    engine.register("odd", odd, partitioned_by=["operation"])
    result = engine.run(
        'MERGE INTO odd o USING odd p ON o.operation = p.operation AND o.row_id = p.row_id WHEN MATCHED THEN UPDATE SET "we`ird ""na\'me" = \'y\', case_number = p.case_number + 1'
    )
    assert result.count == 1
    assert engine.table("odd").to_pylist() == [
        {**odd.to_pylist()[0], "we`ird \"na'me": "y", "case_number": 6}
    ]


def test_the_users_session_gets_its_settings_back(spark: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    theirs = Engine(spark=session)
    theirs.register("t", TARGET)
    theirs.run("SELECT * FROM t")
    with pytest.raises(RowMergeError):
        theirs.run("SELECT 1 / 0")
    theirs.close()
    assert session.conf.get("spark.sql.ansi.enabled") == "false"
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert session.range(1).count() == 1, "the session is not stopped"
    assert not session.catalog.listTables(), "no view is left behind"


def test_large_statements_name_duplicates_by_a_query_of_their_own(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register("big", pa.table({"id": list(range(50_000)), "v": [0] * 50_000}))
    ids = [*range(20_000), 77]
    engine.register("news", pa.table({"id": ids, "v": list(range(20_001))}))
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "MERGE INTO big b USING news n ON b.id = n.id WHEN MATCHED THEN UPDATE SET v = n.v"
        )
    (group,) = caught.value.groups  # type: ignore[attr-defined]
    assert group.target == {"id": 77, "v": 0}
    assert sorted(matched.values["v"] for matched in group.sources)  # noqa: PD011 - no DataFrame == [77, 20_000]


def test_a_diff_lists_the_changed_rows(engine: Engine) -> None:
    result = engine.run(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.n = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.n"
    )
    diff = result.diff()
    assert diff[["operation", "case_number", "source_row", "old.v"]].to_numpy().tolist() == [
        ["UPDATE", 1, 0, 20],
        ["DELETE", 0, 1, 30],
    ]
    assert diff["new.v"].tolist()[0] == 5


def test_a_diff_has_the_types_of_a_query(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE typed AS SELECT 1 AS id, DECIMAL '1.50' AS d, TIMESTAMP '2026-01-02 03:04:05' AS at, true AS ok"
    )
    columns = ["id", "d", "at", "ok"]
    diff = engine.run("UPDATE typed SET d = d + 1, ok = false").diff()
    frame = engine.run("SELECT * FROM typed").to_pandas()
    for name in columns:
        # source_row is NULL, so that integers are those of pandas with NULL.
        dtypes = {str(rows.dtype).lower() for rows in (diff[f"old.{name}"], diff[f"new.{name}"])}
        assert {dtype.removesuffix("ean") for dtype in dtypes} == {str(frame[name].dtype)}
    assert str(diff["new.d"][0]) == "2.50"
    # Integers and booleans keep their type beside NULL.
    diff = engine.run("DELETE FROM typed").diff()
    assert [str(diff[f"new.{name}"].dtype) for name in columns] == [
        *("Int32", "object", "datetime64[us]", "boolean")
    ]
    assert diff["new.id"].isna().all()


def test_a_result_is_an_argument_of_the_constructors_of_frames(engine: Engine) -> None:
    large = 2**53 + 1
    result = engine.run(
        f"SELECT * FROM (VALUES (BIGINT '{large}', 'a', DECIMAL '1.5'), (NULL, NULL, NULL)) AS q (n, name, d)"
    )
    frame = pd.DataFrame(result)
    assert list(frame.columns) == ["n", "name", "d"]
    assert frame["n"][0] == large
    assert frame["n"].isna().tolist() == [False, True]
    assert pa.table(result)["n"].to_pylist() == [large, None]
    assert pl.DataFrame(result)["n"].to_list() == [large, None]
    assert [row["name"] for row in result] == ["a", None]
    assert pd.DataFrame(engine.run("DELETE FROM t WHERE id = 1"))["rows"].tolist() == [1]
    with pytest.raises(RowMergeError, match="Two columns are named 'a'"):
        pd.DataFrame(engine.run("SELECT 1 AS a, 2 AS a"))
    empty = engine.run("SELECT * FROM t WHERE id > 99")
    assert list(pd.DataFrame(empty).columns) == list(empty) == []
    assert (
        list(empty.to_pandas().columns)
        == pl.DataFrame(empty).columns
        == pa.table(empty).column_names
        == list(engine.table("t").column_names)
    )
    plan = engine.run("EXPLAIN SELECT * FROM t")
    assert list(plan.to_pandas()["Query Plan"]) == [str(plan)]


def test_a_result_used_as_a_list_or_a_truth_value_names_the_replacement(engine: Engine) -> None:
    rows, change = engine.run("SELECT id FROM t"), engine.run("DELETE FROM t WHERE id = 2")
    assert len(rows) == rows.to_pandas().shape[0]
    for use, hint in (
        (lambda: len(change), "result.count is the number of changed rows."),
        (lambda: bool(change), "Write result is not None, or result.count > 0."),
        (lambda: bool(rows), "Write result is not None, or len(result) > 0."),
        (lambda: "id" in rows, "Write 'id' in result.to_pandas().columns."),
        (lambda: 3 in rows, "Look in a column: result.to_pandas()['name'].isin([...])."),
        (lambda: rows["id"], "Write result.to_pandas()['id']."),
        (lambda: rows[0], "Write result.to_pandas().iloc[0]."),
        (lambda: rows[:2], "Write result.to_pandas().iloc[:2]."),
        (lambda: rows[-2:], "Write result.to_pandas().iloc[-2:]."),
    ):
        with pytest.raises(TypeError) as refused:
            use()
        assert isinstance(refused.value, RowMergeError)
        assert refused.value.hint == hint


def test_a_diff_reports_that_it_lacks_some_changed_rows(engine: Engine) -> None:
    engine.register("many", pa.table({"id": range(20_000), "v": [0] * 20_000}))
    result = engine.run("UPDATE many SET v = 1")
    with pytest.warns(UserWarning, match='of 20,000 changed rows.*trace="full"'):
        assert len(result.diff()) < 20_000
    assert len(engine.run("UPDATE many SET v = 2", trace="full").diff()) == 20_000


def test_a_failed_statement_has_no_diff(engine: Engine) -> None:
    with pytest.raises(RowMergeError) as failure:
        engine.run("UPDATE t SET v = 1 / (v - v)")
    with pytest.raises(RowMergeError, match="This UPDATE failed: it changed no row"):
        failure.value.result.diff()


@pytest.mark.parametrize(
    ("sql", "remark"),
    [
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = v",
            "2 updated rows have the same values as before. WHEN MATCHED AND t.c IS DISTINCT FROM s.c skips such rows.",
        ),
        (
            "UPDATE t SET v = greatest(v, 21)",
            "1 updated row has the same values as before. A WHERE with c IS DISTINCT FROM its new value skips such rows.",
        ),
        ("UPDATE t SET v = v + 1", ""),
        ("DELETE FROM t", ""),
    ],
)
def test_rows_that_are_updated_to_their_own_values_are_counted(
    engine: Engine, sql: str, remark: str
) -> None:
    from rowmerge_nb.report.model.report import build_report

    diff = build_report(engine.run(sql).trace).diff
    assert diff is not None
    assert diff.remark == remark
