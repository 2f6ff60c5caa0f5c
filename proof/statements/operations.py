"""The operators and functions of the statement model: their meanings, and their text in each
dialect.

Meanings are plain Python, from the SQL standard and Trino's documentation. Operations that an
engine cannot express alike are not included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, Final

__all__ = ["DIALECTS", "OPERATIONS", "Operation", "case", "conjunction", "disjunction", "negation"]

DIALECTS: Final = ("trino", "postgresql", "duckdb", "spark")
"""The dialects that statements are printed for."""


@dataclass(frozen=True)
class Operation:
    """An operator or function.

    Args:
        meaning: maps the values of the arguments to the result.
        texts: its text per dialect, with ``{0}``, ``{1}`` for arguments, or ``{all}`` for all of
            them with commas.
        strict: a NULL argument makes the result NULL without a call of ``meaning``.
    """

    meaning: Callable[..., Any]
    texts: Mapping[str, str]
    strict: bool = True

    def __call__(self, *values: Any) -> Any:
        """Evaluate the operation.

        >>> OPERATIONS["+"](2, None) is None
        True
        """
        if self.strict and any(value is None for value in values):
            return None
        return self.meaning(*values)


def _operation(
    meaning: Callable[..., Any], text: str, *, strict: bool = True, **other: str
) -> Operation:
    return Operation(
        meaning,
        MappingProxyType({dialect: other.get(dialect, text) for dialect in DIALECTS}),
        strict,
    )


# -- truth: TRUE, FALSE and unknown (None)


def conjunction(*values: bool | None) -> bool | None:
    """AND of the standard: FALSE wins over unknown.

    >>> conjunction(True, None), conjunction(False, None)
    (None, False)
    """
    return False if False in values else None if None in values else True


def disjunction(*values: bool | None) -> bool | None:
    """OR of the standard: TRUE wins over unknown.

    >>> disjunction(True, None), disjunction(False, None)
    (True, None)
    """
    return True if True in values else None if None in values else False


def negation(value: bool | None) -> bool | None:
    """NOT of the standard.

    >>> negation(None) is None
    True
    """
    return None if value is None else not value


def _is_in(value: Any, *items: Any) -> bool | None:
    return disjunction(
        *(None if value is None or item is None else value == item for item in items)
    )


def case(*arguments: Any) -> Any:
    """Return the value behind the first condition that is TRUE; the last argument is that of ELSE.

    >>> case(None, 1, True, 2, 3)
    2
    """
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    return next((value for condition, value in pairs if condition is True), arguments[-1])


@cache
def _pattern(pattern: str, escape: str) -> re.Pattern[str]:
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re.escape(next(characters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return re.compile("".join(parts), re.DOTALL)


def _like(text: str, pattern: str, escape: str = "") -> bool:
    return _pattern(pattern, escape).fullmatch(text) is not None


# -- numbers and texts


def _integer_quotient(dividend: int, divisor: int) -> int:
    """Divide toward zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _remainder(dividend: int, divisor: int) -> int:
    """Return the remainder of a division toward zero, with the sign of the dividend."""
    return dividend - divisor * _integer_quotient(dividend, divisor)


def _substr(text: str, start: int, length: int) -> str:
    """Positions count from 1; a start below that is not generated."""
    return text[start - 1 : start - 1 + length]


def _lpad(text: str, size: int, fill: str) -> str:
    return text[:size] if len(text) >= size else (fill * size)[: size - len(text)] + text


def _translate(text: str, letters: str, others: str) -> str:
    """Replace each of ``letters`` by the one of ``others`` at the same position, or remove it."""
    return text.translate(
        str.maketrans(letters[: len(others)], others[: len(letters)], letters[len(others) :])
    )


def _joined(separator: str | None, *texts: str | None) -> str | None:
    return None if separator is None else separator.join(text for text in texts if text is not None)


def _first_of_month(moment: datetime) -> datetime:
    return datetime(moment.year, moment.month, 1)  # noqa: DTZ001 - SQL timestamps have no zone


def _days_later(day: date, days: int) -> date:
    return day + timedelta(days=days)


_NULL_GREATEST = "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE greatest({all}) END"
_NULL_LEAST = "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE least({all}) END"

OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        # truth
        "AND": _operation(conjunction, "({0} AND {1})", strict=False),
        "OR": _operation(disjunction, "({0} OR {1})", strict=False),
        "NOT": _operation(negation, "(NOT {0})", strict=False),
        # comparisons
        "=": _operation(lambda a, b: a == b, "({0} = {1})"),
        "<>": _operation(lambda a, b: a != b, "({0} <> {1})"),
        "<": _operation(lambda a, b: a < b, "({0} < {1})"),
        "<=": _operation(lambda a, b: a <= b, "({0} <= {1})"),
        ">": _operation(lambda a, b: a > b, "({0} > {1})"),
        ">=": _operation(lambda a, b: a >= b, "({0} >= {1})"),
        "IS NULL": _operation(lambda a: a is None, "({0} IS NULL)", strict=False),
        "IS NOT NULL": _operation(lambda a: a is not None, "({0} IS NOT NULL)", strict=False),
        "IS DISTINCT FROM": _operation(
            lambda a, b: a != b, "({0} IS DISTINCT FROM {1})", strict=False
        ),
        "IS NOT DISTINCT FROM": _operation(
            lambda a, b: a == b, "({0} IS NOT DISTINCT FROM {1})", strict=False
        ),
        "BETWEEN": _operation(
            lambda a, low, high: conjunction(
                None if a is None or low is None else a >= low,
                None if a is None or high is None else a <= high,
            ),
            "({0} BETWEEN {1} AND {2})",
            strict=False,
        ),
        "IN": _operation(_is_in, "({0} IN ({rest}))", strict=False),
        "NOT IN": _operation(
            lambda *values: negation(_is_in(*values)), "({0} NOT IN ({rest}))", strict=False
        ),
        # PostgreSQL has a default escape character.
        "LIKE": _operation(_like, "({0} LIKE {1})", postgresql="({0} LIKE {1} ESCAPE '')"),
        "LIKE ESCAPE": _operation(lambda a, b: _like(a, b, "#"), "({0} LIKE {1} ESCAPE '#')"),
        # for all types
        "COALESCE": _operation(
            lambda *v: next((x for x in v if x is not None), None), "coalesce({all})", strict=False
        ),
        "NULLIF": _operation(
            lambda a, b: None if a is not None and a == b else a, "nullif({0}, {1})", strict=False
        ),
        "GREATEST": _operation(
            max,
            "greatest({all})",
            postgresql=_NULL_GREATEST,
            duckdb=_NULL_GREATEST,
            spark=_NULL_GREATEST,
        ),
        "LEAST": _operation(
            min, "least({all})", postgresql=_NULL_LEAST, duckdb=_NULL_LEAST, spark=_NULL_LEAST
        ),
        "IF": _operation(
            lambda a, b, c: b if a is True else c,
            "if({0}, {1}, {2})",
            strict=False,
            postgresql="CASE WHEN {0} THEN {1} ELSE {2} END",
        ),
        "CASE": _operation(case, "CASE{branches} ELSE {last} END", strict=False),
        # numbers
        "+": _operation(lambda a, b: a + b, "({0} + {1})"),
        "-": _operation(lambda a, b: a - b, "({0} - {1})"),
        "*": _operation(lambda a, b: a * b, "({0} * {1})"),
        "NEGATE": _operation(lambda a: -a, "(-{0})"),
        "ABS": _operation(abs, "abs({0})"),
        "DIV": _operation(
            _integer_quotient, "({0} / {1})", duckdb="({0} // {1})", spark="({0} DIV {1})"
        ),
        "%": _operation(_remainder, "({0} % {1})"),
        "/": _operation(lambda a, b: a / b, "({0} / {1})"),
        # texts
        "||": _operation(lambda a, b: a + b, "({0} || {1})"),
        "UPPER": _operation(str.upper, "upper({0})"),
        "LOWER": _operation(str.lower, "lower({0})"),
        "TRIM": _operation(lambda a: a.strip(" "), "trim({0})"),
        "RTRIM": _operation(lambda a: a.rstrip(" "), "rtrim({0})"),
        "SUBSTR": _operation(_substr, "substr({0}, {1}, {2})"),
        "REPLACE": _operation(lambda a, b, c: a.replace(b, c), "replace({0}, {1}, {2})"),
        "LPAD": _operation(_lpad, "lpad({0}, {1}, {2})"),
        "REVERSE": _operation(lambda a: a[::-1], "reverse({0})"),
        "TRANSLATE": _operation(_translate, "translate({0}, {1}, {2})"),
        "CONCAT WS": _operation(_joined, "concat_ws({all})", strict=False),
        "LENGTH": _operation(len, "length({0})"),
        "STRPOS": _operation(
            lambda a, b: a.find(b) + 1, "strpos({0}, {1})", spark="instr({0}, {1})"
        ),
        "STARTS WITH": _operation(
            lambda a, b: a.startswith(b), "starts_with({0}, {1})", spark="startswith({0}, {1})"
        ),
        # days and moments
        "YEAR": _operation(
            lambda a: a.year, "year({0})", postgresql="extract(year FROM {0})::bigint"
        ),
        "MONTH": _operation(
            lambda a: a.month, "month({0})", postgresql="extract(month FROM {0})::bigint"
        ),
        "QUARTER": _operation(
            lambda a: (a.month + 2) // 3,
            "quarter({0})",
            postgresql="extract(quarter FROM {0})::bigint",
        ),
        "DAY OF YEAR": _operation(
            lambda a: a.timetuple().tm_yday,
            "day_of_year({0})",
            postgresql="extract(doy FROM {0})::bigint",
            duckdb="dayofyear({0})",
            spark="dayofyear({0})",
        ),
        "DAYS LATER": _operation(
            _days_later,
            "date_add('day', {1}, {0})",
            postgresql="({0} + {1})",
            duckdb="({0} + CAST({1} AS integer))",
            spark="date_add({0}, CAST({1} AS integer))",
        ),
        "DAYS BETWEEN": _operation(
            lambda a, b: (b - a).days,
            "date_diff('day', {0}, {1})",
            postgresql="({1} - {0})::bigint",
            spark="CAST(datediff({1}, {0}) AS bigint)",
        ),
        "FIRST OF MONTH": _operation(
            _first_of_month,
            "date_trunc('month', {0})",
            spark="CAST(date_trunc('month', {0}) AS timestamp_ntz)",
        ),
    }
)
"""All operations, by the names in `proof.statements.model.Call`."""
