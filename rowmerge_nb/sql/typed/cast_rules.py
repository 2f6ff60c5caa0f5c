"""Trino's casts, and those that this engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    MOMENTS,
    NESTED,
    can_coerce,
    is_numeric,
)

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type

NUMBERS_IN_ERRORS: Final = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "real": "REAL",
    "double": "DOUBLE",
}
"""What Trino calls a type where a text is no number of it."""

_NUMBERS: Final = frozenset(
    {"tinyint", "smallint", "integer", "bigint", "decimal", "real", "double"}
)

_TARGETS: Final = {
    "boolean": _NUMBERS | {"boolean", "varchar", "json", "number"},
    **dict.fromkeys(_NUMBERS, _NUMBERS | {"boolean", "varchar", "json", "number"}),
    "number": _NUMBERS | {"varchar", "json"},
    "varchar": (
        _NUMBERS
        | MOMENTS
        | {"boolean", "varchar", "char", "varbinary", "time", "json", "uuid", "number"}
    ),
    "char": (
        (_NUMBERS | MOMENTS | {"boolean", "varchar", "char", "varbinary", "number"}) - {"decimal"}
    ),
    "varbinary": frozenset({"uuid"}),
    "date": MOMENTS | {"varchar", "json"},
    "time": frozenset({"time", "timestamp", "timestamp with time zone", "varchar"}),
    "timestamp": MOMENTS | {"time", "varchar", "json"},
    "timestamp with time zone": MOMENTS | {"time", "varchar"},
    "uuid": frozenset({"varchar", "varbinary"}),
    "json": _NUMBERS | {"boolean", "varchar", "number"},
    INTERVAL_DAY.base: frozenset({"varchar"}),
    INTERVAL_YEAR.base: frozenset({"varchar"}),
}
"""To what CAST takes values of a type, nested types apart."""


_PLAIN: Final = frozenset({"unknown", "boolean", "varchar", "json", "date", "timestamp", "number"})
_READ: Final = frozenset({"boolean", "varchar", "json", "number"})


def can_cast(source: Type, target: Type) -> bool:
    if source == UNKNOWN or can_coerce(source, target):
        return True
    if source.base in NESTED and target.base in NESTED:
        same = source.base == target.base and len(source.parameters) == len(target.parameters)
        return same and all(
            can_cast(a, b) for a, b in zip(source.parameters, target.parameters, strict=True)
        )
    if source.base in NESTED:
        return target.base == "json" and has_json_form(source)
    if target.base in NESTED:
        return source.base == "json" and is_read_from_json(target)
    if source.base == "uuid" and target.base == "varchar":
        return not target.parameters
    return target.base in _TARGETS.get(source.base, frozenset())


def json_refusal(source: Type, target: Type) -> tuple[str, str] | None:
    """Return Trino's code and message of a nested cast to or from JSON, unless a type is to blame.

    >>> from rowmerge_nb.spi.types import JSON, parse_type
    >>> json_refusal(parse_type("map(date, integer)"), JSON)
    ('INVALID_CAST_ARGUMENT', 'Cannot cast map(date, integer) to JSON')
    """
    if source.base == "row" and target.base == "json":
        wrong = next((leaf for leaf in leaves(source) if not has_json_form(leaf)), source)
        return "INVALID_FUNCTION_ARGUMENT", f"Unsupported type: {wrong}"
    if source.base == "map" and target.base == "json" and has_json_form(source.parameters[0]):
        return "INVALID_CAST_ARGUMENT", f"Cannot cast {source} to JSON"
    if source.base == "json" and target.base in {"row", "map"}:
        return "INVALID_CAST_ARGUMENT", f"Cannot cast JSON to {target}"
    return None


def is_cast_supported(source: Type, target: Type) -> bool:
    """Return whether this engine has a cast that Trino has.

    It reads no texts in JSON beside decimals, and no number.
    """
    if source.base != "json" or target.base == "json":
        return True
    bases = {part.base for part in leaves(target)}
    return "number" not in bases and not {"varchar", "decimal"} <= bases


def leaves(sql_type: Type) -> list[Type]:
    """Return the scalar types within a type, without keys of maps."""
    if sql_type.base in NESTED:
        inner = sql_type.parameters[1:] if sql_type.base == "map" else sql_type.parameters
        return [leaf for part in inner for leaf in leaves(part)]
    return [sql_type]


def has_json_form(sql_type: Type) -> bool:
    """Return whether CAST converts values of the type to JSON.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> has_json_form(parse_type("map(varchar, array(date))")), has_json_form(parse_type("array(varbinary)"))
    (True, False)
    """
    return _converts(sql_type, _PLAIN)


def is_read_from_json(sql_type: Type) -> bool:
    return _converts(sql_type, _READ)


def _converts(sql_type: Type, others: frozenset[str]) -> bool:
    if sql_type.base == "map":
        key, value = sql_type.parameters
        return (is_numeric(key) or key.base in {"varchar", "boolean"}) and _converts(value, others)
    if sql_type.base in {"array", "row"}:
        return all(_converts(part, others) for part in sql_type.parameters)
    return is_numeric(sql_type) or sql_type.base in others
