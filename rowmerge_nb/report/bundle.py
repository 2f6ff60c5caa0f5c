"""Mime bundles of results, with the same keys on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.report.html import render_html, render_parts
from rowmerge_nb.report.model.report import build_report, notices_of
from rowmerge_nb.report.plain_text import notice_lines, render_text
from rowmerge_nb.report.words.columns import preformatted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowmerge_nb.trace.trace import Trace


def mime_bundle(
    trace: Trace,
    *,
    show: str | Iterable[str] | None = None,
    timings: bool = False,
    number: int = 0,
    first_line: int = 1,
    above: Mapping[str, str] | None = None,
    other: Trace | None = None,
) -> dict[str, str]:
    """Return what a notebook stores for a statement: exactly the keys ``text/plain`` and
    ``text/html``.

    Args:
        number: distinguishes this output's ids from earlier ones.
        above: content above the report, by the same keys.
        other: the trace under the other row change paradigm.

    >>> from rowmerge_nb.trace.target_record import TargetRecord
    >>> from rowmerge_nb.trace.trace import Trace
    >>> trace = Trace(statement="DROP TABLE t", kind="DROP TABLE", state="finished", target=TargetRecord(name="t"))
    >>> bundle = mime_bundle(trace)
    >>> sorted(bundle), bundle["text/plain"]
    (['text/html', 'text/plain'], 'Table t dropped.')
    """
    report = build_report(trace, other)
    names = tuple(show) if show is not None and not isinstance(show, str) else show
    bundle = {
        "text/plain": render_text(
            report,
            show=names,
            timings=timings,
            first_line=first_line,
            brief=show is None,
        ),
        "text/html": render_html(
            report, show=names, timings=timings, number=number, first_line=first_line
        ),
    }
    # A lone surrogate, possible in a text, cannot be encoded in a notebook's file.
    bundle = {
        mime_type: text.encode("utf-8", "backslashreplace").decode("utf-8")
        for mime_type, text in bundle.items()
    }
    if not above:
        return bundle
    return {
        "text/plain": f"{above['text/plain']}\n\n{bundle['text/plain']}",
        "text/html": f"{above['text/html']}\n{bundle['text/html']}",
    }


def rows_bundle(rows: Mapping[str, str], trace: Trace, first_line: int = 1) -> dict[str, str]:
    notices = notices_of(trace)
    text = "\n".join(notice_lines(notices, first_line))
    names = {"notices": notices, "first_line": first_line}
    html = render_parts("notices.html.j2", names, text, trace.statement)
    return {
        "text/plain": f"{rows['text/plain']}\n\n{text}",
        "text/html": f"{rows['text/html']}\n{html}",
    }


def explained_bundle(trace: Trace, explained: str) -> dict[str, str]:
    if trace.state != StatementState.EXPLAINED or not trace.plan:
        return {"text/plain": explained, "text/html": preformatted(explained)}
    report = mime_bundle(trace, show="outcome,clauses,plan")
    return {"text/plain": explained, "text/html": report["text/html"]}
