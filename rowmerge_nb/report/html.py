"""A report as HTML: a fragment for a notebook's output, or a page of several.

The fragment begins with the text report, which shows where style sheets are stripped; the style sheet hides it and reveals the rich
form. There are no scripts, and nothing is loaded from anywhere.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import code_parts, number
from rowmerge_nb.report.model.failures import Failure
from rowmerge_nb.report.model.report import Report, build_report, missing_parts, parts_to_show
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.report.words.display_values import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import jinja2

    from rowmerge_nb.trace.trace import Trace
    from rowmerge_nb.trace.verdicts import Verdict

_OURS: Final = ".rm.rm.rm.rm"
_RULE: Final = re.compile(r"(\.rm\.rm\.rm\.rm[^{]*)\{[^{}]*\}")
"""A rule of the style sheet, which stands on a line of its own."""
_CONDITIONS: Final = re.compile(r":not\([^)]*\)|\[[^\]]*\]|::?[\w-]+(?:\([^)]*\))?")
_CLASS: Final = re.compile(r"\.([\w-]+)")
_ELEMENT: Final = re.compile(r"(?:^|[\s>])([a-z]+)")
_CLASSES: Final = re.compile(r'class="([^"]*)"')
_TAGS: Final = re.compile(r"<([a-z]+)")
_FOLDED: Final = frozenset({"stored", "calls", "journeys", "words"})
_OPEN: Final = "diff"
"""The fold that is open by itself: what readers ask first is which rows were changed."""
_FEW: Final = 10
"""So few journeys are open by themselves as well."""


@dataclass(frozen=True)
class PageEntry:
    """A statement of a page: its report, a heading, and a sentence that says what to look at."""

    report: Report | Trace
    heading: str = ""
    sentence: str = ""


def render_html(
    report: Report, *, show: str | Iterable[str] | None = None, timings: bool = False, number: int = 0, first_line: int = 1
) -> str:
    """Write a report as an HTML fragment.

    Args:
        report: the report.
        show: names of the parts to show, see `rowmerge_nb.report.model.report.PARTS`; folds among them are open. None for the usual ones.
        timings: show times, which differ from run to run.
        number: tells this output's ids from those of the same statement shown before.
        first_line: the number of the cell's line on which the statement begins.
    """
    wanted = show if show is None or isinstance(show, str) else tuple(show)
    return _fragment(report, wanted, timings=timings, number=number, first_line=first_line)


def render_page(reports: Sequence[Report | Trace | PageEntry], title: str) -> str:
    """Write an HTML document with several statements and their reports, light or dark by the system.

    Args:
        reports: what is on the page, in order, reports or the traces for them; a `PageEntry` brings a heading and a sentence.
        title: the document's title.
    """
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
    return _document(title, entries)


def render_standing_alone(title: str, statement: str, fragment: str) -> str:
    """Write an HTML document with one fragment that `render_parts` has made, and the statement that it is about."""
    from markupsafe import Markup

    entry = {"heading": "", "sentence": "", "statement": statement, "fragment": Markup(fragment)}  # noqa: S704 - escaped by its template
    return _document(title, [entry])


def _document(title: str, entries: Sequence[dict[str, Any]]) -> str:
    from markupsafe import Markup

    page = _environment().get_template("page.html.j2")
    text = page.render(title=title, entries=entries, style=Markup(style_sheet())) + "\n"  # noqa: S704 - our own file
    # Half a character, which a text may hold, has no form in a file.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def render_verdicts(verdicts: tuple[Verdict, ...], text: str) -> str:
    """Write verdicts, which stand alone, as an HTML fragment."""
    from markupsafe import Markup

    part = _environment().get_template("verdicts.html.j2").render(verdicts=verdicts)
    return _wrap(_prefix(text, 0), text, [Markup(part)])  # noqa: S704 - escaped by the template


def render_parts(template: str, names: dict[str, Any], text: str, statement: str) -> str:
    """Write what has a template of its own, and stands alone, as an HTML fragment.

    Args:
        template: the template's name.
        names: what it speaks of.
        text: the text form.
        statement: the statement that it is about, for ids.
    """
    from markupsafe import Markup

    part = _environment().get_template(template).render(names)
    return _wrap(_prefix(template + statement, 0), text, [Markup(part)])  # noqa: S704 - escaped by the template


def render_failure(failure: Failure, text: str, *, statement: str = "", number: int = 0, first_line: int = 1) -> str:
    """Write a failure that has no report as an HTML fragment."""
    from markupsafe import Markup

    part = _environment().get_template("failure.html.j2").render(**_failure_names(failure, first_line))
    return _wrap(_prefix(statement + failure.code, number), text, [Markup(part)])  # noqa: S704 - escaped by the template


@cache
def style_sheet() -> str:
    """Return the style sheet of all fragments.

    Its selectors repeat the class four times: rules of JupyterLab's themed containers are that specific, and would win otherwise.
    """
    return files("rowmerge_nb.report").joinpath("style.css").read_text("utf-8").strip()


def style_for(body: str) -> tuple[str, str]:
    """Return the style sheet of a fragment: the rules that its elements and classes ask for, and what all fragments share.

    Every output of a notebook has its own, since each may be cleared, run again or shown elsewhere alone. So that those of others do not
    reach it, in whatever order they stand, the rules are about a class that only fragments with the same rules have.

    Args:
        body: the fragment without its outer element.

    Returns:
        The class that the outer element has beside ``rm``, and the rules.
    """
    classes = {name for found in _CLASSES.findall(body) for name in found.split()} | {"rm", "rm-rich", "rm-text"}
    present = classes | {f"<{tag}" for tag in _TAGS.findall(body)}
    kept = "\n".join(text for text, wanted in _rules() if not wanted or any(names <= present for names in wanted))
    scope = f"rm-{hashlib.sha256(kept.encode()).hexdigest()[:6]}"
    return scope, kept.replace(_OURS, f".rm.rm.rm.{scope}")


@cache
def _rules() -> tuple[tuple[str, tuple[frozenset[str], ...]], ...]:
    """Return the lines of the style sheet, and for a rule the classes and elements that each of its selectors asks for."""
    lines = style_sheet().split("\n")
    found = ((line, _RULE.fullmatch(line)) for line in lines)
    return tuple((line, tuple(map(_asked, rule[1].split(","))) if rule is not None else ()) for line, rule in found)


def _asked(selector: str) -> frozenset[str]:
    plain = _CONDITIONS.sub("", selector)
    return frozenset({*_CLASS.findall(plain), *(f"<{tag}" for tag in _ELEMENT.findall(plain))})


def _fragment(
    report: Report, show: str | tuple[str, ...] | None, *, timings: bool, number: int, first_line: int, styled: bool = True
) -> str:
    from markupsafe import Markup

    environment = _environment()
    prefix = _prefix(f"{report.state} {report.statement}", number)
    parts: list[str] = []
    shown = parts_to_show(report, show)
    for part in shown:
        context: dict[str, Any] = {
            "report": report,
            "verdicts": report.verdicts,
            "timings": timings,
            "first_line": first_line,
            # Rows that took no part stand among the unchanged ones already.
            "listed": "diff" in shown and report.diff is not None and bool(report.diff.same),
            "open": part == _OPEN or (show is not None and part in _FOLDED) or (part == "journeys" and _is_short(report)),
        }
        context |= _drawings(report, part, prefix)
        if report.failure is not None and part == "outcome":
            context |= _failure_names(report.failure, first_line)
        # Escaped by the template.
        parts.append(Markup(environment.get_template(f"{part}.html.j2").render(context)))  # noqa: S704
    if absent := missing_parts(report, show):
        parts.append(Markup(environment.get_template("absent.html.j2").render(sentences=absent)))  # noqa: S704 - as above
    text = render_text(report, show=show, timings=timings, first_line=first_line)
    return _wrap(prefix, text, parts, styled=styled)


def _is_short(report: Report) -> bool:
    return report.journeys is not None and len(report.journeys.rows) <= _FEW


def _wrap(prefix: str, text: str, parts: Sequence[str], *, styled: bool = True) -> str:
    from markupsafe import Markup

    template = _environment().get_template("fragment.html.j2")
    scope, style = style_for("".join(parts)) if styled else ("", "")
    names = {"prefix": prefix, "text": text, "parts": parts, "scope": scope, "style": Markup(style)}  # noqa: S704 - our own file
    return template.render(names).rstrip() + "\n"


def _prefix(text: str, number: int) -> str:
    """Make an id that is the same for the same output, and no other's in the document."""
    return f"rm-{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}-{number}"


def _drawings(report: Report, part: str, prefix: str) -> dict[str, Any]:
    """Make the drawing of a part, and what goes with it."""
    from markupsafe import Markup

    from rowmerge_nb.report.drawing.channel_map import channel_map_description
    from rowmerge_nb.report.drawing.graph import pages_dot, plan_description, plan_dot
    from rowmerge_nb.report.drawing.svg import dot_to_svg

    if part == "plan" and report.plan is not None:
        title, words = f"Plan of {report.outcome.subject}", plan_description(report.plan)
        svg = dot_to_svg(plan_dot(report), prefix=f"{prefix}-g", title=title, description=words)
        meanings = {op.title: op.meaning for op in report.plan.in_order if op.kind not in {"Output", "Project"}}
        return {"plan_svg": Markup(svg), "meanings": list(meanings.items())}  # noqa: S704 - escaped by dot_to_svg
    if part == "pages" and report.pages is not None:
        words = channel_map_description(report.pages)
        svg = dot_to_svg(
            pages_dot(report), prefix=f"{prefix}-p", title="Channels before and after transform_page", description=words
        )
        return {"pages_svg": Markup(svg)}  # noqa: S704 - escaped by dot_to_svg
    return {}


def _failure_names(failure: Failure, first_line: int) -> dict[str, Any]:
    """Return what the failure's template needs besides the failure: numbered lines, and the room before the carets."""
    names: dict[str, Any] = {"failure": failure, "first_line": first_line}
    if (excerpt := failure.excerpt) is not None:
        width = len(str(excerpt.lines[-1][0] + first_line - 1))
        names["excerpt_lines"] = [(f"{at + first_line - 1:>{width}}", visible(text)) for at, text in excerpt.lines]
        names["caret_space"] = " " * (width + 2 + len(visible(excerpt.lines[-1][1][: excerpt.column - 1])))
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
    environment.filters["number"] = lambda value: "" if value is None else number(value)
    environment.filters["coded"] = lambda sentence: Markup("").join(
        Markup("<code>{}</code>").format(part) if is_code else escape(part) for part, is_code in code_parts(sentence)
    )
    # The long names of narrow channels are set on two lines: a table's head is then no wider than its values.
    environment.filters["breakable"] = lambda name: Markup("_<br>").join(escape(part) for part in name.split("_"))
    # Others are broken where there is no room, and only there.
    environment.filters["soft"] = lambda name: Markup("_<wbr>").join(escape(part) for part in name.split("_"))
    return environment
