"""Calls of the driver about schemas, tables and columns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.constraints import native_values
from rowmerge_nb.connectors.trino.host.jvm import (
    call_plugin,
    java_class,
    java_list,
    java_text,
    optional,
)
from rowmerge_nb.connectors.trino.host.sessions import property_value
from rowmerge_nb.connectors.trino.host.spi_versions import block_builder
from rowmerge_nb.connectors.trino.host.system_tables import (
    describe_statistics,
    read_system_table,
    table_version,
)
from rowmerge_nb.connectors.trino.host.versions import SPI, optional_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rowmerge_nb.connectors.trino.host.host_transactions import HostTransactions
    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.plugin_loading import LoadedPlugin

Request = dict[str, Any]
Result = Any
_TABLE: Final = "ConnectorTableHandle"
_COLUMN: Final = "ColumnHandle"


class TableCalls:
    def __init__(self, plugin: LoadedPlugin, transactions: HostTransactions) -> None:
        self._plugin = plugin
        self._transactions = transactions
        self._builder = block_builder(plugin.version)
        self.calls: dict[str, Callable[[Request, memoryview], Result]] = {
            "list_schemas": self._list_schemas,
            "create_schema": self._create_schema,
            "drop_schema": self._drop_schema,
            "list_tables": self._list_tables,
            "table_handle": self._table_handle,
            "system_table": self._system_table,
            "statistics": self._statistics,
            "table_metadata": self._table_metadata,
            "column_handles": self._column_handles,
            "create_table": self._create_table,
            "drop_table": self._drop_table,
            "truncate_table": self._truncate_table,
        }

    def _list_schemas(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        return sorted(str(n) for n in transaction.metadata.listSchemaNames(transaction.session))

    def _create_schema(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        principal = java_class("io.trino.spi.security.TrinoPrincipal")(
            java_class("io.trino.spi.security.PrincipalType").USER,
            transaction.session.getIdentity().getUser(),
        )
        transaction.metadata.createSchema(
            transaction.session,
            java_text(request["schema"]),
            self.decoded(
                self._plugin.connector.getSchemaProperties(), request.get("properties") or {}
            ),
            principal,
        )

    def _drop_schema(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        self._plugin.version.drop_schema(
            transaction.metadata,
            transaction.session,
            java_text(request["schema"]),
            cascade=bool(request.get("cascade")),
        )

    def _list_tables(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        schema = request.get("schema")
        tables = transaction.metadata.listTables(
            transaction.session, optional(java_text(schema) if schema else None)
        )
        return [
            {"schema": str(name.getSchemaName()), "table": str(name.getTableName())}
            for name in tables
        ]

    def _table_handle(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        version = partial(
            table_version,
            request.get("version"),
            self._plugin,
            partial(native_values, builder=self._builder),
        )
        handle = self._plugin.version.table_handle(
            transaction.metadata, transaction.session, _table_name(request), version
        )
        return {"handle": self._transactions.to_wire(transaction, _TABLE, handle)}

    def _system_table(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        return read_system_table(self._plugin, transaction, request["schema"], request["table"])

    def _statistics(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        return describe_statistics(
            transaction.metadata.getTableStatistics(transaction.session, table)
        )

    def _table_metadata(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        metadata = call_plugin(transaction.metadata, "getTableMetadata", transaction.session, table)
        return {
            "columns": [_column(column) for column in metadata.getColumns()],
            "properties": {
                str(key): _plain(value) for key, value in metadata.getProperties().items()
            },
            "comment": optional_text(metadata.getComment()),
        }

    def _column_handles(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        handles = call_plugin(transaction.metadata, "getColumnHandles", transaction.session, table)
        return {
            str(name): self._transactions.to_wire(transaction, _COLUMN, handle)
            for name, handle in handles.items()
        }

    def _create_table(self, request: Request, payload: memoryview) -> Result:
        transaction = self._transactions.get(request)
        self._plugin.version.create_table(
            transaction.metadata,
            transaction.session,
            self.new_table(request),
            request.get("save_mode") or "FAIL",
        )

    def _drop_table(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        transaction.metadata.dropTable(transaction.session, table)

    def _truncate_table(self, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        transaction.metadata.truncateTable(transaction.session, table)

    def decoded(
        self,
        properties: Iterable[JavaObject],
        values: Mapping[str, Any],
        *,
        with_defaults: bool = True,
    ) -> JavaObject:
        result = java_class("java.util.HashMap")()
        by_name = {str(each.getName()): each for each in properties}
        unknown = sorted(set(values) - set(by_name))
        if unknown:
            raise ConnectorError(
                f"The connector has no property {unknown[0]}",
                code="INVALID_TABLE_PROPERTY",
                hint=f"Its properties are: {', '.join(sorted(by_name)) or 'none'}.",
            )
        for name, each in by_name.items():
            if name in values:
                value = property_value(each, values[name])
            else:
                value = each.getDefaultValue() if with_defaults else None
            if value is not None:
                result.put(each.getName(), value)
        return result

    def new_table(self, request: Request) -> JavaObject:
        columns = [self.new_column(column) for column in request["columns"]]
        properties = self.decoded(
            self._plugin.connector.getTableProperties(), request.get("properties") or {}
        )
        comment = request.get("comment")
        return java_class(f"{SPI}ConnectorTableMetadata")(
            _table_name(request),
            java_list(columns),
            properties,
            optional(java_text(comment) if comment else None),
        )

    def new_column(self, column: Mapping[str, Any]) -> JavaObject:
        comment, default = column.get("comment"), column.get("default")
        builder = (
            java_class(f"{SPI}ColumnMetadata")
            .builder()
            .setName(java_text(column["name"]))
            .setType(self._plugin.types.fromSqlType(java_text(column["type"])))
            .setNullable(bool(column.get("nullable", True)))
            .setComment(optional(java_text(comment) if comment else None))
        )
        if default is not None:
            # Only versions with the capability DEFAULT_COLUMN_VALUE receive defaults.
            builder = builder.setDefaultValue(optional(java_text(default)))
        return builder.build()


def _table_name(request: Mapping[str, Any]) -> JavaObject:
    return java_class(f"{SPI}SchemaTableName")(
        java_text(request["schema"]), java_text(request["table"])
    )


def describe_properties(properties: Iterable[JavaObject]) -> list[dict[str, Any]]:
    return [
        {
            "name": str(each.getName()),
            "type": str(each.getSqlType().getDisplayName()),
            "description": str(each.getDescription()),
            "default": _plain(each.getDefaultValue()),
            "hidden": bool(each.isHidden()),
        }
        for each in properties
    ]


def _column(column: JavaObject) -> dict[str, Any]:
    return {
        "name": str(column.getName()),
        "type": str(column.getType().getDisplayName()),
        "nullable": bool(column.isNullable()),
        "comment": optional_text(column.getComment()),
        "hidden": bool(column.isHidden()),
        "extra": optional_text(column.getExtraInfo()),
        "default": optional_text(column.getDefaultValue())
        if hasattr(column, "getDefaultValue")
        else None,
    }


def _plain(value: JavaObject) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, java_class("java.util.Collection")):
        return [_plain(item) for item in value]
    if isinstance(value, java_class("java.lang.Boolean")):
        return bool(value)
    if isinstance(value, (java_class("java.lang.Long"), java_class("java.lang.Integer"))):
        return int(value)
    if isinstance(value, java_class("java.lang.Double")):
        return float(value)
    return str(value)
