"""The constant that an error of storing is about."""

from __future__ import annotations

import pytest

from rowmerge_nb.sql.analyzer.analysis import InsertAnalysis
from tests.sql.support import meaning

INSERT = "INSERT INTO parts (id, code) VALUES (1, 'abc'), (2, NULL),\n (3000000000, 'abcd '), (NULL, 'x')"


@pytest.mark.parametrize(
    ("code", "message", "place"),
    [
        ("NUMERIC_VALUE_OUT_OF_RANGE", "Out of range for integer: 3000000000", (2, 3)),
        ("NUMERIC_VALUE_OUT_OF_RANGE", "Out of range for integer: 4000000000", None),
        ("NUMERIC_VALUE_OUT_OF_RANGE", "Out of range for tinyint: 1", None),
        (
            "INVALID_CAST_ARGUMENT",
            "Cannot truncate non-space characters when casting from varchar(5) to varchar(3) on INSERT",
            (2, 15),
        ),
        ("CONSTRAINT_VIOLATION", "NULL value not allowed for NOT NULL column: id", (2, 26)),
        ("CONSTRAINT_VIOLATION", "NULL value not allowed for NOT NULL column: code", None),
        ("DIVISION_BY_ZERO", "Division by zero", None),
    ],
)
def test_the_first_constant_that_an_error_can_be_about_is_placed(
    code: str, message: str, place: tuple[int, int] | None
) -> None:
    analysis = meaning(INSERT)
    assert isinstance(analysis, InsertAnalysis)
    assert analysis.stored_rows is not None
    span = analysis.stored_rows.span_of(code, message)
    assert (None if span is None else (span.line, span.column)) == place
