"""Python values as SQL: what ``{{ }}`` puts into a cell, and the values of parameters."""

from __future__ import annotations

import datetime as dt
import decimal
import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

from rowmerge_nb.base.names import quoted_text

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_BIGINT: Final = range(-(2**63), 2**63)
"""Only plain integers are looked up in it: Python counts through a range for those of a class of
their own, such as an enumeration's.
"""


class NoConstantError(Exception):
    """A value that cannot be written as SQL; the message is a sentence for the user."""


def constant(value: Any) -> str:
    """Write a Python value as one SQL expression: a literal, an array, a map.

    Args:
        value: None, a truth value, a number, a text, bytes, a date or time, a UUID, of NumPy's and
            pandas' as well; lists, tuples and arrays of such values, and dictionaries.

    Raises:
        NoConstantError: no type of SQL has such values.
    """
    if getattr(value, "ndim", 0) == 1 and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"ARRAY[{', '.join(map(constant, value))}]"
    if isinstance(value, Mapping):
        return f"MAP({constant(list(value))}, {constant(list(value.values()))})"
    if isinstance(value, str) and (half := half_character(value)) is not None:
        raise NoConstantError(
            f"It has a lone surrogate, U+{ord(half[0]):04X}, which is half a character"
        )
    if (text := constant_of(value)) is None:
        raise NoConstantError(f"A value of type {type(value).__name__} has no type of SQL")
    return text


def half_character(text: str) -> re.Match[str] | None:
    r"""Find the first half of a character in a text, which Python may hold and no store can keep.

    >>> half_character("Zo\ud800"), half_character("Zoë")
    (<re.Match object; span=(2, 3), match='\ud800'>, None)
    """
    return None if text.isascii() else _SURROGATE.search(text)


def constant_of(value: Any) -> str | None:
    """Write a single value as a literal; None if there is none for it.

    >>> constant_of(None), constant_of(True), constant_of(1.5), constant_of(object())
    ('NULL', 'true', '1.5E0', None)
    """
    if type(value).__name__ in {"NAType", "NaTType"}:
        return "NULL"
    # NumPy's numbers and times, and pandas' as well, say what they are in Python.
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    elif (
        hasattr(value, "item")
        and not isinstance(value, str | bytes)
        and getattr(value, "size", 1) == 1
    ):
        value = value.item()
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return _double(float(value))
        case int():
            return _integer(int(value))
        case decimal.Decimal() if value.is_finite():
            return f"DECIMAL '{value:f}'"
        case dt.datetime():
            zone = f" {_offset(value)}" if value.tzinfo else ""
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}{zone}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.time():
            return f"TIME '{value.isoformat()}'"
        case dt.timedelta():
            return _interval(value)
        case uuid.UUID():
            return f"UUID '{value}'"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return quoted_text(value)
    return None


def property_text(value: Any) -> str:
    """Write the value of a table's property.

    >>> property_text(("id", "bucket(v, 4)")), property_text(4), property_text(True)
    ("ARRAY['id', 'bucket(v, 4)']", '4', 'true')
    """
    if isinstance(value, list | tuple):
        return f"ARRAY[{', '.join(map(property_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else quoted_text(str(value))


def _integer(value: int) -> str:
    # A number outside the range of bigint is a decimal, if a decimal has that many digits.
    return str(value) if value in _BIGINT else f"DECIMAL '{value}'"


def _double(value: float) -> str:
    """Write a double: with an exponent, because SQL takes ``1.5`` for a decimal.

    >>> _double(1.5), _double(1e300), _double(float("nan"))
    ('1.5E0', '1E300', 'nan()')
    """
    if value != value:  # noqa: PLR0124 - the one number that is not itself
        return "nan()"
    if value in {float("inf"), float("-inf")}:
        return "infinity()" if value > 0 else "-infinity()"
    text = repr(value)
    if "e" in text:
        return text.replace("e", "E").replace("E+", "E")
    return f"{text}E0"


def _interval(value: dt.timedelta) -> str | None:
    """Write a length of time, which has milliseconds in SQL.

    >>> _interval(dt.timedelta(days=1, seconds=3661, milliseconds=5))
    "INTERVAL '1 01:01:01.005' DAY TO SECOND"
    """
    total, rest = divmod(abs(value), dt.timedelta(milliseconds=1))
    if rest:
        return None
    seconds, millis = divmod(total, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    sign = "-" if value < dt.timedelta() else ""
    return f"INTERVAL {sign}'{days} {hours:02}:{minutes:02}:{seconds:02}.{millis:03}' DAY TO SECOND"


def _offset(value: dt.datetime) -> str:
    minutes = round((value.utcoffset() or dt.timedelta()).total_seconds() / 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
