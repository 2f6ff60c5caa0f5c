"""The SQLite connector."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rowmerge_nb.base.arguments import checked_path
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.jdbc.jdbc_connector import JdbcConnector
from rowmerge_nb.connectors.jdbc.sqlite.spool import orphans, remove_orphans
from rowmerge_nb.connectors.jdbc.sqlite.sqlite_transaction import SqliteTransaction
from rowmerge_nb.spi import Orphan

if TYPE_CHECKING:
    from rowmerge_nb.spi.transactions import NumberedTransactionHandle
from rowmerge_nb.connectors.jdbc.sqlite.sqlite_store import SqliteStore


class SqliteConnector(JdbcConnector):
    """The tables of an SQLite database, in the schema ``main``.

    Needs the extra ``sqlite``.

    Args:
        path: the database file. ``:memory:`` is not possible, since tasks open the file too.
        create: whether to create a missing file.

    >>> SqliteConnector("shop.db")
    SqliteConnector('shop.db')
    """

    name = "sqlite"
    store: SqliteStore

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        text = checked_path(path, "path")
        if not text or text.startswith((":memory:", "file:")):
            raise ConnectorError(
                f"'{text}' is not the path of a file; several processes read the"
                " SQLite tables of this connector",
                hint="Give a path such as 'shop.db'; memory tables need no SQLite.",
            )
        # Tasks may run in another directory.
        super().__init__(SqliteStore(str(Path(text).absolute())))
        self._text = text
        self._create = create

    def __repr__(self) -> str:
        return f"SqliteConnector({self._text!r})"

    @property
    def shared_directory(self) -> Path:
        """The database's directory: tasks read the file and stage rows next to it."""
        return Path(self.store.path).parent

    def new_transaction(self) -> SqliteTransaction:
        return SqliteTransaction(self.store, create=self._create)

    def begin_explicit_transaction(self) -> NumberedTransactionHandle:
        return self._transactions.begin(
            lambda _: SqliteTransaction(self.store, create=self._create, repeatable=True)
        )

    def orphans(self) -> list[Orphan]:
        return orphans(self.store.path)

    def remove_orphans(self) -> list[Orphan]:
        return remove_orphans(self.store.path)
