"""Selections of a page sample's rows, computed on arrays, since a trace may hold hundreds of
thousands of rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.trace.page_samples import PageSample


def source_order(pages: PageSample) -> npt.NDArray[np.int64]:
    """Return the row indices in source order; rows without a source row come last, in page order."""
    if pages.witness is None or "source_row" not in pages.witness.schema.names:
        return np.arange(pages.before.num_rows)
    numbers = pages.witness.column("source_row")
    unnumbered = numbers.is_null().to_numpy(zero_copy_only=False)
    return np.lexsort((numbers.fill_null(0).to_numpy(zero_copy_only=False), unnumbered))


def rows_of(pages: PageSample, order: npt.NDArray[np.int64]) -> PageSample:
    """Return the selected rows of a sample in this order; totals and ``complete`` are unchanged."""
    if np.array_equal(order, np.arange(pages.before.num_rows)):
        return pages
    produced = np.array(pages.produced, np.int64)
    sizes = produced[order]
    after = spans(np.cumsum(produced)[order] - sizes, sizes)
    rows = pa.array(order, pa.int64())
    writers, placement = pages.writers, pages.placement
    return replace(
        pages,
        before=pages.before.take(rows),
        after=pages.after.take(pa.array(after, pa.int64())),
        produced=tuple(sizes.tolist()),
        writers=tuple(writers[row] for row in after.tolist()) if writers else (),
        witness=None if pages.witness is None else pages.witness.take(rows),
        truths=None if pages.truths is None else pages.truths.take(rows),
        placement=placement
        and replace(placement, numbers=tuple(placement.numbers[row] for row in after.tolist())),
    )


def spans(starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the concatenated ranges.

    >>> spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    skipped = np.cumsum(sizes) - sizes
    return np.repeat(starts - skipped, sizes) + np.arange(sizes.sum())


def first_of_each(groups: npt.NDArray[np.int64], limit: int) -> npt.NDArray[np.int64]:
    """Return up to ``limit`` ascending row indices: the first row of every group, then the second,
    and so on.
    """
    if len(groups) <= limit:
        return np.arange(len(groups))
    by_group = (np.flatnonzero(groups == group)[:limit] for group in ascending(groups))
    ranked = [(rank, rows[0], row) for rows in by_group for rank, row in enumerate(rows.tolist())]
    return np.array(sorted(row for _, _, row in sorted(ranked)[:limit]), np.int64)


def count_row_ids(pages: PageSample) -> int:
    return len(different_codes(row_id_codes(pages.row_ids)))


def different_codes(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.flatnonzero(np.bincount(codes[codes >= 0]))


def row_id_codes(row_ids: pa.Array) -> npt.NDArray[np.int64]:
    """Return a number per distinct row id; -1 for NULL."""
    codes = value_codes(row_ids)
    codes[row_ids.is_null().to_numpy(zero_copy_only=False)] = -1
    return codes


def value_codes(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return a number per distinct value; NULL is a value too.

    >>> value_codes(pa.array(["b", None, "a", "b"])).tolist()
    [0, 1, 2, 0]
    """
    if pa.types.is_struct(values.type):
        codes: npt.NDArray[np.int64] = (
            values.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
        )
        for field in values.flatten():
            parts = value_codes(field)
            # Renumbered after each field to keep the product small.
            codes = np.unique(codes * (parts.max(initial=0) + 1) + parts, return_inverse=True)[
                1
            ].astype(np.int64)
        return codes
    numbers: npt.NDArray[np.int64]
    try:
        indices = values.dictionary_encode(null_encoding="encode").indices
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        # Arrow cannot dictionary-encode arrays and maps.
        texts = np.array(list(map(repr, python_values(values))), dtype=object)
        numbers = np.unique(texts, return_inverse=True)[1].astype(np.int64)
        return numbers
    numbers = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
