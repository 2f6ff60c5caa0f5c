"""Explicit transactions: catalogs stay open from START TRANSACTION to COMMIT or ROLLBACK, so that
reads see one version.

Tables and views are those of the first look-up, whose handle names the version. No statement
writes. As in Trino, only ROLLBACK and COMMIT may follow a failed statement.
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
    "ROLLBACK ends a transaction begun by START TRANSACTION. Outside a transaction,"
    " every statement commits by itself."
)


class _RepeatableMetadata:
    def __init__(self, metadata: ConnectorMetadata) -> None:
        self._metadata = metadata
        self._tables: dict[SchemaTableName, ConnectorTableHandle | None] = {}
        self._views: dict[SchemaTableName, ConnectorViewDefinition | None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)

    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> ConnectorTableHandle | None:
        if name not in self._tables:
            self._tables[name] = self._metadata.get_table_handle(session, name)
        return self._tables[name]

    def get_view(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> ConnectorViewDefinition | None:
        if name not in self._views:
            self._views[name] = self._metadata.get_view(session, name)
        return self._views[name]


@dataclass
class ExplicitTransaction:
    read_only: bool = False
    isolation: str = ""
    aborted: bool = False
    _open: dict[str, OpenCatalog] = field(default_factory=dict)

    def opened(self, catalog: str, connector: Connector) -> OpenCatalog:
        if catalog not in self._open:
            if self.isolation == "SERIALIZABLE":
                raise ConnectorError(
                    "Connector supported isolation level REPEATABLE_READ does not meet requested"
                    " isolation level SERIALIZABLE",
                    code="UNSUPPORTED_ISOLATION_LEVEL",
                    hint=(
                        "ROLLBACK, and START TRANSACTION without that level: each table is read as"
                        " it is when it is first named."
                    ),
                )
            handle = connector.begin_explicit_transaction()
            try:
                metadata = cast(
                    "ConnectorMetadata", _RepeatableMetadata(connector.get_metadata(handle))
                )
            except BaseException:
                connector.rollback(handle)
                raise
            self._open[catalog] = OpenCatalog(connector, handle, metadata)
        return self._open[catalog]

    def check_open(self) -> None:
        if self.aborted:
            raise ConnectorError(
                "Current transaction is aborted, commands ignored until end of transaction block",
                code="TRANSACTION_ALREADY_ABORTED",
                hint="ROLLBACK ends it; START TRANSACTION begins another.",
            )

    def refuse_write(self, kind: str, catalog: str, connector: Connector) -> NoReturn:
        if self.read_only:
            raise ConnectorError(
                "Cannot execute write in a read-only transaction",
                code="READ_ONLY_VIOLATION",
                hint=_AFTERWARDS,
            )
        error = connector.refused_in_transaction(catalog, kind)
        error.hint = error.hint or _AFTERWARDS
        raise error

    def abort(self) -> None:
        """Release open catalogs after a failure; interrupts are deferred meanwhile."""
        self.aborted = True
        to_its_end(self._roll_back)

    def _roll_back(self) -> None:
        while self._open:
            _, part = self._open.popitem()
            with suppress(Exception):
                part.connector.rollback(part.handle)

    def commit(self) -> None:
        """End all catalogs' transactions, then raise the first error."""
        failures: list[tuple[str, Exception]] = []
        try:
            for catalog, open_catalog in list(self._open.items()):
                try:
                    open_catalog.connector.commit(open_catalog.handle)
                except Exception as error:  # noqa: BLE001 - the others are ended all the same; it is raised below
                    failures.append((catalog, error))
                else:
                    del self._open[catalog]
        finally:
            # Catalogs that failed to commit, or were not reached before an interrupt.
            to_its_end(self._roll_back)
        if failures:
            catalog, first = failures[0]
            if isinstance(first, RowMergeError):
                raise first
            raise ConnectorError(
                f"Catalog '{catalog}', which was only read, failed to end its transaction:"
                f" {error_text(first)}"
            ) from first


@dataclass
class TransactionManager:
    current: ExplicitTransaction | None = None

    def start(self, statement: StartTransaction) -> None:
        if self.current is not None:
            raise ConnectorError.unsupported(
                "Nested transactions not supported",
                hint="COMMIT or ROLLBACK first.",
            )
        self.current = ExplicitTransaction(statement.read_only, statement.isolation)

    def commit(self) -> None:
        """End the transaction in any case.

        Raises:
            ConnectorError: NOT_IN_TRANSACTION, TRANSACTION_ALREADY_ABORTED, or TRANSACTION_CONFLICT
                if a store without versions has changed.
        """
        transaction = self._ended()
        if transaction.aborted:
            raise ConnectorError(
                "Current transaction has already been aborted",
                code="TRANSACTION_ALREADY_ABORTED",
                hint="It is ended now; START TRANSACTION begins another.",
            )
        transaction.commit()

    def rollback(self) -> None:
        """End the transaction; raises NOT_IN_TRANSACTION without one."""
        self._ended().abort()

    def close(self) -> None:
        if self.current is not None:
            self.rollback()

    def failed(self) -> None:
        if self.current is not None:
            self.current.abort()

    def _ended(self) -> ExplicitTransaction:
        transaction, self.current = self.current, None
        if transaction is None:
            raise ConnectorError(
                "No transaction in progress",
                code="NOT_IN_TRANSACTION",
                hint="START TRANSACTION begins one.",
            )
        return transaction
