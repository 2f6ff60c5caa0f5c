"""The explorer's state of a rerun statement, compared with that of its run."""

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
"""The steps whose page a trial may change, and the page's key in the state."""


def trial_state(
    trial: Trace, untouched: pa.Table | None, same: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the explorer's state of a trial.

    ``same`` is the state of a trial of the unchanged statement on the same copy.
    """
    state = explorer_state(trial, untouched)
    moved = list(_moved(same, state))
    moves = (
        f"{plural(len(moved), 'row')} {'change' if len(moved) != 1 else 'changes'} hands."
        if moved
        else "Every row does what it did."
    )
    return {
        **state,
        "trial": {
            "tag": "what if",
            "says": f"{TRIAL} {moves}",
            "moved": moved,
            "differs": differing_steps(state, same),
        },
    }


def differing_steps(state: Mapping[str, Any], same: Mapping[str, Any]) -> list[str]:
    was = {step["key"]: step["aside"] for step in same["steps"]}
    pages = differing_pages(state, same)
    return [
        step["key"]
        for step in state["steps"]
        if step["key"] in pages or was.get(step["key"], "") != step["aside"]
    ]


def differing_pages(state: Mapping[str, Any], same: Mapping[str, Any]) -> list[str]:
    steps = {step["key"] for step in state["steps"]}
    return [
        key
        for key, part in _PAGES
        if key in steps and _page(_shown(state, key, part)) != _page(_shown(same, key, part))
    ]


def _shown(state: Mapping[str, Any], key: str, part: str) -> Any:
    page = state[part]
    if key != "case":
        return page
    decided = page["decided"]
    return {
        "channels": page["channels"][:decided],
        "rows": [{**row, "cells": row["cells"][:decided]} for row in page["rows"]],
    }


def _page(part: Any) -> str:
    """Return a comparable form of a page; writers' pages are sorted, since their order varies."""
    if isinstance(part, list):
        return _plain(
            [
                [writer["number"], writer["channels"], sorted(map(_plain, writer["page"]))]
                for writer in part
            ]
        )
    return _plain(part)


def editable_cells(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the distinct source rows of a state: column names, and number and values per row."""
    rows = {
        row["number"]: row["source"]
        for row in run["rows"]
        if row["number"] is not None and row["source"] is not None
    }
    return {
        "columns": [side["name"] for side in run["sides"]["source"]],
        "rows": [list(row) for row in rows.items()],
    }


def moved_since(run: Mapping[str, Any], same: Mapping[str, Any]) -> str:
    """Return a warning if the unchanged statement now has other results than in its run, else
    ``""``.
    """
    if not run["sample"] and any(_moved(run, same)):
        return (
            "Without changes, the statement takes other rows now than it did: a"
            " source has changed since."
        )
    return ""


def _moved(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    old = {_key(row): row for row in was["rows"]}
    old_rows = {
        index: old.pop(key) for index, row in enumerate(now["rows"]) if (key := _key(row)) in old
    }
    # A row with other values or another partner is still the row with its number in the source.
    unpaired: dict[object, list[str]] = {}
    for key, row in old.items():
        unpaired.setdefault(row["number"], []).append(key)
    for index, row in enumerate(now["rows"]):
        if (
            index not in old_rows
            and row["number"] is not None
            and (keys := unpaired.get(row["number"]))
        ):
            old_rows[index] = old.pop(keys.pop(0))
    for index, row in enumerate(now["rows"]):
        before = old_rows.get(index)
        if before is None or (_taker(before, was), before["made"]) != (
            _taker(row, now),
            row["made"],
        ):
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
    clause_taken = next(
        (clause for clause in state["clauses"] if clause["number"] == row["clause"]), None
    )
    return f"{clause_taken['label']} {clause_taken['word']}" if clause_taken is not None else "none"


def _plain(part: object) -> str:
    return json.dumps(part, sort_keys=True)
