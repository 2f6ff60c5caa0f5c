"""The notebooks for a class: students get no answers, and tags mark the answers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "_handout.py"
NAMES = sorted(path.name for path in ROOT.glob("notebooks/*.ipynb"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class") / "handout"
    done = run(str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def cells_of(path: Path) -> Any:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook.cells


@pytest.mark.not_quick
@pytest.mark.parametrize("name", NAMES)
def test_students_get_questions_without_answers(folder: Path, name: str) -> None:
    original = cells_of(ROOT / "notebooks" / name)
    for cell, source in zip(cells_of(folder / "students" / name), original, strict=True):
        assert "<details" not in cell.source
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        tags = source.metadata.get("tags", [])
        assert ("solution" in tags) == ("<details" in source.source), "the tag decides"
        assert bool(cell.source) == bool(source.source), "the question stays"
        if "solution" not in tags:
            assert cell.source == source.source
    assert (folder / "solutions" / name).read_bytes() == (ROOT / "notebooks" / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_an_assigned_prediction_waits_for_an_answer(folder: Path, name: str) -> None:
    for cell in cells_of(folder / "students" / name):
        found = re.match(r"(?:# .*\n)?prediction = (.*?)(?:\n\n|\Z)", cell.source, re.DOTALL)
        if cell.cell_type == "code" and found:
            assert re.search(r'None|"\?|\[\]', found[1]), found[1]
            assert not re.search(r': -?\d|: "[^?]', found[1]), found[1]


def test_a_folder_with_a_handout_is_not_overwritten(folder: Path) -> None:
    before = (folder / "students" / NAMES[0]).stat().st_mtime_ns
    again = run(str(folder))
    assert again.returncode == 1
    assert "has a hand-out already. Name another folder" in again.stderr
    assert (folder / "students" / NAMES[0]).stat().st_mtime_ns == before


@pytest.mark.not_quick
def test_some_notebooks_can_be_named(tmp_path: Path) -> None:
    path = ROOT / "notebooks" / NAMES[2]
    assert run(str(tmp_path / "a"), str(path)).returncode == 0
    assert [one.name for one in tmp_path.glob("a/students/*")] == [NAMES[2]]
    assert "There is no nothing.ipynb" in run(str(tmp_path / "b"), "nothing.ipynb").stderr
    assert not (tmp_path / "b").exists()
    assert "Usage: scripts/handout DIR" in run().stderr
