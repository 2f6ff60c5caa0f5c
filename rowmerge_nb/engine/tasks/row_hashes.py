"""Rows as numbers: a hash of all of a row's values, by which tables are compared without being brought together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowmerge_nb.engine.tasks.xxhash import xxhash64

if TYPE_CHECKING:
    from collections.abc import Sequence

Hashes = npt.NDArray[np.uint64]

_NULL: Final = np.uint64(0x9AE16A3B2F90404F)
_FACTOR: Final = np.uint64(0x9DDFEA08EB382D69)
_AVALANCHE: Final = np.uint64(0xC2B2AE3D27D4EB4F)


def row_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Hash rows by all of their columns: the same values give the same number, and others another one but for one pair in 2**64.

    Values are the same as SQL sees them: there is one zero, one NaN, and a NULL is the same as a NULL. Columns count by their place.

    Args:
        columns: arrays; of a column that is compared both times in the same type.
        rows: how many rows there are.

    >>> one, other = ([pa.array([1, None]), pa.array([None, 1])] for _ in range(2))
    >>> row_hashes(one, 2).tolist() == row_hashes(other, 2).tolist(), len(set(row_hashes(one, 2).tolist()))
    (True, 2)
    """
    made = np.full(rows, np.uint64(len(columns)), np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            made = _joined(made, _of_column(column))
    return made


def among(rows: Hashes, wanted: Hashes) -> npt.NDArray[np.bool_]:
    """Return which rows are among others.

    Args:
        rows: the rows.
        wanted: the others, ascending: however many they are, they are not sorted once more for each page.

    >>> among(np.array([7, 3, 9], np.uint64), np.array([3, 9], np.uint64)).tolist()
    [False, True, True]
    """
    if not len(wanted):
        return np.zeros(len(rows), np.bool_)
    places = np.minimum(np.searchsorted(wanted, rows), len(wanted) - 1)
    found: npt.NDArray[np.bool_] = wanted[places] == rows
    return found


def _joined(made: Hashes, more: Hashes) -> Hashes:
    """Put a further hash behind those that are there; the order matters."""
    mixed = (made * _FACTOR) ^ more
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _AVALANCHE
    return mixed ^ (mixed >> np.uint64(32))


def _of_column(column: pa.Array) -> Hashes:
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _NULL, np.uint64)
    if pa.types.is_dictionary(kind):
        return _of_column(column.dictionary_decode())
    if pa.types.is_struct(kind):
        made = row_hashes(column.flatten(), len(column))
    elif pa.types.is_map(kind):
        entries = _joined(_of_column(column.keys), _of_column(column.items))
        made = _of_lists(column, entries)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        made = _of_lists(column, _in_place(column, _of_column(column.values)))
    else:
        made = xxhash64([_plain(column)], len(column)).view(np.uint64)
    if not column.null_count:
        return made
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), made, _NULL)


def _plain(column: pa.Array) -> pa.Array:
    """Return moments as the numbers that they are, of whatever unit: nothing is rounded."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) or pa.types.is_duration(kind) or pa.types.is_date64(kind):
        return column.view(pa.int64())
    return column.view(pa.int32()) if pa.types.is_time32(kind) else column


def _in_place(column: pa.Array, elements: Hashes) -> Hashes:
    """Return the hashes of elements by which their order matters."""
    offsets = np.asarray(column.offsets)
    lengths = np.diff(offsets)
    places = np.zeros(len(elements), np.uint64)
    places[offsets[0] : offsets[-1]] = np.arange(offsets[-1] - offsets[0]) - np.repeat(offsets[:-1] - offsets[0], lengths)
    return _joined(places, elements)


def _of_lists(column: pa.Array, elements: Hashes) -> Hashes:
    """Return the hash of a list, or of a map, whose entries have no order."""
    offsets = np.asarray(column.offsets)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(elements, dtype=np.uint64)])
    return _joined(np.diff(offsets).astype(np.uint64), sums[offsets[1:]] - sums[offsets[:-1]])
