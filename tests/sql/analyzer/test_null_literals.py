"""Notices about comparisons with the literal NULL."""

from __future__ import annotations

import pytest

from tests.sql.support import meaning


def notices(sql: str) -> list[tuple[int, int, str]]:
    return [
        (notice.span.line, notice.span.column, notice.message)
        for notice in meaning(sql).notices
        if notice.span is not None
    ]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            "address = NULL",
            "`address = NULL` is never true, not even for NULL. Write `address IS NULL`.",
        ),
        (
            "address != NULL",
            "`address <> NULL` is never true, not even for NULL. Write `address IS NOT NULL`.",
        ),
        (
            "NULL = upper(\n address)",
            (
                "`NULL = upper( address)` is never true, not even for NULL."
                " Write `upper( address) IS NULL`."
            ),
        ),
        (
            "purchases IN (1, NULL)",
            (
                "`purchases IN (…)` is not true for NULL, although NULL is in its list."
                " Write `OR purchases IS NULL`."
            ),
        ),
        (
            f"purchases NOT IN ({', '.join(map(str, range(100)))}, NULL)",
            (
                "`purchases NOT IN (…)` is never true with NULL in its list. Remove NULL,"
                " and write `AND purchases IS NOT NULL`."
            ),
        ),
        (
            "CASE purchases WHEN NULL THEN true END",
            "`purchases = NULL` is never true, not even for NULL. Write `purchases IS NULL`.",
        ),
    ],
)
def test_a_comparison_with_null_is_noticed_at_its_position(condition: str, message: str) -> None:
    assert notices(f"DELETE FROM accounts\nWHERE {condition}") == [(2, 7, message)]


def test_a_merge_is_noticed_in_on_and_when() -> None:
    sql = (
        "MERGE INTO accounts t USING monthly_accounts_update s ON t.customer = NULL\n"
        "WHEN MATCHED AND t.purchases <> NULL THEN UPDATE SET purchases = NULL"
    )
    assert [notice[:2] for notice in notices(sql)] == [(1, 58), (2, 18)]


@pytest.mark.parametrize(
    "condition",
    ["NULL = NULL", "1 IN (NULL)", "address IS NULL", "address IS NOT DISTINCT FROM NULL"],
)
def test_other_conditions_are_not_noticed(condition: str) -> None:
    assert notices(f"SELECT * FROM accounts WHERE {condition}") == []
