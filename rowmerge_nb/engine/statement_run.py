"""What all statements share on their way: rolling back, translating what was raised, and telling of calls and notices."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.action import collect
from rowmerge_nb.engine.failures import translate, with_next_step
from rowmerge_nb.engine.recorder import amount
from rowmerge_nb.engine.settings import settings_of
from rowmerge_nb.engine.trace import Call, ErrorRecord, NoticeRecord, Trace
from rowmerge_nb.errors import ExecutionError, RowMergeError, StatementInterrupted
from rowmerge_nb.plan.rules import is_small
from rowmerge_nb.spi.output import ConnectorOutputMetadata

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.engine.options import Options
    from rowmerge_nb.engine.recorder import Account
    from rowmerge_nb.engine.transaction import StatementTransaction
    from rowmerge_nb.plan.nodes import Output
    from rowmerge_nb.sql.analysis import Notice

__all__ = ["UNKNOWN_SIZE", "StatementRun", "error_record"]

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


@dataclass(kw_only=True)
class StatementRun:
    """One statement on its way.

    Args:
        transaction: its dealings with connectors.
        options: how it is run.
        connector: the kind of store of the target; ``""`` for a query.
        spark: gives the Spark session.
        row_count: asks for the target's number of rows once the statement is committed.
        notices: notices that are not part of the analysis.

    Attributes:
        plan: the plan, once there is one.
        account: what the tasks told, once they have.
        failure: the trace of the attempt, after an error.
    """

    transaction: StatementTransaction
    options: Options
    connector: str
    spark: Callable[[], Any]
    row_count: Callable[[], int | None]
    notices: tuple[Notice, ...] = ()
    plan: Output | None = None
    account: Account | None = None
    failure: Trace | None = None
    output: ConnectorOutputMetadata | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def begin_step(self, name: str) -> None:
        """Tell that a step begins; a statement that was cancelled meanwhile goes no further."""
        self.options.step(name)
        if self.transaction.cancelled.is_set():
            msg = "The statement was cancelled"
            raise StatementInterrupted(msg, step=name)

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
        seen = {key: value for key, value in SEEN_SIZES.items() if spark.conf.get(key, None) is None}
        settings = {ADAPTIVE: "false"} if small else {**GUESSED_SIZES, **seen}
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
            text = amount(len(fragments), "fragment")
            return f"{text}, {self.output.summary}" if self.output is not None and self.output.written else text

        self.begin_step(method)
        with self.timed(method):
            self.transaction.log.call(method, call, told)

    def error_of(self, failure: BaseException, step: str) -> RowMergeError:
        """Give an error of ours for what was raised during a step."""
        if isinstance(failure, KeyboardInterrupt):
            return StatementInterrupted("The statement was interrupted", step=step)
        if step in CONNECTOR_STEPS and not isinstance(failure, RowMergeError):
            return ExecutionError(f"{step} failed: {type(failure).__name__}: {failure}", step=step)
        return with_next_step(translate(failure, step))

    def roll_back(self) -> str:
        """Roll back, and say how that went; a failure here does not hide the one that led here."""
        try:
            self.transaction.rollback()
        except Exception as failure:  # noqa: BLE001 - the first error is the one to raise; this one is told beside it
            return f"the rollback failed: {type(failure).__name__}: {failure}"
        return "the transaction was rolled back"

    def calls(self) -> tuple[Call, ...]:
        """Give all calls of the contract: the coordinator's up to the begin call, the tasks', the coordinator's that finish."""
        log = self.transaction.log.calls
        ending = [i for i, call in enumerate(log) if call.method.startswith("finish_") or call.method in {"commit", "rollback"}]
        split = ending[0] if ending else len(log)
        calls = (*log[:split], *(self.account.calls if self.account is not None else ()), *log[split:])
        return tuple(replace(call, order=number) for number, call in enumerate(calls, 1))

    def notice_records(self, *of: Notice) -> tuple[NoticeRecord, ...]:
        """Give notices as plain data."""
        return tuple(
            NoticeRecord(notice.message, notice.span.line if notice.span else None, notice.span.column if notice.span else None)
            for notice in (*of, *self.notices)
        )


def error_record(error: RowMergeError, consequences: tuple[str, ...]) -> ErrorRecord:
    """Give an error as plain data."""
    step = getattr(error, "step", "")
    return ErrorRecord(error.code, error.message, error.line, error.column, error.length, error.hint, step, consequences)
