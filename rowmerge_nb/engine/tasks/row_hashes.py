"""Hashes of whole rows."""

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
    """Hash rows by all of their columns, with 64 bits.

    As in SQL, there is one zero and one NaN; NULL equals NULL. The order of columns matters.
    """
    hashes = np.full(rows, np.uint64(len(columns)), np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            hashes = _joined(hashes, _of_column(column))
    return hashes


def among(rows: Hashes, candidates: Hashes) -> npt.NDArray[np.bool_]:
    """Return which rows are among `candidates`, which must be ascending.

    >>> among(np.array([7, 3, 9], np.uint64), np.array([3, 9], np.uint64)).tolist()
    [False, True, True]
    """
    if not len(candidates):
        return np.zeros(len(rows), np.bool_)
    indexes = np.minimum(np.searchsorted(candidates, rows), len(candidates) - 1)
    is_candidate: npt.NDArray[np.bool_] = candidates[indexes] == rows
    return is_candidate


def _joined(hashes: Hashes, more: Hashes) -> Hashes:
    mixed = (hashes * _FACTOR) ^ more
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _AVALANCHE
    return mixed ^ (mixed >> np.uint64(32))


def _of_column(column: pa.Array) -> Hashes:
    arrow_type = column.type
    if pa.types.is_null(arrow_type):
        return np.full(len(column), _NULL, np.uint64)
    if pa.types.is_dictionary(arrow_type):
        return _of_column(column.dictionary_decode())
    if pa.types.is_struct(arrow_type):
        hashes = row_hashes(column.flatten(), len(column))
    elif pa.types.is_map(arrow_type):
        entries = _joined(_of_column(column.keys), _of_column(column.items))
        hashes = _of_lists(column, entries)
    elif pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        hashes = _of_lists(column, _with_indexes(column, _of_column(column.values)))
    else:
        hashes = xxhash64([_plain(column)], len(column)).view(np.uint64)
    if not column.null_count:
        return hashes
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), hashes, _NULL)


def _plain(column: pa.Array) -> pa.Array:
    arrow_type = column.type
    if (
        pa.types.is_timestamp(arrow_type)
        or pa.types.is_time64(arrow_type)
        or pa.types.is_duration(arrow_type)
        or pa.types.is_date64(arrow_type)
    ):
        return column.view(pa.int64())
    return column.view(pa.int32()) if pa.types.is_time32(arrow_type) else column


def _with_indexes(column: pa.Array, elements: Hashes) -> Hashes:
    offsets = np.asarray(column.offsets)
    lengths = np.diff(offsets)
    indexes = np.zeros(len(elements), np.uint64)
    indexes[offsets[0] : offsets[-1]] = np.arange(offsets[-1] - offsets[0]) - np.repeat(
        offsets[:-1] - offsets[0], lengths
    )
    return _joined(indexes, elements)


def _of_lists(column: pa.Array, elements: Hashes) -> Hashes:
    """Return the hashes of lists, or of maps, whose entries have no order."""
    offsets = np.asarray(column.offsets)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(elements, dtype=np.uint64)])
    return _joined(np.diff(offsets).astype(np.uint64), sums[offsets[1:]] - sums[offsets[:-1]])
