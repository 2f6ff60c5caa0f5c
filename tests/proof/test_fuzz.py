"""The fuzzer itself: it is deterministic, detects a wrong engine, and shrinks its findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proof.engines import postgresql
from proof.engines.backends import Oracle
from proof.fuzz import Failure, fuzz, main, smallest
from proof.oracle.oracle import Outcome, predict
from proof.statements.model import MergeStatement, Scenario
from proof.statements.printing import script
from proof.statements.scenarios import numbered_scenario
from rowmerge_nb.base.errors import SetupError


class Forgetful(Oracle):
    """An engine with a defect: it ignores the last clause of a MERGE."""

    name = "forgetful"

    def run(self, scenario: Scenario) -> Outcome:
        statement = scenario.statement
        if isinstance(statement, MergeStatement) and len(statement.clauses) > 1:
            statement = replace(statement, clauses=statement.clauses[:-1])
        return predict(replace(scenario, statement=statement))


def test_a_statement_is_the_same_for_any_set_of_engines() -> None:
    together = [numbered_scenario(3, number) for number in range(20)]
    assert numbered_scenario(3, 17) == together[17]
    assert numbered_scenario(4, 17) != together[17]


def test_all_kinds_of_statement_clause_and_setting_occur() -> None:
    made = [numbered_scenario(1, number) for number in range(300)]
    assert {scenario.kind for scenario in made} == {"MERGE", "UPDATE", "DELETE"}
    merges = [
        scenario.statement for scenario in made if isinstance(scenario.statement, MergeStatement)
    ]
    assert {type(clause.action).__name__ for merge in merges for clause in merge.clauses} == {
        "UpdateAction",
        "DeleteAction",
        "InsertAction",
    }
    assert {len(merge.clauses) for merge in merges} == {1, 2, 3, 4, 5}
    assert len({type(merge.source) for merge in merges}) == 4
    for field in ("paradigm", "era", "duplicates", "trace", "rules"):
        assert len({getattr(scenario.settings, field) for scenario in made}) == 2
    assert any(scenario.settings.partitioned_by for scenario in made)
    assert any(scenario.settings.bucketed_by for scenario in made)
    types = {column.type.base for scenario in made for column in scenario.target.columns}
    assert types == {
        "boolean",
        "integer",
        "bigint",
        "double",
        "decimal",
        "varchar",
        "date",
        "timestamp",
    }


def test_a_wrong_engine_is_detected_and_its_statement_reduced() -> None:
    summary = fuzz(lambda: (Forgetful(), [Oracle()]), range(60), 1)
    assert summary.failures
    assert summary.endings["differ"] == len(summary.failures)
    failure = max(summary.failures, key=lambda found: len(script(found.scenario)))
    small = smallest(failure, Forgetful(), [Oracle()], tries=1000)
    assert isinstance(small.scenario.statement, MergeStatement)
    assert len(small.scenario.statement.clauses) == 2
    assert sum(len(table.rows) for table in small.scenario.tables) <= 2
    assert len(script(small.scenario)) < len(script(failure.scenario))
    assert f"--first {failure.number} --statements 1" in small.text(1)


def test_the_exit_code_reports_differences(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Any
) -> None:
    arguments = ["--engine", "oracle", "--against", "duckdb", "--statements", "12", "--seed", "5"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("12 statements of seed 5")
    monkeypatch.setattr("proof.fuzz.Oracle", Forgetful)
    assert main([*arguments, "--failures-to", str(tmp_path / "failures.sql")]) == 1
    assert "MERGE INTO target" in (tmp_path / "failures.sql").read_text()


def test_an_unknown_reference_is_refused_with_the_available_ones() -> None:
    with pytest.raises(SystemExit, match="there are: oracle, duckdb, postgresql"):
        main(["--against", "sqlite"])


def test_postgresql_without_a_server_names_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "_PLACES", ())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SetupError, match="apt-get install postgresql"):
        postgresql.find_server()


def test_failures_are_written_as_scripts() -> None:
    scenario = numbered_scenario(1, 3)
    written = Failure(3, scenario, ()).text(1).splitlines()
    assert written[0].startswith("-- seed 1, statement 3")
    assert any(line.startswith("CREATE TABLE target") for line in written)
