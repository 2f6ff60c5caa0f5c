"""Delta's own library for Spark and this connector read and change each other's tables.

Requires `ROWMERGE_DELTA_JARS` names the library's jars (``delta-spark_4.1_2.13``, ``delta-storage``,
``delta-kernel-api``, ``delta-kernel-defaults`` and ``delta-kernel-unitycatalog``, separated by commas), `ROWMERGE_DELTA_PYTHON` a Python
with the PySpark that they are made for.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rowmerge_nb import ConnectorError, DeltaConnector, Engine

JARS, PYTHON = os.environ.get("ROWMERGE_DELTA_JARS"), os.environ.get("ROWMERGE_DELTA_PYTHON")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.delta_library,
    pytest.mark.skipif(
        not (JARS and PYTHON), reason="ROWMERGE_DELTA_JARS and ROWMERGE_DELTA_PYTHON are not set"
    ),
]

COLUMNS = (
    "id bigint, b boolean, t tinyint, s smallint, i integer, r real, d double, n decimal(38, 10),"
    " v varchar, x varbinary, da date, ts timestamp(6), tz timestamp(6) with time zone,"
    " l array(integer), m map(varchar, bigint), o row(x integer, y varchar), p varchar"
)
ROW = (
    "({id}, true, tinyint '-128', smallint '7', 3, real '1.5', 2.5e0, decimal '-12345.0000000001',"
    " 'ä b', X'00FF', date '1582-10-15', timestamp '2020-02-29 01:02:03.000004',"
    " timestamp '1969-12-31 23:59:59.999999 UTC', ARRAY[1, NULL], MAP(ARRAY['k'], ARRAY[9]),"
    " ROW(1, NULL), {p})"
)
EMPTY = "({id}" + ", NULL" * 15 + ", {p})"
PARTITIONS = ("'a'", "'ü /=%'", "NULL", "'__HIVE'")


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    with Engine(spark=spark) as engine:
        engine.add_catalog("lake", DeltaConnector(tmp_path / "w"))
        engine.run("USE lake.default")
        yield engine


def run(engine: Engine, *statements: str) -> None:
    for statement in statements:
        engine.run(statement, trace="off")


def library(
    tmp_path: Path, *, sql: Sequence[str] = (), read: Sequence[str] = ()
) -> list[list[list[str | None]]]:
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"sql": list(sql), "read": list(read)}))
    script = str(Path(__file__).with_name("delta_library.py"))
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SPARK"))
    }
    done = subprocess.run(
        [str(PYTHON), script, str(JARS), str(job)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    answers: list[list[list[str | None]]] = json.loads(line.removeprefix("ANSWERS "))
    return answers


def test_delta_s_own_library_reads_every_version_of_every_type(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "w" / "default" / "t"
    rows = [
        (ROW if number % 2 else EMPTY).format(id=number, p=PARTITIONS[number % 4])
        for number in range(8)
    ]
    run(
        engine,
        f"CREATE TABLE t ({COLUMNS}) WITH (partitioned_by = ARRAY['p'])",
        f"INSERT INTO t VALUES {', '.join(rows)}",
        "MERGE INTO t USING (VALUES (1, 'new'), (2, 'new'), (9, 'new')) AS s (k, w) ON t.id = s.k"
        " WHEN MATCHED AND k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = w, p = 'moved'"
        " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, w)",
        "ALTER TABLE t EXECUTE optimize",
        "ALTER TABLE t ADD COLUMN added integer",
        "UPDATE t SET added = 1 WHERE id = 3",
        "DELETE FROM t WHERE id = 4",
    )
    table = f"delta.`{folder}`"
    versions = DeltaTable(folder).version()
    *ids, full, empties, partitions, history = library(
        tmp_path,
        read=[
            *(
                f"SELECT id FROM {table} VERSION AS OF {number} ORDER BY id"
                for number in range(versions + 1)
            ),
            f"SELECT b, t, s, i, r, d, n, v, hex(x), da, ts, tz, l, m, o FROM {table} WHERE id = 5",
            f"SELECT count(*) FROM {table} WHERE b IS NULL AND o IS NULL AND added IS NULL",
            f"SELECT id, p FROM {table} ORDER BY id",
            f"DESCRIBE HISTORY {table}",
        ],
    )
    assert [[int(str(row[0])) for row in answer] for answer in (ids[0], ids[1], ids[2])] == [
        [],
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 2, 3, 4, 5, 6, 7, 9],
    ]
    assert [int(str(row[0])) for row in ids[-1]] == [0, 2, 3, 5, 6, 7, 9]
    assert full == [
        [
            *("true", "-128", "7", "3", "1.5", "2.5", "-12345.0000000001", "ä b", "00FF"),
            *("1582-10-15", "2020-02-29 01:02:03.000004", "1969-12-31 23:59:59.999999"),
            *("[1, null]", "{k -> 9}", "{1, null}"),
        ]
    ]
    assert empties == [["4"]]
    assert partitions == [
        ["0", "a"],
        ["2", "moved"],
        ["3", "__HIVE"],
        ["5", "ü /=%"],
        ["6", None],
        ["7", "__HIVE"],
        ["9", None],
    ]
    # An update counts as a deleted and an inserted row: pages of the documents do not distinguish them.
    (merge,) = [str(row) for row in history if row[0] == "2"]
    assert "numTargetRowsInserted -> 2" in merge
    assert "numTargetRowsDeleted -> 2" in merge


def test_tables_of_delta_s_own_library_are_read_and_changed(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "w" / "default"
    plain, vectors = folder / "plain", folder / "vectors"
    library(
        tmp_path,
        sql=[
            *(
                f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING, p STRING) USING delta"
                f" PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = '{used}')"
                for path, used in ((plain, "false"), (vectors, "true"))
            ),
            *(
                f"INSERT INTO delta.`{path}` SELECT id, concat('v', id), concat('p', id % 2)"
                " FROM range(10)"
                for path in (plain, vectors)
            ),
            *(f"DELETE FROM delta.`{path}` WHERE id = 4" for path in (plain, vectors)),
        ],
    )
    expected = [(number, f"v{number}", f"p{number % 2}") for number in range(10) if number != 4]
    for name in ("plain", "vectors"):
        found = engine.run(f"SELECT * FROM {name} ORDER BY id", trace="off").to_pandas()
        assert list(found.itertuples(index=False, name=None)) == expected
    merge = (
        "MERGE INTO {name} AS t USING (VALUES (1, 'one'), (2, 'two'), (20, 'new')) AS s (k, w)"
        " ON t.id = s.k WHEN MATCHED AND k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = w,"
        " p = 'moved' WHEN NOT MATCHED THEN INSERT VALUES (k, w, 'p0')"
    )
    run(engine, merge.format(name="plain"))
    after = sorted(
        [
            *(row for row in expected if row[0] not in {1, 2}),
            (2, "two", "moved"),
            (20, "new", "p0"),
        ]
    )
    (found,) = library(tmp_path, read=[f"SELECT * FROM delta.`{plain}` ORDER BY id"])
    assert found == [[str(number), text, part] for number, text, part in after]
    with pytest.raises(ConnectorError, match="deletionVectors"):
        run(engine, merge.format(name="vectors"))
    (found,) = library(tmp_path, read=[f"SELECT * FROM delta.`{vectors}` ORDER BY id"])
    assert found == [[str(number), text, part] for number, text, part in expected]


def test_features_of_delta_s_own_library_are_refused_by_name_before_anything_is_written(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "w" / "default"
    features = {
        "mapped": ("id BIGINT", "'delta.columnMapping.mode' = 'name'"),
        "tracked": ("id BIGINT", "'delta.enableRowTracking' = 'true'"),
        "generated": ("id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2)", ""),
        "numbered": ("id BIGINT GENERATED BY DEFAULT AS IDENTITY", ""),
    }
    library(
        tmp_path,
        sql=[
            f"CREATE TABLE delta.`{folder / name}` ({columns}) USING delta"
            + (f" TBLPROPERTIES ({properties})" if properties else "")
            for name, (columns, properties) in features.items()
        ],
    )
    for name in features:
        before = sorted(str(path) for path in (folder / name).rglob("*"))
        with pytest.raises(ConnectorError) as caught:
            run(engine, f"INSERT INTO {name} (id) VALUES (1)")
        assert caught.value.code == "NOT_SUPPORTED", name
        assert sorted(str(path) for path in (folder / name).rglob("*")) == before


def test_delta_s_own_library_reads_evolved_tables_and_its_wider_types_are_read(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "w" / "default"
    evolved, theirs = folder / "evolved", folder / "theirs"
    evolve = (
        "MERGE WITH SCHEMA EVOLUTION INTO {name} t USING (SELECT 1 AS id, 5000000000 AS n,"
        " DECIMAL '1234.25' AS d, CAST(ROW(6000000000, 3) AS row(x bigint, w integer)) AS o,"
        " ARRAY[CAST(ROW(7, 8) AS row(p bigint, q integer))] AS l, TIMESTAMP '2024-05-06 07:08:09' AS at) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE * WHEN NOT MATCHED THEN INSERT *"
    )
    run(
        engine,
        "CREATE TABLE evolved (id integer, n integer, d decimal(4, 2), o row(x integer, y varchar),"
        " l array(row(p integer))) WITH (type_widening_enabled = true)",
        "INSERT INTO evolved VALUES (1, 1, 1.5, ROW(1, 'a'), NULL), (2, 2, 2.5, ROW(2, 'b'), ARRAY[ROW(2)])",
    )
    engine.run(evolve.format(name="evolved"), dialect="extended", trace="off")
    # Further changes by the library, and columns and types changed by it.
    names = f"delta.`{evolved}`", f"delta.`{theirs}`"
    columns = "id INT, n INT, d DECIMAL(4, 2), o STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<p: INT>>"
    properties = "'delta.enableTypeWidening' = 'true', 'delta.enableDeletionVectors' = 'false'"
    values = "(1, 1, 1.5, struct(1, 'a'), NULL), (2, 2, 2.5, struct(2, 'b'), array(struct(2)))"
    query = "SELECT id, n, d, o, l, at FROM {} ORDER BY id"
    first, _, second = library(
        tmp_path,
        sql=[
            f"CREATE TABLE {names[1]} ({columns}) USING delta TBLPROPERTIES ({properties})",
            f"INSERT INTO {names[1]} VALUES {values}",
            f"ALTER TABLE {names[1]} CHANGE COLUMN n TYPE BIGINT",
        ],
        read=[
            query.format(names[0]),
            f"DESCRIBE HISTORY {names[0]}",
            f"SELECT id, n FROM {names[1]} ORDER BY id",
        ],
    )
    rows = [
        ["1", "5000000000", "1234.25", "{6000000000, a, 3}", "[{7, 8}]", "2024-05-06 07:08:09"],
        ["2", "2", "2.50", "{2, b, null}", "[{2, null}]", None],
    ]
    assert first == rows
    assert second == [["1", "1"], ["2", "2"]]
    assert engine.table("theirs").column("n").to_pylist() == [1, 2]
    engine.run(evolve.format(name="theirs"), dialect="extended", trace="off")
    found, again = library(
        tmp_path,
        sql=[f"UPDATE {names[0]} SET n = n + 1 WHERE id = 1"],
        read=[query.format(name) for name in names],
    )
    assert again == rows
    assert [row[1] for row in found] == ["5000000001", "2"]
    assert sorted(engine.table("evolved").column("n").to_pylist()) == [2, 5000000001]
