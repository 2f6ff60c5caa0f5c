"""What the runs of MERGE, UPDATE and DELETE share in both flows: planning, the one action, and the
trace.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from rowmerge_nb.base.choices import StatementState, TraceLevel
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.spark.job import fragments_and_records
from rowmerge_nb.engine.spark.lowering_context import LoweringContext
from rowmerge_nb.engine.spark.spark_session import places, usual_partitions
from rowmerge_nb.engine.statements.account import sum_up
from rowmerge_nb.engine.statements.action import Action, PlannedChange, whole_rows
from rowmerge_nb.engine.statements.committed import CHECKED_ROWS, keeping_of
from rowmerge_nb.engine.statements.condition_terms import term_of
from rowmerge_nb.engine.statements.statement import UNKNOWN_SIZE
from rowmerge_nb.engine.tasks.recorder import EVERY_ROW
from rowmerge_nb.plan.extended import returned_references
from rowmerge_nb.plan.plan_nodes import DeleteProject, Exchange, MergeProcessor
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.sql.analyzer.analysis import (
    DeleteAnalysis,
    MergeAnalysis,
    RowChangeAnalysis,
    UpdateAnalysis,
)
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.trace.clause_record import ClauseRecord
from rowmerge_nb.trace.error_record import Consequence
from rowmerge_nb.trace.join_record import JoinRecord
from rowmerge_nb.trace.row_samples import RowSamples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.plan.plan_nodes import Output, PlanNode, Symbol
    from rowmerge_nb.plan.planner import TargetFacts
    from rowmerge_nb.plan.rules import RuleSettings
    from rowmerge_nb.spi.handles import ConnectorTableHandle
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.sql.analyzer.analysis import Analysis, ClauseAnalysis, TypedExpression
    from rowmerge_nb.trace.clause_record import Term
    from rowmerge_nb.trace.trace import Trace

SMALL_ROWS = 10_000
TASK_ROWS = 500_000
SAMPLED: Final = {TraceLevel.AUTO: 10, TraceLevel.FULL: EVERY_ROW, TraceLevel.OFF: 0}
SAMPLED_SMALL = 1_000

Named = tuple[tuple[str, "Symbol"], ...]
"""Symbols with their names in the statement."""
NodeRows = tuple["PlanNode", tuple[int | None, ...], int | None]
"""A node, the rows that went in from each of its sources, and the rows that came out."""


# -- planning


def plan_change(
    run: StatementRun,
    analysis: RowChangeAnalysis,
    ask: Callable[[], TargetFacts],
    plan: Callable[[TargetFacts], Output],
) -> PlannedChange:
    run.transaction.target = analysis.target
    run.steps.current = "plan"
    facts = ask()
    settings = run.services.settings
    settings = whole_rows(settings) if run.options.trace == TraceLevel.FULL else settings
    run.begin_step("plan")
    with run.steps.timed("plan"), room():
        planned = PlannedChange(plan(facts), settings, _read_columns(run, analysis), facts=facts)
        run.plan = planned.plan()
    return planned


def _read_columns(run: StatementRun, analysis: RowChangeAnalysis) -> frozenset[str]:
    """Return the columns of the target that RETURNING reads, or an UPDATE of the documents' era writes
    back.
    """
    columns, read = analysis.target.columns, set[int]()
    if analysis.returning is not None:
        symbols = returned_references(analysis.returning)
        pairs = zip(analysis.returning.new, analysis.returning.current, strict=True)
        read = {
            index
            for index, fields in enumerate(pairs)
            if symbols & {field.symbol for field in fields}
        }
    assigned: list[set[int]] = [
        set(clause.assigned) for clause in analysis.clauses if clause.operation is Operation.UPDATE
    ]
    if run.options.era is not Era.CURRENT and assigned:
        read |= assigned[0].union(*assigned) - assigned[0].intersection(*assigned)
    return frozenset(columns[index].name for index in read)


def plan_of(run: StatementRun) -> Output:
    if run.plan is None:
        raise ValueError("The statement has not been planned")
    return run.plan


# -- the connector


def target_metadata(run: StatementRun, analysis: RowChangeAnalysis) -> ConnectorMetadata:
    return run.transaction.metadata(analysis.target.catalog)


def target_handle(analysis: RowChangeAnalysis) -> ConnectorTableHandle:
    handle = analysis.target.handle
    if handle is None:
        raise ValueError(f"The analyzer accepted '{analysis.target.display}', which is not a table")
    return handle


def checked(metadata: ConnectorMetadata, method: str, value: Any, answer_type: Any) -> Any:
    if isinstance(value, answer_type):
        return value
    names = " or ".join(
        "None" if t is type(None) else t.__name__ for t in get_args(answer_type) or (answer_type,)
    )
    raise ConnectorError(
        f"{type(metadata).__name__}.{method} returned {type(value).__name__}; it must"
        f" return a {names}",
        code="GENERIC_INTERNAL_ERROR",
    )


# -- the one action


def action_context(
    run: StatementRun,
    settings: RuleSettings,
    flowing: int | None,
    target: Named,
    source: Named = (),
    keys: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset()),
) -> LoweringContext:
    """Return the context that the plan is lowered with; starts Spark if necessary."""
    run.begin_step("start Spark")
    spark = run.services.spark()
    usual = usual_partitions(spark)
    small = flowing is not None and flowing <= settings.small_rows
    level, chooser = run.options.trace, run.options.chooser
    return LoweringContext(
        spark=spark,
        tables=run.transaction.scans,
        partitions=_partitions(usual, flowing),
        tasks=places(spark),
        writers=_writers(usual, flowing),
        per_clause=_sampled(run, small=small),
        witness=level == TraceLevel.FULL or (small and level == TraceLevel.AUTO),
        target=target,
        source=source,
        keys=keys,
        aliases=_aliases(run.analysis),
        keeping=keeping_of(run),
        chooser=chooser,
    )


def _aliases(analysis: Analysis) -> tuple[str, str]:
    target = analysis.target_alias if isinstance(analysis, RowChangeAnalysis) else "target"
    source = analysis.source.alias if isinstance(analysis, MergeAnalysis) else None
    return target, source or "source"


def _sampled(run: StatementRun, *, small: bool) -> int:
    if run.options.chooser is not None:
        return 0
    if small and run.options.trace == TraceLevel.AUTO:
        return SAMPLED_SMALL
    return max(SAMPLED[run.options.trace], CHECKED_ROWS if run.options.check else 0)


def act(
    run: StatementRun,
    planned: PlannedChange,
    context: Callable[[], LoweringContext],
    lowered: Callable[[LoweringContext], Any],
) -> Action:
    run.begin_action()
    run.steps.current = "run"
    with run.steps.timed("run"):
        lowering = run.lowering = context()
        table = run.collect(lowering.spark, lowered(lowering), lowering.partitions)
        fragments, records = fragments_and_records(table)
    run.account = sum_up(records, lowering.writers)
    if run.account.errors:
        raise run.account.errors[0]
    action = Action(lowering, run.account, fragments, planned)
    run.observers.after_action(run, action)
    return action


# -- the trace


def call_facts(run: StatementRun, verb: str, worker: str) -> list[Consequence]:
    """Return the calls of the contract that had been made when a statement failed."""
    outcomes = {call.method: call.error for call in run.transaction.log.calls}

    def fact(method: str) -> Consequence:
        if method not in outcomes:
            return Consequence("was not called", method)
        return Consequence("was called" if outcomes[method] is None else "failed", method)

    facts = [fact(f"begin_{verb}")]
    if facts[0].text == "was called":
        facts += [Consequence(text) for text in _creations(run, worker)]
        facts.append(fact(f"finish_{verb}"))
        if f"finish_{verb}" in outcomes:
            facts.append(fact("commit"))
    return facts


def _creations(run: StatementRun, worker: str) -> Iterator[str]:
    account = run.account
    if account is None:
        is_known = not run.steps.has_acted
        yield (
            f"no {worker} was created" if is_known else f"whether a {worker} was created is unknown"
        )
        return
    failures = sum(
        1 for call in account.calls if call.method.startswith("create_") and call.error is not None
    )
    created = len(account.writers) - failures
    if created <= 0:
        yield f"no {worker} was created"
        return
    failed_aborts = sum(call.method == "abort" and call.error is not None for call in account.calls)
    aborted = sum(writer.state == "aborted" for writer in account.writers) - failed_aborts
    yield f"{plural(created, worker)} had been created, {aborted} of them aborted"
    if failed_aborts:
        yield f"abort of {plural(failed_aborts, worker)} failed"
    if account.lacks_scanned_rows:
        yield "rows were joined without those of the failed scan"


def row_change_trace(
    run: StatementRun,
    analysis: RowChangeAnalysis,
    trace: Trace,
    sizes: Callable[[Account], Iterable[NodeRows]],
) -> Trace:
    is_finished, account = trace.state == StatementState.FINISHED, run.account
    counts = account if account is not None and (is_finished or account.has_counts) else None
    before = run.rows_before(analysis.target.row_count)
    return replace(
        trace,
        target=replace(
            trace.target,
            name_parts=analysis.target.name,
            alias=analysis.target_alias.lower(),
            branch=analysis.target.branch,
            rows_before=before,
            rows_after=(
                before if trace.state == StatementState.FAILED else trace.target.rows_after
            ),
        ),
        rows=(
            _rows(plan_of(run), account, sizes(account))
            if account is not None and is_finished
            else {}
        ),
        clauses=tuple(
            counted(_clause(clause, analysis, *run.shown), counts) for clause in analysis.clauses
        ),
        join=JoinRecord(
            source_alias=(analysis.source.alias or "").lower()
            if isinstance(analysis, MergeAnalysis)
            else "",
            on=_term(analysis.on, *run.shown) if isinstance(analysis, MergeAnalysis) else None,
            rows=counts.joined if counts else None,
            matched_rows=counts.matched if counts else None,
            unmatched_rows=counts.joined - counts.matched - counts.unmatched_rows
            if counts
            else None,
            multiple_matches=counts.patterns if counts else None,
        ),
        samples=RowSamples(
            # A row whose partner was not read would seem to have none.
            pages=account.pages if account and not account.lacks_scanned_rows else None,
            stored_pages=account.stored_samples if account else (),
        ),
    )


def _term(condition: TypedExpression | None, target: Named, source: Named) -> Term | None:
    return (
        None
        if condition is None or condition.condition is None
        else term_of(condition.condition, target, source)
    )


def _clause(
    clause: ClauseAnalysis, analysis: RowChangeAnalysis, target: Named, source: Named
) -> ClauseRecord:
    where = analysis.where if isinstance(analysis, UpdateAnalysis | DeleteAnalysis) else None
    columns = analysis.target.columns
    return ClauseRecord(
        number=clause.number,
        operation=clause.operation,
        matched=clause.matched,
        text=clause.text,
        line=clause.span.line,
        rows=None,
        conditional=(clause.condition or where) is not None,
        by_source=clause.by_source,
        head=clause.head,
        condition=_term(clause.condition or where, target, source),
        values=tuple(
            (columns[i].name, value.text)
            for i in clause.assigned
            if (value := clause.values[i]) is not None
        ),
    )


def counted(clause: ClauseRecord, account: Account | None) -> ClauseRecord:
    return (
        clause
        if account is None
        else replace(clause, rows=account.clause_rows.get(clause.number, 0))
    )


def _rows(
    plan: Output, account: Account, sizes: Iterable[NodeRows]
) -> Mapping[str, tuple[tuple[int | None, ...], int | None]]:
    """Return the rows on the edges of the plan, as far as pages and the connector show them."""
    output, finish = plan, plan.source
    writer = finish.sources[0]
    stored_rows = sum(sum(record.rows.values()) for record in account.writers)
    fragments = sum(record.fragments for record in account.writers)
    rows: dict[str, tuple[tuple[int | None, ...], int | None]] = {
        output.id: ((account.row_count,), account.row_count),
        finish.id: ((fragments,), account.row_count),
        writer.id: ((stored_rows,), fragments),
    }
    node = writer.sources[0]
    while type(node) in {Exchange, MergeProcessor, DeleteProject}:
        rows[node.id] = (
            (stored_rows if isinstance(node, Exchange) else account.joined,),
            stored_rows,
        )
        node = node.sources[0]
    rows.update({node.id: (going_in, going_out) for node, going_in, going_out in sizes})
    return rows


def _partitions(usual: int, rows: int | None) -> int:
    """Return the number of partitions of the joined rows.

    A task holds one partition, to find duplicates in it.
    """
    return usual * UNKNOWN_SIZE if rows is None else max(usual, -(-rows // TASK_ROWS))


def _writers(partitions: int, rows: int | None) -> int:
    return partitions if rows is None else max(2, min(partitions, rows // SMALL_ROWS + 1))
