"""A value of a wrong type is answered with the value that fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.sql.support import FakeTables, meaning, refusal

CRM = FakeTables(
    {
        "crm": [
            ("id", "bigint"),
            ("Last Purchase", "timestamp(6)"),
            ("City", "varchar"),
            ("b", "boolean"),
        ],
        "news": [("id", "bigint"), ("Last Purchase", "varchar"), ("City", "varchar")],
    }
)
DAYS = FakeTables(
    {
        "crm": [("id", "bigint"), ("Signup Date", "varchar"), ("day", "varchar")],
        "news": [("id", "bigint"), ("Signup Date", "timestamp(6)"), ("day", "date")],
    }
)
MERGE = "MERGE INTO crm t USING news s ON t.id = s.id "


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        (
            MERGE + 'WHEN MATCHED THEN UPDATE SET "Last Purchase" = s."Last Purchase"',
            'write CAST(s."Last Purchase" AS timestamp(6)).',
        ),
        (
            MERGE + "WHEN NOT MATCHED THEN INSERT (id, City) VALUES (s.id, s.id)",
            "write CAST(s.id AS varchar).",
        ),
        ("UPDATE crm SET id = City", "write CAST(City AS bigint)."),
        ("UPDATE crm SET id = '12'", "write 12 without quotes."),
        ("UPDATE crm SET City = 12", "write '12' in quotes."),
        ('UPDATE crm SET b = "Last Purchase"', "no CAST converts it."),
    ],
)
def test_a_misfit_names_the_next_step(sql, hint):
    error = refusal(sql, tables=CRM)
    assert error.code == "TYPE_MISMATCH"
    assert hint in str(error.hint)


def test_a_column_of_a_frame_is_converted_by_pandas():
    tables = FakeTables(CRM.tables)
    binding = tables.resolve(["news"])
    assert binding is not None
    tables.frames["news"] = replace(
        binding, display="news", dataframe=object(), deterministic=False
    )
    error = refusal(
        MERGE + 'WHEN MATCHED THEN UPDATE SET "Last Purchase" = s."Last Purchase"', tables=tables
    )
    assert str(error.hint).endswith(
        "In pandas: news['Last Purchase'] = pd.to_datetime(news['Last Purchase'])."
    )


@pytest.mark.parametrize(
    ("sql", "dialect", "remedy"),
    [
        (
            MERGE + 'WHEN MATCHED THEN UPDATE SET "Signup Date" = s."Signup Date"',
            "trino",
            'write CAST(CAST(s."Signup Date" AS date) AS varchar).',
        ),
        (
            MERGE + "WHEN MATCHED THEN UPDATE SET day = s.day",
            "trino",
            "write CAST(s.day AS varchar).",
        ),
        (
            MERGE + "WHEN MATCHED THEN UPDATE SET *",
            "extended",
            (
                "convert it in the frame, or list the columns and write"
                ' CAST(CAST(s."Signup Date" AS date) AS varchar).'
            ),
        ),
        (
            "INSERT INTO crm SELECT * FROM news",
            "trino",
            (
                "convert it in the frame, or list the columns and write"
                ' CAST(CAST("Signup Date" AS date) AS varchar).'
            ),
        ),
        (
            "INSERT INTO crm TABLE news",
            "trino",
            (
                "convert it in the frame, or list the columns and write"
                ' CAST(CAST("Signup Date" AS date) AS varchar).'
            ),
        ),
    ],
)
def test_a_moment_for_text_is_answered_with_a_column_of_dates_first(sql, dialect, remedy):
    error = refusal(sql, tables=DAYS, dialect=dialect)
    assert error.code == "TYPE_MISMATCH"
    assert "the column holds text. To make it a date, convert its frame" in str(error.hint)
    assert str(error.hint).endswith(f"For text of the day, {remedy}")


def test_a_star_has_no_place_for_a_cast():
    error = refusal(
        MERGE + "WHEN MATCHED THEN UPDATE SET *",
        tables=FakeTables(
            {
                "crm": [("id", "bigint"), ("n", "bigint")],
                "news": [("id", "bigint"), ("n", "varchar")],
            }
        ),
        dialect="extended",
    )
    assert str(error.hint).endswith(
        ": convert it in the frame, or list the columns and write CAST(s.n AS bigint)."
    )


def test_a_table_with_the_name_of_its_frame_is_answered_with_another_name():
    tables = FakeTables(DAYS.tables)
    binding = tables.resolve(["news"])
    assert binding is not None
    tables.frames["oct_"] = replace(
        binding, display="oct_", name=("oct_",), dataframe=object(), deterministic=False
    )
    statement = "CREATE TABLE {} AS SELECT * FROM oct_"
    (notice,) = meaning(statement.format("oct_"), tables=tables).notices
    assert "CREATE TABLE oct_table AS" in notice.message
    assert meaning(statement.format("october"), tables=tables).notices == ()


def test_a_double_for_text_is_answered_with_a_column_of_numbers_first():
    costs = FakeTables(
        {
            "parts": [("id", "bigint"), ("cost", "varchar")],
            "news": [("id", "bigint"), ("cost", "double")],
        }
    )
    error = refusal(
        "MERGE INTO parts t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET cost = s.cost",
        tables=costs,
    )
    assert "the column holds text. To make it a number, convert its frame by" in str(error.hint)
    assert "write CAST(CAST(s.cost AS decimal(18, 2)) AS varchar)." in str(error.hint)
