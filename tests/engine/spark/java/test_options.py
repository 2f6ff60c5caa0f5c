from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.engine.spark import spark_session as module
from rowmerge_nb.engine.spark.java.java_options import available_cores, java_options
from rowmerge_nb.machine import doctor


def test_the_variable_sets_the_number_of_cores(monkeypatch):
    monkeypatch.setenv("ROWMERGE_CORES", "3")
    assert available_cores() == 3


@pytest.mark.parametrize("told", [None, ""])
def test_the_system_counts_the_cores_without_the_variable(monkeypatch, told):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2, 3, 4}, raising=False)
    monkeypatch.delenv("ROWMERGE_CORES", raising=False)
    if told is not None:
        monkeypatch.setenv("ROWMERGE_CORES", told)
    assert available_cores() == 5


@pytest.mark.parametrize("told", ["0", "-1", "two", "1.5", "٢", " 2", "2 "])
def test_an_invalid_number_of_cores_in_the_variable_is_refused(monkeypatch, told):
    monkeypatch.setenv("ROWMERGE_CORES", told)
    with pytest.raises(SetupError, match=f"ROWMERGE_CORES is '{told}'") as caught:
        available_cores()
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert "whole number from 1" in caught.value.hint


def test_the_doctor_reports_that_the_variable_is_wrong(monkeypatch):
    monkeypatch.setenv("ROWMERGE_CORES", "two")
    memory = {check.name: check for check in doctor(start_spark=False)}["memory"]
    assert (memory.state, memory.detail) == ("failed", "The variable ROWMERGE_CORES is 'two'")


@pytest.mark.parametrize(
    ("given", "told", "tasks"), [(None, "12", 12), (5, "12", 5), (None, None, 8)]
)
def test_the_number_of_tasks_is_that_of_the_engine_or_the_variable_or_8_of_the_machine(
    monkeypatch, given, told, tasks
):
    started = []
    monkeypatch.setattr(module, "_running_session", lambda: None)
    monkeypatch.setattr(module, "_start", lambda cores, *_: started.append(cores))
    monkeypatch.setattr(module, "keep_quiet", lambda **_: None)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(32)), raising=False)
    monkeypatch.delenv("ROWMERGE_CORES", raising=False)
    if told:
        monkeypatch.setenv("ROWMERGE_CORES", told)
    module.create_session(cores=given)
    assert started == [tasks]


def test_java_compiles_for_a_quick_start_if_there_are_few_cores(monkeypatch):
    monkeypatch.setenv("ROWMERGE_CORES", "2")
    assert "-XX:TieredStopAtLevel=1" in java_options(available_cores())
    monkeypatch.setenv("ROWMERGE_CORES", "3")
    assert "-XX:TieredStopAtLevel=1" not in java_options(available_cores())
