"""Of a bug that a connector's developer is likely to make, the kit names the cause within three lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.developers_bugs import BUGS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# At the end of every run pytest looks for garbage five times: not among what was imported before all.
CELL = """
import gc, json
from rowmerge_nb.testing.contract import check_contract
from tests.contract.developers_bugs import BUGS

gc.freeze()
told = {}
for name, kind in BUGS.items():
    checked = check_contract(kind)
    alone = check_contract(kind, only=checked.reasons[0].first.again)
    told[name] = {
        "text": str(checked),
        "html": checked._repr_mimebundle_()["text/html"],
        "failed": len(checked.failed),
        "reasons": sum(reason.count for reason in checked.reasons),
        "alone": [(check.outcome, check.sentence) for check in alone.checks],
        "first": checked.failed[0].sentence,
    }
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    """What the kit says of each."""
    run = subprocess.run([sys.executable, "-c", CELL], capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    found: dict[str, dict[str, Any]] = json.loads(run.stdout)
    return found


def test_there_are_fifteen() -> None:
    assert len(BUGS) == 15


@pytest.mark.parametrize("name", BUGS)
def test_the_cause_is_within_three_lines(told: dict[str, dict[str, Any]], name: str) -> None:
    lines = told[name]["text"].split("\n")
    assert BUGS[name].cause
    assert BUGS[name].cause in "\n".join(lines[:3])
    assert BUGS[name].cause.partition("'")[0] in told[name]["html"].partition("rm-rich")[2]


@pytest.mark.parametrize("name", [name for name, kind in BUGS.items() if hasattr(kind, "line")])
def test_the_line_that_raised_is_shown(told: dict[str, dict[str, Any]], name: str) -> None:
    place = next(line for line in told[name]["text"].split("\n") if line.startswith("    at "))
    assert "developers_bugs.py, line " in place
    assert BUGS[name].line in place


@pytest.mark.parametrize("name", BUGS)
def test_every_failure_has_a_reason_and_the_first_can_be_run_alone(told: dict[str, dict[str, Any]], name: str) -> None:
    assert told[name]["reasons"] == told[name]["failed"]
    assert told[name]["alone"] == [["failed", told[name]["first"]]]
