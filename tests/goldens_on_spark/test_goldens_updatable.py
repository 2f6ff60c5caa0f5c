"""The recorded UPDATE and DELETE statements by the older flow: the same answers, except for refusals of that flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.goldens_on_spark.departures import DEPARTURES
from tests.goldens_on_spark.support import Server, expected_answer, reaches_store, recorded_cases
from tests.goldens_on_spark.test_goldens_on_spark import placed_like

CASES = [
    case
    for case in recorded_cases()
    if case["theme"] in {"update_statement", "delete_statement"} and reaches_store(case)
]
"""Statements refused by the analysis have no flow."""

REFUSED = {
    "a correlated subquery moves rows between reading and writing": {
        "update-correlated-subquery",
        "update-where-exists",
        "update-where-not-exists",
        "delete-exists",
        "delete-correlated-scalar",
    },
}
"""Refusals of the flow, by reason; all other statements have Trino's answers."""


@pytest.fixture(scope="module")
def server(spark: Any) -> Iterator[Server]:
    with Server(spark, "updatable") as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_older_flow_answers_as_trino_did_or_refuses_for_a_documented_reason(
    server: Server, case: Any
) -> None:
    departure = DEPARTURES.get(case["id"])
    expected = expected_answer(case, departure["expect"] if departure else None)
    answer = server.answer(case)
    if case["id"] in set().union(*REFUSED.values()):
        assert answer.error is not None
        assert answer.error[1].startswith(
            "Invalid descendant for DeleteNode or UpdateNode: io.trino.sql.planner.plan."
        )
        assert (
            answer.rows
            == expected_answer({**case, "expect": {"error": {"code": "", "message": ""}}}).rows
        ), "nothing was changed"
    else:
        assert placed_like(answer, expected) == expected
