"""The answer of a source query, which DuckDB computes before Spark's job begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.engine.pages.answer import PagesRefusedError, stream_answer
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.plan.plan_nodes import AnsweredQuery, Source
from rowmerge_nb.plan.rules import ANSWER_SOURCE, chain, rewritten
from rowmerge_nb.plan.source_answer import answer_scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.plan.plan_nodes import Output, PlanNode
    from rowmerge_nb.plan.rules import RuleSettings
    from rowmerge_nb.sql.analyzer.analysis import TableBinding


def answered_plan(run: StatementRun, first: Output, settings: RuleSettings) -> tuple[Output, RuleSettings] | None:
    """Answer the source query of a statement, if its plan has one that DuckDB answers.

    Tables are read as the statement reads them: in its transaction, by the handles that it has resolved.

    Args:
        run: the statement's run; its plan says whether DuckDB answers the query.
        first: the plan before the rules.
        settings: with which the rules were applied.

    Returns:
        The plan before the rules with the answer in it, and the settings; if DuckDB has refused, the query is left to Spark. None if there is
        nothing to answer.

    Raises:
        ExecutionError: the table cannot be read; with the connector's code.
        StatementInterrupted: an interrupt came, or the statement was cancelled.
    """
    node = answered_node(run.plan)
    if node is None:
        return None
    run.step = "run"
    run.begin_step("run")
    scans, paged = run.transaction.scans, node.paged
    answer = answer_scan(node.query, paged)
    try:
        with run.timed("source"):
            rows, run.query_rows = stream_answer(
                paged,
                scans.driver_scan(paged.scan),
                run.transaction.cancelled,
                lambda pages: scans.store_frame(answer.table, _conformed(pages, answer.table)),
            )
    except PagesRefusedError as refusal:
        source = replace(node.query, refusal=str(refusal))
        return _with_source(first, source), replace(settings, off=settings.off | {ANSWER_SOURCE})
    return _with_source(first, answer_scan(node.query, paged, rows)), settings


def answered_node(plan: Output | None) -> AnsweredQuery | None:
    """Return the query of a plan that DuckDB answers, if there is one."""
    nodes = [] if plan is None else chain(plan)
    return next((node for node in nodes if isinstance(node, AnsweredQuery)), None)


def _with_source(plan: Output, source: PlanNode) -> Output:
    return rewritten(plan, lambda node: source if isinstance(node, Source) and node.id == source.id else node)


def _conformed(pages: Iterable[pa.RecordBatch], table: TableBinding) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
    for page in pages:
        arrays = [conform(array, field.type) for array, field in zip(page.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
