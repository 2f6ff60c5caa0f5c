"""The oracle compared with the documents, DuckDB and PostgreSQL: the reference for the engine must be right itself."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from proof.comparison import judge
from proof.engines.backends import Backend, DuckDB, InexpressibleError, Oracle, PostgreSQL
from proof.fuzz import fuzz
from proof.oracle.oracle import DUPLICATE, NOT_NULL, OUT_OF_RANGE, multiset, predict
from proof.statements.generators import scenarios
from proof.statements.model import (
    Assignment,
    Call,
    Clause,
    Column,
    ColumnDefinition,
    DeleteAction,
    Expression,
    InsertAction,
    Literal,
    MergeStatement,
    Scenario,
    Settings,
    Table,
    TableSource,
    UpdateAction,
)
from proof.statements.printing import script
from rowmerge_nb.spi.types import INTEGER, VARCHAR, decimal_of

MONEY = decimal_of(9, 2)
ACCOUNTS = (
    ColumnDefinition("customer", VARCHAR),
    ColumnDefinition("purchases", MONEY),
    ColumnDefinition("address", VARCHAR),
)
ON = Call("=", (Column("s", "customer"), Column("t", "customer")))
DELETE = DeleteAction()


def column(side: str, name: str) -> Column:
    return Column(side, name)


def text(value: str) -> Literal:
    return Literal(value, VARCHAR)


def merge(
    target: list[tuple[Any, ...]],
    source: list[tuple[Any, ...]],
    *clauses: Clause,
    on: Expression = ON,
    **more: Any,
) -> Scenario:
    tables = (Table("target", ACCOUNTS, tuple(target)), Table("changes", ACCOUNTS, tuple(source)))
    statement = MergeStatement("target", "t", TableSource("changes", "s", ACCOUNTS), on, clauses)
    return Scenario(tables, statement, Settings(**more))


ADD = UpdateAction(
    (Assignment("purchases", Call("+", (column("s", "purchases"), column("t", "purchases")))),)
)
MOVE = UpdateAction((Assignment("address", column("s", "address")),))
INSERT = InsertAction(("address", "customer"), (column("s", "address"), column("s", "customer")))


def test_the_documents_example_deletes_updates_and_inserts() -> None:
    scenario = merge(
        [
            ("Aaron", Decimal(5), "Antioch"),
            ("Bill", Decimal(7), "Buena"),
            ("Carol", Decimal(3), "Cambridge"),
        ],
        [
            ("Aaron", Decimal(6), "Arches"),
            ("Bill", Decimal(9), "Berkeley"),
            ("Ed", Decimal(7), "Etherville"),
        ],
        Clause(Call("=", (column("s", "address"), text("Berkeley"))), DELETE),
        Clause(None, UpdateAction((*ADD.assignments, *MOVE.assignments))),
        Clause(None, INSERT),
    )
    outcome = predict(scenario)
    assert outcome.count == 3
    assert outcome.rows == multiset(
        [
            ("Aaron", Decimal(11), "Arches"),
            ("Carol", Decimal(3), "Cambridge"),
            ("Ed", None, "Etherville"),
        ]
    )


def test_null_keys_match_nothing_and_are_inserted_each() -> None:
    outcome = predict(
        merge(
            [(None, None, "x")],
            [(None, None, "y"), (None, None, "y")],
            Clause(None, DELETE),
            Clause(None, INSERT),
        )
    )
    assert outcome.rows == multiset([(None, None, "x"), (None, None, "y"), (None, None, "y")])


FIRST = Call("=", (column("s", "address"), text("first")))
TWICE = [("A", Decimal(1), "first"), ("A", Decimal(1), "second")]


@pytest.mark.parametrize(
    ("clauses", "standard", "trino"),
    [
        ([Clause(None, ADD)], {DUPLICATE}, {DUPLICATE}),
        ([Clause(FIRST, ADD), Clause(None, DELETE)], {DUPLICATE}, set()),
        ([Clause(FIRST, ADD)], set(), set()),
        ([Clause(Call("NOT", (Literal(True, INTEGER),)), ADD)], set(), {DUPLICATE}),
    ],
    ids=["one clause fires twice", "two clauses fire", "one row fires", "nothing fires"],
)
def test_the_rules_for_repeated_matches_differ_as_documented(
    clauses: list[Clause], standard: set[str], trino: set[str]
) -> None:
    scenario = merge([("A", Decimal(1), None)], TWICE, *clauses)
    assert predict(scenario, "standard").errors == standard
    assert predict(scenario, "trino").errors == trino


def test_two_clauses_on_one_row_leave_the_versions_of_the_updates() -> None:
    scenario = merge([("A", Decimal(1), None)], TWICE, Clause(FIRST, ADD), Clause(None, MOVE))
    assert predict(scenario, "trino").rows == multiset(
        [("A", Decimal(2), None), ("A", Decimal(1), "second")]
    )
    assert predict(scenario, "trino").count == 2


def test_a_store_of_single_columns_cannot_hold_two_versions() -> None:
    scenario = merge(
        [("A", None, None)],
        TWICE,
        Clause(FIRST, ADD),
        Clause(None, MOVE),
        paradigm="CHANGE_ONLY_UPDATED_COLUMNS",
    )
    assert predict(scenario, "trino").errors == {DUPLICATE}


def test_values_that_do_not_fit_are_errors_of_the_clauses_that_fire() -> None:
    too_much = UpdateAction(
        (Assignment("purchases", Call("*", (column("t", "purchases"), Literal(7, INTEGER)))),)
    )
    fired = merge([("A", Decimal(9_999_999), None)], TWICE[:1], Clause(None, too_much))
    hidden = merge(
        [("A", Decimal(9_999_999), None)], TWICE[:1], Clause(None, DELETE), Clause(None, too_much)
    )
    assert predict(fired).errors == {OUT_OF_RANGE}
    assert predict(hidden).errors == set()


def test_an_omitted_column_that_refuses_null_is_an_error() -> None:
    columns = (*ACCOUNTS[:1], ColumnDefinition("purchases", MONEY, nullable=False), ACCOUNTS[2])
    scenario = merge([], TWICE, Clause(None, INSERT))
    tables = (Table("target", columns, ()), scenario.tables[1])
    assert predict(Scenario(tables, scenario.statement)).errors == {NOT_NULL}


@pytest.fixture(scope="module", params=["duckdb", "postgresql"])
def other(request: pytest.FixtureRequest) -> Iterator[Backend]:
    backend: Backend = (
        DuckDB() if request.param == "duckdb" else PostgreSQL(request.getfixturevalue("postgresql"))
    )
    yield backend
    backend.close()


class Kept:
    """A backend that outlives the runs that use it."""

    def __init__(self, backend: Backend) -> None:
        self.name, self.rule, self.eager, self.run = (
            backend.name,
            backend.rule,
            backend.eager,
            backend.run,
        )

    def close(self) -> None:
        pass


@pytest.mark.not_quick
def test_the_oracle_agrees_with_other_engines(other: Backend) -> None:
    summary = fuzz(lambda: (Oracle(), [Kept(other)]), range(400), 2026)
    assert summary.failures == [], summary.failures[0].text(2026)
    assert summary.agreed[other.name] > 350
    assert summary.endings["failed alike"] > 10


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
@given(scenario=scenarios())
def test_strategies_make_scenarios_on_which_the_oracle_agrees(
    scenario: Scenario, other: Backend
) -> None:
    try:
        verdict = judge(Oracle(), [other], scenario)
    except InexpressibleError:
        return
    assert verdict.differences == (), script(scenario)
