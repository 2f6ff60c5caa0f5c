"""Rows that are identified by their data file and their position in it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.connectors.shared.hashing import hashed_buckets
from rowmerge_nb.spi import BucketFunction, Page
from rowmerge_nb.spi.types import BIGINT, INTEGER, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Positions = npt.NDArray[np.int64]

ROW_ID_TYPE = row_of([("file", INTEGER), ("position", BIGINT)])
"""A row's file, as its index in the merge handle (a tenth of a path's size), and the position in
it.
"""

BUCKETS: Final = 65_536
"""The number of hash buckets for rows; the engine spreads them over its writers."""


def row_ids(file: int, first: int, rows: int) -> pa.Array:
    """Return the row ids of consecutive rows of a file.

    >>> row_ids(3, 10, 1).to_pylist()
    [{'file': 3, 'position': 10}]
    """
    numbers = pa.array(np.full(rows, file, np.int32))
    positions = pa.array(np.arange(first, first + rows))
    return pa.StructArray.from_arrays([numbers, positions], names=["file", "position"])


def alive_mask(deleted: Positions, first: int, rows: int) -> pa.Array | None:
    """Return which of consecutive rows are not deleted, None for all.

    >>> alive_mask(np.array([4]), 3, 3).to_pylist(), alive_mask(np.array([9]), 3, 3)
    ([True, False, True], None)
    """
    low, high = np.searchsorted(deleted, [first, first + rows])
    if low == high:
        return None
    alive = np.ones(rows, bool)
    alive[deleted[low:high] - first] = False
    return pa.array(alive)


def middle_of(group: Any) -> int:
    column = group.column(0) if group.num_columns else None
    if column is None:
        return 0
    start = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset < start:
        start = column.dictionary_page_offset
    size = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
    return int(start + size // 2)


def empty_page(rows: int) -> Page:
    """Return a page of rows without columns.

    >>> empty_page(3).num_rows
    3
    """
    return pa.RecordBatch.from_arrays([pa.array(np.zeros(rows, np.int8))], names=[""]).select([])


class FilePositions:
    """Positions of rows by the number of their file.

    >>> positions = FilePositions(4)
    >>> positions.add(row_ids(3, 10, 2))
    >>> [(number, rows.tolist()) for number, rows in positions.by_file()]
    [(3, [10, 11])]
    """

    def __init__(self, files: int) -> None:
        self._count = files
        self._files: dict[int, list[Positions]] = defaultdict(list)

    def __bool__(self) -> bool:
        return bool(self._files)

    def add(self, ids: pa.Array) -> None:
        """Add the rows of row ids; ValueError for a file that was not read."""
        numbers, positions = (
            pc.struct_field(ids, [i]).to_numpy(zero_copy_only=False) for i in range(2)
        )
        order = np.argsort(numbers, kind="stable")
        file_numbers, starts = np.unique(numbers[order], return_index=True)
        if len(file_numbers) and not 0 <= file_numbers[0] <= file_numbers[-1] < self._count:
            raise ValueError(
                f"Row ids name files {file_numbers[0]} to {file_numbers[-1]} of"
                f" {self._count}: they were not read for this merge"
            )
        for number, rows in zip(
            file_numbers.tolist(), np.split(positions[order], starts[1:]), strict=True
        ):
            self._files[number].append(rows)

    def by_file(self) -> Iterator[tuple[int, Positions]]:
        """Yield each file's number and its positions, ascending and distinct."""
        for number in sorted(self._files):
            yield number, ascending(np.concatenate(self._files[number]))

    def clear(self) -> None:
        self._files.clear()


class FileBucketFunction(BucketFunction):
    """Hashes the row id's file, so that all changes of a file meet in one writer.

    >>> page = pa.RecordBatch.from_arrays([row_ids(3, 1, 2)], names=["row_id"])
    >>> buckets = FileBucketFunction().get_buckets(page)
    >>> buckets[0] == buckets[1]
    True
    """

    bucket_count = BUCKETS

    def get_buckets(self, page: Page) -> pa.Array:
        return hashed_buckets([pc.struct_field(page.column(0), [0])], BUCKETS)
