"""Columns that ``*`` omits: the location of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path_factory.mktemp("lake")))
    engine.run_script("""
        CREATE TABLE t (id integer, v varchar, p varchar) WITH (partitioning = ARRAY['p']);
        INSERT INTO t VALUES (1, 'a', 'x/y'), (2, 'b', NULL)""")
    yield engine
    engine.close()


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    found = engine.run(query).table
    assert found is not None
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ('SELECT "$partition", id FROM t', [("p=null", 2), ("p=x%2Fy", 1)]),
        ("SELECT * FROM t WHERE \"$PATH\" LIKE '%/p=null/%.parquet'", [(2, "b", None)]),
        (
            'SELECT t.*, x."$partition" FROM t JOIN t x ON t.id = x.id WHERE t.id = 1 AND t."$path" = x."$path"',
            [(1, "a", "x/y", "p=x%2Fy")],
        ),
        ("SELECT a FROM t AS x(a, b, c) WHERE a = 1", [(1,)]),
        (
            """SELECT "$file_modified_time" BETWEEN current_timestamp - INTERVAL '1' HOUR AND current_timestamp FROM t WHERE id = 1""",
            [(True,)],
        ),
        ('SELECT count(*) FROM t WHERE "$path" IN (SELECT file_path FROM "t$files")', [(2,)]),
        ("SELECT id FROM (TABLE t) ORDER BY id", [(1,), (2,)]),
        ('SELECT "$partition" FROM (SELECT *, "$partition" FROM t) WHERE id = 1', [("p=x%2Fy",)]),
    ],
)
def test_hidden_columns_are_read_only_by_name(
    lake: Engine, query: str, wanted: list[tuple[Any, ...]]
) -> None:
    assert rows(lake, query) == wanted


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ('UPDATE u SET v = "$partition" WHERE "$partition" <> \'\' OR id = 1', [(1, ""), (2, "b")]),
        ('DELETE FROM u WHERE "$path" IN (SELECT "$path" FROM u WHERE id = 1)', []),
        (
            'MERGE INTO u USING t s ON u.id = s.id AND u."$path" <> s."$path" WHEN MATCHED THEN UPDATE SET v = s."$partition"',
            [(1, "p=x%2Fy"), (2, "p=null")],
        ),
    ],
)
def test_rows_are_changed_by_their_location(
    lake: Engine, statement: str, left: list[tuple[Any, ...]]
) -> None:
    lake.run("CREATE OR REPLACE TABLE u AS SELECT id, v FROM t")
    lake.run(statement)
    assert rows(lake, "SELECT * FROM u") == left


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE t SET \"$path\" = 'x'", "The UPDATE SET target column $path doesn't exist"),
        (
            "INSERT INTO t (id, \"$path\") VALUES (1, 'x')",
            "Insert column name does not exist in target table: $path",
        ),
        ('SELECT "$row_id" FROM t', "Column '$row_id' cannot be resolved"),
        ('SELECT "$path" FROM "t$files"', "Column '$path' cannot be resolved"),
    ],
)
def test_hidden_columns_are_not_written_and_other_names_are_unknown(
    lake: Engine, statement: str, message: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        lake.run(statement)
    assert (caught.value.code, caught.value.message) == ("COLUMN_NOT_FOUND", message)


def test_a_file_is_compacted_by_its_name_and_only_it_is_read(lake: Engine) -> None:
    lake.run_script(
        "CREATE TABLE o (id integer); INSERT INTO o VALUES 1, 2; INSERT INTO o VALUES 3; DELETE FROM o WHERE id = 1"
    )
    [(path,)] = rows(lake, 'SELECT "$path" FROM o WHERE id = 2')
    lake.run(f"""ALTER TABLE o EXECUTE optimize WHERE "$path" = '{path}'""")
    assert rows(lake, 'SELECT content, record_count FROM "o$files"') == [(0, 1), (0, 1)]
    assert rows(lake, f"""SELECT id FROM o WHERE "$path" = '{path}'""") == []
