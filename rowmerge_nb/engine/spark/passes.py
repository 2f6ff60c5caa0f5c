"""The passes of processors and writers, and the exchange between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.engine.tasks.duplicates import DuplicateRule
from rowmerge_nb.engine.tasks.exchange import (
    Destination,
    LocalExchange,
    PagePartitioner,
    PartitionFunction,
    Placing,
    WriterPass,
)
from rowmerge_nb.engine.tasks.insert import InsertSenderPass
from rowmerge_nb.engine.tasks.merge_passes import MergePass
from rowmerge_nb.engine.tasks.update_delete_passes import DeletePass, UpdatePass
from rowmerge_nb.engine.tasks.writer import SinkFactory
from rowmerge_nb.plan.extended import RETURNING, SOURCE_PRESENT
from rowmerge_nb.plan.plan_nodes import (
    DeleteProject,
    DuplicateCheck,
    Exchange,
    MergeProcessor,
    PlanNode,
    Project,
    TableWriter,
)
from rowmerge_nb.plan.planner import UNIQUE_ID
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import CASE_NUMBER, HASH, MERGE_ROW, ROW_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.tasks.insert import ArrivedRows, InsertedRows
    from rowmerge_nb.spi.layout import ConnectorTableLayout


def _columns(node: MergeProcessor | DeleteProject) -> pa.Schema:
    return pa.schema(
        [pa.field(symbol.name, symbol.type.arrow) for symbol in (*node.columns, node.row_id)]
    )


def output_schema(node: MergeProcessor | DeleteProject) -> pa.Schema:
    return node.layout.output_schema(_columns(node))


def input_names(node: MergeProcessor) -> list[str]:
    """Return the input channels of a processor's pass: its page, ``unique_id`` if matches are
    checked, extras.
    """
    location = [
        node.source.outputs[channel].name
        for channel in node.layout.before.write_redistribution_columns
    ]
    hashed = [HASH] if node.layout.before.hash is not None else []
    checked = [UNIQUE_ID] if isinstance(node.source, DuplicateCheck) else []
    return [*location, *hashed, ROW_ID, MERGE_ROW, CASE_NUMBER, *checked, *_extras(node.source)]


def _extras(node: PlanNode) -> tuple[str, ...]:
    return tuple(
        symbol.name for symbol in node.outputs if symbol.name in {SOURCE_PRESENT, RETURNING}
    )


def merge_pass(
    node: MergeProcessor | DeleteProject,
    context: LoweringContext,
    *,
    placing: Placing | None = None,
    sinks: SinkFactory | None = None,
    exchange: LocalExchange | PagePartitioner | None = None,
    grouped: bool = False,
) -> MergePass:
    common: Mapping[str, Any] = {
        "layout": node.layout,
        "columns": _columns(node),
        "witness": context.witness_type,
        "per_clause": context.per_clause,
        "placing": placing,
        "sinks": sinks,
        "exchange": exchange,
        "grouped": grouped,
        "keeping": context.keeping,
        "chooser": context.chooser,
    }
    if isinstance(node, DeleteProject):
        return DeletePass(paradigm=None, rule=None, **common)
    indexes = {
        name: index
        for index, name in enumerate(input_names(node))
        if name in {SOURCE_PRESENT, RETURNING}
    }
    if not isinstance(node.source, DuplicateCheck):
        return UpdatePass(
            paradigm=node.paradigm, rule=None, returning=indexes.get(RETURNING), **common
        )
    check = node.source
    rule = DuplicateRule(check.rule, node.paradigm, check.idle)
    return MergePass(
        paradigm=node.paradigm,
        rule=rule,
        updates=_cases(node, Operation.UPDATE),
        deletes=_cases(node, Operation.DELETE),
        source_present=indexes.get(SOURCE_PRESENT),
        returning=indexes.get(RETURNING),
        **common,
    )


def _cases(node: PlanNode, operation: Operation) -> tuple[int, ...]:
    while not isinstance(node, Project) or node.case is None:
        if not node.sources:
            return ()
        node = node.sources[0]
    return tuple(branch.number for branch in node.case.branches if branch.operation is operation)


def placing(
    node: Exchange, processor: MergeProcessor | DeleteProject, context: LoweringContext
) -> Placing:
    names = [column.name for column in processor.columns]

    def destination(
        layout: ConnectorTableLayout | None, arguments: tuple[int, ...], types: tuple[Any, ...]
    ) -> Destination:
        if layout is None:
            return Destination(even=True)
        function = (
            context.tables.bucket_function(layout, types)
            if layout.partitioning is not None
            else None
        )
        return Destination(function, arguments)

    columns = (
        tuple(names.index(name) for name in node.insert_layout.partition_columns)
        if node.insert_layout
        else ()
    )
    inserts = destination(
        node.insert_layout, columns, tuple(processor.columns[i].type for i in columns)
    )
    if node.update_layout is None and processor.layout.era is Era.DOCUMENTS:
        return Placing(inserts, inserts)
    updates = destination(
        node.update_layout, (processor.layout.after.row_id,), (processor.row_id.type,)
    )
    if (
        inserts.function
        and updates.function
        and inserts.function.bucket_count != updates.function.bucket_count
    ):
        counts = f"{inserts.function.bucket_count} and {updates.function.bucket_count} buckets"
        raise ConnectorError(f"Insert and update layout have mismatched BucketNodeMap: {counts}")
    return Placing(inserts, updates)


def writer_pass(
    node: MergeProcessor | DeleteProject,
    sinks: SinkFactory,
    context: LoweringContext,
    *,
    in_files: bool,
) -> WriterPass:
    return WriterPass(node.layout, sinks, context.per_clause, context.keeping, in_files)


def partition_function(
    node: Exchange, processor: MergeProcessor | DeleteProject, context: LoweringContext
) -> PartitionFunction:
    channels = processor.layout.after
    return PartitionFunction(
        context.writers,
        # In table order, like the channel ``hash``, so that equal values have equal hashes.
        processor.layout.redistribution_columns,
        channels.row_id if node.update_layout is not None else None,
        channels.operation,
    )


def insert_sender(
    node: TableWriter,
    layout: ConnectorTableLayout,
    rows: InsertedRows | ArrivedRows,
    context: LoweringContext,
) -> InsertSenderPass:
    names = [column.name for column in node.columns]
    arguments = tuple(names.index(name) for name in layout.partition_columns)
    function = None
    if layout.partitioning is not None:
        function = context.tables.bucket_function(
            layout, tuple(node.columns[i].type for i in arguments)
        )
    return InsertSenderPass(
        rows, Destination(function, arguments), context.writers, context.tables.exchange_folder()
    )
