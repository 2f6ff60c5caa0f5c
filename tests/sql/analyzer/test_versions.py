"""The version that a statement refers to, and invalid versions: with Trino's words at Trino's positions (its TestAnalyzer has the same cases)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi import ConnectorTableVersion, PointerType, parse_type
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.sql.analyzer.analysis import TableBinding
from rowmerge_nb.sql.analyzer.statements.statement import analyze
from rowmerge_nb.sql.parser.statement_reader import parse
from tests.sql.support import FakeTables

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)


class Versioned(FakeTables):
    """Records the requested versions; every computed one is ``computed``."""

    def __init__(self, computed: Any = None) -> None:
        super().__init__({"t1": [("a", "bigint")]})
        self.computed = computed
        self.asked: list[ConnectorTableVersion | None] = []

    def resolve(self, parts: Sequence[str], version: Any = None) -> TableBinding | None:
        self.asked.append(version)
        return super().resolve(parts)

    def evaluate(self, values: Sequence[Any]) -> Sequence[Any]:
        return [self.computed for _ in values]


def version(sql: str, computed: Any = None) -> ConnectorTableVersion:
    tables = Versioned(computed)
    analyze(parse(f"SELECT * FROM t1 {sql}"), tables, era=Era.DOCUMENTS)  # type: ignore[arg-type]
    (asked,) = tables.asked
    assert asked is not None
    return asked


def refused(sql: str, computed: Any = None) -> tuple[str, str, int | None]:
    with pytest.raises(AnalysisError) as caught:
        version(sql, computed)
    assert caught.value.line == 1
    return caught.value.code, caught.value.message, caught.value.column


@pytest.mark.parametrize(
    ("pointer", "value", "kind"),
    [
        ("123", 123, "integer"),
        ("BIGINT '123'", 123, "bigint"),
        ("8954597067493422955", 8954597067493422955, "bigint"),
        ("'2022-01-01'", "2022-01-01", "varchar(10)"),
        ("DATE '2022-01-01'", dt.date(2022, 1, 1), "date"),
    ],
)
def test_a_version_is_a_number_or_a_name(pointer: str, value: Any, kind: str) -> None:
    assert version(f"FOR VERSION AS OF {pointer}") == ConnectorTableVersion(
        value, PointerType.TARGET_ID, parse_type(kind)
    )


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("DATE '2022-01-01'", dt.datetime(2022, 1, 1, tzinfo=dt.UTC)),
        ("TIMESTAMP '2022-01-01'", dt.datetime(2022, 1, 1, tzinfo=dt.UTC)),
        (
            "TIMESTAMP '2022-01-01 01:02:03.5'",
            dt.datetime(2022, 1, 1, 1, 2, 3, 500_000, tzinfo=dt.UTC),
        ),
        ("TIMESTAMP '2022-01-01 UTC'", dt.datetime(2022, 1, 1, tzinfo=dt.UTC)),
        (
            "TIMESTAMP '2022-01-01 01:00 Asia/Kathmandu'",
            dt.datetime(2021, 12, 31, 19, 15, tzinfo=dt.UTC),
        ),
        ("TIMESTAMP '2022-01-01 01:00 -03:30'", dt.datetime(2022, 1, 1, 4, 30, tzinfo=dt.UTC)),
    ],
)
def test_a_moment_is_an_instant_for_every_type(pointer: str, value: dt.datetime) -> None:
    found = version(f"FOR TIMESTAMP AS OF {pointer}")
    assert (found.pointer_type, found.instant()) == (PointerType.TEMPORAL, value)


def test_a_version_that_is_not_a_literal_is_computed() -> None:
    assert version("FOR VERSION AS OF 1 + 1", 2).version == 2
    earlier = {"instant": NOW - dt.timedelta(milliseconds=1), "zone": "Europe/Berlin"}
    found = version("FOR TIMESTAMP AS OF current_timestamp - INTERVAL '0.001' SECOND", earlier)
    assert found.instant() == earlier["instant"]


@pytest.mark.parametrize(
    ("pointer", "kind"),
    [
        ("'2022-01-01'", "varchar(10)"),
        ("'2022-01-01 01:02:03 UTC'", "varchar(23)"),
        ("1654594283421", "bigint"),
        ("CAST(NULL AS bigint)", "bigint"),
    ],
)
def test_a_moment_of_another_type_is_refused(pointer: str, kind: str) -> None:
    said = f"Type {kind} invalid. Temporal pointers must be of type Timestamp, Timestamp with Time Zone, or Date."
    assert refused(f"FOR TIMESTAMP AS OF {pointer}") == ("TYPE_MISMATCH", said, 18)


@pytest.mark.parametrize(
    "pointer",
    [
        *(
            f"FOR TIMESTAMP AS OF {null}"
            for null in ("NULL", "CAST(NULL AS date)", "CAST(NULL AS timestamp(3) with time zone)")
        ),
        *(
            f"FOR VERSION AS OF {null}"
            for null in ("NULL", "CAST(NULL AS bigint)", "CAST(NULL AS varchar)")
        ),
    ],
)
def test_null_points_at_nothing(pointer: str) -> None:
    assert refused(pointer) == ("INVALID_ARGUMENTS", "Pointer value cannot be NULL", 18)


@pytest.mark.parametrize(
    ("pointer", "shown"),
    [
        ("DATE '2999-01-01'", "2999-01-01"),
        ("TIMESTAMP '2999-01-01'", "2999-01-01 00:00:00"),
        ("TIMESTAMP '2999-01-01 01:02:03.12'", "2999-01-01 01:02:03.12"),
        ("TIMESTAMP '2999-01-01 UTC'", "2999-01-01 00:00:00 UTC"),
        (
            "TIMESTAMP '2999-01-01 01:02:03.123456 Asia/Kathmandu'",
            "2999-01-01 01:02:03.123456 Asia/Kathmandu",
        ),
        ("TIMESTAMP '2999-01-01 01:02:03 +05:45'", "2999-01-01 01:02:03 +05:45"),
    ],
)
def test_a_period_that_is_not_over_is_refused(pointer: str, shown: str) -> None:
    assert refused(f"FOR TIMESTAMP AS OF {pointer}") == (
        "INVALID_ARGUMENTS",
        f"Pointer value '{shown}' is not in the past",
        18,
    )


@pytest.mark.parametrize("moment", ["current_timestamp(6)", "localtimestamp(6)"])
def test_the_present_is_not_the_past(moment: str) -> None:
    code, message, column = refused(f"FOR TIMESTAMP AS OF {moment}")
    assert (code, column) == ("INVALID_ARGUMENTS", 18)
    assert message.endswith("is not in the past")


@pytest.mark.parametrize(
    ("pointer", "code", "message"),
    [
        ("(SELECT 1)", "EXPRESSION_NOT_CONSTANT", "Constant expression cannot contain a subquery"),
        ("a", "COLUMN_NOT_FOUND", "Column 'a' cannot be resolved"),
        ("1 + 'x'", "TYPE_MISMATCH", "Cannot apply operator: integer + varchar(1)"),
    ],
)
def test_a_version_that_is_not_constant_is_refused(pointer: str, code: str, message: str) -> None:
    found = refused(f"FOR VERSION AS OF {pointer}")
    assert found[:2] == (code, message)


def test_a_query_of_with_has_no_versions() -> None:
    with pytest.raises(
        AnalysisError,
        match="NOT_SUPPORTED: line 1:46: 'w' is a query of WITH, which has no versions",
    ) as caught:
        analyze(
            parse("WITH w AS (SELECT * FROM t1) SELECT * FROM w FOR VERSION AS OF 1"),
            Versioned(),
            era=Era.DOCUMENTS,
        )  # type: ignore[arg-type]
    assert caught.value.hint == "Write FOR VERSION AS OF behind the tables that it reads."


def test_two_versions_of_a_table_are_two_tables() -> None:
    sql = "SELECT * FROM t1 FOR VERSION AS OF 1 x, t1 FOR VERSION AS OF 2 y, t1 z"
    tables = Versioned()
    analyze(parse(sql), tables, era=Era.DOCUMENTS)  # type: ignore[arg-type]
    assert [asked and asked.version for asked in tables.asked] == [1, 2, None]
