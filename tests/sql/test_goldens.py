"""Every recorded statement that Trino 483 refused before running it is refused here, with its code, words and position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb.spi.operations import Era
from tests.goldens_on_spark.support import reaches_store
from tests.sql.support import FakeTables, meaning, place, refusal

FOLDER = Path(__file__).parent.parent / "goldens"


def _cases() -> list[dict[str, Any]]:
    files = sorted(FOLDER.glob("*.json"))
    found = [
        case
        for path in files
        for case in json.loads(path.read_text(encoding="utf-8"))
        if isinstance(case, dict)
    ]
    return [case for case in found if "views" not in case]


def _error(case: dict[str, Any]) -> dict[str, Any] | None:
    """The error that must precede the run; None if the statement runs (and perhaps fails then)."""
    error: dict[str, Any] | None = case["expect"].get("error")
    return None if reaches_store(case) else error


def _tables(case: dict[str, Any]) -> FakeTables:
    tables = {name: table["columns"] for name, table in case["tables"].items()}
    return FakeTables(tables, catalog="iceberg", schema="gold")


CASES = _cases()
REFUSED = [
    case for case in CASES if (error := _error(case)) and error.get("type") != "INTERNAL_ERROR"
]
INTERNAL = [
    case for case in CASES if (error := _error(case)) and error.get("type") == "INTERNAL_ERROR"
]
RUN = [case for case in CASES if _error(case) is None]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["id"])
def test_refusals_have_trinos_words_and_position(case):
    expected = _error(case)
    error = refusal(case["sql"], tables=_tables(case), era=Era.CURRENT)
    # Trino reports no position for a name with too many parts; this engine does.
    assert place(error) == (
        expected["code"],
        expected.get("line", error.line),
        expected.get("column", error.column),
    )
    assert error.message == expected["message"]


@pytest.mark.parametrize("case", INTERNAL, ids=lambda case: case["id"])
def test_an_error_points_at_the_position_where_trino_fails_inside_a_proper_error(case):
    error = refusal(case["sql"], tables=_tables(case), era=Era.CURRENT)
    assert error.line is not None
    assert error.code in {
        "DUPLICATE_COLUMN_NAME",
        "EXPRESSION_NOT_SCALAR",
        "MISMATCHED_COLUMN_COUNT",
    }


@pytest.mark.parametrize("case", RUN, ids=lambda case: case["id"])
def test_statements_that_trino_runs_are_accepted(case):
    meaning(case["sql"], tables=_tables(case), era=Era.CURRENT)
