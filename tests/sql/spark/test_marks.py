"""Marks in Spark SQL, and the positions of their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorViewDefinition
from rowmerge_nb.spi.types import BIGINT
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis, QueryAnalysis, ViewBinding
from rowmerge_nb.sql.spark.marks import origin_at
from rowmerge_nb.sql.spark.printer import print_spark
from tests.sql.support import ACCOUNTS, FakeTables, meaning, spark_text

FAILURE = re.compile(r"\[\[[A-Z_]+(?:@(\d+))?\]\]")


@pytest.mark.parametrize("written", [r"'/*1*/'", r"'it\'s /*1*/'", "`/*1*/`"])
def test_text_and_names_that_look_like_marks_are_not_marks(written: str) -> None:
    assert origin_at(f"/*0*/{written} + 1/**/", len(written) + 7) == 0


def test_the_mark_of_the_outer_expression_applies_again_after_an_inner_one() -> None:
    text = "/*1*/a + /*2*/b/**/ + c/**/ + d"
    assert [origin_at(text, text.index(name)) for name in "abcd"] == [1, 2, 1, None]


def test_every_failure_of_a_statement_carries_the_number_of_an_expression_that_was_written() -> (
    None
):
    sql = "SELECT i, CAST(s AS integer) FROM numbers WHERE CAST(s AS bigint) > (SELECT max(CAST(s AS integer)) FROM numbers)"
    query = meaning(sql)
    assert isinstance(query, QueryAnalysis)
    numbers = set(FAILURE.findall(spark_text(query)))
    assert "" not in numbers
    found = {query.origins[int(number)].span.of(sql) for number in numbers}
    assert found == {
        "CAST(s AS integer)",
        "CAST(s AS bigint) > (SELECT max(CAST(s AS integer)) FROM numbers)",
        "max(CAST(s AS integer))",
    }


def test_a_key_of_group_by_is_written_alike_everywhere() -> None:
    query = meaning(
        "SELECT 1 + CAST(s AS integer) FROM numbers GROUP BY CAST(s AS integer) ORDER BY CAST(s AS integer) DESC"
    )
    assert isinstance(query, QueryAnalysis)
    key = re.search(r"GROUP BY (.*) ORDER BY", spark_text(query))
    assert key is not None
    assert "INVALID_CAST_ARGUMENT" in key[1]
    assert "INVALID_CAST_ARGUMENT" not in spark_text(query).replace(key[1], "")


def test_a_key_of_the_join_has_the_mark_of_its_condition() -> None:
    merge = meaning(
        "MERGE INTO accounts t USING numbers s ON t.purchases = CAST(s.s AS decimal(9,2)) AND s.b WHEN MATCHED THEN DELETE"
    )
    assert isinstance(merge, MergeAnalysis)
    ((_, key),) = merge.equalities
    number = str(merge.on.origin.number)
    assert (
        set(FAILURE.findall(print_spark(key)))
        == set(FAILURE.findall(print_spark(merge.on.tree)))
        == {number}
    )


class _WithView(FakeTables):
    """The tables of all tests, and a view of them."""

    def view(self, parts: Sequence[str]) -> ViewBinding | None:  # type: ignore[override]
        if parts[-1] != "w":
            return None
        query = "SELECT CAST(s AS bigint) AS x FROM numbers"
        columns = (ColumnMetadata("x", BIGINT),)
        return ViewBinding(
            "memory.default.w",
            ConnectorViewDefinition(
                SchemaTableName("default", "w"), query, "memory", "default", columns
            ),
        )


def test_computed_columns_of_a_view_are_marked_at_the_name_of_the_view() -> None:
    sql = "SELECT 1 FROM numbers WHERE true AND EXISTS (SELECT x FROM w WHERE x > 1)"
    query = meaning(sql, tables=_WithView(ACCOUNTS.tables))
    assert isinstance(query, QueryAnalysis)
    (number,) = set(FAILURE.findall(spark_text(query)))
    assert query.origins[int(number)].span.of(sql) == "w"
