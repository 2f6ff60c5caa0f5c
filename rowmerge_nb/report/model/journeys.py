"""Row journeys for display."""

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
from rowmerge_nb.report.words.side_names import names_in, with_side_names
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.journeys import Fate, asked_journeys, journeys_of
from rowmerge_nb.trace.samples import count_row_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rowmerge_nb.trace.journeys import Journey, Verdict
    from rowmerge_nb.trace.page_samples import AskedRows
    from rowmerge_nb.trace.trace import Trace

_VALUES: Final = 48


@dataclass(frozen=True)
class ClauseMark:
    """A clause's effect on a row: one character and a sentence."""

    text: str
    style: str
    reason: str


@dataclass(frozen=True)
class JourneyRow:
    """A journey as text.

    ``gist`` is the reason in one sentence, ``reasons`` all of them.
    The unfolded row adds clauses about other rows, and the nearest target key.
    ``by_null``: the gist is about a NULL that made a condition unknown.
    """

    source: str
    target: str
    join: str
    clause: str
    marks: tuple[ClauseMark, ...]
    style: str
    becomes: str
    writers: str
    gist: str
    reasons: tuple[str, ...]
    sentences: tuple[str, ...]
    by_null: bool = False

    @property
    def opened(self) -> tuple[str, ...]:
        """The sentences of the unfolded row: those that the gist does not contain."""
        return tuple(sentence for sentence in self.sentences if sentence not in self.gist)

    @property
    def which(self) -> str:
        """The source row, or the target row without one."""
        return f"Source row {self.source}" if self.source else f"Target row {self.target}"

    @property
    def head(self) -> str:
        return f"{self.which}: {self.clause}"

    @property
    def strip(self) -> str:
        return " ".join(mark.text for mark in self.marks).rstrip()


@dataclass(frozen=True)
class Journeys:
    """Journeys in the order of the source, and a summary.

    Args:
        joined: the rows come from a join, not from a WHERE condition.
        remark: a sentence about missing rows, or ``""``.
        others: the first target rows that took no part; ``apart`` is a sentence that counts them.
    """

    rows: tuple[JourneyRow, ...]
    summary: str
    joined: bool
    stored_by: str
    complete: bool
    condition: str = ""
    remark: str = ""
    others: tuple[str, ...] = ()
    apart: str = ""
    source_columns: str = ""
    target_columns: str = ""

    @property
    def clauses(self) -> tuple[int, ...]:
        return tuple(range(len(self.rows[0].marks))) if self.rows else ()

    @property
    def marks(self) -> str:
        occurring = {mark.text for row in self.rows for mark in row.marks}
        return ", ".join(
            f"{mark.strip() or 'blank'} = {meaning}"
            for mark, meaning in MARKS.items()
            if mark in occurring
        )

    @property
    def by_themselves(self) -> bool:
        return bool(self.condition) or (self.complete and bool(self.rows or self.others))

    @property
    def heads(self) -> tuple[str, ...]:
        if self.joined:
            return (
                "source row",
                "join",
                "target row",
                "clauses",
                "fires",
                "becomes",
                self.stored_by,
            )
        return ("row", "operation", "becomes", self.stored_by)

    @property
    def columns(self) -> dict[str, str]:
        return {
            "source row": self.source_columns,
            "target row": self.target_columns,
            "row": self.target_columns,
        }

    def values(self, row: JourneyRow) -> tuple[str, ...]:
        if self.joined:
            return (
                row.source,
                row.join,
                row.target,
                row.strip,
                row.clause,
                row.becomes,
                row.writers,
            )
        return (row.target, row.clause, row.becomes, row.writers)


def build_journeys(trace: Trace) -> Journeys | None:
    """Build the journeys; None if rows of both sides were not recorded."""
    request = None if trace.samples.is_whole else trace.samples.requested_rows
    journeys = journeys_of(trace, row_limit(8)) if request is None else asked_journeys(trace)
    others, apart = _others(trace)
    if journeys is None and not others:
        return None
    journeys = with_side_names(journeys or (), names_in(trace))
    total = trace.join.rows if trace.join.rows is not None else len(journeys)
    joined = trace.kind == "MERGE"
    rows = plural(total, "joined row" if joined else "row")
    complete = len(journeys) >= total
    near = _near(trace)
    summary = rows if complete else f"{number(len(journeys))} of {rows}"
    if request is not None:
        summary += f", asked for by {request.condition}"
    return Journeys(
        rows=tuple(
            _with_near(journey_row(journey, joined), near.get(journey.source_row))
            for journey in journeys
        ),
        summary=summary,
        joined=joined,
        stored_by="split" if trace.settings.flow == Flow.UPDATABLE else "to writer",
        complete=complete,
        condition=request.condition if request is not None else "",
        remark=_remark(request),
        others=others,
        apart=apart,
        source_columns=_columns(journey.source for journey in journeys),
        target_columns=_columns(journey.target for journey in journeys),
    )


def _columns(rows: Iterable[Mapping[str, Any] | None]) -> str:
    names = next((tuple(row) for row in rows if row is not None), ())
    return cell(names, _VALUES).text if names else ""


def _near(trace: Trace) -> dict[int | None, str]:
    near = trace.samples.near_misses
    if near is None or near.source is None:
        return {}
    return {
        row.row: near_sentence(row, near.terms, "source")
        for row in near.source.told
        if row.row is not None
    }


def _with_near(row: JourneyRow, near: str | None) -> JourneyRow:
    return (
        row
        if near is None
        else replace(row, sentences=(*row.sentences[:1], near, *row.sentences[1:]))
    )


def _remark(request: AskedRows | None) -> str:
    if request is None:
        return ""
    if request.more:
        return "There are more such rows than are shown."
    return request.problem or ("" if request.pages is not None else "No row is like this.")


def _others(trace: Trace) -> tuple[tuple[str, ...], str]:
    rows, pages = trace.samples.untouched_rows, trace.samples.pages
    if rows is None or not rows.num_rows:
        return (), ""
    texts = tuple(
        cell(tuple(map(with_ends, row)), _VALUES).text
        for row in zip(*map(python_values, rows.columns), strict=True)
    )
    touched, rows_before = 0 if pages is None else count_row_ids(pages), trace.target.rows_before
    total = rows.num_rows if rows_before is None else rows_before - touched
    first = "" if total <= rows.num_rows else f", the first {number(rows.num_rows)}"
    them = "it" if total == 1 else "them"
    why = (
        f"no source row matches {them}"
        if trace.kind == "MERGE"
        else f"WHERE is not true for {them}"
    )
    return texts, f"{plural(total, 'target row')} untouched, since {why}{first}"


def journey_row(journey: Journey, joined: bool) -> JourneyRow:
    word = journey.operation.name
    if journey.operation is Operation.NONE:
        # Without its record nothing is known of a clause.
        word = "DO NOTHING" if journey.clause else ""
    clause = f"{clause_label(journey.case_number)} {word}".rstrip() if joined else word
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
        becomes=" + ".join(journey.becomes) or "no change",
        writers=", ".join(writers),
        gist=gist_of(journey),
        reasons=tuple(reasons_of(journey)),
        sentences=tuple(reasons_of(journey, apart=True)),
        by_null=journey.barred is not None
        or (journey.case_number < 0 and any(v.fate is Fate.UNKNOWN for v in journey.verdicts)),
    )


def _mark(verdict: Verdict) -> ClauseMark:
    text = mark_of(verdict)
    return ClauseMark(text, text if text in "DUI" else "N", reason_of(verdict))


def _values(side: Mapping[str, Any] | None) -> str:
    return "" if side is None else cell(tuple(map(with_ends, side.values())), _VALUES).text
