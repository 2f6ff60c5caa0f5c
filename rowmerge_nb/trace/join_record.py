"""The join of target and source, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
        rows: the number of target rows.
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
        sources: the first matching source rows.
        case_number: the clause that fired more than once; None for several clauses.
    """

    row_id: Any
    target: Mapping[str, Any]
    sources: tuple[MatchedRow, ...]
    case_number: int | None
    total: int = 0
