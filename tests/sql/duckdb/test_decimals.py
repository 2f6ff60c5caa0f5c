"""Sums of decimals that pages round, compared with Python's decimals."""

from __future__ import annotations

import decimal
import random
from decimal import Decimal

import duckdb
import pytest

from rowmerge_nb.engine.tasks.page_program import translated
from rowmerge_nb.spi.types import Type, decimal_of
from rowmerge_nb.sql.duckdb.decimals import sum_at_scale
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, duckdb_type
from rowmerge_nb.sql.typed.type_rules import arithmetic_type

PAIRS = [
    ((38, 0), (4, 1)),
    ((38, 0), (38, 18)),
    ((38, 10), (38, 2)),
    ((38, 10), (37, 10)),
    ((30, 30), (38, 0)),
    ((38, 5), (20, 10)),
]


def _number(numbers: random.Random, sql_type: Type) -> Decimal:
    precision, scale = sql_type.parameters
    digits = numbers.randint(1, precision)
    units = numbers.choice([0, 1, 4, 5, 5 * 10 ** (digits - 1), 10**digits - 1])
    with decimal.localcontext(prec=100):
        return Decimal(numbers.choice((1, -1)) * units).scaleb(-scale)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("operator", ["+", "-"])
def test_a_sum_that_loses_digits_is_exact_and_rounded_half_away_from_zero(
    pair: tuple[tuple[int, int], tuple[int, int]], operator: str
) -> None:
    numbers = random.Random(str(pair))
    left, right = (decimal_of(*parameters) for parameters in pair)
    result = arithmetic_type(operator, left, right)
    assert result is not None
    scale = result.parameters[1]
    text = sum_at_scale(("a", "b"), (left, right), result, operator)
    for _ in range(60):
        a, b = _number(numbers, left), _number(numbers, right)
        with decimal.localcontext(prec=100):
            exact = (a + b if operator == "+" else a - b).quantize(
                Decimal(1).scaleb(-scale), decimal.ROUND_HALF_UP
            )
        values = ", ".join(
            f"CAST('{value:f}' AS {duckdb_type(sql_type)}) AS {name}"
            for name, value, sql_type in (("a", a, left), ("b", b, right))
        )
        query = f"SELECT {text} FROM (SELECT {values})"
        if exact.adjusted() < 38 - scale:
            assert duckdb.sql(query).fetchall() == [(exact,)], (a, b)
        else:
            with pytest.raises(duckdb.Error) as error:
                duckdb.sql(query).fetchall()
            assert translated(str(error.value)).message == "Decimal overflow"


def test_a_fraction_without_room_for_a_sum_is_left_to_spark() -> None:
    types = (decimal_of(38, 0), decimal_of(38, 37))
    with pytest.raises(UnprintableError, match="which is rounded"):
        sum_at_scale(("a", "b"), types, decimal_of(38, 0), "+")
