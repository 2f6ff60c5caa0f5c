"""The older flow of UPDATE and DELETE through the whole engine: the calls of the contract, failures, subqueries, options."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from proof.engines.stores import insert_page, read_rows
from rowmerge_nb import Engine, HiveAcidConnector, RowMergeError, SqliteConnector
from rowmerge_nb.connectors.hive_acid.reader import HivePageSourceProvider
from rowmerge_nb.connectors.jdbc.split_reading import JdbcPageSourceProvider
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.reading import MemoryPageSourceProvider
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SchemaTableName,
    UpdatablePageSource,
    parse_type,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = pytest.mark.spark

TABLE = SchemaTableName("default", "h")
ROWS = pa.table({"id": [1, 2, 3, 4], "name": ["a", "b", None, "d"], "val": [10, 20, 30, None]})


@pytest.fixture
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark, flow="updatable") as made:
        made.register("t", ROWS)
        made.register("s", pa.table({"id": [2, 3, None], "v": [5, 6, 7]}))
        yield made


@pytest.fixture
def hive(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    """A partitioned Hive table of three files."""
    store = HiveAcidConnector(tmp_path / "warehouse")
    columns = (("id", "integer"), ("name", "varchar"), ("val", "double"), ("region", "varchar"))
    metadata = tuple(ColumnMetadata(name, parse_type(kind)) for name, kind in columns)
    transaction = store.begin_transaction()
    made = ConnectorTableMetadata(TABLE, metadata, {"partitioned_by": ["region"]})
    store.get_metadata(transaction).create_table(ConnectorSession("made"), made)
    store.commit(transaction)
    for number, region in enumerate(("n", "s", "n")):
        values = [[number, number + 10], [f"x{number}", "y"], [number + 0.5, 1.0], [region, region]]
        arrays = [
            pa.array(value, column.type.arrow)
            for value, column in zip(values, metadata, strict=True)
        ]
        insert_page(
            store, TABLE, pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])
        )
    with Engine(spark=spark, catalog="hive", flow="updatable") as engine:
        engine.add_catalog("hive", store)
        yield engine


def rows(engine: Engine, name: str = "hive.default.h") -> list[tuple[Any, ...]]:
    """Read a table without Spark: id, name, val."""
    catalog, schema, table = name.split(".")
    found = read_rows(
        engine._catalogs.connectors[catalog], SchemaTableName(schema, table), ("id", "name", "val")
    )
    return sorted((row for row, count in found for _ in range(count)), key=repr)


def calls(result: Any) -> list[tuple[str, str, str, str]]:
    return [(call.where, call.method, call.given, call.gave) for call in result.trace.calls]


# -- the document, call by call

QUOTED = {
    "get_update_row_id_column_handle": "The Trino engine identifies rows to be updated using a connector-specific rowId column handle",
    "begin_update": "As the last step in creating the UPDATE execution plan, the connector's beginUpdate() method is called",
    "get_splits": "returns a ConnectorTableHandle with any added information the connector needs when the handle is passed back to "
    "finishUpdate() and the split generation machinery",
    "create_page_source": "For each split, the connector will create an UpdatablePageSource instance",
    "get_next_page": "fetches the next page from the underlying ConnectorPageSource",
    "update_rows": "passes that filtered, projected page of results to the connector's UpdatablePageSource deleteRows() or updateRows()",
    "finish": "stores a file of records that delete the previous contents of the updated rows, and a separate file that inserts "
    "completely new rows. When all the pages for a specific split have been processed, the Trino engine calls UpdatablePageSource.finish()",
    "finish_update": "When all pages for all splits have been processed, the Trino engine calls ConnectorMetadata.finishDelete() or "
    "finishUpdate, passing a collection containing all the fragments from all the splits",
    "commit": "The connector does what is required to finalize the operation, for example, committing the transaction.",
}
"""The text of "Supporting DELETE and UPDATE" about every call, in the order of the calls."""


def test_the_log_of_an_update_on_three_splits_is_the_documents_description_call_by_call(
    hive: Engine,
) -> None:
    result = hive.run("UPDATE h SET val = val + 1E0, id = id + 100 WHERE name <> 'y'")
    assert result.count == 3
    row_id = 'row("originalTransaction" bigint, "bucket" integer, "rowId" bigint, "row" row("name" varchar))'
    split = [
        ("create_page_source", "", ""),
        ("get_next_page", "", ""),
        ("update_rows", "U 1, channels [2, 1, 0]", ""),
        ("get_next_page", "", "end"),
        ("finish", "", "2 fragments"),
    ]
    assert calls(result) == [
        ("coordinator", "get_update_row_id_column_handle", "", f"$row_id {row_id}"),
        ("coordinator", "begin_update", "id, val", ""),
        ("coordinator", "get_splits", "", "3 splits"),
        *((f"split {number}", *call) for number in range(3) for call in split),
        ("coordinator", "finish_update", "6 fragments", "3 delete_delta files, 3 delta files"),
        ("coordinator", "commit", "the transaction of catalog hive", ""),
    ]
    assert list(dict.fromkeys(method for _, method, *_ in calls(result))) == list(QUOTED)
    assert rows(hive) == [
        (10, "y", 1.0),
        (100, "x0", 1.5),
        (101, "x1", 2.5),
        (102, "x2", 3.5),
        (11, "y", 1.0),
        (12, "y", 1.0),
    ]


def test_the_log_of_a_delete_is_that_of_the_document_and_a_split_without_rows_to_delete_has_no_fragment(
    hive: Engine,
) -> None:
    result = hive.run("DELETE FROM h WHERE id IN (0, 10, 12)")
    assert calls(result) == [
        (
            "coordinator",
            "get_delete_row_id_column_handle",
            "",
            '$row_id row("originalTransaction" bigint, "bucket" integer, "rowId" bigint)',
        ),
        ("coordinator", "begin_delete", "", ""),
        ("coordinator", "get_splits", "", "3 splits"),
        ("split 0", "create_page_source", "", ""),
        ("split 0", "get_next_page", "", ""),
        ("split 0", "delete_rows", "D 2", ""),
        ("split 0", "get_next_page", "", "end"),
        ("split 0", "finish", "", "1 fragment"),
        ("split 1", "create_page_source", "", ""),
        ("split 1", "get_next_page", "", ""),
        ("split 1", "delete_rows", "D 1", ""),
        ("split 1", "get_next_page", "", "end"),
        ("split 1", "finish", "", "1 fragment"),
        ("split 2", "create_page_source", "", ""),
        ("split 2", "get_next_page", "", "end"),
        ("split 2", "finish", "", ""),
        ("coordinator", "finish_delete", "2 fragments", "2 delete_delta files"),
        ("coordinator", "commit", "the transaction of catalog hive", ""),
    ]
    assert rows(hive) == [(1, "x1", 1.5), (11, "y", 1.0), (2, "x2", 2.5)]


def test_the_log_of_the_same_update_by_the_machinery_of_merge_has_the_order_of_that_machinery(
    hive: Engine,
) -> None:
    result = hive.run("UPDATE h SET val = val + 1E0, id = id + 100 WHERE name <> 'y'", flow="merge")
    order = list(dict.fromkeys(method for _, method, *_ in calls(result)))
    assert order == [
        *(
            "get_merge_row_id_column_handle",
            "get_row_change_paradigm",
            "get_insert_layout",
            "get_update_layout",
            "begin_merge",
        ),
        *("create_merge_sink", "store_merged_rows", "finish"),
        *("finish_merge", "commit"),
    ]


def test_hive_refuses_updates_that_would_move_a_row(hive: Engine) -> None:
    with pytest.raises(
        RowMergeError, match="Updating Hive table partition columns is not supported"
    ) as caught:
        hive.run("UPDATE h SET region = 'w', id = 0")
    assert caught.value.code == "NOT_SUPPORTED"
    assert caught.value.result.trace.calls[1].method == "begin_update"
    hive.run(
        "CREATE TABLE b (id integer, v integer) WITH (bucketed_by = ARRAY['id'], bucket_count = 2)"
    )
    with pytest.raises(RowMergeError, match="Updating Hive table bucket columns is not supported"):
        hive.run("UPDATE b SET id = 1")
    assert hive.run("UPDATE b SET id = 1", flow="merge").count == 0


# -- failures


class FaultySource(UpdatablePageSource):
    """Passes all calls on, and fails at one of them in the split that is last to make it."""

    def __init__(self, inner: UpdatablePageSource, fault: str) -> None:
        super().__init__(inner)
        self.inner = inner
        self.fault = fault

    def _at(self, method: str) -> None:
        if self.fault == method:
            msg = "the disk is full"
            raise OSError(msg)

    def delete_rows(self, row_ids: pa.Array) -> None:
        self.inner.delete_rows(row_ids)
        self._at("delete_rows")

    def update_rows(self, page: Any, column_value_and_row_id_channels: Any) -> None:
        self.inner.update_rows(page, column_value_and_row_id_channels)
        self._at("update_rows")

    def finish(self) -> Any:
        fragments = self.inner.finish()
        self._at("finish")
        return fragments

    def abort(self) -> None:
        self.inner.abort()


class FaultyProvider:
    """Wraps the sources of one split."""

    def __init__(self, inner: Any, fault: str, split: int) -> None:
        self.inner, self.fault, self.split = inner, fault, split

    def create_page_source(
        self, transaction: Any, session: Any, split: Any, handle: Any, columns: Any
    ) -> Any:
        source = self.inner.create_page_source(transaction, session, split, handle, columns)
        wrapped = isinstance(source, UpdatablePageSource) and session.writer == self.split
        return FaultySource(source, self.fault) if wrapped else source


@pytest.mark.parametrize("method", ["delete_rows", "update_rows", "finish"])
@pytest.mark.parametrize("store", ["memory", "hive", "sqlite"])
def test_a_failing_split_leaves_the_table_unchanged(
    spark: Any,
    hive: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store: str,
    method: str,
) -> None:
    engine, name, split = hive, "hive.default.h", 2 if store == "hive" else 0
    if store == "memory":
        engine.register("t", ROWS)
        name = "memory.default.t"
    elif store == "sqlite":
        engine.add_catalog("db", SqliteConnector(tmp_path / "x.db", create=True))
        name = "db.main.k"
        engine.run(
            f"CREATE TABLE {name} (id integer, name varchar, val bigint) WITH (primary_key = ARRAY['id'])"
        )
        page = pa.RecordBatch.from_pydict(
            {"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"], "val": [10, 20]}
        )
        insert_page(engine._catalogs.connectors["db"], SchemaTableName("main", "k"), page)
    before = rows(engine, name)
    providers = {
        "memory": MemoryPageSourceProvider,
        "hive": HivePageSourceProvider,
        "sqlite": JdbcPageSourceProvider,
    }
    connector = engine._catalogs.connectors[{"sqlite": "db"}.get(store, store)]
    own = connector.get_page_source_provider()
    assert isinstance(own, providers[store])
    monkeypatch.setattr(
        connector, "get_page_source_provider", lambda: FaultyProvider(own, method, split)
    )
    sql = f"DELETE FROM {name}" if method == "delete_rows" else f"UPDATE {name} SET val = 0"
    with pytest.raises(RowMergeError, match="the disk is full") as caught:
        engine.run(sql)
    trace = caught.value.result.trace
    assert getattr(caught.value, "step", "") == method
    assert str(trace.error.consequences[-1]) == "the transaction was rolled back"
    assert [(call.where, call.method) for call in trace.calls if call.error] == [
        (f"split {split}", method)
    ]
    assert (f"split {split}", "abort") in {(call.where, call.method) for call in trace.calls}
    assert {str(told) for told in trace.error.consequences} & {
        "finish_update was not called",
        "finish_delete was not called",
    }
    monkeypatch.undo()
    assert rows(engine, name) == before
    if store == "hive":
        assert not [path for path in (tmp_path / "warehouse").rglob("*_tmp_*") if path.is_dir()]
    assert engine.run(sql).count == len(before)


def test_an_error_in_an_expression_has_its_code_and_position_and_leaves_the_table_unchanged(
    engine: Engine,
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run("UPDATE t SET name = 'x',\n val = val / (id - 1)")
    error = caught.value
    assert (error.code, error.message, error.line, error.column) == (
        "DIVISION_BY_ZERO",
        "Division by zero",
        2,
        8,
    )
    divide = "With NULLIF(divisor, 0), the quotient is NULL."
    assert error.hint == f"It happened in the value for column 'val'. {divide}"
    with pytest.raises(RowMergeError) as caught:
        engine.run("DELETE FROM t WHERE 10 / (id - 1) > 2")
    assert (caught.value.line, caught.value.column) == (1, 21)
    assert caught.value.hint == f"It happened in the WHERE condition. {divide}"
    assert engine.table("t").equals(ROWS)


def test_null_for_a_column_that_refuses_it_fails_as_in_the_flow_of_merge(engine: Engine) -> None:
    engine.register("strict", ROWS.select(["id", "name"]).slice(0, 2), not_null=["name"])
    errors = []
    for flow in ("updatable", "merge"):
        with pytest.raises(RowMergeError) as caught:
            engine.run("UPDATE strict SET name = nullif(name, 'a')", flow=flow)
        errors.append((caught.value.code, caught.value.message))
    assert (
        errors[0]
        == errors[1]
        == ("INVALID_ARGUMENTS", "NULL value not allowed for NOT NULL column: name")
    )


# -- the plan


def test_an_uncorrelated_list_is_a_semi_join_and_an_uncorrelated_value_a_join_with_one_row(
    engine: Engine,
) -> None:
    sql = "UPDATE t SET val = (SELECT max(v) FROM s) + id WHERE id IN (SELECT id FROM s) AND EXISTS (SELECT 1 FROM s WHERE v > 6)"
    result = engine.run(sql)
    assert result.count == 2
    assert engine.table("t").column("val").to_pylist() == [10, 9, 10, None]
    names = [node.name for node in result.trace.plan]
    assert names == [
        "Output",
        "TableCommit",
        "Update",
        "Project",
        "Filter",
        "CrossJoin",
        "CrossJoin",
        "SemiJoin",
        "UpdatablePageSourceScan",
    ]
    assert engine.run("DELETE FROM t WHERE id NOT IN (SELECT id FROM s)").count == 0, (
        "NULL is among the values"
    )
    assert (
        engine.run("DELETE FROM t WHERE id > ALL (SELECT id FROM s WHERE id IS NOT NULL)").count
        == 1
    )
    with pytest.raises(RowMergeError) as caught:
        engine.run("UPDATE t SET val = (SELECT v FROM s)")
    assert caught.value.code == "SUBQUERY_MULTIPLE_ROWS"


def test_a_query_that_is_another_at_every_time_has_one_answer_for_all_splits(hive: Engine) -> None:
    assert hive.run("UPDATE h SET val = (SELECT random())").count == 6
    assert len(hive.table("h").column("val").unique()) == 1


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id)", "JoinNode"),
        ("DELETE FROM t WHERE val > ANY (SELECT v FROM s WHERE s.id = t.id)", "JoinNode"),
        ("DELETE FROM t WHERE val IN (SELECT v FROM s WHERE s.id = t.id)", "AggregationNode"),
        ("UPDATE t SET val = (SELECT max(v) FROM s WHERE s.id = t.id)", "JoinNode"),
        ("UPDATE t SET val = (SELECT v FROM s WHERE s.id = t.id)", "MarkDistinctNode"),
    ],
)
def test_statements_that_move_rows_between_reading_and_writing_are_refused_in_the_words_of_that_time(
    engine: Engine, sql: str, node: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql)
    assert (
        caught.value.message
        == f"Invalid descendant for DeleteNode or UpdateNode: io.trino.sql.planner.plan.{node}"
    )
    assert "omit the option flow" in (caught.value.hint or "")
    assert engine.run(sql, flow="merge").count is not None


def test_explain_and_dry_run_begin_nothing(engine: Engine) -> None:
    for result in (
        engine.explain("UPDATE t SET val = 1"),
        engine.run("UPDATE t SET val = 1", dry_run=True),
    ):
        assert [call.method for call in result.trace.calls] == [
            "get_update_row_id_column_handle",
            "rollback",
        ]
    text = str(engine.explain("UPDATE t SET val = 1, name = 'x' WHERE id > 1").explained)
    assert "column value and row id channels: [2, 1, 0]" in text
    assert "UpdatablePageSourceScan[table = memory.default.t]" in text


def test_large_tables_are_read_only_for_the_columns_that_are_needed(spark: Any) -> None:
    count = 20_000
    with Engine(spark=spark, flow="updatable") as engine:
        engine.register(
            "big", pa.table({"id": range(count), "a": range(count), "b": ["x"] * count})
        )
        result = engine.run("UPDATE big SET a = a + 1 WHERE id % 2 = 0")
        scan = result.trace.plan[-1]
        assert [name for name, _ in scan.layout] == ["id", "a", "row_id"]
        assert result.count == count // 2
        assert engine.table("big").column("a").to_pylist()[:3] == [1, 1, 3]


def test_a_pruned_column_may_have_a_name_generated_by_the_plan(spark: Any) -> None:
    with Engine(spark=spark, flow="updatable") as engine:
        names = ("rows", "partialrows", "a", "a_new", "row_id")
        engine.register("big", pa.table({name: range(20_000) for name in names}))
        result = engine.run("UPDATE big SET a = a + 1 WHERE a < 3")
        layouts = {node.kind: [name for name, _ in node.layout] for node in result.trace.plan}
        assert layouts["UpdatablePageSourceScan"] == layouts["Filter"] == ["a", "row_id"]
        assert (layouts["Project"], layouts["UpdateRows"]) == (
            ["row_id", "a_new"],
            ["partialrows", "fragment"],
        )
        assert layouts["Output"] == ["rows"]
        assert engine.table("big").slice(0, 4).to_pylist() == [
            {"rows": i, "partialrows": i, "a": i + (i < 3), "a_new": i, "row_id": i}
            for i in range(4)
        ]


def test_merge_has_no_older_flow(engine: Engine) -> None:
    with pytest.raises(
        RowMergeError, match="supports only UPDATE and DELETE; MERGE came with its successor"
    ):
        engine.run("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE")
    with pytest.raises(RowMergeError, match="flow = 'old' is not possible"):
        engine.run("DELETE FROM t", flow="old")


def test_a_connector_without_the_older_calls_is_refused_with_the_way_that_remains(
    spark: Any,
) -> None:
    class Newer(MemoryConnector):
        def get_metadata(self, transaction_handle: Any) -> Any:
            metadata = super().get_metadata(transaction_handle)
            from rowmerge_nb.spi import ConnectorMetadata

            metadata.get_delete_row_id_column_handle = (  # type: ignore[method-assign]
                lambda *arguments: ConnectorMetadata.get_delete_row_id_column_handle(
                    metadata, *arguments
                )
            )
            return metadata

    with Engine(spark=spark) as engine:
        engine.add_catalog("newer", Newer())
        engine.run("CREATE TABLE newer.default.t AS SELECT 1 AS id")
        with pytest.raises(
            RowMergeError, match=r"has no get_delete_row_id_column_handle"
        ) as caught:
            engine.run("DELETE FROM newer.default.t", flow="updatable")
        assert "omit the option flow" in (caught.value.hint or "")
        assert engine.run("DELETE FROM newer.default.t").count == 1


def test_reports_show_plan_calls_counts_and_changed_rows_of_this_flow(engine: Engine) -> None:
    result = engine.run("UPDATE t SET val = coalesce(val, 0) + 1 WHERE id > 2")
    text = result.text()
    assert "2 rows updated in t. t 4 → 4 rows." in text
    assert "flow updatable: page sources change the rows that they have read" in text
    assert "update_rows, on the page source that read the rows" in text
    assert "~  3   NULL  30 → 31" in text
    handed = pa.Table.from_batches([sample.page for sample in result.trace.samples.stored_pages])
    assert handed.column_names == ["row_id", "val"]
    assert sorted(handed["val"].to_pylist()) == [1, 31]
    assert "Pages returned to the page sources: 2 rows" in text
    told = {sample.writer: sample.total for sample in result.trace.samples.stored_pages}
    assert {split: result.trace.samples.pages.writers.count(split) for split in told} == told, (
        "each row with its split"
    )
    assert "UpdatablePageSource" in result._repr_mimebundle_()["text/html"]
