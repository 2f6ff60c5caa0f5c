"""The engines in the race: each makes its tables afresh before every merge, and gives the content afterwards."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.data import MERGE

if TYPE_CHECKING:
    import duckdb


class Contestant(ABC):
    """An engine that merges the source into the target."""

    name: str

    @abstractmethod
    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Make fresh tables; not timed."""

    @abstractmethod
    def merge(self) -> None:
        """Merge; timed, with everything that makes the change last."""

    @abstractmethod
    def content(self) -> pa.Table:
        """Give the target's rows."""


class RowMerge(Contestant):
    """This project, memory connector."""

    def __init__(self, trace: str = "auto", paradigm: str = "DELETE_ROW_AND_INSERT_ROW") -> None:
        from rowmerge_nb import Engine

        self.name = f"rowmerge_nb memory, {paradigm.split('_', maxsplit=1)[0].lower()}, trace {trace}"
        self.engine = Engine(trace=trace)
        self.paradigm = paradigm

    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Register both tables."""
        self.engine.register("target", target, paradigm=self.paradigm)
        self.engine.register("source", source)

    def merge(self) -> None:
        """Run the statement."""
        self.engine.run(MERGE)

    def content(self) -> pa.Table:
        """Read the table."""
        return self.engine.table("target")


class DuckDB(Contestant):
    """DuckDB on a file of its own, checkpoint included."""

    name = "DuckDB, own file, checkpoint included"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.connection: duckdb.DuckDBPyConnection | None = None

    def prepare(self, target: pa.Table, source: pa.Table) -> None:
        """Load both tables into a new file."""
        import duckdb

        if self.connection is not None:
            self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.connection = duckdb.connect(str(self.folder / "race.duckdb"))
        for name, table in (("target", target), ("source", source)):
            self.connection.register("loading", table)
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM loading")
        self.connection.execute("CHECKPOINT")

    def merge(self) -> None:
        """Run the statement and make it last."""
        self.connection.execute(MERGE)
        self.connection.execute("CHECKPOINT")

    def content(self) -> pa.Table:
        """Read the table."""
        return self.connection.sql("SELECT * FROM target").to_arrow_table()


class DeltaRs(Contestant):
    """delta-rs, which rewrites the files that it touches."""

    name = "delta-rs, rewrites files"

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

    def content(self) -> pa.Table:
        """Read the table."""
        import deltalake

        return pa.table(deltalake.DeltaTable(str(self.folder)).to_pyarrow_table())
