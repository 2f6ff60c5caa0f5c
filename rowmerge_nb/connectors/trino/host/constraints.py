"""Constraints of the wire as Trino's TupleDomain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.connectors.trino.host.block_building import BlockBuilder, ChannelType
from rowmerge_nb.connectors.trino.host.jvm import java_class, java_list
from rowmerge_nb.spi.types import parse_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject

_PREDICATE: Final = "io.trino.spi.predicate."


def tuple_domain(
    constraint: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, tuple[JavaObject, JavaObject]],
    builder: BlockBuilder,
) -> JavaObject:
    """Return the TupleDomain of a constraint.

    Args:
        constraint: per column ``{"values": [...]}`` or ``{"low": ..., "high": ...}``.
        columns: handle and type of each column of the table; other columns are ignored.
        builder: converts values.
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
        natives = _native_values(values, channel, builder)
        return (
            domains.multipleValues(java_type, java_list(natives))
            if natives
            else domains.none(java_type)
        )
    low, high = domain.get("low"), domain.get("high")
    ranges = java_class(f"{_PREDICATE}Range")
    bounds = _native_values([limit for limit in (low, high) if limit is not None], channel, builder)
    if low is not None and high is not None:
        span = ranges.range(java_type, bounds[0], True, bounds[1], True)
    elif low is not None:
        span = ranges.greaterThanOrEqual(java_type, bounds[0])
    elif high is not None:
        span = ranges.lessThanOrEqual(java_type, bounds[0])
    else:
        return domains.notNull(java_type)
    value_set = java_class(f"{_PREDICATE}ValueSet").ofRanges(java_list([span]))
    return domains.create(value_set, False)


def _native_values(
    values: Sequence[Any], channel: ChannelType, builder: BlockBuilder
) -> list[JavaObject]:
    """Return values as Trino's stack types, such as Long, Slice and Int128."""
    arrow_type = channel.sql.arrow
    if pa.types.is_decimal(arrow_type):
        array = pa.array([str(value) for value in values], pa.string()).cast(arrow_type)
    elif values and isinstance(values[0], str) and not pa.types.is_string(arrow_type):
        array = pa.array(values, pa.string()).cast(arrow_type)
    else:
        array = pa.array(values, arrow_type)
    block = builder.block(array, channel)
    read = java_class("io.trino.spi.type.TypeUtils").readNativeValue
    return [read(channel.java, block, position) for position in range(len(array))]
