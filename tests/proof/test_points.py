"""A fault at some operations of every statement on every store, always the same ones; ``--long`` and `scripts/kill-trials --every-point` try more."""

from __future__ import annotations

import pytest

from proof.trials.points.statements import STATEMENTS, statements_of
from proof.trials.points.stores import STORES
from proof.trials.points.trials import _distinct
from proof.trials.points.watch import Fault, Operation, Point, Watch
from tests.proof.points_support import points, skip_without_server

SAMPLES = {"memory": 8, "hive": 9, "iceberg": 9, "delta": 9, "sqlite": 8, "postgresql": 3}
"""The default number of faults tried in a MERGE."""
OTHERS = {"memory": 1, "hive": 1, "iceberg": 1, "delta": 1, "sqlite": 1, "postgresql": 1}
"""The default number of faults tried in every second of the other statements."""
MANY = 200


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    skip_without_server(request.param)
    return request.param


@pytest.mark.trial
def test_the_store_is_as_before_or_after_and_reports_are_true_after_a_fault_at_some_points_of_a_merge(
    store: str,
) -> None:
    points("--stores", store, "--statements-of", "MERGE", "--sample", str(SAMPLES[store]))


@pytest.mark.trial
def test_after_a_fault_at_some_points_of_a_statement_the_store_is_as_before_or_after(
    store: str,
) -> None:
    others = [statement.name for statement in statements_of(store) if statement.name != "MERGE"]
    # The statements omitted by one store are those of the next one.
    every_second = ",".join(others[list(STORES).index(store) % 2 :: 2])
    points("--stores", store, "--statements-of", every_second, "--sample", str(OTHERS[store]))


@pytest.mark.trial
def test_an_interrupt_at_some_lines_after_the_finish_call_is_reported_truthfully() -> None:
    points("--stores", "hive", "--lines", "--sample", "12")


@pytest.mark.long
def test_an_interrupt_at_any_line_after_the_finish_call_is_reported_truthfully(
    store: str,
) -> None:
    points("--stores", store, "--lines", "--sample", "700")


@pytest.mark.long
@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_store_is_as_before_or_after_and_reports_are_true_after_a_fault_at_many_points(
    store: str, statement: str
) -> None:
    if store not in STATEMENTS[statement].stores:
        pytest.skip(f"{store} has no {statement}")
    points("--stores", store, "--statements-of", statement, "--sample", str(MANY))


def test_the_samples_cover_every_store() -> None:
    assert list(SAMPLES) == list(OTHERS) == list(STORES)


def operation(name: str, *, lasts: bool) -> Operation:
    return Operation(name, "/t/x", lambda: OSError(5, "Input/output error", "/t/x"), lasts)


@pytest.mark.parametrize(
    ("kind", "code", "later"),
    [
        ("error", 5, set()),
        ("lasting", 5, {"os.rename"}),
        ("read-only", 30, {"os.rename"}),
        ("descriptors", 24, {"open"}),
    ],
)
def test_a_fault_that_lasts_strikes_at_later_operations_of_its_kind(
    kind: str, code: int, later: set[str]
) -> None:
    watch = Watch(Fault(kind, 1))

    def raised(name: str, *, lasts: bool) -> int | None:
        try:
            watch.call(operation(name, lasts=lasts), str.upper, "x")
        except OSError as error:
            return error.errno
        return None

    with watch.watching():
        assert raised("os.open", lasts=True) == (28 if kind == "lasting" else code)
        failing = {
            name
            for name, lasts in (("os.rename", True), ("os.stat", False), ("open", False))
            if raised(name, lasts=lasts)
        }
    assert failing == later


@pytest.mark.parametrize("kind", ["reader", "remover"])
def test_an_action_of_another_process_at_a_point_leaves_the_operation_unchanged(kind: str) -> None:
    met: list[int] = []
    watch = Watch(Fault(kind, 2), lambda: met.append(len(watch.points)))
    with watch.watching():
        answers = [
            watch.call(operation("os.rename", lasts=True), str.upper, letter) for letter in "abc"
        ]
    assert answers == ["A", "B", "C"]
    assert met == [2]


def test_the_first_and_the_last_piece_of_a_file_written_piece_by_piece_are_points() -> None:
    names = ["open", "write", "write", "write", "close"]
    all_points = [Point(number, name, "/t/x", lasts=True) for number, name in enumerate(names, 1)]
    assert [point.number for point in _distinct(all_points)] == [1, 2, 4, 5]
