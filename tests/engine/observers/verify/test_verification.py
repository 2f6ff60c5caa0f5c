"""A second opinion: DuckDB and PostgreSQL run the same statement on the same rows."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError, StatementInterrupted
from rowmerge_nb.engine.observers.verify import engines as verifiers
from rowmerge_nb.engine.observers.verify import verification
from rowmerge_nb.engine.observers.verify.engines import DuckDBVerifier
from rowmerge_nb.engine.observers.verify.translation import (
    UntranslatableError,
    column_type,
    translate,
)
from rowmerge_nb.spi.types import parse_type

TARGET = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "Name": ["a", "b", None],
        "v": pa.array([10, 20, 30], pa.int64()),
    }
)
NEWS = pd.DataFrame({"id": [1, 2, 7], "n": [5, 6, 7]})
MERGE = """MERGE INTO t USING news AS s ON t.id = s.id
WHEN MATCHED AND s.n = 6 THEN DELETE
WHEN MATCHED THEN UPDATE SET v = t.v + s.n
WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new' || 'er')"""
TWICE = """MERGE INTO t USING (VALUES (1, 1), (1, 2)) AS s (id, n) ON t.id = s.id
WHEN MATCHED AND s.n = 1 THEN UPDATE SET v = 1 WHEN MATCHED THEN UPDATE SET v = 2"""

UNREACHABLE = "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1 WHEN MATCHED THEN DELETE"


@pytest.fixture
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark) as made:
        made.register("t", TARGET)
        yield made


def test_duckdb_agrees_and_the_report_confirms_it(engine: Engine) -> None:
    result = engine.run(MERGE, namespace={"news": NEWS}, verify="duckdb")
    assert result.verification is not None
    assert result.verification.state == "agrees"
    assert "Notice: DuckDB agrees: 3 rows changed, 3 rows in t" in str(result)
    assert "DuckDB agrees" in result._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    "sql",
    [
        MERGE,
        "UPDATE memory.default.t SET v = v + 1 WHERE name LIKE 'a%' OR id IN (SELECT id FROM news)",
        "DELETE FROM t WHERE v > 15",
        "INSERT INTO t SELECT id, NULL, n FROM news",
    ],
)
def test_postgresql_agrees_on_every_kind_of_statement(
    engine: Engine, postgresql: str, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.setenv("ROWMERGE_POSTGRES", postgresql)
    verification = engine.run(sql, namespace={"news": NEWS}, verify="postgresql").verification
    assert verification is not None
    assert (verification.state, verification.engine) == ("agrees", "PostgreSQL"), (
        verification.message
    )


def test_a_disagreement_is_reported_with_its_rows_and_the_statement_stays(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = DuckDBVerifier.change
    monkeypatch.setattr(
        DuckDBVerifier,
        "change",
        lambda self, sql: change(self, sql.replace('+ "s"."n"', '- "s"."n"')),
    )
    result = engine.run(MERGE, namespace={"news": NEWS}, verify="duckdb")
    assert result.verification is not None
    assert result.verification.state == "differs"
    assert result.verification.message == (
        "DuckDB differs: 1 row only here: (1, a, 15); 1 row only in DuckDB: (1, a, 5)"
    )
    assert result.count == 3
    assert engine.table("t").num_rows == 3


def test_two_clauses_on_one_row_are_another_rule_not_a_difference(engine: Engine) -> None:
    result = engine.run(TWICE, verify="duckdb")
    assert result.verification is not None
    assert result.verification.state == "other rule"
    assert "duplicates='trino'" in result.verification.message


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("UPDATE t SET v = v / 3", "DuckDB was not asked: a division has different digits there"),
        (
            UNREACHABLE,
            "DuckDB could not run the statement: Parser Error: Unconditional WHEN MATCHED clause",
        ),
    ],
)
def test_an_impossible_comparison_is_reported_and_the_statement_completes(
    engine: Engine, sql: str, message: str
) -> None:
    result = engine.run(sql, verify="duckdb")
    assert result.count == 3
    assert result.verification is not None
    assert result.verification.state == "not compared"
    assert result.verification.message.startswith(message)


def test_the_other_engine_reads_the_rows_of_values_itself(engine: Engine) -> None:
    result = engine.run(
        "INSERT INTO t SELECT id, p, v FROM (VALUES (71, 1, 'x'), (72, 2, 'y')) AS s(id, v, p)",
        verify="duckdb",
    )
    assert result.verification is not None
    assert result.verification.state == "agrees", result.verification.message


def test_a_missing_server_name_is_reported(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROWMERGE_POSTGRES", raising=False)
    verification = engine.run("DELETE FROM t WHERE id = 1", verify="postgresql").verification
    assert verification is not None
    assert "Write --verify postgresql://" in verification.message
    assert "set ROWMERGE_POSTGRES" in verification.message


def test_an_unreachable_server_is_reported_without_its_password(engine: Engine) -> None:
    address = "postgresql://me:secret@127.0.0.1:1/none"
    verification = engine.run("DELETE FROM t WHERE id = 1", verify=address).verification
    assert verification is not None
    assert "does not answer" in verification.message
    assert "secret" not in verification.message


def test_queries_dry_runs_and_failures_have_no_second_opinion(engine: Engine) -> None:
    assert engine.run("SELECT 1", verify="duckdb").verification is None
    assert engine.run("DELETE FROM t", verify="duckdb", dry_run=True).verification is None
    with pytest.raises(RowMergeError) as caught:
        engine.run(TWICE.replace("s.n = 1", "TRUE"), verify="duckdb")
    assert caught.value.result.verification is None


def test_an_unknown_engine_is_refused_before_anything_runs() -> None:
    with pytest.raises(RowMergeError, match="Give duckdb, postgresql or postgresql:"):
        Engine().run("DELETE FROM t", verify="oracle")


def test_duckdb_before_merge_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.setattr(duckdb, "__version__", "1.3.2")
    with pytest.raises(RowMergeError, match=r"DuckDB 1\.3\.2 has no MERGE"):
        verifiers.open_verifier("duckdb")


def test_translation_keeps_trinos_meaning() -> None:
    assert translate("UPDATE t SET d = 2.5E0 WHERE s LIKE 'a%'", "postgresql") == (
        'UPDATE "t" SET "d" = CAST(2.5E0 AS DOUBLE PRECISION) WHERE "s" LIKE \'a%\' ESCAPE \'\''
    )
    with pytest.raises(UntranslatableError, match="greatest and least"):
        translate("UPDATE t SET d = greatest(d, 1)", "postgresql")
    with pytest.raises(UntranslatableError, match="array"):
        column_type(parse_type("array(integer)"), "duckdb")


def test_the_other_engine_is_not_asked_for_the_rows_of_returning(engine: Engine) -> None:
    sql = f"{MERGE} RETURNING merge_action(), old.v"
    result = engine.run(sql, namespace={"news": NEWS}, verify="duckdb", dialect="extended")
    assert result.verification is not None
    assert result.verification.state == "agrees"


def test_an_interrupt_before_the_statement_ends_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for interrupt in (
        KeyboardInterrupt(),
        StatementInterrupted("The statement was interrupted; its Spark work is cancelled"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(verification, "_rows_of", raising(interrupt))
            with pytest.raises(StatementInterrupted) as caught:
                engine.run("UPDATE t SET v = 0", verify="duckdb")
        assert caught.value.changed is False
        assert caught.value.result.trace.state == "failed"
        assert engine.table("t").equals(TARGET)


def test_an_interrupt_after_the_commit_is_reported_with_the_committed_change(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupts = (
        KeyboardInterrupt(),
        StatementInterrupted("cancelled"),
        RuntimeError("Query interrupted"),
    )
    for number, interrupt in enumerate(interrupts):
        with monkeypatch.context() as patched:
            patched.setattr(DuckDBVerifier, "change", raising(interrupt))
            with pytest.raises(StatementInterrupted) as caught:
                engine.run(f"UPDATE t SET v = {number}", verify="duckdb")
        error = caught.value
        assert error.changed is True
        assert error.result.count == 3
        assert (
            error.result.verification.message
            == "DuckDB could not compare: the comparison was interrupted"
        )
        assert engine.table("t")["v"].to_pylist() == [number] * 3


def test_an_interrupt_after_a_rehearsal_reports_no_change(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DuckDBVerifier, "change", raising(KeyboardInterrupt()))
    with pytest.raises(StatementInterrupted) as caught:
        engine.run("UPDATE t SET v = 0", verify="duckdb", rehearse=True)
    assert caught.value.changed is False
    assert engine.table("t").equals(TARGET)


@pytest.mark.trial
@pytest.mark.slow
def test_an_interrupt_within_duckdb_is_recognized() -> None:
    import duckdb

    connection = duckdb.connect()
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises((KeyboardInterrupt, RuntimeError)) as caught:
        connection.execute(
            "SELECT count(*) FROM range(100000000) a(x) JOIN range(1000) b(y) ON sin(x) > y * 2"
        ).fetchall()
    timer.join()
    assert (
        isinstance(caught.value, KeyboardInterrupt)
        or str(caught.value) == verification.DUCKDB_INTERRUPTED
    )


def raising(error: BaseException) -> Any:
    def raises(*_: Any) -> Any:
        raise error

    return raises
