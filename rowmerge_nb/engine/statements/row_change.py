"""Running a statement that changes rows: plan, begin, one Spark action, and what finishes it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args

import pyarrow as pa

from rowmerge_nb.engine.catalog.call_log import layout_text
from rowmerge_nb.engine.result import Result
from rowmerge_nb.engine.spark.job import fragments_and_records
from rowmerge_nb.engine.spark.lowering import Context, lower
from rowmerge_nb.engine.statements.account import Account, check_fragments, sum_up
from rowmerge_nb.engine.statements.blame import place_of, place_of_message
from rowmerge_nb.engine.statements.statement import UNKNOWN_SIZE, StatementRun
from rowmerge_nb.errors import ConnectorError, DuplicateMatchError, ExecutionError, RowMergeError
from rowmerge_nb.plan.explain import describe
from rowmerge_nb.plan.nodes import (
    DeleteProject,
    Exchange,
    MergeProcessor,
    PlanNode,
    Symbol,
)
from rowmerge_nb.plan.planner import TargetFacts
from rowmerge_nb.plan.rules import RuleSettings, apply_rules, estimated_rows, spark_text
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorMergeTableHandle
from rowmerge_nb.spi.layout import ConnectorTableLayout
from rowmerge_nb.spi.operations import Era, Operation, RowChangeParadigm
from rowmerge_nb.trace.trace import ClauseRecord, NoticeRecord, Trace
from rowmerge_nb.trace.words import operation_letters, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rowmerge_nb.plan.nodes import Output
    from rowmerge_nb.spi.handles import ConnectorTableHandle
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.sql.analyzer.analysis import RowChangeAnalysis, TypedExpression
    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.trace.trace import DuplicateGroup

__all__ = ["RowChangeRun"]

CHANGING: Final = frozenset({Operation.INSERT, Operation.DELETE, Operation.UPDATE})
HALVES: Final = {Operation.UPDATE_INSERT: Operation.INSERT, Operation.UPDATE_DELETE: Operation.DELETE}
"""What the halves of an update are to a store."""
SMALL_ROWS = 10_000
TASK_ROWS = 500_000
SAMPLED = {"auto": 10, "full": 1 << 30, "off": 0}
SAMPLED_SMALL = 1_000


@dataclass(kw_only=True)
class RowChangeRun(StatementRun):
    """One MERGE, UPDATE or DELETE on its way.

    Args:
        analysis: the statement, resolved.
        settings: sizes that decide which form of a plan is taken.

    Attributes:
        verb: what the connector's calls are named by: ``begin_merge``, ``finish_merge``; ``worker`` is what tasks have of it.
        returned: the rows of RETURNING.
    """

    kind: ClassVar[str]
    verb: ClassVar[str] = "merge"
    worker: ClassVar[str] = "sink"
    analysis: RowChangeAnalysis
    settings: RuleSettings = field(default_factory=RuleSettings)
    returned: pa.Table | None = None

    def work(self) -> Callable[[], None] | None:
        """Plan, begin, run the one Spark action, and check what it told."""
        self.transaction.target = self.analysis.target
        self.step = "plan"
        facts = self._facts()
        settings = _whole_rows(self.settings) if self.options.trace == "full" else self.settings
        self.begin_step("plan")
        with self.timed("plan"):
            planned = self._planned(facts)
            self.plan = apply_rules(planned, settings)
        if self.options.dry_run:
            return None
        self.step = f"begin_{self.verb}"
        self._begin(facts)
        self.step = "run"
        with self.timed("run"):
            context = self._context(settings)
            table = self.collect(context.spark, self._lowered(context), context.partitions)
            fragments, records = fragments_and_records(table)
        self.account = sum_up(records)
        self._check(self.account, context, lambda: apply_rules(planned, _whole_rows(settings)))
        check_fragments(self.account, fragments)
        self._check_stored(self.account, facts.paradigm)
        self.returned = self._returned(self.account)
        return partial(self._finish, fragments)

    def result(self, trace: Trace) -> Result:
        """Give the result, with the rows of RETURNING if they are in the table."""
        return Result(trace, self.returned if trace.state == "finished" else None, rehearsed=self.rehearsed)

    def rehearsable(self) -> bool:
        """Whether a rollback leaves nothing of the statement."""
        return True

    # -- steps ----------------------------------------------------------------------------------------------------

    def _metadata(self) -> ConnectorMetadata:
        return self.transaction.metadata(self.analysis.target.catalog)

    def _target_handle(self) -> ConnectorTableHandle:
        handle = self.analysis.target.handle
        if handle is None:
            msg = f"The analyzer has let '{self.analysis.target.display}' through, which is not a table"
            raise ValueError(msg)
        return handle

    def _facts(self) -> TargetFacts:
        """Ask the connector what the planner must know, in the document's order."""
        session, log, metadata = self.transaction.session, self.transaction.log, self._metadata()
        handle = self._target_handle()

        def ask(method: str, wanted: Any, carries: Callable[[Any], str]) -> Any:
            return log.call(method, lambda: self._given(method, getattr(metadata, method)(session, handle), wanted), carries)

        row_id = ask("get_merge_row_id_column_handle", ColumnHandle, lambda column: f"{column.name} {column.type}")
        paradigm = ask("get_row_change_paradigm", RowChangeParadigm, lambda p: p.name)
        if self.options.paradigm is not None and paradigm is not self.options.paradigm:
            msg = f"Connector '{self.connector}' works by {paradigm.name}; it does not support {self.options.paradigm.name}"
            raise ConnectorError(msg, hint="Leave the option 'paradigm' out.")
        insert = ask("get_insert_layout", ConnectorTableLayout | None, layout_text)
        update = ask("get_update_layout", ConnectorTableLayout | None, layout_text)
        return TargetFacts(row_id, paradigm, insert, update, self.analysis.target.row_count)

    def _planned(self, facts: TargetFacts) -> Output:
        """Plan the statement; no rewriting yet."""
        raise NotImplementedError

    def _driving(self) -> PlanNode:
        """Give the node whose rows say how large the statement is."""
        raise NotImplementedError

    def _sides(self) -> tuple[tuple[tuple[str, Symbol], ...], tuple[tuple[str, Symbol], ...]]:
        """Give the symbols of target and source that are shown of every row, by the names that people know them by."""
        raise NotImplementedError

    def _sizes(self, account: Account) -> Iterator[tuple[PlanNode, tuple[int | None, ...], int | None]]:
        """Give, of the nodes below the processor, the rows that went in and came out."""
        raise NotImplementedError

    def _blamed(self, failure: BaseException) -> tuple[TypedExpression, str] | None:
        """Find the expression that an error of Spark comes from, and say in words where it stands."""
        raise NotImplementedError

    def _begin(self, facts: TargetFacts) -> None:
        """Begin the merge: from here on the target is scanned by the handle that the connector gives."""
        self.begin_step("begin_merge")
        session, metadata, handle = self.transaction.session, self._metadata(), self._target_handle()
        more: dict[str, Any] = {"updated_columns": self._updated_columns()} if self.options.era is Era.CURRENT else {}
        with self.timed("begin_merge"):
            given: Any = self.transaction.log.call("begin_merge", lambda: metadata.begin_merge(session, handle, **more))
        self.transaction.merge_handle = self._given("begin_merge", given, ConnectorMergeTableHandle)

    def _given(self, method: str, value: Any, wanted: Any) -> Any:
        """Check what a call of the contract gave.

        Raises:
            ConnectorError: GENERIC_INTERNAL_ERROR, if it is of another kind than the contract says.
        """
        if isinstance(value, wanted):
            return value
        kind = " or ".join("None" if k is type(None) else k.__name__ for k in get_args(wanted) or (wanted,))
        msg = f"{type(self._metadata()).__name__}.{method} gave {type(value).__name__}; it gives a {kind}"
        raise ConnectorError(msg, code="GENERIC_INTERNAL_ERROR")

    def _updated_columns(self) -> Mapping[int, tuple[ColumnHandle, ...]]:
        """Give per clause the columns that it updates, in table order and in the connector's own handles."""
        target = self.analysis.target
        columns = self.transaction.scans.own_columns(
            target, [ColumnHandle(column.name, column.type) for column in target.columns]
        )
        return {
            clause.number: tuple(column for column, value in zip(columns, clause.values, strict=True) if value is not None)
            for clause in self.analysis.clauses
            if clause.operation is Operation.UPDATE
        }

    def _context(self, settings: RuleSettings) -> Context:
        self.begin_step("start Spark")
        spark = self.spark()
        rows = self._flowing()
        usual = int(spark.conf.get("spark.sql.shuffle.partitions"))
        small = rows is not None and rows <= settings.small_rows
        target, source = self._sides()
        return Context(
            spark=spark,
            tables=self.transaction.scans,
            partitions=_partitions(usual, rows),
            writers=_writers(usual, rows),
            per_clause=SAMPLED_SMALL if small and self.options.trace == "auto" else SAMPLED[self.options.trace],
            witness=self.options.trace == "full" or (small and self.options.trace == "auto"),
            target=target,
            source=source,
        )

    def _lowered(self, context: Context) -> Any:
        self.begin_step("run")
        plan = self._plan()
        self.transaction.scans.make_views(self.analysis.bindings, spark_text(plan))
        return lower(plan, context)

    def _check(self, account: Account, context: Context, whole: Callable[[], PlanNode]) -> None:
        """Raise what ended a task, or the duplicate error; nothing that a sink did counts then.

        Args:
            account: what the tasks told.
            context: what the plan was lowered with.
            whole: gives the plan as it is when all columns of the target are read.
        """
        if account.errors:
            raise account.errors[0]

    def _check_stored(self, account: Account, paradigm: RowChangeParadigm) -> None:
        """See that the sinks have got what the clauses ask for, before it is made to last.

        Raises:
            ExecutionError: rows were lost or doubled on their way from the processor to the sinks.
        """
        wanted = stored_rows({c.number: c.operation for c in self.analysis.clauses}, account.clause_rows, paradigm)
        stored: Counter[Operation] = Counter()
        for writer in account.writers:
            for operation, rows in writer.rows.items():
                stored[HALVES.get(Operation(operation), Operation(operation))] += rows
        if +stored != wanted:
            msg = f"The clauses ask for {operations_text(wanted)}, and the sinks have got {operations_text(stored)}; nothing was committed"
            raise ExecutionError(msg, step="run", hint="Run the statement again; if it happens again, please report it.")

    def _finish(self, fragments: list[bytes]) -> None:
        session, metadata, handle = self.transaction.session, self._metadata(), self.transaction.merge_handle
        if handle is not None:
            self.finish("finish_merge", fragments, lambda: metadata.finish_merge(session, handle, fragments))

    # -- account --------------------------------------------------------------------------------------------------

    def _plan(self) -> Output:
        if self.plan is None:
            msg = "The statement has not been planned"
            raise ValueError(msg)
        return self.plan

    def place(self, error: RowMergeError, failure: BaseException) -> None:
        """Say which expression a run-time error comes from, or which clause was matched twice."""
        if self.plan is None or error.line is not None:
            return
        span, found = None, None
        if isinstance(error, DuplicateMatchError) and error.groups:
            numbers = {source.case_number for source in error.groups[0].sources}
            clauses = [clause for clause in self.analysis.clauses if clause.number in numbers]
            span = clauses[-1].span if clauses else self._span(-1)
        elif isinstance(error, ExecutionError) and error.clause is not None:
            span = place_of_message(error.code, error.message, self._expressions(error.clause)) or self._span(error.clause)
            found = self._marked(error.clause, error.assigned)
        else:
            found = self._blamed(failure)
            placed = self._placed()
            # Spark knows the place within its text of what failed in a subquery, too.
            span = place_of(failure, placed) or place_of_message(error.code, error.message, placed)
        if found is not None:
            expression, words = found
            span = expression.span
            error.hint = f"It happened {words}.{f' {error.hint}' if error.hint else ''}"
        if span is not None:
            error.line, error.column, error.length = span.line, span.column, span.end - span.start

    def _marked(self, number: int, assigned: int | None) -> tuple[TypedExpression, str] | None:
        """Give the expression that an error of ours names by its clause and column, and say in words where it stands."""
        clause = next((clause for clause in self.analysis.clauses if clause.number == number), None)
        expression = None if clause is None else clause.condition if assigned is None else clause.values[assigned]
        if clause is None or expression is None:
            return None
        of_clause = f" of clause {number}" if self.kind == "MERGE" else ""
        column = None if assigned is None else self.analysis.target.columns[assigned].name
        return expression, f"in the condition{of_clause}" if column is None else f"in the value for column '{column}'{of_clause}"

    def _span(self, number: int) -> Span:
        """Give the place of a clause; -1 stands for no clause."""
        return next(clause.span for clause in self.analysis.clauses if clause.number == number)

    def _expressions(self, number: int) -> list[tuple[str, Span]]:
        """Give the condition and the values of a clause in Spark SQL, and where they were written."""
        clauses = [clause for clause in self.analysis.clauses if clause.number == number]
        parts = [part for clause in clauses for part in (clause.condition, *clause.values) if part is not None]
        return [(part.spark, part.span) for part in parts]

    def _written(self) -> list[TypedExpression]:
        """Give the expressions of the statement itself; those of its queries are in ``analysis.placed``."""
        clauses = self.analysis.clauses
        return [part for clause in clauses for part in (clause.condition, *clause.values) if part is not None]

    def _placed(self) -> list[tuple[str, Span]]:
        """Give the statement's expressions in Spark SQL, and where they were written."""
        return [(part.spark, part.span) for part in self._written()] + list(self.analysis.placed)

    def facts(self) -> list[str]:
        """Say which calls of the contract had been made."""
        begun = any(call.method == f"begin_{self.verb}" and call.error is None for call in self.transaction.log.calls)
        facts = [f"begin_{self.verb} was {'' if begun else 'not '}called"]
        if begun:
            created = self.account.writers if self.account is not None else ()
            aborted = sum(1 for writer in created if writer.state == "aborted")
            count = plural(len(created), self.worker)
            facts.append(f"{count} had been created, {aborted} of them aborted" if created else f"no {self.worker} was created")
            outcomes = {call.method: call.error for call in self.transaction.log.calls}
            for method in (f"finish_{self.verb}", "commit"):
                if method not in outcomes:
                    facts.append(f"{method} was not called")
                    break
                facts.append(f"{method} {'was called' if outcomes[method] is None else 'failed'}")
        return facts

    def _groups(self, account: Account, *, failing: bool) -> tuple[DuplicateGroup, ...]:
        """Give the target rows that were matched more than once."""
        return ()

    def _source_rows(self) -> int | None:
        """Give the rows of the source where it is known."""
        return None

    def trace(self, state: str) -> Trace:
        """Give the trace as far as it is known."""
        analysis, target, account = self.analysis, self.analysis.target, self.account
        done = state == "finished"
        groups = self._groups(account, failing=not done) if account is not None else ()
        told = account is not None and (done or bool(account.clause_rows))
        paradigms = [call.carries for call in self.transaction.log.calls if call.method == "get_row_change_paradigm"]
        return Trace(
            statement=analysis.text,
            kind=self.kind,
            state=state,
            target=target.display,
            qualified=target.qualified,
            connector=self.connector,
            catalog=target.catalog,
            paradigm=paradigms[0] if paradigms else "",
            era=str(self.options.era),
            duplicates=self.options.duplicates,
            level=self.options.trace,
            plan=describe(self.plan) if self.plan is not None else (),
            rows=self._rows(account) if account is not None and done else {},
            clauses=self._clauses(account if told else None),
            joined=account.joined if account and told else None,
            matched=account.matched if account and told else None,
            unmatched=account.joined - account.matched - account.alone if account and told else None,
            alone=account.alone if account and told and self._is_full() else None,
            returned=self.returned.num_rows if self.returned is not None and done else None,
            source_rows=self._source_rows(),
            count=account.counted if account and done else None,
            rows_before=target.row_count,
            rows_after=self.rows_after() if done else target.row_count if state == "failed" else None,
            unread=self.unread,
            pages=account.pages if account else None,
            stored=account.stored if account else (),
            writers=account.writers if account else (),
            output=self.output if done else None,
            calls=self.calls(),
            duplicate_groups=groups,
            multiple_matches=account.patterns if account and told else None,
            notices=self.notice_records(*analysis.notices, *self.transaction.notices) + self._warning(groups, done=done),
            seconds=dict(self.seconds),
        )

    def _returned(self, account: Account) -> pa.Table | None:
        """Give the rows that the statement returns; None where it returns none."""
        return None

    def _is_full(self) -> bool:
        """Tell whether target rows without a source row take part."""
        return False

    def _flowing(self) -> int | None:
        """Give a measure of the rows that go through the plan, where it is known."""
        return estimated_rows(self._driving())

    def _warning(self, groups: tuple[DuplicateGroup, ...], *, done: bool) -> tuple[NoticeRecord, ...]:
        """Warn of rows that two clauses changed, where that was let through."""
        return ()

    def _clauses(self, account: Account | None) -> tuple[ClauseRecord, ...]:
        conditional = {clause.number for clause in self.analysis.clauses if clause.condition is not None}
        counted = {} if account is None else account.clause_rows
        return tuple(
            ClauseRecord(*c, rows=None if account is None else counted.get(c[0], 0), conditional=c[0] in conditional)
            for c in self._clause_heads()
        )

    def _clause_heads(self) -> list[tuple[int, Operation, bool | None, str, int]]:
        return [(c.number, c.operation, c.matched, c.text, c.span.line) for c in self.analysis.clauses]

    def _rows(self, account: Account) -> dict[str, tuple[tuple[int | None, ...], int | None]]:
        """Give the rows on the edges of the plan, as far as the pages and the connector tell them."""
        plan = self._plan()
        output, finish = plan, plan.source
        writer = finish.sources[0]
        stored = sum(sum(record.rows.values()) for record in account.writers)
        fragments = sum(record.fragments for record in account.writers)
        rows: dict[str, tuple[tuple[int | None, ...], int | None]] = {
            output.id: ((account.counted,), account.counted),
            finish.id: ((fragments,), account.counted),
            writer.id: ((stored,), fragments),
        }
        node = writer.sources[0]
        while type(node) in {Exchange, MergeProcessor, DeleteProject}:
            rows[node.id] = ((stored if isinstance(node, Exchange) else account.joined,), stored)
            node = node.sources[0]
        rows.update({node.id: (going_in, going_out) for node, going_in, going_out in self._sizes(account)})
        return rows


def stored_rows(clauses: Mapping[int, Operation], rows: Mapping[int, int], paradigm: RowChangeParadigm) -> Counter[Operation]:
    """Give how many rows of each operation the sinks must get.

    Args:
        clauses: the operation of every clause by its number.
        rows: how many joined rows each has taken.
        paradigm: whether an update is a row, or a deleted and an inserted one.

    >>> taken = stored_rows({0: Operation.UPDATE, 1: Operation.INSERT}, {0: 3, 1: 2}, RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW)
    >>> operations_text(taken)
    'D 3, I 5'
    """
    total: Counter[Operation] = Counter()
    for number, operation in clauses.items():
        parts = [operation]
        if operation is Operation.UPDATE and paradigm is RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW:
            parts = [Operation.DELETE, Operation.INSERT]
        for part in parts if operation in CHANGING else ():
            total[part] += rows.get(number, 0)
    return +total


def operations_text(rows: Mapping[Operation, int]) -> str:
    """Write rows per operation.

    >>> operations_text({})
    'no row'
    """
    return operation_letters({int(operation): count for operation, count in rows.items() if count}) or "no row"


def _whole_rows(settings: RuleSettings) -> RuleSettings:
    """Give the settings with which all columns of the target are read, because old rows are shown whole."""
    return replace(settings, off=settings.off | {"prune_target_columns", "prune_updatable_scan"})


def _partitions(usual: int, rows: int | None) -> int:
    """Give the number of partitions that joined rows are sent to: a task holds the rows of one, to find duplicates among them.

    >>> _partitions(2, 1_000_000), _partitions(2, 40_000_000), _partitions(2, None)
    (2, 80, 8)
    """
    return usual * UNKNOWN_SIZE if rows is None else max(usual, -(-rows // TASK_ROWS))


def _writers(partitions: int, rows: int | None) -> int:
    """Give the number of writers behind an exchange: no more than the work is worth, two at least so that rows part."""
    return partitions if rows is None else max(2, min(partitions, rows // SMALL_ROWS + 1))
