"""The plans of UPDATE and DELETE statements: MERGE's machinery without join and duplicate check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan.nodes import Assignment, CaseBranch, DeleteProject, Filter, Project, SearchedCase, Symbol
from rowmerge_nb.plan.planner import RowChangePlanner, TargetFacts, has_subquery, told_apart
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.page import CASE_NUMBER, INSERT_FROM_UPDATE, IS_DISTINCT, OPERATION
from rowmerge_nb.spi.types import INTEGER, TINYINT

if TYPE_CHECKING:
    from rowmerge_nb.plan.nodes import Output, PlanNode
    from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, UpdateAnalysis

__all__ = ["WHERE", "plan_delete", "plan_update"]

WHERE: Final = 900_000
"""What errors of the WHERE condition carry in place of a clause's number."""


def plan_update(analysis: UpdateAnalysis, facts: TargetFacts, *, era: Era) -> Output:
    """Plan an UPDATE.

    Args:
        analysis: the statement, resolved.
        facts: what the connector says of the target.
        era: whose page layout.

    Returns:
        Output ← TableFinish ← MergeWriter ← Exchange? ← MergeProcessor ← Project(merge_row, case_number) ← Filter? ← TableScan.
    """
    return _UpdatePlanner(analysis, facts, era).plan()


def plan_delete(analysis: DeleteAnalysis, facts: TargetFacts, *, era: Era) -> Output:
    """Plan a DELETE.

    Args:
        analysis: the statement, resolved.
        facts: what the connector says of the target.
        era: whose page layout.

    Returns:
        Output ← TableFinish ← MergeWriter ← Exchange? ← DeleteProject ← Filter? ← TableScan.
    """
    return _DeletePlanner(analysis, facts, era).plan()


class _WherePlanner(RowChangePlanner):
    analysis: UpdateAnalysis | DeleteAnalysis

    def _filtered(self) -> PlanNode:
        where = self.analysis.where
        scan = self.scan(where)
        if where is None:
            return scan
        spark = told_apart(where.spark, WHERE)
        return Filter(
            id=next(self.ids), outputs=scan.outputs, source=scan, spark=spark, text=where.text, subquery=has_subquery(where)
        )


class _UpdatePlanner(_WherePlanner):
    null_code = "INVALID_ARGUMENTS"

    def plan(self) -> Output:
        source = self._filtered()
        place, hashed = self.place()
        number, distinct = Symbol(CASE_NUMBER, INTEGER), Symbol(IS_DISTINCT, TINYINT)
        project = Project(
            id=next(self.ids),
            outputs=(*place, self.row_id, self.merge_row, number, distinct),
            source=source,
            assignments=(*hashed, Assignment(number, "0", "0"), Assignment(distinct, "1", "1")),
            case=SearchedCase(self.merge_row, (self._row(),), subquery=self._has_subquery()),
        )
        return self.finish(self.write(self.exchange(self.process(project))))

    def _row(self) -> CaseBranch:
        clause = self.analysis.clauses[0]
        pairs = [self.value(clause, index) for index in range(len(self.columns))]
        return CaseBranch(
            number=clause.number,
            operation=clause.operation,
            matched=True,
            condition="",
            spark_condition="",
            values=tuple(text for text, _ in pairs),
            spark_values=tuple(spark for _, spark in pairs),
            assigned=tuple(self.columns[index].name for index in clause.assigned),
        )

    def _has_subquery(self) -> bool:
        return any(has_subquery(value) for value in self.analysis.clauses[0].values if value is not None)


class _DeletePlanner(_WherePlanner):
    def plan(self) -> Output:
        source = self._filtered()
        columns = tuple(Symbol(column.name, column.type) for column in self.columns)
        number = (Symbol(CASE_NUMBER, INTEGER),) if self.era is Era.CURRENT else ()
        project = DeleteProject(
            id=next(self.ids),
            outputs=(
                *columns,
                Symbol(OPERATION, TINYINT),
                *number,
                self.row_id,
                Symbol(INSERT_FROM_UPDATE, TINYINT),
            ),
            source=source,
            era=self.era,
            columns=columns,
            redistribution_columns=tuple(self.columns[i].name for i in self.redistribution),
            kept=tuple(Symbol(self.fields[i].symbol, self.fields[i].type) for i in self.redistribution),
            row_id=self.row_id,
        )
        return self.finish(self.write(self.exchange(project)))
