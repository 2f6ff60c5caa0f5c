"""Reading of ORC files of transactional tables, whose last of six columns is the row."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.connectors.hive_acid.layout_names import encode_bucket, normalized_buckets
from rowmerge_nb.connectors.hive_acid.orc.tail import OrcTail, Stripe, read_tail
from rowmerge_nb.connectors.hive_acid.orc_values import from_file
from rowmerge_nb.connectors.shared.disk import require_texts
from rowmerge_nb.spi import ColumnMetadata, Page
from rowmerge_nb.spi.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt


KEYS: Final = ("originalTransaction", "bucket", "rowId")
_WRITE_ID_INDEX, _NUMBER_INDEX = 1, 3
_ACID_COLUMNS: Final = (
    "operation",
    "originaltransaction",
    "bucket",
    "rowid",
    "currenttransaction",
    "row",
)
_ROW_ID_BITS: Final = 40


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """Open an ORC file; HIVE_FILE_NOT_FOUND or HIVE_BAD_DATA."""
    from pyarrow import orc

    try:
        yield orc.ORCFile(str(path))
    except FileNotFoundError as error:
        raise ConnectorError(
            f"File '{path}' of a Hive table is missing",
            code="HIVE_FILE_NOT_FOUND",
            hint="Run the statement again. If it fails again, restore the file.",
        ) from error
    except RowMergeError:
        raise
    except Exception as error:
        # Arrow raises various errors for corrupt bytes, and so does code that uses its results.
        raise ConnectorError(
            f"'{path}' cannot be read as ORC: {' '.join(str(error).split())}",
            code="HIVE_BAD_DATA",
            hint=(
                "Replace the file with an intact copy. Arrow reads timestamps from 1677 to 2262."
            ),
        ) from error


def row_count(path: Path) -> int:
    with reading(path) as file:
        return int(file.nrows)


class RowKeys:
    """Row keys: original write id, bucket number (codec version 1) and row number."""

    def __init__(
        self,
        write_ids: npt.NDArray[np.int64],
        buckets: npt.NDArray[np.int64],
        numbers: npt.NDArray[np.int64],
    ) -> None:
        self.write_ids = write_ids
        self.buckets = buckets
        self.numbers = numbers

    @property
    def locations(self) -> npt.NDArray[np.int64]:
        return self.write_ids << 32 | self.buckets

    @classmethod
    def of(cls, page: Page) -> RowKeys:
        write_ids, buckets, numbers = (
            page.column(name).to_numpy(zero_copy_only=False) for name in KEYS
        )
        return cls(write_ids, normalized_buckets(buckets), numbers)

    @classmethod
    def of_original(cls, bucket: int, first: int, rows: int) -> RowKeys:
        constant = np.full(rows, encode_bucket(bucket), np.int64)
        return cls(np.zeros(rows, np.int64), constant, np.arange(first, first + rows))

    @classmethod
    def concat(cls, batches: Sequence[RowKeys]) -> RowKeys:
        parts = [(keys.write_ids, keys.buckets, keys.numbers) for keys in batches] or [
            (np.zeros(0, np.int64),) * 3
        ]
        return cls(*(np.concatenate([part[i] for part in parts]) for i in range(3)))

    def take(self, rows: npt.NDArray[np.int64]) -> RowKeys:
        return RowKeys(self.write_ids[rows], self.buckets[rows], self.numbers[rows])

    def order(self) -> npt.NDArray[np.int64]:
        return np.lexsort((self.numbers, self.locations))

    def as_array(self) -> pa.Array:
        arrays = [
            pa.array(self.write_ids),
            pa.array(self.buckets.astype(np.int32)),
            pa.array(self.numbers),
        ]
        return pa.StructArray.from_arrays(arrays, names=list(KEYS))


@dataclass(frozen=True)
class KeyBounds:
    """Inclusive bounds of write ids and row numbers."""

    write_ids: tuple[int, int]
    numbers: tuple[int, int]

    @classmethod
    def of(cls, tail: OrcTail, stripes: Sequence[Stripe]) -> KeyBounds | None:
        pairs = []
        for index in (_WRITE_ID_INDEX, _NUMBER_INDEX):
            ranges = [tail.range(stripe.number, tail.column(index), BIGINT) for stripe in stripes]
            lows = [
                value_range.low
                for value_range in ranges
                if value_range is not None and value_range.low is not None
            ]
            highs = [
                value_range.high
                for value_range in ranges
                if value_range is not None and value_range.high is not None
            ]
            if not ranges or not len(lows) == len(highs) == len(ranges):
                return None
            pairs.append((min(lows), max(highs)))
        return cls(*pairs)

    def meets(self, other: KeyBounds | None) -> bool:
        return other is None or all(
            mine[0] <= theirs[1] and theirs[0] <= mine[1]
            for mine, theirs in ((self.write_ids, other.write_ids), (self.numbers, other.numbers))
        )

    def contains(self, keys: RowKeys) -> npt.NDArray[np.bool_]:
        within: npt.NDArray[np.bool_] = (keys.write_ids >= self.write_ids[0]) & (
            keys.write_ids <= self.write_ids[1]
        )
        within &= (keys.numbers >= self.numbers[0]) & (keys.numbers <= self.numbers[1])
        return within


class DeletedRows:
    """The delete events that concern a file, within the bounds of its row keys if known."""

    def __init__(self, paths: Sequence[Path], bounds: KeyBounds | None = None) -> None:
        keys = RowKeys.concat(
            [keys_within for path in paths for keys_within in _events_within(path, bounds)]
        )
        self._locations, codes = np.unique(keys.locations, return_inverse=True)
        self._events = ascending(codes.reshape(-1).astype(np.int64) << _ROW_ID_BITS | keys.numbers)

    def __bool__(self) -> bool:
        return bool(self._events.size)

    def contains(self, keys: RowKeys) -> npt.NDArray[np.bool_]:
        locations = keys.locations
        codes = np.minimum(np.searchsorted(self._locations, locations), self._locations.size - 1)
        events = codes.astype(np.int64) << _ROW_ID_BITS | keys.numbers
        indexes = np.minimum(np.searchsorted(self._events, events), self._events.size - 1)
        hit: npt.NDArray[np.bool_] = (self._locations[codes] == locations) & (
            self._events[indexes] == events
        )
        return hit


def _events_within(path: Path, bounds: KeyBounds | None) -> Iterator[RowKeys]:
    tail = read_tail(path) if bounds is not None else None
    skipped = set()
    if tail is not None and bounds is not None:
        skipped = {
            stripe.number
            for stripe in tail.stripes
            if not bounds.meets(KeyBounds.of(tail, [stripe]))
        }
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
            f"'{path}' does not have the columns of a transactional table's file; it has"
            f" {', '.join(schema.names)}",
            code="HIVE_BAD_DATA",
            hint="Replace it with the file that the transaction wrote.",
        )


@dataclass(frozen=True)
class KeysFirst:
    """Columns that are read first, to decide whether any row of a stripe matters."""

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
    """Read columns of a file, stripe by stripe.

    Columns are matched by index: a renamed column keeps its values, and a later one is NULL.
    ``original`` is bucket and number of the first row for a file without row ids. ``first`` decides
    whether a stripe is skipped.
    """
    with reading(path) as file:
        if original is None:
            _check_acid(path, file.schema)
        fields = list(file.schema) if original is not None else list(file.schema.field("row").type)
        column_names = _file_columns(columns, fields, original is not None, keys)
        flat = original is not None
        start = original[1] if original is not None else 0
        deciding = (
            _file_columns(first.columns, fields, flat, False)
            if first is not None and first.columns
            else []
        )
        for stripe in range(file.nstripes) if stripes is None else stripes:
            at = stripe.number if isinstance(stripe, Stripe) else stripe
            if isinstance(stripe, Stripe):
                start = stripe.first + (original[1] if original is not None else 0)
            if first is not None and deciding:
                deciding_page = file.read_stripe(at, columns=deciding)
                if not first.matter(_arrays(path, deciding_page, first.columns, fields, flat)):
                    start += deciding_page.num_rows
                    continue
            page = file.read_stripe(at, columns=column_names)
            row_keys: RowKeys | None = None
            if keys:
                row_keys = (
                    RowKeys.of(page)
                    if original is None
                    else RowKeys.of_original(original[0], start, page.num_rows)
                )
            start += page.num_rows
            yield (
                page.num_rows,
                row_keys,
                _arrays(path, page, columns, fields, original is not None),
            )


def _file_columns(
    columns: Sequence[tuple[int, ColumnMetadata]],
    fields: Sequence[pa.Field],
    flat: bool,
    keys: bool,
) -> list[str]:
    prefix = "" if flat else "row."
    names = [prefix + fields[index].name for index, _ in columns if index < len(fields)]
    if any("." in name.removeprefix(prefix) for name in names):
        # A dot in a name is ambiguous with a step into a row.
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
                f"Column '{column.name}' of type {column.type} cannot be read from"
                f" '{path}', which holds {fields[index].type}",
                code="HIVE_BAD_DATA",
                hint="Declare the column with the type in the files.",
            ) from error
    return arrays


def read_deletes(paths: Sequence[Path]) -> tuple[RowKeys, npt.NDArray[np.int64]]:
    pages = [page for path in paths for page in _stripes(path, (*KEYS, "currentTransaction"))]
    current = [page.column("currentTransaction").to_numpy(zero_copy_only=False) for page in pages]
    return RowKeys.concat([RowKeys.of(page) for page in pages]), np.concatenate(
        [*current, np.zeros(0, np.int64)]
    )
