"""The notebooks as a course: the promises of their texts, and their executed cells."""

from __future__ import annotations

import copy
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb"))
COURSE = [path for path in NOTEBOOKS if path.name != "00_start_here.ipynb"]


def cells(path: Path, kind: str) -> list[str]:
    return [
        cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind
    ]


def test_each_notebook_leads_to_the_next_and_the_first_names_all() -> None:
    names = [path.stem for path in NOTEBOOKS]
    first = "\n".join(cells(NOTEBOOKS[0], "markdown"))
    assert [name for name in names[1:] if f"({name}.ipynb)" not in first] == []
    for path, following in zip(COURSE, names[2:], strict=False):
        assert f"Next: [{following}]({following}.ipynb)" in "\n".join(cells(path, "markdown"))


OF_OTHER_ENGINES = (
    # a comment, SQL of SQLite and DuckDB in databases that are new each time, and a failure
    "CREATE TABLE makes",
    "CREATE TABLE notes",
    "CREATE TABLE orders AS FROM orders_before",
    "CREATE TABLE ice.shop.wrong",
    # below a folder that is new each time
    "CREATE TABLE ice.shop.accounts",
)


TWICE = {"09"}
"""The notebooks that the trials run twice: this one has every store."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_cell_that_creates_a_table_can_be_run_again(path: Path) -> None:
    source = "\n".join(cells(path, "code"))
    created = re.findall(r"CREATE (?:TABLE|VIEW) (?!IF NOT EXISTS)[^\n]*", source)
    assert [text for text in created if not text.startswith(OF_OTHER_ENGINES)] == []


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.trial if path.stem[:2] in TWICE else pytest.mark.long)
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_run_all_twice_in_one_kernel_raises_no_error(path: Path) -> None:
    if path.name == "13_a_trino_plugin.ipynb":
        pytest.skip("notebooks/conftest.py says where it runs")
    book = nbformat.read(path, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    book.cells = [*code, *copy.deepcopy(code)]
    for number, cell in enumerate(book.cells):
        cell.id = f"cell-{number}"
    client = NotebookClient(book, timeout=300, resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    for first, second in zip(code, book.cells[len(code) :], strict=True):
        assert kinds_of_outputs(first) == kinds_of_outputs(second), first.source


def kinds_of_outputs(cell: Any) -> list[tuple[str, ...]]:
    """Return the types of a cell's outputs: a rerun of the cell has the same.

    Printed text may differ: IPython prints that an extension is already loaded.
    """
    return [
        (output.output_type, *sorted(output.get("data", ())))
        for output in cell.outputs
        if output.output_type != "stream"
    ]


def test_imports_of_notebooks_are_in_the_extra_of_their_name() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert {*extras["iceberg"], *extras["jdbc"], *extras["verify"]} < set(extras["notebooks"])
    wanted = [*project["dependencies"], *extras["notebooks"]]
    there = {re.split(r"[\[<>=]", name, maxsplit=1)[0].replace("-", "_") for name in wanted}
    code = "\n".join(source for path in NOTEBOOKS for source in cells(path, "code"))
    imported = set(re.findall(r"^\s*(?:from|import) ([\w.]+)", code, re.MULTILINE))
    libraries = {name.split(".")[0] for name in imported} - sys.stdlib_module_names
    # The contract kit is a part of this package that few users need.
    assert "pytest" in there
    assert any(name.startswith("rowmerge_nb.testing") for name in imported)
    assert libraries <= there | {"rowmerge_nb"}
