"""Analyzes ``FOR VERSION AS OF`` and ``FOR TIMESTAMP AS OF``: which version of a table is to be read.

The value behind AS OF is computed while the statement is analyzed, as Trino does it: it must be known before the table is looked up.
"""

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
    """Return the version that a query period points at.

    Raises:
        AnalysisError: EXPRESSION_NOT_CONSTANT, TYPE_MISMATCH for a moment of another type, INVALID_ARGUMENTS for NULL and for a moment that
            is not in the past; or one of the expression.
        RowMergeError: the expression cannot be computed.
    """
    refuse_subqueries(context, period.end)
    analyzer = ExpressionAnalyzer(context, Scope(()), ExpressionSite(period.words))
    value = analyzer.analyze(period.end)
    kind, pointer_type = value.type, PointerType(period.kind)
    if pointer_type is PointerType.TEMPORAL and kind.base not in _TEMPORAL and kind != UNKNOWN:
        context.error(
            "TYPE_MISMATCH",
            f"Type {kind} invalid. Temporal pointers must be of type Timestamp, Timestamp with Time Zone, or Date.",
            period.span,
            "Write TIMESTAMP '...' or DATE '...'.",
        )
    if isinstance(value, e.Constant):
        pointer = _plain(value)
    else:
        [pointer] = map(_moment, context.evaluate([value], period.end.span))
    # The statement's present, which may be rounded in it.
    now = context.now.replace(microsecond=context.now.microsecond // 1000 * 1000)
    if pointer is None:
        context.error("INVALID_ARGUMENTS", "Pointer value cannot be NULL", period.span)
    version = ConnectorTableVersion(pointer, pointer_type, kind)
    if pointer_type is PointerType.TEMPORAL and version.instant() >= now:
        context.error(
            "INVALID_ARGUMENTS",
            f"Pointer value '{_shown(pointer, kind)}' is not in the past",
            period.span,
            "Leave FOR TIMESTAMP AS OF out to read the table as it is now.",
        )
    return version


def _plain(value: e.Constant) -> Any:
    """Return the value of a literal."""
    text, kind = value.value, value.type
    if text is None:
        return None
    if is_integer(kind):
        return int(text)
    if kind.base == "date":
        return dt.date.fromisoformat(text)
    if kind.base not in _TEMPORAL:
        return text
    found, zone = dt.datetime.fromisoformat(text[:26]), text[27:] or "UTC"
    return found if kind.base == "timestamp" else found.replace(tzinfo=dt.UTC).astimezone(zone_info(zone))


def _moment(value: Any) -> Any:
    """Return a moment with its own zone as Python has it; all else stays as it is."""
    return value["instant"].astimezone(zone_info(value["zone"])) if isinstance(value, dict) else value


def _shown(pointer: dt.date, kind: Type) -> str:
    """Write a moment as a cast to varchar does, with no more than six digits of a second."""
    if not isinstance(pointer, dt.datetime):
        return pointer.isoformat()
    digits = min(int(str(kind.parameters[0])) if kind.parameters else 3, 6)
    fraction = f".{pointer.microsecond:06d}"[: digits + 1] if digits else ""
    zone = f" {pointer.tzinfo}" if kind.base == _ZONED else ""
    return f"{pointer:%Y-%m-%d %H:%M:%S}{fraction}{zone}"
