"""Reading and writing of memory tables in tasks: splits, page sources, sinks, bucket functions."""

from __future__ import annotations

import uuid
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.hashing import hash_columns
from rowmerge_nb.connectors.memory_changes import encode, positions_of
from rowmerge_nb.connectors.memory_updatable import MemoryUpdatablePageSource, MemoryUpdatableTableHandle
from rowmerge_nb.private import PrivateDirectory, needs_temporary_space
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSplit, own
from rowmerge_nb.spi.layout import BucketFunction
from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import rows_with, split_page
from rowmerge_nb.spi.page_sink import ConnectorPageSink, ConnectorPageSinkProvider
from rowmerge_nb.spi.page_source import ConnectorPageSourceProvider, PagesSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.connectors.transforms import Transform
    from rowmerge_nb.spi.handles import (
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorSession,
        ConnectorTableHandle,
        ConnectorTransactionHandle,
        SchemaTableName,
    )
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_source import ConnectorPageSource

PAGE_ROWS = 65_536
INLINE_BYTES = 1_048_576
SPLIT_PAGES = 8


@dataclass(frozen=True)
class RowIdColumn(ColumnHandle):
    """The row id: told by its class, since a table may have a column of any name."""


@dataclass(frozen=True)
class MemorySplit(ConnectorSplit):
    """Some pages of a table's version.

    Args:
        first: position of the first row.
        data: the pages as an Arrow stream, for small tables.
        path: the Arrow file that holds all pages of the version, for large ones.
        pages: which pages of the file, first and behind the last.
    """

    first: int
    data: bytes | None = None
    path: str | None = None
    pages: tuple[int, int] = (0, 0)

    @property
    def carries_rows(self) -> bool:
        """A small table's rows are in its split."""
        return self.data is not None

    @property
    def remotely_accessible(self) -> bool:
        """A large table's rows are in a file of this machine."""
        return self.path is None

    def with_rows(self) -> MemorySplit:
        """Give a split that carries the rows of this one."""
        if self.path is None:
            return self
        pages = [page for _, page in read_split(self)]
        return replace(make_splits(pa.Table.from_batches(pages))[0], first=self.first)


class SplitStore:
    """Makes splits and keeps them as long as their version is kept.

    Large tables are written once per version to an Arrow file, which the tasks map into memory.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[SchemaTableName, int], list[MemorySplit]] = {}
        self._dropped: list[tuple[str, set[int]]] = []
        self._directory: PrivateDirectory | None = None

    def splits(self, name: SchemaTableName, version: int, data: pa.Table) -> Sequence[MemorySplit]:
        """Give the splits of a version."""
        key = (name, version)
        if key not in self._made:
            self._made[key] = make_splits(data, self._file) if data.nbytes > INLINE_BYTES else make_splits(data)
        return self._made[key]

    def forget(self, name: SchemaTableName, kept: set[int], readers: set[int]) -> None:
        """Drop the splits of versions that are kept no longer; their files go when those who may read them are done.

        Args:
            name: the table.
            kept: numbers of the versions that are kept.
            readers: numbers of the transactions that are open now.
        """
        for key in [key for key in self._made if key[0] == name and key[1] not in kept]:
            paths = {split.path for split in self._made.pop(key) if split.path}
            self._dropped.extend((path, set(readers)) for path in paths)

    def sweep(self, readers: set[int]) -> None:
        """Remove dropped files whose possible readers have all ended; ``readers`` are those that are open now."""
        waiting = []
        for path, before in self._dropped:
            if before & readers:
                waiting.append((path, before & readers))
            else:
                Path(path).unlink(missing_ok=True)
        self._dropped = waiting

    def close(self) -> None:
        """Remove all files."""
        self._made.clear()
        if self._directory is not None:
            self._directory.remove()
            self._directory = None

    def _file(self) -> Path:
        if self._directory is None:
            self._directory = PrivateDirectory()
            weakref.finalize(self, self._directory.remove)
        return self._directory.path / f"{uuid.uuid4().hex}.arrow"


def make_splits(data: pa.Table, new_file: Any = None) -> list[MemorySplit]:
    """Cut Arrow data into splits: one that carries the data, or several that point into a file.

    Args:
        data: the rows.
        new_file: gives the path of a new file; None to carry the data in the split.

    Raises:
        SetupError: the file cannot be written.

    >>> [split.first for split in make_splits(pa.table({"a": [1, 2, 3]}))]
    [0]
    """
    batches = data.to_batches(max_chunksize=PAGE_ROWS)
    if new_file is None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, data.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return [MemorySplit(0, data=bytes(sink.getvalue()))]
    path = str(new_file())
    with needs_temporary_space():
        _write(path, data.schema, batches)
    firsts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    starts = range(0, len(batches), SPLIT_PAGES)
    return [MemorySplit(int(firsts[s]), path=path, pages=(s, min(s + SPLIT_PAGES, len(batches)))) for s in starts]


def _write(path: str, schema: pa.Schema, batches: Sequence[Page]) -> None:
    try:
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    except OSError:
        # On a full disk a part of the rows would only be in the way.
        Path(path).unlink(missing_ok=True)
        raise


def read_split(split: MemorySplit) -> Iterator[tuple[int, Page]]:
    """Give the pages of a split, each with the position of its first row."""
    position = split.first
    if split.data is not None:
        with pa.ipc.open_stream(pa.py_buffer(split.data)) as stream:
            for page in stream:
                yield position, page
                position += page.num_rows
        return
    with pa.memory_map(split.path) as mapped, pa.ipc.open_file(mapped) as file:
        for number in range(*split.pages):
            page = file.get_batch(number)
            yield position, page
            position += page.num_rows


class MemoryPageSourceProvider(ConnectorPageSourceProvider):
    """Opens splits."""

    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        """Give a source of the wanted columns; the row id is made from the position while reading."""
        handle: Any = table_handle
        split = own(split, MemorySplit)
        names = [column.name for column in columns]
        bucket_by = handle.columns_of("bucketed_by")

        def pages() -> Iterator[Page]:
            for position, page in read_split(split):
                arrays = [
                    _row_ids(page, position, handle.bucket_count, bucket_by)
                    if isinstance(column, RowIdColumn)
                    else page.column(column.name)
                    for column in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=names)

        source = PagesSource(pages())
        return MemoryUpdatablePageSource(source, handle) if isinstance(handle, MemoryUpdatableTableHandle) else source


def _row_ids(page: Page, first: int, bucket_count: int | None, bucketed_by: Sequence[str]) -> pa.Array:
    positions = pa.array(np.arange(first, first + page.num_rows))
    if bucket_count is None:
        return positions
    buckets = _buckets([page.column(name) for name in bucketed_by], bucket_count)
    return pa.StructArray.from_arrays([buckets, positions], names=["bucket", "position"])


def _buckets(columns: Sequence[pa.Array], count: int) -> pa.Array:
    return pa.array((hash_columns(columns) % np.uint64(count)).astype(np.int32))


@dataclass(frozen=True)
class MemoryBucketFunction(BucketFunction):
    """Bucket of a new row: hash of its bucket columns, or of its partition values, modulo the number of buckets.

    >>> page = pa.RecordBatch.from_pydict({"id": [1, 2, 1]})
    >>> buckets = MemoryBucketFunction(4, (0,)).get_buckets(page)
    >>> buckets[0] == buckets[2]
    True
    """

    count: int
    arguments: tuple[int, ...]
    transforms: tuple[Transform, ...] = ()

    @property
    def bucket_count(self) -> int:
        """How many buckets there are."""
        return self.count

    def get_buckets(self, page: Page) -> pa.Array:
        """Give the bucket of every row."""
        columns = [page.column(argument) for argument in self.arguments]
        if self.transforms:
            columns = [transform.apply(column) for transform, column in zip(self.transforms, columns, strict=True)]
        return _buckets(columns, self.count)


@dataclass(frozen=True)
class MemoryRowIdBucketFunction(BucketFunction):
    """Bucket of a row that is there already: it is part of the row id."""

    count: int

    @property
    def bucket_count(self) -> int:
        """How many buckets there are."""
        return self.count

    def get_buckets(self, page: Page) -> pa.Array:
        """Give the bucket of every row."""
        return page.column(0).field("bucket")


class MemoryPageSink(ConnectorPageSink):
    """Keeps rows until the end and gives them as fragments."""

    def __init__(self) -> None:
        self._pages: list[Page] = []

    def append_page(self, page: Page) -> None:
        """Keep a page."""
        self._pages.append(page)

    def finish(self) -> list[bytes]:
        """Give the kept rows."""
        return list(encode("insert", self._pages))

    def abort(self) -> None:
        """Drop the kept rows."""
        self._pages.clear()


class MemoryMergeSink(ConnectorMergeSink):
    """Sorts rows by operation: positions to delete, rows to replace, rows to append. Both paradigms and eras."""

    def __init__(self, column_count: int) -> None:
        self._column_count = column_count
        self._inserts = MemoryPageSink()
        self._deletes: list[Page] = []
        self._updates: list[Page] = []

    def store_merged_rows(self, page: Page) -> None:
        """Keep the rows of a page."""
        updates = rows_with(page, self._column_count, [Operation.UPDATE])
        if updates.num_rows:
            self._updates.append(self._with_position(updates))
            page = rows_with(page, self._column_count, set(Operation) - {Operation.UPDATE})
        parts = split_page(page, self._column_count)
        if parts.deletions is not None:
            positions = positions_of(parts.deletions.column(self._column_count))
            self._deletes.append(pa.RecordBatch.from_arrays([positions], names=["position"]))
        if parts.insertions is not None:
            self._inserts.append_page(parts.insertions)

    def _with_position(self, page: Page) -> Page:
        data = page.select(list(range(self._column_count)))
        return data.append_column("position", positions_of(page.column(page.num_columns - 1)))

    def finish(self) -> list[bytes]:
        """Give what was kept, one or more fragments per kind."""
        return [*encode("delete", self._deletes), *encode("update", self._updates), *self._inserts.finish()]

    def abort(self) -> None:
        """Drop what was kept."""
        self._inserts.abort()
        self._deletes.clear()
        self._updates.clear()


class MemoryPageSinkProvider(ConnectorPageSinkProvider):
    """Makes sinks."""

    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> MemoryPageSink:
        """Make a sink for an INSERT."""
        return MemoryPageSink()

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> MemoryMergeSink:
        """Make a sink for a MERGE."""
        handle: Any = merge_handle.get_table_handle()
        return MemoryMergeSink(len(handle.metadata.columns))
