"""Properties of a query derived from its tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowmerge_nb.sql.analyzer.analysis import QueryAnalysis
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.expressions import Subquery
from rowmerge_nb.sql.typed.readings import is_cut, is_deterministic, outer_columns, reads, row_bound
from tests.sql.support import meaning

if TYPE_CHECKING:
    from rowmerge_nb.sql.typed.queries import Query


def tree(sql: str) -> Query:
    analysis = meaning(sql)
    assert isinstance(analysis, QueryAnalysis)
    return analysis.tree


@pytest.mark.parametrize(
    ("sql", "views", "written", "generates"),
    [
        (
            "SELECT i FROM numbers WHERE i IN (SELECT id FROM parts)",
            ["v_numbers", "v_parts"],
            1,
            False,
        ),
        (
            "SELECT 1 FROM parts, (SELECT id FROM parts) ORDER BY (SELECT max(i) FROM numbers)",
            ["v_numbers", "v_parts", "v_parts"],
            1,
            False,
        ),
        (
            "SELECT * FROM (VALUES (1 + 1), (2 + 2)) a (x), (VALUES (3 + 3), (4 + 4), (5 + 5)) b (y)",
            [],
            6,
            False,
        ),
        ("SELECT q FROM parts, UNNEST(tags) u (q)", ["v_parts"], 1, True),
        (
            "SELECT i > ALL (SELECT id FROM parts) FROM numbers",
            ["v_numbers", *(["v_parts"] * 4)],
            1,
            False,
        ),
    ],
)
def test_a_query_reads_tables_as_often_as_it_names_them(
    sql: str, views: list[str], written: int, *, generates: bool
) -> None:
    found = reads(tree(sql))
    assert (sorted(found.views), found.row_factor, found.generates) == (views, written, generates)


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("SELECT max(i) FROM numbers n WHERE n.i = p.id", ["id"]),
        ("SELECT max(i) FROM numbers", []),
        (
            "SELECT max(x) FROM (SELECT (SELECT p.made) x, i FROM numbers WHERE i = p.id)",
            ["id", "made"],
        ),
        ("SELECT count(*) FROM UNNEST(p.tags)", ["tags"]),
        ("SELECT max(m) FROM numbers n CROSS JOIN LATERAL (SELECT n.i + p.id m)", ["id"]),
        ("VALUES p.id + 1", ["id"]),
    ],
)
def test_the_outer_columns_of_a_query_are_those_not_defined_in_it(
    inner: str, outer: list[str]
) -> None:
    query = next(
        part
        for part in q.parts_of(tree(f"SELECT ({inner}) FROM parts p"))
        if isinstance(part, Subquery)
    )
    assert sorted(column.symbol for column in query.outer) == outer


@pytest.mark.parametrize(
    ("sql", "deterministic", "cut"),
    [
        ("SELECT i FROM numbers", True, False),
        ("SELECT i FROM numbers LIMIT 2", False, True),
        ("SELECT random() FROM numbers LIMIT 2", False, False),
        ("(SELECT i FROM numbers LIMIT 2) ORDER BY i", False, True),
        ("SELECT i FROM (SELECT i FROM numbers LIMIT 2)", False, False),
        ("SELECT i FROM numbers WHERE i IN (SELECT i FROM numbers LIMIT 1)", False, False),
        ("SELECT i FROM numbers ORDER BY random()", True, False),
    ],
)
def test_a_query_repeats_its_rows_unless_it_is_cut_or_asks_for_chance(
    sql: str, *, deterministic: bool, cut: bool
) -> None:
    assert (is_deterministic(tree(sql)), is_cut(tree(sql))) == (deterministic, cut)


def test_a_recursion_reads_as_much_as_all_its_levels() -> None:
    query = tree(
        "WITH RECURSIVE r (n) AS (SELECT i FROM numbers UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r"
    )
    levels = next(part for part in q.parts_of(query) if isinstance(part, q.Recursive)).levels
    assert len(reads(query).views) == len(levels)
    assert isinstance(levels[-1], q.Failing)
    assert outer_columns(query) == ()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM (VALUES 1, 2, 3) a UNION ALL SELECT * FROM (VALUES 4, 5) b", 5),
        (
            "SELECT * FROM (SELECT * FROM (VALUES 1, 2, 3) a UNION ALL VALUES 4) c (x) WHERE x > 1",
            4,
        ),
        ("WITH w AS (VALUES 1, 2) SELECT * FROM w UNION SELECT * FROM w UNION ALL SELECT 3", 5),
        ("VALUES 1, 2 INTERSECT VALUES 3", 1),
        ("VALUES 1, 2 EXCEPT VALUES 3", 2),
        ("SELECT x FROM (VALUES 1, 2, 3) a (x) ORDER BY x LIMIT 2", 2),
        ("SELECT x FROM UNNEST(ARRAY[1, 2]) a (x) LIMIT 2", 2),
        ("SELECT x FROM UNNEST(ARRAY[1, 2]) a (x)", None),
        ("VALUES 1, 2, 3 LIMIT 1", 1),
        ("SELECT 1", 1),
        ("SELECT count(*) FROM (VALUES 1) WHERE false", 1),
        ("SELECT x, count(*) FROM (VALUES 1, 2) a (x) GROUP BY ROLLUP (x)", 4),
        ("SELECT * FROM (VALUES 1, 2) a CROSS JOIN (VALUES 1, 2, 3) b", 6),
        ("SELECT * FROM (VALUES 1, 2) a (x) FULL JOIN (VALUES 1, 2, 3) b (y) ON x = y", 6),
        ("SELECT x FROM (VALUES 1, 1) a (x) ORDER BY x FETCH FIRST 1 ROW WITH TIES", 2),
    ],
)
def test_the_bound_of_a_query_is_known(query: str, rows: int | None) -> None:
    assert row_bound(tree(query)) == rows
