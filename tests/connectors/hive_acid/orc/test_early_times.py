"""Timestamps before 1970 with fractions of seconds have their own writer, and every reader reads them back."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyorc
import pytest

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.hive_acid.orc import writing as orc_writing
from rowmerge_nb.connectors.hive_acid.orc.tail import read_tail
from tests.connectors.hive_acid.kit import (
    Statement,
    contents,
    events,
    inserted,
    make_table,
    merge,
    row_ids,
)

at = dt.datetime.fromisoformat
EARLY = [
    at("1969-12-31 23:59:58.999999"),
    at("1960-01-01 00:00:00.001000"),
    at("1912-06-23 12:00:00.500000"),
    at("1677-09-22 00:00:00.123456"),
]
LATE = [
    at("1970-01-01 00:00:00"),
    at("1969-12-31 23:59:59"),
    at("2024-02-29 01:02:03.000004"),
    None,
]
COLUMNS = [("id", "bigint"), ("at", "timestamp(6)")]


def test_early_times_are_read_back_unchanged(tmp_path: Path) -> None:
    store = make_table(tmp_path, COLUMNS)
    rows = list(enumerate([*LATE, *EARLY]))
    merge(store, inserted(*rows))
    assert sorted(contents(store)) == rows
    (path,) = (store.warehouse / "t").rglob("bucket_*")
    with path.open("rb") as file:
        found = pyorc.Reader(file)
        assert found.user_metadata["hive.acid.key.index"] == b"1,536870912,7;"
        times = [row[5][1] for row in found]
    assert [None if time is None else time.replace(tzinfo=None) for time in times] == [
        *LATE,
        *EARLY,
    ]
    merge(store, [(2, row_ids(store)[5], None, None), (1, None, 9, EARLY[0])])
    store.compact("default", "t")
    store.remove_obsolete("default", "t")
    assert sorted(contents(store)) == [*rows[:5], *rows[6:], (9, EARLY[0])]


def test_a_file_may_hold_them_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_writing, "_CUT", 2)
    monkeypatch.setattr(orc_writing, "_STRIPE_BYTES", 64)
    store = make_table(tmp_path, COLUMNS)
    statement = Statement(store)
    statement.stage([])
    sink = statement.sink(0, inserted((0, LATE[0]), (1, LATE[1])))
    for number, time in enumerate([LATE[2], LATE[3], EARLY[0], LATE[1], EARLY[1]], 2):
        sink.store_merged_rows(statement.page(inserted((number, time))))
    statement.fragments = sink.finish()
    statement.finish()
    statement.commit()
    assert [row[1] for row in sorted(contents(store))] == [*LATE, EARLY[0], LATE[1], EARLY[1]]
    assert [event[3] for event in next(iter(events(store).values()))] == list(range(7))
    assert {path.name for path in (store.warehouse / "t").rglob("*") if path.is_file()} == {
        "bucket_00000",
        "_orc_acid_version",
    }


def test_values_of_all_types_can_accompany_them(tmp_path: Path) -> None:
    types = {
        "a": "boolean",
        "b": "tinyint",
        "c": "smallint",
        "d": "integer",
        "e": "bigint",
        "f": "real",
        "g": "double",
        "h": "decimal(38,3)",
        "i": "varchar",
        "J": "varchar(4)",
        "k": "char(3)",
        "l": "varbinary",
        "m": "date",
        "n": "array(timestamp(3))",
        "o": "map(varchar,row(X timestamp(6), y array(char(2))))",
    }
    many: Any = [("ä", {"X": EARLY[2], "y": ["p ", None]}), ("b", None)]
    row = (
        True,
        -1,
        -300,
        7,
        -(2**60),
        1.5,
        -0.25,
        Decimal("-12345678901234567890.125"),
        "ä😀",
        "abcd",
        "x  ",
        b"\x00\xff",
    )
    row = (*row, dt.date(1600, 2, 29), [at("1950-01-01 00:00:00.250000"), None], many)
    store = make_table(tmp_path, list(types.items()))
    merge(store, inserted(row, (None,) * len(row)))
    assert sorted(contents(store), key=repr) == sorted([row, (None,) * len(row)], key=repr)
    (path,) = (store.warehouse / "t").rglob("bucket_*")
    assert read_tail(path) is not None
    with path.open("rb") as file:
        schema = str(pyorc.Reader(file).schema["row"])
    assert schema.endswith(
        "j:varchar(4),k:char(3),l:binary,m:date,n:array<timestamp>,o:map<string,struct<x:timestamp,y:array<char(2)>>>>"
    )


def test_other_files_are_written_by_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyorc", None)
    store = make_table(tmp_path, COLUMNS)
    merge(store, inserted(*enumerate(LATE)))
    assert len(contents(store)) == 4
    statement = Statement(store)
    statement.stage([])
    sink = statement.sink(0, inserted((1, EARLY[0])))
    with pytest.raises(ExecutionError, match="needs the package pyorc") as caught:
        sink.finish()
    assert caught.value.hint == f"Run: {install_command('hive')}"
    sink.abort()
    statement.rollback()
    assert len(contents(store)) == 4


def test_times_that_no_engine_reads_back_are_refused(tmp_path: Path) -> None:
    store = make_table(tmp_path, COLUMNS)
    for bad in (
        at("1969-12-31 23:59:59.500000"),
        at("1960-01-01 00:00:00.000999"),
        at("1600-01-01 00:00:00"),
        at("2300-01-01 00:00:00"),
    ):
        with pytest.raises(ExecutionError, match="cannot be written to an ORC file") as caught:
            merge(store, inserted((1, bad)))
        assert caught.value.code == "NOT_SUPPORTED"
