"""UPDATE and DELETE: MERGE's machinery without join and duplicate check."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.plan.extended import passed_for, plan_returning, returned_symbols
from rowmerge_nb.plan.plan_nodes import (
    Assignment,
    CaseBranch,
    DeleteProject,
    Filter,
    Output,
    Project,
    SearchedCase,
    Symbol,
    TableDelete,
)
from rowmerge_nb.plan.planner import RowChangePlanner, TargetFacts
from rowmerge_nb.spi.page import CASE_NUMBER, IS_DISTINCT
from rowmerge_nb.spi.types import BIGINT, INTEGER, TINYINT
from rowmerge_nb.sql.typed.expressions import Constant

if TYPE_CHECKING:
    from rowmerge_nb.plan.plan_nodes import MergeProcessor, PlanNode
    from rowmerge_nb.spi.operations import Era
    from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, Returning, UpdateAnalysis


def plan_update(analysis: UpdateAnalysis, facts: TargetFacts, *, era: Era) -> Output:
    """Plan an UPDATE.

    Returns:
        Output ← TableFinish ← MergeWriter ← Exchange? ← MergeProcessor ← CheckConstraints? ←
        Project(merge_row, case_number) ← Filter? ← TableScan. RETURNING has three Projects: merge
        row, case number, returned columns.
    """
    return _UpdatePlanner(analysis, facts, era).plan()


def plan_delete(analysis: DeleteAnalysis, facts: TargetFacts, *, era: Era) -> Output:
    """Plan a DELETE.

    Returns:
        Output ← TableFinish ← MergeWriter ← Exchange? ← DeleteProject ← Filter? ← TableScan; with
        RETURNING as an UPDATE.
    """
    return _DeletePlanner(analysis, facts, era).plan()


def plan_pushed_delete(analysis: DeleteAnalysis) -> Output:
    rows = (Symbol("rows", BIGINT),)
    where = "" if analysis.where is None else analysis.where.text
    delete = TableDelete(id="n1", outputs=rows, table=analysis.target, text=where)
    return Output(id="n2", outputs=rows, source=delete)


class _WherePlanner(RowChangePlanner):
    analysis: UpdateAnalysis | DeleteAnalysis

    def plan(self) -> Output:
        if self.analysis.returning is not None:
            return self.returned(self.analysis.returning)
        return self.finish(self.write(self.exchange(self.change(self._filtered()))))

    def change(self, source: PlanNode) -> MergeProcessor | DeleteProject:
        raise NotImplementedError

    def _filtered(self) -> PlanNode:
        where = self.analysis.where
        scan = self.scan(where)
        if where is None:
            return scan
        return Filter(
            id=next(self.ids),
            outputs=scan.outputs,
            source=scan,
            predicate=where.tree,
            text=where.text,
        )

    def returned(self, returning: Returning) -> Output:
        """Plan RETURNING, which reads merge row and case number from nodes of their own."""
        source = self._filtered()
        location, hashed = self.location()
        outputs = (*location, self.row_id, self.merge_row)
        merge_rows = Project(
            id=next(self.ids),
            outputs=(*outputs, *passed_for(returning, source.outputs, outputs)),
            source=source,
            assignments=hashed,
            case=SearchedCase(self.merge_row, (self.row(),)),
        )
        number = Symbol(CASE_NUMBER, INTEGER)
        checked = self.checked(merge_rows)
        numbered = Project(
            id=next(self.ids),
            outputs=(*merge_rows.outputs, number),
            source=checked,
            assignments=(_constant(number, "0"),),
        )
        rows = plan_returning(numbered, returning, self.fields, self.ids)
        distinct = Symbol(IS_DISTINCT, TINYINT)
        marked = replace(
            rows,
            outputs=(*rows.outputs, distinct),
            assignments=(*rows.assignments, _constant(distinct, "1")),
        )
        plan = self.finish(self.write(self.exchange(self.process(marked))))
        return replace(plan, outputs=returned_symbols(returning))

    def row(self) -> CaseBranch:
        clause = self.analysis.clauses[0]
        pairs = [self.value(clause, index) for index in range(len(self.columns))]
        return CaseBranch(
            number=clause.number,
            operation=clause.operation,
            matched=True,
            condition="",
            predicate=None,
            values=tuple(text for text, _ in pairs),
            expressions=tuple(tree for _, tree in pairs),
            assigned=tuple(self.columns[index].name for index in clause.assigned),
        )


class _UpdatePlanner(_WherePlanner):
    null_code = "INVALID_ARGUMENTS"

    def change(self, source: PlanNode) -> MergeProcessor | DeleteProject:
        location, hashed = self.location()
        number, distinct = Symbol(CASE_NUMBER, INTEGER), Symbol(IS_DISTINCT, TINYINT)
        project = Project(
            id=next(self.ids),
            outputs=(*location, self.row_id, self.merge_row, number, distinct),
            source=source,
            assignments=(*hashed, _constant(number, "0"), _constant(distinct, "1")),
            case=SearchedCase(self.merge_row, (self.row(),)),
        )
        return self.process(self.checked(project))


def _constant(symbol: Symbol, text: str) -> Assignment:
    return Assignment(symbol, Constant(INTEGER, text), text)


class _DeletePlanner(_WherePlanner):
    def change(self, source: PlanNode) -> MergeProcessor | DeleteProject:
        return DeleteProject(
            id=next(self.ids),
            outputs=self.changes(),
            source=source,
            layout=self.layout,
            columns=self.table_columns(),
            kept_columns=tuple(
                Symbol(self.fields[i].symbol, self.fields[i].type) for i in self.redistribution
            ),
            row_id=self.row_id,
        )
