"""The join of target and source, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rowmerge_nb.trace.clause_record import Term


@dataclass(frozen=True)
class MatchedRow:
    """A matching source row, and the clause it took (-1 for none)."""

    source_row: int | None
    values: Mapping[str, Any]
    case_number: int


@dataclass(frozen=True)
class MatchPattern:
    """Target rows with the same combination of matches; counts stop at 2, which means "several".

    Args:
        acting: matches for which a changing clause fired: ``updates`` plus ``deletes``.
        repeated: one clause, or no clause, took several of them.
    """

    matches: int
    acting: int
    updates: int
    deletes: int
    repeated: bool
    rows: int


@dataclass(frozen=True)
class DuplicateGroup:
    """A target row with several matches.

    Args:
        target: its values; empty if they could not be fetched.
        case_number: the clause that fired more than once; None for several clauses.
    """

    row_id: Any
    target: Mapping[str, Any]
    sources: tuple[MatchedRow, ...]
    case_number: int | None
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class JoinRecord:
    """The join of target and source; all fields are empty for a statement without one.

    Args:
        source_alias: the name of the source in the statement; ``""`` without one.
        rows: output rows: ``matched_rows`` plus ``unmatched_rows`` plus, under FULL,
            ``unmatched_target_rows``.
        unmatched_rows: source rows without a target row.
        unmatched_target_rows: target rows without a source row; None if the join drops them.
        duplicate_groups: target rows with several matches, some of them.
        multiple_matches: the match patterns of such rows; None if unknown.
    """

    on: Term | None = None
    source_alias: str = ""
    rows: int | None = None
    matched_rows: int | None = None
    unmatched_rows: int | None = None
    unmatched_target_rows: int | None = None
    source_rows: int | None = None
    duplicate_groups: tuple[DuplicateGroup, ...] = ()
    multiple_matches: tuple[MatchPattern, ...] | None = None
