"""An engine's Spark session: the user's own, or one that is started in the background and is there when somebody asks for it.

Little is loaded before Java starts: what else a first statement needs is loaded while Java comes up.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rowmerge_nb.base.errors import ExecutionError, RowMergeError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

T = TypeVar("T")

_PATIENCE: Final = 0.5
_ANOTHER_SESSION: Final = (
    "It is a session of yours, which is not started anew. Engine() makes an engine with a Spark of its own in this process; a new session "
    "of yours needs a new Python process (in a notebook: restart the kernel). engine.table(name) still returns the rows of tables in memory."
)
# One thread for all questions: each thread that asks Java has a connection of its own, which outlives it.
_asking: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rowmerge_nb-tasks")


class LazySession:
    """The session of one engine.

    Args:
        given: the user's session, which is never stopped; None for one of our own.
        cores: how many tasks a session of our own runs at the same time; None for those of the machine, at most 8, or of the variable ROWMERGE_CORES.

    Attributes:
        closed: the engine is closed, and no session is started any more.
    """

    def __init__(self, given: Any = None, cores: int | None = None) -> None:
        self.closed = False
        self._process = os.getpid()
        self._given = given
        self._cores = cores
        self._future: Future[Any] | None = None
        self._adopted: Any = None
        self._lock = threading.Lock()
        self._news: list[str] = []

    def start(self) -> None:
        """Start Spark in the background, if it is ours and does not run yet.

        Raises:
            RowMergeError: INVALID_ARGUMENTS, the engine is closed.
        """
        with self._lock:
            self.check_open()
            # What kept Spark from starting may have been mended since; and whoever finds our Spark in the process may stop it.
            if self._given is None and (self._future is None or _has_failed(self._future) or self._is_lost(self._future)):
                from rowmerge_nb.engine.spark.spark_session import start_in_background

                self._future = start_in_background(cores=self._cores)

    def renew(self) -> None:
        """Start Spark anew if it is ours and can be used no more; one that has not been started is left alone.

        Raises:
            SetupError: the user's can be used no more.
        """
        if self._given is not None:
            self._check_given()
        elif self._future is not None:
            self.start()

    def _check_given(self) -> None:
        from rowmerge_nb.engine.spark.loss import loss_of
        from rowmerge_nb.engine.spark.spark_session import has_ended

        if has_ended(self._given):
            raise SetupError(
                "The Spark session that the engine was given has been stopped",
                hint="Start another one, and give it to a new engine: Engine(spark=session).",
            )
        if loss := loss_of(self._given):
            raise SetupError(f"The Spark session that the engine was given can be used no more: {loss}", hint=_ANOTHER_SESSION)

    def _is_lost(self, future: Future[Any]) -> bool:
        """Whether the session can be used no more; why is noted."""
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
        """Return sentences about what has happened to the session since the last call."""
        news, self._news = self._news, []
        return news

    def note_failure(self, error: RowMergeError) -> None:
        """Look whether the Spark of a failed statement can be used no more, and say in its error why, and what to do."""
        session = self._session_there()
        # Another code says what is wrong with the statement, whatever has happened to Spark.
        if session is None or not isinstance(error.__cause__, Exception) or error.code != ExecutionError.default_code:
            return
        from rowmerge_nb.engine.spark.loss import AFTERWARDS, note_failure

        loss = note_failure(session, error.__cause__)
        if not loss:
            return
        error.message = f"Spark can be used no more: {loss}"
        error.hint = f"Run the statement again: Spark is started anew. {AFTERWARDS}" if self._given is None else _ANOTHER_SESSION

    def check_open(self) -> None:
        """Refuse what a closed engine is asked to do, and one of another process.

        Raises:
            RowMergeError: INVALID_ARGUMENTS.
        """
        if self.closed:
            raise RowMergeError("The engine is closed", code="INVALID_ARGUMENTS", hint="Make a new one: Engine().")
        if self.is_inherited:
            raise RowMergeError(
                f"The engine belongs to process {self._process}, off which this one was forked; two cannot share its connections",
                code="INVALID_ARGUMENTS",
                hint="Make an engine in a process that is started anew, as multiprocessing.get_context('spawn') does.",
            )

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked off the one that made the engine, and has a copy of it."""
        return os.getpid() != self._process

    @property
    def spark(self) -> Any:
        """The Spark session; starts it where needed, and waits for it.

        Raises:
            SetupError: it does not start, or the user's has been stopped.
        """
        if self._given is not None:
            self._check_given()
            return self._given
        self.start()
        if self._future is None:
            raise RuntimeError("The engine is closed")
        return self._future.result()

    @property
    def current(self) -> Any:
        """The session of the statement that runs: one that is lost meanwhile is not started anew before the next statement.

        Raises:
            SetupError: as `spark`.
        """
        future = self._future
        if self._given is not None or future is None or _has_failed(future):
            return self.spark
        return future.result()

    @property
    def has_remote_executors(self) -> bool:
        """Whether tasks may run on other machines; those of a session of our own run on this one."""
        if self._given is None:
            return False
        from rowmerge_nb.engine.spark.executors import executors_of

        return executors_of(self._given).elsewhere

    def adopted(self) -> AbstractContextManager[Any]:
        """Adopt a user's session: it has the settings that statements need as long as the context lasts. Our own sessions always have them."""
        if self._given is None:
            return nullcontext()
        if self._adopted is None:
            from rowmerge_nb.engine.spark.spark_session import adopt_session

            self._adopted = adopt_session(self._given)
        adopted: AbstractContextManager[Any] = self._adopted
        return adopted

    def tasks(self) -> tuple[int, int] | None:
        """Return how many tasks of the stages that run now are done, and how many they have; None where none run or nobody can tell.

        May be called from any thread. Spark Connect does not tell.
        """
        return self._asked(_tasks_of)

    def rows(self) -> int | None:
        """Return how many rows the stages that run now have read or handed on, whichever is more; None where none was counted or nobody can tell.

        May be called from any thread. Spark Connect does not tell.
        """
        return self._asked(_rows_of)

    def _asked(self, question: Callable[[Any], T | None]) -> T | None:
        """Ask Spark's context something, without waiting for long."""
        session = self._session_there()
        if session is None or not hasattr(session, "_jsparkSession"):
            return None
        asked = _asking.submit(question, session.sparkContext)
        try:
            return asked.result(timeout=_PATIENCE)
        except Exception:  # noqa: BLE001 - a line of progress is no reason to fail
            return None

    def _session_there(self) -> Any:
        """Return the session if there is one already; None otherwise."""
        if self._given is not None:
            return self._given
        future = self._future
        return future.result() if future is not None and future.done() and not _has_failed(future) else None

    def cancel(self, tag: str) -> None:
        """Cancel the Spark work of a statement, from any thread; where no session is there yet, there is none.

        Args:
            tag: names the work.
        """
        session = self._session_there()
        if session is not None:
            from rowmerge_nb.engine.spark.job import cancel

            cancel(session, tag)

    def stop(self) -> None:
        """Stop Spark, if it is ours and the last engine's."""
        future, self._future = self._future, None
        if future is not None and future.exception() is None:
            from rowmerge_nb.engine.spark.spark_session import stop_session

            stop_session(future.result())


def _rows_of(context: Any) -> int | None:
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - PySpark's own tracker does not tell rows
    read = given = 0
    for stage in context.statusTracker().getActiveStageIds():
        told = store.lastStageAttempt(stage)
        read += told.inputRecords() + told.shuffleReadRecords()
        given += told.outputRecords() + told.shuffleWriteRecords()
    return max(read, given) or None


def _tasks_of(context: Any) -> tuple[int, int] | None:
    tracker = context.statusTracker()
    stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
    return (sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)) if stages else None


def _has_failed(future: Future[Any]) -> bool:
    return future.done() and future.exception() is not None
