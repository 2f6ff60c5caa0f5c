from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.engine.spark import spark_session as module
from rowmerge_nb.engine.spark.settings import EXCLUDED_RULES
from rowmerge_nb.engine.spark.spark_session import (
    SESSION_SETTINGS,
    adopt_session,
    create_session,
    start_in_background,
    stop_session,
)

ROOT = Path(__file__).resolve().parents[3]


def in_new_process(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )


def test_a_session_has_the_settings_that_statements_need(spark):
    assert {key: spark.conf.get(key) for key in SESSION_SETTINGS} == dict(SESSION_SETTINGS)


def test_tasks_are_tried_again_in_our_own_session(spark):
    assert spark.sparkContext.master == "local[2,4]"


def test_workers_run_the_python_of_the_driver_and_find_the_package(spark):
    def look(pages):
        import pyarrow as pa

        import rowmerge_nb

        list(pages)
        yield pa.RecordBatch.from_pydict(
            {"executable": [sys.executable], "package": [rowmerge_nb.__file__]}
        )

    rows = (
        spark.range(1)
        .repartition(1)
        .mapInArrow(look, "executable string, package string")
        .collect()
    )
    assert {row.executable for row in rows} == {sys.executable}
    assert {Path(row.package).parent for row in rows} == {ROOT / "rowmerge_nb"}


@pytest.mark.skipif(
    "jemalloc" not in pa.supported_memory_backends(), reason="Arrow has no jemalloc here"
)
def test_workers_use_the_allocator_that_retains_less_memory(spark):
    def look(pages):
        list(pages)
        yield pa.RecordBatch.from_pydict({"allocator": [pa.default_memory_pool().backend_name]})

    rows = spark.range(2).repartition(2).mapInArrow(look, "allocator string").collect()
    assert {row.allocator for row in rows} == {
        os.environ.get("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    }


def test_starting_leaves_the_environment_unchanged(spark):
    assert "SPARK_CONF_DIR" not in os.environ
    assert "rowmerge_nb-" not in os.environ.get("JAVA_HOME", "")


def test_a_second_session_shares_the_context_and_has_its_own_settings_and_views(spark):
    second = create_session(cores=3)
    try:
        assert second is not spark
        assert second.sparkContext is spark.sparkContext
        assert second.conf.get("spark.sql.shuffle.partitions") == "3"
        assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
        second.range(1).createOrReplaceTempView("only_here")
        assert not spark.catalog.tableExists("only_here")
    finally:
        stop_session(second)
    assert spark.range(2).count() == 2


def test_a_session_started_in_the_background_arrives_in_the_future(spark):
    session = start_in_background().result(timeout=60)
    assert session.range(3).count() == 3
    stop_session(session)


def test_an_adopted_session_gets_its_settings_back(spark):
    user = spark.newSession()
    user.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    user.conf.set("spark.sql.ansi.enabled", "false")
    adopted = adopt_session(user)
    with adopted as session, adopted:
        assert session is user
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
        assert session.conf.get("spark.sql.ansi.enabled") == "true"
    assert user.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert user.conf.get("spark.sql.ansi.enabled") == "false"


def test_a_session_excludes_the_optimizer_rules_of_its_user_and_ours(spark):
    ours, rule = (
        SESSION_SETTINGS[EXCLUDED_RULES],
        "org.apache.spark.sql.catalyst.optimizer.CombineConcats",
    )
    assert create_session(conf={EXCLUDED_RULES: rule}).conf.get(EXCLUDED_RULES) == f"{rule},{ours}"
    user = spark.newSession()
    user.conf.set(EXCLUDED_RULES, rule)
    adopted = adopt_session(user)
    with adopted as session, adopted:
        assert session.conf.get(EXCLUDED_RULES) == f"{rule},{ours}"
    assert user.conf.get(EXCLUDED_RULES) == rule


def test_an_adopted_session_gets_its_settings_back_after_an_error(spark):
    user = spark.newSession()
    user.conf.set("spark.sql.adaptive.enabled", "false")
    with pytest.raises(ValueError, match="in the statement"), adopt_session(user):
        raise ValueError("in the statement")
    assert user.conf.get("spark.sql.adaptive.enabled") == "false"


def test_spark_connect_in_the_environment_is_refused_with_advice(monkeypatch):
    from rowmerge_nb.engine.spark import spark_session as module

    monkeypatch.setenv("SPARK_REMOTE", "sc://somewhere")
    with pytest.raises(SetupError, match="Spark Connect") as caught:
        module._start(1, "test", {})
    assert "Engine(spark=" in caught.value.hint


def test_spark_is_restarted_if_its_folder_is_emptied_meanwhile(monkeypatch):
    folders = []

    def start(settings, options, java_home, classes):
        folders.append(java_home.parent)
        assert classes.configuration.parent == java_home.parent
        if len(folders) == 1:
            shutil.rmtree(java_home.parent)
            raise FileNotFoundError(java_home)
        return "a session"

    monkeypatch.setattr(module, "_started", start)
    monkeypatch.setattr(module, "_classes_of", lambda *_: None)
    assert module._start(1, "test", {}) == "a session"
    first, second = folders
    assert not first.exists()
    assert second.exists()


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_without_java_starts_silently_and_leaves_nothing_behind(tmp_path):
    code = (
        "from rowmerge_nb.engine.spark.spark_session import create_session, warm_up\n"
        "session = create_session(cores=1)\n"
        "warm_up(session)\n"
        "print(session.sparkContext.getConf().get('spark.sql.warehouse.dir'))"
    )
    # Tools needed by Spark's start script, and no Java.
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "ps", "sh"):
        program = next(
            (
                Path(folder) / name
                for folder in os.defpath.split(os.pathsep)
                if (Path(folder) / name).is_file()
            ),
            None,
        )
        if program is not None:
            (tools / name).symlink_to(program)
    (tmp_path / "temporary").mkdir()
    done = in_new_process(code, PATH=str(tools), JAVA_HOME="", TMPDIR=str(tmp_path / "temporary"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not Path(done.stdout.strip()).parent.exists()
    assert [
        entry.name
        for entry in (tmp_path / "temporary").iterdir()
        if entry.name.startswith("rowmerge")
    ] == []


def test_two_adopted_sessions_that_end_in_any_order_restore_the_users_settings(spark):
    user = spark.newSession()
    user.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    first, second = adopt_session(user), adopt_session(user)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert user.conf.get("spark.sql.session.timeZone") == "UTC"
    second.__exit__(None, None, None)
    assert user.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"


FORKED = """
import os, rowmerge_nb
from rowmerge_nb.base.errors import RowMergeError

engine = rowmerge_nb.Engine()
engine.run("CREATE TABLE t AS SELECT 1 AS n")
if (child := os.fork()) == 0:
    for copy in (engine, rowmerge_nb.Engine()):
        try:
            copy.run("CREATE TABLE u AS SELECT 2 AS n")
        except RowMergeError as error:
            print(f"{error.code}: {error.message}", flush=True)
    engine.close()
    raise SystemExit(0)
assert os.waitpid(child, 0) == (child, 0)
engine.run("INSERT INTO t VALUES 3")
print([row["n"] for row in engine.run("SELECT n FROM t ORDER BY n").table.to_pylist()])
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_process_that_is_forked_off_neither_uses_nor_stops_the_spark_of_the_other():
    ran = in_new_process(FORKED)
    belongs, shares, rows = ran.stdout.splitlines()
    assert belongs.startswith("INVALID_ARGUMENTS: The engine belongs to process ")
    assert shares.startswith(
        "CONFIGURATION_UNAVAILABLE: This process was forked from a process that runs Spark"
    )
    assert rows == "[1, 3]"
    assert ran.returncode == 0


STOPPED = """
import rowmerge_nb
from pyspark import SparkContext
from pyspark.sql import SparkSession

engine = rowmerge_nb.Engine()
for number, stop in enumerate([lambda: None, lambda: SparkSession.active().stop(), lambda: SparkContext.getOrCreate().stop()]):
    stop()
    engine.run(f"CREATE TABLE t{number} AS SELECT {number} AS n")
    print(engine.run(f"SELECT * FROM t0").table.to_pylist(), rowmerge_nb.Engine().run("VALUES 7").table.num_rows)
given = SparkSession.active()
engine.close()
other = rowmerge_nb.Engine(spark=given)
try:
    given.stop()
    other.run("SELECT 1")
except rowmerge_nb.RowMergeError as error:
    print(f"{error.code}: {error.message}")
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_stopped_spark_is_restarted_and_a_stopped_spark_of_the_user_is_reported():
    ran = in_new_process(STOPPED)
    assert ran.stdout.splitlines() == ["[{'n': 0}] 1"] * 3 + [
        "CONFIGURATION_UNAVAILABLE: The Spark session of the engine has been stopped"
    ]


@pytest.mark.long
def test_a_users_spark_is_not_stopped_that_was_started_after_ours():
    done = in_new_process(
        """
from pyspark.sql import SparkSession
from rowmerge_nb import Engine
first = Engine()
first.spark
first.close()
user = SparkSession.builder.master("local[1]").appName("user").getOrCreate()
second = Engine()
second.spark
second.close()
print(user.range(3).count())
"""
    )
    assert done.stdout.splitlines()[-1:] == ["3"], done.stderr


def test_a_session_without_a_context_of_its_own_serves_an_engine(monkeypatch):
    """Like a session of Spark Connect."""

    class Connected:
        conf = type("Conf", (), {"set": lambda self, key, value: None})()

        def newSession(self):  # noqa: N802 - as Spark has it
            return Connected()

    monkeypatch.setattr(module, "_running_session", Connected)
    monkeypatch.setattr(module, "_own", set())
    assert isinstance(create_session(), Connected)
    assert not module._own


@pytest.mark.long
def test_spark_starts_in_a_folder_that_the_locale_cannot_write(tmp_path):
    home = tmp_path / "Übung 1 ä"
    home.mkdir()
    code = (
        "import rowmerge_nb as rm\n"
        "engine = rm.Engine()\n"
        "engine.run('CREATE TABLE t AS SELECT 1 AS id')\n"
        "engine.run('INSERT INTO t VALUES (2)')\n"
        "print(engine.spark.range(3).count(), engine.table('t').num_rows)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code],
        cwd=home,
        env={**os.environ, "LC_ALL": "POSIX", "CI": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stdout.split() == ["3", "2"], done.stderr[-2000:]
