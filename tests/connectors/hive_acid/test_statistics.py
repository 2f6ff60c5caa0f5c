"""What is known of a Hive table without reading it: a bound of its rows, never too low, and what files tell of columns while nothing is deleted."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
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
def test_of_very_many_files_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, partitioned: bool) -> None:
    store = make_table(tmp_path, **({"partitioned_by": ("p",)} if partitioned else {}))
    merge(store, inserted((1, "a", "x"), (2, "b", "y")))
    merge(store, inserted((3, "a", "x"), (4, "b", "y")))
    monkeypatch.setattr(statistics, "MOST_FILES", 1)
    assert bound(store) is None
    monkeypatch.setattr(statistics, "MOST_FILES", 4)
    assert bound(store) == 4


def test_of_files_that_cannot_be_read_nothing_is_told(tmp_path: Path) -> None:
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


KINDS = (
    ("i", "integer"),
    ("l", "bigint"),
    ("s", "smallint"),
    ("d", "decimal(20,2)"),
    ("day", "date"),
    ("n", "varchar"),
    ("f", "double"),
    ("ts", "timestamp(3)"),
    ("b", "boolean"),
    ("a", "array(integer)"),
)


def columns(store: HiveAcidConnector) -> dict[str, dict[str, object]]:
    statement = Statement(store)
    found = statement.metadata.get_column_statistics(statement.session, statement.handle)
    statement.commit()
    return {name: {part: value for part, value in vars(known).items() if value is not None} for name, known in found.items()}


def test_stripes_tell_nulls_and_bounds_of_all_files(tmp_path: Path) -> None:
    store = make_table(tmp_path, KINDS)
    assert columns(store) == {}
    first = (1, -5, 7, Decimal("1.50"), dt.date(2024, 2, 29), "a", 1.5, None, True, [1])
    second = (None, 10**15, None, Decimal(-3), dt.date(1969, 1, 1), None, None, None, None, None)
    merge(store, inserted(first, second))
    merge(store, inserted((-9, None, None, None, None, "", 2.5, None, False, [])))
    third = 1 / 3
    assert columns(store) == {
        "i": {"nulls_fraction": third, "low_value": -9, "high_value": 1},
        "l": {"nulls_fraction": third, "low_value": -5, "high_value": 10**15},
        "s": {"nulls_fraction": 2 / 3, "low_value": 7, "high_value": 7},
        "d": {"nulls_fraction": third, "low_value": Decimal(-3), "high_value": Decimal("1.5")},
        "day": {"nulls_fraction": third, "low_value": dt.date(1969, 1, 1), "high_value": dt.date(2024, 2, 29)},
        "n": {"nulls_fraction": third},
        "f": {"nulls_fraction": third},
        "ts": {"nulls_fraction": 1.0},
        "b": {"nulls_fraction": third},
        "a": {"nulls_fraction": third},
    }


def test_a_deleted_row_that_is_in_the_files_leaves_nothing_known(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "a", "x"), (2, "b", "x")))
    assert columns(store)["id"] == {"nulls_fraction": 0.0, "low_value": 1, "high_value": 2}
    merge(store, [(2, row_ids(store)[2], 2, None, None)])
    assert columns(store) == {}


def test_folders_tell_all_of_partition_columns(tmp_path: Path) -> None:
    store = make_table(tmp_path, (("id", "bigint"), ("p", "varchar"), ("y", "integer")), partitioned_by=("p", "y"))
    merge(store, inserted((1, "a", 2024), (2, "a", 2025), (3, None, 2024), (4, "b", 2024)))
    assert columns(store) == {
        "id": {"nulls_fraction": 0.0, "low_value": 1, "high_value": 4},
        "p": {"nulls_fraction": 0.25, "distinct_values_count": 2.0},
        "y": {"nulls_fraction": 0.0, "distinct_values_count": 2.0, "low_value": 2024, "high_value": 2025},
    }


def test_files_that_tell_nothing_leave_nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "a", "x")))
    merge(store, inserted((2, "b", "x")))
    monkeypatch.setattr(statistics, "MOST_FILES", 1)
    assert columns(store) == {}
    monkeypatch.setattr(statistics, "MOST_FILES", 2)
    assert set(columns(store)) == {"id", "v", "p"}
    file = next((store.warehouse / "t").rglob("bucket_*"))
    file.write_bytes(file.read_bytes()[:-20])
    assert columns(store) == {}
