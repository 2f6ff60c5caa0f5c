"""SQLite's comparisons that agree with the engine's; ranges of decimals and timestamps are slightly
widened.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.names import quoted_text
from rowmerge_nb.connectors.jdbc.predicates import ColumnTerms, integer
from rowmerge_nb.connectors.jdbc.sqlite.sqlite_types import EXACT_DIGITS, has_text_affinity, named

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn

_MARGIN: Final = 1e-12
"""The relative margin of floating-point ranges: SQLite may read the last digits differently."""
_SINGLE: Final = 1e-6
"""The margin of single precision, to which SQLite's numbers are rounded on reading."""
_SMALLEST: Final = 1e-44


def terms_of(column: JdbcColumn, *, unicode: bool) -> ColumnTerms | None:
    """Return the terms of a column; None if SQLite must not compare it.

    ``unicode``: the file's texts are UTF-8, whose byte order is that of code points.
    """
    name, base = named(column.name), column.type.base
    if base in {"boolean", "tinyint", "smallint", "integer", "bigint"}:
        return integer(name)
    if base in {"varchar", "uuid"}:
        return ColumnTerms(
            _text, name, f"{name} COLLATE BINARY" if unicode and base == "varchar" else ""
        )
    if base == "char":
        return ColumnTerms(lambda value: _text(value.rstrip(" ")), f"rtrim({name}, ' ')")
    if base == "varbinary":
        return ColumnTerms(lambda value: f"x'{value.hex()}'", name, name)
    if base == "date":
        return ColumnTerms(lambda value: f"'{value.isoformat()}'", name, name)
    if base == "timestamp":
        return ColumnTerms(
            _never, low=lambda value: _from(name, value), high=lambda value: _until(name, value)
        )
    if base == "timestamp with time zone":
        return ColumnTerms(
            _never,
            low=lambda value: _from_day(name, value, -1),
            high=lambda value: _until_day(name, value, 2),
        )
    if base in {"real", "double", "decimal"}:
        return _numbers(column, name)
    return None


def _never(_: Any) -> None:
    return None


def _text(value: Any) -> str | None:
    # A zero byte would end the statement.
    return None if not isinstance(value, str) or "\0" in value else quoted_text(value)


# -- numbers


def _numbers(column: JdbcColumn, name: str) -> ColumnTerms | None:
    base, text = column.type.base, has_text_affinity(column.declared)
    if base == "decimal" and not text:
        precision, scale = column.type.parameters
        if precision > EXACT_DIGITS:
            return None
        # Values a quarter of the last digit away are read as another value.
        quarter = Decimal(1).scaleb(-scale) / 4
        terms = _range(name, lambda value: (value - quarter, value + quarter))
        whole = f"CAST(round({name} * 1e{scale}) AS INTEGER)"
        return replace(terms, literal=lambda value: str(int(value.scaleb(scale))), equal=whole)
    upper = column.declared.upper()
    if base == "decimal" or any(word in upper for word in ("REAL", "FLOA", "DOUB")):
        margin = _SINGLE if base == "real" else _MARGIN
        return _range(
            f"CAST({name} AS REAL)" if text else name, lambda value: _widened(float(value), margin)
        )
    # Without floating-point affinity, a stored integer is rounded when it is read.
    return None


def _widened(value: float, margin: float) -> tuple[float, float]:
    off = abs(value) * margin + _SMALLEST
    return value - off, value + off


def _range(name: str, widened: Callable[[Any], tuple[Any, Any]]) -> ColumnTerms:
    def low(value: Any) -> str | None:
        return f"{name} >= {_number(widened(value)[0])}" if math.isfinite(value) else None

    def high(value: Any) -> str | None:
        return f"{name} <= {_number(widened(value)[1])}" if math.isfinite(value) else None

    return ColumnTerms(_never, low=low, high=high)


def _number(value: Any) -> str:
    if isinstance(value, float):
        # SQLite reads a literal that is too large as infinity.
        return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}9e999"
    return f"{value:f}"


# -- moments


def _from(name: str, value: dt.datetime) -> str | None:
    """Build the lower bound. Texts may lack seconds and fractions, and have a T in the middle."""
    text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
    short = text.rstrip("0").removesuffix(".")
    for part in (":00", ":00", " 00"):
        short = short.removesuffix(part)
    return f"{name} >= '{text[:10]}' AND replace({name}, 'T', ' ') >= '{short}'"


def _until(name: str, value: dt.datetime) -> str | None:
    """Build the upper bound; the tilde sorts after anything that may follow."""
    text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return f"{name} <= '{text[:10]}~' AND replace({name}, 'T', ' ') <= '{text}~'"


def _from_day(name: str, value: dt.datetime, days: int) -> str | None:
    """Build the lower bound: the day before, since the text may have any zone."""
    day = _shifted(value, days)
    return f"{name} >= '{day}'" if day is not None else None


def _until_day(name: str, value: dt.datetime, days: int) -> str | None:
    day = _shifted(value, days)
    return f"{name} < '{day}'" if day is not None else None


def _shifted(value: dt.datetime, days: int) -> str | None:
    try:
        at = value.astimezone(dt.UTC) if value.tzinfo is not None else value
        return (at.date() + dt.timedelta(days=days)).isoformat()
    except OverflowError:
        return None
