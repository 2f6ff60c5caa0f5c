"""The handling of SIGINT during statements.

A commit cannot be undone, and a statement reported as failed is run again. So every statement has a
point of no return: the connector's call that makes its change last.

**Before it**, an interrupt ends the statement with a rollback, and `StatementInterrupted` reports
that nothing was changed.

- During parsing and name resolution, `interruptible` converts the interrupt.
- `run_cancellable` cancels Spark's work and waits for its end, however many interrupts follow:
  tasks that still write during a rollback would leave files behind.
- Short calls of Spark on the driver finish first (`interrupts_afterwards`), because a half-read
  connection to Java is unusable. Code that must undo something raises the deferred interrupt
  afterwards (`raise_put_off`).
- Elsewhere the statement's run catches the interrupt like any failure, and `interruption` builds
  the error. `to_its_end` runs the rollback, which a second interrupt must not end.

**From it on**, signals are deferred until the statement's `StatementGuard` ends. `guarded` creates
the guard, or uses that of the cell. Every call that makes a change last calls `no_return` first,
through `StatementTransaction.lasting` or `at_once`. A deferred interrupt is raised with the complete
result (`interrupted_too_late`). If the connector permits it, `in_thread` makes the call: a further
interrupt, `PATIENCE_SECONDS` after the first, ends the wait with `WaitEndedError`, and the error
reports an unknown outcome. Long work after the commit remains interruptible (`interrupts_let_in`).

**Every error** leaves a guard with the known state of the change; `note_result` passes the result to
the guard. The guard passes the first interrupt and defers all others, which would otherwise end a
rollback or a report.

Shorter sections defer interrupts by `interrupts_put_off`. Work outside of statements uses
`interrupts_reported`, or `run_without_leftovers` if it leaves nothing behind. Signals reach only
the main thread, so other threads need none of this. A connector whose driver loses interrupts has
its own means (`rowmerge_nb.connectors.jdbc.interrupts`), and raises KeyboardInterrupt.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, Generic, NoReturn, TypeVar

from rowmerge_nb.base.errors import ExecutionError, RowMergeError, StatementInterrupted, error_text
from rowmerge_nb.base.front_end import orphans_command

T = TypeVar("T")

PATIENCE_SECONDS: Final = 10.0
"""The time after the first interrupt from which another one ends the wait."""


class WaitEndedError(KeyboardInterrupt):
    """The user ended the wait; the call continues."""


class Interrupts:
    def __init__(self) -> None:
        self.came = False
        self._first = 0.0

    def note(self, *_: Any) -> None:
        """Record an interrupt; a signal handler."""
        now = time.monotonic()
        if self.came and now - self._first >= PATIENCE_SECONDS:
            raise WaitEndedError
        if not self.came:
            self.came, self._first = True, now


# -- from the point of no return on


@contextmanager
def interrupts_put_off() -> Iterator[Interrupts]:
    """Defer SIGINT.

    A foreign handler is called at the end; unless it raises, the interrupt counts as handled.
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
            # Still deferred: PySpark's own handler calls Spark, which must not be interrupted
            # either.
            try:
                before(signal.SIGINT, None)
            except KeyboardInterrupt:
                return
            interrupts.came = False
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts_afterwards() -> Iterator[None]:
    """Defer an interrupt to the end of a short call, and raise it then."""
    with interrupts_put_off() as interrupts:
        yield
    if interrupts.came:
        raise KeyboardInterrupt


def raise_put_off() -> NoReturn:
    raise KeyboardInterrupt


def in_thread(call: Callable[[], T]) -> T:
    """Make a call in a thread: the wait can be interrupted, the call cannot."""
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


# -- before the point of no return


@contextmanager
def interruptible(step: str) -> Iterator[None]:
    """Convert an interrupt to an error while nothing has begun.

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
    find_loss: Callable[[], RowMergeError | None] = lambda: None,
) -> T:
    """Run work in a thread, so that an interrupt reaches the waiting caller at once and cancels the
    work.

    `cancel` is called repeatedly, because work that is about to start cannot be cancelled yet.
    `find_loss` is called too, and returns the error that ends the work, or None.

    Raises:
        StatementInterrupted: an interrupt came, and the work has ended or was not begun.
        RowMergeError: the error of `find_loss`, after the end of the work.
    """
    action = _Action(work)
    loss: RowMergeError | None = None
    try:
        action.start()
        while not action.end_event.is_set():
            # PySpark's own handler calls Spark, which a second interrupt must not break.
            with interrupts_afterwards():
                action.end_event.wait(0.1)
            if loss is None and not action.end_event.is_set():
                loss = find_loss()
            if loss is not None or cancelled.is_set():
                cancel()
    except KeyboardInterrupt as interrupt:
        # An interrupt during the start must not leave the thread running.
        action.give_up()
        # After a second interrupt, the rollback must still wait for the work.
        with interrupts_put_off():
            while not action.given_up and not action.end_event.is_set():
                cancel()
                action.end_event.wait(0.1)
        raise StatementInterrupted(
            f"The statement was interrupted; {ended_work}", step="run"
        ) from interrupt
    # Work that has ended before it was cancelled explains the loss better.
    if loss is not None and not action.answer:
        raise loss
    if action.failures:
        raise action.failures[0]
    return action.answer[0]


class _Action(Generic[T]):
    """A thread that works once it is started, unless it is given up before.

    Before Python 3.13, a thread whose ``join`` was interrupted counts as ended, so an event says
    when the work ends.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self.answer: list[T] = []
        self.failures: list[BaseException] = []
        self.end_event = threading.Event()
        self.given_up = False
        self._work = work
        self._start_event = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rowmerge_nb-action", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._start_event.set()

    def give_up(self) -> None:
        self.given_up = not self._start_event.is_set()
        self._start_event.set()

    def _run(self) -> None:
        self._start_event.wait()
        if self.given_up:
            return
        try:
            self.answer.append(self._work())
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            self.failures.append(error)
        finally:
            self.end_event.set()


def to_its_end(call: Callable[[], object]) -> bool:
    """Make a call with interrupts deferred; return False if a further interrupt ended it."""
    try:
        with interrupts_put_off():
            call()
    except KeyboardInterrupt:
        return False
    return True


# -- errors of interrupts


def interruption(
    failure: BaseException, step: str, *, changed: bool | None = False, look: str = ""
) -> StatementInterrupted | None:
    """Return the error of an interrupted statement; None for another failure.

    `changed` is None if the outcome is unknown; then `look` begins the hint.
    """
    if not isinstance(failure, KeyboardInterrupt):
        return None
    if changed is False:
        return StatementInterrupted("The statement was interrupted", step=step)
    if changed is None:
        cause = " by a further interrupt" if isinstance(failure, WaitEndedError) else ""
        return StatementInterrupted(
            f"The outcome is unknown: the wait for the commit was ended{cause}, and"
            " the change may be committed, now or soon",
            step=step,
            changed=None,
            hint=(f"{look}; the files that it wrote remain until {orphans_command()} lists it."),
        )
    return StatementInterrupted(
        "The statement was interrupted while its result was being reported; its"
        " change was committed",
        step=step,
        changed=True,
        hint="Do not run it again.",
    )


def interrupted_too_late(result: object) -> StatementInterrupted:
    """Return the error of an interrupt after the point of no return, with the complete result."""
    error = StatementInterrupted(
        "The interrupt came while the change was being committed; the change was committed",
        step="commit",
        changed=True,
        hint="Do not run the statement again.",
    )
    error.result = result
    return error


def run_without_leftovers(run: Callable[[], T], what: str, hint: str) -> T:
    """Run work that is not a statement and leaves nothing behind after an interrupt; `what` begins
    the message.
    """
    try:
        return run()
    except KeyboardInterrupt:
        raise StatementInterrupted(
            f"{what} was interrupted; nothing of it remains", hint=hint
        ) from None


# -- the guard of a statement

_LOOK: Final = "Check the table before you run the statement again"
_DO_NOT_REPEAT: Final = "Do not run it again."
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the process: after the point of no return, they wait until the change is
reported.
"""


def _nothing_changed() -> bool | None:
    return False


class StatementGuard:
    """Defers signals while a change may be in the store, and adds the state of the change to every
    error.

    Args:
        free: the next statement may claim the guard: that of a cell, which also covers its report.
        outlasts: defer SIGINT until another handler is installed, as a kernel does at the end of a
            cell.
    """

    def __init__(
        self,
        *,
        free: bool = False,
        outlasts: bool = False,
        result: Any = None,
        changed: bool = False,
    ) -> None:
        self.result = result
        self.came = False
        self._free = free
        self._outlasts = outlasts
        self._holding = False
        self._first: float | None = None
        self._changed: Callable[[], bool | None] = lambda: changed
        self._before: dict[int, Any] = {}
        self._ending: list[int] = []

    # -- for the caller

    def run(
        self, work: Callable[[], T], complete: Callable[[RowMergeError], object] = lambda _: None
    ) -> T:
        """Run a statement; errors report the state of its change."""
        token, error = _current.set(self), None
        try:
            try:
                self._install(signal.SIGINT)
                answer = self.part(work, complete)
            finally:
                _current.reset(token)
                self.end()
        except KeyboardInterrupt as interrupt:
            # It came while the handlers were restored; further ones are deferred.
            self.end()
            error = self._error(interrupt, complete)
        if error is not None:
            raise error
        return answer

    def part(
        self, work: Callable[[], T], complete: Callable[[RowMergeError], object] = lambda _: None
    ) -> T:
        """Run a part of the guarded work like `run`, without restoring signal handlers."""
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
        if self.came:
            raise KeyboardInterrupt

    def hold(self) -> None:
        self._holding = True

    def next_statement(self) -> None:
        """Reset the guard for the next statement of a cell; raise a deferred signal."""
        self._restore(_ENDING)
        self.result, self._changed, self._free = None, _nothing_changed, True
        self._first, self._holding = None, False

    def end(self) -> None:
        """Restore the signal handlers; raise a deferred signal."""
        # An interrupt between two steps would leave our handler behind.
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

    # -- for the statement

    def claim(self) -> bool:
        """Claim the guard for a statement; return False if another one has it."""
        was_free, self._free = self._free, False
        return was_free

    def no_return(self, changed: Callable[[], bool | None]) -> None:
        """Defer signals from now on; `changed` returns whether the change is stored, or None if
        unknown.
        """
        self._holding, self._changed = True, changed
        for number in _ENDING:
            self._install(number)

    @contextmanager
    def let_in(self) -> Iterator[None]:
        """Permit one interrupt, including a deferred one."""
        before, self._holding = self._holding, False
        try:
            self.check()
            yield
        finally:
            # The caller reports the interrupt, so it is not raised again.
            self._holding, self.came = before, False

    # -- signals

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
        """Call the previous handler; defer the next interrupt, which must not end the cleanup of
        this one.
        """
        self._holding, self._first = True, time.monotonic()
        try:
            self._before[signal.SIGINT](signal.SIGINT, frame)
        except KeyboardInterrupt:
            raise
        except Exception as failure:
            # PySpark's handler calls Java, which may be gone.
            raise KeyboardInterrupt from failure
        self._holding, self._first = False, None

    def _report_end(self, number: int) -> None:
        words = {
            True: "its change is there",
            None: "whether its change was committed is unknown",
            False: "nothing was changed",
        }
        name = signal.Signals(number).name
        with suppress(Exception):
            sys.stderr.write(
                f"rowmerge_nb: {name} came while a statement was being ended;"
                f" {words[self._changed()]}.\n"
            )
            sys.stderr.flush()

    # -- errors

    def _error(
        self, failure: BaseException, complete: Callable[[RowMergeError], object]
    ) -> BaseException:
        changed = self._changed()
        if isinstance(failure, KeyboardInterrupt):
            late = (
                interrupted_too_late(self.result)
                if changed is True and self.result is not None
                else None
            )
            interrupted = late or interruption(failure, "run", changed=changed, look=_LOOK)
            assert interrupted is not None
            error: RowMergeError = interrupted
        elif isinstance(failure, RowMergeError):
            error = failure
        elif changed is False or not isinstance(failure, Exception):
            return failure
        else:
            words = (
                "The change was committed, but a later step failed"
                if changed
                else "The outcome is unknown"
            )
            error = ExecutionError(
                f"{words}: {error_text(failure)}", step="commit", changed=changed
            )
        if changed is not False:
            error.changed = changed if error.changed is False else error.changed
            error.hint = error.hint or (_DO_NOT_REPEAT if changed else f"{_LOOK}.")
            error.result = self.result if error.result is None else error.result
        complete(error)
        return error


_current: ContextVar[StatementGuard | None] = ContextVar("rowmerge_nb_guard", default=None)


def guarded(
    work: Callable[[], T], complete: Callable[[RowMergeError], object] = lambda _: None
) -> T:
    """Run a statement under the cell's guard or a new one; see `StatementGuard.run`."""
    guard = _current.get()
    if guard is not None and guard.claim():
        return guard.part(work, complete)
    return StatementGuard().run(work, complete)


def no_return(changed: Callable[[], bool | None]) -> None:
    """Defer signals until the current guard ends; see `StatementGuard.no_return`."""
    guard = _current.get()
    if guard is not None:
        guard.no_return(changed)


def note_result(result: object) -> None:
    """Pass the result to the current guard, for later errors."""
    guard = _current.get()
    if guard is not None:
        guard.result = result


def at_once(change: Callable[[], T]) -> T:
    """Make a lasting change of this process, such as a session property."""
    answers: list[T] = []
    no_return(lambda: bool(answers))
    answers.append(change())
    return answers[0]


@contextmanager
def interrupts_let_in() -> Iterator[None]:
    """Permit interrupts during long work that reports the state of the change itself."""
    guard = _current.get()
    if guard is None:
        yield
        return
    with guard.let_in():
        yield


@contextmanager
def interrupts_reported(report: Callable[[KeyboardInterrupt], RowMergeError]) -> Iterator[None]:
    """Convert an interrupt to the error that `report` builds, outside of statements."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise report(interrupt) from interrupt
