"""The sources proposed by an error about repeated matches."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rowmerge_nb import DuplicateMatchError, Engine

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO accounts t USING {} ON t.customer = s.customer
WHEN MATCHED AND s.region <> 'x' THEN UPDATE SET purchases = t.purchases + s.purchases, visits = s.visits
WHEN NOT MATCHED THEN INSERT (customer, purchases) VALUES (s.customer, s.purchases)"""


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark)
    engine.run_script("""CREATE TABLE accounts (customer varchar, purchases decimal(10, 2), visits integer);
        INSERT INTO accounts VALUES ('Aaron', 5, 1), ('Bill', 7, 2);
        CREATE TABLE news (customer varchar, purchases decimal(10, 2), visits integer, region varchar, note varchar);
        INSERT INTO news VALUES ('Aaron', 1.25, 3, 'a', 'n'), ('Aaron', 2, 4, 'b', NULL), ('Ed', 9, 1, 'a', 'n')""")
    return engine


def hint(engine: Engine, sql: str) -> str:
    with pytest.raises(DuplicateMatchError) as raised:
        engine.run(sql)
    return str(raised.value.hint)


def test_numbers_to_be_added_are_offered_as_sums(engine: Engine) -> None:
    text = hint(engine, MERGE.format("news s"))
    first, added = re.findall("`USING (.*?)`", text)
    assert first == (
        "(SELECT customer, purchases, visits, region FROM (SELECT *, row_number() OVER (PARTITION BY"
        " customer ORDER BY purchases, visits, region) AS rn FROM news s) WHERE rn = 1) AS s"
    )
    assert added == (
        "(SELECT customer, CAST(sum(purchases) AS decimal(10,2)) AS purchases, CAST(sum(visits) AS"
        " integer) AS visits, max(region) AS region FROM news s GROUP BY customer) AS s"
    )
    assert engine.run(MERGE.format(added)).count == 2
    rows = engine.run("SELECT customer, purchases, visits FROM accounts ORDER BY customer").table
    assert [list(map(str, row.values())) for row in rows.to_pylist()] == [
        ["Aaron", "8.25", "7"],
        ["Bill", "7.00", "2"],
        ["Ed", "9.00", "None"],
    ]


def test_the_newest_row_of_a_key_is_offered(engine: Engine) -> None:
    source = "(SELECT *, DATE '2026-01-01' + INTERVAL '1' DAY * visits AS seen FROM news) s"
    text = hint(engine, MERGE.format(source))
    query = re.findall("`USING (.*?)`", text)[0]
    assert "PARTITION BY customer ORDER BY seen DESC) AS rn" in query
    assert engine.run(MERGE.format(query)).count == 2
    rows = engine.run("SELECT visits FROM accounts WHERE customer = 'Aaron'").table
    assert rows is not None
    assert rows.to_pylist() == [{"visits": 4}]


@pytest.mark.parametrize(
    ("changed", "order", "choice"),
    [
        (
            "DATE '2026-01-01' + INTERVAL '1' DAY * visits",
            '"Updated At" DESC',
            'newest by "Updated At"',
        ),
        # Neither column orders the rows.
        ("DATE '2026-01-01'", "visits, region, ", "first of each key"),
    ],
)
def test_the_newest_is_by_a_column_in_which_the_rows_differ(
    engine: Engine, changed: str, order: str, choice: str
) -> None:
    source = f"""(SELECT customer, visits, region, DATE '2026-01-01' AS "Ordered At", {changed} AS "Updated At"
        FROM news) s"""
    merge = """MERGE INTO accounts t USING {} ON t.customer = s.customer
        WHEN MATCHED AND s.region <> 'x' AND s."Ordered At" <= s."Updated At" THEN UPDATE SET visits = s.visits"""
    text = hint(engine, merge.format(source))
    query = re.findall("`USING (.*?)`", text, re.DOTALL)[0]
    assert f"PARTITION BY customer ORDER BY {order}" in query
    assert f"for example the {choice}: " in text
    assert engine.run(merge.format(query)).count == 1


def test_no_sums_are_offered_if_no_clause_writes_numbers(engine: Engine) -> None:
    text = hint(
        engine,
        "MERGE INTO accounts t USING news s ON t.customer = s.customer WHEN MATCHED AND s.visits > 2 THEN DELETE",
    )
    assert "sum(" not in text
    assert "(SELECT customer, visits FROM (SELECT *, row_number() OVER" in text
