"""DOT for tables of text: nodes with ports in their cells, and labeled edges.

Each cell states its size, so that any Graphviz gives the same drawing without fonts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Final

from rowmerge_nb.report.drawing.metrics import text_width
from rowmerge_nb.report.words.display_values import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    import graphviz

COLORS: Final = {
    "fg": "#1f2328",
    "mut": "#59636e",
    "node": "#f3f4f6",
    "line": "#6e7781",
    "D": "#a8330a",
    "U": "#0b57a4",
    "I": "#00664b",
    "N": "#59616a",
    "Dt": "#fde8df",
    "Ut": "#e0ecfa",
    "It": "#dbf1e8",
    "Nt": "#e8eaed",
}
"""The light theme's colors by class; DOT has the values, SVG the classes."""

GAP: Final = "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}"
SANS: Final = "Helvetica"
MONO: Final = "Courier"
_NO_NAME: Final = re.compile(r"[^0-9A-Za-z_]")
PAD: Final = 4
LINE: Final = 14


@dataclass(frozen=True)
class TextRun:
    text: str
    color: str = "fg"
    bold: bool = False
    mono: bool = False
    size: int = 12

    @property
    def width(self) -> float:
        return text_width(self.text, self.size, bold=self.bold, mono=self.mono)


def plain(text: str, color: str = "fg") -> TextRun:
    return TextRun(visible(text).replace(" ", "\N{NO-BREAK SPACE}"), color)


def bold(text: str, color: str = "fg") -> TextRun:
    return TextRun(visible(text).replace(" ", "\N{NO-BREAK SPACE}"), color, bold=True)


def mono(text: str, color: str = "fg", *, size: int = 12, strong: bool = False) -> TextRun:
    return TextRun(
        visible(text).replace(" ", "\N{NO-BREAK SPACE}"), color, mono=True, bold=strong, size=size
    )


def muted(text: str) -> TextRun:
    return plain(text, "mut")


@dataclass(frozen=True)
class Box:
    """A cell; without lines, a bar with a port.

    Args:
        fill: a key of `COLORS`, or ``""``.
    """

    lines: Sequence[Sequence[TextRun]] = field(default=())
    align: str = "LEFT"
    port: str = ""
    fill: str = ""
    span: int = 1
    width: int = 0
    height: int = 4

    @property
    def least(self) -> int:
        widths = [sum(run.width for run in line) + 2 * PAD + 2 for line in self.lines]
        return max([self.width, *(math.ceil(width) for width in widths)])

    def markup(self) -> str:
        height = len(self.lines) * LINE + 4 if self.lines else self.height
        attributes = {
            "PORT": self.port,
            "ALIGN": self.align if self.lines and self.align != "CENTER" else "",
        }
        attributes |= {
            "COLSPAN": str(self.span) if self.span > 1 else "",
            "BGCOLOR": COLORS[self.fill] if self.fill else "",
        }
        attributes |= {"WIDTH": str(self.least), "HEIGHT": str(height)}
        text = " ".join(f'{name}="{value}"' for name, value in attributes.items() if value)
        # ALIGN of a cell applies to its last line, BALIGN to the others.
        return f"<TD {text}>{'<BR/>'.join(_line(line) for line in self.lines)}</TD>"


def _line(runs: Sequence[TextRun]) -> str:
    return "".join(_run(run) for run in runs)


def _run(run: TextRun) -> str:
    text = escape(run.text, quote=False)
    face = MONO if run.mono else SANS
    return (
        f'<FONT FACE="{face}" POINT-SIZE="{run.size}"'
        f' COLOR="{COLORS[run.color]}">{f"<B>{text}</B>" if run.bold else text}</FONT>'
    )


def new_graph(name: str, **attributes: str) -> graphviz.Digraph:
    import graphviz

    settings = {
        "rankdir": "TB",
        "bgcolor": "transparent",
        "pad": "0.02",
        "margin": "0",
        **attributes,
    }
    graph = graphviz.Digraph(name, graph_attr=settings)
    graph.attr("node", shape="plain", fontname=SANS, fontsize="12")
    graph.attr("edge", fontname=SANS, fontsize="12")
    return graph


def node(
    graph: graphviz.Digraph,
    name: str,
    rows: Sequence[Sequence[Box]],
    *,
    spacing: int = 0,
    fill: str = "node",
) -> None:
    background = f' BGCOLOR="{COLORS[fill]}"' if fill else ""
    head = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="{spacing}" CELLPADDING="0"{background}>'
    body = "\n".join(f"<TR>{''.join(box.markup() for box in row)}</TR>" for row in rows)
    graph.node(identifier(name), label=f"<{head}\n{body}</TABLE>>")


def identifier(name: str) -> str:
    r"""Return a name that is a plain DOT identifier, whatever node names a saved trace has.

    >>> identifier("12"), identifier("a:b"), identifier('<"\\N')
    ('12', 'a_3a_b', '_3c__22__5c_N')
    """
    return _NO_NAME.sub(lambda match: f"_{ord(match[0]):x}_", name) or "_"


def thickness(rows: int | None) -> float:
    """Return an edge's width: half a point per row, logarithmic beyond eight.

    >>> [thickness(rows) for rows in (None, 0, 1, 8, 80, 8_000_000)]
    [1.25, 1.0, 1.5, 5.0, 5.5, 6.5]
    """
    if rows is None:
        return 1.25
    if rows <= 8:
        return 1 + rows / 2
    return min(5 + round(math.log10(rows / 8), 1) / 2, 6.5)


def edge(
    graph: graphviz.Digraph,
    tail: str,
    head: str,
    *,
    color: str = "line",
    label: TextRun | None = None,
    rows: int | None = None,
    dashed: bool = False,
    weight: int = 1,
) -> None:
    """Add an edge; its label is a cell of known size."""
    width = 1.25 if dashed else thickness(rows)
    attributes = {
        "color": COLORS[color],
        "penwidth": f"{width:g}",
        "arrowsize": f"{0.45 + width / 10:.2g}",
    }
    if label is not None:
        box = Box([[plain("\N{NO-BREAK SPACE}"), label]])
        attributes["label"] = (
            '<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0"'
            f' CELLPADDING="0"><TR>{box.markup()}</TR></TABLE>>'
        )
    if dashed:
        attributes["style"] = "dashed"
    if weight != 1:
        attributes["weight"] = str(weight)
    graph.edge(tail, head, **attributes)
