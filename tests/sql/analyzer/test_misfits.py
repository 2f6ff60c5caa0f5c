"""A value of a wrong type is answered with the value that fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.sql.support import FakeTables, refusal

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
