"""CHECK constraints in the analyzer: they use the table's own columns, and are refused as in Trino."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rowmerge_nb.spi import ConnectorTableMetadata, SchemaTableName
from rowmerge_nb.sql.analyzer.analysis import (
    InsertAnalysis,
    MergeAnalysis,
    TableBinding,
    UpdateAnalysis,
)
from tests.sql.support import FakeTables, meaning, refusal

INSERT = "INSERT INTO nation VALUES (26, 'POLAND', 11)"
UPDATE = "UPDATE nation SET regionkey = 9"
MERGE = "MERGE INTO nation USING (VALUES 1) AS t (x) ON regionkey = x WHEN MATCHED THEN UPDATE SET regionkey = 9"
WITH_PLACE = (1, 1)


class Constrained(FakeTables):
    """A table with CHECK constraints."""

    def __init__(self, *constraints: str) -> None:
        super().__init__(
            {"nation": [("nationkey", "bigint"), ("name", "varchar"), ("regionkey", "bigint")]}
        )
        self.constraints = constraints

    def resolve(self, parts: Sequence[str], version: object = None) -> TableBinding | None:
        found = super().resolve(parts, version)
        if found is None:
            return None
        name = SchemaTableName("default", "nation")
        return replace(
            found,
            metadata=ConnectorTableMetadata(
                name, found.columns, check_constraints=self.constraints
            ),
        )


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("regionkey < 10", "(regionkey < 10)"),
        ("nationkey < 100 AND regionkey < 50", "((nationkey < 100) AND (regionkey < 50))"),
        ("a_or_b(x) AND 1=1", None),
        ("NOT name LIKE 'a''%' ESCAPE '$'", "(NOT (name LIKE 'a''%' ESCAPE '$'))"),
        ("name NOT LIKE 'a%'", "(NOT (name LIKE 'a%'))"),
        ("Name is not  null", "(Name IS NOT NULL)"),
        (
            'regionkey NOT IN (1,-2) OR "nationkey" BETWEEN 1 AND 2',
            '((NOT (regionkey IN (1, -2))) OR ("nationkey" BETWEEN 1 AND 2))',
        ),
        (
            "COALESCE(lower(name), 'x') = 'a' || 'b'",
            "(COALESCE(lower(name), 'x') = concat('a', 'b'))",
        ),
        ("regionkey * 1.5 > 2e0 - 1", "((regionkey * DECIMAL '1.5') > (2E0 - 1))"),
        ("regionkey IS DISTINCT FROM nationkey", "(regionkey IS DISTINCT FROM nationkey)"),
        (
            "CAST(regionkey AS varchar) <> 'x' AND TRUE",
            "((CAST(regionkey AS varchar) <> 'x') AND true)",
        ),
        ("CASE WHEN true  THEN false END", "(CASE WHEN true THEN false END)"),
        (
            "regionkey IS NOT DISTINCT FROM - nationkey",
            "(NOT (regionkey IS DISTINCT FROM -(nationkey)))",
        ),
        ("name > DATE '2020-01-01'", None),
        ("X'65' = to_utf8(name) OR NULL", "((X'65' = to_utf8(name)) OR null)"),
    ],
)
def test_a_constraint_is_written_as_trino_writes_it(written: str, shown: str | None) -> None:
    if shown is None:
        assert refusal(INSERT, tables=Constrained(written)).message.startswith(
            "Invalid check constraint for 'memory.default.nation': "
        )
        return
    for statement, kind in (
        (INSERT, InsertAnalysis),
        (UPDATE, UpdateAnalysis),
        (MERGE, MergeAnalysis),
    ):
        analysis = meaning(statement, tables=Constrained(written))
        assert isinstance(analysis, kind)
        (check,) = analysis.checks
        assert check.text == shown


@pytest.mark.parametrize("statement", [INSERT, UPDATE, MERGE])
@pytest.mark.parametrize(
    ("written", "code", "message"),
    [
        (
            "invalid_function(nationkey) > 100",
            "FUNCTION_NOT_FOUND",
            "Invalid check constraint for 'memory.default.nation': Function 'invalid_function' not registered",
        ),
        (
            "1 + 1",
            "TYPE_MISMATCH",
            "Expected check constraint for 'memory.default.nation' to be of type BOOLEAN, but was integer",
        ),
        (
            "CURRENT_DATE > DATE '2022-12-31'",
            "INVALID_CHECK_CONSTRAINT",
            "Check constraint expression should not contain temporal expression",
        ),
        (
            "LOCALTIMESTAMP > TIMESTAMP '2022-12-31 23:59:59'",
            "INVALID_CHECK_CONSTRAINT",
            "Check constraint expression should not contain temporal expression",
        ),
        (
            "nationkey > random()",
            "INVALID_CHECK_CONSTRAINT",
            "Check constraint expression should be deterministic",
        ),
        (
            "nationkey >",
            "INVALID_CHECK_CONSTRAINT",
            "Invalid check constraint for 'memory.default.nation': mismatched input '<EOF>'. Expecting: <expression>, 'ALL', 'ANY', 'SOME'",
        ),
        (
            "population > 5",
            "COLUMN_NOT_FOUND",
            "Invalid check constraint for 'memory.default.nation': Column 'population' cannot be resolved",
        ),
    ],
)
def test_invalid_constraints_are_refused_as_in_trino(
    statement: str, written: str, code: str, message: str
) -> None:
    error = refusal(statement, tables=Constrained("true", written))
    assert error.code == code
    assert error.message.split(". Expecting")[0] == message.split(". Expecting", maxsplit=1)[0]
    assert (error.line, error.column) == WITH_PLACE
    assert error.hint == f"The table has the constraint CHECK ({written})."


def test_aggregates_have_no_place_in_a_constraint() -> None:
    error = refusal(INSERT, tables=Constrained("max(nationkey) > 1"))
    assert error.code == "EXPRESSION_NOT_SCALAR"
    assert (
        "Check constraint for 'memory.default.nation' cannot contain aggregations" in error.message
    )


def test_subqueries_are_only_for_inserts() -> None:
    tables: Any = Constrained("nationkey > (SELECT count(*) FROM nation)")
    analysis = meaning(INSERT, tables=tables)
    assert isinstance(analysis, InsertAnalysis)
    for statement in (UPDATE, MERGE):
        error = refusal(statement, tables=tables)
        assert (error.code, error.message) == (
            "UNSUPPORTED_SUBQUERY",
            "Subqueries are not currently supported in CHECK constraints",
        )


def test_a_delete_reads_no_constraint() -> None:
    meaning("DELETE FROM nation", tables=Constrained("nonsense("))
