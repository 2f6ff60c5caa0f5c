"""The inputs of lowering besides the plan."""

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
    from rowmerge_nb.spi.handles import ColumnHandle
    from rowmerge_nb.spi.layout import BucketFunction, ConnectorTableLayout
    from rowmerge_nb.spi.page_source import Constraint
    from rowmerge_nb.sql.analyzer.analysis import TableBinding


@dataclass(frozen=True)
class TableRead:
    """A read of a table that a statement needs.

    Args:
        constraint: the condition by which the connector omitted files.
        row_id: the row id, if the scan reads it.
    """

    binding: TableBinding
    constraint: Constraint
    task: ScanPass
    row_id: ColumnHandle | None = None


class LoweringTables(Protocol):
    """The rows and sinks for lowering, from the statement's transaction."""

    def scan(self, node: TableScan) -> Any:
        """Return the columns under the node's symbols, and ``$position`` if rows have one."""

    def scan_matching(
        self, node: TableScan, source: TableScan, keys: Sequence[tuple[str, str]]
    ) -> Any:
        """Scan without rows whose keys another table lacks; None if those keys are not available."""

    def page_scan(self, node: TableScan) -> ScanPass | None: ...

    def page_rows(self, node: TableScan) -> tuple[ScanPass | None, Any]:
        """Return the scan of a table within tasks; or None and its pages in cells, if executors
        cannot read it.
        """

    def exchange_folder(self) -> str | None:
        """Return a folder for files between stages; None if executors may be remote."""

    def narrowed_scan(self, node: TableScan, semi: SemiJoin | None) -> ScanPass:
        """Return the scan of the target, limited to a semi join's keys if possible."""

    def split_numbers(self, count: int) -> Any:
        """Return a row per split, its number in ``id``."""

    def in_tasks(
        self, rows: Any, task: Any, schema: pa.Schema, *, carries_record: bool = False
    ) -> Any:
        """Run a pass over rows, in Spark's types."""

    def outcome_of(self, rows: Any, task: Any) -> Any:
        """Run the statement's last pass over rows; return fragments and records."""

    def sinks(self) -> SinkFactory: ...

    def page_sinks(self) -> Any:
        """Return the indices of the required columns, and the factory of page sinks."""

    def bucket_function(
        self, layout: ConnectorTableLayout, types: tuple[Any, ...]
    ) -> BucketFunction: ...


@dataclass(frozen=True)
class LoweringContext:
    """The inputs of lowering besides the plan.

    Args:
        tasks: the number of tasks that read a table whose changed rows are not exchanged.
        witness: rows carry both sides' values.
        aliases: the names of target and source in the statement, for errors.
    """

    spark: Any
    tables: LoweringTables
    partitions: int
    tasks: int
    writers: int
    per_clause: int = 0
    witness: bool = False
    target: tuple[tuple[str, Symbol], ...] = ()
    source: tuple[tuple[str, Symbol], ...] = ()
    keys: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    aliases: tuple[str, str] = ("target", "source")
    keeping: Keeping = IN_CASE
    chooser: RowChooser | None = None

    @property
    def witness_type(self) -> pa.DataType | None:
        if not self.witness:
            return None
        sides = {
            side: pa.struct([pa.field(name, symbol.type.arrow) for name, symbol in symbols])
            for side, symbols in (("source", self.source), ("target", self.target))
            if symbols
        }
        return pa.struct([("source_row", pa.int64()), *sides.items()])
