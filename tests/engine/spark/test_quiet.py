"""Refusals of Spark are reported by our errors without any output; outside our statements, Spark prints as usual."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.spark import quiet
from rowmerge_nb.engine.spark.quiet import keep_quiet, quietly

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import os, sys
from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.spark.spark_session import create_session
from pyspark.sql import functions as F

def refused(run):
    try:
        run()
    except RowMergeError as error:
        print(error.code)

own = create_session(cores=1)
for engine in (Engine(cores=1), Engine(spark=own.newSession())):
    spark = engine.spark
    quotients = spark.range(2).select((F.lit(1) / F.col("id")).alias("a"))
    spark.range(2).createOrReplaceTempView("gone")
    lost = spark.sql("SELECT id AS a, 1 / id AS q FROM gone")
    spark.catalog.dropTempView("gone")
    engine.run("CREATE TABLE t (a double, b varchar)")
    engine.run("INSERT INTO t VALUES (0, 'x')")
    for sql in ("INSERT INTO t SELECT a, 'x' FROM quotients", "INSERT INTO t SELECT q, 'x' FROM lost",
                "UPDATE t SET a = 1 / CAST(a AS integer)", "UPDATE t SET a = CAST(b AS integer)"):
        refused(lambda: engine.run(sql, namespace={"quotients": quotients, "lost": lost}))
    refused(lambda: engine.register("r", quotients))
    os.environ["REFUSE"] = "1"
    refused(lambda: engine.run("MERGE INTO t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE"))
    del os.environ["REFUSE"]
"""

REFUSING = """
import os
from rowmerge_nb.engine.catalog.scans import Scans
true = Scans.outcome_of
def outcome_of(self, rows, task):
    return self._spark().sql("SELECT nothing FROM nowhere") if "REFUSE" in os.environ else true(self, rows, task)
Scans.outcome_of = outcome_of
"""


@pytest.mark.slow
@pytest.mark.spark
def test_statements_that_spark_refuses_print_nothing() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", REFUSING + PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    codes = [
        *["DIVISION_BY_ZERO"] * 3,
        "INVALID_CAST_ARGUMENT",
        "DIVISION_BY_ZERO",
        "GENERIC_INTERNAL_ERROR",
    ]
    assert done.stdout.split() == codes * 2
    assert done.stderr == ""


def test_logs_of_a_thread_outside_statements_are_logged() -> None:
    from pyspark.logger import PySparkLogger

    keep_quiet()
    keep_quiet()
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logger = PySparkLogger.getLogger(name)
        record = logger.makeRecord(name, 40, __file__, 1, "refused", (), None)
        seen: list[Any] = []
        with quietly():
            with quietly():
                pass
            assert not logger.filter(record)
            other = threading.Thread(
                target=lambda record=record, logger=logger, seen=seen: seen.append(
                    logger.filter(record)
                )
            )
            other.start()
            other.join()
        assert seen != [False]
        assert logger.filter(record)


@pytest.mark.parametrize("is_own", [False, True])
def test_a_lost_connection_is_logged_beside_statements_only_for_another_java(
    is_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "_has_own_java", threading.Event())
    keep_quiet(is_own=is_own)
    root = logging.getLogger()
    record = root.makeRecord("root", 40, "java_gateway.py", 1, "Exception while sending", (), None)
    other = root.makeRecord("root", 40, "elsewhere.py", 1, "Exception", (), None)
    assert bool(root.filter(record)) is not is_own
    assert root.filter(other)
    with quietly():
        assert not root.filter(record)
        assert root.filter(other)


def test_a_frame_whose_rows_spark_cannot_compute_is_refused_by_our_error(spark: Any) -> None:
    engine = Engine(spark=spark)
    with pytest.raises(RowMergeError, match="Division by zero") as caught:
        engine.register("quotients", spark.range(2).selectExpr("1 / id AS a"))
    assert caught.value.code == "DIVISION_BY_ZERO"
