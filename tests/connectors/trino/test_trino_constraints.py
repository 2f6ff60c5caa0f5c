"""Domains of columns reach the plugin as a TupleDomain with the same values."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from rowmerge_nb.connectors.trino.domains_on_wire import domain_on_wire
from rowmerge_nb.connectors.trino.host.constraints import values_of_type
from rowmerge_nb.spi.page_source import ColumnDomain
from rowmerge_nb.spi.types import parse_type
from tests.connectors.trino.test_blocks import VALUES

COMPARED = [
    *("boolean", "tinyint", "smallint", "integer", "bigint", "real", "double"),
    *("decimal(5,2)", "decimal(18,0)", "decimal(19,4)", "decimal(38,10)"),
    *("varchar", "varchar(10)", "char(4)", "varbinary", "uuid"),
    *("date", "time(3)", "time(6)", "timestamp(0)", "timestamp(6)", "timestamp(9)"),
    *("timestamp(3) with time zone", "timestamp(6) with time zone"),
]


def values_of(sql_type):
    """Values as stored by a column of the type."""
    return pa.array(VALUES[sql_type][0], parse_type(sql_type).arrow).to_pylist()


def written(domain, sql_type):
    """A domain as on the wire, after JSON."""
    return json.loads(json.dumps(domain_on_wire(domain, parse_type(sql_type))))


@pytest.mark.parametrize("sql_type", COMPARED)
def test_values_are_the_same_after_json(sql_type):
    values = values_of(sql_type)
    domain = written(ColumnDomain(tuple(values)), sql_type)
    assert values_of_type(domain["values"], parse_type(sql_type)).to_pylist() == values


@pytest.mark.parametrize("sql_type", COMPARED)
def test_a_domain_of_java_has_the_same_values_and_bounds(sql_type, blocks):
    values = sorted(set(values_of(sql_type)))
    described, bounds = blocks.domain(written(ColumnDomain(tuple(values)), sql_type), sql_type)
    assert described["nulls"] is False
    # Trino merges the two values of boolean into one range.
    assert sorted(set(bounds)) == values

    low, high = values[0], values[-1]
    described, bounds = blocks.domain(written(ColumnDomain(low=low, high=high), sql_type), sql_type)
    assert (described["unbounded"], bounds) == ([[False, False]], [low, high])
    described, bounds = blocks.domain(written(ColumnDomain(low=low), sql_type), sql_type)
    assert (described["unbounded"], bounds) == ([[False, True]], [low])
    described, bounds = blocks.domain(written(ColumnDomain(high=high), sql_type), sql_type)
    assert (described["unbounded"], bounds) == ([[True, False]], [high])
    assert blocks.domain(written(ColumnDomain(()), sql_type), sql_type)[0] == {"none": True}


@pytest.mark.parametrize(
    ("sql_type", "value"),
    [
        ("bigint", True),
        ("boolean", 1),
        ("double", float("nan")),
        ("real", 0.1),
        ("double", 4_607_182_418_800_017_408),
        ("decimal(5,2)", Decimal("NaN")),
        ("timestamp(6)", dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        ("timestamp(6) with time zone", dt.datetime(2026, 1, 1)),  # noqa: DTZ001
        ("date", dt.datetime(2026, 1, 1)),  # noqa: DTZ001
        ("array(bigint)", [1]),
    ],
)
def test_a_value_of_another_type_is_not_a_constraint(sql_type, value):
    assert domain_on_wire(ColumnDomain((value,)), parse_type(sql_type)) is None
    assert domain_on_wire(ColumnDomain(low=value), parse_type(sql_type)) is None


@pytest.mark.parametrize(
    ("sql_type", "domain", "bounds"),
    [
        ("integer", ColumnDomain((5, 2**40)), [5, 5]),
        ("integer", ColumnDomain(low=5, high=2**40), [5]),
        (
            "decimal(5,2)",
            ColumnDomain((Decimal("1.50"), Decimal("1000.00"))),
            [Decimal("1.50")] * 2,
        ),
    ],
)
def test_values_that_a_type_cannot_hold_are_omitted(sql_type, domain, bounds, blocks):
    assert blocks.domain(written(domain, sql_type), sql_type)[1] == bounds


def test_a_range_without_values_is_an_empty_domain():
    assert written(ColumnDomain(low=dt.date(2026, 2, 1), high=dt.date(2026, 1, 1)), "date") == {
        "values": []
    }
