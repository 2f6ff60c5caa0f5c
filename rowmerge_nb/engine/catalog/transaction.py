"""One statement's transactions, committed or rolled back together, with a log of all calls.

Errors before the commit lead to a rollback of every connector. From the committing call on nothing
is undone; see `StatementTransaction.changed`.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.engine.catalog.call_log import CallLog
from rowmerge_nb.engine.catalog.scans import Scans
from rowmerge_nb.engine.spark.interrupts import in_thread, no_return
from rowmerge_nb.spi.handles import ConnectorTableVersion, ConnectorTransactionHandle
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.analyzer.analysis import InsertAnalysis, MergeAnalysis, Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rowmerge_nb.engine.catalog.call_log import T
    from rowmerge_nb.engine.catalog.explicit import ExplicitTransaction
    from rowmerge_nb.engine.catalog.faulty import StatementFault
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import (
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorSession,
    )
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.sql.analyzer.analysis import Analysis, TableBinding


@dataclass
class OpenCatalog:
    connector: Connector
    handle: ConnectorTransactionHandle
    metadata: ConnectorMetadata


class StatementTransaction:
    """All connectors' transactions of one statement.

    Args:
        explicit: the surrounding explicit transaction, whose catalogs stay open.

    Attributes:
        changed: whether the change is stored: False before the committing call, None until it
            returns, then True.
    """

    def __init__(
        self,
        connectors: Mapping[str, Connector],
        session: ConnectorSession,
        spark: Callable[[], Any],
        fault: StatementFault | None = None,
        explicit: ExplicitTransaction | None = None,
    ) -> None:
        self._explicit = explicit
        self.fault = fault
        self.session = session
        self.log = CallLog()
        self.cancelled = threading.Event()
        self.notices: list[Notice] = []
        self.merge_handle: ConnectorMergeTableHandle | None = None
        self.insert_handle: ConnectorInsertTableHandle | None = None
        self.target: TableBinding | None = None
        self.changed: bool | None = False
        self.version: ConnectorTableVersion | None = None
        self._connectors = connectors
        self.scans = Scans(self, spark)
        self._open: dict[str, OpenCatalog] = {}

    def left_to_store(self, analysis: Analysis) -> tuple[str, ...]:
        if isinstance(analysis, MergeAnalysis):
            inserts = [
                clause.values for clause in analysis.clauses if clause.operation is Operation.INSERT
            ]
            assignments = (
                zip(analysis.target.columns, zip(*inserts, strict=True), strict=True)
                if inserts
                else ()
            )
            return tuple(
                column.name for column, values in assignments if column.filled and None in values
            )
        if not isinstance(analysis, InsertAnalysis):
            return ()
        omitted = tuple(
            column.name for column in analysis.target.columns if column.name not in analysis.columns
        )
        return (
            omitted
            if omitted and self.metadata(analysis.target.catalog).supports_missing_columns_on_insert
            else ()
        )

    def metadata(self, catalog: str) -> ConnectorMetadata:
        if catalog not in self._open and self._explicit is not None:
            self._open[catalog] = self._explicit.opened(catalog, self._connectors[catalog])
        if catalog not in self._open:
            connector = self._connectors[catalog]
            if self.fault is not None:
                connector = self.fault.around(catalog, connector)
            handle = connector.begin_transaction()
            try:
                self._open[catalog] = OpenCatalog(connector, handle, connector.get_metadata(handle))
            except BaseException:
                connector.rollback(handle)
                raise
        return self._open[catalog].metadata

    def source_lines(self, file: str, function: str, line: int) -> tuple[tuple[int, str], ...]:
        """Return a line of code in another language and its neighbors, from the first connector
        that has it.
        """
        for connector in self._connectors.values():
            if lines := connector.get_source_lines(file, function, line):
                return lines
        return ()

    def opened(self, catalog: str) -> OpenCatalog:
        """Return a catalog with its transaction, begun by the first call."""
        self.metadata(catalog)
        return self._open[catalog]

    def all_opened(self) -> Iterable[tuple[str, OpenCatalog]]:
        return self._open.items()

    def watch_processes(self) -> Callable[[], RowMergeError | None]:
        """Return a function that returns the error of the first process that a catalog in use has
        lost, or None.
        """
        changed = None if self.target is None else self.target.catalog
        watches = [
            catalog.connector.watch_processes(changes=name == changed)
            for name, catalog in self._open.items()
        ]
        return lambda: next(filter(None, (find_loss() for find_loss in watches)), None)

    def opened_target(self) -> OpenCatalog:
        if self.target is None:
            raise ValueError("The statement has no target")
        return self.opened(self.target.catalog)

    @property
    def commits_in_finish(self) -> bool:
        return self.target is not None and self.opened_target().connector.commits_in_finish

    def lasting(
        self,
        method: str,
        call: Callable[[], T],
        arguments: str = "",
        *,
        gave: Callable[[T], str] = lambda _: "",
        size: int | None = None,
        catalog: str = "",
        whole: bool = True,
    ) -> T:
        """Make a committing call; from here on signals are deferred.

        By default the target's ``catalog`` is called. If ``whole``, a failed call has changed
        nothing; otherwise, as for procedures, only a RowMergeError can say so.
        """
        connector = (self.opened(catalog) if catalog else self.opened_target()).connector
        threaded = connector.commits_in_finish or connector.commits_in_thread
        no_return(lambda: self.changed)
        before, self.changed = self.changed, None
        try:
            answer = self.log.call(
                method,
                partial(in_thread, call) if threaded else call,
                arguments,
                gave=gave,
                size=size,
            )
        except RowMergeError as error:
            if not whole and getattr(error, "step", "") == method:
                error.changed = None
            # A connector that commits in its finish call has already committed.
            error.changed = self.changed = before or error.changed
            raise
        self.changed = True
        return answer

    def commit(self) -> None:
        """Commit the changed catalog, then end the catalogs that were only read.

        Errors after the commit become ``notices``.
        """
        self._give_back()
        target = self._open.get(self.target.catalog) if self.target is not None else None
        if target is not None and self.target is not None:
            catalog = self.target.catalog

            def version_text(version: object) -> str:
                return (
                    f"version {version.version}"
                    if isinstance(version, ConnectorTableVersion)
                    else ""
                )

            committed = partial(target.connector.commit, target.handle)
            version: object = self.lasting(
                "commit", committed, f"the transaction of catalog {catalog}", gave=version_text
            )
            self.version = version if isinstance(version, ConnectorTableVersion) else None
            if version is not None and self.version is None:
                self.notices.append(
                    Notice(
                        f"{type(target.connector).__name__}.commit returned"
                        f" {type(version).__name__}; it must return a ConnectorTableVersion or"
                        " None"
                    )
                )
            del self._open[self.target.catalog]
        for name, part in self._open.items():
            try:
                part.connector.commit(part.handle)
            except Exception as error:  # noqa: BLE001 - reported as a notice
                self.notices.append(
                    Notice(
                        f"Catalog '{name}', which was only read, failed to end its transaction:"
                        f" {error_text(error)}"
                    )
                )
        self._open.clear()
        try:
            self.scans.close()
        except Exception as error:  # noqa: BLE001 - reported as a notice
            self.notices.append(
                Notice(
                    f"A temporary object of the statement could not be removed: {error_text(error)}"
                )
            )

    def _give_back(self) -> None:
        if self._explicit is not None:
            self._open.clear()

    def _finished(self) -> bool:
        return any(call.method.startswith("finish_") for call in self.log.calls)

    def rollback(self) -> None:
        """Roll back every connector's transaction, despite errors.

        The target's transaction is left alone if its change is, or may be, stored.
        """
        self._give_back()
        if self.changed is not False and self.target is not None:
            opened_target = self._open.pop(self.target.catalog, None)
            if opened_target is not None:
                # The statement's own error says more than one of this call.
                with suppress(Exception):
                    opened_target.connector.abandon(opened_target.handle)
        target = self.target.catalog if self.target is not None else ""
        failures: list[Exception | SystemExit] = []
        while self._open:
            name, part = self._open.popitem()
            try:
                if name == target:
                    rolled = partial(part.connector.rollback, part.handle)
                    self.log.call("rollback", rolled, f"the transaction of catalog {target}")
                else:
                    part.connector.rollback(part.handle)
            except (
                Exception,  # noqa: BLE001
                SystemExit,
            ) as error:
                failures.append(error)
                if name == target and self._finished():
                    # The finish call's change may be stored, and was not undone.
                    self.changed = None
        self.scans.close()
        if failures:
            raise failures[0]
