"""A statement's input and output on Spark: tables as DataFrames, tasks, and their sinks."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError, error_text
from rowmerge_nb.base.names import backquoted
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.memory.memory_handles import MemoryTableHandle
from rowmerge_nb.connectors.memory.reading import MemoryPageSourceProvider, SplitStore
from rowmerge_nb.engine.spark.bundles import pickled
from rowmerge_nb.engine.spark.executors import executors_of, relation_of
from rowmerge_nb.engine.spark.frames import is_spark_frame
from rowmerge_nb.engine.spark.lowering_context import TableRead
from rowmerge_nb.engine.spark.marks import put_mark
from rowmerge_nb.engine.spark.spark_session import places
from rowmerge_nb.engine.spark.spark_types import spark_schema
from rowmerge_nb.engine.tasks.arrow import for_spark
from rowmerge_nb.engine.tasks.checked_buckets import CheckedBuckets
from rowmerge_nb.engine.tasks.dynamic_filter import KeyFilter, SourceKeys
from rowmerge_nb.engine.tasks.outcome import OUTCOME
from rowmerge_nb.engine.tasks.scan import POSITION, CellPass, ScanPass, cell_of
from rowmerge_nb.engine.tasks.writer import PageSinkFactory, SinkFactory
from rowmerge_nb.plan.carried import unread_columns
from rowmerge_nb.plan.plan_nodes import TableScan
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorTransactionHandle, SchemaTableName
from rowmerge_nb.spi.metadata import ConnectorTableMetadata
from rowmerge_nb.spi.page_source import Constraint
from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.typed.domains import compares_by_value, intersect
from rowmerge_nb.sql.typed.type_rules import parts_of, spark_type, without_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from rowmerge_nb.engine.catalog.transaction import OpenCatalog, StatementTransaction
    from rowmerge_nb.engine.spark.marks import Mark
    from rowmerge_nb.plan.plan_nodes import SemiJoin
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTableHandle
    from rowmerge_nb.spi.layout import BucketFunction, ConnectorTableLayout
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.analysis import TableBinding


TASKS_PER_PLACE: Final = 4
"""The maximum number of tasks per core, enough to balance their durations."""


class Scans:
    """One statement's input and output on Spark (`rowmerge_nb.engine.spark.lowering_context.LoweringTables`)."""

    def __init__(self, transaction: StatementTransaction, spark: Callable[[], Any]) -> None:
        self._transaction = transaction
        self._session = transaction.session
        self._spark = spark
        self._splits = SplitStore()
        self._views: set[str] = set()
        self._marks: dict[str, Mark | None] = {}
        self.reads: list[TableRead] = []

    @property
    def observations(self) -> Scans:
        """These scans for display or checks, which a connector does not count as the statement's
        reads.
        """
        scans = copy(self)
        scans._session = self._observing  # noqa: SLF001 - of its own copy
        return scans

    @property
    def _observing(self) -> ConnectorSession:
        return replace(self._session, is_observation=True)

    def close(self) -> None:
        for mark in self._marks.values():
            if mark is not None:
                mark.remove()
        self._marks.clear()
        self._splits.close()
        for view in self._views:
            self._spark().catalog.dropTempView(view)
        self._views.clear()

    # -- rows

    def make_views(
        self, bindings: Sequence[TableBinding], views: Collection[str], texts: Sequence[str] = ()
    ) -> None:
        """Create views with the columns ``c0``, ``c1``, ... in table order.

        The Spark SQL ``texts`` determine the columns read; empty for all columns.
        """
        for binding in bindings:
            if binding.view in views and binding.view not in self._views:
                columns = binding.readable
                names = [f"c{index}" for index in range(len(columns))]
                carried_names = unread_columns(
                    texts, binding.view, [column.name for column in columns]
                )
                rows = self._rows(binding, self.own_columns(binding, columns, carried_names), names)
                _fields_named(rows.select(*names), columns).createOrReplaceTempView(binding.view)
                self._views.add(binding.view)

    def scan(self, node: TableScan) -> Any:
        if is_spark_frame(node.table.dataframe):
            return self._spark_rows(
                node.table, node.columns, [symbol.name for symbol in node.outputs]
            )
        return self._scanned(self._scan_pass(node), node)

    def scan_matching(
        self, node: TableScan, source: TableScan, keys: Sequence[tuple[str, str]]
    ) -> Any:
        """Scan without the rows whose keys do not occur in another table (``source``), whose keys
        are read on the driver.

        ``keys`` are pairs of key symbols: of the table, of the other table.
        """
        if is_spark_frame(source.table.dataframe):
            return None
        read = self._keys_scan(source, keys)
        if not read.is_repeatable:
            # The join reads that table later, and may find new keys.
            return self.scan(node)
        narrowed, channels, source_keys = self._narrowed(node, read, keys)
        return self._scanned(
            replace(self._scan_pass(narrowed), keys=KeyFilter(channels, source_keys)), node
        )

    def narrowed_scan(self, node: TableScan, semi: SemiJoin | None) -> ScanPass:
        if semi is not None and semi.key_columns and isinstance(semi.filtering_source, TableScan):
            read = self._keys_scan(semi.filtering_source, semi.key_columns)
            if read.is_repeatable:
                node, _, _ = self._narrowed(node, read, semi.key_columns)
        task = self.page_scan(node)
        assert task is not None
        return task

    def _keys_scan(self, source: TableScan, keys: Sequence[tuple[str, str]]) -> ScanPass:
        names = [symbol.name for symbol in source.outputs]
        indexes = [names.index(symbol) for _, symbol in keys]
        return self._scan_pass(
            replace(
                source,
                outputs=tuple(source.outputs[i] for i in indexes),
                columns=tuple(source.columns[i] for i in indexes),
            )
        )

    def _narrowed(
        self, node: TableScan, source: ScanPass, keys: Sequence[tuple[str, str]]
    ) -> tuple[TableScan, tuple[int, ...], tuple[SourceKeys, ...]]:
        read = source.rows()
        source_keys = tuple(SourceKeys.of(read.column(i)) for i in range(len(keys)))
        channels = tuple(
            [symbol.name for symbol in node.outputs].index(symbol) for symbol, _ in keys
        )
        domains = dict(node.constraint.domains)
        for channel, key_set in zip(channels, source_keys, strict=True):
            if not compares_by_value(node.columns[channel].type):
                # Stores order such values differently, so only the filter and the join compare
                # them.
                continue
            name, domain = node.columns[channel].name, key_set.domain
            domains[name] = intersect(domains[name], domain) if name in domains else domain
        return replace(node, constraint=Constraint(domains)), channels, source_keys

    def opened_splits(
        self, node: TableScan, handle: Any
    ) -> tuple[Any, ConnectorTransactionHandle, Sequence[Any], list[ColumnHandle]]:
        """Return page source provider, transaction, splits, and columns with the row id last."""
        open_catalog = self._transaction.opened(node.table.catalog)
        columns = [
            *self.own_columns(node.table, node.data_columns, node.carried_columns),
            *node.row_id_columns,
        ]
        splits = self._transaction.log.call(
            "get_splits",
            lambda: _splits(open_catalog, self._session, handle, node.constraint),
            gave=lambda splits_found: plural(len(splits_found), "split"),
        )
        return (
            open_catalog.connector.get_page_source_provider(),
            open_catalog.handle,
            splits,
            columns,
        )

    def own_columns(
        self,
        binding: TableBinding,
        columns: Sequence[ColumnHandle],
        carried_names: Collection[str] = (),
    ) -> list[ColumnHandle]:
        """Return the connector's handles of data columns; no expression reads those in
        ``carried_names``.
        """
        if binding.handle is None:
            return list(columns)
        own = {
            h.name: h
            for h in self._transaction.metadata(binding.catalog).get_column_handles(
                self._session, binding.handle
            )
        }
        handles = [own.get(column.name, column) for column in columns]
        return [
            column.as_carried() if column.name in carried_names else column for column in handles
        ]

    def _rows(
        self, binding: TableBinding, columns: Sequence[ColumnHandle], symbols: Sequence[str]
    ) -> Any:
        if is_spark_frame(binding.dataframe):
            return self._spark_rows(binding, columns, symbols)
        return self._read(self._pass(binding, columns, symbols, binding.handle, Constraint()))

    def _spark_rows(
        self, binding: TableBinding, columns: Sequence[ColumnHandle], symbols: Sequence[str]
    ) -> Any:
        from pyspark.sql import functions as F  # noqa: N812

        def read(column: ColumnHandle) -> Any:
            if column.name in binding.refused_columns or column.type == UNKNOWN:
                return F.lit(None)
            expression = F.col(backquoted(column.name))
            # Arrow cannot carry parts that have no type and are never NULL, as Spark's array() has
            # them.
            is_typed = UNKNOWN not in parts_of(column.type)
            return (
                expression
                if is_typed
                else expression.cast(spark_type(without_unknown(column.type)))
            )

        frame: Any = binding.dataframe
        return frame.select(
            *(read(column).alias(symbol) for column, symbol in zip(columns, symbols, strict=True))
        )

    def _scan_pass(self, node: TableScan) -> ScanPass:
        handle = node.table.handle
        if node.row_id is not None and self._transaction.merge_handle is not None:
            handle = self._transaction.merge_handle.get_table_handle()
        columns = [
            *self.own_columns(node.table, node.data_columns, node.carried_columns),
            *node.row_id_columns,
        ]
        row_id = next(iter(node.row_id_columns), None)
        return self._pass(
            node.table,
            columns,
            [symbol.name for symbol in node.outputs],
            handle,
            node.constraint,
            row_id,
        )

    def page_scan(self, node: TableScan) -> ScanPass | None:
        """Return a scan within tasks, in page types; None if only Spark can read the rows."""
        if is_spark_frame(node.table.dataframe):
            return None
        return self._in_page_types(self._scan_pass(node), [symbol.type for symbol in node.outputs])

    def page_rows(self, node: TableScan) -> tuple[ScanPass | None, Any]:
        task = self._scan_pass(node)
        types = [symbol.type for symbol in node.outputs]
        if self._travel(task.splits) and (
            pages := replace(task, schema=_page_schema(task, types)).pages()
        ):
            return None, relation_of(self._spark(), [cell_of(page) for page in pages])
        return self._in_page_types(task, types), None

    def driver_scan(self, node: TableScan) -> ScanPass:
        """Return a scan, not of a Spark frame, on the driver without Spark, in page types."""
        task = self._scan_pass(node)
        return replace(task, schema=_page_schema(task, [symbol.type for symbol in node.outputs]))

    def exchange_folder(self) -> str | None:
        return None if executors_of(self._spark()).elsewhere else self._splits.folder

    def whole_table(self, binding: TableBinding) -> ScanPass:
        """Return a scan of all rows and columns, in page types, for tasks or the driver."""
        columns = self.own_columns(binding, binding.readable)
        names = [f"c{index}" for index in range(len(columns))]
        task = self._pass(binding, columns, names, binding.handle, Constraint())
        return self._in_page_types(task, [column.type for column in columns])

    def _in_page_types(self, task: ScanPass, types: Sequence[Type]) -> ScanPass:
        splits = (
            [split.with_rows() for split in task.splits]
            if self._travel(task.splits)
            else task.splits
        )
        return replace(task, schema=_page_schema(task, types), splits=splits)

    def is_read_by_tasks(self, catalog: str, handle: Any, frame: Any = None) -> bool:
        """Return whether every task can read the table or DataFrame, with the same rows.

        Executors on other machines are excluded, since their free memory is unknown.
        """
        if is_spark_frame(frame) or executors_of(self._spark()).elsewhere:
            return False
        if handle is None:
            return True
        # Only planning; the scan that follows counts as the statement's read.
        splits = _splits(self._transaction.opened(catalog), self._observing, handle, Constraint())
        return all(getattr(split, "is_repeatable", False) for split in splits)

    def split_numbers(self, count: int) -> Any:
        return self._spark().range(0, count, 1, max(count, 1))

    def splits_in_tasks(self, count: int) -> Any:
        """Return a row per split with its number in ``id``; if there are many, neighbors share a
        task, which costs tens of milliseconds.
        """
        spark = self._spark()
        return spark.range(0, count, 1, max(1, min(count, TASKS_PER_PLACE * places(spark))))

    def _scanned(self, task: ScanPass, node: TableScan) -> Any:
        return _fields_named(self._read(task), node.data_columns)

    def _pass(
        self,
        binding: TableBinding,
        columns: Sequence[ColumnHandle],
        symbols: Sequence[str],
        handle: Any,
        constraint: Constraint,
        row_id: ColumnHandle | None = None,
    ) -> ScanPass:
        channels = [
            (s, for_spark(column.type.arrow)) for s, column in zip(symbols, columns, strict=True)
        ]
        schema = pa.schema([*channels, (POSITION, pa.int64())])
        if binding.dataframe is not None or binding.rows is not None:
            return self._frame_scan(binding, columns, schema)
        open_catalog = self._transaction.opened(binding.catalog)
        provider = open_catalog.connector.get_page_source_provider()
        splits = _splits(open_catalog, self._session, handle, constraint)
        task = ScanPass(
            provider, open_catalog.handle, self._session, handle, splits, columns, schema
        )
        if not self._session.is_observation:
            self.reads.append(TableRead(binding, constraint, task, row_id))
        return task

    def _read(self, task: ScanPass) -> Any:
        spark = self._spark()
        if task.splits and all(getattr(split, "carries_rows", False) for split in task.splits):
            schema = spark_schema([(f.name, f.type) for f in task.schema])
            # A split's rows stay in one task, so that the rows of one file are not written to
            # several.
            return spark.createDataFrame(task.rows(), schema).coalesce(len(task.splits))
        if self._travel(task.splits) and (pages := task.pages()):
            return self.in_tasks(
                relation_of(spark, [cell_of(page) for page in pages]), CellPass(), task.schema
            )
        return self.in_tasks(self.splits_in_tasks(len(task.splits)), task, task.schema)

    def _travel(self, splits: Sequence[Any]) -> bool:
        return executors_of(self._spark()).elsewhere and not all(
            getattr(split, "remotely_accessible", True) for split in splits
        )

    def split_rows(self, splits: Sequence[Any]) -> tuple[Any, bool]:
        """Return a row per split with its ``id``, and whether ``cell`` holds the pickled split."""
        spark = self._spark()
        if not self._travel(splits):
            return self.splits_in_tasks(len(splits)), False
        return relation_of(spark, [pickled(split.with_rows())[0] for split in splits]), True

    # -- tasks

    def in_tasks(
        self, rows: Any, task: Any, schema: pa.Schema, *, carries_record: bool = False
    ) -> Any:
        """Apply a pass to rows; it is sent with its dependencies to executors that lack them.

        If ``carries_record``, the last channel can carry a task's record; otherwise errors are
        raised in the task.
        """
        spark = self._spark()
        executors = executors_of(spark)
        if executors.elsewhere and self._transaction.fault is not None:
            raise ConnectorError(
                "Faults are not possible here: calls are counted in a file on this"
                " machine, and executors may run elsewhere",
                hint="Omit fault, or run the statement in a local session.",
            )
        if executors.sends_packages:
            task = executors.task(
                spark, task, self._put_marks(), schema if carries_record else None
            )
        return rows.mapInArrow(task, spark_schema([(f.name, f.type) for f in schema]))

    def outcome_of(self, rows: Any, task: Any) -> Any:
        return self.in_tasks(rows, task, OUTCOME, carries_record=True)

    def _put_marks(self) -> list[Mark]:
        for name, open_catalog in self._transaction.all_opened():
            if name not in self._marks:
                directory = open_catalog.connector.shared_directory
                self._marks[name] = (
                    None if directory is None else put_mark(directory, self._session.query_id)
                )
        return [mark for mark in self._marks.values() if mark is not None]

    def _frame_scan(
        self, binding: TableBinding, columns: Sequence[Any], schema: pa.Schema
    ) -> ScanPass:
        data = binding.dataframe if binding.rows is None else binding.rows.table()
        name = SchemaTableName("notebook", binding.view)
        handle = MemoryTableHandle(name, 1, ConnectorTableMetadata(name, binding.columns))
        splits = self._splits.splits(name, 1, data)
        return ScanPass(
            MemoryPageSourceProvider(),
            ConnectorTransactionHandle(),
            self._session,
            handle,
            splits,
            columns,
            schema,
        )

    def store_frame(self, binding: TableBinding, pages: Iterable[pa.RecordBatch]) -> pa.Table:
        """Store rows, in pages of at most `PAGE_ROWS` rows, where tasks read frames, and return
        them as a frame.
        """
        schema = pa.schema([(column.name, column.type.arrow) for column in binding.columns])
        return self._splits.store(SchemaTableName("notebook", binding.view), 1, schema, pages)

    def rows_up_to(
        self, catalog: str, handle: Any, columns: Sequence[ColumnHandle], most: int
    ) -> pa.Table | None:
        """Read columns on the driver, in page types; None above the row limit.

        Channels are called ``0``, ``1``, ..., since the row id may have a column's name.
        """
        open_catalog = self._transaction.opened(catalog)
        schema = pa.schema(
            [
                *((str(index), column.type.arrow) for index, column in enumerate(columns)),
                (POSITION, pa.int64()),
            ]
        )
        provider = open_catalog.connector.get_page_source_provider()
        splits = _splits(open_catalog, self._session, handle, Constraint())
        pages, rows = [], 0
        for page in ScanPass(
            provider, open_catalog.handle, self._session, handle, splits, columns, schema
        ).read(range(len(splits))):
            pages.append(page)
            rows += page.num_rows
            if rows > most:
                return None
        return pa.Table.from_batches(pages, schema).drop_columns([POSITION])

    def rows_now(self, binding: TableBinding) -> pa.Table | None:
        """Return a table's rows including this transaction's changes; None if unreadable before the
        commit.
        """
        open_catalog = self._transaction.opened(binding.catalog)
        handle = (
            None
            if binding.metadata is None
            else open_catalog.metadata.get_table_handle(self._session, binding.metadata.name)
        )
        if not open_catalog.metadata.shows_own_changes or handle is None:
            return None
        columns = list(open_catalog.metadata.get_column_handles(self._session, handle))
        channels = [
            (f"c{index}", for_spark(column.type.arrow)) for index, column in enumerate(columns)
        ]
        provider = open_catalog.connector.get_page_source_provider()
        splits = _splits(open_catalog, self._session, handle, Constraint())
        schema_read = pa.schema([*channels, (POSITION, pa.int64())])
        rows = ScanPass(
            provider, open_catalog.handle, self._session, handle, splits, columns, schema_read
        ).rows()
        return rows.drop_columns([POSITION]).rename_columns([column.name for column in columns])

    def whole_target(
        self,
        binding: TableBinding,
        row_id: ColumnHandle | None,
        begin_handle: ConnectorTableHandle | None,
    ) -> ScanPass:
        """Return a scan of the whole changed table, in page types, with the row id, if any, last.

        In the older flow, ``begin_handle`` is the handle of the begin call.
        """
        open_catalog = self._transaction.opened(binding.catalog)
        handle: Any = begin_handle or binding.handle
        if self._transaction.merge_handle is not None:
            handle = self._transaction.merge_handle.get_table_handle()
        handles = [ColumnHandle(column.name, column.type) for column in binding.columns]
        columns = [*self.own_columns(binding, handles), *([row_id] if row_id is not None else [])]
        schema = pa.schema(
            [*((column.name, column.type.arrow) for column in columns), (POSITION, pa.int64())]
        )
        splits = _splits(open_catalog, self._session, handle, Constraint())
        return ScanPass(
            open_catalog.connector.get_page_source_provider(),
            open_catalog.handle,
            self._session,
            handle,
            splits,
            columns,
            schema,
        )

    # -- writing

    def sinks(self) -> SinkFactory:
        open_catalog, handle = self._transaction.opened_target(), self._transaction.merge_handle
        return SinkFactory(
            open_catalog.connector.get_page_sink_provider(),
            open_catalog.handle,
            self._session,
            handle,
        )

    def page_sinks(self) -> tuple[tuple[int, ...], Callable[[], Any]]:
        open_catalog = self._transaction.opened_target()
        columns = self._transaction.target.columns if self._transaction.target is not None else ()
        required = tuple(i for i, column in enumerate(columns) if not column.nullable)
        provider = open_catalog.connector.get_page_sink_provider()
        return required, PageSinkFactory(
            provider, open_catalog.handle, self._session, self._transaction.insert_handle
        )

    def bucket_function(
        self, layout: ConnectorTableLayout, types: tuple[Type, ...]
    ) -> BucketFunction:
        open_catalog = self._transaction.opened_target()
        if layout.partitioning is None:
            raise ValueError("A layout without a partitioning has no bucket function")
        provider = open_catalog.connector.get_node_partitioning_provider()
        return CheckedBuckets(
            provider.get_bucket_function(
                open_catalog.handle, self._session, layout.partitioning, types
            )
        )


def _page_schema(task: ScanPass, types: Sequence[Type]) -> pa.Schema:
    channels = [
        pa.field(field.name, sql_type.arrow)
        for field, sql_type in zip(task.schema, types, strict=False)
    ]
    return pa.schema([*channels, (POSITION, pa.int64())])


def _fields_named(rows: Any, columns: Sequence[ColumnHandle]) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    nested = {
        index
        for index, column in enumerate(columns)
        if any(part.base == "row" for part in parts_of(column.type))
    }
    if not nested:
        return rows
    kinds = {index: spark_type(without_unknown(columns[index].type)) for index in nested}
    expressions = [F.col(backquoted(name)) for name in rows.columns]
    return rows.select(
        *(
            c.cast(kinds[i]).alias(n) if i in kinds else c
            for i, (n, c) in enumerate(zip(rows.columns, expressions, strict=True))
        )
    )


def _splits(
    open_catalog: OpenCatalog, session: ConnectorSession, handle: Any, constraint: Constraint
) -> Sequence[Any]:
    try:
        return open_catalog.connector.get_split_manager().get_splits(
            open_catalog.handle, session, handle, constraint
        )
    except RowMergeError:
        raise
    except Exception as error:
        raise ExecutionError(
            f"get_splits failed: {error_text(error)}", step="get_splits"
        ) from error
