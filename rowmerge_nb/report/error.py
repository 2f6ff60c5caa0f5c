"""Errors as text and HTML, with or without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.report.html import render_failure, render_html
from rowmerge_nb.report.model.failures import Failure, failure_of_error, failure_text
from rowmerge_nb.report.model.report import build_report
from rowmerge_nb.report.plain_text import WIDTH, render_text

if TYPE_CHECKING:
    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.report.model.report import Report
    from rowmerge_nb.trace.trace import Trace


def render_error_text(error: RowMergeError, trace: Trace | None = None, first_line: int = 1) -> str:
    """Return an error as text: message, position, consequences and hint.

    ``first_line`` is the cell's line on which the statement begins.

    >>> from rowmerge_nb.base.errors import AnalysisError
    >>> error = AnalysisError("Table 'memory.default.acounts' does not exist", code="TABLE_NOT_FOUND",
    ...                       line=1, column=12, length=7, hint="Did you mean 'accounts'?")
    >>> error.statement = "MERGE INTO acounts t"
    >>> print(render_error_text(error, first_line=2))
    TABLE_NOT_FOUND: Table 'memory.default.acounts' does not exist
    Line 2:12 of the cell.
    <BLANKLINE>
    2  MERGE INTO acounts t
                  ^^^^^^^
    <BLANKLINE>
    Did you mean 'accounts'?
    """
    failure = failure_of_error(error, trace)
    if trace is None:
        return "\n".join(failure_text(failure, first_line, WIDTH))
    return render_text(_report(trace, failure), first_line=first_line)


def render_error_html(error: RowMergeError, trace: Trace | None = None, first_line: int = 1) -> str:
    failure = failure_of_error(error, trace)
    if trace is None:
        text = "\n".join(failure_text(failure, first_line, WIDTH))
        return render_failure(failure, text, statement=error.statement or "", first_line=first_line)
    return render_html(_report(trace, failure), first_line=first_line)


def _report(trace: Trace, failure: Failure) -> Report:
    return replace(build_report(trace), state=StatementState.FAILED, failure=failure)
