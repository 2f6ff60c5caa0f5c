"""The engine's façade: everything that a notebook or a program needs."""

from __future__ import annotations

import copy
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rowmerge_nb.base.arguments import checked, checked_name
from rowmerge_nb.base.choices import ROW_CHANGES, ExplainType
from rowmerge_nb.base.errors import AnalysisError, ConnectorError, RowMergeError, error_text
from rowmerge_nb.engine.api.statement_options import Options
from rowmerge_nb.engine.catalog.connecting import Connection, ConnectionRequest, connect
from rowmerge_nb.engine.catalog.engine_catalogs import Catalogs, TableName
from rowmerge_nb.engine.catalog.leftovers import CatalogOrphans, orphans_of
from rowmerge_nb.engine.catalog.listing import TableInfo, list_tables
from rowmerge_nb.engine.observers.user_observers import ObserverRegistry
from rowmerge_nb.engine.reruns.audit.audit_run import MOST_ROWS, Request, audit
from rowmerge_nb.engine.reruns.compared_runs import compare
from rowmerge_nb.engine.reruns.compared_stores import (
    CATALOGS,
    STORES,
    compare_catalogs,
    compare_stores,
)
from rowmerge_nb.engine.reruns.rerun import LEFT_OUT, Again
from rowmerge_nb.engine.reruns.undo import replaced_rows, restore, undo
from rowmerge_nb.engine.sessions.error_positions import behind
from rowmerge_nb.engine.sessions.runner import StatementRunner
from rowmerge_nb.engine.sessions.session import Session
from rowmerge_nb.engine.spark.lazy_session import LazySession
from rowmerge_nb.plan.rules import RuleSettings
from rowmerge_nb.spi.handles import SchemaTableName

if TYPE_CHECKING:
    import datetime as dt
    import os
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.catalog.name_resolution import StatementTables
    from rowmerge_nb.engine.observers.observer import Observer
    from rowmerge_nb.engine.sessions.foreign_translation import Translation
    from rowmerge_nb.engine.sessions.runner import RowReader
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata
    from rowmerge_nb.trace.audit import Audit
    from rowmerge_nb.trace.comparison import Comparison
    from rowmerge_nb.trace.lab import Lab
    from rowmerge_nb.trace.layouts import Layouts
    from rowmerge_nb.trace.store_comparison import StoreComparison
    from rowmerge_nb.trace.trace import Trace

T = TypeVar("T")


class Engine:
    """Runs statements on Spark against connectors.

    Args:
        spark: a session of yours, also of a cluster or of Spark Connect; None starts a local one
            with the first statement that needs it. Your session gets its settings back after every
            statement and is never stopped. Its executors are sent what they lack.
        catalog: the default catalog; ``memory`` always exists.
        schema: the default schema.
        era, duplicates, dialect, trace, flow: defaults of the options of every statement, see
            `Options`.
        cores: the number of parallel tasks of a local session; None for those of the machine, at
            most 8, or of the variable ROWMERGE_CORES.
        observers: instances of subclasses of `rowmerge_nb.Observer`, which get every statement; see
            `add_observer`.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for a value that an argument does not take.
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
        observers: Sequence[Observer] = (),
    ) -> None:
        self.options = Options().changed(
            era=era, duplicates=duplicates, dialect=dialect, trace=trace, flow=flow
        )
        if isinstance(spark, LazySession):
            session = spark
        else:
            form = "a Spark session, or None for one of our own"
            session = LazySession(
                checked(
                    spark, "spark", lambda value: value is None or hasattr(value, "conf"), form
                ),
                cores,
            )
        settings_types = (RuleSettings, type(None))
        checked(
            rule_settings,
            "rule_settings",
            settings_types,
            "rowmerge_nb.plan.rules.RuleSettings(...), or None for the usual sizes",
        )
        self._session = session
        self._catalogs = Catalogs(catalog, schema, lambda: session.current)
        self._runner = StatementRunner(
            Session(self._catalogs, self._session),
            self.options,
            rule_settings or RuleSettings(),
            ObserverRegistry(observers),
        )

    # -- Spark

    def start(self) -> None:
        """Start Spark in the background, if it is ours and does not run yet; statements wait for it
        when they need it.
        """
        self._session.start()

    @property
    def spark(self) -> Any:
        """The Spark session, which starts if necessary."""
        return self._session.spark

    def running_tasks(self) -> tuple[int, int] | None:
        """Return the number of finished tasks of the current Spark stages, and the number of all
        tasks, from any thread.

        None if no stage runs, if Spark has not started, and with Spark Connect.
        """
        return self._session.tasks()

    def running_rows(self) -> int | None:
        """Return how many rows the current Spark stages have read or passed on, whichever is more,
        by their finished tasks, from any thread.

        None if no stage runs or nothing was counted, if Spark has not started, and with Spark
        Connect. Rows that our tasks read from a store count when they are passed on.
        """
        return self._session.rows()

    @property
    def closed(self) -> bool:
        """Whether `close` was called; a closed engine runs nothing."""
        return self._session.closed

    def cancel(self) -> None:
        """Cancel the current statements, from another thread; each rolls back and raises
        StatementInterrupted.
        """
        self._runner.cancel()

    def close(self) -> None:
        """Free what the engine holds, with its tables in memory; Spark stops if it is ours.

        A forked process leaves all that to the process that made the engine.

        Raises:
            ConnectorError: the message names what could not be closed; everything else is.
        """
        self._session.closed = True
        if self._session.is_inherited:
            return
        self._runner.session.transactions.close()
        failures = self._catalogs.close()
        try:
            self._session.stop()
        except Exception as error:  # noqa: BLE001 - it is raised below, with what else could not be closed
            failures["Spark"] = error
        if failures:
            problems = "; ".join(f"{name}: {error_text(error)}" for name, error in failures.items())
            raise ConnectorError(
                f"Not everything could be closed: {problems}",
                code="GENERIC_INTERNAL_ERROR",
                hint="Everything else is closed. What is named here may still hold files"
                " or connections.",
            ) from next(iter(failures.values()))

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- observers

    def add_observer(self, observer: Observer) -> None:
        """Register an observer of all later statements; docs/observers.md has examples.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if it is no `rowmerge_nb.Observer`, or has a method
                that looks like a hook and is none; ALREADY_EXISTS if it is registered already.
        """
        self._runner.observers.add(observer)

    def remove_observer(self, observer: Observer) -> None:
        """Remove an observer, which gets no further statements.

        Raises:
            RowMergeError: NOT_FOUND if it is not registered.
        """
        self._runner.observers.remove(observer)

    # -- tables

    def add_catalog(self, name: str, connector: Connector) -> None:
        """Make a connector's tables available as ``name.schema.table``.

        Raises:
            ConnectorError: ALREADY_EXISTS if there is a catalog of that name.
        """
        self._catalogs.add(name, connector)

    def connect(
        self,
        store: str,
        location: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        **properties: Any,
    ) -> Connection:
        """Add a catalog by the name of its store, as ``%merge connect`` does.

        Unlike `add_catalog`, it also reaches the stores of other packages, and asks the store
        whether it answers. The same connection again changes nothing.

        Args:
            store: ``memory``, ``hive_acid``, ``iceberg``, ``sqlite``, ``postgresql``, ``trino``, or
                a store of an installed package (docs/stores.md).
            location: a path or an address, depending on the store.
            name: the name of the catalog; None for that of the store.
            properties: further properties of the store. ``${ENV:NAME}`` in a text is replaced by an
                environment variable.

        Returns:
            The catalog's name, store and location, without secrets.

        Raises:
            RowMergeError: INVALID_ARGUMENTS for an unknown store or property; ALREADY_EXISTS for
                another catalog of that name; errors of the connector. No message has a secret.
            SetupError: a library of the store is not installed.

        >>> from rowmerge_nb import Engine
        >>> Engine().connect("memory", name="m", keep_versions=2).name
        'm'
        """
        return self.open_connection(ConnectionRequest(store, location, name, properties))

    def open_connection(self, request: ConnectionRequest, *, check: bool = True) -> Connection:
        """Add the catalog of a request; see `connect`. ``check`` asks the store for its schemas."""
        self._session.check_open()
        return connect(self._catalogs, request, check=check)

    def note_unconnected(self, name: str, error: RowMergeError) -> None:
        """Make statements that name a catalog report why it could not be connected."""
        self._catalogs.failures[name.lower()] = error

    def catalogs(self) -> list[Connection]:
        """Return the catalogs, with their stores and locations, without secrets.

        Those of a project's file that could not be connected have a ``problem``.

        >>> from rowmerge_nb import Engine
        >>> [(each.name, each.store) for each in Engine().catalogs()]
        [('memory', 'memory')]
        """
        return self._catalogs.descriptions()

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
        check_constraints: Sequence[str] = (),
    ) -> None:
        """Create or replace a table in memory from a DataFrame.

        If statements have changed the table, a warning names the version to restore.

        Args:
            name: ``table`` or ``schema.table`` in the catalog ``memory``.
            frame: pandas, Arrow, Spark, or anything with the Arrow stream interface.
            paradigm: row change paradigm; by default DELETE_ROW_AND_INSERT_ROW.
            partitioned_by: columns, or transforms of them, that decide the partition: ``region``,
                ``bucket(id, 4)``, ``truncate(name, 3)``, ``year(day)``, ``month(day)``,
                ``day(ts)``, ``hour(ts)``.
            bucketed_by: columns whose hash decides the bucket; needs ``bucket_count``.
            primary_key: columns that identify a row.
            not_null: columns that refuse NULL.
            check_constraints: conditions in SQL over its columns, such as ``"quantity > 0"``, for
                rows that statements store; the rows of the DataFrame are not checked.

        Raises:
            RowMergeError: a named column does not exist, a constraint cannot be parsed, or Spark
                cannot compute the rows of its frame. NOT_SUPPORTED for a value that no SQL type
                holds exactly, COLUMN_TYPE_UNKNOWN for a column without any value.
        """
        table = self._catalogs.memory_table(name)
        version = self._catalogs.memory.current_version(table)
        self._catalogs.register(
            name,
            frame,
            paradigm=paradigm,
            partitioned_by=partitioned_by,
            bucketed_by=bucketed_by,
            bucket_count=bucket_count,
            primary_key=primary_key,
            not_null=not_null,
            check_constraints=check_constraints,
        )
        replacement = None if version is None else replaced_rows(self._runner, table, version)
        if replacement is not None:
            warnings.warn(replacement, UserWarning, stacklevel=2)

    def table(self, name: str, version: int | None = None) -> pa.Table:
        """Return a table's rows: of memory tables without Spark, and former versions too; of others
        by a query.

        Args:
            version: number of a former version, of an Iceberg table the id of a snapshot; None for
                the current one.

        Raises:
            ConnectorError: NOT_FOUND or INVALID_ARGUMENTS for a version that is not kept,
                NOT_SUPPORTED if the store keeps none.
        """
        checked(
            version,
            "version",
            lambda value: value is None or type(value) is int,
            "the number of a version, or None",
        )
        catalog, schema, table = self._catalogs.meant_by(name)
        memory, table_name = self._catalogs.memory, SchemaTableName(schema, table)
        is_outside_transaction = self._runner.session.transactions.current is None
        if (
            catalog == "memory"
            and is_outside_transaction
            and (version is not None or memory.has_table(table_name))
        ):
            return memory.read(table_name, version)
        as_of = "" if version is None else f" FOR VERSION AS OF BIGINT '{version}'"
        result = self.run(f"SELECT * FROM {name}{as_of}")
        if result.table is None:
            raise RuntimeError(f"A query of {name} returned no rows")
        return result.table

    def full_name(self, name: str) -> TableName:
        """Complete a table's name of one to three parts by the default catalog and schema; the
        table need not exist.

        Raises:
            RowMergeError: INVALID_ARGUMENTS for more parts.
        """
        return self._catalogs.full_name(name)

    def table_metadata(
        self, catalog: str, schema: str, table: str
    ) -> ConnectorTableMetadata | None:
        """Return a table's columns and properties; None if there is no such table.

        Names are in lower case.
        """
        name = (
            checked_name(catalog, "catalog", "catalog"),
            checked_name(schema, "schema", "schema"),
            checked_name(table, "table", "table"),
        )
        return self._catalogs.metadata(name, self.options)

    def names(self, *parts: str) -> list[tuple[str, str]]:
        """Return the names that may follow the first parts of a table's name, each with ``table``,
        ``schema`` or ``catalog``.

        Tables and views of a schema are listed without opening them.

        Args:
            parts: none, a catalog or a schema of the default catalog, or a catalog and a schema.
        """
        return self._look(lambda tables: list(tables.below(_parts(parts))))

    def columns(self, *parts: str) -> list[tuple[str, str]] | None:
        """Return the columns of a table or view with their types; None if it does not exist.

        Raises:
            AnalysisError: CATALOG_NOT_FOUND.
        """
        columns = self._look(lambda tables: tables.columns(_parts(parts)))
        return None if columns is None else [(column.name, str(column.type)) for column in columns]

    def procedures(self, *parts: str) -> list[tuple[str, str]]:
        """Return the names that may follow the first parts of a procedure's name, each with what it
        is; below a whole name its arguments.

        Args:
            parts: none, a catalog, a catalog and a schema, or all three.

        >>> from rowmerge_nb import Engine
        >>> Engine().procedures()  # tables in memory have none
        []
        """
        lower_parts = tuple(part.lower() for part in _parts(parts))
        return self._look(lambda tables: list(tables.procedures_below(lower_parts)))

    def table_properties(self, *parts: str) -> list[tuple[str, str]]:
        """Return the properties of ``CREATE TABLE ... WITH`` in the catalog of a table, each with
        its meaning.

        Raises:
            AnalysisError: CATALOG_NOT_FOUND.

        >>> from rowmerge_nb import Engine
        >>> [name for name, _ in Engine().table_properties("t")][:2]
        ['bucket_count', 'bucketed_by']
        """
        return self._look(lambda tables: list(tables.table_properties(_parts(parts))))

    def _look(self, ask: Callable[[StatementTables], T]) -> T:
        transaction = self._catalogs.transaction(self.options)
        try:
            return ask(self._catalogs.tables(transaction, {}))
        finally:
            transaction.rollback()

    def tables(self) -> list[TableInfo]:
        """Return all tables and views of all catalogs."""
        transaction = self._catalogs.transaction(self.options)
        try:
            return list_tables(self._catalogs.connectors, self._catalogs.views, transaction)
        finally:
            transaction.rollback()

    def orphans(self, *, remove: bool = False) -> list[CatalogOrphans]:
        """Return, per catalog, what statements of dead processes have left behind; nothing of
        living statements.

        Raises:
            StatementInterrupted: an interrupt came; the message has what was removed before.
        """
        return orphans_of(self._catalogs.connectors, remove=remove)

    # -- statements

    def run(self, sql: str, **options: Any) -> Result:
        """Run one statement.

        Args:
            options: see `Options`; ``None`` leaves the engine's default.

        Returns:
            The result; ``str()`` of it is the text report, a notebook shows it in full.

        Raises:
            RowMergeError: the statement is wrong or failed; the tables are unchanged.
                ``error.result`` has what is known.
        """
        return self._runner.run(
            sql, self.options.changed(**options), partial(self._again, options=options)
        )

    def run_script(self, sql: str, **options: Any) -> list[Result]:
        """Run several statements, separated by semicolons, each in its own transaction unless START
        TRANSACTION begins one for several.

        Raises:
            RowMergeError: a statement failed; those before it stay done, and the error's hint names
                them.
        """
        return self._runner.run_script(
            sql, self.options.changed(**options), partial(self._again, options=options)
        )

    def look(
        self,
        sql: str,
        options: Options,
        versions: Mapping[TableName, ConnectorTableVersion],
        look: RowReader,
    ) -> Trace:
        """Read the rows that a statement had, see `StatementRunner.read_rows`."""
        return self._runner.read_rows(sql, options, versions, look)

    def _again(self, result: Result, options: Mapping[str, Any]) -> Result:
        if result.trace.kind in ROW_CHANGES:
            # DataFrames that the text does not name are not kept alive.
            text = result.trace.statement
            frames = {
                name: frame
                for name, frame in (options.get("namespace") or {}).items()
                if str(name).lower() in text.lower()
            }
            # The text has the values of its parameters.
            rerun_options = {
                name: value
                for name, value in options.items()
                if name not in LEFT_OUT and name != "parameters"
            }
            # Names without a catalog or schema mean the same after a later USE.
            engine = self._over(copy.copy(self._catalogs))
            result.again = Again(engine, result.trace, text, {**rerun_options, "namespace": frames})
        return result

    def compare(
        self,
        sql: str,
        *,
        by: str,
        catalogs: Sequence[str] | None = None,
        stores: Sequence[str] | None = None,
        **options: Any,
    ) -> Comparison | StoreComparison:
        """Run a MERGE, UPDATE or DELETE in several ways on the same rows, side by side; no table is
        changed.

        Args:
            by: ``flows``: the machinery of MERGE and the older flow, for UPDATE and DELETE.
                ``paradigms``: both row change paradigms; if the store has only one, on a copy of
                the target in memory. ``duplicates``: both rules for repeated matches. Or
                ``catalogs`` or ``stores``.
            catalogs: the catalogs of ``by="catalogs"``: the target is copied into each, the
                statement runs there, and the copies are removed.
            stores: the stores of ``by="stores"``, which are opened in a temporary folder:
                ``memory``, ``hive``, ``iceberg_merge_on_read``, ``iceberg_copy_on_write``,
                ``delta``, ``sqlite``; names of catalogs too. None for all, and for catalogs with plugins of Trino.
            options: see `Options`.

        Raises:
            RowMergeError: the statement is wrong, or cannot be compared. A failure of one side only
                is part of the comparison.
        """
        engine = self._over(self._catalogs)
        for comparison, names in ((CATALOGS, catalogs), (STORES, stores)):
            if by != comparison and names is not None:
                raise RowMergeError.invalid(
                    f"A comparison of {by} takes no {comparison}",
                    hint=f"Omit {comparison}, or pass by='{comparison}'.",
                )
        if by == CATALOGS:
            self._session.check_open()
            return compare_catalogs(engine, self._catalogs.connectors, sql, catalogs, options)
        if by == STORES:
            self._session.check_open()
            return compare_stores(engine, self._catalogs.connectors, sql, stores, options)
        return compare(engine, sql, by, options)

    def lab(
        self,
        sql: str | None = None,
        *,
        grid: Mapping[str, Any] | None = None,
        rows: int = 10_000,
        key: str | None = None,
        seconds: float = 90.0,
        results: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Lab:
        """Run one statement over a grid of stores, layouts and changes, and measure files, bytes and
        writers. All tables are in a temporary folder; yours are only read.

        Args:
            sql: a MERGE, UPDATE or DELETE that reads ``changes``: rows of its target, which the lab
                chooses. None for a statement of the lab on made rows, whose columns ``month`` and
                ``region`` can partition them.
            grid: lists of values by dimension: ``store``, ``share``, ``locality``,
                ``partitioned_by``, ``buckets``, ``sorted``, ``files``, ``statements``,
                ``compact_every``. docs/lab.md describes them.
            rows: the number of rows of each table; larger targets are sampled.
            key: the column that identifies a row; None for that of the primary key, or else the
                first one.
            seconds: the budget. A statement that runs when it ends is cancelled, and so are all
                others of this engine.
            results: a file for the results. A later call with the same statement and rows continues
                it.
            options: see `Options`.

        Returns:
            The finished runs: ``to_pandas()``, ``advice``, ``save_pictures(folder)``.

        Raises:
            RowMergeError: INVALID_ARGUMENTS for an argument that is not possible; the statement is
                wrong. What a store refuses is part of the results.
            StatementInterrupted: ``error.result`` has the runs before.
        """
        from rowmerge_nb.engine.reruns.lab.lab_run import LabRequest, run_lab

        self._session.check_open()
        request = LabRequest(
            sql=sql,
            grid=grid,
            rows=rows,
            key=key,
            seconds=seconds,
            results=results,
            options=options,
        )
        engine = self._over(self._catalogs)
        return run_lab(engine, self._catalogs.connectors, request, self.cancel)

    def layouts(
        self,
        table: str | None,
        statements: Any,
        *,
        layouts: Sequence[str] | None = None,
        most_files: int | None = None,
        **options: Any,
    ) -> Layouts:
        """Return which files of a table statements touch and read, and what other layouts would have
        saved. Nothing is written: statements are rehearsed, or read from traces and records.

        Args:
            table: the name of a table in files, as Delta Lake, Iceberg and Hive have them; None for
                the one that the first statement changes.
            statements: MERGE, UPDATE and DELETE statements of the table: a text, the `pathlib.Path`
                of a file with statements, or of a saved trace or record, or a list of texts,
                paths, results, traces and records.
            layouts: layouts such as ``region``, ``bucket(id, 16)``, ``month(day), region`` or
                ``sorted by id``; None for those that the store can have by one column that a
                statement names.
            most_files: layouts with more files are omitted, unless ``layouts`` names them; None for
                four times the files of the table, at least 16.
            options: see `Options`.

        Raises:
            RowMergeError: INVALID_ARGUMENTS for an argument that is not possible; TABLE_NOT_FOUND;
                NOT_SUPPORTED for a table without files, and for traces and records that lack rows; a
                statement is wrong.

        Returns:
            A row per layout by ``to_pandas()``, and ``sentence`` with the recommendation.
        """
        from rowmerge_nb.engine.reruns.lab.layouts_run import LayoutsRequest, compare_layouts

        self._session.check_open()
        request = LayoutsRequest(table, statements, layouts, most_files, options)
        return compare_layouts(self._over(self._catalogs), self._catalogs.connectors, request)

    def audit(
        self,
        table: str | None = None,
        *,
        before: Any,
        after: Any = None,
        statement: str,
        source: Any = None,
        by: str | Sequence[str] | None = None,
        rows: int = MOST_ROWS,
        **options: Any,
    ) -> Audit:
        """Audit what another engine has committed: whether a table has the rows that a MERGE,
        UPDATE or DELETE must have left.

        The statement is evaluated on the table as it was before; nothing begins or is written in
        any store. The result is compared with the table afterwards, row by row. Files and positions
        do not matter: two tables with the same rows agree.

        Args:
            table: the table's name; None for the statement's target.
            before: the table before the statement: a version's number, a snapshot's id, the name of
                a tag or a branch, a Hive write id, a moment; or its rows, as a DataFrame.
            after: the table afterwards, likewise; None for the current table.
            statement: the statement that the other engine has run.
            source: the states of sources, by the names of tables, or one for all of them; or their
                rows. None for their states when the other engine committed, if their stores know
                that; otherwise their current states, which the audit reports.
            by: the columns that identify a row; None for those that ON reads, or that an UPDATE
                leaves.
            rows: the number of rows of either kind in the audit at most; all are counted.
            options: ``dialect``, ``namespace``, ``progress`` and ``rules_off`` of `Options`.

        Raises:
            RowMergeError: the statement is wrong, or fails on the former table. INVALID_ARGUMENTS
                for a state that does not exist, states in the wrong order or with other columns,
                and another target; TABLE_NOT_FOUND; NOT_SUPPORTED for another statement, and if the
                store keeps no former states.
        """
        return audit(
            self._runner,
            Request(statement, table, before, after, source, by, rows),
            self.options.changed(**options),
            options,
        )

    def with_copies(
        self, connectors: Mapping[str, Connector], copies: Mapping[TableName, TableName]
    ) -> Engine:
        """Return an engine over the same session and tables with further catalogs, and with copies
        in place of tables.
        """
        self.start()
        self._session.adopted()
        return self._over(self._catalogs.with_copies(connectors, copies))

    def apart(
        self, copies: Mapping[TableName, TableName], observers: ObserverRegistry | None = None
    ) -> Engine:
        """Return an engine over the same session with copies in place of tables, and with an undo
        log and transactions of its own.
        """
        twin = self.with_copies({}, copies)
        twin._runner = twin._runner.apart(observers or ObserverRegistry())  # noqa: SLF001 - it is one of us
        return twin

    def _over(self, catalogs: Catalogs) -> Engine:
        twin = copy.copy(self)
        twin._catalogs = catalogs  # noqa: SLF001 - it is one of us
        twin._runner = self._runner.over(catalogs)  # noqa: SLF001 - as above
        return twin

    def undo(self, table: str | None = None) -> Result:
        """Take back the last statement of this engine that has changed a table's rows: INSERT,
        UPDATE, DELETE, MERGE, TRUNCATE, or `restore`.

        The former rows become those of a new version, and nothing is lost. Another call takes back
        the statement before. Only `restore`, with the version that the statement had made, brings
        back what was taken back.

        Returns:
            The result; its notice names the statement and the number of its rows.

        Raises:
            RowMergeError: nothing was taken back. TRANSACTION_CONFLICT if the table has changed
                since, was created again, or has other columns. NOT_FOUND if there is nothing to
                take back. NOT_SUPPORTED if the store keeps no versions, and INVALID_ARGUMENTS if
                it does not keep the former one anymore.
        """
        return undo(self._runner, table)

    def restore(self, table: str, version: int | str | dt.date) -> Result:
        """Restore the rows that a table had in a former version, by a commit of its own; its
        columns are unchanged.

        Args:
            table: the table's name of one to three parts.
            version: its number (tables in memory), the id of a snapshot or the name of a tag or a
                branch (Iceberg), or a moment in the past; a moment without a zone is in UTC.

        Raises:
            RowMergeError: the table is unchanged. INVALID_ARGUMENTS for a version that is not kept,
                TABLE_NOT_FOUND, NOT_SUPPORTED if the store keeps no versions, TRANSACTION_CONFLICT
                if the table has changed meanwhile.
        """
        return restore(self._runner, table, version)

    def explain(self, sql: str, *, kind: str = "DISTRIBUTED", **options: Any) -> Result:
        """Plan a statement without running it.

        Args:
            kind: ``LOGICAL`` for the plan as the documents have it, ``DISTRIBUTED`` for what would
                run.
        """
        checked(sql, "sql", str, "a statement")
        checked(
            kind,
            "kind",
            lambda value: isinstance(value, str) and value.upper() in ExplainType.__members__,
            "'LOGICAL' or 'DISTRIBUTED'",
        )
        prefix = f"EXPLAIN (TYPE {kind}) "
        with behind(prefix, sql):
            return self.run(prefix + sql, **options)

    def translate(self, sql: str, *, dialect: str) -> Translation:
        """Translate a statement of another engine into Trino's words, without running it.

        Args:
            dialect: ``delta``, ``postgresql``, ``duckdb``, ``sqlite``, ``snowflake``,
                ``sqlserver`` or ``oracle``.

        Returns:
            The statement (``sql``), the dialect that it needs here, and the differences.

        Raises:
            RowMergeError: the dialect is unknown, the text cannot be read, or has no translation.
            SetupError: sqlglot is not installed.
        """
        from rowmerge_nb.engine.sessions.foreign_translation import translate_statement

        def table(parts: Sequence[str]) -> ConnectorTableMetadata | None:
            with suppress(RowMergeError):
                self._session.check_open()
                binding = self._look(lambda tables: tables.resolve(parts))
                return None if binding is None else binding.metadata
            return None

        translation = translate_statement(sql, dialect, table)
        problem = self._problem(translation)
        if problem is None:
            return translation
        return replace(translation, differences=(*translation.differences, problem))

    def _problem(self, translation: Translation) -> str | None:
        """Return a sentence on the error of a statement whose tables exist; None without one."""
        from rowmerge_nb.sql.analyzer.statements.statement import analyze
        from rowmerge_nb.sql.parser.statement_reader import parse

        dialect = translation.dialect
        try:
            self._session.check_open()
            statement = parse(translation.sql, dialect=dialect)
            self._look(lambda tables: analyze(statement, tables, dialect=dialect))
        except AnalysisError as error:
            if not error.code.endswith("_NOT_FOUND") or error.code == "COLUMN_NOT_FOUND":
                return f"It fails here: {error.code}: {error.message}."
        except RowMergeError:
            # A closed engine has no tables.
            return None
        return None


def _parts(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        checked(part, f"part {index} of the name", str, "a text")
        for index, part in enumerate(names, 1)
    )
