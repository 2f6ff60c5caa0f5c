"""The option ``fault``: the text of a fault, such as ``store_merged_rows:2:after:kill``."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.tasks.task_faults import Fault, InjectedFault

if TYPE_CHECKING:
    from collections.abc import Iterator

ACTIONS: Final = ("raise", "kill", "delay", "twice")
MOMENTS: Final = ("before", "after")
DELAY: Final = 2.0
"""The default delay in seconds."""
LONGEST: Final = 3600.0
GRAMMAR: Final = "STEP[:CALL][:before|after][:raise|kill|delay|delay=SECONDS|twice]"
_UNCOUNTED: Final = frozenset(
    {
        "close",
        "get_procedures",
        "get_table_procedures",
        "get_table_properties",
        "orphans",
        "remove_orphans",
    }
)
"""Methods of a connector that no statement depends on; `FaultyConnector` passes them through."""


@cache
def steps() -> dict[str, bool]:
    """Return the calls of the contract by name, each with whether a task makes it."""
    from rowmerge_nb.spi import (
        connector,
        layout,
        merge_sink,
        metadata,
        page_sink,
        page_source,
        updatable,
    )

    driver = (connector.Connector, metadata.ConnectorMetadata, page_source.ConnectorSplitManager)
    tasks = (
        layout.BucketFunction,
        merge_sink.ConnectorMergeSink,
        page_sink.ConnectorPageSink,
        page_sink.ConnectorPageSinkProvider,
        page_source.ConnectorPageSourceProvider,
        updatable.UpdatablePageSource,
    )
    driver_steps = {
        name: False
        for interface in (*driver, layout.ConnectorNodePartitioningProvider)
        for name in _methods(interface)
    }
    task_steps = {name: True for interface in tasks for name in _methods(interface)}
    return {
        name: in_task
        for name, in_task in {**driver_steps, **task_steps}.items()
        if name not in _UNCOUNTED - task_steps.keys()
    }


def _methods(interface: type) -> Iterator[str]:
    return (
        name
        for base in interface.__mro__
        for name, value in vars(base).items()
        if callable(value) and not name.startswith("_")
    )


def fault_of(value: Any) -> Fault:
    """Parse the text of a fault, in the form of `GRAMMAR`; a `Fault` is returned unchanged.

    By default it raises an error before the first call of the step. ``kill`` ends the worker,
    ``delay`` waits for 2 seconds, and ``twice`` makes the call twice.
    """
    form = f"{GRAMMAR}, as 'store_merged_rows:2:after'"
    if isinstance(value, Fault):
        _is_task_step(value.step)
        return value
    text: str = checked(
        value, "fault", lambda value: isinstance(value, str) and bool(value.strip()), form
    ).strip()
    step, *words = text.split(":")
    in_task = _is_task_step(step)
    call, moment, action = 1, "", ""
    for word in words:
        if re.fullmatch(r"[0-9]{1,9}", word) and word is words[0]:
            call = int(word)
            if not call:
                _refuse(f"Calls are counted from 1, and '{text}' names call 0")
        elif word in MOMENTS and not (moment or action):
            moment = word
        elif (word in ACTIONS or word.startswith("delay=")) and not action:
            action = word
        else:
            _refuse(
                f"'{word}' is not possible there in the fault '{text}'",
                did_you_mean(word, (*MOMENTS, *ACTIONS)),
            )
    if action == "twice" and moment:
        _refuse(
            f"'{moment}' and 'twice' cannot be combined in the fault '{text}': the"
            " whole call is made twice"
        )
    if action == "kill" and not in_task:
        _refuse(
            f"{step} is called on the driver, which is not killed",
            "Calls of page sources, sinks and their providers are made in workers, as"
            " store_merged_rows.",
        )
    name = action.partition("=")[0]
    return Fault(
        step,
        call,
        after=moment == "after",
        error=InjectedFault,
        message=f"injected by {text}",
        exits=name == "kill",
        seconds=_seconds(action, text) if name == "delay" else 0.0,
        twice=name == "twice",
        text=text,
    )


def _is_task_step(step: str) -> bool:
    names = steps()
    if step not in names:
        _refuse(
            f"There is no contract step '{step}'",
            did_you_mean(step, names) or "As begin_merge, store_merged_rows, finish_merge, commit.",
        )
    return names[step]


def _seconds(action: str, text: str) -> float:
    _, equals, number = action.partition("=")
    try:
        seconds = float(number) if equals else DELAY
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST:
        _refuse(
            f"'{number}' is not a number of seconds in the fault '{text}'",
            f"Write delay=0.5; the most is {LONGEST:g}.",
        )
    return seconds


def _refuse(message: str, hint: str | None = None) -> NoReturn:
    raise RowMergeError.invalid(
        message,
        hint=hint or f"Write {GRAMMAR}, as store_merged_rows:2:after.",
    )
