"""The notebooks for a class: a set for students, and one with solutions.

Tags in the metadata of cells name what students must not see: `solution` is a text with a fold, whose
rest is the question, and `prediction` a cell whose values are answers.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from pathlib import Path

import nbformat

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
FOLD = re.compile(r"\n*<details>.*?</details>", re.DOTALL)


def for_students(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove solutions, predicted values and outputs from a notebook, and return it."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "solution" in tags:
            cell.source = FOLD.sub("", cell.source)
        if "prediction" in tags:
            cell.source = without_values(cell.source)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
    notebook.metadata.pop("widgets", None)
    return notebook


def without_values(source: str) -> str:
    """Return an assignment of a dictionary with None for each value.

    >>> print(without_values('prediction = {"Aaron": 0, "Bill": -1}'))
    # Write your answers in place of None.
    prediction = {"Aaron": None, "Bill": None}
    """
    match ast.parse(source).body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys))]:
            texts = (json.dumps(ast.literal_eval(key), ensure_ascii=False) for key in keys if key)
            items = ", ".join(f"{text}: None" for text in texts)
            return f"# Write your answers in place of None.\n{name} = {{{items}}}"
    raise SystemExit(
        f"A cell with the tag prediction is one assignment of a dictionary, not:\n{source}"
    )


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
