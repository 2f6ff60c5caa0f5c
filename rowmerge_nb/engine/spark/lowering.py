"""From plan to DataFrames: one function per node."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.engine.spark.frames import is_spark_frame
from rowmerge_nb.engine.spark.lowering_context import LoweringContext
from rowmerge_nb.engine.spark.page_lowering import (
    inserted_rows,
    join_task,
    partitioned_tasks,
    query_rows,
    replicated_tasks,
    row_task,
    source_schema,
)
from rowmerge_nb.engine.spark.passes import (
    input_names,
    insert_sender,
    merge_pass,
    output_schema,
    partition_function,
    placing,
    writer_pass,
)
from rowmerge_nb.engine.spark.printed_expressions import computed, conformed
from rowmerge_nb.engine.spark.spark_types import spark_type
from rowmerge_nb.engine.tasks.exchange import LocalExchange, PagePartitioner
from rowmerge_nb.engine.tasks.insert import (
    ArrivedRows,
    InsertedRows,
    InsertPass,
    InsertTask,
    ReceivedInsertPass,
)
from rowmerge_nb.engine.tasks.merge_passes import MergePass
from rowmerge_nb.engine.tasks.outcome import MATCHED_ROW, OUTCOME, PIECE_ROW
from rowmerge_nb.engine.tasks.page_query import QueryScan
from rowmerge_nb.engine.tasks.partitioned import CELLS, IN_ORDER, AnswersOutputPass
from rowmerge_nb.engine.tasks.replicated import (
    MESSAGES,
    PIECE,
    PIECES,
    PackPass,
    ReplicatedSource,
)
from rowmerge_nb.engine.tasks.scan import POSITION
from rowmerge_nb.engine.tasks.sent_pages import SENT
from rowmerge_nb.plan.extended import SOURCE_PRESENT
from rowmerge_nb.plan.page_execution import without_mark
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
    MergeWriter,
    Output,
    PageRows,
    PhysicalForm,
    PlanNode,
    Project,
    SemiJoin,
    Source,
    TableScan,
    TableWriter,
)
from rowmerge_nb.plan.rules import chain, estimated_rows, join_of
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import CASE_NUMBER, INSERT_FROM_UPDATE, OPERATION, PRESENT, ROW_ID
from rowmerge_nb.spi.types import VARCHAR, Type
from rowmerge_nb.sql.spark.printer import print_join_condition, print_spark
from rowmerge_nb.sql.typed.expressions import Apply, Column
from rowmerge_nb.sql.typed.type_rules import INTERVAL_YEAR
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.engine.spark.lowering_context import LoweringTables
    from rowmerge_nb.engine.tasks.exchange import Placing
    from rowmerge_nb.engine.tasks.page_row_change import RowTask
    from rowmerge_nb.engine.tasks.partitioned import PartitionedJoinTask
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.plan.plan_nodes import Symbol
    from rowmerge_nb.spi.layout import ConnectorTableLayout
    from rowmerge_nb.sql.typed.expressions import Reads

WITNESS = "$witness"
SOURCE_ROW = "$source_row"
SMALL_ROWS = 10_000
"""Up to this estimate, one writer stores all rows of an INSERT."""
PARTITION_ROWS = 4_000_000
"""Target rows per joining task; tasks stream them, so this is not limited by memory."""


@singledispatch
def lower(node: PlanNode, context: LoweringContext) -> Any:
    """Turn a plan into a DataFrame; with a writer, its columns are those of ``OUTCOME``."""
    return lower(node.sources[0], context)


@lower.register
def _(node: TableScan, context: LoweringContext) -> Any:
    return context.tables.scan(node)


@lower.register
def _(node: Source, context: LoweringContext) -> Any:
    rows = context.spark.sql(node.spark)
    return rows if node.partitions is None else rows.coalesce(node.partitions)


@lower.register
def _(node: Output, context: LoweringContext) -> Any:
    # Spark does not export intervals of months, so they leave as text.
    from pyspark.sql import functions as F  # noqa: N812

    rows = lower(node.source, context)
    kinds = [_exported_type(symbol.type) for symbol in node.outputs]
    if not isinstance(node.source, Source) or all(
        sql_type == s.type for sql_type, s in zip(kinds, node.outputs, strict=True)
    ):
        return rows
    columns = (Column(symbol.type, symbol.name) for symbol in node.outputs)
    casts = (
        Apply(sql_type, "cast", (column,)) for sql_type, column in zip(kinds, columns, strict=True)
    )
    return rows.select(
        *(
            F.expr(print_spark(cast)).alias(s.name)
            for cast, s in zip(casts, node.outputs, strict=True)
        )
    )


def _exported_type(sql_type: Type) -> Type:
    if sql_type == INTERVAL_YEAR:
        return VARCHAR
    inner = tuple(
        _exported_type(part) if isinstance(part, Type) else part for part in sql_type.parameters
    )
    return replace(sql_type, parameters=inner)


@lower.register
def _(node: AssignUniqueId, context: LoweringContext) -> Any:
    # The scan's position is a unique id that is stable when a task runs again.
    others = [backquoted(symbol.name) for symbol in node.outputs if symbol != node.symbol]
    return lower(node.source, context).selectExpr(
        *others, f"{backquoted(POSITION)} AS {backquoted(node.symbol.name)}"
    )


@lower.register
def _(node: Filter, context: LoweringContext) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return lower(node.source, context).where(F.expr(print_spark(node.predicate)))


@lower.register
def _(node: CheckConstraints, context: LoweringContext) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    rows = lower(node.source, context)
    for predicate in node.expressions:
        rows = rows.where(F.expr(print_spark(predicate)))
    return rows


@lower.register
def _(node: DeleteProject, context: LoweringContext) -> Any:
    # The channels of the writer's page are named ``c0``, ``c1``, ..., then the witness.
    old_columns = dict(zip(node.redistribution_columns, node.kept_columns, strict=True))
    constants = {OPERATION: str(int(Operation.DELETE)), CASE_NUMBER: "0", INSERT_FROM_UPDATE: "0"}
    channels = node.layout.after
    data = [
        backquoted(old_columns[c.name].name) if c.name in old_columns else "NULL"
        for c in node.columns
    ]
    others = [
        constants.get(node.outputs[i].name, backquoted(ROW_ID))
        for i in range(channels.operation, channels.count)
    ]
    types = [spark_type(symbol.type.arrow).simpleString() for symbol in node.outputs]
    values = [
        text if symbol is node.row_id else conformed(text, sql_type)
        for text, sql_type, symbol in zip([*data, *others], types, node.outputs, strict=True)
    ]
    columns = [f"{value} AS c{i}" for i, value in enumerate(values)]
    if context.witness:
        columns.append(f"{_witness_expression(context)} AS {backquoted(WITNESS)}")
    return lower(node.source, context).selectExpr(*columns)


@lower.register
def _(node: SemiJoin, context: LoweringContext) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    if (
        node.key_columns
        and isinstance(node.source, TableScan)
        and isinstance(node.filtering_source, TableScan)
    ):
        matching = context.tables.scan_matching(
            node.source, node.filtering_source, node.key_columns
        )
        if matching is not None:
            return matching
    names = [f"$key{i}" for i in range(len(node.keys))]
    sides = zip(node.keys, names, strict=True)
    keys = lower(node.filtering_source, context).select(
        *(F.expr(print_spark(source)).alias(name) for (_, source), name in sides)
    )
    condition = None
    for (target, _), name in zip(node.keys, names, strict=True):
        equal = F.expr(print_spark(target)) == F.col(backquoted(name))
        condition = equal if condition is None else condition & equal
    return lower(node.source, context).join(F.broadcast(keys), condition, "left_semi")


@lower.register
def _(node: Join, context: LoweringContext) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    left, right = lower(node.left, context), lower(node.right, context)
    if node.distribution == "SINGLE":
        # Before rows are numbered: within one partition, the numbers are those of the source's
        # rows.
        right = right.coalesce(1)
    if context.witness and not _hidden(node.right, context):
        if isinstance(node.right, Source) and _is_written(node.right.reads):
            # Spark has a partition per row of VALUES.
            right = right.coalesce(1)
        right = right.withColumn(SOURCE_ROW, F.monotonically_increasing_id())
    if node.distribution == "PARTITIONED":
        right = right.repartition(
            context.partitions, *(F.expr(print_spark(source)) for _, source in node.equalities)
        )
    if node.distribution == "REPLICATED":
        right = F.broadcast(right)
    left = F.broadcast(left) if node.replicate_target else left
    symbols = frozenset(symbol.name for symbol in node.left.outputs)
    condition = print_join_condition(node.predicate, symbols)
    return left.join(right, F.expr(condition), node.type.name.lower())


def _is_written(reads: Reads) -> bool:
    return reads.row_factor > 1 and not reads.views and not reads.generates


@lower.register
def _(node: Project, context: LoweringContext) -> Any:
    source, texts = node.source, dict(computed(node))
    if isinstance(source, AssignUniqueId):
        # One projection for both.
        texts[source.symbol.name] = backquoted(POSITION)
        source = source.source
    columns = [
        (
            f"{texts[symbol.name]} AS {backquoted(symbol.name)}"
            if symbol.name in texts
            else backquoted(symbol.name)
        )
        for symbol in node.outputs
    ]
    if context.witness and node.case is not None:
        joined = join_of(node)
        join_type = JoinType.RIGHT if joined is None else joined.type
        number = next(iter(_hidden(node.source, context)), SOURCE_ROW)
        columns.append(
            f"{_witness_expression(context, join_type, number)} AS {backquoted(WITNESS)}"
        )
    elif not isinstance(node.source, AssignUniqueId):
        columns += [backquoted(name) for name in _hidden(node.source, context)]
    return lower(source, context).selectExpr(*columns)


def _hidden(node: PlanNode, context: LoweringContext) -> tuple[str, ...]:
    if isinstance(node, TableScan):
        return () if is_spark_frame(node.table.dataframe) else (POSITION,)
    if isinstance(node, Source | AssignUniqueId):
        return ()
    if isinstance(node, Join):
        return _hidden(node.right, context) or ((SOURCE_ROW,) if context.witness else ())
    if isinstance(node, Project) and node.case is not None:
        return (WITNESS,) if context.witness else ()
    return _hidden(node.sources[0], context)


def _witness_expression(
    context: LoweringContext, join_type: JoinType = JoinType.RIGHT, number: str = SOURCE_ROW
) -> str:
    def struct(symbols: tuple[tuple[str, Symbol], ...]) -> str:
        # Fields are positional: Spark cannot export a struct with duplicate field names.
        fields = (f"'f{i}', {backquoted(symbol.name)}" for i, (_, symbol) in enumerate(symbols))
        return f"named_struct({', '.join(fields)})"

    if not context.source:
        return (
            f"named_struct('source_row', CAST(NULL AS BIGINT), 'target', {struct(context.target)})"
        )
    target = f"CASE WHEN {PRESENT} IS NOT NULL THEN {struct(context.target)} END"
    source = struct(context.source)
    if join_type is JoinType.FULL:
        source = f"CASE WHEN {SOURCE_PRESENT} IS NOT NULL THEN {source} END"
    return (
        f"named_struct('source_row', {backquoted(number)}, 'source', {source}, 'target', {target})"
    )


@lower.register
def _(node: MarkDistinct, context: LoweringContext) -> Any:
    # All matches of a target row go to one partition; the Python pass above marks them. Unmatched
    # rows have no unique id, and are spread by the partition that they come from, which is stable
    # when a task runs again.
    from pyspark.sql import functions as F  # noqa: N812

    rows = lower(node.source, context)
    if not node.exchange:
        return rows
    return rows.repartition(
        context.partitions, F.expr(f"coalesce({node.keys[0].name}, -1 - spark_partition_id())")
    )


@lower.register
def _(node: DuplicateCheck, context: LoweringContext) -> Any:
    # The Python pass above checks.
    return lower(node.source, context)


@lower.register
def _(node: MergeWriter, context: LoweringContext) -> Any:
    exchange = node.source if isinstance(node.source, Exchange) else None
    processor = exchange.source if exchange is not None else node.source
    if not isinstance(processor, MergeProcessor | DeleteProject):
        raise TypeError(f"A MergeWriter cannot read from {type(processor).__name__}")
    if node.form is not None and node.form.in_task:
        return _in_task(node.form, processor, exchange, context)
    if node.fused:
        merge = merge_pass(processor, context, sinks=context.tables.sinks())
        return context.tables.outcome_of(input_rows(processor, context), merge)
    partitioner = _partitioner(exchange, processor, context)
    task = merge_pass(
        processor, context, placing=_places(exchange, processor, context), exchange=partitioner
    )
    return _written(input_rows(processor, context), task, partitioner, processor, context)


def _partitioner(
    exchange: Exchange | None, processor: MergeProcessor | DeleteProject, context: LoweringContext
) -> PagePartitioner:
    schema = output_schema(processor)
    if exchange is None:
        # The receiver reads the cells of the same task, while a file would not be complete.
        return PagePartitioner(schema, None, None)
    function = partition_function(exchange, processor, context)
    return PagePartitioner(schema, function, context.tables.exchange_folder())


def _places(
    exchange: Exchange | None, processor: MergeProcessor | DeleteProject, context: LoweringContext
) -> Placing | None:
    return None if exchange is None else placing(exchange, processor, context)


def _written(
    rows: Any,
    task: Any,
    partitioner: PagePartitioner,
    processor: MergeProcessor | DeleteProject,
    context: LoweringContext,
) -> Any:
    tables = context.tables
    messages = tables.in_tasks(rows, task, SENT, carries_record=True)
    if partitioner.function is not None:
        messages = messages.repartitionById(context.writers, SENT.names[0])
    writers = writer_pass(
        processor, tables.sinks(), context, in_files=partitioner.folder is not None
    )
    return tables.outcome_of(messages, writers)


def _in_task(
    form: PhysicalForm,
    processor: MergeProcessor | DeleteProject,
    exchange: Exchange | None,
    context: LoweringContext,
) -> Any:
    tables = context.tables
    join = join_of(processor)
    places = _places(exchange, processor, context)
    if exchange is None:
        above = merge_pass(processor, context, sinks=tables.sinks(), grouped=True)
    elif form.many_tasks or form.partitioned:
        partitioner = _partitioner(exchange, processor, context)
        above = merge_pass(processor, context, placing=places, exchange=partitioner, grouped=True)
    else:
        local = LocalExchange(
            partition_function(exchange, processor, context),
            writer_pass(processor, tables.sinks(), context, in_files=False),
        )
        above = merge_pass(processor, context, placing=places, exchange=local, grouped=True)
    if form.many_tasks and join is not None and isinstance(processor, MergeProcessor):
        return _replicated(processor, join, above, context)
    if form.partitioned and join is not None and isinstance(processor, MergeProcessor):
        return _stored(*_partitioned(processor, join, above, context), above, processor, context)
    scan = _narrowed_target(processor, join, context)
    if join is not None and isinstance(processor, MergeProcessor):
        source, rows = _task_source(join.right, context)
        whole, answers = join_task(
            processor, join, (scan, source), above, context, paged=form.paged
        )
        own = with_answers(tables.split_numbers(1), 1, answers, tables)
        symbols = [query.symbol for query in whole.program.queries]
        return tables.outcome_of(
            own if source is not None else _never_empty(rows, own, symbols), whole
        )
    tasks = _task_count(scan, context) if form.many_tasks else 1
    task, answers = row_task(processor, scan, tasks, above, context)
    rows = with_answers(tables.split_numbers(tasks), tasks, answers, tables)
    return _stored(rows, task, above, processor, context)


def _stored(
    rows: Any,
    task: RowTask | PartitionedJoinTask,
    above: MergePass,
    processor: MergeProcessor | DeleteProject,
    context: LoweringContext,
) -> Any:
    if isinstance(above.exchange, PagePartitioner):
        return _written(rows, task, above.exchange, processor, context)
    return context.tables.outcome_of(rows, task)


def _narrowed_target(processor: PlanNode, join: Join | None, context: LoweringContext) -> ScanPass:
    below = () if join is None else chain(join.left)
    semi = next((node for node in below if isinstance(node, SemiJoin)), None)
    return context.tables.narrowed_scan(_target_scan(processor), semi)


def _target_scan(node: PlanNode) -> TableScan:
    return next(
        inner for inner in chain(node) if isinstance(inner, TableScan) and inner.row_id is not None
    )


def _replicated(
    processor: MergeProcessor, join: Join, above: MergePass, context: LoweringContext
) -> Any:
    """Execute a MERGE in the tasks that read the target, each with the whole source; then the
    unmatched source rows.

    There is one exchange above: with two, Spark would run these tasks twice, sinks included.
    """
    from pyspark.sql import functions as F  # noqa: N812

    tables = context.tables
    target = _narrowed_target(processor, join, context)
    scan, rows = _task_source(join.right, context)
    schema = source_schema(join) if scan is None else scan.schema
    source = ReplicatedSource(schema, scan if scan is not None and scan.is_repeatable else None)
    tasks = _task_count(target, context)
    joining, unmatched, answers = replicated_tasks(
        processor, join, target, tasks, source, above, context
    )
    pieces = (
        None if source.scan is not None else tables.in_tasks(rows, PackPass(scan, schema), PIECES)
    )
    numbers = tables.split_numbers(tasks)
    # A source that Spark knows to be empty has no piece; the left join retains the task's row.
    numbers = numbers if pieces is None else numbers.join(F.broadcast(pieces), F.lit(True), "left")
    if answers:
        joined_to = (
            F.lit(True) if pieces is None else F.coalesce(F.col("piece"), F.lit(0)) == F.lit(0)
        )
        numbers = numbers.join(F.broadcast(_answered(answers, tables)), joined_to, "left")
    if isinstance(above.exchange, PagePartitioner):
        messages = tables.in_tasks(numbers, joining, MESSAGES, carries_record=True)
        schema = MESSAGES
        sent_rows = messages.repartitionById(context.writers, SENT.names[0])
        is_request = F.col(backquoted(SENT.names[1])).isNull()
        requested = F.coalesce(F.col(backquoted(PIECE)), F.lit(-2))
    else:
        messages, schema = tables.outcome_of(numbers, joining), OUTCOME
        receiver = F.when(
            F.col("kind") >= F.lit(MATCHED_ROW), F.col("writer") % F.lit(context.partitions)
        ).otherwise(F.lit(0))
        sent_rows = messages.repartitionById(context.partitions, receiver)
        is_request, requested = F.col("kind") == F.lit(PIECE_ROW), F.col("writer")
    if pieces is not None:
        # Not an equality, and not NULL for NULL: Spark would broadcast in another form or filter
        # NULLs first. Either differs from the plan above, so that the source would be packed twice.
        condition = is_request & (requested - F.coalesce(F.col("piece"), F.lit(-1)) == F.lit(0))
        sent_rows = sent_rows.join(F.broadcast(pieces), condition, "left").select(
            *map(backquoted, (*schema.names, *PIECES.names))
        )
    return tables.outcome_of(sent_rows, unmatched)


def _partitioned(
    processor: MergeProcessor, join: Join, above: MergePass, context: LoweringContext
) -> tuple[Any, PartitionedJoinTask]:
    from pyspark.sql import functions as F  # noqa: N812

    tables = context.tables
    target = _narrowed_target(processor, join, context)
    scan, rows = _source_rows(join.right, context)
    tasks = (_task_count(target, context), 0 if scan is None else _task_count(scan, context))
    partitions = max(context.partitions, -(-(estimated_rows(join.left) or 0) // PARTITION_ROWS))
    left, right, joining, answers = partitioned_tasks(
        processor, join, (target, scan), tasks, partitions, above, context
    )
    cells = tables.in_tasks(rows, right, CELLS).unionAll(
        tables.in_tasks(tables.split_numbers(tasks[0]), left, CELLS)
    )
    if answers:
        cells = cells.unionAll(
            tables.in_tasks(_answered(answers, tables), AnswersOutputPass(partitions), CELLS)
        )
    sorted_cells = cells.repartitionById(partitions, F.col("partition")).sortWithinPartitions(
        *map(backquoted, IN_ORDER)
    )
    return sorted_cells, joining


def _source_rows(node: PlanNode, context: LoweringContext) -> tuple[ScanPass | None, Any]:
    node = without_mark(node)
    source = context.tables.page_scan(node) if isinstance(node, TableScan) else None
    if source is not None:
        return source, context.tables.split_numbers(_task_count(source, context))
    names = [backquoted(symbol.name) for symbol in node.outputs]
    return None, lower(node, context).selectExpr(
        *(f"{name} AS c{index}" for index, name in enumerate(names))
    )


def _task_source(node: PlanNode, context: LoweringContext) -> tuple[ScanPass | None, Any]:
    query = without_mark(node)
    if isinstance(query, Source) and query.pages is not None:
        table_scan = context.tables.page_scan(query.pages.scan)
        assert table_scan is not None, "the rule has seen that tasks read the table"
        return QueryScan.over(
            table_scan, query_rows(query.pages, query.outputs)
        ), context.tables.split_numbers(1)
    source, rows = _source_rows(node, context)
    return source, rows.coalesce(1) if source is None else context.tables.split_numbers(1)


def _task_count(target: ScanPass, context: LoweringContext) -> int:
    """Return the number of tasks: limited by the cores, so that files are few, and by the splits."""
    return max(1, min(len(target.splits), context.tasks))


def with_answers(rows: Any, count: int, answers: Sequence[str], tables: LoweringTables) -> Any:
    """Add the results of subqueries to rows, the same for all, although Spark evaluates
    ``(SELECT random())`` per row.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if not answers:
        return rows
    return (
        rows.selectExpr("*", *answers)
        if count == 1
        else rows.crossJoin(F.broadcast(_answered(answers, tables)))
    )


def _answered(answers: Sequence[str], tables: LoweringTables) -> Any:
    return tables.split_numbers(1).selectExpr(*answers)


def _never_empty(rows: Any, own: Any, answers: Sequence[str]) -> Any:
    """Append a task's own row to those of a query, marked by the last column: without rows, Spark
    would run no task.
    """
    from pyspark.sql import functions as F  # noqa: N812

    # Spark's own types, because a channel has no type for columns that are always NULL.
    nulls = [F.lit(None).cast(field.dataType) for field in rows.schema.fields]
    none = own.select(*nulls, *map(F.expr, map(backquoted, answers)), F.lit(False))
    return (
        rows.selectExpr("*", *(f"NULL AS {backquoted(name)}" for name in answers), "true")
        .unionAll(none)
        .coalesce(1)
    )


@lower.register
def _(node: TableWriter, context: LoweringContext) -> Any:
    required, make_sink = context.tables.page_sinks()
    schema = pa.schema([pa.field(column.name, column.type.arrow) for column in node.columns])
    exchange = node.source if isinstance(node.source, Exchange) else None
    source = exchange.source if exchange is not None else node.source
    few = (estimated_rows(source) or SMALL_ROWS + 1) <= SMALL_ROWS
    query = chain(source)[-1]
    if isinstance(query, Source | AnsweredQuery) and query.pages is not None:
        return _inserted_pages(node, query.pages, few=few, context=context)
    rows = lower(source, context)
    if few:
        rows = rows.coalesce(1)
    # Passes use positions; `mapInArrow` resolves names, and fails on names with a dot.
    returning = len(node.columns) if len(source.outputs) > len(node.columns) else None
    numbered = rows.toDF(*(f"c{index}" for index in range(len(source.outputs))))
    writer = InsertPass(schema, required, make_sink, context.keeping, make_sink.handle, returning)
    if exchange is None or exchange.insert_layout is None:
        return context.tables.outcome_of(numbered, writer)
    arrived = ArrivedRows(schema if returning is None else _with_returned(schema, numbered))
    return _sent_inserts(numbered, node, exchange.insert_layout, arrived, writer, context)


def _with_returned(schema: pa.Schema, rows: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_type

    for column in rows.schema.fields[len(schema) :]:
        schema = schema.append(pa.field(column.name, to_arrow_type(column.dataType)))
    return schema


def _sent_inserts(
    rows: Any,
    node: TableWriter,
    layout: ConnectorTableLayout,
    inserted: InsertedRows | ArrivedRows,
    writer: InsertPass,
    context: LoweringContext,
) -> Any:
    tables = context.tables
    sender = insert_sender(node, layout, inserted, context)
    messages = tables.in_tasks(rows, sender, SENT, carries_record=True).repartitionById(
        context.writers, SENT.names[0]
    )
    return tables.outcome_of(
        messages, ReceivedInsertPass(writer, in_files=sender.folder is not None)
    )


def _inserted_pages(
    node: TableWriter, pages: PageRows, *, few: bool, context: LoweringContext
) -> Any:
    tables = context.tables
    required, make_sink = tables.page_sinks()
    exchange = node.source if isinstance(node.source, Exchange) else None
    scan, rows = tables.page_rows(pages.scan)
    tasks = 1 if few or scan is None else _task_count(scan, context)
    computed_rows = inserted_rows(node, pages, scan, tasks)
    if scan is not None:
        rows = tables.split_numbers(tasks)
    elif few:
        rows = rows.coalesce(1)
    writer = InsertPass(
        computed_rows.query.schema, required, make_sink, context.keeping, make_sink.handle
    )
    # Pages in cells arrive in several tasks.
    one_task = few or (scan is not None and tasks == 1)
    if exchange is None or exchange.insert_layout is None or one_task:
        return tables.outcome_of(rows, InsertTask(computed_rows, writer))
    return _sent_inserts(rows, node, exchange.insert_layout, computed_rows, writer, context)


def input_rows(node: MergeProcessor | DeleteProject, context: LoweringContext) -> Any:
    """Return the channels of the processor's page in order, then the witness."""
    if isinstance(node, DeleteProject):
        return lower(node, context)
    rows, texts = _pending(node.source, context)
    names = [*input_names(node), *([WITNESS] if context.witness else [])]
    return rows.selectExpr(
        *(f"{texts.get(name, backquoted(name))} AS c{i}" for i, name in enumerate(names))
    )


def _pending(node: PlanNode, context: LoweringContext) -> tuple[Any, Mapping[str, str]]:
    """Lower a node without its top projection, which the next step computes: each step costs an
    analysis in Spark.
    """
    if isinstance(node, DuplicateCheck) or (isinstance(node, MarkDistinct) and not node.exchange):
        return _pending(node.source, context)
    if (
        isinstance(node, Project)
        and node.case is None
        and not isinstance(node.source, AssignUniqueId)
    ):
        return lower(node.source, context), computed(node)
    return lower(node, context), {}
