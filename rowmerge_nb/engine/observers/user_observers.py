"""Registering the observers of users, and calling them: whatever they raise becomes a notice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.observers.observer import ObservedStatement, Observer
from rowmerge_nb.engine.statements.naming import kind_of, target_name
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.sql.analyzer.analysis import Analysis, CallAnalysis, Notice, RowChangeAnalysis
from rowmerge_nb.trace.notice_record import NoticeRecord

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.statements.action import Action
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.trace.trace import Trace

HOOKS: Final = tuple(
    name for name, value in vars(Observer).items() if not name.startswith("_") and callable(value)
)
"""The names of the hooks."""
_PREFIXES: Final = ("before_", "after_", "on_")
_hook: ContextVar[str] = ContextVar("hook", default="")


def refuse_in_hook() -> None:
    if _hook.get():
        raise RowMergeError.unsupported(
            f"An observer cannot run statements in its hook {_hook.get()}: the observed statement"
            " has not ended",
            hint="Store what you need in the observer, and run the statement afterwards.",
        )


@contextmanager
def _in_hook(name: str) -> Iterator[None]:
    token = _hook.set(name)
    try:
        yield
    finally:
        _hook.reset(token)


class ObserverRegistry:
    """The observers of one engine, in the order in which they were added.

    Threads may add and remove.
    """

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._lock = threading.Lock()
        self._observers: tuple[Observer, ...] = ()
        form = "a list of instances of subclasses of rowmerge_nb.Observer"
        for observer in checked(
            observers, "observers", lambda value: isinstance(value, list | tuple), form
        ):
            self.add(observer)

    def add(self, observer: Observer) -> None:
        checked(observer, "observer", Observer, "an instance of a subclass of rowmerge_nb.Observer")
        for name in dir(type(observer)):
            if (
                name.startswith(_PREFIXES)
                and name not in HOOKS
                and callable(getattr(type(observer), name))
            ):
                raise RowMergeError.invalid(
                    f"Observer '{_name_of(observer)}' has a method '{name}', but no"
                    " such hook exists",
                    hint=did_you_mean(name, HOOKS) or f"There are: {', '.join(HOOKS)}.",
                )
        with self._lock:
            if any(other is observer for other in self._observers):
                raise RowMergeError(
                    f"Observer '{_name_of(observer)}' is registered already",
                    code="ALREADY_EXISTS",
                    hint="Register another instance, or keep this one: it gets every"
                    " statement once.",
                )
            self._observers = (*self._observers, observer)

    def remove(self, observer: Observer) -> None:
        with self._lock:
            if not any(other is observer for other in self._observers):
                raise RowMergeError(
                    f"Observer '{_name_of(observer)}' is not registered",
                    code="NOT_FOUND",
                    hint="Pass the same instance.",
                )
            self._observers = tuple(other for other in self._observers if other is not observer)

    def of_run(self) -> RunObserver | None:
        return CalledObservers(self._observers) if self._observers else None


class CalledObservers(RunObserver):
    """Calls the observers of users in one run, until they fail."""

    def __init__(self, observers: tuple[Observer, ...]) -> None:
        self._observers = observers
        self._has_begun = False

    def before_begin(self, run: StatementRun) -> None:
        self._has_begun = True
        self._call(run, Observer.before_begin)

    def after_action(self, run: StatementRun, action: Action) -> None:
        self._call(run, Observer.after_action)

    def before_finish(self, run: StatementRun) -> None:
        self._call(run, Observer.before_finish)

    def at_end(self, run: StatementRun, result: Result | None) -> None:
        if not self._has_begun:
            return
        trace = None if result is None else result.trace
        hook = Observer.on_failure
        if trace is not None and trace.state is StatementState.FINISHED:
            hook = Observer.after_commit if trace.committed else Observer.after_rehearsal
        failures = self._failures(run, hook, trace)
        if failures and result is not None:
            result.trace = replace(
                result.trace, notices=(*result.trace.notices, *map(NoticeRecord, failures))
            )

    def _call(self, run: StatementRun, hook: Callable[[Observer, ObservedStatement], None]) -> None:
        run.transaction.notices += map(Notice, self._failures(run, hook))

    def _failures(
        self,
        run: StatementRun,
        hook: Callable[[Observer, ObservedStatement], None],
        trace: Trace | None = None,
    ) -> list[str]:
        """Call a hook of all observers, and return a sentence for each that failed; these are not
        called again.
        """
        failures = []
        name = hook.__name__
        for observer in self._observers:
            if getattr(type(observer), name) is hook and name not in vars(observer):
                continue
            try:
                with _in_hook(name):
                    getattr(observer, name)(_observed(run, trace))
            except (
                Exception,  # noqa: BLE001
                SystemExit,
            ) as error:
                self._observers = tuple(other for other in self._observers if other is not observer)
                failures.append(
                    f"Observer '{_name_of(observer)}' failed in {name} and gets no"
                    f" further calls for this statement: {error_text(error)}"
                )
        return failures


def _name_of(observer: Observer) -> str:
    name: Any = ""
    with suppress(Exception):
        name = observer.name
    return name if isinstance(name, str) and name else type(observer).__name__


def _observed(run: StatementRun, trace: Trace | None) -> ObservedStatement:
    analysis = run.analysis
    target = _table_of(analysis)
    return ObservedStatement(
        id=run.transaction.session.query_id,
        text=analysis.text,
        kind=kind_of(analysis),
        table=target,
        sources=tuple(
            dict.fromkeys(
                table.name
                for table in analysis.bindings
                if table.rows is None and table.name != target
            )
        ),
        connector=run.services.connector,
        is_rehearsal=run.options.rehearse,
        counts=_counts(run),
        seconds=dict(run.steps.seconds),
        trace=None if trace is None else _copied(trace),
    )


def _table_of(analysis: Analysis) -> tuple[str, ...]:
    name = None if isinstance(analysis, CallAnalysis) else target_name(analysis)
    return tuple(filter(None, name or ()))


def _counts(run: StatementRun) -> dict[str, int]:
    account = run.account
    if account is None:
        return {}
    if not isinstance(run.analysis, RowChangeAnalysis):
        return {"changed": account.row_count}
    return {"joined": account.joined, "matched": account.matched, "changed": account.row_count}


def _copied(trace: Trace) -> Trace:
    writers = tuple(replace(writer, rows=dict(writer.rows)) for writer in trace.writers)
    return replace(trace, rows=dict(trace.rows), seconds=dict(trace.seconds), writers=writers)
