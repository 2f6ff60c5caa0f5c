"""The calls of the contract by which MERGE, UPDATE and DELETE reach a store through merge sinks,
and the check of what sinks got.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError, ExecutionError
from rowmerge_nb.base.names import class_name
from rowmerge_nb.engine.catalog.call_log import layout_text
from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards
from rowmerge_nb.engine.spark.lowering import lower
from rowmerge_nb.engine.statements.naming import kind_of
from rowmerge_nb.engine.statements.row_change import (
    checked,
    plan_of,
    target_handle,
    target_metadata,
)
from rowmerge_nb.plan.carried import view_texts
from rowmerge_nb.plan.planner import TargetFacts
from rowmerge_nb.plan.rules import read_views
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorMergeTableHandle
from rowmerge_nb.spi.layout import ConnectorTableLayout
from rowmerge_nb.spi.operations import Era, Operation, RowChangeParadigm
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.trace.words import operation_letters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.sql.analyzer.analysis import RowChangeAnalysis

CHANGING: Final = frozenset({Operation.INSERT, Operation.DELETE, Operation.UPDATE})
HALVES: Final = {
    Operation.UPDATE_INSERT: Operation.INSERT,
    Operation.UPDATE_DELETE: Operation.DELETE,
}
"""The operations of a store for the halves of an update."""


def ask_target(run: StatementRun, analysis: RowChangeAnalysis) -> TargetFacts:
    """Ask the connector what the planner needs, in the document's order."""
    log, metadata = run.transaction.log, target_metadata(run, analysis)
    handle = target_handle(analysis)
    properties = {**run.transaction.session.properties, "statement": kind_of(analysis)}
    session = run.transaction.session = replace(run.transaction.session, properties=properties)

    def ask(method: str, answer_type: Any, gave: Callable[[Any], str]) -> Any:
        return log.call(
            method,
            lambda: checked(
                metadata, method, getattr(metadata, method)(session, handle), answer_type
            ),
            gave=gave,
        )

    row_id = ask(
        "get_merge_row_id_column_handle",
        ColumnHandle,
        lambda column: f"{column.name} {column.type}",
    )
    paradigm = ask("get_row_change_paradigm", RowChangeParadigm, lambda p: p.name)
    run.paradigm = paradigm.name
    if run.options.paradigm is not None and paradigm is not run.options.paradigm:
        raise ConnectorError(
            f"Connector '{run.services.connector}' uses {paradigm.name}; it does not"
            f" support {run.options.paradigm.name}",
            hint="Omit the option 'paradigm'.",
        )
    insert = ask("get_insert_layout", ConnectorTableLayout | None, layout_text)
    update = ask("get_update_layout", ConnectorTableLayout | None, layout_text)
    return TargetFacts(row_id, paradigm, insert, update)


def begin_merge(run: StatementRun, analysis: RowChangeAnalysis) -> None:
    run.steps.current = "begin_merge"
    run.begin_step("begin_merge")
    session = run.transaction.session
    metadata = target_metadata(run, analysis)
    handle = target_handle(analysis)
    run.transaction.log.handle = handle
    updated = _updated_columns(run, analysis)
    more: dict[str, Any] = {}
    if run.options.era is Era.CURRENT:
        more = {"updated_columns": updated}
    else:
        names = {column.name: None for columns in updated.values() for column in columns}
        session = replace(
            session, properties={**session.properties, "updated_columns": tuple(names)}
        )
    with run.steps.timed("begin_merge"):
        merge_handle: Any = run.transaction.log.call(
            "begin_merge",
            lambda: metadata.begin_merge(session, handle, **more),
            f"table {analysis.target.qualified}",
            gave=class_name,
        )
    run.transaction.merge_handle = checked(
        metadata, "begin_merge", merge_handle, ConnectorMergeTableHandle
    )
    run.transaction.log.handle = merge_handle


def _updated_columns(
    run: StatementRun, analysis: RowChangeAnalysis
) -> Mapping[int, tuple[ColumnHandle, ...]]:
    target = analysis.target
    columns = run.transaction.scans.own_columns(
        target, [ColumnHandle(column.name, column.type) for column in target.columns]
    )
    return {
        clause.number: tuple(
            column
            for column, value in zip(columns, clause.values, strict=True)
            if value is not None
        )
        for clause in analysis.clauses
        if clause.operation is Operation.UPDATE
    }


@interrupts_afterwards()
def lowered(run: StatementRun, context: LoweringContext) -> Any:
    run.begin_step("run")
    plan = plan_of(run)
    run.transaction.scans.make_views(
        run.analysis.bindings, read_views(plan), view_texts(plan, run.sql())
    )
    with room():
        return lower(plan, context)


def check_stored(
    analysis: RowChangeAnalysis, account: Account, paradigm: RowChangeParadigm
) -> None:
    """Check that the sinks have the rows that the clauses ask for, before they become permanent."""
    expected_rows = stored_rows(
        {c.number: c.operation for c in analysis.clauses}, account.clause_rows, paradigm
    )
    sink_rows: Counter[Operation] = Counter()
    for writer in account.writers:
        for operation, rows in writer.rows.items():
            sink_rows[HALVES.get(Operation(operation), Operation(operation))] += rows
    if +sink_rows != expected_rows:
        raise ExecutionError(
            f"The clauses require {operations_text(expected_rows)}, but the sinks got"
            f" {operations_text(sink_rows)}; nothing was committed",
            step="run",
            hint="Run the statement again; if it happens again, please report it.",
        )


def finish_merge(run: StatementRun, analysis: RowChangeAnalysis, fragments: list[bytes]) -> None:
    session = run.transaction.session
    metadata = target_metadata(run, analysis)
    handle = run.transaction.merge_handle
    if handle is not None:
        run.finish(
            "finish_merge", fragments, partial(metadata.finish_merge, session, handle, fragments)
        )


def stored_rows(
    clauses: Mapping[int, Operation], rows: Mapping[int, int], paradigm: RowChangeParadigm
) -> Counter[Operation]:
    """Return how many rows of each operation the sinks must get.

    >>> rows = stored_rows({0: Operation.UPDATE, 1: Operation.INSERT}, {0: 3, 1: 2}, RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW)
    >>> operations_text(rows)
    'D 3, I 5'
    """
    total: Counter[Operation] = Counter()
    for number, operation in clauses.items():
        parts = [operation]
        if (
            operation is Operation.UPDATE
            and paradigm is RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW
        ):
            parts = [Operation.DELETE, Operation.INSERT]
        for part in parts if operation in CHANGING else ():
            total[part] += rows.get(number, 0)
    return +total


def operations_text(rows: Mapping[Operation, int]) -> str:
    """Return rows per operation as text.

    >>> operations_text({})
    'no row'
    """
    return (
        operation_letters({int(operation): count for operation, count in rows.items() if count})
        or "no row"
    )
