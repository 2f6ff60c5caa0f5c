"""What lowering needs beside the plan: the session, the rows of tables, the makers of sinks, and how many tasks there are to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.tasks.audit_passes import RowChooser
    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.engine.tasks.writer import SinkFactory
    from rowmerge_nb.plan.plan_nodes import SemiJoin, Symbol, TableScan
    from rowmerge_nb.spi.layout import BucketFunction, ConnectorTableLayout


class Tables(Protocol):
    """Where lowering gets the rows of tables and the makers of sinks from; the statement's transaction implements it."""

    def scan(self, node: TableScan) -> Any:
        """Return the table's columns under the node's symbols, and the position of every row as ``$position`` where it has one."""

    def scan_matching(self, node: TableScan, source: TableScan, keys: Sequence[tuple[str, str]]) -> Any:
        """Scan as ``scan`` does, without the rows whose keys no row of another table has; None where its keys are not at hand."""

    def page_scan(self, node: TableScan) -> ScanPass | None:
        """Return what reads a table within a task, in the types of pages; None where its rows are Spark's to read."""

    def page_rows(self, node: TableScan) -> tuple[ScanPass | None, Any]:
        """Return what reads a table within tasks; or None and its pages in cells, if executors cannot read the table where it is."""

    def exchange_folder(self) -> str | None:
        """Return a folder for files that one stage writes and the next one reads; None if executors may be elsewhere."""

    def narrowed_scan(self, node: TableScan, semi: SemiJoin | None) -> ScanPass:
        """Return what reads the target within tasks, asked for no more than the keys of a semi join, where these are at hand."""

    def split_numbers(self, count: int) -> Any:
        """Return a row for every split, its number in ``id``, each in a task of its own."""

    def in_tasks(self, rows: Any, task: Any, schema: pa.Schema, *, tells: bool = False) -> Any:
        """Return what a pass makes of rows, in Spark's types; ``tells`` if the last channel can carry a task's record."""

    def outcome_of(self, rows: Any, task: Any) -> Any:
        """Return what the statement's last pass tells the driver of rows: fragments and records."""

    def sinks(self) -> SinkFactory:
        """Return what makes the merge sinks of the statement."""

    def page_sinks(self) -> Any:
        """Return what makes the page sinks of the statement."""

    def bucket_function(self, layout: ConnectorTableLayout, types: tuple[Any, ...]) -> BucketFunction:
        """Return the bucket function of a layout that names a partitioning."""


@dataclass(frozen=True)
class LoweringContext:
    """What lowering needs beside the plan.

    Args:
        spark: the session.
        tables: rows and sinks.
        partitions: into how many partitions a forced exchange goes; the session's shuffle partitions are set to the same number.
        tasks: how many tasks read a table whose changed rows stay where they are: rows go through them page by page.
        writers: at most how many writers there are behind an exchange.
        per_clause: how many rows per clause a task samples.
        witness: both sides' values travel with every row.
        target: the symbols of the target's data columns, ``source`` those of the source (a statement without one has
            none); used by the witness, and where an error names a row.
        keys: the symbols of the columns that tell which row of the target, and which of the source, an error is about.
        keeping: which pages tasks keep of those that they hand to the connector.
        chooser: chooses the rows that a task samples, in place of so many per clause; None without one.
    """

    spark: Any
    tables: Tables
    partitions: int
    tasks: int
    writers: int
    per_clause: int = 0
    witness: bool = False
    target: tuple[tuple[str, Symbol], ...] = ()
    source: tuple[tuple[str, Symbol], ...] = ()
    keys: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    keeping: Keeping = IN_CASE
    chooser: RowChooser | None = None

    @property
    def witness_type(self) -> pa.DataType | None:
        """The Arrow type of the witness channel."""
        if not self.witness:
            return None
        sides = {
            side: pa.struct([pa.field(name, symbol.type.arrow) for name, symbol in symbols])
            for side, symbols in (("source", self.source), ("target", self.target))
            if symbols
        }
        return pa.struct([("source_row", pa.int64()), *sides.items()])
