"""Which statement is run by what, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.statements.definitions import DefinitionRun
from rowmerge_nb.engine.statements.merge import MergeRun
from rowmerge_nb.engine.statements.queries import TableRun
from rowmerge_nb.engine.statements.updatable import UpdatableDeleteRun, UpdatableUpdateRun
from rowmerge_nb.engine.statements.update_delete import DeleteRun, UpdateRun
from rowmerge_nb.errors import AnalysisError
from rowmerge_nb.sql.analyzer.analysis import (
    Analysis,
    CallAnalysis,
    CreateTableAnalysis,
    DefinitionAnalysis,
    DeleteAnalysis,
    DropTableAnalysis,
    ExplainAnalysis,
    InsertAnalysis,
    ListingAnalysis,
    MergeAnalysis,
    RowChangeAnalysis,
    UpdateAnalysis,
)

if TYPE_CHECKING:
    from rowmerge_nb.engine.options import Options

__all__ = ["check_flow", "run_of", "target_name"]

_RUNS: Final[Mapping[type[Analysis], Any]] = {
    MergeAnalysis: MergeRun,
    UpdateAnalysis: UpdateRun,
    DeleteAnalysis: DeleteRun,
    DefinitionAnalysis: DefinitionRun,
    ListingAnalysis: DefinitionRun,
    CallAnalysis: DefinitionRun,
}
_UPDATABLE: Final[Mapping[type[Analysis], Any]] = {UpdateAnalysis: UpdatableUpdateRun, DeleteAnalysis: UpdatableDeleteRun}
"""The runs of the older flow."""


def run_of(analysis: Analysis, options: Options) -> Any:
    """Give the class that runs a statement."""
    runs = {**_RUNS, **_UPDATABLE} if options.flow == "updatable" else _RUNS
    return runs.get(type(analysis), TableRun)


def target_name(analysis: Analysis) -> tuple[str, str, str] | None:
    """Give catalog, schema and table that a statement changes; None if it changes none."""
    if isinstance(analysis, CreateTableAnalysis):
        return analysis.name
    if isinstance(analysis, RowChangeAnalysis | InsertAnalysis | DropTableAnalysis) and analysis.target is not None:
        catalog, schema, table = analysis.target.name
        return catalog, schema, table
    if isinstance(analysis, CallAnalysis):
        return analysis.name
    return (*analysis.name, "")[:3] if isinstance(analysis, DefinitionAnalysis) else None  # type: ignore[return-value]


def check_flow(analysis: Analysis, options: Options) -> None:
    """Refuse what a flow does not have."""
    inner = analysis.inner if isinstance(analysis, ExplainAnalysis) else analysis
    if options.flow == "updatable" and isinstance(inner, MergeAnalysis):
        msg = "The flow 'updatable' has UPDATE and DELETE; MERGE came with the machinery that replaced it"
        raise AnalysisError(
            msg, code="NOT_SUPPORTED", hint="Leave the option flow out, or give flow='merge' where the other flow is the default."
        )
