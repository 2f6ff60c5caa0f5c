"""The option ``fault``: a fault of a statement as it is written, ``store_merged_rows:2:after:kill``."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.errors import RowMergeError, checked
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.tasks.task_faults import Fault, InjectedFault

if TYPE_CHECKING:
    from collections.abc import Iterator

ACTIONS: Final = ("raise", "kill", "delay", "twice")
PLACES: Final = ("before", "after")
DELAY: Final = 2.0
"""So many seconds a call is delayed where no number is given."""
LONGEST: Final = 3600.0
GRAMMAR: Final = "STEP[:CALL][:before|after][:raise|kill|delay|delay=SECONDS|twice]"
_UNCOUNTED: Final = frozenset(
    {"close", "get_procedures", "get_table_procedures", "get_table_properties", "orphans", "remove_orphans"}
)
"""Methods of a connector that no statement's work depends on; `FaultyConnector` passes them through."""


@cache
def steps() -> dict[str, bool]:
    """Return the calls of the contract by name, each with whether a task makes it.

    >>> steps()["store_merged_rows"], steps()["commit"]
    (True, False)
    """
    from rowmerge_nb.spi import connector, layout, merge_sink, metadata, page_sink, page_source, updatable

    driver = (connector.Connector, metadata.ConnectorMetadata, page_source.ConnectorSplitManager)
    tasks = (
        layout.BucketFunction,
        merge_sink.ConnectorMergeSink,
        page_sink.ConnectorPageSink,
        page_sink.ConnectorPageSinkProvider,
        page_source.ConnectorPageSourceProvider,
        updatable.UpdatablePageSource,
    )
    found = {name: False for kind in (*driver, layout.ConnectorNodePartitioningProvider) for name in _methods(kind)}
    named = {name: True for kind in tasks for name in _methods(kind)}
    return {name: in_task for name, in_task in {**found, **named}.items() if name not in _UNCOUNTED - named.keys()}


def _methods(kind: type) -> Iterator[str]:
    return (name for base in kind.__mro__ for name, value in vars(base).items() if callable(value) and not name.startswith("_"))


def fault_of(value: Any) -> Fault:
    """Read a fault.

    Args:
        value: its text: the step, and in this order, each of them or none: which of its calls (1), ``before`` (the default) or ``after`` its
            work, and what happens: ``raise`` (the default), ``kill`` the worker, ``delay`` for 2 seconds or ``delay=SECONDS``, or
            ``twice``. Or a `Fault`, as it is.

    Raises:
        RowMergeError: INVALID_ARGUMENTS, with the nearest name or the grammar.

    >>> fault_of("store_merged_rows:2:after").what
    'call 2 of store_merged_rows raised an error after its work'
    >>> fault_of("stor_merged_rows")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: The contract has no step 'stor_merged_rows'. Did you mean 'store_merged_rows'?
    """
    form = f"{GRAMMAR}, as 'store_merged_rows:2:after'"
    if isinstance(value, Fault):
        _known_step(value.step)
        return value
    text: str = checked(value, "fault", lambda given: isinstance(given, str) and bool(given.strip()), form).strip()
    step, *words = text.split(":")
    in_task = _known_step(step)
    call, place, action = 1, "", ""
    for word in words:
        if re.fullmatch(r"[0-9]{1,9}", word) and word is words[0]:
            call = int(word)
            if not call:
                _refuse(f"Calls are counted from 1, and '{text}' names call 0")
        elif word in PLACES and not (place or action):
            place = word
        elif (word in ACTIONS or word.startswith("delay=")) and not action:
            action = word
        else:
            _refuse(f"'{word}' is not possible there in the fault '{text}'", did_you_mean(word, (*PLACES, *ACTIONS)))
    if action == "twice" and place:
        _refuse(f"'{place}' and 'twice' do not go together in the fault '{text}': the call is made twice as a whole")
    if action == "kill" and not in_task:
        _refuse(
            f"{step} is called on the driver, which is not killed",
            "Calls of page sources, sinks and their providers are made in workers, as store_merged_rows.",
        )
    name = action.partition("=")[0]
    return Fault(
        step,
        call,
        after=place == "after",
        error=InjectedFault,
        message=f"injected by {text}",
        exits=name == "kill",
        seconds=_seconds(action, text) if name == "delay" else 0.0,
        twice=name == "twice",
        text=text,
    )


def _known_step(step: str) -> bool:
    """Return whether a step is called in tasks."""
    known = steps()
    if step not in known:
        _refuse(
            f"The contract has no step '{step}'",
            did_you_mean(step, known) or "As begin_merge, store_merged_rows, finish_merge, commit.",
        )
    return known[step]


def _seconds(action: str, text: str) -> float:
    _, equals, given = action.partition("=")
    try:
        seconds = float(given) if equals else DELAY
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST:
        _refuse(f"'{given}' is no number of seconds in the fault '{text}'", f"Write delay=0.5; the most is {LONGEST:g}.")
    return seconds


def _refuse(message: str, hint: str | None = None) -> NoReturn:
    raise RowMergeError(message, code="INVALID_ARGUMENTS", hint=hint or f"Write {GRAMMAR}, as store_merged_rows:2:after.")
