"""Partitions and bounds at the ends of every type never exclude a relevant row."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.shared.transforms import Transform
from rowmerge_nb.spi import Constraint, parse_type
from rowmerge_nb.spi.page_source import ColumnDomain
from tests.connectors.iceberg.kit import Statement, by_pyiceberg, contents, insert, make_table

EXACT = Context(prec=50)


def _decimals(precision: int, scale: int) -> list[Decimal]:
    most = 10**precision - 1
    return [
        Decimal(number).scaleb(-scale, EXACT) for number in (-most + most % 10, -10, -1, 0, 9, most)
    ]


_MOMENTS = [
    dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1968, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    dt.datetime(1969, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 22, 59, 59, 999_999, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
]
_INTEGER = [-(2**31), -(2**31) + 1, -(2**31) + 9, -10, -1, 0, 9, 2**31 - 1]
_BIGINT = [-(2**63), -(2**63) + 1, -(2**63) + 9, -10, -1, 0, 9, 2**63 - 1]
_CUT = (("c", "bucket(c, 5)", "truncate(c, 10)"), (f"truncate(c, {2**31 - 1})",))
CASES: Mapping[str, tuple[Sequence[Any], Sequence[tuple[str, ...]]]] = {
    "integer": (_INTEGER, _CUT),
    "bigint": (_BIGINT, _CUT),
    "decimal(9, 2)": (_decimals(9, 2), (("c", "bucket(c, 5)", "truncate(c, 10)"),)),
    "decimal(38, 0)": (_decimals(38, 0), (("c", "bucket(c, 5)", "truncate(c, 10)"),)),
    "decimal(38, 38)": (_decimals(38, 38), (("c", "bucket(c, 5)", "truncate(c, 10)"),)),
    "varchar": (
        [
            "",
            "\0",
            "a",
            "ab",
            "abc",
            "a" * 20,
            "é",
            "\uffffz",
            "\U0001f600" * 2,
            "z" * 16 + "\U0010ffff",
            "\U0010ffff" * 20,
        ],
        (
            ("c", "bucket(c, 5)", "truncate(c, 1)"),
            ("truncate(c, 2)",),
            (f"truncate(c, {2**31 - 1})",),
        ),
    ),
    "varbinary": (
        [b"", b"\0", b"\0" * 3, b"a", b"abc", b"a" * 20, b"\xff", b"\xff" * 16, b"\xff" * 20],
        (
            ("c", "bucket(c, 5)", "truncate(c, 1)"),
            ("truncate(c, 2)",),
            (f"truncate(c, {2**31 - 1})",),
        ),
    ),
    "date": (
        [moment.date() for moment in _MOMENTS],
        (("c", "bucket(c, 5)", "year(c)", "month(c)", "day(c)"),),
    ),
    "timestamp": (
        [moment.replace(tzinfo=None) for moment in _MOMENTS],
        (("c", "bucket(c, 5)", "year(c)", "month(c)", "day(c)", "hour(c)"),),
    ),
    "timestamp with time zone": (
        _MOMENTS,
        (("c", "bucket(c, 5)", "year(c)", "month(c)", "day(c)", "hour(c)"),),
    ),
    "time": (
        [dt.time(), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999)],
        (("c", "bucket(c, 5)"),),
    ),
    "uuid": (
        [str(uuid.UUID(int=number)) for number in (0, 1, 2**127 - 1, 2**127, 2**128 - 1)],
        (("c", "bucket(c, 5)"),),
    ),
    "boolean": ([False, True], (("c",),)),
    "double": ([float("-inf"), -1e308, -0.0, 5e-324, 1e308, float("inf")], (("c",),)),
    "real": ([float("-inf"), float(np.finfo(np.float32).min), -0.0, 1.5, float("inf")], (("c",),)),
}


def _domains(values: Sequence[Any]) -> Iterator[ColumnDomain]:
    for value in values:
        yield ColumnDomain(low=value)
        yield ColumnDomain(high=value)
        yield ColumnDomain(values=(value,))
    yield ColumnDomain(values=tuple(values))
    yield ColumnDomain(low=min(values), high=max(values))


def _matches(value: Any, domain: ColumnDomain) -> bool:
    return (
        value is not None
        and (domain.low is None or value >= domain.low)
        and (domain.high is None or value <= domain.high)
        and (domain.values is None or value in domain.values)
    )


def _wrapped(self: Transform, values: pa.Array, *, of: Any = Transform._truncate) -> pa.Array:
    """Compute multiples of integers like Java, which wraps around at the width of the type."""
    if not pa.types.is_integer(values.type):
        return of(self, values)
    bits = np.int32 if values.type == pa.int32() else np.int64
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return pa.array(
        (numbers - numbers % (self.width or 1)).astype(bits),
        mask=pc.is_null(values).to_numpy(zero_copy_only=False),
    )


def _check(values: Sequence[Any], domain: ColumnDomain, found: Sequence[Any]) -> None:
    missing = [value for value in values if _matches(value, domain)]
    for value in found:
        if value in missing:
            missing.remove(value)
    assert not missing, domain


@pytest.mark.trial
@pytest.mark.parametrize(
    ("case", "at"), [(case, at) for case, (_, specs) in CASES.items() for at in range(len(specs))]
)
def test_no_file_is_ruled_out_that_has_a_row_of_the_domain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, at: int
) -> None:
    monkeypatch.setattr(Transform, "_truncate", _wrapped)
    values, specs = CASES[case]
    with closing(make_table(tmp_path, [("c", case)], partitioning=specs[at])) as store:
        insert(store, {"c": [*values, None]})
        insert(store, {"c": [values[0]]})
        assert len(by_pyiceberg(store)) == len(values) + 2
        statement = Statement(store)
        files = {split.path: statement.rows_of(split) for split in statement.splits()}
        for domain in _domains(values):
            splits = statement.splits(Constraint({"c": domain}))
            _check(
                [*values, values[0]],
                domain,
                [row["c"] for split in splits for row in files[split.path]],
            )


@pytest.mark.parametrize("case", CASES)
def test_no_row_group_is_ruled_out_that_has_a_row_of_the_domain(tmp_path: Path, case: str) -> None:
    values, _ = CASES[case]
    with closing(make_table(tmp_path, [("c", case)])) as store:
        insert(store, {"c": [*values, None]})
        statement = Statement(store)
        for domain in _domains(values):
            _check(
                values,
                domain,
                [row["c"] for row in statement.rows(constraint=Constraint({"c": domain}))],
            )


def test_a_filter_beyond_the_wrapping_values_is_still_pruned_by_the_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transform, "_truncate", _wrapped)
    with closing(
        make_table(tmp_path, [("c", "bigint")], partitioning=("truncate(c, 10)",))
    ) as store:
        insert(store, {"c": [-(2**63), 5, 25]})
        statement = Statement(store)
        for domain, files in (
            (ColumnDomain(low=0), 2),
            (ColumnDomain(values=(5,)), 1),
            (ColumnDomain(low=20, high=24), 0),
            (ColumnDomain(high=-1), 1),
        ):
            assert len(statement.splits(Constraint({"c": domain}))) == files, domain


DAYS = [-(2**31) + 1, -10_000_000, -1, 0, 2_932_896, 10_000_000, 2**31 - 1]
MICROSECONDS = [-9 * 10**18, -1, 0, 253_402_300_799_999_999, 7_731_000_000_000_000_000, 9 * 10**18]


@pytest.mark.parametrize(
    ("case", "numbers", "last"),
    [("date", DAYS, dt.date(9999, 12, 31)), ("timestamp", MICROSECONDS, dt.datetime(9999, 12, 31))],  # noqa: DTZ001
)
@pytest.mark.parametrize("transform", ["c", "year(c)", "month(c)", "day(c)", "bucket(c, 4)"])
def test_moments_beyond_the_years_of_python_and_arrow_are_in_partitions_of_their_own(
    tmp_path: Path, case: str, numbers: list[int], last: Any, transform: str
) -> None:
    with closing(make_table(tmp_path, [("c", case)], partitioning=(transform,))) as store:
        moments = pa.array(numbers, pa.int32() if case == "date" else pa.int64()).cast(
            parse_type(case).arrow
        )
        insert(store, pa.RecordBatch.from_arrays([moments], names=["c"]))
        statement = Statement(store)
        if "bucket" not in transform:
            assert len(statement.splits()) == len(numbers)
        for domain, rows in (
            (ColumnDomain(low=last), 3),
            (ColumnDomain(high=last.replace(year=1)), 2 if case == "date" else 1),
        ):
            assert (
                sum(page.num_rows for page in statement.pages(constraint=Constraint({"c": domain})))
                >= rows
            ), domain


@pytest.mark.parametrize(
    ("case", "transform", "number", "message"),
    [
        (
            "timestamp",
            "hour(c)",
            9 * 10**18,
            "Value 287168-08-24T16:00:00.000000 .*: hour\\(c\\) is 2500000000, out of range",
        ),
        (
            "timestamp",
            "hour(c)",
            -9 * 10**18,
            "Value -283229-05-10T08:00:00.000000 .*: hour\\(c\\) is -2500000000, out of range",
        ),
        ("integer", "truncate(c, 10)", -(2**31), "-2147483648 "),
    ],
)
def test_a_value_whose_partition_value_does_not_fit_is_refused(
    tmp_path: Path, case: str, transform: str, number: int, message: str
) -> None:
    with closing(make_table(tmp_path, [("c", case)], partitioning=(transform,))) as store:
        values = pa.array([0, number], pa.int64()).cast(parse_type(case).arrow)
        with pytest.raises(ConnectorError, match=f"NUMERIC_VALUE_OUT_OF_RANGE: .*{message}"):
            insert(store, pa.RecordBatch.from_arrays([values], names=["c"]))
        assert contents(store) == []
