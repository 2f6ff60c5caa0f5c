"""What all statements share on their way: running, committing or rolling back, and telling what happened.

A statement has a point of no return: the connector's call that makes its change last. What is raised before it leads to a rollback. From
there on the statement's guard puts interrupts off (`rowmerge_nb.engine.spark.interrupts` has their whole story), and whatever is raised says
that the change is there, or that this is not known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar

from rowmerge_nb.base.choices import Flow, StatementState
from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError, StatementInterrupted, error_text
from rowmerge_nb.base.words import join, plural
from rowmerge_nb.engine.errors.connector_frames import told, with_raised
from rowmerge_nb.engine.errors.translate import translate, with_next_step
from rowmerge_nb.engine.result import Result
from rowmerge_nb.engine.spark.interrupts import (
    interruption,
    interrupts_afterwards,
    note_result,
    to_its_end,
)
from rowmerge_nb.engine.spark.job import collect
from rowmerge_nb.engine.spark.long_statements import is_long, long_settings, many_joins
from rowmerge_nb.engine.spark.printed_expressions import sql_of
from rowmerge_nb.engine.spark.settings import settings_of
from rowmerge_nb.engine.statements.blame import blame
from rowmerge_nb.engine.statements.failing_row import name_failing_row
from rowmerge_nb.engine.statements.naming import kind_of, name_shown
from rowmerge_nb.engine.statements.recording import recording_of
from rowmerge_nb.engine.tasks.task_faults import unwatched
from rowmerge_nb.engine.verify.committed import begin_check, unacknowledged
from rowmerge_nb.plan.known_rows import known_rows
from rowmerge_nb.plan.records import describe
from rowmerge_nb.plan.rules import chain, is_small
from rowmerge_nb.spi.output import ConnectorOutputMetadata
from rowmerge_nb.sql.analyzer.analysis import Notice
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.sql.typed.expressions import walk
from rowmerge_nb.trace.trace import Call, Consequence, ErrorRecord, NoticeRecord, Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.base.words import KnownRows
    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.catalog.views import Views
    from rowmerge_nb.engine.options import Options
    from rowmerge_nb.engine.result import Recording
    from rowmerge_nb.engine.spark.lowering_context import LoweringContext
    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.engine.statements.asked import Wanted
    from rowmerge_nb.engine.statements.row_change import Named
    from rowmerge_nb.plan.plan_nodes import Output
    from rowmerge_nb.plan.rules import RuleSettings
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.sql.analyzer.analysis import Analysis, CheckConstraint, TableBinding
    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.sql.typed.expressions import Origin
    from rowmerge_nb.trace.raised import Raised

ConstraintReader: TypeAlias = (
    "Callable[[TableBinding, tuple[Origin, ...], Span | None], "
    "tuple[tuple[CheckConstraint, ...], tuple[Origin, ...], tuple[TableBinding, ...]]]"
)

T = TypeVar("T")

ADAPTIVE = "spark.sql.adaptive.enabled"
GUESSED_SIZES: Final = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
"""Spark takes what a Python task gives for small, whatever comes out of it. So of a large statement it must not send one side of a join to
all tasks before it has seen how large that is."""
SEEN_SIZES: Final = {
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "32MB",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "256MB",
}
"""What Spark has seen to be small it sends to all tasks, or looks up instead of sorting it."""
UNKNOWN_SIZE: Final = 4
"""So many times the usual number of partitions where nobody knows how many rows there will be."""
CONNECTOR_STEPS = {
    *("begin_merge", "finish_merge", "commit"),
    *("begin_delete", "finish_delete", "begin_update", "finish_update"),
}
CHANGING: Final = ("MERGE", "UPDATE", "DELETE")
ABOUT: Final[Mapping[str, tuple[str, ...]]] = {
    "near": ("MERGE",),
    "why": CHANGING,
    "check": (*CHANGING, "INSERT"),
    "record": (*CHANGING, "INSERT", "CREATE TABLE AS"),
}
"""What options are about that are given with a statement, and have no defaults."""
CONNECTORS_ERROR: Final = "The connector raised it: the traceback of this error's __cause__ shows where."
"""What to look at where a connector raises an error that is not one of ours."""


@dataclass(kw_only=True)
class StatementRun:
    """One statement on its way. Its kinds are subclasses, one level below; what several of them share stands in functions.

    A kind of statement says what its `work` is, and what it adds to the trace, the result and the errors; how work is finished, committed,
    rolled back and told stands here, once.

    Args:
        analysis: the statement, resolved.
        transaction: its dealings with connectors.
        options: how it is run.
        connector: the kind of store of the target; ``""`` for a query.
        spark: gives the Spark session.
        row_count: asks for the target's number of rows once the statement is committed, in the version that it has made.
        rows_in: reads the target then, so many rows at most.
        settings: sizes that decide which form of a plan is taken.
        views: where views are kept.
        read_constraints: reads the CHECK constraints of a table that the statement makes or alters; see its namesake of the analyzer.
        note_failure: says in an error of Spark whether it can be used no more.
        notices: notices that are not part of the analysis.
        wanted: rows that are asked for with it; None where nobody does.

    Attributes:
        rehearsable: a rollback leaves nothing of the statement.
        changes_rows: it says how many rows it has changed.
        plan: the plan, once there is one.
        would: of a dry run what is known of the rows that would come out of its nodes.
        query_rows: rows that came out of the nodes of a query that DuckDB has answered, by their ids.
        account: what the tasks told, once they have.
        lowering: what the plan of a row change was lowered with, once it was.
        shown: the columns of the target and of the source whose values the tasks kept of rows, once that is settled.
        rows: the rows that it answers: those of a query, of RETURNING, of SHOW.
        paradigm: name of the connector's row change paradigm, once it was asked for.
        skipped: IF EXISTS or IF NOT EXISTS leaves everything as it is.
        step: what is being done.
        rehearsed: of a rehearsal the target's rows as they would be, where the connector shows them.
        unread: why the committed version cannot be looked at; ``""`` if it can.
        output: what the connector's finish call told of what was written.
        recording: the record, once there is one, or why there is none.
        keeps_versions: the target's store keeps versions.
        version_before: the version of the target that the statement is made from, where the store keeps versions.
        overtaken: others have committed since the statement has read the target, and its commit was put on top: ``version_before`` is theirs.
    """

    rehearsable: ClassVar[bool] = False
    changes_rows: ClassVar[bool] = False
    analysis: Analysis
    transaction: StatementTransaction
    options: Options
    connector: str
    spark: Callable[[], Any]
    row_count: Callable[[ConnectorTableVersion | None], int | None]
    rows_in: Callable[[ConnectorTableVersion | None, int], pa.Table | None]
    settings: RuleSettings
    views: Views
    read_constraints: ConstraintReader
    note_failure: Callable[[RowMergeError], object] = lambda _: None
    notices: tuple[Notice, ...] = ()
    wanted: Wanted | None = None
    plan: Output | None = None
    would: Mapping[str, KnownRows] = field(default_factory=dict)
    query_rows: Mapping[str, int] = field(default_factory=dict)
    account: Account | None = None
    lowering: LoweringContext | None = None
    shown: tuple[Named, Named] = ((), ())
    rows: pa.Table | None = None
    paradigm: str = ""
    skipped: bool = False
    step: str = "run"
    rehearsed: pa.Table | None = None
    unread: str = ""
    output: ConnectorOutputMetadata | None = None
    recording: Recording | None = None
    keeps_versions: bool = False
    version_before: ConnectorTableVersion | None = None
    overtaken: bool = False
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> Result:
        """Run the statement.

        Raises:
            RowMergeError: it failed; ``changed`` says whether something was changed all the same, ``result`` has what is known.
        """
        try:
            self._check_rehearsal()
            finish = self.work()
            if self.options.dry_run:
                # Connectors answer while their transaction is there.
                self.would = known_rows(self.plan) if self.plan is not None else {}
                self.transaction.rollback()
                return self.result(self.trace(StatementState.PLANNED))
            self.version_before = self._version_read()
            if self.options.record:
                self._record()
            if self.options.rehearse:
                return self._rehearsed(finish)
            checking = None if finish is None else begin_check(self, self.rows_in)
            if finish is not None:
                self.wait_for_turn()
            early = finish is not None and self.transaction.commits_in_finish
            if finish is not None and not early:
                finish()
            self.step = "commit"
            self.begin_step("commit")
            with interrupts_afterwards():
                if finish is not None and early:
                    finish()
                with self.timed("commit"):
                    self.transaction.commit()
                self._note_overtaken()
                result = self.result(self.trace(StatementState.FINISHED))
            note_result(result)
        except BaseException as failure:  # noqa: BLE001 - an error of ours is raised below
            error = self._late_error(failure) if self.transaction.changed is not False else self._error(failure)
            # Before the rollback: the rows of the target are read as the statement has seen them.
            if not isinstance(error, StatementInterrupted):
                to_its_end(lambda: self._record(error))
            error.result = self.result(self._failed(error))
            # An error of ours has its cause already, which is not itself.
            raise error from error.__cause__ or (None if error is failure else failure)
        return result if checking is None else checking.told(result)

    def _record(self, error: RowMergeError | None = None) -> None:
        with unwatched():
            self.recording = recording_of(self, error)

    def _idle_options(self) -> Iterator[Notice]:
        """Yield a notice for each option without an effect on this kind of statement."""
        kind = kind_of(self.analysis)
        for name, about in ABOUT.items():
            if getattr(self.options, name) and kind not in about:
                yield Notice(f"The option '{name}' does nothing for {kind}: it is about {join(list(about))}")

    def _fault(self) -> tuple[Notice, ...]:
        """Return what came of the fault that the statement was given."""
        return () if self.transaction.fault is None else (Notice(self.transaction.fault.told),)

    def work(self) -> Callable[[], None] | None:
        """Run everything before the connector's finish call, and return the function that makes the call; None without such a call."""
        raise NotImplementedError

    def trace(self, state: StatementState) -> Trace:
        """Return the trace as far as it is known: here what all statements tell of themselves."""
        account, done = self.account, state is StatementState.FINISHED
        target, qualified, catalog = name_shown(self.analysis)
        return Trace(
            statement=self.analysis.text,
            kind=kind_of(self.analysis),
            state=state,
            skipped=self.skipped,
            target=target,
            qualified=qualified,
            connector=self.connector,
            catalog=catalog,
            paradigm=self.paradigm,
            era=str(self.options.era),
            duplicates=self.options.duplicates,
            level=self.options.trace,
            plan=describe(self.plan, self.would, self.query_rows) if self.plan is not None else (),
            count=(account.counted if account else 0) if done and self.changes_rows else None,
            # Of a rehearsal nothing is there any more; what it would leave is told by who looked before the rollback.
            rows_after=self.rows_after() if done and self.changes_rows and not self.options.rehearse else None,
            unread=self.unread,
            writers=account.writers if account else (),
            output=self.output if done else None,
            version_before=_number(self.version_before),
            version_after=_number(self.transaction.version) if done else None,
            calls=self.calls(),
            notices=self.notice_records(
                *self.analysis.notices,
                *self.transaction.notices,
                *self._idle_options(),
                *(map(Notice, self.output.notices) if self.output is not None and done else ()),
                *self._silent_sinks(account, done),
                *self._fault(),
            ),
            seconds=dict(self.seconds),
        )

    def _silent_sinks(self, account: Account | None, done: bool) -> tuple[Notice, ...]:
        """Return notices of rows that sinks accepted without a fragment; page sources that change what they read may write at once."""
        silent = unacknowledged(account.writers) if account is not None and done and self.options.flow != Flow.UPDATABLE else ""
        if not silent:
            return ()
        return (Notice(f"{silent} A finish call that is told of nothing may leave those rows out."),)

    def result(self, trace: Trace) -> Result:
        """Return the result that belongs to a trace."""
        rows = self.rows if trace.state == StatementState.FINISHED else None
        return Result(trace, rows, rehearsed=self.rehearsed, recording=self.recording)

    def locate(self, error: RowMergeError, failure: BaseException) -> None:
        """Describe in an error which expression of the statement it is about.

        Args:
            error: the error that is raised.
            failure: what led to it.
        """
        if error.line is None and self.plan is not None:
            trees = [part for node in chain(self.plan) for tree in node.expressions for part in walk(tree)]
            number = blame(error, failure, self.sql(), self.analysis.origins, trees)
            if number is not None and self.lowering is not None:
                name_failing_row(self, self.lowering, error, number)

    def sql(self) -> Sequence[str]:
        """Return the texts that Spark is given of the plan."""
        with room():
            return tuple(sql_of(self.plan)) if self.plan is not None else ()

    def facts(self) -> list[Consequence]:
        """Return what had happened when the statement failed."""
        return []

    def _version_read(self) -> ConnectorTableVersion | None:
        """Ask which version of the table the statement is made from; a table that it makes has none."""
        target = getattr(self.analysis, "target", None)
        if target is None or target.handle is None:
            return None
        metadata = self.transaction.metadata(target.catalog)
        self.keeps_versions = metadata.keeps_versions
        return metadata.get_table_version(self.transaction.session, target.handle)

    def _check_rehearsal(self) -> None:
        if self.options.rehearse and not self.options.dry_run and not self.rehearsable:
            raise not_rehearsed()

    def _rehearsed(self, finish: Callable[[], None] | None) -> Result:
        """Finish the statement, look at what it would leave, and roll it back."""
        if self.transaction.commits_in_finish:
            raise ConnectorError(
                f"Connector '{self.connector}' commits in its finish calls, so that a statement cannot be rehearsed there",
                hint="dry_run=True plans the statement without beginning it.",
            )
        if finish is not None:
            finish()
        self.step = "rollback"
        target = self.transaction.target
        if finish is not None and target is not None:
            self.rehearsed = self.transaction.scans.observations.rows_now(target)
        self.transaction.rollback()
        rows = None if self.rehearsed is None else self.rehearsed.num_rows
        return self.result(replace(self.trace(StatementState.FINISHED), committed=False, rows_after=rows))

    def _error(self, failure: BaseException) -> RowMergeError:
        """Return an error of ours for what was raised before the point of no return."""
        error = self.error_of(failure, self.step)
        self.note_failure(error)
        with room():
            self.locate(error, failure)
        return error

    def _late_error(self, failure: BaseException) -> RowMergeError:
        """Return an error of ours for what was raised behind the point of no return."""
        changed = self.transaction.changed
        look = f"Look at {self._target_name()} before you run the statement again"
        if isinstance(failure, RowMergeError):
            failure.changed = changed
            failure.hint = failure.hint or (f"{look}." if changed is None else "Do not run it again.")
            return failure
        interrupted = interruption(failure, self.step, changed=changed, look=look)
        if interrupted is not None:
            return interrupted
        known = "The outcome is unknown" if changed is None else "The change is there, and telling of it failed"
        error = ExecutionError(f"{known}: {error_text(failure)}", step=self.step, changed=changed)
        error.hint = f"{look}." if changed is None else "Do not run it again."
        return error

    def _target_name(self) -> str:
        return f"'{self.transaction.target.display}'" if self.transaction.target is not None else "the table"

    def _failed(self, error: RowMergeError) -> Trace:
        """Roll back what can be, and give the trace of a statement that failed."""
        facts = self.facts()
        ended = self.roll_back()
        with_raised(error, self._raised(error))
        if error.changed is False:
            facts.append(Consequence(ended))
            if self.transaction.changed is None:
                error.changed = None
                look = f"Look at {self._target_name()} before you run the statement again: what the finish call did was not taken back."
                error.hint = " ".join(filter(None, [error.hint, look]))
        # What is told of a change that is there must not depend on what has failed in telling it.
        return replace(
            self.trace(StatementState.FAILED),
            committed=error.changed is True,
            error=error_record(error, tuple(facts)),
            raised=error.raised,
        )

    def _raised(self, error: RowMergeError) -> tuple[Raised, ...]:
        """Return what the connector's code has raised, in order: in a task's reading, in its writing, in the calls of this process."""
        read, account = error.raised, self.account
        return told((*read, *(account.raised if account is not None else ()), *self.transaction.log.raised))

    def _note_overtaken(self) -> None:
        """Take the version that the commit was put on top of for the one before, where that is not the one that was read."""
        version = self.transaction.version
        if version is not None and version.made_from is not None and version.made_from != self.version_before:
            self.overtaken, self.version_before = True, version.made_from

    def rows_before(self, read: int | None) -> int | None:
        """Return how many rows the target had before the commit, or None if that is not known; ``read`` when it was read."""
        if not self.overtaken:
            return read
        with suppress(Exception):
            return self.row_count(self.version_before)
        return None

    def rows_after(self) -> int | None:
        """Look how many rows the target has, in the version that was committed."""
        try:
            return self.row_count(self.transaction.version)
        except Exception as error:  # noqa: BLE001 - the change is there, whatever a reader meets; it is told in the headline
            self.unread = error.message if isinstance(error, RowMergeError) else error_text(error)
            return None

    def wait_for_turn(self) -> None:
        """Wait before the finish call, if the statement has not waited before it looked up its target."""

    def begin_step(self, name: str) -> None:
        """Report that a step begins; a statement that was cancelled meanwhile goes no further."""
        self.options.step(name)
        if self.transaction.cancelled.is_set():
            raise StatementInterrupted("The statement was cancelled", step=name)

    def collect(self, spark: Any, rows: Any, partitions: int) -> pa.Table:
        """Run the statement's action.

        Of a small statement Spark makes one plan and keeps to it: planning again after every stage costs more than it finds out.

        Args:
            spark: the session.
            rows: the DataFrame.
            partitions: into how many partitions Spark sends rows where it decides to.
        """
        small = self.plan is not None and is_small(self.plan)
        # What a user's session says of sizes that Spark has seen is respected.
        with interrupts_afterwards():
            seen = {key: value for key, value in SEEN_SIZES.items() if spark.conf.get(key, None) is None}
        settings = {ADAPTIVE: "false"} if small else {**GUESSED_SIZES, **seen}
        if self.plan is not None:
            texts = self.sql()
            settings |= many_joins(texts)
            if is_long(sum(map(len, texts)), small=small):
                settings |= long_settings(spark)
        with settings_of(spark).held({**settings, "spark.sql.shuffle.partitions": str(partitions)}):
            return collect(spark, rows, self.transaction.session.query_id, self.transaction.cancelled)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Note how long a step takes."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = time.perf_counter() - started

    def finish(self, method: str, fragments: Sequence[bytes], call: Callable[[], object]) -> None:
        """Make the connector's call that finishes the statement, and keep what it tells of what was written."""

        def told(given: object) -> str:
            self.output = given if isinstance(given, ConnectorOutputMetadata) else None
            return self.output.summary if self.output is not None and self.output.written else ""

        self.step = method
        self.begin_step(method)
        with self.timed(method):
            self.change(method, call, plural(len(fragments), "fragment"), gave=told, size=sum(map(len, fragments)))

    def change(self, method: str, call: Callable[[], T], given: str = "", *, at_once: bool = False, **more: Any) -> T:
        """Make a connector's call that changes something: with the commit, or at once.

        Args:
            method: its name.
            call: makes it.
            given: what it is called with, in a few words.
            at_once: the change lasts as soon as the call has returned, whatever the target's connector does with others.
            more: further arguments of `StatementTransaction.lasting`.
        """
        lasts = at_once or self.transaction.commits_in_finish
        answer: T = (self.transaction.lasting if lasts else self.transaction.log.call)(method, call, given, **more)
        return answer

    def error_of(self, failure: BaseException, step: str) -> RowMergeError:
        """Return an error of ours for what was raised during a step."""
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
        """Roll back, and say how that went; a failure here does not hide the one that led here."""
        try:
            ended = to_its_end(self.transaction.rollback)
        except (Exception, SystemExit) as failure:  # noqa: BLE001 - the first error is the one to raise; this one is told beside it
            return f"the rollback failed: {error_text(failure)}"
        return (
            "the transaction was rolled back"
            if ended
            else "the rollback was ended by a further interrupt; engine.orphans() lists what is left"
        )

    def calls(self) -> tuple[Call, ...]:
        """Return all calls of the contract: the coordinator's up to the begin call, the tasks', the coordinator's that finish."""
        log = self.transaction.log.calls
        ending = [i for i, call in enumerate(log) if call.method.startswith("finish_") or call.method in {"commit", "rollback"}]
        split = ending[0] if ending else len(log)
        calls = (*log[:split], *(self.account.calls if self.account is not None else ()), *log[split:])
        return tuple(replace(call, order=number) for number, call in enumerate(calls, 1))

    def notice_records(self, *of: Notice) -> tuple[NoticeRecord, ...]:
        """Return notices as plain data."""
        return tuple(
            NoticeRecord(notice.message, notice.span.line if notice.span else None, notice.span.column if notice.span else None)
            for notice in (*of, *self.notices)
        )


def not_rehearsed() -> ConnectorError:
    """Return the error of a statement of which a rollback would leave something."""
    return ConnectorError(
        "This statement cannot be rehearsed: it is done as soon as it is begun",
        hint="What can be rehearsed: MERGE, UPDATE, DELETE, INSERT, CREATE TABLE AS and queries.",
    )


def _number(version: ConnectorTableVersion | None) -> int | str | None:
    """Return a version as the connector counts."""
    return version.version if version is not None and isinstance(version.version, int | str) else None


def error_record(error: RowMergeError, consequences: tuple[Consequence, ...]) -> ErrorRecord:
    """Return an error as plain data."""
    step = getattr(error, "step", "")
    return ErrorRecord(error.code, error.message, *error.shown, error.hint, step, consequences, error.changed)
