"""Rows are picked by the number of a source row, or by values of columns of any name."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import RowMergeError
from rowmerge_nb.trace.picking import picked


def test_a_name_that_is_not_a_python_identifier_is_passed_in_a_mapping() -> None:
    assert picked({"first name": "Ed", "source_row": 3}, None, {"id": 1}, ["source_row"]) == (
        None,
        {"first name": "Ed", "source_row": 3, "id": 1},
    )
    assert picked({"id": 1}, 2, {}, []) == (2, {"id": 1})


@pytest.mark.parametrize(
    ("row", "source_row", "known", "code"),
    [
        (None, 3, ["Source_Row"], "AMBIGUOUS_NAME"),
        (3, 4, [], "INVALID_ARGUMENTS"),
        (-1, None, [], "INVALID_ARGUMENTS"),
        (True, None, [], "INVALID_ARGUMENTS"),
        ("3", None, [], "INVALID_ARGUMENTS"),
        (None, 1.5, [], "INVALID_ARGUMENTS"),
    ],
)
def test_selections_of_no_row_are_refused_with_a_next_step(
    row: Any, source_row: Any, known: list[str], code: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        picked(row, source_row, {}, known)
    assert caught.value.code == code
    assert caught.value.hint
