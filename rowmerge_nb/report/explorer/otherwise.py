"""The rows of a run under other options, as differences from the explorer's state of the run.

The front end applies the differences; it computes nothing of the statement.
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
"""The separator of option values in the name of a difference."""
_CALLS: Final = "No call was made. The calls would be those of the run"
_UNKNOWN: Final = (
    "Not all of them are known: for some rows, a function of the connector selects the writer."
)
_FRAGMENTS: Final = (
    "Only a run shows the content of the fragments: in a notebook,"
    " result.what_if(...) runs the statement on a copy of the target."
)
_NOT_KNOWN: Final = "fragments; only a run shows how many"
_NO_VERSION: Final = "a version that only a run shows"
_ONLY_RUN: Final = "only a run shows how many there would be, and their content."
_FINISH: Final = (
    "Not run. The connector would get fragments that name the rows which the sinks would have"
    f" stored; {_ONLY_RUN}"
)
_OF_ROW: Final = "Not run. Fragments of {} would name it."
_COMMIT: Final = "Not run. All of it would become visible at once."
_ROLLBACK: Final = "Not run. As the run was a rehearsal, all of it would be rolled back."
_SAME_TABLE: Final = (
    " The table would have the same rows as after the run: only the form in which"
    " changes reach the connector differs."
)
_HEADS: Final = {
    (False, True): "With these options, not run; the same rows change: ",
    (False, False): "With these options, not run: ",
    (True, False): "With these options, not run, it would fail: ",
}
"""The start of the outcome, by whether it fails, and whether the table has the same rows."""


def otherwise(
    run: Mapping[str, Any], variants: Variants, untouched: pa.Table | None = None
) -> dict[str, Any]:
    """Return the results of other options for the rows of a run, whose state is ``run``.

    ``choices`` has the options with their values. ``changes`` maps values joined by `BETWEEN` to
    the name of the most similar state, ``""`` for the run, and the `difference` from it. ``why``
    explains options that cannot be changed.
    """
    own = tuple(str(run["options"][name]) for name in variants.choices)
    states: dict[tuple[str, ...], Mapping[str, Any]] = {own: run}
    changes: dict[str, Any] = {}
    # States with fewer changed options come first: others are described by their difference from
    # these.
    for values in sorted(variants.traces, key=lambda values: _distance(values, own)):
        nearest = _nearest(values, own)
        states[values] = _state(variants.traces[values], run, untouched)
        name = "" if nearest == own else BETWEEN.join(nearest)
        changes[BETWEEN.join(values)] = [name, difference(states[nearest], states[values])]
    return {
        "choices": {name: list(values) for name, values in variants.choices.items()},
        "changes": changes,
        "why": variants.why,
    }


def _distance(values: tuple[str, ...], own: tuple[str, ...]) -> int:
    return sum(value != was for value, was in zip(values, own, strict=True))


def _nearest(values: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values with the last changed option reset; the duplicate rule, which comes last,
    seldom makes a difference.
    """
    at = max(
        index for index, (value, was) in enumerate(zip(values, own, strict=True)) if value != was
    )
    return (*values[:at], own[at], *values[at + 1 :])


def _state(trace: Trace, run: Mapping[str, Any], untouched: pa.Table | None) -> dict[str, Any]:
    options = {
        "paradigm": trace.settings.paradigm,
        "era": trace.settings.era,
        "duplicates": str(trace.settings.duplicates),
    }
    state = _derived(trace, run, untouched)
    is_failed = trace.state == StatementState.FAILED
    differs = [state["steps"][-1]["key"]] if is_failed else differing_steps(state, run)
    trial = {"tag": "not run", "says": _says(state, run, differs), "moved": [], "differs": differs}
    return {**state, "meta": [[_options(trace), ""]], "options": options, "trial": trial}


def _derived(trace: Trace, run: Mapping[str, Any], untouched: pa.Table | None) -> dict[str, Any]:
    state = explorer_state(trace, untouched)
    calls = list(_calls(trace, run))
    is_failed = trace.state == StatementState.FAILED
    same = not is_failed and _resulting_rows(state) == _resulting_rows(run)
    commit_text = _COMMIT if trace.committed else _ROLLBACK
    says = {
        "sinks": _pages_sentence(trace),
        "finish": _FINISH,
        "commit": commit_text + (_SAME_TABLE if same and trace.committed else ""),
    }
    return {
        **state,
        "steps": [
            step if is_failed or step["key"] not in says else {**step, "says": says[step["key"]]}
            for step in state["steps"]
        ],
        "absent": [],
        "rows": [
            (
                {**row, "finish": [row["finish"][0], _OF_ROW.format(row["finish"][0])]}
                if row["becomes"]
                else row
            )
            for row in state["rows"]
        ],
        "tag": _HEADS[is_failed, same],
        "writers": [{**writer, "stored": ""} for writer in state["writers"]],
        "calls": calls,
        "no_calls": _calls_sentence(calls, run),
    }


def _resulting_rows(state: Mapping[str, Any]) -> list[Any]:
    return [(row["fate"], row["made"]) for row in state["rows"]]


def _calls_sentence(calls: list[dict[str, Any]], run: Mapping[str, Any]) -> str:
    if not calls:
        return f"No call was made. {_UNKNOWN} {_FRAGMENTS}"
    old, new = _by_call(run["calls"]), _by_call(calls)
    other_paradigm = any(
        new[key] != words
        for key, words in old.items()
        if key in new and key[0] == "get_row_change_paradigm"
    )
    other_rows = any(
        new[key] != words
        for key, words in old.items()
        if key in new and key[0] == "store_merged_rows"
    )
    differences = [
        *(["get_row_change_paradigm answers otherwise"] if other_paradigm else []),
        *(["sinks get other rows"] if other_rows else []),
        *(["other writers have sinks"] if old.keys() != new.keys() else []),
    ]
    return f"{_CALLS}{f', but that {join(differences)}' if differences else ''}. {_FRAGMENTS}"


def _by_call(calls: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[str, str]]:
    return {(call["method"], call["where"]): (call["given"], call["gave"]) for call in calls}


def _calls(trace: Trace, run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the expected calls: the coordinator's from the run, and between them those of each
    writer that gets rows.
    """
    of_sinks = [call for call in run["calls"] if call["writer"] is not None]
    methods = list(dict.fromkeys(call["method"] for call in of_sinks))
    pages = Counter((call["writer"], call["method"]) for call in of_sinks)
    sample = trace.samples.pages
    unknown = sample is None or any(writer < 0 for writer in sample.writers)
    if (
        unknown
        or not of_sinks
        or max(pages.values()) > 1
        or any(call["error"] for call in run["calls"])
    ):
        return
    first = min(call["order"] for call in of_sinks)
    own = [call for call in run["calls"] if call["writer"] is None]
    words = {call["method"]: call for call in of_sinks}
    updates = {
        "get_row_change_paradigm": {"gave": trace.settings.paradigm},
        # Only the current era passes updated columns.
        "begin_merge": {"given": begun_with(trace)},
        "finish": {"gave": _NOT_KNOWN},
        "finish_merge": {"given": finished_with("finish_merge", _NOT_KNOWN)},
    }
    if trace.target.version_after is not None:
        updates["commit"] = {"gave": _NO_VERSION}
    derived_calls = [call for call in own if call["order"] < first]
    for writer in trace.writers:
        mine = {"writer": writer.writer, "where": f"writer {writer.writer}"}
        arguments = {"store_merged_rows": {"given": stored_with(operation_letters(writer.rows))}}
        derived_calls += [
            {**words[method], **mine, **arguments.get(method, {})} for method in methods
        ]
    derived_calls += [call for call in own if call["order"] > first]
    for order, call in enumerate(derived_calls, start=1):
        yield {**call, **updates.get(call["method"], {}), "order": order}


def _options(trace: Trace) -> str:
    settings = trace.settings
    rule = f", repeated matches by the rule {settings.duplicates}" if trace.kind == "MERGE" else ""
    return f"{settings.paradigm}, pages of era {settings.era}{rule}."


def _pages_sentence(trace: Trace) -> str:
    writers = trace.samples.pages.writers if trace.samples.pages is not None else ()
    rows, unknown = len(writers), sum(writer < 0 for writer in writers)
    sentence = f"Not run: {plural(len(trace.writers), 'writer')} would get {plural(rows, 'row')}"
    if not unknown:
        return f"{sentence}."
    return (
        f"Not run. The writers of {number(unknown)} of {plural(rows, 'row')} are"
        f" unknown: {NOT_SHOWN}."
    )


_MARKS: Final = "Differences are framed, and rows that only the run has are struck out."


def _says(state: Mapping[str, Any], run: Mapping[str, Any], differs: list[str]) -> str:
    if state["failed"]:
        return "The statement would fail at the check for repeated matches. In the run it did not."
    if not differs:
        return "Every page is as in the run."
    pages = differing_pages(state, run)
    asides = [
        step["name"]
        for step in state["steps"]
        if step["key"] in differs and step["key"] not in pages
    ]
    parts = [
        *(
            [
                (
                    "the pages of"
                    f" {join([step['name'] for step in state['steps'] if step['key'] in pages])}"
                )
            ]
            if pages
            else []
        ),
        *([f"the explanations beside {join(asides)}"] if asides else []),
    ]
    sentence = f"Different from the run, and marked \N{NOT EQUAL TO}: {', and '.join(parts)}."
    if not pages:
        return f"{sentence} Every page is as in the run."
    rows, before = len(state["after"]["rows"]), len(run["after"]["rows"])
    # A sample cannot be counted.
    row_counts = (
        ""
        if rows == before or run["sample"]
        else f" transform_page returns {plural(rows, 'row')}, in the run {number(before)}."
    )
    return f"{sentence}{row_counts} {_MARKS}"


def difference(old: Any, new: Any) -> Any:
    """Return the difference between two JSON values; None if they are equal.

    ``["=", new]`` replaces the value, ``["{", {name: difference}, [removed names]]`` changes an
    object, ``["[", {position: difference}, length]`` a list.

    >>> difference({"a": [1, 2, 3], "b": 1}, {"a": [1, 5], "b": 1})
    ['{', {'a': ['[', {'1': ['=', 5]}, 2]}, []]
    """
    if isinstance(old, dict) and isinstance(new, dict):
        differences = {
            name: difference(old.get(name, _NOTHING), value) for name, value in new.items()
        }
        removed = [name for name in old if name not in new]
        changed = {name: one for name, one in differences.items() if one is not None}
        return ["{", changed, removed] if changed or removed else None
    if isinstance(old, list) and isinstance(new, list):
        pairs = ((old[at] if at < len(old) else _NOTHING, value) for at, value in enumerate(new))
        changed = {
            str(at): one for at, pair in enumerate(pairs) if (one := difference(*pair)) is not None
        }
        return ["[", changed, len(new)] if changed or len(old) != len(new) else None
    return None if type(old) is type(new) and old == new else ["=", new]


_NOTHING: Final = object()
"""A missing value, equal to nothing."""
