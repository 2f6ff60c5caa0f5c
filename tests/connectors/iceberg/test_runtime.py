"""Iceberg's own library and this connector read each other's tables.

Requires `ROWMERGE_ICEBERG_JAR` names ``iceberg-spark-runtime-4.1_2.13-1.12.0.jar`` or one like it, `ROWMERGE_ICEBERG_PYTHON`
a Python with the PySpark that it is made for.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import IcebergConnector
from rowmerge_nb.connectors.iceberg.iceberg_handles import LINEAGE, IcebergColumn
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.iceberg.kit import (
    Statement,
    contents,
    create,
    delete,
    insert,
    make_table,
    table,
)

JAR, PYTHON = os.environ.get("ROWMERGE_ICEBERG_JAR"), os.environ.get("ROWMERGE_ICEBERG_PYTHON")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.iceberg_runtime,
    pytest.mark.skipif(
        not (JAR and PYTHON), reason="ROWMERGE_ICEBERG_JAR and ROWMERGE_ICEBERG_PYTHON are not set"
    ),
]


def run(
    tmp_path: Path, *, sql: Sequence[str] = (), read: Sequence[str] = (), hidden: Sequence[str] = ()
) -> list[list[tuple[Any, ...]]]:
    job = tmp_path / "job.json"
    job.write_text(
        json.dumps(
            {
                "warehouse": str(tmp_path / "h"),
                "sql": list(sql),
                "read": list(read),
                "hidden": list(hidden),
            }
        )
    )
    script = str(Path(__file__).with_name("runtime.py"))
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SPARK"))
    }
    done = subprocess.run(
        [str(PYTHON), script, str(JAR), str(job)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if not line.startswith(("\tat ", "E"))]
    assert done.returncode == 0, "\n".join(told)[:4000]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    return [
        sorted((tuple(row) for row in answer), key=repr)
        for answer in json.loads(line.removeprefix("ANSWERS "))
    ]


def as_texts(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    def text(value: Any) -> Any:
        return value if value is None else str(value)

    return sorted((tuple(text(value) for value in row) for row in found), key=repr)


def test_iceberg_s_own_library_reads_tables_after_merges(tmp_path: Path) -> None:
    store = make_table(tmp_path / "w", partitioning=("p", "bucket(id, 3)"))
    names = [
        SchemaTableName("default", "t"),
        SchemaTableName("default", "plain"),
        SchemaTableName("default", "evolved"),
    ]
    create(store, name=names[1])
    create(store, name=names[2], partitioning=("truncate(v, 1)",))
    for name in names:
        insert(
            store,
            {
                "id": list(range(1000)),
                "v": [f"v{i}" for i in range(1000)],
                "p": ["x", "y", None, "z/ä="] * 250,
            },
            name,
        )
        for round_ in range(3):
            if name is names[2] and round_ == 1:
                with table(store, name).update_spec() as update:
                    update.remove_field("v_trunc").add_identity("p")
                with table(store, name).update_schema() as update:
                    update.rename_column("v", "w")
            statement = Statement(store, name)
            statement.begin_merge()
            found = statement.rows(ids=True)
            gone = [row for row in found if row["id"] % 3 == round_]
            changes: list[tuple[Any, ...]] = [
                (2, row["$row_id"], None, None, row["p"]) for row in gone
            ]
            changes += [(1, None, row["id"] + 10_000, f"n{round_}", "x") for row in gone[::2]]
            statement.stage(changes[::2], changes[1::2])
            statement.finish()
            statement.commit()
    delete(store, contents(store)[0][0])
    read = run(tmp_path, read=[table(store, name).metadata_location for name in names])
    for name, answer in zip(names, read, strict=True):
        assert len(answer) > 200
        assert answer == as_texts(contents(store, name)), name


WRITTEN = [
    (
        "CREATE TABLE h.d.{name} (id bigint, v string, p string, r struct<a: int, b: array<string>>, d date, n decimal(9,2)) USING iceberg"
        " PARTITIONED BY (p) TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read',"
        " 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read', 'write.delete.granularity'='{granularity}')"
    ),
    (
        "INSERT INTO h.d.{name} SELECT id, concat('v', id), concat('p', id % 3), struct(int(id), array('x', NULL)), date'2024-02-29', id / 4"
        " FROM range(300)"
    ),
    "DELETE FROM h.d.{name} WHERE id % 7 = 0",
    "INSERT INTO h.d.{name} SELECT id, 'later', NULL, NULL, NULL, NULL FROM range(1000, 1010)",
    "UPDATE h.d.{name} SET v = 'changed' WHERE id % 5 = 0",
    "ALTER TABLE h.d.{name} RENAME COLUMN v TO w",
    "ALTER TABLE h.d.{name} ADD COLUMN extra int",
    "ALTER TABLE h.d.{name} DROP PARTITION FIELD p",
    "INSERT INTO h.d.{name} SELECT id, 'last', 'p1', NULL, NULL, NULL, int(id) FROM range(2000, 2005)",
    "DELETE FROM h.d.{name} WHERE id % 11 = 0",
]


def newest(folder: Path) -> str:
    found = sorted(
        (folder / "metadata").glob("v*.metadata.json"),
        key=lambda path: int(path.name.split(".")[0].lstrip("v")),
    )
    return str(found[-1])


def test_tables_that_iceberg_s_own_library_has_changed_are_read_and_changed(tmp_path: Path) -> None:
    tables = [("two", 2, "partition"), ("files", 2, "file"), ("three", 3, "file")]
    sql = [
        text.format(name=name, version=version, granularity=grain)
        for name, version, grain in tables
        for text in WRITTEN
    ]
    places = {name: tmp_path / "h" / "d" / name for name, _, _ in tables}
    run(tmp_path, sql=["CREATE NAMESPACE h.d", *sql])
    reads = run(tmp_path, read=[newest(place) for place in places.values()])
    store = IcebergConnector(tmp_path / "w")
    for (name, place), answer in zip(places.items(), reads, strict=True):
        store.register_table("default", name, newest(place))
        own = contents(store, SchemaTableName("default", name))
        assert len(answer) > 200
        assert [row[:3] for row in answer] == [row[:3] for row in as_texts(own)], name
        assert [row[4:] for row in answer] == [row[4:] for row in as_texts(own)], name
    vectors = list(places["three"].rglob("*.puffin"))
    assert vectors, "version 3 deletes by deletion vectors"
    changes = ("two", "files", "three")
    for changed in changes:
        statement = Statement(store, SchemaTableName("default", changed))
        statement.begin_merge()
        found = [row for row in statement.rows(ids=True) if row["id"] % 2]
        nothing = [None] * len(statement.handle.fields)
        statement.stage(
            [(2, row["$row_id"], *nothing) for row in found],
            [(1, None, 7, "ours", "p9", None, None, None, 1)],
        )
        statement.finish()
        statement.commit()
    after = run(
        tmp_path,
        read=[
            table(store, SchemaTableName("default", changed)).metadata_location
            for changed in changes
        ],
    )
    for changed, answer in zip(changes, after, strict=True):
        own = as_texts(contents(store, SchemaTableName("default", changed)))
        assert [row[:3] for row in answer] == [row[:3] for row in own]
        assert ("7", "ours", "p9") in [row[:3] for row in answer]


LINEAGE_COLUMNS = ("_row_id", "_last_updated_sequence_number")


def with_lineage(store: IcebergConnector, name: SchemaTableName) -> list[tuple[Any, ...]]:
    statement = Statement(store, name)
    own = statement.metadata.get_column_handles(statement.session, statement.handle)
    columns = [*own, *(IcebergColumn(field.name, field.type, field) for field in LINEAGE)]
    provider = store.get_page_source_provider()
    found = []
    for split in statement.splits():
        source = provider.create_page_source(
            statement.transaction, statement.session, split, statement.handle, columns
        )
        for page in iter(source.get_next_page, None):
            found += list(zip(*page.to_pydict().values(), strict=True))
    statement.rollback()
    return as_texts(found)


def adopt(store: IcebergConnector, name: SchemaTableName, place: Path) -> None:
    """Make our newest version the newest of a table of Iceberg's catalog of folders."""
    number = int(Path(newest(place)).name.split(".")[0].lstrip("v")) + 1
    location = table(store, name).metadata_location.removeprefix("file://")
    (place / "metadata" / f"v{number}.metadata.json").write_bytes(Path(location).read_bytes())
    (place / "metadata" / "version-hint.text").write_text(str(number))


def test_version_3_is_changed_in_turns(tmp_path: Path) -> None:
    folder, name = tmp_path / "h" / "d" / "turns", SchemaTableName("default", "turns")
    sql = ["CREATE NAMESPACE h.d", *(text.format(name="turns", version=3, granularity="file") for text in WRITTEN)]  # fmt: skip
    (theirs,) = run(tmp_path, sql=sql, read=["h.d.turns"], hidden=LINEAGE_COLUMNS)
    for turn in range(3):
        store = IcebergConnector(tmp_path / f"w{turn}")
        store.register_table("default", "turns", newest(folder))
        assert without_rows(theirs) == without_rows(with_lineage(store, name))
        statement = Statement(store, name)
        if turn == 1:
            copy = {**statement.handle.properties, "write.merge.mode": "copy-on-write"}
            statement.handle = replace(statement.handle, properties=copy)
        statement.begin_merge()
        gone = [row for row in statement.rows(ids=True) if row["id"] % 13 == turn]
        assert gone
        nothing = [None] * len(statement.handle.fields)
        changes = [row for row in statement.rows(ids=True) if row["id"] % 13 == turn + 3]
        values = [(row["id"], f"ours {turn}", "p9", None, None, None, turn) for row in changes]
        row_ids = [row["$row_id"] for row in changes]
        statement.stage(
            [(2, row["$row_id"], *nothing) for row in gone]
            + [(5, row_id, *nothing) for row_id in row_ids],
            [(4, row_id, *new) for row_id, new in zip(row_ids, values, strict=True)]
            + [(1, None, 5000 + turn, "ours", "p9", None, None, None, 1)],
        )
        statement.finish()
        statement.commit()
        adopt(store, name, folder)
        compaction = ["CALL h.system.rewrite_data_files('d.turns')"] if turn == 1 else []
        sql = [
            f"DELETE FROM h.d.turns WHERE id % 17 = {turn}",
            f"UPDATE h.d.turns SET w = 'turn {turn}' WHERE id % 19 = {turn}",
            *compaction,
        ]
        location = table(store, name).metadata_location
        ours, now = run(tmp_path, sql=sql, read=[location, "h.d.turns"], hidden=LINEAGE_COLUMNS)
        numbers = ({row[0]: row[-2] for row in answer} for answer in (theirs, ours, now))
        before, after, later = numbers
        assert all(before.get(key, number) == number for key, number in after.items())
        assert all(after.get(key, number) == number for key, number in later.items())
        theirs = now
        assert without_rows(ours) == without_rows(with_lineage(store, name))


def without_rows(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows without the row column, whose text Spark formats differently."""
    return sorted((*row[:3], *row[4:]) for row in (tuple(map(str, row)) for row in found))
