"""Audits of random statements executed by another implementation: there are no false alarms, and every mutation is found."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from proof.audit import MUTATIONS, Committed, main, trials
from proof.engines.committing import Pyiceberg
from proof.engines.spark_iceberg import SparkIceberg
from proof.oracle.oracle import predict
from proof.statements.scenarios import numbered_scenario
from rowmerge_nb import Engine


@pytest.mark.trial
@pytest.mark.spark
def test_statements_of_another_implementation_agree_and_mutations_are_found(spark: Any) -> None:
    with Engine(spark=spark) as engine:
        done = trials(engine, 12, 8, seed=476)
    assert done.false_alarms == []
    assert done.missed == []
    assert (done.agreed, done.found.total()) == (12, 8)


@pytest.mark.trial
@pytest.mark.spark
def test_commits_of_pyiceberg_agree_and_mutations_are_found(spark: Any, tmp_path: Path) -> None:
    with (
        Engine(spark=spark, catalog="lake") as engine,
        closing(Pyiceberg(engine, str(tmp_path / "w"))) as committer,
    ):
        done = trials(engine, 6, 4, seed=477, committer=committer)
    assert done.false_alarms == []
    assert done.missed == []
    assert (done.agreed, done.found.total()) == (6, 4)


@pytest.mark.trial
@pytest.mark.spark
@pytest.mark.skipif(
    "ROWMERGE_ICEBERG_JAR" not in os.environ,
    reason="ROWMERGE_ICEBERG_JAR is not set: there is no Spark with Iceberg",
)
def test_commits_of_spark_agree_or_are_reported(spark: Any, tmp_path: Path) -> None:
    with (
        Engine(spark=spark, catalog="lake") as engine,
        closing(SparkIceberg(engine, str(tmp_path))) as committer,
    ):
        done = trials(engine, 12, 6, seed=478, committer=committer, executed=committer.executed)
    assert done.false_alarms == []
    assert done.missed == []
    assert (done.agreed + len(done.differing), done.found.total()) == (12, 6)


def test_a_missing_spark_with_iceberg_is_reported_with_the_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.delenv("ROWMERGE_ICEBERG_JAR", raising=False)
    assert main(["--by", "spark", "--statements", "1"]) == 2
    assert "ROWMERGE_ICEBERG_JAR the runtime of Iceberg" in capsys.readouterr().err


def test_every_kind_of_mutation_occurs() -> None:
    found = set()
    for number in range(60):
        scenario = numbered_scenario(1, number)
        rows = predict(scenario, "standard").rows
        if rows is not None:
            committed = Committed(
                scenario, [row for row, count in rows for _ in range(count)], Random(number)
            )
            found |= {name for name in MUTATIONS if getattr(committed, name)() is not None}
    assert found == set(MUTATIONS)


@pytest.mark.spark
def test_a_false_alarm_sets_the_exit_code(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("rowmerge_nb.engine.engine.Engine", lambda **_: Engine(spark=spark))
    assert main(["--statements", "1", "--mutations", "0"]) == 0
    assert "1 agree, 0 false alarms" in capsys.readouterr().out
    monkeypatch.setattr(
        "proof.audit._executed",
        lambda _, scenario: ("nobody", [*scenario.target.rows, scenario.target.rows[0]]),
    )
    assert main(["--statements", "1", "--mutations", "0", "--seed", "3"]) == 1
    assert "FALSE ALARM" in capsys.readouterr().err
