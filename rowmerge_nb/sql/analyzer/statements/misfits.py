"""The next step for values that do not fit the types of their columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.analyzer.column_names import column_in_sql
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.cast_rules import can_cast
from rowmerge_nb.sql.typed.type_rules import is_float, is_numeric, is_text

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer import analysis as a

_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?")
_DATED: Final = frozenset({"date", "timestamp", "timestamp with time zone"})


@dataclass(frozen=True)
class Misfit:
    """A value of another type than its column.

    Args:
        text: the value as written; "" if the statement does not write it.
        star: the value comes from ``*``.
    """

    column: str
    column_type: Type
    value: e.Typed
    text: str
    star: bool = False

    def hint(self, source: a.MergeSource | None = None) -> str:
        """Return what is wrong, and the value as it would fit, ready to paste."""
        problem = (
            f"Column {column_in_sql(self.column)} has the type {self.column_type}, and its value"
            f" {self.value.type}"
        )
        is_constant = self.text.startswith("'") and self.text.endswith("'")
        if is_constant and is_numeric(self.column_type):
            number = self.text.strip("'").strip()
            if _NUMBER.fullmatch(number):
                return f"{problem}: write {number} without quotes."
        if is_text(self.column_type) and _NUMBER.fullmatch(self.text):
            return f"{problem}: write '{self.text}' in quotes."
        if not can_cast(self.value.type, self.column_type):
            return f"{problem}; no CAST converts it. Assign another value."
        cast = f"CAST({self._text_operand()} AS {self.column_type})"
        if self.star:
            remedy = f"convert it in the frame, or list the columns and write {cast}"
        else:
            remedy = f"write {cast}"
        if is_text(self.column_type) and self.value.type.base in _DATED:
            return (
                f"{problem}: the column holds text. To make it a date, convert its frame by"
                " pd.to_datetime (or read_csv(parse_dates=...)) and create the table again. For"
                f" text of the day, {remedy}."
            )
        if is_text(self.column_type) and is_float(self.value.type):
            return (
                f"{problem}: the column holds text. To make it a number, convert its frame by"
                " pd.to_numeric (or read_csv(thousands=',')) and create the table again. For text"
                f" with two decimals, {remedy}."
            )
        return " ".join(filter(None, [f"{problem}: {remedy}.", self._pandas(source)]))

    def _text_operand(self) -> str:
        text = self.text or "..."
        if is_text(self.column_type) and self.value.type.base.startswith("timestamp"):
            return f"CAST({text} AS date)"
        # A double as text has an exponent.
        if is_text(self.column_type) and is_float(self.value.type):
            return f"CAST({text} AS decimal(18, 2))"
        return text

    def _pandas(self, source: a.MergeSource | None) -> str | None:
        if source is None or source.binding is None or source.binding.dataframe is None:
            return None
        name = next(
            (
                field.name
                for field in source.fields
                if isinstance(self.value, e.Column) and field.symbol == self.value.symbol
            ),
            None,
        )
        frame = source.binding.name[-1]
        if name is None or not frame.isidentifier() or not is_text(self.value.type):
            return None
        function = (
            "to_datetime"
            if self.column_type.base in _DATED
            else "to_numeric"
            if is_numeric(self.column_type)
            else None
        )
        if function is None:
            return None
        column = f"{frame}[{name!r}]"
        return f"In pandas: {column} = pd.{function}({column})."
