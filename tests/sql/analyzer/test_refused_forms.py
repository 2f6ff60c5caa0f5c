"""Forms and types of Trino 483 that this engine lacks: each is refused by name, at its position."""

from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import RowMergeError
from tests.sql.support import FakeTables, meaning

TABLES = FakeTables(
    {
        "t": [
            ("id", "integer"),
            ("name", "varchar"),
            ("j", "json"),
            ("r", "row(a integer, b varchar)"),
            ("items", "array(integer)"),
        ]
    }
)
JSON = "JSON accessors such as {} are not supported by this engine"
METHODS = "Methods such as {} are not supported by this engine"
NUMBER = "number is supported in casts and equality only by this engine"


@pytest.mark.parametrize(
    ("statement", "message", "column", "hint"),
    [
        (
            "CREATE TABLE u (v variant)",
            "The type variant is not supported by this engine",
            19,
            "json",
        ),
        (
            "SELECT CAST(1 AS variant)",
            "The type variant is not supported by this engine",
            8,
            "json",
        ),
        ("SELECT VARIANT '1'", "The type variant is not supported by this engine", 8, None),
        (
            "CREATE TABLE u (n number)",
            "Unsupported column type: number of column 'n'",
            17,
            "decimal(38, 10)",
        ),
        (
            "ALTER TABLE t ADD COLUMN n array(number)",
            "Unsupported column type: array(number) of column 'n'",
            26,
            "decimal(38, 10)",
        ),
        (
            "CREATE TABLE u AS SELECT CAST(1 AS number) AS n",
            "Unsupported column type: number of column 'n'",
            1,
            "decimal(38, 10)",
        ),
        ("SELECT id + CAST(1 AS number) FROM t", NUMBER, 11, "decimal(38, 10)"),
        ("SELECT id FROM t ORDER BY CAST(id AS number)", NUMBER, 27, "decimal(38, 10)"),
        ("SELECT max(CAST(id AS number)) FROM t", NUMBER, 8, "decimal(38, 10)"),
        ("SELECT row_number() OVER (ORDER BY CAST(id AS number)) FROM t", NUMBER, 36, None),
        (
            "SELECT * FROM t PIVOT (sum(id) FOR name IN ('a', 'b'))",
            "PIVOT is not supported by this engine",
            17,
            "FILTER (WHERE ...)",
        ),
        (
            "SELECT * FROM t, NEAREST (FROM t b MATCH b.id <= t.id) n",
            "NEAREST is not supported by this engine",
            18,
            "max_by",
        ),
        ("SELECT 'abc'.length()", METHODS.format("length"), 8, "length('abc')"),
        ("SELECT lower(name).length() FROM t", METHODS.format("length"), 8, "length(lower(name))"),
        ("SELECT name.length() FROM t", METHODS.format("length"), 8, "length(name)"),
        ("SELECT name.trim() FROM t", METHODS.format("trim"), 8, "trim(name)"),
        ("UPDATE t SET id = name.length()", METHODS.format("length"), 19, "length(name)"),
        ("SELECT varchar::chr(65)", METHODS.format("chr"), 8, "Call a function: chr(65)."),
        ("SELECT id::varchar(5) FROM t", METHODS.format("varchar"), 8, "CAST(id AS varchar(5))"),
        ("SELECT j.a FROM t", JSON.format("j.a"), 8, "json_extract(j, '$.a')"),
        ("SELECT j.'a' FROM t", JSON.format("j.a"), 8, "json_extract(j, '$.a')"),
        ("SELECT t.j.a FROM t", JSON.format("t.j.a"), 8, "json_extract(t.j, '$.a')"),
        ("SELECT j[0] FROM t", JSON.format("j[0]"), 8, "json_extract(j, '$[0]')"),
        ("SELECT j.* FROM t", JSON.format("j.*"), 8, "json_query(j, 'lax $.*'"),
        ("SELECT j[*] FROM t", JSON.format("[*]"), 10, "json_query("),
        (
            "SELECT INTERVAL '1' DAY(2) FROM t",
            "Only INTERVAL literals with default precision are supported",
            21,
            "without a precision",
        ),
    ],
)
def test_a_form_is_refused_by_its_name(
    statement: str, message: str, column: int, hint: str | None
) -> None:
    with pytest.raises(RowMergeError) as caught:
        meaning(statement, tables=TABLES)
    error = caught.value
    assert (error.code, error.message, error.line, error.column) == (
        "NOT_SUPPORTED",
        message,
        1,
        column,
    )
    if hint is not None:
        assert hint in str(error.hint)


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("SELECT name.'a' FROM t", "TYPE_MISMATCH", "Expression name is not of type ROW"),
        ("SELECT t.'x' FROM t", "COLUMN_NOT_FOUND", "Column 't.x' cannot be resolved"),
        ("SELECT j['a'] FROM t", "TYPE_MISMATCH", "Cannot use varchar(1) for subscript of json"),
        ("SELECT id.length() FROM t", "FUNCTION_NOT_FOUND", "Function 'id.length' not registered"),
        (
            "SELECT t.name.length() FROM t",
            "FUNCTION_NOT_FOUND",
            "Function 't.name.length' not registered",
        ),
        ("SELECT t.listagg(name) FROM t", "COLUMN_NOT_FOUND", "Column 't' cannot be resolved"),
        ("SELECT name.trim(n) FROM t", "COLUMN_NOT_FOUND", "Column 'n' cannot be resolved"),
        (
            "SELECT t.transform(items, x -> x || 1) FROM t",
            "FUNCTION_NOT_FOUND",
            "Function 't.transform' not registered",
        ),
        (
            "DELETE FROM t WHERE t.rank() OVER () = 1",
            "EXPRESSION_NOT_SCALAR",
            (
                "WHERE clause cannot contain aggregations, window functions or grouping operations:"
                " [t.rank() OVER ()]"
            ),
        ),
        (
            "INSERT INTO nosuch SELECT n FROM t",
            "COLUMN_NOT_FOUND",
            "Column 'n' cannot be resolved",
        ),
        (
            "INSERT INTO nosuch SELECT id FROM t",
            "TABLE_NOT_FOUND",
            "Table 'memory.default.nosuch' does not exist",
        ),
    ],
)
def test_other_errors_are_trinos(statement: str, code: str, message: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        meaning(statement, tables=TABLES)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_a_field_of_a_row_may_be_named_by_a_text() -> None:
    assert str(meaning("SELECT r.'a' AS x FROM t", tables=TABLES).fields[0].type) == "integer"
