"""Sinks: data files under unique names, which only the commit makes visible, and the rewriting of
files that lose rows.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.connectors.delta.delta_handles import (
    DeltaInsertTableHandle,
    DeltaMergeTableHandle,
    delta_table,
)
from rowmerge_nb.connectors.delta.delta_reader import read_file
from rowmerge_nb.connectors.delta.file_statistics import FileStatistics
from rowmerge_nb.connectors.delta.notes import is_running
from rowmerge_nb.connectors.delta.partitions import folder_of, groups
from rowmerge_nb.connectors.shared.disk import writing
from rowmerge_nb.spi import (
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeSink,
    ConnectorMergeTableHandle,
    ConnectorPageSink,
    ConnectorPageSinkProvider,
    ConnectorSession,
    ConnectorTransactionHandle,
    Operation,
    Page,
    own,
    row_ids_of,
    split_page,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.connectors.delta.delta_handles import DataFile, DeltaTableHandle

FILE_BYTES: Final = 256 * 1024 * 1024
GROUP_ROWS: Final = 524_288
GATHERED_BYTES: Final = 128 * 1024 * 1024
OPEN_FILES: Final = 100


class _FileWriter:
    """A Parquet file that is being written."""

    def __init__(
        self, table: DeltaTableHandle, prefix: str, schema: pa.Schema, values: Sequence[str | None]
    ) -> None:
        folder = folder_of(table.partition_columns, values)
        name = f"{prefix}-{uuid.uuid4().hex}.parquet"
        self.path = f"{folder}/{name}" if folder else name
        self._table, self._schema, self._values = table, schema, values
        self._location = Path(table.location) / self.path
        self._statistics = FileStatistics()
        self._waiting: list[Page] = []
        self._waiting_rows = 0
        with self._errors():
            self._location.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._location, schema, compression="zstd")

    @property
    def size(self) -> int:
        return self._location.stat().st_size

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
            self._statistics.add(rows)
            with self._errors():
                self._writer.write_table(rows, row_group_size=GROUP_ROWS)
        except BaseException:
            self.abort()
            raise
        self._waiting.clear()
        self._waiting_rows = 0

    def close(self) -> dict[str, Any]:
        """Finish the file and return its description; remove it on failure."""
        self.flush()
        try:
            with self._errors():
                self._writer.close()
                size = self.size
        except BaseException:
            self.abort()
            raise
        partition = dict(zip(self._table.partition_columns, self._values, strict=True))
        return {
            "kind": "add",
            "path": self.path,
            "bytes": size,
            "rows": self._statistics.rows,
            "partition": partition,
            "statistics": self._statistics.as_json(),
        }

    @contextmanager
    def _errors(self) -> Iterator[None]:
        what = f"File '{self._location}' of Delta table '{self._table.name}'"
        with writing(what, "DELTA_LAKE_BAD_WRITE"):
            yield

    def abort(self) -> None:
        """Remove the file."""
        self._waiting.clear()
        # Otherwise its destructor writes the file's end, and prints the error of a full disk.
        self._writer.is_open = False
        remove(self._location)


def remove(path: Path) -> None:
    """Remove a file if it can be removed."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


class DeltaPageSink(ConnectorPageSink):
    """Writes rows to data files, one open file per partition."""

    def __init__(self, table: DeltaTableHandle, prefix: str) -> None:
        self._table, self._prefix = table, prefix
        self._columns = [c for c in table.columns if c.name not in table.partition_columns]
        self._schema = pa.schema([pa.field(c.name, c.type.arrow) for c in self._columns])
        self._writers: dict[tuple[str | None, ...], _FileWriter] = {}
        self._entries: list[dict[str, Any]] = []
        self._gathered: list[Page] = []
        self._gathered_bytes = 0

    def append_page(self, page: Page) -> None:
        """Write the rows of a page, or gather them, since a page may have rows of many partitions."""
        page = page.rename_columns([column.name for column in self._table.columns])
        if not self._table.partition_columns:
            self._append((), page)
            return
        self._gathered.append(page)
        self._gathered_bytes += page.nbytes
        if self._gathered_bytes >= GATHERED_BYTES:
            self._write_gathered()

    def _write_gathered(self) -> None:
        if not self._gathered:
            return
        page = pa.concat_batches(self._gathered)
        self._gathered.clear()
        self._gathered_bytes = 0
        for values, rows in groups(self._table.partition_columns, page):
            self._append(values, rows.select([column.name for column in self._columns]))
            if values in self._writers:
                # Gathered slices would keep the whole page in memory.
                self._writers[values].flush()

    def _append(self, values: tuple[str | None, ...], rows: Page) -> None:
        # Removed and added again, so that the first one is the least recently used.
        writer = self._writers.pop(values, None)
        if writer is None:
            if len(self._writers) >= OPEN_FILES:
                self._close(next(iter(self._writers)))
            require_running(self._table, self._prefix)
            writer = _FileWriter(self._table, self._prefix, self._schema, values)
        self._writers[values] = writer
        writer.append(rows)
        if writer.size >= FILE_BYTES:
            self._close(values)

    def _close(self, values: tuple[str | None, ...]) -> None:
        self._entries.append(self._writers.pop(values).close())

    def finish(self) -> list[bytes]:
        """Close the files and return their fragments."""
        self._write_gathered()
        for values in list(self._writers):
            self._close(values)
        if self._entries:
            try:
                require_running(self._table, self._prefix)
            except ConnectorError:
                self.abort()
                raise
        return [json.dumps(entry).encode() for entry in self._entries]

    def abort(self) -> None:
        """Remove the files of this attempt."""
        for writer in self._writers.values():
            writer.abort()
        for entry in self._entries:
            remove(Path(self._table.location) / entry["path"])
        self._writers.clear()
        self._entries.clear()
        self._gathered.clear()


def require_running(table: DeltaTableHandle, prefix: str) -> None:
    """Raise TRANSACTION_CONFLICT in a task whose statement has ended: nothing would remove its
    files.
    """
    if not is_running(Path(table.location), prefix):
        raise ConnectorError(
            f"The statement that writes to Delta table '{table.name}' has ended",
            code="TRANSACTION_CONFLICT",
            hint="Run the statement again.",
        )


class DeltaMergeSink(ConnectorMergeSink):
    """Writes inserted rows, and the remaining rows of each file that loses some."""

    def __init__(self, table: DeltaTableHandle, files: tuple[DataFile, ...], prefix: str) -> None:
        self._table, self._files = table, files
        self._rows = DeltaPageSink(table, prefix)
        self._deletes: dict[int, list[npt.NDArray[np.int64]]] = defaultdict(list)
        self._counts = {"inserted": 0, "updated": 0, "deleted": 0}

    def store_merged_rows(self, page: Page) -> None:
        width = len(self._table.columns)
        parts = split_page(page, width)
        if parts.deletions is not None:
            self._delete(row_ids_of(parts.deletions))
        if parts.insertions is not None:
            self._rows.append_page(parts.insertions)
        operations = page.column("operation")
        for word, operation in (
            ("inserted", Operation.INSERT),
            ("deleted", Operation.DELETE),
            ("updated", Operation.UPDATE_INSERT),
        ):
            self._counts[word] += pc.sum(pc.equal(operations, operation)).as_py() or 0

    def _delete(self, ids: pa.Array) -> None:
        numbers, positions = (
            pc.struct_field(ids, [i]).to_numpy(zero_copy_only=False) for i in range(2)
        )
        order = np.argsort(numbers, kind="stable")
        file_numbers, starts = np.unique(numbers[order], return_index=True)
        if len(file_numbers) and not 0 <= file_numbers[0] <= file_numbers[-1] < len(self._files):
            raise ValueError(
                f"Row ids name files {file_numbers[0]} to {file_numbers[-1]} of"
                f" {len(self._files)}: they were not read for this merge"
            )
        for number, rows in zip(
            file_numbers.tolist(), np.split(positions[order], starts[1:]), strict=True
        ):
            self._deletes[number].append(rows)

    def finish(self) -> list[bytes]:
        """Rewrite the files that lose rows, close all files and return their fragments."""
        if not self._deletes and not any(self._counts.values()):
            return []
        removals = [
            {"kind": "remove", "file": number, "copied": self._copy_rest(number)}
            for number in sorted(self._deletes)
        ]
        self._deletes.clear()
        counts = {"kind": "counts", **self._counts}
        self._counts = dict.fromkeys(self._counts, 0)
        fragments = [json.dumps(entry).encode() for entry in (*removals, counts)]
        return [*self._rows.finish(), *fragments]

    def _copy_rest(self, number: int) -> int:
        deleted = ascending(np.concatenate(self._deletes[number]))
        columns = [ColumnHandle(column.name, column.type) for column in self._table.columns]
        copied, end = 0, 0
        for first, page in read_file(self._table, self._files[number], columns):
            end = first + page.num_rows
            low, high = np.searchsorted(deleted, [first, end])
            alive = np.ones(page.num_rows, bool)
            alive[deleted[low:high] - first] = False
            rest = page if low == high else page.filter(pa.array(alive))
            copied += rest.num_rows
            if rest.num_rows:
                self._rows.append_page(rest)
        if len(deleted) and not 0 <= deleted[0] <= deleted[-1] < end:
            raise ValueError(
                f"Row ids name positions {deleted[0]} to {deleted[-1]} of a file of {end} rows"
            )
        return copied

    def abort(self) -> None:
        """Remove the files of this attempt."""
        self._rows.abort()
        self._deletes.clear()


class DeltaPageSinkProvider(ConnectorPageSinkProvider):
    """Creates sinks."""

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
    ) -> DeltaMergeSink:
        merge_handle = own(merge_handle, DeltaMergeTableHandle)
        table = delta_table(merge_handle.get_table_handle())
        return DeltaMergeSink(table, merge_handle.files, merge_handle.prefix)
