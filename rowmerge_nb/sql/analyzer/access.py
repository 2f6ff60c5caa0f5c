"""Analyzes what is said of roles, privileges and owners: nobody logs in, so there are none, and what names some is refused as Trino's stores refuse it."""

# Context.error never returns.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import VARCHAR
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.context import dotted
from rowmerge_nb.sql.analyzer.definitions import completed_schema, known_schema
from rowmerge_nb.sql.tree import statements as st

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.context import Context

_NOBODY: Final = "Nobody logs in: leave it out."
_ROLE_COLUMNS: Final = {"SHOW ROLES": "Role", "SHOW CURRENT ROLES": "Role", "SHOW ROLE GRANTS": "Role Grants"}
_GRANT_COLUMNS: Final = (
    *("Grantor", "Grantor Type", "Grantee", "Grantee Type", "Catalog", "Schema", "Table", "Privilege", "Grantable"),
    "With Hierarchy",
)
_KNOWN: Final = {"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE"}


def roles(context: Context, statement: st.Statement) -> a.Analysis:
    """Analyze a statement about roles.

    Raises:
        AnalysisError: CATALOG_NOT_FOUND, ROLE_NOT_FOUND, or NOT_SUPPORTED.
    """
    assert isinstance(statement, st.RoleStatement)
    span = context.statement_span()
    if statement.catalog is not None:
        catalog = statement.catalog.value
        if catalog not in context.tables.catalogs():
            context.error(
                "CATALOG_NOT_FOUND", f"Catalog '{catalog}' not found", span, f"There are: {', '.join(context.tables.catalogs())}."
            )
        context.error("NOT_SUPPORTED", f"Catalog '{catalog}' does not support role management", span, _NOBODY)
    if statement.kind == "CREATE ROLE":
        context.error("NOT_SUPPORTED", "System roles are not enabled", span, _NOBODY)
    if statement.role is not None and not statement.if_exists:
        _no_role(context, statement.role)
    return _empty(context, statement.kind, [_ROLE_COLUMNS[statement.kind]] if statement.kind in _ROLE_COLUMNS else [])


def _no_role(context: Context, role: st.Identifier) -> None:
    context.error("ROLE_NOT_FOUND", f"Role '{role.value}' does not exist", context.statement_span(role.span), _NOBODY)


def privileges(context: Context, statement: st.Statement) -> a.Analysis:
    """Analyze a statement about privileges: what they are about must be there.

    Raises:
        AnalysisError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND, INVALID_PRIVILEGE, or NOT_SUPPORTED.
    """
    assert isinstance(statement, st.PrivilegeStatement)
    shows = statement.kind == "SHOW GRANTS"
    if statement.name is not None:
        _there(context, statement.about, statement.name)
    span = context.statement_span()
    unknown = next((one for one in statement.privileges if one.text.upper() not in _KNOWN), None)
    if unknown is not None:
        context.error(
            "INVALID_PRIVILEGE",
            f"Unknown privilege: '{unknown.text}'",
            context.statement_span(unknown.span),
            f"There are: {', '.join(sorted(_KNOWN))}.",
        )
    if not shows:
        context.error(
            "NOT_SUPPORTED",
            f"This connector does not support {statement.kind.lower()}s on {statement.about.lower()}s",
            span,
            "Nobody logs in: all tables can be read and changed.",
        )
    return _empty(context, statement.kind, _GRANT_COLUMNS)


def set_authorization(context: Context, statement: st.Statement) -> a.Analysis:
    """Analyze ``ALTER ... SET AUTHORIZATION``: what is to have another owner must be there, and has none.

    Raises:
        AnalysisError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND, ROLE_NOT_FOUND, or NOT_SUPPORTED.
    """
    assert isinstance(statement, st.SetAuthorization)
    _there(context, statement.about, statement.name, alters=True)
    if statement.role is not None:
        _no_role(context, statement.role)
    about = "schema" if statement.about == "SCHEMA" else "table"
    context.error(
        "NOT_SUPPORTED", f"This connector does not support setting an owner on a {about}", context.statement_span(), _NOBODY
    )


def _there(context: Context, about: str, name: st.TableName, *, alters: bool = False) -> None:
    """See that something is there: a table may be a view as well, unless it is to be altered."""
    span = context.statement_span(name.span)
    if about == "SCHEMA":
        known_schema(context, *completed_schema(context, name), span)
        return
    if about not in {"TABLE", "VIEW"}:
        context.error("NOT_SUPPORTED", f"There are no privileges on {about.lower()}", span, "Name a table or a schema.")
    view = context.known_view(name)
    table = None if about == "VIEW" or (view is not None and not alters) else context.known_table(name)
    if table is None and (view is None or (alters and about == "TABLE")):
        qualified = dotted(context.completed(name))
        context.error(
            "TABLE_NOT_FOUND", f"{about.capitalize()} '{qualified}' does not exist", span, "SHOW TABLES lists tables and views."
        )


def _empty(context: Context, kind: str, columns: Sequence[str]) -> a.Analysis:
    return a.ListingAnalysis(context.text, (), tuple(context.notices), kind, tuple((name, VARCHAR) for name in columns), ())
