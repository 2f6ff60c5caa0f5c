"""The explorer's state as JSON, in the words of the report.

The front end selects and draws; it computes nothing of the statement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import ROW_CHANGES, Flow, RepeatedMatches, StatementState
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.explorer.failed import (
    absent_parts,
    ended_steps,
    matched_rows,
    raised_parts,
    sides_of_groups,
)
from rowmerge_nb.report.explorer.legend import CALLS, LEGENDS, asides, examples, legends
from rowmerge_nb.report.explorer.stations import distinct_station, finish_station
from rowmerge_nb.report.model.clauses import clause_label
from rowmerge_nb.report.model.journeys import journey_row
from rowmerge_nb.report.model.pages import Channel
from rowmerge_nb.report.model.places import place_sentence, placed_rows
from rowmerge_nb.report.model.placing import passage, writers_among, writers_phrase
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.words.display_values import cell, tail, visible
from rowmerge_nb.report.words.near_sentences import near_sentence
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.report.words.written_names import with_written_names
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.journeys import Answer, Fate, Join, TermTruth, journeys_of, told_journeys
from rowmerge_nb.trace.node_records import ScanFacts
from rowmerge_nb.trace.samples import count_row_ids, rows_of
from rowmerge_nb.trace.words import operation_letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rowmerge_nb.report.model.report import Report
    from rowmerge_nb.report.words.display_values import Cell
    from rowmerge_nb.report.words.phrases import Phrase
    from rowmerge_nb.spi.page import PageLayout
    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.near import NearKeys, NearRow
    from rowmerge_nb.trace.page_samples import AskedRows, PageSample
    from rowmerge_nb.trace.trace import Trace

FORMAT: Final = "rowmerge_nb explorer 1"
MOST_ROWS: Final = 30
"""The maximum number of rows shown: the first ones of the source."""
_GROUPS: Final = {
    Join.MATCHED: "matched",
    Join.NOT_MATCHED: "not matched",
    Join.NOT_MATCHED_BY_SOURCE: "only in the target",
    Join.CHOSEN: "chosen by WHERE",
}
_ALONE: Final = (
    "No row of the source has it for a partner, so no clause looks at it, and it stays as it is."
)
_NOT_CHOSEN: Final = "WHERE is not true for it, so it stays as it is."
_NO_PAGE: Final[Mapping[str, Any]] = {"channels": [], "rows": [], "handed": 0, "decided": 0}
_ANSWERS: Final = {
    Answer.TRUE: "true",
    Answer.FALSE: "false",
    Answer.UNKNOWN: "unknown",
    Answer.FAILED: "error",
}


def explorer_state(
    trace: Trace, untouched: pa.Table | None = None, first_line: int = 1
) -> dict[str, Any]:
    """Return the explorer's state of a trace: the requested rows of a large statement, or the first
    ones in the trace.

    Raises:
        RowMergeError: NOT_SUPPORTED for other traces.
    """
    report = build_report(trace)
    request = _requested(trace)
    if request is not None:
        trace = replace(trace, samples=replace(trace.samples, pages=request.pages))
        report = replace(report, pages=build_report(trace).pages)
    journeys = with_written_names(_journeys(trace), trace.statement)
    steps, untouched_rows, near = _steps(trace), _untouched(trace), _near(trace)
    if trace.samples.pages is not None and journeys:
        # From here on, only the displayed rows count, in their order.
        visible_rows = rows_of(
            trace.samples.pages, np.array([journey.page_row for journey in journeys])
        )
        trace = replace(trace, samples=replace(trace.samples, pages=visible_rows))
        journeys = tuple(replace(journey, page_row=index) for index, journey in enumerate(journeys))
    pages = trace.samples.pages
    is_failed = trace.state == StatementState.FAILED
    total = trace.join.rows if trace.join.rows is not None else len(journeys)
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
            {side: _sides(pages, side) for side in ("source", "target")}
            if pages is not None
            else sides_of_groups(trace)
        ),
        "rows": (
            [
                {**_row(journey, trace, near.get(journey.source_row, "")), "partner": partner}
                for journey, partner in zip(journeys, _partners(journeys, pages), strict=True)
            ]
            if journeys
            else matched_rows(trace, MOST_ROWS)
        ),
        "untouched": untouched_rows,
        "others": _others(
            trace, untouched if untouched is not None else _recorded_untouched(trace)
        ),
        "apart": (
            "that no source row matches" if trace.kind == "MERGE" else "that WHERE has not chosen"
        ),
        "before": (
            _page(_before_channels(report, pages), pages.before, pages, unfolded=pages.transformed)
            if pages is not None and journeys
            else _NO_PAGE
        ),
        "after": (
            _after(report, pages, placed_rows(trace))
            if pages is not None and journeys
            else _NO_PAGE
        ),
        "writers": _writers(report, trace),
        "calls": _calls(report, trace),
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
    is_shown = request is not None and request.pages is not None and not trace.samples.is_whole
    return request if is_shown else None


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
        msg, hint = (
            f"The explorer does not know the flow 'updatable', by which this {trace.kind} ran",
            "print(result) has its report.",
        )
    elif (
        trace.kind in ROW_CHANGES
        and trace.state == StatementState.FAILED
        and trace.settings.paradigm
    ):
        return journeys_of(trace, MOST_ROWS) or ()
    elif trace.kind not in ROW_CHANGES or trace.state != StatementState.FINISHED:
        msg, hint = (
            f"The explorer has nothing to show of this {trace.kind}",
            "It shows a MERGE, UPDATE or DELETE of an existing table that ran or failed.",
        )
    else:
        return told_journeys(trace, MOST_ROWS)
    raise RowMergeError(msg, code="NOT_SUPPORTED", hint=hint)


def _runs(phrase: Phrase) -> list[list[str]]:
    return [[run.text, run.style] for run in phrase]


# -- steps ----------------------------------------------------------------------------------------------------------------


def _steps(trace: Trace) -> list[dict[str, Any]]:
    merged, pages = trace.kind == "MERGE", trace.samples.pages
    taken_rows = sum(clause.rows or 0 for clause in trace.clauses if clause.number >= 0)
    joined = plural(trace.join.rows or 0, "joined row" if merged else "row")
    stored_rows = sum(sum(writer.rows.values()) for writer in trace.writers)
    fragments = sum(writer.fragments for writer in trace.writers)
    steps = [
        (
            "read",
            "read",
            (
                "Reads both tables."
                if merged
                else "Reads the table and keeps the rows for which WHERE is true."
            ),
        )
    ]
    if merged:
        steps.append(("join", "join", _join_sentence(trace)))
        steps.append(
            (
                "case",
                "CASE",
                "Tries the WHEN clauses in their order; the first that is true wins, and unknown is"
                " not true."
                + (
                    f" {number(taken_rows)} of {joined} are taken by a clause."
                    if trace.join.rows is not None
                    else ""
                ),
            )
        )
        steps.append(
            (
                "distinct",
                "distinct",
                (
                    f"{_MARKED[trace.settings.duplicates]} A row without a target row is in no such"
                    f" pair.{_repeated(trace)}"
                ),
            )
        )
    if pages is not None and pages.transformed:
        steps.append(
            (
                "transform",
                "transform_page",
                (
                    "Filters out rows that change nothing, and gives each change the connector's"
                    f" form: {passage(trace, pages.total_before, pages.total_after)}."
                ),
            )
        )
    if any(node.kind == "Exchange" for node in trace.plan):
        steps.append(("exchange", "exchange", place_sentence(trace)))
    steps.append(
        (
            "sinks",
            "sinks",
            (
                f"{_hands(trace)} {plural(stored_rows, 'row')} to"
                f" {'its sink' if len(trace.writers) == 1 else 'their sinks, one each'}, out of"
                " sight of readers."
            ),
        )
    )
    steps.append(
        (
            "finish",
            "finish_merge",
            (
                f"The connector gets {plural(fragments, 'fragment')}, which"
                f" {'names' if fragments == 1 else 'name'} what the sinks have stored."
            ),
        )
    )
    version = (
        f", as version {trace.target.version_after} of the table"
        if trace.target.version_after is not None
        else ""
    )
    commit_sentence = (
        f"All of it becomes visible at once{version}."
        if trace.committed
        else "It was a rehearsal: all of it was rolled back."
    )
    steps.append(("commit", "commit" if trace.committed else "rollback", commit_sentence))
    aside_texts = asides(trace)
    return [
        {
            "key": key,
            "name": name,
            "says": says,
            "aside": aside_texts.get(key, ""),
            "examples": examples(trace) if key == "distinct" else [],
            "legend": LEGENDS.get(key, []),
        }
        for key, name, says in steps
    ]


def _hands(trace: Trace) -> str:
    among, writer_count = writers_among(trace), len(trace.writers)
    if among is not None and among > writer_count:
        return (
            f"{writers_phrase(trace)}; a writer without rows makes no sink."
            f" {'It hands' if writer_count == 1 else 'They hand'}"
        )
    return f"{plural(writer_count, 'writer')} {'hands' if writer_count == 1 else 'hand'}"


_MARKED: Final = {
    RepeatedMatches.TRINO: (
        "Marks pairs of a target row and a clause that come more than once: one ends the statement."
    ),
    RepeatedMatches.STANDARD: (
        "Marks pairs of a target row and a clause that come more than once. What ends the statement"
        " is a target row that two source rows change."
    ),
    RepeatedMatches.NONE: (
        "Marks pairs of a target row and a clause that come more than once, and lets them pass."
    ),
}


def _repeated(trace: Trace) -> str:
    patterns = trace.join.multiple_matches
    if patterns is None:
        return ""
    rows = sum(pattern.rows for pattern in patterns)
    if not rows:
        return " Here no target row is matched twice."
    return (
        f" Here {plural(rows, 'target row')} {'is' if rows == 1 else 'are'} matched more than once."
    )


def _join_sentence(trace: Trace) -> str:
    says = (
        "Pairs every source row with the target rows for which ON is true; one without stays, with"
        " NULLs"
    )
    join = trace.join
    if join.rows is None:
        return f"{says}."
    parts = [
        f"{number(join.matched_rows or 0)} matched",
        f"{number(join.unmatched_rows or 0)} not matched",
    ]
    if join.unmatched_target_rows is not None:
        parts.append(f"{number(join.unmatched_target_rows)} of the target without a partner")
    return f"{says}: {', '.join(parts)}."


def _clauses(report: Report, trace: Trace) -> list[dict[str, Any]]:
    rows = report.clauses.rows if report.clauses is not None else ()
    if not rows:
        return [
            {
                "number": clause.number,
                "label": "WHERE",
                "word": clause.operation.name,
                "style": style_of(clause.operation),
                "text": (
                    visible(clause.condition.text)
                    if clause.condition is not None
                    else visible(clause.text)
                ),
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


# -- rows -----------------------------------------------------------------------------------------------------------------


def _tables(trace: Trace) -> dict[str, str]:
    names = {"source": "", "target": visible(trace.target.name)}
    nodes = {node.id: node for node in trace.plan}
    for node in trace.plan:
        if node.kind == "Join":
            read = nodes[node.sources[-1]]
            while read.sources:
                read = nodes[read.sources[0]]
            names["source"] = visible(read.arguments) if read.kind == "TableScan" else ""
        elif isinstance(node.facts, ScanFacts) and node.facts.target:
            names["target"] = visible(node.arguments)
    return names


def _sides(pages: PageSample, side: str) -> list[dict[str, Any]]:
    if pages.witness is None or side not in pages.witness.schema.names:
        return []
    fields = pages.witness.schema.field(side).type
    return [
        {
            "name": visible(f.name),
            "right": (
                pa.types.is_floating(f.type)
                or pa.types.is_integer(f.type)
                or pa.types.is_decimal(f.type)
            ),
        }
        for f in fields
    ]


def _row(journey: Journey, trace: Trace, near: str) -> dict[str, Any]:
    merged = trace.kind == "MERGE"
    texts = journey_row(journey, merged)
    pages = trace.samples.pages
    assert pages is not None
    lead = journey.source if journey.source is not None else journey.target
    return {
        "number": journey.source_row,
        "name": _value(next(iter((lead or {}).values()), None)),
        "group": _GROUPS[journey.join],
        "source": _values(journey.source),
        "target": _values(journey.target),
        "marks": [[mark.text, mark.style, mark.reason] for mark in texts.marks] if merged else [],
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
        "distinct": list(distinct_station(journey, pages)) if merged else [],
        "becomes": list(journey.becomes),
        "writers": list(journey.writers),
        "finish": list(finish_station(journey)),
        "made": _values(journey.made),
    }


def _partners(journeys: Iterable[Journey], pages: PageSample | None) -> Iterator[int | None]:
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
        "values": [[side, visible(name), _value(value)] for side, name, value in truth.values],
        "terms": [_term(part) for part in truth.terms],
    }


def _values(side: Mapping[str, Any] | None) -> list[str | None] | None:
    return None if side is None else [_value(value) for value in side.values()]


def _value(value: Any) -> str | None:
    return _shown(cell(value))


def _shown(display_cell: Cell) -> str | None:
    return None if display_cell.null else display_cell.text


def _untouched(trace: Trace) -> int | None:
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
    columns = {
        name: python_values(column)
        for name, column in zip(rows.schema.names, rows.slice(0, MOST_ROWS).columns, strict=True)
    }
    records = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    return [
        {"cells": _values(row), "why": why, "near": _near_target(trace, row)} for row in records
    ]


def _near_target(trace: Trace, row: Mapping[str, Any]) -> str:
    near = trace.samples.near_misses
    if near is None or near.target is None:
        return ""
    matches = (
        one for one in near.target.told if one.columns and one.columns.items() <= row.items()
    )
    return next((_near_words(one, near, "target") for one in matches), "")


# -- pages ----------------------------------------------------------------------------------------------------------------


def _before_channels(report: Report, pages: PageSample) -> Sequence[Channel]:
    if report.pages is not None and pages.transformed:
        return report.pages.channels.before
    return [Channel(str(index), name, "") for index, name in enumerate(pages.before.schema.names)]


def _page(
    channels: Sequence[Channel], page: pa.RecordBatch, pages: PageSample, *, unfolded: bool
) -> dict[str, Any]:
    columns: list[list[Any]] = []
    for index in range(page.num_columns):
        column = page.column(index)
        if unfolded and index == pages.layout.before.merge_row:
            columns += [python_values(field) for field in column.flatten()]
        else:
            columns.append(python_values(column))
    if unfolded:
        _write_codes(columns, pages.layout)
    rows = list(zip(*columns, strict=True))
    hashed = pages.layout.before.hash if unfolded else None
    return {
        "channels": [_channel(channel) for channel in channels],
        # The number of channels after the CASE; the last ones are the merge row.
        "decided": (
            pages.layout.before.merge_row
            + page.column(pages.layout.before.merge_row).type.num_fields
            if unfolded
            else len(channels)
        ),
        "rows": [
            {
                "of": at,
                "cells": [
                    _shown(tail(value)) if channel == hashed else _value(value)
                    for channel, value in enumerate(row)
                ],
            }
            for at, row in enumerate(rows)
        ],
    }


def _write_codes(columns: list[list[Any]], layout: PageLayout) -> None:
    first, fields = layout.before.merge_row, layout.merge_row
    for index in (
        first + fields.operation,
        first + fields.case_number,
        layout.before.case_number + fields.case_number,
    ):
        columns[index] = [None if value is None else number(value) for value in columns[index]]


def _channel(channel: Channel) -> dict[str, Any]:
    return {"number": channel.number, "name": visible(channel.name), "right": channel.right}


def _after(report: Report, pages: PageSample, placements: Sequence[str]) -> dict[str, Any]:
    channels = (
        report.pages.channels.after
        if report.pages is not None
        else [Channel(str(index), name, "") for index, name in enumerate(pages.after.schema.names)]
    )
    page = pages.after
    origins = [index for index, produced in enumerate(pages.produced) for _ in range(produced)]
    operations = [
        Operation(operation) for operation in page.column(pages.layout.after.operation).to_pylist()
    ]
    values = zip(*(python_values(column) for column in page.columns), strict=True)
    rows = [
        {
            "of": index,
            "cells": [_value(value) for value in row],
            "letter": operation.letter,
            "style": style_of(operation),
            "writer": pages.writers[at],
            "placed": placements[at] if placements else "",
        }
        for at, (index, operation, row) in enumerate(zip(origins, operations, values, strict=True))
    ]
    # Sinks receive the channels before this one.
    handed_count = pages.layout.after.insert_from_update if pages.transformed else page.num_columns
    return {
        "channels": [_channel(channel) for channel in channels],
        "rows": rows,
        "handed": handed_count,
    }


def _writers(report: Report, trace: Trace) -> list[dict[str, Any]]:
    pages = {page.writer: page for page in report.stored.pages} if report.stored is not None else {}
    channels = (
        [_channel(channel) for channel in report.stored.channels]
        if report.stored is not None
        else []
    )
    writers = []
    for writer in trace.writers:
        page = pages.get(writer.writer)
        writers.append(
            {
                "number": writer.writer,
                "rows": operation_letters(writer.rows),
                "stored": (
                    f"{plural(writer.fragments, 'fragment')},"
                    f" {plural(writer.fragment_bytes, 'byte')}"
                ),
                "channels": channels,
                "page": (
                    [
                        {
                            "style": row.style,
                            "cells": [_shown(display_cell) for display_cell in row.cells],
                        }
                        for row in page.rows
                    ]
                    if page
                    else []
                ),
                "total": page.total if page else 0,
            }
        )
    return writers
