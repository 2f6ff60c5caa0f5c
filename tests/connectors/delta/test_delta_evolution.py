"""MERGE WITH SCHEMA EVOLUTION on Delta tables: one version of the log, read by delta-rs in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rowmerge_nb import DeltaConnector, Engine, RowMergeError

pytestmark = pytest.mark.spark

NAME = "lake.default.t"
WIDENING = "WITH (type_widening_enabled = true)"
NESTED = "(id integer, n integer, d decimal(5, 2), a row(x integer, y varchar), l array(row(p integer)), m map(varchar, array(integer)))"
ROWS = "VALUES (1, 1, 1.25, ROW(1, 'a'), ARRAY[ROW(1)], MAP(ARRAY['k'], ARRAY[ARRAY[1]])), (2, 2, 2.25, ROW(2, 'b'), NULL, NULL)"
WIDER = """(SELECT i AS id, 5000000000 AS n, DECIMAL '1234567.25' AS d, CAST(ROW(9, 3) AS row(x bigint, w integer)) AS a,
    ARRAY[CAST(ROW(7, 8) AS row(p bigint, q integer))] AS l, MAP(ARRAY['k'], ARRAY[ARRAY[5000000000]]) AS m, 'new' AS city
    FROM (VALUES 1, 3) v (i)) s"""
EVOLVED = [
    {
        "id": 1,
        "n": 5000000000,
        "d": "1234567.25",
        "a": {"x": 9, "y": "a", "w": 3},
        "l": [{"p": 7, "q": 8}],
        "m": [["k", [5000000000]]],
        "city": "new",
    },
    {
        "id": 2,
        "n": 2,
        "d": "2.25",
        "a": {"x": 2, "y": "b", "w": None},
        "l": None,
        "m": None,
        "city": None,
    },
    {
        "id": 3,
        "n": 5000000000,
        "d": "1234567.25",
        "a": {"x": 9, "y": None, "w": 3},
        "l": [{"p": 7, "q": 8}],
        "m": [["k", [5000000000]]],
        "city": "new",
    },
]
READER = """
import json, os, sys
from deltalake import DeltaTable
table = DeltaTable(sys.argv[1])
rows = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
print(json.dumps(rows, default=str), flush=True)
# Threads of the library may abort the interpreter's end.
os._exit(0)
"""


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    with Engine(spark=spark, dialect="extended") as engine:
        engine.add_catalog("lake", DeltaConnector(tmp_path))
        yield engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "default" / "t"


def read_apart(folder: Path) -> list[dict[str, Any]]:
    """Return the rows read by delta-rs in a process without this package."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", READER, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def fields_of(folder: Path) -> dict[str, dict[str, Any]]:
    fields = json.loads(DeltaTable(folder).schema().to_json())["fields"]
    return {field["name"]: field for field in fields}


def actions_of(folder: Path, version: int) -> list[dict[str, Any]]:
    text = (folder / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def merge(source: str, clauses: str = "") -> str:
    star = "WHEN MATCHED THEN UPDATE * WHEN NOT MATCHED THEN INSERT *"
    return (
        f"MERGE WITH SCHEMA EVOLUTION INTO {NAME} t USING {source} ON t.id = s.id {clauses or star}"
    )


def ours(engine: Engine) -> list[dict[str, Any]]:
    rows = engine.table(NAME).to_pylist()
    return sorted(json.loads(json.dumps(rows, default=str)), key=lambda row: int(row["id"]))


def columns(engine: Engine) -> dict[str, str]:
    table = engine.run(f"DESCRIBE {NAME}").table
    assert table is not None
    return {row["Column"]: row["Type"] for row in table.to_pylist()}


def test_columns_fields_and_types_are_added_with_the_rows_in_one_version(
    engine: Engine, folder: Path
) -> None:
    engine.run(f"CREATE TABLE {NAME} {NESTED} {WIDENING}")
    engine.run(f"INSERT INTO {NAME} {ROWS}")
    engine.run(merge(WIDER), check=True)
    assert DeltaTable(folder).version() == 2
    kinds = [next(iter(action)) for action in actions_of(folder, 2)]
    assert (kinds[:2], {*kinds[2:]}) == (["commitInfo", "metaData"], {"add", "remove"})
    assert ours(engine) == EVOLVED
    fields = fields_of(folder)
    assert fields["n"]["metadata"] == {
        "delta.typeChanges": [{"fromType": "integer", "toType": "long"}]
    }
    assert fields["m"]["metadata"] == {
        "delta.typeChanges": [
            {"fromType": "integer", "toType": "long", "fieldPath": "value.element"}
        ]
    }
    (inner, *_) = fields["l"]["type"]["elementType"]["fields"]
    assert inner["metadata"] == {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    large = engine.run(f"SELECT id FROM {NAME} WHERE n > 3000000000 ORDER BY id").table
    assert large is not None
    assert large.column("id").to_pylist() == [1, 3]
    former = engine.table(NAME, 1)
    assert former.schema.field("n").type == pa.int32()
    # Another change adds to the list of changes and preserves it.
    engine.run(merge("(SELECT 2 AS id, DECIMAL '123456789.25' AS d) s"))
    assert fields_of(folder)["d"]["metadata"]["delta.typeChanges"] == [
        {"fromType": "decimal(5,2)", "toType": "decimal(9,2)"},
        {"fromType": "decimal(9,2)", "toType": "decimal(11,2)"},
    ]


def test_types_stay_and_fields_are_added_without_the_feature(engine: Engine, folder: Path) -> None:
    engine.run(f"CREATE TABLE {NAME} {NESTED}")
    engine.run(f"INSERT INTO {NAME} {ROWS}")
    protocol = DeltaTable(folder).protocol()
    source = WIDER.replace("5000000000", "BIGINT '5'").replace("1234567.25", "1.75")
    result = engine.run(merge(source))
    assert "kept the type" in " ".join(str(result).split())
    assert "delta.enableTypeWidening" in " ".join(str(result).split())
    assert DeltaTable(folder).protocol() == protocol
    assert columns(engine)["n"] == "integer"
    rows = read_apart(folder)
    assert rows == ours(engine)
    assert (rows[0]["a"], rows[0]["n"], rows[0]["city"]) == ({"x": 9, "y": "a", "w": 3}, 5, "new")
    with pytest.raises(RowMergeError) as caught:
        engine.run(merge("(SELECT 1 AS id, 5000000000 AS n) s"))
    assert caught.value.changed is False
    assert ours(engine) == rows


def test_a_timestamp_adds_its_feature_to_the_protocol(engine: Engine, folder: Path) -> None:
    write_deltalake(folder, pa.table({"id": [1, 2]}))
    assert DeltaTable(folder).protocol().min_writer_version < 7
    engine.run(merge("(SELECT 1 AS id, TIMESTAMP '2024-05-06 07:08:09' AS at) s"))
    protocol = DeltaTable(folder).protocol()
    assert "timestampNtz" in (protocol.reader_features or ())
    assert {"timestampNtz", "appendOnly", "invariants"} <= set(protocol.writer_features or ())
    assert read_apart(folder) == [
        {"id": 1, "at": "2024-05-06 07:08:09"},
        {"id": 2, "at": None},
    ]


@pytest.mark.parametrize("properties", ["", ", partitioned_by = ARRAY['p']"])
def test_every_statement_changes_a_table_whose_types_widen(
    engine: Engine, folder: Path, properties: str
) -> None:
    engine.run(
        f"CREATE TABLE {NAME} (id integer, v integer, p varchar) WITH (type_widening_enabled = true{properties})"
    )
    shown = engine.run(f"SHOW CREATE TABLE {NAME}").table
    assert shown is not None
    assert "type_widening_enabled = true" in shown.to_pylist()[0]["Create Table"]
    engine.run(f"INSERT INTO {NAME} VALUES (1, 1, 'a b'), (2, 2, 'b'), (3, 3, NULL)")
    engine.run(merge("(SELECT 2 AS id, 5000000000 AS v, 'ü' AS p) s"))
    engine.run(f"INSERT INTO {NAME} VALUES (4, 6000000000, 'a b')")
    engine.run(f"UPDATE {NAME} SET v = v + 1 WHERE p = 'a b'")
    engine.run(f"DELETE FROM {NAME} WHERE v = 3")
    engine.run(f"ALTER TABLE {NAME} ADD COLUMN w bigint")
    engine.run(f"UPDATE {NAME} SET w = 7 WHERE id = 4")
    expected = [
        {"id": 1, "v": 2, "p": "a b", "w": None},
        {"id": 2, "v": 5000000000, "p": "ü", "w": None},
        {"id": 4, "v": 6000000001, "p": "a b", "w": 7},
    ]
    assert ours(engine) == expected
    # delta-rs reads the log alone.
    with pytest.raises(Exception, match="typeWidening"):
        DeltaTable(folder).to_pyarrow_table()
    for sql in (
        f"COMMENT ON TABLE {NAME} IS 'x'",
        f"CREATE OR REPLACE TABLE {NAME} (x integer)",
        f"ALTER TABLE {NAME} ALTER COLUMN v DROP NOT NULL",
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(sql)
        assert (caught.value.code, caught.value.changed) == ("NOT_SUPPORTED", False)
    version = DeltaTable(folder).version()
    engine.run(f"TRUNCATE TABLE {NAME}")
    assert ours(engine) == []
    engine.restore(NAME, version)
    assert ours(engine) == expected


def test_a_checkpoint_is_written_when_it_is_due(engine: Engine, folder: Path) -> None:
    engine.run(f"CREATE TABLE {NAME} (id integer, v integer) {WIDENING}")
    for number in range(9):
        engine.run(f"INSERT INTO {NAME} VALUES ({number}, {number})")
    engine.run(merge("(SELECT 20 AS id, 5000000000 AS v) s"))
    engine.run(f"DELETE FROM {NAME} WHERE id = 0")
    log = folder / "_delta_log"
    assert [path.name for path in log.glob("*.checkpoint.parquet")] == [
        f"{10:020}.checkpoint.parquet"
    ]
    assert not [*log.glob("*.tmp")]
    for version in range(10):
        (log / f"{version:020}.json").unlink()
    assert [row["id"] for row in ours(engine)] == [*range(1, 9), 20]


def test_a_concurrent_commit_is_a_conflict_and_adds_no_column(
    engine: Engine, tmp_path: Path, folder: Path
) -> None:
    engine.run(f"CREATE TABLE {NAME} (id integer, v integer)")
    connector = DeltaConnector(tmp_path)
    commit = connector.commit

    def late_commit(transaction: Any) -> Any:
        write_deltalake(folder, DeltaTable(folder).to_pyarrow_table(), mode="append")
        return commit(transaction)

    connector.commit = late_commit  # type: ignore[method-assign]
    engine.add_catalog("slow", connector)
    with pytest.raises(RowMergeError, match="TRANSACTION_CONFLICT"):
        engine.run(merge("(SELECT 1 AS id, 'x' AS city) s").replace("lake.", "slow."))
    assert list(columns(engine)) == ["id", "v"]


def test_undo_and_restore_of_evolved_tables(engine: Engine, folder: Path) -> None:
    engine.run(f"CREATE TABLE {NAME} (id integer, v varchar)")
    engine.run(f"INSERT INTO {NAME} VALUES (1, 'ab'), (2, NULL)")
    bounds = DeltaTable(folder).get_add_actions(flatten=True)
    engine.run(merge("(SELECT 1 AS id, 'x' AS city) s"))
    engine.restore(NAME, 1)
    expected = [{"id": 1, "v": "ab", "city": None}, {"id": 2, "v": None, "city": None}]
    assert read_apart(folder) == ours(engine) == expected
    restored = DeltaTable(folder).get_add_actions(flatten=True)
    for name in ("path", "num_records", "min.v", "max.v", "null_count.v"):
        assert restored.column(name).to_pylist() == bounds.column(name).to_pylist()
    engine.undo(NAME)
    assert ours(engine)[0]["city"] == "x"
    engine.undo(NAME)
    assert list(columns(engine)) == ["id", "v"]
    assert read_apart(folder) == [{"id": 1, "v": "ab"}, {"id": 2, "v": None}]
    # A column of that name with another type makes the older version unreadable under the current schema.
    engine.run(merge("(SELECT 1 AS id, 7 AS city) s"))
    with pytest.raises(RowMergeError, match="has other columns"):
        engine.restore(NAME, 2)
    assert ours(engine)[0]["city"] == 7
