"""Which class runs a statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.engine.statements.definition_calls import (
    CallRun,
    CreateTableRun,
    DefinitionRun,
    DropTableRun,
    ListingRun,
)
from rowmerge_nb.engine.statements.insert import CreateTableAsRun, InsertRun
from rowmerge_nb.engine.statements.merge import MergeRun
from rowmerge_nb.engine.statements.older_flow import UpdatableRun
from rowmerge_nb.engine.statements.query import QueryRun
from rowmerge_nb.engine.statements.restore import RestoreRun
from rowmerge_nb.engine.statements.statement import StatementRun
from rowmerge_nb.engine.statements.table_execute import TableExecuteRun
from rowmerge_nb.engine.statements.update_delete import UpdateDeleteRun
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
    QueryAnalysis,
    RestoreAnalysis,
    SettingAnalysis,
    TableExecuteAnalysis,
    UpdateAnalysis,
)

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.statement_options import Options

_RUNS: Final[Mapping[type[Analysis], type[StatementRun]]] = {
    QueryAnalysis: QueryRun,
    InsertAnalysis: InsertRun,
    CreateTableAnalysis: CreateTableRun,
    DropTableAnalysis: DropTableRun,
    DefinitionAnalysis: DefinitionRun,
    ListingAnalysis: ListingRun,
    SettingAnalysis: ListingRun,
    CallAnalysis: CallRun,
    RestoreAnalysis: RestoreRun,
    TableExecuteAnalysis: TableExecuteRun,
    MergeAnalysis: MergeRun,
    UpdateAnalysis: UpdateDeleteRun,
    DeleteAnalysis: UpdateDeleteRun,
}
"""All classes take the arguments of `StatementRun`."""


def kind_of_run(analysis: Analysis, options: Options) -> type[StatementRun]:
    if options.flow == Flow.UPDATABLE and isinstance(analysis, UpdateAnalysis | DeleteAnalysis):
        return UpdatableRun
    if isinstance(analysis, CreateTableAnalysis) and analysis.tree is not None:
        return CreateTableAsRun
    return _RUNS[type(analysis)]


def check_flow(analysis: Analysis, options: Options) -> None:
    inner = analysis.inner if isinstance(analysis, ExplainAnalysis) else analysis
    if options.flow == Flow.UPDATABLE and isinstance(inner, MergeAnalysis):
        raise AnalysisError.unsupported(
            "The flow 'updatable' supports only UPDATE and DELETE; MERGE came with its successor",
            hint=("Omit the option flow, or pass flow='merge' if the other flow is the default."),
        )
