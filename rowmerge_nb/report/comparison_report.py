"""A comparison as text and HTML."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.model.alignment import aligned_plans, aligned_rows, unaligned
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.plain_text import WIDTH, diff_lines, stored_lines
from rowmerge_nb.report.words.columns import columns_of
from rowmerge_nb.report.words.display_values import cell
from rowmerge_nb.trace.node_records import explain_text

if TYPE_CHECKING:
    from rowmerge_nb.report.model.alignment import AlignedRow, PlanLine
    from rowmerge_nb.report.model.changed_rows import Stored
    from rowmerge_nb.report.model.report import Report
    from rowmerge_nb.trace.comparison import Comparison, Metric, Side
    from rowmerge_nb.trace.trace import Trace

SHOWN: Final = 10
"""The maximum number of rows shown, of differing rows and per page."""
MOST_PAGES: Final = 3
"""The maximum number of writers whose pages are shown."""
_REPORTED_BY_STORES: Final = frozenset({"rows read", "written", "rows after"})
"""Numbers that not every store reports: an empty one of a side that ran is unknown."""


def comparison_bundle(comparison: Comparison) -> dict[str, str]:
    rows = aligned(comparison)
    pages_of_sides = different_pages(comparison) if not rows else []
    why = unaligned(*_whole_traces(comparison)) if pages_of_sides else ""
    text = "\n".join(_lines(comparison, rows, pages_of_sides, why))
    names: dict[str, Any] = {
        "comparison": comparison,
        "sides": [(side, error_of(side)) for side in (comparison.left, comparison.right)],
        "differences": [
            (d, [cell(value) for value in d.row]) for d in comparison.differences[:SHOWN]
        ],
        "columns": column_names(comparison),
        "more": max(0, len(comparison.differences) - SHOWN),
        "report": changed_rows(comparison),
        "aligned": rows,
        "handed": pages_of_sides,
        "unaligned": why,
        "plan": plan_lines(comparison),
        "texts": [metric_texts(comparison, metric) for metric in comparison.metrics],
        "open": True,
        "reasons": [*reasons(comparison), *notices(comparison)],
    }
    return {
        "text/plain": text,
        "text/html": render_parts("comparison.html.j2", names, text, comparison.statement),
    }


def error_of(side: Side) -> str:
    error = side.result.trace.error
    return "" if error is None else f"{error.code}: {error.message}"


def reasons(comparison: Comparison) -> list[str]:
    sides_by_hint: dict[str, list[str]] = {}
    for side in (comparison.left, comparison.right):
        if (error := side.result.trace.error) is not None and error.hint:
            sides_by_hint.setdefault(error.hint, []).append(side.name)
    return [
        hint if len(names) > 1 else f"{names[0]}: {hint}" for hint, names in sides_by_hint.items()
    ]


def notices(comparison: Comparison) -> list[str]:
    sides_by_notice: dict[str, list[str]] = {}
    for side in (comparison.left, comparison.right):
        for notice in build_report(side.result.trace).notices:
            where = "" if notice.line is None else f"line {notice.line}: "
            sides_by_notice.setdefault(f"{where}{notice.message}", []).append(side.name)
    return [
        f"Notice: {text}" if len(names) > 1 else f"Notice, {names[0]}: {text}"
        for text, names in sides_by_notice.items()
    ]


def shortened_plan(side: Side) -> list[str]:
    """Return the EXPLAIN lines of a plan without the wide layouts."""
    if not side.result.trace.plan:
        return []
    return [
        line for line in explain_text(side.result.trace.plan).split("\n") if "Layout: [" not in line
    ]


def plan_lines(comparison: Comparison) -> tuple[PlanLine, ...]:
    return aligned_plans(shortened_plan(comparison.left), shortened_plan(comparison.right))


def aligned(comparison: Comparison) -> tuple[AlignedRow, ...]:
    """Return the results of each row on both sides; empty if equal, or not known for all rows."""
    return aligned_rows(*_whole_traces(comparison))


def _whole_traces(comparison: Comparison) -> tuple[Trace, Trace]:
    left, right = (side.whole or side.result.trace for side in (comparison.left, comparison.right))
    return left, right


def column_names(comparison: Comparison) -> list[str]:
    width = max((len(d.row) for d in comparison.differences), default=0)
    return list(comparison.columns) if width == len(comparison.columns) else ["row_id"] * width


def metric_texts(comparison: Comparison, metric: Metric) -> tuple[str, str]:
    missing = "not known" if metric.name in _REPORTED_BY_STORES else ""
    left, right = ("" if side.failed else missing for side in (comparison.left, comparison.right))
    return metric.left or left, metric.right or right


def changed_rows(comparison: Comparison) -> Report | None:
    """Return a report with the changed rows of both sides; None if they differ."""
    reports = (
        [build_report(side.result.trace) for side in (comparison.left, comparison.right)]
        if comparison.same
        else []
    )
    with_rows = [report for report in reports if report.diff is not None and report.diff.rows]
    # Prefer a report with old values.
    return min(
        with_rows,
        key=lambda report: report.diff is not None and bool(report.diff.remark),
        default=None,
    )


def different_pages(comparison: Comparison) -> list[tuple[str, Stored]]:
    """Return a few rows of the pages of each side; empty if they are equal."""
    sides = [
        (side.name, build_report(side.result.trace).stored)
        for side in (comparison.left, comparison.right)
    ]
    if sides[0][1] == sides[1][1]:
        return []
    return [(name, shortened(pages)) for name, pages in sides if pages is not None]


def shortened(sink_pages: Stored) -> Stored:
    pages = tuple(replace(page, rows=page.rows[:SHOWN]) for page in sink_pages.pages[:MOST_PAGES])
    more = f"; the first {MOST_PAGES} are shown" if len(sink_pages.pages) > len(pages) else ""
    return replace(sink_pages, pages=pages, summary=sink_pages.summary + more)


def _lines(
    comparison: Comparison,
    both: tuple[AlignedRow, ...],
    pages_of_sides: list[tuple[str, Stored]],
    why: str,
) -> list[str]:
    sides = (comparison.left, comparison.right)
    lines = [
        comparison.sentence,
        "Nothing was committed: each side ran in a transaction of its own and was rolled back.",
    ]
    lines += [comparison.notice] if comparison.notice else []
    lines += [f"{side.name}: {error_of(side)}" for side in sides if side.failed]
    lines += [
        line
        for sentence in (*reasons(comparison), *notices(comparison))
        for line in textwrap.wrap(sentence, WIDTH)
    ]
    lines += ["", *_metric_lines(comparison)]
    if comparison.differences:
        lines += ["", "Rows that differ", *_difference_lines(comparison)]
    if (report := changed_rows(comparison)) is not None:
        lines += ["", *diff_lines(report)]
    if both:
        heads = ["source row", "values", "", *(side.name for side in sides)]
        table = [heads, *(list(line) for row in both for line in row.lines)]
        lines += [
            "",
            "What transform_page does with each row",
            *(line.rstrip() for line in columns_of(table, right={0})),
        ]
    lines += ["", *textwrap.wrap(why, WIDTH)] if why else []
    for name, pages in pages_of_sides:
        lines += ["", f"{pages.title}, {name}: {pages.summary}", *stored_lines(pages)]
    lines += [
        "",
        "Connector calls",
        *columns_of([["method", *(s.name for s in sides)], *_calls(comparison)], right={1, 2}),
    ]
    if plan := plan_lines(comparison):
        marked = any(line.side for line in plan)
        lines += [
            "",
            f"Plan; < {sides[0].name}, > {sides[1].name}" if marked else "Plan, the same for both",
        ]
        lines += [f"{line.side or ' '} {line.text}" if marked else line.text for line in plan]
    return lines


def _metric_lines(comparison: Comparison) -> list[str]:
    rows = [[comparison.by, "", comparison.left.name, comparison.right.name]]
    rows += [
        [m.name, "≠" if m.differs else "", *metric_texts(comparison, m)]
        for m in comparison.metrics
        if m.left or m.right
    ]
    return [line.rstrip() for line in columns_of(rows)]


def _difference_lines(comparison: Comparison) -> list[str]:
    table = [["side", "does", "times", *column_names(comparison)]]
    table += [
        [d.side, d.what, str(d.times), *map(cell_text, d.row)]
        for d in comparison.differences[:SHOWN]
    ]
    lines = [*columns_of(table, right={2})]
    if (more := len(comparison.differences) - SHOWN) > 0:
        lines.append(f"and {more:,} more")
    return lines


def _calls(comparison: Comparison) -> list[list[str]]:
    return [[name, str(left or ""), str(right or "")] for name, left, right in comparison.calls]


def cell_text(value: object) -> str:
    display_value = cell(value)
    return "NULL" if display_value.null else display_value.text
