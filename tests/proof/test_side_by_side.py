"""Mixed statements of several writers on every store, with a ledger of the expected rows; `python -m proof.trials.side_by_side` runs longer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proof.trials.side_by_side.ledger import (
    KEYS,
    Effect,
    State,
    check_counters,
    check_rows,
    states_between,
)
from proof.trials.side_by_side.statements import Writer
from proof.trials.side_by_side.trial import STORES
from tests.proof.points_support import skip_without_server

SECONDS = 20
"""The default duration of the trial of each store, all concurrently."""


def begin(store: str, seconds: float) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "proof.trials.side_by_side",
        "--store",
        store,
        "--seconds",
        str(seconds),
    ]
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
    )


def check(trial: subprocess.Popen[str]) -> None:
    output, errors = trial.communicate()
    sys.stdout.write(output)
    assert trial.returncode == 0, f"{output}\n{errors[-3000:]}"


@pytest.fixture(scope="module")
def trials() -> Iterator[dict[str, subprocess.Popen[str]]]:
    begun = {store: begin(store, SECONDS) for store in STORES}
    yield begun
    for trial in begun.values():
        trial.kill()
        trial.communicate()


@pytest.mark.trial
@pytest.mark.parametrize("store", STORES)
def test_nothing_is_lost_doubled_or_unreadable_when_mixed_statements_run_side_by_side(
    trials: dict[str, subprocess.Popen[str]], store: str
) -> None:
    skip_without_server(store)
    check(trials[store])


@pytest.mark.long
@pytest.mark.parametrize("store", STORES)
def test_nothing_is_lost_doubled_or_unreadable_in_ten_minutes_of_mixed_statements(
    store: str,
) -> None:
    skip_without_server(store)
    check(begin(store, 600))


def test_the_ledger_reports_lost_doubled_and_foreign_rows() -> None:
    key = KEYS
    states = {0: [State({"t": {key: 4}}, {0: 1})]}
    shared = [(number, -1, int(number == 0), "abc"[number % 3]) for number in range(4)]
    good = [*shared, (key, 0, 4, "abc"[key % 3])]
    assert check_rows("t", good, states) == []
    assert list(check_counters(good, states)) == []
    assert "lost [1000000]" in check_rows("t", shared, states)[0]
    assert "more than once" in check_rows("t", [*good, good[-1]], states)[0]
    assert "(1000000, 3, 4)" in check_rows("t", [*shared, (key, 0, 3, "abc"[key % 3])], states)[0]
    assert "never written" in check_rows("t", [*shared, (key, 0, 4, "x")], states)[0]
    assert list(check_counters([(0, -1, 2, "a"), *shared[1:]], states)) == [
        "counter 0 is 2, and must be 1 to 1"
    ]


def test_a_statement_that_ended_before_a_read_is_visible_and_one_that_runs_may_be() -> None:
    first = [{"begin": "INSERT", "effect": Effect("t", {1: 1}).to_json()}, {"end": "ok"}]
    second = [{"begin": "DELETE", "effect": Effect("t", {1: None}).to_json()}, {"end": "ok"}]
    failed = [second[0], {"end": "failed"}]

    def rows(
        before: list[dict[str, object]], after: list[dict[str, object]]
    ) -> list[dict[int, int]]:
        return [dict(state.rows("t")) for state in states_between(before, after)]

    assert rows(first, first) == [{1: 1}]
    assert rows(first, [*first, second[0]]) == [{1: 1}, {}]
    assert rows([*first, second[0]], first + second) == [{1: 1}, {}]
    assert rows(first, first + failed) == [{1: 1}]
    assert rows(first + second, first + second) == [{}]


def test_an_undone_statement_leaves_the_rows_of_before() -> None:
    before = State({"t": {1: 1, 2: 2}}, {0: 3})
    effect = Effect("t", {1: None, 2: 5, 3: 1}, {0: 1})
    assert before.after(effect).after(effect.inverse(before.rows("t"))) == before


def test_every_kind_of_statement_of_a_store_is_drawn() -> None:
    writer = Writer("iceberg", 0, 3, 1)
    kinds = set()
    for _ in range(600):
        statement = writer.draw()
        writer.succeeded(statement)
        kinds.add(statement.kind)
    expected = {
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "TRUNCATE",
        "CREATE OR REPLACE",
        "undo",
        "optimize",
        "expire_snapshots",
    }
    assert expected <= kinds
