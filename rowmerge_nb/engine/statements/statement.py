"""What all statements share: running, committing or rolling back, and reporting.

A statement has a point of no return: the connector's call that makes its change last. What is
raised before it leads to a rollback. From there on interrupts are deferred (see
`rowmerge_nb.engine.spark.interrupts`), and every error says that the change is in the store, or
that this is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from rowmerge_nb.base.choices import Flow, StatementState
from rowmerge_nb.base.errors import (
    ConnectorError,
    ExecutionError,
    RowMergeError,
    StatementInterrupted,
    error_text,
    message_of,
)
from rowmerge_nb.base.front_end import orphans_command
from rowmerge_nb.base.words import join, plural
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.spark.errors.connector_frames import with_code, with_raised
from rowmerge_nb.engine.spark.errors.translate import translate, with_next_step
from rowmerge_nb.engine.spark.interrupts import (
    interruption,
    interrupts_afterwards,
    note_result,
    to_its_end,
)
from rowmerge_nb.engine.spark.job import collect
from rowmerge_nb.engine.spark.long_statements import interpreted, is_long, long_settings, many_joins
from rowmerge_nb.engine.spark.printed_expressions import sql_of
from rowmerge_nb.engine.spark.settings import settings_of
from rowmerge_nb.engine.statements.blame import blame
from rowmerge_nb.engine.statements.committed import unacknowledged
from rowmerge_nb.engine.statements.naming import kind_of, name_shown
from rowmerge_nb.engine.statements.run_observer import RunObserver, RunObservers
from rowmerge_nb.engine.statements.services import Services, TargetVersions
from rowmerge_nb.engine.statements.steps import Steps
from rowmerge_nb.engine.tasks.task_faults import unwatched
from rowmerge_nb.plan.known_rows import known_rows
from rowmerge_nb.plan.records import describe
from rowmerge_nb.plan.rules import chain, has_few_combinations, is_small
from rowmerge_nb.spi.output import ConnectorOutputMetadata
from rowmerge_nb.sql.analyzer.analysis import Notice
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.sql.typed.expressions import walk
from rowmerge_nb.trace.contract_calls import Call
from rowmerge_nb.trace.error_record import Consequence, StateEvidence, error_record
from rowmerge_nb.trace.notice_record import NoticeRecord
from rowmerge_nb.trace.run_settings import RunSettings
from rowmerge_nb.trace.target_record import TargetRecord
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.engine.api.statement_options import Options
    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.engine.statements.row_change import Named
    from rowmerge_nb.plan.plan_nodes import Output
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.sql.analyzer.analysis import Analysis
    from rowmerge_nb.trace.raised import Raised

T = TypeVar("T")

ADAPTIVE = "spark.sql.adaptive.enabled"
GUESSED_SIZES: Final = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
"""Spark assumes that the output of a Python task is small.

In a large statement it must not broadcast a side of a join before it has seen the
size.
"""
SEEN_SIZES: Final = {
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "32MB",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "256MB",
}
"""Spark broadcasts what it has seen to be small, or looks it up instead of sorting it."""
UNKNOWN_SIZE: Final = 4
"""The factor for the usual number of partitions if the number of rows is not known."""
CONNECTOR_STEPS = {
    *("begin_merge", "finish_merge", "execute_delete", "commit"),
    *("begin_delete", "finish_delete", "begin_update", "finish_update"),
}
_STORING: Final = {
    *("execute_delete", "finish_merge", "finish_insert", "finish_create_table"),
    *("finish_update", "finish_delete", "finish_table_execute", "commit"),
}
"""Calls of the coordinator that may store something."""
CHANGING: Final = ("MERGE", "UPDATE", "DELETE")
ABOUT: Final[Mapping[str, tuple[str, ...]]] = {
    "near": ("MERGE",),
    "why": CHANGING,
    "check": (*CHANGING, "INSERT"),
    "record": (*CHANGING, "INSERT", "CREATE TABLE AS"),
}
"""The kinds of statements for options that have no defaults."""
CONNECTORS_ERROR: Final = (
    "The connector raised it: the traceback of this error's __cause__ shows where."
)
"""The hint for an error of a connector that is not one of ours."""


@dataclass(kw_only=True)
class StatementRun:
    """One statement while it runs.

    Its kinds are subclasses, one level below; what several of them share is in functions.

    A kind defines its `work`, and what it adds to the trace, the result and the errors.

    Attributes:
        rehearsable: whether a rollback leaves nothing of the statement.
        query_rows: for a query that DuckDB has answered, the row counts of its nodes by their ids.
        account: the tasks' records, once they have ended.
        skipped: whether IF EXISTS or IF NOT EXISTS leaves everything unchanged.
        output: what the connector's finish call has reported as written.
    """

    rehearsable: ClassVar[bool] = False
    changes_rows: ClassVar[bool] = False
    rollback_sentence: ClassVar[str] = "the transaction was rolled back"
    analysis: Analysis
    transaction: StatementTransaction
    options: Options
    services: Services
    observers: RunObserver = field(default_factory=RunObservers)
    plan: Output | None = None
    query_rows: Mapping[str, int] = field(default_factory=dict)
    account: Account | None = None
    lowering: LoweringContext | None = None
    rows: pa.Table | None = None
    paradigm: str = ""
    skipped: bool = False
    steps: Steps = field(default_factory=Steps)
    output: ConnectorOutputMetadata | None = None
    versions: TargetVersions = field(default_factory=TargetVersions)

    def run(self) -> Result:
        """Run the statement.

        Raises:
            RowMergeError: it failed; ``changed`` says whether its change is in the store all the
                same, ``result`` has what is known.
        """
        result: Result | None = None
        try:
            result = self._result_of_run()
            if not self.options.dry_run:
                self.observers.after_result(self, result)
        except RowMergeError as error:
            result = error.result if isinstance(error.result, Result) else None
            raise
        finally:
            self.observers.at_end(self, result)
        return result

    def _result_of_run(self) -> Result:
        try:
            self._check_rehearsal()
            if not self.options.dry_run:
                self.observers.before_begin(self)
            finish = self.work()
            if self.options.dry_run:
                return self._dry_run()
            self.versions.read(self.transaction, getattr(self.analysis, "target", None))
            self.observers.before_finish(self)
            if self.options.rehearse:
                return self._rehearsed(finish)
            result = self._committed(finish)
            note_result(result)
        except BaseException as failure:  # noqa: BLE001 - an error of ours is raised below
            if self.transaction.changed is False:
                error, origin = self._error(failure)
                self._read_former_version()
            else:
                error, origin = self._late_error(failure), None
            self.observers.on_failure(self, error, origin)
            error.result = self.result(self._failed(error))
            # An error of ours has its cause already, which is not itself.
            raise error from error.__cause__ or (None if error is failure else failure)
        return result

    def _committed(self, finish: Callable[[], None] | None) -> Result:
        if finish is not None:
            self.wait_for_turn()
        is_early = finish is not None and self.transaction.commits_in_finish
        if finish is not None and not is_early:
            finish()
        self.steps.current = "commit"
        self.begin_step("commit")
        with interrupts_afterwards():
            if finish is not None and is_early:
                finish()
            with self.steps.timed("commit"):
                self.transaction.commit()
            self.versions.note_commit(self.transaction.version)
            return self.result(self._whole_trace(StatementState.FINISHED))

    def _dry_run(self) -> Result:
        # Connectors answer only while their transaction is open.
        estimates = known_rows(self.plan) if self.plan is not None else {}
        self.transaction.rollback()
        trace = self._whole_trace(StatementState.PLANNED)
        return self.result(
            replace(trace, plan=describe(self.plan, estimates)) if self.plan is not None else trace
        )

    def _idle_options(self) -> Iterator[Notice]:
        statement_kind = kind_of(self.analysis)
        for name, kinds in ABOUT.items():
            if getattr(self.options, name) and statement_kind not in kinds:
                yield Notice(
                    f"The option '{name}' has no effect on {statement_kind}: it"
                    f" applies to {join(list(kinds))}"
                )

    def _fault(self) -> tuple[Notice, ...]:
        return () if self.transaction.fault is None else (Notice(self.transaction.fault.told),)

    def work(self) -> Callable[[], None] | None:
        """Run everything before the connector's finish call, and return the function that makes the
        call; None without such a call.
        """
        raise NotImplementedError

    def trace(self, state: StatementState) -> Trace:
        account, is_finished = self.account, state is StatementState.FINISHED
        return Trace(
            statement=self.analysis.text,
            kind=kind_of(self.analysis),
            state=state,
            skipped=self.skipped,
            count=(
                (account.row_count if account else 0) if is_finished and self.changes_rows else None
            ),
            seconds=dict(self.steps.seconds),
            target=self._target_record(is_finished=is_finished),
            settings=RunSettings(
                paradigm=self.paradigm,
                era=str(self.options.era),
                duplicates=self.options.duplicates,
                trace_level=self.options.trace,
            ),
            plan=describe(self.plan, {}, self.query_rows) if self.plan is not None else (),
            writers=account.writers if account else (),
            calls=self.calls(),
            notices=self.notice_records(
                *self.analysis.notices,
                *self.transaction.notices,
                *self._idle_options(),
                *(
                    map(Notice, self.output.notices)
                    if self.output is not None and is_finished
                    else ()
                ),
                *self._silent_sinks(account, is_finished),
                *self._fault(),
            ),
        )

    def _target_record(self, *, is_finished: bool) -> TargetRecord:
        name, qualified_name, catalog = name_shown(self.analysis)
        # The rows that a rehearsal would leave were read before its rollback.
        is_counted = is_finished and self.changes_rows and not self.options.rehearse
        rows_after, unread_reason = self.rows_after() if is_counted else (None, "")
        return TargetRecord(
            name=name,
            qualified_name=qualified_name,
            catalog=catalog,
            connector=self.services.connector,
            rows_after=rows_after,
            unread_reason=unread_reason,
            version_before=_number(self.versions.before),
            version_after=_number(self.transaction.version) if is_finished else None,
            output=self.output if is_finished else None,
        )

    def _whole_trace(self, state: StatementState) -> Trace:
        return self.observers.add_to_trace(self.trace(state))

    def _silent_sinks(self, account: Account | None, is_finished: bool) -> tuple[Notice, ...]:
        """Return a notice of rows that sinks accepted without a fragment; the older flow may write
        at once.
        """
        is_known = account is not None and is_finished and self.options.flow != Flow.UPDATABLE
        silent = unacknowledged(account.writers) if is_known and account is not None else ""
        if not silent:
            return ()
        return (Notice(f"{silent} A finish call without their fragments may omit those rows."),)

    def result(self, trace: Trace) -> Result:
        result = Result(trace, self.rows if trace.state == StatementState.FINISHED else None)
        self.observers.add_to_result(result)
        return result

    @property
    def shown(self) -> tuple[Named, Named]:
        """The columns of the target and of the source whose values the tasks kept; none before they
        have ended.
        """
        if self.account is None or self.lowering is None:
            return (), ()
        return self.lowering.target, self.lowering.source

    def locate(self, error: RowMergeError, failure: BaseException) -> int | None:
        """Set an error's position to that of its expression, and return its number, if it is
        known.
        """
        if error.line is not None or self.plan is None:
            return None
        trees = [
            part for node in chain(self.plan) for tree in node.expressions for part in walk(tree)
        ]
        return blame(error, failure, self.sql(), self.analysis.origins, trees)

    def sql(self) -> Sequence[str]:
        with room():
            return tuple(sql_of(self.plan)) if self.plan is not None else ()

    def facts(self) -> list[Consequence]:
        return []

    def _check_rehearsal(self) -> None:
        if self.options.rehearse and not self.options.dry_run and not self.rehearsable:
            raise not_rehearsed()

    def _rehearsed(self, finish: Callable[[], None] | None) -> Result:
        if self.transaction.commits_in_finish:
            # Not before its rows are written: a comparison shows the calls up to here.
            raise ConnectorError(
                f"Connector '{self.services.connector}' commits in its finish calls,"
                " so statements cannot be rehearsed there",
                hint=(
                    "dry_run=True plans the statement; a copy by CREATE TABLE AS in the catalog"
                    " memory can be rehearsed."
                ),
            )
        if finish is not None:
            finish()
        self.steps.current = "rollback"
        handle = self.transaction.target
        rows: pa.Table | None = None
        if finish is not None and handle is not None:
            rows = self.transaction.scans.observations.rows_now(handle)
        self.transaction.rollback()
        trace = self._whole_trace(StatementState.FINISHED)
        target = replace(trace.target, rows_after=None if rows is None else rows.num_rows)
        result = self.result(replace(trace, committed=False, target=target))
        result.rehearsed = rows
        return result

    def _error(self, failure: BaseException) -> tuple[RowMergeError, int | None]:
        error = self.error_of(failure, self.steps.current)
        self.services.note_failure(error)
        with room():
            return error, self.locate(error, failure)

    def _late_error(self, failure: BaseException) -> RowMergeError:
        changed = self.transaction.changed
        look = f"Check {self._target_name()} before you run the statement again"
        if isinstance(failure, RowMergeError):
            failure.changed = changed
            advice = f"{look}." if changed is None else "Do not run it again."
            if failure.hint is None:
                failure.hint = advice
            elif getattr(failure, "code_error", None) is not None:
                # The hint has the line of the connector's code.
                failure.hint = f"{failure.hint} {advice}"
            return failure
        interrupted = interruption(failure, self.steps.current, changed=changed, look=look)
        if interrupted is not None:
            return interrupted
        outcome = (
            "The outcome is unknown"
            if changed is None
            else "The change was committed, but reporting it failed"
        )
        error = ExecutionError(
            f"{outcome}: {error_text(failure)}", step=self.steps.current, changed=changed
        )
        error.hint = f"{look}." if changed is None else "Do not run it again."
        return error

    def _read_former_version(self) -> None:
        if self.steps.has_acted and self.versions.before is None:
            with suppress(Exception), unwatched():
                self.versions.read(self.transaction, getattr(self.analysis, "target", None))

    def _target_name(self) -> str:
        return (
            f"'{self.transaction.target.display}'"
            if self.transaction.target is not None
            else "the table"
        )

    def _failed(self, error: RowMergeError) -> Trace:
        facts = self.facts()
        rollback = self.roll_back()
        with_raised(error, self._raised(error))
        if error.changed is False:
            facts.append(Consequence(rollback))
            if self.transaction.changed is None:
                error.changed = None
                look = (
                    f"Check {self._target_name()} before you run the statement again:"
                    " what the finish call did was not undone."
                )
                error.hint = " ".join(filter(None, [error.hint, look]))
        evidence, trace = self._evidence(error), self._whole_trace(StatementState.FAILED)
        if evidence is None:
            trace = replace(trace, target=replace(trace.target, rows_after=None))
        record = replace(error_record(error, tuple(facts)), evidence=evidence)
        return replace(trace, committed=error.changed is True, error=record)

    def _evidence(self, error: RowMergeError) -> StateEvidence | None:
        """Return how it is known that the table is as before, after the rollback."""
        if error.changed is not False:
            return None
        account, calls = self.account, {call.method for call in self.transaction.log.calls}
        has_records = not self.steps.has_acted or account is not None
        if has_records and not (account and account.writers) and not calls & _STORING:
            return StateEvidence.NO_SINK
        if isinstance(error, StatementInterrupted) or self.versions.before is None:
            return None
        with suppress(Exception):
            if self.services.read_version() == self.versions.before:
                return StateEvidence.VERSION
        return None

    def _raised(self, error: RowMergeError) -> tuple[Raised, ...]:
        read, account = error.raised, self.account
        return with_code(
            (*read, *(account.raised if account is not None else ()), *self.transaction.log.raised),
            self.transaction.source_lines,
        )

    def begin_action(self) -> None:
        self.observers.before_action(self)
        self.steps.has_acted = True

    def rows_before(self, rows_read: int | None) -> int | None:
        return self.versions.rows_before(self.services.row_count, rows_read)

    def rows_after(self) -> tuple[int | None, str]:
        """Return the target's rows in the version that was committed, or None, and why they cannot
        be counted.
        """
        try:
            return self.services.row_count(self.transaction.version), ""
        except Exception as error:  # noqa: BLE001 - the change is in the store; the report's headline has the reason
            return None, message_of(error)

    def wait_for_turn(self) -> None:
        """Wait before the finish call, if the statement did not wait before it looked its target
        up.
        """

    def begin_step(self, name: str) -> None:
        self.options.step(name)
        if self.transaction.cancelled.is_set():
            raise StatementInterrupted("The statement was cancelled", step=name)

    def collect(self, spark: Any, rows: Any, partitions: int) -> pa.Table:
        """Run the statement's action.

        Spark keeps the first plan of a small statement: planning again after every stage costs more
        than it finds out. It interprets expressions of few rows, and very long ones: compiling
        costs more than it saves.
        """
        small = self.plan is not None and is_small(self.plan)
        # Settings of a user's session have precedence.
        with interrupts_afterwards():
            seen_sizes = {
                key: value for key, value in SEEN_SIZES.items() if spark.conf.get(key, None) is None
            }
        settings = {ADAPTIVE: "false"} if small else {**GUESSED_SIZES, **seen_sizes}
        if self.plan is not None:
            texts = self.sql()
            settings |= many_joins(texts)
            long = is_long(sum(map(len, texts)), small=small)
            if long or has_few_combinations(self.plan):
                settings |= interpreted(texts)
            if long:
                settings |= long_settings(spark)
        with settings_of(spark).held({**settings, "spark.sql.shuffle.partitions": str(partitions)}):
            return collect(
                spark,
                rows,
                self.transaction.session.query_id,
                self.transaction.cancelled,
                self.transaction.watch_processes(),
            )

    def finish(self, method: str, fragments: Sequence[bytes], call: Callable[[], object]) -> None:
        def describe_output(answer: object) -> str:
            self.output = answer if isinstance(answer, ConnectorOutputMetadata) else None
            return self.output.summary if self.output is not None and self.output.written else ""

        self.steps.current = method
        self.begin_step(method)
        with self.steps.timed(method):
            self.change(
                method,
                call,
                plural(len(fragments), "fragment"),
                gave=describe_output,
                size=sum(map(len, fragments)),
            )

    def change(
        self,
        method: str,
        call: Callable[[], T],
        arguments: str = "",
        *,
        at_once: bool = False,
        **more: Any,
    ) -> T:
        lasts = at_once or self.transaction.commits_in_finish
        answer: T = (self.transaction.lasting if lasts else self.transaction.log.call)(
            method, call, arguments, **more
        )
        return answer

    def error_of(self, failure: BaseException, step: str) -> RowMergeError:
        interrupted = interruption(failure, step)
        if interrupted is not None:
            return interrupted
        if step in CONNECTOR_STEPS and not isinstance(failure, RowMergeError):
            return ExecutionError(f"{step} failed: {error_text(failure)}", step=step)
        error = with_next_step(translate(failure, step))
        if error is failure and error.hint is None and isinstance(error.__cause__, Exception):
            error.hint = None if error.raised or self.transaction.log.raised else CONNECTORS_ERROR
        return error

    def roll_back(self) -> str:
        """Roll back, and describe the outcome; a failure here does not hide the first one."""
        try:
            is_complete = to_its_end(self.transaction.rollback)
        except (
            Exception,  # noqa: BLE001
            SystemExit,
        ) as failure:
            return f"the rollback failed: {error_text(failure)}"
        return (
            self.rollback_sentence
            if is_complete
            else (
                f"the rollback was ended by a further interrupt; {orphans_command()} lists what"
                " is left"
            )
        )

    def calls(self) -> tuple[Call, ...]:
        """Return all calls of the contract: of the coordinator up to the begin call, of the tasks,
        and of the coordinator at the end.
        """
        log = self.transaction.log.calls
        final = [
            i
            for i, call in enumerate(log)
            if call.method.startswith("finish_") or call.method in {"commit", "rollback"}
        ]
        split = final[0] if final else len(log)
        calls = (
            *log[:split],
            *(self.account.calls if self.account is not None else ()),
            *log[split:],
        )
        return tuple(replace(call, order=number) for number, call in enumerate(calls, 1))

    def notice_records(self, *notices: Notice) -> tuple[NoticeRecord, ...]:
        return tuple(
            NoticeRecord(
                notice.message,
                notice.span.line if notice.span else None,
                notice.span.column if notice.span else None,
            )
            for notice in (*notices, *self.services.notices)
        )


def not_rehearsed() -> ConnectorError:
    return ConnectorError(
        "This statement cannot be rehearsed: it takes effect immediately",
        hint="Only MERGE, UPDATE, DELETE, INSERT, CREATE TABLE AS and queries can be rehearsed.",
    )


def _number(version: ConnectorTableVersion | None) -> int | str | None:
    return (
        version.version if version is not None and isinstance(version.version, int | str) else None
    )
