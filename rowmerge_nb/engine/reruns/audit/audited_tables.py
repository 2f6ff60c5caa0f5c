"""The tables of an audit: the audited one before and after, and the sources at that time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.table_properties import schema_of
from rowmerge_nb.engine.api.frames.dataframes import whole_frame
from rowmerge_nb.engine.reruns.audit.connector import AUDITED, AuditedTables, TableState
from rowmerge_nb.engine.spark.errors.translate import translate
from rowmerge_nb.engine.spark.frames import is_frame
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.java.making import idle_making
from rowmerge_nb.engine.spark.job import collect
from rowmerge_nb.engine.spark.quiet import quietly
from rowmerge_nb.engine.spark.spark_session import usual_partitions
from rowmerge_nb.engine.tasks.arrow import conform, for_spark
from rowmerge_nb.engine.tasks.audit_passes import BLOB, NET, FindPass, HashPass, NetPass
from rowmerge_nb.engine.tasks.bags import Bag
from rowmerge_nb.spi.handles import ConnectorTableVersion, PointerType, SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.api.statement_options import Options
    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.catalog.name_resolution import StatementTables
    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.sessions.runner import StatementRunner
    from rowmerge_nb.engine.tasks.row_hashes import Hashes
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.sql.analyzer.analysis import TableBinding

Point = int | str | dt.date
"""A version of a table: a number, the name of a tag or branch, or a time."""

_BEFORE: Final = SchemaTableName("$before", "rows")
_AFTER: Final = SchemaTableName("$after", "rows")
LOCAL_ROWS: Final = 200_000
"""Up to this many rows in both states are compared on the driver, where Spark's startup would take
longer.
"""
_PART_ROWS: Final = 4_000_000


def version_in_words(point: Any) -> str:
    """Return a state's name for readers.

    >>> version_in_words(3), version_in_words("end-of-may"), version_in_words(None)
    ('version 3', "'end-of-may'", 'the table as it is now')
    """
    if point is None:
        return "the table as it is now"
    if is_frame(point):
        return "the rows that were passed"
    if isinstance(point, int):
        return f"version {point}"
    return f"'{point}'" if isinstance(point, str) else f"{point}"


def version_of(point: Point) -> ConnectorTableVersion:
    temporal = isinstance(point, dt.date)
    return ConnectorTableVersion(point, PointerType.TEMPORAL if temporal else PointerType.TARGET_ID)


def state_of(runner: StatementRunner, name: TableName, point: Any) -> TableState:
    connectors = runner.catalogs.connectors
    if name[0] not in connectors:
        raise ConnectorError(
            f"Catalog '{name[0]}' does not exist",
            code="CATALOG_NOT_FOUND",
            hint=did_you_mean(name[0], list(connectors)) or f"There are: {', '.join(connectors)}.",
        )
    return TableState(
        connectors[name[0]],
        SchemaTableName(*name[1:]),
        None if point is None else version_of(point),
    )


def given_state(
    name: TableName, frame: Any, columns: tuple[ColumnMetadata, ...] | None = None
) -> TableState:
    frame_table = whole_frame(name[2], frame)
    data = frame_table.table if columns is None else _like(frame_table.table, columns)
    columns = frame_table.columns if columns is None else columns
    memory, own_name = MemoryConnector(), SchemaTableName(*name[1:])
    memory.put(ConnectorTableMetadata(own_name, columns, {}), data)
    return TableState(memory, own_name)


def columns_in(
    runner: StatementRunner, state: TableState, options: Options
) -> tuple[ColumnMetadata, ...] | None:
    transaction, session = (
        state.connector.begin_transaction(),
        runner.catalogs.transaction(options).session,
    )
    try:
        metadata = state.connector.get_metadata(transaction)
        handle = state.handle(metadata, session)
        return None if handle is None else metadata.get_table_metadata(session, handle).columns
    finally:
        state.connector.rollback(transaction)


@dataclass
class _Instead(Mapping["TableName", "TableName"]):
    """The tables read in place of those in a statement: the target and the sources as they were.

    Args:
        audited: the audit's tables; sources are added when the statement names them.
        sources: the user's versions or rows by full names; ``()`` for all others.
        moment: the time of the other engine's commit, if known.
    """

    audited: AuditedTables
    target: TableName
    sources: Mapping[tuple[str, ...], Point | TableState]
    moment: dt.datetime | None
    runner: StatementRunner
    options: Options
    notices: list[str]
    known_names: dict[TableName, SchemaTableName | None] = field(default_factory=dict)

    def __getitem__(self, name: TableName) -> TableName:
        if name[0] == AUDITED:
            raise KeyError(name)
        if name not in self.known_names:
            self.known_names[name] = _BEFORE if name == self.target else self._source(name)
        replacement = self.known_names[name]
        if replacement is None:
            raise KeyError(name)
        return AUDITED, replacement.schema, replacement.table

    def __iter__(self) -> Iterator[TableName]:
        return iter(self.known_names)

    def __len__(self) -> int:
        return len(self.known_names)

    def _source(self, name: TableName) -> SchemaTableName | None:
        connector, full_name = self.runner.catalogs.connectors[name[0]], ".".join(name)
        own_name = SchemaTableName(*name[1:])
        here = SchemaTableName(f"{name[0]}.{name[1]}", name[2])
        point = self.sources.get(name, self.sources.get(()))
        if isinstance(point, TableState):
            self.audited.tables[here] = point
            return here
        transaction = connector.begin_transaction()
        try:
            metadata = connector.get_metadata(transaction)
            session = self.runner.catalogs.transaction(self.options).session
            now = metadata.get_table_handle(session, own_name)
            if now is None:
                return None
            if point is not None:
                self.audited.tables[here] = TableState(connector, own_name, version_of(point))
                return here
            if not metadata.keeps_versions:
                self.notices.append(
                    f"{full_name} is read as it is now: its store keeps no versions,"
                    " so it may have changed since."
                )
                return None
            committed = metadata.get_version_time(session, now)
            if self.moment is None or committed is None:
                self.notices.append(
                    f"{full_name} is read as it is now: the time at which the other"
                    " engine read it is unknown."
                )
                return None
            if committed <= self.moment:
                return None
            then = ConnectorTableVersion(self.moment, PointerType.TEMPORAL)
            try:
                metadata.get_versioned_table_handle(session, own_name, then)
            except ConnectorError as error:
                self.notices.append(
                    f"{full_name} has changed since and is read as it is now: {error.message}."
                )
                return None
            self.audited.tables[here] = TableState(connector, own_name, then)
            moment = self.moment.astimezone(dt.UTC)
            self.notices.append(
                f"{full_name} has changed since and is read as of"
                f" {moment:%Y-%m-%d %H:%M:%S} UTC, when the other engine committed."
            )
            return here
        finally:
            connector.rollback(transaction)


class Audited:
    """The audited table before and after, and its sources.

    Raises:
        RowMergeError: a state is unavailable, or the two do not fit.
    """

    def __init__(
        self,
        runner: StatementRunner,
        name: TableName,
        before: TableState,
        after: TableState,
        sources: Mapping[tuple[str, ...], Point | TableState],
        options: Options,
    ) -> None:
        self.notices: list[str] = []
        self.audited = AuditedTables(before.connector.name)
        self.audited.tables |= {_BEFORE: before, _AFTER: after}
        self._name = ".".join(name)
        self._options = options
        self._after = after
        instead = self._instead = _Instead(
            self.audited, name, sources, None, runner, options, self.notices
        )
        catalogs = runner.catalogs.with_copies({AUDITED: self.audited}, instead)
        self._runner = runner.over(catalogs)
        with self._reading() as (transaction, bindings):
            self.columns = tuple((column.name, column.type) for column in bindings[_BEFORE].columns)
            instead.moment = self._check(transaction, bindings)
            self._rows = [binding.row_count for binding in bindings.values()]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def asked(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self._instead.known_names)

    # -- the two states

    def _check(
        self, transaction: StatementTransaction, bindings: Mapping[SchemaTableName, TableBinding]
    ) -> dt.datetime | None:
        before, after = bindings[_BEFORE], bindings[_AFTER]
        columns = [
            [(c.name.lower(), c.type) for c in binding.columns] for binding in (before, after)
        ]
        if columns[0] != columns[1]:
            column_texts = [
                "; ".join(f"{name} {sql_type}" for name, sql_type in side) for side in columns
            ]
            raise ConnectorError.invalid(
                f"Table '{self._name}' has different columns before"
                f" ({column_texts[0]}) and after ({column_texts[1]})",
                hint=(
                    "An audit covers one statement: pass states between which the"
                    " table was not altered."
                ),
            )
        metadata = transaction.metadata(AUDITED)
        then, now = (
            metadata.get_version_time(transaction.session, b.handle)
            for b in (before, after)
            if b.handle is not None
        )
        states = [self.audited.tables[name] for name in (_BEFORE, _AFTER)]
        numbers = [state.version.version for state in states if state.version is not None]
        same = states[0].connector is states[1].connector
        backwards = then is not None and now is not None and now < then
        are_numbered = (
            same and len(numbers) == 2 and all(isinstance(n, int) for n in numbers) and then is None
        )
        if same and (backwards or (are_numbered and numbers[1] < numbers[0])):  # type: ignore[operator]
            raise ConnectorError.invalid(
                f"The state after ({numbers[1] if len(numbers) > 1 else 'now'}) is older than the"
                f" state before ({numbers[0]})",
                hint="Give the older state as before, and the later one as after.",
            )
        return now

    @contextmanager
    def _reading(
        self,
    ) -> Iterator[tuple[StatementTransaction, dict[SchemaTableName, TableBinding]]]:
        catalogs = self._runner.catalogs
        transaction = catalogs.transaction(self._options)
        tables = catalogs.tables(transaction, {})
        with quietly(), idle_making.statement(), self._runner.session.spark_session.adopted():
            try:
                yield transaction, {name: self._binding(tables, name) for name in (_BEFORE, _AFTER)}
            except RowMergeError:
                raise
            except Exception as error:
                raise translate(error, "audit") from error
            finally:
                transaction.rollback()

    def _binding(self, tables: StatementTables, name: SchemaTableName) -> TableBinding:
        binding = tables.resolve((AUDITED, name.schema, name.table))
        if binding is None:
            raise ConnectorError(
                f"Table '{self._name}' does not exist",
                code="TABLE_NOT_FOUND",
                hint="Give frames as before and after, or name a table of the engine.",
            )
        return binding

    # -- what is asked

    @property
    def is_small(self) -> bool:
        return None not in self._rows and sum(rows or 0 for rows in self._rows) <= LOCAL_ROWS

    def run(self, sql: str, **options: Any) -> tuple[Bag, Result]:
        self.audited.change = Bag.none()
        result = self._runner.run(sql, replace(self._options, **options))
        return self.audited.change, result

    def ask(self, sql: str, frames: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        options = replace(
            self._options, rehearse=False, namespace={**self._options.namespace, **frames}
        )
        table = self._runner.run(sql, options).table
        return (
            []
            if table is None
            else list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        )

    def committed(self) -> tuple[int, int, Bag]:
        with self._reading() as (transaction, bindings):
            scans = {
                side: transaction.scans.whole_table(bindings[name])
                for name, side in ((_BEFORE, -1), (_AFTER, 1))
            }
            if self.is_small:
                blobs = [
                    blob
                    for side, scan in scans.items()
                    for blob in HashPass(scan, side, 1).blobs(_read(scan))
                ]
                net_rows = pa.Table.from_batches(NetPass()(blobs), NET)
            else:
                net_rows = self._net(transaction, scans)
        bags = [Bag.from_bytes(cell.as_py()) for cell in net_rows.column("bag")]
        whole = Bag.of(
            np.concatenate([np.zeros(0, np.uint64), *(bag.hashes for bag in bags)]),
            np.concatenate([np.zeros(0, np.int64), *(bag.counts for bag in bags)]),
        )
        return (
            sum(net_rows.column("minus").to_pylist()),
            sum(net_rows.column("plus").to_pylist()),
            whole,
        )

    def _net(self, transaction: StatementTransaction, scans: Mapping[int, ScanPass]) -> pa.Table:
        from pyspark.sql import functions as F  # noqa: N812

        spark, tables = self._runner.session.spark_session.spark, transaction.scans
        rows = sum(count or 0 for count in self._rows)
        parts = max(usual_partitions(spark), -(-rows // _PART_ROWS))
        with interrupts_afterwards():
            before, after = (
                tables.in_tasks(
                    tables.splits_in_tasks(len(scan.splits)), HashPass(scan, side, parts), BLOB
                )
                for side, scan in scans.items()
            )
            rows_by_part = before.unionAll(after).repartitionById(parts, F.col("part"))
            net = tables.in_tasks(rows_by_part, NetPass(), NET)
        return collect(spark, net, transaction.session.query_id, transaction.cancelled)

    def find(
        self,
        *,
        after: bool,
        most: int,
        hashes: Hashes | None = None,
        keys: Hashes | None = None,
        key: Sequence[str] = (),
    ) -> pa.Table:
        places = tuple(self.names.index(name) for name in key)
        with self._reading() as (transaction, bindings):
            scan = transaction.scans.whole_table(bindings[_AFTER if after else _BEFORE])
            schema = pa.schema(
                [
                    pa.field(f"c{i}", for_spark(sql_type.arrow))
                    for i, (_, sql_type) in enumerate(self.columns)
                ]
            )
            task = FindPass(scan, schema, hashes, keys, places, most)
            target_schema = pa.schema(
                [pa.field(name, sql_type.arrow) for name, sql_type in self.columns]
            )
            if self.is_small:
                pages = [
                    pa.RecordBatch.from_arrays(page.columns, schema=target_schema)
                    for page in task.matching_rows(_read(scan))
                ]
                return pa.Table.from_batches(pages, target_schema)
            spark, tables = self._runner.session.spark_session.spark, transaction.scans
            with interrupts_afterwards():
                rows = tables.in_tasks(tables.splits_in_tasks(len(scan.splits)), task, schema)
            rows_found = collect(spark, rows, transaction.session.query_id, transaction.cancelled)[
                :most
            ].combine_chunks()
        if not rows_found.num_rows:
            return target_schema.empty_table()
        arrays = [
            conform(column.combine_chunks(), f.type)
            for column, f in zip(rows_found.columns, target_schema, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=target_schema)


def _read(scan: ScanPass) -> Iterator[pa.RecordBatch]:
    return scan.read(range(len(scan.splits)))


def _like(rows: pa.Table, columns: tuple[ColumnMetadata, ...]) -> pa.Table:
    columns_by_name = {column.lower(): column for column in rows.column_names}
    column_names = [column.name for column in columns]
    if set(columns_by_name) != {column.lower() for column in column_names}:
        raise ConnectorError.invalid(
            "The rows that were passed have the columns"
            f" {', '.join(rows.column_names)}; the table has {', '.join(column_names)}",
            hint="Give rows with all columns of the table, and no others.",
        )
    ordered = rows.select(
        [columns_by_name[column.lower()] for column in column_names]
    ).rename_columns(column_names)
    try:
        return ordered.cast(schema_of(columns))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConnectorError.invalid(
            "The rows that were passed have values that do not fit the table's"
            f" columns: {error_text(error)}",
            hint="Give values of the columns' types.",
        ) from error
