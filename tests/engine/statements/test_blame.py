"""Mapping a run-time error to its expression."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.engine.statements.blame import blame
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed.expressions import Origin

ORIGINS = (Origin(0, Span(10, 15, 1, 11), "in the ON condition"), Origin(1, Span(20, 22, 2, 3)))
TEXT = "/*0*/(`a` = (SELECT /*1*/1 / `b`/**/ FROM t))/**/"


class _SparkError(Exception):
    """An error with a query context, as raised by Spark."""

    def __init__(self, start: int, fragment: str) -> None:
        self.start, self.part = start, fragment

    def getQueryContext(self) -> list[Any]:  # noqa: N802 - Spark's name
        return [self]

    def contextType(self) -> SimpleNamespace:  # noqa: N802 - Spark's name
        return SimpleNamespace(name="SQL")

    def startIndex(self) -> int:  # noqa: N802 - Spark's name
        return self.start

    def fragment(self) -> str:
        return self.part


def _drawn(fragment: str) -> RuntimeError:
    start = TEXT.index(fragment)
    blank = " " * start
    return RuntimeError(
        f"== SQL (line 1, position {start + 1}) ==\n{TEXT}\n{blank}{'^' * len(fragment)}\n"
    )


@pytest.mark.parametrize(
    ("failure", "place"),
    [
        (_SparkError(TEXT.index("1 /"), "1 / `b`"), (2, 3, 2)),
        (_SparkError(TEXT.index("(`a`"), TEXT[5:-4]), (1, 11, 5)),
        (_drawn("1 / `b`"), (2, 3, 2)),
        (_SparkError(TEXT.index("(`a`"), "another text"), (None, None, None)),
        (RuntimeError("no context"), (None, None, None)),
    ],
)
def test_the_innermost_expression_around_sparks_position_is_blamed(
    failure: BaseException, place: tuple[int | None, ...]
) -> None:
    error = ExecutionError("Division by zero", code="DIVISION_BY_ZERO")
    blame(error, failure, ["`c`", TEXT], ORIGINS)
    assert (error.line, error.column, error.length) == (
        place if place[0] else (None, None, error.length)
    )


def test_the_number_in_a_message_identifies_the_expression_and_its_words_begin_the_hint() -> None:
    error = ExecutionError(
        "Division by zero", code="DIVISION_BY_ZERO", hint="Divide by something else."
    )
    error.origin = 0
    blame(error, RuntimeError(), [], ORIGINS)
    assert (error.line, error.column) == (1, 11)
    assert error.hint == "It happened in the ON condition. Divide by something else."
