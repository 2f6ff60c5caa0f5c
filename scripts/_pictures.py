"""The pictures of the README: the explorer of a MERGE in light and dark, and a row from step to step.

They are drawn from a real run, by Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

import rowmerge_nb as rm
from rowmerge_nb.demo import SETUP, STATEMENT

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTH, HEIGHT = 1180, 760
SCHEMES = {"dark": 0, "light": 1}
"""Chromium's numbers of the preferred colors."""
STEPS = (1, 2, 3, 5, 6, 7, 9)
SHOWN_STEP = 3
SECONDS = 1.6
"""How long the animation shows a step."""
SCRIPT = """<script type="module">
await new Promise((done) => setTimeout(done, 300));
document.querySelector("pre").remove();
document.querySelector(".rx-steps li:nth-child(%d) button").click();
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
        engine.run(STATEMENT, trace="full").save_html(folder / "explorer.html")
        document = (folder / "explorer.html").read_text("utf-8")
        for scheme in SCHEMES:
            _draw(browser, folder, document, scheme, SHOWN_STEP, FOLDER / f"explorer-{scheme}.png")
        frames = []
        for step in STEPS:
            _draw(browser, folder, document, "light", step, folder / f"{step}.png")
            frames.append(Image.open(folder / f"{step}.png").convert("P", palette=1, colors=32))
        frames[0].save(
            FOLDER / "steps.gif",
            save_all=True,
            append_images=frames[1:],
            duration=int(SECONDS * 1000),
            loop=0,
        )


def _draw(browser: str, folder: Path, document: str, scheme: str, step: int, picture: Path) -> None:
    page = folder / "page.html"
    page.write_text(document.replace("</body>", SCRIPT % step), "utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}"]
    command += [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
    command += ["--virtual-time-budget=20000", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    # Few colors: the file is half as large.
    Image.open(picture).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
        picture, optimize=True
    )


if __name__ == "__main__":
    main()
