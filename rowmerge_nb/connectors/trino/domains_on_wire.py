"""Domains of columns as JSON for a host process, without loss."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.spi.page_source import ColumnDomain
    from rowmerge_nb.spi.types import Type

_CLASSES: Final[Mapping[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), (int,)),
    **dict.fromkeys(("real", "double"), (float,)),
    "decimal": (Decimal, int),
    **dict.fromkeys(("varchar", "char", "uuid"), (str,)),
    "varbinary": (bytes,),
    "date": (dt.date,),
    "time": (dt.time,),
    **dict.fromkeys(("timestamp", "timestamp with time zone"), (dt.datetime,)),
}
"""The classes of the values of a type; a subclass, such as bool of int, is another value."""
_NO_VALUES: Final[dict[str, Any]] = {"values": []}


def constraint_on_wire(
    domains: Mapping[str, ColumnDomain], types: Mapping[str, Type]
) -> dict[str, Any]:
    """Return domains as JSON.

    The engine filters again, so a domain that cannot be written exactly is omitted.

    >>> from rowmerge_nb.spi.page_source import ColumnDomain
    >>> from rowmerge_nb.spi.types import parse_type
    >>> domains = {"day": ColumnDomain(low=dt.date(2026, 1, 31)), "code": ColumnDomain((b"a",))}
    >>> types = {"day": parse_type("date"), "code": parse_type("varbinary")}
    >>> constraint_on_wire(domains, types)
    {'day': {'low': '2026-01-31', 'high': None}, 'code': {'values': ['61']}}
    """
    pairs = ((name, domain_on_wire(domain, types.get(name))) for name, domain in domains.items())
    return {name: value for name, value in pairs if value is not None}


def domain_on_wire(domain: ColumnDomain, sql_type: Type | None) -> dict[str, Any] | None:
    """Return a domain as JSON, or None if that is not exact."""
    bounds = (domain.low, domain.high)
    values = bounds if domain.values is None else domain.values
    if sql_type is None or not all(
        value is None or _has_class(value, sql_type) for value in values
    ):
        return None
    if domain.values is not None:
        return {"values": [_on_wire(value) for value in values]}
    low, high = bounds
    if low is not None and high is not None and low > high:
        return _NO_VALUES
    return {"low": _on_wire(low), "high": _on_wire(high)}


def version_on_wire(version: ConnectorTableVersion) -> dict[str, Any]:
    """Return a version of a table as JSON, with the type of its value.

    >>> from rowmerge_nb.spi.handles import ConnectorTableVersion, PointerType
    >>> version_on_wire(ConnectorTableVersion(7))
    {'pointer': 'TARGET_ID', 'type': 'bigint', 'value': 7}
    >>> moment = dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC)
    >>> version_on_wire(ConnectorTableVersion(moment, PointerType.TEMPORAL))["type"]
    'timestamp(6) with time zone'
    """
    match version.version:
        case int():
            sql_type = "bigint"
        case str():
            sql_type = "varchar"
        case dt.datetime() if version.version.tzinfo is not None:
            sql_type = "timestamp(6) with time zone"
        case dt.datetime():
            sql_type = "timestamp(6)"
        case _:
            sql_type = "date"
    return {
        "pointer": version.pointer_type.name,
        "type": sql_type,
        "value": _on_wire(version.version),
    }


def _has_class(value: Any, sql_type: Type) -> bool:
    if type(value) not in _CLASSES.get(sql_type.base, ()):
        return False
    if isinstance(value, float):
        is_rounded = sql_type.base == "real" and float(np.float32(value)) != value
        return not math.isnan(value) and not is_rounded
    if isinstance(value, dt.datetime):
        is_zoned = sql_type.base == "timestamp with time zone"
        return not sql_type.fields and is_zoned == (value.tzinfo is not None)
    return not isinstance(value, Decimal) or value.is_finite()


def _on_wire(value: Any) -> Any:
    """Return a value as JSON.

    >>> _on_wire(Decimal("1E+2")), _on_wire(dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC))
    ('100', '2026-01-31T08:00:00+00:00')
    """
    match value:
        case Decimal():
            return format(value, "f")
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).isoformat()
        case dt.date() | dt.time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case _:
            return value
