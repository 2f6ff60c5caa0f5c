"""The nearest keys of MERGE rows without a partner, searched before the statement finishes.

For a small statement the trace has the source rows and only the target is read again. For a large
one, with the option ``near``, both are. A search that fails does not end the statement; with
``near`` the trace has the reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import StatementInterrupted, message_of
from rowmerge_nb.base.names import backquoted
from rowmerge_nb.engine.observers.near.glance import may_be_near
from rowmerge_nb.engine.observers.near.on import UnreadableError, on_of
from rowmerge_nb.engine.observers.near.search import SideRows, near_keys
from rowmerge_nb.engine.spark.frames import is_spark_frame
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.lowering import lower
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.scan import POSITION
from rowmerge_nb.plan.plan_nodes import AnsweredQuery, Project, Symbol, TableScan
from rowmerge_nb.plan.rules import is_small, join_of
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.sql.typed.readings import is_deterministic
from rowmerge_nb.trace.near import NearKeys
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.observers.near.on import On
    from rowmerge_nb.engine.statements.action import Action
    from rowmerge_nb.engine.statements.row_change import Named
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

NOTHING_NEAR: Final = (
    "No unmatched source row has a key that differs from a target key only in"
    " spelling or by one letter. With near=True, or --near, keys that differ in one column"
    " are searched as well."
)
DUCKDB_INTERRUPTED: Final = "Query interrupted"
"""The text of the plain RuntimeError that DuckDB raises for an interrupt."""


class NearMisses(RunObserver):
    def __init__(self, analysis: MergeAnalysis) -> None:
        self._analysis = analysis
        self._near: NearKeys | None = None

    def after_checks(self, run: StatementRun, action: Action) -> None:
        self._near = near_of(run, self._analysis, action)

    def add_to_trace(self, trace: Trace) -> Trace:
        return replace(trace, samples=replace(trace.samples, near_misses=self._near))


def near_of(run: StatementRun, analysis: MergeAnalysis, action: Action) -> NearKeys | None:
    """Search the nearest keys of the rows without a partner; None if every source row has one, and
    for large statements without ``near``.
    """
    is_requested, pages = run.options.near, action.account.pages
    is_complete = (
        action.context.witness
        and run.plan is not None
        and is_small(run.plan)
        and pages is not None
        and pages.complete
    )
    if not is_requested and not (is_complete and pages is not None and _has_unmatched(pages)):
        return None
    if is_requested:
        run.begin_step("near")
    try:
        with run.steps.timed("near"), room():
            return _search(run, analysis, action, pages if is_complete else None)
    except UnreadableError as error:
        return NearKeys(problem=f"{error}.")
    except StatementInterrupted:
        raise
    except Exception as error:
        if isinstance(error, RuntimeError) and str(error) == DUCKDB_INTERRUPTED:
            raise StatementInterrupted(
                "The statement was interrupted while keys were compared", step="near"
            ) from error
        reason = message_of(error)
        return NearKeys(problem=f"The keys could not be compared: {reason}.")


def _search(
    run: StatementRun, analysis: MergeAnalysis, action: Action, pages: PageSample | None
) -> NearKeys:
    on = on_of(analysis)
    if not on.keys:
        message = (
            "ON has no equality between a key of the target and a key of the source,"
            " so no key is nearer than another"
        )
        if on.uncompared:
            message = (
                f"ON compares keys of type {on.uncompared}, for which the nearest are not searched"
            )
        raise UnreadableError(message)
    most = run.options.near or run.services.settings.small_rows
    source = (
        _source_of(pages, on, run.shown[1])
        if pages is not None
        else _read_source(run, analysis, action, on, most)
    )
    target = _read_target(run, analysis, on, most)
    # Most statements insert rows that are near to nothing; they do not wait for a search.
    if not run.options.near and not may_be_near(on, source, target):
        return NearKeys(on.terms, problem=NOTHING_NEAR)
    return near_keys(on, source, target)


def _has_unmatched(pages: PageSample) -> bool:
    assert pages.witness is not None
    sides = [pages.witness.column(name) for name in ("source", "target")]
    return bool(
        (
            sides[0].is_valid().to_numpy(zero_copy_only=False)
            & sides[1].is_null().to_numpy(zero_copy_only=False)
        ).any()
    )


# -- the source


def _source_of(pages: PageSample, on: On, source: Named) -> SideRows:
    assert pages.witness is not None
    sides = {name: pages.witness.column(name) for name in ("source_row", "source", "target")}
    with_source = np.flatnonzero(sides["source"].is_valid().to_numpy(zero_copy_only=False))
    numbers = sides["source_row"].take(pa.array(with_source))
    is_numbered = numbers.null_count == 0
    first = (
        np.unique(numbers.to_numpy(), return_index=True)[1]
        if is_numbered and len(with_source)
        else np.arange(len(with_source))
    )
    rows = pa.array(with_source[first])
    matched = sides["target"].is_valid().to_numpy(zero_copy_only=False)[with_source[first]]
    columns = dict(
        zip(
            (symbol.name for _, symbol in source), sides["source"].take(rows).flatten(), strict=True
        )
    )
    names = {symbol.name: name for name, symbol in source if symbol.name in on.symbols}
    page = pa.RecordBatch.from_arrays([columns[symbol] for symbol in names], names=list(names))
    return SideRows(page, names, numbers.take(pa.array(first)) if is_numbered else None, matched)


def _read_source(
    run: StatementRun, analysis: MergeAnalysis, action: Action, on: On, most: int
) -> SideRows:
    """Read the columns of the source that ON reads: a table here, everything else by Spark."""
    source = analysis.source
    names = {
        field.symbol: field.name or field.symbol
        for field in source.fields
        if field.symbol in on.symbols
    }
    symbols = [Symbol(field.symbol, field.type) for field in source.fields if field.symbol in names]
    join = join_of(run.plan) if run.plan is not None else None
    assert join is not None
    # In a FULL join a Project above the scan marks the rows of the source.
    node = (
        join.right.source
        if join.type is JoinType.FULL and isinstance(join.right, Project)
        else join.right
    )
    if not is_deterministic(source.tree) and not isinstance(node, AnsweredQuery):
        raise UnreadableError(
            "The source may return different rows each time it is read, so the rows"
            " of the statement are unknown"
        )
    if isinstance(node, TableScan) and not is_spark_frame(node.table.dataframe):
        columns = dict(zip((symbol.name for symbol in node.outputs), node.columns, strict=True))
        rows, numbers = _scanned(
            run,
            TableScan(
                id="near",
                outputs=tuple(symbols),
                table=node.table,
                columns=tuple(columns[s.name] for s in symbols),
            ),
            most,
            "source",
        )
        return SideRows(rows, names, numbers)
    with interrupts_afterwards():
        frame = (
            lower(join.right, action.context)
            .select(*(backquoted(symbol.name) for symbol in symbols))
            .limit(most + 1)
        )
    table = run.collect(action.context.spark, frame, action.context.partitions)
    if table.num_rows > most:
        raise _too_many(run, "source", most)
    arrays = [
        conform(_whole(column), symbol.type.arrow)
        for column, symbol in zip(table.columns, symbols, strict=True)
    ]
    return SideRows(
        pa.RecordBatch.from_arrays(arrays, names=[symbol.name for symbol in symbols]), names
    )


# -- the target


def _read_target(run: StatementRun, analysis: MergeAnalysis, on: On, most: int) -> SideRows:
    pairs = [
        pair
        for pair in zip(analysis.target.columns, analysis.target_fields, strict=True)
        if pair[1].symbol in on.symbols
    ]
    node = TableScan(
        id="near",
        outputs=tuple(Symbol(field.symbol, field.type) for _, field in pairs),
        table=analysis.target,
        columns=tuple(ColumnHandle(column.name, column.type) for column, _ in pairs),
    )
    rows, _ = _scanned(run, node, most, "target")
    return SideRows(rows, {field.symbol: column.name for column, field in pairs})


def _scanned(
    run: StatementRun, node: TableScan, most: int, side: str
) -> tuple[pa.RecordBatch, pa.Array]:
    """Read a table of at most ``most`` rows in this process; return its columns and the rows'
    numbers.
    """
    task = run.transaction.scans.observations.page_scan(node)
    assert task is not None
    if side == "source" and not task.is_repeatable:
        raise UnreadableError(
            "The source may return different rows when it is read again, so the rows"
            " of the statement are unknown"
        )
    pages: list[pa.RecordBatch] = []
    rows = 0
    for page in task.read(range(len(task.splits))):
        pages.append(page)
        rows += page.num_rows
        if rows > most:
            raise _too_many(run, side, most)
    table = pa.Table.from_batches(pages, schema=task.schema).combine_chunks()
    arrays = {name: _whole(table.column(name)) for name in table.column_names}
    numbers = arrays.pop(POSITION)
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), numbers


def _too_many(run: StatementRun, side: str, most: int) -> UnreadableError:
    more = f" near={2 * most} searches twice as many." if run.options.near else ""
    return UnreadableError(
        f"The {side} has more than {most:,} rows, and only that many are"
        f" searched.{more}".removesuffix(".")
    )


def _whole(column: Any) -> pa.Array:
    chunks: Sequence[pa.Array] = column.chunks
    return (
        chunks[0]
        if len(chunks) == 1
        else pa.concat_arrays(chunks)
        if chunks
        else pa.array([], column.type)
    )
