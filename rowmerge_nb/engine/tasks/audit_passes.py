"""What an audit does in tasks: rows that carry what they were, a sink that stores hashes, and passes that compare and find rows."""

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
from rowmerge_nb.spi.page_source import ConnectorPageSource, ConnectorPageSourceProvider, PagesSource
from rowmerge_nb.spi.types import BIGINT, row_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.row_hashes import Hashes
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTransactionHandle
    from rowmerge_nb.spi.page import Page, PageLayout

ROW_ID: Final = row_of([("position", BIGINT), ("hash", BIGINT)])
"""A row by its position in the scan, and what it was: of a row that is taken away a sink gets nothing else."""
_THERE: Final = (Operation.INSERT, Operation.UPDATE, Operation.UPDATE_INSERT)
_GATHERED_HASHES: Final = 1 << 20


def page_hashes(page: Page, types: Sequence[pa.DataType]) -> Hashes:
    """Hash the rows of a page by its first columns, in the types that these have in pages."""
    columns = [conform(page.column(index), kind) for index, kind in enumerate(types)]
    return row_hashes(columns, page.num_rows)


# -- reading ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditedColumn(ColumnHandle):
    """The row id of an audit."""


@dataclass(frozen=True)
class AuditedTableHandle(ConnectorTableHandle):
    """A table as it was, to be read from the store that has it.

    Args:
        name: which of the audited tables it is.
        table: the store's own handle.
        transaction: the store's transaction.
        provider: what opens the store's page sources.
        columns: the store's handles of the columns.
    """

    name: Any
    table: ConnectorTableHandle
    transaction: ConnectorTransactionHandle
    provider: ConnectorPageSourceProvider
    columns: tuple[ColumnHandle, ...]


@dataclass(frozen=True)
class AuditedSplit(ConnectorSplit):
    """A split of the store, and its number among those of the table."""

    split: Any
    number: int

    @property
    def carries_rows(self) -> bool:
        """As the store has it."""
        return bool(getattr(self.split, "carries_rows", False))

    @property
    def remotely_accessible(self) -> bool:
        """As the store has it."""
        return bool(getattr(self.split, "remotely_accessible", True))

    @property
    def is_repeatable(self) -> bool:
        """As the store has it."""
        return bool(getattr(self.split, "is_repeatable", False))

    def with_rows(self) -> AuditedSplit:
        """Return one that any machine can read."""
        return AuditedSplit(self.split.with_rows(), self.number)


class AuditingSourceProvider(ConnectorPageSourceProvider):
    """Opens the store's page sources; where the row id is asked for, all columns are read, since it says what the row was."""

    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        """Return a source of the wanted columns."""
        handle, audited = own(table_handle, AuditedTableHandle), own(split, AuditedSplit)

        def opened(read: Sequence[ColumnHandle]) -> ConnectorPageSource:
            return handle.provider.create_page_source(handle.transaction, session, audited.split, handle.table, read)

        if not any(isinstance(column, AuditedColumn) for column in columns):
            return opened(columns)
        return _IdentifiedSource(opened(handle.columns), handle.columns, columns, audited.number)


class _IdentifiedSource(PagesSource):
    """Rows with their row ids; closing it closes the store's source."""

    def __init__(
        self, source: ConnectorPageSource, read: Sequence[ColumnHandle], wanted: Sequence[ColumnHandle], split: int
    ) -> None:
        self._source = source
        super().__init__(self._identified(read, wanted, split))

    def _identified(self, read: Sequence[ColumnHandle], wanted: Sequence[ColumnHandle], split: int) -> Iterator[Page]:
        types = [column.type.arrow for column in read]
        places = {column.name: place for place, column in enumerate(read)}
        position = split << 40
        while (page := self._source.get_next_page()) is not None:
            numbers = pa.array(np.arange(position, position + page.num_rows))
            hashes = pa.array(page_hashes(page, types).view(np.int64))
            position += page.num_rows
            row_id = pa.StructArray.from_arrays([numbers, hashes], names=["position", "hash"])
            arrays = [row_id if isinstance(c, AuditedColumn) else page.column(places[c.name]) for c in wanted]
            yield pa.RecordBatch.from_arrays(arrays, names=[column.name for column in wanted])

    def close(self) -> None:
        """Close the store's source."""
        self._source.close()


# -- the sink -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditingMergeHandle(ConnectorMergeTableHandle):
    """The table that an audited statement would have changed, with the types of its columns."""

    types: tuple[pa.DataType, ...]


class AuditingSinkProvider(ConnectorPageSinkProvider):
    """Makes the sinks of an audit, which write nothing."""

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> ConnectorMergeSink:
        """Make a sink."""
        return _AuditingSink(own(merge_handle, AuditingMergeHandle).types)


class _AuditingSink(ConnectorMergeSink):
    """Notes what rows are taken away and put in, by their hashes; its one fragment is the difference that they make."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = types
        self._added: list[Hashes] = []
        self._removed: list[Hashes] = []
        self._positions: list[npt.NDArray[np.int64]] = []

    def store_merged_rows(self, page: Page) -> None:
        """Take a page of changed rows: whole new ones, and of old ones the row ids."""
        width = len(self._types)
        operations = page.column(width)
        added = page.filter(pc.equal(operations, int(Operation.INSERT)))
        removed = page.column(page.num_columns - 1).filter(pc.equal(operations, int(Operation.DELETE)))
        self._added.append(page_hashes(added, self._types))
        position, hashed = removed.flatten()
        self._positions.append(position.to_numpy(zero_copy_only=False))
        self._removed.append(hashed.to_numpy(zero_copy_only=False).view(np.uint64))

    def finish(self) -> list[bytes]:
        """Return the difference; a row that several clauses take away goes once. All that is about a target row comes to one sink."""
        _, first = np.unique(np.concatenate(self._positions), return_index=True)
        removed = np.concatenate(self._removed)[first]
        return [(Bag.of(np.concatenate(self._added)) - Bag.of(removed)).to_bytes()]


# -- comparing ----------------------------------------------------------------------------------------------------------

BLOB: Final = pa.schema([("part", pa.int32()), ("side", pa.int8()), ("hashes", pa.binary())])
"""What `HashPass` gives: rows of a table, as hashes of one part of all hashes; on which side they are, 1 or -1."""
NET: Final = pa.schema([("plus", pa.int64()), ("minus", pa.int64()), ("bag", pa.binary())])
"""What `NetPass` gives: how many rows were on either side, and a bag of those of which one side has more."""


@dataclass(frozen=True)
class HashPass:
    """Reads splits of a table and gives their rows as hashes, sorted into parts.

    Args:
        scan: reads all columns, in the types of pages.
        side: 1, or -1 for rows that are to be taken away from those of the other side.
        parts: how many parts there are.
    """

    scan: ScanPass
    side: int
    parts: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Read the splits whose numbers arrive."""
        yield from self.blobs(self.scan.marked(number for batch in batches for number in batch.column(0).to_pylist()))

    def blobs(self, pages: Iterator[Page]) -> Iterator[pa.RecordBatch]:
        """Yield the blobs of pages."""
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
        return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(sides), pa.array(cells, pa.binary())], schema=BLOB)


@dataclass(frozen=True)
class NetPass:
    """Takes all hashes of some parts, and gives those of which one side has more."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the blobs that arrive."""
        sides: dict[int, list[Hashes]] = {1: [np.zeros(0, np.uint64)], -1: [np.zeros(0, np.uint64)]}
        for batch in batches:
            for side, blob in zip(batch.column("side").to_pylist(), batch.column("hashes"), strict=True):
                sides[side].append(np.frombuffer(blob.as_buffer() or b"", np.uint64))
        plus, minus = (np.concatenate(sides[side]) for side in (1, -1))
        if not len(plus) and not len(minus):
            return
        bag = Bag.of(np.concatenate([plus, minus]), np.repeat(np.array([1, -1], np.int64), [len(plus), len(minus)]))
        yield pa.RecordBatch.from_arrays(
            [pa.array([len(plus)]), pa.array([len(minus)]), pa.array([bag.to_bytes()], pa.binary())], schema=NET
        )


# -- finding ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FindPass:
    """Reads splits of a table and gives the rows that are looked for: the first so many of every task.

    Args:
        scan: reads all columns, in the types of pages.
        schema: the columns in Spark's types.
        hashes: rows must have one of these hashes, which ascend; None for any.
        keys: they must have one of these hashes of their keys, which ascend; None for any.
        key: the places of the columns that are the key.
        most: no more rows than so many.
    """

    scan: ScanPass
    schema: pa.Schema
    hashes: Hashes | None
    keys: Hashes | None
    key: tuple[int, ...]
    most: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Read the splits whose numbers arrive."""
        pages = self.scan.marked(number for batch in batches for number in batch.column(0).to_pylist())
        for page in self.found(pages):
            arrays = [conform(page.column(i), field.type) for i, field in enumerate(self.schema)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def found(self, pages: Iterator[Page]) -> Iterator[Page]:
        """Yield the rows that are looked for."""
        types = [field.type for field in self.scan.schema][:-1]
        left = self.most
        for page in pages:
            wanted = np.ones(page.num_rows, np.bool_)
            if self.hashes is not None:
                wanted &= among(page_hashes(page, types), self.hashes)
            if self.keys is not None:
                wanted &= among(row_hashes([page.column(place) for place in self.key], page.num_rows), self.keys)
            taken = np.flatnonzero(wanted)[:left]
            left -= len(taken)
            if len(taken):
                yield page.select(range(len(types))).take(pa.array(taken))
            if not left:
                return


@dataclass(frozen=True)
class RowChooser:
    """Chooses the joined rows that a trace keeps: those that take away or make rows that are looked for, or have keys that are.

    Args:
        hashes: the rows, by their hashes, which ascend.
        keys: the keys, by their hashes, which ascend.
        target: the columns of the target that are its key, and ``source`` those of the source that must be equal to them, if these are known.
        types: their types.
        most: no more joined rows of a task than so many.
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
        """Choose among the rows of a page.

        Args:
            layout: where the channels lie.
            page: the page before ``transform_page``, and after.
            produced: how many rows each row has become.
            witness: the values of both sides.
            transformed: False where there was no ``transform_page``.
        """
        before, after = page
        row_id = before.column(layout.before.row_id) if transformed else after.column(layout.after.row_id)
        chosen = among(row_id.field(1).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64), self.hashes)
        chosen &= row_id.is_valid().to_numpy(zero_copy_only=False)
        operations = after.column(layout.after.operation).to_numpy(zero_copy_only=False)
        new = np.isin(operations, [int(operation) for operation in _THERE])
        width = layout.column_count
        types = [after.schema.field(index).type for index in range(width)]
        made = among(page_hashes(after, types), self.hashes) & new
        key = [after.schema.get_field_index(name) for name in self.target]
        made |= among(row_hashes([after.column(place) for place in key], after.num_rows), self.keys) & new
        owner = np.repeat(np.arange(before.num_rows), produced)
        chosen[owner[made]] = True
        for side, names in (("target", self.target), ("source", self.source)):
            chosen |= self._by_witness(side, names, witness, before.num_rows)
        found: npt.NDArray[np.int64] = np.flatnonzero(chosen)[: self.most]
        return found

    def _by_witness(self, side: str, names: Sequence[str], witness: Page | None, rows: int) -> npt.NDArray[np.bool_]:
        none = np.zeros(rows, np.bool_)
        if witness is None or not names or side not in witness.schema.names:
            return none
        values = witness.column(side)
        places = [values.type.get_field_index(name) for name in names]
        if min(places) < 0:
            return none
        try:
            columns = [conform(values.flatten()[place], kind) for place, kind in zip(places, self.types, strict=True)]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # A key of the source that the target's type does not hold is none of the target's.
            return none
        there: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
        return among(row_hashes(columns, rows), self.keys) & there
