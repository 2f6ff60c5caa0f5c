"""Reports on statements: text, HTML with drawings, and mime bundles.

``build_report`` selects the content from a `Trace`, renderers format it.
pyarrow, Jinja2 and Graphviz are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.lazy import at_first_use

if TYPE_CHECKING:
    from rowmerge_nb.report.bundle import mime_bundle as mime_bundle
    from rowmerge_nb.report.drawing.graph import pages_dot as pages_dot
    from rowmerge_nb.report.drawing.graph import plan_dot as plan_dot
    from rowmerge_nb.report.drawing.svg import dot_to_svg as dot_to_svg
    from rowmerge_nb.report.error import render_error_html as render_error_html
    from rowmerge_nb.report.error import render_error_text as render_error_text
    from rowmerge_nb.report.html import render_html as render_html
    from rowmerge_nb.report.html import render_page as render_page
    from rowmerge_nb.report.model.report import Report as Report
    from rowmerge_nb.report.model.report import build_report as build_report
    from rowmerge_nb.report.plain_text import render_text as render_text

_HOMES = {
    "Report": "model.report",
    "build_report": "model.report",
    "dot_to_svg": "drawing.svg",
    "mime_bundle": "bundle",
    "pages_dot": "drawing.graph",
    "plan_dot": "drawing.graph",
    "render_error_html": "error",
    "render_error_text": "error",
    "render_html": "html",
    "render_page": "html",
    "render_text": "plain_text",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


__getattr__, __dir__ = at_first_use(__name__, _HOMES)
