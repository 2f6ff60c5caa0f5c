"""PostgreSQL's comparisons that agree with the engine's."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.names import quoted, quoted_text
from rowmerge_nb.connectors.jdbc.predicates import ColumnTerms, integer

if TYPE_CHECKING:
    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def terms_of(column: JdbcColumn, *, unicode: bool) -> ColumnTerms | None:
    """Return the terms of a column; None if the server must not compare it.

    Texts are ordered by code points as in the engine, not by locale. A nondeterministic collation
    may treat more texts as equal.
    """
    name, base = quoted(column.name), column.type.base
    if base in {"smallint", "integer", "bigint"}:
        return integer(name)
    if base in {"varchar", "char"}:
        own = f"{name}::text" if column.cast else name
        # The server ignores trailing blanks of a char, and so orders it differently.
        ordered = f'{own} COLLATE "C"' if unicode and base == "varchar" else ""
        return ColumnTerms(
            lambda value: _text(value, padded=base == "char", unicode=unicode), own, ordered
        )
    if base == "uuid":
        return ColumnTerms(
            lambda value: f"{quoted_text(value)}::uuid" if _UUID.fullmatch(str(value)) else None,
            name,
        )
    literal_of = _WRITTEN.get(base)
    return ColumnTerms(literal_of, name, name) if literal_of is not None else None


def _text(value: Any, *, padded: bool, unicode: bool) -> str | None:
    # The server cannot store a text with a zero byte.
    if not isinstance(value, str) or "\0" in value or not (unicode or value.isascii()):
        return None
    return quoted_text(value.rstrip(" ") if padded else value)


def _moment(value: dt.datetime) -> str:
    return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}'"


def _zoned(value: dt.datetime) -> str:
    at = value.astimezone(dt.UTC) if value.tzinfo is not None else value
    return f"TIMESTAMP WITH TIME ZONE '{at.replace(tzinfo=None).isoformat(' ')}+00:00'"


_WRITTEN: Final = {
    "boolean": lambda value: str(bool(value)).lower(),
    "decimal": lambda value: f"{value:f}::numeric" if value >= 0 else f"({value:f})::numeric",
    "real": lambda value: f"'{float(value)!r}'::float8",
    "double": lambda value: f"'{float(value)!r}'::float8",
    "date": lambda value: f"DATE '{value.isoformat()}'",
    "time": lambda value: f"TIME '{value.isoformat()}'",
    "timestamp": _moment,
    "timestamp with time zone": _zoned,
    "varbinary": lambda value: f"'\\x{value.hex()}'::bytea",
}
