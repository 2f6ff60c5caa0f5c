"""Comparisons of stores over two or more runs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.trace.contract_calls import Call
from rowmerge_nb.trace.store_comparison import StoreComparison, StoreSide
from rowmerge_nb.trace.trace import Trace


def compared(*tables: pa.Table, calls: tuple[tuple[Call, ...], ...] = ()) -> StoreComparison:
    sides = [
        StoreSide(
            name,
            Result(
                Trace(
                    statement="DELETE FROM t",
                    kind="DELETE",
                    state="finished",  # type: ignore[arg-type]  # a StrEnum
                    count=1,
                    calls=calls[number] if calls else (),
                )
            ),
            table,
        )
        for number, (name, table) in enumerate(zip("abc", tables, strict=False))
    ]
    return StoreComparison("catalogs", "DELETE FROM t", "m.d.t", tables[0].column_names, sides)


def test_rows_are_compared_as_bags_of_each_store_with_the_first_one() -> None:
    one = pa.table({"id": [1, 2, 2]})
    comparison = compared(one, pa.table({"id": [2, 1, 2]}), pa.table({"id": [1, 2, 3]}))
    assert comparison.same is False
    assert comparison.sentence == "THE RESULTS DIFFER from that of a: c in 2 rows."
    assert [(d.present, d.absent, d.row, d.times) for d in comparison.differences] == [
        ("a", "c", (2,), 1),
        ("c", "a", (3,), 1),
    ]


def test_values_of_different_types_are_compared_by_value() -> None:
    moment = dt.datetime(2020, 1, 1)  # noqa: DTZ001 - a timestamp without a zone
    exact, rounded = (
        pa.table({"id": pa.array([1, 2]), "at": pa.array([moment, None], pa.timestamp(unit))})
        for unit in ("us", "ms")
    )
    assert compared(exact, rounded).same is True
    text = pa.table({"id": pa.array([1, 2]), "at": ["2020-01-01 00:00:00", "x"]})
    comparison = compared(exact, text)
    assert comparison.sentence == "THE RESULTS DIFFER from that of a: b in 2 rows."
    assert {d.row for d in comparison.differences} == {(2, None), (2, "x")}


def test_a_column_that_one_store_has_added_is_not_compared() -> None:
    assert compared(pa.table({"id": [1]}), pa.table({"id": [1], "new": [2]})).same is True


def test_calls_of_all_sides_are_in_one_order() -> None:
    def of(*methods: str) -> tuple[Call, ...]:
        return tuple(
            Call(number, "coordinator", method, seconds=0.5, rows=number)
            for number, method in enumerate(methods, 1)
        )

    rows: Any = pa.table({"id": [1]})
    comparison = compared(
        rows,
        rows,
        calls=(of("begin_merge", "commit"), of("begin_merge", "begin_merge", "rollback")),
    )
    table = comparison.calls_to_pandas()
    assert table.values.tolist() == [
        ["coordinator", "begin_merge", 1, 2],
        ["coordinator", "rollback", 0, 1],
        ["coordinator", "commit", 1, 0],
    ]
    assert "2, 3 rows, 1000 ms" in str(comparison)
