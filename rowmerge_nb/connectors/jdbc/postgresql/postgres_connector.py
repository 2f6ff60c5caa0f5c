"""The PostgreSQL connector."""

from __future__ import annotations

from contextlib import closing

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.connectors.jdbc.jdbc_connector import JdbcConnector
from rowmerge_nb.connectors.jdbc.postgresql.orphaned_stages import orphans, remove_orphans
from rowmerge_nb.connectors.jdbc.postgresql.postgres_store import PostgresStore
from rowmerge_nb.connectors.jdbc.postgresql.postgres_transaction import PostgresTransaction
from rowmerge_nb.spi import Orphan


class PostgresConnector(JdbcConnector):
    """The tables of a PostgreSQL database. Needs the extra ``postgresql``.

    Args:
        dsn: the connection string, ``postgresql://user:password@host:port/database`` or ``host=...
            dbname=...``. It is pickled for tasks, but appears in no report, trace or error. A
            ``.pgpass`` file or ``PGPASSWORD`` keeps the password out of it.

    >>> PostgresConnector("postgresql://ann:secret@db:5432/shop")
    PostgresConnector(host=db port=5432 dbname=shop)
    """

    name = "postgresql"
    store: PostgresStore

    def __init__(self, dsn: str) -> None:
        super().__init__(
            PostgresStore(
                checked(
                    dsn, "dsn", str, "a connection string, as 'postgresql://user@host/database'"
                )
            )
        )

    def new_transaction(self) -> PostgresTransaction:
        return PostgresTransaction(self.store)

    def orphans(self) -> list[Orphan]:
        with closing(self.store.connect()) as session:
            return orphans(session)

    def remove_orphans(self) -> list[Orphan]:
        with closing(self.store.connect(writing=True)) as session:
            return remove_orphans(session)
