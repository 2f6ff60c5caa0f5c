"""Mime bundles of a cell's outputs."""

from __future__ import annotations

import dataclasses
import json
from html import escape
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.words import plural
from rowmerge_nb.report.words.columns import pad, width_of
from rowmerge_nb.report.words.display_values import Cell, visible

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.report.explorer.widget import Explorer
    from rowmerge_nb.trace.raised import Raised
    from rowmerge_nb.trace.trace import Trace

Bundle = dict[str, Any]
"""Mime type to content."""


def show(bundle: Bundle) -> None:
    from IPython.display import display

    display(bundle, raw=True)  # type: ignore[no-untyped-call]


def show_beneath_report(explorer: Explorer) -> None:
    explorer.beneath = True
    explorer._ipython_display_()


def folded(bundle: Bundle) -> Bundle:
    """Return a report as a closed fold, for a learner who guesses first.

    >>> folded({"text/plain": "2 rows", "text/html": "<p>2 rows</p>"})["text/html"]
    '<details><summary>The report, with the answers</summary><p>2 rows</p></details>'
    """
    html = (
        f"<details><summary>The report, with the answers</summary>{bundle['text/html']}</details>"
    )
    return {**bundle, "text/html": html}


def show_all(bundles: Sequence[Bundle]) -> None:
    for bundle in bundles:
        show(bundle)


def text_bundle(text: str) -> Bundle:
    """Return a bundle of plain text.

    >>> sorted(text_bundle("a < b"))
    ['text/html', 'text/plain']
    """
    from rowmerge_nb.report.words.columns import preformatted

    return {"text/plain": text, "text/html": preformatted(text)}


def result_bundle(
    result: Result, *, parts: str | None, timings: bool, max_rows: int, first_line: int
) -> Bundle:
    """Return the bundle of a successful statement; ``max_rows`` limits rows of a query or of
    RETURNING.
    """
    if result.explained is not None:
        from rowmerge_nb.report.bundle import explained_bundle

        return explained_bundle(result.trace, result.explained)
    rows = _rows_bundle(result.table, max_rows) if result.table is not None else None
    if rows is not None and result.trace.returned is None:
        if not result.trace.notices:
            return rows
        from rowmerge_nb.report.bundle import rows_bundle

        return rows_bundle(rows, result.trace, first_line)
    from rowmerge_nb.engine.api.what_if import under_other_paradigm
    from rowmerge_nb.report.bundle import mime_bundle

    other = under_other_paradigm(result.trace)
    return dict(
        mime_bundle(
            result.trace,
            show=parts,
            timings=timings,
            first_line=first_line,
            above=rows,
            other=other,
        )
    )


def _rows_bundle(table: Any, max_rows: int) -> Bundle:
    from rowmerge_nb.notebook import paged_table
    from rowmerge_nb.notebook.rows import number_columns, row_cells

    rows = row_cells(table, max_rows)
    row_count = plural(table.num_rows, "row")
    paged = table.num_rows > len(rows) > 0 and paged_table.is_available()
    caption = (
        f"{row_count}, the first {max_rows:,} shown" if table.num_rows > len(rows) else row_count
    )
    bundle = grid_bundle(list(table.column_names), rows, caption, right=number_columns(table))
    if paged:
        bundle["text/html"] = paged_table.paged_html(table, row_count)
    return bundle


def grid_bundle(
    names: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    caption: str = "",
    *,
    right: Container[int] = (),
) -> Bundle:
    """Return the bundle of a table of texts; ``right`` has the indexes of right-aligned columns.

    >>> print(grid_bundle(["a", "b"], [["1", "x"], ["10", "yy"]], "2 rows", right={0})["text/plain"])
     a  b
    --  --
     1  x
    10  yy
    2 rows
    """
    cells = [[value if isinstance(value, Cell) else Cell(value) for value in row] for row in rows]
    heads = [visible(name) for name in names]
    texts = [[_text(cell) for cell in row] for row in cells]
    widths = [
        max([width_of(name), *(width_of(row[index]) for row in texts)])
        for index, name in enumerate(heads)
    ]
    lines = [heads, ["-" * width for width in widths], *texts]
    text = "\n".join(
        "  ".join(
            pad(cell, width, right=i in right)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    )
    return {
        "text/plain": f"{text}\n{caption}" if caption else text,
        "text/html": _grid_html(heads, cells, caption, right),
    }


def _text(cell: Cell) -> str:
    return "'NULL'" if cell.text == "NULL" and not cell.null else " ".join(cell.text.split("\n"))


def _grid_html(
    names: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str, right: Container[int]
) -> str:
    from rowmerge_nb.report.html import style_for

    attributes = [' class="rm-r"' if index in right else "" for index in range(len(names))]
    head = "".join(
        f'<th scope="col"{at}>{escape(name)}</th>'
        for name, at in zip(names, attributes, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{at}>{'<i>NULL</i>' if cell.null else escape(cell.text)}</td>"
            for cell, at in zip(row, attributes, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    foot = f'<p class="rm-meta">{escape(caption)}</p>' if caption else ""
    table = f'<table class="rm-t"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    body = f'<div class="rm-scroll">{table}</div>{foot}'
    scope, style = style_for(body)
    return f'<div class="rm {scope}"><style>{style}</style>{body}</div>'


def plan_bundle(result: Result, form: str) -> Bundle:
    explained = result.explained or ""
    if form == "text" or not result.trace.plan:
        from rowmerge_nb.report.bundle import explained_bundle

        return explained_bundle(result.trace, explained)
    if form == "json":
        plan = {
            "statement": result.trace.statement,
            "plan": [dataclasses.asdict(node) for node in result.trace.plan],
        }
        text = json.dumps(plan, indent=2, ensure_ascii=False, default=str)
        return {"text/plain": text, "application/json": json.loads(text)}
    from rowmerge_nb.report import build_report, dot_to_svg, plan_dot

    dot = plan_dot(build_report(result.trace))
    if form == "dot":
        return {"text/plain": dot}
    return {"text/plain": explained, "image/svg+xml": dot_to_svg(dot, standalone=True)}


def error_bundle(
    error: RowMergeError, first_line: int, *, parts: str | None, timings: bool
) -> Bundle:
    trace: Trace | None = error.result.trace if error.result is not None else None
    if trace is not None and trace.error is not None:
        from rowmerge_nb.report.bundle import mime_bundle

        hinted_trace = dataclasses.replace(
            trace, error=dataclasses.replace(trace.error, hint=error.hint)
        )
        return dict(mime_bundle(hinted_trace, show=parts, timings=timings, first_line=first_line))
    from rowmerge_nb.report.error import render_error_html, render_error_text

    text = render_error_text(error, trace, first_line)
    return {"text/plain": text, "text/html": render_error_html(error, trace, first_line)}


def without_traceback(error: RowMergeError, first_line: int) -> RowMergeError:
    """Make IPython show an error as one line instead of a traceback; ``%tb`` shows the connector's
    frames.

    The cell still fails, and code can catch the exception, whose text has the cell's lines.
    """
    error.cell_line = first_line
    line = f"{type(error).__name__}: {error.code}: {error.position}{error.message}"
    error.__dict__["_render_traceback_"] = _OnceShort(line, error.raised)
    return error


@dataclasses.dataclass
class _OnceShort:
    """First one line, later the traceback too."""

    line: str
    raised: tuple[Raised, ...]
    is_shown: bool = False

    def __call__(self) -> list[str]:
        if not self.is_shown or not self.raised:
            self.is_shown = True
            return [self.line]
        # Imported late: the magics import this module, and should not load Arrow.
        from rowmerge_nb.trace.raised import remote_traceback

        lines = [line for one in self.raised for line in [*remote_traceback(one).split("\n"), ""]]
        return [*lines, self.line]
