"""The explorer's state as JSON, in the words of the report.

The front end selects and draws; it computes nothing about the statement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import ROW_CHANGES, Flow, StatementState
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.explorer.explorer_pages import (
    NO_PAGE,
    after_page,
    before_page,
    stored_pages,
    value_text,
    values_of,
)
from rowmerge_nb.report.explorer.failed import (
    absent_parts,
    ended_steps,
    matched_rows,
    raised_parts,
    sides_of_groups,
)
from rowmerge_nb.report.explorer.legend import CALLS, legends
from rowmerge_nb.report.explorer.statement_steps import statement_steps
from rowmerge_nb.report.explorer.stations import distinct_station, finish_station
from rowmerge_nb.report.model.clauses import clause_label
from rowmerge_nb.report.model.journeys import journey_row
from rowmerge_nb.report.model.places import placed_rows
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.report.words.near_sentences import near_sentence
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.report.words.side_names import names_in, with_side_names
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.types import is_number
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.journeys import Fate, JoinResult, TermTruth, journeys_of, told_journeys
from rowmerge_nb.trace.node_records import ScanFacts
from rowmerge_nb.trace.page_samples import Answer
from rowmerge_nb.trace.samples import count_row_ids, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rowmerge_nb.report.model.report import Report
    from rowmerge_nb.report.words.phrases import Phrase
    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.near import NearKeys, NearRow
    from rowmerge_nb.trace.page_samples import AskedRows, PageSample
    from rowmerge_nb.trace.trace import Trace

FORMAT: Final = "rowmerge_nb explorer 1"
MOST_ROWS: Final = 30
"""The maximum number of rows that are shown."""
_GROUPS: Final = {
    JoinResult.MATCHED: "matched",
    JoinResult.NOT_MATCHED: "not matched",
    JoinResult.NOT_MATCHED_BY_SOURCE: "only in the target",
    JoinResult.CHOSEN: "chosen by WHERE",
}
_ALONE: Final = "No source row matches it, so no clause applies to it, and it is unchanged."
_NOT_CHOSEN: Final = "WHERE is not true for it, so it is unchanged."
_ANSWERS: Final = {
    Answer.TRUE: "true",
    Answer.FALSE: "false",
    Answer.UNKNOWN: "unknown",
    Answer.FAILED: "error",
}


def explorer_state(
    trace: Trace, untouched: pa.Table | None = None, first_line: int = 1
) -> dict[str, Any]:
    """Return a trace's state for the explorer, with the requested rows or the first ones.

    Args:
        untouched: target rows that the statement did not touch; None for those of the trace.
        first_line: the number of the statement's first line in its cell.

    Raises:
        RowMergeError: NOT_SUPPORTED for a trace without journeys of rows.
    """
    report = build_report(trace)
    request = _requested(trace)
    if request is not None:
        trace = replace(trace, samples=replace(trace.samples, pages=request.pages))
        report = replace(report, pages=build_report(trace).pages)
    journeys = with_side_names(_journeys(trace), names_in(trace))
    steps, untouched_count, near = statement_steps(trace), _untouched_count(trace), _near(trace)
    trace, journeys = _of_visible_rows(trace, journeys)
    pages = trace.samples.pages
    is_failed = trace.state == StatementState.FAILED
    total = trace.join.rows if trace.join.rows is not None else len(journeys)
    return {
        **_heading(report, trace),
        "sample": (
            "" if len(journeys) >= total or not journeys else _sample(len(journeys), total, request)
        ),
        "steps": ended_steps(trace, steps, first_line) if is_failed else steps,
        "failed": is_failed,
        "absent": absent_parts(trace),
        "raised": raised_parts(trace),
        "clauses": _clauses(report, trace),
        "tables": _tables(trace),
        "legends": legends(trace),
        "sides": (
            {side: _columns(pages, side) for side in ("source", "target")}
            if pages is not None
            else sides_of_groups(trace)
        ),
        "rows": _rows(trace, journeys, near),
        "untouched": untouched_count,
        "others": _others(
            trace, untouched if untouched is not None else _recorded_untouched(trace)
        ),
        "apart": (
            "that no source row matches" if trace.kind == "MERGE" else "that WHERE has not selected"
        ),
        "before": before_page(report, pages) if pages is not None and journeys else NO_PAGE,
        "after": (
            after_page(report, pages, placed_rows(trace))
            if pages is not None and journeys
            else NO_PAGE
        ),
        "writers": stored_pages(report, trace),
        "calls": _calls(report, trace),
    }


def _of_visible_rows(
    trace: Trace, journeys: tuple[Journey, ...]
) -> tuple[Trace, tuple[Journey, ...]]:
    """Reduce the trace's pages to the displayed rows, in their order."""
    pages = trace.samples.pages
    if pages is None or not journeys:
        return trace, journeys
    visible_rows = rows_of(pages, np.array([journey.page_row for journey in journeys]))
    return (
        replace(trace, samples=replace(trace.samples, pages=visible_rows)),
        tuple(replace(journey, page_row=index) for index, journey in enumerate(journeys)),
    )


def _heading(report: Report, trace: Trace) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": trace.kind,
        "statement": report.statement,
        "target": visible(trace.target.name),
        "tag": f"{report.outcome.tag}: " if report.outcome.tag else "",
        "outcome": _runs(report.outcome.sentence),
        "meta": _runs(report.outcome.meta),
        "options": {
            "paradigm": trace.settings.paradigm,
            "era": trace.settings.era,
            "duplicates": str(trace.settings.duplicates),
        },
    }


def _calls(report: Report, trace: Trace) -> list[dict[str, Any]]:
    writers = {call.order: call.number for call in trace.calls if call.caller == "writer"}
    return [
        {
            "order": row.order,
            "where": row.where,
            "writer": writers.get(row.order),
            "method": row.method,
            "given": row.given,
            "gave": row.gave,
            "means": CALLS.get(row.method, ""),
            "error": row.error,
        }
        for row in (report.calls.rows if report.calls is not None else ())
    ]


def _requested(trace: Trace) -> AskedRows | None:
    request = trace.samples.requested_rows
    if request is None or request.pages is None or trace.samples.is_whole:
        return None
    return request


def _sample(rows: int, total: int, request: AskedRows | None) -> str:
    if request is None:
        return f"{number(rows)} of {plural(total, 'row')}: the first that the trace holds"
    first = "the first that were" if request.more else "those"
    return (
        f"{number(rows)} of {plural(total, 'row')}: {first} asked for by"
        f" {visible(request.condition)}"
    )


def _journeys(trace: Trace) -> tuple[Journey, ...]:
    if trace.settings.flow == Flow.UPDATABLE:
        raise RowMergeError.unsupported(
            f"The explorer does not support the flow 'updatable', which this {trace.kind} used",
            hint="print(result) has its report.",
        )
    if trace.kind in ROW_CHANGES and trace.state == StatementState.FINISHED:
        return told_journeys(trace, MOST_ROWS)
    if (
        trace.kind in ROW_CHANGES
        and trace.state == StatementState.FAILED
        and trace.settings.paradigm
    ):
        return journeys_of(trace, MOST_ROWS) or ()
    raise RowMergeError.unsupported(
        f"The explorer has nothing to show for this {trace.kind}",
        hint="It shows a MERGE, UPDATE or DELETE of an existing table that ran or failed.",
    )


def _runs(phrase: Phrase) -> list[list[str]]:
    return [[run.text, run.style] for run in phrase]


def _clauses(report: Report, trace: Trace) -> list[dict[str, Any]]:
    rows = report.clauses.rows if report.clauses is not None else ()
    if not rows:
        return [
            {
                "number": clause.number,
                "label": "WHERE",
                "word": clause.operation.name,
                "style": style_of(clause.operation),
                "text": visible((clause.condition or clause).text),
                "line": clause.line,
                "rows": clause.rows,
            }
            for clause in trace.clauses
            if clause.number >= 0
        ]
    return [
        {
            "number": row.number,
            "label": clause_label(row.number) if row.number >= 0 else row.label,
            "word": "DO NOTHING" if row.number >= 0 and row.style == "N" else row.word,
            "style": row.style,
            "text": "\n".join(row.lines),
            "line": row.line,
            "rows": row.rows,
        }
        for row in rows
    ]


# -- rows


def _tables(trace: Trace) -> dict[str, str]:
    names = {"source": "", "target": visible(trace.target.name)}
    nodes = {node.id: node for node in trace.plan}
    for node in trace.plan:
        if node.kind == "Join":
            leaf = nodes[node.sources[-1]]
            while leaf.sources:
                leaf = nodes[leaf.sources[0]]
            names["source"] = visible(leaf.arguments) if leaf.kind == "TableScan" else ""
        elif isinstance(node.facts, ScanFacts) and node.facts.target:
            names["target"] = visible(node.arguments)
    return names


def _columns(pages: PageSample, side: str) -> list[dict[str, Any]]:
    if pages.witness is None or side not in pages.witness.schema.names:
        return []
    return [
        {
            "name": visible(field.name),
            "right": is_number(field.type),
        }
        for field in pages.witness.schema.field(side).type
    ]


def _rows(
    trace: Trace, journeys: Sequence[Journey], near: Mapping[int | None, str]
) -> list[dict[str, Any]]:
    if not journeys:
        return matched_rows(trace, MOST_ROWS)
    partners = _partners(journeys, trace.samples.pages)
    return [
        {**_row(journey, trace, near.get(journey.source_row, "")), "partner": partner}
        for journey, partner in zip(journeys, partners, strict=True)
    ]


def _row(journey: Journey, trace: Trace, near: str) -> dict[str, Any]:
    is_merge = trace.kind == "MERGE"
    texts = journey_row(journey, is_merge)
    pages = trace.samples.pages
    assert pages is not None
    row = journey.source if journey.source is not None else journey.target
    return {
        "number": journey.source_row,
        "name": value_text(next(iter((row or {}).values()), None)),
        "group": _GROUPS[journey.join],
        "source": values_of(journey.source),
        "target": values_of(journey.target),
        "marks": [[mark.text, mark.style, mark.reason] for mark in texts.marks] if is_merge else [],
        "style": texts.style,
        "fate": "none" if journey.operation is Operation.NONE else journey.operation.name,
        "clause": journey.case_number,
        "gist": texts.gist,
        "reasons": list(texts.reasons),
        "on": _term(journey.on if journey.on is not None else journey.barred),
        "near": near,
        "verdicts": [
            {"clause": v.clause.number, "fate": str(v.fate), "condition": _term(v.condition)}
            for v in journey.verdicts
            if v.fate is not Fate.NOT_APPLICABLE
        ],
        "values": [[visible(name), visible(text)] for name, text in _assigned(journey, trace)],
        "distinct": list(distinct_station(journey, pages)) if is_merge else [],
        "becomes": list(journey.becomes),
        "writers": list(journey.writers),
        "finish": list(finish_station(journey)),
        "made": values_of(journey.made),
    }


def _partners(journeys: Iterable[Journey], pages: PageSample | None) -> Iterator[int | None]:
    """Number the target rows of journeys: a row that several source rows match has one number."""
    numbers: dict[str, int] = {}
    ids = python_values(pages.row_ids) if pages is not None else ()
    for journey in journeys:
        row_id = ids[journey.page_row]
        yield None if row_id is None else numbers.setdefault(repr(row_id), len(numbers))


def _near(trace: Trace) -> dict[int | None, str]:
    near = trace.samples.near_misses
    if near is None or near.source is None:
        return {}
    # A match prevented by NULL alone is explained at ON.
    rows = (
        row
        for row in near.source.told
        if row.row is not None and (row.nearest is not None or not row.separations)
    )
    return {row.row: _near_words(row, near, "source") for row in rows}


def _near_words(row: NearRow, near: NearKeys, side: str) -> str:
    return (
        f"{'Near miss: ' if row.nearest is not None else ''}{near_sentence(row, near.terms, side)}"
    )


def _assigned(journey: Journey, trace: Trace) -> Iterable[tuple[str, str]]:
    return next(
        (clause.values for clause in trace.clauses if clause.number == journey.case_number), ()
    )


def _term(truth: TermTruth | None) -> dict[str, Any] | None:
    if truth is None:
        return None
    return {
        "text": visible(" ".join(truth.term.text.split())),
        "operator": truth.term.operator,
        "strict": truth.term.strict,
        "answer": _ANSWERS.get(truth.answer, "not known"),
        "values": [[side, visible(name), value_text(value)] for side, name, value in truth.values],
        "terms": [_term(part) for part in truth.terms],
    }


def _untouched_count(trace: Trace) -> int | None:
    pages, rows_before = trace.samples.pages, trace.target.rows_before
    if rows_before is None or pages is None or not trace.samples.is_whole:
        return None
    return rows_before - count_row_ids(pages)


def _recorded_untouched(trace: Trace) -> pa.RecordBatch | None:
    rows, pages = trace.samples.untouched_rows, trace.samples.pages
    if (
        rows is None
        or pages is None
        or pages.witness is None
        or "target" not in pages.witness.schema.names
    ):
        return rows
    return rows.select([field.name for field in pages.witness.schema.field("target").type])


def _others(trace: Trace, rows: pa.Table | pa.RecordBatch | None) -> list[dict[str, Any]]:
    if rows is None:
        return []
    why = _ALONE if trace.kind == "MERGE" else _NOT_CHOSEN
    columns = map(python_values, rows.slice(0, MOST_ROWS).columns)
    records = (
        dict(zip(rows.schema.names, values, strict=True)) for values in zip(*columns, strict=True)
    )
    return [
        {"cells": values_of(row), "why": why, "near": _near_target(trace, row)} for row in records
    ]


def _near_target(trace: Trace, row: Mapping[str, Any]) -> str:
    near = trace.samples.near_misses
    if near is None or near.target is None:
        return ""
    matches = (
        near_row
        for near_row in near.target.told
        if near_row.columns and near_row.columns.items() <= row.items()
    )
    return next((_near_words(near_row, near, "target") for near_row in matches), "")
