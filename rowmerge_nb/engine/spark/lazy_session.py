"""An engine's Spark session: the user's own, or one that is started in the background and is there when somebody asks for it.

Little is loaded before Java starts: what else a first statement needs is loaded while Java comes up.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rowmerge_nb.errors import RowMergeError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

__all__ = ["LazySession"]

T = TypeVar("T")

_PATIENCE: Final = 0.5
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

    def start(self) -> None:
        """Start Spark in the background, if it is ours and does not run yet.

        Raises:
            RowMergeError: INVALID_ARGUMENTS, the engine is closed.
        """
        with self._lock:
            self.check_open()
            # What kept Spark from starting may have been mended since; and whoever finds our Spark in the process may stop it.
            if self._given is None and (self._future is None or _has_failed(self._future) or _is_stopped(self._future)):
                from rowmerge_nb.engine.spark.session import start_in_background

                self._future = start_in_background(cores=self._cores)

    def check_open(self) -> None:
        """Refuse what a closed engine is asked to do, and one of another process.

        Raises:
            RowMergeError: INVALID_ARGUMENTS.
        """
        if self.closed:
            msg = "The engine is closed"
            raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint="Make a new one: Engine().")
        if self.is_inherited:
            msg = (
                f"The engine belongs to process {self._process}, off which this one was forked; two cannot share its connections"
            )
            hint = "Make an engine in a process that is started anew, as multiprocessing.get_context('spawn') does."
            raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint=hint)

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
            from rowmerge_nb.engine.spark.session import has_ended

            if has_ended(self._given):
                msg = "The Spark session that the engine was given has been stopped"
                raise SetupError(msg, hint="Start another one, and give it to a new engine: Engine(spark=session).")
            return self._given
        self.start()
        if self._future is None:
            msg = "The engine is closed"
            raise RuntimeError(msg)
        return self._future.result()

    def adopted(self) -> AbstractContextManager[Any]:
        """Have a session of the user's the settings that statements need as long as this lasts; one of our own has them always."""
        if self._given is None:
            return nullcontext()
        if self._adopted is None:
            from rowmerge_nb.engine.spark.session import adopt_session

            self._adopted = adopt_session(self._given)
        adopted: AbstractContextManager[Any] = self._adopted
        return adopted

    def tasks(self) -> tuple[int, int] | None:
        """Give how many tasks of the stages that run now are done, and how many they have; None where none run or nobody can tell.

        May be called from any thread. Spark Connect does not tell.
        """
        return self._asked(_tasks_of)

    def rows(self) -> int | None:
        """Give how many rows the stages that run now have read or handed on, whichever is more; None where none was counted or nobody can tell.

        May be called from any thread. Spark Connect does not tell.
        """
        return self._asked(_rows_of)

    def _asked(self, question: Callable[[Any], T | None]) -> T | None:
        """Ask Spark's context something, without waiting for long."""
        if not self._is_there() or not hasattr(self.spark, "_jsparkSession"):
            return None
        asked = _asking.submit(question, self.spark.sparkContext)
        try:
            return asked.result(timeout=_PATIENCE)
        except Exception:  # noqa: BLE001 - a line of progress is no reason to fail
            return None

    def _is_there(self) -> bool:
        return self._given is not None or (self._future is not None and self._future.done() and not _has_failed(self._future))

    def cancel(self, tag: str) -> None:
        """Cancel the Spark work of a statement, from any thread; where no session is there yet, there is none.

        Args:
            tag: names the work.
        """
        if self._is_there():
            from rowmerge_nb.engine.spark.job import cancel

            cancel(self.spark, tag)

    def stop(self) -> None:
        """Stop Spark, if it is ours and the last engine's."""
        future, self._future = self._future, None
        if future is not None and future.exception() is None:
            from rowmerge_nb.engine.spark.session import stop_session

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


def _is_stopped(future: Future[Any]) -> bool:
    from rowmerge_nb.engine.spark.session import has_ended

    return future.done() and has_ended(future.result())
