"""A statement on a connector, run in this process by the code of tasks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.engine.catalog.call_log import CallLog
from rowmerge_nb.engine.tasks.arrow import whole_page
from rowmerge_nb.engine.tasks.insert import InsertPass
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW
from rowmerge_nb.engine.tasks.recorder import Recorder
from rowmerge_nb.engine.tasks.scan import POSITION, ScanPass
from rowmerge_nb.engine.tasks.writer import MergeSinkWriter, SinkFactory
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSession, SchemaTableName
from rowmerge_nb.spi.page_source import Constraint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.page import Page, PageLayout
    from rowmerge_nb.trace.contract_calls import Call

_numbers: Final = itertools.count(1)


class ErrorRecorder(Recorder):
    """A recorder that also holds the exception, for the debugger."""

    raised: BaseException | None = None

    def failed(self, error: Exception | SystemExit, step: str) -> None:
        self.raised = error
        super().failed(error, step)


@dataclass(frozen=True)
class Work:
    """The work of one writer, or one split."""

    number: int
    calls: tuple[Call, ...]
    fragments: tuple[bytes, ...]
    error: BaseException | None = None
    step: str = ""

    @classmethod
    def of(cls, recorder: ErrorRecorder, batches: Iterable[pa.RecordBatch]) -> Work:
        outcomes = list(batches)
        fragments = [
            payload
            for batch in outcomes
            for row_type, payload in zip(
                batch.column(0).to_pylist(), batch.column(2).to_pylist(), strict=True
            )
            if row_type == FRAGMENT_ROW
        ]
        record = recorder.record
        step = next(
            (call.method for call in record.calls if call.error is not None),
            getattr(record.error, "step", ""),
        )
        return cls(record.partition, tuple(record.calls), tuple(fragments), recorder.raised, step)


class LocalStatement:
    """A statement on a table, until `commit` or `rollback`."""

    def __init__(
        self,
        connector: Connector,
        name: SchemaTableName,
        properties: Mapping[str, Any],
        *,
        looked_up: bool = True,
    ) -> None:
        self.connector = connector
        self.name = name
        self.session = ConnectorSession(f"replay-{next(_numbers)}", properties=dict(properties))
        self.log = CallLog()
        self.transaction = self.log.call("begin_transaction", connector.begin_transaction)
        self.metadata = self.log.call(
            "get_metadata", lambda: connector.get_metadata(self.transaction)
        )
        self.handle: Any = None
        if looked_up:
            self.handle = self.log.call(
                "get_table_handle", lambda: self.metadata.get_table_handle(self.session, name)
            )

    @property
    def columns(self) -> list[ColumnHandle]:
        return list(self.metadata.get_column_handles(self.session, self.handle))

    def scan(self, handle: Any = None, row_id: ColumnHandle | None = None) -> ScanPass:
        handle = self.handle if handle is None else handle
        columns = [*self.columns, *([row_id] if row_id is not None else [])]
        schema = pa.schema(
            [*((column.name, column.type.arrow) for column in columns), (POSITION, pa.int64())]
        )
        manager = self.connector.get_split_manager()
        transaction = self.transaction
        session = self.session
        splits = self.log.call(
            "get_splits", lambda: manager.get_splits(transaction, session, handle, Constraint())
        )
        return ScanPass(
            self.connector.get_page_source_provider(),
            transaction,
            session,
            handle,
            splits,
            columns,
            schema,
        )

    def rows(self, handle: Any = None, row_id: ColumnHandle | None = None) -> Page:
        task = self.scan(handle, row_id)
        read = whole_page(task.pages(), task.schema)
        return read.select(list(range(read.num_columns - 1)))

    def insert(self, pages: Sequence[Page], writer: int = 0) -> Work:
        provider = self.connector.get_page_sink_provider()
        session = replace(self.session, writer=writer)
        recorder = ErrorRecorder(writer, 0)
        task = InsertPass(
            pages[0].schema,
            (),
            lambda: provider.create_page_sink(self.transaction, session, self.insert_handle),
        )
        return Work.of(recorder, task.write(pages, recorder))

    def begin_insert(self) -> None:
        columns = self.columns
        self.insert_handle: Any = self.log.call(
            "begin_insert", lambda: self.metadata.begin_insert(self.session, self.handle, columns)
        )

    def finish_insert(self, fragments: Collection[bytes]) -> None:
        self.log.call(
            "finish_insert",
            lambda: self.metadata.finish_insert(self.session, self.insert_handle, fragments),
        )

    def begin_merge(self, updated: Mapping[int, Sequence[ColumnHandle]] | None) -> ColumnHandle:
        """Begin a MERGE with calls in the documented order; return the row id column."""
        ask, metadata, session, handle = self.log.call, self.metadata, self.session, self.handle
        row_id = ask(
            "get_merge_row_id_column_handle",
            lambda: metadata.get_merge_row_id_column_handle(session, handle),
        )
        self.paradigm = ask(
            "get_row_change_paradigm",
            lambda: metadata.get_row_change_paradigm(session, handle),
            gave=lambda paradigm: paradigm.name,
        )
        ask("get_insert_layout", lambda: metadata.get_insert_layout(session, handle))
        ask("get_update_layout", lambda: metadata.get_update_layout(session, handle))
        more: dict[str, Any] = {} if updated is None else {"updated_columns": updated}
        self.merge_handle: Any = ask(
            "begin_merge", lambda: metadata.begin_merge(session, handle, **more)
        )
        return row_id

    def merge(self, writer: int, pages: Iterable[Page], layout: PageLayout) -> Work:
        provider = self.connector.get_page_sink_provider()
        sinks = SinkFactory(provider, self.transaction, self.session, self.merge_handle)
        recorder = ErrorRecorder(writer, 0)
        return Work.of(recorder, MergeSinkWriter(layout, sinks, recorder).run(iter(pages)))

    def finish_merge(self, fragments: Collection[bytes]) -> None:
        self.log.call(
            "finish_merge",
            lambda: self.metadata.finish_merge(self.session, self.merge_handle, fragments),
        )

    def commit(self) -> None:
        self.log.call("commit", lambda: self.connector.commit(self.transaction))

    def rollback(self) -> None:
        self.log.call("rollback", lambda: self.connector.rollback(self.transaction))
