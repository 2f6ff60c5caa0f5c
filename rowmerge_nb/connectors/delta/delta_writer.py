"""Sinks: data files under unique names, which only the commit makes visible, and the rewriting of
files that lose rows.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet as pq

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.delta.delta_handles import (
    DeltaInsertTableHandle,
    DeltaMergeTableHandle,
    DeltaRowIdColumn,
    delta_table,
)
from rowmerge_nb.connectors.delta.delta_reader import read_file
from rowmerge_nb.connectors.delta.file_statistics import FileStatistics
from rowmerge_nb.connectors.delta.notes import is_running
from rowmerge_nb.connectors.delta.partitions import folder_of, groups
from rowmerge_nb.connectors.shared.copy_on_write import CopyOnWriteSink
from rowmerge_nb.connectors.shared.disk import writing
from rowmerge_nb.connectors.shared.encoding import encodings
from rowmerge_nb.connectors.shared.file_positions import ROW_ID_TYPE
from rowmerge_nb.connectors.shared.partitioned_sink import PartitionedSink
from rowmerge_nb.spi import (
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorPageSinkProvider,
    ConnectorSession,
    ConnectorTransactionHandle,
    Page,
    own,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.connectors.delta.delta_handles import DataFile, DeltaTableHandle

FILE_BYTES: Final = 256 * 1024 * 1024
GROUP_ROWS: Final = 524_288


class _FileWriter:
    def __init__(
        self, table: DeltaTableHandle, prefix: str, schema: pa.Schema, values: Sequence[str | None]
    ) -> None:
        folder = folder_of(table.partition_columns, values)
        name = f"{prefix}-{uuid.uuid4().hex}.parquet"
        self.path = f"{folder}/{name}" if folder else name
        self._table, self._schema, self._values = table, schema, values
        self._location = Path(table.location) / self.path
        self._statistics = FileStatistics()
        self._footers: list[pq.FileMetaData] = []
        self._waiting: list[Page] = []
        self._waiting_rows = 0
        self._writer: pq.ParquetWriter | None = None
        with self._errors():
            self._location.parent.mkdir(parents=True, exist_ok=True)
            self._stream = pa.OSFile(str(self._location), "wb")

    @property
    def size(self) -> int:
        return int(self._stream.tell())

    def append(self, rows: Page) -> None:
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        if self._waiting_rows >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        try:
            rows = pa.Table.from_batches(self._waiting).cast(self._schema)
            self._statistics.look_at(rows)
            with self._errors():
                if self._writer is None:
                    self._writer = pq.ParquetWriter(
                        self._stream,
                        self._schema,
                        compression="zstd",
                        **encodings(rows),
                        store_decimal_as_integer=True,
                        metadata_collector=self._footers,
                    )
                self._writer.write_table(rows, row_group_size=GROUP_ROWS)
        except BaseException:
            self.abort()
            raise
        self._waiting.clear()
        self._waiting_rows = 0

    def close(self) -> dict[str, Any]:
        self.flush()
        try:
            assert self._writer is not None, "a file is made for rows"
            with self._errors():
                self._writer.close()
                size = self.size
                self._stream.close()
        except BaseException:
            self.abort()
            raise
        partition = dict(zip(self._table.partition_columns, self._values, strict=True))
        [footer] = self._footers
        return {
            "kind": "add",
            "path": self.path,
            "bytes": size,
            "rows": footer.num_rows,
            "partition": partition,
            "statistics": self._statistics.as_json(footer, self._schema),
        }

    @contextmanager
    def _errors(self) -> Iterator[None]:
        what = f"File '{self._location}' of Delta table '{self._table.name}'"
        with writing(what, "DELTA_LAKE_BAD_WRITE"):
            yield

    def abort(self) -> None:
        self._waiting.clear()
        if self._writer is not None:
            # Otherwise its destructor writes the file's end, and prints the error of a full disk.
            self._writer.is_open = False
        with suppress(OSError, pa.ArrowException):
            self._stream.close()
        remove(self._location)


def remove(path: Path) -> None:
    """Remove a file if it can be removed."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


class DeltaPageSink(PartitionedSink[_FileWriter]):
    def __init__(self, table: DeltaTableHandle, prefix: str) -> None:
        super().__init__(FILE_BYTES, partitioned=bool(table.partition_columns))
        self._table, self._prefix = table, prefix
        self._columns = [c.name for c in table.columns if c.name not in table.partition_columns]
        self._schema = pa.schema(
            [pa.field(c.name, c.type.arrow) for c in table.columns if c.name in self._columns]
        )

    def append_page(self, page: Page) -> None:
        super().append_page(page.rename_columns([column.name for column in self._table.columns]))

    def _groups(self, page: Page) -> Iterator[tuple[tuple[Any, ...], Page]]:
        return groups(self._table.partition_columns, page)

    def _open(self, values: tuple[Any, ...]) -> _FileWriter:
        return _FileWriter(self._table, self._prefix, self._schema, values)

    def _write(self, file: _FileWriter, rows: Page) -> None:
        file.append(rows.select(self._columns))

    def _entry(self, values: tuple[Any, ...], file: _FileWriter) -> dict[str, Any]:
        return file.close()

    def _remove(self, path: str) -> None:
        remove(Path(self._table.location) / path)

    def _require_running(self, *, now: bool = False) -> None:
        if not is_running(Path(self._table.location), self._prefix):
            raise ConnectorError(
                f"The statement that writes to Delta table '{self._table.name}' has ended",
                code="TRANSACTION_CONFLICT",
                hint="Run the statement again.",
            )


class DeltaPageSinkProvider(ConnectorPageSinkProvider):
    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> DeltaPageSink:
        insert_handle = own(insert_handle, DeltaInsertTableHandle)
        return DeltaPageSink(insert_handle.table_handle, insert_handle.prefix)

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> CopyOnWriteSink:
        merge_handle = own(merge_handle, DeltaMergeTableHandle)
        table = delta_table(merge_handle.get_table_handle())
        return CopyOnWriteSink(
            DeltaPageSink(table, merge_handle.prefix),
            len(table.columns),
            len(merge_handle.files),
            partial(_rows_with_ids, merge_handle.files, table),
        )


def _rows_with_ids(
    files: Sequence[DataFile], table: DeltaTableHandle, number: int
) -> Iterator[Page]:
    columns = [ColumnHandle(column.name, column.type) for column in table.columns]
    row_id = DeltaRowIdColumn("$row_id", ROW_ID_TYPE)
    return read_file(table, files[number], [*columns, row_id], number=number)
