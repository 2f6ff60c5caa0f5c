"""Tables about tables, such as ``t$files``, which a plugin's metadata offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.connectors.trino.host.block_building import ChannelType
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import (
    from_optional,
    java_class,
    java_list,
    java_text,
    optional,
)
from rowmerge_nb.connectors.trino.host.spi_versions import block_reader
from rowmerge_nb.connectors.trino.host.versions import SPI
from rowmerge_nb.connectors.trino.host_channel import pack_batch
from rowmerge_nb.spi.types import parse_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.connectors.trino.host.host_transactions import HostTransaction
    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.plugin_loading import LoadedPlugin
    from rowmerge_nb.connectors.trino.host.versions import SpiVersion


@dataclass(frozen=True)
class PayloadAnswer:
    result: Any
    payload: pa.Buffer


def read_system_table(
    plugin: LoadedPlugin, transaction: HostTransaction, schema: str, table: str
) -> PayloadAnswer | None:
    """Read a system table as Trino's SystemPageSourceProvider does; None without such a table."""
    name = java_class(f"{SPI}SchemaTableName")(java_text(schema), java_text(table))
    system_table = from_optional(transaction.metadata.getSystemTable(transaction.session, name))
    if system_table is None:
        return None
    system_table = java_class(f"{SPI}SystemTable") @ system_table
    columns = [
        column for column in system_table.getTableMetadata().getColumns() if not column.isHidden()
    ]
    channels = [
        ChannelType(parse_type(str(column.getType().getDisplayName())), column.getType())
        for column in columns
    ]
    names = [str(column.getName()) for column in columns]
    reader = block_reader(plugin.version)
    batches = [
        reader.batch(page, channels, names)
        for source in _sources(plugin, transaction, system_table, name, names)
        for page in _pages(plugin.version, source)
    ]
    empty = pa.schema(
        [(name, channel.sql.arrow) for name, channel in zip(names, channels, strict=True)]
    ).empty_table()
    whole = pa.concat_batches(batches) if batches else _batch(empty)
    return PayloadAnswer(
        {
            "columns": [
                {"name": name, "type": str(channel.sql)}
                for name, channel in zip(names, channels, strict=True)
            ]
        },
        pack_batch(whole),
    )


def _batch(table: pa.Table) -> pa.RecordBatch:
    arrays = [pa.array([], field.type) for field in table.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _sources(
    plugin: LoadedPlugin,
    transaction: HostTransaction,
    system_table: JavaObject,
    name: JavaObject,
    columns: Sequence[str],
) -> Iterator[JavaObject]:
    session, domains = transaction.session, java_class("io.trino.spi.predicate.TupleDomain")
    splits = (
        from_optional(system_table.splitSource(session, domains.all()))
        if hasattr(system_table, "splitSource")
        else None
    )
    if splits is not None:
        table = java_class("io.trino.connector.system.SystemTableHandle").fromSchemaTableName(name)
        credentials = (
            from_optional(system_table.getTableCredentials(session))
            if hasattr(system_table, "getTableCredentials")
            else None
        )
        handles = java_list(
            [java_class(f"{SPI}SystemColumnHandle")(java_text(column)) for column in columns]
        )
        for split in plugin.version.all_splits(splits):
            yield plugin.version.create_page_source(
                plugin.connector, transaction.handle, session, split, table, credentials, handles
            )
        return
    unsupported = java_class("java.lang.UnsupportedOperationException")
    try:
        yield system_table.pageSource(transaction.handle, session, domains.all())
    except unsupported:
        cursor = system_table.cursor(transaction.handle, session, domains.all())
        types = java_list([c.getType() for c in system_table.getTableMetadata().getColumns()])
        yield java_class(f"{SPI}RecordPageSource")(types, cursor)


def _pages(version: SpiVersion, source: JavaObject) -> Iterator[JavaObject]:
    try:
        while not source.isFinished():
            page = version.next_page(source)
            if page is None:
                source.isBlocked().get()
            elif int(page.getPositionCount()):
                yield page
    finally:
        source.close()


def table_version(version: dict[str, Any] | None, plugin: LoadedPlugin, native: Any) -> JavaObject:
    if version is None:
        return optional(None)
    java_type = plugin.types.fromSqlType(java_text(version["type"]))
    (value,) = native([version["value"]], ChannelType(parse_type(version["type"]), java_type))
    return optional(
        java_class(f"{SPI}ConnectorTableVersion")(
            java_class(f"{SPI}PointerType").valueOf(version["pointer"]),
            java_type,
            jpype.JObject(value),
        )
    )


def describe_statistics(statistics: JavaObject) -> dict[str, Any]:
    sizes = [
        _estimate(column.getDataSize()) for column in statistics.getColumnStatistics().values()
    ]
    estimates = [size for size in sizes if size is not None]
    return {
        "row_count": _estimate(statistics.getRowCount()),
        "data_size": sum(estimates) if estimates and len(estimates) == len(sizes) else None,
    }


def _estimate(estimate: JavaObject) -> float | None:
    return None if estimate.isUnknown() else float(estimate.getValue())
