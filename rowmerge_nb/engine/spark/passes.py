"""The passes of processors and writers, and the exchange between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import backquoted
from rowmerge_nb.engine.tasks.duplicates import DuplicateRule
from rowmerge_nb.engine.tasks.exchange import (
    BUCKET,
    Destination,
    LocalExchange,
    PlacePass,
    Placing,
    hash_expression,
    partition_expression,
)
from rowmerge_nb.engine.tasks.insert import InsertSenderPass
from rowmerge_nb.engine.tasks.merge_passes import MergePass
from rowmerge_nb.engine.tasks.outcome import RECORD
from rowmerge_nb.engine.tasks.update_delete_passes import DeletePass, UpdatePass
from rowmerge_nb.engine.tasks.writer import SinkFactory, WriterPass
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
    from collections.abc import Iterator, Mapping

    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.tasks.insert import InsertedRows
    from rowmerge_nb.spi.layout import ConnectorTableLayout


def _columns(node: MergeProcessor | DeleteProject) -> pa.Schema:
    return pa.schema(
        [pa.field(symbol.name, symbol.type.arrow) for symbol in (*node.columns, node.row_id)]
    )


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
    placing: Placing | None,
    sinks: SinkFactory | None,
    grouped: bool = False,
) -> MergePass:
    common: Mapping[str, Any] = {
        "layout": node.layout,
        "columns": _columns(node),
        "witness": context.witness_type,
        "per_clause": context.per_clause,
        "placing": placing,
        "sinks": sinks,
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
    node: MergeProcessor | DeleteProject, sinks: SinkFactory, context: LoweringContext
) -> WriterPass:
    return WriterPass(node.layout, _columns(node), sinks, context.per_clause, context.keeping)


def local_exchange(
    node: Exchange,
    processor: MergeProcessor | DeleteProject,
    writers: WriterPass,
    context: LoweringContext,
) -> LocalExchange:
    channels = processor.layout.after
    by_row_id = channels.row_id if node.update_layout is not None else None
    return LocalExchange(
        context.writers,
        processor.layout.redistribution_columns,
        by_row_id,
        channels.operation,
        writers,
    )


def exchanged(
    rows: Any, node: Exchange, processor: MergeProcessor | DeleteProject, context: LoweringContext
) -> Any:
    """Send every row to its writer, by its bucket or the hash of the channel ``hash``."""
    from pyspark.sql import functions as F  # noqa: N812

    channels = processor.layout.after
    # In table order, like the channel ``hash``, so that equal values have equal hashes.
    by_columns = hash_expression([f"c{index}" for index in processor.layout.redistribution_columns])
    by_row_id = (
        hash_expression([f"c{channels.row_id}"]) if node.update_layout is not None else by_columns
    )
    inserts = f"c{channels.operation} IN ({int(Operation.INSERT)}, {int(Operation.UPDATE_INSERT)})"
    destination = (
        f"coalesce({backquoted(BUCKET)}, CASE WHEN {inserts} THEN {by_columns} ELSE {by_row_id}"
        " END)"
    )
    writer = F.when(F.col(backquoted(RECORD)).isNotNull(), F.lit(0)).otherwise(
        F.expr(partition_expression(destination, context.writers))
    )
    return rows.repartitionById(context.writers, writer)


def placed(
    rows: Any, layout: ConnectorTableLayout, node: TableWriter, context: LoweringContext
) -> Any:
    """Send the rows of an INSERT to the writers of their partitions or buckets."""
    from pyspark.sql import functions as F  # noqa: N812

    names = [column.name for column in node.columns]
    indexes = sorted(names.index(name) for name in layout.partition_columns)
    if layout.partitioning is None:
        hashed = hash_expression([f"c{i}" for i in indexes])
        return rows.repartitionById(
            context.writers, F.expr(partition_expression(hashed, context.writers))
        )
    arguments = tuple(names.index(name) for name in layout.partition_columns)
    function = context.tables.bucket_function(
        layout, tuple(node.columns[i].type for i in arguments)
    )
    schema = pa.schema([pa.field(column.name, column.type.arrow) for column in node.columns])
    task = PlacePass(schema, Destination(function, arguments), tuple(_behind(rows, len(schema))))
    with_buckets = context.tables.in_tasks(rows, task, task.exchanged)
    return with_buckets.repartitionById(
        context.writers, F.expr(partition_expression(backquoted(BUCKET), context.writers))
    )


def insert_sender(
    node: TableWriter, layout: ConnectorTableLayout, rows: InsertedRows, context: LoweringContext
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


def _behind(rows: Any, columns: int) -> Iterator[pa.DataType]:
    from pyspark.sql.pandas.types import to_arrow_type

    for field in rows.schema.fields[columns:]:
        yield to_arrow_type(field.dataType)
