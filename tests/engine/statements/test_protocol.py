"""Calls and their arguments in both flows: the handles of begin calls, and one instance from page to change, finish or abort."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.memory_handles import MemoryMergeTableHandle, MemoryTableHandle
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.connectors.memory.reading import MemoryPageSourceProvider
from rowmerge_nb.connectors.memory.updatable_pages import MemoryUpdatableTableHandle
from rowmerge_nb.connectors.memory.writing import MemoryPageSinkProvider
from rowmerge_nb.spi import (
    ColumnHandle,
    ColumnMetadata,
    ConnectorSplit,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)
from rowmerge_nb.spi.page_source import PagesSource
from rowmerge_nb.spi.updatable import UpdatablePageSource
from rowmerge_nb.testing.faults import Fault, FaultyConnector

cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = pytest.mark.spark

TABLE = SchemaTableName("default", "t")
ROWS = pa.table({"id": list(range(8)), "v": [10 * i for i in range(8)], "w": ["x"] * 8})
COLUMNS = zip(ROWS.column_names, ("bigint", "bigint", "varchar"), strict=True)
METADATA = ConnectorTableMetadata(
    TABLE, tuple(ColumnMetadata(name, parse_type(kind)) for name, kind in COLUMNS)
)
PAGE_ROWS = 2


@dataclass(frozen=True)
class Diary:
    """A file into which driver and tasks write their calls."""

    path: Path

    def note(self, method: str, *told: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps([method, *told]) + "\n")

    def entries(self) -> list[list[Any]]:
        return (
            [json.loads(line) for line in self.path.read_text().splitlines()]
            if self.path.exists()
            else []
        )


class Own(ColumnHandle):
    """A column under a name that only this connector uses."""


@dataclass(frozen=True)
class Stamped(MemoryUpdatableTableHandle):
    """The results of begin_delete and begin_update."""

    stamp: str = ""


@dataclass(frozen=True)
class StampedTable(MemoryTableHandle):
    """The part of the handle of begin_merge for reading."""

    stamp: str = ""


@dataclass(frozen=True)
class Part(ConnectorSplit):
    """Every n-th page of the table's one split."""

    inner: Any
    first: int
    step: int


def parts(handle: Any) -> dict[str, Any]:
    return {field.name: getattr(handle, field.name) for field in fields(handle)}


class WatchedMetadata(MemoryMetadata):
    # For stores with versions, the rows that took no part are read as well, which is not part of the protocol.
    keeps_versions = False

    def __init__(self, inner: MemoryMetadata, watched: Watched) -> None:
        super().__init__(inner._connector, inner._transaction)
        self.watched = watched

    def get_table_handle(self, session: Any, name: Any) -> Any:
        self.watched.looked_up = super().get_table_handle(session, name)
        return self.watched.looked_up

    def get_column_handles(self, session: Any, table_handle: Any) -> tuple[ColumnHandle, ...]:
        return tuple(
            Own(handle.name, handle.type)
            for handle in super().get_column_handles(session, table_handle)
        )

    def begun(self, method: str, table_handle: Any, columns: Any, handle: Any) -> Any:
        assert table_handle is self.watched.looked_up
        self.watched.diary.note(method, columns)
        self.watched.begun = handle
        return handle

    def finished(self, method: str, handle: Any, fragments: Any) -> None:
        assert handle is self.watched.begun, "the very handle that the begin call gave"
        self.watched.diary.note(method, len(fragments))

    def begin_delete(self, session: Any, table_handle: Any) -> Any:
        handle = Stamped(
            **parts(super().begin_delete(session, table_handle)), stamp=self.watched.stamp
        )
        return self.begun("begin_delete", table_handle, None, handle)

    def finish_delete(self, session: Any, table_handle: Any, fragments: Any) -> None:
        self.finished("finish_delete", table_handle, fragments)
        super().finish_delete(session, table_handle, fragments)

    def get_update_row_id_column_handle(
        self, session: Any, table_handle: Any, updated_columns: Any
    ) -> Any:
        self.watched.diary.note("get_update_row_id_column_handle", own_names(updated_columns))
        return super().get_update_row_id_column_handle(session, table_handle, updated_columns)

    def begin_update(self, session: Any, table_handle: Any, updated_columns: Any) -> Any:
        made = super().begin_update(session, table_handle, updated_columns)
        return self.begun(
            "begin_update",
            table_handle,
            own_names(updated_columns),
            Stamped(**parts(made), stamp=self.watched.stamp),
        )

    def finish_update(self, session: Any, table_handle: Any, fragments: Any) -> None:
        self.finished("finish_update", table_handle, fragments)
        super().finish_update(session, table_handle, fragments)

    def begin_merge(
        self,
        session: Any,
        table_handle: Any,
        updated_columns: Mapping[int, Sequence[Any]] | None = None,
    ) -> Any:
        told = (
            None
            if updated_columns is None
            else {str(case): own_names(c) for case, c in updated_columns.items()}
        )
        handle = MemoryMergeTableHandle(
            StampedTable(**parts(table_handle), stamp=self.watched.stamp)
        )
        return self.begun("begin_merge", table_handle, told, handle)

    def finish_merge(self, session: Any, merge_handle: Any, fragments: Any) -> None:
        self.finished("finish_merge", merge_handle, fragments)
        super().finish_merge(session, merge_handle, fragments)

    def begin_insert(self, session: Any, table_handle: Any, columns: Any) -> Any:
        self.watched.diary.note("begin_insert", own_names(columns))
        return super().begin_insert(session, table_handle, columns)


def own_names(columns: Sequence[ColumnHandle]) -> list[str]:
    assert all(type(column) is Own for column in columns), "the connector's own handles"
    return [column.name for column in columns]


class WatchedSplits:
    def __init__(self, inner: Any, watched: Watched) -> None:
        self.inner, self.watched = inner, watched

    def get_splits(
        self, transaction: Any, session: Any, handle: Any, constraint: Any
    ) -> list[Part]:
        begun = self.watched.begun
        reading = begun.get_table_handle() if isinstance(begun, MemoryMergeTableHandle) else begun
        if reading is not None:
            assert handle is reading, (
                "what is scanned after the beginning is scanned by the handle that the begin call gave"
            )
            self.watched.diary.note("get_splits")
        (split,) = self.inner.get_splits(transaction, session, handle, constraint)
        count = self.watched.split_count
        return [Part(split, number, count) for number in range(count)]


class WatchedSource(UpdatablePageSource):
    """Returns small pages, and accepts only rows of the last page."""

    def __init__(self, inner: UpdatablePageSource, part: Part, diary: Diary, fault: str) -> None:
        pages = []
        while (page := inner.get_next_page()) is not None:
            pages += [page.slice(start, PAGE_ROWS) for start in range(0, page.num_rows, PAGE_ROWS)]
        super().__init__(PagesSource(pages[part.first :: part.step]))
        self.inner, self.split, self.diary, self.fault = inner, part.first, diary, fault
        self.instance = uuid.uuid4().hex
        self.last: set[int] = set()

    def note(self, method: str, *told: Any) -> None:
        self.diary.note(method, self.split, self.instance, *told)
        if self.fault == method and self.split == 1:
            raise OSError("the disk is full")
        if (
            self.fault == f"{method} exits"
            and self.split == 1
            and not self.diary.path.with_name("died").exists()
        ):
            self.diary.path.with_name("died").touch()
            os._exit(1)

    def get_next_page(self) -> Any:
        page = super().get_next_page()
        self.last = set() if page is None else set(page.column(page.num_columns - 1).to_pylist())
        return page

    def delete_rows(self, row_ids: pa.Array) -> None:
        assert set(row_ids.to_pylist()) <= self.last
        self.inner.delete_rows(row_ids)
        self.note("delete_rows", row_ids.to_pylist())

    def update_rows(self, page: Any, column_value_and_row_id_channels: Sequence[int]) -> None:
        *values, row_ids = (
            page.column(channel).to_pylist() for channel in column_value_and_row_id_channels
        )
        assert set(row_ids) <= self.last
        self.inner.update_rows(page, column_value_and_row_id_channels)
        self.note("update_rows", row_ids, values)

    def finish(self) -> Future[Any]:
        answer: Future[Any] = Future()
        self.note("finish")
        if self.fault == "future" and self.split == 1:
            answer.set_exception(OSError("the disk is full"))
        else:
            answer.set_result(self.inner.finish())
        return answer

    def abort(self) -> None:
        self.inner.abort()
        self.note("abort")

    def close(self) -> None:
        self.inner.close()
        self.note("close")


class PartSource(PagesSource):
    """The rows that a merge reads of a part."""

    def __init__(self, inner: Any, part: Part) -> None:
        pages = []
        while (page := inner.get_next_page()) is not None:
            pages += [page.slice(start, PAGE_ROWS) for start in range(0, page.num_rows, PAGE_ROWS)]
        super().__init__(pages[part.first :: part.step])


@dataclass(frozen=True)
class WatchedSources(MemoryPageSourceProvider):
    diary: Diary
    stamp: str
    fault: str

    def create_page_source(
        self, transaction: Any, session: Any, split: Any, handle: Any, columns: Any
    ) -> Any:
        if getattr(handle, "stamp", None) is None:
            return PartSource(
                super().create_page_source(transaction, session, split.inner, handle, columns),
                split,
            )
        assert handle.stamp == self.stamp
        own_names(columns[:-1])
        inner = super().create_page_source(transaction, session, split.inner, handle, columns)
        if isinstance(handle, Stamped):
            return WatchedSource(inner, split, self.diary, self.fault)
        return PartSource(inner, split)


@dataclass(frozen=True)
class WatchedSinks(MemoryPageSinkProvider):
    diary: Diary
    stamp: str

    def create_merge_sink(self, transaction: Any, session: Any, merge_handle: Any) -> Any:
        assert merge_handle.get_table_handle().stamp == self.stamp
        self.diary.note("create_merge_sink")
        return super().create_merge_sink(transaction, session, merge_handle)


class Watched(MemoryConnector):
    """Memory tables in several splits of small pages, and a log of calls."""

    def __init__(self, diary: Diary, *, split_count: int = 3, fault: str = "") -> None:
        super().__init__()
        self.diary, self.split_count, self.fault = diary, split_count, fault
        self.stamp = uuid.uuid4().hex
        self.looked_up: Any = None
        self.begun: Any = None
        self.put(METADATA, ROWS)

    def get_metadata(self, transaction_handle: Any) -> Any:
        return WatchedMetadata(super().get_metadata(transaction_handle), self)

    def get_split_manager(self) -> Any:
        return WatchedSplits(super().get_split_manager(), self)

    def get_page_source_provider(self) -> Any:
        return WatchedSources(self.diary, self.stamp, self.fault)

    def get_page_sink_provider(self) -> Any:
        return WatchedSinks(self.diary, self.stamp)


@dataclass
class Shop:
    engine: Engine
    connector: Watched

    def run(self, sql: str, **options: Any) -> Any:
        self.connector.begun = None
        return self.engine.run(sql, namespace={"s": pa.table({"id": [1, 99]})}, **options)

    def told(self) -> list[list[Any]]:
        """Return the log; calls in tasks are by split, with the number of the split in place of the instance."""
        return self.connector.diary.entries()

    def of_split(self, split: int) -> list[list[Any]]:
        """Return the calls of one split, all by one instance."""
        entries = [entry for entry in self.told() if entry[0] in TASK_CALLS and entry[1] == split]
        assert len({entry[2] for entry in entries}) == 1, "one instance per split"
        return [[entry[0], *entry[3:]] for entry in entries]

    def by_coordinator(self) -> list[list[Any]]:
        return [entry for entry in self.told() if entry[0] not in TASK_CALLS]


TASK_CALLS = ("delete_rows", "update_rows", "finish", "abort", "close")


@pytest.fixture
def shop(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    connector = Watched(Diary(tmp_path / "diary"), **getattr(request, "param", {}))
    with Engine(spark=spark) as engine:
        engine.add_catalog("shop", connector)
        yield Shop(engine, connector)


UPDATE = "UPDATE shop.default.t SET w = 'y', v = v + 1 WHERE id IN (0, 2, 3, 6)"
DELETE = "DELETE FROM shop.default.t WHERE id IN (0, 2, 3, 6)"


def test_every_page_of_an_update_returns_to_the_instance_that_read_it(shop: Shop) -> None:
    assert shop.run(UPDATE, flow="updatable").count == 4
    # Pages of two rows; split 0 has pages 0 and 3, split 1 page 1, split 2 page 2 of four.
    assert shop.of_split(0) == [
        ["update_rows", [0], [[1], ["y"]]],
        ["update_rows", [6], [[61], ["y"]]],
        ["finish"],
        ["close"],
    ]
    assert shop.of_split(1) == [
        ["update_rows", [2, 3], [[21, 31], ["y", "y"]]],
        ["finish"],
        ["close"],
    ]
    assert shop.of_split(2) == [["finish"], ["close"]], (
        "a split is finished also where none of its rows was chosen"
    )
    assert shop.by_coordinator() == [
        ["get_update_row_id_column_handle", ["v", "w"]],
        ["begin_update", ["v", "w"]],
        ["get_splits"],
        ["finish_update", 2],
    ]


def test_every_page_of_a_delete_returns_to_the_instance_that_read_it(shop: Shop) -> None:
    assert shop.run(DELETE, flow="updatable").count == 4
    assert shop.of_split(0) == [["delete_rows", [0]], ["delete_rows", [6]], ["finish"], ["close"]]
    assert shop.of_split(1) == [["delete_rows", [2, 3]], ["finish"], ["close"]]
    assert shop.of_split(2) == [["finish"], ["close"]]
    assert shop.by_coordinator() == [["begin_delete", None], ["get_splits"], ["finish_delete", 2]]


@pytest.mark.parametrize("shop", [{"split_count": 0}], indirect=True)
@pytest.mark.parametrize("flow", ["updatable", "merge"])
def test_a_table_without_splits_is_begun_and_finished(shop: Shop, flow: str) -> None:
    for sql, verb in ((UPDATE, "update"), (DELETE, "delete")):
        name = verb if flow == "updatable" else "merge"
        assert shop.run(sql, flow=flow).count == 0
        assert [entry[0] for entry in shop.told()][-3:] == [
            f"begin_{name}",
            "get_splits",
            f"finish_{name}",
        ]
        assert shop.told()[-1] == [f"finish_{name}", 0]
    assert shop.connector.read(TABLE) == ROWS


@pytest.mark.parametrize("flow", ["updatable", "merge"])
def test_a_statement_without_matches_finishes_everything_and_stores_nothing(
    shop: Shop, flow: str
) -> None:
    for sql in (
        "UPDATE shop.default.t SET v = 0 WHERE id > 100",
        "DELETE FROM shop.default.t WHERE id > 100",
    ):
        assert shop.run(sql, flow=flow).count == 0
    methods = [entry[0] for entry in shop.told()]
    assert not {"update_rows", "delete_rows", "create_merge_sink", "abort"} & set(methods)
    assert methods.count("finish") == methods.count("close") == (6 if flow == "updatable" else 0)
    assert [entry[-1] for entry in shop.told() if entry[0].startswith("finish_")] == [0, 0]
    assert shop.connector.read(TABLE) == ROWS


@pytest.mark.parametrize(
    ("shop", "sql"),
    [
        ({"fault": "delete_rows"}, DELETE),
        *(({"fault": fault}, UPDATE) for fault in ("update_rows", "finish", "future")),
    ],
    indirect=["shop"],
    ids=["delete_rows", "update_rows", "finish", "future"],
)
def test_a_split_that_fails_is_aborted_once_and_not_finished_after_it(shop: Shop, sql: str) -> None:
    with pytest.raises(RowMergeError, match="the disk is full") as caught:
        shop.run(sql, flow="updatable")
    method = "finish" if shop.connector.fault == "future" else shop.connector.fault
    assert [entry[0] for entry in shop.of_split(1)] == [
        *(["update_rows"] if method == "finish" else []),
        method,
        "abort",
        "close",
    ]
    assert [entry[0] for entry in shop.of_split(0)][-2:] == ["finish", "close"], (
        "other splits are not told"
    )
    assert not [entry for entry in shop.by_coordinator() if entry[0].startswith("finish_")]
    assert caught.value.result.trace.calls[-1].method == "rollback"
    assert shop.connector.read(TABLE) == ROWS


@pytest.mark.parametrize("shop", [{"fault": "close"}], indirect=True)
def test_a_source_that_cannot_be_closed_fails_the_statement_and_its_report_has_all_calls(
    shop: Shop,
) -> None:
    with pytest.raises(RowMergeError, match="close failed: OSError: the disk is full") as caught:
        shop.run(DELETE, flow="updatable")
    calls = [(call.where, call.method) for call in caught.value.result.trace.calls]
    assert ("split 1", "delete_rows") in calls
    assert calls[-1] == ("coordinator", "rollback")
    assert [entry[0] for entry in shop.of_split(1)] == ["delete_rows", "finish", "close", "abort"]
    assert shop.connector.read(TABLE) == ROWS


@pytest.mark.parametrize(
    "shop",
    [{"fault": "delete_rows exits"}, {"fault": "finish exits"}],
    indirect=True,
    ids=["delete_rows", "finish"],
)
def test_a_task_that_dies_is_run_again_by_another_instance_and_its_rows_count_once(
    shop: Shop,
) -> None:
    assert shop.run(DELETE, flow="updatable").count == 4
    instances = {entry[2] for entry in shop.told() if entry[0] == "delete_rows" and entry[1] == 1}
    assert len(instances) == 2
    assert shop.by_coordinator()[-1] == ["finish_delete", 2]
    assert shop.connector.read(TABLE).column("id").to_pylist() == [1, 4, 5, 7]


WHOLE = [
    *(
        "get_update_row_id_column_handle",
        "begin_update",
        "get_splits",
        "create_page_source",
        "get_next_page",
        "update_rows",
    ),
    *("finish", "close", "finish_update", "commit"),
]
BEFORE, WITHIN, BEHIND = ["rollback"], ["abort", "close", "rollback"], ["rollback"]
"""Calls after a fault: before a page source exists, while a page source works, and when all have finished."""


@pytest.mark.parametrize(
    ("fault", "text", "then"),
    [
        (Fault("get_update_row_id_column_handle", after=True), "the disk is full", BEFORE),
        (Fault("begin_update", after=True), "the disk is full", BEFORE),
        (
            Fault("begin_update", gives=None),
            "begin_update returned NoneType; it must return a ConnectorTableHandle",
            BEFORE,
        ),
        (Fault("get_splits", after=True), "the disk is full", BEFORE),
        (Fault("create_page_source", after=True), "the disk is full", BEFORE),
        (
            Fault("create_page_source", gives=PagesSource([])),
            "for a handle of begin_update; it must return an UpdatablePageSource",
            BEFORE,
        ),
        (Fault("get_next_page", after=True), "the disk is full", WITHIN),
        (Fault("update_rows", after=True), "the disk is full", WITHIN),
        (Fault("finish", after=True), "the disk is full", WITHIN),
        (
            Fault("finish", gives=None),
            "finish() returned NoneType; it must return a collection of bytes, or a future of one",
            WITHIN,
        ),
        (Fault("finish", gives=["text"]), "fragment of type str", WITHIN),
        (Fault("finish_update", after=True), "the disk is full", BEHIND),
        (Fault("commit"), "the disk is full", BEHIND),
    ],
    ids=lambda value: value.step if isinstance(value, Fault) else None,
)
def test_a_fault_at_any_step_of_the_older_flow_ends_it_there(
    spark: Any, fault: Fault, text: str, then: list[str]
) -> None:
    connector = FaultyConnector(MemoryConnector(), fault)
    connector.put(METADATA, ROWS)
    with Engine(spark=spark) as engine:
        engine.add_catalog("shop", connector)
        with pytest.raises(RowMergeError) as caught:
            engine.run(UPDATE, flow="updatable")
        assert text in caught.value.message
        called = [step for step in connector.calls if step in {*WHOLE, *WITHIN}]
        assert list(dict.fromkeys(called)) == [*WHOLE[: WHOLE.index(fault.step) + 1], *then]
        assert (
            max(called.count(step) for step in ("finish", "abort", "close", "finish_update")) <= 1
        )
        assert connector.read(TABLE) == ROWS
        assert not connector._transactions, "no transaction is left open"
        connector.fault = None
        assert engine.run(UPDATE, flow="updatable").count == 4


@pytest.mark.parametrize("era", ["documents", "current"])
def test_the_machinery_of_merge_scans_and_writes_with_the_handle_of_begin_merge(
    shop: Shop, era: str
) -> None:
    merge = (
        "MERGE INTO shop.default.t t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET w = 'm', v = 0 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    for sql, updated in ((UPDATE, {"0": ["v", "w"]}), (DELETE, {}), (merge, {"0": ["v", "w"]})):
        before = len(shop.told())
        assert shop.run(sql, era=era).count in {2, 4}
        begun, splits, *sinks, finished = shop.told()[before:]
        assert begun == ["begin_merge", updated if era == "current" else None]
        assert splits == ["get_splits"]
        assert sinks
        assert {sink[0] for sink in sinks} == {"create_merge_sink"}
        assert finished[0] == "finish_merge"
        assert finished[1] >= len(sinks)


def test_an_insert_begins_with_the_connectors_own_columns(shop: Shop) -> None:
    shop.run("INSERT INTO shop.default.t VALUES (100, 1, 'z')")
    assert shop.told() == [["begin_insert", ["id", "v", "w"]]]
