"""A connector with a bug fails the checks about it, and one without a bug fails none."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.contract import broken_statements, broken_tasks, broken_values

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
BROKEN = {
    name: kind
    for module in (broken_statements, broken_tasks, broken_values)
    for name, kind in vars(module).items()
    if name.startswith("Test") and hasattr(kind, "caught_by") and kind.__module__ == module.__name__
}
SMALL = (
    "TestAConstraintSkipsTooMuch",
    "TestTheNumberOfRowsIsAGuess",
    "TestFinishMergeNeedsAFragment",
    "TestTheLastToCommitWins",
)
"""Bugs for which all checks run, to see that few fail; for others, only those run that must fail."""


def chosen() -> list[str]:
    """Return the tests for pytest to run."""
    found = [place(name) for name in ("TestIntact", *SMALL)]
    others = [(name, kind) for name, kind in BROKEN.items() if name not in {"TestIntact", *SMALL}]
    return found + [
        f"{place(name)}::test_{check}" for name, kind in others for check in sorted(kind.caught_by)
    ]


def place(name: str) -> str:
    """Return a class in the form of pytest."""
    return f"{HERE / BROKEN[name].__module__.rpartition('.')[2]}.py::{name}"


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Per connector, the failed checks and their messages."""
    report = tmp_path_factory.mktemp("kit") / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *chosen(),
        "-p",
        "no:cacheprovider",
        "--tb=native",
        f"--junitxml={report}",
    ]
    run = subprocess.run(
        [*command, "-k", "not on_spark and not in_a_task and not a_task_that_dies"],
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE.parents[1],
        env={
            **os.environ,
            "PYTHONPATH": str(HERE.parents[1]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )
    assert report.exists(), run.stdout + run.stderr
    found: dict[str, dict[str, str]] = {name: {} for name in BROKEN}
    for case in ET.parse(report).getroot().iter("testcase"):
        for outcome in (*case.iter("failure"), *case.iter("error")):
            name = case.attrib["name"].partition("[")[0].removeprefix("test_")
            found[case.attrib["classname"].rpartition(".")[2]][name] = outcome.text or ""
    return found


def test_the_kit_passes_a_connector_without_bugs(failed: dict[str, dict[str, str]]) -> None:
    assert failed["TestIntact"] == {}


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "TestIntact"])
def test_a_bug_is_caught_by_the_checks_that_are_about_it(
    failed: dict[str, dict[str, str]], name: str
) -> None:
    assert BROKEN[name].caught_by
    assert set(failed[name]) >= BROKEN[name].caught_by


def test_few_other_checks_fail_for_a_small_bug(
    failed: dict[str, dict[str, str]],
) -> None:
    for name in SMALL:
        assert set(failed[name]) == BROKEN[name].caught_by


def test_a_failed_check_explains_its_failure(failed: dict[str, dict[str, str]]) -> None:
    assert (
        "14 rows have 7 row ids"
        in failed["TestTwoRowsShareARowId"]["row_ids_are_unique_and_never_null"]
    )
    lost = failed["TestTheLastToCommitWins"]["of_two_statements_that_change_one_row_none_is_lost"]
    assert "both were committed, so the first one's change is lost" in lost
    assert (
        "has no make_connector; write one"
        in failed["TestNothingIsWritten"]["rows_come_back_as_they_were_written"]
    )
