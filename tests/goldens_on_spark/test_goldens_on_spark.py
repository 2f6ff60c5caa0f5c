"""Every statement recorded on Trino 483 runs on Spark, and its outcome is compared with Trino's answer."""

from __future__ import annotations

import pytest

from tests.goldens_on_spark.departures import DEPARTURES, KEPT, PAGE, page
from tests.goldens_on_spark.support import (
    ON_STORES,
    STORES,
    Answer,
    Server,
    cases_on,
    expected_answer,
    kind_of,
    reaches_store,
    recorded_cases,
)

CASES = recorded_cases()
SAMPLED = {"expressions", "values_and_types"}
"""Themes of which every third case runs by default: files of function cases have the same subject."""


def runs_normally(number, case):
    """Return whether a case runs without ``--long``: not if the analysis refuses it, which tests/sql/test_goldens.py proves for all without views."""
    if case["id"] in DEPARTURES or (case.get("views") and not reaches_store(case)):
        return True
    return reaches_store(case) and not (case["theme"] in SAMPLED and number % 3)


@pytest.fixture(scope="module")
def server(spark):
    with Server(spark) as server:
        yield server


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case["id"],
            marks=[] if runs_normally(number, case) else [pytest.mark.long],
        )
        for number, case in enumerate(CASES)
    ],
)
@pytest.mark.each_case
def test_the_answer_is_trinos_or_a_documented_departure(server, case):
    departure = DEPARTURES.get(case["id"])
    expected = expected_answer(case, departure["expect"] if departure else None)
    assert placed_like(server.answer(case), expected) == expected


def placed_like(answer: Answer, expected: Answer) -> Answer:
    """Omit the position if none is expected: Trino has none for run-time errors, this engine has one if possible."""
    if answer.error is None or expected.error is None or expected.error[2] is not None:
        return answer
    return Answer(answer.rows, answer.count, (*answer.error[:2], None, None))


def test_a_departure_is_from_what_trino_answered():
    by_id = {case["id"]: case for case in CASES}
    for name, entry in DEPARTURES.items():
        assert placed_like(
            expected_answer(by_id[name], entry["expect"]), expected_answer(by_id[name])
        ) != expected_answer(by_id[name])


def test_every_odd_answer_is_a_departure_or_kept_by_the_duplicate_rule():
    odd = {case["id"] for case in CASES if case.get("oddity")}
    assert odd == (KEPT | DEPARTURES.keys()) & odd
    assert not KEPT & DEPARTURES.keys()
    assert odd >= KEPT


def test_departures_from_answers_that_are_not_odd_are_few():
    odd = {case["id"] for case in CASES if case.get("oddity")}
    assert len(DEPARTURES.keys() - odd) <= 0.03 * len(CASES)


@pytest.mark.parametrize("store", STORES)
def test_every_kind_of_statement_runs_on_every_store(store):
    always = [case.values[0] for case in cases_on(store) if not case.marks]
    assert {kind_of(case, store) for case in always} == {
        kind_of(case, store) for case in CASES if case["theme"] in ON_STORES and reaches_store(case)
    }


def test_the_page_about_differences_lists_what_is_tested():
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m tests.goldens_on_spark --page"
    )
