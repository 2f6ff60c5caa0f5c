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

**From it on until the statement's guard ends** signals are put off: noted, and not raised. `StatementGuard` does so. Every statement has one:
`guarded` makes it, or takes that of the cell, which ends when the report is shown. Every call that makes a change last calls `no_return`
first, through `StatementTransaction.lasting` or `at_once`. What was noted is raised when the result is whole (`interrupted_too_late`). The call itself is made by `in_thread` where the connector allows that, since a wait
can be given up and a call that hangs cannot: a further interrupt, `PATIENCE_SECONDS` after the first, ends the wait by `WaitEndedError`, and
the error says that the outcome is unknown. What may take long after the commit can be interrupted nevertheless (`interrupts_let_in`).

**Whatever is raised** leaves a guard with what is known of the change: an interrupt, an error in a report, SIGTERM. The guard lets the first
interrupt of a statement through and puts off all others, so that a second one ends neither a rollback nor a report. `note_result` hands it
the result.

**Where nothing stays**, as in the making of a cache, `told_where_nothing_stays` ends what was begun and says so in a sentence.

Shorter stretches put interrupts off by `interrupts_put_off`. Work that is no statement reports one by `interrupts_reported`. Signals reach the main thread alone, so that in others there is nothing to do.
A connector whose driver loses interrupts has means of its own (`rowmerge_nb.connectors.jdbc.interrupts`), and raises KeyboardInterrupt here
as Python does.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, NoReturn, TypeVar

from rowmerge_nb.base.errors import ExecutionError, RowMergeError, StatementInterrupted, error_text

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
    rowmerge_nb.base.errors.StatementInterrupted: USER_CANCELED: The statement was interrupted
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise StatementInterrupted("The statement was interrupted", step=step) from interrupt


def run_cancellable(
    work: Callable[[], T],
    cancel: Callable[[], object],
    cancelled: threading.Event,
    ended_work: str = "its Spark work is cancelled",
) -> T:
    """Run work in a thread of its own, so that an interrupt reaches the waiting caller at once; an interrupt cancels it.

    Args:
        work: what is to be done.
        cancel: asks for its end, from this thread; it is asked again and again, since work that is about to start cannot be cancelled yet.
        cancelled: when it is set, the work is cancelled, and ends as it does then.
        ended_work: what becomes of the work, for the message of an interrupt.

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
        raise StatementInterrupted(f"The statement was interrupted; {ended_work}", step="run") from interrupt
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
    """Return the error of a statement that an interrupt has ended; None for another failure.

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
        return StatementInterrupted(
            f"The outcome is unknown: the wait for the commit was ended{ended}, and the change may be there, now or soon",
            step=step,
            changed=None,
            hint=f"{look}; what it has written stays where it is until engine.orphans() lists it.",
        )
    return StatementInterrupted(
        "The statement was interrupted while its result was being told; its change is there",
        step=step,
        changed=True,
        hint="Do not run it again.",
    )


def interrupted_too_late(result: object) -> StatementInterrupted:
    """Return the error of an interrupt that came when the statement could not be stopped any more; its result is whole."""
    error = StatementInterrupted(
        "The interrupt came when the change was being committed; the change is there",
        step="commit",
        changed=True,
        hint="Do not run the statement again.",
    )
    error.result = result
    return error


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
        raise StatementInterrupted(f"{what} was interrupted; nothing of it is left", hint=hint) from None


# -- the guard of a statement ---------------------------------------------------------------------------------------------

_LOOK: Final = "Look at the table before you run the statement again"
_DO_NOT_REPEAT: Final = "Do not run it again."
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a process: from the point of no return on they wait until the change is reported."""


def _nothing_changed() -> bool | None:
    return False


class StatementGuard:
    """Keeps signals from a statement whose change may be in its store, and adds to every error what is known of that change.

    Args:
        free: the next statement that is run may take the guard: that of a cell, which shows the statement's report within it.
        outlasts: SIGINT is put off until another handler is installed. A kernel does that when a cell has ended.
        result: the statement's result, once it is whole; it may be completed later.
        changed: its change is in the store.

    Attributes:
        result: as above.
        came: an interrupt was put off.

    >>> StatementGuard().run(lambda: 7)
    7
    """

    def __init__(self, *, free: bool = False, outlasts: bool = False, result: Any = None, changed: bool = False) -> None:
        self.result = result
        self.came = False
        self._free = free
        self._outlasts = outlasts
        self._holding = False
        self._first: float | None = None
        self._changed: Callable[[], bool | None] = lambda: changed
        self._before: dict[int, Any] = {}
        self._ending: list[int] = []

    # -- for the caller -------------------------------------------------------------------------------------------

    def run(self, work: Callable[[], T], complete: Callable[[RowMergeError], object] = lambda _: None) -> T:
        """Run a statement; what is raised says what became of its change.

        Args:
            work: runs it.
            complete: adds to an error what else is known.

        Raises:
            RowMergeError: an interrupt came, or something failed when the change was in the store.
        """
        token, error = _current.set(self), None
        try:
            try:
                self._install(signal.SIGINT)
                answer = self.part(work, complete)
            finally:
                _current.reset(token)
                self.end()
        except KeyboardInterrupt as interrupt:
            # It came while the handlers were restored; a further one waits.
            self.end()
            error = self._error(interrupt, complete)
        if error is not None:
            raise error
        return answer

    def part(self, work: Callable[[], T], complete: Callable[[RowMergeError], object] = lambda _: None) -> T:
        """Run a part of what is guarded, with errors as `run` has them; handlers of signals are not restored at its end."""
        try:
            answer = work()
            self.check()
        except BaseException as failure:
            self._holding = True
            error = self._error(failure, complete)
            if error is failure:
                raise
            raise error from failure
        return answer

    def check(self) -> None:
        """Raise an interrupt that was put off, if one was."""
        if self.came:
            raise KeyboardInterrupt

    def hold(self) -> None:
        """Put off interrupts from now on."""
        self._holding = True

    def next_statement(self) -> None:
        """Let the next statement of a cell take the guard, which knows nothing of it yet; a signal that has waited is raised now."""
        self._restore(_ENDING)
        self.result, self._changed, self._free = None, _nothing_changed, True
        self._first, self._holding = None, False

    def end(self) -> None:
        """Restore the handlers of signals; a signal that has waited for the end is raised now."""
        # An interrupt between two steps would leave a handler of ours behind.
        self._holding, came, self.came = True, self.came, False
        self._restore(tuple(self._before))
        late, self.came = self.came and not self._outlasts, came
        if late:
            signal.raise_signal(signal.SIGINT)

    def _restore(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            before = self._before.pop(number, None)
            # A handler that was installed meanwhile stays.
            is_ours = before is not None and signal.getsignal(number) == self._handle
            if is_ours and (number != signal.SIGINT or not self._outlasts):
                signal.signal(number, before)
        if self._ending:
            number = self._ending.pop()
            self._ending.clear()
            self._report_end(number)
            signal.raise_signal(number)

    # -- for the statement ----------------------------------------------------------------------------------------

    def claim(self) -> bool:
        """Take the guard for a statement; False if another one has it."""
        was_free, self._free = self._free, False
        return was_free

    def no_return(self, changed: Callable[[], bool | None]) -> None:
        """Put off signals from now on.

        Args:
            changed: whether the change is in the store; None where that is not known.
        """
        self._holding, self._changed = True, changed
        for number in _ENDING:
            self._install(number)

    @contextmanager
    def let_in(self) -> Iterator[None]:
        """Let one interrupt in, that which was put off as well; the caller makes an error of it that says what became of the change."""
        held, self._holding = self._holding, False
        try:
            self.check()
            yield
        finally:
            # An interrupt that was let in is reported, and is not raised again at the end.
            self._holding, self.came = held, False

    # -- signals --------------------------------------------------------------------------------------------------

    def _install(self, number: int) -> None:
        if threading.current_thread() is not threading.main_thread() or number in self._before:
            return
        before = signal.getsignal(number)
        if callable(before) or (before is signal.SIG_DFL and number != signal.SIGINT):
            self._before[number] = before
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: Any) -> None:
        if number == signal.SIGINT and not self._holding:
            self._let_through(frame)
            return
        now = time.monotonic()
        if self._first is not None and now - self._first >= PATIENCE_SECONDS:
            raise WaitEndedError
        self._first = now if self._first is None else self._first
        if number == signal.SIGINT:
            self.came = True
        else:
            self._ending.append(number)

    def _let_through(self, frame: Any) -> None:
        """Call the handler of before; the next interrupt waits, so that it does not end the cleaning up that this one begins."""
        self._holding, self._first = True, time.monotonic()
        try:
            self._before[signal.SIGINT](signal.SIGINT, frame)
        except KeyboardInterrupt:
            raise
        except Exception as failure:
            # PySpark's handler asks a Java for something that may be gone.
            raise KeyboardInterrupt from failure
        self._holding, self._first = False, None

    def _report_end(self, number: int) -> None:
        """Write to the standard error stream what became of the change, before a signal ends the process."""
        words = {True: "its change is there", None: "whether its change is there is not known", False: "nothing was changed"}
        name = signal.Signals(number).name
        with suppress(Exception):
            sys.stderr.write(f"rowmerge_nb: {name} came while a statement was ended; {words[self._changed()]}.\n")
            sys.stderr.flush()

    # -- errors ---------------------------------------------------------------------------------------------------

    def _error(self, failure: BaseException, complete: Callable[[RowMergeError], object]) -> BaseException:
        """Return the error to raise in place of a failure: one that says what is known of the change."""
        changed = self._changed()
        if isinstance(failure, KeyboardInterrupt):
            late = interrupted_too_late(self.result) if changed is True and self.result is not None else None
            interrupted = late or interruption(failure, "run", changed=changed, look=_LOOK)
            assert interrupted is not None
            error: RowMergeError = interrupted
        elif isinstance(failure, RowMergeError):
            error = failure
        elif changed is False or not isinstance(failure, Exception):
            return failure
        else:
            words = "The change is there, and what came after it failed" if changed else "The outcome is unknown"
            error = ExecutionError(f"{words}: {error_text(failure)}", step="commit", changed=changed)
        if changed is not False:
            error.changed = changed if error.changed is False else error.changed
            error.hint = error.hint or (_DO_NOT_REPEAT if changed else f"{_LOOK}.")
            error.result = error.result or self.result
        complete(error)
        return error


_current: ContextVar[StatementGuard | None] = ContextVar("rowmerge_nb_guard", default=None)


def guarded(work: Callable[[], T], complete: Callable[[RowMergeError], object] = lambda _: None) -> T:
    """Run a statement under the guard of its cell, or under one of its own; see `StatementGuard.run`.

    >>> guarded(lambda: 7)
    7
    """
    guard = _current.get()
    if guard is not None and guard.claim():
        return guard.part(work, complete)
    return StatementGuard().run(work, complete)


def no_return(changed: Callable[[], bool | None]) -> None:
    """Put off signals until the guard of the running statement ends; see `StatementGuard.no_return`."""
    guard = _current.get()
    if guard is not None:
        guard.no_return(changed)


def note_result(result: object) -> None:
    """Hand the guard of the running statement its result, so that an error that comes later has it."""
    guard = _current.get()
    if guard is not None:
        guard.result = result


def at_once(change: Callable[[], T]) -> T:
    """Make a change of this process that lasts from then on, as that of a session's property.

    >>> at_once(lambda: 7)
    7
    """
    answers: list[T] = []
    no_return(lambda: bool(answers))
    answers.append(change())
    return answers[0]


@contextmanager
def interrupts_let_in() -> Iterator[None]:
    """Let an interrupt in where one is put off: into work that may take long, and says itself what became of the change."""
    guard = _current.get()
    if guard is None:
        yield
        return
    with guard.let_in():
        yield


@contextmanager
def interrupts_reported(report: Callable[[KeyboardInterrupt], RowMergeError]) -> Iterator[None]:
    """Raise an error of this package for an interrupt of work that is no statement.

    Args:
        report: builds the error.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise report(interrupt) from interrupt
