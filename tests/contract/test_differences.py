"""The kit's message names the common features of rows with other values."""

from __future__ import annotations

import pyarrow as pa

from rowmerge_nb.testing.contract.differences import RowsDiffer, differences

NAMES, TYPES = ("id", "name"), (pa.int64(), pa.string())


def message(expected: list[tuple[object, ...]], seen: list[tuple[object, ...]]) -> list[str]:
    wrong = differences(expected, seen, NAMES)
    return str(RowsDiffer(wrong, NAMES, about="after a merge", types=TYPES)).split("\n")


def test_a_pattern_precedes_the_rows() -> None:
    assert message([(1, "a"), (2, "b")], [(1, "A"), (2, "B")]) == [
        "after a merge",
        "Column 'name' differs in case only, in both paired rows.",
        "row 1: name is 'A' and must be 'a'",
        "row 2: name is 'B' and must be 'b'",
    ]


def test_values_of_another_type_have_no_pattern() -> None:
    assert message([(1, "a")], [(1, 7)]) == ["after a merge", "row 1: name is 7 and must be 'a'"]


def test_a_missing_row_has_no_pair() -> None:
    (missing,) = differences([(1, "a")], [], NAMES)
    assert missing.pair == ()
    (changed,) = differences([(1, "a")], [(1, None)], NAMES)
    assert changed.pair == ((1, 1, False), (None, "a", True))
