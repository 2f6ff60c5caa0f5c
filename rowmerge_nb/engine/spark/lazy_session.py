"""An engine's Spark session: the user's, or one that starts in the background."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rowmerge_nb.base.errors import ExecutionError, RowMergeError, SetupError
from rowmerge_nb.base.front_end import either, engine_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

T = TypeVar("T")

_PATIENCE: Final = 0.5
# One thread for all requests: each thread that calls Java has its own connection, which outlives
# it.
_asking: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rowmerge_nb-tasks")


class LazySession:
    """The session of one engine.

    Args:
        user_session: the user's session, which is never stopped; None for our own.
    """

    def __init__(self, user_session: Any = None, cores: int | None = None) -> None:
        self.closed = False
        self._process = os.getpid()
        self._user_session = user_session
        self._cores = cores
        self._future: Future[Any] | None = None
        self._adopted: Any = None
        self._lock = threading.Lock()
        self._news: list[str] = []

    def start(self) -> None:
        """Start our own Spark in the background, if it is not running."""
        with self._lock:
            self.check_open()
            # The cause of a failed start may be fixed by now, and other code in the process may
            # have stopped our Spark.
            if self._user_session is None and (
                self._future is None or _has_failed(self._future) or self._is_lost(self._future)
            ):
                from rowmerge_nb.engine.spark.spark_session import start_in_background

                self._future = start_in_background(cores=self._cores)

    def renew(self) -> None:
        """Restart our own Spark if it is lost; do nothing if it was never started.

        Raises:
            SetupError: the user's session is lost.
        """
        if self._user_session is not None:
            self._check_user_session()
        elif self._future is not None:
            self.start()

    def _check_user_session(self) -> None:
        from rowmerge_nb.engine.spark.loss import loss_of
        from rowmerge_nb.engine.spark.spark_session import has_ended

        if has_ended(self._user_session):
            raise SetupError(
                "The Spark session of the engine has been stopped",
                hint="Start another session, and pass it to a new engine: Engine(spark=session).",
            )
        if loss := loss_of(self._user_session):
            raise SetupError(
                f"The Spark session of the engine can no longer be used: {loss}",
                hint=_another_session(),
            )

    def _is_lost(self, future: Future[Any]) -> bool:
        if not future.done():
            return False
        from rowmerge_nb.engine.spark.loss import AFTERWARDS, loss_of
        from rowmerge_nb.engine.spark.spark_session import has_ended

        session = future.result()
        if has_ended(session):
            return True
        loss = loss_of(session)
        if loss:
            self._news.append(f"Spark was started anew: {loss}. {AFTERWARDS}")
        return bool(loss)

    def news(self) -> list[str]:
        news, self._news = self._news, []
        return news

    def note_failure(self, error: RowMergeError) -> None:
        """If Spark is lost, rewrite a failed statement's error with the reason and a hint."""
        session = self._session_there()
        # Any other code describes an error of the statement itself.
        if (
            session is None
            or not isinstance(error.__cause__, Exception)
            or error.code != ExecutionError.default_code
        ):
            return
        from rowmerge_nb.engine.spark.loss import AFTERWARDS, note_failure

        loss = note_failure(session, error.__cause__)
        if not loss:
            return
        error.code = "REMOTE_HOST_GONE"
        error.message = f"Spark can no longer be used: {loss}"
        error.hint = (
            f"Run the statement again: Spark starts again. {AFTERWARDS}"
            if self._user_session is None
            else _another_session()
        )

    def check_open(self) -> None:
        if self.closed:
            raise RowMergeError.invalid("The engine is closed", hint="Make a new one: Engine().")
        if self.is_inherited:
            raise RowMergeError.invalid(
                f"The engine belongs to process {self._process}, from which this"
                " process was forked; two processes cannot share its connections",
                hint=(
                    "Create an engine in a newly started process, as"
                    " multiprocessing.get_context('spawn') does."
                ),
            )

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked from the engine's process."""
        return os.getpid() != self._process

    @property
    def spark(self) -> Any:
        """The Spark session; starts it and waits for it if necessary.

        Raises:
            SetupError: it does not start, or the user's has been stopped.
        """
        if self._user_session is not None:
            self._check_user_session()
            return self._user_session
        self.start()
        if self._future is None:
            raise RuntimeError("The engine is closed")
        return self._future.result()

    @property
    def current(self) -> Any:
        """The session of the running statement; a lost one is restarted by the next statement."""
        future = self._future
        if self._user_session is not None or future is None or _has_failed(future):
            return self.spark
        return future.result()

    @property
    def has_remote_executors(self) -> bool:
        if self._user_session is None:
            return False
        from rowmerge_nb.engine.spark.executors import executors_of

        return executors_of(self._user_session).elsewhere

    def adopted(self) -> AbstractContextManager[Any]:
        if self._user_session is None:
            return nullcontext()
        if self._adopted is None:
            from rowmerge_nb.engine.spark.spark_session import adopt_session

            self._adopted = adopt_session(self._user_session)
        adopted: AbstractContextManager[Any] = self._adopted
        return adopted

    def tasks(self) -> tuple[int, int] | None:
        """Return (completed, total) tasks of the running stages; None if unknown. Thread-safe."""
        return self._query(_tasks_of)

    def rows(self) -> int | None:
        """Return the rows read or written by the running stages; None if unknown. Thread-safe."""
        return self._query(_rows_of)

    def _query(self, question: Callable[[Any], T | None]) -> T | None:
        session = self._session_there()
        if session is None or not hasattr(session, "_jsparkSession"):
            return None
        answer = _asking.submit(question, session.sparkContext)
        try:
            return answer.result(timeout=_PATIENCE)
        except Exception:  # noqa: BLE001 - a line of progress is no reason to fail
            return None

    def _session_there(self) -> Any:
        if self._user_session is not None:
            return self._user_session
        future = self._future
        return (
            future.result()
            if future is not None and future.done() and not _has_failed(future)
            else None
        )

    def cancel(self, tag: str) -> None:
        session = self._session_there()
        if session is not None:
            from rowmerge_nb.engine.spark.job import cancel

            cancel(session, tag)

    def stop(self) -> None:
        """Stop our own Spark, unless another engine uses it."""
        future, self._future = self._future, None
        if future is not None and future.exception() is None:
            from rowmerge_nb.engine.spark.spark_session import stop_session

            stop_session(future.result())

    def end(self) -> None:
        """Close the session; wait for its start, and stop our own Spark and its Java, unless another
        engine uses it.
        """
        self.closed = True
        future, self._future = self._future, None
        if future is not None and future.exception() is None:
            from rowmerge_nb.engine.spark.spark_session import end_java

            end_java(future.result())


def _rows_of(context: Any) -> int | None:
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - PySpark's own tracker does not report rows
    read = written_rows = 0
    for stage in context.statusTracker().getActiveStageIds():
        attempt = store.lastStageAttempt(stage)
        read += attempt.inputRecords() + attempt.shuffleReadRecords()
        written_rows += attempt.outputRecords() + attempt.shuffleWriteRecords()
    return max(read, written_rows) or None


def _tasks_of(context: Any) -> tuple[int, int] | None:
    tracker = context.statusTracker()
    stages = [
        info
        for stage in tracker.getActiveStageIds()
        if (info := tracker.getStageInfo(stage)) is not None
    ]
    return (
        (sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))
        if stages
        else None
    )


def _has_failed(future: Future[Any]) -> bool:
    return future.done() and future.exception() is not None


def _another_session() -> str:
    process = either("a new Python process", "a new Python process: restart the kernel")
    return (
        "It is your own session, which the engine does not restart. Engine() creates"
        " an engine with its own Spark in this process; a new session of yours needs"
        f" {process}. {engine_call('table(name)')} still returns the rows of tables in memory."
    )
