"""Domains of single columns in conditions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.page_source import ColumnDomain
from rowmerge_nb.spi.types import Type, parse_type
from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, MergeAnalysis, TableBinding
from rowmerge_nb.sql.analyzer.statements.statement import analyze
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.typed.domains import constraint_of, exact_constraint

COLUMNS = {
    "tiny": "tinyint",
    "whole": "integer",
    "big": "bigint",
    "text": "varchar",
    "short": "varchar(5)",
    "amount": "decimal(10,2)",
    "day": "date",
    "moment": "timestamp(6)",
    "coarse": "timestamp(3)",
    "flag": "boolean",
    "padded": "char(4)",
    "ratio": "double",
    "zoned": "timestamp(3) with time zone",
}


class Tables:
    """Any name is a table with all these columns."""

    def resolve(self, parts: Sequence[str], version: object = None) -> TableBinding:
        name = ".".join(parts)
        columns = tuple(
            ColumnMetadata(column, parse_type(kind)) for column, kind in COLUMNS.items()
        )
        return TableBinding(name, "memory", ("memory", "default", name), columns, f"v_{name}")

    def view(self, parts: Sequence[str]) -> None:
        """There are none."""

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        return "memory", "default", parts[-1]

    def source_hint(self, name: str) -> str | None:
        return None

    def frame_hint(self, column: str) -> str | None:
        return None

    def candidates(self, parts: Sequence[str]) -> Sequence[str]:
        return []

    def describe(
        self, spark_sql: str, bindings: Sequence[TableBinding]
    ) -> Sequence[tuple[str, Type]]:
        return []


def domains(condition: str) -> dict[str, Any]:
    analysis = analyze(parse(f"DELETE FROM t WHERE {condition}"), Tables())
    assert isinstance(analysis, DeleteAnalysis)
    assert analysis.where is not None
    return dict(
        constraint_of(
            analysis.where.tree, {field.symbol: str(field.name) for field in analysis.target_fields}
        ).domains
    )


def exact(condition: str) -> dict[str, Any] | None:
    """The constraint that only the rows of a condition satisfy."""
    analysis = analyze(parse(f"DELETE FROM t WHERE {condition}"), Tables())
    assert isinstance(analysis, DeleteAnalysis)
    assert analysis.where is not None
    constraint = exact_constraint(
        analysis.where.tree, {field.symbol: str(field.name) for field in analysis.target_fields}
    )
    return None if constraint is None else dict(constraint.domains)


def only(value: Any) -> ColumnDomain:
    return ColumnDomain((value,))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("whole = 5", {"whole": only(5)}),
        ("5 = whole", {"whole": only(5)}),
        ("big = 5", {"big": only(5)}),
        ("whole = -7", {"whole": only(-7)}),
        ("whole < 5", {"whole": ColumnDomain(high=4)}),
        ("5 < whole", {"whole": ColumnDomain(low=6)}),
        ("whole >= 5 AND whole <= 9", {"whole": ColumnDomain(low=5, high=9)}),
        (
            "whole BETWEEN 5 AND 9 AND big = 1",
            {"whole": ColumnDomain(low=5, high=9), "big": only(1)},
        ),
        ("whole IN (1, 2, 3) AND whole > 1", {"whole": ColumnDomain((2, 3), low=2)}),
        ("tiny = 1000", {"tiny": ColumnDomain(())}),
        ("tiny > 127", {"tiny": ColumnDomain(())}),
        ("tiny < 1000", {}),
        ("whole = 1.5", {"whole": ColumnDomain(())}),
        ("whole = 2.0", {"whole": only(2)}),
        ("text = 'a'", {"text": only("a")}),
        ("short = 'longer than five'", {"short": only("longer than five")}),
        ("text >= 'a' AND text < 'c'", {"text": ColumnDomain(low="a", high="c")}),
        ("amount > 1", {"amount": ColumnDomain(low=Decimal(1))}),
        ("amount = 1.5", {"amount": only(Decimal("1.5"))}),
        ("amount = 1.005", {"amount": ColumnDomain(())}),
        ("day = DATE '2026-02-28'", {"day": only(dt.date(2026, 2, 28))}),
        (
            "moment < TIMESTAMP '2026-01-01 00:00:00'",
            {"moment": ColumnDomain(high=dt.datetime(2026, 1, 1))},  # noqa: DTZ001
        ),
        ("coarse = TIMESTAMP '2026-01-01 00:00:00.123456'", {"coarse": ColumnDomain(())}),
        ("flag", {"flag": only(value=True)}),
        ("flag = false", {"flag": only(value=False)}),
    ],
)
def test_a_comparison_with_a_constant_is_a_domain(condition: str, expected: dict[str, Any]) -> None:
    assert domains(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "whole = 1 OR whole = 2",
        "NOT whole = 1",
        "whole NOT IN (1, 2)",
        "whole <> 1",
        "whole = big",
        "whole + 1 = 2",
        "whole = NULL",
        "whole IN (1, NULL)",
        "CAST(amount AS integer) = 1",
        "CAST(whole AS tinyint) = 1",
        "padded = 'ab'",
        "ratio = 1",
        "zoned > TIMESTAMP '2026-01-01 00:00:00 UTC'",
        "whole = (SELECT 1)",
        "CAST('1.56' AS varchar(1)) = text",
    ],
)
def test_uncertain_conditions_have_no_domain(condition: str) -> None:
    assert domains(condition) == {}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("whole < 5", {"whole": ColumnDomain(high=4)}),
        (
            "whole BETWEEN 5 AND 9 AND flag",
            {"whole": ColumnDomain(low=5, high=9), "flag": only(value=True)},
        ),
        ("text IN ('a', 'b')", {"text": ColumnDomain(("a", "b"))}),
        ("text >= 'a'", {"text": ColumnDomain(low="a")}),
        ("day > DATE '2026-02-28'", {"day": ColumnDomain(low=dt.date(2026, 3, 1))}),
        ("amount < 1.5", {"amount": ColumnDomain(high=Decimal("1.49"))}),
        (
            "coarse < TIMESTAMP '2026-01-01 00:00:00'",
            {"coarse": ColumnDomain(high=dt.datetime(2025, 12, 31, 23, 59, 59, 999_000))},  # noqa: DTZ001
        ),
        ("whole = 5 AND tiny = 1000", {"whole": only(5), "tiny": ColumnDomain(())}),
    ],
)
def test_a_constraint_is_exact_if_no_other_row_satisfies_it(
    condition: str, expected: dict[str, Any]
) -> None:
    assert exact(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "text < 'c'",
        "whole = 5 AND big = tiny",
        "whole = 5 OR whole = 6",
        "whole = 5 AND ratio = 1",
        "tiny < 1000",
        "day > DATE '9999-12-31'",
        f"whole IN ({', '.join(map(str, range(2000)))})",
    ],
)
def test_other_conditions_have_no_exact_constraint(condition: str) -> None:
    assert exact(condition) is None


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("tiny = -128", {"tiny": ColumnDomain((-128,))}),
        ("whole < -2147483647", {"whole": ColumnDomain(high=-(2**31))}),
        ("whole IN (-2147483648, 2147483647)", {"whole": ColumnDomain((-(2**31), 2**31 - 1))}),
    ],
)
def test_the_smallest_number_of_a_type_belongs_to_it(condition: str, found: dict[str, Any]) -> None:
    assert domains(condition) == found


@pytest.mark.parametrize(
    ("count", "found"),
    [
        (500, ColumnDomain(tuple(range(-1, 499)))),
        (2000, ColumnDomain(low=-1, high=1998)),
    ],
)
def test_a_very_long_list_is_replaced_by_its_bounds(count: int, found: ColumnDomain) -> None:
    listed = ", ".join(str(number - 1) for number in range(count))
    assert domains(f"whole IN ({listed}, NULL)") == {"whole": found}
    assert domains(f"whole NOT IN ({listed})") == {}


@pytest.mark.parametrize(
    ("condition", "pairs"),
    [
        ("t.whole = s.whole", 1),
        ("s.big = t.whole", 1),
        ("t.short = s.text", 1),
        ("t.amount = s.amount AND t.day = s.day", 2),
        ("(t.whole, t.text) = (s.whole, s.text)", 2),
        ("t.ratio = s.ratio", 0),
        ("t.padded = s.padded", 1),
        ("t.whole = s.amount", 0),
        ("t.moment = s.coarse", 0),
        ("t.whole + 1 = s.whole", 0),
        ("t.whole = s.whole OR t.big = s.big", 0),
    ],
)
def test_key_columns_are_columns_of_either_side_with_directly_comparable_values(
    condition: str, pairs: int
) -> None:
    analysis = analyze(
        parse(f"MERGE INTO t USING s ON {condition} WHEN MATCHED THEN DELETE"), Tables()
    )
    assert isinstance(analysis, MergeAnalysis)
    assert len(analysis.key_columns) == pairs
    target, source = (
        {field.symbol for field in fields}
        for fields in (analysis.target_fields, analysis.source.fields)
    )
    assert all(left in target and right in source for left, right in analysis.key_columns)
