"""Splits and page sources of memory tables."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.private import PrivateDirectory
from rowmerge_nb.base.temporary_space import needs_temporary_space
from rowmerge_nb.connectors.memory.updatable_pages import (
    MemoryUpdatablePageSource,
    MemoryUpdatableTableHandle,
)
from rowmerge_nb.connectors.shared.hashing import hashed_buckets
from rowmerge_nb.spi import (
    ColumnHandle,
    ConnectorPageSource,
    ConnectorPageSourceProvider,
    ConnectorSession,
    ConnectorSplit,
    ConnectorTableHandle,
    ConnectorTransactionHandle,
    Page,
    PagesSource,
    SchemaTableName,
    own,
)

PAGE_ROWS = 65_536
INLINE_BYTES = 1_048_576
SPLIT_PAGES = 8


@dataclass(frozen=True)
class MemoryRowIdColumn(ColumnHandle):
    """The row id column, which its class identifies, not its name."""


@dataclass(frozen=True)
class MemorySplit(ConnectorSplit):
    """Some pages of a table's version.

    Args:
        data: the pages as an Arrow stream, for small tables.
    """

    first: int
    data: bytes | None = None
    path: str | None = None
    pages: tuple[int, int] = (0, 0)

    @property
    def carries_rows(self) -> bool:
        return self.data is not None

    @property
    def remotely_accessible(self) -> bool:
        return self.path is None

    is_repeatable = True
    """A version does not change."""

    def with_rows(self) -> MemorySplit:
        if self.path is None:
            return self
        pages = [page for _, page in read_split(self)]
        return replace(make_splits(pa.Table.from_batches(pages))[0], first=self.first)


class SplitStore:
    """Creates splits, and holds them as long as their version.

    Large tables are written to an Arrow file.
    """

    def __init__(self) -> None:
        self._splits: dict[tuple[SchemaTableName, int], list[MemorySplit]] = {}
        self._dropped: list[tuple[str, set[int]]] = []
        self._directory: PrivateDirectory | None = None

    def splits(self, name: SchemaTableName, version: int, data: pa.Table) -> Sequence[MemorySplit]:
        key = (name, version)
        if key not in self._splits:
            self._splits[key] = (
                make_splits(data, self._file) if data.nbytes > INLINE_BYTES else make_splits(data)
            )
        return self._splits[key]

    def store(
        self, name: SchemaTableName, version: int, schema: pa.Schema, pages: Iterable[Page]
    ) -> pa.Table:
        """Store pages as they arrive; return them as a table, which maps a file if it is large."""
        rest, first = iter(pages), list[pa.RecordBatch]()
        for page in rest:
            first.append(page)
            if sum(page.nbytes for page in first) > INLINE_BYTES:
                break
        else:
            data = pa.Table.from_batches(first, schema=schema)
            self._splits[name, version] = make_splits(data)
            return data
        path = self._file()
        self._splits[name, version] = _in_file(path, schema, chain(first, rest))
        with pa.memory_map(path) as mapped:
            return pa.ipc.open_file(mapped).read_all()

    def forget(self, name: SchemaTableName, kept_versions: set[int], readers: set[int]) -> None:
        """Drop the splits of other versions. Files are removed when all open readers have ended."""
        for key in [key for key in self._splits if key[0] == name and key[1] not in kept_versions]:
            paths = {split.path for split in self._splits.pop(key) if split.path}
            self._dropped.extend((path, set(readers)) for path in paths)

    def sweep(self, readers: set[int]) -> None:
        """Remove dropped files whose possible readers have ended."""
        waiting = []
        for path, possible_readers in self._dropped:
            if possible_readers & readers:
                waiting.append((path, possible_readers & readers))
            else:
                Path(path).unlink(missing_ok=True)
        self._dropped = waiting

    def close(self) -> None:
        self._splits.clear()
        if self._directory is not None:
            self._directory.remove()
            self._directory = None

    @property
    def folder(self) -> str:
        if self._directory is None:
            self._directory = PrivateDirectory()
            weakref.finalize(self, self._directory.remove)
        return str(self._directory.path)

    def _file(self) -> str:
        return f"{self.folder}/{uuid.uuid4().hex}.arrow"


def make_splits(data: pa.Table, new_file: Any = None) -> list[MemorySplit]:
    """Split Arrow data: into one split with the data, or several that refer to a new file."""
    batches = data.to_batches(max_chunksize=PAGE_ROWS)
    if new_file is None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, data.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return [MemorySplit(0, data=bytes(sink.getvalue()))]
    return _in_file(str(new_file()), data.schema, batches)


def _in_file(path: str, schema: pa.Schema, batches: Iterable[Page]) -> list[MemorySplit]:
    with needs_temporary_space():
        sizes = _write(path, schema, batches)
    firsts = np.cumsum([0, *sizes])
    starts = range(0, len(sizes), SPLIT_PAGES)
    return [
        MemorySplit(int(firsts[s]), path=path, pages=(s, min(s + SPLIT_PAGES, len(sizes))))
        for s in starts
    ]


def _write(path: str, schema: pa.Schema, batches: Iterable[Page]) -> list[int]:
    sizes = []
    try:
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                sizes.append(batch.num_rows)
    except BaseException:
        # An incomplete file would only fill the disk.
        Path(path).unlink(missing_ok=True)
        raise
    return sizes


def read_split(split: MemorySplit) -> Iterator[tuple[int, Page]]:
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
    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        handle: Any = table_handle
        split = own(split, MemorySplit)
        names = [column.name for column in columns]
        bucket_by = handle.columns_of("bucketed_by")

        def channel(column: ColumnHandle, position: int, page: Page) -> pa.Array:
            if isinstance(column, MemoryRowIdColumn):
                return _row_ids(page, position, handle.bucket_count, bucket_by)
            if column.name not in handle.column_changes:
                return page.column(column.name)
            if column.name not in page.schema.names:
                return pa.nulls(page.num_rows, column.type.arrow)
            return page.column(column.name).cast(column.type.arrow)

        def pages() -> Iterator[Page]:
            for position, page in read_split(split):
                yield pa.RecordBatch.from_arrays(
                    [channel(column, position, page) for column in columns], names=names
                )

        source = PagesSource(pages())
        return (
            MemoryUpdatablePageSource(source, handle)
            if isinstance(handle, MemoryUpdatableTableHandle)
            else source
        )


def _row_ids(
    page: Page, first: int, bucket_count: int | None, bucketed_by: Sequence[str]
) -> pa.Array:
    positions = pa.array(np.arange(first, first + page.num_rows))
    if bucket_count is None:
        return positions
    buckets = hashed_buckets([page.column(name) for name in bucketed_by], bucket_count)
    return pa.StructArray.from_arrays([buckets, positions], names=["bucket", "position"])
