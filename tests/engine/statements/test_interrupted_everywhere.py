"""An interrupt at any moment of any kind of statement is reported truthfully.

The moments are calls of Python functions. A first run counts them, further runs raise the signal at one of them. Half of the moments are
before the call that makes the change durable, half after it.
"""

from __future__ import annotations

import inspect
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError, StatementInterrupted
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.engine.spark.lazy_session import LazySession
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorTableMetadata,
    Procedure,
    ProcedureArgument,
    SchemaTableName,
    parse_type,
)

# A moment may be in a finalizer, of a reference to Java or of a weak set. Python prints and drops errors raised there; the statement ends as
# without them.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ROWS = pa.table({"id": [1, 2, 3], "v": [10, 20, 30]})
MERGE = (
    "MERGE INTO t USING (VALUES (2, 5), (9, 9)) s (id, v) ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
)


class NoSpark(LazySession):
    """A session for statements that need no Spark."""

    def start(self) -> None:
        """Start nothing."""
        self.check_open()


class Shelf(MemoryConnector):
    """A store in memory with a procedure that changes its own state."""

    books: tuple[str, ...] = ()

    def get_procedures(self) -> list[Procedure]:
        return [
            Procedure(
                "system",
                "add_book",
                (ProcedureArgument("title", parse_type("varchar")),),
                self.add_book,
            )
        ]

    def add_book(self, session: Any, title: str) -> None:
        if title == "none":
            raise OSError("the shelf is full")
        self.books = (*self.books, title)


@dataclass
class Moment:
    """Counts calls of functions, and raises the signal at one of them.

    Args:
        at: the number of the call; None to count only.
        behind: calls are counted from the point of no return on.
    """

    at: int | None = None
    behind: bool = False
    before: int = 0
    after: int = 0
    passed: bool = False

    def __call__(self, frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        # An interrupted import is Python's business, and so is a closed generator.
        if event != "call" or "frozen" in code.co_filename or code.co_flags & inspect.CO_GENERATOR:
            return
        self.passed = self.passed or (
            code.co_name == "no_return" and code.co_filename.endswith("interrupts.py")
        )
        self.before += not self.passed
        self.after += self.passed
        if self.passed == self.behind and self.at == (self.after if self.behind else self.before):
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)

    def of(self, run: Callable[[], object]) -> None:
        """Run an action, and count or strike meanwhile."""
        sys.settrace(self)  # type: ignore[arg-type]
        try:
            run()
        finally:
            sys.settrace(None)


class World:
    """An engine with a table, a view, a prepared statement and a procedure."""

    def __init__(self, session: Any, before: str) -> None:
        self.shelf = Shelf()
        self.engine = Engine(spark=session, catalog="own")
        self.engine.add_catalog("own", self.shelf)
        columns = tuple(ColumnMetadata(name, parse_type("bigint")) for name in ROWS.column_names)
        self.shelf.put(ConnectorTableMetadata(SchemaTableName("default", "t"), columns), ROWS)
        self.engine.run("CREATE VIEW w AS SELECT id FROM t")
        self.engine.run("PREPARE p FROM SELECT 1")
        for statement in filter(None, before.split(";")):
            self.engine.run(statement)

    def state(self) -> object:
        """Return all state that statements can change."""
        memory, catalogs = self.engine._runner.session, self.engine._catalogs
        transaction = catalogs.transaction(self.engine.options)
        try:
            session, metadata = transaction.session, transaction.metadata("own")
            views = [metadata.get_view(session, name) for name in metadata.list_views(session)]
            tables = []
            for name in sorted(metadata.list_tables(session), key=str):
                handle = metadata.get_table_handle(session, name)
                assert handle is not None
                tables.append(
                    (
                        metadata.get_table_metadata(session, handle),
                        self.shelf.read(name).sort_by("id").to_pylist(),
                    )
                )
            schemas = sorted(metadata.list_schemas(session))
        finally:
            transaction.rollback()
        in_engine = (
            catalogs.default,
            dict(catalogs.settings),
            dict(memory.prepared),
            memory.transactions.current is not None,
        )
        return str((views, tables, schemas, in_engine, self.shelf.books))


STATEMENTS = {
    "CREATE TABLE": "CREATE TABLE n (id bigint)",
    "CREATE OR REPLACE VIEW": "CREATE OR REPLACE VIEW w AS SELECT v FROM t",
    "CREATE SCHEMA": "CREATE SCHEMA s",
    "DROP TABLE": "DROP TABLE t",
    "DROP VIEW": "DROP VIEW w",
    "DROP SCHEMA": "CREATE SCHEMA s|DROP SCHEMA s CASCADE",
    "ALTER VIEW": "ALTER VIEW w RENAME TO x",
    "ADD COLUMN": "ALTER TABLE t ADD COLUMN w bigint",
    "RENAME": "ALTER TABLE t RENAME TO u",
    "SET PROPERTIES": "ALTER TABLE t SET PROPERTIES check_constraints = ARRAY['v > 0']",
    "COMMENT": "COMMENT ON TABLE t IS 'all of it'",
    "TRUNCATE": "TRUNCATE TABLE t",
    "CALL": "CALL system.add_book('Emma')",
    "SET TIME ZONE": "SET TIME ZONE 'Asia/Tokyo'",
    "RESET SESSION": "SET TIME ZONE 'Asia/Tokyo'|SET TIME ZONE LOCAL",
    "USE": "USE memory.default",
    "PREPARE": "PREPARE q FROM SELECT 2",
    "DEALLOCATE": "DEALLOCATE PREPARE p",
    "EXECUTE": "PREPARE d FROM DROP VIEW w|EXECUTE d",
    "START TRANSACTION": "START TRANSACTION",
    "COMMIT": "START TRANSACTION|COMMIT",
    "ROLLBACK": "START TRANSACTION|ROLLBACK",
    "SHOW": "SHOW TABLES",
    "DESCRIBE": "DESCRIBE t",
    "EXPLAIN": "EXPLAIN DROP TABLE t",
}
"""Statements that need no Spark, by their names; statements before a bar run first."""
ON_SPARK = {
    "MERGE": MERGE,
    "INSERT": "INSERT INTO t VALUES (7, 70)",
    "UPDATE": "UPDATE t SET v = v + 1",
    "DELETE": "DELETE FROM t WHERE id = 2",
    "CREATE TABLE AS": "CREATE TABLE n AS SELECT id FROM t",
    "SELECT": "SELECT * FROM t",
}


def check(
    make: Callable[[], World], run: Callable[[World], object], moments: int, seed: str
) -> None:
    """Interrupt a statement at some moments, and compare its report with the state."""
    counting, world, handler = Moment(), make(), signal.getsignal(signal.SIGINT)
    old = world.state()
    counting.of(lambda: run(world))
    new = world.state()
    chosen = random.Random(seed)
    for number in range(moments):
        behind = bool(number % 2) and counting.after > 0
        at = chosen.randint(1, counting.after if behind else counting.before)
        world = make()
        error, changed = None, True
        try:
            Moment(at, behind).of(lambda world=world: run(world))  # type: ignore[misc]
        except RowMergeError as raised:
            error, changed = raised, raised.changed
        except KeyboardInterrupt:
            # It arrived before the engine had read the statement.
            changed = False
            assert not behind
        what = f"{seed}, call {at} {'behind' if behind else 'before'} the point of no return: {error!r}"
        assert changed is not None, what
        assert world.state() == (new if changed else old), what
        assert error is None or isinstance(error, StatementInterrupted), what
        assert signal.getsignal(signal.SIGINT) is handler
    assert counting.passed == (new != old)


@pytest.mark.parametrize("kind", STATEMENTS)
def test_an_interrupt_at_any_moment_of_a_statement_is_reported_truthfully(kind: str) -> None:
    before, _, statement = STATEMENTS[kind].rpartition("|")
    check(lambda: World(NoSpark(), before), lambda world: world.engine.run(statement), 16, kind)


@pytest.mark.parametrize("kind", ["CREATE OR REPLACE VIEW", "DROP VIEW", "ALTER VIEW"])
def test_an_interrupt_is_reported_truthfully_if_the_engine_keeps_the_view(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryMetadata, "stores_views", False)

    class Kept(World):
        def state(self) -> object:
            return str(self.engine._catalogs.views._views)

    check(lambda: Kept(NoSpark(), ""), lambda world: world.engine.run(STATEMENTS[kind]), 16, kind)


class AtOnce(Shelf):
    """A store that applies every change at once; its commit has no work left."""

    commits_in_finish = True

    def get_metadata(self, transaction_handle: Any) -> Any:
        return _AtOnceMetadata(super().get_metadata(transaction_handle), self, transaction_handle)


class _AtOnceMetadata:
    def __init__(self, metadata: Any, store: AtOnce, handle: Any) -> None:
        self._metadata, self._store, self._handle = metadata, store, handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)

    def drop_table(self, *arguments: Any) -> None:
        self._store._tables.clear()


def test_an_interrupt_is_reported_truthfully_if_a_definition_is_durable_at_once() -> None:
    class Bare(World):
        def __init__(self) -> None:
            self.shelf = AtOnce()
            self.engine = Engine(spark=NoSpark(), catalog="own")
            self.engine.add_catalog("own", self.shelf)
            columns = tuple(
                ColumnMetadata(name, parse_type("bigint")) for name in ROWS.column_names
            )
            self.shelf.put(ConnectorTableMetadata(SchemaTableName("default", "t"), columns), ROWS)

        def state(self) -> object:
            return sorted(map(str, self.shelf._tables))

    check(Bare, lambda world: world.engine.run("DROP TABLE t"), 16, "at once")


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_in_a_procedure_or_right_after_it_reports_the_change(
    monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    world = World(NoSpark(), "")
    add_book = world.shelf.add_book

    def interrupted(session: Any, title: str) -> None:
        if not after:
            signal.raise_signal(signal.SIGINT)
        add_book(session, title)
        if after:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(world.shelf, "add_book", interrupted)
    monkeypatch.setattr(world.shelf, "commits_in_thread", False)
    with pytest.raises(StatementInterrupted) as caught:
        world.engine.run("CALL system.add_book('Emma')")
    assert (caught.value.changed, world.shelf.books) == (True, ("Emma",))
    assert caught.value.result.trace.state == "finished"


def test_the_effect_of_a_procedure_that_raises_its_own_error_is_unknown() -> None:
    world = World(NoSpark(), "")
    with pytest.raises(RowMergeError, match="the shelf is full") as caught:
        world.engine.run("CALL system.add_book('none')")
    assert caught.value.changed is None
    with pytest.raises(RowMergeError) as caught:
        world.engine.run("CALL system.add_book('none', 'nothing')")
    assert caught.value.changed is False


@pytest.mark.parametrize("what", ["undo", "restore"])
def test_an_interrupt_of_undo_is_reported_truthfully(what: str) -> None:
    def run(world: World) -> object:
        before = world.engine._runner.session.undo_log.last(None)
        assert before is not None
        version = before.before
        assert version is not None
        return (
            world.engine.undo("t") if what == "undo" else world.engine.restore("t", version.version)
        )  # type: ignore[arg-type]

    check(lambda: World(NoSpark(), "TRUNCATE TABLE t"), run, 16, what)


@pytest.mark.trial
@pytest.mark.parametrize("kind", ON_SPARK)
def test_an_interrupt_at_any_moment_of_a_statement_on_spark_is_reported_truthfully(
    spark: Any, kind: str
) -> None:
    check(lambda: World(spark, ""), lambda world: world.engine.run(ON_SPARK[kind]), 6, kind)
