"""A table of many small files is read in few tasks: Spark's cost of a task is that of many files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector
from rowmerge_nb.engine.catalog.scans import TASKS_PER_PLACE
from rowmerge_nb.engine.spark.spark_session import places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

FILES = 60
TABLE = "lake.default.t"


@pytest.fixture(params=["iceberg", "hive"])
def engine(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Engine]:
    """Return an engine with a table of 60 partitions, whose files count as large."""
    monkeypatch.setattr("rowmerge_nb.connectors.iceberg.planning.SMALL_BYTES", 0)
    monkeypatch.setattr("rowmerge_nb.connectors.hive_acid.reader.SMALL_BYTES", 0)
    is_hive = request.param == "hive"
    with Engine(spark=spark) as engine:
        engine.add_catalog(
            "lake", HiveAcidConnector(str(tmp_path)) if is_hive else IcebergConnector(str(tmp_path))
        )
        name = "partitioned_by" if is_hive else "partitioning"
        engine.run(
            f"CREATE TABLE {TABLE} WITH ({name} = ARRAY['p']) AS SELECT n AS id, n AS v, n AS p FROM UNNEST(sequence(1, {FILES})) AS s (n)"
        )
        yield engine


@pytest.mark.parametrize(
    ("statement", "options"),
    [
        (f"SELECT count(*) AS n, sum(v) AS v FROM {TABLE}", {"rules_off": {"query_on_pages"}}),
        (f"UPDATE {TABLE} SET v = v + 1 WHERE id > 1", {}),
        (f"UPDATE {TABLE} SET v = v + 1 WHERE id > 1", {"rules_off": {"change_in_task"}}),
        (
            f"MERGE INTO {TABLE} t USING {TABLE} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v + 1",
            {},
        ),
    ],
    ids=["select", "update", "update_by_spark", "merge"],
)
def test_a_table_of_sixty_files_is_read_in_few_tasks(
    engine: Engine, spark: SparkSession, statement: str, options: dict[str, set[str]]
) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    engine.run(statement, **options)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    jobs = [tracker.getJobInfo(job) for job in set(tracker.getJobIdsForGroup(None)) - before]
    stages = [
        tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds
    ]
    assert stages
    assert (
        max(stage.numTasks for stage in stages if stage is not None)
        <= TASKS_PER_PLACE * places(spark)
        < FILES
    )


@pytest.mark.parametrize(
    ("engine", "flow"),
    [("iceberg", "merge"), ("hive", "merge"), ("hive", "updatable")],
    indirect=["engine"],
)
def test_each_of_sixty_files_is_changed(engine: Engine, flow: str) -> None:
    engine.run(f"DELETE FROM {TABLE} WHERE id % 2 = 0", flow=flow)
    left = engine.run(f"SELECT count(*) AS n, sum(id) AS total FROM {TABLE}").table
    assert left is not None
    assert left.to_pylist() == [{"n": FILES // 2, "total": (FILES // 2) ** 2}]
