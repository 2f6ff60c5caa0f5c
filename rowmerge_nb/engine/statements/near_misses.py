"""Why rows of a MERGE have no partner: their keys are read as the statement reads them, before it is finished, and the nearest ones looked for.

Of a small statement the trace's rows are those of the source, and the target is read once more; of a large one, where the option ``near`` asks
for it, both. That is an explanation: should it fail, the statement goes on, and says so where it was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import RowMergeError, StatementInterrupted, error_text
from rowmerge_nb.base.names import backquoted
from rowmerge_nb.engine.near.glance import may_be_near
from rowmerge_nb.engine.near.on import UnreadableError, on_of
from rowmerge_nb.engine.near.search import SideRows, near_keys
from rowmerge_nb.engine.spark.frames import is_spark_frame
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.lowering import lower
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

    from rowmerge_nb.engine.near.on import On
    from rowmerge_nb.engine.statements.merge import MergeRun
    from rowmerge_nb.engine.statements.row_change import Answer, Named
    from rowmerge_nb.trace.trace import PageSample

NOTHING_NEAR: Final = (
    "No source row without a partner has a key that a target row has written otherwise, or with one letter more, less or changed. "
    "With near=True, or --near, it is also looked for keys of which one column has another value."
)
DUCKDB_INTERRUPTED: Final = "Query interrupted"
"""What DuckDB makes of an interrupt that comes while it works: a plain RuntimeError of this text."""


def near_of(run: MergeRun, answer: Answer) -> NearKeys | None:
    """Look for the nearest keys of the rows that have no partner.

    Args:
        run: the statement's run; nothing of it is finished yet.
        answer: what its one action has given.

    Returns:
        What was found; None where nobody asked, or every row of the source has a partner.

    Raises:
        StatementInterrupted: the user has stopped it; nothing was changed.
    """
    asked, pages = run.options.near, answer.account.pages
    known = answer.context.witness and run.plan is not None and is_small(run.plan) and pages is not None and pages.complete
    if not asked and not (known and pages is not None and _has_unmatched(pages)):
        return None
    if asked:
        run.begin_step("near")
    try:
        with run.timed("near"), room():
            return _looked_for(run, answer, pages if known else None)
    except UnreadableError as error:
        return NearKeys(problem=f"{error}.")
    except StatementInterrupted:
        raise
    except Exception as error:
        if isinstance(error, RuntimeError) and str(error) == DUCKDB_INTERRUPTED:
            raise StatementInterrupted("The statement was interrupted while keys were compared", step="near") from error
        said = error.message if isinstance(error, RowMergeError) else error_text(error)
        return NearKeys(problem=f"The keys could not be compared: {said}.")


def _looked_for(run: MergeRun, answer: Answer, pages: PageSample | None) -> NearKeys:
    on = on_of(run.analysis)
    if not on.keys:
        msg = "ON demands of no key of the target that it equals one of the source, so no key is nearer than another"
        if on.uncompared:
            msg = f"ON compares keys of type {on.uncompared}, of which the nearest are not looked for"
        raise UnreadableError(msg)
    most = run.options.near or run.settings.small_rows
    source = _source_of(pages, on, run.shown[1]) if pages is not None else _read_source(run, answer, on, most)
    target = _read_target(run, on, most)
    # Most statements insert rows that are near to nothing, and are not to wait until that is searched.
    if not run.options.near and not may_be_near(on, source, target):
        return NearKeys(on.terms, problem=NOTHING_NEAR)
    return near_keys(on, source, target)


def _has_unmatched(pages: PageSample) -> bool:
    """Return whether a row of the source has no partner."""
    assert pages.witness is not None
    sides = [pages.witness.column(name) for name in ("source", "target")]
    return bool((sides[0].is_valid().to_numpy(zero_copy_only=False) & sides[1].is_null().to_numpy(zero_copy_only=False)).any())


# -- the source -----------------------------------------------------------------------------------------------------------


def _source_of(pages: PageSample, on: On, shown: Named) -> SideRows:
    """Return the source's rows, each once, from those that were joined."""
    assert pages.witness is not None
    sides = {name: pages.witness.column(name) for name in ("source_row", "source", "target")}
    there = np.flatnonzero(sides["source"].is_valid().to_numpy(zero_copy_only=False))
    numbers = sides["source_row"].take(pa.array(there))
    numbered = numbers.null_count == 0
    first = np.unique(numbers.to_numpy(), return_index=True)[1] if numbered and len(there) else np.arange(len(there))
    rows = pa.array(there[first])
    matched = sides["target"].is_valid().to_numpy(zero_copy_only=False)[there[first]]
    columns = dict(zip((symbol.name for _, symbol in shown), sides["source"].take(rows).flatten(), strict=True))
    names = {symbol.name: name for name, symbol in shown if symbol.name in on.symbols}
    page = pa.RecordBatch.from_arrays([columns[symbol] for symbol in names], names=list(names))
    return SideRows(page, names, numbers.take(pa.array(first)) if numbered else None, matched)


def _read_source(run: MergeRun, answer: Answer, on: On, most: int) -> SideRows:
    """Read the columns of the source that ON speaks of; what Spark alone can read it reads once more."""
    source = run.analysis.source
    names = {field.symbol: field.name or field.symbol for field in source.fields if field.symbol in on.symbols}
    symbols = [Symbol(field.symbol, field.type) for field in source.fields if field.symbol in names]
    join = join_of(run.plan) if run.plan is not None else None
    assert join is not None
    # In a FULL join a Project above the scan marks the rows of the source.
    node = join.right.source if join.type is JoinType.FULL and isinstance(join.right, Project) else join.right
    if not is_deterministic(source.tree) and not isinstance(node, AnsweredQuery):
        raise UnreadableError("The source may have other rows each time it is read, so that those of the statement are not known")
    if isinstance(node, TableScan) and not is_spark_frame(node.table.dataframe):
        columns = dict(zip((symbol.name for symbol in node.outputs), node.columns, strict=True))
        rows, numbers = _scanned(
            run,
            TableScan(id="near", outputs=tuple(symbols), table=node.table, columns=tuple(columns[s.name] for s in symbols)),
            most,
            "source",
        )
        return SideRows(rows, names, numbers)
    with interrupts_afterwards():
        frame = lower(join.right, answer.context).select(*(backquoted(symbol.name) for symbol in symbols)).limit(most + 1)
    table = run.collect(answer.context.spark, frame, answer.context.partitions)
    if table.num_rows > most:
        raise _too_many(run, "source", most)
    arrays = [conform(_whole(column), symbol.type.arrow) for column, symbol in zip(table.columns, symbols, strict=True)]
    return SideRows(pa.RecordBatch.from_arrays(arrays, names=[symbol.name for symbol in symbols]), names)


# -- the target -----------------------------------------------------------------------------------------------------------


def _read_target(run: MergeRun, on: On, most: int) -> SideRows:
    """Read the columns of the target that ON speaks of, of all rows, as the statement has found them."""
    analysis = run.analysis
    pairs = [pair for pair in zip(analysis.target.columns, analysis.target_fields, strict=True) if pair[1].symbol in on.symbols]
    node = TableScan(
        id="near",
        outputs=tuple(Symbol(field.symbol, field.type) for _, field in pairs),
        table=analysis.target,
        columns=tuple(ColumnHandle(column.name, column.type) for column, _ in pairs),
    )
    rows, _ = _scanned(run, node, most, "target")
    return SideRows(rows, {field.symbol: column.name for column, field in pairs})


def _scanned(run: MergeRun, node: TableScan, most: int, side: str) -> tuple[pa.RecordBatch, pa.Array]:
    """Read a table here, up to so many rows; give its columns, and the rows' numbers."""
    task = run.transaction.scans.observations.page_scan(node)
    assert task is not None
    if side == "source" and not task.is_repeatable:
        raise UnreadableError(
            "The source may have other rows when it is read again, so that those of the statement are not known"
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


def _too_many(run: MergeRun, side: str, most: int) -> UnreadableError:
    more = f" near={2 * most} looks at twice as many." if run.options.near else ""
    return UnreadableError(f"The {side} has more than {most:,} rows, and so many are looked at.{more}".removesuffix("."))


def _whole(column: Any) -> pa.Array:
    found: Sequence[pa.Array] = column.chunks
    return found[0] if len(found) == 1 else pa.concat_arrays(found) if found else pa.array([], column.type)
