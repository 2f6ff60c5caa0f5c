"""Roles, privileges, owners, and what no store here has: nothing of it is there, and what a statement names besides must be."""

from __future__ import annotations

import pytest

from rowmerge_nb.sql.analyzer.analysis import DefinitionAnalysis, ListingAnalysis
from tests.sql.support import meaning, refusal, told

REFUSED = {
    "SHOW ROLES FROM memory": "NOT_SUPPORTED: line 1:1: Catalog 'memory' does not support role management",
    "SHOW CURRENT ROLES IN nosuch": "CATALOG_NOT_FOUND: line 1:1: Catalog 'nosuch' not found",
    "CREATE ROLE r WITH ADMIN CURRENT_USER": "NOT_SUPPORTED: line 1:1: System roles are not enabled",
    "DROP ROLE r": "ROLE_NOT_FOUND: line 1:1: Role 'r' does not exist",
    "SET ROLE r": "ROLE_NOT_FOUND: line 1:1: Role 'r' does not exist",
    "GRANT r, q TO USER a, ROLE b WITH ADMIN OPTION GRANTED BY a": "ROLE_NOT_FOUND: line 1:1: Role 'r' does not exist",
    "REVOKE ADMIN OPTION FOR r FROM a": "ROLE_NOT_FOUND: line 1:1: Role 'r' does not exist",
    "REVOKE r FROM a IN nosuch": "CATALOG_NOT_FOUND: line 1:1: Catalog 'nosuch' not found",
    "GRANT CREATE TO a": "SYNTAX_ERROR: line 1:7: May not use a privilege name as a role name",
    "GRANT SELECT, INSERT ON TABLE numbers TO ROLE a WITH GRANT OPTION": "NOT_SUPPORTED: line 1:1: This connector does not support grants on tables",
    "GRANT ALL PRIVILEGES ON nosuch TO a": "TABLE_NOT_FOUND: line 1:1: Table 'memory.default.nosuch' does not exist",
    "GRANT foo ON numbers TO a": "INVALID_PRIVILEGE: line 1:1: Unknown privilege: 'foo'",
    "REVOKE GRANT OPTION FOR SELECT ON SCHEMA default FROM a": "NOT_SUPPORTED: line 1:1: This connector does not support revokes on schemas",
    "DENY SELECT ON SCHEMA nosuch TO a": "SCHEMA_NOT_FOUND: line 1:1: Schema 'memory.nosuch' does not exist",
    "SHOW GRANTS ON nosuch": "TABLE_NOT_FOUND: line 1:1: Table 'memory.default.nosuch' does not exist",
    "ALTER TABLE numbers SET AUTHORIZATION a": "NOT_SUPPORTED: line 1:1: This connector does not support setting an owner on a table",
    "ALTER TABLE numbers SET AUTHORIZATION ROLE r": "ROLE_NOT_FOUND: line 1:1: Role 'r' does not exist",
    "ALTER VIEW nosuch SET AUTHORIZATION USER a": "TABLE_NOT_FOUND: line 1:1: View 'memory.default.nosuch' does not exist",
    "ALTER SCHEMA nosuch SET AUTHORIZATION a": "SCHEMA_NOT_FOUND: line 1:1: Schema 'memory.nosuch' does not exist",
    "ALTER SCHEMA default RENAME TO default": "SCHEMA_ALREADY_EXISTS: line 1:1: Target schema 'memory.default' already exists",
    "ALTER SCHEMA default RENAME TO other": "NOT_SUPPORTED: line 1:1: This connector does not support renaming schemas",
    "CREATE SCHEMA s WITH (a = 1)": "INVALID_SCHEMA_PROPERTY: line 1:23: Catalog 'memory' schema property 'a' does not exist",
    "CREATE MATERIALIZED VIEW v AS SELECT nosuch FROM numbers": "COLUMN_NOT_FOUND: line 1:38: Column 'nosuch' cannot be resolved",
    "CREATE MATERIALIZED VIEW v WITH (a = 1) AS SELECT i FROM numbers": "INVALID_MATERIALIZED_VIEW_PROPERTY: line 1:34: Catalog 'memory' materialized view property 'a' does not exist",
    "CREATE MATERIALIZED VIEW v GRACE PERIOD INTERVAL '1' DAY AS SELECT i FROM numbers": "NOT_SUPPORTED: line 1:1: This connector does not support creating materialized views",
    "DROP MATERIALIZED VIEW nosuch": "GENERIC_USER_ERROR: line 1:1: Materialized view 'memory.default.nosuch' does not exist",
    "DROP MATERIALIZED VIEW IF EXISTS numbers": "GENERIC_USER_ERROR: line 1:1: Materialized view 'memory.default.numbers' does not exist, but a table with that name exists. Did you mean DROP TABLE memory.default.numbers?",
    "ALTER MATERIALIZED VIEW nosuch RENAME TO w": "TABLE_NOT_FOUND: line 1:1: Materialized View 'memory.default.nosuch' does not exist",
    "ALTER MATERIALIZED VIEW v SET PROPERTIES a = 1": "INVALID_MATERIALIZED_VIEW_PROPERTY: line 1:42: Catalog 'memory' materialized view property 'a' does not exist",
    "REFRESH MATERIALIZED VIEW numbers": "TABLE_NOT_FOUND: line 1:1: Materialized view 'memory.default.numbers' does not exist",
    "SHOW CREATE MATERIALIZED VIEW numbers": "NOT_SUPPORTED: line 1:1: Relation 'memory.default.numbers' is a table, not a materialized view",
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
def test_what_is_not_there_is_refused_in_trinos_order_of_checks(statement: str) -> None:
    assert told(refusal(statement)) == REFUSED[statement]


@pytest.mark.parametrize("statement", [one for one in REFUSED if REFUSED[one].startswith("NOT_SUPPORTED")])
def test_what_is_not_supported_has_a_hint(statement: str) -> None:
    assert refusal(statement).hint


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("SHOW ROLES", ["Role"]),
        ("SHOW CURRENT ROLES", ["Role"]),
        ("SHOW ROLE GRANTS", ["Role Grants"]),
        (
            "SHOW GRANTS ON TABLE numbers",
            [
                *("Grantor", "Grantor Type", "Grantee", "Grantee Type", "Catalog", "Schema", "Table", "Privilege", "Grantable"),
                "With Hierarchy",
            ],
        ),
        ("SET ROLE NONE", []),
        ("DROP ROLE IF EXISTS r", []),
    ],
)
def test_there_are_no_roles_and_privileges(statement: str, columns: list[str]) -> None:
    found = meaning(statement)
    assert isinstance(found, ListingAnalysis)
    assert ([name for name, _ in found.columns], found.rows) == (columns, ())


@pytest.mark.parametrize("statement", ["DROP MATERIALIZED VIEW IF EXISTS v", "ALTER MATERIALIZED VIEW IF EXISTS v RENAME TO w"])
def test_a_statement_may_be_content_with_no_materialized_view(statement: str) -> None:
    found = meaning(statement)
    assert isinstance(found, DefinitionAnalysis)
    assert found.skipped
