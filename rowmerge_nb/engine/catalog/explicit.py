"""What START TRANSACTION begins: catalogs that stay open from statement to statement until COMMIT or ROLLBACK, so that reads see one version.

A table is that of its first look-up, and so is a view: the connector is asked once, and its handle names the version. No statement
writes meanwhile. As in Trino, one that fails ends the transaction for all that follows but ROLLBACK and COMMIT.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.engine.catalog.transaction import OpenCatalog
from rowmerge_nb.engine.spark.interrupts import to_its_end

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTableHandle, SchemaTableName
    from rowmerge_nb.spi.metadata import ConnectorMetadata, ConnectorViewDefinition
    from rowmerge_nb.sql.tree.statements import StartTransaction

_AFTERWARDS: Final = (
    "ROLLBACK ends the transaction that START TRANSACTION has begun; outside of one every statement commits by itself."
)


class _RepeatableMetadata:
    """A catalog's metadata that gives a table or view as it was at the first look-up."""

    def __init__(self, metadata: ConnectorMetadata) -> None:
        self._metadata = metadata
        self._tables: dict[SchemaTableName, ConnectorTableHandle | None] = {}
        self._views: dict[SchemaTableName, ConnectorViewDefinition | None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)

    def get_table_handle(self, session: ConnectorSession, name: SchemaTableName) -> ConnectorTableHandle | None:
        """Return a table's handle, which names the version."""
        if name not in self._tables:
            self._tables[name] = self._metadata.get_table_handle(session, name)
        return self._tables[name]

    def get_view(self, session: ConnectorSession, name: SchemaTableName) -> ConnectorViewDefinition | None:
        """Return a view."""
        if name not in self._views:
            self._views[name] = self._metadata.get_view(session, name)
        return self._views[name]


@dataclass
class ExplicitTransaction:
    """One transaction of several statements.

    Args:
        read_only: READ ONLY was said.
        isolation: the level that was asked for; ``""`` for none.

    Attributes:
        aborted: a statement has failed in it.
    """

    read_only: bool = False
    isolation: str = ""
    aborted: bool = False
    _open: dict[str, OpenCatalog] = field(default_factory=dict)

    def opened(self, catalog: str, connector: Connector) -> OpenCatalog:
        """Return a catalog, opened with the first statement that names it."""
        if catalog not in self._open:
            if self.isolation == "SERIALIZABLE":
                raise ConnectorError(
                    "Connector supported isolation level REPEATABLE_READ does not meet requested isolation level SERIALIZABLE",
                    code="UNSUPPORTED_ISOLATION_LEVEL",
                    hint="ROLLBACK, and START TRANSACTION without that level: each table is read as it is when it is first named.",
                )
            handle = connector.begin_explicit_transaction()
            try:
                metadata = cast("ConnectorMetadata", _RepeatableMetadata(connector.get_metadata(handle)))
            except BaseException:
                connector.rollback(handle)
                raise
            self._open[catalog] = OpenCatalog(connector, handle, metadata)
        return self._open[catalog]

    def check_open(self) -> None:
        """Refuse a statement where one before it has failed."""
        if self.aborted:
            raise ConnectorError(
                "Current transaction is aborted, commands ignored until end of transaction block",
                code="TRANSACTION_ALREADY_ABORTED",
                hint="ROLLBACK ends it; START TRANSACTION begins another.",
            )

    def refuse_write(self, kind: str, catalog: str, connector: Connector) -> NoReturn:
        """Refuse a statement that writes, by the error that its connector has for it."""
        if self.read_only:
            raise ConnectorError("Cannot execute write in a read-only transaction", code="READ_ONLY_VIOLATION", hint=_AFTERWARDS)
        error = connector.refused_in_transaction(catalog, kind)
        error.hint = error.hint or _AFTERWARDS
        raise error

    def abort(self) -> None:
        """Release what is open, after a failure; an interrupt waits until it is."""
        self.aborted = True
        to_its_end(self._roll_back)

    def _roll_back(self) -> None:
        while self._open:
            _, opened = self._open.popitem()
            with suppress(Exception):
                opened.connector.rollback(opened.handle)

    def commit(self) -> None:
        """End all catalogs' transactions; what is raised first is raised when all have been ended."""
        failures: list[tuple[str, Exception]] = []
        try:
            for catalog, opened in list(self._open.items()):
                try:
                    opened.connector.commit(opened.handle)
                except Exception as error:  # noqa: BLE001 - the others are ended all the same; it is raised below
                    failures.append((catalog, error))
                else:
                    del self._open[catalog]
        finally:
            # What could not be committed, or was not before an interrupt came.
            to_its_end(self._roll_back)
        if failures:
            catalog, first = failures[0]
            if isinstance(first, RowMergeError):
                raise first
            raise ConnectorError(
                f"Catalog '{catalog}', which was only read, failed to end its transaction: {error_text(first)}"
            ) from first


@dataclass
class TransactionManager:
    """The transaction of several statements that an engine is in.

    Attributes:
        current: that transaction; None where every statement has one of its own.
    """

    current: ExplicitTransaction | None = None

    def start(self, statement: StartTransaction) -> None:
        """Begin one.

        Raises:
            ConnectorError: NOT_SUPPORTED within one.
        """
        if self.current is not None:
            raise ConnectorError("Nested transactions not supported", code="NOT_SUPPORTED", hint="COMMIT or ROLLBACK first.")
        self.current = ExplicitTransaction(statement.read_only, statement.isolation)

    def commit(self) -> None:
        """End it.

        Raises:
            ConnectorError: NOT_IN_TRANSACTION, TRANSACTION_ALREADY_ABORTED if a statement has failed in it, TRANSACTION_CONFLICT if a store that
                keeps no versions was changed meanwhile. It is ended in any case.
        """
        ended = self._ended()
        if ended.aborted:
            raise ConnectorError(
                "Current transaction has already been aborted",
                code="TRANSACTION_ALREADY_ABORTED",
                hint="It is ended now; START TRANSACTION begins another.",
            )
        ended.commit()

    def rollback(self) -> None:
        """End it, whatever has happened in it; NOT_IN_TRANSACTION where there is none."""
        self._ended().abort()

    def close(self) -> None:
        """End it, if there is one."""
        if self.current is not None:
            self.rollback()

    def failed(self) -> None:
        """End it for all that follows: a statement has failed."""
        if self.current is not None:
            self.current.abort()

    def _ended(self) -> ExplicitTransaction:
        ended, self.current = self.current, None
        if ended is None:
            raise ConnectorError("No transaction in progress", code="NOT_IN_TRANSACTION", hint="START TRANSACTION begins one.")
        return ended
