"""Lowering of plans that execute on pages within tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.engine.spark.passes import writer_pass
from rowmerge_nb.engine.spark.printed_expressions import answer
from rowmerge_nb.engine.tasks.channels import ChangeChannels, DeleteChannels
from rowmerge_nb.engine.tasks.exchange import PagePartitioner
from rowmerge_nb.engine.tasks.insert import InsertedRows
from rowmerge_nb.engine.tasks.join_keys import JoinKeys
from rowmerge_nb.engine.tasks.page_join import KeyJoin
from rowmerge_nb.engine.tasks.page_program import (
    AssignedColumn,
    PageExpression,
    PageProgram,
    PageQuery,
)
from rowmerge_nb.engine.tasks.page_query import QueryRows
from rowmerge_nb.engine.tasks.page_row_change import JoinTask, RowTask
from rowmerge_nb.engine.tasks.partitioned import (
    SOURCE,
    TARGET,
    PartitionedJoinTask,
    PartitionedOutputPass,
)
from rowmerge_nb.engine.tasks.range_index import RangeKeys
from rowmerge_nb.engine.tasks.replicated import (
    ReplicatedJoinTask,
    ReplicatedSource,
    UnmatchedPass,
    UnmatchedRows,
    UnmatchedWriterPass,
)
from rowmerge_nb.engine.tasks.returned_rows import ReturnedRows
from rowmerge_nb.engine.tasks.scan import POSITION
from rowmerge_nb.engine.tasks.searched_case import PageBranch, PageCase
from rowmerge_nb.plan.extended import SOURCE_PRESENT, returned_on_pages
from rowmerge_nb.plan.join_keys import key_sets
from rowmerge_nb.plan.keyed_subqueries import keyed
from rowmerge_nb.plan.page_execution import rest_of_on, without_refusal
from rowmerge_nb.plan.plan_nodes import (
    CheckConstraints,
    DeleteProject,
    DuplicateCheck,
    Filter,
    Join,
    MergeProcessor,
    Project,
    Symbol,
)
from rowmerge_nb.plan.range_keys import page_range
from rowmerge_nb.plan.rules import chain, join_of
from rowmerge_nb.spi.operations import STORING
from rowmerge_nb.spi.page import ROW_ID
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.duckdb.printer import PagePrinter, is_null
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.sql.typed.expressions import Apply, Column, references, replaced, walk
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.tasks.merge_passes import MergePass
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.plan.join_keys import PageKey
    from rowmerge_nb.plan.plan_nodes import CaseBranch, PageRows, SearchedCase, TableWriter
    from rowmerge_nb.plan.range_keys import PageInterval
    from rowmerge_nb.sql.analyzer.analysis import CheckConstraint
    from rowmerge_nb.sql.typed.expressions import Subquery, Typed

TOLD_COLUMNS: Final = 8
"""Maximum columns in a report of a row, those that a violated CHECK constraint reads first."""


def row_task(
    node: MergeProcessor | DeleteProject,
    target: ScanPass,
    tasks: int,
    above: MergePass,
    context: LoweringContext,
) -> tuple[RowTask, list[str]]:
    where = next((inner for inner in chain(node) if isinstance(inner, Filter)), None)
    printer = PagePrinter(names_of(context).columns)
    condition = (
        None
        if where is None
        else page_expression(where.predicate, printer, condition=True, names=names_of(context))
    )
    if isinstance(node, DeleteProject):
        old_columns = dict(
            zip(
                node.redistribution_columns,
                (symbol.name for symbol in node.kept_columns),
                strict=True,
            )
        )
        channels: ChangeChannels | DeleteChannels = DeleteChannels(
            schema=above.output_schema,
            old_symbols=tuple(old_columns.get(column.name) for column in node.columns),
            row_id=ROW_ID,
            witness=context.witness_type,
            display_columns=_shown(context),
        )
    else:
        channels = _channels(node, above, context, printer)
    return RowTask(target, tasks, _program(printer, condition), channels, above), _answers(printer)


def join_task(
    node: MergeProcessor,
    join: Join,
    scans: tuple[ScanPass, ScanPass | None],
    above: MergePass,
    context: LoweringContext,
    *,
    paged: bool,
) -> tuple[JoinTask, list[str]]:
    printer = PagePrinter(names_of(context).columns)
    key_join, channels = _key_join(join, context, printer), _channels(node, above, context, printer)
    task = JoinTask(
        paged, *scans, source_schema(join), key_join, _program(printer), channels, above
    )
    return task, _answers(printer)


def replicated_tasks(
    node: MergeProcessor,
    join: Join,
    target: ScanPass,
    tasks: int,
    source: ReplicatedSource,
    above: MergePass,
    context: LoweringContext,
) -> tuple[ReplicatedJoinTask, UnmatchedPass | UnmatchedWriterPass, list[str]]:
    printer = PagePrinter(names_of(context).columns)
    key_join, channels = _key_join(join, context, printer), _channels(node, above, context, printer)
    program = _program(printer)
    partitioner = above.exchange if isinstance(above.exchange, PagePartitioner) else None
    function = None if partitioner is None else partitioner.function
    receivers = context.partitions if function is None else function.writers
    joined = ReplicatedJoinTask(
        target, tasks, source, key_join, program, channels, above, receivers
    )
    unmatched = UnmatchedRows(target.schema, source, program, channels)
    if partitioner is None or function is None:
        return joined, UnmatchedPass(tasks, unmatched, above), _answers(printer)
    writers = writer_pass(
        node, context.tables.sinks(), context, in_files=partitioner.folder is not None
    )
    return (
        joined,
        UnmatchedWriterPass(tasks, unmatched, above, function, writers),
        _answers(printer),
    )


def partitioned_tasks(
    node: MergeProcessor,
    join: Join,
    scans: tuple[ScanPass, ScanPass | None],
    tasks: tuple[int, int],
    partitions: int,
    above: MergePass,
    context: LoweringContext,
) -> tuple[PartitionedOutputPass, PartitionedOutputPass, PartitionedJoinTask, list[str]]:
    target, source = scans
    read = source_schema(join).append(pa.field(POSITION, pa.int64()))
    full = join.type is JoinType.FULL
    printer = PagePrinter(names_of(context).columns)
    key_join, channels = _key_join(join, context, printer), _channels(node, above, context, printer)
    [(lefts, rights)] = key_join.keys
    on = None if join.predicate.origin is None else join.predicate.origin.number
    folder = context.tables.exchange_folder()
    return (
        PartitionedOutputPass(
            TARGET,
            target,
            tasks[0],
            target.schema,
            lefts,
            partitions,
            on=on,
            spreads_nulls=full,
            folder=folder,
        ),
        PartitionedOutputPass(
            SOURCE,
            source,
            tasks[1],
            read,
            rights,
            partitions,
            on=on,
            spreads_nulls=True,
            folder=folder,
        ),
        PartitionedJoinTask(
            target.schema, read, key_join, _program(printer), channels, above, folder is not None
        ),
        _answers(printer),
    )


def inserted_rows(
    node: TableWriter, pages: PageRows, scan: ScanPass | None, tasks: int
) -> InsertedRows:
    """Return the computation of an INSERT's rows; without `scan`, pages arrive in cells."""
    checking = next((inner for inner in chain(node) if isinstance(inner, CheckConstraints)), None)
    return InsertedRows(
        scan=scan,
        tasks=tasks,
        query=query_rows(pages, node.columns),
        refusals=pages.refusals,
        checks=(
            ()
            if checking is None
            else check_columns(
                checking.checks, {column.name: column.name for column in node.columns}
            )
        ),
    )


def query_rows(pages: PageRows, columns: Sequence[Symbol]) -> QueryRows:
    printer = PagePrinter()
    return QueryRows(
        program=PageProgram(
            None if pages.where is None else page_expression(pages.where, printer, condition=True)
        ),
        schema=pa.schema([pa.field(column.name, column.type.arrow) for column in columns]),
        values=tuple(
            assigned_column(column, column.type.arrow, value, RowNames(), printer)
            for column, value in zip(columns, pages.values, strict=True)
        ),
    )


def _program(printer: PagePrinter, where: PageExpression | None = None) -> PageProgram:
    queries = tuple(
        page_query(printer.symbol(index), query) for index, query in enumerate(printer.subqueries)
    )
    return PageProgram(where, queries=queries)


def page_query(symbol: str, query: Subquery) -> PageQuery:
    """Return a subquery that a `PagePrinter` has numbered, as tasks answer it."""
    if query.value is not None and not query.outer:
        key = _unnamed_column(Symbol("key", query.value.type), query.value)
        return PageQuery(symbol, query.kind, query.value.type.arrow, JoinKeys((key,), (False,)))
    if not query.outer:
        return PageQuery(symbol, query.kind, query.type.arrow)
    parts = keyed(query)
    keys = tuple(_unnamed_column(Symbol("key", key.type), key) for key in parts.keys)
    default = (
        None
        if parts.default is None
        else _unnamed_column(Symbol("default", query.type), parts.default)
    )
    rest = (
        None if parts.rest is None else page_expression(parts.rest, PagePrinter(), condition=True)
    )
    return PageQuery(
        symbol, query.kind, query.type.arrow, JoinKeys(keys, parts.nulls_meet), default, rest
    )


def _unnamed_column(column: Symbol, value: Typed) -> AssignedColumn:
    """Print a column whose rows no error names, since it cannot fail."""
    return assigned_column(column, column.type.arrow, value, RowNames(), PagePrinter())


def _answers(printer: PagePrinter) -> list[str]:
    return [answer(query, printer.symbol(index)) for index, query in enumerate(printer.subqueries)]


def source_schema(join: Join) -> pa.Schema:
    symbols = [symbol for symbol in join.right.outputs if symbol.name != SOURCE_PRESENT]
    return pa.schema([pa.field(symbol.name, symbol.type.arrow) for symbol in symbols])


def _key_join(join: Join, context: LoweringContext, printer: PagePrinter) -> KeyJoin:
    rest, ranges = rest_of_on(join), page_range(join)
    targets, sources = names_of(context, source=False), names_of(context)
    return KeyJoin(
        tuple(
            (
                _join_keys(keys, [key.target for key in keys], targets),
                _join_keys(keys, [key.source for key in keys], sources),
            )
            for keys in key_sets(join)
        ),
        (
            None
            if rest is None
            else page_expression(rest, printer, condition=True, names=names_of(context))
        ),
        join.type is JoinType.FULL,
        (
            None
            if ranges is None
            else (_range_keys(ranges.target, targets), _range_keys(ranges.source, sources))
        ),
    )


def _range_keys(interval: PageInterval, names: RowNames) -> RangeKeys:
    low, high = (
        (
            None
            if value is None
            else assigned_column(
                Symbol(name, value.type), value.type.arrow, value, names, PagePrinter()
            )
        )
        for name, value in (("low", interval.low), ("high", interval.high))
    )
    return RangeKeys(low, high, (_is_tried(interval.low), _is_tried(interval.high)))


def _is_tried(value: Typed | None) -> bool:
    return isinstance(value, Apply) and value.name == "try"


def _join_keys(keys: Sequence[PageKey], values: Sequence[Typed], names: RowNames) -> JoinKeys:
    return JoinKeys(
        tuple(
            assigned_column(
                Symbol("key", value.type), value.type.arrow, value, names, PagePrinter()
            )
            for value in values
        ),
        tuple(key.nulls_meet for key in keys),
    )


def _channels(
    node: MergeProcessor, above: MergePass, context: LoweringContext, printer: PagePrinter
) -> ChangeChannels:
    project = next(
        inner for inner in chain(node) if isinstance(inner, Project) and inner.case is not None
    )
    assert project.case is not None
    schema, before = above.input_schema, node.layout.before
    joined = join_of(node)
    return ChangeChannels(
        location=tuple(
            node.source.outputs[channel].name for channel in before.write_redistribution_columns
        ),
        hashed=before.hash is not None,
        row_id=ROW_ID,
        case=_case(
            project.case, node, schema.field(before.merge_row).type, joined, context, printer
        ),
        numbered=isinstance(node.source, DuplicateCheck),
        marked=joined is not None and joined.type is JoinType.FULL,
        returned=_returned(node, names_of(context), printer),
        witness=context.witness_type,
        display_columns=_shown(context),
    )


def _returned(node: MergeProcessor, names: RowNames, printer: PagePrinter) -> ReturnedRows | None:
    returned_values = returned_on_pages(chain(node))
    if returned_values is None:
        return None
    known_pairs = [
        (assignment.symbol, assignment.value) for assignment in returned_values.assignments
    ]
    values = [
        (Symbol(f"f{index}", value.type), value)
        for index, value in enumerate(returned_values.values)
    ]
    known_columns, value_columns = (
        tuple(
            assigned_column(symbol, symbol.type.arrow, tree, names, printer)
            for symbol, tree in pairs
        )
        for pairs in (known_pairs, values)
    )
    return ReturnedRows(returned_values.fields, known_columns, value_columns)


def _shown(context: LoweringContext) -> tuple[tuple[str, ...], tuple[str, ...]]:
    target, source = (
        tuple(symbol.name for _, symbol in side) for side in (context.target, context.source)
    )
    return target, source


def _case(
    case: SearchedCase,
    node: MergeProcessor,
    row_type: pa.StructType,
    join: Join | None,
    context: LoweringContext,
    printer: PagePrinter,
) -> PageCase:
    checking = next((inner for inner in chain(node) if isinstance(inner, CheckConstraints)), None)
    checks = (
        ()
        if checking is None
        else check_columns(checking.checks, {column.name: column.name for column in node.columns})
    )
    branches = [
        _branch(
            branch, node, row_type, join, names_of(context, source=not branch.by_source), printer
        )
        for branch in case.branches
    ]
    branches = [
        replace(page_branch, checks=checks) if page_branch.operation in STORING else page_branch
        for page_branch in branches
    ]
    if case.unconditional:
        return PageCase((), branches[0], row_type)
    return PageCase(tuple(branches[:-1]), branches[-1], row_type)


def _branch(
    branch: CaseBranch,
    node: MergeProcessor,
    row_type: pa.StructType,
    join: Join | None,
    names: RowNames,
    printer: PagePrinter,
) -> PageBranch:
    sides: tuple[bool | None, bool | None] = (None, None)
    if join is not None and branch.matched is not None:
        sides = (True, False) if branch.by_source else (bool(branch.matched), True)
    return PageBranch(
        number=branch.number,
        operation=branch.operation,
        sides=sides,
        condition=(
            None
            if branch.test is None
            else page_expression(branch.test, printer, condition=True, names=names)
        ),
        values=tuple(
            assigned_column(column, row_type.field(index).type, value, names, printer)
            for index, (column, value) in enumerate(
                zip(node.columns, branch.expressions, strict=bool(branch.expressions))
            )
        ),
    )


def assigned_column(
    column: Symbol, arrow_type: pa.DataType, value: Typed, names: RowNames, printer: PagePrinter
) -> AssignedColumn:
    tree, refusal = without_refusal(value)
    return AssignedColumn(
        column.name,
        arrow_type,
        page_expression(tree, printer, condition=False, names=names),
        refusal,
    )


def check_columns(
    checks: Sequence[CheckConstraint], symbols: Mapping[str, str]
) -> tuple[AssignedColumn, ...]:
    """Print CHECK constraints for new rows; `symbols` has the channel of every column."""
    pairs = [
        (part, Column(part.type, symbols[part.symbol]))
        for check in checks
        for part in walk(check.value)
        if isinstance(part, Column)
    ]
    columns = []
    for check in checks:
        column = assigned_column(
            Symbol(check.text, BOOLEAN),
            BOOLEAN.arrow,
            replaced(check.value, pairs),
            RowNames(),
            PagePrinter(),
        )
        read = column.expression.reads
        reported_columns = sorted(symbols, key=lambda name: symbols[name] not in read)[
            : max(TOLD_COLUMNS, len(read))
        ]
        names = {symbols[name]: f"new.{name}" for name in symbols if name in reported_columns}
        columns.append(replace(column, expression=replace(column.expression, names=names)))
    return tuple(columns)


@dataclass(frozen=True)
class RowNames:
    """Display names of columns by symbol, for rows in errors; `keys` are the symbols that identify
    a row.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    keys: Collection[str] = ()

    def display_names(self, read: Collection[str]) -> Mapping[str, str]:
        return {
            symbol: name
            for symbol, name in self.columns.items()
            if symbol in read or symbol in self.keys
        }


def names_of(context: LoweringContext, *, source: bool = True) -> RowNames:
    """Return the display names of a statement's rows; without `source`, only the target's key."""
    sides = zip(context.aliases, (context.target, context.source), strict=True)
    columns = {
        symbol.name: column_in_sql(name, side)
        for side, symbols in sides
        for name, symbol in symbols
    }
    keys_of_target, keys_of_source = context.keys
    return RowNames(columns, keys_of_source if source and context.source else keys_of_target)


def page_expression(
    tree: Typed, printer: PagePrinter, *, condition: bool, names: RowNames | None = None
) -> PageExpression:
    """Print an expression for pages; `names` identify rows in errors."""
    text = printer.text(tree, condition=condition)
    span, words = (None, "") if tree.origin is None else (tree.origin.span, tree.origin.words)
    read = references(tree)
    reported_names = {} if names is None else names.display_names(read)
    is_plain = isinstance(tree, Column) or is_null(tree)
    lists, lookups = dict(printer.lists), printer.lookups(tree)
    return PageExpression(
        text,
        span,
        words,
        reads=read,
        is_plain=is_plain,
        names=reported_names,
        lists=lists,
        lookups=lookups,
    )
