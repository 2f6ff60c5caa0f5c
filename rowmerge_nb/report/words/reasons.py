"""Sentences about the effect of each clause on a row."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.report.words.display_values import cell, visible
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.trace.journeys import Fate, JoinResult
from rowmerge_nb.trace.page_samples import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.trace.journeys import Journey, TermTruth, Verdict

MARKS: Final = {
    "D": "a DELETE fires",
    "U": "an UPDATE fires",
    "I": "an INSERT fires",
    "\N{MIDDLE DOT}": "DO NOTHING fires",
    "f": "false",
    "?": "unknown",
    "e": "cannot be computed",
    "x": "not true",
    "–": "is about other rows",
    " ": "not reached",
}
"""The meanings of the marks of `mark_of`."""
_MARKS: Final = {
    Fate.FALSE: "f",
    Fate.UNKNOWN: "?",
    Fate.NOT_TRUE: "x",
    Fate.NOT_REACHED: " ",
    Fate.NOT_APPLICABLE: "–",
}
_WORDS: Final = {
    Answer.TRUE: "true",
    Answer.FALSE: "false",
    Answer.UNKNOWN: "unknown",
    Answer.FAILED: "an error",
}
_VALUES: Final = 24


def mark_of(verdict: Verdict) -> str:
    """Return the mark of a clause's effect on a row, see `MARKS`.

    >>> from rowmerge_nb.spi.operations import Operation
    >>> from rowmerge_nb.trace.journeys import Verdict
    >>> from rowmerge_nb.trace.clause_record import ClauseRecord
    >>> mark_of(Verdict(ClauseRecord(0, Operation.DELETE, True, "WHEN MATCHED THEN DELETE", 1, 1), Fate.FIRES))
    'D'
    """
    if verdict.fate is Fate.FIRES:
        return verdict.clause.operation.letter
    if verdict.condition is not None and verdict.condition.answer is Answer.FAILED:
        return "e"
    return _MARKS[verdict.fate]


def reasons_of(journey: Journey, *, apart: bool = False) -> Iterator[str]:
    """Yield sentences about the join, each tried clause, and the result; ``apart`` includes clauses
    about other kinds of rows.
    """
    if journey.join is JoinResult.MATCHED:
        yield f"It has a partner: ON is true{because_of(journey.on)}."
    elif journey.join is JoinResult.NOT_MATCHED:
        yield f"It has no partner: {_unmatched(journey)}."
    elif journey.join is JoinResult.NOT_MATCHED_BY_SOURCE:
        yield "No source row matches it."
    listed_verdicts = [
        verdict for verdict in journey.verdicts if apart or verdict.fate is not Fate.NOT_APPLICABLE
    ]
    for fate, verdicts in groupby(listed_verdicts, key=lambda verdict: verdict.fate):
        if fate is Fate.NOT_REACHED:
            passed_over = [str(verdict.clause.number) for verdict in verdicts]
            yield (f"Only the first clause that fires applies: {_listed(passed_over)} not reached.")
        elif fate is Fate.NOT_APPLICABLE:
            yield _apart([str(verdict.clause.number) for verdict in verdicts], journey)
        else:
            yield from (
                f"{reason_of(verdict, by_where=journey.join is JoinResult.CHOSEN)}."
                for verdict in verdicts
            )
    if journey.case_number < 0:
        yield "No clause fires, so the row does nothing."


def _apart(numbers: list[str], journey: Journey) -> str:
    clauses = "Clause" if len(numbers) == 1 else "Clauses"
    return (
        f"{clauses} {_listed(numbers)} about other rows, not about those that are {journey.join}."
    )


def _unmatched(journey: Journey) -> str:
    part = journey.barred
    if part is None:
        return "ON is true for no row of the target"
    blamed = _listed(
        [column_in_reason(side, name) for side, name, _ in part.values], "is NULL", "are NULL"
    )
    return (
        f"{visible(' '.join(part.term.text.split()))} is unknown for every row of the target, since"
        f" {blamed}"
    )


def gist_of(journey: Journey) -> str:
    """Return the reason in short: a NULL that prevents a match, the clause that fired, or the first
    one that was not true.
    """
    barred = "" if journey.barred is None else f"It has no partner: {_unmatched(journey)}. "
    fired = [verdict for verdict in journey.verdicts if verdict.fate is Fate.FIRES]
    tried_verdicts = [
        v for v in journey.verdicts if v.fate not in {Fate.NOT_REACHED, Fate.NOT_APPLICABLE}
    ]
    unknown = [verdict for verdict in tried_verdicts if verdict.fate is Fate.UNKNOWN]
    for verdict in (*fired, *unknown, *tried_verdicts):
        return f"{barred}{reason_of(verdict, by_where=journey.join is JoinResult.CHOSEN)}."
    return f"{barred}No clause is about rows that are {journey.join}."


def reason_of(verdict: Verdict, *, by_where: bool = False) -> str:
    """Return a clause's effect on a row, and the reason; ``by_where`` means a WHERE condition."""
    clause, condition = verdict.clause, verdict.condition
    if by_where:
        return (
            "WHERE is true" + because_of(condition)
            if clause.conditional
            else "There is no WHERE, so every row is chosen"
        )
    name = f"Clause {clause.number}"
    if verdict.fate is Fate.NOT_REACHED:
        return f"{name} is not reached: an earlier clause fires"
    if verdict.fate is Fate.NOT_APPLICABLE:
        return f"{name} is about rows that are {_about(verdict)}"
    if verdict.fate is Fate.FIRES:
        if condition is None:
            return f"{name} fires" + ("" if clause.conditional else ": it has no condition")
        return f"{name} fires" + because_of(condition)
    if condition is None:
        return f"{name} is not true; whether it is false or unknown cannot be determined"
    if condition.answer is Answer.FAILED:
        return f"{name} cannot be recomputed"
    return f"{name} is {_WORDS[condition.answer]}" + because_of(condition)


def _about(verdict: Verdict) -> str:
    if verdict.clause.matched:
        return "matched"
    return "not matched by the source" if verdict.clause.by_source else "not matched"


def because_of(condition: TermTruth | None) -> str:
    """Return the smallest deciding parts with their values, and the parts that a NULL makes
    unknown, after a colon.
    """
    if condition is None:
        return ""
    deciding = tuple(dict.fromkeys(condition.deciding))
    parts = [_part(part, condition) for part in deciding]
    if condition.answer is not Answer.UNKNOWN:
        parts += [
            _part(part, condition)
            for part in dict.fromkeys(_leaves(condition))
            if part.answer is Answer.UNKNOWN
        ]
    return ": " + "; ".join(parts) if parts else ""


def _leaves(condition: TermTruth) -> Iterator[TermTruth]:
    if not condition.terms:
        yield condition
    for part in condition.terms:
        yield from _leaves(part)


def _part(part: TermTruth, whole: TermTruth) -> str:
    text = visible(" ".join(part.term.text.split()))
    clause_text = (
        text
        if part is whole or part.answer is whole.answer
        else f"{text} is {_WORDS.get(part.answer, 'not known')}"
    )
    blamed = [column_in_reason(side, name) for side, name, value in part.values if value is None]
    if part.answer is Answer.UNKNOWN and part.term.strict and blamed:
        return f"{clause_text}, since {_listed(blamed, 'is NULL', 'are NULL')}"
    values = ", ".join(
        f"{column_in_reason(side, name)} = {_shown(value)}" for side, name, value in part.values
    )
    return f"{clause_text} ({values})" if values else clause_text


def column_in_reason(side: str, name: str) -> str:
    """Return a column as the statement could name it; the side's name is quoted already."""
    return f"{side}.{visible(column_in_sql(name))}"


def _shown(value: Any) -> str:
    text = cell(value, _VALUES).text
    return f"'{text}'" if isinstance(value, str) else text


def _listed(names: list[str], one: str = "is", several: str = "are") -> str:
    """Join names to a subject with its verb.

    >>> _listed(["a"]), _listed(["1", "2", "3"])
    ('a is', '1, 2 and 3 are')
    """
    subject = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{subject} {one if len(names) == 1 else several}"
