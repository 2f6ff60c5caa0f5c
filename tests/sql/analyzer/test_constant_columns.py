"""Columns of constants: their types and values."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from rowmerge_nb.sql.analyzer.rows.constant_columns import (
    BadLiteral,
    ConstantColumn,
    UnfitConstant,
    literal_constant,
)
from tests.sql.literals import LITERALS


@pytest.mark.not_quick
@settings(max_examples=300, deadline=None)
@given(some.lists(LITERALS.filter(lambda text: text != "x'0'"), min_size=1, max_size=6))
def test_literals_by_the_column_are_the_constants_of_each(texts: list[str]) -> None:
    try:
        column = ConstantColumn.of_literals(texts)
    except (BadLiteral, ValueError):
        # One of them is invalid, or too large for a bigint, which the parser has found before.
        return
    apart = ConstantColumn.of_constants([literal_constant(text) for text in texts])
    assert column.type == apart.type
    if column.type is None:
        return
    try:
        expected = apart.values(column.type)
    except UnfitConstant:
        with pytest.raises(UnfitConstant):
            column.values(column.type)
        return
    assert column.values(column.type).equals(expected)


def test_the_first_invalid_literal_is_named() -> None:
    with pytest.raises(BadLiteral) as raised:
        ConstantColumn.of_literals(["1", "DATE '2023-02-29'", f"-{'9' * 39}.5", "DATE 'x'"])
    assert (raised.value.index, raised.value.message) == (
        1,
        "'2023-02-29' is not a valid DATE literal",
    )


def test_a_number_without_room_in_the_common_type_is_named() -> None:
    column = ConstantColumn.of_literals(["0.5", "NULL", "9" * 38 + "."])
    assert str(column.type) == "decimal(38,1)"
    assert column.type is not None
    with pytest.raises(UnfitConstant) as raised:
        column.values(column.type)
    assert (raised.value.index, str(raised.value.type)) == (2, "decimal(38,0)")


def test_columns_below_each_other_keep_their_order() -> None:
    columns = [
        ConstantColumn.of_literals(texts) for texts in (["1", "NULL"], ["2.5"], ["NULL", "-3"])
    ]
    joined = ConstantColumn.joined(columns)
    assert joined.type is not None
    assert joined.values(joined.type).to_pylist() == [
        Decimal(1),
        None,
        Decimal("2.5"),
        None,
        Decimal(-3),
    ]
