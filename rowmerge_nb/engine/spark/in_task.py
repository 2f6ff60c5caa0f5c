"""From a plan that one task executes to the task: expressions are printed for pages, nodes become the parts of one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.engine.tasks.in_task import (
    ChangeChannels,
    DeleteChannels,
    JoinTask,
    KeyJoin,
    LocalExchange,
    ReplicatedJoinTask,
    ReplicatedSource,
    RowTask,
    UnmatchedPass,
)
from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageExpression
from rowmerge_nb.engine.tasks.searched_case import PageBranch, PageCase
from rowmerge_nb.plan.extended import SOURCE_PRESENT
from rowmerge_nb.plan.in_task import rest_of_on, without_refusal
from rowmerge_nb.plan.nodes import DeleteProject, DuplicateCheck, Filter, Join, MergeProcessor, PlanNode, Project, TableScan
from rowmerge_nb.plan.rules import chain
from rowmerge_nb.spi.page import ROW_ID
from rowmerge_nb.sql.duckdb.printer import PagePrinter, is_null
from rowmerge_nb.sql.typed.expressions import Column, references
from rowmerge_nb.trace.nodes import JoinType

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.merge import MergePass
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.plan.nodes import CaseBranch, SearchedCase, Symbol
    from rowmerge_nb.sql.typed.expressions import Typed

__all__ = ["join_of", "join_task", "replicated_tasks", "row_task", "source_schema", "target_scan"]

Shown = tuple[tuple[tuple[str, "Symbol"], ...], tuple[tuple[str, "Symbol"], ...]]
"""The symbols of the target and of the source whose values the witness has, by the names that people know them by."""


def join_of(node: PlanNode) -> Join | None:
    """Give the join below a node; None of a statement without one."""
    return next((inner for inner in chain(node) if isinstance(inner, Join)), None)


def target_scan(node: PlanNode) -> TableScan:
    """Give the scan of the target below a node."""
    return next(inner for inner in chain(node) if isinstance(inner, TableScan) and inner.row_id is not None)


def row_task(
    node: MergeProcessor | DeleteProject,
    target: ScanPass,
    above: MergePass,
    exchange: LocalExchange | None,
    shown: Shown,
    witness: pa.StructType | None,
) -> RowTask:
    """Give the pass of an UPDATE or DELETE.

    Args:
        node: what is below the writer or its exchange.
        target: reads the target.
        above: the pass of the processor.
        exchange: the exchange within the task, if it is there.
        shown: whose values the witness has.
        witness: its type; None if rows do not carry it.
    """
    where = next((inner for inner in chain(node) if isinstance(inner, Filter)), None)
    condition = None if where is None else _expression(where.predicate, condition=True)
    if isinstance(node, DeleteProject):
        kept = dict(zip(node.redistribution_columns, (symbol.name for symbol in node.kept), strict=True))
        channels: ChangeChannels | DeleteChannels = DeleteChannels(
            schema=above.output_schema,
            kept=tuple(kept.get(column.name) for column in node.columns),
            row_id=ROW_ID,
            witness=witness,
            shown=_symbols(shown),
        )
    else:
        channels = _channels(node, above, shown, witness)
    return RowTask(target, condition, channels, above, exchange)


def join_task(
    node: MergeProcessor,
    target: ScanPass,
    source: ScanPass | None,
    above: MergePass,
    exchange: LocalExchange | None,
    shown: Shown,
    witness: pa.StructType | None,
) -> JoinTask:
    """Give the pass of a MERGE; the arguments are those of `row_task`, and what reads the source, if the task does."""
    join = join_of(node)
    assert join is not None
    return JoinTask(
        target=target,
        source=source,
        source_schema=source_schema(join),
        join=_key_join(join),
        channels=_channels(node, above, shown, witness),
        above=above,
        exchange=exchange,
    )


def replicated_tasks(
    node: MergeProcessor,
    target: ScanPass,
    tasks: int,
    source: ReplicatedSource,
    above: MergePass,
    shown: Shown,
    witness: pa.StructType | None,
) -> tuple[ReplicatedJoinTask, UnmatchedPass]:
    """Give the passes of a MERGE whose source is sent to every task: that of the tasks, and that of the unmatched source rows.

    Args:
        node: what is below the writer.
        target: reads the target.
        tasks: how many tasks there are.
        source: the source.
        above: the passes of the processor and the writer.
        shown: whose values the witness has.
        witness: its type; None if rows do not carry it.
    """
    join = join_of(node)
    assert join is not None
    channels = _channels(node, above, shown, witness)
    joined = ReplicatedJoinTask(target, tasks, source, _key_join(join), channels, above)
    return joined, UnmatchedPass(tasks, target.schema, source, channels, above)


def source_schema(join: Join) -> pa.Schema:
    """Give the channels of a join's source, without the mark of its rows, which a task has no need of."""
    symbols = [symbol for symbol in join.right.outputs if symbol.name != SOURCE_PRESENT]
    return pa.schema([pa.field(symbol.name, symbol.type.arrow) for symbol in symbols])


def _key_join(join: Join) -> KeyJoin:
    rest = rest_of_on(join)
    return KeyJoin(join.key_columns, None if rest is None else _expression(rest, condition=True), join.type is JoinType.FULL)


def _channels(node: MergeProcessor, above: MergePass, shown: Shown, witness: pa.StructType | None) -> ChangeChannels:
    project = next(inner for inner in chain(node) if isinstance(inner, Project) and inner.case is not None)
    assert project.case is not None
    schema, before = above.input_schema, node.layout.before
    joined = join_of(node)
    return ChangeChannels(
        location=tuple(node.source.outputs[channel].name for channel in before.write_redistribution_columns),
        hashed=before.hash is not None,
        row_id=ROW_ID,
        case=_case(project.case, node, schema.field(before.merge_row).type, joined),
        numbered=isinstance(node.source, DuplicateCheck),
        marked=joined is not None and joined.type is JoinType.FULL,
        witness=witness,
        shown=_symbols(shown),
    )


def _symbols(shown: Shown) -> tuple[tuple[str, ...], tuple[str, ...]]:
    target, source = (tuple(symbol.name for _, symbol in side) for side in shown)
    return target, source


def _case(case: SearchedCase, node: MergeProcessor, kind: pa.StructType, join: Join | None) -> PageCase:
    branches = [_branch(branch, node, kind, join) for branch in case.branches]
    if case.unconditional:
        return PageCase((), branches[0], kind)
    return PageCase(tuple(branches[:-1]), branches[-1], kind)


def _branch(branch: CaseBranch, node: MergeProcessor, kind: pa.StructType, join: Join | None) -> PageBranch:
    sides: tuple[bool | None, bool | None] = (None, None)
    if join is not None and branch.matched is not None:
        sides = (True, False) if branch.by_source else (bool(branch.matched), True)
    return PageBranch(
        number=branch.number,
        operation=branch.operation,
        sides=sides,
        condition=None if branch.test is None else _expression(branch.test, condition=True),
        values=tuple(
            _assigned(column, kind.field(index).type, value)
            for index, (column, value) in enumerate(zip(node.columns, branch.expressions, strict=bool(branch.expressions)))
        ),
    )


def _assigned(column: Symbol, kind: pa.DataType, value: Typed) -> AssignedColumn:
    tree, refusal = without_refusal(value)
    return AssignedColumn(column.name, kind, _expression(tree, condition=False), refusal)


def _expression(tree: Typed, *, condition: bool) -> PageExpression:
    text = PagePrinter().text(tree, condition=condition)
    span, words = (None, "") if tree.origin is None else (tree.origin.span, tree.origin.words)
    return PageExpression(text, span, words, reads=references(tree), is_plain=isinstance(tree, Column) or is_null(tree))
