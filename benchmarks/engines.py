"""The other engines in the race, and this project's memory tables: each recreates its tables
before every statement.
"""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa

from benchmarks.data import CREATE, DEDUPLICATED, DELETE, INSERT, SELECT, UPDATE

if TYPE_CHECKING:
    import deltalake

    from benchmarks.data import Case

Work = Literal[
    "merge",
    "merge-parts",
    "delete",
    "update",
    "create",
    "partition",
    "insert",
    "select",
    "latest",
    "grouped",
]
"""The timed work.

``merge-parts`` is a MERGE into a table partitioned by region.
``latest`` and ``grouped`` are a MERGE that deduplicates its source. ``create`` and ``partition``
create the table of the source's rows, ``insert`` adds them, ``select`` is a query.
"""

BIGINT_KEYS: Final = ("dense", "shuffled", "sparse", "sparse-sorted")
"""The kinds of keys that consist of one bigint named ``id``."""


class Contestant(ABC):
    """An engine that changes or reads the target.

    Attributes:
        name: the engine and its form.
        folder: the folder of its files, if it has any.
        keys: the supported kinds of keys; all if empty.
        below: it works in child processes of this one, whose memory is its own.
    """

    name: str
    folder: Path | None = None
    keys: Collection[str] | None = None
    below: bool = False

    @abstractmethod
    def prepare(self, case: Case, work: Work) -> None:
        """Create fresh tables; not timed. The target is missing if the work creates it."""

    @abstractmethod
    def run(self, work: Work) -> None:
        """Perform the work; timed, including everything that makes the change durable."""

    @abstractmethod
    def content(self) -> pa.Table:
        """Return the target's rows, or those of the query."""

    def close(self) -> None:
        """Return the content of the engine."""

    def files(self) -> dict[Path, int]:
        """Return the files and their sizes in bytes."""
        if self.folder is None:
            return {}
        return {path: path.stat().st_size for path in self.folder.rglob("*") if path.is_file()}


class SqlContestant(Contestant):
    """An engine that reads the statements unchanged."""

    case: Case
    answer: pa.Table | None = None

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Run a statement, including everything that makes the change durable."""

    @abstractmethod
    def query(self, statement: str) -> pa.Table:
        """Run a query."""

    def statement(self, work: Work) -> str:
        """Return the statement of a work, which is the same for all engines unless they override
        it.
        """
        statements = {"delete": DELETE, "update": UPDATE, "insert": INSERT, "create": CREATE}
        if work in DEDUPLICATED:
            return self.case.merge_from(self.case.deduplicated(work))
        return self.case.merge if work in {"merge", "merge-parts"} else statements[work]

    def run(self, work: Work) -> None:
        """Run the statement of the work."""
        self.answer = None
        if work == "select":
            self.answer = self.query(SELECT)
        else:
            self.execute(self.statement(work))

    def content(self) -> pa.Table:
        """Read the table, or return the answer of the query."""
        return self.query("SELECT * FROM target") if self.answer is None else self.answer


class RowMerge(SqlContestant):
    """This project, memory connector."""

    below = True

    def __init__(
        self, trace: str = "auto", paradigm: str = "DELETE_ROW_AND_INSERT_ROW", flow: str = "merge"
    ) -> None:
        from rowmerge_nb import Engine

        kind = f"{paradigm.split('_', maxsplit=1)[0].lower()}, trace {trace}"
        self.name = f"rowmerge_nb memory, {kind if flow == 'merge' else 'flow updatable'}"
        self.engine = Engine(trace=trace)
        self.paradigm, self.flow = paradigm, flow

    def prepare(self, case: Case, work: Work) -> None:
        """Register both tables."""
        self.case = case
        if work in {"create", "partition"}:
            self.engine.run("DROP TABLE IF EXISTS target")
        else:
            self.engine.register("target", case.target, paradigm=self.paradigm)
        self.engine.register("source", case.source_of(work))

    def execute(self, statement: str) -> None:
        """Run a statement; UPDATE and DELETE by one of the two flows."""
        self.engine.run(statement, flow=self.flow)

    def query(self, statement: str) -> pa.Table:
        """Run a query."""
        answer = self.engine.run(statement).table
        assert answer is not None
        return answer

    def content(self) -> pa.Table:
        """Read the table's pages, or return the answer of the query."""
        return self.engine.table("target") if self.answer is None else self.answer


class DuckDBContestant(SqlContestant):
    """DuckDB with its own folder."""

    folder: Path

    def __init__(self) -> None:
        import duckdb

        self.folder = Path(tempfile.mkdtemp())
        self.connection = duckdb.connect()

    def prepare(self, case: Case, work: Work) -> None:
        """Empty the folder."""
        self.case = case
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()

    def execute(self, statement: str) -> None:
        """Run a statement."""
        self.connection.execute(statement)

    def query(self, statement: str) -> pa.Table:
        """Run a query."""
        return self.connection.sql(statement).to_arrow_table()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class DuckDB(DuckDBContestant):
    """DuckDB on its own file, including the checkpoint."""

    name = "DuckDB, own file, checkpoint included"

    def prepare(self, case: Case, work: Work) -> None:
        """Load both tables into a new file."""
        import duckdb

        self.close()
        super().prepare(case, work)
        self.connection = duckdb.connect(str(self.folder / "race.duckdb"))
        if work in {"create", "partition", "insert"}:
            self.connection.register("source", case.source)
        else:
            self._load("source", case.source_of(work))
        if work not in {"create", "partition"}:
            self._load("target", case.target)
        self.connection.execute("CHECKPOINT")

    def _load(self, name: str, table: pa.Table) -> None:
        self.connection.register("loading", table)
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM loading")
        self.connection.unregister("loading")

    def statement(self, work: Work) -> str:
        """Return the statement; DuckDB's own tables have no partitions."""
        return CREATE if work == "partition" else super().statement(work)

    def execute(self, statement: str) -> None:
        """Run a statement and make it durable."""
        super().execute(statement)
        self.connection.execute("CHECKPOINT")


class DuckDBParquet(DuckDBContestant):
    """DuckDB that writes the source to Parquet files, partitioned by region if necessary, and queries
    them.
    """

    name = "DuckDB, Parquet files"

    def prepare(self, case: Case, work: Work) -> None:
        """Write the target of a query; otherwise the folder stays empty."""
        super().prepare(case, work)
        self.connection.register("source", case.source)
        if work == "select":
            self.connection.register("target_rows", case.target)
            self.connection.execute(
                f"COPY target_rows TO '{self.folder}/0.parquet' (FORMAT parquet, COMPRESSION zstd)"
            )
            self.connection.unregister("target_rows")

    def statement(self, work: Work) -> str:
        """Return the COPY that writes the files."""
        if work == "partition":
            return (
                f"COPY source TO '{self.folder}/parts' (FORMAT parquet, COMPRESSION zstd,"
                " PARTITION_BY (region))"
            )
        return f"COPY source TO '{self.folder}/0.parquet' (FORMAT parquet, COMPRESSION zstd)"

    def query(self, statement: str) -> pa.Table:
        """Query the files."""
        columns = ", ".join(f'"{name}"' for name in self.case.source.column_names)
        rows = (
            f"(SELECT {columns} FROM read_parquet('{self.folder}/**/*.parquet', hive_partitioning ="
            " true)) AS target"
        )
        return super().query(statement.replace("FROM target", f"FROM {rows}"))


class DeltaRs(Contestant):
    """delta-rs, which rewrites the files that it touches. It has no UUIDs: they are texts."""

    name = "delta-rs, rewrites files"
    folder: Path
    answer: pa.Table | None = None

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())

    def prepare(self, case: Case, work: Work) -> None:
        """Write a new table, unless the work does that."""
        import deltalake

        shutil.rmtree(self.folder, ignore_errors=True)
        self.case, self.source, self.answer = (
            case,
            _with_text_for_uuid(case, case.source_of(work)),
            None,
        )
        if work not in {"create", "partition"}:
            deltalake.write_deltalake(
                str(self.folder),
                _with_text_for_uuid(case, case.target),
                partition_by=["region"] if work == "merge-parts" else None,
            )

    def run(self, work: Work) -> None:
        """Perform the work through delta-rs' own interface."""
        import deltalake

        if work in {"create", "partition", "insert"}:
            parted = ["region"] if work == "partition" else None
            deltalake.write_deltalake(
                str(self.folder), self.source, mode="append", partition_by=parted
            )
            return
        table = deltalake.DeltaTable(str(self.folder))
        if work in {"merge", "merge-parts"}:
            self._merge(table, self.source)
        elif work in DEDUPLICATED:
            self._merge(
                table,
                _by_duckdb(self.case.deduplicated(work), self.source).select(
                    self.case.source.column_names
                ),
            )
        elif work == "delete":
            table.delete("id % 10 = 3")
        elif work == "update":
            table.update(
                updates={"amount": "amount + 1.00", "name": "'changed'"}, predicate="id % 10 = 3"
            )
        else:
            self.answer = pa.table(
                deltalake.QueryBuilder().register("target", table).execute(SELECT).read_all()
            )

    def _merge(self, table: deltalake.DeltaTable, source: pa.Table) -> None:
        columns = {name: f"s.{name}" for name in source.column_names}
        updates = {"amount": "t.amount + s.amount", "name": "s.name", "updated_at": "s.updated_at"}
        merger = table.merge(source, self.case.keys.on, source_alias="s", target_alias="t")
        merger.when_matched_delete("s.region = 'DEL'").when_matched_update(
            updates
        ).when_not_matched_insert(columns).execute()

    def content(self) -> pa.Table:
        """Read the table, or return the answer of the query."""
        import deltalake

        if self.answer is not None:
            return self.answer
        return pa.table(deltalake.DeltaTable(str(self.folder)).to_pyarrow_table())


def _by_duckdb(query: str, source: pa.Table) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("source", source)
        return connection.sql(f"SELECT * FROM {query}").to_arrow_table()


def _with_text_for_uuid(case: Case, table: pa.Table) -> pa.Table:
    import duckdb

    if case.keys.name != "uuid":
        return table
    with duckdb.connect() as connection:
        connection.register("rows", table)
        return connection.sql("SELECT * REPLACE (id::VARCHAR AS id) FROM rows").to_arrow_table()
