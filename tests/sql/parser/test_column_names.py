"""Hints name columns in their stored form, ready to be pasted."""

from __future__ import annotations

import pytest

from tests.sql.support import FakeTables, refusal

CRM = FakeTables(
    {
        "crm": [
            ("Customer ID ", "varchar"),
            ("E-Mail", "varchar"),
            ("order", "bigint"),
            ("City", "varchar"),
            ("First.Name", "varchar"),
            ("a$b", "bigint"),
        ]
    }
)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("UPDATE crm SET Email = 'x'", 'Did you mean "E-Mail"?'),
        ("UPDATE crm SET ordr = 1", 'Did you mean "order"?'),
        ("UPDATE crm SET Citty = 'x'", "Did you mean 'City'?"),
        (
            "UPDATE crm SET zzz = 'x'",
            'crm has the columns "Customer ID ", "E-Mail", "order", City, "First.Name", "a$b".',
        ),
        ("INSERT INTO crm (Email) VALUES ('x')", 'Did you mean "E-Mail"?'),
        (
            (
                "MERGE INTO crm t USING crm s ON t.City = s.City WHEN MATCHED THEN UPDATE SET"
                " Email = s.City"
            ),
            'Did you mean "E-Mail"?',
        ),
        ("SELECT s.CustomerID FROM crm s", 'Did you mean s."Customer ID "?'),
        ("SELECT email FROM crm s", 'Did you mean "E-Mail"?'),
        ("SELECT s.E-Mail FROM crm s", 'Is this one name? Write it in double quotes: s."E-Mail".'),
        (
            "SELECT * FROM crm WHERE e-mail = 'x'",
            'Is this one name? Write it in double quotes: "E-Mail".',
        ),
        (
            "SELECT s.First.Name FROM crm s",
            'Is this one name? Write it in double quotes: s."First.Name".',
        ),
        ("UPDATE crm SET E-Mail = 'x'", 'Is this one name? Write it in double quotes: "E-Mail".'),
        (
            "UPDATE crm SET First.Name = 'x'",
            (
                "Write the column without the table's name. Is this one name? Write it in double"
                ' quotes: "First.Name".'
            ),
        ),
        ("UPDATE crm SET a$b = 1", 'Is this one name? Write it in double quotes: "a$b".'),
        ("SELECT a$b FROM crm", 'Is this one name? Write it in double quotes: "a$b".'),
        (
            "INSERT INTO crm (City, E-Mail) VALUES ('x', 'y')",
            'Is this one name? Write it in double quotes: "E-Mail".',
        ),
    ],
)
def test_a_hint_names_the_column_as_it_is_stored(sql, hint):
    assert str(refusal(sql, tables=CRM).hint).startswith(hint)


def test_a_keyword_is_not_proposed_instead_of_itself():
    hint = refusal("UPDATE crm SET 'e-mail' = 'x'", tables=CRM).hint
    assert "instead of" not in str(hint)


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        (
            """"E-Mail", "E-Mail" || "Customer ID ", s.City""",
            (
                'NOT MATCHED sees only the source\'s row. Write s."E-Mail", s."Customer ID ", for'
                " all 2 such names of this clause."
            ),
        ),
        ("City, 'x', 'y'", "NOT MATCHED sees only the source's row. Write s.City."),
    ],
)
def test_names_of_both_sides_are_the_sources_in_not_matched(values: str, hint: str) -> None:
    merge = "MERGE INTO crm t USING crm s ON t.City = s.City WHEN {}"
    error = refusal(
        merge.format(f'NOT MATCHED THEN INSERT ("E-Mail", "Customer ID ", City) VALUES ({values})'),
        tables=CRM,
    )
    assert (error.code, error.hint) == ("AMBIGUOUS_NAME", hint)
    matched = refusal(merge.format("MATCHED AND \"E-Mail\" > '' THEN DELETE"), tables=CRM)
    assert matched.hint == 'Write s."E-Mail" or t."E-Mail".'


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("day < '2026-09-01'", "Write DATE '2026-09-01'."),
        ("'2026-09-01 08:00' > at", "Write TIMESTAMP '2026-09-01 08:00'."),
        (
            '"Order No" < at',
            'write CAST("Order No" AS timestamp), or date_parse("Order No", ',
        ),
        (
            '"Order No" = "Number"',
            (
                'Write CAST(CAST("Number" AS bigint) AS varchar). Numbers lose'
                ' leading zeros: read a file\'s column as text, read_csv(dtype={"Number":'
                " str})."
            ),
        ),
        ('count = "Order No"', "Write CAST(count AS varchar)."),
        ('"Order No" < count', 'write CAST("Order No" AS bigint).'),
    ],
)
def test_comparisons_of_text_name_a_conversion_that_keeps_it(condition: str, hint: str) -> None:
    columns = [
        ("Order No", "varchar"),
        ("Number", "double"),
        ("count", "bigint"),
        ("day", "date"),
        ("at", "timestamp(6)"),
    ]
    error = refusal(
        f"SELECT * FROM orders WHERE {condition}", tables=FakeTables({"orders": columns})
    )
    assert error.message.startswith("Cannot apply operator: ")
    assert hint in str(error.hint)
