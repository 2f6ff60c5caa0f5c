"""Python values as SQL: instances of subclasses."""

from __future__ import annotations

from enum import IntEnum, StrEnum

import pytest

from rowmerge_nb.sql.constants import constant


class Level(IntEnum):
    LOW = 3
    HIGHEST = 2**70


class Length(float):
    def __repr__(self) -> str:
        return f"{float(self)} m"


class Colour(StrEnum):
    RED = "it's red"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Level.LOW, "3"),
        (Level.HIGHEST, f"DECIMAL '{2**70}'"),
        ([Level.LOW, True], "ARRAY[3, true]"),
        (Length(1.5), "1.5E0"),
        (Colour.RED, "'it''s red'"),
    ],
)
def test_a_value_of_a_class_of_its_own_is_one_of_the_class_above(value: object, text: str) -> None:
    assert constant(value) == text
