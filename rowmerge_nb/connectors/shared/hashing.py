"""A 64-bit hash of columns that is the same on every machine; NULL has a hash too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.connectors.shared.murmur import bytes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_PRIME: Final = np.uint64(0x100000001B3)
_SAMPLE: Final = 1024
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)


def hash_columns(columns: Sequence[pa.Array]) -> npt.NDArray[np.uint64]:
    """Hash rows.

    >>> numbers = hash_columns([pa.array([1, 2, 1, None])])
    >>> bool(numbers[0] == numbers[2]), bool(numbers[0] == numbers[1])
    (True, False)
    >>> bool(hash_columns([pa.array(["ab", "a"])])[0] == hash_columns([pa.array(["ab"])])[0])
    True
    >>> bool((hash_columns([pa.array(["ab", None] * 2048)])[:2] == hash_columns([pa.array(["ab", None])])).all())
    True
    """
    combined = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        combined = _mix(combined * _PRIME + _hash_column(column))
    return combined


def hashed_buckets(columns: Sequence[pa.Array], count: int) -> pa.Array:
    """Return the bucket of every row, by its hash.

    >>> hashed_buckets([pa.array([7, 7])], 1).to_pylist()
    [0, 0]
    """
    return pa.array((hash_columns(columns) % np.uint64(count)).astype(np.int32))


def _hash_column(column: pa.Array) -> npt.NDArray[np.uint64]:
    arrow_type = column.type
    if pa.types.is_floating(arrow_type):
        # Adding 0.0 turns -0.0 into 0.0, which must have the same hash.
        bits = (
            pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
        ).view(np.uint64)
    elif pa.types.is_integer(arrow_type) or pa.types.is_boolean(arrow_type):
        bits = (
            pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False).view(np.uint64)
        )
    elif pa.types.is_temporal(arrow_type):
        same_width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
        bits = (
            pc.fill_null(column.cast(same_width).cast(pa.int64()), 0)
            .to_numpy(zero_copy_only=False)
            .view(np.uint64)
        )
    else:
        bits = _hash_texts(
            column.cast(pa.large_binary() if pa.types.is_binary(arrow_type) else pa.large_string())
        )
    hashed = _mix(bits)
    return np.where(pc.is_null(column).to_numpy(zero_copy_only=False), _NULL, hashed)


def _hash_texts(column: pa.Array) -> npt.NDArray[np.uint64]:
    first = column.slice(0, _SAMPLE)
    if len(column) < 2 * _SAMPLE or pc.count_distinct(first).as_py() > _SAMPLE // 4:
        return _hash_bytes(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    hashes: npt.NDArray[np.uint64] = _hash_bytes(encoded.dictionary)[encoded.indices.to_numpy()]
    return hashes


def _hash_bytes(column: pa.Array) -> npt.NDArray[np.uint64]:
    data, lengths = bytes_of(column)
    if not len(data):
        return np.zeros(len(column), np.uint64)
    starts = np.cumsum(lengths) - lengths
    powers = np.cumprod(np.full(int(lengths.max()), _PRIME, np.uint64))
    terms = (data.astype(np.uint64) + np.uint64(1)) * powers[
        np.arange(len(data)) - np.repeat(starts, lengths)
    ]
    sums = np.zeros(len(column), np.uint64)
    nonempty = lengths > 0
    sums[nonempty] = np.add.reduceat(terms, starts[nonempty])
    return sums


def _mix(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread every input bit over all output bits (the finalizer of splitmix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
