"""From plan to Spark: one small function per node, node → DataFrame. Only the DataFrame API is used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from rowmerge_nb.engine.spark.expressions import computed, conformed
from rowmerge_nb.engine.spark.frames import is_spark_frame
from rowmerge_nb.engine.spark.in_task import join_task, partitioned_tasks, replicated_tasks, row_task, source_schema
from rowmerge_nb.engine.spark.types import spark_type
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
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.engine.tasks.merge import MergePass
from rowmerge_nb.engine.tasks.outcome import MATCHED_ROW, OUTCOME, PIECE_ROW, RECORD
from rowmerge_nb.engine.tasks.partitioned import CELLS, IN_ORDER, AnswersOutputPass
from rowmerge_nb.engine.tasks.replicated import MATCHED, PIECE, PIECES, PackPass, ReplicatedSource
from rowmerge_nb.engine.tasks.scan import POSITION
from rowmerge_nb.engine.tasks.update_delete import DeletePass, UpdatePass
from rowmerge_nb.engine.tasks.writer import InsertPass, SinkFactory, WriterPass
from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.plan.extended import RETURNING, SOURCE_PRESENT
from rowmerge_nb.plan.in_task import without_mark
from rowmerge_nb.plan.nodes import (
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
    PhysicalForm,
    PlanNode,
    Project,
    SemiJoin,
    Source,
    TableScan,
    TableWriter,
)
from rowmerge_nb.plan.planner import UNIQUE_ID
from rowmerge_nb.plan.rules import chain, estimated_rows, join_of
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import CASE_NUMBER, HASH, INSERT_FROM_UPDATE, MERGE_ROW, OPERATION, PRESENT, ROW_ID
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.typed.expressions import quote
from rowmerge_nb.trace.nodes import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowmerge_nb.engine.tasks.audit import RowChooser
    from rowmerge_nb.engine.tasks.in_task import RowTask
    from rowmerge_nb.engine.tasks.partitioned import PartitionedJoinTask
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.plan.nodes import Symbol
    from rowmerge_nb.spi.layout import BucketFunction, ConnectorTableLayout
    from rowmerge_nb.sql.typed.expressions import Reads

__all__ = ["LoweringContext", "Tables", "input_rows", "lower", "merge_pass", "with_answers"]

WITNESS = "$witness"
SOURCE_ROW = "$source_row"
SMALL_ROWS = 10_000
"""Up to here one writer takes all rows of an INSERT."""
PARTITION_ROWS = 4_000_000
"""Of so many rows of the target there is a task more that joins those of its keys: it goes through them, so it need not hold them."""


class Tables(Protocol):
    """Where lowering gets the rows of tables and the makers of sinks from; the statement's transaction implements it."""

    def scan(self, node: TableScan) -> Any:
        """Give the table's columns under the node's symbols, and the position of every row as ``$position`` where it has one."""

    def scan_matching(self, node: TableScan, source: TableScan, keys: Sequence[tuple[str, str]]) -> Any:
        """Scan as ``scan`` does, without the rows whose keys no row of another table has; None where its keys are not at hand."""

    def page_scan(self, node: TableScan) -> ScanPass | None:
        """Give what reads a table within a task, in the types of pages; None where its rows are Spark's to read."""

    def narrowed_scan(self, node: TableScan, semi: SemiJoin | None) -> ScanPass:
        """Give what reads the target within tasks, asked for no more than the keys of a semi join, where these are at hand."""

    def split_numbers(self, count: int) -> Any:
        """Give a row for every split, its number in ``id``, each in a task of its own."""

    def in_tasks(self, rows: Any, task: Any, schema: pa.Schema, *, tells: bool = False) -> Any:
        """Give what a pass makes of rows, in Spark's types; ``tells`` if the last channel can carry a task's record."""

    def outcome_of(self, rows: Any, task: Any) -> Any:
        """Give what the statement's last pass tells the driver of rows: fragments and records."""

    def sinks(self) -> SinkFactory:
        """Give what makes the merge sinks of the statement."""

    def page_sinks(self) -> Any:
        """Give what makes the page sinks of the statement."""

    def bucket_function(self, layout: ConnectorTableLayout, types: tuple[Any, ...]) -> BucketFunction:
        """Give the bucket function of a layout that names a partitioning."""


@dataclass(frozen=True)
class LoweringContext:
    """What lowering needs beside the plan.

    Args:
        spark: the session.
        tables: rows and sinks.
        partitions: into how many partitions a forced exchange goes; the session's shuffle partitions are set to the same number.
        tasks: how many tasks read a table whose changed rows stay where they are: rows go through them page by page.
        writers: at most how many writers there are behind an exchange.
        per_clause: how many rows per clause a task samples.
        witness: both sides' values travel with every row.
        target: the symbols of the target's data columns, ``source`` those of the source (a statement without one has
            none); used by the witness alone.
        keeping: which pages tasks keep of those that they hand to the connector.
        chooser: chooses the rows that a task samples, in place of so many per clause; None without one.
    """

    spark: Any
    tables: Tables
    partitions: int
    tasks: int
    writers: int
    per_clause: int = 0
    witness: bool = False
    target: tuple[tuple[str, Symbol], ...] = ()
    source: tuple[tuple[str, Symbol], ...] = ()
    keeping: Keeping = IN_CASE
    chooser: RowChooser | None = None

    @property
    def witness_type(self) -> pa.DataType | None:
        """The Arrow type of the witness channel."""
        if not self.witness:
            return None
        sides = {
            side: pa.struct([pa.field(name, symbol.type.arrow) for name, symbol in symbols])
            for side, symbols in (("source", self.source), ("target", self.target))
            if symbols
        }
        return pa.struct([("source_row", pa.int64()), *sides.items()])


@singledispatch
def lower(node: PlanNode, context: LoweringContext) -> Any:
    """Turn a plan into a DataFrame.

    Of a plan with a writer the DataFrame has the columns of ``OUTCOME``: fragments and records.
    """
    return lower(node.sources[0], context)


@lower.register
def _(node: TableScan, context: LoweringContext) -> Any:
    return context.tables.scan(node)


@lower.register
def _(node: Source, context: LoweringContext) -> Any:
    return context.spark.sql(node.spark)


@lower.register
def _(node: AssignUniqueId, context: LoweringContext) -> Any:
    """Take the scan's position as unique id: it is the same each time a task is run again, and needs no order among tasks."""
    kept = [quote(symbol.name) for symbol in node.outputs if symbol != node.symbol]
    return lower(node.source, context).selectExpr(*kept, f"{quote(POSITION)} AS {quote(node.symbol.name)}")


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
    """Give the channels of the writer's page under the names ``c0``, ``c1``, ..., and the witness."""
    kept = dict(zip(node.redistribution_columns, node.kept, strict=True))
    constants = {OPERATION: str(int(Operation.DELETE)), CASE_NUMBER: "0", INSERT_FROM_UPDATE: "0"}
    channels = node.layout.after
    data = [quote(kept[c.name].name) if c.name in kept else "NULL" for c in node.columns]
    others = [constants.get(node.outputs[i].name, quote(ROW_ID)) for i in range(channels.operation, channels.count)]
    types = [spark_type(symbol.type.arrow).simpleString() for symbol in node.outputs]
    values = [
        text if symbol is node.row_id else conformed(text, kind)
        for text, kind, symbol in zip([*data, *others], types, node.outputs, strict=True)
    ]
    columns = [f"{value} AS c{i}" for i, value in enumerate(values)]
    if context.witness:
        columns.append(f"{_witness_expression(context)} AS {quote(WITNESS)}")
    return lower(node.source, context).selectExpr(*columns)


@lower.register
def _(node: SemiJoin, context: LoweringContext) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    if node.key_columns and isinstance(node.source, TableScan) and isinstance(node.filtering_source, TableScan):
        matching = context.tables.scan_matching(node.source, node.filtering_source, node.key_columns)
        if matching is not None:
            return matching
    names = [f"$key{i}" for i in range(len(node.keys))]
    sides = zip(node.keys, names, strict=True)
    keys = lower(node.filtering_source, context).select(*(F.expr(print_spark(source)).alias(name) for (_, source), name in sides))
    condition = None
    for (target, _), name in zip(node.keys, names, strict=True):
        equal = F.expr(print_spark(target)) == F.col(quote(name))
        condition = equal if condition is None else condition & equal
    return lower(node.source, context).join(F.broadcast(keys), condition, "left_semi")


@lower.register
def _(node: Join, context: LoweringContext) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    left, right = lower(node.left, context), lower(node.right, context)
    if node.distribution == "SINGLE":
        # Before rows are numbered: within one partition the numbers are those of the rows in the source.
        right = right.coalesce(1)
    if context.witness and not _hidden(node.right, context):
        if isinstance(node.right, Source) and _is_written(node.right.reads):
            # Spark has a partition for every row that is computed.
            right = right.coalesce(1)
        right = right.withColumn(SOURCE_ROW, F.monotonically_increasing_id())
    if node.distribution == "PARTITIONED":
        right = right.repartition(context.partitions, *(F.expr(print_spark(source)) for _, source in node.equalities))
    if node.distribution == "REPLICATED":
        right = F.broadcast(right)
    left = F.broadcast(left) if node.replicate_target else left
    return left.join(right, F.expr(print_spark(node.predicate)), node.type.name.lower())


def _is_written(reads: Reads) -> bool:
    """Tell whether a query's rows are all written in it, few as they are then: what reads no table, and makes no rows of values."""
    return reads.written > 1 and not reads.views and not reads.generates


@lower.register
def _(node: Project, context: LoweringContext) -> Any:
    source, texts = node.source, dict(computed(node))
    if isinstance(source, AssignUniqueId):
        # One step of Spark's for both.
        texts[source.symbol.name] = quote(POSITION)
        source = source.source
    columns = [
        f"{texts[symbol.name]} AS {quote(symbol.name)}" if symbol.name in texts else quote(symbol.name) for symbol in node.outputs
    ]
    if context.witness and node.case is not None:
        joined = join_of(node)
        join_type = JoinType.RIGHT if joined is None else joined.type
        number = next(iter(_hidden(node.source, context)), SOURCE_ROW)
        columns.append(f"{_witness_expression(context, join_type, number)} AS {quote(WITNESS)}")
    elif not isinstance(node.source, AssignUniqueId):
        columns += [quote(name) for name in _hidden(node.source, context)]
    return lower(source, context).selectExpr(*columns)


def _hidden(node: PlanNode, context: LoweringContext) -> tuple[str, ...]:
    """Give the columns that travel beside a node's outputs: a row's number in its table, and further up the witness."""
    if isinstance(node, TableScan):
        return () if is_spark_frame(node.table.dataframe) else (POSITION,)
    if isinstance(node, Source | AssignUniqueId):
        return ()
    if isinstance(node, Join):
        return _hidden(node.right, context) or ((SOURCE_ROW,) if context.witness else ())
    if isinstance(node, Project) and node.case is not None:
        return (WITNESS,) if context.witness else ()
    return _hidden(node.sources[0], context)


def _witness_expression(context: LoweringContext, join_type: JoinType = JoinType.RIGHT, number: str = SOURCE_ROW) -> str:
    def struct(symbols: tuple[tuple[str, Symbol], ...]) -> str:
        # Fields go by position: a struct with two fields of one name cannot leave Spark.
        fields = (f"'f{i}', {quote(symbol.name)}" for i, (_, symbol) in enumerate(symbols))
        return f"named_struct({', '.join(fields)})"

    if not context.source:
        return f"named_struct('source_row', CAST(NULL AS BIGINT), 'target', {struct(context.target)})"
    target = f"CASE WHEN {PRESENT} IS NOT NULL THEN {struct(context.target)} END"
    source = struct(context.source)
    if join_type is JoinType.FULL:
        source = f"CASE WHEN {SOURCE_PRESENT} IS NOT NULL THEN {source} END"
    return f"named_struct('source_row', {quote(number)}, 'source', {source}, 'target', {target})"


@lower.register
def _(node: MarkDistinct, context: LoweringContext) -> Any:
    """Bring all matches of a target row into one partition; the marking itself is part of the Python pass above.

    Unmatched rows have no unique id. They must not all meet in one partition, so they go by the partition that they come from,
    which is the same whenever a task is run again.
    """
    from pyspark.sql import functions as F  # noqa: N812

    rows = lower(node.source, context)
    if not node.exchange:
        return rows
    return rows.repartition(context.partitions, F.expr(f"coalesce({node.keys[0].name}, -1 - spark_partition_id())"))


@lower.register
def _(node: DuplicateCheck, context: LoweringContext) -> Any:
    """Nothing for Spark to do: the check runs in the Python pass above, on the same pages."""
    return lower(node.source, context)


@lower.register
def _(node: MergeWriter, context: LoweringContext) -> Any:
    sinks = context.tables.sinks()
    exchange = node.source if isinstance(node.source, Exchange) else None
    processor = exchange.source if exchange is not None else node.source
    if not isinstance(processor, MergeProcessor | DeleteProject):
        msg = f"A MergeWriter cannot stand on {type(processor).__name__}"
        raise TypeError(msg)
    if node.form is not None and node.form.in_task:
        return _in_task(node.form, processor, exchange, context)
    if node.fused:
        merge = merge_pass(processor, context, placing=None, sinks=sinks)
        return context.tables.outcome_of(input_rows(processor, context), merge)
    placing = _placing(exchange, processor, context) if exchange is not None else None
    task = merge_pass(processor, context, placing=placing, sinks=None)
    rows = context.tables.in_tasks(input_rows(processor, context), task, task.exchanged, tells=True)
    if exchange is not None:
        rows = _exchanged(rows, exchange, processor, context)
    return context.tables.outcome_of(
        rows, WriterPass(processor.layout, _columns(processor), sinks, context.per_clause, context.keeping)
    )


def _in_task(
    form: PhysicalForm, processor: MergeProcessor | DeleteProject, exchange: Exchange | None, context: LoweringContext
) -> Any:
    """Execute all from the scan to the processor on pages; where it is one task, writers included."""
    tables, sinks = context.tables, context.tables.sinks()
    join = join_of(processor)
    writers = WriterPass(processor.layout, _columns(processor), sinks, context.per_clause, context.keeping)
    local = _local_exchange(exchange, processor, writers, context) if exchange is not None else None
    placing = _placing(exchange, processor, context) if exchange is not None else None
    above = merge_pass(processor, context, placing=placing, sinks=None if exchange is not None else sinks, grouped=True)
    if form.many_tasks and join is not None and isinstance(processor, MergeProcessor):
        return _replicated(processor, join, above, exchange, local, context)
    if form.partitioned and join is not None and isinstance(processor, MergeProcessor):
        sent, joining = _partitioned(processor, join, above, context)
        return _written(sent, joining, above, exchange, processor, writers, context)
    scan = _narrowed_target(processor, join, context)
    if join is not None and isinstance(processor, MergeProcessor):
        source, rows = _task_source(join.right, context)
        whole, answers = join_task(processor, join, (scan, source), above, local, context, paged=form.paged)
        own = with_answers(tables.split_numbers(1), 1, answers, tables)
        symbols = [query.symbol for query in whole.program.queries]
        return tables.outcome_of(own if source is not None else _never_empty(rows, own, symbols, join), whole)
    tasks = 1
    if form.many_tasks:
        tasks = _task_count(scan, context) if exchange is None else len(scan.splits)
    task, answers = row_task(processor, scan, tasks, above, None if form.many_tasks else local, context)
    rows = with_answers(tables.split_numbers(tasks), tasks, answers, tables)
    return _written(rows, task, above, exchange if form.many_tasks else None, processor, writers, context)


def _written(
    rows: Any,
    task: RowTask | PartitionedJoinTask,
    above: MergePass,
    exchange: Exchange | None,
    processor: MergeProcessor | DeleteProject,
    writers: WriterPass,
    context: LoweringContext,
) -> Any:
    """Give what is told of rows that a pass has changed: by the pass itself where it stores them, else by the writers behind an exchange."""
    tables = context.tables
    if exchange is None:
        return tables.outcome_of(rows, task)
    changed = tables.in_tasks(rows, task, above.exchanged, tells=True)
    return tables.outcome_of(_exchanged(changed, exchange, processor, context), writers)


def _narrowed_target(processor: PlanNode, join: Join | None, context: LoweringContext) -> ScanPass:
    """Give what reads the target, asked for no more than the source's keys where the plan has it so."""
    below = () if join is None else chain(join.left)
    semi = next((node for node in below if isinstance(node, SemiJoin)), None)
    return context.tables.narrowed_scan(_target_scan(processor), semi)


def _target_scan(node: PlanNode) -> TableScan:
    return next(inner for inner in chain(node) if isinstance(inner, TableScan) and inner.row_id is not None)


def _replicated(
    processor: MergeProcessor,
    join: Join,
    above: MergePass,
    exchange: Exchange | None,
    local: LocalExchange | None,
    context: LoweringContext,
) -> Any:
    """Execute a MERGE in the tasks that read the target, each of which gets all of the source; then come the unmatched source rows.

    The stage of the tasks has one exchange above it: with two, Spark would run it twice, sinks included. Where changed rows go to certain
    writers, it is the exchange of these rows, and the unmatched source rows are the writers' business.
    """
    from pyspark.sql import functions as F  # noqa: N812

    tables = context.tables
    target = _narrowed_target(processor, join, context)
    scan, rows = _task_source(join.right, context)
    schema = source_schema(join)
    schema = schema if scan is None else schema.append(pa.field(POSITION, pa.int64()))
    source = ReplicatedSource(schema, scan if scan is not None and scan.is_repeatable else None)
    tasks = _task_count(target, context)
    joining, unmatched, answers = replicated_tasks(processor, join, target, tasks, source, above, local, context)
    pieces = None if source.scan is not None else tables.in_tasks(rows, PackPass(scan, schema), PIECES)
    numbers = tables.split_numbers(tasks)
    # Of a source that Spark sees to be empty there is no piece, and each task has its row all the same.
    numbers = numbers if pieces is None else numbers.join(F.broadcast(pieces), F.lit(True), "left")
    if answers:
        beside = F.lit(True) if pieces is None else F.coalesce(F.col("piece"), F.lit(0)) == F.lit(0)
        numbers = numbers.join(F.broadcast(_answered(answers, tables)), beside, "left")
    if exchange is None:
        told, schema = tables.outcome_of(numbers, joining), OUTCOME
        receiver = F.when(F.col("kind") >= F.lit(MATCHED_ROW), F.col("writer") % F.lit(context.partitions)).otherwise(F.lit(0))
        sent = told.repartitionById(context.partitions, receiver)
        asks, asked = F.col("kind") == F.lit(PIECE_ROW), F.col("writer")
    else:
        told, schema = tables.in_tasks(numbers, joining, joining.exchanged, tells=True), joining.exchanged
        sent = _exchanged(told, exchange, processor, context)
        asks, asked = F.col(quote(MATCHED)).isNull(), F.coalesce(F.col(quote(PIECE)), F.lit(-2))
    if pieces is not None:
        # By no equality and by nothing that NULL makes NULL: for a hash join Spark broadcasts in another form, and what must not be NULL
        # it filters before. Either would be another plan than above, and the source would be packed once more.
        wanted = asks & (asked - F.coalesce(F.col("piece"), F.lit(-1)) == F.lit(0))
        sent = sent.join(F.broadcast(pieces), wanted, "left").select(*map(quote, (*schema.names, *PIECES.names)))
    return tables.outcome_of(sent, unmatched)


def _partitioned(
    processor: MergeProcessor, join: Join, above: MergePass, context: LoweringContext
) -> tuple[Any, PartitionedJoinTask]:
    """Give the rows of both sides of a MERGE, sent to tasks by their keys, and what such a task does with them."""
    from pyspark.sql import functions as F  # noqa: N812

    tables = context.tables
    target = _narrowed_target(processor, join, context)
    scan, rows = _source_rows(join.right, context)
    tasks = (_task_count(target, context), 0 if scan is None else _task_count(scan, context))
    partitions = max(context.partitions, -(-(estimated_rows(join.left) or 0) // PARTITION_ROWS))
    left, right, joining, answers = partitioned_tasks(processor, join, (target, scan), tasks, partitions, above, context)
    cells = tables.in_tasks(rows, right, CELLS).unionAll(tables.in_tasks(tables.split_numbers(tasks[0]), left, CELLS))
    if answers:
        cells = cells.unionAll(tables.in_tasks(_answered(answers, tables), AnswersOutputPass(partitions), CELLS))
    sent = cells.repartitionById(partitions, F.col("partition")).sortWithinPartitions(*map(quote, IN_ORDER))
    return sent, joining


def _source_rows(node: PlanNode, context: LoweringContext) -> tuple[ScanPass | None, Any]:
    """Give what reads the source in many tasks, and a row for each of them; or None and the rows of a query, as Spark has them."""
    node = without_mark(node)
    source = context.tables.page_scan(node) if isinstance(node, TableScan) else None
    if source is not None:
        return source, context.tables.split_numbers(_task_count(source, context))
    names = [quote(symbol.name) for symbol in node.outputs]
    return None, lower(node, context).selectExpr(*(f"{name} AS c{index}" for index, name in enumerate(names)))


def _task_source(node: PlanNode, context: LoweringContext) -> tuple[ScanPass | None, Any]:
    """Give what reads the source of a small MERGE: the task itself, which needs one row to begin, or Spark, whose rows arrive there."""
    source, rows = _source_rows(node, context)
    return source, rows.coalesce(1) if source is None else context.tables.split_numbers(1)


def _task_count(target: ScanPass, context: LoweringContext) -> int:
    """Give how many tasks read the target and write: no more than there are places for, so that files are few, and none without a split."""
    return max(1, min(len(target.splits), context.tasks))


def with_answers(rows: Any, count: int, answers: Sequence[str], tables: Tables) -> Any:
    """Put the answers of subqueries beside each of some rows: the same to all, though Spark computes ``(SELECT random())`` row by row.

    Args:
        rows: a DataFrame.
        count: how many rows it has.
        answers: the texts of the columns with the answers.
        tables: gives rows.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if not answers:
        return rows
    return rows.selectExpr("*", *answers) if count == 1 else rows.crossJoin(F.broadcast(_answered(answers, tables)))


def _answered(answers: Sequence[str], tables: Tables) -> Any:
    """Give the one row of the answers of subqueries."""
    return tables.split_numbers(1).selectExpr(*answers)


def _never_empty(rows: Any, own: Any, answers: Sequence[str], join: Join) -> Any:
    """Put a task's own row behind those of a query, as the last column tells them apart: without any, Spark would run no task."""
    kinds = [spark_type(field.type).simpleString() for field in source_schema(join)]
    none = own.selectExpr(*(f"CAST(NULL AS {kind})" for kind in kinds), *map(quote, answers), "false")
    return rows.selectExpr("*", *(f"NULL AS {quote(name)}" for name in answers), "true").unionAll(none).coalesce(1)


def _local_exchange(
    node: Exchange, processor: MergeProcessor | DeleteProject, writers: WriterPass, context: LoweringContext
) -> LocalExchange:
    channels = processor.layout.after
    by_row_id = channels.row_id if node.update_layout is not None else None
    return LocalExchange(context.writers, processor.layout.redistribution_columns, by_row_id, channels.operation, writers)


@lower.register
def _(node: TableWriter, context: LoweringContext) -> Any:
    required, make_sink = context.tables.page_sinks()
    schema = pa.schema([pa.field(column.name, column.type.arrow) for column in node.columns])
    exchange = node.source if isinstance(node.source, Exchange) else None
    source = exchange.source if exchange is not None else node.source
    rows = lower(source, context)
    if (estimated_rows(source) or SMALL_ROWS + 1) <= SMALL_ROWS:
        rows = rows.coalesce(1)
    # The passes take columns by their place; `mapInArrow` looks for them by names, which a point in a name leads astray.
    returning = len(node.columns) if len(source.outputs) > len(node.columns) else None
    numbered = rows.toDF(*(f"c{index}" for index in range(len(source.outputs))))
    if exchange is not None and exchange.insert_layout is not None:
        numbered = _placed(numbered, exchange.insert_layout, node, context)
    return context.tables.outcome_of(
        numbered, InsertPass(schema, required, make_sink, context.keeping, make_sink.handle, returning)
    )


def _placed(rows: Any, layout: ConnectorTableLayout, node: TableWriter, context: LoweringContext) -> Any:
    """Send the rows of an INSERT to the writers of their partitions or buckets."""
    from pyspark.sql import functions as F  # noqa: N812

    names = [column.name for column in node.columns]
    indexes = sorted(names.index(name) for name in layout.partition_columns)
    if layout.partitioning is None:
        hashed = hash_expression([f"c{i}" for i in indexes])
        return rows.repartitionById(context.writers, F.expr(partition_expression(hashed, context.writers)))
    arguments = tuple(names.index(name) for name in layout.partition_columns)
    function = context.tables.bucket_function(layout, tuple(node.columns[i].type for i in arguments))
    schema = pa.schema([pa.field(column.name, column.type.arrow) for column in node.columns])
    task = PlacePass(schema, Destination(function, arguments), tuple(_behind(rows, len(schema))))
    placed = context.tables.in_tasks(rows, task, task.exchanged)
    return placed.repartitionById(context.writers, F.expr(partition_expression(quote(BUCKET), context.writers)))


def _behind(rows: Any, columns: int) -> Iterator[pa.DataType]:
    """Give the types of what stands behind the columns of a table."""
    from pyspark.sql.pandas.types import to_arrow_type

    for field in rows.schema.fields[columns:]:
        yield to_arrow_type(field.dataType)


def _columns(node: MergeProcessor | DeleteProject) -> pa.Schema:
    """Give the table's columns and, last, the row id."""
    return pa.schema([pa.field(symbol.name, symbol.type.arrow) for symbol in (*node.columns, node.row_id)])


def input_rows(node: MergeProcessor | DeleteProject, context: LoweringContext) -> Any:
    """Put the channels into the order of the processor's page, and behind them the witness."""
    if isinstance(node, DeleteProject):
        return lower(node, context)
    rows, texts = _pending(node.source, context)
    names = [*_input_names(node), *([WITNESS] if context.witness else [])]
    return rows.selectExpr(*(f"{texts.get(name, quote(name))} AS c{i}" for i, name in enumerate(names)))


def _input_names(node: MergeProcessor) -> list[str]:
    """Name what goes into the pass of a processor: its page up to the case number.

    Where matches are checked, ``unique_id`` comes behind it, and then what the extended dialect adds.
    """
    location = [node.source.outputs[channel].name for channel in node.layout.before.write_redistribution_columns]
    hashed = [HASH] if node.layout.before.hash is not None else []
    checked = [UNIQUE_ID] if isinstance(node.source, DuplicateCheck) else []
    return [*location, *hashed, ROW_ID, MERGE_ROW, CASE_NUMBER, *checked, *_extras(node.source)]


def _pending(node: PlanNode, context: LoweringContext) -> tuple[Any, Mapping[str, str]]:
    """Lower a node, but leave what its top projection computes to the step above: each step costs Spark an analysis."""
    if isinstance(node, DuplicateCheck) or (isinstance(node, MarkDistinct) and not node.exchange):
        return _pending(node.source, context)
    if isinstance(node, Project) and node.case is None and not isinstance(node.source, AssignUniqueId):
        return lower(node.source, context), computed(node)
    return lower(node, context), {}


def _extras(node: PlanNode) -> tuple[str, ...]:
    """Give the columns of the extended dialect that go into the pass beside the page."""
    return tuple(symbol.name for symbol in node.outputs if symbol.name in {SOURCE_PRESENT, RETURNING})


def merge_pass(
    node: MergeProcessor | DeleteProject,
    context: LoweringContext,
    *,
    placing: Placing | None,
    sinks: SinkFactory | None,
    grouped: bool = False,
) -> MergePass:
    """Give the pass of a processor, which works on what `input_rows` gives.

    Args:
        node: the processor, or what hands rows to delete on.
        context: with which the plan is lowered.
        placing: how rows find their writer; None without an exchange.
        sinks: makes sinks when the writer is in this pass.
        grouped: a target row has all of its joined rows in one batch.
    """
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
    indexes = {name: index for index, name in enumerate(_input_names(node)) if name in {SOURCE_PRESENT, RETURNING}}
    if not isinstance(node.source, DuplicateCheck):
        return UpdatePass(paradigm=node.paradigm, rule=None, returning=indexes.get(RETURNING), **common)
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
    """Give the numbers of the clauses with this operation."""
    while not isinstance(node, Project) or node.case is None:
        if not node.sources:
            return ()
        node = node.sources[0]
    return tuple(branch.number for branch in node.case.branches if branch.operation is operation)


def _placing(node: Exchange, processor: MergeProcessor | DeleteProject, context: LoweringContext) -> Placing:
    names = [column.name for column in processor.columns]

    def destination(layout: ConnectorTableLayout | None, arguments: tuple[int, ...], types: tuple[Any, ...]) -> Destination:
        if layout is None:
            return Destination(even=True)
        function = context.tables.bucket_function(layout, types) if layout.partitioning is not None else None
        return Destination(function, arguments)

    columns = tuple(names.index(name) for name in node.insert_layout.partition_columns) if node.insert_layout else ()
    inserts = destination(node.insert_layout, columns, tuple(processor.columns[i].type for i in columns))
    if node.update_layout is None and processor.layout.era is Era.DOCUMENTS:
        return Placing(inserts, inserts)
    updates = destination(node.update_layout, (processor.layout.after.row_id,), (processor.row_id.type,))
    if inserts.function and updates.function and inserts.function.bucket_count != updates.function.bucket_count:
        counts = f"{inserts.function.bucket_count} and {updates.function.bucket_count} buckets"
        msg = f"Insert and update layout have mismatched BucketNodeMap: {counts}"
        raise ConnectorError(msg)
    return Placing(inserts, updates)


def _exchanged(rows: Any, node: Exchange, processor: MergeProcessor | DeleteProject, context: LoweringContext) -> Any:
    """Send every row to its writer: by the bucket that the task gave it, or by the same hash as the channel ``hash``."""
    from pyspark.sql import functions as F  # noqa: N812

    channels = processor.layout.after
    # In table order, as the channel ``hash`` has them, so that the same values give the same number.
    by_columns = hash_expression([f"c{index}" for index in processor.layout.redistribution_columns])
    by_row_id = hash_expression([f"c{channels.row_id}"]) if node.update_layout is not None else by_columns
    inserts = f"c{channels.operation} IN ({int(Operation.INSERT)}, {int(Operation.UPDATE_INSERT)})"
    destination = f"coalesce({quote(BUCKET)}, CASE WHEN {inserts} THEN {by_columns} ELSE {by_row_id} END)"
    writer = F.when(F.col(quote(RECORD)).isNotNull(), F.lit(0)).otherwise(
        F.expr(partition_expression(destination, context.writers))
    )
    return rows.repartitionById(context.writers, writer)
