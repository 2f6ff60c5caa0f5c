"""Every store on clusters with copies of tasks, executors that start and stop, and a killed executor."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clusters.servers import ClusterDriver, executors, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.long]

COPYING = {
    # Executors of one core: two tasks run on two of them, and copies find a host where no attempt runs.
    "spark.executor.cores": "1",
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "1ms",
    # By default, Spark estimates from what tasks have read so far, which it does not see for Python tasks.
    "spark.speculation.efficiency.enabled": "false",
}
"""Tasks that take a little longer than others run twice."""
RESTLESS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
}
"""Executors come and go."""
LOGGED = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
BUCKETS = {
    "hive": "WITH (bucketed_by = ARRAY['id'], bucket_count = 4)",
    "iceberg": "WITH (partitioning = ARRAY['bucket(id, 4)'])",
}
"""Changed rows of such tables go from the joining tasks to the writers of their buckets."""
STORES = ["hive", "sqlite", "postgresql", "iceberg"]


@contextmanager
def cluster_driver(folder: Path, settings: dict[str, str]) -> Iterator[ClusterDriver]:
    (folder / "events").mkdir()
    events = {"spark.eventLog.dir": (folder / "events").as_uri()}
    with (
        standalone_cluster(folder, cores=2) as address,
        ClusterDriver(address, folder, **settings, **LOGGED, **events) as driver,
    ):
        yield driver


@pytest.fixture(scope="module")
def copying(tmp_path_factory):
    with cluster_driver(tmp_path_factory.mktemp("copying"), COPYING) as driver:
        yield driver


@pytest.fixture(scope="module")
def restless(tmp_path_factory):
    with cluster_driver(tmp_path_factory.mktemp("restless"), RESTLESS) as driver:
        yield driver


@pytest.fixture(params=["copying", "restless"])
def driver(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def where(request, tmp_path):
    store = request.getfixturevalue("store")
    return (
        request.getfixturevalue("postgresql") if store == "postgresql" else str(tmp_path / "store")
    )


def made(where: str) -> str:
    if where.startswith("/"):
        Path(where).mkdir(exist_ok=True)
    return where


@pytest.mark.parametrize("store", ["memory", "hive", "sqlite", "postgresql", "iceberg"])
def test_rows_are_stored_once_with_copies_of_tasks_or_changing_executors(driver, store, where):
    if store == "memory":
        assert driver.ask("frames", rows=50_000)["same"]
    else:
        driver.ask("fill", store=store, where=made(where), rows=50_000)
        done = driver.ask("merge", store=store, where=where, rows=50_000)
        assert done == {"same": True, "count": 50_000, "rows": done["rows"], "orphans": []}


@pytest.mark.parametrize("form", ["many tasks", "by keys"])
@pytest.mark.parametrize("store", ["hive", "iceberg"])
def test_rows_sent_to_their_writers_are_stored_once_with_copies_of_tasks(
    driver, store, where, form
):
    driver.ask("fill", store=store, where=made(where), rows=50_000, properties=BUCKETS[store])
    done = driver.ask("merge", store=store, where=where, rows=50_000, form=form)
    assert done == {"same": True, "count": 50_000, "rows": done["rows"], "orphans": []}


def test_tasks_really_have_copies_there(copying, tmp_path):
    where = made(str(tmp_path / "store"))
    copying.ask("fill", store="hive", where=where, rows=50_000, properties=BUCKETS["hive"])
    for _ in range(10):
        copying.ask("merge", store="hive", where=where, rows=50_000, form="many tasks")
        if any(event.get("Task Info", {}).get("Speculative", False) for event in _events(copying)):
            return
    pytest.fail("No task had a copy")


def test_executors_really_start_and_stop_there(restless):
    for _ in range(10):
        assert restless.ask("frames", rows=200_000)["same"]
        # An idle executor stops after a second.
        time.sleep(2)
        events = [event["Event"] for event in _events(restless)]
        if {"SparkListenerExecutorAdded", "SparkListenerExecutorRemoved"} <= set(events):
            return
    pytest.fail("No executor went")


def _events(driver):
    (file,) = (driver.log.parent / "events").iterdir()
    # The last line may be incomplete.
    return [json.loads(line) for line in file.read_text("utf-8").split("\n")[:-1]]


@pytest.mark.parametrize("store", STORES)
def test_every_store_works_by_a_connect_server(connect, store, where):
    connect.ask("fill", store=store, where=made(where), rows=20_000)
    done = connect.ask("merge", store=store, where=where, rows=20_000)
    assert done == {"same": True, "count": 20_000, "rows": done["rows"], "orphans": []}


@pytest.mark.parametrize("form", ["many tasks", "by keys"])
@pytest.mark.parametrize("properties", ["", "buckets"])
@pytest.mark.parametrize("store", ["hive", "iceberg"])
def test_rows_are_stored_once_or_not_at_all_if_an_executor_is_killed_at_any_moment_of_a_merge_of_several_stages(
    tmp_path_factory, store, tmp_path, properties, form
):
    folder = tmp_path_factory.mktemp("killed")
    where = made(str(tmp_path / "store"))
    landed = refused = 0
    with standalone_cluster(folder) as address, ClusterDriver(address, folder) as driver:
        for moment in range(12):
            driver.ask(
                "fill",
                store=store,
                where=where,
                rows=200_000,
                properties=properties and BUCKETS[store],
            )
            known = _files(where)
            driver.order("merge", store=store, where=where, rows=200_000, form=form)
            # From the first file of the first writing stage, in steps beyond the last file of the second. If rows are sent to
            # writers, those come last: every other time, an executor is killed before it has written.
            while not properties or moment % 2:
                if _files(where) - known:
                    break
                time.sleep(0.002)
            time.sleep(0.06 * moment)
            os.kill(executors(folder)[moment % 2], signal.SIGKILL)
            done = driver.answer()
            if "error" in done:
                refused += 1
                assert driver.ask("unchanged", store=store, where=where, rows=200_000), done
            else:
                landed += 1
                assert done == {"same": True, "count": 200_000, "rows": done["rows"], "orphans": []}
            while len(executors(folder)) < 2:
                time.sleep(0.1)
    assert landed, refused


@pytest.mark.parametrize("store", ["hive", "iceberg"])
def test_an_executor_is_killed_in_the_middle_of_a_merge_and_rows_are_there_once(
    tmp_path_factory, store, tmp_path
):
    folder = tmp_path_factory.mktemp("killed")
    where = made(str(tmp_path / "store"))
    with standalone_cluster(folder) as address, ClusterDriver(address, folder) as driver:
        driver.ask("fill", store=store, where=where, rows=200_000)
        known = _files(where)
        driver.order("merge", store=store, where=where, rows=200_000)
        # Its tasks have started to write.
        while not _files(where) - known:
            time.sleep(0.002)
        victim, *_ = executors(folder)
        os.kill(victim, signal.SIGKILL)
        done = driver.answer()
        assert done == {"same": True, "count": 200_000, "rows": done["rows"], "orphans": []}
        assert victim not in executors(folder)


def _files(where: str) -> set[Path]:
    hidden = {".rowmerge_nb-mark-", "metastore.sqlite", "catalog.sqlite"}
    return {
        path
        for path in Path(where).rglob("*")
        if path.is_file() and not path.name.startswith(tuple(hidden))
    }


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "local[2,4]"])
def test_an_engine_works_on_a_session_of_this_machine_that_is_not_its_own(tmp_path_factory, master):
    folder = tmp_path_factory.mktemp("local")
    with standalone_cluster(folder, workers=0), ClusterDriver(master, folder) as driver:
        assert driver.ask("finds_package") == ["None", "None"]
        assert driver.ask("document", store="iceberg")["counts"] == {
            "INSERT": 2,
            "UPDATE": 3,
            "DELETE": 1,
            "none": 0,
        }
        assert driver.ask("frames", rows=100_000)["same"]
