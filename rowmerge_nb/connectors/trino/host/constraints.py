"""Constraints of the wire as Trino's TupleDomain."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.connectors.trino.host.block_building import BlockBuilder, ChannelType
from rowmerge_nb.connectors.trino.host.jvm import java_class, java_list
from rowmerge_nb.spi.types import parse_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.spi.types import Type

_PREDICATE: Final = "io.trino.spi.predicate."


def tuple_domain(
    constraint: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, tuple[JavaObject, JavaObject]],
    builder: BlockBuilder,
) -> JavaObject:
    """Return the TupleDomain of a constraint.

    Args:
        constraint: per column ``{"values": [...]}`` or ``{"low": ..., "high": ...}``.
    """
    domains = java_class("java.util.LinkedHashMap")()
    for name, domain in constraint.items():
        if name in columns:
            handle, java_type = columns[name]
            domains.put(handle, _domain(domain, java_type, builder))
    return java_class(f"{_PREDICATE}TupleDomain").withColumnDomains(domains)


def _domain(domain: Mapping[str, Any], java_type: JavaObject, builder: BlockBuilder) -> JavaObject:
    channel = ChannelType(parse_type(str(java_type.getDisplayName())), java_type)
    domains = java_class(f"{_PREDICATE}Domain")
    values = domain.get("values")
    if values is not None:
        natives = native_values(values, channel, builder)
        return (
            domains.multipleValues(java_type, java_list(natives))
            if natives
            else domains.none(java_type)
        )
    ranges = java_class(f"{_PREDICATE}Range")
    low, high = (
        native_values([] if limit is None else [limit], channel, builder)
        for limit in (domain.get("low"), domain.get("high"))
    )
    if low and high:
        span = ranges.range(java_type, low[0], True, high[0], True)
    elif low:
        span = ranges.greaterThanOrEqual(java_type, low[0])
    elif high:
        span = ranges.lessThanOrEqual(java_type, high[0])
    else:
        return domains.notNull(java_type)
    value_set = java_class(f"{_PREDICATE}ValueSet").ofRanges(java_list([span]))
    return domains.create(value_set, False)


def native_values(
    values: Sequence[Any], channel: ChannelType, builder: BlockBuilder
) -> list[JavaObject]:
    """Return values as Trino's stack types, such as Long, Slice and Int128.

    Values that the type cannot hold equal no value of the column, and are omitted.
    """
    read = java_class("io.trino.spi.type.TypeUtils").readNativeValue
    block = builder.block(values_of_type(values, channel.sql), channel)
    return [
        read(channel.java, block, position) for position in range(int(block.getPositionCount()))
    ]


def values_of_type(values: Sequence[Any], sql_type: Type) -> pa.Array:
    python_values = [_READERS.get(sql_type.base, _unchanged)(value) for value in values]
    try:
        return pa.array(python_values, sql_type.arrow)
    except (pa.ArrowInvalid, OverflowError):
        return pa.array(
            [value for value in python_values if _fits(value, sql_type)], sql_type.arrow
        )


def _fits(value: Any, sql_type: Type) -> bool:
    try:
        pa.array([value], sql_type.arrow)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _unchanged(value: Any) -> Any:
    return value


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "decimal": Decimal,
    "varbinary": bytes.fromhex,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "timestamp with time zone": dt.datetime.fromisoformat,
}
"""The inverse of how the driver writes values."""
