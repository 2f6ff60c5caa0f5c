"""The next step for a function whose argument is text, or should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import DATE, VARCHAR, Type, decimal_of
from rowmerge_nb.sql.analyzer.expressions.dataframe_values import first_texts
from rowmerge_nb.sql.analyzer.expressions.date_texts import ISO, layouts_of, parse_pattern
from rowmerge_nb.sql.functions.signatures import resolve
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import is_numeric, is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.scope import ScopeField

_MONEY: Final = decimal_of(18, 2)
_OF_MOMENTS: Final = frozenset(["date_add", "date_diff", "date_trunc"])
"""Functions whose signatures depend on the unit, a literal."""


def conversion_hint(
    context: Context,
    node: s.Expression,
    values: Sequence[e.Typed],
    fields: Iterable[ScopeField],
) -> str | None:
    """Return a call with one argument converted to a type that the function takes, or None."""
    if (
        not isinstance(node, s.FunctionCall)
        or len(node.arguments) != len(values)
        or any(isinstance(value, e.Function) for value in values)
    ):
        return None
    fields = list(fields)
    for index, (argument, value) in enumerate(zip(node.arguments, values, strict=True)):
        if isinstance(argument, s.Literal):
            continue
        text = argument.span.of(context.text)
        samples = first_texts(context, value, fields)
        for target, conversion in _conversions(text, value.type, samples):
            types = [operand.type for operand in values]
            types[index] = target
            if resolve(node.name, types) is not None or (
                node.name in _OF_MOMENTS and target == DATE and is_text(value.type)
            ):
                call, start = node.span.of(context.text), argument.span.start - node.span.start
                return f"Write {call[:start]}{conversion}{call[start + len(text) :]}."
    return None


def _conversions(text: str, sql_type: Type, samples: Sequence[str]) -> list[tuple[Type, str]]:
    if is_numeric(sql_type):
        return [(VARCHAR, f"CAST({text} AS varchar)")]
    if not is_text(sql_type):
        return []
    layouts = layouts_of(samples)
    if layouts and ISO not in layouts:
        return [(DATE, f"date_parse({text}, '{parse_pattern(layouts[0])}')")]
    number = text
    if any("," in sample for sample in samples):
        number = f"replace({text}, ',', '')"
    return [(_MONEY, f"CAST({number} AS decimal(18, 2))"), (DATE, f"CAST({text} AS date)")]
