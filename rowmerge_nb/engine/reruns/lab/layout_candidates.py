"""Layouts that a table could have, and the files that statements would touch and read in each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.connectors.shared.transforms import Transform, parse_transforms
from rowmerge_nb.trace.file_costs import FileCount
from rowmerge_nb.trace.samples import value_codes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from rowmerge_nb.spi.page_source import ColumnDomain, Constraint
    from rowmerge_nb.spi.types import Type

FILE_BYTES: Final = 256 * 1024 * 1024
"""A partition with more bytes has several files."""
BUCKETS: Final = (4, 16, 64)
"""The numbers of buckets that are tried."""
_SORTED: Final = re.compile(r"(?is)\s*sorted\s+by\s+(.+?)\s*")


@dataclass(frozen=True)
class LayoutCandidate:
    """A layout: partitions by transforms, or files in the order of a column.

    >>> str(LayoutCandidate(sort_column="id"))
    'sorted by id'
    """

    transforms: tuple[Transform, ...] = ()
    sort_column: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.sort_column,) if self.sort_column else tuple(t.column for t in self.transforms)

    def __str__(self) -> str:
        if self.sort_column:
            return f"sorted by {self.sort_column}"
        return ", ".join(map(str, self.transforms))


def candidate_of(text: str, columns: Mapping[str, tuple[str, Type]]) -> LayoutCandidate:
    """Parse a layout: ``region``, ``bucket(id, 16)``, ``month(day), region``, ``sorted by id``.

    Args:
        columns: names and types of columns by their names in lower case.

    Raises:
        RowMergeError: INVALID_ARGUMENTS.
    """
    match = _SORTED.fullmatch(text)
    if match is not None:
        name = match[1].strip('"').lower()
        if name not in columns:
            raise RowMergeError.invalid(
                f"Layout '{text}' names column '{match[1]}', which the table does not have",
                hint=did_you_mean(name, columns) or f"Its columns are: {', '.join(columns)}.",
            )
        return LayoutCandidate(sort_column=columns[name][0])
    parts = re.split(r",\s*(?![^()]*\))", text.strip())
    try:
        return LayoutCandidate(parse_transforms(parts, columns, "layouts"))
    except RowMergeError as error:
        raise RowMergeError.invalid(
            error.message.replace("Table property 'layouts'", f"Layout '{text}'"),
            hint=f"{error.hint} A sort order is 'sorted by COLUMN'.",
        ) from error


def candidates_of(
    columns: Mapping[str, tuple[str, Type]], accepted: Mapping[str, Any], files: int
) -> Iterator[LayoutCandidate]:
    """Yield the layouts by single columns that a store can have.

    Args:
        columns: names and types of columns by their names in lower case.
        accepted: the table properties of the store.
    """
    has_transforms = "partitioning" in accepted
    for name, sql_type in columns.values():
        texts = [f'"{name}"'] if has_transforms or "partitioned_by" in accepted else []
        if has_transforms:
            texts += [f'{period}("{name}")' for period in ("day", "month", "year")]
            texts += [f'bucket("{name}", {count})' for count in BUCKETS]
        for text in texts:
            try:
                yield LayoutCandidate(parse_transforms([text], {name.lower(): (name, sql_type)}))
            except RowMergeError:
                continue  # The transform does not take the column's type.
        if files > 1:
            yield LayoutCandidate(sort_column=name)


class LayoutFiles:
    """The files of a layout: of each partition, or of each range of a sort column.

    A file is a unit of rows here; the unit of a large partition is several files.

    Args:
        rows: the rows of the table, and behind them those that the statements change.
        count: the number of rows of the table.
        files: the number of files of a sorted table.
        bytes_per_row: the mean size of a row.
    """

    def __init__(
        self,
        candidate: LayoutCandidate,
        rows: pa.Table,
        count: int,
        files: int,
        bytes_per_row: float,
    ) -> None:
        self._candidate, self._rows, self._count = candidate, rows, count
        self._values: list[pa.Array] = []
        if candidate.sort_column:
            ranks = ranks_of(rows.column(candidate.sort_column))
            self._ordered = np.sort(ranks[:count])
            bounds = np.array([len(part) for part in np.array_split(self._ordered, files)])
            self._ends = np.cumsum(bounds)
            self._ranks = ranks
            order = np.argsort(ranks[:count], kind="stable")
            self._units = np.empty(count, np.int64)
            self._units[order] = np.repeat(np.arange(files), bounds)
            sizes = bounds
        else:
            values = [t.apply(rows.column(t.column).combine_chunks()) for t in candidate.transforms]
            self._values = values
            self._units = value_codes(
                pa.StructArray.from_arrays(values, names=[str(i) for i in range(len(values))])
            )
            sizes = np.bincount(self._units[:count], minlength=self._units.max(initial=-1) + 1)
        self._bytes = sizes * bytes_per_row
        self._parts = np.maximum(1, np.ceil(self._bytes / FILE_BYTES)).astype(np.int64)
        self._exists = sizes > 0

    @property
    def files(self) -> int:
        return int(self._parts[self._exists].sum())

    def touched(self, rows: slice) -> FileCount:
        """Return the files that hold changed rows.

        If equal values of a sort column, or a partition, have several files, it is the largest
        number that is possible.
        """
        if self._candidate.sort_column:
            units = self._sorted_units(self._ranks[rows])
            return FileCount(len(units), round(self._bytes[units].sum()))
        units, counts = np.unique(self._units[rows], return_counts=True)
        files = np.minimum(self._parts[units], counts)
        size = (self._bytes[units] / self._parts[units] * files).sum()
        return FileCount(int(files.sum()), round(size))

    def _sorted_units(self, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        values, counts = np.unique(ranks, return_counts=True)
        last_row = self._count - 1
        first = np.searchsorted(self._ordered, values, "left").clip(0, last_row)
        last = (np.searchsorted(self._ordered, values, "right") - 1).clip(first, last_row)
        first, last = (np.searchsorted(self._ends, row, "right") for row in (first, last))
        last = np.minimum(last, first + counts - 1)
        marks = np.zeros(len(self._bytes) + 1, np.int64)
        np.add.at(marks, first, 1)
        np.add.at(marks, last + 1, -1)
        return np.flatnonzero(np.cumsum(marks)[:-1])

    def read(self, constraints: Sequence[Constraint]) -> FileCount:
        """Return the files that the scans of a statement cannot exclude."""
        read_units = np.zeros(len(self._bytes), bool)
        for constraint in constraints:
            matches = self._exists.copy()
            for name, domain in constraint.domains.items():
                if name in self._rows.column_names:
                    matches &= self._overlap(name, domain)
            read_units |= matches
        return FileCount(int(self._parts[read_units].sum()), round(self._bytes[read_units].sum()))

    def _overlap(self, name: str, domain: ColumnDomain) -> npt.NDArray[np.bool_]:
        """Return for each unit whether its bounds of a column, or its bucket, allow relevant values."""
        column = self._rows.column(name).slice(0, self._count)
        units = self._units[: self._count]
        overlap = np.ones(len(self._bytes), bool)
        values, ranks = distinct_of(column)
        valid = column.is_valid().to_numpy()
        lows = np.full(len(self._bytes), len(values))
        highs = np.full(len(self._bytes), -1)
        np.minimum.at(lows, units[valid], ranks[valid])
        np.maximum.at(highs, units[valid], ranks[valid])
        partitioned_by = [t.column for t in self._candidate.transforms if t.name == "identity"]
        if name in partitioned_by:
            # NULL is never relevant. In other columns, files without a value have no bounds.
            overlap = highs >= 0
        for unit in np.flatnonzero(highs >= 0).tolist():
            low, high = values[int(lows[unit])], values[int(highs[unit])]
            overlap[unit] = domain.overlaps(low.as_py(), high.as_py())
        for transform, numbers in zip(self._candidate.transforms, self._values, strict=True):
            if transform.name == "bucket" and transform.column == name and domain.values:
                relevant = transform.apply(pa.array(domain.values, column.type))
                is_relevant = pc.is_in(numbers.slice(0, self._count), relevant).to_numpy(
                    zero_copy_only=False
                )
                in_bucket = np.zeros(len(self._bytes), bool)
                in_bucket[units[is_relevant]] = True
                overlap &= in_bucket
        return overlap


def ranks_of(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the number of each value in the order of values; NULL is last.

    >>> ranks_of(pa.chunked_array([["b", None, "a"]])).tolist()
    [1, 2, 0]
    """
    values, ranks = distinct_of(column)
    return np.where(ranks < 0, len(values), ranks)


def distinct_of(column: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the distinct values in ascending order, and the number of each row's value; -1 for NULL."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    order = pc.sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False)
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = -1
    return encoded.dictionary.take(pa.array(order)), ranks[codes]
