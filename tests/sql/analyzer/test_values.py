"""VALUES: rows of literals that are read at once have the same meaning as rows read token by token."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.sql.analyzer.analysis import QueryAnalysis
from tests.sql.literals import LITERALS, at_once, rows, token_by_token
from tests.sql.support import meaning, refusal, spark_text


def _understood(statement: str) -> Any:
    """Types and values of a query over VALUES; for a statement that is refused, or whose values do not fit, the error."""
    try:
        analysis = meaning(statement)
        assert isinstance(analysis, QueryAnalysis)
        tables = [binding.rows.table() for binding in analysis.bindings if binding.rows is not None]
        return [field.type for field in analysis.fields], tables
    except RowMergeError as error:
        return (
            type(error),
            error.code,
            error.message,
            error.line,
            error.column,
            error.length,
            error.hint,
        )


@pytest.mark.not_quick
@settings(max_examples=400, deadline=None)
@given(
    rows(), some.sampled_from(["", "", " ORDER BY 1", " foo", " UNION ALL VALUES 1", " +", ", ("])
)
def test_rows_read_at_once_are_those_read_token_by_token(written: str, behind: str) -> None:
    statement = f"VALUES {written}{behind}"
    with token_by_token():
        expected = _understood(statement)
    with at_once():
        assert _understood(statement) == expected


@settings(max_examples=200, deadline=None)
@given(some.lists(LITERALS, min_size=1, max_size=8))
def test_lists_read_at_once_are_refused_like_those_read_token_by_token(items: list[str]) -> None:
    statement = f"SELECT i FROM memory.default.numbers WHERE i IN ({', '.join(items)})"

    def told() -> Any:
        try:
            meaning(statement)
        except RowMergeError as error:
            return error.code, error.message, error.line, error.column, error.length
        return None

    with token_by_token():
        expected = told()
    with at_once():
        assert told() == expected


def _values(count: int, row: str = "({0}, 'text {0}', {0}.25)") -> str:
    return ", ".join(row.format(number) for number in range(count))


def _data(statement: str) -> pa.Table:
    (binding,) = (binding for binding in meaning(statement).bindings if binding.rows is not None)
    assert binding.rows is not None
    return binding.rows.table()


def test_a_hundred_thousand_rows_become_columns() -> None:
    data = _data(f"VALUES {_values(100_000)}")
    assert data.num_rows == 100_000
    assert [str(column.type) for column in data.columns] == ["int32", "string", "decimal128(7, 2)"]
    assert list(data.slice(99_999).to_pylist()[0].values())[1:2] == ["text 99999"]


def test_constants_are_not_spark_text() -> None:
    analysis = meaning("VALUES (1, 'secret'), (-2, NULL)")
    assert isinstance(analysis, QueryAnalysis)
    assert "secret" not in spark_text(analysis)


@pytest.mark.parametrize("place", [0, 700, 999])
def test_the_row_of_other_types_is_named_with_the_types_before_it(place: int) -> None:
    cells = [f"({number}, 'a')" for number in range(1000)]
    cells[place] = "('b', 'a')"
    error = refusal(f"VALUES {', '.join(cells)}")
    first, second = "row(integer, varchar(1))", "row(varchar(1), varchar(1))"
    pair = (second, first) if place == 0 else (first, second)
    assert (error.code, error.message) == (
        "TYPE_MISMATCH",
        f"Values rows have mismatched types: {pair[0]} vs {pair[1]}",
    )


def test_an_invalid_literal_is_found_among_many() -> None:
    cells = [f"({number}, DATE '2024-01-{number % 28 + 1}')" for number in range(1000)]
    cells[500] = "(500,\n  DATE '2024-02-30')"
    error = refusal(f"VALUES {', '.join(cells)}")
    assert (error.code, error.line, error.column) == ("INVALID_LITERAL", 2, 3)


def test_a_number_too_large_for_bigint_is_found_among_many() -> None:
    cells = [f"({number})" for number in range(1000)]
    cells[500] = "(\n-9223372036854775809)"
    error = refusal(f"VALUES {', '.join(cells)}")
    assert (error.code, error.message) == (
        "SYNTAX_ERROR",
        "Invalid numeric literal: 9223372036854775809",
    )
    assert (error.line, error.column) == (2, 2)


def test_an_error_after_many_rows_is_the_same_as_after_two() -> None:
    few, many = (refusal(f"VALUES {_values(count)} foo bar") for count in (2, 5000))
    assert many.message == few.message
    assert many.column == len(f"VALUES {_values(5000)} ") + 1


def test_rows_with_expressions_among_many_rows_are_computed_in_few_forms() -> None:
    computed = ", ".join(f"({number} + 1, CAST('{number}' AS integer))" for number in range(2000))
    analysis = meaning(f"VALUES {_values(200, '({0}, {0})')}, {computed}, (1, 1)")
    assert isinstance(analysis, QueryAnalysis)
    assert spark_text(analysis).count("UNION ALL") == 1
    assert sum(binding.row_count or 0 for binding in analysis.bindings) == 2201


def test_too_many_forms_are_refused_with_a_next_step() -> None:
    forms = ", ".join(f"(abs({number}))" for number in range(1001))
    error = refusal(f"VALUES {forms}")
    assert error.code == "NOT_SUPPORTED"
    assert "1001 different forms" in error.message
    assert error.hint is not None
