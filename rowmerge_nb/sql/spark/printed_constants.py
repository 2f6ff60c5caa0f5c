"""Constants as Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.functions.json_functions import LITERAL
from rowmerge_nb.sql.spark.casts.moment_casts import zoned_value
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import is_integer, is_zoned, spark_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.types import Type

_SUFFIX: Final = {"tinyint": "Y", "smallint": "S", "integer": "", "bigint": "L"}


def constant_text(sql_type: Type, value: str | None) -> str:
    if value is None:
        return "NULL" if sql_type == UNKNOWN else f"CAST(NULL AS {spark_type(sql_type)})"
    if is_integer(sql_type):
        text = f"{value}{_SUFFIX[sql_type.base]}"
        return f"({text})" if value.startswith("-") else text
    if is_zoned(sql_type):
        moment, zone = value.rsplit(" ", 1)
        return zoned_value(f"TIMESTAMP'{moment}'", text_literal(zone))
    writer = _CONSTANTS.get(sql_type.base)
    return (
        writer(sql_type, value)
        if writer
        else f"CAST({text_literal(value)} AS {spark_type(sql_type)})"
    )


def _double(_kind: Type, value: str) -> str:
    number = float(value)
    if number in {float("inf"), float("-inf")} or number != number:  # noqa: PLR0124 - NaN is the number unlike itself
        return f"CAST('{'NaN' if number != number else 'Infinity' if number > 0 else '-Infinity'}' AS DOUBLE)"  # noqa: PLR0124
    text = f"{number!r}D".upper()
    return f"({text})" if text.startswith("-") else text


def _interval(_kind: Type, value: str) -> str:
    """Write an interval with separate days, since Spark takes twelve digits of seconds."""
    sign = "-" if value.startswith("-") else ""
    whole, fraction = value.removeprefix("-").split(".")
    days, seconds = divmod(int(whole), 86400)
    return f"make_dt_interval({sign}{days}, 0, 0, {_signed(f'{sign}{seconds}.{fraction}BD')})"


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


_CONSTANTS: Final[dict[str, Callable[[Type, str], str]]] = {
    "boolean": lambda _k, v: v,
    "varchar": lambda _k, v: text_literal(v),
    "char": lambda _k, v: text_literal(v),
    "uuid": lambda _k, v: text_literal(v),
    "json": lambda _k, v: LITERAL.replace("{0}", text_literal(v)),
    "varbinary": lambda _k, v: f"X'{v}'",
    "date": lambda _k, v: f"DATE'{v}'",
    "timestamp": lambda _k, v: f"TIMESTAMP_NTZ'{v}'",
    "timestamp with time zone": lambda _k, v: f"TIMESTAMP'{v}'",
    "time": lambda _k, v: f"TIME'{v}'",
    "double": _double,
    "interval day to second": _interval,
    "interval year to month": lambda _k, v: f"make_ym_interval(0, {v})",
}
