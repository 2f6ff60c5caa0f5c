"""Marking and checking of repeated matches, compared with a plain count."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowmerge_nb.engine.tasks.duplicates import DuplicateRule, mark_distinct
from rowmerge_nb.spi import Era, RowChangeParadigm

INSERTING, UPDATING = (
    RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW,
    RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS,
)
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 4), st.none() | st.integers(-1, 2)))


def channels(rows: list[tuple[int | None, int | None]]) -> tuple[pa.Array, pa.Array]:
    return pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows], pa.int32())


@given(ROWS)
def test_documents_mark_every_row_of_a_repeated_key(
    rows: list[tuple[int | None, int | None]],
) -> None:
    plain = [(uid, -1 if case is None else case) for uid, case in rows]
    counts = Counter(plain)
    expected = [int(uid is None or counts[uid, case] == 1) for uid, case in plain]
    assert mark_distinct(*channels(rows), Era.DOCUMENTS).to_pylist() == expected


@given(ROWS)
def test_the_current_era_marks_all_but_the_first_row_of_a_key(
    rows: list[tuple[int | None, int | None]],
) -> None:
    seen: set[tuple[int | None, int]] = set()
    expected = []
    for uid, case in rows:
        key = (uid, -1 if case is None else case)
        expected.append(int(key not in seen))
        seen.add(key)
    assert mark_distinct(*channels(rows), Era.CURRENT).to_pylist() == expected


@given(st.lists(ROWS, max_size=4), st.sampled_from(list(Era)))
def test_batches_are_marked_one_by_one_as_all_together(
    batches: list[list[tuple[int | None, int | None]]], era: Era
) -> None:
    """A target row has all of its rows in one batch; rows without a target row are in several."""
    grouped = [
        [(None if uid is None else uid + 5 * number, case) for uid, case in rows]
        for number, rows in enumerate(batches)
    ]
    seen: set[int] = set()
    one_by_one = [
        mark for rows in grouped for mark in mark_distinct(*channels(rows), era, seen).to_pylist()
    ]
    assert (
        one_by_one
        == mark_distinct(*channels([row for rows in grouped for row in rows]), era).to_pylist()
    )


@given(ROWS)
def test_the_rules_agree_with_a_count_per_row(rows: list[tuple[int | None, int | None]]) -> None:
    plain = [(uid, -1 if case is None else case) for uid, case in rows if uid is not None]
    acting = Counter(uid for uid, case in plain if case >= 0)
    several = {uid for uid, n in acting.items() if n > 1}
    repeated = {uid for (uid, _), n in Counter(plain).items() if n > 1}
    standard = DuplicateRule("standard", INSERTING).check(*channels(rows))
    assert set(standard.failing.tolist()) == several
    assert not standard.warning.size
    trino = DuplicateRule("trino", INSERTING).check(*channels(rows))
    assert set(trino.failing.tolist()) == repeated
    assert set(trino.warning.tolist()) == several - repeated
    assert (
        set(DuplicateRule("trino", UPDATING).check(*channels(rows)).failing.tolist())
        == repeated | several
    )


@pytest.mark.parametrize("era", Era)
def test_no_rows_have_no_duplicates(era: Era) -> None:
    assert len(mark_distinct(*channels([]), era)) == 0
    assert not DuplicateRule("trino", INSERTING).check(*channels([])).failing.size
