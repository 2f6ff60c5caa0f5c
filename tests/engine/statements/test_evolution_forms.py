"""Forms of Delta's and Iceberg's tests of MERGE with schema evolution: the rows that they expect, or the reason for another result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb import Engine, RowMergeError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark

PLAIN = "key, value FROM (VALUES (0, 0), (1, 10), (3, 30)) v (key, value)"
EXTRA = "SELECT * FROM (VALUES (1, 1, 'x1'), (2, 2, 'x2')) v (key, value, extra)"
EMPTY = "SELECT * FROM (VALUES (1, 1, 'x1')) v (key, value, extra) WHERE key > 5"
UPDATE, INSERT = "WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"
BOTH = f"{UPDATE} {INSERT}"
NESTED = "key, CAST(ROW(key, 'a') AS row(a integer, b varchar)) AS v FROM (VALUES 1, 3) k (key)"
LISTS = "key, CAST(ARRAY[ROW(key, 'a')] AS array(row(a integer, b varchar))) AS v FROM (VALUES 1, 3) k (key)"
MAPS = "key, CAST(MAP(ARRAY['k'], ARRAY[ROW(key)]) AS map(varchar, row(a integer))) AS v FROM (VALUES 1, 3) k (key)"


MAP_ROWS = "[1, [('k', {'a': 9, 'b': 5})]] [2, [('k', {'a': 9, 'b': 5})]] [3, [('k', {'a': 3, 'b': None})]]"


def struct(of: str, value: str) -> str:
    """Return a source with two keys and one row of the fields."""
    return f"SELECT key, CAST({value} AS {of}) AS v FROM (VALUES 1, 2) k (key)"


FORMS: dict[str, tuple[str, str, str, str]] = {
    "insert * only": (
        PLAIN,
        EXTRA,
        INSERT,
        "key integer, value integer, extra varchar: [0, 0, None] [1, 10, None] [2, 2, 'x2'] [3, 30, None]",
    ),
    "update * only": (
        PLAIN,
        EXTRA,
        UPDATE,
        "key integer, value integer, extra varchar: [0, 0, None] [1, 1, 'x1'] [3, 30, None]",
    ),
    "update * and insert *": (
        PLAIN,
        EXTRA,
        BOTH,
        "key integer, value integer, extra varchar: [0, 0, None] [1, 1, 'x1'] [2, 2, 'x2'] [3, 30, None]",
    ),
    "update of the new column": (
        PLAIN,
        EXTRA,
        "WHEN MATCHED THEN UPDATE SET extra = s.extra",
        "key integer, value integer, extra varchar: [0, 0, None] [1, 10, 'x1'] [3, 30, None]",
    ),
    "update of the new column by an expression": (
        PLAIN,
        EXTRA,
        "WHEN MATCHED THEN UPDATE SET extra = upper(s.extra)",
        "key integer, value integer, extra varchar: [0, 0, None] [1, 10, 'X1'] [3, 30, None]",
    ),
    "update of the new and an old column": (
        PLAIN,
        EXTRA,
        "WHEN MATCHED THEN UPDATE SET t.value = s.value + 1, t.extra = s.extra",
        "key integer, value integer, extra varchar: [0, 0, None] [1, 2, 'x1'] [3, 30, None]",
    ),
    "insert of the new column": (
        PLAIN,
        EXTRA,
        "WHEN NOT MATCHED THEN INSERT (key, extra) VALUES (s.key, s.extra)",
        "key integer, value integer, extra varchar: [0, 0, None] [1, 10, None] [2, None, 'x2'] [3, 30, None]",
    ),
    "insert of old columns adds none": (
        PLAIN,
        EXTRA,
        "WHEN NOT MATCHED THEN INSERT (key, value) VALUES (s.key, s.value)",
        "key integer, value integer: [0, 0] [1, 10] [2, 2] [3, 30]",
    ),
    "update of old columns adds none": (
        PLAIN,
        EXTRA,
        "WHEN MATCHED AND s.extra = 'x1' THEN UPDATE SET value = s.value",
        "key integer, value integer: [0, 0] [1, 1] [3, 30]",
    ),
    "delete only adds none": (
        PLAIN,
        EXTRA,
        "WHEN MATCHED THEN DELETE",
        "key integer, value integer: [0, 0] [3, 30]",
    ),
    "delete and insert *": (
        PLAIN,
        EXTRA,
        f"WHEN MATCHED THEN DELETE {INSERT}",
        "key integer, value integer, extra varchar: [0, 0, None] [2, 2, 'x2'] [3, 30, None]",
    ),
    "update * with a condition on the new column": (
        PLAIN,
        EXTRA,
        f"WHEN MATCHED AND s.extra = 'x2' THEN UPDATE SET * {INSERT}",
        "key integer, value integer, extra varchar: [0, 0, None] [1, 10, None] [2, 2, 'x2'] [3, 30, None]",
    ),
    "two clauses add a column each": (
        PLAIN,
        "SELECT * FROM (VALUES (1, 5, 6), (2, 7, 8)) v (key, e1, e2)",
        "WHEN MATCHED THEN UPDATE SET e1 = s.e1 WHEN NOT MATCHED THEN INSERT (key, e2) VALUES (s.key, s.e2)",
        "key integer, value integer, e1 integer, e2 integer: [0, 0, None, None] [1, 10, 5, None] [2, None, None, 8] [3, 30, None, None]",
    ),
    "a star and a list": (
        PLAIN,
        EXTRA,
        f"WHEN MATCHED THEN UPDATE SET value = -1 {INSERT}",
        "key integer, value integer, extra varchar: [0, 0, None] [1, -1, None] [2, 2, 'x2'] [3, 30, None]",
    ),
    "a source without a column of the target": (
        PLAIN,
        "SELECT * FROM (VALUES (1, 'x1'), (2, 'x2')) v (key, extra)",
        BOTH,
        "key integer, value integer, extra varchar: [0, 0, None] [1, 10, 'x1'] [2, None, 'x2'] [3, 30, None]",
    ),
    "a source with fewer columns": (
        PLAIN,
        "SELECT 1 AS key UNION ALL SELECT 2",
        BOTH,
        "key integer, value integer: [0, 0] [1, 10] [2, None] [3, 30]",
    ),
    "the new column first": (
        PLAIN,
        "SELECT extra, key, value FROM (VALUES (1, 1, 'x1'), (2, 2, 'x2')) v (key, value, extra)",
        BOTH,
        "key integer, value integer, extra varchar: [0, 0, None] [1, 1, 'x1'] [2, 2, 'x2'] [3, 30, None]",
    ),
    "names in other case": (
        PLAIN,
        'SELECT key AS KEY, value AS "VALUE", extra AS "Extra" FROM (VALUES (1, 1, \'x1\')) v (key, value, extra)',
        BOTH,
        "key integer, value integer, Extra varchar: [0, 0, None] [1, 1, 'x1'] [3, 30, None]",
    ),
    "no source row": (
        PLAIN,
        EMPTY,
        BOTH,
        "key integer, value integer, extra varchar: [0, 0, None] [1, 10, None] [3, 30, None]",
    ),
    "an empty target": (
        "1 AS key, 2 AS value WHERE false",
        EXTRA,
        BOTH,
        "key integer, value integer, extra varchar: [1, 1, 'x1'] [2, 2, 'x2']",
    ),
    "by source, deleted": (
        PLAIN,
        EXTRA,
        f"{BOTH} WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "key integer, value integer, extra varchar: [1, 1, 'x1'] [2, 2, 'x2']",
    ),
    "by source, updated": (
        PLAIN,
        EXTRA,
        f"{BOTH} WHEN NOT MATCHED BY SOURCE AND t.key = 3 THEN UPDATE SET extra = 'gone'",
        "key integer, value integer, extra varchar: [0, 0, None] [1, 1, 'x1'] [2, 2, 'x2'] [3, 30, 'gone']",
    ),
    "by source alone adds none": (
        PLAIN,
        EXTRA,
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET extra = 'gone'",
        "COLUMN_NOT_FOUND: Merge column name does not exist in target table: extra",
    ),
    "a name that neither side has": (
        PLAIN,
        EXTRA,
        "WHEN MATCHED THEN UPDATE SET other = s.value",
        "COLUMN_NOT_FOUND: Merge column name does not exist in target table: other",
    ),
    "a condition on the target's new column": (
        PLAIN,
        EXTRA,
        f"WHEN MATCHED AND t.extra IS NULL THEN UPDATE SET * {INSERT}",
        "COLUMN_NOT_FOUND: Column 't.extra' cannot be resolved",
    ),
    "a column without a type": (
        PLAIN,
        "SELECT 1 AS key, NULL AS extra",
        BOTH,
        "COLUMN_TYPE_UNKNOWN: Column 'extra' of the source has no type, so it cannot be added to t",
    ),
    "a new column twice in the source": (
        PLAIN,
        "SELECT 1 AS key, 2 AS extra, 3 AS extra",
        BOTH,
        "AMBIGUOUS_NAME: Column 'extra' is ambiguous in the source",
    ),
    "a new struct": (
        PLAIN,
        "SELECT 1 AS key, CAST(ROW(1, 'a') AS row(x integer, y varchar(5))) AS st",
        BOTH,
        "key integer, value integer, st row(\"x\" integer, \"y\" varchar): [0, 0, None] [1, 10, {'x': 1, 'y': 'a'}] [3, 30, None]",
    ),
    "a new array": (
        PLAIN,
        "SELECT 2 AS key, ARRAY[1, 2] AS l",
        BOTH,
        "key integer, value integer, l array(integer): [0, 0, None] [1, 10, None] [2, None, [1, 2]] [3, 30, None]",
    ),
    "integer becomes bigint": (
        PLAIN,
        "SELECT key, BIGINT '5000000000' AS value FROM (VALUES 1, 2) k (key)",
        BOTH,
        "key integer, value bigint: [0, 0] [1, 5000000000] [2, 5000000000] [3, 30]",
    ),
    "integer becomes bigint by a list": (
        PLAIN,
        "SELECT 1 AS key, BIGINT '5000000000' AS value",
        "WHEN MATCHED THEN UPDATE SET value = s.value",
        "key integer, value bigint: [0, 0] [1, 5000000000] [3, 30]",
    ),
    "bigint stays": (
        "key, BIGINT '7' AS value FROM (VALUES 1, 3) k (key)",
        "SELECT key, key AS value FROM (VALUES 1, 2) k (key)",
        BOTH,
        "key integer, value bigint: [1, 1] [2, 2] [3, 7]",
    ),
    "real becomes double": (
        "1 AS key, REAL '1.5' AS value",
        "SELECT 1 AS key, 1e100 AS value",
        BOTH,
        "key integer, value double: [1, 1e+100]",
    ),
    "decimal gets digits": (
        "1 AS key, DECIMAL '1.50' AS value",
        "SELECT 1 AS key, DECIMAL '12345.25' AS value",
        BOTH,
        "key integer, value decimal(7,2): [1, Decimal('12345.25')]",
    ),
    "decimal keeps its scale": (
        "1 AS key, DECIMAL '1.50' AS value",
        "SELECT 1 AS key, DECIMAL '1.2345' AS value",
        BOTH,
        "key integer, value decimal(3,2): [1, Decimal('1.23')]",
    ),
    "smallint becomes integer": (
        "1 AS key, SMALLINT '1' AS value",
        "SELECT 1 AS key, 70000 AS value",
        BOTH,
        "key integer, value integer: [1, 70000]",
    ),
    "integer does not become double": (
        PLAIN,
        "SELECT 1 AS key, 1.5e0 AS value",
        BOTH,
        "key integer, value integer: [0, 0] [1, 2] [3, 30]",
    ),
    "date does not become timestamp": (
        "1 AS key, DATE '2024-01-01' AS value",
        "SELECT 1 AS key, TIMESTAMP '2024-01-01 05:00:00' AS value",
        BOTH,
        "key integer, value date: [1, datetime.date(2024, 1, 1)]",
    ),
    "a number is no text": (
        "1 AS key, CAST('a' AS varchar) AS value",
        "SELECT 1 AS key, 5 AS value",
        BOTH,
        "TYPE_MISMATCH: MERGE table column types don't match for MERGE case 0, SET expressions: Table: [integer, varchar], Expressions: [integer, integer]",
    ),
    "a struct gets a field": (
        NESTED,
        struct("row(a integer, b varchar, c integer)", "ROW(key + 10, 'n', 5)"),
        BOTH,
        "key integer, v row(\"a\" integer, \"b\" varchar, \"c\" integer): [1, {'a': 11, 'b': 'n', 'c': 5}] [2, {'a': 12, 'b': 'n', 'c': 5}] [3, {'a': 3, 'b': 'a', 'c': None}]",
    ),
    "a struct gets a field by a list": (
        NESTED,
        struct("row(a integer, b varchar, c integer)", "ROW(key + 10, 'n', 5)"),
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        "key integer, v row(\"a\" integer, \"b\" varchar, \"c\" integer): [1, {'a': 11, 'b': 'n', 'c': 5}] [3, {'a': 3, 'b': 'a', 'c': None}]",
    ),
    "a struct gets its first field": (
        NESTED,
        struct("row(c integer, a integer, b varchar)", "ROW(5, key + 10, 'n')"),
        BOTH,
        "key integer, v row(\"a\" integer, \"b\" varchar, \"c\" integer): [1, {'a': 11, 'b': 'n', 'c': 5}] [2, {'a': 12, 'b': 'n', 'c': 5}] [3, {'a': 3, 'b': 'a', 'c': None}]",
    ),
    "a struct in another order": (
        NESTED,
        struct("row(b varchar, a integer)", "ROW('n', key + 10)"),
        BOTH,
        "key integer, v row(\"a\" integer, \"b\" varchar): [1, {'a': 11, 'b': 'n'}] [2, {'a': 12, 'b': 'n'}] [3, {'a': 3, 'b': 'a'}]",
    ),
    "a struct without a field": (
        NESTED,
        struct("row(a integer)", "ROW(key + 10)"),
        BOTH,
        "key integer, v row(\"a\" integer, \"b\" varchar): [1, {'a': 11, 'b': 'a'}] [2, {'a': 12, 'b': None}] [3, {'a': 3, 'b': 'a'}]",
    ),
    "a struct without a field, and a new one": (
        NESTED,
        struct("row(b varchar, c integer)", "ROW('n', 5)"),
        BOTH,
        "key integer, v row(\"a\" integer, \"b\" varchar, \"c\" integer): [1, {'a': 1, 'b': 'n', 'c': 5}] [2, {'a': None, 'b': 'n', 'c': 5}] [3, {'a': 3, 'b': 'a', 'c': None}]",
    ),
    "a NULL struct of the source": (
        NESTED,
        struct("row(a integer, b varchar, c integer)", "NULL"),
        BOTH,
        "key integer, v row(\"a\" integer, \"b\" varchar, \"c\" integer): [1, None] [2, None] [3, {'a': 3, 'b': 'a', 'c': None}]",
    ),
    "a NULL struct of the target": (
        "1 AS key, CAST(NULL AS row(a integer, b varchar)) AS v",
        struct("row(b varchar, c integer)", "ROW('n', 5)"),
        BOTH,
        "key integer, v row(\"a\" integer, \"b\" varchar, \"c\" integer): [1, {'a': None, 'b': 'n', 'c': 5}] [2, {'a': None, 'b': 'n', 'c': 5}]",
    ),
    "a field becomes wider": (
        NESTED,
        struct("row(a bigint, b varchar)", "ROW(5000000000, 'n')"),
        BOTH,
        "key integer, v row(\"a\" bigint, \"b\" varchar): [1, {'a': 5000000000, 'b': 'n'}] [2, {'a': 5000000000, 'b': 'n'}] [3, {'a': 3, 'b': 'a'}]",
    ),
    "a field in a field": (
        "1 AS key, CAST(ROW(ROW(1)) AS row(x row(a integer))) AS v",
        struct("row(x row(a bigint, b integer), y integer)", "ROW(ROW(7, 8), 9)"),
        BOTH,
        "key integer, v row(\"x\" row(\"a\" bigint, \"b\" integer), \"y\" integer): [1, {'x': {'a': 7, 'b': 8}, 'y': 9}] [2, {'x': {'a': 7, 'b': 8}, 'y': 9}]",
    ),
    "a field of another kind": (
        NESTED,
        struct("row(a row(x integer), b varchar)", "ROW(ROW(1), 'n')"),
        BOTH,
        'TYPE_MISMATCH: MERGE table column types don\'t match for MERGE case 0, SET expressions: Table: [integer, row("a" integer, "b" varchar)], Expressions: [integer, row("a" row("x" integer), "b" varchar)]',
    ),
    "a struct is no number": (
        PLAIN,
        "SELECT 1 AS key, CAST(ROW(1) AS row(a integer)) AS value",
        BOTH,
        'TYPE_MISMATCH: MERGE table column types don\'t match for MERGE case 0, SET expressions: Table: [integer, integer], Expressions: [integer, row("a" integer)]',
    ),
    "a new field is assigned": (
        NESTED,
        struct("row(a integer, b varchar, c integer)", "ROW(key + 10, 'n', 5)"),
        "WHEN MATCHED THEN UPDATE SET v.c = s.v.c",
        "key integer, v row(\"a\" integer, \"b\" varchar, \"c\" integer): [1, {'a': 1, 'b': 'a', 'c': 5}] [3, {'a': 3, 'b': 'a', 'c': None}]",
    ),
    "new fields are assigned at two depths": (
        "1 AS key, CAST(ROW(ROW(1)) AS row(x row(a integer))) AS v",
        struct("row(x row(a bigint, b integer), y integer)", "ROW(ROW(7, 8), 9)"),
        "WHEN MATCHED THEN UPDATE SET v.x.b = s.v.x.b, v.x.a = s.v.x.a, v.y = s.v.y",
        "key integer, v row(\"x\" row(\"a\" bigint, \"b\" integer), \"y\" integer): [1, {'x': {'a': 7, 'b': 8}, 'y': 9}]",
    ),
    "a new field is assigned another value": (
        NESTED,
        struct("row(a integer, b varchar, c integer)", "ROW(key + 10, 'n', 5)"),
        "WHEN MATCHED THEN UPDATE SET v.c = s.v.c + 1",
        "INVALID_COLUMN_REFERENCE: Column reference 'v.c' is invalid",
    ),
    "a field that neither side has": (
        NESTED,
        struct("row(a integer, b varchar, c integer)", "ROW(key + 10, 'n', 5)"),
        "WHEN MATCHED THEN UPDATE SET v.d = s.v.d",
        "INVALID_COLUMN_REFERENCE: Column reference 'v.d' is invalid",
    ),
    "an old field is assigned": (
        NESTED,
        struct("row(a integer, b varchar, c integer)", "ROW(key + 10, 'n', 5)"),
        "WHEN MATCHED THEN UPDATE SET v.a = s.v.a",
        "key integer, v row(\"a\" integer, \"b\" varchar): [1, {'a': 11, 'b': 'a'}] [3, {'a': 3, 'b': 'a'}]",
    ),
    "an array of structs gets a field": (
        LISTS,
        struct("array(row(a integer, b varchar, c integer))", "ARRAY[ROW(9, 'n', 5), NULL]"),
        BOTH,
        "key integer, v array(row(\"a\" integer, \"b\" varchar, \"c\" integer)): [1, [{'a': 9, 'b': 'n', 'c': 5}, None]] [2, [{'a': 9, 'b': 'n', 'c': 5}, None]] [3, [{'a': 3, 'b': 'a', 'c': None}]]",
    ),
    "an array of structs in another order": (
        LISTS,
        struct("array(row(c integer, b varchar, a integer))", "ARRAY[ROW(5, 'n', 9)]"),
        BOTH,
        "key integer, v array(row(\"a\" integer, \"b\" varchar, \"c\" integer)): [1, [{'a': 9, 'b': 'n', 'c': 5}]] [2, [{'a': 9, 'b': 'n', 'c': 5}]] [3, [{'a': 3, 'b': 'a', 'c': None}]]",
    ),
    "an array of structs without a field": (
        LISTS,
        struct("array(row(b varchar))", "ARRAY[ROW('n')]"),
        BOTH,
        "key integer, v array(row(\"a\" integer, \"b\" varchar)): [1, [{'a': None, 'b': 'n'}]] [2, [{'a': None, 'b': 'n'}]] [3, [{'a': 3, 'b': 'a'}]]",
    ),
    "an array becomes wider": (
        "1 AS key, ARRAY[1] AS v",
        struct("array(bigint)", "ARRAY[5000000000]"),
        BOTH,
        "key integer, v array(bigint): [1, [5000000000]] [2, [5000000000]]",
    ),
    "an empty array": (
        LISTS,
        struct("array(row(a integer, b varchar, c integer))", "ARRAY[]"),
        BOTH,
        "key integer, v array(row(\"a\" integer, \"b\" varchar, \"c\" integer)): [1, []] [2, []] [3, [{'a': 3, 'b': 'a', 'c': None}]]",
    ),
    "a map of structs gets a field": (
        MAPS,
        struct("map(varchar, row(a integer, b integer))", "MAP(ARRAY['k'], ARRAY[ROW(9, 5)])"),
        BOTH,
        'key integer, v map(varchar, row("a" integer, "b" integer)): ' + MAP_ROWS,
    ),
    "a map becomes wider": (
        "1 AS key, CAST(MAP(ARRAY['k'], ARRAY[1]) AS map(varchar, integer)) AS v",
        struct("map(varchar, bigint)", "MAP(ARRAY['k'], ARRAY[5000000000])"),
        BOTH,
        "key integer, v map(varchar, bigint): [1, [('k', 5000000000)]] [2, [('k', 5000000000)]]",
    ),
    "tinyint becomes bigint": (
        "1 AS key, TINYINT '1' AS value",
        "SELECT 1 AS key, 5000000000 AS value",
        BOTH,
        "key integer, value bigint: [1, 5000000000]",
    ),
    "keys of a map stay": (
        "1 AS key, MAP(ARRAY[1], ARRAY[1]) AS v",
        struct("map(bigint, integer)", "MAP(ARRAY[BIGINT '7'], ARRAY[1])"),
        BOTH,
        "key integer, v map(integer, integer): [1, [(7, 1)]] [2, [(7, 1)]]",
    ),
    "structs as keys of a map stay": (
        "1 AS key, MAP(ARRAY[CAST(ROW(1) AS row(a integer))], ARRAY[1]) AS v",
        struct("map(row(a integer, b integer), integer)", "MAP(ARRAY[ROW(1, 2)], ARRAY[1])"),
        BOTH,
        'NOT_SUPPORTED: WITH SCHEMA EVOLUTION cannot add the field. Column v.key is row("a" integer) in the target and row("a" integer, "b" integer) in the source: the target has no field \'b\'',
    ),
}
OTHERS = {
    "decimal keeps its scale": "Iceberg changes no scale; Delta does, and the value would not be rounded",
    "date does not become timestamp": "Iceberg 2 and Spark's MERGE keep dates; Delta's type widening does not",
    "a number is no text": "Spark's store assignment makes it a text; Trino's types do not fit",
    "keys of a map stay": "Iceberg allows no change of keys",
    "structs as keys of a map stay": "Iceberg allows no change of keys",
    "a column without a type": "Delta adds a column of type void",
    "a new field is assigned another value": "only the source's field of the same name has a type for it",
}
"""Differing answers of other engines, and the reasons."""


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark, dialect="extended", trace="off") as engine:
        yield engine


def outcome(engine: Engine, target: str, source: str, clauses: str) -> str:
    """Return the columns and rows after a MERGE, or its error."""
    engine.run("DROP TABLE IF EXISTS t")
    engine.run(f"CREATE TABLE t AS SELECT {target}")
    sql = f"MERGE WITH SCHEMA EVOLUTION INTO t USING ({source}) s ON t.key = s.key {clauses}"
    try:
        engine.run(sql)
    except RowMergeError as error:
        return f"{error.code}: {error.message}"
    table = engine.table("t")
    types = ", ".join(
        f"{row['Column']} {row['Type']}" for row in engine.run("DESCRIBE t").table.to_pylist()
    )
    rows = sorted((tuple(row.values()) for row in table.to_pylist()), key=lambda row: row[0])
    return f"{types}: {' '.join(str(list(row)) for row in rows)}"


@pytest.mark.parametrize("name", FORMS)
def test_a_form_evolves_the_table_or_names_the_reason(engine: Engine, name: str) -> None:
    target, source, clauses, expected = FORMS[name]
    assert outcome(engine, target, source, clauses) == expected, OTHERS.get(name)
