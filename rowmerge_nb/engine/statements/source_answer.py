"""The answer of a source query, which DuckDB computes before Spark's job begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from rowmerge_nb.engine.statements.action import Planned
from rowmerge_nb.engine.statements.pages.answer import PagesRefusedError, stream_answer
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.plan.plan_nodes import AnsweredQuery, Source
from rowmerge_nb.plan.rules import ANSWER_SOURCE, chain, rewritten
from rowmerge_nb.plan.source_answer import answer_scan
from rowmerge_nb.sql.tree.depth import room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.plan.plan_nodes import Output, PlanNode
    from rowmerge_nb.sql.analyzer.analysis import TableBinding

PlannedT = TypeVar("PlannedT", bound=Planned)


def answer_source(run: StatementRun, planned: PlannedT) -> PlannedT:
    """Answer the source query if the plan leaves it to DuckDB, and plan again with the number of
    its rows.

    Tables are read as the statement reads them: in its transaction, by the handles that it has
    resolved. If DuckDB refuses, Spark answers the query.
    """
    node = answered_node(run.plan)
    if node is None:
        return planned
    run.steps.current = "run"
    run.begin_step("run")
    scans, paged = run.transaction.scans, node.paged
    settings = planned.settings
    try:
        with run.steps.timed("source"):
            rows, run.query_rows = stream_answer(
                paged,
                scans.driver_scan,
                run.transaction.cancelled,
                lambda pages: scans.store_frame(node.table, _conformed(pages, node.table)),
            )
    except PagesRefusedError as refusal:
        source: PlanNode = replace(node.query, refusal=str(refusal))
        settings = replace(settings, off=settings.off | {ANSWER_SOURCE})
    else:
        source = answer_scan(node.query, paged, rows)
    with_answer = replace(planned, first=_with_source(planned.first, source), settings=settings)
    with room():
        run.plan = with_answer.plan()
    return with_answer


def answered_node(plan: Output | None) -> AnsweredQuery | None:
    nodes = [] if plan is None else chain(plan)
    return next((node for node in nodes if isinstance(node, AnsweredQuery)), None)


def _with_source(plan: Output, source: PlanNode) -> Output:
    return rewritten(
        plan, lambda node: source if isinstance(node, Source) and node.id == source.id else node
    )


def _conformed(pages: Iterable[pa.RecordBatch], table: TableBinding) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
    for page in pages:
        arrays = [
            conform(array, field.type) for array, field in zip(page.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
