"""DOT to SVG: Graphviz places boxes and edges, this module writes the text.

Before the layout, each cell is emptied and filled with a color that encodes its number, which
locates its text afterwards. No font is measured, so the bytes are the same on every machine. Colors
become classes for light and dark themes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape, unescape
from typing import Final

from rowmerge_nb.report.drawing.dot import COLORS, LINE, PAD
from rowmerge_nb.report.words.display_values import visible

_CELL: Final = re.compile(r"<TD\b([^>]*)>(.*?)</TD>", re.DOTALL)
_FONT: Final = re.compile(
    r'<FONT FACE="(\w+)" POINT-SIZE="(\d+)" COLOR="(#\w+)">(<B>)?(.*?)(?:</B>)?</FONT>', re.DOTALL
)
_CLASS_OF: Final = {value: name for name, value in COLORS.items()}
_SHAPE: Final = re.compile(r"<(polygon|path) ([^>]*)/>")
_ATTRIBUTE: Final = re.compile(r'([\w-]+)="([^"]*)"')
_POINT: Final = re.compile(r"(-?[\d.]+),(-?[\d.]+)")
_SIZE: Final = re.compile(r'viewBox="0\.00 0\.00 ([\d.]+) ([\d.]+)"')
_SHIFT: Final = re.compile(r"translate\(([-\d.]+) ([-\d.]+)\)")
_FIRST_NUMBER: Final = 0x0A0000


@dataclass(frozen=True)
class _Cell:
    fill: str
    align: str
    lines: tuple[str, ...]


def dot_to_svg(
    dot: str,
    *,
    prefix: str = "rm",
    title: str = "",
    description: str = "",
    standalone: bool = False,
) -> str:
    """Draw DOT written by `rowmerge_nb.report.drawing.graph` as an ``<svg>`` element without
    scripts and ``foreignObject``.
    """
    import pygraphviz

    cells: list[_Cell] = []
    svg_bytes = pygraphviz.AGraph(string=_CELL.sub(lambda match: _number(match, cells), dot)).draw(
        prog="dot", format="svg"
    )
    svg = svg_bytes.decode("utf-8")
    width, height = (float(size) for size in _found(_SIZE, svg))
    shift = tuple(float(offset) for offset in _found(_SHIFT, svg))
    drawing = _Drawing(cells, shift[0], shift[1])
    for match in _SHAPE.finditer(svg):
        drawing.add(match[1], dict(_ATTRIBUTE.findall(match[2])))
    style = f"<style>{_STANDALONE}</style>" if standalone else ""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="rm-svg" role="img"'
        f' aria-labelledby="{prefix}-t {prefix}-d" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-size="12" font-family="Helvetica, Arial,'
        ' Liberation Sans, sans-serif"><title'
        f' id="{prefix}-t">{escape(visible(title))}</title><desc'
        f' id="{prefix}-d">{escape(visible(description))}</desc>{style}\n'
        + "\n".join(drawing.markup())
        + "</svg>"
    )


def _found(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = pattern.search(text)
    if match is None:
        raise RuntimeError(
            f"Graphviz drew something unexpected: nothing in it matches {pattern.pattern}"
        )
    return match.groups()


def _number(match: re.Match[str], cells: list[_Cell]) -> str:
    attributes = dict(re.findall(r'(\w+)="([^"]*)"', match[1]))
    lines = tuple(_line(line) for line in match[2].split("<BR/>")) if match[2] else ()
    cells.append(
        _Cell(
            _CLASS_OF.get(attributes.pop("BGCOLOR", ""), ""),
            attributes.pop("ALIGN", "CENTER"),
            lines,
        )
    )
    attributes["BGCOLOR"] = f"#{_FIRST_NUMBER + len(cells) - 1:06x}"
    return "<TD " + " ".join(f'{name}="{value}"' for name, value in attributes.items()) + "></TD>"


def _line(markup: str) -> str:
    runs = []
    for face, size, color, strong, text in _FONT.findall(markup):
        names = ["m"] * (face == "Courier") + ["b"] * bool(strong) + ["s"] * (size == "11")
        shade = _CLASS_OF[color]
        names += [] if shade == "fg" else [f"f-{shade}"]
        runs.append((" ".join(names), escape(unescape(text), quote=False)))
    if len(runs) == 1:
        names_text, content = runs[0]
        return f"{names_text}|{content}"
    return "|" + "".join(
        f'<tspan class="{names_text}">{content}</tspan>' if names_text else content
        for names_text, content in runs
    )


class _Drawing:
    """The shapes of a drawing: surfaces by class, then edges, then text."""

    def __init__(self, cells: list[_Cell], right: float, down: float) -> None:
        self.cells = cells
        self.shift = (right, down)
        self.surfaces: dict[str, list[str]] = {}
        self.edges: list[str] = []
        self.texts: list[str] = []

    def markup(self) -> list[str]:
        # One path per color, twenty bytes per rectangle. Nodes are below their cells.
        names = sorted(self.surfaces, key=lambda name: (name != "node", name))
        return [
            *(f'<path class="f-{name}" d="{"".join(self.surfaces[name])}"/>' for name in names),
            *self.edges,
            *self.texts,
        ]

    def add(self, tag: str, attributes: dict[str, str]) -> None:
        fill, stroke = attributes.get("fill", "none"), attributes.get("stroke", "none")
        if tag == "path":
            self._edge(attributes, _CLASS_OF[stroke])
            return
        points = [
            (float(x), float(y))
            for x, y in (pair.split(",") for pair in attributes["points"].split())
        ]
        if stroke != "none":
            if fill in _CLASS_OF:
                corners = self._moved(" ".join(f"{x},{y}" for x, y in points[:-1]))
                self.edges.append(f'<polygon class="a-{_CLASS_OF[fill]}" points="{corners}"/>')
            return
        west, east = (pick(x for x, _ in points) + self.shift[0] for pick in (min, max))
        top, bottom = (pick(y for _, y in points) + self.shift[1] for pick in (min, max))
        if fill in _CLASS_OF:
            self._surface(_CLASS_OF[fill], west, top, east, bottom)
        elif fill.startswith("#0a") and (index := int(fill[1:], 16) - _FIRST_NUMBER) < len(
            self.cells
        ):
            if self.cells[index].fill:
                self._surface(self.cells[index].fill, west, top, east, bottom)
            self._text(self.cells[index], west, top, east, bottom)

    def _surface(self, name: str, west: float, top: float, east: float, bottom: float) -> None:
        # In whole pixels, neighbors share an edge without a seam.
        x, y = round(west), round(top)
        across = round(east) - x
        self.surfaces.setdefault(name, []).append(
            f"M{x} {y}h{across}v{round(bottom) - y}h-{across}z"
        )

    def _edge(self, attributes: dict[str, str], name: str) -> None:
        width = (
            f' stroke-width="{attributes["stroke-width"]}"' if "stroke-width" in attributes else ""
        )
        dash = ' stroke-dasharray="5,3"' if "stroke-dasharray" in attributes else ""
        self.edges.append(
            f'<path class="s-{name}"{width}{dash} d="{self._moved(attributes["d"])}"/>'
        )

    def _text(self, cell: _Cell, west: float, top: float, east: float, bottom: float) -> None:
        x, anchor = {
            "LEFT": (west + PAD, ""),
            "RIGHT": (east - PAD, "r"),
            "CENTER": ((west + east) / 2, "c"),
        }[cell.align]
        start = (top + bottom) / 2 - (len(cell.lines) - 1) * LINE / 2 + 4
        for at, line in enumerate(cell.lines):
            names, _, content = line.partition("|")
            if content.strip("\N{NO-BREAK SPACE}"):
                together = " ".join(filter(None, (names, anchor)))
                name = f' class="{together}"' if together else ""
                # In whole pixels, like the surfaces.
                self.texts.append(
                    f'<text x="{round(x)}" y="{round(start + at * LINE)}"{name}>{content}</text>'
                )

    def _moved(self, path: str) -> str:
        right, down = self.shift
        return _POINT.sub(
            lambda match: f"{_short(float(match[1]) + right)},{_short(float(match[2]) + down)}",
            path,
        )


def _short(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def _standalone_rules() -> str:
    dark = {
        "fg": "#e6e8eb", "mut": "#a4acb6", "node": "#22262b", "line": "#8d96a0", "D": "#ff9c78", "U": "#8abcf8", "I": "#62d0a8",
        "N": "#aab1b9", "Dt": "#47230f", "Ut": "#173252", "It": "#123a2c", "Nt": "#31363d",
    }  # fmt: skip

    def rules(colors: dict[str, str]) -> str:
        fills = "".join(f".f-{name}{{fill:{value}}}" for name, value in colors.items())
        lines = "".join(
            f".s-{name},.a-{name}{{stroke:{colors[name]}}}.a-{name}{{fill:{colors[name]}}}"
            for name in ("line", "D", "U", "I", "N")
        )
        return f"text{{fill:{colors['fg']}}}{fills}{lines}"

    fonts = (
        "[class^=s-]{fill:none}.c{text-anchor:middle}.r{text-anchor:end}.m{font-family:Menlo,Consolas,Liberation"
        " Mono,monospace}.b{font-weight:600}.s{font-size:11px}"
    )
    return f"{fonts}{rules(COLORS)}@media (prefers-color-scheme:dark){{{rules(dark)}}}"


_STANDALONE: Final = _standalone_rules()
