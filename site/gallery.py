"""Run the statements of docs/gallery.md, and write the explorer of each to a file.

Usage: ``python site/gallery.py FOLDER``. The page has the inputs; nothing of a run is stored in the
project.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rowmerge_nb.notebook.cell_options import parse_line

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.engine import Engine

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gallery.md"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_CELL = re.compile(r"^```\n%%merge(.*)\n((?:.*\n)*?)```$", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A section of the gallery.

    Attributes:
        title: its heading.
        anchor: the heading's anchor, and the name of the explorer's file.
        setup: the cells that create its table.
        line: the options of its last cell.
        statement: the statement of its last cell.
    """

    title: str
    anchor: str
    setup: tuple[str, ...]
    line: str
    statement: str


def read_examples(text: str) -> list[Example]:
    """Return the examples of a page, in its order; their titles make the anchors."""
    _, *parts = _SECTION.split(text)
    examples = []
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        *setup, (line, statement) = _CELL.findall(body)
        anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        cells = tuple(cell.strip() for _, cell in setup)
        examples.append(Example(title, anchor, cells, line.strip(), statement.strip()))
    return examples


def run_example(engine: Engine, example: Example) -> Result:
    """Return the result of the statement, also if it failed."""
    from rowmerge_nb.base.errors import RowMergeError

    for cell in example.setup:
        engine.run_script(cell)
    options = {
        name: value for name, value in parse_line(example.line).values.items() if name != "explore"
    }
    try:
        return engine.run(example.statement, **options)
    except RowMergeError as error:
        if error.result is None:
            raise
        result: Result = error.result
        return result


def write_explorers(folder: Path, engine: Engine) -> list[Path]:
    """Write an explorer per example to the folder, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for example in read_examples(PAGE.read_text(encoding="utf-8")):
        path = folder / f"{example.anchor}.html"
        run_example(engine, example).save_html(path)
        # A site is read by everybody, unlike a file that a person saves.
        path.chmod(0o644)
        paths.append(path)
    return paths


if __name__ == "__main__":
    from rowmerge_nb.engine.engine import Engine

    with Engine(cores=2) as gallery_engine:
        write_explorers(Path(sys.argv[1]), gallery_engine)
