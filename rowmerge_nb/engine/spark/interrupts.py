"""Interrupts of the keyboard, on their whole way: what SIGINT does to a statement, wherever it comes.

A commit cannot be taken back. An interrupt in the middle of it would be told as a failure although the change may be there, and what was
told as failed is run again. So a statement has a point of no return, the connector's call that makes its change last, and an interrupt
means something else on either side of it:

**Before it** an interrupt ends the statement: what was begun is rolled back, and `StatementInterrupted` says that nothing was changed.

- While text is read and names are looked up, `interruptible` makes that error of the interrupt.
- While Spark works, `run_cancellable` has the work cancelled, and waits until it has ended: a rollback beside tasks that still write would
  leave what they write. Further interrupts do not shorten this wait.
- Short calls of Spark on the driver are let end first (`interrupts_afterwards`): a connection to Java that was left half read is of no use any
  more. What makes something to be taken back raises afterwards what it has put off (`raise_put_off`).
- Elsewhere the statement's run catches the interrupt as it catches all failures, and `interruption` gives the error.
- The rollback itself is done by `to_its_end`: who has interrupted a statement often does so twice, and the second interrupt must not
  end the cleaning up.

**From it on to the result** interrupts are put off (`interrupts_put_off`): noted, and not raised. What was noted is told when the change is
there and the result is whole (`interrupted_too_late`). The call itself is made by `in_thread` where the connector allows that, since a wait
can be given up and a call that hangs cannot: a further interrupt, `PATIENCE_SECONDS` after the first, ends the wait by `WaitEndedError`, and
the error says that the outcome is unknown.

**After it**, between the result and its way to the caller, there is nothing left to stop: `told_wherever_it_came` says that the change is there,
and gives the result. It also tells of an interrupt that comes before a statement's run, while its transaction is made.

**Where nothing stays**, as in the making of a cache, `told_where_nothing_stays` ends what was begun and says so in a sentence.

**In a cell** an interrupt may come before the engine is asked or after it has answered. `told_in_cell` makes the same error of it, so that the
cell's report says what became of the statement.

Signals reach the main thread alone, so that in others there is nothing to do. A connector whose driver loses interrupts has means of its own
(`rowmerge_nb.connectors.jdbc.interrupts`), and raises KeyboardInterrupt here as Python does.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

from rowmerge_nb.errors import StatementInterrupted

__all__ = [
    "PATIENCE_SECONDS",
    "Interrupts",
    "WaitEndedError",
    "in_thread",
    "interrupted_too_late",
    "interruptible",
    "interruption",
    "interrupts_afterwards",
    "interrupts_put_off",
    "raise_put_off",
    "run_cancellable",
    "to_its_end",
    "told_in_cell",
    "told_where_nothing_stays",
    "told_wherever_it_came",
]

T = TypeVar("T")

PATIENCE_SECONDS: Final = 10.0
"""After so long from the first interrupt a further one ends the wait."""


class WaitEndedError(KeyboardInterrupt):
    """The user does not want to wait for the end any longer; what is waited for goes on."""


class Interrupts:
    """The interrupts that were put off.

    Attributes:
        came: there was one.

    >>> interrupts = Interrupts()
    >>> interrupts.note()
    >>> interrupts.came
    True
    """

    def __init__(self) -> None:
        self.came = False
        self._first = 0.0

    def note(self, *_: Any) -> None:
        """Keep an interrupt in mind; also the handler of the signal.

        Raises:
            WaitEndedError: the first one came long ago.
        """
        now = time.monotonic()
        if self.came and now - self._first >= PATIENCE_SECONDS:
            raise WaitEndedError
        if not self.came:
            self.came, self._first = True, now


# -- from the point of no return on ---------------------------------------------------------------------------------------


@contextmanager
def interrupts_put_off() -> Iterator[Interrupts]:
    """Keep SIGINT from raising; it tells afterwards whether one came.

    Signals reach the main thread alone, so that there is nothing to do in others. A handler that somebody else has installed gets the
    interrupt at the end; if it does not raise, the interrupt is its business and not ours.

    >>> with interrupts_put_off() as interrupts:
    ...     signal.raise_signal(signal.SIGINT)
    >>> interrupts.came
    True
    """
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts.note)
    try:
        yield interrupts
        if interrupts.came:
            # Further ones are put off still: PySpark's own handler calls Spark, which must not be interrupted either.
            try:
                before(signal.SIGINT, None)
            except KeyboardInterrupt:
                return
            interrupts.came = False
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts_afterwards() -> Iterator[None]:
    """Let something short end, as a call of Spark on the driver; an interrupt that came meanwhile is raised right after it.

    An interrupt in the middle of such a call leaves its connection half read, and one more while that is tidied up breaks it.

    >>> try:
    ...     with interrupts_afterwards():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("done")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    done
    interrupted
    """
    with interrupts_put_off() as interrupts:
        yield
    if interrupts.came:
        raise KeyboardInterrupt


def raise_put_off() -> NoReturn:
    """Raise an interrupt that was put off, once what it was put off for is done."""
    raise KeyboardInterrupt


def in_thread(call: Callable[[], T]) -> T:
    """Make a call in a thread of its own and wait for it: a wait can be given up, a call that hangs cannot.

    Raises:
        WaitEndedError: the wait was given up; the call goes on.

    >>> in_thread(lambda: 7)
    7
    """
    answer: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(call())
        except BaseException as failure:  # noqa: BLE001 - it is raised in the caller's thread
            failures.append(failure)

    thread = threading.Thread(target=run, name="rowmerge_nb-commit", daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return answer[0]


# -- before the point of no return ----------------------------------------------------------------------------------------


@contextmanager
def interruptible(step: str) -> Iterator[None]:
    """Make an error of ours of an interrupt while nothing has been begun.

    >>> with interruptible("parse"):
    ...     raise KeyboardInterrupt
    Traceback (most recent call last):
    rowmerge_nb.errors.StatementInterrupted: USER_CANCELED: The statement was interrupted
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        msg = "The statement was interrupted"
        raise StatementInterrupted(msg, step=step) from interrupt


def run_cancellable(work: Callable[[], T], cancel: Callable[[], object], cancelled: threading.Event) -> T:
    """Do work in a thread of its own, so that an interrupt reaches the waiting caller at once; an interrupt cancels it.

    Args:
        work: what is to be done.
        cancel: asks for its end, from this thread; it is asked again and again, since work that is about to start cannot be cancelled yet.
        cancelled: when it is set, the work is cancelled, and ends as it does then.

    Raises:
        StatementInterrupted: an interrupt came; the work has ended by then, or was not begun.

    >>> run_cancellable(lambda: 7, lambda: None, threading.Event())
    7
    """
    answer: list[T] = []
    failures: list[BaseException] = []
    # Not by joining the thread: one whose join() was interrupted counts as ended, before Python 3.13.
    begun, ended = threading.Event(), threading.Event()
    given_up = False

    def run() -> None:
        begun.wait()
        if given_up:
            return
        try:
            answer.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            failures.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=run, name="rowmerge_nb-action", daemon=True)
    try:
        thread.start()
        begun.set()
        while not ended.is_set():
            # PySpark's own handler of interrupts calls Spark: a second one must not come in the middle of that.
            with interrupts_afterwards():
                ended.wait(0.1)
            if cancelled.is_set():
                cancel()
    except KeyboardInterrupt as interrupt:
        # One that comes while the thread is started must not leave it running.
        given_up = not begun.is_set()
        begun.set()
        # Who interrupts twice must not have the rollback run beside the work.
        with interrupts_put_off():
            while not given_up and not ended.is_set():
                cancel()
                ended.wait(0.1)
        msg = "The statement was interrupted; its Spark work is cancelled"
        raise StatementInterrupted(msg, step="run") from interrupt
    if failures:
        raise failures[0]
    return answer[0]


def to_its_end(call: Callable[[], object]) -> bool:
    """Make a call while interrupts are put off; False if a further interrupt has ended it before its end.

    >>> to_its_end(lambda: signal.raise_signal(signal.SIGINT))
    True
    """
    try:
        with interrupts_put_off():
            call()
    except KeyboardInterrupt:
        return False
    return True


# -- what is told ---------------------------------------------------------------------------------------------------------


def interruption(
    failure: BaseException, step: str, *, changed: bool | None = False, look: str = ""
) -> StatementInterrupted | None:
    """Give the error of a statement that an interrupt has ended; None for another failure.

    Args:
        failure: what was raised.
        step: what was being done.
        changed: whether the statement's change is there; None if nobody knows.
        look: what to look at where nobody knows, as the beginning of a sentence.

    >>> interruption(KeyboardInterrupt(), "run").message
    'The statement was interrupted'
    >>> interruption(KeyboardInterrupt(), "commit", changed=True).hint
    'Do not run it again.'
    >>> interruption(ValueError(), "run") is None
    True
    """
    if not isinstance(failure, KeyboardInterrupt):
        return None
    if changed is False:
        return StatementInterrupted("The statement was interrupted", step=step)
    if changed is None:
        ended = " by a further interrupt" if isinstance(failure, WaitEndedError) else ""
        msg = f"The outcome is unknown: the wait for the commit was ended{ended}, and the change may be there, now or soon"
        hint = f"{look}; what it has written stays where it is until engine.orphans() lists it."
        return StatementInterrupted(msg, step=step, changed=None, hint=hint)
    msg = "The statement was interrupted while its result was being told; its change is there"
    return StatementInterrupted(msg, step=step, changed=True, hint="Do not run it again.")


def interrupted_too_late(result: object) -> StatementInterrupted:
    """Give the error of an interrupt that came when the statement could not be stopped any more; its result is whole."""
    msg = "The interrupt came when the change was being committed; the change is there"
    error = StatementInterrupted(msg, step="commit", changed=True, hint="Do not run the statement again.")
    error.result = result
    return error


def told_wherever_it_came(run: Callable[[], T], done: Callable[[], object], changed: Callable[[], bool | None]) -> T:
    """Run a statement; an interrupt that comes where nothing else tells of it, before its run or after it, says what became of the change.

    Args:
        run: runs it.
        done: gives its result once its change is there, and None before.
        changed: whether its change is there, as far as it is known.

    Raises:
        StatementInterrupted: an interrupt came; if the change is there, the error has the result.

    >>> told_wherever_it_came(lambda: 7, lambda: None, lambda: False)
    7
    """
    try:
        return run()
    except KeyboardInterrupt as interrupt:
        if (result := done()) is not None:
            raise interrupted_too_late(result) from None
        look = "Look at the table before you run the statement again"
        error = interruption(interrupt, "run", changed=changed(), look=look)
        assert error is not None
        raise error from interrupt


def told_where_nothing_stays(run: Callable[[], T], what: str, hint: str) -> T:
    """Run what is no statement, and leaves nothing behind where it is interrupted.

    Args:
        run: runs it.
        what: what it is, as the subject of a sentence.
        hint: how to do it again.

    Raises:
        StatementInterrupted: an interrupt came.

    >>> told_where_nothing_stays(lambda: 7, "The making of a cache", "Make it again.")
    7
    """
    try:
        return run()
    except KeyboardInterrupt:
        msg = f"{what} was interrupted; nothing of it is left"
        raise StatementInterrupted(msg, hint=hint) from None


def told_in_cell(run: Callable[[], T], ended: Callable[[], bool], text: str) -> T:
    """Run a statement of a cell; while it runs the engine turns an interrupt into an error itself, and here it came before or after.

    Args:
        run: runs it.
        ended: whether the statement had ended.
        text: the statement's text.

    Raises:
        StatementInterrupted: an interrupt came.

    >>> told_in_cell(lambda: 7, lambda: True, "SELECT 7")
    7
    """
    try:
        return run()
    except KeyboardInterrupt:
        changed = ended()
        msg = (
            "The interrupt came when the statement had ended; its change is there"
            if changed
            else "The statement was interrupted before it had begun to change anything"
        )
        error = StatementInterrupted(msg, step="plan", changed=changed)
        error.statement = text
        raise error from None
