"""The visibility of queries of WITH at each position."""

from __future__ import annotations

import pytest

from rowmerge_nb.sql.analyzer.analysis import UpdateAnalysis
from rowmerge_nb.sql.analyzer.queries.named_queries import NamedQueries
from rowmerge_nb.sql.parser.statement_reader import parse_query
from rowmerge_nb.sql.tree.syntax import NamedQuery
from tests.sql.support import FakeTables, meaning, refusal


def entries(sql: str) -> dict[str, tuple[int, NamedQuery]]:
    return {
        entry.name.value: (place, entry)
        for place, entry in enumerate(parse_query(sql).named_queries)
    }


def test_a_query_sees_earlier_ones_and_the_scope_around_its_with() -> None:
    around = NamedQueries(None, entries("WITH a AS (SELECT 1), b AS (SELECT 2) SELECT 3"), 2)
    inner = NamedQueries(
        around, entries("WITH c AS (SELECT 4), a AS (SELECT 5), d AS (SELECT 6) SELECT 7"), 3
    )
    assert list(inner) == ["c", "a", "d", "b"]
    assert len(inner) == 4
    node, seen = inner["a"]
    assert node is not around["a"][0]
    assert list(seen) == ["c", "a", "b"]
    assert seen["a"][0] is around["a"][0]
    assert "d" not in seen
    assert list(seen["a"][1]) == []


def test_the_scopes_of_one_with_share_one_table_of_its_queries() -> None:
    shared = entries(f"WITH {', '.join(f'q{n} AS (SELECT 1)' for n in range(300))} SELECT 1")
    queries = NamedQueries(None, shared, 300)
    assert all(vars(queries[f"q{n}"][1])["_entries"] is shared for n in range(300))


@pytest.mark.slow
def test_five_thousand_queries_of_with_are_read_and_an_error_in_one_that_nothing_uses_is_found() -> (
    None
):
    sql = (
        "WITH "
        + ", ".join(f"q{n} AS (SELECT i + {n} AS x FROM numbers)" for n in range(5000))
        + " SELECT x FROM q4999"
    )
    meaning(sql)
    error = refusal(sql.replace("i + 4000 ", "b + 4000 "))
    assert (error.code, error.message) == (
        "TYPE_MISMATCH",
        "Cannot apply operator: boolean + integer",
    )


def test_five_thousand_columns_are_set_each_to_its_own() -> None:
    tables = FakeTables({"wide": [(f"c{n}", "bigint") for n in range(5000)]})
    sets = ", ".join(f"c{n} = c{n} + 1" for n in range(5000))
    analysis = meaning(f"UPDATE wide SET {sets}", tables=tables)
    assert isinstance(analysis, UpdateAnalysis)
    values = analysis.clauses[0].values
    assert [value.references for value in values if value is not None] == [
        {f"c{n}"} for n in range(5000)
    ]
    assert (
        refusal(f"UPDATE wide SET {sets}, c17 = 1", tables=tables).code == "DUPLICATE_COLUMN_NAME"
    )
    assert (
        refusal("INSERT INTO wide (c1, c2, C1) SELECT 1, 2, 3", tables=tables).code
        == "DUPLICATE_COLUMN_NAME"
    )
