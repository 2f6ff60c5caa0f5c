"""Analyzes FOR VERSION and FOR TIMESTAMP AS OF; as in Trino, the value is computed during analysis."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.handles import ConnectorTableVersion, PointerType
from rowmerge_nb.spi.types import UNKNOWN, Type
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.constancy import refuse_subqueries
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import is_integer
from rowmerge_nb.sql.typed.zones import zone_info

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context

_ZONED: Final = "timestamp with time zone"
_TEMPORAL: Final = frozenset({"date", "timestamp", _ZONED})


def version_of(context: Context, period: s.QueryPeriod) -> ConnectorTableVersion:
    refuse_subqueries(context, period.end)
    analyzer = ExpressionAnalyzer(context, Scope(()), ExpressionSite(period.words))
    value = analyzer.analyze(period.end)
    sql_type, pointer_type = value.type, PointerType(period.kind)
    if (
        pointer_type is PointerType.TEMPORAL
        and sql_type.base not in _TEMPORAL
        and sql_type != UNKNOWN
    ):
        context.error(
            "TYPE_MISMATCH",
            f"Type {sql_type} invalid. Temporal pointers must be of type Timestamp, Timestamp with"
            " Time Zone, or Date.",
            period.span,
            "Write TIMESTAMP '...' or DATE '...'.",
        )
    if isinstance(value, e.Constant):
        pointer = _plain(value)
    else:
        [pointer] = map(_moment, context.evaluate([value], period.end.span))
    # The statement's present, which may be rounded in the expression.
    now = context.now.replace(microsecond=context.now.microsecond // 1000 * 1000)
    if pointer is None:
        context.error("INVALID_ARGUMENTS", "Pointer value cannot be NULL", period.span)
    version = ConnectorTableVersion(pointer, pointer_type, sql_type)
    if pointer_type is PointerType.TEMPORAL and version.instant() >= now:
        context.error(
            "INVALID_ARGUMENTS",
            f"Pointer value '{_moment_text(pointer, sql_type)}' is not in the past",
            period.span,
            "Leave FOR TIMESTAMP AS OF out to read the table as it is now.",
        )
    return version


def _plain(value: e.Constant) -> Any:
    text, sql_type = value.value, value.type
    if text is None:
        return None
    if is_integer(sql_type):
        return int(text)
    if sql_type.base == "date":
        return dt.date.fromisoformat(text)
    if sql_type.base not in _TEMPORAL:
        return text
    moment, zone = dt.datetime.fromisoformat(text[:26]), text[27:] or "UTC"
    return (
        moment
        if sql_type.base == "timestamp"
        else moment.replace(tzinfo=dt.UTC).astimezone(zone_info(zone))
    )


def _moment(value: Any) -> Any:
    return (
        value["instant"].astimezone(zone_info(value["zone"])) if isinstance(value, dict) else value
    )


def _moment_text(pointer: dt.date, sql_type: Type) -> str:
    if not isinstance(pointer, dt.datetime):
        return pointer.isoformat()
    digits = min(int(str(sql_type.parameters[0])) if sql_type.parameters else 3, 6)
    fraction = f".{pointer.microsecond:06d}"[: digits + 1] if digits else ""
    zone = f" {pointer.tzinfo}" if sql_type.base == _ZONED else ""
    return f"{pointer:%Y-%m-%d %H:%M:%S}{fraction}{zone}"
