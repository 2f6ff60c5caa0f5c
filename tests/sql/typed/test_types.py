from __future__ import annotations

import pytest

from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.sql.typed.cast_rules import can_cast
from rowmerge_nb.sql.typed.type_rules import arithmetic_type, can_coerce, common_type


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ("integer", "bigint", "bigint"),
        ("integer", "decimal(3,1)", "decimal(11,1)"),
        ("bigint", "decimal(38,0)", "decimal(38,0)"),
        ("decimal(10,2)", "decimal(5,4)", "decimal(12,4)"),
        ("decimal(38,0)", "real", "real"),
        ("bigint", "double", "double"),
        ("varchar(3)", "varchar(7)", "varchar(7)"),
        ("varchar(3)", "varchar", "varchar"),
        ("date", "timestamp(6)", "timestamp(6)"),
        ("timestamp(3)", "timestamp(6) with time zone", "timestamp(6) with time zone"),
        ("unknown", "date", "date"),
        ("array(integer)", "array(bigint)", "array(bigint)"),
        ("row(a integer, b varchar)", "row(a bigint, c varchar)", 'row("a" bigint, varchar)'),
        ("varchar", "integer", None),
        ("boolean", "integer", None),
        ("time(6)", "timestamp(6)", None),
        ("array(integer)", "array(varchar)", None),
    ],
)
def test_common_types_are_those_of_trino_in_both_directions(left, right, common):
    for a, b in ((left, right), (right, left)):
        found = common_type(parse_type(a), parse_type(b))
        assert (None if found is None else str(found)) == common


@pytest.mark.parametrize(
    ("operator", "left", "right", "result"),
    [
        ("+", "decimal(10,2)", "decimal(5,3)", "decimal(12,3)"),
        ("*", "decimal(10,2)", "decimal(5,3)", "decimal(15,5)"),
        ("/", "decimal(10,2)", "decimal(5,3)", "decimal(19,8)"),
        ("/", "decimal(2,1)", "integer", "decimal(13,12)"),
        ("/", "decimal(38,2)", "decimal(38,2)", "decimal(38,6)"),
        ("/", "decimal(38,10)", "integer", "decimal(38,10)"),
        ("*", "decimal(38,18)", "decimal(38,18)", "decimal(38,6)"),
        ("*", "decimal(20,10)", "decimal(20,10)", "decimal(38,18)"),
        ("-", "decimal(38,18)", "decimal(38,18)", "decimal(38,18)"),
        ("%", "decimal(10,2)", "decimal(5,3)", "decimal(5,3)"),
        ("*", "decimal(10,2)", "integer", "decimal(20,2)"),
        ("+", "decimal(38,0)", "decimal(4,1)", "decimal(38,0)"),
        ("/", "integer", "integer", "integer"),
        ("+", "tinyint", "smallint", "smallint"),
        ("*", "decimal(10,2)", "double", "double"),
        ("+", "varchar", "integer", None),
    ],
)
def test_arithmetic_has_the_types_of_trino(operator, left, right, result):
    found = arithmetic_type(operator, parse_type(left), parse_type(right))
    assert (None if found is None else str(found)) == result


def test_coercion_never_loses_and_casts_may():
    assert not can_coerce(parse_type("bigint"), parse_type("integer"))
    assert can_cast(parse_type("bigint"), parse_type("integer"))
    assert not can_cast(parse_type("date"), parse_type("integer"))
    assert not can_cast(parse_type("varbinary"), parse_type("varchar"))
