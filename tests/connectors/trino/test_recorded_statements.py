"""Statements recorded on Trino, run on its Iceberg plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowmerge_nb as rm
from tests.goldens_on_spark.departures import DEPARTURES
from tests.goldens_on_spark.support import (
    SCHEMA,
    Server,
    columns_of,
    expected_answer,
    recorded_cases,
)
from tests.goldens_on_spark.test_goldens_on_spark import placed_like
from tests.goldens_on_spark.values import row_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.spark

THEMES = (
    "clauses",
    "partitioned",
    "duplicates",
    "update_columns",
    "update_statement",
    "delete_statement",
)


class PluginServer(Server):
    """Recorded cases on tables of a plugin."""

    def __exit__(self, *_: object) -> None:
        # The plugin serves other tests too.
        self.engine.run(f"DROP SCHEMA {SCHEMA}")

    def _properties(self, transforms: tuple[str, ...]) -> list[str]:
        return [f"partitioning = ARRAY{list(transforms)}"] if transforms else []

    def _content(self, case: Mapping[str, Any]) -> list[str]:
        content = self.engine.run(f"SELECT * FROM {SCHEMA}.{case['target']}").table
        return row_texts([t for _, t in columns_of(case["tables"][case["target"]])], content)


def cases() -> list[Any]:
    """Return the cases of the themes; without ``--long``, an answer and an error of each."""
    chosen = [case for case in recorded_cases() if case["theme"] in THEMES]
    kinds = {(case["theme"], "error" in case["expect"]): case["id"] for case in chosen}
    return [
        pytest.param(
            case,
            id=case["id"],
            marks=[] if case["id"] in kinds.values() else [pytest.mark.long],
        )
        for case in chosen
    ]


@pytest.fixture(scope="module")
def server(spark: Any, iceberg_plugin: rm.TrinoConnector) -> Iterator[PluginServer]:
    server = PluginServer(spark, connector=iceberg_plugin)
    with server:
        yield server


@pytest.mark.parametrize("case", cases())
def test_a_recorded_statement_has_its_answer_on_the_plugin(
    server: PluginServer, case: Mapping[str, Any]
) -> None:
    departure = DEPARTURES.get(case["id"])
    expected = expected_answer(case, departure["expect"] if departure else None)
    assert placed_like(server.answer(case), expected) == expected
