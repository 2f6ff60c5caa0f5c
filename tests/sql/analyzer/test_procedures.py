"""CALL: errors and their positions are those of Trino 476 (`call_errors.json`, recorded with another catalog name)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb.spi import Procedure, ProcedureArgument, TableProcedure, parse_type
from rowmerge_nb.sql.analyzer.analysis import CallAnalysis
from tests.sql.support import FakeTables, meaning, refusal

RECORDED = json.loads((Path(__file__).parent / "call_errors.json").read_text())
ARGUMENTS = [
    ("schema_name", "varchar"),
    ("table_name", "varchar"),
    ("columns", "array(varchar)"),
    ("others", "array(varchar)"),
]


class Catalogs(FakeTables):
    """A catalog with two procedures."""

    def __init__(self) -> None:
        super().__init__({}, "lake")

    def catalogs(self) -> Sequence[str]:
        return [self.catalog]

    def default(self) -> tuple[str, str]:
        return self.catalog, self.schema

    def procedures(self, catalog: str) -> Sequence[Procedure]:
        made = tuple(ProcedureArgument(name, parse_type(kind)) for name, kind in ARGUMENTS)
        counted = (
            *made[:1],
            ProcedureArgument("count", parse_type("bigint"), required=False, default=7),
        )
        return [
            Procedure("system", "create_empty_partition", made, lambda session, **values: None),
            Procedure("system", "counted", counted, lambda session, **values: None),
        ]

    def table_procedures(self, catalog: str) -> Sequence[TableProcedure]:
        return []


@pytest.mark.parametrize("case", RECORDED, ids=[case["sql"] for case in RECORDED])
def test_a_wrong_call_is_refused_as_trino_refuses_it(case: dict[str, Any]) -> None:
    error = refusal(case["sql"], tables=Catalogs())
    line, column = case.get("at", (None, None))
    assert (error.code, error.line, error.column, error.message) == (
        case["code"],
        line,
        column,
        case["message"],
    )


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("'a'", {"schema_name": "'a'"}),
        ("'a', 5", {"schema_name": "'a'", "count": "5"}),
        ("COUNT => 5, schema_name => 'a'", {"schema_name": "'a'", "count": "5"}),
        ("schema_name => NULL", {"schema_name": "NULL"}),
    ],
)
def test_arguments_are_passed_by_position_or_by_name(written: str, given: dict[str, str]) -> None:
    analysis = meaning(f"CALL system.counted({written})", tables=Catalogs())
    assert isinstance(analysis, CallAnalysis)
    assert analysis.name == ("lake", "system", "counted")
    assert {name: value.text for name, value in analysis.arguments.items()} == given
    assert str(analysis.arguments["schema_name"].type) == "varchar"


def test_an_unknown_procedure_is_reported_with_the_available_ones() -> None:
    error = refusal("CALL system.nothing()", tables=Catalogs())
    assert error.hint == "Catalog 'lake' has: system.create_empty_partition, system.counted."
