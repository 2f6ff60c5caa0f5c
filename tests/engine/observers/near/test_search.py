"""The nearest keys of rows without a partner: a case for every reason, and random sides compared with a search row by row."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowmerge_nb.engine.observers.near import search
from rowmerge_nb.engine.observers.near.on import Condition, Key, On, UnreadableError
from rowmerge_nb.engine.observers.near.search import SideRows, near_keys
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, Type, parse_type
from rowmerge_nb.sql.typed.expressions import Apply, Column, Constant
from rowmerge_nb.sql.typed.zones import in_session_zone
from rowmerge_nb.trace.near import NearKeys, NearRow, NearTerm
from rowmerge_nb.trace.page_samples import Answer

KINDS = {str: VARCHAR, int: BIGINT}


def looked_for(
    source: list[Any], target: list[Any], *types: Type, conditions: tuple[Condition, ...] = ()
) -> NearKeys:
    """Search near keys among rows of key columns only; the target also has a number ``v``, its position."""
    return near_keys(*sides(source, target, *types, conditions=conditions))


def sides(
    source: list[Any], target: list[Any], *types: Type, conditions: tuple[Condition, ...] = ()
) -> tuple[On, SideRows, SideRows]:
    """Return the searched rows."""
    kinds = types or (VARCHAR,)
    terms = tuple(NearTerm(f"t.k{i} = s.k{i}") for i in range(len(kinds))) + tuple(
        NearTerm("v", key=False) for _ in conditions
    )
    keys = tuple(
        Key(Column(kind, f"t{i}"), Column(kind, f"s{i}"), i) for i, kind in enumerate(kinds)
    )

    def side(name: str, rows: list[Any], numbers: bool) -> SideRows:
        columns = list(
            zip(*(row if isinstance(row, tuple) else (row,) for row in rows), strict=True)
        ) or [()] * len(kinds)
        arrays = {
            f"{name}{i}": pa.array(column, kind.arrow)
            for i, (column, kind) in enumerate(zip(columns, kinds, strict=True))
        }
        if not numbers:
            arrays["v"] = pa.array(range(len(rows)), pa.int64())
        page = pa.RecordBatch.from_pydict(arrays)
        return SideRows(
            page,
            {symbol: symbol[1:] or "v" for symbol in arrays},
            pa.array(range(len(rows))) if numbers else None,
        )

    return On(terms, keys, conditions), side("s", source, True), side("t", target, False)


def told(row: NearRow) -> tuple[Any, str]:
    kinds = ", ".join(row.kinds)
    return (row.nearest if row.nearest is None or len(row.nearest) > 1 else row.nearest[0]), kinds


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Dave ", ["Dave"], ("Dave", "trailing blanks")),
        ("Dave", ["DAVE", "Dave\t"], ("DAVE", "case")),
        ("Dave", ["dAVE ", "Dave\t"], ("Dave\t", "trailing blanks")),
        ("Karol", ["Carol"], ("Carol", "letter")),
        ("Carl", ["Carol"], ("Carol", "letter")),
        ("Caroll", ["Carol"], ("Carol", "letter")),
        ("Zoe\u0301s", ["Zoes"], (None, "")),
        ("日本日本", ["日本日x"], ("日本日x", "letter")),
        ("Ted", ["Ed"], (None, "")),
        ("item-1001", ["item-1002"], (None, "")),
        ("x" * 65, ["y" + "x" * 64], (None, "")),
        (None, ["a"], (None, "null")),
        (None, ["a", None], (None, "null")),
        ("a", [None], (None, "")),
        ("a", [], (None, "")),
        ("", ["  "], ("  ", "trailing blanks")),
        ("a" * 1_000_000 + " ", ["a" * 1_000_000], ("a" * 1_000_000, "trailing blanks")),
    ],
)
def test_the_nearest_key_and_what_separates_it(
    source: str | None, target: list[str | None], expected: tuple[str | None, str]
) -> None:
    near = looked_for([source], target)
    assert near.source is not None
    [row] = near.source.told
    assert (told(row)[0], told(row)[1]) == (expected[0], expected[1])


def test_null_is_near_to_null_and_has_no_nearest_text() -> None:
    both, alone = looked_for([None], [None]), looked_for([None], ["a"])
    assert both.source is not None
    assert both.source.told[0].nearest == (None,)
    assert both.source.counts[0].rows == 1
    assert alone.source is not None
    assert alone.source.told[0].nearest is None
    assert alone.source.counts == ()


def test_an_unmatched_target_row_may_be_near_a_source_row_with_a_partner() -> None:
    near = looked_for(["Dave"], ["Dave", "DAVE", "Zoe"])
    assert near.source is not None
    assert near.target is not None
    assert (near.source.unmatched, near.target.unmatched, near.target.rows) == (0, 2, 3)
    [row] = near.target.told
    assert (row.key, row.nearest, row.taken) == (("DAVE",), ("Dave",), True)


def test_repeated_rows_are_counted() -> None:
    near = looked_for(["Dave ", "Dave "], ["Dave"] * 40 + ["Ed"])
    assert near.source is not None
    assert near.target is not None
    assert [(row.row, row.nearest, row.alike) for row in near.source.told] == [
        (0, ("Dave",), 40),
        (1, ("Dave",), 40),
    ]
    assert (near.target.counts[0].rows, near.target.unmatched) == (40, 41)


def test_crowds_of_one_normal_form_on_both_sides_do_not_multiply() -> None:
    blanks = [" " * i for i in range(3_000)]
    near = looked_for(blanks, [blank + "\t" for blank in blanks])
    assert near.source is not None
    assert near.target is not None
    assert (near.source.counts[0].rows, near.target.counts[0].rows) == (3_000, 3_000)


def test_the_separated_key_of_several_is_named() -> None:
    near = looked_for(
        [("EU", 1), ("eu ", 2), ("EU", None), ("XX", 9)],
        [("EU", 5), ("EU", 2), ("YY", 8)],
        VARCHAR,
        BIGINT,
    )
    assert near.source is not None
    rows = {
        row.row: (row.nearest, [(one.term, ", ".join(one.kinds)) for one in row.separations])
        for row in near.source.told
    }
    assert rows == {
        0: (("EU", 5), [(1, "value")]),
        1: (("EU", 2), [(0, "trailing blanks, case")]),
        2: (("EU", 5), [(1, "null")]),
        3: (None, []),
    }


def test_one_letter_differs_in_one_of_several_keys() -> None:
    near = looked_for([("Karol", 1), ("Karol", 2)], [("Carol", 1)], VARCHAR, BIGINT)
    assert near.source is not None
    assert [told(row) for row in near.source.told] == [(("Carol", 1), "letter"), (None, "")]


def test_keys_that_many_rows_share_but_for_one_column_are_not_near() -> None:
    near = looked_for([("EU", 100)], [("EU", i) for i in range(50)], VARCHAR, BIGINT)
    assert near.source is not None
    assert near.source.told[0].nearest is None


def test_numbers_dates_and_bytes_are_near_to_nothing() -> None:
    for kind, one, other in (
        (BIGINT, 4, 5),
        (parse_type("date"), dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
        (parse_type("varbinary"), b"a", b"A"),
        (parse_type("decimal(5,2)"), 1, 2),
        (BOOLEAN, True, False),
    ):
        near = looked_for([one], [other], kind)
        assert near.source is not None
        assert near.source.told[0].nearest is None, kind


@pytest.mark.parametrize("year", [2024, 2050])
def test_the_same_clock_in_another_zone_is_near_and_the_same_instant_is_equal(year: int) -> None:
    zoned = Type("timestamp with time zone", (6,), ("zone",))
    plain = parse_type("timestamp(6) with time zone")
    moments = [dt.datetime(year, 7, 1, hour, tzinfo=dt.UTC) for hour in (10, 12)]
    source = pa.array(
        [{"instant": moment, "zone": "Europe/Paris"} for moment in moments], zoned.arrow
    )
    sides = (
        SideRows(pa.RecordBatch.from_arrays([source], names=["s"]), {"s": "at"}),
        SideRows(
            pa.RecordBatch.from_arrays([pa.array([moments[1]], plain.arrow)], names=["t"]),
            {"t": "at"},
        ),
    )
    keys = (Key(Column(plain, "t"), Apply(plain, "cast", (Column(zoned, "s"),)), 0),)
    near = near_keys(On((NearTerm("t.at = s.at"),), keys, ()), *sides)
    assert near.source is not None
    assert near.target is not None
    assert (near.source.unmatched, near.target.unmatched) == (1, 0)
    [row] = near.source.told
    assert (row.nearest, list(row.kinds), row.taken) == ((moments[1],), ["time zone"], True)


def test_a_clock_without_a_zone_is_that_of_the_session() -> None:
    clock, plain = parse_type("timestamp(6)"), parse_type("timestamp(6) with time zone")
    moment = dt.datetime(2024, 7, 1, 10)  # noqa: DTZ001 - a clock without a zone is what is asked about
    sides = (
        SideRows(
            pa.RecordBatch.from_arrays([pa.array([moment], clock.arrow)], names=["s"]), {"s": "at"}
        ),
        SideRows(
            pa.RecordBatch.from_arrays(
                [pa.array([moment.replace(tzinfo=dt.UTC)], plain.arrow)], names=["t"]
            ),
            {"t": "at"},
        ),
    )
    on = On(
        (NearTerm("t.at = s.at"),),
        (Key(Column(plain, "t"), Apply(plain, "cast", (Column(clock, "s"),)), 0),),
        (),
    )
    for zone, unmatched in (("UTC", 0), ("Europe/Berlin", 1)):
        with in_session_zone(zone):
            near = near_keys(on, *sides)
        assert near.source is not None
        assert near.source.unmatched == unmatched


def condition(value: int) -> Condition:
    return Condition(Apply(BOOLEAN, ">", (Column(BIGINT, "v"), Constant(BIGINT, str(value)))), 1)


def test_a_key_that_exists_but_fails_another_condition_is_reported_as_such() -> None:
    near = looked_for(["Dave", "Ed ", "Ann"], ["Dave", "Ed", "Ann"], conditions=(condition(1),))
    assert near.source is not None
    assert [(row.row, told(row), row.answers) for row in near.source.told] == [
        (0, (("Dave"), ""), (Answer.FALSE,)),
        (1, (("Ed"), "trailing blanks"), (Answer.FALSE,)),
    ]
    assert near.source.counts == ()


def test_the_nearest_of_several_rows_satisfies_the_other_conditions() -> None:
    near = looked_for(["Ed "], ["Ed", "Ed"], conditions=(condition(0),))
    assert near.source is not None
    assert [(row.answers, row.alike) for row in near.source.told] == [((Answer.TRUE,), 2)]
    assert near.source.counts[0].rows == 1


def test_pairs_of_equal_keys_beyond_the_limit_are_reported_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "MOST_PAIRS", 9)
    with pytest.raises(UnreadableError, match="more than 9 pairs of rows have equal keys"):
        looked_for(["a"] * 4, ["a"] * 4, conditions=(condition(0),))


def test_one_letter_is_not_searched_in_text_beyond_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "MOST_LETTERS", 9)
    near = looked_for(["Karol"], ["Carol"])
    assert near.source is not None
    assert not near.letters
    assert near.source.told[0].nearest is None
    # Numbers have no letters, so nothing was omitted.
    assert looked_for([1], [2], INTEGER).letters


def test_the_first_rows_are_listed_with_near_keys_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "MOST_TOLD", 3)
    near = looked_for(["x1", "x2", "Ed ", "x3", "Al "], ["Ed", "Al"])
    assert near.source is not None
    assert [row.row for row in near.source.told] == [2, 4, 0]
    assert sum(count.rows for count in near.source.counts) == 2


def test_rows_matched_by_the_engine_are_not_reported_as_unmatched() -> None:
    keys = On((NearTerm("k"),), (Key(Column(VARCHAR, "t"), Column(VARCHAR, "s"), 0),), ())
    source = SideRows(
        pa.RecordBatch.from_pydict({"s": ["Ed ", "Al "]}),
        {"s": "k"},
        matched=np.array([True, False]),
    )
    near = near_keys(
        keys, source, SideRows(pa.RecordBatch.from_pydict({"t": ["Ed", "Al"]}), {"t": "k"})
    )
    assert near.source is not None
    assert [row.key for row in near.source.told] == [("Al ",)]


@pytest.mark.parametrize(("source", "target"), [([], []), ([], ["a"]), (["a"], [])])
def test_empty_sides(source: list[str], target: list[str]) -> None:
    near = looked_for(source, target)
    assert near.source is not None
    assert near.target is not None
    assert (near.source.unmatched, near.target.unmatched) == (len(source), len(target))


TEXTS = st.one_of(
    st.none(),
    st.text("aAbB é1", max_size=5),
    st.sampled_from(["Carol", "Karol", "Carl", "007", "7", "Carol "]),
)


@pytest.mark.trial
@given(
    st.lists(st.tuples(TEXTS, st.integers(0, 2)), max_size=12),
    st.lists(st.tuples(TEXTS, st.integers(0, 2)), max_size=12),
)
def test_all_rows_without_a_partner_are_listed_with_near_keys(
    source: list[Any], target: list[Any]
) -> None:
    near = looked_for(source, target, VARCHAR, BIGINT)
    assert near.source is not None
    assert near.target is not None
    keys = {row for row in target if row[0] is not None}
    assert sorted(row.row or 0 for row in near.source.told) == [
        i for i, row in enumerate(source) if row not in keys
    ]
    for row in near.source.told:
        assert row.key == source[row.row or 0]
        if row.nearest is None:
            assert row.key[0] is None or not row.kinds
            continue
        assert row.nearest in target
        assert row.alike == target.count(row.nearest)
        assert {one.term for one in row.separations} == {
            i for i in (0, 1) if row.key[i] != row.nearest[i] or row.key[i] is None
        }
    assert near.target.unmatched == sum(row not in source or row[0] is None for row in target)
    assert sum(count.rows for count in near.source.counts) == sum(
        row.nearest is not None for row in near.source.told
    )


def test_the_same_instant_in_another_zone_is_no_difference_beside_another_key() -> None:
    zoned, plain = (
        Type("timestamp with time zone", (6,), ("zone",)),
        parse_type("timestamp(6) with time zone"),
    )
    moment = dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)
    moments = {
        "s": pa.array([{"instant": moment, "zone": "Europe/Paris"}], zoned.arrow),
        "t": pa.array([moment], plain.arrow),
    }
    source, target = (
        SideRows(
            pa.RecordBatch.from_arrays([moments[side], pa.array([name])], names=[side, f"{side}k"]),
            {side: "at", f"{side}k": "k"},
        )
        for side, name in (("s", "Ed "), ("t", "Ed"))
    )
    keys = (
        Key(Column(plain, "t"), Apply(plain, "cast", (Column(zoned, "s"),)), 0),
        Key(Column(VARCHAR, "tk"), Column(VARCHAR, "sk"), 1),
    )
    near = near_keys(On((NearTerm("at"), NearTerm("k")), keys, ()), source, target)
    assert near.source is not None
    [row] = near.source.told
    assert [(one.term, ", ".join(one.kinds)) for one in row.separations] == [(1, "trailing blanks")]
