"""The repository for readers on GitHub: workflows, forms, the citation; and the metadata of a release."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import rowmerge_nb
from rowmerge_nb.engine.catalog.store_registry import GROUP, OWN_STORES
from rowmerge_nb.machine import _OPTIONAL

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(
    path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"
)
YAML = [*sorted((ROOT / ".github").rglob("*.yml")), *ROOT.glob("*.cff"), *ROOT.glob(".*.yaml")]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def scripts_in(command: str) -> list[str]:
    return re.findall(r"(?m)(?:^|\s)((?:scripts|\.ci|binder)/[\w-]+(?:\.(?:py|sh))?)", command)


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_a_yaml_file_parses_to_a_mapping(path):
    assert isinstance(read(path), dict)


def test_the_files_are_there():
    names = {path.name for path in YAML}
    assert {"ci.yml", "bug.yml", "feature.yml", "connector.yml", "CITATION.cff"} <= names
    assert ".pre-commit-config.yaml" in names


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_executable_scripts_of_the_project(path):
    workflow = read(path)
    # YAML reads the key `on` as true.
    assert True in workflow
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    for script in (script for command in commands for script in scripts_in(command)):
        assert os.access(ROOT / script, os.X_OK), script
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 180
        for needed in [job["needs"]] if "needs" in job else []:
            assert needed in workflow["jobs"]
    assert workflow["permissions"]["contents"] == "read"


def test_ci_runs_the_project_s_own_script_on_linux_and_tests_on_macos_and_all_pythons():
    jobs = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    assert scripts_in(jobs["all"]["steps"][-1]["run"]) == [".ci/run"]
    matrix = jobs["quick"]["strategy"]["matrix"]
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos"}
    classifier = "Programming Language :: Python :: "
    assert matrix["python"] == [
        each.removeprefix(classifier) for each in PROJECT["classifiers"] if classifier in each
    ]


def test_the_scripts_of_ci_exist():
    for file in (ROOT / ".ci" / "run", *(ROOT / "scripts").iterdir()):
        if file.is_file() and file.read_text(encoding="utf-8").startswith("#!"):
            for script in scripts_in(file.read_text(encoding="utf-8")):
                assert (ROOT / script).exists(), f"{script} in {file.name}"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_valid_on_github(path):
    form = read(path)
    assert {"name", "description", "body"} <= set(form)
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert all(part["attributes"]["label"] for part in fields)
    ids = [part["id"] for part in fields]
    assert len(ids) == len(set(ids))
    assert any(part.get("validations", {}).get("required") for part in fields)
    for page in re.findall(r"docs/[\w/.-]+\.md", path.read_text(encoding="utf-8")):
        assert (ROOT / page).exists()


def test_the_form_of_connectors_asks_for_the_record_and_names_options_that_exist():
    from rowmerge_nb.notebook.cell_options import COMMANDS, OPTIONS

    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / "connector.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"--([a-z-]+) ", text)) <= {option.name for option in OPTIONS}
    assert set(re.findall(r"%merge ([a-z]+)", text)) <= set(COMMANDS)
    record = next(part for part in yaml.safe_load(text)["body"] if part.get("id") == "record")
    assert record["validations"]["required"]


def test_the_hooks_run_a_script_of_the_project():
    hooks = [
        hook for repo in read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]
    ]
    for hook in hooks:
        script, *arguments = hook["entry"].split()
        assert os.access(ROOT / script, os.X_OK)
        assert all(argument in (ROOT / script).read_text() for argument in arguments)


def test_the_citation_has_what_its_format_needs_and_no_version_of_its_own():
    citation = read(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert all(citation[key] for key in ("message", "title", "authors"))
    assert citation["license"] == PROJECT["license"]
    assert "version" not in citation


def test_the_changelog_is_short_and_begins_with_the_version_of_the_package():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+), (.+)$", text, re.MULTILINE)
    assert first is not None
    assert first[1] == rowmerge_nb.__version__
    assert re.fullmatch(r"not released|\d{4}-\d{2}-\d{2}", first[2])
    assert len(text.splitlines()) <= 25
    for page in re.findall(r"docs/[\w/.-]+\.md", text):
        assert (ROOT / page).exists()


def test_no_file_but_one_has_the_version():
    text = (ROOT / "pyproject.toml").read_text()
    assert rowmerge_nb.__version__ not in re.findall(r'(?m)^version = "(.+)"', text)


def test_classifiers_and_urls_are_true():
    assert len(set(PROJECT["classifiers"])) == len(PROJECT["classifiers"])
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {lowest}" in PROJECT["classifiers"]
    assert all(url.startswith("https://") for url in PROJECT.get("urls", {}).values())
    assert (ROOT / PROJECT["readme"]).exists()


def test_the_entry_points_are_those_of_the_code():
    assert PROJECT["entry-points"][GROUP] == OWN_STORES


def test_the_doctor_knows_every_library_of_an_extra():
    extras = PROJECT["optional-dependencies"]
    rows = {name: extra for name, extra, _ in _OPTIONAL}
    for extra in ("verify", "iceberg", "jdbc", "postgresql", "sqlite", "hive", "trino", "connect"):
        for requirement in extras[extra]:
            assert re.match(r"[\w-]+", requirement)[0] in rows
    assert {extra for extra in rows.values() if extra} <= set(extras)
