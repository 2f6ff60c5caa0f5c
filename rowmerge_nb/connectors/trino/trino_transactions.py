"""A transaction of a plugin, begun with the first request that has a session."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host_channel import pack_fragments
from rowmerge_nb.connectors.trino.trino_errors import LOST_FIELD_HINT
from rowmerge_nb.connectors.trino.trino_handles import (
    TaskContext,
    TrinoSession,
    TrinoSplit,
    TrinoTableHandle,
    java_handle,
    optional_handle,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rowmerge_nb.connectors.trino.host_process import HostProcess
    from rowmerge_nb.connectors.trino.plugin_hosts import PluginHosts
    from rowmerge_nb.connectors.trino.trino_handles import JavaHandle
    from rowmerge_nb.spi.handles import ConnectorSession

_UNKNOWN_END = "HOST_TERMINATED"


class TrinoTransaction:
    def __init__(self, number: int, hosts: PluginHosts, properties: Mapping[str, Any]) -> None:
        self.number = number
        self.notices: list[str] = []
        self._hosts = hosts
        self._properties = tuple(properties.items())
        self._host: HostProcess | None = None
        self._java_number = 0
        self._context: TaskContext | None = None
        self._splits: dict[tuple[str, str], Sequence[TrinoSplit]] = {}
        self._row_ids: dict[str, dict[str, Any]] = {}
        self._is_finished = False
        self._has_written = False

    def context(self, session: ConnectorSession) -> TaskContext:
        """Return what tasks need, after beginning the plugin's transaction if necessary."""
        if self._context is not None:
            return self._context
        if self._host is None:
            self._host, notice = self._hosts.begin()
            self.notices.extend([notice] if notice else [])
        start = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        plugin_session = TrinoSession(
            session.user, session.query_id, start, session.time_zone, self._properties
        )
        result, _ = self._host.request(
            "begin_transaction",
            read_only=False,
            autocommit=True,
            isolation=None,
            session=plugin_session.wire,
        )
        self._java_number = result["transaction"]
        self._context = TaskContext(java_handle(result["handle"]), plugin_session)
        return self._context

    @property
    def trino_version(self) -> str:
        return str(self._running_host().hello().get("trino"))

    def has_flow(self, session: ConnectorSession, flow: str) -> bool:
        """Return whether the plugin changes rows by a flow: ``merge`` or ``updatable``."""
        self.context(session)
        return flow in (self._running_host().hello().get("flows") or ("merge",))

    def has_capability(self, name: str) -> bool:
        host = self._host or self._hosts.coordinator()
        return name in (host.hello().get("capabilities") or ())

    def request(self, session: ConnectorSession, call: str, **arguments: Any) -> Any:
        return self.request_payload(session, call, **arguments)[0]

    def request_payload(
        self, session: ConnectorSession, call: str, **arguments: Any
    ) -> tuple[Any, memoryview]:
        self.context(session)
        self._has_written |= call.startswith("begin_")
        return self._running_host().request(call, transaction=self._java_number, **arguments)

    def note_lost_fields(self, *handles: JavaHandle | None) -> None:
        for handle in filter(None, handles):
            for loss in handle.losses:
                notice = f"{loss} {LOST_FIELD_HINT}"
                if notice not in self.notices:
                    self.notices.append(notice)

    def finish(
        self,
        session: ConnectorSession,
        call: str,
        fragments: Collection[bytes] = (),
        **arguments: Any,
    ) -> Any:
        """Make a finish call, which may be the commit, and return its result."""
        self.context(session)
        host = self._running_host()
        if not host.is_alive:
            # Nothing has been sent, so nothing has changed.
            raise host.ended()
        lengths, payload = pack_fragments(fragments)
        try:
            result, _ = host.request(
                call, payload, transaction=self._java_number, lengths=lengths, **arguments
            )
        except ConnectorError as error:
            if error.code == _UNKNOWN_END:
                error.changed = None
                error.hint = "Check the table, since the change may have taken effect."
            raise
        self._is_finished = True
        return result

    def row_id(self, session: ConnectorSession, table: TrinoTableHandle) -> dict[str, Any]:
        """Return handle and type of a table's row id, which the plugin is asked for once."""
        key = table.java.json
        if key not in self._row_ids:
            self._row_ids[key] = self.request(session, "merge_row_id", table=table.java.wire)
        return self._row_ids[key]

    def splits(
        self, session: ConnectorSession, table: TrinoTableHandle, constraint: Mapping[str, Any]
    ) -> Sequence[TrinoSplit]:
        key = (table.java.json, json.dumps(constraint, sort_keys=True))
        if key not in self._splits:
            result = self.request(
                session, "splits", table=table.java.wire, constraint=dict(constraint)
            )
            credentials = optional_handle(result.get("credentials"))
            filtered = optional_handle(result.get("table")) if constraint else None
            self._splits[key] = [
                TrinoSplit(java_handle(split), credentials, filtered) for split in result["splits"]
            ]
        return self._splits[key]

    def commit(self, *, commits_in_finish: bool) -> None:
        """Commit; a process that ends after a finish call that was the commit is no error."""
        try:
            self._end("commit")
        except ConnectorError as error:
            is_committed = commits_in_finish and self._is_finished
            if not is_committed or error.code != _UNKNOWN_END:
                raise

    def rollback(self) -> None:
        """Roll back; a process that has ended has nothing to undo, nor has a transaction that has
        only read.
        """
        try:
            self._end("rollback")
        except ConnectorError as error:
            if self._has_written and error.code != _UNKNOWN_END:
                raise

    def abandon(self) -> None:
        """Leave the process without a call, so that it can be replaced by one with other jars; a call
        that hangs keeps it.
        """
        host = self._host
        if host is not None and not host.hanging_calls:
            self._host = None
            self._hosts.end(host)

    def _running_host(self) -> HostProcess:
        if self._host is None:
            raise RuntimeError("The transaction has no process")
        return self._host

    def _end(self, call: str) -> None:
        host, self._host = self._host, None
        if host is None:
            return
        try:
            if self._context is not None and host.is_alive:
                host.request(call, transaction=self._java_number)
            elif self._context is not None and call == "commit":
                raise host.ended()
        finally:
            self._hosts.end(host)
