"""Open transactions of the coordinator's host, and the Java objects of their handles."""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import call_plugin, java_class
from rowmerge_nb.connectors.trino.host.versions import SPI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.plugin_loading import LoadedPlugin


@dataclass
class HostTransaction:
    number: int
    handle: JavaObject
    session: JavaObject
    metadata: JavaObject
    objects: dict[int, JavaObject] = field(default_factory=dict)


class HostTransactions:
    """The open transactions. Handles of one transaction are objects until it ends."""

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._plugin = plugin
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: dict[int, HostTransaction] = {}

    def begin(self, session: JavaObject, isolation: str | None, *, read_only: bool) -> int:
        connector = self._plugin.connector
        level = java_class("io.trino.spi.transaction.IsolationLevel").valueOf(
            isolation or "READ_UNCOMMITTED"
        )
        handle = call_plugin(connector, "beginTransaction", level, read_only, True)
        try:
            metadata = call_plugin(connector, "getMetadata", session, handle)
            metadata.beginQuery(session)
        except BaseException:
            connector.rollback(handle)
            raise
        number = next(self._numbers)
        with self._lock:
            self._open[number] = HostTransaction(number, handle, session, metadata)
        return number

    def get(self, request: Mapping[str, Any]) -> HostTransaction:
        number = request.get("transaction")
        transaction = self._open.get(number) if isinstance(number, int) else None
        if transaction is None:
            raise ConnectorError(
                f"Transaction {number} is not open",
                code="NOT_IN_TRANSACTION",
                hint="Begin a transaction and use its number.",
            )
        return transaction

    def end(self, request: Mapping[str, Any], *, commit: bool) -> None:
        transaction = self.get(request)
        with self._lock:
            self._open.pop(transaction.number, None)
        connector = self._plugin.connector
        try:
            transaction.metadata.cleanupQuery(transaction.session)
        except BaseException:
            # Some plugins commit here, and refuse a rollback afterwards.
            with suppress(jpype.JException):
                connector.rollback(transaction.handle)
            raise
        (connector.commit if commit else connector.rollback)(transaction.handle)

    def to_wire(
        self,
        transaction: HostTransaction,
        interface: str,
        handle: JavaObject | None,
        *,
        read_back: bool = True,
    ) -> dict[str, Any] | None:
        if handle is None:
            return None
        handles = self._plugin.handles
        text = handles.write(interface, handle)
        losses = handles.lost_fields(handle, handles.read(interface, text)) if read_back else []
        number = next(self._numbers)
        transaction.objects[number] = handle
        return {
            "interface": SPI + interface,
            "class": str(handle.getClass().getName()),
            "json": text,
            "number": number,
            **({"losses": losses} if losses else {}),
        }

    def from_wire(
        self, transaction: HostTransaction, handle: Mapping[str, Any], interface: str | None = None
    ) -> JavaObject:
        name = handle["interface"].removeprefix(SPI)
        number = handle.get("number")
        target = transaction.objects.get(number) if isinstance(number, int) else None
        if target is None:
            target = self._plugin.handles.read(name, handle["json"])
        return java_class(SPI + (interface or name)) @ target

    def of_table(self, request: Mapping[str, Any]) -> tuple[HostTransaction, JavaObject]:
        transaction = self.get(request)
        return transaction, self.from_wire(transaction, request["table"], "ConnectorTableHandle")
