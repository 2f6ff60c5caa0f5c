"""For a likely bug of a connector's developer, the kit names the cause within three lines."""

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

# At the end of every run, pytest collects garbage five times: not among the modules imported before.
CELL = """
import gc, json, sys
from rowmerge_nb.testing.contract import check_contract
from tests.contract.developers_bugs import BUGS

gc.freeze()
told = {}
for name in sys.argv[1:]:
    kind = BUGS[name]
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


NAMES = [
    pytest.param(name, marks=[] if at % 3 == 0 else [pytest.mark.long])
    for at, name in enumerate(BUGS)
]


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """The kit's report on each bug that a test of this run is about."""
    items = [
        item
        for item in request.session.items
        if item.path == request.path and isinstance(item, pytest.Function)
    ]
    names = dict.fromkeys(
        item.callspec.params["name"] for item in items if hasattr(item, "callspec")
    )
    run = subprocess.run(
        [sys.executable, "-c", CELL, *names], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, dict[str, Any]] = json.loads(run.stdout)
    return found


def test_there_are_fifteen_bugs() -> None:
    assert len(BUGS) == 15


@pytest.mark.parametrize("name", NAMES)
def test_the_cause_is_within_three_lines(told: dict[str, dict[str, Any]], name: str) -> None:
    lines = told[name]["text"].split("\n")
    assert BUGS[name].cause
    assert BUGS[name].cause in "\n".join(lines[:3])
    assert BUGS[name].cause.partition("'")[0] in told[name]["html"].partition("rm-rich")[2]


@pytest.mark.parametrize(
    "name", [name for name in NAMES if hasattr(BUGS[str(name.values[0])], "line")]
)
def test_the_line_that_raised_is_shown(told: dict[str, dict[str, Any]], name: str) -> None:
    place = next(line for line in told[name]["text"].split("\n") if line.startswith("    at "))
    assert "developers_bugs.py, line " in place
    assert BUGS[name].line in place


@pytest.mark.parametrize("name", NAMES)
def test_every_failure_has_a_reason_and_the_first_can_be_run_separately(
    told: dict[str, dict[str, Any]], name: str
) -> None:
    assert told[name]["reasons"] == told[name]["failed"]
    assert told[name]["alone"] == [["failed", told[name]["first"]]]
