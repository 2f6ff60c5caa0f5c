"""One statement in several stores of a temporary folder, with the files that each reads and writes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.base.private import PREFIX
from rowmerge_nb.engine.reruns.temporary_stores import STORE_KINDS, TemporaryStores
from rowmerge_nb.trace.file_costs import FileCount

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

TARGET = pa.table({"id": [1, 2, 3], "v": [10, 20, 30], "p": ["a", "b", "a"]})
SOURCE = pa.table({"id": [2, 3, 4], "v": [200, 300, 400]})
MERGE = """MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v = 200 THEN UPDATE SET v = s.v
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, 'a')"""


@pytest.fixture(autouse=True)
def temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    """Tests in other processes do not create private folders here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark)
    engine.register("t", TARGET, partitioned_by=["p"], primary_key=["id"])
    return engine


def compare(engine: Engine, *stores: str, sql: str = MERGE, **options: Any) -> Any:
    names = list(stores) or None
    return engine.compare(sql, by="stores", stores=names, namespace={"s": SOURCE}, **options)


def private_folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


def test_all_stores_leave_the_same_rows_at_different_costs(engine: Engine) -> None:
    folders = private_folders()
    compared = compare(engine)
    assert compared.same is True
    assert [side.name for side in compared.sides] == list(STORE_KINDS)
    assert compared.sentence.endswith("leave the same 3 rows.")
    costs = {side.name: side.costs for side in compared.sides}
    delta, iceberg = costs["delta"], costs["iceberg_merge_on_read"]
    assert (delta.loaded.files, delta.read.files, delta.to_merge) == (2, 2, FileCount(0, 0))
    assert iceberg.to_merge.files == 2, "a position delete file for each partition"
    assert iceberg.written.files == 4
    assert iceberg.full_read.files == iceberg.loaded.files + 4
    rewritten = costs["iceberg_copy_on_write"]
    assert (rewritten.read.files, rewritten.to_merge) == (2, FileCount(0, 0))
    assert costs["hive"].to_merge.files == 2
    assert costs["memory"].written is None
    assert costs["sqlite"].full_read.files == 1
    # The files reported as written by the finish call are those that readers find in addition.
    for name in ("hive", "iceberg_merge_on_read", "iceberg_copy_on_write", "delta"):
        output = next(s for s in compared.sides if s.name == name).result.trace.target.output
        assert costs[name].written == FileCount(len(output.written), output.bytes)
    frame = compared.costs_to_pandas()
    assert frame.loc["delta", "written bytes"] == delta.written.bytes

    text, html = str(compared), compared._repr_mimebundle_()["text/html"]
    for part in ("left to merge", "a full read", "In each store"):
        assert part in text
        assert part in html
    assert [table[0] for table in engine.tables()] == ["memory.default.t"]
    assert engine.table("t").equals(TARGET)
    assert private_folders() == folders
    with pytest.raises(RowMergeError, match="nothing to undo"):
        engine.undo()


def test_a_store_that_cannot_hold_a_type_is_a_row_with_its_words(engine: Engine) -> None:
    engine.run("CREATE TABLE m (id bigint, tags map(varchar, bigint))")
    compared = compare(engine, "sqlite", "memory", sql="DELETE FROM m")
    refused, memory = compared.sides
    assert refused.failed
    assert not memory.failed
    assert "Catalog 'sqlite' cannot store column 'tags'" in refused.result.trace.error.message
    assert "cannot store column 'tags'" in str(compared)
    engine.run("DROP TABLE m")


def test_a_missing_library_is_a_row_too(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    compared = compare(engine, "memory", "delta")
    assert compared.sides[1].result.trace.error.message.startswith("deltalake, which reads")
    assert "deltalake" in str(compared)


def test_a_catalog_takes_part_by_its_name(engine: Engine, tmp_path: Path) -> None:
    engine.add_catalog("ice", IcebergConnector(tmp_path / "ice"))
    compared = compare(engine, "ice", "delta")
    assert compared.same is True
    assert compared.sides[0].costs is None
    assert [table for table in engine.tables() if table[0].startswith("ice")] == []


@pytest.mark.parametrize(
    ("stores", "message"),
    [
        ("delta", "stores = 'delta' is not a list of names"),
        ([7], "is not a list of names"),
        ([], "No store is named"),
        (["delta", "Delta"], "Store 'delta' is named twice"),
        (["detla"], "There is no store 'detla'"),
    ],
)
def test_wrong_names_of_stores_are_refused(engine: Engine, stores: Any, message: str) -> None:
    with pytest.raises(RowMergeError, match=message) as refused:
        engine.compare(MERGE, by="stores", stores=stores)
    assert refused.value.code == "INVALID_ARGUMENTS"
    assert refused.value.hint


def test_stores_and_other_options_are_mutually_exclusive(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match="A comparison of flows takes no stores"):
        engine.compare(MERGE, by="flows", stores=["delta"])
    with pytest.raises(RowMergeError, match="comparison of stores and the option verify"):
        compare(engine, "memory", verify="duckdb")
    with pytest.raises(RowMergeError, match="cannot be compared"):
        compare(engine, "memory", sql="SELECT 1")


def test_a_closed_engine_compares_nothing() -> None:
    engine = Engine()
    engine.close()
    with pytest.raises(RowMergeError, match="closed"):
        engine.compare(MERGE, by="stores")


def test_a_second_comparison_finds_the_same(engine: Engine) -> None:
    first, second = (compare(engine, "delta", "hive") for _ in range(2))
    assert first.same is second.same is True
    assert first.sides[0].costs.written.files == second.sides[0].costs.written.files


def test_a_folder_that_cannot_be_opened_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = private_folders()

    def fail(*_: Any) -> None:
        raise OSError("no")

    monkeypatch.setattr("rowmerge_nb.engine.reruns.temporary_stores.OpenStore.__init__", fail)
    with pytest.raises(OSError, match="no"):
        TemporaryStores(["memory"], ())
    assert private_folders() == folders
