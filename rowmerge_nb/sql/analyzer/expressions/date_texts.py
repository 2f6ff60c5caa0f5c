"""Texts that are dates, such as 31/12/2026: their layout, and the comparison of them as dates."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.analyzer.expressions.dataframe_values import first_texts
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed.type_rules import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.sql.typed.expressions import Typed

ISO: Final = "%Y-%m-%d"
YEAR_LAST: Final = tuple(
    sign.join(parts)
    for sign, parts in product(
        "/.-",
        (
            ("%d", "%m", "%Y"),
            ("%m", "%d", "%Y"),
            ("%d", "%m", "%y"),
            ("%m", "%d", "%y"),
        ),
    )
)
"""Layouts in digits that begin with the day or the month."""
_LAYOUTS: Final = (
    ISO,
    "%Y%m%d",
    *YEAR_LAST,
    "%Y/%m/%d",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d %B %Y",
)
"""What people write, by the letters of Python and, but for months' names, of ``date_parse``."""
SORTED: Final = frozenset([ISO, "%Y%m%d", "%Y/%m/%d"])
"""Layouts whose order as texts is that of the dates."""
_MOST_OPERANDS: Final = 50
_DIGITS: Final = re.compile(r"\d{8}")


@dataclass(frozen=True)
class DateOperands:
    """The operands of a comparison: texts of one layout, and literals that are dates.

    Args:
        layouts: those that every text fits; two where the day may be first or second.
    """

    layouts: tuple[str, ...]
    example: str
    literals: tuple[s.Literal, ...]

    @property
    def pattern(self) -> str:
        """The layout for ``date_parse``."""
        return parse_pattern(self.layouts[0])

    def as_dates(self, text: str, span: Span, columns: Sequence[s.Expression]) -> str:
        """Return the comparison at a place of the statement with dates instead of texts."""
        changes = [
            (node.span, f"date_parse({node.span.of(text)}, '{self.pattern}')") for node in columns
        ]
        for literal in self.literals:
            days = dates_of(literal.value, (self.layouts[0], *_LAYOUTS))
            changes.append((literal.span, f"DATE '{days[0]}'"))
        comparison = text[span.start : span.end]
        for part, replacement in sorted(changes, key=lambda change: -change[0].start):
            start, end = part.start - span.start, part.end - span.start
            comparison = comparison[:start] + replacement + comparison[end:]
        return comparison

    @property
    def other_pattern(self) -> str:
        """What to write instead if the month is first; empty where that is no question."""
        if len(self.layouts) == 1:
            return ""
        return f" If the month is first, write '{parse_pattern(self.layouts[1])}'."


def parse_pattern(layout: str) -> str:
    """Return a layout with the letters of ``date_parse``.

    >>> parse_pattern("%d %B %Y")
    '%d %M %Y'
    """
    return layout.replace("%B", "%M")


def layouts_of(texts: Iterable[str], layouts: Iterable[str] = _LAYOUTS) -> tuple[str, ...]:
    """Return the layouts that each of some texts has.

    >>> layouts_of(["31/12/2026", "01/02/2026"])
    ('%d/%m/%Y',)
    >>> layouts_of(["01/02/2026"])
    ('%d/%m/%Y', '%m/%d/%Y')
    >>> layouts_of(["soon"]), layouts_of([])
    ((), ())
    """
    distinct = set(texts)
    if not distinct:
        return ()
    return tuple(
        layout for layout in layouts if all(_date(text, layout) is not None for text in distinct)
    )


def dates_of(text: str, layouts: Iterable[str] = _LAYOUTS) -> list[str]:
    """Return the dates that a text may be, as in ISO 8601.

    >>> dates_of("05/04/2026"), dates_of("31 Mar 2026"), dates_of("soon")
    (['2026-04-05', '2026-05-04'], ['2026-03-31'], [])
    """
    days = (_date(text, layout) for layout in layouts)
    return list(dict.fromkeys(day.isoformat() for day in days if day is not None))


def date_operands(
    context: Context,
    operands: Sequence[tuple[s.Expression, Typed]],
    fields: Iterable[ScopeField],
) -> DateOperands | None:
    """Return the texts of a comparison that are dates in one layout, or None.

    The first values of a DataFrame's column count. Where nothing is known of the columns, the
    literals' own layout is taken for theirs.
    """
    if len(operands) > _MOST_OPERANDS:
        return None
    fields = list(fields)
    texts: list[str] = []
    literals: list[s.Literal] = []
    for node, value in operands:
        if not is_text(value.type):
            continue
        if isinstance(node, s.Literal):
            literals.append(node)
        else:
            texts += first_texts(context, value, fields)
    if not all(dates_of(literal.value) for literal in literals):
        return None
    texts = texts or [literal.value for literal in literals]
    layouts = layouts_of(texts)
    return DateOperands(layouts, texts[0], tuple(literals)) if layouts else None


def _date(text: str, layout: str) -> dt.date | None:
    # A text of eight digits alone may have no separators, and most texts are no dates.
    if not text[:1].isdigit() or (layout == "%Y%m%d") != bool(_DIGITS.fullmatch(text)):
        return None
    try:
        return dt.datetime.strptime(text, layout).date()  # noqa: DTZ007
    except ValueError:
        return None
