"""Calls of the older flow: page sources change the rows that they have read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.fragments import fragment_slices
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import call_plugin, java_class, java_list
from rowmerge_nb.connectors.trino.host.versions import SPI, no_retries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.connectors.trino.host.host_transactions import (
        HostTransaction,
        HostTransactions,
    )
    from rowmerge_nb.connectors.trino.host.jvm import JavaObject

Request = dict[str, Any]
Result = Any
_TABLE: Final = "ConnectorTableHandle"


class UpdatableCalls:
    def __init__(self, transactions: HostTransactions) -> None:
        self._transactions = transactions
        self.calls: dict[str, Callable[[Request, memoryview], Result]] = {
            "delete_row_id": partial(self._row_id, "getDeleteRowIdColumnHandle"),
            "update_row_id": partial(self._row_id, "getUpdateRowIdColumnHandle"),
            "begin_delete": partial(self._begin, "beginDelete"),
            "begin_update": partial(self._begin, "beginUpdate"),
            "finish_delete": partial(self._finish, "finishDelete"),
            "finish_update": partial(self._finish, "finishUpdate"),
        }

    def _row_id(self, method: str, request: Request, _: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        metadata, session = transaction.metadata, transaction.session
        updated = self._updated(transaction, request)
        handle = call_plugin(metadata, method, session, table, *updated)
        column = call_plugin(metadata, "getColumnMetadata", session, table, handle)
        return {
            "handle": self._transactions.to_wire(transaction, "ColumnHandle", handle),
            "type": str(column.getType().getDisplayName()),
            "name": str(column.getName()),
        }

    def _begin(self, method: str, request: Request, _: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        updated = self._updated(transaction, request)
        handle = call_plugin(
            transaction.metadata, method, transaction.session, table, *updated, no_retries()
        )
        return {"table": self._transactions.to_wire(transaction, _TABLE, handle)}

    def _finish(self, method: str, request: Request, payload: memoryview) -> Result:
        transaction, table = self._transactions.of_table(request)
        finish = getattr(transaction.metadata, method)
        finish(transaction.session, table, fragment_slices(request, payload))

    def _updated(self, transaction: HostTransaction, request: Request) -> list[JavaObject]:
        columns = request.get("updated")
        if columns is None:
            return []
        return [java_list([self._transactions.from_wire(transaction, each) for each in columns])]


def delete_rows(source: JavaObject, page: JavaObject) -> None:
    _updatable(source).deleteRows(page.getBlock(0))


def update_rows(source: JavaObject, page: JavaObject, channels: Sequence[int]) -> None:
    integer = java_class("java.lang.Integer")
    numbers = java_list([integer.valueOf(jpype.JInt(channel)) for channel in channels])
    _updatable(source).updateRows(page, numbers)


def _updatable(source: JavaObject) -> JavaObject:
    try:
        return java_class(f"{SPI}UpdatablePageSource") @ source
    except TypeError as error:
        raise ConnectorError(
            f"{source.getClass().getName()} is no UpdatablePageSource",
            code="GENERIC_INTERNAL_ERROR",
            hint="Return an UpdatablePageSource for the handles of beginDelete and beginUpdate.",
        ) from error
