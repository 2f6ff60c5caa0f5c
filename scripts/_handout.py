"""The notebooks for a class: a set for students, and one with solutions.

The tag `solution` in the metadata of a cell marks a text with a fold, which students must not see; its
rest is the question.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import nbformat

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
FOLD = re.compile(r"\n*<details>.*?</details>", re.DOTALL)


def for_students(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove solutions and outputs from a notebook, and return it."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "solution" in tags:
            cell.source = FOLD.sub("", cell.source)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
    notebook.metadata.pop("widgets", None)
    return notebook


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0].startswith("-"):
        raise SystemExit("Usage: scripts/handout DIR [NOTEBOOK ...]")
    folder = Path(arguments[0])
    students, solutions = folder / "students", folder / "solutions"
    if students.exists() or solutions.exists():
        raise SystemExit(f"{folder} has a hand-out already. Name another folder, or remove it.")
    paths = [Path(name) for name in arguments[1:]] or sorted(NOTEBOOKS.glob("*.ipynb"))
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise SystemExit(
            f"There is no {', '.join(missing)}. Name files such as {NOTEBOOKS / '00_start_here.ipynb'}."
        )
    students.mkdir(parents=True)
    solutions.mkdir()
    for path in paths:
        shutil.copyfile(path, solutions / path.name)
        nbformat.write(for_students(nbformat.read(path, as_version=4)), students / path.name)
    print(f"{len(paths)} notebooks are in {students}, and with solutions in {solutions}.")


if __name__ == "__main__":
    main(sys.argv[1:])
