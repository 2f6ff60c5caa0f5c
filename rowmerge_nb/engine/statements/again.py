"""Running a statement once more on the rows that it had, perhaps changed: on a copy of its target in memory, and nothing is committed."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.choices import ROW_CHANGES, Flow, StatementState, TraceLevel
from rowmerge_nb.connectors.memory.connector import MemoryConnector
from rowmerge_nb.connectors.memory.tables import schema_of
from rowmerge_nb.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.names import quoted
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ConnectorTableMetadata
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.trace import NoticeRecord
from rowmerge_nb.words import number, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.engine.result import Result
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.trace.trace import PageSample, Trace

__all__ = ["Again", "with_copy"]

COPIES: Final = "$copies"
"""The catalog of copies; no statement can name it."""
KEPT: Final = ("partitioned_by", "bucketed_by", "bucket_count", "primary_key")
"""Table properties that a copy takes over."""
MOST_ROWS: Final = 1_000
"""Of larger tables nobody is told which rows were not joined."""
LEFT_OUT: Final = frozenset({"dry_run", "progress", "rehearse", "trace", "verify"})
"""Options of a run that are not those of a trial."""


def with_copy(engine: Engine, name: tuple[str, ...], rows: Callable[[str], pa.Table] | None = None) -> tuple[Engine, int]:
    """Give an engine that reads and changes a copy of a table in memory in its place, and how many rows the copy has.

    Args:
        engine: the engine.
        name: the table's catalog, schema and name.
        rows: gives what the copy holds, of the table's name as it is written; None for the table's rows as they are now.

    Raises:
        RowMergeError: TABLE_NOT_FOUND, the table is not there any more; TRANSACTION_CONFLICT, it has other columns than its rows had.
    """
    catalog, schema, table = name
    known = engine.table_metadata(catalog, schema, table)
    if known is None:
        msg = f"Table '{'.'.join(name)}' does not exist any more"
        raise RowMergeError(msg, code="TABLE_NOT_FOUND", hint="The copy takes its columns from it.")
    memory = MemoryConnector()
    properties = {name: known.properties[name] for name in KEPT if known.properties.get(name)}
    written = ".".join(map(quoted, name))
    there = engine.table(written) if rows is None else rows(written)
    now = [column.name for column in known.columns]
    if there.column_names != now:
        msg = f"Table '{'.'.join(name)}' has other columns now ({', '.join(now)}) than its rows had ({', '.join(there.column_names)})"
        raise RowMergeError(msg, code="TRANSACTION_CONFLICT", hint="Run the statement again, on the table as it is.")
    try:
        there = there.cast(schema_of(known.columns))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = f"Table '{'.'.join(name)}' has columns of other types now than its rows had: {error_text(error)}"
        raise RowMergeError(msg, code="TRANSACTION_CONFLICT", hint="Run the statement again, on the table as it is.") from error
    memory.put(ConnectorTableMetadata(SchemaTableName(schema, table), known.columns, properties), there)
    connectors: dict[str, Connector] = {COPIES: memory}
    return engine.with_copies(connectors, {(catalog, schema, table): (COPIES, schema, table)}), there.num_rows


@dataclass(frozen=True)
class Again:
    """A MERGE, UPDATE or DELETE that can be run once more, as it was or otherwise.

    The target is a copy in memory of the rows that it had. Of a rehearsal these are its rows now; of a statement that was committed those of
    the version before, and where the store keeps none those that the trace holds: all that took part, and none that no condition spoke of.
    Sources are read as they are now.

    Args:
        engine: what has run it.
        trace: its trace.
        sql: the statement.
        options: what it was run with.
    """

    engine: Engine
    trace: Trace
    sql: str
    options: Mapping[str, Any]

    def run(self, sql: str | None = None, **options: Any) -> Result:
        """Rehearse it on the copy.

        Args:
            sql: another statement with the same target; None for the same one.
            options: see `rowmerge_nb.engine.options.Options`; what is not given is as it was.

        Raises:
            RowMergeError: the statement is wrong or fails; INVALID_ARGUMENTS for one with another target, and for an option that a rehearsal
                decides itself; NOT_SUPPORTED where the rows that it had are not known.
        """
        if refused := sorted(LEFT_OUT.intersection(options)):
            msg = f"The option {refused[0]} has no place here: the statement is rehearsed, with all of its rows in the trace"
            raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint=f"Leave {refused[0]} out.")
        text = self.sql if sql is None else sql
        kept = {name: value for name, value in self.options.items() if name not in LEFT_OUT}
        chosen = {**kept, "flow": Flow.MERGE, **options}
        if sql is not None:
            planned = self._on_copy.run(text, dry_run=True, **chosen).trace
            if (
                planned.state is StatementState.EXPLAINED
                or planned.kind not in ROW_CHANGES
                or planned.name != (COPIES, *self.trace.name[1:])
            ):
                msg = f"This is no MERGE, UPDATE or DELETE of {self.trace.qualified}"
                raise RowMergeError(
                    msg, code="INVALID_ARGUMENTS", hint="Only the table that the statement has changed is copied."
                )
        result = self._on_copy.run(text, rehearse=True, trace=TraceLevel.FULL, **chosen)
        result.again = replace(self, sql=text, options=chosen)
        copied = self.missing
        if copied:
            result.trace = replace(result.trace, notices=(*result.trace.notices, NoticeRecord(copied)))
        return result

    @property
    def missing(self) -> str:
        """A sentence about the rows that the copy has not; ``""`` if it has all."""
        held, before = self._copied[1], self.trace.rows_before
        if held == before:
            return ""
        there = f"{number(held)} of {plural(before, 'row')}" if before is not None else plural(held, "row")
        return (
            f"The copy has {there} of {self.trace.qualified}: those that took part, since connector '{self.trace.connector}' does not keep "
            "the version before. What the statement does to other rows is not known, nor what a subquery would find among them."
        )

    @property
    def _on_copy(self) -> Engine:
        return self._copied[0]

    @cached_property
    def _copied(self) -> tuple[Engine, int]:
        """The engine that has the copy, and how many rows that has."""
        return with_copy(self.engine, self.trace.name, self._rows)

    def _rows(self, table: str) -> pa.Table:
        """Give the target's rows as they were, or those that took part."""
        whole = self._all_rows(table)
        if whole is not None:
            return whole
        pages = self.trace.pages
        if pages is None or not pages.complete or not _has_whole_targets(pages):
            msg = f"The rows that this {self.trace.kind} had are not all in its trace"
            hint = "Run it with rehearse=True, or with trace='full'."
            raise RowMergeError(msg, code="NOT_SUPPORTED", hint=hint)
        return _joined_targets(pages)

    def _all_rows(self, table: str) -> pa.Table | None:
        """Give all rows that the target had; None where nobody has them any more."""
        if not self.trace.committed:
            return self.engine.table(table)
        if isinstance(self.trace.version_before, int):
            with suppress(ConnectorError):
                return self.engine.table(table, self.trace.version_before)
        return None

    def untouched(self) -> pa.Table | None:
        """Give the target's rows that were not joined, or not chosen by WHERE; None where that is not known, and of large tables."""
        pages, before = self.trace.pages, self.trace.rows_before
        if pages is None or not pages.complete or pages.witness is None or before is None or before > MOST_ROWS:
            return None
        if "target" not in pages.witness.schema.names:
            return None
        try:
            whole = self._all_rows(".".join(map(quoted, self.trace.name)))
        except RowMergeError:
            return None
        touched = Counter(_texts(_joined_targets(pages)))
        if whole is None or whole.num_rows != before:
            return None
        left = []
        for index, text in enumerate(_texts(whole)):
            if touched[text]:
                touched[text] -= 1
            else:
                left.append(index)
        # Rows that were changed in between, or are written otherwise, are not told as what they are not.
        return None if touched.total() else whole.take(pa.array(left, pa.int64()))


def _has_whole_targets(pages: PageSample) -> bool:
    """Tell whether the sample has all columns of the target rows."""
    if pages.witness is None or "target" not in pages.witness.schema.names:
        return False
    fields: int = pages.witness.schema.field("target").type.num_fields
    return fields == pages.layout.column_count


def _texts(rows: pa.Table) -> list[str]:
    """Give a text per row that is the same for the same values."""
    return [repr(row) for row in zip(*(python_values(column) for column in rows.columns), strict=True)]


def _joined_targets(pages: PageSample) -> pa.Table:
    """Give the target rows that were joined, each once."""
    assert pages.witness is not None
    target = pages.witness.column("target")
    return pa.table(target.flatten(), [field.name for field in target.type]).take(
        _first_of_each(pages.row_ids, target.is_valid())
    )


def _first_of_each(row_ids: pa.Array, wanted: pa.Array) -> pa.Array:
    """Give the indices at which each of the wanted row ids stands first: a target row is joined once for each row that matches it."""
    ids = pa.table({"index": np.arange(len(row_ids)), "row_id": row_ids}).filter(wanted)
    while any(pa.types.is_struct(field.type) for field in ids.schema):
        ids = ids.flatten()
    keys = ids.schema.names[1:]
    return ids.group_by(keys).aggregate([("index", "min")]).column("index_min").combine_chunks().sort()
