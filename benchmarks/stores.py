"""This project's stores in the race, and PostgreSQL by itself."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.engines import BIGINT_KEYS, Contestant, SqlContestant
from benchmarks.keys import KINDS
from rowmerge_nb.base.errors import SetupError

if TYPE_CHECKING:
    from contextlib import ExitStack

    import pyarrow as pa

    from benchmarks.data import Case
    from benchmarks.engines import Work
    from rowmerge_nb import Engine, Result

SCHEMAS = {
    "hive": "default",
    "iceberg": "default",
    "delta": "default",
    "sqlite": "main",
    "postgresql": "public",
}
COPY_ON_WRITE = (
    "WITH (extra_properties = MAP(ARRAY['write.merge.mode', 'write.update.mode',"
    " 'write.delete.mode'], ARRAY['copy-on-write', 'copy-on-write', 'copy-on-write']))"
)
KEYED = (
    "(id bigint NOT NULL, region varchar, name varchar, amount decimal(12,2), updated_at"
    " timestamp(6)) WITH (primary_key = ARRAY['id'])"
)


def postgresql(stack: ExitStack) -> str:
    """Start a private server if one is installed; return its connection string."""
    from proof.engines.postgresql import private_server

    try:
        return stack.enter_context(private_server())
    except SetupError as error:
        print(f"PostgreSQL does not take part: {error.message}")
        return ""


def stores(dsn: str) -> list[Contestant]:
    """Return one contestant for each store."""
    return [
        Store("hive"),
        Store("hive", codec="ZSTD"),
        Store("iceberg"),
        Store("iceberg", rewrites=True),
        Store("delta"),
        Store("sqlite"),
        *([Store("postgresql", dsn)] if dsn else []),
    ]


class Store(SqlContestant):
    """This project with one of its stores; the source is a memory table."""

    below = True

    def __init__(
        self,
        store: str,
        dsn: str = "",
        flow: str = "merge",
        trace: str = "auto",
        codec: str = "GZIP",
        *,
        rewrites: bool = False,
    ) -> None:
        self.name = (
            f"rowmerge_nb {store}"
            + ("" if flow == "merge" else ", flow updatable")
            + ("" if trace == "auto" else f", trace {trace}")
            + ("" if codec == "GZIP" else f", {codec}")
            + (", copy-on-write" if rewrites else "")
        )
        self.created_with = COPY_ON_WRITE if rewrites else ""
        self.store, self.dsn, self.flow, self.trace, self.codec = store, dsn, flow, trace, codec
        self.table = f"{store}.{SCHEMAS[store]}.target"
        self.engine: Engine | None = None
        self.folder = Path(tempfile.mkdtemp()) if store != "postgresql" else None
        without_uuid = tuple(name for name in KINDS if name != "uuid")
        self.keys = {"iceberg": None, "hive": without_uuid, "delta": without_uuid}.get(
            store, BIGINT_KEYS
        )

    def prepare(self, case: Case, work: Work) -> None:
        """Create a new store with the target, through this project's own INSERT."""
        from rowmerge_nb import Engine

        self.close()
        self.case = case
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
        self.engine = Engine(trace=self.trace)
        self.engine.add_catalog(self.store, self._connector())
        self.engine.register("source", case.source_of(work))
        if work in {"create", "partition"}:
            return
        self.engine.register("loading", case.target)
        if work == "merge-parts":
            self.engine.run(f"CREATE TABLE {self.table} {self._partitioned('loading')}")
        elif self.store in {"hive", "iceberg", "delta"}:
            self.engine.run(
                f"CREATE TABLE {self.table} {self.created_with} AS SELECT * FROM loading"
            )
        else:
            self.engine.run(f"DROP TABLE IF EXISTS {self.table}")
            self.engine.run(f"CREATE TABLE {self.table} {KEYED}")
            self.engine.run(f"INSERT INTO {self.table} SELECT * FROM loading")
        self.engine.run("DROP TABLE loading")

    def statement(self, work: Work) -> str:
        """Return the statement; one that creates partitions has the words of the store."""
        if work != "partition":
            return super().statement(work)
        return f"CREATE TABLE target {self._partitioned('source')}"

    def _partitioned(self, rows: str) -> str:
        """Return the properties of a partitioned table and its query."""
        if self.store == "iceberg":
            return f"WITH (partitioning = ARRAY['region']) AS SELECT * FROM {rows}"
        columns = [name for name in self.case.source.column_names if name != "region"]
        return (
            "WITH (partitioned_by = ARRAY['region']) AS SELECT"
            f" {', '.join(columns)}, region FROM {rows}"
        )

    def _connector(self) -> Any:
        import rowmerge_nb as rm

        if self.store == "hive":
            return rm.HiveAcidConnector(str(self.folder), compression_codec=self.codec)
        if self.store == "iceberg":
            return rm.IcebergConnector(str(self.folder))
        if self.store == "delta":
            return rm.DeltaConnector(str(self.folder))
        return (
            rm.SqliteConnector(f"{self.folder}/race.db", create=True)
            if self.store == "sqlite"
            else rm.PostgresConnector(self.dsn)
        )

    def execute(self, statement: str) -> None:
        """Run a statement; UPDATE and DELETE by one of the two flows."""
        self._run(statement, flow=self.flow)

    def query(self, statement: str) -> pa.Table:
        """Run a query."""
        answer = self._run(statement).table
        assert answer is not None
        return answer

    def _run(self, statement: str, **options: Any) -> Result:
        assert self.engine is not None
        return self.engine.run(re.sub(r"\btarget\b", self.table, statement, count=1), **options)

    def close(self) -> None:
        """Close the engine; Spark stays, since the race keeps it."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None


class PostgreSQL(SqlContestant):
    """PostgreSQL by itself: a table with a primary key, commits without waiting for the disk."""

    name = "PostgreSQL, primary key"
    keys = BIGINT_KEYS

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.connection: Any = None

    def prepare(self, case: Case, work: Work) -> None:
        """Load both tables into a separate schema."""
        import adbc_driver_postgresql.dbapi as adbc

        self.close()
        self.case = case
        self.connection = adbc.connect(self.dsn, autocommit=True)
        with self.connection.cursor() as cursor:
            for text in (
                "DROP SCHEMA IF EXISTS race CASCADE",
                "CREATE SCHEMA race",
                "SET search_path TO race",
                "SET synchronous_commit TO off",
            ):
                cursor.execute(text)
            self._load(cursor, "source", case.source, "")
            if work not in {"create", "partition"}:
                self._load(cursor, "target", case.target, ", PRIMARY KEY (id)")
                cursor.execute("VACUUM ANALYZE target")
            cursor.execute("ANALYZE source")

    @staticmethod
    def _load(cursor: Any, name: str, rows: pa.Table, constraint: str) -> None:
        # Decimals are sent as text, which the driver supports.
        sent = rows.set_column(3, "amount", rows.column("amount").cast("string"))
        cursor.execute(
            f"CREATE TABLE {name} (id bigint, region text, name text, amount numeric(12,2),"
            f" updated_at timestamp{constraint})"
        )
        cursor.adbc_ingest(f"{name}_loading", sent, mode="create")
        cursor.execute(
            f"INSERT INTO {name} SELECT id, region, name, amount::numeric, updated_at FROM"
            f" {name}_loading"
        )
        cursor.execute(f"DROP TABLE {name}_loading")

    def statement(self, work: Work) -> str:
        """Return the statement; partitioned tables of PostgreSQL are not raced."""
        return super().statement("create" if work == "partition" else work)

    def execute(self, statement: str) -> None:
        """Run a statement."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def query(self, statement: str) -> pa.Table:
        """Run a query; decimals arrive as text."""
        sums = statement.replace("sum(amount)", "sum(amount)::text").replace(
            "SELECT *", "SELECT id, region, name, amount::text AS amount, updated_at"
        )
        with self.connection.cursor() as cursor:
            cursor.execute(sums)
            return cursor.fetch_arrow_table()

    def close(self) -> None:
        """End the session."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
