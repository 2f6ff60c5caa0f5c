"""Files written by sinks and finish calls of the Hive connector, their visibility, and leftovers of failures; without Spark."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from rowmerge_nb import ConnectorError, HiveAcidConnector, RowMergeError
from rowmerge_nb.connectors.hive_acid import orc_values as values
from rowmerge_nb.connectors.hive_acid.metastore.embedded import EmbeddedMetastore
from rowmerge_nb.spi import ConnectorSession, SchemaTableName
from tests.connectors.hive_acid.kit import (
    NAME,
    Statement,
    contents,
    events,
    files,
    inserted,
    make_table,
    merge,
    row_ids,
)

A, B, C = (1, "a", "x"), (2, "b", "x"), (3, "c", "y")


def test_an_insert_writes_a_delta_with_encoded_buckets_and_ascending_row_ids(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A, B))
    row = {"id": 1, "v": "a", "p": "x"}
    assert events(store) == {
        "delta_0000001_0000001_0000/bucket_00000": [
            [0, 1, 536870912, 0, 1, row],
            [0, 1, 536870912, 1, 1, {"id": 2, "v": "b", "p": "x"}],
        ]
    }
    assert (
        store.warehouse / "t" / "delta_0000001_0000001_0000" / "_orc_acid_version"
    ).read_bytes() == b"2"


def test_files_carry_the_metadata_that_hive_3_needs(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A, B))
    merge(store, [(2, row_ids(store)[2], None, None, None)])
    paths = list((store.warehouse / "t").rglob("bucket_*"))
    found = {path.parent.name: orc.ORCFile(str(path)).schema.metadata for path in paths}
    assert found["delta_0000001_0000001_0000"] == {
        b"hive.acid.version": b"2",
        b"hive.acid.stats": b"2,0,0",
        b"hive.acid.key.index": b"1,536870912,1;",
    }
    assert found["delete_delta_0000002_0000002_0000"][b"hive.acid.stats"] == b"0,0,1"


def test_delete_events_are_sorted_written_once_and_in_the_file_named_like_the_data_file(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path, bucketed_by=("id",), bucket_count=4)
    merge(store, inserted(*((n, "v", "p") for n in range(16))))
    ids = row_ids(store)
    rows = [(2, ids[n], n, None, None) for n in (13, 5, 9, 1, 5, 2)]
    merge(store, rows)
    assert [e[:4] for e in events(store)["delete_delta_0000002_0000002_0000/bucket_00001"]] == [
        [2, 1, 536936448, n] for n in range(4)
    ]
    assert len(events(store)["delete_delta_0000002_0000002_0000/bucket_00002"]) == 1
    assert sorted(row[0] for row in contents(store)) == [
        n for n in range(16) if n not in {13, 5, 9, 1, 2}
    ]


def test_an_update_may_move_rows_between_partitions_and_buckets(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioned_by=("p",), bucketed_by=("id",), bucket_count=2)
    merge(store, inserted(A, B, C))
    ids = row_ids(store)
    merge(store, [(2, ids[1], 1, None, "x")], [(1, None, 10, "a2", "z w/1")])
    assert contents(store) == [(10, "a2", "z w/1"), (2, "b", "x"), (3, "c", "y")]
    assert "p=x/delete_delta_0000002_0000002_0000/bucket_00001" in events(store)
    assert "p=z w%2F1/delta_0000002_0000002_0000/bucket_00000" in events(store)


def test_writers_of_a_table_without_layout_take_statement_numbers_of_their_own(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A), inserted(B), inserted(C))
    assert sorted(events(store)) == [f"delta_0000001_0000001_000{n}/bucket_00000" for n in range(3)]
    ids = row_ids(store)
    assert len({(i["bucket"], i["rowId"]) for i in ids.values()}) == 3
    merge(store, [(2, ids[1], *(None,) * 3)], [(2, ids[3], *(None,) * 3)])
    assert contents(store) == [B]


def test_writers_with_the_same_number_get_different_ones_at_the_end(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    statement = Statement(store)
    statement.stage([])
    statement.fragments = [
        *statement.sink(5, inserted(A)).finish(),
        *statement.sink(5 + 4096, inserted(B, C)).finish(),
    ]
    statement.finish()
    statement.commit()
    assert len({(i["bucket"], i["rowId"]) for i in row_ids(store).values()}) == 3
    assert contents(store) == [A, B, C]


def test_more_files_of_a_bucket_than_hive_has_numbers_for_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowmerge_nb.connectors.hive_acid.delta_writer.STATEMENT_LIMIT", 2)
    store = make_table(tmp_path)
    merge(store, inserted(A), inserted(B))
    statement = Statement(store)
    statement.stage([])
    statement.fragments = [
        part for row in (A, B, C) for part in statement.sink(0, inserted(row)).finish()
    ]
    with pytest.raises(
        RowMergeError, match="more than 2 files for bucket 0 of the table"
    ) as caught:
        statement.finish()
    assert "omit the option flow" in (caught.value.hint or "")
    statement.rollback()
    assert contents(store) == [A, B]


def test_null_and_odd_partition_values_are_read_back(tmp_path: Path) -> None:
    store = make_table(
        tmp_path,
        (("id", "bigint"), ("p", "varchar"), ("d", "date"), ("n", "decimal(5,2)")),
        partitioned_by=("p", "d", "n"),
    )
    import datetime as dt
    from decimal import Decimal

    rows = [
        (1, None, None, None),
        (2, "ä/=%", dt.date(1969, 1, 2), Decimal("-1.50")),
        (3, " ", dt.date(2024, 2, 29), Decimal(0)),
    ]
    merge(store, inserted(*rows))
    assert contents(store) == sorted(rows, key=repr)


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_partition_value_that_hive_takes_for_null_is_refused(tmp_path: Path, value: str) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    with pytest.raises(RowMergeError, match="cannot distinguish the partition value") as caught:
        merge(store, inserted((1, "a", value)))
    assert caught.value.code == "HIVE_INVALID_PARTITION_VALUE"


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us")])
@pytest.mark.parametrize("year", [-44, 12345])
def test_a_day_that_no_folder_can_be_read_as_again_is_refused_and_leaves_the_table_readable(
    kind: pa.DataType, year: int
) -> None:
    days = pa.array([(year - 1970) * 365, None, 0], pa.int32()).cast(pa.date32()).cast(kind)
    with pytest.raises(RowMergeError, match="its year does not have four digits") as caught:
        values.group_by_partition([days], 3)
    assert caught.value.code == "HIVE_INVALID_PARTITION_VALUE"
    assert len(values.group_by_partition([days.slice(1)], 2)[0]) == 2


# -- visibility and failures


def test_nothing_is_visible_before_the_commit_and_all_of_it_after(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    merge(store, inserted(A))
    statement = Statement(store)
    statement.stage([[(2, row_ids(store)[1], None, None, "x"), *inserted(B, C)]])
    assert contents(store) == [A]
    statement.finish()
    assert contents(store) == [A]
    reader = Statement(store)
    statement.commit()
    assert [tuple(row.values()) for row in reader.rows()] == [A], (
        "a statement keeps the snapshot that it began with"
    )
    assert contents(store) == [B, C]


@pytest.mark.parametrize("step", ["begin", "stage", "finish"])
def test_a_rollback_after_any_step_leaves_the_table_and_its_folder_unchanged(
    tmp_path: Path, step: str
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    before = files(store)
    statement = Statement(store)
    statement.stage([] if step == "begin" else [inserted(B)])
    if step == "finish":
        statement.finish()
    statement.rollback()
    assert files(store) == before
    assert contents(store) == [A]
    assert not store.open_transactions()
    merge(store, inserted(C))
    assert contents(store) == [A, C]


def test_only_the_named_attempt_of_two_finished_ones_counts(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    statement = Statement(store)
    statement.stage([])
    statement.sink(0, inserted(A)).finish()
    statement.fragments = statement.sink(0, inserted(A, B)).finish()
    statement.finish()
    statement.commit()
    assert contents(store) == [A, B]
    assert not [name for name in files(store) if name.startswith("_tmp_")]


def test_an_aborted_sink_leaves_no_file(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    statement = Statement(store)
    statement.stage([])
    sink = statement.sink(0, inserted(A))
    sink.finish()
    sink.abort()
    (folder,) = files(store)
    assert folder.startswith("_tmp_"), "the statement's own folder, which is empty"


def test_a_driver_that_dies_between_staging_and_commit_leaves_the_old_content_and_orphans_that_are_listed(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    statement = Statement(store)
    statement.stage([inserted(B)])
    statement.sink(1, inserted(C)).finish()
    statement.finish()
    survivor = HiveAcidConnector(tmp_path)
    assert contents(survivor) == [A]
    assert survivor.orphans() == [], "it may be running still"
    (dead,) = survivor.open_transactions()
    survivor.abort_transaction(dead.number)
    assert [Path(orphan.name).name.split("_q")[0] for orphan in survivor.orphans()] == [
        "_tmp",
        "delta_0000002_0000002_0000",
    ]
    assert contents(survivor) == [A]
    survivor.remove_orphans()
    assert survivor.orphans() == []
    merge(survivor, inserted(C))
    assert contents(survivor) == [A, C]
    with pytest.raises(RowMergeError, match="already aborted") as caught:
        statement.commit()
    assert caught.value.code == "TRANSACTION_CONFLICT"


@pytest.mark.parametrize(
    ("properties", "other", "conflict"),
    [({}, B, True), ({"partitioned_by": ("p",)}, C, False), ({"partitioned_by": ("p",)}, B, True)],
)
def test_the_first_of_two_merges_of_one_partition_or_bucket_wins(
    tmp_path: Path, properties: dict[str, Any], other: Any, conflict: bool
) -> None:
    store = make_table(tmp_path, **properties)
    second_store = HiveAcidConnector(tmp_path)
    merge(store, inserted(A, B, C))
    ids = row_ids(store)
    first, second = Statement(store), Statement(second_store)
    first.stage([[(2, ids[1], None, None, "x"), *inserted((1, "first", "x"))]])
    second.stage(
        [[(2, ids[other[0]], None, None, other[2]), *inserted((other[0], "second", other[2]))]]
    )
    first.finish()
    second.finish()
    first.commit()
    if conflict:
        with pytest.raises(RowMergeError) as caught:
            second.commit()
        assert caught.value.code == "TRANSACTION_CONFLICT"
        second.rollback()
    else:
        second.commit()
    changed = {row[0]: row[1] for row in contents(store)}
    assert changed == {1: "first", 2: "b", 3: "c"} | ({} if conflict else {other[0]: "second"})
    assert not store.open_transactions()


def test_files_of_a_failed_statement_make_room_for_the_record_of_its_end_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A, B))
    before = files(store)
    statement = Statement(store)
    statement.stage([inserted(C)])
    statement.finish()
    abort, room = type(store.metastore).abort, [False]

    def full(self: Any, number: int) -> bool:
        if room[0]:
            return abort(self, number)
        msg = "The metastore does not respond: database or disk is full"
        raise ConnectorError(msg, code="HIVE_METASTORE_ERROR")

    monkeypatch.setattr(type(store.metastore), "abort", full)
    statement.rollback()
    assert files(store) == before
    assert contents(store) == [A, B]
    room[0] = True
    assert store.orphans() == []
    assert store.open_transactions() == []


def test_an_error_of_the_metastore_is_reported_even_if_sqlite_already_rolled_back(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    metastore = store.metastore
    assert isinstance(metastore, EmbeddedMetastore)
    with (
        pytest.raises(ConnectorError, match="database or disk is full"),
        metastore._writing() as connection,
    ):
        # SQLite's behavior on a full disk.
        connection.execute("ROLLBACK")
        msg = "database or disk is full"
        raise sqlite3.OperationalError(msg)


def test_inserts_do_not_conflict(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    both = [Statement(store), Statement(store)]
    for statement, row in zip(both, (A, B), strict=True):
        handle = statement.metadata.begin_insert(statement.session, statement.handle, ())
        sink = store.get_page_sink_provider().create_page_sink(
            statement.transaction, statement.session, handle
        )
        sink.append_page(statement.page(inserted(row)).select([0, 1, 2]))
        statement.metadata.finish_insert(statement.session, handle, sink.finish())
    for statement in both:
        statement.commit()
    assert contents(store) == [A, B]


def test_a_table_dropped_meanwhile_is_a_conflict_even_if_its_name_is_reused(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    late, later = Statement(store), Statement(store)
    late.stage([inserted(A)])
    later.stage([inserted(A)])
    later.finish()
    drop(store)
    make_table(tmp_path)
    for step in (late.finish, later.commit):
        with pytest.raises(RowMergeError) as caught:
            step()
        assert caught.value.code in {"TRANSACTION_CONFLICT", "HIVE_FILE_NOT_FOUND"}
    late.rollback()
    later.rollback()
    assert contents(store) == []


def drop(store: HiveAcidConnector, name: SchemaTableName = NAME) -> None:
    statement = Statement(store, name)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()


def test_drop_removes_the_files_of_a_table_but_not_those_of_a_registered_one(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted(A))
    folder = tmp_path / "elsewhere"
    (store.warehouse / "t").rename(folder)
    (store.warehouse / "t").mkdir()
    drop(store)
    assert not (store.warehouse / "t").exists()
    store.register_table(
        "default", "t", folder, columns={"id": "bigint", "v": "varchar", "p": "varchar"}
    )
    assert contents(store) == [A]
    merge(store, inserted(B))
    assert contents(store) == [A, B]
    drop(store)
    assert folder.exists()
    statement = Statement(store)
    assert statement.handle is None


def test_a_table_that_is_not_committed_leaves_nothing(tmp_path: Path) -> None:
    other = Statement(make_table(tmp_path / "other"))
    store = HiveAcidConnector(tmp_path)
    transaction = store.begin_transaction()
    wanted = other.metadata.get_table_metadata(other.session, other.handle)
    store.get_metadata(transaction).create_table(ConnectorSession("c"), wanted)
    assert (store.warehouse / "t").exists()
    store.rollback(transaction)
    assert not (store.warehouse / "t").exists()
    assert store.metastore.list_tables() == []


@pytest.mark.trial
@pytest.mark.parametrize("seed", range(6))
def test_random_changes_agree_with_a_dictionary(tmp_path: Path, seed: int) -> None:
    """Merges of several writers, in tables of all forms, interleaved with moves, rollbacks and conflicts."""
    rng = random.Random(seed)
    kinds: list[dict[str, Any]] = [
        {},
        {"partitioned_by": ("p",)},
        {"bucketed_by": ("id",), "bucket_count": 3, "bucketing_version": 2},
        {"partitioned_by": ("p",), "bucketed_by": ("v", "id"), "bucket_count": 2},
    ]
    store = make_table(tmp_path, **kinds[seed % 4])
    expected: dict[int, tuple[Any, ...]] = {}
    for _ in range(12):
        statement = Statement(store)
        there = {row["id"]: row for row in statement.rows(ids=True)}
        assert {key: tuple(row.values())[:3] for key, row in there.items()} == expected
        changes: list[list[tuple[Any, ...]]] = [[], [], []]
        after = dict(expected)
        deletes_by: dict[Any, int] = {}
        for key in rng.sample(range(30), 12):
            row = (key, rng.choice(["a", "b", None]), rng.choice(["x", "y", None]))
            if key in there:
                # As after an exchange: deletes of one partition and bucket go to one writer, or to any writer without a layout.
                old = there[key]
                writer = deletes_by.setdefault(
                    (old["p"], old["$row_id"]["bucket"] >> 16), rng.randrange(3)
                )
                changes[writer].append((2, old["$row_id"], key, None, old["p"]))
                del after[key]
            if key not in there or rng.random() < 0.6:
                writer = rng.randrange(3) if seed % 4 == 0 else 0
                changes[writer].append((1, None, *row))
                after[key] = row
        statement.stage([part for part in changes if part])
        statement.finish()
        if rng.random() < 0.25:
            statement.rollback()
        else:
            statement.commit()
            expected = after
