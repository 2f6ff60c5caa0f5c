"""The exercises of the notebooks: each waits for an answer, and its folded solution is right."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

COURSE = [
    path
    for path in sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb"))
    if path.name != "00_start_here.ipynb"
]
TRIED = {"01", "05", "07"}
"""The notebooks whose solutions the trials run: together they have every form of exercise."""
SOLUTION = re.compile(
    r"<details><summary>A solution</summary>\n.*?```(sql|python)\n(.*?)\n```.*?</details>",
    re.DOTALL,
)


class Exercise:
    """One exercise: the cell to fill in, the cells up to the next text, and the solution."""

    def __init__(self, solution: str, *, is_statement: bool, cells: list[nbformat.NotebookNode]):
        self.solution = solution
        self._is_statement = is_statement
        self.cell, self.cells = cells[0], cells
        if is_statement:
            at = next(i for i, cell in enumerate(cells) if cell.source.startswith("%%merge"))
            self.cell, self.cells = cells[at], cells[at:]
        elif "answers = {}" in (cells[1].source if len(cells) > 1 else ""):
            self.cell, self.cells = cells[1], cells[1:]

    def solve(self) -> None:
        """Insert the solution in place of the reader's answer."""
        if self._is_statement:
            magic, _, _ = self.cell.source.partition("\n")
            self.cell.source = f"{magic}\n{self.solution}"
        else:
            _, gap, rest = self.cell.source.partition("\n\n")
            self.cell.source = f"{self.solution}{gap}{rest}"

    @property
    def said(self) -> str:
        """The text output of the cells of the exercise."""
        outputs = [output for cell in self.cells for output in cell.outputs]
        return "\n".join(
            str(output.get("text") or output.get("data", {}).get("text/plain") or output)
            for output in outputs
        )


def exercises(book: nbformat.NotebookNode) -> list[Exercise]:
    """Return the exercises of a notebook in order."""
    found = []
    for number, cell in enumerate(book.cells):
        if cell.cell_type != "markdown" or "A solution</summary>" not in cell.source:
            continue
        [(language, solution)] = SOLUTION.findall(cell.source)
        code = []
        for after in book.cells[number + 1 :]:
            if after.cell_type != "code":
                break
            code.append(after)
        found.append(Exercise(solution, is_statement=language == "sql", cells=code))
    return found


@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)
def test_an_exercise_waits_for_an_answer(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    headings = re.findall(
        r"^## Exercise", "\n".join(cell.source for cell in book.cells), re.MULTILINE
    )
    assert len(exercises(book)) == len(headings) > 0
    for exercise in exercises(book):
        assert exercise.solution not in exercise.cell.source
        assert "Right" not in exercise.said
        assert "True" not in exercise.said


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.trial if path.stem[:2] in TRIED else pytest.mark.long)
        for path in COURSE
    ],
    ids=lambda path: path.stem,
)
def test_the_folded_solutions_are_right(path: Path) -> None:
    if path.name == "13_a_trino_plugin.ipynb":
        pytest.skip("notebooks/conftest.py says where it runs")
    book = nbformat.read(path, as_version=4)
    solved = exercises(book)
    for exercise in solved:
        exercise.solve()
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    for exercise in solved:
        assert re.search("Right|Yes: |True", exercise.said), exercise.said
        assert not re.search("Not yet|No: |False", exercise.said), exercise.said
