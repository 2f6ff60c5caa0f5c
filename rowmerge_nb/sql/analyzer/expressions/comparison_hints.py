"""The next step for comparisons of text with dates and numbers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed.type_rules import is_float, is_numeric, is_text

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type

_DATE: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_TIMESTAMP: Final = re.compile(rf"{_DATE.pattern} \d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?")


def comparison_hint(
    text: str, operator: str, node: s.Binary, sides: tuple[Type, Type]
) -> str | None:
    """Return how text and a value of another type are compared, or None."""
    is_first, is_second = map(is_text, sides)
    if is_first == is_second:
        return None
    operand, value = (node.left, node.right) if is_first else (node.right, node.left)
    other = sides[is_first]
    if other.base in {"date", "timestamp", "timestamp with time zone"}:
        return _moment_hint(text, operand, other)
    is_fraction = other.base == "decimal" and other.parameters[1] != 0
    if operator == "=" and is_numeric(other) and not is_fraction and isinstance(value, s.Name):
        return _number_hint(text, value, other)
    return None


def _moment_hint(text: str, node: s.Expression, other: Type) -> str:
    if isinstance(node, s.Literal):
        if _DATE.fullmatch(node.value):
            return f"Write DATE '{node.value}'."
        if _TIMESTAMP.fullmatch(node.value):
            return f"Write TIMESTAMP '{node.value}'."
    operand = node.span.of(text)
    return (
        f"Trino does not turn text into dates by itself; write CAST({operand} AS {other.base}), or"
        f" from_iso8601_timestamp({operand}) for text such as 2026-09-01T08:00:00Z."
    )


def _number_hint(text: str, value: s.Name, other: Type) -> str:
    """Return the number as text; text as a number loses zeros in front, and fails for other text."""
    operand, column = value.span.of(text), value.parts[-1].text
    whole = f"CAST({operand} AS bigint)" if is_float(other) else operand
    return (
        f"Write CAST({whole} AS varchar). A number has lost its leading zeros: read a file's column"
        f" as text, read_csv(dtype={{{json.dumps(column, ensure_ascii=False)}: str}})."
    )
