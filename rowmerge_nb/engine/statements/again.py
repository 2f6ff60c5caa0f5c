"""Running a statement once more on the rows that it had, perhaps changed: on a copy of its target in memory, and nothing is committed."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import ROW_CHANGES, Flow, StatementState, TraceLevel
from rowmerge_nb.base.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.base.names import quoted
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.connectors.memory.connector import MemoryConnector
from rowmerge_nb.connectors.memory.table_properties import schema_of
from rowmerge_nb.engine.statements.asked import NUMBERED_ANEW, UNREPEATABLE, untouched_rows, wanted_by_values, wanted_rows
from rowmerge_nb.engine.statements.edits import checked_edits, relation_of, source_of
from rowmerge_nb.engine.statements.row_change import answer_source
from rowmerge_nb.engine.statements.source_answer import answered_node
from rowmerge_nb.spi.handles import ConnectorTableVersion, SchemaTableName
from rowmerge_nb.spi.metadata import ConnectorTableMetadata
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.sql.typed.readings import is_deterministic
from rowmerge_nb.trace.trace import AskedRows, NoticeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.engine.result import Result
    from rowmerge_nb.engine.statements.edits import Edits
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.sql.analyzer.statements.row_conditions import RowConditions
    from rowmerge_nb.trace.trace import PageSample, Trace

COPIES: Final = "$copies"
"""The catalog of copies, which no table of a user's is in; a trial that names it finds the copy."""
KEPT: Final = ("partitioned_by", "bucketed_by", "bucket_count", "primary_key")
"""Table properties that a copy takes over."""
MOST_ROWS: Final = 1_000
"""Of larger tables nobody is told which rows were not joined."""
LEFT_OUT: Final = frozenset(
    {"check", "dry_run", "fault", "progress", "record", "record_bytes", "record_every", "rehearse", "trace", "verify", "why"}
)
"""Options of a run that are not those of a trial."""
NEXT_STEP: Final = (
    "Ask with the run: why=\"customer = 'Dave'\", or --why in a cell, carries these rows into the trace, and trace='full' all; "
    "with rehearse=True nothing is changed."
)
"""How rows are had that a store does not have any more."""


def with_copy(
    engine: Engine, name: tuple[str, ...], rows: Callable[[], pa.Table] | None = None, added: Collection[str] = ()
) -> tuple[Engine, int]:
    """Return an engine that reads and changes a copy of a table in memory in its place, and how many rows the copy has.

    Args:
        engine: the engine.
        name: the table's catalog, schema and name.
        rows: gives what the copy holds; None for the table's rows as they are now.
        added: columns that a statement has added since the table had the rows.

    Raises:
        RowMergeError: TABLE_NOT_FOUND, the table is not there any more; TRANSACTION_CONFLICT, it has other columns than its rows had.
    """
    catalog, schema, table = name
    known = engine.table_metadata(catalog, schema, table)
    if known is None:
        raise RowMergeError(
            f"Table '{'.'.join(name)}' does not exist any more",
            code="TABLE_NOT_FOUND",
            hint="The copy takes its columns from it.",
        )
    memory = MemoryConnector()
    properties: dict[str, Any] = {name: known.properties[name] for name in KEPT if known.properties.get(name)}
    properties["check_constraints"] = known.check_constraints
    there = engine.table(_written(name)) if rows is None else rows()
    columns = tuple(column for column in known.columns if column.name not in added)
    now = [column.name for column in columns]
    if there.column_names != now:
        raise RowMergeError(
            f"Table '{'.'.join(name)}' has other columns now ({', '.join(now)}) than its rows had ({', '.join(there.column_names)})",
            code="TRANSACTION_CONFLICT",
            hint="Run the statement again, on the table as it is.",
        )
    try:
        there = there.cast(schema_of(columns))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RowMergeError(
            f"Table '{'.'.join(name)}' has columns of other types now than its rows had: {error_text(error)}",
            code="TRANSACTION_CONFLICT",
            hint="Run the statement again, on the table as it is.",
        ) from error
    memory.put(ConnectorTableMetadata(SchemaTableName(schema, table), columns, properties), there)
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
        options: what it was run with, those of `LEFT_OUT` apart.
        ran: of a trial its trace, whose source rows the next trial has; None of the run itself.
    """

    engine: Engine
    trace: Trace
    sql: str
    options: Mapping[str, Any]
    ran: Trace | None = None

    def run(self, sql: str | None = None, source: Edits | None = None, **options: Any) -> Result:
        """Rehearse it on the copy.

        Args:
            sql: another statement with the same target; None for the same one.
            source: cells of the source that are to have other values, see `rowmerge_nb.engine.statements.edits`.
            options: see `rowmerge_nb.engine.options.Options`; what is not given is as it was.

        Raises:
            RowMergeError: the statement is wrong or fails; INVALID_ARGUMENTS for one with another target, and for an option that a rehearsal
                decides itself; NOT_SUPPORTED where the rows that it had are not known.
        """
        if refused := sorted(LEFT_OUT.intersection(options)):
            raise RowMergeError(
                f"The option {refused[0]} has no place here: the statement is rehearsed, with all of its rows in the trace",
                code="INVALID_ARGUMENTS",
                hint=f"Leave {refused[0]} out.",
            )
        text = self.sql if sql is None else sql
        chosen = {**self.options, "flow": Flow.MERGE, **options}
        if sql is not None:
            planned = self._on_copy.run(text, dry_run=True, **chosen).trace
            if (
                planned.state is StatementState.EXPLAINED
                or planned.kind not in ROW_CHANGES
                or planned.name != (COPIES, *self.trace.name[1:])
            ):
                raise RowMergeError(
                    f"This is no MERGE, UPDATE or DELETE of {self.trace.qualified}",
                    code="INVALID_ARGUMENTS",
                    hint="Only the table that the statement has changed is copied.",
                )
        engine, here = self._on_copy, self.engine
        if source is not None and (edits := checked_edits(source)):
            found = source_of(self.engine, text, chosen, self.trace.name)
            if sql is None:
                found.agrees(self.ran or self.trace)
            here = found.edited(here, edits)[0]
            engine, text, frames = found.edited(engine, edits)
            chosen["namespace"] = {**(chosen.get("namespace") or {}), **frames}
        result = engine.run(text, rehearse=True, trace=TraceLevel.FULL, **chosen)
        result.again = replace(self, engine=here, sql=text, options=chosen, ran=result.trace)
        copied = self.missing
        if copied:
            # The sizes of a copy that has not all rows would be read as the table's.
            notices = (*result.trace.notices, NoticeRecord(copied))
            result.trace = replace(result.trace, rows_before=None, rows_after=None, notices=notices)
        return result

    def asked(self, row: Any, source_row: Any, columns: Mapping[str, Any]) -> Trace:
        """Look rows up that the trace does not carry: one job on the target as it was, and on sources as they are now.

        Target rows of a MERGE that no source row matches take another job where values are asked for that they may have.

        Args:
            row: the number of the row in the source, values by columns of either side, or None.
            source_row: the number of the row in the source by name; None for any.
            columns: values of columns of either side.

        Returns:
            The trace with those rows as the ones that were asked for, and as target rows that were not joined those that have these values.

        Raises:
            RowMergeError: NOT_SUPPORTED where the target's rows are not known any more; INVALID_ARGUMENTS for columns that there are not.
        """
        options = self.engine.options.changed(**{name: value for name, value in self.options.items() if name not in LEFT_OUT})

        def look(run: Any, conditions: RowConditions) -> Trace:
            wanted = wanted_by_values(conditions, row, source_row, columns)
            planned = answer_source(run, run.analysis, run.planned())
            if answered_node(run.plan) is not None:
                problem = "" if is_deterministic(run.analysis.source.tree) else UNREPEATABLE
                problem = NUMBERED_ANEW if wanted.source_row is not None else problem
                if problem:
                    return replace(self.trace, asked=AskedRows(wanted.words, problem=problem))
            context = run.context(planned)
            found = wanted_rows(run, planned, context, wanted)
            untouched = None if found.problem else untouched_rows(run, planned, context, wanted)
            return replace(self.trace, asked=found, untouched=untouched)

        try:
            found = self.engine.look(self.sql, options.changed(flow=Flow.MERGE), self._versions(), look)
        except ConnectorError as error:
            raise RowMergeError(
                f"The rows that this {self.trace.kind} had cannot be read any more: {error.message}",
                code="NOT_SUPPORTED",
                hint=NEXT_STEP,
            ) from error
        if found.asked is not None and found.asked.problem:
            raise RowMergeError(found.asked.problem.removesuffix("."), code="NOT_SUPPORTED", hint=NEXT_STEP)
        return found

    def _versions(self) -> Mapping[TableName, ConnectorTableVersion]:
        """Return the version of the target that the statement had; none where its rows are still the present ones."""
        before = self.trace.version_before
        catalog, schema, table = self.trace.name
        if before is not None:
            return {(catalog, schema, table): ConnectorTableVersion(before)}
        if self.trace.committed and self.trace.state is StatementState.FINISHED:
            raise RowMergeError(
                f"Connector '{self.trace.connector}' does not keep the version of {self.trace.qualified} that this {self.trace.kind} had",
                code="NOT_SUPPORTED",
                hint=NEXT_STEP,
            )
        return {}

    @property
    def no_cells(self) -> str:
        """Why no cells of the source can be edited, as far as the text says it; ``""`` if they can."""
        try:
            relation_of(self.sql, str(self.options.get("dialect") or self.engine.options.dialect))
        except RowMergeError as error:
            return f"{error.message}."
        return ""

    @staticmethod
    def checked_cells(edits: object) -> Edits:
        """Return edited cells that are of the form that they must have, or raise INVALID_ARGUMENTS."""
        return checked_edits(edits)

    @property
    def missing(self) -> str:
        """A sentence about the rows that the copy has not; ``""`` if it has all."""
        held, before = self._copied[1], self.trace.rows_before
        if self._whole is not None or held == before:
            return ""
        there = f"{number(held)} of {plural(before, 'row')}" if before is not None else plural(held, "row")
        return (
            f"The copy has {there} of {self.trace.qualified}: those that took part, since the version before is not kept. "
            "What the statement does to other rows is not known, nor what a subquery would find among them, nor how many rows the table would have."
        )

    @property
    def _on_copy(self) -> Engine:
        return self._copied[0]

    @cached_property
    def _copied(self) -> tuple[Engine, int]:
        """The engine that has the copy, and how many rows that has."""
        return with_copy(self.engine, self.trace.name, self._rows, dict(self.trace.added))

    def _rows(self) -> pa.Table:
        """Return the target's rows as they were, or those that took part."""
        if self._whole is not None:
            return self._whole
        pages = self.trace.pages
        if pages is None or not pages.complete or not _has_whole_targets(pages):
            raise RowMergeError(
                f"The rows that this {self.trace.kind} had are not all in its trace",
                code="NOT_SUPPORTED",
                hint="Run it with rehearse=True, or with trace='full'.",
            )
        return _joined_targets(pages, self.trace)

    @cached_property
    def _whole(self) -> pa.Table | None:
        """All rows that the target had; None where nobody has them any more."""
        table = _written(self.trace.name)
        if not self.trace.committed:
            return self.engine.table(table)
        if isinstance(self.trace.version_before, int):
            with suppress(ConnectorError):
                return self.engine.table(table, self.trace.version_before)
        return None

    def untouched(self, trace: Trace) -> pa.Table | None:
        """Return the target's rows that were not joined, or not chosen by WHERE; None where that is not known, and of large tables.

        Args:
            trace: that of the run, or of one of its trials.
        """
        # A trial has met the copy's rows, whether these are all or not.
        is_own = trace is self.trace
        pages, before = trace.pages, trace.rows_before if is_own else self._copied[1]
        if pages is None or not pages.complete or pages.witness is None or before is None or before > MOST_ROWS:
            return None
        if "target" not in pages.witness.schema.names:
            return None
        try:
            rows = self._whole if is_own else self._rows()
        except RowMergeError:
            return None
        touched = Counter(_texts(_joined_targets(pages, trace)))
        if rows is None or rows.num_rows != before:
            return None
        left = []
        for index, text in enumerate(_texts(rows)):
            if touched[text]:
                touched[text] -= 1
            else:
                left.append(index)
        # Rows that were changed in between, or are written otherwise, are not told as what they are not.
        return None if touched.total() else rows.take(pa.array(left, pa.int64()))


def _written(name: tuple[str, ...]) -> str:
    return ".".join(map(quoted, name))


def _has_whole_targets(pages: PageSample) -> bool:
    """Return whether the sample has all columns of the target rows."""
    if pages.witness is None or "target" not in pages.witness.schema.names:
        return False
    fields: int = pages.witness.schema.field("target").type.num_fields
    return fields == pages.layout.column_count


def _texts(rows: pa.Table) -> list[str]:
    """Return a text per row that is the same for the same values."""
    return [repr(row) for row in zip(*(python_values(column) for column in rows.columns), strict=True)]


def _joined_targets(pages: PageSample, trace: Trace) -> pa.Table:
    """Return the target rows that were joined, each once, without columns that the table did not have yet."""
    assert pages.witness is not None
    target = pages.witness.column("target")
    joined = pa.table(target.flatten(), [field.name for field in target.type])
    return joined.drop_columns([name for name, _ in trace.added]).take(_first_of_each(pages.row_ids, target.is_valid()))


def _first_of_each(row_ids: pa.Array, wanted: pa.Array) -> pa.Array:
    """Return the indices at which each of the wanted row ids stands first: a target row is joined once for each row that matches it."""
    ids = pa.table({"index": np.arange(len(row_ids)), "row_id": row_ids}).filter(wanted)
    while any(pa.types.is_struct(field.type) for field in ids.schema):
        ids = ids.flatten()
    keys = ids.schema.names[1:]
    return ids.group_by(keys).aggregate([("index", "min")]).column("index_min").combine_chunks().sort()
