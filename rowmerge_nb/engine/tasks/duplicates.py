"""Marking and checking of duplicate matches (design documents, "Detecting duplicate matching target
rows").

All matches of a target row must be in one task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.spi.operations import Era, RowChangeParadigm

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

Patterns = dict[tuple[int, int, int, int, bool], int]
"""The number of target rows by (matches, acting, updates, deletes, repeated), numbers capped at 2.
"""
SEVERAL = 2

NO_TARGET = -1
NO_CLAUSE = -1


@dataclass(frozen=True)
class MatchKeys:
    """Keys (unique_id, case_number) as plain numbers; -1 is NULL."""

    unique_id: npt.NDArray[np.int64]
    case_number: npt.NDArray[np.int32]

    @classmethod
    def of(cls, unique_id: pa.Array, case_number: pa.Array) -> MatchKeys:
        return cls(
            pc.fill_null(unique_id, NO_TARGET).to_numpy(zero_copy_only=False),
            pc.fill_null(case_number, NO_CLAUSE).to_numpy(zero_copy_only=False),
        )


def _sizes(
    *keys: npt.NDArray[np.int64] | npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return per row the number of rows with its key, and whether it is the first of them."""
    count = len(keys[0])
    if count == 0:
        return np.zeros(0, np.int64), np.zeros(0, bool)
    order = np.lexsort(keys[::-1])
    starts = np.zeros(count, bool)
    starts[0] = True
    for key in keys:
        ordered = key[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    group = np.cumsum(starts) - 1
    sizes = np.empty(count, np.int64)
    sizes[order] = np.bincount(group)[group]
    first = np.empty(count, bool)
    first[order] = starts
    return sizes, first


def _repeats(unique_id: npt.NDArray[np.int64]) -> bool:
    """Return whether a target row was matched twice; much faster than counting."""
    if (unique_id[1:] > unique_id[:-1]).all():
        return False
    ordered = np.sort(unique_id[unique_id != NO_TARGET])
    return bool((ordered[1:] == ordered[:-1]).any())


def mark_distinct(
    unique_id: pa.Array, case_number: pa.Array, era: Era, earlier_cases: set[int] | None = None
) -> pa.Array:
    """Build the channel ``is_distinct`` (int8, 0 or 1).

    Documents: 0 for every row of a repeated key, always 1 if ``unique_id`` is NULL. Current era: 1
    for the first row of a key, otherwise 0, NULLs included.

    Args:
        earlier_cases: case numbers of rows without a target row in earlier batches; updated.
    """
    keys = MatchKeys.of(unique_id, case_number)
    if era is Era.DOCUMENTS and not _repeats(keys.unique_id):
        return pa.array(np.ones(len(unique_id), np.int8))
    sizes, first = _sizes(keys.unique_id, keys.case_number)
    without = keys.unique_id == NO_TARGET
    distinct = first if era is Era.CURRENT else (sizes == 1) | without
    if earlier_cases is not None and era is Era.CURRENT:
        distinct &= ~(without & np.isin(keys.case_number, list(earlier_cases)))
        earlier_cases.update(ascending(keys.case_number[without]).tolist())
    return pa.array(distinct.astype(np.int8))


@dataclass(frozen=True)
class Duplicates:
    """Unique ids of repeated target rows."""

    failing: npt.NDArray[np.int64]
    warning: npt.NDArray[np.int64]


@dataclass(frozen=True)
class DuplicateRule:
    """The rule on repeated matches.

    Args:
        name: ``trino``: a repeated (unique_id, case_number) fails, including rows for which no
            clause fired. ``standard``: more than one acting source row per target row fails.
            ``none``: nothing fails.
        paradigm: under CHANGE_ONLY_UPDATED_COLUMNS two acting clauses on one row always fail,
            because row order would matter.
        idle: the case numbers of DO NOTHING clauses, whose rows do not act.
    """

    name: RepeatedMatches
    paradigm: RowChangeParadigm
    idle: tuple[int, ...] = ()

    def check(self, unique_id: pa.Array, case_number: pa.Array) -> Duplicates:
        """Return the repeatedly matched target rows; arguments as in `mark_distinct`."""
        keys = MatchKeys.of(unique_id, case_number)
        if self.name == RepeatedMatches.NONE:
            return Duplicates(keys.unique_id[:0], keys.unique_id[:0])
        matched = keys.unique_id != NO_TARGET
        ids, cases = keys.unique_id[matched], keys.case_number[matched]
        acting = ~np.isin(cases, (NO_CLAUSE, *self.idle))
        several = ascending(ids[acting][_sizes(ids[acting])[0] > 1])
        if self.name == RepeatedMatches.STANDARD:
            return Duplicates(several, several[:0])
        repeated = ascending(ids[_sizes(ids, cases)[0] > 1])
        crossing = np.setdiff1d(several, repeated, assume_unique=True)
        if self.paradigm is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS:
            return Duplicates(ascending(np.concatenate([repeated, crossing])), crossing[:0])
        return Duplicates(repeated, crossing)


def match_patterns(
    unique_id: pa.Array, case_number: pa.Array, updates: Collection[int], deletes: Collection[int]
) -> Patterns:
    """Count repeatedly matched target rows by pattern.

    >>> match_patterns(pa.array([5, 5, 6, 6, 7]), pa.array([0, 0, 0, -1, 0], pa.int32()), [0], [])
    {(2, 1, 1, 0, False): 1, (2, 2, 2, 0, True): 1}
    """
    keys = MatchKeys.of(unique_id, case_number)
    if not _repeats(keys.unique_id):
        return {}
    sizes, _ = _sizes(keys.unique_id)
    several = (sizes > 1) & (keys.unique_id != NO_TARGET)
    ids, cases = keys.unique_id[several], keys.case_number[several]
    order = np.lexsort((cases, ids))
    ids, cases = ids[order], cases[order]
    same = ids[1:] == ids[:-1]
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    again = np.concatenate([[False], same & (cases[1:] == cases[:-1])])
    columns = [
        np.minimum(np.add.reduceat(flags.astype(np.int64), starts), SEVERAL)
        for flags in (
            np.ones(len(ids), bool),
            np.isin(cases, [*updates, *deletes]),
            np.isin(cases, list(updates)),
            np.isin(cases, list(deletes)),
        )
    ]
    columns.append((np.add.reduceat(again.astype(np.int64), starts) > 0).astype(np.int64))
    patterns, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    rows = zip(patterns.tolist(), counts.tolist(), strict=True)
    return {(m, a, u, d, bool(repeated)): count for (m, a, u, d, repeated), count in rows}
