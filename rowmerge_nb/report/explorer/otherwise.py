"""The same rows under other options, within the explorer's state: what differs from the run, and nothing else.

The front end lays a difference over the state of the run. It computes nothing of the statement.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.words import join, number, plural
from rowmerge_nb.report.explorer.explorer_state import explorer_state
from rowmerge_nb.report.explorer.trial import differing_pages, differing_steps
from rowmerge_nb.report.model.places import NOT_SHOWN
from rowmerge_nb.report.model.spi_calls import begun_with, finished_with, stored_with
from rowmerge_nb.trace.words import operation_letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from rowmerge_nb.trace.trace import Trace
    from rowmerge_nb.trace.what_if_answers import Variants

BETWEEN: Final = "|"
"""Stands between the values of the options in the name of a difference."""
_CALLS: Final = "No call was made. These would be: those of the run"
_UNKNOWN: Final = "Not all of them are known: for some rows a function of the connector's decides on the writer."
_FRAGMENTS: Final = (
    "What is in the fragments only a run can tell: in a notebook result.what_if(...) makes one on a copy of the target."
)
_NOT_KNOWN: Final = "fragments, how many only a run can tell"
_NO_VERSION: Final = "a version that only a run can tell"
_ONLY_RUN: Final = "how many there would be, and what is in them, only a run can tell."
_FINISH: Final = f"Not run. The connector would get fragments that name the rows which the sinks would have stored; {_ONLY_RUN}"
_OF_ROW: Final = "Not run. Fragments of {} would name it."
_COMMIT: Final = "Not run. All of it would become visible at once."
_ROLLBACK: Final = "Not run. As the run was a rehearsal, all of it would be rolled back."
_SAME_TABLE: Final = (
    " The table would have the same rows as after the run: only the form differs in which its changes reach the connector."
)
_HEADS: Final = {
    (False, True): "With these options, not run; the same rows change: ",
    (False, False): "With these options, not run: ",
    (True, False): "With these options, not run, it would fail: ",
}
"""What stands before the outcome, in place of what the run has there: by whether it fails, and whether the table has the same rows."""


def otherwise(run: Mapping[str, Any], variants: Variants, untouched: pa.Table | None = None) -> dict[str, Any]:
    """Return what other options make of the rows of a run.

    Args:
        run: the state of the run, see `explorer_state`.
        variants: what would have come of its rows.
        untouched: as `explorer_state` has it for the run.

    Returns:
        ``choices``, the options that can be set otherwise with their values; ``changes``, by the values with `BETWEEN` between them: the name
        of the state from which it differs least, ``""`` for that of the run, and the `difference`; ``why``, a sentence about options that
        cannot be set otherwise.
    """
    own = tuple(str(run["options"][name]) for name in variants.choices)
    states: dict[tuple[str, ...], Mapping[str, Any]] = {own: run}
    changes: dict[str, Any] = {}
    # Those that differ in fewer options come first: others are told by what they have beyond them.
    for values in sorted(variants.traces, key=lambda values: _distance(values, own)):
        nearest = _nearest(values, own)
        states[values] = _state(variants.traces[values], run, untouched)
        name = "" if nearest == own else BETWEEN.join(nearest)
        changes[BETWEEN.join(values)] = [name, difference(states[nearest], states[values])]
    return {"choices": {name: list(values) for name, values in variants.choices.items()}, "changes": changes, "why": variants.why}


def _distance(values: tuple[str, ...], own: tuple[str, ...]) -> int:
    return sum(value != was for value, was in zip(values, own, strict=True))


def _nearest(values: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """Take the last option back that is not as it was; the rule for repeated matches, which comes last, seldom makes a difference."""
    at = max(index for index, (value, was) in enumerate(zip(values, own, strict=True)) if value != was)
    return (*values[:at], own[at], *values[at + 1 :])


def _state(trace: Trace, run: Mapping[str, Any], untouched: pa.Table | None) -> dict[str, Any]:
    """Return the state of what was derived: what only a run could tell is said not to be known."""
    options = {"paradigm": trace.paradigm, "era": trace.era, "duplicates": str(trace.duplicates)}
    state = _derived(trace, run, untouched)
    failed = trace.state == StatementState.FAILED
    differs = [state["steps"][-1]["key"]] if failed else differing_steps(state, run)
    trial = {"tag": "not run", "says": _says(state, run, differs), "moved": [], "differs": differs}
    return {**state, "meta": [[_options(trace), ""]], "options": options, "trial": trial}


def _derived(trace: Trace, run: Mapping[str, Any], untouched: pa.Table | None) -> dict[str, Any]:
    state = explorer_state(trace, untouched)
    calls = list(_calls(trace, run))
    known = trace.state == StatementState.FAILED
    same = not known and _left(state) == _left(run)
    ended = _COMMIT if trace.committed else _ROLLBACK
    says = {"sinks": _handed(trace), "finish": _FINISH, "commit": ended + (_SAME_TABLE if same and trace.committed else "")}
    return {
        **state,
        "steps": [step if known or step["key"] not in says else {**step, "says": says[step["key"]]} for step in state["steps"]],
        "absent": [],
        "rows": [
            {**row, "finish": [row["finish"][0], _OF_ROW.format(row["finish"][0])]} if row["becomes"] else row
            for row in state["rows"]
        ],
        "tag": _HEADS[known, same],
        "writers": [{**writer, "stored": ""} for writer in state["writers"]],
        "calls": calls,
        "no_calls": _said_of_calls(calls, run),
    }


def _left(state: Mapping[str, Any]) -> list[Any]:
    """Return what is left of the rows in the table."""
    return [(row["fate"], row["made"]) for row in state["rows"]]


def _said_of_calls(calls: list[dict[str, Any]], run: Mapping[str, Any]) -> str:
    """Return what is otherwise among the calls than in the run."""
    if not calls:
        return f"No call was made. {_UNKNOWN} {_FRAGMENTS}"
    old, new = _by_call(run["calls"]), _by_call(calls)
    answered = any(new[key] != told for key, told in old.items() if key in new and key[0] == "get_row_change_paradigm")
    stored = any(new[key] != told for key, told in old.items() if key in new and key[0] == "store_merged_rows")
    differences = [
        *(["get_row_change_paradigm answers otherwise"] if answered else []),
        *(["sinks get other rows"] if stored else []),
        *(["other writers have sinks"] if old.keys() != new.keys() else []),
    ]
    return f"{_CALLS}{f', but that {join(differences)}' if differences else ''}. {_FRAGMENTS}"


def _by_call(calls: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[str, str]]:
    return {(call["method"], call["where"]): (call["given"], call["gave"]) for call in calls}


def _calls(trace: Trace, run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the calls that there would be: the coordinator's of the run, and between them those of each writer that gets rows.

    Nothing where a row's writer is not known, and where the run gave a sink its rows in several pages: how they would be cut, is not known.
    """
    of_sinks = [call for call in run["calls"] if call["writer"] is not None]
    methods = list(dict.fromkeys(call["method"] for call in of_sinks))
    pages = Counter((call["writer"], call["method"]) for call in of_sinks)
    unknown = trace.pages is None or any(writer < 0 for writer in trace.pages.writers)
    if unknown or not of_sinks or max(pages.values()) > 1 or any(call["error"] for call in run["calls"]):
        return
    first = min(call["order"] for call in of_sinks)
    own = [call for call in run["calls"] if call["writer"] is None]
    words = {call["method"]: call for call in of_sinks}
    told = {
        "get_row_change_paradigm": {"gave": trace.paradigm},
        # What it is told of updated columns is a question of the era.
        "begin_merge": {"given": begun_with(trace)},
        "finish": {"gave": _NOT_KNOWN},
        "finish_merge": {"given": finished_with("finish_merge", _NOT_KNOWN)},
    }
    if trace.version_after is not None:
        told["commit"] = {"gave": _NO_VERSION}
    made = [call for call in own if call["order"] < first]
    for writer in trace.writers:
        mine = {"writer": writer.writer, "where": f"writer {writer.writer}"}
        stored = {"store_merged_rows": {"given": stored_with(operation_letters(writer.rows))}}
        made += [{**words[method], **mine, **stored.get(method, {})} for method in methods]
    made += [call for call in own if call["order"] > first]
    for order, call in enumerate(made, start=1):
        yield {**call, **told.get(call["method"], {}), "order": order}


def _options(trace: Trace) -> str:
    rule = f", repeated matches by the rule {trace.duplicates}" if trace.kind == "MERGE" else ""
    return f"{trace.paradigm}, pages of era {trace.era}{rule}."


def _handed(trace: Trace) -> str:
    """Return what the writers would be handed."""
    rows = len(trace.pages.writers) if trace.pages is not None else 0
    told = f"Not run: {plural(len(trace.writers), 'writer')} would be handed {plural(rows, 'row')}"
    unknown = sum(writer < 0 for writer in trace.pages.writers) if trace.pages is not None else 0
    if not unknown:
        return f"{told}."
    return f"Not run. Of {plural(rows, 'row')} the writers of {number(unknown)} are not known: {NOT_SHOWN}."


_MARKS: Final = "What differs is framed there, and rows that only the run has are struck out."


def _says(state: Mapping[str, Any], run: Mapping[str, Any], differs: list[str]) -> str:
    """Return what is otherwise than in the run."""
    if state["failed"]:
        return "The statement would fail at the check for repeated matches. In the run it did not."
    if not differs:
        return "Every page is as in the run."
    pages = differing_pages(state, run)
    told = [step["name"] for step in state["steps"] if step["key"] in differs and step["key"] not in pages]
    parts = [
        *([f"the pages of {join([step['name'] for step in state['steps'] if step['key'] in pages])}"] if pages else []),
        *([f"what stands beside {join(told)}"] if told else []),
    ]
    said = f"Other than in the run, and marked \N{NOT EQUAL TO}: {', and '.join(parts)}."
    if not pages:
        return f"{said} Every page is as in the run."
    rows, before = len(state["after"]["rows"]), len(run["after"]["rows"])
    # Of many rows not all are here to be counted.
    counted = (
        "" if rows == before or run["sample"] else f" transform_page gives {plural(rows, 'row')}, in the run {number(before)}."
    )
    return f"{said}{counted} {_MARKS}"


def difference(old: Any, new: Any) -> Any:
    """Return what makes of one JSON value another one; None if they are the same.

    Returns:
        ``["=", new]`` in place of the whole, ``["{", {name: difference}, [names that are gone]]`` within an object,
        ``["[", {position: difference}, length]`` within a list.

    >>> difference({"a": [1, 2, 3], "b": 1}, {"a": [1, 5], "b": 1})
    ['{', {'a': ['[', {'1': ['=', 5]}, 2]}, []]
    """
    if isinstance(old, dict) and isinstance(new, dict):
        named = {name: difference(old.get(name, _NOTHING), value) for name, value in new.items()}
        gone = [name for name in old if name not in new]
        found = {name: one for name, one in named.items() if one is not None}
        return ["{", found, gone] if found or gone else None
    if isinstance(old, list) and isinstance(new, list):
        pairs = ((old[at] if at < len(old) else _NOTHING, value) for at, value in enumerate(new))
        found = {str(at): one for at, pair in enumerate(pairs) if (one := difference(*pair)) is not None}
        return ["[", found, len(new)] if found or len(old) != len(new) else None
    return None if type(old) is type(new) and old == new else ["=", new]


_NOTHING: Final = object()
"""Stands for what is not there: nothing is equal to it."""
