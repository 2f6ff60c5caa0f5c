"""Compactions keep rows and row ids, hide the replaced files, and do not disturb other statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import orc

from rowmerge_nb import HiveAcidConnector, RowMergeError
from tests.connectors.hive_acid.kit import (
    Statement,
    contents,
    files,
    inserted,
    make_table,
    merge,
    row_ids,
)
from tests.connectors.hive_acid.test_samples import read, registered

LAYOUTS: list[dict[str, Any]] = [
    {},
    {"partitioned_by": ("p",)},
    {"bucketed_by": ("id",), "bucket_count": 2},
    {"partitioned_by": ("p",), "bucketed_by": ("id",), "bucket_count": 2},
]


def changed_table(tmp_path: Path, **properties: Any) -> HiveAcidConnector:
    store = make_table(tmp_path, **properties)
    for first in (0, 10, 20):
        merge(store, inserted(*((n, f"v{n}", f"p{n % 2}") for n in range(first, first + 10))))
    for gone in ((1, 5, 12), (2, 25)):
        ids = row_ids(store)
        merge(store, [(2, ids[n], n, None, f"p{n % 2}") for n in gone])
    return store


@pytest.mark.parametrize("properties", LAYOUTS)
@pytest.mark.parametrize("major", [True, False])
def test_rows_and_row_ids_stay_and_old_directories_are_removable(
    tmp_path: Path, properties: dict[str, Any], major: bool
) -> None:
    store = changed_table(tmp_path, **properties)
    before, ids = contents(store), row_ids(store)
    reader = Statement(store)
    late = Statement(store)
    made = store.compact("default", "t", major=major)
    assert {path.name.split("_0")[0] for path in made} == (
        {"base"} if major else {"delta", "delete_delta"}
    )
    assert contents(store) == before
    assert row_ids(store) == ids
    assert len(reader.rows()) == len(before) or major
    late.stage([[(2, ids[8], 8, None, "p0"), (1, None, 99, "new", "p0")]])
    late.finish()
    late.commit()
    expected = sorted([row for row in before if row[0] != 8] + [(99, "new", "p0")], key=repr)
    assert contents(store) == expected
    removed = store.remove_obsolete("default", "t")
    assert len(removed) >= 5
    assert contents(store) == expected
    assert not [name for name in files(store) if "delta_0000001_0000001" in name or "_tmp_" in name]
    store.compact("default", "t")
    store.remove_obsolete("default", "t")
    assert contents(store) == expected
    assert store.open_transactions() == []
    assert store.orphans() == []


def test_an_open_transaction_bounds_what_is_compacted(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    merge(store, inserted((1, "a", "x")))
    merge(store, inserted((2, "b", "x")))
    slow = Statement(store)
    slow.stage([inserted((3, "c", "y"))])
    merge(store, inserted((4, "d", "x")))
    (base,) = store.compact("default", "t")
    assert base.name.startswith("base_0000002_v")
    slow.finish()
    slow.commit()
    assert [row[0] for row in contents(store)] == [1, 2, 3, 4]
    store.remove_obsolete("default", "t")
    assert [row[0] for row in contents(store)] == [1, 2, 3, 4]


@pytest.mark.parametrize("sample", ["plain", "bucketed", "part", "ctas", "pyarrow", "aborted"])
@pytest.mark.parametrize("major", [True, False])
def test_tables_that_another_engine_wrote_are_compacted(
    tmp_path: Path, sample: str, major: bool
) -> None:
    store, _ = registered(tmp_path, sample)
    before = sorted((row for _, row in read(store)), key=repr)
    assert store.compact("default", "t", major=major)
    assert sorted((row for _, row in read(store)), key=repr) == before
    store.remove_obsolete("default", "t")
    assert sorted((row for _, row in read(store)), key=repr) == before
    for path in (tmp_path / "table").rglob("*_v*/bucket_*"):
        keys = [tuple(row.values())[1:4] for row in orc.ORCFile(str(path)).read().to_pylist()]
        assert keys == sorted(keys)


def test_a_table_that_does_not_exist_or_is_not_transactional_is_refused(tmp_path: Path) -> None:
    store = make_table(tmp_path, transactional=False)
    for name, code in (("nope", "TABLE_NOT_FOUND"), ("t", "NOT_SUPPORTED")):
        with pytest.raises(RowMergeError) as caught:
            store.compact("default", name)
        assert caught.value.code == code
