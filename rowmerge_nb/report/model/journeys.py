"""Row journeys as they are shown: a line per joined row, and beneath it why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.model.clauses import clause_label
from rowmerge_nb.report.model.pages import row_limit
from rowmerge_nb.report.words.display_values import cell, with_ends
from rowmerge_nb.report.words.near_sentences import near_sentence
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.report.words.reasons import MARKS, gist_of, mark_of, reason_of, reasons_of
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.journeys import Fate, asked_journeys, journeys_of
from rowmerge_nb.trace.samples import count_row_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rowmerge_nb.trace.journeys import Journey, Verdict
    from rowmerge_nb.trace.trace import AskedRows, Trace

_VALUES: Final = 48


@dataclass(frozen=True)
class Mark:
    """What a clause did about a row: one character, its style, and the sentence that it stands for."""

    text: str
    style: str
    reason: str


@dataclass(frozen=True)
class JourneyRow:
    """A journey as texts: the row, the join, the clauses, what became of it, who stored that, and why, in one sentence and in all of them.

    ``told`` is all that there is to say of it, in the order in which it was asked: also which clauses are not about rows like it, and of a source
    row without a partner which key of the target is nearest. ``by_null``: the one sentence speaks of a NULL that made a condition unknown.
    """

    source: str
    target: str
    join: str
    clause: str
    marks: tuple[Mark, ...]
    style: str
    becomes: str
    writers: str
    gist: str
    reasons: tuple[str, ...]
    told: tuple[str, ...]
    by_null: bool = False

    @property
    def opened(self) -> tuple[str, ...]:
        """What a row opens to: what the sentence about it has not said."""
        return tuple(said for said in self.told if said not in self.gist)

    @property
    def which(self) -> str:
        """The row, of the source, or where it has none of the target."""
        return f"Source row {self.source}" if self.source else f"Target row {self.target}"

    @property
    def head(self) -> str:
        """The row, and what becomes of it."""
        return f"{self.which}: {self.clause}"

    @property
    def strip(self) -> str:
        """The marks in one text."""
        return " ".join(mark.text for mark in self.marks).rstrip()


@dataclass(frozen=True)
class Journeys:
    """Journeys in the order of the source, and a summary.

    Args:
        joined: the rows come from a join; those of UPDATE and DELETE were chosen by the WHERE condition.
        stored_by: what stored a row: ``to writer``, or in the older flow ``split``.
        source_columns: the columns of the source rows in one text, and ``target_columns`` those of the target rows; ``""`` without.
        complete: they are those of all joined rows.
        asked: the condition by which they were asked for; ``""`` where they were not.
        remark: what a reader must know about what is missing; otherwise ``""``.
        others: target rows that took no part, the first ones, and ``apart`` a sentence that counts them; ``""`` where they are not known.
    """

    rows: tuple[JourneyRow, ...]
    summary: str
    joined: bool
    stored_by: str
    complete: bool
    asked: str = ""
    remark: str = ""
    others: tuple[str, ...] = ()
    apart: str = ""
    source_columns: str = ""
    target_columns: str = ""

    @property
    def clauses(self) -> tuple[int, ...]:
        """The numbers of the clauses, in the order of the marks."""
        return tuple(range(len(self.rows[0].marks))) if self.rows else ()

    @property
    def marks(self) -> str:
        """What the marks mean that there are."""
        there = {mark.text for row in self.rows for mark in row.marks}
        return ", ".join(f"{mark.strip() or 'blank'} = {meaning}" for mark, meaning in MARKS.items() if mark in there)

    @property
    def by_themselves(self) -> bool:
        """Whether they are shown to those who have not asked for this part."""
        return bool(self.asked) or (self.complete and bool(self.rows or self.others))

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads of the columns."""
        if self.joined:
            return ("source row", "join", "target row", "clauses", "fires", "becomes", self.stored_by)
        return ("row", "operation", "becomes", self.stored_by)

    @property
    def columns(self) -> dict[str, str]:
        """By the head of a column that holds rows the names of what stands in them."""
        return {"source row": self.source_columns, "target row": self.target_columns, "row": self.target_columns}

    def values(self, row: JourneyRow) -> tuple[str, ...]:
        """Return the texts of a row, one per head."""
        if self.joined:
            return (row.source, row.join, row.target, row.strip, row.clause, row.becomes, row.writers)
        return (row.target, row.clause, row.becomes, row.writers)


def build_journeys(trace: Trace) -> Journeys | None:
    """Make the journeys of a trace; None where rows were not kept with both sides."""
    asked = trace.asked if trace.pages is None or not trace.pages.complete or trace.pages.witness is None else None
    shown = journeys_of(trace, row_limit(8)) if asked is None else asked_journeys(trace)
    others, apart = _others(trace)
    if shown is None and not others:
        return None
    shown = shown or ()
    total = trace.joined if trace.joined is not None else len(shown)
    joined = trace.kind == "MERGE"
    rows = plural(total, "joined row" if joined else "row")
    complete = len(shown) >= total
    near = _near(trace)
    summary = rows if complete else f"{number(len(shown))} of {rows}"
    if asked is not None:
        summary += f", asked for by {asked.condition}"
    return Journeys(
        rows=tuple(_with_near(journey_row(journey, joined), near.get(journey.source_row)) for journey in shown),
        summary=summary,
        joined=joined,
        stored_by="split" if trace.flow == Flow.UPDATABLE else "to writer",
        complete=complete,
        asked=asked.condition if asked is not None else "",
        remark=_remark(asked),
        others=others,
        apart=apart,
        source_columns=_columns(journey.source for journey in shown),
        target_columns=_columns(journey.target for journey in shown),
    )


def _columns(rows: Iterable[Mapping[str, Any] | None]) -> str:
    """Write the names of the columns of rows as the rows themselves are written."""
    names = next((tuple(row) for row in rows if row is not None), ())
    return cell(names, _VALUES).text if names else ""


def _near(trace: Trace) -> dict[int | None, str]:
    """Describe by the numbers of source rows which keys those without a partner are near to, or that none is."""
    near = trace.near
    if near is None or near.source is None:
        return {}
    return {row.row: near_sentence(row, near.terms, "source") for row in near.source.told if row.row is not None}


def _with_near(row: JourneyRow, near: str | None) -> JourneyRow:
    return row if near is None else replace(row, told=(*row.told[:1], near, *row.told[1:]))


def _remark(asked: AskedRows | None) -> str:
    """Return what is missing of the rows that were asked for."""
    if asked is None:
        return ""
    if asked.more:
        return "There are more such rows; so many are told at most."
    return asked.problem or ("" if asked.pages is not None else "No row is like this.")


def _others(trace: Trace) -> tuple[tuple[str, ...], str]:
    """Write the target rows that took no part, and count them; nothing where they are not known, and where there are none."""
    rows, pages = trace.untouched, trace.pages
    if rows is None or not rows.num_rows:
        return (), ""
    written = tuple(cell(tuple(map(with_ends, row)), _VALUES).text for row in zip(*map(python_values, rows.columns), strict=True))
    touched = 0 if pages is None else count_row_ids(pages)
    total = rows.num_rows if trace.rows_before is None else trace.rows_before - touched
    first = "" if total <= rows.num_rows else f", the first {number(rows.num_rows)}"
    them, partners = ("it", "a partner") if total == 1 else ("them", "partners")
    why = f"no row of the source has {them} for {partners}" if trace.kind == "MERGE" else f"WHERE is not true for {them}"
    return written, f"{plural(total, 'target row')} untouched, since {why}{first}"


def journey_row(journey: Journey, joined: bool) -> JourneyRow:
    """Write a journey.

    Args:
        journey: the journey.
        joined: the row comes from a join.
    """
    clause = f"{clause_label(journey.case_number)} {journey.operation.name}" if joined else journey.operation.name
    clause = "no clause fired" if journey.case_number < 0 else clause
    at = "" if journey.source_row is None else f"{number(journey.source_row)} "
    writers = dict.fromkeys("?" if writer < 0 else str(writer) for writer in journey.writers)
    return JourneyRow(
        source=f"{at}{_values(journey.source)}".strip(),
        target=_values(journey.target),
        join=journey.join,
        clause=clause,
        marks=tuple(_mark(verdict) for verdict in journey.verdicts),
        style=style_of(journey.operation),
        becomes=" + ".join(journey.becomes) or "dropped",
        writers=", ".join(writers),
        gist=gist_of(journey),
        reasons=tuple(reasons_of(journey)),
        told=tuple(reasons_of(journey, apart=True)),
        by_null=journey.barred is not None or (journey.case_number < 0 and any(v.fate is Fate.UNKNOWN for v in journey.verdicts)),
    )


def _mark(verdict: Verdict) -> Mark:
    text = mark_of(verdict)
    return Mark(text, text if text in "DUI" else "N", reason_of(verdict))


def _values(side: Mapping[str, Any] | None) -> str:
    return "" if side is None else cell(tuple(map(with_ends, side.values())), _VALUES).text
