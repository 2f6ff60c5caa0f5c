"""Row counts of a plan's nodes, as far as they are known before it runs."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from rowmerge_nb.base.words import KnownRows
from rowmerge_nb.plan.plan_nodes import (
    AnsweredQuery,
    AssignUniqueId,
    CheckConstraints,
    DeleteProject,
    DuplicateCheck,
    Exchange,
    Filter,
    Join,
    MarkDistinct,
    MergeProcessor,
    Project,
    SemiJoin,
    Source,
    TableScan,
)
from rowmerge_nb.spi.operations import Operation, RowChangeParadigm
from rowmerge_nb.sql.typed import readings
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from rowmerge_nb.plan.plan_nodes import PlanNode


def known_rows(plan: PlanNode) -> dict[str, KnownRows]:
    """Return what is known of each node's rows, by the node's id.

    Connectors are asked for sizes; nothing is read.
    """
    rows_by_node: dict[str, KnownRows] = {}
    _visit(plan, rows_by_node)
    return rows_by_node


def _visit(node: PlanNode, rows_by_node: dict[str, KnownRows]) -> None:
    for source in node.sources:
        _visit(source, rows_by_node)
    rows = _rows(node, tuple(rows_by_node.get(source.id) for source in node.sources))
    if rows is not None:
        rows_by_node[node.id] = rows


@singledispatch
def _rows(_: PlanNode, _below: tuple[KnownRows | None, ...]) -> KnownRows | None:
    return None


@_rows.register
def _(node: TableScan, _: tuple[KnownRows | None, ...]) -> KnownRows | None:
    """Return the table's number of rows, or a bound of it; the connector may skip rows that a
    constraint excludes.
    """
    rows = node.table.estimated_rows
    if rows is None:
        return None
    is_exact = node.table.row_count is not None and not node.constraint.domains
    return KnownRows(rows) if is_exact else KnownRows(rows).bound


@_rows.register
def _(node: AnsweredQuery, _: tuple[KnownRows | None, ...]) -> KnownRows | None:
    return readings.known_rows(node.query.tree)


@_rows.register
def _(node: Source, _: tuple[KnownRows | None, ...]) -> KnownRows | None:
    return readings.known_rows(node.tree)


@_rows.register(AssignUniqueId)
@_rows.register(Project)
@_rows.register(DeleteProject)
@_rows.register(MarkDistinct)
@_rows.register(CheckConstraints)
@_rows.register(DuplicateCheck)
@_rows.register(Exchange)
def _(_: PlanNode, below: tuple[KnownRows | None, ...]) -> KnownRows | None:
    return below[0]


@_rows.register(Filter)
@_rows.register(SemiJoin)
def _(_: Filter | SemiJoin, below: tuple[KnownRows | None, ...]) -> KnownRows | None:
    return below[0] and below[0].bound


@_rows.register
def _(node: Join, below: tuple[KnownRows | None, ...]) -> KnownRows | None:
    """Every pair may match, and a row without a partner takes the place of its pairs.

    If one side has no rows, nothing matches, and the number of rows is exact.
    """
    left, right = below
    if node.type is JoinType.FULL:
        if left is None or right is None:
            return None
        one_is_empty = not left.rows or not right.rows
        return KnownRows(
            max(left.rows * right.rows, left.rows + right.rows),
            exact=one_is_empty and left.exact and right.exact,
        )
    if right is not None and not right.rows:
        return right
    if left is None or right is None:
        return None
    return KnownRows(max(left.rows, 1) * right.rows, exact=not left.rows and right.exact)


@_rows.register
def _(node: MergeProcessor, below: tuple[KnownRows | None, ...]) -> KnownRows | None:
    """Rows that change nothing are filtered out, and an UPDATE may become two rows."""
    rows = below[0]
    if rows is None:
        return None
    branches = next(
        (inner.case.branches for inner in _down(node) if isinstance(inner, Project) and inner.case),
        (),
    )
    operations = {branch.operation for branch in branches}
    splits = (
        Operation.UPDATE in operations
        and node.paradigm is RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW
    )
    # Of an UPDATE statement every row asks for the same; the CASE of a MERGE always has an ELSE,
    # whose rows do nothing.
    exact = rows.exact and (operations == {Operation.UPDATE} or not rows.rows)
    return KnownRows(rows.rows * (2 if splits else 1), exact=exact)


def _down(node: PlanNode) -> tuple[PlanNode, ...]:
    return (node, *(inner for source in node.sources for inner in _down(source)))
