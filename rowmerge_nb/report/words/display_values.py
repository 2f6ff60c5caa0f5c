"""Values for display: NULL as NULL, long ones truncated, invisible characters escaped."""

from __future__ import annotations

import datetime as dt
import decimal
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.names import quoted_text

if TYPE_CHECKING:
    import pyarrow as pa

LIMIT: Final = 40
_TITLE_LIMIT: Final = 400
_HASH_DIGITS: Final = 5
LONGEST: Final = 1_000
"""The number of characters of a value in the rows of a query at most."""
_BLANK: Final = "\N{OPEN BOX}"


@dataclass(frozen=True)
class Cell:
    text: str
    null: bool = False
    title: str = ""


NULL: Final = Cell("NULL", null=True)
FILLED: Final = Cell(
    "(store)", null=True, title="The statement has NULL here; the store puts its own value."
)


def visible(text: str) -> str:
    """Escape characters that are invisible or change the reading direction."""
    return "".join(
        _escape(char) if char in _NO_CHARACTERS or unicodedata.category(char) in _HIDDEN else char
        for char in text
    )


_NO_CHARACTERS: Final = "\ufffe\uffff"
"""XML cannot represent them, not even by number."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(char: str) -> str:
    return _SHORT.get(char) or (
        f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
    )


def shortened(text: str, length: str = "") -> str:
    """Return a text of at most `LONGEST` characters; a longer one is cut, and says its length.

    >>> shortened("short"), shortened("x" * 1_001)[-23:]
    ('short', 'xxx… (1,001 characters)')
    """
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({length or f'{len(text):,} characters'})"


def with_ends(value: Any) -> Any:
    """Replace a blank at either end of a text by a visible sign; return other values unchanged.

    >>> with_ends("Eve "), with_ends(" "), with_ends(7)
    ('Eve\N{OPEN BOX}', '\N{OPEN BOX}', 7)
    """
    if not isinstance(value, str) or not (value.startswith(" ") or value.endswith(" ")):
        return value
    text = f"{value[:-1]}{_BLANK}" if value.endswith(" ") else value
    return f"{_BLANK}{text[1:]}" if text.startswith(" ") else text


def cell(value: Any, limit: int = LIMIT) -> Cell:
    if value is None:
        return NULL
    # Only the start of a long value is formatted: a cell of some megabytes must not take seconds.
    length = len(value) if isinstance(value, str) else 0
    text = visible(value[: _TITLE_LIMIT + 1]) if isinstance(value, str) else _plain(value)
    if len(text) <= limit:
        return Cell(text, title=_named(value) if isinstance(value, Mapping) else "")
    start = text if len(text) <= _TITLE_LIMIT else text[: _TITLE_LIMIT - 1] + "…"
    return Cell(text[: limit - 1] + "…", title=f"{start} ({max(length, len(text)):,} characters)")


def row_text(values: Iterable[Any], limit: int = LIMIT) -> str:
    """Return a row in parentheses; texts that could be taken for several values, or for none, are
    quoted, and others are not.

    >>> row_text(["a, b", "c", "", "NULL", None, 1])
    "('a, b', c, '', 'NULL', NULL, 1)"
    """
    return (
        "("
        + ", ".join(_quoted(value, cell(with_ends(value), limit).text) for value in values)
        + ")"
    )


def _item(value: Any) -> str:
    return _quoted(value, _plain(value))


def _quoted(value: Any, text: str) -> str:
    ambiguous = isinstance(value, str) and ("," in value or value in {"", "NULL"})
    return quoted_text(text) if ambiguous else text


def _plain(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, bytes):
        return (
            "X'" + value[:_TITLE_LIMIT].hex().upper() + ("…'" if len(value) > _TITLE_LIMIT else "'")
        )
    if isinstance(value, Mapping):
        items = list(islice(value.values(), _TITLE_LIMIT))
        return "(" + ", ".join(map(_item, items)) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(map(_item, value[:_TITLE_LIMIT])) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_item, value[:_TITLE_LIMIT])) + ")"
    # A text of some megabytes within an array must not take seconds.
    return visible(str(value)[: _TITLE_LIMIT + 1])


def _named(value: Mapping[str, Any]) -> str:
    items = islice(value.items(), _TITLE_LIMIT)
    return visible(", ".join(f"{name} {_item(item)}" for name, item in items))


def tail(value: Any) -> Cell:
    """Return the last digits of a hash, enough to compare by eye.

    >>> tail(-4730612345678912345).text
    '…12345'
    """
    if value is None:
        return NULL
    digits = str(abs(value))
    return Cell(
        digits if len(digits) <= _HASH_DIGITS else "…" + digits[-_HASH_DIGITS:], title=str(value)
    )


def struct_rows(column: pa.Array) -> list[list[Any] | None]:
    """Return the values of a struct channel by position, None if the whole struct is NULL.

    Field names may repeat: a table may have a column named ``operation``.
    """
    # Imported late: the magics import this module, and should not load Arrow.
    from rowmerge_nb.spi.values import python_values

    fields = [python_values(field) for field in column.flatten()]
    valid = column.is_valid().to_pylist()
    return [
        [field[index] for field in fields] if is_valid else None
        for index, is_valid in enumerate(valid)
    ]


def is_number(sql_type: str) -> bool:
    """Return whether values of a SQL type are numbers, which are right-aligned.

    >>> is_number("decimal(38,0)"), is_number("varchar")
    (True, False)
    """
    return sql_type.partition("(")[0] in {
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double",
        "decimal",
    }
