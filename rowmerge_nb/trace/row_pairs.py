"""Pairs of rows of two tables: each missing row with the unexpected row that is probably meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.ordering import other_rows
from rowmerge_nb.spi.types import is_number
from rowmerge_nb.trace.bags import cell_codes, row_codes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]

MOST_COMPARED: Final = 200
"""The number of rows of each table that are compared cell by cell with each row of the other."""
_ALIKE: Final = 0.75
"""The weight of two texts that differ in case or outer blanks; equal cells have 1."""
_KEY: Final = 2.0
"""The weight of a cell of a key."""


@dataclass(frozen=True)
class RowPairs:
    """Pairs of rows by their indices; ``missing[i]`` and ``unexpected[i]`` are a pair."""

    missing: Rows
    unexpected: Rows
    exchanged: tuple[int, int] | None = None


def pair_rows(
    missing: pa.Table,
    unexpected: pa.Table,
    keys: Sequence[int] = (),
    strange: npt.NDArray[np.bool_] | None = None,
) -> RowPairs:
    """Pair rows of tables with the same columns.

    Rows are paired by the exchange of two columns if that makes all rows equal, and then by equal
    keys. The others are paired by the most equal or similar cells, at least half of the row. This
    last step compares the first `MOST_COMPARED` rows only.

    Args:
        keys: the indices of the columns that identify a row.
    """
    if (columns := _exchanged(missing, unexpected)) is not None:
        one, other = columns
        order = list(range(missing.num_columns))
        order[one], order[other] = other, one
        return RowPairs(*equal_rows(*row_codes(missing.select(order), unexpected)), columns)
    pairs = [_by_key(missing, unexpected, keys)] if keys else []
    paired = [np.concatenate([pair[side] for pair in pairs] or [_NONE]) for side in (0, 1)]
    rest = other_rows(missing.num_rows, paired[0])[:MOST_COMPARED]
    others = other_rows(unexpected.num_rows, paired[1])
    others = (others if strange is None else others[strange[others]])[:MOST_COMPARED]
    if len(rest) and len(others):
        similarity = _similarity(missing.take(rest), unexpected.take(others), keys)
        nearest = [*zip(*_best(similarity), strict=True)]
        pairs.append(
            (
                rest[np.array([row for row, _ in nearest], np.int64)],
                others[np.array([row for _, row in nearest], np.int64)],
            )
        )
    return RowPairs(
        np.concatenate([pair[0] for pair in pairs] or [_NONE]),
        np.concatenate([pair[1] for pair in pairs] or [_NONE]),
    )


def equal_rows(codes: Rows, other_codes: Rows) -> tuple[Rows, Rows]:
    """Return the indices of rows with equal codes, each row at most once.

    The first row of a code belongs to the first such row of the other side, and so on.

    >>> [rows.tolist() for rows in equal_rows(np.array([7, 8, 7, 7]), np.array([7, 9, 7]))]
    [[0, 2], [0, 2]]
    """
    size = max(len(codes), len(other_codes)) + 1
    _, rows, others = np.intersect1d(
        codes * size + _ranks(codes), other_codes * size + _ranks(other_codes), return_indices=True
    )
    order = np.argsort(rows, kind="stable")
    return rows[order].astype(np.int64), others[order].astype(np.int64)


_NONE: Final = np.zeros(0, np.int64)


def _ranks(codes: Rows) -> Rows:
    order = np.argsort(codes, kind="stable")
    first = np.flatnonzero(np.diff(codes[order], prepend=codes.min(initial=0) - 1))
    sizes = np.diff(first, append=len(codes))
    ranks = np.zeros(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(first, sizes)
    return ranks


def _exchanged(missing: pa.Table, unexpected: pa.Table) -> tuple[int, int] | None:
    if not missing.num_rows or missing.num_rows != unexpected.num_rows:
        return None
    for one, other in _pairs_of_one_type(missing.schema):
        if _is_same_bag(missing.column(one), unexpected.column(other)) and _is_same_bag(
            missing.column(other), unexpected.column(one)
        ):
            order = list(range(missing.num_columns))
            order[one], order[other] = other, one
            codes, others = row_codes(missing.select(order), unexpected)
            if np.array_equal(np.sort(codes), np.sort(others)):
                return one, other
    return None


def _pairs_of_one_type(schema: pa.Schema) -> Iterator[tuple[int, int]]:
    types = schema.types
    for one, arrow_type in enumerate(types):
        yield from (
            (one, other) for other in range(one + 1, len(types)) if types[other] == arrow_type
        )


def _is_same_bag(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    codes = cell_codes(one, other)
    return np.array_equal(np.sort(codes[: len(one)]), np.sort(codes[len(one) :]))


def _by_key(missing: pa.Table, unexpected: pa.Table, keys: Sequence[int]) -> tuple[Rows, Rows]:
    return equal_rows(*row_codes(missing.select(list(keys)), unexpected.select(list(keys))))


def _similarity(
    missing: pa.Table, unexpected: pa.Table, keys: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Return the weight of equal and similar cells of each pair of rows; 0 below half of the row."""
    total = np.zeros((missing.num_rows, unexpected.num_rows))
    all_equal = 0.0
    for index, (one, other) in enumerate(zip(missing.columns, unexpected.columns, strict=True)):
        weights = _equal(one, other).astype(np.float64)
        if pa.types.is_string(one.type) or pa.types.is_large_string(one.type):
            normal = (pc.utf8_lower(pc.utf8_trim_whitespace(side)) for side in (one, other))
            weights = np.maximum(weights, _ALIKE * _equal(*normal))
        elif is_number(one.type):
            values = [_floats(side) for side in (one, other)]
            gap = np.abs(values[0][:, None] - values[1][None, :])
            scale = np.maximum(np.abs(values[0])[:, None], np.abs(values[1])[None, :])
            with np.errstate(divide="ignore", invalid="ignore"):
                close = np.where(gap < scale, _ALIKE * (1 - gap / scale), 0)
            weights = np.maximum(weights, np.nan_to_num(close))
        weight = _KEY if index in keys else 1.0
        total += weights * weight
        all_equal += weight
    return np.where(total * 2 >= all_equal, total, 0)


def _equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    codes = cell_codes(one, other)
    equal: npt.NDArray[np.bool_] = codes[: len(one), None] == codes[None, len(one) :]
    return equal


def _floats(values: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    floats: npt.NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
    return floats


def _best(similarity: npt.NDArray[np.float64]) -> tuple[Rows, Rows]:
    rows, others = similarity.shape
    apart = np.abs(np.arange(rows)[:, None] / rows - np.arange(others)[None, :] / others)
    scores = np.where(similarity > 0, similarity - apart / (rows + others), -np.inf)
    pairs: list[tuple[int, int]] = []
    while (row_best := scores.max(axis=1, initial=-np.inf)).max(initial=-np.inf) > -np.inf:
        nearest = scores.argmax(axis=1)
        mutual = np.flatnonzero(
            (row_best > -np.inf) & (scores.argmax(axis=0)[nearest] == np.arange(rows))
        )
        pairs += zip(mutual.tolist(), nearest[mutual].tolist(), strict=True)
        scores[mutual] = -np.inf
        scores[:, nearest[mutual]] = -np.inf
    indices = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return indices[:, 0], indices[:, 1]
