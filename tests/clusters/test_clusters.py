"""Engines on a real standalone cluster and a real Connect server, whose executors do not find the package by themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.clusters.driver import FORMS
from tests.engine.statements.test_merge import AFTER

pytestmark = [pytest.mark.spark, pytest.mark.trial]


def test_executors_do_not_find_the_package_by_themselves(both):
    # Before any statement: without this, the other tests prove nothing.
    assert both.ask("finds_package") == ["None", "None"]


@pytest.mark.parametrize("store", ["memory", "iceberg"])
def test_the_documents_merge_runs_and_the_session_stays_unchanged(both, store):
    before = both.ask("settings")
    done = both.ask("document", store=store)
    assert {tuple(row) for row in done["rows"]} == AFTER
    assert done["counts"] == {"INSERT": 2, "UPDATE": 3, "DELETE": 1, "none": 0}
    assert done["marks"] == []
    assert both.ask("settings") == before


@pytest.mark.parametrize("flow", ["merge", "updatable"])
def test_large_tables_in_memory_and_frames_travel_to_executors(cluster, flow):
    done = cluster.ask("frames", rows=100_000, flow=flow)
    assert done["same"]
    assert done["count"] == (100_000 if flow == "merge" else 50_000)


@pytest.mark.parametrize("form", [*FORMS])
def test_subqueries_are_evaluated_once_and_every_executor_gets_their_answers(cluster, form):
    ids = np.arange(20_000)
    kept = (ids * 7 % 1000)[:10_000].sum() + sum(
        key % 10 + 7 for key in range(10_000, 19_990) if key not in {15_000, 16_000}
    )
    assert cluster.ask("subqueries", form=form) == {
        # The row with the largest bound and later ones are deleted; three of the new rows are bounds and 5000.
        "counts": {"INSERT": 9_997, "UPDATE": 9_990, "DELETE": 10, "none": 3},
        "rows": 20_000 - 10 + 9_997,
        "sum": kept + 9_997,
        "drawn": [9_988, 1],
    }


def test_a_connector_of_a_notebooks_cell_works(cluster):
    assert cluster.ask("cell") == [[1, 1.0], [2, 20.0], [3, 30.0]]


def test_a_connectors_module_is_sent_and_sent_again_when_it_has_changed(cluster):
    names, place = cluster.ask("module", source="NAMES = ['first']\n")
    assert names == ["first"]
    assert cluster.ask("module", source="NAMES = ['second', 'edition']\n") == [
        ["second", "edition"],
        place,
    ]
    # Modules that were sent before are reused.
    assert cluster.ask("module", source="NAMES = ['first']\n") == [["first"], place]


@pytest.mark.skipif(
    not Path("/proc/self/cwd").exists(),
    reason="a path that is another one in every process is Linux's",
)
def test_a_store_at_another_location_for_executors_is_refused_before_a_sink_is_created(cluster):
    refused = cluster.ask("unshared")
    assert refused["code"] == "CONFIGURATION_INVALID"
    assert "does not see the store's directory" in refused["error"]
    assert refused["error"].endswith(
        "Use a store directory that driver and executors share, under the same path."
    )
    assert "create_page_sink" not in refused["calls"]
    assert refused["marks"] == []


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
def test_a_statement_is_interrupted_and_nothing_is_changed(cluster, how):
    assert cluster.ask("interrupted", how=how) == {"code": "USER_CANCELED", "same": True}
