"""Results of compactions that overlap, are incomplete, or have no committed transaction: every row is read once, or refused."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import HiveAcidConnector, RowMergeError
from rowmerge_nb.connectors.hive_acid.visible_deltas import (
    ValidTransactions,
    ValidWriteIds,
    acid_state,
)
from tests.connectors.hive_acid.kit import contents, inserted, make_table, merge, row_ids
from tests.connectors.hive_acid.test_layout import adopt, delete, delta, values

ROWS = {1: 10, 2: 20, 3: 30, 4: 40, 5: 50}
"""The one inserted row of each write id."""


def joined(folder: Path, name: str, *write_ids: int) -> None:
    """Write a directory with the rows of several write ids, like a compaction."""
    import numpy as np
    import pyarrow as pa

    from rowmerge_nb.connectors.hive_acid.compaction import _write
    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable
    from rowmerge_nb.connectors.hive_acid.orc.codecs import OrcCodec
    from rowmerge_nb.connectors.hive_acid.orc.orc_reading import RowKeys
    from rowmerge_nb.spi import SchemaTableName
    from tests.connectors.hive_acid.test_layout import COLUMNS

    (folder / name).mkdir()
    table = HiveTable("1", SchemaTableName("default", "t"), str(folder), tuple(COLUMNS))
    keys = RowKeys(
        np.array(write_ids), np.full(len(write_ids), 1 << 29), np.zeros(len(write_ids), np.int64)
    )
    rows = pa.table({"id": pa.array([ROWS[write_id] for write_id in write_ids], pa.int64())})
    _write(folder / name / "bucket_00000", table, [(keys, rows)], OrcCodec.GZIP)
    (folder / name / "_orc_acid_version").write_text("2")


def raw(folder: Path) -> None:
    """Write five inserts, of which the second and the fourth row are deleted later."""
    for write_id, value in ROWS.items():
        delta(folder, f"delta_{write_id:07d}_{write_id:07d}_0000", write_id, value)
    delete(folder, "delete_delta_0000003_0000003_0000", (2, 0), write_id=3)
    delete(folder, "delete_delta_0000005_0000005_0000", (4, 0), write_id=5)


RESULTS: dict[str, Any] = {
    "delta alone": lambda t: joined(t, "delta_0000001_0000005_v0000007", 1, 2, 3, 4, 5),
    "delete delta alone": lambda t: delete(
        t, "delete_delta_0000001_0000005_v0000007", (2, 0), (4, 0)
    ),
    "deltas that overlap": lambda t: (
        joined(t, "delta_0000001_0000003", 1, 2, 3),
        joined(t, "delta_0000002_0000005", 2, 3, 4, 5),
    ),
    "one result twice": lambda t: (
        joined(t, "delta_0000001_0000005", 1, 2, 3, 4, 5),
        joined(t, "delta_1_5_v8", 1, 2, 3, 4, 5),
    ),
    "a base within a delta": lambda t: (
        joined(t, "base_0000003_v0000007", 1, 3),
        joined(t, "delta_0000002_0000005_v0000008", 2, 3, 4, 5),
    ),
    "two bases": lambda t: (joined(t, "base_0000003", 1, 3), joined(t, "base_3_v9", 1, 3)),
}


@pytest.mark.parametrize("kept", ["raw", "cleaned"])
@pytest.mark.parametrize("what", RESULTS)
def test_rows_are_read_once_and_deleted_rows_stay_deleted(
    tmp_path: Path, what: str, kept: str
) -> None:
    raw(tmp_path / "t")
    RESULTS[what](tmp_path / "t")
    store = adopt(tmp_path)
    assert values(store) == [10, 30, 50]
    if kept == "cleaned":
        store.remove_obsolete("default", "t")
    assert values(store) == [10, 30, 50]
    for major in (False, True):
        store.compact("default", "t", major=major)
        assert values(store) == [10, 30, 50]
        store.remove_obsolete("default", "t")
        assert values(store) == [10, 30, 50]


def test_any_two_results_of_any_ranges_are_read_once(tmp_path: Path) -> None:
    ranges = [(1, 3), (2, 4), (3, 5), (1, 5), (2, 3)]
    raw(tmp_path / "t")
    store = adopt(tmp_path)
    for number, ((low, high), (base, last)) in enumerate(itertools.product(ranges, ranges)):
        made = []
        for name, write_ids in (
            (f"delta_{low}_{high}", range(low, high + 1)),
            (f"delta_{base}_{last}_v1", range(base, last + 1)),
        ):
            joined(tmp_path / "t", name, *write_ids)
            made.append(tmp_path / "t" / name)
        assert values(store) == [10, 30, 50], (low, high, base, last, number)
        for folder in made:
            shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("known", "names"),
    [
        (ValidTransactions(7), ["delta_1_2_v7"]),
        (ValidTransactions(7, frozenset({7})), ["delta_1_1", "delta_2_2"]),
        (ValidTransactions(6), ["delta_1_1", "delta_2_2"]),
        (None, ["delta_1_2_v7"]),
    ],
)
def test_a_directory_with_the_suffix_counts_if_its_transaction_was_committed(
    tmp_path: Path, known: ValidTransactions | None, names: list[str]
) -> None:
    for name in ("delta_1_1", "delta_2_2", "delta_1_2_v7"):
        (tmp_path / name).mkdir()
    assert [
        d.name for d in acid_state(tmp_path, ValidWriteIds(2, transactions=known)).deltas
    ] == names


def test_an_uncommitted_base_does_not_count(tmp_path: Path) -> None:
    for name in ("delta_1_1", "base_1_v7"):
        (tmp_path / name).mkdir()
    state = acid_state(
        tmp_path, ValidWriteIds(1, transactions=ValidTransactions(7, frozenset({7})))
    )
    assert (state.base, [d.name for d in state.deltas]) == (None, ["delta_1_1"])


def test_a_base_that_is_newer_than_the_reader_leaves_it_the_files_without_row_ids(
    tmp_path: Path,
) -> None:
    (tmp_path / "000000_0").write_bytes(b"rows")
    (tmp_path / "base_1_v7").mkdir()
    state = acid_state(tmp_path, ValidWriteIds(1, transactions=ValidTransactions(6)))
    assert (state.base, [path.name for path in state.originals]) == (None, ["000000_0"])


def test_results_compacted_under_an_open_transaction_are_read_from_their_parts(
    tmp_path: Path,
) -> None:
    for name in ("delta_1_1", "delta_2_2", "delta_1_2"):
        (tmp_path / name).mkdir()
    state = acid_state(tmp_path, ValidWriteIds(2, frozenset({2})))
    assert [d.name for d in state.deltas] == ["delta_1_1"]


def test_a_compaction_unknown_to_the_metastore_is_refused_once_its_parts_are_gone(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    for number in range(3):
        merge(store, inserted((number, "a", "x")))
    shutil.copy(tmp_path / "metastore.sqlite", tmp_path / "older")
    store.compact("default", "t")
    shutil.copy(tmp_path / "older", tmp_path / "metastore.sqlite")
    assert len(contents(store)) == 3, "the deltas are there still"
    for folder in (store.warehouse / "t").glob("delta_*"):
        shutil.rmtree(folder)
    with pytest.raises(RowMergeError, match="which is not in the metastore") as caught:
        contents(store)
    assert caught.value.code == "HIVE_BAD_DATA"


def test_compactions_of_another_metastore_count_regardless_of_their_numbers(tmp_path: Path) -> None:
    joined_name = "base_0000005_v0001234"
    (tmp_path / "t").mkdir()
    joined(tmp_path / "t", joined_name, 1, 3, 5)
    store = adopt(tmp_path)
    assert values(store) == [10, 30, 50]
    merge(store, inserted((60,)))
    assert [path.name for path in store.compact("default", "t")] == ["base_0000006_v0001236"]
    assert values(store) == [10, 30, 50, 60]
    assert store.orphans() == []


def test_a_metastore_older_than_the_record_of_compactions_keeps_its_registered_tables(
    tmp_path: Path,
) -> None:
    (tmp_path / "t").mkdir()
    joined(tmp_path / "t", "base_0000005_v0001234", 1, 3, 5)
    store = adopt(tmp_path)
    with sqlite3.connect(tmp_path / "store" / "metastore.sqlite") as connection:
        connection.execute("DROP TABLE compactions")
        connection.execute("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'transactions'")
    connection.close()
    assert values(HiveAcidConnector(tmp_path / "store")) == [10, 30, 50]
    assert row_ids(store)
