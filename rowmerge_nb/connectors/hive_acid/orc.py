"""ORC files of transactional tables, read and written by Arrow: six columns, the last of them the row."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.hive_acid.names import encode_bucket, normalized_buckets
from rowmerge_nb.connectors.hive_acid.orc_tail import OrcTail, Stripe, complete_footer, read_tail
from rowmerge_nb.connectors.hive_acid.values import bounded_texts, file_type, from_file, to_file
from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.spi.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.page import Page

__all__ = [
    "AcidFileWriter",
    "DeletedRows",
    "KeyBounds",
    "RowKeys",
    "read_deletes",
    "read_rows",
    "reading",
    "row_count",
    "write_deletes",
    "write_rows",
]

KEYS: Final = ("originalTransaction", "bucket", "rowId")
FIRST_FIELD: Final = 7
"""The number of the first column's type within a file: before it are the whole, the six columns, of which the last is the row."""
_WRITE_ID_PLACE, _NUMBER_PLACE = 1, 3
_ACID_COLUMNS: Final = ("operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row")
_INSERT, _DELETE = 0, 2
_CUT: Final = 65_536
_STRIPE_BYTES: Final = 4 << 20
"""A large file has several stripes, which tasks read side by side."""
_ROW_ID_BITS: Final = 40


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """Open an ORC file; what is wrong with it is told as the store's error.

    Raises:
        ConnectorError: HIVE_FILE_NOT_FOUND or HIVE_BAD_DATA.
    """
    from pyarrow import orc

    try:
        yield orc.ORCFile(str(path))
    except FileNotFoundError as error:
        msg = f"File '{path}' of a Hive table is gone"
        raise ConnectorError(
            msg, code="HIVE_FILE_NOT_FOUND", hint="Run the statement again; if it stays so, bring the file back."
        ) from error
    except (OSError, ValueError, pa.ArrowException) as error:
        msg = f"'{path}' cannot be read as ORC: {' '.join(str(error).split())}"
        raise ConnectorError(
            msg, code="HIVE_BAD_DATA", hint="Replace the file by a copy that is whole; Arrow reads timestamps from 1677 to 2262."
        ) from error


def row_count(path: Path) -> int:
    """Give the number of rows in a file, as its footer says."""
    with reading(path) as file:
        return int(file.nrows)


class RowKeys:
    """What identifies the rows of a page: original write id, bucket number (codec version 1) and row number."""

    def __init__(self, write_ids: npt.NDArray[np.int64], buckets: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
        self.write_ids = write_ids
        self.buckets = buckets
        self.numbers = numbers

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """Write id and bucket as one number."""
        return self.write_ids << 32 | self.buckets

    @classmethod
    def of(cls, page: Page) -> RowKeys:
        """Take the keys out of the columns of a file."""
        write_ids, buckets, numbers = (page.column(name).to_numpy(zero_copy_only=False) for name in KEYS)
        return cls(write_ids, normalized_buckets(buckets), numbers)

    @classmethod
    def of_original(cls, bucket: int, first: int, rows: int) -> RowKeys:
        """Give the keys of rows that were there before all transactions."""
        constant = np.full(rows, encode_bucket(bucket), np.int64)
        return cls(np.zeros(rows, np.int64), constant, np.arange(first, first + rows))

    @classmethod
    def concat(cls, several: Sequence[RowKeys]) -> RowKeys:
        """Put keys one behind the other."""
        parts = [(keys.write_ids, keys.buckets, keys.numbers) for keys in several] or [(np.zeros(0, np.int64),) * 3]
        return cls(*(np.concatenate([part[i] for part in parts]) for i in range(3)))

    def take(self, rows: npt.NDArray[np.int64]) -> RowKeys:
        """Give some of them."""
        return RowKeys(self.write_ids[rows], self.buckets[rows], self.numbers[rows])

    def order(self) -> npt.NDArray[np.int64]:
        """Give the order in which Hive wants events: by write id, bucket, row number."""
        return np.lexsort((self.numbers, self.places))

    def as_array(self) -> pa.Array:
        """Give them as row ids."""
        arrays = [pa.array(self.write_ids), pa.array(self.buckets.astype(np.int32)), pa.array(self.numbers)]
        return pa.StructArray.from_arrays(arrays, names=list(KEYS))


@dataclass(frozen=True)
class KeyBounds:
    """Between which keys rows lie: write ids and row numbers, both ends included."""

    write_ids: tuple[int, int]
    numbers: tuple[int, int]

    @classmethod
    def of(cls, tail: OrcTail, stripes: Sequence[Stripe]) -> KeyBounds | None:
        """Take them out of the statistics of stripes; None if those do not tell."""
        pairs = []
        for place in (_WRITE_ID_PLACE, _NUMBER_PLACE):
            found = [tail.range(stripe.number, tail.column(place), BIGINT) for stripe in stripes]
            lows = [one.low for one in found if one is not None and one.low is not None]
            highs = [one.high for one in found if one is not None and one.high is not None]
            if not found or not len(lows) == len(highs) == len(found):
                return None
            pairs.append((min(lows), max(highs)))
        return cls(*pairs)

    def meets(self, other: KeyBounds | None) -> bool:
        """Tell whether a key can be within both."""
        return other is None or all(
            mine[0] <= theirs[1] and theirs[0] <= mine[1]
            for mine, theirs in ((self.write_ids, other.write_ids), (self.numbers, other.numbers))
        )

    def contains(self, keys: RowKeys) -> npt.NDArray[np.bool_]:
        """Tell of every key whether it lies between them."""
        within: npt.NDArray[np.bool_] = (keys.write_ids >= self.write_ids[0]) & (keys.write_ids <= self.write_ids[1])
        within &= (keys.numbers >= self.numbers[0]) & (keys.numbers <= self.numbers[1])
        return within


class DeletedRows:
    """The delete events that concern a file, or a part of one. No others are held in memory.

    Args:
        paths: the files that hold them.
        bounds: between which keys the rows lie that are asked about; None if that is not known.
    """

    def __init__(self, paths: Sequence[Path], bounds: KeyBounds | None = None) -> None:
        keys = RowKeys.concat([found for path in paths for found in _events_within(path, bounds)])
        self._places, codes = np.unique(keys.places, return_inverse=True)
        self._events = np.unique(codes.reshape(-1).astype(np.int64) << _ROW_ID_BITS | keys.numbers)

    def __bool__(self) -> bool:
        return bool(self._events.size)

    def contains(self, keys: RowKeys) -> npt.NDArray[np.bool_]:
        """Tell for every row whether it was deleted."""
        places = keys.places
        codes = np.minimum(np.searchsorted(self._places, places), self._places.size - 1)
        events = codes.astype(np.int64) << _ROW_ID_BITS | keys.numbers
        found = np.minimum(np.searchsorted(self._events, events), self._events.size - 1)
        hit: npt.NDArray[np.bool_] = (self._places[codes] == places) & (self._events[found] == events)
        return hit


def _events_within(path: Path, bounds: KeyBounds | None) -> Iterator[RowKeys]:
    """Give the keys of delete events that lie within bounds; stripes that have none are not read."""
    tail = read_tail(path) if bounds is not None else None
    skipped = set()
    if tail is not None and bounds is not None:
        skipped = {stripe.number for stripe in tail.stripes if not bounds.meets(KeyBounds.of(tail, [stripe]))}
    for page in _stripes(path, KEYS, skipped):
        keys = RowKeys.of(page)
        yield keys if bounds is None else keys.take(np.flatnonzero(bounds.contains(keys)))


def _stripes(path: Path, columns: Sequence[str], skipped: Collection[int] = ()) -> Iterator[Page]:
    with reading(path) as file:
        _check_acid(path, file.schema)
        for stripe in range(file.nstripes):
            if stripe not in skipped:
                yield file.read_stripe(stripe, columns=list(columns))


def _check_acid(path: Path, schema: pa.Schema) -> None:
    if tuple(name.lower() for name in schema.names) != _ACID_COLUMNS:
        msg = f"'{path}' does not have the columns of a transactional table's file; it has {', '.join(schema.names)}"
        raise ConnectorError(msg, code="HIVE_BAD_DATA", hint="Replace it by the file that the transaction wrote.")


def read_rows(
    path: Path,
    columns: Sequence[tuple[int, ColumnMetadata]],
    original: tuple[int, int] | None,
    *,
    keys: bool,
    stripes: Sequence[Stripe] | None = None,
) -> Iterator[tuple[int, RowKeys | None, list[pa.Array]]]:
    """Read a file stripe by stripe, and of it only what is asked for.

    Args:
        path: the file.
        columns: the wanted columns and their positions among the columns of files: files are matched by position, so that a
            renamed column keeps its values and one that came later is NULL.
        original: bucket and number of the first row of a file without row ids; None for one with them.
        keys: give the rows' keys.
        stripes: what to read of the file; None for all of it.

    Yields:
        The number of rows, their keys, and one array per column.
    """
    with reading(path) as file:
        if original is None:
            _check_acid(path, file.schema)
        fields = list(file.schema) if original is not None else list(file.schema.field("row").type)
        wanted = _wanted(columns, fields, original is not None, keys)
        first = original[1] if original is not None else 0
        for stripe in range(file.nstripes) if stripes is None else stripes:
            if isinstance(stripe, Stripe):
                first = stripe.first + (original[1] if original is not None else 0)
            page = file.read_stripe(stripe.number if isinstance(stripe, Stripe) else stripe, columns=wanted)
            found: RowKeys | None = None
            if keys:
                found = RowKeys.of(page) if original is None else RowKeys.of_original(original[0], first, page.num_rows)
            first += page.num_rows
            yield page.num_rows, found, _arrays(path, page, columns, fields, original is not None)


def _wanted(columns: Sequence[tuple[int, ColumnMetadata]], fields: Sequence[pa.Field], flat: bool, keys: bool) -> list[str]:
    prefix = "" if flat else "row."
    names = [prefix + fields[place].name for place, _ in columns if place < len(fields)]
    if any("." in name.removeprefix(prefix) for name in names):
        # A dot in a name cannot be told from the step into a row.
        names = [field.name for field in fields] if flat else ["row"]
    if not flat and keys:
        names += KEYS
    return names or ([fields[0].name] if flat else ["rowId"])


def _arrays(
    path: Path,
    page: Page,
    columns: Sequence[tuple[int, ColumnMetadata]],
    fields: Sequence[pa.Field],
    flat: bool,
) -> list[pa.Array]:
    present: dict[str, pa.Array] = {}
    if flat:
        present = {name: page.column(name) for name in page.schema.names}
    elif "row" in page.schema.names:
        row = page.column("row")
        present = dict(zip((field.name for field in row.type), row.flatten(), strict=True))
    arrays = []
    for place, column in columns:
        if place >= len(fields):
            arrays.append(pa.nulls(page.num_rows, column.type.arrow))
            continue
        try:
            arrays.append(from_file(present[fields[place].name], column.type))
        except (pa.ArrowException, ValueError) as error:
            msg = f"Column '{column.name}' of type {column.type} cannot be read out of '{path}', which holds {fields[place].type}"
            raise ConnectorError(
                msg, code="HIVE_BAD_DATA", hint="Declare the column with the type that the files have."
            ) from error
    return arrays


# -- writing --------------------------------------------------------------------------------------------------------


class AcidFileWriter:
    """Writes the rows that a transaction inserts into one bucket.

    Args:
        path: the file to make.
        columns: the data columns.
        write_id: the transaction's write id.
        bucket: the bucket's number.
        statement: the number of the writer within the transaction.
    """

    def __init__(self, path: Path, columns: Sequence[ColumnMetadata], write_id: int, bucket: int, statement: int) -> None:
        self.path = path
        self.rows = 0
        self._columns = columns
        self._write_id = write_id
        self._number = encode_bucket(bucket, statement)
        self._waiting: list[Page] = []
        self._writer: Any = None

    def append(self, page: Page) -> None:
        """Take rows: the data columns in their order."""
        arrays = [to_file(page.column(i), c.name, c.type) for i, c in enumerate(self._columns)]
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, names=[c.name.lower() for c in self._columns]))
        if sum(waiting.num_rows for waiting in self._waiting) >= _CUT:
            self._flush()

    def close(self) -> None:
        """Write what is left and close the file."""
        self._flush()
        self._writer.close()
        key = f"{self._write_id},{self._number}"
        complete_footer(
            self.path,
            bounded_texts(self._columns, FIRST_FIELD),
            lambda last: _metadata((self.rows, 0, 0), [f"{key},{number}" for number in last]),
        )

    def abort(self) -> None:
        """Close the file without a word about what it holds."""
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = _new_writer(self.path)
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        rows = pa.StructArray.from_arrays([column.combine_chunks() for column in table.columns], names=table.column_names)
        numbers = np.arange(self.rows, self.rows + table.num_rows)
        constant = np.full(table.num_rows, self._write_id, np.int64)
        keys = RowKeys(constant, np.full(table.num_rows, self._number, np.int64), numbers)
        self._writer.write(_events(_INSERT, keys, constant, rows))
        self.rows += table.num_rows
        self._waiting.clear()


def write_deletes(path: Path, columns: Sequence[ColumnMetadata], write_id: int | npt.NDArray[np.int64], keys: RowKeys) -> int:
    """Write the delete events of one bucket, in the order of the row ids, each once; give their number.

    Args:
        path: the file to make.
        columns: the data columns.
        write_id: the write id of the transaction that deletes, or of every event its own.
        keys: the rows.
    """
    order = keys.order()
    places, numbers = keys.places[order], keys.numbers[order]
    first = np.ones(order.size, bool)
    first[1:] = (places[1:] != places[:-1]) | (numbers[1:] != numbers[:-1])
    current = np.broadcast_to(np.asarray(write_id, np.int64), order.shape)[order[first]]
    keys = keys.take(order[first])
    count = keys.numbers.size
    kind = pa.struct([(column.name.lower(), file_type(column.type)) for column in columns])
    _write_events(path, _events(_DELETE, keys, current, pa.nulls(count, kind)), columns, keys, (0, 0, count))
    return count


def read_deletes(paths: Sequence[Path]) -> tuple[RowKeys, npt.NDArray[np.int64]]:
    """Read delete events: which rows, and the write ids of the transactions that deleted them."""
    pages = [page for path in paths for page in _stripes(path, (*KEYS, "currentTransaction"))]
    current = [page.column("currentTransaction").to_numpy(zero_copy_only=False) for page in pages]
    return RowKeys.concat([RowKeys.of(page) for page in pages]), np.concatenate([*current, np.zeros(0, np.int64)])


def write_rows(path: Path, columns: Sequence[ColumnMetadata], keys: RowKeys, data: pa.Table) -> None:
    """Write rows that have keys already, in the order of these."""
    order = keys.order()
    data, keys = data.take(pa.array(order)).combine_chunks(), keys.take(order)
    arrays = [to_file(column, c.name, c.type) for column, c in zip(_columns(data), columns, strict=True)]
    rows = pa.StructArray.from_arrays(arrays, names=[c.name.lower() for c in columns])
    _write_events(path, _events(_INSERT, keys, keys.write_ids, rows), columns, keys, (data.num_rows, 0, 0))


def _columns(data: pa.Table) -> list[pa.Array]:
    return [pa.concat_arrays(column.chunks) if column.num_chunks else column.combine_chunks() for column in data.columns]


def _write_events(
    path: Path, events: pa.Table, columns: Sequence[ColumnMetadata], keys: RowKeys, stats: tuple[int, int, int]
) -> None:
    writer = _new_writer(path)
    writer.write(events)
    writer.close()
    complete_footer(
        path,
        bounded_texts(columns, FIRST_FIELD),
        lambda last: _metadata(stats, [f"{keys.write_ids[n]},{keys.buckets[n]},{keys.numbers[n]}" for n in last]),
    )


def _metadata(stats: tuple[int, int, int], keys: Sequence[str]) -> dict[str, str]:
    return {
        "hive.acid.version": "2",
        "hive.acid.stats": ",".join(map(str, stats)),
        "hive.acid.key.index": "".join(f"{key};" for key in keys),
    }


def _new_writer(path: Path) -> Any:
    from pyarrow import orc

    path.parent.mkdir(parents=True, exist_ok=True)
    return orc.ORCWriter(str(path), compression="zlib", stripe_size=_STRIPE_BYTES)


def _events(operation: int, keys: RowKeys, current: npt.NDArray[np.int64], rows: pa.Array) -> pa.Table:
    return pa.table(
        {
            "operation": np.full(len(keys.numbers), operation, np.int32),
            "originalTransaction": keys.write_ids,
            "bucket": keys.buckets.astype(np.int32),
            "rowId": keys.numbers,
            "currentTransaction": current,
            "row": rows,
        }
    )
