"""The engine's façade: everything that a notebook or a program asks for goes through here."""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rowmerge_nb.connectors.memory.connector import MemoryConnector
from rowmerge_nb.engine.catalog.dataframes import as_arrow, collected, columns_of
from rowmerge_nb.engine.catalog.inputs import interruptible, names_of, statement_text, user_name
from rowmerge_nb.engine.catalog.listing import TableInfo, list_tables
from rowmerge_nb.engine.catalog.names import StatementTables
from rowmerge_nb.engine.catalog.orphans import CatalogOrphans, orphans_of
from rowmerge_nb.engine.catalog.transaction import StatementTransaction
from rowmerge_nb.engine.catalog.views import Views
from rowmerge_nb.engine.errors.position import placed_in
from rowmerge_nb.engine.options import Options
from rowmerge_nb.engine.result import Result
from rowmerge_nb.engine.spark.job import cancel
from rowmerge_nb.engine.spark.quiet import quietly
from rowmerge_nb.engine.spark.types import is_spark_frame
from rowmerge_nb.engine.statements.dispatch import check_flow, run_of, target_name
from rowmerge_nb.engine.statements.rehearsal import compare
from rowmerge_nb.engine.statements.statement import StatementRun, error_record, interrupted_too_late
from rowmerge_nb.engine.verify.verification import begin_verification
from rowmerge_nb.errors import AnalysisError, ConnectorError, ParseError, RowMergeError
from rowmerge_nb.plan.rules import RULES, RuleSettings
from rowmerge_nb.spi.handles import ConnectorSession, SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.sql.analyzer.analysis import (
    Analysis,
    CallAnalysis,
    DefinitionAnalysis,
    ExplainAnalysis,
    ListingAnalysis,
)
from rowmerge_nb.sql.tree.statements import Explain, Span
from rowmerge_nb.trace.nodes import explain_text
from rowmerge_nb.trace.trace import Consequence, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    import pyarrow as pa

    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.sql.tree.statements import Statement
    from rowmerge_nb.trace.comparison import Comparison

__all__ = ["Engine", "TableInfo"]

TableName = tuple[str, str, str]


class Engine:
    """Runs statements on Spark against connectors.

    Args:
        spark: a session of yours, of a cluster or of Spark Connect too; None starts a local one with the first statement. Yours gets its
            settings back after every statement and is never stopped; its executors are sent what they lack.
        catalog: the default catalog; ``memory`` is always there.
        schema: the default schema.
        era, duplicates, dialect, trace, flow: defaults of the options of every statement, see `Options`.
        cores: how many tasks a session of our own runs at the same time; None for all cores.
    """

    def __init__(
        self,
        *,
        spark: Any = None,
        catalog: str = "memory",
        schema: str = "default",
        era: str = "documents",
        duplicates: str = "trino",
        dialect: str = "trino",
        trace: str = "auto",
        flow: str = "merge",
        cores: int | None = None,
        rule_settings: RuleSettings | None = None,
    ) -> None:
        self.options = Options().changed(era=era, duplicates=duplicates, dialect=dialect, trace=trace, flow=flow)
        self.rule_settings = rule_settings or RuleSettings()
        self._default = (catalog.lower(), schema.lower())
        self._memory = MemoryConnector(schemas=("default", self._default[1]) if catalog.lower() == "memory" else ("default",))
        self._views = Views()
        self._connectors: dict[str, Connector] = {"memory": self._memory}
        self._given = spark
        self._cores = cores
        self._future: Future[Any] | None = None
        self._adopted: Any = None
        self._lock = threading.Lock()
        self._running: dict[str, threading.Event] = {}
        self._registered: dict[str, int] = {}
        self._copies: Mapping[TableName, TableName] = {}
        self._closed = False

    # -- Spark ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start Spark in the background, if it is ours and does not run yet; statements wait for it when they need it."""
        with self._lock:
            if self._closed:
                msg = "The engine is closed"
                raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint="Make a new one: Engine().")
            # What kept Spark from starting may have been mended since.
            if self._given is None and (self._future is None or _has_failed(self._future)):
                from rowmerge_nb.engine.spark.session import start_in_background

                self._future = start_in_background(cores=self._cores)

    @property
    def spark(self) -> Any:
        """The Spark session; starts it where needed."""
        if self._given is not None:
            return self._given
        self.start()
        if self._future is None:
            msg = "The engine is closed"
            raise RuntimeError(msg)
        return self._future.result()

    def cancel(self) -> None:
        """Cancel the statements that run now, from another thread; each rolls back and raises StatementInterrupted."""
        for tag, cancelled in list(self._running.items()):
            cancelled.set()
            if self._given is not None or (self._future is not None and self._future.done() and not _has_failed(self._future)):
                cancel(self.spark, tag)

    def close(self) -> None:
        """Free what the engine holds, its tables in memory included; Spark is stopped if it is ours."""
        self._closed = True
        for connector in self._connectors.values():
            connector.close()
        if self._future is not None:
            from rowmerge_nb.engine.spark.session import stop_session

            if self._future.exception() is None:
                stop_session(self._future.result())
            self._future = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- tables ---------------------------------------------------------------------------------------------------

    def add_catalog(self, name: str, connector: Connector) -> None:
        """Make a connector's tables reachable as ``name.schema.table``.

        Raises:
            ConnectorError: ALREADY_EXISTS if there is a catalog of that name.
        """
        if name.lower() in self._connectors:
            msg = f"There is a catalog '{name.lower()}' already"
            raise ConnectorError(msg, code="ALREADY_EXISTS", hint=f"Choose a name other than: {', '.join(self._connectors)}.")
        self._connectors[name.lower()] = connector

    def register(
        self,
        name: str,
        frame: Any,
        *,
        paradigm: Any = None,
        partitioned_by: Sequence[str] = (),
        bucketed_by: Sequence[str] = (),
        bucket_count: int | None = None,
        primary_key: Sequence[str] = (),
        not_null: Sequence[str] = (),
    ) -> None:
        """Make a table in memory out of a DataFrame, or replace one.

        Args:
            name: ``table`` or ``schema.table`` in the catalog ``memory``.
            frame: pandas, Arrow, Spark, or anything with the Arrow stream interface.
            paradigm: row change paradigm; by default DELETE_ROW_AND_INSERT_ROW.
            partitioned_by: columns, or transforms of them, that decide the partition: ``region``, ``bucket(id, 4)``,
                ``truncate(name, 3)``, ``year(day)``, ``month(day)``, ``day(ts)``, ``hour(ts)``.
            bucketed_by: columns whose hash decides the bucket; needs ``bucket_count``.
            bucket_count: how many buckets there are.
            primary_key: columns that identify a row.
            not_null: columns that refuse NULL.

        Raises:
            RowMergeError: a column that is named is not there, a value has no SQL type, or Spark cannot compute the rows of its frame.
        """
        schema, table = self._split_name(name)
        identity = id(frame)
        if is_spark_frame(frame):
            frame = collected(frame)
        data = as_arrow(name, frame)
        known = [column.lower() for column in data.column_names]
        required = {column.lower() for column in (*names_of(not_null), *names_of(primary_key))}
        if missing := sorted(required - set(known)):
            msg = f"'{missing[0]}' is to be NOT NULL, and the table has no such column"
            raise AnalysisError(msg, code="COLUMN_NOT_FOUND", hint=f"Its columns are: {', '.join(data.column_names)}.")
        properties = {
            "paradigm": getattr(paradigm, "name", paradigm),
            "partitioned_by": names_of(partitioned_by),
            "bucketed_by": names_of(bucketed_by),
            "bucket_count": bucket_count,
            "primary_key": names_of(primary_key),
        }
        metadata = ConnectorTableMetadata(
            SchemaTableName(schema, table),
            tuple(ColumnMetadata(column, kind, column.lower() not in required) for column, kind in columns_of(name, data)),
            properties,
        )
        self._memory.put(metadata, data)
        self._registered[f"memory.{schema}.{table}"] = identity

    def table(self, name: str, version: int | None = None) -> pa.Table:
        """Give a table's rows: of memory tables without Spark, and former versions too; of others by a query.

        Args:
            name: the table's name of one to three parts.
            version: number of a former version (memory tables); None for the current one.
        """
        parts = str(name).lower().split(".")
        if len(parts) > 3:
            msg = f"'{name}' has {len(parts)} parts; a table's name has one to three: catalog.schema.table"
            raise RowMergeError(msg, code="INVALID_ARGUMENTS")
        catalog, schema, table = (*self._default[: 3 - len(parts)], *parts)
        if catalog == "memory" and (version is not None or self._memory.has_table(SchemaTableName(schema, table))):
            return self._memory.read(SchemaTableName(schema, table), version)
        result = self.run(f"SELECT * FROM {name}")
        if result.table is None:
            msg = f"A query of {name} gave no rows"
            raise RuntimeError(msg)
        return result.table

    def table_metadata(self, catalog: str, schema: str, table: str) -> ConnectorTableMetadata | None:
        """Give a table's columns and properties; None if there is no such table. Names are in lower case."""
        transaction = self._transaction(self.options)
        try:
            metadata = transaction.metadata(catalog)
            handle = metadata.get_table_handle(transaction.session, SchemaTableName(schema, table))
            return None if handle is None else metadata.get_table_metadata(transaction.session, handle)
        finally:
            transaction.rollback()

    def tables(self) -> list[TableInfo]:
        """Give all tables and views of all catalogs."""
        transaction = self._transaction(self.options)
        try:
            return list_tables(self._connectors, self._views, transaction)
        finally:
            transaction.rollback()

    def orphans(self, *, remove: bool = False) -> list[CatalogOrphans]:
        """Give, per catalog, what statements have left behind whose processes died; of living statements nothing.

        Args:
            remove: remove it.
        """
        return orphans_of(self._connectors, remove=remove)

    # -- statements -----------------------------------------------------------------------------------------------

    def run(self, sql: str, **options: Any) -> Result:
        """Run one statement.

        Args:
            sql: the statement; a trailing semicolon is fine.
            options: see `Options`; ``None`` leaves the engine's default.

        Returns:
            The result; ``str()`` of it is the text report, a notebook shows it in full.

        Raises:
            RowMergeError: the statement is wrong or failed; the tables are as they were. ``error.result`` has what is known.
        """
        from rowmerge_nb.sql.parser.statements import split_statements

        statements = split_statements(statement_text(sql))
        if len(statements) != 1:
            msg = f"run takes one statement; this text has {len(statements)}"
            span = Span.within(sql, statements[1][1], statements[1][1]) if statements else Span(0, 0, 1, 1)
            raise ParseError(msg, hint="Use run_script for several." if statements else "Write a statement.").at(span)
        return self._run_placed(sql, *statements[0], self.options.changed(**options))

    def run_script(self, sql: str, **options: Any) -> list[Result]:
        """Run several statements, separated by semicolons, each in its own transaction.

        Raises:
            RowMergeError: one of them failed; those before it stay done, and the error's hint says which.
        """
        from rowmerge_nb.sql.parser.statements import split_statements

        chosen = self.options.changed(**options)
        statements = split_statements(statement_text(sql))
        results: list[Result] = []
        for number, (text, offset) in enumerate(statements, 1):
            try:
                results.append(self._run_placed(sql, text, offset, chosen))
            except RowMergeError as error:
                error.hint = " ".join(filter(None, [error.hint, _what_stays(number, len(statements), error.changed)])) or None
                raise
        return results

    def compare(self, sql: str, *, by: str, **options: Any) -> Comparison:
        """Run a MERGE, UPDATE or DELETE in two ways on the same rows, side by side; nothing is committed.

        Args:
            sql: the statement.
            by: ``flows`` (the machinery of MERGE and the older flow, for UPDATE and DELETE), ``paradigms`` (both row change paradigms; of a
                store that has one only, on a copy of the target in memory), or ``duplicates`` (both rules for repeated matches).
            options: see `Options`.

        Raises:
            RowMergeError: the statement is wrong, or this cannot be compared. What fails in one way only is part of the comparison.
        """
        return compare(self, sql, by, options)

    def with_copies(self, connectors: Mapping[str, Connector], copies: Mapping[TableName, TableName]) -> Engine:
        """Give an engine over the same session and tables, which has further catalogs, and takes copies in place of tables."""
        self.start()
        self._adopt()
        twin = copy.copy(self)
        twin._connectors, twin._copies = {**self._connectors, **connectors}, copies  # noqa: SLF001 - it is one of us
        return twin

    def explain(self, sql: str, *, kind: str = "DISTRIBUTED", **options: Any) -> Result:
        """Plan a statement without running it.

        Args:
            sql: the statement.
            kind: ``LOGICAL`` for the plan as the documents have it, ``DISTRIBUTED`` for what would run.
            options: see `Options`.
        """
        return self.run(f"EXPLAIN (TYPE {kind}) {sql}", **options)

    def _split_name(self, name: str) -> tuple[str, str]:
        """Split the name of a table in memory into schema and table."""
        parts = str(name).lower().split(".")
        if len(parts) == 3 and parts[0] == "memory":
            parts = parts[1:]
        if len(parts) > 2 or not all(parts):
            msg = f"'{name}' is not a name for a table in memory"
            raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint="Give 'table' or 'schema.table'.")
        return (self._default[1], parts[0]) if len(parts) == 1 else (parts[0], parts[1])

    def _transaction(self, options: Options) -> StatementTransaction:
        properties: dict[str, Any] = {"era": str(options.era)}
        if options.paradigm is not None:
            properties["row_change_paradigm"] = options.paradigm.name
        session = ConnectorSession(f"rowmerge-{uuid.uuid4().hex[:12]}", user_name(), "UTC", properties)
        return StatementTransaction(self._connectors, session, lambda: self.spark)

    def _run_placed(self, sql: str, text: str, offset: int, options: Options) -> Result:
        """Run one statement of a whole text. An interrupt that comes when its change is there already says so."""
        begun: list[StatementRun] = []
        try:
            with placed_in(sql, text, offset):
                return self._run(text, options, begun)
        except KeyboardInterrupt:
            if begun and begun[-1].done is not None:
                raise interrupted_too_late(begun[-1].done) from None
            raise

    def _run(self, text: str, options: Options, begun: list[StatementRun]) -> Result:
        from rowmerge_nb.sql.parser.statements import parse

        try:
            options.step("parse")
            with interruptible("parse"):
                statement = parse(text, dialect=options.dialect)
            if not options.dry_run and not isinstance(statement, Explain):
                # Java comes up while the statement is analyzed, and while a CREATE TABLE is answered without it.
                self.start()
            return self._run_statement(text, statement, options, begun)
        except RowMergeError as error:
            error.statement = error.statement or text
            if error.result is None:
                record = error_record(error, (Consequence("nothing was read or written"),))
                error.result = Result(Trace(statement=text, kind=text.split(None, 1)[0].upper(), state="failed", error=record))
            raise

    def _run_statement(self, text: str, statement: Statement, options: Options, begun: list[StatementRun]) -> Result:
        from rowmerge_nb.sql.analyzer.statements import analyze

        transaction = self._transaction(options)
        tables = StatementTables(
            transaction,
            self._connectors,
            self._default,
            options.namespace,
            lambda: self.spark,
            self._registered,
            self._views,
            self._copies,
        )
        tag = transaction.session.query_id
        self._running[tag] = transaction.cancelled
        try:
            with quietly(), self._adopt():
                options.step("analyze")
                try:
                    with interruptible("analyze"):
                        analysis = analyze(statement, tables, era=options.era, dialect=options.dialect)
                    check_flow(analysis, options)
                except BaseException:
                    with suppress(Exception):
                        transaction.rollback()
                    raise
                if isinstance(analysis, ExplainAnalysis):
                    return self._explain(analysis, transaction, tables, options)
                verification = begin_verification(options, analysis, self._memory, self.run)
                begun.append(self._run_of(analysis, transaction, tables, options))
                result = begun[-1].run()
                return result if verification is None else verification.told(result)
        finally:
            self._running.pop(tag, None)

    def _adopt(self) -> Any:
        if self._given is None:
            return nullcontext()
        if self._adopted is None:
            from rowmerge_nb.engine.spark.session import adopt_session

            self._adopted = adopt_session(self._given)
        return self._adopted

    def _run_of(
        self, analysis: Analysis, transaction: StatementTransaction, tables: StatementTables, options: Options
    ) -> StatementRun:
        name = target_name(analysis)
        common: Mapping[str, Any] = {
            "transaction": transaction,
            "options": options,
            "connector": self._connectors[name[0]].name if name and name[0] in self._connectors else "",
            "spark": lambda: self.spark,
            "row_count": partial(self._row_count, name),
            "notices": tuple(tables.notices),
        }
        if isinstance(analysis, DefinitionAnalysis | ListingAnalysis | CallAnalysis):
            common = {**common, "views": self._views}
        else:
            common = {
                **common,
                "settings": RuleSettings(self.rule_settings.small_rows, self.rule_settings.key_rows, options.rules_off),
            }
        run: StatementRun = run_of(analysis, options)(analysis=analysis, **common)
        return run

    def _row_count(self, name: tuple[str, str, str] | None, version: ConnectorTableVersion | None) -> int | None:
        """Ask for a table's rows in a transaction of its own, as any reader would after the commit.

        Args:
            name: the table.
            version: the version that was committed, others may have come since; None where the connector keeps no versions.

        Raises:
            ConnectorError: TABLE_NOT_FOUND, the version is not there; and whatever else the connector raises.
        """
        if name is None:
            return None
        transaction, table = self._transaction(self.options), SchemaTableName(name[1], name[2])
        try:
            metadata = transaction.metadata(name[0])
            if version is None:
                handle = metadata.get_table_handle(transaction.session, table)
            else:
                handle = metadata.get_versioned_table_handle(transaction.session, table, version)
            if handle is None:
                missing = "" if version is None else f" in version {version.version}"
                msg = f"Table '{table}' is not there{missing}"
                raise ConnectorError(msg, code="TABLE_NOT_FOUND")
            return metadata.row_count(transaction.session, handle)
        finally:
            with suppress(Exception):
                transaction.rollback()

    def _explain(
        self, analysis: ExplainAnalysis, transaction: StatementTransaction, tables: StatementTables, options: Options
    ) -> Result:
        rules_off = frozenset(RULES) if analysis.statement.kind == "LOGICAL" else options.rules_off
        planned = replace(options, dry_run=True, rules_off=rules_off)
        trace = replace(self._run_of(analysis.inner, transaction, tables, planned).run().trace, state="explained")
        return Result(trace, explained="true" if analysis.statement.kind == "VALIDATE" else explain_text(trace.plan))


def _what_stays(number: int, count: int, changed: bool | None) -> str:
    """Say what of several statements is done after an error.

    Args:
        number: the statement that ended with the error, counted from 1.
        count: how many there are.
        changed: whether it has changed something all the same.

    >>> _what_stays(3, 5, changed=False)
    'Statements 1 to 2 stay done; statement 3 of 5 failed.'
    >>> _what_stays(1, 2, changed=True)
    'Statement 1 stays done; statement 2 was not run.'
    """
    done = number if changed else number - 1
    kept = "Statement 1 stays done" if done == 1 else f"Statements 1 to {done} stay done" if done else ""
    if changed:
        rest = (
            "" if number == count else f"statement {number + 1} was not run" if number + 1 == count else "the others were not run"
        )
    else:
        rest = f"statement {number} of {count} failed" if changed is False else f"of statement {number} of {count} nobody knows"
    if count == 1 or (not done and changed is False):
        return ""
    return "; ".join(filter(None, [kept, rest])) + "."


def _has_failed(future: Future[Any]) -> bool:
    return future.done() and future.exception() is not None
