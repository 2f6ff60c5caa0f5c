"""A report as HTML: a fragment for a notebook's output, or a page of several.

The fragment begins with the text report, for viewers that strip style sheets; the style sheet
replaces it by the rich form. There are no scripts and no external resources.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.choices import ROW_CHANGES
from rowmerge_nb.base.words import code_parts, number_or_blank
from rowmerge_nb.report.model.failures import Failure
from rowmerge_nb.report.model.report import Report, build_report, missing_parts, parts_to_show
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.report.words.display_values import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import jinja2

    from rowmerge_nb.trace.trace import Trace
    from rowmerge_nb.trace.verdicts import EngineVerdict

_OURS: Final = ".rm.rm.rm.rm"
_RULE: Final = re.compile(r"(\.rm\.rm\.rm\.rm[^{]*)\{[^{}]*\}")
"""A rule of the style sheet, on a line of its own."""
_CONDITIONS: Final = re.compile(r":not\([^)]*\)|\[[^\]]*\]|::?[\w-]+(?:\([^)]*\))?")
_CLASS: Final = re.compile(r"\.([\w-]+)")
_ELEMENT: Final = re.compile(r"(?:^|[\s>])([a-z]+)")
_CLASSES: Final = re.compile(r'class="([^"]*)"')
_TAGS: Final = re.compile(r"<([a-z]+)")
_FOLDED: Final = frozenset({"stored", "calls", "journeys", "words"})
_SHORT_FOLDS: Final = frozenset({"pages", "stored", "calls", "words"})
"""Folds that are closed by default."""
_OPEN: Final = "diff"
"""The fold that is open by default: readers first look for changed rows."""
_TRUST: Final = (
    "This is the plain form: run the cell, or trust the notebook, for drawings and details.\n"
    "JupyterLab trusts it by Ctrl+Shift+C, Trust Notebook."
)
_FEW: Final = 10
"""Up to this many journeys are open by default."""


@dataclass(frozen=True)
class _Part:
    name: str
    html: str
    is_folded: bool


@dataclass(frozen=True)
class PageEntry:
    """A statement of a page, with a heading and an introduction."""

    report: Report | Trace
    heading: str = ""
    sentence: str = ""


def render_html(
    report: Report,
    *,
    show: str | Iterable[str] | None = None,
    timings: bool = False,
    number: int = 0,
    first_line: int = 1,
) -> str:
    """Return a report as an HTML fragment; requested folds are open.

    ``number`` distinguishes this output's ids from earlier ones of the same statement;
    ``first_line`` is the statement's line in the cell.
    """
    parts = show if show is None or isinstance(show, str) else tuple(show)
    return _fragment(report, parts, timings=timings, number=number, first_line=first_line)


def render_page(
    reports: Sequence[Report | Trace | PageEntry], title: str, introduction: str = ""
) -> str:
    from markupsafe import Markup

    entries = []
    for index, item in enumerate(reports):
        entry = item if isinstance(item, PageEntry) else PageEntry(item)
        report = entry.report if isinstance(entry.report, Report) else build_report(entry.report)
        # One style sheet serves the whole page.
        fragment = _fragment(report, None, timings=False, number=index, first_line=1, styled=False)
        entries.append(
            {
                "heading": entry.heading,
                "sentence": entry.sentence,
                "statement": report.statement,
                "fragment": Markup(fragment),  # noqa: S704 - made by our own templates, which escape
            }
        )
    return _document(title, entries, introduction)


def render_standing_alone(title: str, statement: str, fragment: str) -> str:
    from markupsafe import Markup

    entry = {
        "heading": "",
        "sentence": "",
        "statement": statement,
        "fragment": Markup(fragment),  # noqa: S704
    }
    return _document(title, [entry])


def _document(title: str, entries: Sequence[dict[str, Any]], introduction: str = "") -> str:
    from markupsafe import Markup

    page = _environment().get_template("page.html.j2")
    style = Markup(style_sheet())  # noqa: S704 - our own file
    text = page.render(title=title, introduction=introduction, entries=entries, style=style) + "\n"
    # A lone surrogate, possible in a text, cannot be encoded.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def render_verdicts(verdicts: tuple[EngineVerdict, ...], text: str) -> str:
    from markupsafe import Markup

    part = _environment().get_template("verdicts.html.j2").render(verdicts=verdicts)
    return _wrap(_prefix(text, 0), text, [Markup(part)])  # noqa: S704 - escaped by the template


def render_parts(template: str, names: dict[str, Any], text: str, statement: str) -> str:
    from markupsafe import Markup

    part = _environment().get_template(template).render(names)
    return _wrap(_prefix(template + statement, 0), text, [Markup(part)])  # noqa: S704 - escaped by the template


def render_failure(failure: Failure, text: str, *, statement: str = "", first_line: int = 1) -> str:
    from markupsafe import Markup

    part = (
        _environment().get_template("failure.html.j2").render(**_failure_names(failure, first_line))
    )
    return _wrap(_prefix(statement + failure.code, 0), text, [Markup(part)])  # noqa: S704 - escaped by the template


@cache
def style_sheet() -> str:
    """Return the style sheet of all fragments; repeated classes override JupyterLab's themes."""
    return files("rowmerge_nb.report").joinpath("style.css").read_text("utf-8").strip()


def style_for(body: str) -> tuple[str, str]:
    """Return the class and the style sheet of a fragment's body.

    Each output of a notebook has its own style sheet, since it may be cleared, rerun or shown
    alone. Rules are scoped by the returned class, which only fragments with the same rules have.
    """
    classes = {
        name for class_attribute in _CLASSES.findall(body) for name in class_attribute.split()
    } | {
        "rm",
        "rm-rich",
        "rm-text",
    }
    present = classes | {f"<{tag}" for tag in _TAGS.findall(body)}
    rules = "\n".join(
        text
        for text, required in _rules()
        if not required or any(names <= present for names in required)
    )
    scope = f"rm-{hashlib.sha256(rules.encode()).hexdigest()[:6]}"
    return scope, rules.replace(_OURS, f".rm.rm.rm.{scope}")


@cache
def _rules() -> tuple[tuple[str, tuple[frozenset[str], ...]], ...]:
    lines = style_sheet().split("\n")
    matches = ((line, _RULE.fullmatch(line)) for line in lines)
    return tuple(
        (line, tuple(map(_required_names, rule[1].split(","))) if rule is not None else ())
        for line, rule in matches
    )


def _required_names(selector: str) -> frozenset[str]:
    plain = _CONDITIONS.sub("", selector)
    return frozenset({*_CLASS.findall(plain), *(f"<{tag}" for tag in _ELEMENT.findall(plain))})


def _fragment(
    report: Report,
    show: str | tuple[str, ...] | None,
    *,
    timings: bool,
    number: int,
    first_line: int,
    styled: bool = True,
) -> str:
    from markupsafe import Markup

    environment = _environment()
    prefix = _prefix(f"{report.state} {report.statement}", number)
    parts: list[_Part] = []
    selected_parts = parts_to_show(report, show)
    for part in selected_parts:
        context: dict[str, Any] = {
            "report": report,
            "verdicts": report.verdicts,
            "timings": timings,
            "first_line": first_line,
            # Requested parts are complete; by default, details are one click away.
            "whole": show is not None and part not in {"outcome", "check"},
            # The unchanged rows already include those that took no part.
            "listed": (
                "diff" in selected_parts and report.diff is not None and bool(report.diff.same)
            ),
            "open": (
                part == _OPEN
                or (show is not None and part in _FOLDED)
                or (part == "journeys" and _is_short(report))
            ),
        }
        is_beside_clauses = show is None and "clauses" in selected_parts
        context |= _drawings(report, part, prefix, with_conditions=not is_beside_clauses)
        if report.failure is not None and part == "outcome":
            context |= _failure_names(report.failure, first_line)
        # Escaped by the template.
        html = Markup(environment.get_template(f"{part}.html.j2").render(context))  # noqa: S704
        parts.append(_Part(part, html, is_folded=show is None and part in _SHORT_FOLDS))
    fragments = _arranged(parts)
    if absent := missing_parts(report, show):
        fragments.append(
            Markup(environment.get_template("absent.html.j2").render(sentences=absent))  # noqa: S704 - as above
        )
    text = render_text(
        report, show=show, timings=timings, first_line=first_line, brief=show is None
    )
    if styled and report.failure is None and report.kind in ROW_CHANGES:
        text = f"{text}\n\n{_TRUST}"
    return _wrap(prefix, text, fragments, styled=styled)


def _arranged(parts: Sequence[_Part]) -> list[str]:
    from markupsafe import Markup

    fragments: list[str] = []
    for folded, group in groupby(parts, attrgetter("is_folded")):
        htmls = {part.name: part.html for part in group}
        if folded:
            fragments.append(
                Markup('<div class="rm-folds">{}</div>').format(Markup("").join(htmls.values()))
            )
            continue
        if "diff" in htmls and "clauses" in htmls:
            htmls["diff"] = Markup(
                '<div class="rm-two"><div>{}</div><div class="rm-s">{}</div></div>'
            ).format(htmls["diff"], htmls.pop("clauses"))
        fragments += htmls.values()
    return fragments


def _is_short(report: Report) -> bool:
    return report.journeys is not None and len(report.journeys.rows) <= _FEW


def _wrap(prefix: str, text: str, parts: Sequence[str], *, styled: bool = True) -> str:
    from markupsafe import Markup

    template = _environment().get_template("fragment.html.j2")
    scope, style = style_for("".join(parts)) if styled else ("", "")
    names = {
        "prefix": prefix,
        "text": text,
        "parts": parts,
        "scope": scope,
        "style": Markup(style),  # noqa: S704
    }
    return template.render(names).rstrip() + "\n"


def _prefix(text: str, number: int) -> str:
    return f"rm-{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}-{number}"


def _drawings(report: Report, part: str, prefix: str, *, with_conditions: bool) -> dict[str, Any]:
    from markupsafe import Markup

    from rowmerge_nb.report.drawing.channel_map import channel_map_description
    from rowmerge_nb.report.drawing.graph import pages_dot, plan_description, plan_dot
    from rowmerge_nb.report.drawing.svg import dot_to_svg

    if part == "plan" and report.plan is not None:
        title, words = f"Plan of {report.outcome.subject}", plan_description(report.plan)
        dot = plan_dot(report, with_conditions=with_conditions)
        svg = dot_to_svg(dot, prefix=f"{prefix}-g", title=title, description=words)
        meanings = {
            op.title: op.meaning
            for op in report.plan.in_order
            if op.kind not in {"Output", "Project"}
        }
        return {
            "plan_svg": Markup(svg),  # noqa: S704
            "meanings": list(meanings.items()),
        }
    if part == "pages" and report.pages is not None:
        words = channel_map_description(report.pages)
        svg = dot_to_svg(
            pages_dot(report),
            prefix=f"{prefix}-p",
            title="Channels before and after transform_page",
            description=words,
        )
        return {"pages_svg": Markup(svg)}  # noqa: S704 - escaped by dot_to_svg
    return {}


def _failure_names(failure: Failure, first_line: int) -> dict[str, Any]:
    names: dict[str, Any] = {"failure": failure, "first_line": first_line}
    if (excerpt := failure.excerpt) is not None:
        width = len(str(excerpt.lines[-1][0] + first_line - 1))
        names["excerpt_lines"] = [
            (f"{at + first_line - 1:>{width}}", visible(text)) for at, text in excerpt.lines
        ]
        names["caret_space"] = " " * (
            width + 2 + len(visible(excerpt.lines[-1][1][: excerpt.column - 1]))
        )
    return names


@cache
def _environment() -> jinja2.Environment:
    import jinja2
    from markupsafe import Markup, escape

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rowmerge_nb.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=False,
    )
    environment.filters["number"] = number_or_blank
    environment.filters["coded"] = lambda sentence: Markup("").join(
        Markup("<code>{}</code>").format(part) if is_code else escape(part)
        for part, is_code in code_parts(sentence)
    )
    # Long names of narrow channels are set on two lines, so that the head is no wider than the
    # values.
    environment.filters["breakable"] = lambda name: Markup("_<br>").join(
        escape(part) for part in name.split("_")
    )
    # Other names are broken only if space is short.
    environment.filters["soft"] = lambda name: Markup("_<wbr>").join(
        escape(part) for part in name.split("_")
    )
    return environment
