"""This project's stores in the race, and PostgreSQL by itself."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.engines import Contestant, SqlContestant
from rowmerge_nb.errors import SetupError

if TYPE_CHECKING:
    from contextlib import ExitStack

    import pyarrow as pa

    from rowmerge_nb import Engine

SCHEMAS = {"hive": "default", "iceberg": "default", "sqlite": "main", "postgresql": "public"}
KEYED = "(id bigint NOT NULL, region varchar, name varchar, amount decimal(12,2), updated_at timestamp(6)) WITH (primary_key = ARRAY['id'])"


def postgresql(stack: ExitStack) -> str:
    """Start a server of our own, if there is one on this machine; gives its connection string."""
    from proof.engines.postgresql import private_server

    try:
        return stack.enter_context(private_server())
    except SetupError as error:
        print(f"PostgreSQL does not take part: {error.message}")
        return ""


def stores(dsn: str) -> list[Contestant]:
    """Give one contestant for each store."""
    return [
        Store("hive"),
        Store("hive", codec="ZSTD"),
        Store("iceberg"),
        Store("sqlite"),
        *([Store("postgresql", dsn)] if dsn else []),
    ]


class Store(SqlContestant):
    """This project, one of its stores; the source is a memory table."""

    def __init__(self, store: str, dsn: str = "", flow: str = "merge", trace: str = "auto", codec: str = "GZIP") -> None:
        self.name = (
            f"rowmerge_nb {store}"
            + ("" if flow == "merge" else ", flow updatable")
            + ("" if trace == "auto" else f", trace {trace}")
            + ("" if codec == "GZIP" else f", {codec}")
        )
        self.store, self.dsn, self.flow, self.trace, self.codec = store, dsn, flow, trace, codec
        self.table = f"{store}.{SCHEMAS[store]}.target"
        self.engine: Engine | None = None
        self.folder = Path(tempfile.mkdtemp()) if store != "postgresql" else None

    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Make a new store with the target, by this project's own INSERT."""
        from rowmerge_nb import Engine

        self.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
        self.engine = Engine(trace=self.trace)
        self.engine.add_catalog(self.store, self._connector())
        self.engine.register("loading", target)
        self.engine.register("source", source)
        if self.store in {"hive", "iceberg"}:
            self.engine.run(f"CREATE TABLE {self.table} AS SELECT * FROM loading")
        else:
            self.engine.run(f"DROP TABLE IF EXISTS {self.table}")
            self.engine.run(f"CREATE TABLE {self.table} {KEYED}")
            self.engine.run(f"INSERT INTO {self.table} SELECT * FROM loading")
        self.engine.run("DROP TABLE loading")

    def _connector(self) -> Any:
        import rowmerge_nb as rm

        if self.store == "hive":
            return rm.HiveAcidConnector(str(self.folder), compression_codec=self.codec)
        if self.store == "iceberg":
            return rm.IcebergConnector(str(self.folder))
        return (
            rm.SqliteConnector(f"{self.folder}/race.db", create=True)
            if self.store == "sqlite"
            else rm.PostgresConnector(self.dsn)
        )

    def execute(self, statement: str) -> None:
        """Run a statement; UPDATE and DELETE by one of the two flows."""
        assert self.engine is not None
        self.engine.run(re.sub(r"\btarget\b", self.table, statement, count=1), flow=self.flow)

    def content(self) -> pa.Table:
        """Read the table."""
        assert self.engine is not None
        return self.engine.table(self.table)

    def close(self) -> None:
        """Close the engine; Spark goes on."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None


class PostgreSQL(SqlContestant):
    """PostgreSQL by itself: table with a primary key, commit not waiting for the disk."""

    name = "PostgreSQL, primary key"

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.connection: Any = None

    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Load both tables in a schema of their own."""
        import adbc_driver_postgresql.dbapi as adbc

        self.close()
        self.connection = adbc.connect(self.dsn, autocommit=True)
        columns = "id bigint, region text, name text, amount numeric(12,2), updated_at timestamp"
        with self.connection.cursor() as cursor:
            for text in (
                "DROP SCHEMA IF EXISTS race CASCADE",
                "CREATE SCHEMA race",
                "SET search_path TO race",
                "SET synchronous_commit TO off",
                f"CREATE TABLE target ({columns}, PRIMARY KEY (id))",
                f"CREATE TABLE source ({columns})",
            ):
                cursor.execute(text)
            for name, table in (("target", target), ("source", source)):
                # Decimals go in as text, which the driver can send.
                sent = table.set_column(3, "amount", table.column("amount").cast("string"))
                cursor.adbc_ingest(f"{name}_loading", sent, mode="create")
                cursor.execute(f"INSERT INTO {name} SELECT id, region, name, amount::numeric, updated_at FROM {name}_loading")
                cursor.execute(f"DROP TABLE {name}_loading")
            cursor.execute("VACUUM ANALYZE target")
            cursor.execute("ANALYZE source")

    def execute(self, statement: str) -> None:
        """Run a statement."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def content(self) -> pa.Table:
        """Read what the fingerprint needs."""
        import pyarrow as pa

        with self.connection.cursor() as cursor:
            cursor.execute("SELECT id, amount::text AS amount FROM target")
            rows = cursor.fetch_arrow_table()
        return rows.set_column(1, "amount", rows.column("amount").cast(pa.decimal128(12, 2)))

    def close(self) -> None:
        """End the session."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
