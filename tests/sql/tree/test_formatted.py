"""Formatted expressions and queries, as written by Trino 476 in SHOW CREATE VIEW."""

from __future__ import annotations

import pytest

from rowmerge_nb.sql.parser.statement_reader import parse_expression, parse_query
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.tree.formatted_queries import formatted_query

EXPRESSIONS = {
    "case when id > 1 then 'a' else 'b' end": "(CASE WHEN (id > 1) THEN 'a' ELSE 'b' END)",
    "case id when 1 then 2 end": "(CASE id WHEN 1 THEN 2 END)",
    "cast(id as decimal(10,2))": "CAST(id AS decimal(10, 2))",
    "cast(ts as timestamp(3) with time zone)": "CAST(ts AS timestamp(3) with time zone)",
    "name || 'x' || 'y'": "concat(concat(name, 'x'), 'y')",
    "- (-id)": "-(-(id))",
    "a[1] - ARRAY[1, 2][1]": "(a[1] - ARRAY[1,2][1])",
    "interval -'1-2' year to month": "INTERVAL -'1-2' YEAR TO MONTH",
    "X'ab'": "X'AB'",
    "extract(year from d)": "EXTRACT(YEAR FROM d)",
    "reduce(a, 0, (s, e) -> s+e, s -> s)": "reduce(a, 0, (s, e) -> (s + e), (s) -> s)",
    "(1, 'it''s')": "ROW (1, 'it''s')",
    "ts at time zone 'UTC'": "ts AT TIME ZONE 'UTC'",
    "current_timestamp(3)": "current_timestamp(3)",
    "current_user": "CURRENT_USER",
    "trim(leading from name)": "trim(LEADING FROM name)",
    "trim('x' from name)": "trim(BOTH 'x' FROM name)",
    "position('a' in name)": "strpos(name, 'a')",
    "normalize(name)": "\"normalize\"(name, 'NFC')",
}

QUERIES = {
    "select 1": "SELECT 1",
    'select a.*, Name "N" from t a where x is null order by 1 desc nulls first limit 2': 'SELECT\n  a.*\n, Name "N"\nFROM\n  t a\nWHERE (x IS NULL)\nORDER BY 1 DESC NULLS FIRST\nLIMIT 2',
    "select distinct id from a, b full outer join c using (id) cross join d": "SELECT DISTINCT id\nFROM\n  a\n, ((b\nFULL JOIN c USING (id))\nCROSS JOIN d)",
    "with a (x) as (select 1) select * from a": "WITH\n  a (x) AS (\n   SELECT 1\n\n) \nSELECT *\nFROM\n  a",
    "select * from (select id from t) x intersect select id from s except all select 1": "SELECT *\nFROM\n  (\n   SELECT id\n   FROM\n     t\n)  x\nINTERSECT SELECT id\nFROM\n  s\nEXCEPT ALL SELECT 1",
    "select id from t union all (select 1) offset 1 rows fetch first 2 rows with ties": "SELECT id\nFROM\n  t\nUNION ALL (\n   SELECT 1\n\n) OFFSET 1 ROWS\nFETCH FIRST 2 ROWS WITH TIES",
    "select id from t where id not in (select id from s) and exists (select 1)": "SELECT id\nFROM\n  t\nWHERE ((NOT (id IN (SELECT id\nFROM\n  s\n))) AND (EXISTS (SELECT 1\n\n)))",
    "select * from (values row(1, 'a'), row(2, 'b')) as t (x, y)": "SELECT *\nFROM\n  (\n VALUES \n     ROW (1, 'a')\n   , ROW (2, 'b')\n)  t (x, y)",
    "select * from t cross join unnest(a) with ordinality as u (n, o), lateral (select 1 z) l": "SELECT *\nFROM\n  (t\nCROSS JOIN UNNEST(a) WITH ORDINALITY u (n, o))\n, LATERAL (   SELECT 1 z\n\n) l",
    "select * from table(sequence(start => 1, stop => 3))": "SELECT *\nFROM\n  TABLE(sequence(\n      start => 1,\n      stop => 3))",
    "select sum(a) over w from t x window w as (order by b)": "SELECT sum(a) OVER w\nFROM\n  t x\nWINDOW w AS (ORDER BY b ASC)",
    "select count(*) from t group by rollup (a)": "select count(*) from t group by rollup (a)",
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_written_as_trino_writes_it(text: str) -> None:
    assert formatted(parse_expression(text), text) == EXPRESSIONS[text]


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_is_written_as_trino_writes_it(text: str) -> None:
    assert formatted_query(parse_query(text), text) == QUERIES[text]


@pytest.mark.parametrize("text", QUERIES)
def test_a_formatted_query_is_the_same_query(text: str) -> None:
    once = formatted_query(parse_query(text), text)
    assert formatted_query(parse_query(once), once) == once
