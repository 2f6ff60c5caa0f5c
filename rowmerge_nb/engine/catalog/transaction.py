"""One statement's transactions: begun with the first look into a catalog, committed or rolled back together, with a log of all calls.

What went wrong before the commit is undone here: `StatementTransaction.rollback` rolls every connector's transaction back. From the call
on that makes the change last nothing is undone any more: `StatementTransaction.changed` tells what is known of it.
"""

from __future__ import annotations

import threading
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
    from rowmerge_nb.spi.handles import ConnectorInsertTableHandle, ConnectorMergeTableHandle, ConnectorSession
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.sql.analyzer.analysis import Analysis, TableBinding


@dataclass
class OpenCatalog:
    """A catalog that takes part in a statement: its connector, the connector's transaction, and the metadata as that sees it."""

    connector: Connector
    handle: ConnectorTransactionHandle
    metadata: ConnectorMetadata


class StatementTransaction:
    """All connectors' transactions of one statement.

    Args:
        connectors: the engine's catalogs.
        session: the statement's session.
        spark: gives the Spark session; not called before rows are needed.
        fault: what is to go wrong in the calls of a connector; None for nothing.
        explicit: the transaction of several statements in which this one reads: its catalogs stay open. None where the statement has its own.

    Attributes:
        changed: whether the statement's change is in the store: False before the call that makes it last, None while that call has not
            come back, True from then on.
        version: the version that the commit has made, where the connector keeps versions.
        scans: what the statement reads and writes on Spark.
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
        """Return the columns that an INSERT leaves out, one of a MERGE too, and its store fills itself: nobody here knows what is in them."""
        if isinstance(analysis, MergeAnalysis):
            inserts = [clause.values for clause in analysis.clauses if clause.operation is Operation.INSERT]
            known = zip(analysis.target.columns, zip(*inserts, strict=True), strict=True) if inserts else ()
            return tuple(column.name for column, values in known if column.filled and None in values)
        if not isinstance(analysis, InsertAnalysis):
            return ()
        omitted = tuple(column.name for column in analysis.target.columns if column.name not in analysis.columns)
        return omitted if omitted and self.metadata(analysis.target.catalog).supports_missing_columns_on_insert else ()

    def metadata(self, catalog: str) -> ConnectorMetadata:
        """Return a catalog's metadata; its transaction begins with the first call."""
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

    def opened(self, catalog: str) -> OpenCatalog:
        """Return a catalog with its transaction, which begins with the first call."""
        self.metadata(catalog)
        return self._open[catalog]

    def all_opened(self) -> Iterable[tuple[str, OpenCatalog]]:
        """Return all catalogs that take part, by their names."""
        return self._open.items()

    def opened_target(self) -> OpenCatalog:
        """Return the catalog of the table that the statement changes."""
        if self.target is None:
            raise ValueError("The statement has no target")
        return self.opened(self.target.catalog)

    @property
    def commits_in_finish(self) -> bool:
        """Whether the target's finish call makes the change last."""
        return self.target is not None and self.opened_target().connector.commits_in_finish

    def lasting(
        self,
        method: str,
        call: Callable[[], T],
        given: str = "",
        *,
        gave: Callable[[T], str] = lambda _: "",
        size: int | None = None,
        catalog: str = "",
        whole: bool = True,
    ) -> T:
        """Make a call that makes a change last; from here on the statement's guard puts signals off.

        Args:
            method: its name.
            call: makes it.
            given: what it is called with, in a few words.
            gave: says what came back.
            size: the size of the fragments that are handed over; None where there are none.
            catalog: the catalog whose connector is called; ``""`` for that of the target.
            whole: a call that fails has changed nothing; a procedure may have, unless it raises an error of ours that says so.

        Raises:
            RowMergeError: ``changed`` is what the connector says of it: by default that nothing was changed.
        """
        connector = (self.opened(catalog) if catalog else self.opened_target()).connector
        threaded = connector.commits_in_finish or connector.commits_in_thread
        no_return(lambda: self.changed)
        before, self.changed = self.changed, None
        try:
            answer = self.log.call(method, partial(in_thread, call) if threaded else call, given, gave=gave, size=size)
        except RowMergeError as error:
            if not whole and getattr(error, "step", "") == method:
                error.changed = None
            # A connector that commits in its finish call has done so already when its commit is called.
            error.changed = self.changed = before or error.changed
            raise
        self.changed = True
        return answer

    def commit(self) -> None:
        """Commit what the statement changed, then end what it only read.

        Once the change is committed nothing can undo it; what goes wrong after that is told in ``notices``.
        """
        self._give_back()
        target = self._open.get(self.target.catalog) if self.target is not None else None
        if target is not None and self.target is not None:
            catalog = self.target.catalog

            def told(given: object) -> str:
                return f"version {given.version}" if isinstance(given, ConnectorTableVersion) else ""

            committed = partial(target.connector.commit, target.handle)
            given: object = self.lasting("commit", committed, f"the transaction of catalog {catalog}", gave=told)
            self.version = given if isinstance(given, ConnectorTableVersion) else None
            if given is not None and self.version is None:
                self.notices.append(
                    Notice(
                        f"{type(target.connector).__name__}.commit gave {type(given).__name__}; it gives a ConnectorTableVersion or None"
                    )
                )
            del self._open[self.target.catalog]
        for name, opened in self._open.items():
            try:
                opened.connector.commit(opened.handle)
            except Exception as error:  # noqa: BLE001 - told as a notice
                self.notices.append(
                    Notice(f"Catalog '{name}', which was only read, failed to end its transaction: {error_text(error)}")
                )
        self._open.clear()
        try:
            self.scans.close()
        except Exception as error:  # noqa: BLE001 - told as a notice
            self.notices.append(
                Notice(f"Something that the statement needed for a while could not be removed: {error_text(error)}")
            )

    def _give_back(self) -> None:
        """Leave open what other statements read in too."""
        if self._explicit is not None:
            self._open.clear()

    def _finished(self) -> bool:
        """Whether a finish call was made, whatever came of it."""
        return any(call.method.startswith("finish_") for call in self.log.calls)

    def rollback(self) -> None:
        """Roll every connector's transaction back; all of them are tried, whatever one of them raises.

        That of the target stays as it is where its change is there, or may be.
        """
        self._give_back()
        if self.changed is not False and self.target is not None:
            self._open.pop(self.target.catalog, None)
        target = self.target.catalog if self.target is not None else ""
        failures: list[Exception | SystemExit] = []
        while self._open:
            name, opened = self._open.popitem()
            try:
                if name == target:
                    rolled = partial(opened.connector.rollback, opened.handle)
                    self.log.call("rollback", rolled, f"the transaction of catalog {target}")
                else:
                    opened.connector.rollback(opened.handle)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the others must still be rolled back; it is raised below
                failures.append(error)
                if name == target and self._finished():
                    # What the finish call has done is there, or not: nobody has taken it back.
                    self.changed = None
        self.scans.close()
        if failures:
            raise failures[0]
