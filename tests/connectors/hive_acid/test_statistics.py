"""The maximum row count of a Hive table is known without reading it, and the bound is never too low."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowmerge_nb import HiveAcidConnector
from rowmerge_nb.connectors.hive_acid import statistics
from tests.connectors.hive_acid.kit import Statement, inserted, make_table, merge, row_ids


def bound(store: HiveAcidConnector) -> int | None:
    statement = Statement(store)
    found = statement.metadata.get_table_statistics(statement.session, statement.handle).row_count
    assert statement.metadata.row_count(statement.session, statement.handle) is None
    statement.commit()
    return found


def test_deleted_rows_are_among_those_that_are_counted(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    assert bound(store) == 0
    merge(store, inserted((1, "a", "x"), (2, "b", "x")), inserted((3, "c", "y")))
    assert bound(store) == 3
    merge(store, [(2, row_ids(store)[2], 2, None, None)], inserted((4, "d", "y")))
    assert bound(store) == 4


def test_all_partitions_count(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    merge(store, inserted((1, "a", "x"), (2, "b", "y"), (3, "c", None)))
    assert bound(store) == 3


def test_a_statement_that_has_begun_earlier_counts_what_it_sees(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "a", "x")))
    early = Statement(store)
    assert early.handle is not None
    merge(store, inserted((2, "b", "x")))
    assert early.metadata.get_table_statistics(early.session, early.handle).row_count == 1
    early.rollback()


@pytest.mark.parametrize("partitioned", [False, True])
def test_very_many_files_have_no_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, partitioned: bool
) -> None:
    store = make_table(tmp_path, **({"partitioned_by": ("p",)} if partitioned else {}))
    merge(store, inserted((1, "a", "x"), (2, "b", "y")))
    merge(store, inserted((3, "a", "x"), (4, "b", "y")))
    monkeypatch.setattr(statistics, "MOST_FILES", 1)
    assert bound(store) is None
    monkeypatch.setattr(statistics, "MOST_FILES", 4)
    assert bound(store) == 4


def test_unreadable_files_have_no_statistics(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "a", "x")))
    [file] = (store.warehouse / "t").rglob("bucket_*")
    file.write_bytes(file.read_bytes()[:-20])
    assert bound(store) is None
    file.unlink()
    assert bound(store) == 0, "the folder says what there is to read"


def test_a_footer_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "a", "x")))
    assert bound(store) == 1

    def read(path: Path) -> int:
        pytest.fail(f"{path} is read again")

    monkeypatch.setattr(statistics, "row_count", read)
    assert bound(store) == 1
