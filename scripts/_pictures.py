"""The pictures of the README: the explorer of a MERGE in light and dark, and an animation.

The animation follows a row from step to step, and then changes a value of the source in What if.
They are drawn from a real run, by Chromium.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops

import rowmerge_nb as rm
from rowmerge_nb.demo import SETUP, STATEMENT

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTH, HEIGHT, MARGIN = 1180, 2400, 24
"""The window; a picture ends below its last line."""
HIDDEN = ".rx-below, .rx-keys, .rx-statement"
"""What would make the pictures twice as high: below the rows, and the statement of What if."""
SCHEMES = {"dark": 0, "light": 1}
"""Chromium's numbers of the preferred colors."""
STEPS = ("read", "join", "case", "transform", "exchange", "sinks", "commit")
SECONDS = 1.6
"""How long the animation shows a step; a question is shown for twice this time."""
CELLS = {0: {"address": "Berkeley"}}
"""The question: Aaron's new address is the one whose row is deleted."""
SCRIPT = """<script type="module">
await new Promise((done) => setTimeout(done, 300));
document.querySelector("pre").remove();
document.head.append(Object.assign(document.createElement("style"), { textContent: "%s { display: none !important }" }));
for (const name of %s) document.querySelector(`[data-key="${name}"]`).click();
</script></body>"""


def main() -> None:
    """Run the statement, and draw its explorer."""
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser is None:
        sys.exit("There is no Chromium: install it, for instance by apt-get install chromium.")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, rm.Engine(cores=2) as engine:
        folder = Path(name)
        engine.run_script(SETUP)
        result = engine.run(STATEMENT, trace="full")
        result.save_html(folder / "explorer.html")
        page = (folder / "explorer.html").read_text("utf-8")
        for scheme in SCHEMES:
            _draw(browser, folder, page, scheme, ["step-case"]).save(
                FOLDER / f"explorer-{scheme}.png", optimize=True
            )
        frames = [_draw(browser, folder, page, "light", [f"step-{step}"]) for step in STEPS]
        seconds = [SECONDS] * len(frames)
        explorer = result.explore()
        for cells in ({}, CELLS):
            explorer.cells = cells
            page_now = _with_traits(page, explorer)
            frames.append(_draw(browser, folder, page_now, "light", ["whatif", "if-cells"]))
            seconds.append(2 * SECONDS)
        _animate(frames, seconds)


def _with_traits(page: str, explorer: Any) -> str:
    """Return a page that shows what the widget shows now, as if it had a kernel."""
    traits = {
        name: getattr(explorer, name)
        for name in ("state", "cells", "statement", "asrun", "row", "step")
    }
    start = "const listeners = new Map();"
    text = json.dumps(traits).replace("<", "\\u003c")
    return page.replace(start, f"Object.assign(traits, {text});\n{start}")


def _draw(browser: str, folder: Path, document: str, scheme: str, clicks: list[str]) -> Image.Image:
    page, picture = folder / "page.html", folder / "page.png"
    page.write_text(document.replace("</body>", SCRIPT % (HIDDEN, json.dumps(clicks))), "utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}"]
    command += [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
    command += ["--virtual-time-budget=20000", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    image = Image.open(picture).convert("RGB")
    background = Image.new("RGB", image.size, image.getpixel((0, 0)))
    content = ImageChops.difference(image, background).getbbox()
    if content is None or content[3] + MARGIN > image.height:
        sys.exit(f"The page of {', '.join(clicks)} is empty, or higher than {HEIGHT} pixels.")
    image = image.crop((0, 0, image.width, content[3] + MARGIN))
    # Few colors: the file is half as large.
    return image.quantize(128, dither=Image.Dither.NONE)


def _animate(frames: list[Image.Image], seconds: list[float]) -> None:
    """Save frames of one size, the highest page's, as an animation."""
    height = max(frame.height for frame in frames)
    pages = []
    for frame in frames:
        page = Image.new("RGB", (WIDTH, height), "white")
        page.paste(frame.convert("RGB"))
        pages.append(page.convert("P", palette=Image.Palette.ADAPTIVE, colors=32))
    pages[0].save(
        FOLDER / "steps.gif",
        save_all=True,
        append_images=pages[1:],
        duration=[int(1000 * one) for one in seconds],
        loop=0,
    )


if __name__ == "__main__":
    main()
