"""A Spark whose Java or folder has vanished is detected, its cause is named, and another one is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.base.errors import ExecutionError, SetupError
from rowmerge_nb.base.private import PrivateDirectory
from rowmerge_nb.engine.spark import loss as module
from rowmerge_nb.engine.spark.lazy_session import LazySession
from rowmerge_nb.engine.spark.loss import Home, loss_of, note_failure
from rowmerge_nb.engine.spark.spark_session import adopt_session

ROOT = Path(__file__).resolve().parents[3]


class Context:
    """A Spark context whose Java is another program."""

    _jsc = object()

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._gateway = SimpleNamespace(proc=process)


def session_after(code: str) -> Any:
    """Return a session whose Java has ended as a program of Python does."""
    process = subprocess.Popen([sys.executable, "-c", code])
    process.wait()
    return SimpleNamespace(sparkContext=Context(process), conf=None)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "import os; os.kill(os.getpid(), 9)",
            "its Java process was killed by signal 9 (SIGKILL): by a user or a program, or by",
        ),
        (
            "import os; os.kill(os.getpid(), 15)",
            "its Java process was ended by signal 15 (SIGTERM)",
        ),
        ("raise SystemExit(3)", "its Java process ran out of its own memory"),
        ("raise SystemExit(7)", "its Java process ended with exit code 7"),
    ],
)
def test_the_cause_of_javas_end_is_named(code: str, words: str) -> None:
    assert loss_of(session_after(code)).startswith(words)


def test_the_out_of_memory_killer_is_named_if_the_machine_counts_its_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = tmp_path / "memory.events"
    events.write_text("oom 1\noom_kill 4\n")
    monkeypatch.setattr(module, "_MEMORY_EVENTS", (tmp_path / "none", events))
    session, own = session_after("import os; os.kill(os.getpid(), 9)"), PrivateDirectory()
    module.keep_home(session.sparkContext, own)
    events.write_text("oom 2\noom_kill 5\n")
    assert loss_of(session).endswith("by the system's out-of-memory killer")
    own.remove()


def test_an_emptied_folder_is_detected_by_any_missing_part() -> None:
    own = PrivateDirectory()
    blocks = own.path / "spark" / "spark-1" / "blockmgr-1" / "0a"
    blocks.mkdir(parents=True)
    home = Home(own, None, 0)
    assert home.loss() == ""
    (blocks.parent / "0b").mkdir()
    assert home.loss() == ""
    (blocks.parent / "0b").rmdir()
    assert home.loss() == f"its temporary folder '{own.path}' was emptied"
    own.remove()
    assert Home(own, None, 0).loss() == f"its temporary folder '{own.path}' was emptied"


def test_an_error_of_a_missing_file_of_sparks_condemns_it() -> None:
    own = PrivateDirectory()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        session = SimpleNamespace(sparkContext=Context(process))
        module.keep_home(session.sparkContext, own)
        assert (
            note_failure(session, ValueError("java.nio.file.NoSuchFileException: /data/t.parquet"))
            == ""
        )
        failure = ValueError(f"java.nio.file.NoSuchFileException: {own.path}/spark/blockmgr-1/0c/x")
        assert "was emptied" in note_failure(session, failure)
        assert "was emptied" in loss_of(session)
        process.communicate(b"\n")
    own.remove()


def test_the_error_of_a_statement_names_the_end_of_java_and_what_to_do() -> None:
    session = LazySession(session_after("import os; os.kill(os.getpid(), 9)"))
    error = ExecutionError("Spark could not run the statement")
    error.__cause__ = ConnectionRefusedError("refused")
    session.note_failure(error)
    assert error.code == "REMOTE_HOST_GONE"
    assert error.message.startswith(
        "Spark can no longer be used: its Java process was killed by signal 9"
    )
    assert "your own session, which the engine does not restart" in str(error.hint)


def test_a_users_session_whose_java_has_ended_is_refused_with_what_to_do() -> None:
    engine = Engine(spark=session_after("import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(
        SetupError,
        match="The Spark session of the engine can no longer be used: its Java",
    ) as caught:
        _ = engine.spark
    assert "Engine() creates an engine with its own Spark" in str(caught.value.hint)
    with pytest.raises(SetupError, match="can no longer be used") as caught:
        engine.run("SHOW TABLES")
    assert caught.value.changed is False


def test_a_java_that_ends_while_settings_of_a_users_session_are_set_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = type("Py4JError", (Exception,), {})("An error occurred while calling o267.get")
    session = session_after("import os; os.kill(os.getpid(), 9)")

    def refuse(*_: object) -> None:
        raise lost

    session.conf = SimpleNamespace(get=refuse)
    monkeypatch.setattr(LazySession, "renew", lambda _: None)
    with pytest.raises(
        ExecutionError, match="can no longer be used: its Java process was killed"
    ) as caught:
        Engine(spark=session).run("SHOW TABLES")
    assert caught.value.changed is False


def test_settings_are_not_restored_in_a_session_whose_java_has_ended() -> None:
    session = session_after("import os; os.kill(os.getpid(), 9)")

    def refuse(*_: object) -> None:
        raise ConnectionRefusedError("refused")

    session.conf = SimpleNamespace(
        get=lambda key, default: default, set=lambda key, value: None, unset=refuse
    )
    with adopt_session(session):
        pass


def test_a_failure_unrelated_to_spark_stays_unchanged() -> None:
    lost = LazySession(session_after("import os; os.kill(os.getpid(), 9)"))
    for error in (
        RowMergeError("It is wrong"),
        ExecutionError("It is wrong", code="DIVISION_BY_ZERO"),
        ExecutionError("It is wrong"),
    ):
        error.__cause__ = ValueError("wrong") if error.code == "DIVISION_BY_ZERO" else None
        lost.note_failure(error)
        assert error.message == "It is wrong"


CHILD = """
import os, shutil, signal, sys
import pyarrow as pa
import rowmerge_nb as rm

engine = rm.Engine(cores=1)
engine.register("t", pa.table({"id": [1, 2, 3]}))
engine.run("CREATE VIEW w AS SELECT id FROM t")
engine.run("SET TIME ZONE 'Asia/Tokyo'")
engine.run("PREPARE p FROM SELECT id FROM w WHERE id > ?")
engine.run("UPDATE t SET id = id + 1")

def kill():
    from pyspark import SparkContext
    process = SparkContext._gateway.proc
    process.kill()
    process.wait()

def step(name):
    if name == "run":
        kill()

try:
    engine.run("UPDATE t SET id = id + 1", progress=step)
except rm.RowMergeError as error:
    print(error.changed, error.message[:70])
print(engine.run("UPDATE t SET id = id + 1").count)
folder = os.path.dirname(engine.spark.sparkContext.getConf().get("spark.local.dir"))
shutil.rmtree(folder)
result = engine.run("EXECUTE p USING 3")
print(sorted(row["id"] for row in result.table.to_pylist()), [notice.message.partition(". ")[0].replace(f"'{folder}' ", "") for notice in result.trace.notices])
print(engine.run("SELECT current_timezone() z").table.to_pylist())
kill()
other = rm.Engine(cores=1)
print(other.run("SELECT 1 AS one").table.to_pylist(), engine.run("UPDATE t SET id = id + 1").count)
"""


@pytest.mark.trial
@pytest.mark.spark
def test_statements_continue_after_java_was_killed_or_its_folder_removed() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=False, env=environment
    )
    assert child.stdout.splitlines() == [
        "False Spark can no longer be used: its Java process was killed by signal 9 (",
        "3",
        "[4, 5] ['Spark was started anew: its temporary folder was emptied']",
        "[{'z': 'Asia/Tokyo'}]",
        "[{'one': 1}] 3",
    ], child.stderr
    assert "Traceback" not in child.stderr


def test_computations_before_the_statement_is_read_request_a_usable_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, calls = Engine(), list[str]()
    monkeypatch.setattr(engine._session, "renew", lambda: calls.append("renew"))
    with engine._runner.session.tables_before_parsing(engine.options):
        assert calls == ["renew"]
