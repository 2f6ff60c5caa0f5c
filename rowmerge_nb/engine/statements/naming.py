"""The name of a statement, and of what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowmerge_nb.sql.analyzer.analysis import (
    Analysis,
    CallAnalysis,
    CreateTableAnalysis,
    DefinitionAnalysis,
    DeleteAnalysis,
    DropTableAnalysis,
    InsertAnalysis,
    ListingAnalysis,
    MergeAnalysis,
    QueryAnalysis,
    RestoreAnalysis,
    RowChangeAnalysis,
    TableExecuteAnalysis,
    UpdateAnalysis,
)
from rowmerge_nb.sql.parser.column_names import name_in_sql

_KINDS: Final[Mapping[type[Analysis], str]] = {
    QueryAnalysis: "SELECT",
    InsertAnalysis: "INSERT",
    DropTableAnalysis: "DROP TABLE",
    MergeAnalysis: "MERGE",
    UpdateAnalysis: "UPDATE",
    DeleteAnalysis: "DELETE",
}

_WITH_TARGET: Final = (
    RowChangeAnalysis,
    InsertAnalysis,
    DropTableAnalysis,
    RestoreAnalysis,
    TableExecuteAnalysis,
)


def kind_of(analysis: Analysis) -> str:
    """Return the statement's first words, its name in reports."""
    if isinstance(analysis, CreateTableAnalysis):
        return "CREATE TABLE" if analysis.tree is None else "CREATE TABLE AS"
    if isinstance(
        analysis,
        DefinitionAnalysis
        | ListingAnalysis
        | CallAnalysis
        | RestoreAnalysis
        | TableExecuteAnalysis,
    ):
        return analysis.kind
    return _KINDS[type(analysis)]


def name_shown(analysis: Analysis) -> tuple[str, str, str]:
    if isinstance(analysis, CreateTableAnalysis | DefinitionAnalysis | CallAnalysis):
        return name_in_sql(analysis.name[-1:]), name_in_sql(analysis.name), analysis.name[0]
    target = analysis.target if isinstance(analysis, _WITH_TARGET) else None
    return (
        (target.display, target.qualified, target.catalog) if target is not None else ("", "", "")
    )


def target_name(analysis: Analysis) -> tuple[str, str, str] | None:
    if isinstance(analysis, CreateTableAnalysis | CallAnalysis):
        return analysis.name
    if isinstance(analysis, _WITH_TARGET) and analysis.target is not None:
        catalog, schema, table = analysis.target.name
        return catalog, schema, table
    return (*analysis.name, "")[:3] if isinstance(analysis, DefinitionAnalysis) else None  # type: ignore[return-value]
