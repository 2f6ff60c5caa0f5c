"""ALTER TABLE on fields of rows: earlier values are found afterwards."""

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
    yield engine
    engine.close()


def test_fields_are_added_dropped_renamed_and_widened_and_old_rows_keep_their_values(
    lake: Engine,
) -> None:
    lake.run_script("""
        CREATE TABLE t (id integer, r row(a integer, b varchar, q row(x integer, y integer)), s array(row(c integer, d integer)), m map(varchar, row(e integer)));
        INSERT INTO t VALUES (1, (1, 'b', (2, 3)), ARRAY[(4, 5)], MAP(ARRAY['k'], ARRAY[CAST(ROW(6) AS row(e integer))]));
        ALTER TABLE t ADD COLUMN R."Z" bigint;
        ALTER TABLE t ADD COLUMN s.element.f varchar;
        ALTER TABLE t RENAME COLUMN r.q.x TO X2;
        ALTER TABLE t DROP COLUMN r.q.y;
        ALTER TABLE t DROP COLUMN s.element.c;
        ALTER TABLE t ALTER COLUMN m.value.e SET DATA TYPE bigint;
        ALTER TABLE t ALTER COLUMN r SET DATA TYPE row(b varchar, n integer, q row(x2 bigint), z bigint);
        INSERT INTO t VALUES (2, ('x', 7, ROW(8), 9), ARRAY[(10, 'g')], NULL)""")
    table = lake.run("SELECT * FROM t ORDER BY id").table
    assert table is not None
    assert [list(row.values()) for row in table.to_pylist()] == [
        [
            1,
            {"b": "b", "n": None, "q": {"x2": 2}, "z": None},
            [{"d": 5, "f": None}],
            [("k", {"e": 6})],
        ],
        [2, {"b": "x", "n": 7, "q": {"x2": 8}, "z": 9}, [{"d": 10, "f": "g"}], None],
    ]


@pytest.mark.parametrize(
    ("alteration", "code", "message"),
    [
        ("ADD COLUMN r.a bigint", "COLUMN_ALREADY_EXISTS", "Field 'a' already exists"),
        (
            "ADD COLUMN r.w bigint FIRST",
            "NOT_SUPPORTED",
            "Specifying column position is not supported for nested columns",
        ),
        ("ADD COLUMN s.e integer", "NOT_SUPPORTED", 'Unsupported type: array(row("c" integer))'),
        (
            "ADD COLUMN r.nope.e integer",
            "COLUMN_NOT_FOUND",
            'Field \'nope\' does not exist within row("a" integer, "b" integer)',
        ),
        ("DROP COLUMN s.element.c", "NOT_SUPPORTED", "Cannot drop the only field in a row type"),
        (
            "DROP COLUMN s.element",
            "COLUMN_NOT_FOUND",
            "Field path [element] does not point to row field",
        ),
        (
            "DROP COLUMN r.A",
            "NOT_SUPPORTED",
            'Cannot resolve field \'A\' within row("a" integer, "b" integer) type when dropping [A] in row("a" integer, "b" integer)',
        ),
        ("RENAME COLUMN r.a TO B", "COLUMN_ALREADY_EXISTS", "Field 'b' already exists"),
        (
            "RENAME COLUMN s.element.c TO d",
            "NOT_SUPPORTED",
            'Unsupported type: array(row("c" integer))',
        ),
        (
            "ALTER COLUMN r.a SET DATA TYPE varchar",
            "ICEBERG_COMMIT_ERROR",
            "Failed to set field type: Cannot change column type: r.a: int -> string",
        ),
        (
            "ALTER COLUMN nope.x SET DATA TYPE varchar",
            "COLUMN_NOT_FOUND",
            "Column 'nope.x' does not exist",
        ),
    ],
)
def test_errors_of_fields_are_those_of_trino(
    lake: Engine, alteration: str, code: str, message: str
) -> None:
    lake.run("CREATE TABLE IF NOT EXISTS e (r row(a integer, b integer), s array(row(c integer)))")
    with pytest.raises(RowMergeError) as caught:
        lake.run(f"ALTER TABLE e {alteration}")
    assert (caught.value.code, caught.value.message) == (code, message)


def test_existing_and_missing_fields_may_be_skipped_and_other_stores_have_no_fields(
    lake: Engine,
) -> None:
    lake.run("CREATE TABLE IF NOT EXISTS e (r row(a integer, b integer), s array(row(c integer)))")
    for alteration in (
        "ADD COLUMN IF NOT EXISTS r.a bigint",
        "DROP COLUMN IF EXISTS r.z",
        "RENAME COLUMN IF EXISTS nope.x TO y",
    ):
        assert lake.run(f"ALTER TABLE e {alteration}").trace.skipped
    lake.run("CREATE TABLE memory.default.e (r row(a integer, b integer))")
    with pytest.raises(RowMergeError, match="This connector does not support dropping fields"):
        lake.run("ALTER TABLE memory.default.e DROP COLUMN r.a")
