"""The other engines in the race, and this project's memory tables: each makes its tables afresh before every statement."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path

import pyarrow as pa

from benchmarks.data import DELETE, MERGE, UPDATE


class Contestant(ABC):
    """An engine that merges the source into the target, or deletes or updates a tenth of the target.

    Attributes:
        name: the engine, and how it is run.
        folder: where its files are, if it has files of its own.
    """

    name: str
    folder: Path | None = None

    @abstractmethod
    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Make fresh tables; not timed."""

    @abstractmethod
    def merge(self) -> None:
        """Merge; timed, with everything that makes the change last."""

    @abstractmethod
    def delete(self) -> None:
        """Delete; timed likewise."""

    @abstractmethod
    def update(self) -> None:
        """Update; timed likewise."""

    @abstractmethod
    def content(self) -> pa.Table:
        """Give the target's rows."""

    def close(self) -> None:
        """Give back what the engine holds."""

    def files(self) -> dict[Path, int]:
        """Give the files and their sizes in bytes."""
        if self.folder is None:
            return {}
        return {path: path.stat().st_size for path in self.folder.rglob("*") if path.is_file()}


class SqlContestant(Contestant):
    """An engine that is given the statements as they are."""

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Run a statement, with everything that makes the change last."""

    def merge(self) -> None:
        """Run the MERGE."""
        self.execute(MERGE)

    def delete(self) -> None:
        """Run the DELETE."""
        self.execute(DELETE)

    def update(self) -> None:
        """Run the UPDATE."""
        self.execute(UPDATE)


class RowMerge(SqlContestant):
    """This project, memory connector."""

    def __init__(self, trace: str = "auto", paradigm: str = "DELETE_ROW_AND_INSERT_ROW", flow: str = "merge") -> None:
        from rowmerge_nb import Engine

        kind = f"{paradigm.split('_', maxsplit=1)[0].lower()}, trace {trace}"
        self.name = f"rowmerge_nb memory, {kind if flow == 'merge' else 'flow updatable'}"
        self.engine = Engine(trace=trace)
        self.paradigm, self.flow = paradigm, flow

    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Register both tables."""
        self.engine.register("target", target, paradigm=self.paradigm)
        self.engine.register("source", source)

    def execute(self, statement: str) -> None:
        """Run a statement; UPDATE and DELETE by one of the two flows."""
        self.engine.run(statement, flow=self.flow)

    def content(self) -> pa.Table:
        """Read the table."""
        return self.engine.table("target")


class DuckDB(SqlContestant):
    """DuckDB on a file of its own, checkpoint included."""

    name = "DuckDB, own file, checkpoint included"
    folder: Path

    def __init__(self) -> None:
        import duckdb

        self.folder = Path(tempfile.mkdtemp())
        self.connection = duckdb.connect()

    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Load both tables into a new file."""
        import duckdb

        self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.connection = duckdb.connect(str(self.folder / "race.duckdb"))
        for name, table in (("target", target), ("source", source)):
            self.connection.register("loading", table)
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM loading")
        self.connection.execute("CHECKPOINT")

    def execute(self, statement: str) -> None:
        """Run a statement and make it last."""
        self.connection.execute(statement)
        self.connection.execute("CHECKPOINT")

    def content(self) -> pa.Table:
        """Read the table."""
        return self.connection.sql("SELECT * FROM target").to_arrow_table()


class DeltaRs(Contestant):
    """delta-rs, which rewrites the files that it touches."""

    name = "delta-rs, rewrites files"
    folder: Path

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())

    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Write a new table."""
        import deltalake

        shutil.rmtree(self.folder, ignore_errors=True)
        deltalake.write_deltalake(str(self.folder), target)
        self.table = deltalake.DeltaTable(str(self.folder))
        self.source = source

    def merge(self) -> None:
        """Merge by delta-rs' own interface."""
        columns = {name: f"s.{name}" for name in self.source.column_names}
        updates = {"amount": "t.amount + s.amount", "name": "s.name", "updated_at": "s.updated_at"}
        merger = self.table.merge(self.source, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_delete("s.region = 'DEL'").when_matched_update(updates).when_not_matched_insert(columns).execute()

    def delete(self) -> None:
        """Delete by delta-rs' own interface."""
        self.table.delete("id % 10 = 3")

    def update(self) -> None:
        """Update by delta-rs' own interface."""
        self.table.update(updates={"amount": "amount + 1.00", "name": "'changed'"}, predicate="id % 10 = 3")

    def content(self) -> pa.Table:
        """Read the table."""
        import deltalake

        return pa.table(deltalake.DeltaTable(str(self.folder)).to_pyarrow_table())
