"""A comparison as text and HTML: the outcome, numbers in two columns, plans, calls, and rows that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.plan.explain import explain_text
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.layout import columns_of
from rowmerge_nb.report.values import cell

if TYPE_CHECKING:
    from rowmerge_nb.engine.comparison import Comparison, Side
    from rowmerge_nb.report.values import Cell

__all__ = ["comparison_bundle"]

SHOWN: Final = 10
"""So many different rows are shown."""


def comparison_bundle(comparison: Comparison) -> dict[str, str]:
    """Make what a notebook stores for a comparison: exactly the keys ``text/plain`` and ``text/html``."""
    text = "\n".join(_lines(comparison))
    names: dict[str, Any] = {
        "comparison": comparison,
        "sides": [(side, error_of(side), shortened_plan(side)) for side in (comparison.left, comparison.right)],
        "differences": [(d, [cell(value) for value in d.row]) for d in comparison.differences[:SHOWN]],
        "columns": column_names(comparison),
        "more": max(0, len(comparison.differences) - SHOWN),
    }
    return {"text/plain": text, "text/html": render_parts("comparison.html.j2", names, text, comparison.statement)}


def error_of(side: Side) -> str:
    """Give the sentence of a side's error; ``""`` if it has none."""
    error = side.result.trace.error
    return "" if error is None else f"{error.code}: {error.message}"


def shortened_plan(side: Side) -> str:
    """Give a plan as EXPLAIN prints it, without the layouts: these are what makes it wide."""
    lines = explain_text(side.result.trace.plan).split("\n")
    return "\n".join(line for line in lines if "Layout: [" not in line)


def column_names(comparison: Comparison) -> list[str]:
    """Name the columns of the rows that differ."""
    width = max((len(d.row) for d in comparison.differences), default=0)
    return list(comparison.columns) if width == len(comparison.columns) else ["row_id"] * width


def _lines(comparison: Comparison) -> list[str]:
    sides = (comparison.left, comparison.right)
    lines = [comparison.sentence, "Nothing was committed: each side ran in a transaction of its own and was rolled back."]
    lines += [comparison.notice] if comparison.notice else []
    lines += [f"{side.name}: {error_of(side)}" for side in sides if side.failed]
    rows = [[comparison.by, "", *(side.name for side in sides)]]
    rows += [[m.name, "≠" if m.differs else "", m.left, m.right] for m in comparison.metrics if m.left or m.right]
    lines += ["", *(line.rstrip() for line in columns_of(rows))]
    if comparison.differences:
        lines += ["", "Rows that differ"]
        table = [["side", "does", "times", *column_names(comparison)]]
        table += [[d.side, d.what, str(d.times), *(_text(cell(v)) for v in d.row)] for d in comparison.differences[:SHOWN]]
        lines += columns_of(table, right={2})
        if (more := len(comparison.differences) - SHOWN) > 0:
            lines.append(f"and {more:,} more")
    lines += ["", "Connector calls", *columns_of([["method", *(s.name for s in sides)], *_calls(comparison)], right={1, 2})]
    for side in sides:
        if side.result.trace.plan:
            lines += ["", f"Plan, {side.name}", shortened_plan(side)]
    return lines


def _calls(comparison: Comparison) -> list[list[str]]:
    return [[name, str(left or ""), str(right or "")] for name, left, right in comparison.calls]


def _text(value: Cell) -> str:
    return "NULL" if value.null else value.text
