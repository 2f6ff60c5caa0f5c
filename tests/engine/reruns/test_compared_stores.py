"""One statement in several catalogs, on a copy of its target in each, without leftovers."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    RowMergeError,
    SqliteConnector,
)
from rowmerge_nb.base.errors import ConnectorError, StatementInterrupted
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.testing.faults import Fault, FaultyConnector

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

TARGET = pa.table({"id": [1, 2, 3], "v": [10, 20, 30], "p": ["a", "b", "a"]})
SOURCE = pa.table({"id": [2, 3, 4], "v": [200, 300, 400]})
MERGE = """MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v = 200 THEN UPDATE SET v = s.v
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, 'a')"""


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Engine:
    engine = Engine(spark=spark)
    engine.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    engine.add_catalog("ice", IcebergConnector(tmp_path / "ice"))
    engine.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    engine.register("t", TARGET, partitioned_by=["p"], primary_key=["id"])
    return engine


def compare(engine: Engine, *catalogs: str, sql: str = MERGE, **options: Any) -> Any:
    return engine.compare(
        sql, by="catalogs", catalogs=list(catalogs), namespace={"s": SOURCE}, **options
    )


def check_nothing_is_left(engine: Engine) -> None:
    assert [table[0] for table in engine.tables()] == ["memory.default.t"]
    assert engine.table("t").equals(TARGET)


def test_stores_leave_the_same_rows_by_different_pages_and_files(engine: Engine) -> None:
    compared = compare(engine, "memory", "hive", "ice", "lite")
    assert compared.same is True
    assert compared.sentence == "memory, hive, ice and lite leave the same 3 rows."
    numbers = compared.to_pandas()
    assert list(numbers.columns) == ["memory", "hive", "ice", "lite"]
    assert numbers.loc["rows stored"].tolist() == [
        "D 2, I 2",
        "D 2, I 2",
        "D 2, I 2",
        "D 1, U 1, I 1",
    ]
    assert numbers.loc["operations"].tolist() == ["I 1, U 1, D 1"] * 4
    assert numbers.loc["written"].tolist()[1:] == [
        "2 delete_delta files, 2 delta files",
        "2 data files, 2 position delete files",
        "1 DELETE statement, 1 UPDATE statement, 1 INSERT statement",
    ]
    calls = compared.calls_to_pandas().set_index("method")
    assert calls.loc["finish_merge"].tolist() == ["coordinator", 1, 1, 1, 1]
    assert list(calls.index[-2:]) == ["finish_merge", "commit"]
    fragments = compared.fragments_to_pandas()
    assert fragments[fragments.side == "hive"].json.str.contains('"kind": "delete_delta"').any()
    assert fragments[fragments.side == "memory"].json.isna().all()
    assert compared.sides[2].rows.sort_by("id").column("v").to_pylist() == [10, 200, 400]
    check_nothing_is_left(engine)
    with pytest.raises(RowMergeError, match="nothing to undo"):
        engine.undo()

    text, html = str(compared), compared._repr_mimebundle_()["text/html"]
    for part in ("storeMergedRows", "delete_delta file", "Layout: id bigint", "finishMerge"):
        assert part in text
        assert part in html
    assert "The copy in lite has no partitioned_by, for which the catalog has no property." in text
    assert "The copy in ice has no primary_key, for" in text, "its partitioning was copied"
    assert "commit" in numbers.loc["the change lasts"].tolist()


def test_a_statement_that_fails_in_a_store_is_shown_with_its_error(engine: Engine) -> None:
    fault = Fault("begin_merge", error=ConnectorError, message="This store is closed today")
    engine.add_catalog("closed", FaultyConnector(MemoryConnector(), fault))
    compared = compare(engine, "closed", "ice", "hive")
    assert compared.same is True
    assert compared.sentence == "ice and hive leave the same 3 rows; closed fails."
    assert "This store is closed today" in str(compared)
    assert "This store is closed today" in compared._repr_mimebundle_()["text/html"]
    numbers = compared.to_pandas()
    assert numbers.loc["answer"].tolist() == ["NOT_SUPPORTED", "3 rows", "3 rows"]
    check_nothing_is_left(engine)

    compared = compare(engine, "closed", "ice")
    assert compared.same is None
    assert compared.sentence == "ice changes 3 rows; closed fails."


def test_rows_that_a_store_loses_are_named(engine: Engine) -> None:
    losing = FaultyConnector(MemoryConnector(), Fault("store_merged_rows", gives=None))
    engine.add_catalog("losing", losing)
    compared = compare(engine, "memory", "losing")
    assert compared.same is False
    assert compared.sentence == "THE RESULTS DIFFER from that of memory: losing in 4 rows."
    rows = compared.differences_to_pandas().sort_values(["in", "id"])
    assert rows[["in", "not in", "times", "id", "v"]].values.tolist() == [
        ["losing", "memory", 1, 2, 20],
        ["losing", "memory", 1, 3, 30],
        ["memory", "losing", 1, 2, 200],
        ["memory", "losing", 1, 4, 400],
    ]
    assert "Rows that differ" in str(compared)
    check_nothing_is_left(engine)


def test_a_table_of_another_catalog_is_copied_with_its_constraints(engine: Engine) -> None:
    engine.run("CREATE TABLE ice.default.u (id bigint NOT NULL, at timestamp(6), n varchar)")
    engine.run("INSERT INTO ice.default.u VALUES (1, TIMESTAMP '2020-01-01 00:00:00.123456', 'x')")
    sql = "UPDATE ice.default.u SET id = NULL WHERE id = 1"
    compared = compare(engine, "memory", "hive", sql=sql)
    assert [side.result.trace.error.code for side in compared.sides] == ["INVALID_ARGUMENTS"] * 2, (
        "NOT NULL was copied"
    )
    assert compared.sentence == "The statement fails in every catalog."
    compared = compare(
        engine, "memory", "hive", "ice", sql="DELETE FROM ice.default.u WHERE id = 7"
    )
    assert compared.same is True
    assert compared.target == "ice.default.u"
    assert engine.table("ice.default.u").num_rows == 1
    engine.run("DROP TABLE ice.default.u")
    check_nothing_is_left(engine)


def test_a_type_that_a_store_lacks_is_named_before_anything_runs(engine: Engine) -> None:
    engine.run("CREATE TABLE m (id bigint, tags map(varchar, bigint))")
    with pytest.raises(
        ConnectorError,
        match=r"Catalog 'lite' cannot store column 'tags' of type map\(varchar,\s*bigint\) of table 'memory.default.m'",
    ):
        compare(engine, "memory", "lite", sql="DELETE FROM m")
    engine.run("DROP TABLE m")
    check_nothing_is_left(engine)


class ReadOnlyMetadata(MemoryMetadata):
    """Metadata without CREATE TABLE."""

    def create_table(self, session: Any, metadata: Any) -> None:
        self._refuse("creating tables", "create_table")


class ReadOnlyConnector(MemoryConnector):
    """A store without CREATE TABLE."""

    def get_metadata(self, transaction_handle: Any) -> Any:
        metadata = super().get_metadata(transaction_handle)
        metadata.__class__ = ReadOnlyMetadata
        return metadata


def test_wrong_input_is_an_error(engine: Engine) -> None:
    engine.add_catalog("readonly", ReadOnlyConnector())
    for catalogs, code, message in (
        (None, "INVALID_ARGUMENTS", "catalogs = None is not a list"),
        ("ice", "INVALID_ARGUMENTS", "catalogs = 'ice' is not a list"),
        (["ice"], "INVALID_ARGUMENTS", "needs at least two, got 'ice'"),
        ([], "INVALID_ARGUMENTS", "needs at least two, got none"),
        (["ice", "ICE"], "INVALID_ARGUMENTS", "Catalog 'ice' is named twice"),
        (["ice", "hiv"], "CATALOG_NOT_FOUND", "Did you mean 'hive'"),
        (["ice", "readonly"], "NOT_SUPPORTED", "cannot hold a copy of table 'memory.default.t'"),
    ):
        with pytest.raises(RowMergeError, match=message) as caught:
            engine.compare(MERGE, by="catalogs", catalogs=catalogs, namespace={"s": SOURCE})
        assert caught.value.code == code
    for sql, code in (
        ("INSERT INTO t VALUES (9, 9, 'z')", "NOT_SUPPORTED"),
        ("EXPLAIN DELETE FROM t", "NOT_SUPPORTED"),
        ("SELECT 1", "NOT_SUPPORTED"),
        ("DELETE FROM t WHERE x = 1", "COLUMN_NOT_FOUND"),
        ("DELETE FROM nothing", "TABLE_NOT_FOUND"),
        ("DELETE FORM t", "SYNTAX_ERROR"),
    ):
        with pytest.raises(RowMergeError) as caught:
            compare(engine, "memory", "ice", sql=sql)
        assert caught.value.code == code
    with pytest.raises(RowMergeError, match="the option rehearse cannot be combined"):
        compare(engine, "memory", "ice", rehearse=True)
    with pytest.raises(RowMergeError, match="A comparison of flows takes no catalogs"):
        engine.compare("DELETE FROM t", by="flows", catalogs=["ice", "memory"])
    check_nothing_is_left(engine)
    closed = Engine()
    closed.close()
    with pytest.raises(RowMergeError, match="The engine is closed"):
        closed.compare("DELETE FROM t", by="catalogs", catalogs=["memory", "ice"])


def interrupt(message: str) -> BaseException:
    signal.raise_signal(signal.SIGINT)
    return OSError(message)


@pytest.mark.parametrize("step", ["create_table", "begin_insert", "begin_merge", "commit"])
def test_an_interrupt_leaves_no_copy_behind(engine: Engine, step: str) -> None:
    fault = Fault(step, call=1, error=interrupt, after=step == "commit")
    engine.add_catalog("late", FaultyConnector(MemoryConnector(), fault))
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(StatementInterrupted, match="The comparison was interrupted") as caught:
        compare(engine, "ice", "late")
    assert caught.value.changed is False
    check_nothing_is_left(engine)
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_copy_that_cannot_be_dropped_is_reported_with_the_statement(engine: Engine) -> None:
    fault = Fault("drop_table", error=ConnectorError, message="No drops today")
    engine.add_catalog("sticky", FaultyConnector(MemoryConnector(), fault))
    compared = compare(engine, "memory", "sticky")
    assert compared.same is True
    [notice] = compared.notices
    assert notice.startswith("A copy remains: No drops today. Run `DROP TABLE IF EXISTS")
    assert notice in str(compared).replace("\n", " ")
    assert "The copies were removed" not in str(compared)


def test_a_schema_created_for_a_copy_is_removed(engine: Engine) -> None:
    engine.add_catalog("bare", MemoryConnector(schemas=("x",)))
    compared = compare(engine, "bare", "ice")
    assert compared.same is True
    rows = engine.run("SHOW SCHEMAS FROM bare").table
    assert set(rows.column(0).to_pylist()) - {"information_schema"} == {"x"}
    check_nothing_is_left(engine)
