"""Reports and saved explorers in pages built like those of front ends that are not installed here."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest

from rowmerge_nb.report.explorer.explorer_file import (
    explorer_module,
    explorer_styles,
    saved_explorer,
)
from rowmerge_nb.report.explorer.explorer_state import explorer_state
from rowmerge_nb.report.html import render_html
from rowmerge_nb.report.model.report import PARTS, build_report
from tests.report import building, traces
from tests.report.explorer_browser import needs_browser, seen

if TYPE_CHECKING:
    from pathlib import Path

FRONT_ENDS: Final = {
    # Colab puts the outputs of a cell into a frame, and its theme into an attribute.
    "colab-light": ('theme="light"', "", "#fff"),
    "colab-dark": ('theme="dark"', "", "#383838"),
    # VS Code has its own classes and variables, and none of Jupyter's variables.
    "vscode-light": ("", 'class="vscode-light"', "#ffffff"),
    "vscode-dark": ("", 'class="vscode-dark"', "#1f1f1f"),
    "vscode-high-contrast": ("", 'class="vscode-high-contrast"', "#000000"),
    "vscode-high-contrast-light": (
        "",
        'class="vscode-high-contrast-light vscode-high-contrast"',
        "#ffffff",
    ),
    "a plain page": ("", "", "#ffffff"),
}
"""Attributes of the page, attributes of its body, and its background."""
LEAST_CONTRAST: Final = 4.5
"""The minimum contrast of small text in WCAG 2.1, level AA."""

CONTRASTS: Final = """
const known = new Map();
const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const painted = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
const parts = (color) => { if (!known.has(color)) known.set(color, painted(color)); return known.get(color); };
const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
const behind = (element) => { for (let at = element; at; at = at.parentElement) { const color = parts(getComputedStyle(at).backgroundColor); if (color[3] === 255) return color; } return [255, 255, 255, 255]; };
for (const details of all("details")) details.open = true;
const low = {};
for (const element of all(".rm *")) {
  const words = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent.trim()).join("");
  if (!words || !element.getClientRects().length || element.closest("style")) continue;
  const style = getComputedStyle(element);
  const front = light(parts(element.closest("svg") ? style.fill : style.color));
  // Texts of drawings lie on shapes beside them, whose colors are those of chips.
  const back = light(behind(element));
  const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  if (contrast < LEAST) low[words.slice(0, 40)] = contrast;
}
told.low = low;
told.scripts = all(".rm script").length;
told.wide = document.documentElement.scrollWidth > window.innerWidth;
""".replace("LEAST", str(LEAST_CONTRAST))


def page(front_end: str, content: str) -> str:
    root, body, background = FRONT_ENDS[front_end]
    variables = f"--vscode-editor-background:{background};" if "vscode" in body else ""
    return (
        f'<!doctype html><html {root} style="{variables}"><head><meta charset="utf-8"></head>'
        f'<body {body} style="background:{background}"><div>{content}</div></body></html>'
    )


@pytest.mark.parametrize(
    "styles", [render_html(build_report(building.merge_trace()), show=PARTS), explorer_styles()]
)
def test_every_variable_has_a_value_without_jupyter(styles: str) -> None:
    used = set(re.findall(r"var\((--[\w-]+)\)", styles))
    defined = set(re.findall(r"(--rm-[\w-]+):", styles))
    assert used - defined == set()
    # A variable of a front end has a fallback for the others after a comma.
    assert {name for name in used if not name.startswith("--rm-")} == set()


def test_colab_gets_its_widget_manager_and_the_script_needs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from anywidget import _util

    from rowmerge_nb.report.explorer.widget import Explorer

    requests: list[bool] = []
    colab = SimpleNamespace(
        enable_custom_widget_manager=lambda: requests.append(True),
        _widgets=SimpleNamespace(_installed_url="https://colab.example/manager.js"),
    )
    monkeypatch.setitem(sys.modules, "google.colab.output", colab)
    _util.enable_custom_widget_manager_once.cache_clear()
    try:
        _, metadata = Explorer(building.merge_trace())._view()
    finally:
        _util.enable_custom_widget_manager_once.cache_clear()
    assert requests == [True]
    [manager] = metadata.values()
    assert manager == {"colab": {"custom_widget_manager": {"url": colab._widgets._installed_url}}}
    assert not re.search(r"\bimport\b|\bfetch\(|https?://(?!www\.w3\.org)", explorer_module())


def test_a_report_has_no_script_and_asks_for_nothing() -> None:
    for trace in (building.merge_trace(), traces.duplicate_trace(), traces.updatable_trace()):
        html = render_html(build_report(trace), show=PARTS)
        assert not re.search(r"<script|<link|<img|<iframe|\son\w+=|@import|url\(", html)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_every_word_of_a_report_can_be_read(front_end: str, tmp_path: Path) -> None:
    reports = "".join(
        render_html(build_report(trace), show=show).replace('id="rm-', f'id="rm-{number}-')
        for number, (trace, show) in enumerate(
            ((building.merge_trace(), PARTS), (traces.duplicate_trace(), None))
        )
    )
    told = seen(page(front_end, reports), CONTRASTS, tmp_path, width=900)
    assert told == {"low": {}, "scripts": 0, "wide": False}


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_the_saved_explorer_has_the_theme_of_its_page(front_end: str, tmp_path: Path) -> None:
    _, bundle = saved_explorer({**explorer_state(building.merge_trace()), "choices": None})
    is_dark = FRONT_ENDS[front_end][2] in {"#383838", "#1f1f1f", "#000000"}
    color = f'<div style="color:{"#eee" if is_dark else "#222"}">{bundle["text/html"]}</div>'
    told = seen(
        page(front_end, color),
        """
        const frame = one('iframe');
        for (let tries = 0; tries < 100 && !frame.contentDocument?.querySelector('.rx-row'); tries += 1) await wait();
        told.theme = frame.contentDocument.documentElement.getAttribute('theme');
        told.rows = frame.contentDocument.querySelectorAll('.rx-row').length > 0;
        """,
        tmp_path,
        width=900,
    )
    assert told == {"theme": "dark" if is_dark else "light", "rows": True}
