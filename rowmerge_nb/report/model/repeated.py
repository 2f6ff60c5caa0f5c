"""Trino's rule about repeated matches compared with that of the SQL standard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.words import MINUS, code, number
from rowmerge_nb.report.model.placing import BY_ORDER, DELETE_AND_INSERT
from rowmerge_nb.report.words.display_values import cell, with_ends
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.trace.join_record import MatchPattern
from rowmerge_nb.trace.journeys import NO_CLAUSE, JoinResult, case_numbers, joins_of, journeys_at
from rowmerge_nb.trace.near import KeyDifference
from rowmerge_nb.trace.verdicts import STANDARD, TRINO, MatchedClauses

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.trace.clause_record import ClauseRecord
    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.trace import Trace

EQUALITY: Final = (
    "Equality of values is a separate question: Trino compares exactly, so 'Eve ' is"
    " not 'Eve'; in the standard, the collation decides whether trailing blanks and case"
    " count. Both agree that NULL equals nothing, and that unknown is not true."
)
_RULES: Final = (
    "Trino fails if a pair (unique_id, case_number), a target row and the clause that"
    " takes it, occurs twice; the SQL standard fails if two source rows change one target"
    " row."
)
_SO: Final = (
    " So two clauses that each change the row pass {check} and fail in the standard. Two source rows"
    " for which no clause fires, the pair (unique_id, {none}) twice, fail in Trino and pass in the"
    " standard."
)
_ELSE: Final = " In all other questions about rows and clauses, the two agree."
_IN_PLACE: Final = (
    " If rows are changed in place, as here, two clauses that each change the row"
    f" fail as well: {BY_ORDER}."
)
_ELSEWHERE: Final = (
    " If a store changes rows in place (CHANGE_ONLY_UPDATED_COLUMNS), two clauses"
    " that each change the row also fail, by this engine's own rule."
)
_STANDARD: Final = code('duplicates="standard"')
_DECIDES: Final = {
    RepeatedMatches.TRINO: "",
    RepeatedMatches.STANDARD: (
        f" The standard's rule decides here, since the option {_STANDARD} asks for it."
    ),
}
_ROOM: Final = 48


@dataclass(frozen=True)
class Example:
    """Two hypothetical matches of one target row."""

    rows: str
    trino: str
    standard: str


@dataclass(frozen=True)
class Repeated:
    """The two rules compared.

    Args:
        sentence: everything as sentences, for output without a table.
        examples: the results of both for rows like those of the statement.
        equality: which values are equal, which neither rule defines.
    """

    sentence: str
    rules: str
    examples: tuple[Example, ...]
    here: str
    equality: str
    is_repeated: bool


def build_repeated(trace: Trace) -> Repeated | None:
    if not _is_checked(trace):
        return None
    return Repeated(
        repeated_matches(trace),
        f"{_RULES}{_in_place(trace)}{_ELSE}{_DECIDES[trace.settings.duplicates]}",
        tuple(_examples(trace)),
        _answers(trace),
        f"{EQUALITY}{_unequal(trace)}",
        bool(trace.join.multiple_matches),
    )


def repeated_matches(trace: Trace) -> str:
    """Describe both rules and their results; ``""`` without a duplicate check."""
    if not _is_checked(trace):
        return ""
    check = "Trino's check" if _is_in_place(trace) else "in Trino"
    so = _SO.format(check=check, none=_none(trace))
    rules = f"{_RULES}{so}{_in_place(trace)}{_ELSE}{_DECIDES[trace.settings.duplicates]}"
    return " ".join(filter(None, [rules, _answers(trace)]))


def _is_checked(trace: Trace) -> bool:
    return (
        trace.kind == "MERGE"
        and trace.settings.duplicates in _DECIDES
        and any(node.kind == "DuplicateCheck" for node in trace.plan)
    )


def _in_place(trace: Trace) -> str:
    if _is_in_place(trace):
        return _IN_PLACE
    return _ELSEWHERE if trace.settings.duplicates == RepeatedMatches.TRINO else ""


def _is_in_place(trace: Trace) -> bool:
    return trace.settings.paradigm != DELETE_AND_INSERT


def _none(trace: Trace) -> str:
    return "NULL" if trace.settings.era == Era.CURRENT else f"{MINUS}1"


def _examples(trace: Trace) -> Iterator[Example]:
    changing = [
        clause
        for clause in trace.clauses
        if clause.matched and clause.operation in {Operation.UPDATE, Operation.DELETE}
    ]
    match = _matched(trace, [clause.number for clause in changing])
    first = next(
        (one for one in changing if match is None or one.number == match.case_number), None
    )
    idle = _matched(trace, [NO_CLAUSE])
    if first is not None:
        row = _row(match, f"a source row that takes clause {first.number}")
        yield _example(trace, f"{row}, twice", (first, first))
        other = next((clause for clause in changing if clause is not first), None)
        if other is not None:
            yield _example(
                trace,
                f"{row}, and another one for the same target row, which takes clause"
                f" {other.number}",
                (first, other),
            )
        yield _example(
            trace,
            f"{row}, and another one for the same target row, for which no clause fires",
            (first, None),
        )
    yield _example(
        trace,
        f"{_row(idle, 'a matched source row')}, for which no clause fires, twice",
        (None, None),
    )


def _matched(trace: Trace, numbers: Sequence[int]) -> Journey | None:
    pages = trace.samples.pages
    if pages is None:
        return None
    journeys = journeys_at(
        trace, (joins_of(pages) == JoinResult.MATCHED) & np.isin(case_numbers(pages), numbers), 1
    )
    return journeys[0] if journeys else None


def _row(journey: Journey | None, without: str) -> str:
    if journey is None or journey.source is None:
        return without
    at = "" if journey.source_row is None else f" {number(journey.source_row)}"
    suffix = "" if journey.case_number < 0 else f", which takes clause {journey.case_number}"
    return (
        f"source row{at} {cell(tuple(map(with_ends, journey.source.values())), _ROOM).text}{suffix}"
    )


def _example(
    trace: Trace, rows: str, clauses: tuple[ClauseRecord | None, ClauseRecord | None]
) -> Example:
    acting = [clause for clause in clauses if clause is not None]
    deletes = sum(clause.operation is Operation.DELETE for clause in acting)
    pattern = MatchPattern(
        2, len(acting), len(acting) - deletes, deletes, clauses[0] is clauses[1], 1
    )
    matched_clauses = MatchedClauses.of(trace.clauses)
    pairs = [
        f"(unique_id, {_none(trace) if clause is None else clause.number})" for clause in clauses
    ]
    pairs_text = (
        f"{pairs[0]} comes twice"
        if pattern.repeated
        else f"{pairs[0]} and {pairs[1]} are two pairs"
    )
    crossing = _is_in_place(trace) and len(acting) > 1 and not pattern.repeated
    changes = (
        "no source row changes it",
        "one source row changes it",
        "two source rows change it",
    )[len(acting)]
    return Example(
        rows,
        f"{_word(crossing or TRINO.fails(pattern, matched_clauses))}:"
        f" {pairs_text}{', but rows are changed in place' if crossing else ''}",
        f"{_word(STANDARD.fails(pattern, matched_clauses))}: {changes}",
    )


def _word(fails: bool) -> str:
    return "fails" if fails else "runs"


def _answers(trace: Trace) -> str:
    patterns = trace.join.multiple_matches
    if patterns is None:
        return ""
    if not patterns:
        return "Here no target row is matched twice, so both allow it."
    standard = any(one.acting > 1 for one in patterns)
    trino = any(one.repeated for one in patterns) or (standard and _is_in_place(trace))
    if trino == standard:
        return "Here both fail." if trino else "Here both allow it."
    passes, fails = ("the standard", "Trino's rule") if trino else ("Trino's rule", "the standard")
    return f"Here {passes} allows it, and {fails} fails."


def _unequal(trace: Trace) -> str:
    near = trace.samples.near_misses
    rows = () if near is None or near.source is None else near.source.told
    for row in rows:
        if (
            row.nearest is not None
            and row.kinds
            and set(row.kinds) <= {KeyDifference.TRAILING_BLANKS, KeyDifference.CASE}
        ):
            key, nearest = (
                cell(with_ends(side if len(side) > 1 else side[0]), _ROOM).text
                for side in (row.key, row.nearest)
            )
            at = "" if row.row is None else f" {number(row.row)}"
            return (
                f" Here source row{at} has {key}, which is not the target's {nearest}; by some"
                " collations it is."
            )
    return ""
