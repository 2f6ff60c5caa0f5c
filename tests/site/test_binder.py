"""The settings of Binder: one list of versions, that of the project, and its memory."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from rowmerge_nb.engine.spark.java.java_options import configured_cores, driver_memory

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_versions_are_those_of_the_constraints_and_appear_nowhere_else():
    installs = [
        line for line in (BINDER / "postBuild").read_text().splitlines() if "pip install" in line
    ]
    assert [line for line in installs if " -c constraints.txt " not in line] == []
    assert len(installs) == 1
    texts = {file.name: file.read_text() for file in BINDER.iterdir()}
    assert sorted(texts) == ["postBuild", "runtime.txt", "start"]
    assert [name for name, text in texts.items() if "==" in text] == []


def test_the_extras_exist_and_are_those_of_the_readme_for_notebooks():
    extras = re.search(r'"\.\[([a-z,]+)\]"', (BINDER / "postBuild").read_text())[0]
    assert f"pip install -c constraints.txt {extras}" in (ROOT / "README.md").read_text(
        encoding="utf-8"
    )
    assert set(re.findall("[a-z]+", extras)) <= set(PROJECT["optional-dependencies"])


def test_its_python_is_supported_by_the_project():
    version = re.fullmatch(r"python-(3\.\d+)\n", (BINDER / "runtime.txt").read_text())[1]
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


@pytest.mark.parametrize("script", ["postBuild", "start"])
def test_its_scripts_are_executable(script):
    assert os.access(BINDER / script, os.X_OK)


def test_its_processes_have_little_memory_and_few_tasks(monkeypatch):
    said = 'printf "%s %s|%s" "$ROWMERGE_DRIVER_MEMORY" "$ROWMERGE_CORES" "$1"'
    command = [BINDER / "start", "bash", "-c", said, "bash", "an argument"]
    told, _, argument = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.partition("|")
    memory, cores = told.split()
    monkeypatch.setenv("ROWMERGE_DRIVER_MEMORY", memory)
    monkeypatch.setenv("ROWMERGE_CORES", cores)
    assert (driver_memory(), configured_cores(), argument) == ("512m", 2, "an argument")


def test_the_class_cache_is_made_with_its_required_settings():
    making = [
        line for line in (BINDER / "postBuild").read_text().splitlines() if "prepare=True" in line
    ]
    assert [line.split()[0] for line in making] == ["binder/start"]
