"""Values for ``?``, from Python and by PREPARE and EXECUTE."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rowmerge_nb import Engine, RowMergeError

MOMENT = dt.datetime.fromisoformat("2024-02-29 01:02:03")
TABLE = "CREATE TABLE t AS SELECT * FROM (VALUES (1, VARCHAR 'a'), (2, 'b')) AS v (id, n)"


@pytest.fixture
def engine(spark: Any) -> Engine:
    return Engine(spark=spark)


def refused(engine: Engine, sql: str, **options: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as error:
        engine.run(sql, **options)
    return error.value


@pytest.mark.spark
@pytest.mark.parametrize(
    ("value", "type_name", "seen"),
    [
        (None, "unknown", None),
        (pd.NA, "unknown", None),
        (True, "boolean", True),
        (5, "integer", 5),
        (2**40, "bigint", 2**40),
        (2**70, "decimal(22,0)", Decimal(2**70)),
        (np.int64(7), "integer", 7),
        (1.5, "double", 1.5),
        (Decimal("-1.50"), "decimal(3,2)", Decimal("-1.50")),
        ("it's ?", "varchar(6)", "it's ?"),
        (b"\x00\xff", "varbinary", b"\x00\xff"),
        (dt.date(2024, 2, 29), "date", dt.date(2024, 2, 29)),
        (MOMENT, "timestamp(0)", MOMENT),
        (pd.Timestamp("2024-02-29 01:02:03.5"), "timestamp(6)", MOMENT.replace(microsecond=500000)),
        (dt.timedelta(hours=-5), "interval day to second", dt.timedelta(hours=-5)),
        (uuid.UUID(int=1), "uuid", str(uuid.UUID(int=1))),
        ([1, None], "array(integer)", [1, None]),
        ({"a": -1}, "map(varchar(1),integer)", [("a", -1)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_python_has_a_type_of_sql(
    engine: Engine, value: Any, type_name: str, seen: Any
) -> None:
    found = engine.run("SELECT ? AS a, typeof(?) AS b", parameters=[value, value]).table.to_pylist()  # type: ignore[union-attr]
    assert (found[0]["a"], found[0]["b"].replace(", ", ",")) == (seen, type_name)


@pytest.mark.spark
def test_the_executed_statement_is_reported_and_rerun_with_its_values(engine: Engine) -> None:
    engine.run(TABLE)
    result = engine.run("UPDATE t SET n = ? WHERE id - ? = ?", parameters=["it's", -1, 2])
    assert result.count == 1
    assert result.trace.statement == "UPDATE t SET n = 'it''s' WHERE id - (-1) = 2"
    assert result.what_if().count == 1
    assert engine.run("SELECT n FROM t ORDER BY id LIMIT ?", parameters=[1]).table.to_pylist() == [
        {"n": "it's"}
    ]  # type: ignore[union-attr]
    error = refused(engine, "SELECT ?, x FROM t", parameters=["long enough"])
    assert (error.code, error.column, error.statement) == (
        "COLUMN_NOT_FOUND",
        23,
        "SELECT 'long enough', x FROM t",
    )


@pytest.mark.parametrize(
    ("sql", "given", "message"),
    [
        ("SELECT ?", None, "Incorrect number of parameters: expected 1 but found 0"),
        ("SELECT ?, '?', \"?\" -- ?", [], "Incorrect number of parameters: expected 1 but found 0"),
        ("SELECT 1", [1], "Incorrect number of parameters: expected 0 but found 1"),
        (
            "SELECT ?",
            [object],
            "The parameter <class 'object'> has no type of SQL: A value of type type has no type of SQL",
        ),
        ("SELECT ?", [Decimal("NaN")], "The parameter Decimal('NaN') has no type of SQL"),
        (
            "SELECT ?",
            [["\udcff"]],
            "The parameter ['\\udcff'] has no type of SQL: It has a lone surrogate, U+DCFF, which is half a character",
        ),
    ],
)
def test_a_wrong_number_or_type_is_reported(sql: str, given: Any, message: str) -> None:
    error = refused(Engine(), sql, parameters=given)
    assert error.code == "INVALID_PARAMETER_USAGE"
    assert error.message.startswith(message)
    assert error.hint


def test_parameters_are_a_list() -> None:
    error = refused(Engine(), "SELECT ?", parameters="abc")
    assert (error.code, error.hint) == ("INVALID_ARGUMENTS", "Give a list of values.")


@pytest.mark.spark
def test_a_prepared_statement_runs_with_the_values_of_using(engine: Engine) -> None:
    engine.run(TABLE)
    merge = """MERGE INTO t USING (VALUES (?, ?)) AS s (id, n) ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n)"""
    assert "Statement Put prepared." in str(engine.run(f"PREPARE Put FROM {merge}"))
    result = engine.run("EXECUTE put USING 1 + 2, 'c' || 'd'")
    assert result.counts["INSERT"] == 1
    assert "(VALUES ((1 + 2), ('c' || 'd')))" in result.trace.statement
    assert engine.run(
        "EXECUTE IMMEDIATE 'SELECT n FROM t WHERE id = ?' USING 3"
    ).table.to_pylist() == [{"n": "cd"}]  # type: ignore[union-attr]
    wrong = refused(engine, "EXECUTE put USING 3")
    assert (wrong.code, wrong.statement) == ("INVALID_PARAMETER_USAGE", "EXECUTE put USING 3")
    failed = refused(engine, "EXECUTE put USING x, 'y'")
    assert (failed.code, failed.line, failed.column) == ("EXPRESSION_NOT_CONSTANT", 1, 19)
    failed = refused(engine, "EXECUTE put USING 'x', 'y'")
    # The position in the prepared statement with its values.
    assert (failed.code, failed.line) == ("TYPE_MISMATCH", 1)
    assert str(failed.statement).startswith("MERGE INTO t USING (VALUES ('x', 'y'))")
    assert "Statement put forgotten." in str(engine.run("DEALLOCATE PREPARE put"))
    for sql, column in (("EXECUTE put USING 1", 9), ("DEALLOCATE PREPARE put", 20)):
        error = refused(engine, sql)
        assert (error.code, error.message, error.column) == (
            "NOT_FOUND",
            "Prepared statement not found: put",
            column,
        )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "place", "message"),
    [
        ("EXECUTE IMMEDIATE 'SELECT ? + x' USING 1", (1, 31), "Column 'x' cannot be resolved"),
        (
            "EXECUTE IMMEDIATE 'SELECT ?, nosuch' USING 12345",
            (1, 30),
            "Column 'nosuch' cannot be resolved",
        ),
        (
            "EXECUTE IMMEDIATE 'SELECT ''x'' || ?, nosuch' USING 'a''b'",
            (1, 37),
            "Column 'nosuch' cannot be resolved",
        ),
        ("EXECUTE IMMEDIATE\n'SELECT 1,\n x +\n nosuch'", (3, 2), "Column 'x' cannot be resolved"),
        ("EXECUTE IMMEDIATE\n  'SELECT 1, nosuch'", (2, 14), "Column 'nosuch' cannot be resolved"),
        ("-- first\n EXECUTE IMMEDIATE 'SELECT x'", (2, 28), "Column 'x' cannot be resolved"),
        (
            "EXECUTE IMMEDIATE 'SELECT ? + ?' USING 1, 'a'",
            (1, 29),
            "Cannot apply operator: integer + varchar(1)",
        ),
        (
            "EXECUTE IMMEDIATE 'SELECT ? + ?' USING 1, x",
            (1, 43),
            "Constant expression cannot contain column references",
        ),
        (
            "EXECUTE IMMEDIATE 'SELECT ?' USING 1 + nosuch(1)",
            (1, 40),
            "Function 'nosuch' not registered",
        ),
        (
            "EXECUTE IMMEDIATE 'SELECT CASE WHEN ? THEN 1 END' USING 5",
            (1, 37),
            "CASE WHEN clause must evaluate to a boolean (actual: integer)",
        ),
        (
            "EXECUTE IMMEDIATE 'SELECT ? + ?' USING 1",
            (1, 20),
            "Incorrect number of parameters: expected 2 but found 1",
        ),
        (
            "EXECUTE IMMEDIATE 'SELECT FROM ?' USING 1",
            (1, 27),
            "mismatched input 'FROM'. Expecting: '*', 'ALL', 'DISTINCT', <expression>",
        ),
    ],
)
def test_errors_of_an_executed_text_point_into_that_text(
    engine: Engine, sql: str, place: tuple[int, int], message: str
) -> None:
    error = refused(engine, sql)
    assert (error.line, error.column, error.message) == (*place, message)


def test_such_an_error_shows_the_statement_with_its_values(engine: Engine) -> None:
    error = refused(engine, "EXECUTE IMMEDIATE 'SELECT ?, nosuch' USING 12345")
    assert error.excerpt() == "1  SELECT 12345, nosuch\n                 ^^^^^^"


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("EXECUTE IMMEDIATE 'EXECUTE p'", "NOT_SUPPORTED", "Unsupported statement type: Execute"),
        (
            "EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''SELECT 1'''",
            "NOT_SUPPORTED",
            "Unsupported statement type: ExecuteImmediate",
        ),
        ("EXECUTE IMMEDIATE ''", "SYNTAX_ERROR", "mismatched input '<EOF>'. Expecting: 'ALTER'"),
        (
            "PREPARE p FROM EXECUTE q",
            "NOT_SUPPORTED",
            "Invalid statement type for prepared statement: Execute",
        ),
        ("PREPARE p FROM SELEC 1", "SYNTAX_ERROR", "mismatched input 'SELEC'"),
        ("PREPARE p", "SYNTAX_ERROR", "mismatched input '<EOF>'. Expecting: 'FROM'"),
        ("EXECUTE", "SYNTAX_ERROR", "mismatched input '<EOF>'"),
        ("EXPLAIN EXECUTE p", "NOT_SUPPORTED", "EXPLAIN of EXECUTE is not supported"),
    ],
)
def test_texts_that_cannot_be_prepared_or_run_are_reported(
    sql: str, code: str, message: str
) -> None:
    error = refused(Engine(), sql)
    assert error.code == code
    assert message in error.message


def test_a_prepared_statement_belongs_to_its_engine() -> None:
    first, second = Engine(), Engine()
    first.run("PREPARE p FROM SELECT ?")
    assert refused(second, "EXECUTE p USING 1").code == "NOT_FOUND"
    assert "Did you mean 'p'?" in str(refused(first, "EXECUTE pp USING 1").hint)


PEOPLE = "CREATE TABLE people (id integer, n varchar(5), c decimal(5,2), r row(x integer, y varchar), ts timestamp(6))"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("prepared", "kinds"),
    [
        ("SELECT 1", ""),
        (
            "SELECT id, ? AS q FROM people WHERE c > ? AND n = ?",
            "unknown; decimal(5,2); varchar(5)",
        ),
        (
            "SELECT abs(?), ? + 1.5, 1 - ?, CAST(? AS date), id IN (?, ?), coalesce(?, id) FROM people",
            "tinyint; decimal(1,0); integer; unknown; integer; integer; integer",
        ),
        (
            "SELECT CASE WHEN ? THEN ? END FROM people ORDER BY id LIMIT ?",
            "boolean; unknown; bigint",
        ),
        ("SELECT id FROM people OFFSET ? FETCH FIRST ? ROWS ONLY", "bigint; bigint"),
        ("INSERT INTO people (id, n) VALUES (?, ?)", "unknown; unknown"),
        (
            "UPDATE people SET n = ?, id = ? + 1, c = ? WHERE id = ?",
            "varchar(5); integer; decimal(5,2); integer",
        ),
        (
            "DELETE FROM people WHERE r.x = ? OR ts > ? OR n LIKE ? OR ? IS NULL",
            "integer; timestamp(6); varchar; unknown",
        ),
        (
            "MERGE INTO people t USING (VALUES (?, 2)) s (k, v) ON id = v AND c > ? WHEN MATCHED THEN UPDATE SET n = ? WHEN NOT MATCHED THEN INSERT (c) VALUES (?)",
            "unknown; decimal(5,2); varchar(5); decimal(5,2)",
        ),
        ("DROP TABLE nosuch", ""),
    ],
)
def test_describe_input_lists_the_types_of_parameters(
    engine: Engine, prepared: str, kinds: str
) -> None:
    engine.run_script(f"{PEOPLE}; PREPARE p FROM {prepared}")
    table = engine.run("DESCRIBE INPUT p").table
    assert table is not None
    assert table.to_pylist() == [
        {"Position": n, "Type": kind} for n, kind in enumerate(filter(None, kinds.split("; ")))
    ]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("prepared", "columns"),
    [
        (
            "SELECT id, n AS other, ?, id + 1 AS i FROM people",
            [
                "id people integer 4",
                "other people varchar(5) 0 aliased",
                "_col2 - unknown 1",
                "i - integer 4 aliased",
            ],
        ),
        ("SELECT r.x, t.c FROM people t", ["x - integer 4", "c people decimal(5,2) 8"]),
        (
            "SELECT * FROM (SELECT id AS x, ts FROM people) s",
            ["x people integer 4", "ts people timestamp(6) 8"],
        ),
        ("SELECT u FROM (SELECT id FROM people) s (u)", ["u people integer 4"]),
        (
            "WITH w AS (SELECT id FROM people) SELECT * FROM w UNION ALL SELECT 1",
            ["id people integer 4"],
        ),
        (
            "SELECT * FROM (SELECT id FROM people) JOIN (SELECT id FROM people) USING (id)",
            ["id - integer 4"],
        ),
        ("SELECT n FROM seen", ["n seen varchar(5) 0"]),
        (
            "VALUES (DECIMAL '12345678901234567890', TIMESTAMP '2024-01-01 00:00:00.1 UTC')",
            ["_col0 - decimal(20,0) 16", "_col1 - timestamp(1) with time zone 8"],
        ),
        ("DELETE FROM people", ["rows - bigint 8"]),
        ("CREATE TABLE other AS SELECT 1 AS a", ["rows - bigint 8"]),
        ("EXPLAIN SELECT 1", ["Query_Plan - varchar 0"]),
        ("SHOW CREATE TABLE people", ["Create_Table - varchar 0"]),
        ("SHOW CATALOGS", ["Catalog - varchar 0"]),
        ("CREATE TABLE other (a integer)", []),
    ],
)
def test_describe_output_lists_the_columns_of_the_prepared_statement(
    engine: Engine, prepared: str, columns: list[str]
) -> None:
    engine.run_script(
        f"{PEOPLE}; CREATE VIEW seen AS SELECT n FROM people; PREPARE p FROM {prepared}"
    )
    table = engine.run("DESCRIBE OUTPUT p").table
    assert table is not None
    for row, column in zip(table.to_pylist(), columns, strict=True):
        name, origin, *kind, size = column.removesuffix(" aliased").split(" ")
        place = ("", "", "") if origin == "-" else ("memory", "default", origin)
        told = (
            name.replace("_P", " P").replace("_T", " T"),
            *place,
            " ".join(kind),
            int(size),
            column.endswith(" aliased"),
        )
        assert tuple(row.values()) == told


@pytest.mark.spark
def test_an_error_of_a_prepared_statement_is_reported_at_its_position_there(engine: Engine) -> None:
    engine.run("PREPARE p FROM SELECT x FROM nosuch")
    error = refused(engine, "DESCRIBE OUTPUT p")
    assert (error.code, error.line, error.column, error.statement) == (
        "TABLE_NOT_FOUND",
        1,
        15,
        "SELECT x FROM nosuch",
    )
    assert refused(engine, "DESCRIBE INPUT q").code == "NOT_FOUND"
    assert (
        refused(engine, "EXPLAIN DESCRIBE INPUT p").message
        == "EXPLAIN of DESCRIBE is not supported by this engine"
    )


@pytest.mark.parametrize(
    ("clause", "value", "code", "message"),
    [
        ("LIMIT ?", "'x'", "TYPE_MISMATCH", "Cannot cast type varchar(1) to bigint"),
        ("LIMIT ?", "1.5", "TYPE_MISMATCH", "Cannot cast type decimal(2,1) to bigint"),
        ("OFFSET ?", "true", "TYPE_MISMATCH", "Cannot cast type boolean to bigint"),
        (
            "LIMIT ?",
            "NULL",
            "INVALID_ARGUMENTS",
            "Parameter value provided for LIMIT is NULL: null",
        ),
        (
            "OFFSET ? ROWS",
            "-1",
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "OFFSET row count must be greater or equal to 0 (actual value: -1)",
        ),
        (
            "FETCH NEXT ? ROWS ONLY",
            "-2",
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "FETCH FIRST row count must be positive (actual value: -2)",
        ),
        ("LIMIT ?", "'a' || 'b'", "TYPE_MISMATCH", "Cannot cast type varchar to bigint"),
        (
            "LIMIT ?",
            "(SELECT 1)",
            "EXPRESSION_NOT_CONSTANT",
            "Constant expression cannot contain a subquery",
        ),
        (
            "LIMIT ?",
            "nullif(1, 1)",
            "INVALID_ARGUMENTS",
            "Parameter value provided for LIMIT is NULL: NULLIF(1, 1)",
        ),
        (
            "OFFSET ?",
            "1 - 3",
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "OFFSET row count must be greater or equal to 0 (actual value: -2)",
        ),
    ],
)
@pytest.mark.spark
def test_an_invalid_number_of_rows_is_reported(
    clause: str, value: str, code: str, message: str
) -> None:
    engine = Engine()
    engine.run(f"PREPARE p FROM SELECT 1 ORDER BY 1 {clause}")
    error = refused(engine, f"EXECUTE p USING {value}")
    assert (error.code, error.message, error.column) == (code, message, 21 if "||" in value else 17)
    error = refused(engine, f"EXECUTE IMMEDIATE 'SELECT 1 {clause}' USING {value}")
    assert (error.code, error.message) == (code, message)


@pytest.mark.spark
def test_a_number_of_rows_is_computed() -> None:
    engine = Engine()
    engine.run("PREPARE p FROM SELECT x FROM (VALUES 1, 2, 3) t(x) ORDER BY x OFFSET ? LIMIT ?")
    for values in (
        "1, 1 + 1",
        "(1), length('ab')",
        "abs(-1), CAST(2 AS bigint)",
        "bigint '1', smallint '2'",
    ):
        assert engine.run(f"EXECUTE p USING {values}").table.to_pylist() == [{"x": 2}, {"x": 3}]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("value", "place"),
    [("0", (1, 29)), ("1 - 1", (1, 29)), ("NULL", (1, 41)), ("'a'", (1, 60))],
)
@pytest.mark.spark
def test_a_wrong_number_of_rows_is_reported_at_its_position_in_the_statement(
    value: str, place: tuple[int, int]
) -> None:
    error = refused(Engine(), f"EXECUTE IMMEDIATE 'SELECT 1 FETCH FIRST ? ROWS ONLY' USING {value}")
    assert (error.line, error.column) == place


def test_an_invalid_number_of_rows_from_python_is_reported_at_its_parameter() -> None:
    error = refused(Engine(), "SELECT 1 LIMIT ?", parameters=["x"])
    assert (error.code, error.column) == ("TYPE_MISMATCH", 16)
