"""A failed cast names the conversion of its value's format."""

from __future__ import annotations

import pytest

from rowmerge_nb.engine.spark.errors.cast_formats import format_hint


@pytest.mark.parametrize(
    ("message", "step"),
    [
        ("Value cannot be cast to date: 30/10/2025", "CAST(date_parse(x, '%d/%m/%Y') AS date)"),
        ("Value cannot be cast to date: 10/30/2025", "CAST(date_parse(x, '%m/%d/%Y') AS date)"),
        ("Value cannot be cast to date: 05.10.2025", "'%m.%d.%Y' if the month is."),
        (
            "Value cannot be cast to timestamp: 30.10.25 12:30",
            "CAST(date_parse(x, '%d.%m.%y %H:%i') AS timestamp)",
        ),
        (
            "Value cannot be cast to timestamp: 2026-11-24T08:00:00+02:00",
            "Write CAST(from_iso8601_timestamp(x) AS timestamp).",
        ),
        (
            "Value cannot be cast to date: 2026-11-24T08:00:00.123Z",
            "Write CAST(from_iso8601_timestamp(x) AS date).",
        ),
        ("Cannot cast '1,234' to BIGINT", "CAST(replace(x, ',', '') AS bigint)"),
        ("Cannot cast '12,5' to DOUBLE", "CAST(replace(x, ',', '.') AS double)"),
        (
            "Cannot cast VARCHAR '1.234,50' to DECIMAL(10, 2). Value is not a number.",
            "CAST(replace(replace(x, '.', ''), ',', '.') AS decimal(10, 2))",
        ),
        ("Cannot cast '$5.00' to DOUBLE", "CAST(regexp_replace(x, '[^0-9.-]') AS double)"),
    ],
)
def test_a_failed_cast_names_the_format_of_its_value(message, step):
    hint = format_hint(message)
    assert hint is not None
    assert step in hint
    assert hint.endswith("TRY_CAST returns NULL for such values, which loses them.")


@pytest.mark.parametrize(
    "message",
    [
        "Value cannot be cast to date: soon",
        "Value cannot be cast to date: 31/02/2026",
        "Cannot cast 'abc' to DOUBLE",
        "duplicate keys",
    ],
)
def test_other_values_have_no_format(message):
    assert format_hint(message) is None
