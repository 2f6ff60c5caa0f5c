"""Statements that no store here can run: other names in them must exist."""

from __future__ import annotations

import pytest

from tests.sql.support import refusal, told

REFUSED = {
    "ALTER SCHEMA default RENAME TO default": "SCHEMA_ALREADY_EXISTS: line 1:1: Target schema 'memory.default' already exists",
    "ALTER SCHEMA default RENAME TO other": "NOT_SUPPORTED: line 1:1: This connector does not support renaming schemas",
    "CREATE SCHEMA s WITH (a = 1)": "INVALID_SCHEMA_PROPERTY: line 1:23: Catalog 'memory' schema property 'a' does not exist",
    "ANALYZE numbers": "NOT_SUPPORTED: line 1:1: This connector does not support analyze",
    "ANALYZE nosuch WITH (a = 1)": "TABLE_NOT_FOUND: line 1:1: Table 'memory.default.nosuch' does not exist",
    "ANALYZE numbers WITH (a = 1)": "INVALID_ANALYZE_PROPERTY: line 1:23: Catalog 'memory' analyze property 'a' does not exist",
    "ALTER TABLE nosuch EXECUTE optimize": "TABLE_NOT_FOUND: line 1:7: Table 'memory.default.nosuch' does not exist",
    "ALTER TABLE numbers ADD COLUMN nosuch.z integer": "COLUMN_NOT_FOUND: line 1:1: Column 'nosuch' does not exist",
    "ALTER TABLE numbers EXECUTE optimize": "NOT_SUPPORTED: This connector does not support table procedures",
    "ALTER TABLE numbers RENAME COLUMN i.z TO y": "NOT_SUPPORTED: Unsupported type: integer",
    "ALTER TABLE numbers ADD COLUMN i.z integer": "NOT_SUPPORTED: Unsupported type: integer",
    "ALTER TABLE numbers SET PROPERTIES a = sum('x')": "INVALID_TABLE_PROPERTY: line 1:36: Invalid value for table property 'a': sum('x') is neither a constant nor an ARRAY of constants",
    "CREATE TABLE n (x.a integer)": "NOT_SUPPORTED: line 1:1: Column name 'x.a' must not be qualified",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_missing_objects_are_refused_in_trinos_order_of_checks(statement: str) -> None:
    assert told(refusal(statement)) == REFUSED[statement]


@pytest.mark.parametrize(
    "statement", [one for one in REFUSED if REFUSED[one].startswith("NOT_SUPPORTED")]
)
def test_unsupported_features_have_a_hint(statement: str) -> None:
    assert refusal(statement).hint
