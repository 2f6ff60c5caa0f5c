"""The tasks of an audit: rows with their hashes, a sink that stores hashes, and passes that compare
and find rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.arrow import Batches, conform
from rowmerge_nb.engine.tasks.bags import Bag
from rowmerge_nb.engine.tasks.row_hashes import among, row_hashes
from rowmerge_nb.spi.handles import (
    ColumnHandle,
    ConnectorMergeTableHandle,
    ConnectorSplit,
    ConnectorTableHandle,
    own,
)
from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page_sink import ConnectorPageSinkProvider
from rowmerge_nb.spi.page_source import (
    ConnectorPageSource,
    ConnectorPageSourceProvider,
    PagesSource,
)
from rowmerge_nb.spi.types import BIGINT, row_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.row_hashes import Hashes
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTransactionHandle
    from rowmerge_nb.spi.page import Page, PageLayout

ROW_ID: Final = row_of([("position", BIGINT), ("hash", BIGINT)])
"""The position of a row in the scan, and its hash: a sink gets only the row id of a removed row."""
_NEW_ROWS: Final = (Operation.INSERT, Operation.UPDATE, Operation.UPDATE_INSERT)
_GATHERED_HASHES: Final = 1 << 20


def page_hashes(page: Page, types: Sequence[pa.DataType]) -> Hashes:
    columns = [conform(page.column(index), arrow_type) for index, arrow_type in enumerate(types)]
    return row_hashes(columns, page.num_rows)


# -- reading


@dataclass(frozen=True)
class AuditedColumn(ColumnHandle):
    """The row id of an audit."""


@dataclass(frozen=True)
class AuditedTableHandle(ConnectorTableHandle):
    """A table in an earlier state; `name` identifies it among the audited ones."""

    name: Any
    table: ConnectorTableHandle
    transaction: ConnectorTransactionHandle
    provider: ConnectorPageSourceProvider
    columns: tuple[ColumnHandle, ...]


@dataclass(frozen=True)
class AuditedSplit(ConnectorSplit):
    """A split of the store, numbered within the table."""

    split: Any
    number: int

    @property
    def carries_rows(self) -> bool:
        return bool(getattr(self.split, "carries_rows", False))

    @property
    def remotely_accessible(self) -> bool:
        return bool(getattr(self.split, "remotely_accessible", True))

    @property
    def is_repeatable(self) -> bool:
        return bool(getattr(self.split, "is_repeatable", False))

    def with_rows(self) -> AuditedSplit:
        return AuditedSplit(self.split.with_rows(), self.number)


class AuditingSourceProvider(ConnectorPageSourceProvider):
    """Opens the store's page sources; a requested row id is the hash of all columns."""

    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        handle, audited = own(table_handle, AuditedTableHandle), own(split, AuditedSplit)

        def opened(read: Sequence[ColumnHandle]) -> ConnectorPageSource:
            return handle.provider.create_page_source(
                handle.transaction, session, audited.split, handle.table, read
            )

        if not any(isinstance(column, AuditedColumn) for column in columns):
            return opened(columns)
        return _IdentifiedSource(opened(handle.columns), handle.columns, columns, audited.number)


class _IdentifiedSource(PagesSource):
    def __init__(
        self,
        source: ConnectorPageSource,
        read: Sequence[ColumnHandle],
        requested: Sequence[ColumnHandle],
        split: int,
    ) -> None:
        self._source = source
        super().__init__(self._identified(read, requested, split))

    def _identified(
        self, read: Sequence[ColumnHandle], requested: Sequence[ColumnHandle], split: int
    ) -> Iterator[Page]:
        types = [column.type.arrow for column in read]
        indexes = {column.name: index for index, column in enumerate(read)}
        position = split << 40
        while (page := self._source.get_next_page()) is not None:
            numbers = pa.array(np.arange(position, position + page.num_rows))
            hashes = pa.array(page_hashes(page, types).view(np.int64))
            position += page.num_rows
            row_id = pa.StructArray.from_arrays([numbers, hashes], names=["position", "hash"])
            arrays = [
                row_id if isinstance(c, AuditedColumn) else page.column(indexes[c.name])
                for c in requested
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=[column.name for column in requested])

    def close(self) -> None:
        self._source.close()


# -- the sink


@dataclass(frozen=True)
class AuditingMergeHandle(ConnectorMergeTableHandle):
    """The target of an audited statement, with the types of its columns."""

    types: tuple[pa.DataType, ...]


class AuditingSinkProvider(ConnectorPageSinkProvider):
    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> ConnectorMergeSink:
        return _AuditingSink(own(merge_handle, AuditingMergeHandle).types)


class _AuditingSink(ConnectorMergeSink):
    """Records the hashes of removed and added rows; its one fragment is their difference."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = types
        self._added: list[Hashes] = []
        self._removed: list[Hashes] = []
        self._positions: list[npt.NDArray[np.int64]] = []

    def store_merged_rows(self, page: Page) -> None:
        width = len(self._types)
        operations = page.column(width)
        added = page.filter(pc.equal(operations, int(Operation.INSERT)))
        removed = page.column(page.num_columns - 1).filter(
            pc.equal(operations, int(Operation.DELETE))
        )
        self._added.append(page_hashes(added, self._types))
        position, hashed = removed.flatten()
        self._positions.append(position.to_numpy(zero_copy_only=False))
        self._removed.append(hashed.to_numpy(zero_copy_only=False).view(np.uint64))

    def finish(self) -> list[bytes]:
        """Return the difference.

        A row that several clauses remove counts once; all changes of a target row reach one sink.
        """
        _, first = np.unique(np.concatenate(self._positions), return_index=True)
        removed = np.concatenate(self._removed)[first]
        return [(Bag.of(np.concatenate(self._added)) - Bag.of(removed)).to_bytes()]


# -- comparing

BLOB: Final = pa.schema([("part", pa.int32()), ("side", pa.int8()), ("hashes", pa.binary())])
"""The output of `HashPass`: the hashes of one part, and their side, 1 or -1."""
NET: Final = pa.schema([("plus", pa.int64()), ("minus", pa.int64()), ("bag", pa.binary())])
"""The output of `NetPass`: the number of rows per side, and a bag of their difference."""


@dataclass(frozen=True)
class HashPass:
    """Reads splits of a table and yields the hashes of their rows, partitioned; `side` is -1 for
    rows to subtract.
    """

    scan: ScanPass
    side: int
    parts: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from self.blobs(
            self.scan.marked(number for batch in batches for number in batch.column(0).to_pylist())
        )

    def blobs(self, pages: Iterator[Page]) -> Iterator[pa.RecordBatch]:
        types = [field.type for field in self.scan.schema][:-1]
        waiting: list[Hashes] = []
        for page in pages:
            waiting.append(page_hashes(page, types))
            if sum(map(len, waiting)) >= _GATHERED_HASHES:
                yield self._blob(np.concatenate(waiting))
                waiting = []
        if waiting:
            yield self._blob(np.concatenate(waiting))

    def _blob(self, hashes: Hashes) -> pa.RecordBatch:
        part = (hashes % np.uint64(self.parts)).astype(np.int32)
        ordered = hashes[np.argsort(part, kind="stable")]
        ends = np.cumsum(np.bincount(part, minlength=self.parts))
        cells = [piece.tobytes() for piece in np.split(ordered, ends[:-1])]
        numbers = np.arange(self.parts, dtype=np.int32)
        sides = np.full(self.parts, self.side, np.int8)
        return pa.RecordBatch.from_arrays(
            [pa.array(numbers), pa.array(sides), pa.array(cells, pa.binary())], schema=BLOB
        )


@dataclass(frozen=True)
class NetPass:
    """Subtracts the two sides of the parts that arrive."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        sides: dict[int, list[Hashes]] = {1: [np.zeros(0, np.uint64)], -1: [np.zeros(0, np.uint64)]}
        for batch in batches:
            for side, blob in zip(
                batch.column("side").to_pylist(), batch.column("hashes"), strict=True
            ):
                sides[side].append(np.frombuffer(blob.as_buffer() or b"", np.uint64))
        plus, minus = (np.concatenate(sides[side]) for side in (1, -1))
        if not len(plus) and not len(minus):
            return
        bag = Bag.of(
            np.concatenate([plus, minus]),
            np.repeat(np.array([1, -1], np.int64), [len(plus), len(minus)]),
        )
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([len(plus)]),
                pa.array([len(minus)]),
                pa.array([bag.to_bytes()], pa.binary()),
            ],
            schema=NET,
        )


# -- finding


@dataclass(frozen=True)
class FindPass:
    """Reads splits of a table and yields the first rows of each task with these hashes; None
    matches any.
    """

    scan: ScanPass
    schema: pa.Schema
    hashes: Hashes | None
    keys: Hashes | None
    key: tuple[int, ...]
    most: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        pages = self.scan.marked(
            number for batch in batches for number in batch.column(0).to_pylist()
        )
        for page in self.matching_rows(pages):
            arrays = [conform(page.column(i), field.type) for i, field in enumerate(self.schema)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def matching_rows(self, pages: Iterator[Page]) -> Iterator[Page]:
        types = [field.type for field in self.scan.schema][:-1]
        rows_left = self.most
        for page in pages:
            matches = np.ones(page.num_rows, np.bool_)
            if self.hashes is not None:
                matches &= among(page_hashes(page, types), self.hashes)
            if self.keys is not None:
                matches &= among(
                    row_hashes([page.column(index) for index in self.key], page.num_rows), self.keys
                )
            positions = np.flatnonzero(matches)[:rows_left]
            rows_left -= len(positions)
            if len(positions):
                yield page.select(range(len(types))).take(pa.array(positions))
            if not rows_left:
                return


@dataclass(frozen=True)
class RowChooser:
    """Selects the joined rows that a trace retains, by ascending hashes of the changed rows or of
    their keys.

    Args:
        source: the source columns that must equal the target's, if known.
    """

    hashes: Hashes
    keys: Hashes
    target: tuple[str, ...]
    source: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    most: int

    def rows(
        self,
        layout: PageLayout,
        page: tuple[Page, Page],
        produced: npt.NDArray[np.int64],
        witness: Page | None,
        *,
        transformed: bool,
    ) -> npt.NDArray[np.int64]:
        """Return the positions of the selected rows before and after ``transform_page``; each row
        has become `produced` rows.
        """
        before, after = page
        row_id = (
            before.column(layout.before.row_id)
            if transformed
            else after.column(layout.after.row_id)
        )
        selected = among(
            row_id.field(1).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64), self.hashes
        )
        selected &= row_id.is_valid().to_numpy(zero_copy_only=False)
        operations = after.column(layout.after.operation).to_numpy(zero_copy_only=False)
        new = np.isin(operations, [int(operation) for operation in _NEW_ROWS])
        width = layout.column_count
        types = [after.schema.field(index).type for index in range(width)]
        created = among(page_hashes(after, types), self.hashes) & new
        key = [after.schema.get_field_index(name) for name in self.target]
        created |= (
            among(row_hashes([after.column(index) for index in key], after.num_rows), self.keys)
            & new
        )
        owner = np.repeat(np.arange(before.num_rows), produced)
        selected[owner[created]] = True
        for side, names in (("target", self.target), ("source", self.source)):
            selected |= self._by_witness(side, names, witness, before.num_rows)
        positions: npt.NDArray[np.int64] = np.flatnonzero(selected)[: self.most]
        return positions

    def _by_witness(
        self, side: str, names: Sequence[str], witness: Page | None, rows: int
    ) -> npt.NDArray[np.bool_]:
        no_rows = np.zeros(rows, np.bool_)
        if witness is None or not names or side not in witness.schema.names:
            return no_rows
        values = witness.column(side)
        indexes = [values.type.get_field_index(name) for name in names]
        if min(indexes) < 0:
            return no_rows
        try:
            columns = [
                conform(values.flatten()[index], arrow_type)
                for index, arrow_type in zip(indexes, self.types, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # A source key outside the range of the target's type matches no target row.
            return no_rows
        present: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
        return among(row_hashes(columns, rows), self.keys) & present
