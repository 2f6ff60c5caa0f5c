"""A comparison of stores as text and HTML."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import number, number_or_blank, plural
from rowmerge_nb.report.comparison_report import (
    SHOWN,
    cell_text,
    error_of,
    shortened,
)
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.plain_text import WIDTH, stored_lines
from rowmerge_nb.report.words.columns import columns_of
from rowmerge_nb.report.words.display_values import cell, visible
from rowmerge_nb.report.words.java_names import java_name
from rowmerge_nb.trace.store_comparison import FILE_METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.report.model.changed_rows import Stored
    from rowmerge_nb.spi.output import Written
    from rowmerge_nb.trace.store_comparison import (
        CallCount,
        RowDifference,
        SinkFragment,
        StoreComparison,
        StoreMetric,
        StoreSide,
    )

MOST_TEXT: Final = 200
"""The length of a fragment's JSON in a text report."""
_REPORTED_BY_STORES: Final = frozenset({"rows read", "written", "rows after", *FILE_METRICS})
"""Numbers that not every store reports: an empty one of a side that ran is unknown."""


@dataclass(frozen=True)
class SideReport:
    """What a report shows of one side.

    Args:
        pages: the first rows of the pages that the connector received; None without any.
        files: the first files or statements that were written.
    """

    name: str
    error: str
    pages: Stored | None
    layout: str
    files: tuple[Written, ...]
    file_count: int
    fragments: tuple[SinkFragment, ...]
    fragment_count: int


def store_comparison_bundle(comparison: StoreComparison) -> dict[str, str]:
    sides = [_side_report(side) for side in comparison.sides]
    text = "\n".join(_lines(comparison, sides))
    names: dict[str, Any] = {
        "comparison": comparison,
        "about": about(comparison),
        "sides": sides,
        "sentences": sentences(comparison),
        "metrics": [(metric, metric_texts(comparison, metric)) for metric in _known(comparison)],
        "differences": [
            (d, [cell(value) for value in d.row]) for d in comparison.differences[:SHOWN]
        ],
        "more": max(0, len(comparison.differences) - SHOWN),
        "calls": [
            (call, java_name(call.method), [call_text(side) for side in call.sides])
            for call in comparison.calls
        ],
    }
    return {
        "text/plain": text,
        "text/html": render_parts("store_comparison.html.j2", names, text, comparison.statement),
    }


def about(comparison: StoreComparison) -> str:
    removal = "" if comparison.notices else " The copies were removed."
    return (
        f"In each {comparison.by_singular}, the statement ran on a copy of {comparison.target}, which is"
        f" unchanged.{removal}"
    )


def sentences(comparison: StoreComparison) -> list[str]:
    lines = [f"{remark.removesuffix('.')}." for side in comparison.sides for remark in side.remarks]
    by_text: dict[str, list[str]] = {}
    for side in comparison.sides:
        trace = side.result.trace
        if trace.error is not None and trace.error.hint:
            by_text.setdefault(trace.error.hint, []).append(side.name)
        for notice in build_report(trace).notices:
            by_text.setdefault(notice.message, []).append(side.name)
    lines += [f"{', '.join(names)}: {text}" for text, names in by_text.items()]
    return [*lines, *comparison.notices]


def metric_texts(comparison: StoreComparison, metric: StoreMetric) -> list[str]:
    missing = "not known" if metric.name in _REPORTED_BY_STORES else ""
    texts = java_names(metric)
    return [
        text or ("" if side.failed else missing)
        for text, side in zip(texts, comparison.sides, strict=True)
    ]


def java_names(metric: StoreMetric) -> Sequence[str]:
    is_method = metric.name == "the change lasts"
    return [java_name(value) for value in metric.texts] if is_method else metric.texts


def call_text(calls: CallCount | None) -> str:
    """Return the calls of a method on one side in a few words.

    >>> from rowmerge_nb.trace.store_comparison import CallCount
    >>> call_text(CallCount(2, 5, 900, 0.0125, has_failed=False)), call_text(None)
    ('2, 5 rows, 12 ms', '')
    """
    if calls is None:
        return ""
    parts = [number(calls.count)]
    parts += [plural(calls.rows, "row")] if calls.rows is not None else []
    parts.append("failed" if calls.has_failed else f"{calls.seconds * 1000:.0f} ms")
    return ", ".join(parts)


def _known(comparison: StoreComparison) -> list[StoreMetric]:
    return [metric for metric in comparison.metrics if any(metric.texts)]


def _side_report(side: StoreSide) -> SideReport:
    trace = side.result.trace
    sink_pages = build_report(trace).stored
    output = trace.target.output
    outputs = () if output is None else output.written
    layout = (
        "" if sink_pages is None else ", ".join(f"{c.name} {c.type}" for c in sink_pages.channels)
    )
    return SideReport(
        side.name,
        error_of(side),
        None if sink_pages is None else shortened(sink_pages),
        layout,
        outputs[:SHOWN],
        len(outputs),
        side.fragments[:SHOWN],
        len(side.fragments),
    )


def _lines(comparison: StoreComparison, sides: Sequence[SideReport]) -> list[str]:
    lines = [comparison.sentence, *textwrap.wrap(about(comparison), WIDTH)]
    for side in sides:
        lines += textwrap.wrap(f"{side.name}: {side.error}", WIDTH) if side.error else []
    for sentence in sentences(comparison):
        lines += textwrap.wrap(sentence, WIDTH)
    rows = [[comparison.by, "", *(side.name for side in sides)]]
    rows += [
        [metric.name, "≠" if metric.differs else "", *metric_texts(comparison, metric)]
        for metric in _known(comparison)
    ]
    lines += ["", *columns_of(rows)]
    if comparison.differences:
        lines += ["", "Rows that differ", *_difference_lines(comparison)]
    for side in sides:
        if side.pages is not None:
            title = f"{side.pages.title}, {side.name}: {side.pages.summary}"
            layout = textwrap.wrap(
                f"Layout: {side.layout}", WIDTH, initial_indent="  ", subsequent_indent="  "
            )
            lines += ["", title, *layout, *stored_lines(side.pages)]
    lines += _fragment_lines(sides) + _file_lines(sides)
    calls = [["called by", "method", *(side.name for side in sides)]]
    calls += [
        [call.caller, java_name(call.method), *map(call_text, call.sides)]
        for call in comparison.calls
    ]
    return [*lines, "", "Connector calls", *columns_of(calls)]


def _difference_lines(comparison: StoreComparison) -> list[str]:
    table = [["in", "not in", "times", *comparison.columns]]
    table += [_difference_cells(d) for d in comparison.differences[:SHOWN]]
    more = len(comparison.differences) - SHOWN
    return [*columns_of(table, right={2}), *([f"and {number(more)} more"] if more > 0 else [])]


def _difference_cells(difference: RowDifference) -> list[str]:
    values = [cell_text(value) for value in difference.row]
    return [difference.present, difference.absent, str(difference.times), *values]


def _fragment_lines(sides: Sequence[SideReport]) -> list[str]:
    rows = [["fragment of", "bytes", "JSON"]]
    for side in sides:
        rows += [
            [side.name, number(fragment.bytes), fragment_text(fragment, MOST_TEXT)]
            for fragment in side.fragments
        ]
        if side.fragment_count > len(side.fragments):
            rows.append(
                [side.name, f"and {number(side.fragment_count - len(side.fragments))} more"]
            )
    return ["", "Fragments", *columns_of(rows, right={1})] if len(rows) > 1 else []


def _file_lines(sides: Sequence[SideReport]) -> list[str]:
    rows = [["written in", "rows", "bytes", "what"]]
    for side in sides:
        for file in side.files:
            counts = [number_or_blank(file.rows), number_or_blank(file.bytes)]
            rows.append([side.name, *counts, f"{file.kind} {visible(file.name)}"])
        if side.file_count > len(side.files):
            rows.append([side.name, f"and {number(side.file_count - len(side.files))} more"])
    return ["", "Files and statements", *columns_of(rows, right={1, 2})] if len(rows) > 1 else []


def fragment_text(fragment: SinkFragment, length: int) -> str:
    """Return a fragment's JSON, cut to a length; ``not JSON`` for other fragments."""
    if not fragment.text:
        return "not JSON"
    text = visible(fragment.text)
    return text if len(text) <= length else f"{text[:length]}…"
