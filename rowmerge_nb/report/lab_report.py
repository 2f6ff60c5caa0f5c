"""The results of the lab as text, HTML and pictures."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked_path
from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.words import number, number_or_blank
from rowmerge_nb.report.drawing.small_multiples import draw_lab, draw_lab_in
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.plain_text import WIDTH
from rowmerge_nb.report.words.columns import columns_of

if TYPE_CHECKING:
    from rowmerge_nb.trace.lab import Lab, LabRun

SHOWN: Final = 100
"""The maximum number of runs in the table of a report."""
_MEASURES: Final = (
    "rows changed",
    "files written",
    "bytes written",
    "written / changed",
    "files to merge",
    "full read",
    "read / loaded",
    "writer skew",
)
MEANINGS: Final = {
    "written / changed": (
        "write amplification: bytes written by statements and compactions, divided by those that"
        " the changed rows took when they were loaded"
    ),
    "full read": "the bytes of a full read after the last statement, with files to merge",
    "read / loaded": "read amplification: those bytes, divided by the bytes of the loaded table",
    "writer skew": "rows of the busiest writer, divided by the mean of all that got rows",
}


def lab_bundle(lab: Lab) -> dict[str, str]:
    """Return the mime bundle of a lab; without matplotlib, a sentence replaces the pictures."""
    from markupsafe import Markup

    text, problem, picture = lab_text(lab), "", None
    try:
        picture = draw_lab(lab)
    except SetupError as error:
        problem = str(error)
    names: dict[str, Any] = {
        "lab": lab,
        "picture": None if picture is None else Markup(picture),  # noqa: S704 - drawn from numbers and names of ours
        "problem": problem,
        "heads": _heads(lab),
        "rows": [_cells(lab, run) for run in lab.runs[:SHOWN]],
        "more": max(0, len(lab.runs) - SHOWN),
        "refusals": _refusals(lab),
        "meanings": MEANINGS,
    }
    return {
        "text/plain": text,
        "text/html": render_parts("lab.html.j2", names, text, lab.statement),
    }


def lab_text(lab: Lab) -> str:
    lines = textwrap.wrap(lab.sentence, WIDTH)
    for sentence in (*lab.notices, *lab.advice, *_refusals(lab)):
        lines += textwrap.wrap(sentence, WIDTH)
    if lab.runs:
        rows = [_heads(lab), *(_cells(lab, run) for run in lab.runs[:SHOWN])]
        right = set(range(len(lab.varied), len(rows[0])))
        lines += ["", *columns_of(rows, right=right)]
    if len(lab.runs) > SHOWN:
        lines.append(f"and {number(len(lab.runs) - SHOWN)} more; to_pandas() has all runs")
    return "\n".join(lines)


def save_pictures(lab: Lab, folder: str | Path) -> list[Path]:
    directory = Path(checked_path(folder, "folder"))
    paths = []
    for theme in ("light", "dark"):
        svg = draw_lab_in(lab, theme)
        if svg is not None:
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / f"lab-{theme}.svg"
            path.write_text(svg, "utf-8")
            paths.append(path)
    return paths


def _heads(lab: Lab) -> list[str]:
    return [*(name.replace("_", " ") for name in lab.varied), *_MEASURES]


def _cells(lab: Lab, run: LabRun) -> list[str]:
    values = [_value(getattr(run.point, name)) for name in lab.varied]
    if run.refusal:
        return [*values, "refused", *[""] * (len(_MEASURES) - 1)]
    last = run.steps[-1]
    files = [step.files_written for step in run.steps]
    return [
        *values,
        number(run.rows_changed),
        "" if files[0] is None else number(sum(count or 0 for count in files)),
        number_or_blank(run.bytes_written),
        _ratio(run.write_amplification),
        number_or_blank(last.files_to_merge),
        number_or_blank(run.full_read_bytes),
        _ratio(run.read_amplification()),
        _ratio(run.skew),
    ]


def _value(value: object) -> str:
    return (
        value or "none"
        if isinstance(value, str)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _refusals(lab: Lab) -> list[str]:
    return list(
        dict.fromkeys(f"{run.point.store}: {run.refusal}" for run in lab.runs if run.refusal)
    )
