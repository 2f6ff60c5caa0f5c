"""The next step for values that do not fit the types of their columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.sql.analyzer.expressions.comparison_hints import date_hint
from rowmerge_nb.sql.analyzer.expressions.dataframe_values import texts_of
from rowmerge_nb.sql.analyzer.expressions.date_texts import (
    ISO,
    layouts_of,
    parse_pattern,
)
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.cast_rules import can_cast
from rowmerge_nb.sql.typed.type_rules import MOMENTS, is_float, is_numeric, is_text

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer import analysis as a

_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?")


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
        is_dated = self.column_type.base in MOMENTS
        if is_constant and is_dated and (hint := date_hint(self.text[1:-1])) is not None:
            return f"{problem}. {hint}"
        if is_text(self.column_type) and _NUMBER.fullmatch(self.text):
            return f"{problem}: write '{self.text}' in quotes."
        if not can_cast(self.value.type, self.column_type):
            return f"{problem}; no CAST converts it. Assign another value."
        cast = f"CAST({self._text_operand()} AS {self.column_type})"
        if self.star:
            remedy = f"convert it in the frame, or list the columns and write {cast}"
        else:
            remedy = f"write {cast}"
        if is_text(self.column_type) and self.value.type.base in MOMENTS:
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
        frame, name, texts = self._texts(source)
        layouts = layouts_of(texts)
        if not frame or not (self.column_type.base in MOMENTS or is_numeric(self.column_type)):
            return f"{problem}: {remedy}."
        column = f"{frame}[{name!r}]"
        if is_numeric(self.column_type):
            if any("," in text for text in texts):
                cast = f"CAST(replace({self.text}, ',', '') AS {self.column_type})"
                return (
                    f"{problem}, such as {next(text for text in texts if ',' in text)}: write {cast}."
                    f" In pandas: {column} = pd.to_numeric({column}.str.replace(',', ''))."
                )
            return f"{problem}: {remedy}. In pandas: {column} = pd.to_numeric({column})."
        if not layouts or ISO in layouts:
            return f"{problem}: {remedy}. In pandas: {column} = pd.to_datetime({column})."
        # Without the layout, CAST fails, and pandas takes the day of 05/04/2026 for the month.
        cast = f"CAST(date_parse({self.text}, '{parse_pattern(layouts[0])}') AS {self.column_type})"
        other = f" If the month is first, write '{layouts[1]}'." if len(layouts) > 1 else ""
        return (
            f"{problem}, such as {texts[0]}: write {cast}. In pandas: {column} ="
            f" pd.to_datetime({column}, format='{layouts[0]}').{other}"
        )

    def _text_operand(self) -> str:
        text = self.text or "..."
        if is_text(self.column_type) and self.value.type.base.startswith("timestamp"):
            return f"CAST({text} AS date)"
        # A double as text has an exponent.
        if is_text(self.column_type) and is_float(self.value.type):
            return f"CAST({text} AS decimal(18, 2))"
        return text

    def _texts(self, source: a.MergeSource | None) -> tuple[str, str, list[str]]:
        """Return the frame, the column, and its first texts; empty where there are none."""
        binding = None if source is None else source.binding
        if source is None or binding is None or binding.dataframe is None:
            return "", "", []
        name = next(
            (
                field.name
                for field in source.fields
                if isinstance(self.value, e.Column) and field.symbol == self.value.symbol
            ),
            None,
        )
        frame = binding.name[-1]
        if name is None or not frame.isidentifier() or not is_text(self.value.type):
            return "", "", []
        is_read = isinstance(binding.dataframe, pa.Table)
        return frame, name, texts_of(binding.dataframe.column(name)) if is_read else []
