"""The next step for comparisons of text with dates and numbers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.analyzer.expressions.date_texts import dates_of
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed.type_rules import is_float, is_numeric, is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.types import Type

_DATE: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_NUMERALS: Final = frozenset(["integer", "decimal", "double"])
_TIMESTAMP: Final = re.compile(rf"{_DATE.pattern} \d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?")


def comparison_hint(
    text: str,
    operator: str,
    sides: tuple[s.Expression, s.Expression],
    types: tuple[Type, Type],
) -> str | None:
    """Return how text and a value of another type are compared, or None."""
    is_first, is_second = map(is_text, types)
    if is_first == is_second:
        return None
    operand, value = sides if is_first else sides[::-1]
    other = types[is_first]
    if other.base in {"date", "timestamp", "timestamp with time zone"}:
        return _moment_hint(text, operand, other)
    if not is_numeric(other):
        return None
    if isinstance(operand, s.Literal):
        is_number = _NUMBER.fullmatch(operand.value)
        return f"Write {operand.value} without its quotes." if is_number else None
    if operator != "=":
        return None
    if isinstance(value, s.Literal) and value.kind in _NUMERALS:
        return (
            f"{operand.span.of(text)} is text: write '{value.span.of(text)}'. To"
            f" compare numbers, write CAST({operand.span.of(text)} AS {_target(other)})."
        )
    is_fraction = other.base == "decimal" and other.parameters[1] != 0
    if not is_fraction and isinstance(value, s.Name):
        return _number_hint(text, value, other)
    return None


def range_hint(text: str, node: s.Between, types: tuple[Type, Type, Type]) -> str | None:
    for limit, limit_type in zip((node.low, node.high), types[1:], strict=True):
        hint = comparison_hint(text, "<", (node.value, limit), (types[0], limit_type))
        if hint is not None:
            return hint
        if is_text(types[0]) and is_numeric(limit_type):
            return cast_hint(text, node.value, limit_type)
    return None


def list_hint(text: str, nodes: Sequence[s.Expression], types: Sequence[Type]) -> str | None:
    """Return how IN takes text and values of another type, or None: the value is the first node."""
    for node, item in zip(nodes[1:], types[1:], strict=True):
        hint = comparison_hint(text, "=", (nodes[0], node), (types[0], item))
        if hint is not None:
            return hint
    return None


def cast_hint(
    text: str, operand: s.Expression | None, number: Type, samples: Sequence[str] = ()
) -> str:
    """Return the conversion of a text that is computed with as a number: ``samples`` are some of
    its values.
    """
    operand_text = "..." if operand is None else operand.span.of(text)
    target: Type | str = _target(number)
    if any("," in sample for sample in samples):
        operand_text = f"replace({operand_text}, ',', '')"
    if any("." in sample for sample in samples) and not is_float(number):
        target = "decimal(18, 2)"
    return (
        f"Trino does not turn text into numbers by itself; write CAST({operand_text} AS {target})."
    )


def date_hint(text: str) -> str | None:
    """Return how a statement has the date that a text is, or None.

    >>> date_hint("31/12/2026"), date_hint("soon")
    ("Write DATE '2026-12-31'.", None)
    """
    days = dates_of(text)
    if not days:
        return None
    literals = " or ".join(f"DATE '{day}'" for day in days)
    return f"Write {literals}."


def _target(number: Type) -> Type | str:
    # A literal's own precision would hold few texts.
    return f"decimal(18, {number.parameters[1]})" if number.base == "decimal" else number


def _moment_hint(text: str, node: s.Expression, other: Type) -> str:
    if isinstance(node, s.Literal):
        if _DATE.fullmatch(node.value):
            return f"Write DATE '{node.value}'."
        if _TIMESTAMP.fullmatch(node.value):
            return f"Write TIMESTAMP '{node.value}'."
        if (hint := date_hint(node.value)) is not None:
            return hint
    operand = node.span.of(text)
    return (
        f"Trino does not turn text into dates by itself; write CAST({operand} AS {other.base}), or"
        f" date_parse({operand}, '%d/%m/%Y') for text such as 31/12/2026, or"
        f" from_iso8601_timestamp({operand}) for 2026-09-01T08:00:00Z."
    )


def _number_hint(text: str, value: s.Name, other: Type) -> str:
    """Return the number as text; text as a number loses zeros in front, and fails for other text."""
    operand, column = value.span.of(text), value.parts[-1].text
    whole = f"CAST({operand} AS bigint)" if is_float(other) else operand
    return (
        f"Write CAST({whole} AS varchar). Numbers lose leading zeros: read a file's"
        f" column as text, read_csv(dtype={{{json.dumps(column, ensure_ascii=False)}: str}})."
    )
