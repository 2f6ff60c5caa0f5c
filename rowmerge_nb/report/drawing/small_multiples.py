"""The pictures of the lab: small multiples, as one static SVG by matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.trace.lab_advice import break_even, pairs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rowmerge_nb.trace.lab import Lab, LabRun

MOST_FACETS: Final = 6
"""The maximum number of columns of pictures; the frame has all runs."""
_LINES: Final = (
    ("U", "o", "-"),
    ("D", "s", "--"),
    ("I", "^", "-."),
    ("N", "D", ":"),
    ("err", "v", "-"),
)
"""Color, marker and line of each store."""
_STANDINS: Final = {
    "fg": "#010101",
    "mut": "#020202",
    "rule": "#030303",
    "U": "#040404",
    "D": "#050505",
    "I": "#060606",
    "N": "#070707",
    "err": "#080808",
}
"""The colors that are drawn, and replaced afterwards."""
_THEMES: Final[Mapping[str, Mapping[str, str]]] = {
    "light": {
        "fg": "#1f2328",
        "mut": "#59636e",
        "rule": "#d0d4d9",
        "U": "#0b57a4",
        "D": "#a8330a",
        "I": "#00664b",
        "N": "#59616a",
        "err": "#b3121d",
        "bg": "#ffffff",
    },
    "dark": {
        "fg": "#e6e8eb",
        "mut": "#a4acb6",
        "rule": "#41474f",
        "U": "#8abcf8",
        "D": "#ff9c78",
        "I": "#62d0a8",
        "N": "#aab1b9",
        "err": "#ff8f8f",
        "bg": "#111111",
    },
}


@dataclass(frozen=True)
class _Panel:
    title: str
    draw: Callable[[Axes, Sequence[LabRun], Mapping[str, tuple[str, str, str]]], bool]


def draw_lab(lab: Lab) -> str | None:
    """Return the pictures as SVG, whose colors are variables of the report's style sheet; None
    without anything to draw.
    """
    svg = _drawn(lab)
    return None if svg is None else _recolored(svg, {n: f"var(--rm-{n})" for n in _STANDINS})


def draw_lab_in(lab: Lab, theme: str) -> str | None:
    """Return the pictures as SVG for a ``light`` or ``dark`` background."""
    svg, colors = _drawn(lab), _THEMES[theme]
    if svg is None:
        return None
    background = f'<rect width="100%" height="100%" fill="{colors["bg"]}"/>'
    return re.sub(r"(<svg[^>]*>)", rf"\1{background}", _recolored(svg, colors), count=1)


def _recolored(svg: str, colors: Mapping[str, str]) -> str:
    for name, standin in _STANDINS.items():
        svg = svg.replace(standin, colors[name])
    return svg


def _drawn(lab: Lab) -> str | None:
    figures = _figure_class()
    names = [name for name in lab.varied if name not in {"store", "share"}]
    facets = list(lab.groups(*names).items())[:MOST_FACETS]
    if not facets:
        return None
    stores = dict.fromkeys(run.point.store for run in lab.measured)
    lines = dict(zip(stores, (_LINES * 3), strict=False))
    figure = figures(
        figsize=(max(3.2 * len(facets), 4.2), 2.4 * len(_PANELS) + 0.5), layout="constrained"
    )
    axes = figure.subplots(len(_PANELS), len(facets), squeeze=False)
    figure.patch.set_alpha(0)
    for row, panel in enumerate(_PANELS):
        for column, (values, runs) in enumerate(facets):
            ax = axes[row][column]
            drew = panel.draw(ax, runs, lines)
            _style(ax, panel.title if column == 0 else "")
            if row == 0:
                facet = ", ".join(
                    f"{name} {value if value != '' else 'none'}"
                    for name, value in zip(names, values, strict=True)
                )
                ax.set_title(facet, fontsize=8, color=_STANDINS["fg"])
            if not drew:
                ax.text(
                    0.5,
                    0.5,
                    "none",
                    ha="center",
                    transform=ax.transAxes,
                    fontsize=8,
                    color=_STANDINS["mut"],
                )
    handles, labels = [], []
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if label in lines and label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        frameon=False,
        labelcolor=_STANDINS["fg"],
    )
    return _svg_of(figure)


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SetupError(
            "matplotlib, which draws the pictures of the lab, is not installed",
            hint=f"Run: {install_command('lab')}",
        ) from error
    return Figure


def _svg_of(figure: Any) -> str:
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "rowmerge_nb", "font.family": "sans-serif"}
    ):
        figure.savefig(
            buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True
        )
    svg = buffer.getvalue()
    return svg[svg.index("<svg") :]


def _style(ax: Axes, title: str) -> None:
    ax.patch.set_alpha(0)
    ax.set_ylabel(title, fontsize=8, color=_STANDINS["fg"])
    ax.tick_params(labelsize=7, color=_STANDINS["rule"], labelcolor=_STANDINS["mut"], which="both")
    ax.xaxis.label.set_color(_STANDINS["mut"])
    ax.xaxis.label.set_fontsize(7)
    ax.grid(visible=True, color=_STANDINS["rule"], linewidth=0.5)
    for spine in ax.spines.values():
        spine.set_color(_STANDINS["rule"])


def _line(
    ax: Axes,
    store: str,
    points: Sequence[tuple[float, float]],
    lines: Mapping[str, tuple[str, str, str]],
    label: str | None = None,
) -> None:
    color, marker, style = lines[store]
    ax.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=_STANDINS[color],
        marker=marker,
        linestyle=style,
        markersize=4,
        linewidth=1.2,
        label=label or store,
    )


def _share_axis(ax: Axes, runs: Sequence[LabRun]) -> None:
    ax.set_xscale("log")
    ax.set_xticks(sorted({run.point.share * 100 for run in runs}))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def _log_axis(ax: Axes) -> None:
    from matplotlib.ticker import LogLocator

    ax.set_yscale("log", subs=[])
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")


def _by_share(
    measure: Callable[[LabRun], float | None], *, log: bool
) -> Callable[[Axes, Sequence[LabRun], Mapping[str, tuple[str, str, str]]], bool]:
    def draw(ax: Axes, runs: Sequence[LabRun], lines: Mapping[str, tuple[str, str, str]]) -> bool:
        drew = False
        for store in dict.fromkeys(run.point.store for run in runs):
            points = sorted(
                (run.point.share * 100, value)
                for run in runs
                if run.point.store == store and (value := measure(run)) is not None
            )
            if points:
                _line(ax, store, points, lines)
                drew = True
        if drew:
            _share_axis(ax, runs)
            if log:
                _log_axis(ax)
        ax.set_xlabel("% of rows changed")
        return drew

    return draw


def _reading(ax: Axes, runs: Sequence[LabRun], lines: Mapping[str, tuple[str, str, str]]) -> bool:
    largest = max(run.point.share for run in runs)
    drew = False
    for run in runs:
        values = [run.read_amplification(index) for index in range(len(run.steps))]
        points = [(index, value) for index, value in enumerate(values, 1) if value is not None]
        if run.point.share == largest and points:
            _line(ax, run.point.store, [(0, 1.0), *points], lines)
            drew = True
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(f"statements of {largest * 100:g} % of the rows")
    return drew


def _breaking_even(
    ax: Axes, runs: Sequence[LabRun], lines: Mapping[str, tuple[str, str, str]]
) -> bool:
    by_pair: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for share in sorted({run.point.share for run in runs}):
        for first, second in pairs_of([run for run in runs if run.point.share == share]):
            reads = break_even(first, second)
            if reads:
                stores = first.point.store, second.point.store
                by_pair.setdefault(stores, []).append((share * 100, reads))
    for (first_store, second_store), points in by_pair.items():
        _line(ax, second_store, points, lines, f"{second_store} against {first_store}")
    if by_pair:
        _share_axis(ax, runs)
        _log_axis(ax)
        ax.legend(fontsize=6, frameon=False, labelcolor=_STANDINS["mut"])
    ax.set_xlabel("% of rows changed")
    return bool(by_pair)


_PANELS: Final = (
    _Panel("write amplification", _by_share(lambda run: run.write_amplification, log=True)),
    _Panel("read amplification", _reading),
    _Panel("break-even, full reads", _breaking_even),
    _Panel("busiest writer / mean", _by_share(lambda run: run.skew, log=False)),
)
