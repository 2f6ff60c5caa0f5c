"""What a trial changes: the explorer's state of a statement that was run once more, beside that of its run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import plural
from rowmerge_nb.report.explorer.explorer_state import explorer_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from rowmerge_nb.trace.trace import Trace

TRIAL: Final = "Tried on a copy of the target in memory, and rolled back."
_PAGES: Final = (
    ("case", "before"),
    ("distinct", "before"),
    ("transform", "after"),
    ("exchange", "after"),
    ("sinks", "writers"),
    ("finish", "writers"),
    ("commit", "writers"),
)
"""The steps whose page a trial may change, and where the state has it."""


def trial_state(trial: Trace, untouched: pa.Table | None, same: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the explorer shows of a trial.

    Args:
        trial: its trace.
        untouched: rows of the copy that were not joined, where they are known.
        same: the state of a trial of the statement as it was: the same rows, on the same copy.

    Raises:
        RowMergeError: NOT_SUPPORTED, see `explorer_state`.
    """
    state = explorer_state(trial, untouched)
    moved = list(_moved(same, state))
    said = (
        f"{plural(len(moved), 'row')} {'change' if len(moved) != 1 else 'changes'} hands."
        if moved
        else "Every row does what it did."
    )
    return {
        **state,
        "trial": {"tag": "what if", "says": f"{TRIAL} {said}", "moved": moved, "differs": differing_steps(state, same)},
    }


def differing_steps(state: Mapping[str, Any], same: Mapping[str, Any]) -> list[str]:
    """Name the steps at which something else is to be seen than in a state of the same rows: another page, or another rule beside it."""
    was = {step["key"]: step["aside"] for step in same["steps"]}
    pages = differing_pages(state, same)
    return [step["key"] for step in state["steps"] if step["key"] in pages or was.get(step["key"], "") != step["aside"]]


def differing_pages(state: Mapping[str, Any], same: Mapping[str, Any]) -> list[str]:
    """Name the steps whose page is another one than in a state of the same rows."""
    steps = {step["key"] for step in state["steps"]}
    return [key for key, part in _PAGES if key in steps and _page(_shown(state, key, part)) != _page(_shown(same, key, part))]


def _shown(state: Mapping[str, Any], key: str, part: str) -> Any:
    """Return what a step shows of a part."""
    page = state[part]
    if key != "case":
        return page
    decided = page["decided"]
    return {
        "channels": page["channels"][:decided],
        "rows": [{**row, "cells": row["cells"][:decided]} for row in page["rows"]],
    }


def _page(part: Any) -> str:
    """Return what is compared of a page; of what writers were handed the rows, in whatever order they came."""
    if isinstance(part, list):
        return _plain([[writer["number"], writer["channels"], sorted(map(_plain, writer["page"]))] for writer in part])
    return _plain(part)


def editable_cells(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source rows that the state of a run shows, each once: the columns' names, and per row its number and values."""
    rows = {row["number"]: row["source"] for row in run["rows"] if row["number"] is not None and row["source"] is not None}
    return {"columns": [side["name"] for side in run["sides"]["source"]], "rows": [list(row) for row in rows.items()]}


def moved_since(run: Mapping[str, Any], same: Mapping[str, Any]) -> str:
    """Return whether the statement as it was takes other rows today than it took; ``""`` if it does what it did."""
    if not run["sample"] and any(_moved(run, same)):
        return "As it was, the statement takes other rows today than it took: a source has changed since."
    return ""


def _moved(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows that another clause takes, that came, and that are gone."""
    old = {_key(row): row for row in was["rows"]}
    found = {index: old.pop(key) for index, row in enumerate(now["rows"]) if (key := _key(row)) in old}
    # A row whose values or partner are others is still the row of that number in the source.
    left: dict[object, list[str]] = {}
    for key, row in old.items():
        left.setdefault(row["number"], []).append(key)
    for index, row in enumerate(now["rows"]):
        if index not in found and row["number"] is not None and (keys := left.get(row["number"])):
            found[index] = old.pop(keys.pop(0))
    for index, row in enumerate(now["rows"]):
        before = found.get(index)
        if before is None or (_taker(before, was), before["made"]) != (_taker(row, now), row["made"]):
            yield {
                "row": index,
                "name": row["name"],
                "was": "not there" if before is None else _taker(before, was),
                "is": _taker(row, now),
            }
    for row in old.values():
        yield {"row": None, "name": row["name"], "was": _taker(row, was), "is": "not there"}


def _key(row: Mapping[str, Any]) -> str:
    return _plain([row["number"], row["source"], row["target"]])


def _taker(row: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """Name the clause that has taken a row."""
    found = next((clause for clause in state["clauses"] if clause["number"] == row["clause"]), None)
    return f"{found['label']} {found['word']}" if found is not None else "none"


def _plain(part: object) -> str:
    return json.dumps(part, sort_keys=True)
