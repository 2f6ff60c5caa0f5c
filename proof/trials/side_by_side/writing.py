"""A writer's loop: draw a statement, run it, record its outcome, read the table."""

from __future__ import annotations

import sqlite3
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from proof.trials.driver import read
from proof.trials.local_spark import LocalEngine
from proof.trials.side_by_side.ledger import FAILED, OK, UNKNOWN, Journal, Row, check_rows
from proof.trials.side_by_side.statements import Statement, Writer, own_table
from rowmerge_nb.base.errors import RowMergeError

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector

__all__ = [
    "OurWriter",
    "OutsideWriter",
    "last_lines",
    "open_store",
    "read_rows",
    "run_statement",
    "schema_of",
    "write",
]

_MOST_VERSIONS: Final = 5
_MOST_VIOLATIONS: Final = 20
_BUSY_SECONDS: Final = 60
_TRACED: Final = 0.2
"""The fraction of statements with row traces."""
_OUTSIDE_PAUSE: Final = 0.05


def schema_of(store: str) -> str:
    """Return the schema of a store's tables."""
    return {"sqlite": "main", "postgresql": "public"}.get(store, "default")


def open_store(store: str, where: str) -> Connector:
    """Open a store; Iceberg's maintenance may remove unused files at once."""
    import rowmerge_nb as rm

    connector: Connector
    if store == "sqlite":
        connector = rm.SqliteConnector(f"{where}/shop.db", create=True)
    elif store == "postgresql":
        connector = rm.PostgresConnector(where)
    elif store == "iceberg":
        connector = rm.IcebergConnector(where, min_retention=timedelta(0))
    elif store == "memory":
        connector = rm.MemoryConnector()
    else:
        connector = rm.HiveAcidConnector(where)
    return connector


def read_rows(connector: Connector, store: str, table: str) -> list[Row]:
    """Read a table with our connector."""
    rows = read(connector, schema_of(store), table).select(["id", "owner", "n", "name"])
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


class OurWriter:
    """Runs statements with our engine.

    Args:
        store: the kind of store.
        connector: the store.
    """

    def __init__(self, store: str, connector: Connector) -> None:
        self._store = store
        self._connector = connector
        self._schema = schema_of(store)
        self._engine = LocalEngine(catalog="store", schema=self._schema)
        self._engine.add_catalog("store", connector)

    def run(self, statement: Statement, trace: str) -> None:
        """Run a statement."""
        name = f"store.{self._schema}.{statement.text}"
        if statement.kind == "undo":
            self._engine.undo(name)
        elif statement.kind == "restore":
            self._engine.restore(name, statement.argument)
        elif statement.kind == "remove_orphans":
            self._connector.remove_orphans()
        else:
            namespace = {} if statement.news is None else {"news": statement.news}
            self._engine.run(statement.text, namespace=namespace, trace=trace, dialect="extended")

    def rows(self, table: str) -> list[Row]:
        """Read a table."""
        return read_rows(self._connector, self._store, table)

    def version(self, table: str) -> Any:
        """Return the version of a table; None if the store keeps none."""
        from rowmerge_nb.spi import ConnectorSession, SchemaTableName

        session, transaction = ConnectorSession("look"), self._connector.begin_transaction()
        try:
            metadata = self._connector.get_metadata(transaction)
            handle = metadata.get_table_handle(session, SchemaTableName(self._schema, table))
            version = (
                None
                if handle is None or not metadata.keeps_versions
                else metadata.get_table_version(session, handle)
            )
            return None if version is None else version.version
        finally:
            self._connector.rollback(transaction)


class OutsideWriter:
    """Runs statements of plain SQL with another program's driver.

    Args:
        store: ``sqlite`` or ``postgresql``.
        where: the store.
    """

    def __init__(self, store: str, where: str) -> None:
        if store == "sqlite":
            self._connection: Any = sqlite3.connect(
                f"{where}/shop.db", timeout=_BUSY_SECONDS, isolation_level=None
            )
        else:
            from adbc_driver_postgresql import dbapi

            self._connection = dbapi.connect(where, autocommit=True)

    def run(self, statement: Statement, trace: str) -> None:
        """Run a statement after a pause: plain SQL is so fast that no other statement would
        succeed.
        """
        time.sleep(_OUTSIDE_PAUSE)
        cursor = self._connection.cursor()
        cursor.execute(statement.text)
        cursor.close()

    def rows(self, table: str) -> list[Row]:
        """Read a table."""
        cursor = self._connection.cursor()
        cursor.execute(f"SELECT id, owner, n, name FROM {table}")
        rows = [tuple(row) for row in cursor.fetchall()]
        cursor.close()
        return rows

    def version(self, table: str) -> Any:
        """Return None: there are no versions."""
        return None


def last_lines(error: BaseException) -> str:
    """Return the position where an error was first raised, and the final error."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    frame = traceback.extract_tb(root.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/rowmerge_nb/')[2]}:{frame.lineno}"
    return f"{type(error).__name__}: {error}; first {root!r} at {where}"


def write(
    runner: OurWriter | OutsideWriter,
    writer: Writer,
    number: int,
    journal: Journal,
    seconds: float,
    begin: Callable[[str], object] = lambda _: None,
) -> None:
    """Run statements until the time is over.

    Args:
        runner: runs them.
        writer: draws them.
        number: the writer's number.
        journal: records them.
        seconds: the duration.
        begin: called with the kind of each statement before it begins.
    """
    end, violations = time.monotonic() + seconds, 0
    while time.monotonic() < end and violations < _MOST_VIOLATIONS:
        statement = writer.draw()
        journal.begin(statement.kind, statement.text, statement.effect)
        begin(statement.kind)
        outcome, detail, problem = run_statement(
            runner, statement, "auto" if writer.random.random() < _TRACED else "off"
        )
        if outcome == UNKNOWN:
            outcome = _resolved(runner, statement, writer, number)
        if outcome == OK:
            writer.succeeded(statement)
        journal.end(outcome, detail)
        begin("look")
        problems = [problem] if problem else []
        problems += _checked(runner, statement, writer, number)
        for text in problems:
            journal.violation(f"{statement.kind} ({statement.text[:300]}): {text}")
        violations += len(problems)
        table = own_table(number)
        if (
            outcome == OK
            and statement.effect.table == table
            and (version := runner.version(table)) is not None
        ):
            writer.versions = [*writer.versions, (version, writer.state.rows(table))][
                -_MOST_VERSIONS:
            ]


def run_statement(
    runner: OurWriter | OutsideWriter, statement: Statement, trace: str
) -> tuple[str, str, str]:
    """Run a statement; return its outcome, a word for the summary, and problems."""
    try:
        runner.run(statement, trace)
    except RowMergeError as error:
        outcome = {False: FAILED, True: OK, None: UNKNOWN}[error.changed]
        allowed = error.code in {"TRANSACTION_CONFLICT", *statement.codes} or error.changed is None
        text = "" if allowed else last_lines(error)
        return outcome, "unknown" if error.changed is None else error.code, text
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a violation
        return UNKNOWN, type(error).__name__, last_lines(error)
    return OK, "", ""


def _resolved(
    runner: OurWriter | OutsideWriter, statement: Statement, writer: Writer, number: int
) -> str:
    """Read the table to determine the outcome of a statement."""
    table = statement.effect.table
    if not table:
        return FAILED
    with suppress(Exception):
        actual = {key: value for key, owner, value, _ in runner.rows(table) if owner == number}
        before = dict(writer.state.rows(table))
        after = dict(writer.state.after(statement.effect).rows(table))
        if before != after:
            return {True: OK, False: FAILED}[actual == after]
    return UNKNOWN


def _checked(
    runner: OurWriter | OutsideWriter, statement: Statement, writer: Writer, number: int
) -> list[str]:
    """Read the statement's table: it must have exactly the writer's own rows."""
    table = statement.effect.table or writer.random.choice(("t", own_table(number)))
    try:
        rows = runner.rows(table)
    except Exception as error:  # noqa: BLE001 - whatever it is, the table cannot be read
        return [f"table '{table}' cannot be read: {last_lines(error)}"]
    return check_rows(table, rows, {number: [writer.state]})
