"""Trino's rules on types: what coerces to what, what two types have in common, what arithmetic gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TINYINT,
    UNKNOWN,
    VARCHAR,
    Type,
    decimal_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "INTERVAL_DAY",
    "INTERVAL_YEAR",
    "MAX_PRECISION",
    "RANGES",
    "arithmetic_type",
    "as_decimal",
    "can_coerce",
    "common_type",
    "common_type_of",
    "is_exact",
    "is_float",
    "is_integer",
    "is_numeric",
    "is_text",
    "spark_type",
    "varchar_of",
]

INTERVAL_DAY: Final = Type("interval day to second")
INTERVAL_YEAR: Final = Type("interval year to month")

_INTEGERS: Final = {"tinyint": 3, "smallint": 5, "integer": 10, "bigint": 19}
RANGES: Final = {"tinyint": 2**7, "smallint": 2**15, "integer": 2**31, "bigint": 2**63}
_ORDER: Final = ("tinyint", "smallint", "integer", "bigint", "decimal", "real", "double")
_BY_NAME: Final = {t.base: t for t in (TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE)}
_MOMENTS: Final = ("date", "timestamp", "timestamp with time zone")
_COMPARABLE: Final = frozenset({"map", "row", "array"})
MAX_PRECISION: Final = 38


def varchar_of(length: int) -> Type:
    """Give varchar(length), the type of a literal of that many code points.

    >>> str(varchar_of(3))
    'varchar(3)'
    """
    return Type("varchar", (length,))


def is_integer(kind: Type) -> bool:
    """Is it tinyint, smallint, integer or bigint?"""
    return kind.base in _INTEGERS


def is_exact(kind: Type) -> bool:
    """Is it an integer type or decimal?"""
    return is_integer(kind) or kind.base == "decimal"


def is_float(kind: Type) -> bool:
    """Is it real or double?"""
    return kind.base in {"real", "double"}


def is_numeric(kind: Type) -> bool:
    """Is it a number?"""
    return is_exact(kind) or is_float(kind)


def is_text(kind: Type) -> bool:
    """Is it varchar or char, of whatever length?"""
    return kind.base in {"varchar", "char"}


def as_decimal(kind: Type) -> Type:
    """Give the decimal type that holds every value of an exact type.

    >>> str(as_decimal(INTEGER))
    'decimal(10,0)'
    """
    return decimal_of(_INTEGERS[kind.base]) if kind.base in _INTEGERS else kind


def common_type(left: Type, right: Type) -> Type | None:
    """Give the type to which both coerce, or None.

    >>> str(common_type(INTEGER, decimal_of(3, 1))), common_type(VARCHAR, INTEGER)
    ('decimal(11,1)', None)
    """
    if right in {left, UNKNOWN}:
        return left
    if left == UNKNOWN:
        return right
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    if is_text(left) and is_text(right):
        return _common_text(left, right)
    if left.base in _MOMENTS and right.base in _MOMENTS:
        wider = max(left, right, key=lambda t: _MOMENTS.index(t.base))
        return Type(wider.base, (_precision(left, right),)) if wider != DATE else wider
    if left.base == right.base == "time":
        return Type("time", (_precision(left, right),))
    if left.base == right.base and left.base in _COMPARABLE:
        return _common_nested(left, right)
    return None


def _precision(left: Type, right: Type) -> int:
    return max((t.parameters[0] for t in (left, right) if t.parameters), default=6)


def _common_number(left: Type, right: Type) -> Type:
    wider = max(left, right, key=lambda t: _ORDER.index(t.base))
    if wider.base != "decimal":
        return _BY_NAME[wider.base]
    (p1, s1), (p2, s2) = as_decimal(left).parameters, as_decimal(right).parameters
    scale = max(s1, s2)
    return decimal_of(min(MAX_PRECISION, max(p1 - s1, p2 - s2) + scale), scale)


def _common_text(left: Type, right: Type) -> Type:
    base = "varchar" if left.base == right.base == "varchar" else "char"
    if base == "varchar" and not (left.parameters and right.parameters):
        return VARCHAR
    lengths = [t.parameters[0] if t.parameters else 65536 for t in (left, right)]
    return Type(base, (min(max(lengths), 65536),)) if base == "char" else varchar_of(max(lengths))


def _common_nested(left: Type, right: Type) -> Type | None:
    if len(left.parameters) != len(right.parameters):
        return None
    parts = [common_type(a, b) for a, b in zip(left.parameters, right.parameters, strict=True)]
    if any(part is None for part in parts):
        return None
    names = tuple(a if a == b else None for a, b in zip(left.fields, right.fields, strict=True))
    return Type(left.base, tuple(parts), names)


def common_type_of(kinds: Sequence[Type]) -> Type | None:
    """Give the type to which all coerce, or None.

    >>> str(common_type_of([INTEGER, UNKNOWN, BIGINT]))
    'bigint'
    """
    found: Type | None = UNKNOWN
    for kind in kinds:
        found = common_type(found, kind) if found is not None else None
    return found


def can_coerce(source: Type, target: Type) -> bool:
    """Does a value of the one type serve where the other is asked for, without a cast being written?

    >>> can_coerce(INTEGER, BIGINT), can_coerce(BIGINT, INTEGER), can_coerce(UNKNOWN, DATE)
    (True, False, True)
    """
    if source.base == target.base == "row":
        # Names of fields do not matter: an anonymous row fits by position.
        same_length = len(source.parameters) == len(target.parameters)
        return same_length and all(can_coerce(a, b) for a, b in zip(source.parameters, target.parameters, strict=True))
    if source.base == target.base and source.base in {"array", "map"}:
        return all(can_coerce(a, b) for a, b in zip(source.parameters, target.parameters, strict=True))
    return common_type(source, target) == target


def arithmetic_type(operator: str, left: Type, right: Type) -> Type | None:
    """Give the result type of + - * / %, or None where Trino has no such operator.

    >>> str(arithmetic_type("/", decimal_of(10, 2), decimal_of(5, 3)))
    'decimal(14,3)'
    """
    if UNKNOWN in {left, right}:
        left, right = (right, right) if left == UNKNOWN else (left, left)
        if left == UNKNOWN:
            return UNKNOWN
    if is_numeric(left) and is_numeric(right):
        common = _common_number(left, right)
        return _decimal_result(operator, as_decimal(left), as_decimal(right)) if common.base == "decimal" else common
    return _temporal_result(operator, left, right)


def _decimal_result(operator: str, left: Type, right: Type) -> Type:
    (p1, s1), (p2, s2) = left.parameters, right.parameters
    scale = max(s1, s2)
    if operator == "*":
        return decimal_of(min(MAX_PRECISION, p1 + p2), min(MAX_PRECISION, s1 + s2))
    if operator == "/":
        return decimal_of(min(MAX_PRECISION, max(p1 + s2 + max(s2 - s1, 0), scale)), scale)
    if operator == "%":
        return decimal_of(min(MAX_PRECISION, max(min(p1 - s1, p2 - s2) + scale, 1)), scale)
    return decimal_of(min(MAX_PRECISION, max(p1 - s1, p2 - s2) + scale + 1), scale)


def _temporal_result(operator: str, left: Type, right: Type) -> Type | None:
    intervals = (INTERVAL_DAY, INTERVAL_YEAR)
    moments = (*_MOMENTS, "time")
    if operator in "+-":
        if left.base in moments and right in intervals:
            return left
        if operator == "+" and left in intervals and right.base in moments:
            return right
        if left in intervals and left == right:
            return left
        if operator == "-" and left.base in _MOMENTS and right.base in _MOMENTS:
            return INTERVAL_DAY
    if operator == "*" and left in intervals and (is_integer(right) or is_float(right)):
        return left
    if operator == "*" and right in intervals and (is_integer(left) or is_float(left)):
        return right
    if operator == "/" and left in intervals and (is_integer(right) or is_float(right)):
        return left
    return None


_SPARK: Final = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double": "DOUBLE",
    "varchar": "STRING",
    "char": "STRING",
    "json": "STRING",
    "uuid": "STRING",
    "varbinary": "BINARY",
    "date": "DATE",
    "time": "TIME(6)",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamp with time zone": "TIMESTAMP",
    "unknown": "VOID",
    "interval day to second": "INTERVAL DAY TO SECOND",
    "interval year to month": "INTERVAL YEAR TO MONTH",
}


def spark_type(kind: Type) -> str:
    """Give the Spark type that holds a type's values.

    >>> spark_type(decimal_of(12, 2)), spark_type(Type("row", (DATE,), ("a",)))
    ('DECIMAL(12,2)', 'STRUCT<`a`: DATE>')
    """
    if kind.base == "decimal":
        return f"DECIMAL({kind.parameters[0]},{kind.parameters[1]})"
    if kind.base == "array":
        return f"ARRAY<{spark_type(kind.parameters[0])}>"
    if kind.base == "map":
        return f"MAP<{spark_type(kind.parameters[0])}, {spark_type(kind.parameters[1])}>"
    if kind.base == "row":
        named = zip(kind.fields, kind.parameters, strict=True)
        inner = ", ".join(f"`{(name or f'field{i}').replace('`', '``')}`: {spark_type(t)}" for i, (name, t) in enumerate(named))
        return f"STRUCT<{inner}>"
    return _SPARK[kind.base]
