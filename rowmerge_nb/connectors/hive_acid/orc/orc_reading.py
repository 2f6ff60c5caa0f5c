"""Reading ORC files of transactional tables: six columns, the last of them the row."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.connectors.hive_acid.layout_names import encode_bucket, normalized_buckets
from rowmerge_nb.connectors.hive_acid.orc.tail import OrcTail, Stripe, read_tail
from rowmerge_nb.connectors.hive_acid.orc_values import from_file
from rowmerge_nb.connectors.shared.disk import require_texts
from rowmerge_nb.connectors.shared.ordering import ascending
from rowmerge_nb.spi.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.page import Page

KEYS: Final = ("originalTransaction", "bucket", "rowId")
_WRITE_ID_PLACE, _NUMBER_PLACE = 1, 3
_ACID_COLUMNS: Final = ("operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row")
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
        raise ConnectorError(
            f"File '{path}' of a Hive table is gone",
            code="HIVE_FILE_NOT_FOUND",
            hint="Run the statement again; if it stays so, bring the file back.",
        ) from error
    except RowMergeError:
        raise
    except Exception as error:
        # Nobody lists what Arrow raises, and what its answers make of us, where the bytes of a file are not what they were.
        raise ConnectorError(
            f"'{path}' cannot be read as ORC: {' '.join(str(error).split())}",
            code="HIVE_BAD_DATA",
            hint="Replace the file by a copy that is whole; Arrow reads timestamps from 1677 to 2262.",
        ) from error


def row_count(path: Path) -> int:
    """Return the number of rows in a file, as its footer says."""
    with reading(path) as file:
        return int(file.nrows)


class RowKeys:
    """What identifies the rows of a page: original write id, bucket number (codec version 1) and row number."""

    def __init__(self, write_ids: npt.NDArray[np.int64], buckets: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
        self.write_ids = write_ids
        self.buckets = buckets
        self.numbers = numbers

    @property
    def locations(self) -> npt.NDArray[np.int64]:
        """Write id and bucket as one number."""
        return self.write_ids << 32 | self.buckets

    @classmethod
    def of(cls, page: Page) -> RowKeys:
        """Take the keys out of the columns of a file."""
        write_ids, buckets, numbers = (page.column(name).to_numpy(zero_copy_only=False) for name in KEYS)
        return cls(write_ids, normalized_buckets(buckets), numbers)

    @classmethod
    def of_original(cls, bucket: int, first: int, rows: int) -> RowKeys:
        """Return the keys of rows that were there before all transactions."""
        constant = np.full(rows, encode_bucket(bucket), np.int64)
        return cls(np.zeros(rows, np.int64), constant, np.arange(first, first + rows))

    @classmethod
    def concat(cls, several: Sequence[RowKeys]) -> RowKeys:
        """Concatenate keys."""
        parts = [(keys.write_ids, keys.buckets, keys.numbers) for keys in several] or [(np.zeros(0, np.int64),) * 3]
        return cls(*(np.concatenate([part[i] for part in parts]) for i in range(3)))

    def take(self, rows: npt.NDArray[np.int64]) -> RowKeys:
        """Return some of them."""
        return RowKeys(self.write_ids[rows], self.buckets[rows], self.numbers[rows])

    def order(self) -> npt.NDArray[np.int64]:
        """Return the order in which Hive wants events: by write id, bucket, row number."""
        return np.lexsort((self.numbers, self.locations))

    def as_array(self) -> pa.Array:
        """Return them as row ids."""
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
        for index in (_WRITE_ID_PLACE, _NUMBER_PLACE):
            found = [tail.range(stripe.number, tail.column(index), BIGINT) for stripe in stripes]
            lows = [one.low for one in found if one is not None and one.low is not None]
            highs = [one.high for one in found if one is not None and one.high is not None]
            if not found or not len(lows) == len(highs) == len(found):
                return None
            pairs.append((min(lows), max(highs)))
        return cls(*pairs)

    def meets(self, other: KeyBounds | None) -> bool:
        """Return whether a key can be within both."""
        return other is None or all(
            mine[0] <= theirs[1] and theirs[0] <= mine[1]
            for mine, theirs in ((self.write_ids, other.write_ids), (self.numbers, other.numbers))
        )

    def contains(self, keys: RowKeys) -> npt.NDArray[np.bool_]:
        """Return for each key whether it lies between them."""
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
        self._locations, codes = np.unique(keys.locations, return_inverse=True)
        self._events = ascending(codes.reshape(-1).astype(np.int64) << _ROW_ID_BITS | keys.numbers)

    def __bool__(self) -> bool:
        return bool(self._events.size)

    def contains(self, keys: RowKeys) -> npt.NDArray[np.bool_]:
        """Return for each row whether it was deleted."""
        locations = keys.locations
        codes = np.minimum(np.searchsorted(self._locations, locations), self._locations.size - 1)
        events = codes.astype(np.int64) << _ROW_ID_BITS | keys.numbers
        found = np.minimum(np.searchsorted(self._events, events), self._events.size - 1)
        hit: npt.NDArray[np.bool_] = (self._locations[codes] == locations) & (self._events[found] == events)
        return hit


def _events_within(path: Path, bounds: KeyBounds | None) -> Iterator[RowKeys]:
    """Yield the keys of delete events that lie within bounds; stripes that have none are not read."""
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
        raise ConnectorError(
            f"'{path}' does not have the columns of a transactional table's file; it has {', '.join(schema.names)}",
            code="HIVE_BAD_DATA",
            hint="Replace it by the file that the transaction wrote.",
        )


@dataclass(frozen=True)
class KeysFirst:
    """Columns that are read before the others, and what they say of a stripe.

    Args:
        columns: the columns, with their positions among the columns of files.
        matter: tells of the columns of a stripe whether a row of it matters.
    """

    columns: Sequence[tuple[int, ColumnMetadata]]
    matter: Callable[[list[pa.Array]], bool]


def read_rows(
    path: Path,
    columns: Sequence[tuple[int, ColumnMetadata]],
    original: tuple[int, int] | None,
    *,
    keys: bool,
    stripes: Sequence[Stripe] | None = None,
    first: KeysFirst | None = None,
) -> Iterator[tuple[int, RowKeys | None, list[pa.Array]]]:
    """Read a file stripe by stripe, and of it only what is asked for.

    Args:
        path: the file.
        columns: the wanted columns and their positions among the columns of files: files are matched by position, so that a
            renamed column keeps its values and one that came later is NULL.
        original: bucket and number of the first row of a file without row ids; None for one with them.
        keys: give the rows' keys.
        stripes: what to read of the file; None for all of it.
        first: leaves out stripes by some of their columns.

    Yields:
        The number of rows, their keys, and one array per column.
    """
    with reading(path) as file:
        if original is None:
            _check_acid(path, file.schema)
        fields = list(file.schema) if original is not None else list(file.schema.field("row").type)
        wanted = _wanted(columns, fields, original is not None, keys)
        flat = original is not None
        start = original[1] if original is not None else 0
        deciding = _wanted(first.columns, fields, flat, False) if first is not None and first.columns else []
        for stripe in range(file.nstripes) if stripes is None else stripes:
            at = stripe.number if isinstance(stripe, Stripe) else stripe
            if isinstance(stripe, Stripe):
                start = stripe.first + (original[1] if original is not None else 0)
            if first is not None and deciding:
                keys_alone = file.read_stripe(at, columns=deciding)
                if not first.matter(_arrays(path, keys_alone, first.columns, fields, flat)):
                    start += keys_alone.num_rows
                    continue
            page = file.read_stripe(at, columns=wanted)
            found: RowKeys | None = None
            if keys:
                found = RowKeys.of(page) if original is None else RowKeys.of_original(original[0], start, page.num_rows)
            start += page.num_rows
            yield page.num_rows, found, _arrays(path, page, columns, fields, original is not None)


def _wanted(columns: Sequence[tuple[int, ColumnMetadata]], fields: Sequence[pa.Field], flat: bool, keys: bool) -> list[str]:
    prefix = "" if flat else "row."
    names = [prefix + fields[index].name for index, _ in columns if index < len(fields)]
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
    for index, column in columns:
        if index >= len(fields):
            arrays.append(pa.nulls(page.num_rows, column.type.arrow))
            continue
        try:
            arrays.append(from_file(require_texts(present[fields[index].name]), column.type))
        except (pa.ArrowException, ValueError) as error:
            raise ConnectorError(
                f"Column '{column.name}' of type {column.type} cannot be read out of '{path}', which holds {fields[index].type}",
                code="HIVE_BAD_DATA",
                hint="Declare the column with the type that the files have.",
            ) from error
    return arrays


def read_deletes(paths: Sequence[Path]) -> tuple[RowKeys, npt.NDArray[np.int64]]:
    """Read delete events: which rows, and the write ids of the transactions that deleted them."""
    pages = [page for path in paths for page in _stripes(path, (*KEYS, "currentTransaction"))]
    current = [page.column("currentTransaction").to_numpy(zero_copy_only=False) for page in pages]
    return RowKeys.concat([RowKeys.of(page) for page in pages]), np.concatenate([*current, np.zeros(0, np.int64)])
