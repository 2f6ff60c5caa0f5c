"""Statements that wait for another one that changes the same table, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from proof.trials.local_spark import LocalEngine, without_spark
from rowmerge_nb import Engine, StatementInterrupted
from rowmerge_nb.engine.statements import table_turns
from rowmerge_nb.spi import ConnectorSession, SchemaTableName

NAME = SchemaTableName("default", "t")
NEWS = {"news": pa.table({"id": [1], "v": [5]})}
WAITING = (
    "MERGE INTO t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
    "UPDATE t SET v = 1",
    "DELETE FROM t WHERE id = 1",
    "TRUNCATE TABLE t",
    "ALTER TABLE t ADD COLUMN w bigint",
    "ALTER TABLE t SET PROPERTIES check_constraints = ARRAY['id > 0']",
    "COMMENT ON TABLE t IS 'of the shop'",
    "INSERT INTO t VALUES (3, 0)",
)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with without_spark():
        local_engine = LocalEngine()
        local_engine.register("t", pa.table({"id": [1, 2], "v": [0, 0]}))
        yield local_engine
        local_engine.close()


@pytest.fixture
def holder(engine: Engine) -> Iterator[Any]:
    """Yield a function that ends a statement of another thread; the statement has the turn until then."""
    memory = engine._catalogs.memory
    transaction = memory.begin_transaction()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(
            memory.get_metadata(transaction).wait_for_turn, ConnectorSession("q1"), NAME, 0
        ).result()
        yield lambda: memory.rollback(transaction)


def restore_first(engine: Engine) -> Any:
    return engine.restore("t", engine._catalogs.memory.versions(NAME)[0])


def interruption_of(engine: Engine, work: Any) -> BaseException | None:
    """Cancel work until it ends; return its error."""
    with ThreadPoolExecutor(1) as pool:
        statement = pool.submit(work)
        while not statement.done():
            engine.cancel()
        return statement.exception()


@pytest.mark.parametrize("text", [*WAITING, "restore"])
def test_a_waiting_statement_can_be_cancelled(text: str, engine: Engine, holder: Any) -> None:
    def work() -> Any:
        return (
            restore_first(engine)
            if text == "restore"
            else engine.run(text, namespace=NEWS, trace="off")
        )

    error = interruption_of(engine, work)
    assert isinstance(error, StatementInterrupted)
    assert error.changed is False
    assert engine.table("t").to_pydict() == {"id": [1, 2], "v": [0, 0]}
    holder()
    work()


def test_a_statement_whose_turn_never_arrives_continues(
    engine: Engine, holder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_turns, "TURN_SECONDS", 0.0)
    engine.run("INSERT INTO t VALUES (3, 0)")
    engine.run("DELETE FROM t WHERE id = 1")
    assert engine.table("t").column("id").to_pylist() == [2, 3]


def test_a_wait_is_a_step_of_the_progress(engine: Engine, holder: Any) -> None:
    steps: list[str] = []

    def begin(step: str) -> None:
        steps.append(step)
        if step == "wait":
            holder()

    engine.run("DELETE FROM t WHERE id = 1", progress=begin)
    engine.run("INSERT INTO t VALUES (3, 0)", progress=begin)
    assert steps.count("wait") == 1
    assert steps[:4] == ["parse", "analyze", "wait", "analyze"]


@pytest.mark.parametrize("options", [{"dry_run": True}, {"rehearse": True}])
def test_a_statement_that_changes_nothing_has_its_turn_at_once(
    options: dict[str, Any], engine: Engine, holder: Any
) -> None:
    for text in ("INSERT INTO t VALUES (3, 0)", "DELETE FROM t WHERE id = 1"):
        engine.run(text, **options)
    assert engine.table("t").num_rows == 2


def test_a_name_of_too_many_parts_waits_for_nothing(engine: Engine) -> None:
    with pytest.raises(Exception, match="has 4 parts"):
        engine.restore("a.b.c.t", 1)
