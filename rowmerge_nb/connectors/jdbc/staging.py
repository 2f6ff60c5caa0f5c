"""Writing in tasks: attempts stage their rows where only the driver looks, and report them in a
fragment.

A staged row has the attempt (``a``), operation (``o``), case number (``n``), row id (``k0``,
``k1``, ...) and columns (``c0``, ``c1``, ...).
Attempts whose fragments do not reach the driver are never applied.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.jdbc.jdbc_handles import (
    JdbcInsertTableHandle,
    JdbcMergeTableHandle,
    JdbcTableHandle,
    Stage,
)
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.spi import (
    ConnectorInsertTableHandle,
    ConnectorMergeSink,
    ConnectorMergeTableHandle,
    ConnectorPageSink,
    ConnectorPageSinkProvider,
    ConnectorSession,
    ConnectorTransactionHandle,
    Operation,
    Page,
    PageLayout,
    own,
    rows_with,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from rowmerge_nb.connectors.jdbc.database import Store

COPIED_ROWS: Final = 65_536
COPIED_BYTES: Final = 64 << 20
"""The limits of rows and bytes that are buffered before they are sent."""


class StageWriter(ABC):
    def __init__(self) -> None:
        self.attempt = secrets.randbits(62)
        self.rows = 0

    @abstractmethod
    def write(self, rows: pa.RecordBatch) -> None: ...

    def finish(self) -> list[bytes]:
        return (
            [json.dumps({"attempt": self.attempt, "rows": self.rows}).encode()] if self.rows else []
        )

    def abort(self) -> None: ...


class StageFileWriter(StageWriter):
    def __init__(self, directory: str) -> None:
        super().__init__()
        self._path = file_of(directory, self.attempt)
        self._file: Any = None
        self._writer: Any = None

    def write(self, rows: pa.RecordBatch) -> None:
        with self._disk_errors():
            if self._writer is None:
                self._file = pa.OSFile(str(self._path), "wb")
                self._writer = pa.ipc.new_stream(self._file, rows.schema)
            self._writer.write_batch(rows)
        self.rows += rows.num_rows

    def finish(self) -> list[bytes]:
        with self._disk_errors():
            self._close()
        return super().finish()

    def abort(self) -> None:
        with suppress(OSError):
            self._close()
        self._path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            try:
                writer.close()
            finally:
                self._file.close()

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise refused(
                error,
                f"File '{self._path}', in which rows for the SQLite database beside it are staged,",
                "JDBC_ERROR",
            ) from error


class CopyWriter(StageWriter):
    def __init__(self, store: Store, stage: Stage) -> None:
        super().__init__()
        self._store = store
        self._stage = stage
        self._session: Any = None
        self._waiting: list[pa.RecordBatch] = []

    def write(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        self.rows += rows.num_rows
        waiting = self._waiting
        if (
            sum(b.num_rows for b in waiting) >= COPIED_ROWS
            or sum(b.nbytes for b in waiting) >= COPIED_BYTES
        ):
            self._send()

    def finish(self) -> list[bytes]:
        try:
            self._send()
        finally:
            self.abort()
        return super().finish()

    def abort(self) -> None:
        self._waiting.clear()
        if self._session is not None:
            self._session.close()
            self._session = None

    def _send(self) -> None:
        if not self._waiting:
            return
        if self._session is None:
            self._session = self._store.connect(writing=True)
        self._session.ingest(
            self._stage.schema,
            self._stage.area,
            pa.Table.from_batches(self._waiting),
            "Staging rows",
        )
        self._waiting.clear()


class JdbcPageSink(ConnectorPageSink):
    def __init__(self, store: Store, handle: JdbcTableHandle, writer: StageWriter) -> None:
        self._store = store
        self._handle = handle
        self._writer = writer
        self._names = [name for name, _, _ in store.stage_columns(handle)]
        self._arrow_types = [arrow_type for _, arrow_type, _ in store.stage_columns(handle)]

    def append_page(self, page: Page) -> None:
        self.stage(page, pa.array(np.full(page.num_rows, Operation.INSERT, np.int16)), None, None)

    def stage(
        self, page: Page, operations: pa.Array, cases: pa.Array | None, row_ids: pa.Array | None
    ) -> None:
        count, columns = page.num_rows, self._handle.columns
        data = [
            self._store.transported(column, page.column(index))
            for index, column in enumerate(columns)
        ]
        parts = len(self._names) - 3 - len(columns)
        keys = self._keys(row_ids) if row_ids is not None else [pa.nulls(count)] * parts
        control = [
            pa.array(np.full(count, self._writer.attempt)),
            operations,
            cases if cases is not None else pa.nulls(count),
        ]
        arrays = [
            array.cast(arrow_type)
            for array, arrow_type in zip([*control, *keys, *data], self._arrow_types, strict=True)
        ]
        self._writer.write(pa.RecordBatch.from_arrays(arrays, names=self._names))

    def _keys(self, row_ids: pa.Array) -> list[pa.Array]:
        parts = row_ids.flatten() if pa.types.is_struct(row_ids.type) else [row_ids]
        return self._store.transported_key(self._handle, parts)

    def finish(self) -> list[bytes]:
        return self._writer.finish()

    def abort(self) -> None:
        self._writer.abort()


class JdbcMergeSink(ConnectorMergeSink):
    def __init__(self, page_sink: JdbcPageSink, column_count: int) -> None:
        self._page_sink = page_sink
        self._column_count = column_count

    def store_merged_rows(self, page: Page) -> None:
        inserted = rows_with(page, self._column_count, [Operation.INSERT])
        if inserted.num_rows:
            self._page_sink.append_page(inserted.select(list(range(self._column_count))))
        if inserted.num_rows == page.num_rows:
            return
        changed = rows_with(page, self._column_count, [Operation.DELETE, Operation.UPDATE])
        if inserted.num_rows + changed.num_rows != page.num_rows:
            raise ValueError(
                "A sink that changes only updated columns gets operations 1, 2 and 3;"
                " this page has others"
            )
        channels = PageLayout.of_stored(page, self._column_count).after
        cases = changed.column(channels.case_number) if channels.case_number is not None else None
        operations = changed.column(channels.operation).cast(pa.int16())
        data = changed.select(list(channels.columns))
        self._page_sink.stage(data, operations, cases, changed.column(channels.row_id))

    def finish(self) -> list[bytes]:
        return self._page_sink.finish()

    def abort(self) -> None:
        self._page_sink.abort()


@dataclass(frozen=True)
class JdbcPageSinkProvider(ConnectorPageSinkProvider):
    store: Store

    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> JdbcPageSink:
        insert_handle = own(insert_handle, JdbcInsertTableHandle)
        return JdbcPageSink(
            self.store, insert_handle.table_handle, self.store.stage_writer(insert_handle.stage)
        )

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> JdbcMergeSink:
        merge_handle = own(merge_handle, JdbcMergeTableHandle)
        handle = merge_handle.table_handle
        return JdbcMergeSink(
            JdbcPageSink(self.store, handle, self.store.stage_writer(merge_handle.stage)),
            len(handle.columns),
        )


def file_of(directory: str, attempt: int) -> Path:
    return Path(directory) / f"{attempt:016x}.arrow"


def read_fragments(fragments: Collection[bytes]) -> dict[int, int]:
    entries = [json.loads(fragment) for fragment in fragments]
    return {entry["attempt"]: entry["rows"] for entry in entries}
