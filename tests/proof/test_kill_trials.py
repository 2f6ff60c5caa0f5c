"""A worker and a driver are killed in the middle of a MERGE; `scripts/kill-trials` does it more often, with larger tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from proof.trials.driver import StoreLocation, digest, initial_rows, merged_rows, news
from proof.trials.kills import Trials, _has_staged, places, table_lines


@pytest.mark.spark
@pytest.mark.trial
@pytest.mark.parametrize("store", ["sqlite", "hive"])
def test_a_table_survives_a_killed_worker_and_a_killed_driver(store: str) -> None:
    with places(store) as place:
        trials = Trials(place, 20_000, 5_000)
        try:
            trials.prepare()
            reports = [trials.workers(1), trials.drivers(1)]
        finally:
            trials.close()
    assert [report.problems for report in reports] == [[], []]
    assert [report.trials for report in reports] == [1, 1]
    assert reports[0].retried + reports[0].failed + reports[0].finished >= 1
    assert len(table_lines(reports)) == 4


def test_tasks_of_hive_have_written_only_once_the_folder_of_their_statement_holds_something(
    tmp_path: Path,
) -> None:
    place = StoreLocation("hive", str(tmp_path))
    statement = tmp_path / "warehouse" / "t" / "_tmp_q7_1"
    statement.mkdir(parents=True)
    assert not _has_staged(place)
    (statement / "0123456789ab").mkdir()
    assert _has_staged(place)


def test_trials_strike_at_any_moment_until_well_after_an_undisturbed_statement_would_end() -> None:
    trials = Trials(StoreLocation("sqlite", "nowhere"), 10, 5)
    try:
        trials._seconds = 2.0
        moments = [trials._moment() for _ in range(1000)]
        late = [trials._moment(0.7) for _ in range(1000)]
    finally:
        trials.close()
    assert 0 < min(moments) < 0.1
    assert 3.1 < max(moments) < 3.2
    assert 300 < sum(moment > 2.0 for moment in moments) < 450
    assert 1.4 < min(late) < 1.5


def test_the_digest_detects_repeated_lost_and_exchanged_values() -> None:
    table = initial_rows(100)
    names = table.column("name").to_pylist()
    exchanged = table.set_column(2, "name", pa.array([names[1], names[0], *names[2:]]))
    others = [pa.concat_tables([table, table.slice(0, 1)]), table.slice(1), exchanged]
    found = {digest(other) for other in others}
    assert len(found) == 3
    assert digest(table) not in found
    assert digest(table.take(list(reversed(range(100))))) == digest(table)
    assert digest(others[0]).ids == digest(others[0]).rows - 1


def test_the_rows_of_a_merge_are_computed_as_by_hand() -> None:
    table = initial_rows(50)
    source = news(table.column("id").to_numpy(), 20, 3)
    merged = {row["id"]: (row["v"], row["name"]) for row in merged_rows(table, source).to_pylist()}
    expected: dict[int, tuple[int, Any]] = {
        row["id"]: (row["v"], row["name"]) for row in table.to_pylist()
    }
    for row in source.to_pylist():
        old = expected.get(row["id"])
        if old is None:
            expected[row["id"]] = (row["v"], row["name"])
        elif row["v"] % 10 == 0:
            del expected[row["id"]]
        else:
            expected[row["id"]] = (old[0] + row["v"], row["name"])
    assert merged == expected


@pytest.mark.parametrize("store", ["sqlite", "postgresql", "hive"])
def test_a_store_knows_its_schema_and_the_requirements_of_a_table(store: str) -> None:
    place = StoreLocation(store, "here")
    assert place.schema in {"main", "public", "default"}
    assert ("primary_key" in place.properties) == (store != "hive")
