"""The rows of a query, with values as SQL literals."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.base.names import quoted_text
from rowmerge_nb.base.words import plural
from rowmerge_nb.report.words.display_values import LONGEST, NULL, Cell, shortened, visible
from rowmerge_nb.spi.types import is_number
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from collections.abc import Sequence


def row_cells(table: pa.Table, limit: int) -> list[Sequence[Cell]]:
    """Return the first rows of a table, by position: two columns may have one name.

    >>> [[cell.text for cell in row] for row in row_cells(pa.table([[1, None], [True, False]], names=["a", "a"]), 9)]
    [['1', 'true'], ['NULL', 'false']]
    """
    columns = [[sql_cell(value) for value in column] for column in table.slice(0, limit).columns]
    return list(zip(*columns, strict=True))


def number_columns(table: pa.Table) -> frozenset[int]:
    """Return the positions of the numeric columns.

    >>> number_columns(pa.table([["x"], [1]], names=["a", "a"]))
    frozenset({1})
    """
    return frozenset(i for i, field in enumerate(table.schema) if is_number(field.type))


def sql_cell(value: pa.Scalar) -> Cell:
    r"""Return the cell of a value.

    >>> sql_cell(pa.scalar([1, None])).text, sql_cell(pa.scalar({"a": 1, "b": "it's"})).text, sql_cell(pa.scalar(b"\xff")).text
    ('ARRAY[1, NULL]', "ROW(1, 'it''s')", "X'FF'")
    """
    if not value.is_valid:
        return NULL
    if pa.types.is_string(value.type) or pa.types.is_large_string(value.type):
        text = value.as_py()
        # Only the part that is shown is searched for invisible characters.
        return Cell(shortened(visible(text[: LONGEST + 1]), f"{len(text):,} characters"))
    return Cell(shortened(visible(_sql(value, inside=False)), _length(value)))


def _length(value: pa.Scalar) -> str:
    arrow_type = value.type
    if pa.types.is_map(arrow_type):
        return plural(len(value.values), "entry", "entries")
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return plural(len(value.values), "element")
    if pa.types.is_struct(arrow_type):
        return plural(arrow_type.num_fields, "field")
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return plural(value.as_buffer().size, "byte")
    return ""


def _sql(value: pa.Scalar, *, inside: bool) -> str:
    arrow_type = value.type
    if not value.is_valid:
        return "NULL"
    if pa.types.is_map(arrow_type):
        entries = value.values
        return f"MAP({_array(entries.field(0))}, {_array(entries.field(1))})"
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return _array(value.values)
    if pa.types.is_struct(arrow_type):
        return (
            f"ROW({', '.join(_sql(value[i], inside=True) for i in range(arrow_type.num_fields))})"
        )
    if pa.types.is_float32(arrow_type):
        import numpy as np

        return _number(str(np.float32(value.as_py())))
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return _plain(value.as_buffer()[: LONGEST // 2 + 1].to_pybytes(), inside=inside)
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return _plain(value.as_py()[: LONGEST + 1], inside=inside)
    (plain,) = python_values(pa.array([value]))
    if isinstance(plain, str) and pa.types.is_temporal(arrow_type):
        word = "DATE" if pa.types.is_date(arrow_type) else "TIMESTAMP"
        return f"{word} '{plain}'" if inside else plain
    return _plain(plain, inside=inside)


def _array(values: pa.Array) -> str:
    # Each element takes a character at least, and no more characters are shown.
    return f"ARRAY[{', '.join(_sql(value, inside=True) for value in values[:LONGEST])}]"


def _plain(value: Any, *, inside: bool) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return _number(repr(value))
        case decimal.Decimal():
            return f"{value:f}"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case dt.datetime():
            zone = f" {value.isoformat()[-6:]}" if value.tzinfo else ""
            text = value.replace(tzinfo=None).isoformat(sep=" ") + zone.replace("+00:00", "UTC")
            word = "TIMESTAMP"
        case dt.date():
            text, word = value.isoformat(), "DATE"
        case dt.time():
            text, word = value.isoformat(), "TIME"
        case str():
            return quoted_text(value)
        case _:
            return str(value)
    return f"{word} '{text}'" if inside else text


def _number(text: str) -> str:
    """Spell a float as SQL does.

    >>> _number("1e+300"), _number("nan"), _number("-inf")
    ('1E300', 'NaN', '-Infinity')
    """
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(
        text, text.replace("e+", "E").replace("e", "E")
    )
