"""Calls of the driver that alter tables and columns, one per method of Trino's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.jvm import java_class, java_list, java_text, optional
from rowmerge_nb.connectors.trino.host.versions import SPI

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.connectors.trino.host.host_transactions import (
        HostTransaction,
        HostTransactions,
    )
    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.plugin_loading import LoadedPlugin
    from rowmerge_nb.connectors.trino.host.table_calls import TableCalls

Request = dict[str, Any]
Arguments = tuple[Any, ...]
Method: TypeAlias = "tuple[str, Callable[[HostTransaction, Request], Arguments]]"
_COLUMN: Final = "ColumnHandle"


class AlterationCalls:
    def __init__(
        self, plugin: LoadedPlugin, transactions: HostTransactions, tables: TableCalls
    ) -> None:
        self._plugin = plugin
        self._transactions = transactions
        self._tables = tables
        methods = {**self._of_tables(), **self._of_columns(), **self._of_fields()}
        self.calls: dict[str, Callable[[Request, memoryview], None]] = {
            call: self._altering(method, arguments) for call, (method, arguments) in methods.items()
        }

    # Trino's method and its arguments behind session and table, by call

    def _of_tables(self) -> dict[str, Method]:
        return {
            "rename_table": ("renameTable", self._new_name),
            "set_table_properties": ("setTableProperties", self._properties),
            "set_table_comment": (
                "setTableComment",
                lambda _, request: (_optional_text(request["comment"]),),
            ),
        }

    def _of_columns(self) -> dict[str, Method]:
        return {
            "set_column_comment": (
                "setColumnComment",
                lambda transaction, request: (
                    self._column(transaction, request),
                    _optional_text(request["comment"]),
                ),
            ),
            "add_column": ("addColumn", self._new_column),
            "drop_column": ("dropColumn", lambda *arguments: (self._column(*arguments),)),
            "rename_column": (
                "renameColumn",
                lambda transaction, request: (
                    self._column(transaction, request),
                    java_text(request["name"]),
                ),
            ),
            "set_column_type": (
                "setColumnType",
                lambda transaction, request: (
                    self._column(transaction, request),
                    self._type(request),
                ),
            ),
            "drop_not_null_constraint": (
                "dropNotNullConstraint",
                lambda *arguments: (self._column(*arguments),),
            ),
            "set_default_value": (
                "setDefaultValue",
                lambda transaction, request: (
                    self._column(transaction, request),
                    java_text(request["default"]),
                ),
            ),
            "drop_default_value": (
                "dropDefaultValue",
                lambda *arguments: (self._column(*arguments),),
            ),
        }

    def _of_fields(self) -> dict[str, Method]:
        return {
            "add_field": (
                "addField",
                lambda _, request: (
                    _texts(request["path"]),
                    java_text(request["name"]),
                    self._type(request),
                    False,
                ),
            ),
            "drop_field": (
                "dropField",
                lambda transaction, request: (
                    self._column(transaction, request),
                    _texts(request["path"]),
                ),
            ),
            "rename_field": (
                "renameField",
                lambda _, request: (_texts(request["path"]), java_text(request["name"])),
            ),
            "set_field_type": (
                "setFieldType",
                lambda _, request: (_texts(request["path"]), self._type(request)),
            ),
        }

    def _altering(
        self, method: str, arguments: Callable[[HostTransaction, Request], Arguments]
    ) -> Callable[[Request, memoryview], None]:
        def alter(request: Request, _: memoryview) -> None:
            transaction, table = self._transactions.of_table(request)
            call = getattr(transaction.metadata, method, None)
            if call is None:
                raise ConnectorError(
                    f"Trino {self._plugin.version.number} has no method {method} of metadata",
                    hint="Use a plugin of a later version.",
                )
            call(transaction.session, table, *arguments(transaction, request))

        return alter

    # The arguments behind session and table

    def _new_name(self, transaction: HostTransaction, request: Request) -> Arguments:
        new = request["new"]
        return (
            java_class(f"{SPI}SchemaTableName")(java_text(new["schema"]), java_text(new["table"])),
        )

    def _properties(self, transaction: HostTransaction, request: Request) -> Arguments:
        values = request["properties"]
        decoded = self._tables.decoded(
            self._plugin.connector.getTableProperties(),
            {name: value for name, value in values.items() if value is not None},
            with_defaults=False,
        )
        result = java_class("java.util.HashMap")()
        for name in values:
            result.put(java_text(name), optional(decoded.get(java_text(name))))
        return (result,)

    def _new_column(self, transaction: HostTransaction, request: Request) -> Arguments:
        column = self._tables.new_column(request["column"])
        if not self._plugin.version.has_column_positions:
            return (column,)
        position = request.get("position") or "LAST"
        position_class = java_class(f"{SPI}ColumnPosition${position.title()}")
        arguments = (java_text(request["after"]),) if position == "AFTER" else ()
        return column, position_class(*arguments)

    def _column(self, transaction: HostTransaction, request: Request) -> JavaObject:
        return self._transactions.from_wire(transaction, request["column"], _COLUMN)

    def _type(self, request: Request) -> JavaObject:
        return self._plugin.types.fromSqlType(java_text(request["type"]))


def _texts(path: Sequence[str]) -> JavaObject:
    return java_list([java_text(part) for part in path])


def _optional_text(text: str | None) -> JavaObject:
    return optional(None if text is None else java_text(text))
