"""Default values of columns: Iceberg's values and SQL literals."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.base.names import quoted_text

_WORDS: Final = {
    Decimal: "DECIMAL",
    dt.date: "DATE",
    dt.time: "TIME",
    uuid.UUID: "UUID",
}


def literal_of(value: Any, type_name: str) -> str | None:
    """Return a default as the text of an SQL literal, None without a default.

    >>> literal_of("it's", "string"), literal_of(1.5, "float"), literal_of(Decimal("1.50"), "decimal")
    ("'it''s'", "REAL '1.5'", "DECIMAL '1.50'")
    >>> literal_of(dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC), "timestamptz")
    "TIMESTAMP '2024-02-29 12:00:00.000000 UTC'"
    """
    if value is None:
        return None
    if isinstance(value, str):
        return quoted_text(value)
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        word = "REAL" if type_name == "float" else "DOUBLE"
        return f"{word} '{value!r}'"
    if isinstance(value, dt.datetime):
        zone = "" if value.tzinfo is None else " UTC"
        text = value.astimezone(dt.UTC) if zone else value
        return f"TIMESTAMP '{text:%Y-%m-%d %H:%M:%S.%f}{zone}'"
    word = _WORDS.get(type(value), "")
    return f"{word} '{value}'" if word else str(value)


def value_of(text: str, type_name: str, column: str) -> Any:
    """Return an SQL literal as a value that pyiceberg converts to a column's type.

    Raises:
        AnalysisError: NOT_SUPPORTED for literals of other forms.

    >>> value_of("'it''s'", "string", "c"), value_of("-5", "long", "c"), value_of("NULL", "int", "c")
    ("it's", -5, None)
    >>> value_of("TIMESTAMP '2024-02-29 12:00:00 UTC'", "timestamptz", "c")
    '2024-02-29T12:00:00+00:00'
    """
    word, quote, rest = text.partition("'")
    word = word.strip().lower()
    inner = rest[:-1].replace("''", "'") if quote else word
    try:
        return _value(word if quote else "", inner, type_name)
    except (ValueError, ArithmeticError, KeyError) as error:
        raise AnalysisError.unsupported(
            f"Column '{column}' has the default {text}, which is not supported for Iceberg's type"
            f" {type_name}",
            hint="Write a plain literal of the column's type.",
        ) from error


def _value(word: str, inner: str, type_name: str) -> Any:
    if not word and inner == "null":
        return None
    if word == "x":
        return bytes.fromhex(inner)
    if type_name == "boolean":
        return {"true": True, "false": False}[inner]
    if type_name in {"int", "long"}:
        number = Decimal(inner)
        if number != int(number):
            raise ValueError(inner)
        return int(number)
    if type_name in {"float", "double"}:
        return float(inner)
    if type_name == "decimal":
        return Decimal(inner)
    if type_name in {"timestamp", "timestamptz"}:
        return _timestamp(inner, type_name)
    # pyiceberg parses texts of the other types.
    return inner


def _timestamp(text: str, type_name: str) -> str:
    day, _, clock = text.partition(" ")
    clock, _, zone = clock.partition(" ")
    moment = dt.datetime.fromisoformat(f"{day}T{clock or '00:00:00'}")
    if type_name == "timestamp":
        return moment.isoformat()
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(zone) if zone else dt.UTC)
    return moment.astimezone(dt.UTC).isoformat()
