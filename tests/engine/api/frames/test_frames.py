"""Statements over DataFrames: columns without a value, refused columns, names of frames."""

from __future__ import annotations

import uuid
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError

pytestmark = pytest.mark.spark

EMPTY = pa.table(
    {
        "id": [1, 2, 3],
        "n": pa.nulls(3),
        "l": pa.array([[], [None], None], pa.list_(pa.null())),
        "s": pa.array(
            [{"a": None, "b": 1}, None, None], pa.struct([("a", pa.null()), ("b", pa.int64())])
        ),
        "m": pa.array([[("k", None)], [], None], pa.map_(pa.string(), pa.null())),
    }
)
TARGET = pa.table(
    {
        "id": pa.array([1, 9], pa.int64()),
        "n": pa.array([5, 6], pa.int32()),
        "l": pa.array([[1], [2]], pa.list_(pa.int32())),
        "s": pa.array([{"a": "q", "b": 1}] * 2, pa.struct([("a", pa.string()), ("b", pa.int64())])),
        "m": pa.array([[], []], pa.map_(pa.string(), pa.date32())),
    }
)
MERGE = (
    "MERGE INTO t USING {source} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = u.n, l = u.l, s = u.s, m = u.m "
    "WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.n, u.l, u.s, u.m)"
)


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark)
    engine.register("t", TARGET)
    return engine


def stored(engine: Engine) -> list[dict[str, Any]]:
    return engine.table("t").sort_by("id").to_pylist()


@pytest.mark.parametrize(
    "statement",
    [
        MERGE.format(source="u"),
        MERGE.format(source="(SELECT * FROM u)"),
        MERGE.format(source="u")
        .replace("INSERT VALUES", "AND u.n IS NULL THEN INSERT VALUES")
        .replace("MATCHED THEN AND", "MATCHED AND"),
    ],
)
def test_columns_without_a_value_fit_every_type_of_a_merge(engine: Engine, statement: str) -> None:
    result = engine.run(statement, namespace={"u": EMPTY}, trace="full")
    assert (result.counts["INSERT"], result.counts["UPDATE"]) == (2, 1)
    assert stored(engine)[:3] == EMPTY.to_pylist()
    assert "NULL" in str(result)
    assert "<" in result._repr_mimebundle_()["text/html"]
    assert "NULL" in str(result.why(0))


def test_columns_without_a_value_are_inserted_and_compared_as_null(engine: Engine) -> None:
    frames = {"u": EMPTY}
    engine.run("INSERT INTO t SELECT id + 10, n, l, s, m FROM u", namespace=frames)
    assert [row["l"] for row in stored(engine)] == [[1], [2], [], [None], None]
    query = "SELECT n + 1 AS a, coalesce(n, 'x') AS b, n = 5 AS c, cardinality(l) AS d, s.a AS e, m FROM u ORDER BY n, id"
    table = engine.run(query, namespace=frames).table
    assert table is not None
    assert table.column("b").to_pylist() == ["x"] * 3
    assert table.column("d").to_pylist() == [0, 1, None]
    assert engine.run(
        "SELECT count(*) AS n FROM u a JOIN u b ON a.n = b.n", namespace=frames
    ).table.to_pylist() == [{"n": 0}]
    types = engine.run("DESCRIBE u", namespace=frames).table.column("Type").to_pylist()
    assert types == [
        "bigint",
        "unknown",
        "array(unknown)",
        'row("a" unknown, "b" bigint)',
        "map(varchar, unknown)",
    ]


def test_a_number_is_not_compared_with_an_array_without_a_type(engine: Engine) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run("UPDATE t SET n = (SELECT max(l) FROM u)", namespace={"u": EMPTY})
    assert caught.value.code == "TYPE_MISMATCH"


@pytest.mark.parametrize("column", ["n", "l", "s", "m"])
def test_no_table_is_created_of_a_column_without_a_type(engine: Engine, column: str) -> None:
    with pytest.raises(
        RowMergeError, match=f"line 1:1: Column type is unknown: {column}"
    ) as caught:
        engine.run(f"CREATE TABLE c AS SELECT id, {column} FROM u", namespace={"u": EMPTY})
    assert caught.value.code == "COLUMN_TYPE_UNKNOWN"


def test_duckdb_agrees_about_columns_without_a_value(engine: Engine) -> None:
    engine.register("p", TARGET.select(["id", "n"]))
    result = engine.run(
        "MERGE INTO p USING u ON p.id = u.id WHEN MATCHED THEN UPDATE SET n = u.n WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.n)",
        namespace={"u": EMPTY.select(["id", "n"])},
        verify="duckdb",
    )
    assert result.trace.checks.verification is not None
    assert result.trace.checks.verification.state == "agrees"


MIXED = pd.DataFrame(
    {
        "id": [1, 2],
        "bad": pd.Series([1, "x"], dtype=object),
        "late": pd.to_datetime(["2024-01-01 00:00:00.000000001"] * 2),
        "key": [uuid.UUID(int=1), uuid.UUID(int=2)],
    }
)


def test_a_refused_column_fails_only_statements_that_name_it(engine: Engine) -> None:
    frames = {"f": MIXED}
    table = engine.run(
        "SELECT id, key FROM f WHERE key <> UUID '00000000-0000-0000-0000-000000000001'",
        namespace=frames,
    ).table
    assert table is not None
    assert table.to_pylist() == [{"id": 2, "key": str(uuid.UUID(int=2))}]
    assert engine.run("SELECT count(*) AS n FROM f", namespace=frames).table.to_pylist() == [
        {"n": 2}
    ]
    result = engine.run(
        "MERGE INTO t USING f ON t.id = f.id WHEN MATCHED THEN UPDATE SET n = 7",
        namespace=frames,
        trace="full",
    )
    assert result.count == 1
    assert "bad" not in str(result)


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("SELECT bad FROM f", 8),
        ("SELECT f.bad FROM f", 8),
        ("SELECT id FROM f WHERE bad IS NULL", 24),
        ("SELECT * FROM f", 8),
        ("SELECT f.* FROM f", 8),
        ("TABLE f", 1),
        ("SELECT id FROM f ORDER BY bad", 27),
        ("SELECT g.id FROM f JOIN f g USING (bad)", 36),
        ("INSERT INTO t (id) SELECT bad FROM f", 27),
        ("MERGE INTO t USING f ON t.id = f.bad WHEN MATCHED THEN DELETE", 32),
        ("MERGE INTO t USING f ON t.id = f.id WHEN MATCHED THEN UPDATE SET n = f.bad", 70),
        ("MERGE INTO t USING (SELECT * FROM f) f ON t.id = f.id WHEN MATCHED THEN DELETE", 28),
    ],
)
def test_a_column_that_is_refused_is_refused_where_it_is_named(
    engine: Engine, statement: str, column: int
) -> None:
    with pytest.raises(
        RowMergeError, match="Row 1 of column 'bad' of DataFrame 'f' has 'x'"
    ) as caught:
        engine.run(statement, namespace={"f": MIXED})
    assert (caught.value.code, caught.value.line, caught.value.column) == (
        "NOT_SUPPORTED",
        1,
        column,
    )


def test_a_frame_is_matched_by_exact_case_if_another_name_differs_only_in_case(
    engine: Engine,
) -> None:
    frames = {"My_DF": pd.DataFrame({"a": [1]}), "my_DF": pd.DataFrame({"a": [2]})}
    table = engine.run(
        "SELECT x.a, y.a AS b FROM My_DF x CROSS JOIN my_DF y", namespace=frames
    ).table
    assert table is not None
    assert table.to_pylist() == [{"a": 1, "b": 2}]
    with pytest.raises(RowMergeError, match="'My_DF' and 'my_DF'") as caught:
        engine.run("SELECT * FROM MY_DF", namespace=frames)
    assert (caught.value.code, caught.value.line, caught.value.column) == ("AMBIGUOUS_NAME", 1, 15)


def test_columns_of_spark_frames_that_sql_does_not_have_are_refused_where_they_are_named(
    engine: Engine, spark: Any
) -> None:
    frame = spark.sql(
        "SELECT 1 AS id, INTERVAL '1' DAY AS i, parse_json('1') AS v, NULL AS n, CAST('a' AS CHAR(3)) AS c, "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00' AS t, array() AS l, TIMESTAMP '2024-01-01 00:00:00Z' AS z"
    )
    table = engine.run("SELECT id, n, c, t, l, z FROM f", namespace={"f": frame}).table
    assert table is not None
    assert [str(value) for value in table.to_pylist()[0].values()] == [
        "1",
        "None",
        "a",
        "2024-01-01 00:00:00",
        "[]",
        "2024-01-01 00:00:00+00:00",
    ]
    for column in ("i", "v"):
        with pytest.raises(
            RowMergeError, match=f"Column '{column}' of DataFrame 'f' has no SQL type"
        ):
            engine.run(f"SELECT {column} FROM f", namespace={"f": frame})


def test_a_uuid_of_a_frame_stays_one_in_a_trial_with_another_cell(engine: Engine) -> None:
    engine.run("CREATE TABLE ids (id bigint, key uuid)")
    frame = pd.DataFrame({"id": [1], "key": [uuid.UUID(int=1)]})
    result = engine.run(
        "MERGE INTO ids USING f ON ids.id = f.id WHEN NOT MATCHED THEN INSERT VALUES (f.id, f.key)",
        namespace={"f": frame},
    )
    assert result.what_if(source={0: {"id": 5}}).trace.count == 1
