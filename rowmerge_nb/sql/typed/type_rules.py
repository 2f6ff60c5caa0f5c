"""Trino's rules on types: coercion, common types, results of arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NUMBER,
    REAL,
    SMALLINT,
    TINYINT,
    UNKNOWN,
    VARCHAR,
    Type,
    array_of,
    decimal_of,
    row_of,
)
from rowmerge_nb.sql.typed.zones import session_zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


INTERVAL_DAY: Final = Type("interval day to second")
INTERVAL_YEAR: Final = Type("interval year to month")

_INTEGERS: Final = {"tinyint": 3, "smallint": 5, "integer": 10, "bigint": 19}
RANGES: Final = {"tinyint": 2**7, "smallint": 2**15, "integer": 2**31, "bigint": 2**63}
UNIT_MICROSECONDS: Final = {
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
UNIT_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_MOST_MICROSECONDS: Final = 9 * 10**18
_MOST_YEARS: Final = {"date": 5_800_000, "timestamp": 292_000}
_ORDER: Final = ("tinyint", "smallint", "integer", "bigint", "decimal", "real", "double")
_BY_NAME: Final = {t.base: t for t in (TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE)}
_MOMENTS_BY_WIDTH: Final = ("date", "timestamp", "timestamp with time zone")
MOMENTS: Final = frozenset(_MOMENTS_BY_WIDTH)
NESTED: Final = frozenset({"map", "row", "array"})
LONGEST_CHAR: Final = 65_536
MAX_PRECISION: Final = 38
_QUOTIENT_SCALE: Final = 6
"""The digits behind the point that a quotient, and a product that is too long, has at least."""
MOST_MICROSECONDS: Final = 6
"""The most decimals of a second that values have here."""
ZONED: Final = ("zone",)
"""The mark of a timestamp with time zone whose values carry zones of their own; see `zoned`."""


def is_orderable(sql_type: Type) -> bool:
    """Maps, json, number here, and types with them have none.

    >>> is_orderable(DATE), is_orderable(Type("json"))
    (True, False)
    """
    if sql_type.base in NESTED:
        return sql_type.base != "map" and all(map(is_orderable, sql_type.parameters))
    return sql_type.base not in {"json", "function", "number"}


def varchar_of(length: int) -> Type:
    """Return varchar(length), the type of a literal of that many code points."""
    return Type("varchar", (length,))


def zoned(sql_type: Type) -> Type:
    """Return the timestamp with time zone whose values carry their zones.

    Spark's TIMESTAMP and stored values are only instants. The zone of an expression such as ``t AT
    TIME ZONE 'Asia/Kolkata'`` decides casts and fields of dates.

    >>> str(zoned(Type("timestamp with time zone", (3,))))
    'timestamp(3) with time zone'
    """
    return Type(sql_type.base, sql_type.parameters, ZONED)


def is_zoned(sql_type: Type) -> bool:
    """Return whether values of a timestamp with time zone carry zones."""
    return sql_type.base == "timestamp with time zone" and bool(sql_type.fields)


def instant(sql_type: Type) -> Type:
    """Return the type without carried zones, at any depth."""
    if sql_type.base == "timestamp with time zone":
        return Type(sql_type.base, sql_type.parameters) if sql_type.fields else sql_type
    if sql_type.base in {"array", "map", "row"}:
        return Type(
            sql_type.base, tuple(instant(part) for part in sql_type.parameters), sql_type.fields
        )
    return sql_type


def cast_type(source: Type, target: Type) -> Type:
    """Return the type that CAST really produces: zones of values and texts are carried along."""
    if target.base == "timestamp with time zone":
        is_clock = source.base != target.base and session_zone() != "UTC"
        return zoned(target) if is_zoned(source) or is_text(source) or is_clock else target
    if (
        source.base == target.base
        and source.base in NESTED
        and len(source.parameters) == len(target.parameters)
    ):
        inner = tuple(
            cast_type(a, b) for a, b in zip(source.parameters, target.parameters, strict=True)
        )
        return Type(target.base, inner, target.fields)
    return target


def too_precise(sql_type: Type) -> Type | None:
    """Return a type inside with more digits of a second than are supported, or None.

    >>> str(too_precise(Type("array", (Type("timestamp", (9,)),)))), too_precise(Type("timestamp", (6,)))
    ('timestamp(9)', None)
    """
    moments = (
        part
        for part in parts_of(sql_type)
        if part.base in {"time", "timestamp", "timestamp with time zone"}
    )
    return next(
        (part for part in moments if part.parameters and part.parameters[0] > MOST_MICROSECONDS),
        None,
    )


def parts_of(sql_type: Type) -> Iterator[Type]:
    yield sql_type
    for part in sql_type.parameters:
        if isinstance(part, Type):
            yield from parts_of(part)


def has_map(sql_type: Type) -> bool:
    return any(part.base == "map" for part in parts_of(sql_type))


def entries_type(sql_type: Type) -> Type:
    """Return the type with arrays of entries in place of maps, at any depth."""
    if not has_map(sql_type):
        return sql_type
    inner = tuple(entries_type(part) for part in sql_type.parameters)
    if sql_type.base == "map":
        return array_of(row_of(zip(("key", "value"), inner, strict=True)))
    return Type(sql_type.base, inner, sql_type.fields)


def signature(sql_type: Type) -> str:
    """Return a type as Trino prints it in errors about calls.

    >>> signature(Type("map", (Type("varchar"), Type("row", (Type("bigint"), Type("real")), ("a", None)))))
    'map(varchar,row("a" bigint,real))'
    """
    if sql_type.base not in NESTED:
        return str(sql_type)
    names = sql_type.fields or (None,) * len(sql_type.parameters)
    parts = (
        f"{quoted(name)} {signature(part)}" if name else signature(part)
        for name, part in zip(names, sql_type.parameters, strict=True)
    )
    return f"{sql_type.base}({','.join(parts)})"


def listed_types(kinds: Iterable[Type]) -> str:
    """Return the argument types of a call as Trino lists them: no blanks, quoted field names."""
    return ", ".join(
        "<function>" if sql_type.base == "function" else signature(sql_type) for sql_type in kinds
    )


def without_unknown(sql_type: Type) -> Type:
    """Return the type in which values travel; values that are always NULL need some type.

    >>> str(without_unknown(Type("array", (UNKNOWN,))))
    'array(boolean)'
    """
    if sql_type.base in NESTED:
        return Type(
            sql_type.base,
            tuple(without_unknown(part) for part in sql_type.parameters),
            sql_type.fields,
        )
    return BOOLEAN if sql_type == UNKNOWN else sql_type


def is_integer(sql_type: Type) -> bool:
    return sql_type.base in _INTEGERS


def is_exact(sql_type: Type) -> bool:
    return is_integer(sql_type) or sql_type.base == "decimal"


def is_float(sql_type: Type) -> bool:
    return sql_type.base in {"real", "double"}


def is_numeric(sql_type: Type) -> bool:
    return is_exact(sql_type) or is_float(sql_type)


def is_text(sql_type: Type) -> bool:
    return sql_type.base in {"varchar", "char"}


def as_decimal(sql_type: Type) -> Type:
    """Return the decimal type that holds every value of an exact type.

    >>> str(as_decimal(INTEGER))
    'decimal(10,0)'
    """
    return decimal_of(_INTEGERS[sql_type.base]) if sql_type.base in _INTEGERS else sql_type


def common_type(left: Type, right: Type) -> Type | None:
    """Return the type to which both coerce."""
    if right in {left, UNKNOWN}:
        return left
    if left == UNKNOWN:
        return right
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    if NUMBER in {left, right} and (is_exact(left) or is_exact(right)):
        return NUMBER
    if is_text(left) and is_text(right):
        return _common_text(left, right)
    if left.base in MOMENTS and right.base in MOMENTS:
        wider = max(left, right, key=lambda t: _MOMENTS_BY_WIDTH.index(t.base))
        return (
            Type(wider.base, (_precision(left, right),), left.fields or right.fields)
            if wider != DATE
            else wider
        )
    if left.base == right.base == "time":
        return Type("time", (_precision(left, right),))
    if left.base == right.base and left.base in NESTED:
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
    # A char beside a varchar becomes one, without its blanks.
    if left.base == right.base == "char":
        return Type("char", (max(left.parameters[0], right.parameters[0]),))
    if not (left.parameters and right.parameters):
        return VARCHAR
    return varchar_of(max(left.parameters[0], right.parameters[0]))


def _common_nested(left: Type, right: Type) -> Type | None:
    if len(left.parameters) != len(right.parameters):
        return None
    parts = [common_type(a, b) for a, b in zip(left.parameters, right.parameters, strict=True)]
    if any(part is None for part in parts):
        return None
    names = tuple(a if a == b else None for a, b in zip(left.fields, right.fields, strict=True))
    return Type(left.base, tuple(parts), names)


def cast_name(sql_type: Type) -> str:
    """Return the name of a scalar type in Trino's errors of casts.

    >>> cast_name(decimal_of(5, 2)), cast_name(BIGINT)
    ('DECIMAL(5, 2)', 'BIGINT')
    """
    if sql_type.base == "decimal":
        return f"DECIMAL({', '.join(map(str, sql_type.parameters))})"
    return sql_type.base.upper()


def can_coerce(source: Type, target: Type) -> bool:
    """Return whether a value of one type serves as the other without a cast."""
    if source.base == target.base and source.base in NESTED:
        # Names of fields do not matter: an anonymous row fits by position.
        return len(source.parameters) == len(target.parameters) and all(
            map(can_coerce, source.parameters, target.parameters)
        )
    common = common_type(source, target)
    return common is not None and instant(common) == instant(target)


def is_assignable(source: Type, target: Type) -> bool:
    """Return whether a value of one type may be stored in a column of the other.

    Types with a common type are cast, even with loss. Within arrays, maps and rows, texts of
    limited length are not cast unless they fit.
    """
    exact = target.base in NESTED and any(
        part.base == "char" or (part.base == "varchar" and part.parameters)
        for part in parts_of(target)
    )
    # What has no type holds NULL alone.
    if exact or UNKNOWN in parts_of(target):
        return can_coerce(source, target)
    return common_type(source, target) is not None


def arithmetic_type(operator: str, left: Type, right: Type) -> Type | None:
    """Return the result type of + - * / %; None without such an operator, UNKNOWN if NULL leaves it
    open.
    """
    if UNKNOWN in {left, right}:
        return _with_null(operator, left, right)
    if is_numeric(left) and is_numeric(right):
        common = _common_number(left, right)
        return (
            _decimal_result(operator, as_decimal(left), as_decimal(right))
            if common.base == "decimal"
            else common
        )
    return _temporal_result(operator, left, right)


def _with_null(operator: str, left: Type, right: Type) -> Type | None:
    first = left == UNKNOWN
    sql_type = right if first else left
    if sql_type.base == "decimal":
        pair = (decimal_of(1), sql_type) if first else (sql_type, decimal_of(1))
        return _decimal_result(operator, *pair)
    if is_numeric(sql_type):
        # NULL may be an interval as well, which is multiplied by bigint or double and divided by
        # double.
        open_ = (operator == "*" and sql_type in {BIGINT, DOUBLE}) or (
            operator == "/" and first and sql_type == DOUBLE
        )
        return UNKNOWN if open_ else sql_type
    if sql_type in (INTERVAL_DAY, INTERVAL_YEAR):
        result_types = {
            "+": UNKNOWN,
            "-": UNKNOWN if first else sql_type,
            "*": sql_type,
            "/": None if first else sql_type,
        }
        return result_types.get(operator)
    if sql_type == UNKNOWN:
        # Only numbers have a remainder, and those of the smallest type go for all.
        return TINYINT if operator == "%" else UNKNOWN
    if sql_type.base not in (*MOMENTS, "time"):
        return None
    if operator == "+":
        moved = {_moved(sql_type, interval) for interval in (INTERVAL_DAY, INTERVAL_YEAR)} - {None}
        return moved.pop() if len(moved) == 1 else UNKNOWN
    if operator == "-":
        return INTERVAL_DAY if first else sql_type if sql_type == DATE else UNKNOWN
    return None


def exact_precision(operator: str, left: Type, right: Type) -> int:
    """Return the digits of a result before it is limited to 38.

    >>> exact_precision("*", decimal_of(20, 2), decimal_of(20, 2))
    40
    """
    (p1, s1), (p2, s2) = left.parameters, right.parameters
    scale = exact_scale(operator, left, right)
    if operator == "*":
        return int(p1 + p2)
    if operator == "/":
        return int(p1 - s1 + s2 + scale)
    if operator == "%":
        return int(max(min(p1 - s1, p2 - s2) + scale, 1))
    return int(max(p1 - s1, p2 - s2) + scale + 1)


def exact_scale(operator: str, left: Type, right: Type) -> int:
    """Return the digits behind the point of a result before it is limited to 38 digits.

    >>> exact_scale("*", decimal_of(20, 2), decimal_of(20, 2))
    4
    """
    (_, s1), (p2, s2) = left.parameters, right.parameters
    if operator == "*":
        return int(s1 + s2)
    return int(max(_QUOTIENT_SCALE, s1 + p2 + 1) if operator == "/" else max(s1, s2))


def _decimal_result(operator: str, left: Type, right: Type) -> Type:
    precision, scale = exact_precision(operator, left, right), exact_scale(operator, left, right)
    if precision > MAX_PRECISION:
        # Digits behind the point give way to those before it.
        if operator in "*/":
            scale = max(MAX_PRECISION - (precision - scale), min(scale, _QUOTIENT_SCALE))
        elif operator in "+-":
            scale = min(scale, MAX_PRECISION - (precision - scale - 1))
    return decimal_of(min(MAX_PRECISION, precision), scale)


def _temporal_result(operator: str, left: Type, right: Type) -> Type | None:
    intervals = (INTERVAL_DAY, INTERVAL_YEAR)
    if operator == "+" and left in intervals and right not in intervals:
        left, right = right, left
    if operator in "+-" and right in intervals:
        return left if left == right else _moved(left, right)
    if operator == "-" and (left.base in MOMENTS) == (right.base in MOMENTS):
        alike = left.base in MOMENTS or left.base == right.base == "time"
        return INTERVAL_DAY if alike else None
    if operator == "*" and right in intervals:
        left, right = right, left
    return left if operator in "*/" and left in intervals and is_numeric(right) else None


def _moved(moment: Type, interval: Type) -> Type | None:
    if moment == DATE or (moment.base in MOMENTS and interval == INTERVAL_YEAR):
        return moment
    if moment.base in MOMENTS or (moment.base == "time" and interval == INTERVAL_DAY):
        return Type(moment.base, (max(3, *moment.parameters),), moment.fields)
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
    "number": "STRING",
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


def spark_type(sql_type: Type) -> str:
    """Return the Spark type that holds a type's values.

    >>> spark_type(decimal_of(12, 2)), spark_type(Type("row", (DATE,), ("a",)))
    ('DECIMAL(12,2)', 'STRUCT<`a`: DATE>')
    """
    if sql_type.base == "decimal":
        return f"DECIMAL({sql_type.parameters[0]},{sql_type.parameters[1]})"
    if sql_type.base == "array":
        return f"ARRAY<{spark_type(sql_type.parameters[0])}>"
    if sql_type.base == "map":
        return f"MAP<{spark_type(sql_type.parameters[0])}, {spark_type(sql_type.parameters[1])}>"
    if sql_type.base == "row":
        fields = zip(sql_type.fields, sql_type.parameters, strict=True)
        inner = ", ".join(
            f"`{(name or f'field{i}').replace('`', '``')}`: {spark_type(t)}"
            for i, (name, t) in enumerate(fields)
        )
        return f"STRUCT<{inner}>"
    if is_zoned(sql_type):
        return "STRUCT<`instant`: TIMESTAMP, `zone`: STRING>"
    return _SPARK[sql_type.base]


def most_units(unit: str, sql_type: Type) -> int:
    """Return the number of units by which a date or timestamp can be moved: more overflow.

    >>> most_units("year", DATE), most_units("second", Type("timestamp", (3,)))
    (5800000, 9000000000000)
    """
    if unit in UNIT_MONTHS:
        return _MOST_YEARS["date" if sql_type == DATE else "timestamp"] * 12 // UNIT_MONTHS[unit]
    if sql_type == DATE:
        return _MOST_YEARS["date"] * 365 // (7 if unit == "week" else 1)
    return _MOST_MICROSECONDS // UNIT_MICROSECONDS.get(unit, 1)


def precision_of(sql_type: Type) -> int:
    """Return a type's supported decimals of a second."""
    return min(sql_type.parameters[0], MOST_MICROSECONDS) if sql_type.parameters else 0
