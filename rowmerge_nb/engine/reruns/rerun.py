"""Running a statement again on the rows that it had, perhaps changed: on a copy of its target in
memory, and nothing is committed.
"""

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
from rowmerge_nb.base.names import quoted_path
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.table_properties import schema_of
from rowmerge_nb.engine.observers.requested_rows import (
    NUMBERED_ANEW,
    UNREPEATABLE,
    request_by_values,
    requested_rows,
    unmatched_target_rows,
)
from rowmerge_nb.engine.reruns.rerun_checks import refuse_branch
from rowmerge_nb.engine.reruns.source_edits import checked_edits, relation_of, source_of
from rowmerge_nb.engine.statements.source_answer import answer_source, answered_node
from rowmerge_nb.spi.handles import ConnectorTableVersion, SchemaTableName
from rowmerge_nb.spi.metadata import ConnectorTableMetadata
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.sql.typed.readings import is_deterministic
from rowmerge_nb.trace.notice_record import NoticeRecord
from rowmerge_nb.trace.page_samples import AskedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.engine.reruns.source_edits import Edits
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.sql.analyzer.statements.row_conditions import RowConditions
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

COPIES: Final = "$copies"
"""The catalog of copies, which has no table of a user; a trial that names it reads the copy."""
KEPT: Final = ("partitioned_by", "bucketed_by", "bucket_count", "primary_key")
"""Table properties that a copy takes over."""
MOST_ROWS: Final = 1_000
"""The rows that were not joined are not reported for larger tables."""
LEFT_OUT: Final = frozenset(
    {
        "check",
        "dry_run",
        "fault",
        "progress",
        "record",
        "record_bytes",
        "record_every",
        "rehearse",
        "trace",
        "verify",
        "why",
    }
)
"""Options of a run that a trial does not take over."""
NEXT_STEP: Final = (
    "Ask when you run it: why=\"customer = 'Dave'\", or --why in a cell, keeps these"
    " rows in the trace, and trace='full' keeps all. With rehearse=True, nothing is changed."
)
"""The way to keep rows whose version the store does not keep."""


def with_copy(
    engine: RunningEngine,
    name: tuple[str, ...],
    rows: Callable[[], pa.Table] | None = None,
    added: Collection[str] = (),
) -> tuple[RunningEngine, int]:
    """Return an engine that uses a copy of a table in memory in its place, and the number of rows
    of the copy.

    Raises:
        RowMergeError: TABLE_NOT_FOUND if the table does not exist anymore; TRANSACTION_CONFLICT if
            it has other columns than its rows had.
    """
    catalog, schema, table = name
    table_metadata = engine.table_metadata(catalog, schema, table)
    if table_metadata is None:
        raise RowMergeError(
            f"Table '{'.'.join(name)}' no longer exists",
            code="TABLE_NOT_FOUND",
            hint="The copy takes its columns from this table.",
        )
    memory = MemoryConnector()
    properties: dict[str, Any] = {
        name: table_metadata.properties[name]
        for name in KEPT
        if table_metadata.properties.get(name)
    }
    properties["check_constraints"] = table_metadata.check_constraints
    copied_rows = engine.table(quoted_path(name)) if rows is None else rows()
    columns = tuple(column for column in table_metadata.columns if column.name not in added)
    current_names = [column.name for column in columns]
    if copied_rows.column_names != current_names:
        raise RowMergeError(
            f"Table '{'.'.join(name)}' now has other columns"
            f" ({', '.join(current_names)}) than its rows had"
            f" ({', '.join(copied_rows.column_names)})",
            code="TRANSACTION_CONFLICT",
            hint="Run the statement again on the current table.",
        )
    try:
        copied_rows = copied_rows.cast(schema_of(columns))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RowMergeError(
            f"Table '{'.'.join(name)}' now has columns of other types than its rows"
            f" had: {error_text(error)}",
            code="TRANSACTION_CONFLICT",
            hint="Run the statement again on the current table.",
        ) from error
    memory.put(
        ConnectorTableMetadata(SchemaTableName(schema, table), columns, properties), copied_rows
    )
    connectors: dict[str, Connector] = {COPIES: memory}
    return (
        engine.with_copies(connectors, {(catalog, schema, table): (COPIES, schema, table)}),
        copied_rows.num_rows,
    )


@dataclass(frozen=True)
class Again:
    """A MERGE, UPDATE or DELETE that can run again, unchanged or changed.

    The target is a copy in memory of the rows that it had: for a rehearsal its current rows, for a
    committed statement those of the version before. If the store keeps no versions, the copy has
    the rows of the trace: all that took part, without those that no condition read. Sources are
    read in their current state.

    Args:
        ran: the trace of a trial, whose source rows the next trial has; None for the run itself.
    """

    engine: RunningEngine
    trace: Trace
    sql: str
    options: Mapping[str, Any]
    ran: Trace | None = None

    def run(self, sql: str | None = None, source: Edits | None = None, **options: Any) -> Result:
        """Rehearse it on the copy; see `rowmerge_nb.engine.api.result.Result.what_if`."""
        if names := sorted(LEFT_OUT.intersection(options)):
            raise RowMergeError.invalid(
                f"The option {names[0]} is not possible here: the statement is"
                " rehearsed, with all of its rows in the trace",
                hint=f"Omit {names[0]}.",
            )
        text = self.sql if sql is None else sql
        run_options = {**self.options, "flow": Flow.MERGE, **options}
        if sql is not None:
            planned = self._on_copy.run(text, dry_run=True, **run_options).trace
            if (
                planned.state is StatementState.EXPLAINED
                or planned.kind not in ROW_CHANGES
                or planned.target.name_parts != (COPIES, *self.trace.target.name_parts[1:])
            ):
                raise RowMergeError.invalid(
                    f"This is not a MERGE, UPDATE or DELETE of {self.trace.target.qualified_name}",
                    hint="Only the table that the statement changed is copied.",
                )
        engine, next_engine = self._on_copy, self.engine
        if source is not None and (edits := checked_edits(source)):
            edited_source = source_of(self.engine, text, run_options, self.trace.target.name_parts)
            if sql is None:
                edited_source.check_rows(self.ran or self.trace)
            next_engine = edited_source.edited(next_engine, edits)[0]
            engine, text, frames = edited_source.edited(engine, edits)
            run_options["namespace"] = {**(run_options.get("namespace") or {}), **frames}
        result = engine.run(text, rehearse=True, trace=TraceLevel.FULL, **run_options)
        result.again = replace(
            self, engine=next_engine, sql=text, options=run_options, ran=result.trace
        )
        missing_rows = self.missing
        if missing_rows:
            # The counts of an incomplete copy are not those of the table.
            notices = (*result.trace.notices, NoticeRecord(missing_rows))
            target = replace(result.trace.target, rows_before=None, rows_after=None)
            result.trace = replace(result.trace, target=target, notices=notices)
        return result

    def asked(self, row: Any, source_row: Any, columns: Mapping[str, Any]) -> Trace:
        """Look up rows that the trace does not have: one job on the target's former version, and on
        sources in their current state.

        Target rows of a MERGE without a source row take another job, if values are requested that
        they may have.
        """
        options = self.engine.options.changed(
            **{name: value for name, value in self.options.items() if name not in LEFT_OUT}
        )

        def read(run: Any, conditions: RowConditions) -> Trace:
            analysis = run.analysis
            request = request_by_values(conditions, row, source_row, columns)
            planned = answer_source(run, run.planned())
            if answered_node(run.plan) is not None:
                problem = "" if is_deterministic(analysis.source.tree) else UNREPEATABLE
                problem = NUMBERED_ANEW if request.source_row is not None else problem
                if problem:
                    return self._with_rows(AskedRows(request.words, problem=problem))
            context = run.context(planned)
            rows = requested_rows(run, analysis, planned, context, request)
            untouched = (
                None
                if rows.problem
                else unmatched_target_rows(run, analysis, planned, context, request)
            )
            return self._with_rows(rows, untouched)

        try:
            trace = self.engine.look(
                self.sql, options.changed(flow=Flow.MERGE), self._versions(), read
            )
        except ConnectorError as error:
            raise RowMergeError.unsupported(
                f"The rows that this {self.trace.kind} had can no longer be read: {error.message}",
                hint=NEXT_STEP,
            ) from error
        rows = trace.samples.requested_rows
        if rows is not None and rows.problem:
            raise RowMergeError.unsupported(rows.problem.removesuffix("."), hint=NEXT_STEP)
        return trace

    def _with_rows(self, rows: AskedRows, untouched: pa.RecordBatch | None = None) -> Trace:
        samples = replace(self.trace.samples, requested_rows=rows, untouched_rows=untouched)
        return replace(self.trace, samples=samples)

    def _versions(self) -> Mapping[TableName, ConnectorTableVersion]:
        before = self.trace.target.version_before
        catalog, schema, table = self.trace.target.name_parts
        if before is not None:
            return {(catalog, schema, table): ConnectorTableVersion(before)}
        if self.trace.committed and self.trace.state is StatementState.FINISHED:
            raise RowMergeError.unsupported(
                f"Connector '{self.trace.target.connector}' does not keep the version of"
                f" {self.trace.target.qualified_name} that this {self.trace.kind} had",
                hint=NEXT_STEP,
            )
        return {}

    @property
    def no_cells(self) -> str:
        """Why the text does not allow edited cells of the source; ``""`` if it does."""
        try:
            relation_of(self.sql, str(self.options.get("dialect") or self.engine.options.dialect))
        except RowMergeError as error:
            return f"{error.message}."
        return ""

    @staticmethod
    def checked_cells(edits: object) -> Edits:
        return checked_edits(edits)

    def target_metadata(self) -> ConnectorTableMetadata | None:
        catalog, schema, table = self.trace.target.name_parts
        return self.engine.table_metadata(catalog, schema, table)

    def target_rows(self) -> pa.Table:
        return self.engine.table(quoted_path(self.trace.target.name_parts))

    @property
    def missing(self) -> str:
        copied_count, before = self._copied[1], self.trace.target.rows_before
        if self._whole is not None or copied_count == before:
            return ""
        count_text = (
            f"{number(copied_count)} of {plural(before, 'row')}"
            if before is not None
            else plural(copied_count, "row")
        )
        return (
            f"The copy has {count_text} of {self.trace.target.qualified_name}: those"
            " that took part, since the previous version is not kept. What the statement does"
            " to other rows, what a subquery would find in them, and how many rows the table"
            " would have are unknown."
        )

    @property
    def _on_copy(self) -> RunningEngine:
        return self._copied[0]

    @cached_property
    def _copied(self) -> tuple[RunningEngine, int]:
        refuse_branch(self.trace.target)
        return with_copy(
            self.engine,
            self.trace.target.name_parts,
            self._rows,
            dict(self.trace.target.added_columns),
        )

    def _rows(self) -> pa.Table:
        if self._whole is not None:
            return self._whole
        pages = self.trace.samples.pages
        if pages is None or not pages.complete or not _has_whole_targets(pages):
            raise RowMergeError.unsupported(
                f"The trace does not have all rows that this {self.trace.kind} had",
                hint="Run it with rehearse=True, or with trace='full'.",
            )
        return _joined_targets(pages, self.trace)

    @cached_property
    def _whole(self) -> pa.Table | None:
        table = quoted_path(self.trace.target.name_parts)
        if not self.trace.committed:
            return None if self.trace.target.branch else self.engine.table(table)
        if isinstance(self.trace.target.version_before, int):
            with suppress(ConnectorError):
                return self.engine.table(table, self.trace.target.version_before)
        return None

    def untouched(self, trace: Trace) -> pa.Table | None:
        """Return the target's rows that were not joined, or not selected by WHERE; None if they are
        not known, and for large tables.
        """
        # A trial has read the rows of the copy, complete or not.
        is_own = trace is self.trace
        pages, before = trace.samples.pages, trace.target.rows_before if is_own else self._copied[1]
        if (
            pages is None
            or not pages.complete
            or pages.witness is None
            or before is None
            or before > MOST_ROWS
        ):
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
        untouched = []
        for index, text in enumerate(_texts(rows)):
            if touched[text]:
                touched[text] -= 1
            else:
                untouched.append(index)
        # Rows that were changed in between, or have another spelling, are not reported as
        # untouched.
        return None if touched.total() else rows.take(pa.array(untouched, pa.int64()))


def _has_whole_targets(pages: PageSample) -> bool:
    if pages.witness is None or "target" not in pages.witness.schema.names:
        return False
    fields: int = pages.witness.schema.field("target").type.num_fields
    return fields == pages.layout.column_count


def _texts(rows: pa.Table) -> list[str]:
    return [
        repr(row) for row in zip(*(python_values(column) for column in rows.columns), strict=True)
    ]


def _joined_targets(pages: PageSample, trace: Trace) -> pa.Table:
    """Return each joined target row once, without columns that the table did not have yet."""
    assert pages.witness is not None
    target = pages.witness.column("target")
    joined = pa.table(target.flatten(), [field.name for field in target.type])
    return joined.drop_columns([name for name, _ in trace.target.added_columns]).take(
        _first_of_each(pages.row_ids, target.is_valid())
    )


def _first_of_each(row_ids: pa.Array, mask: pa.Array) -> pa.Array:
    ids = pa.table({"index": np.arange(len(row_ids)), "row_id": row_ids}).filter(mask)
    while any(pa.types.is_struct(field.type) for field in ids.schema):
        ids = ids.flatten()
    keys = ids.schema.names[1:]
    return (
        ids.group_by(keys).aggregate([("index", "min")]).column("index_min").combine_chunks().sort()
    )
