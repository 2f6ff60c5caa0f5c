"""The ledger: the statements that every writer has begun and finished, and the rows that a reader
may find at any moment.

Every row has one owner, the only writer that changes it, so that its value is known exactly. Shared
rows have counters that every writer increments: their sums reveal lost and doubled updates.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

__all__ = [
    "FAILED",
    "KEYS",
    "OK",
    "SHARED",
    "UNKNOWN",
    "Effect",
    "Journal",
    "Row",
    "State",
    "check_counters",
    "check_rows",
    "name_of",
    "states_between",
]

KEYS: Final = 1_000_000
"""The first key of writer 0; that of the next one is twice this number. Smaller keys are shared."""
SHARED: Final = 4
"""The number of rows with a shared counter."""
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"

Row: TypeAlias = tuple[int, int, int, str]
"""``id, owner, n, name``."""


def name_of(key: int) -> str:
    """Return the value of the partition column."""
    return "abc"[key % 3]


@dataclass(frozen=True)
class Effect:
    """The effect of a successful statement.

    Args:
        table: the table; "" if the statement changes no rows.
        own: the values of the writer's own rows by key; None for a deleted row.
        shared: increments of shared counters by key.
        clears: the writer's own rows become exactly those of `own`.

    >>> Effect("t", {1: 5}).inverse({1: 4}).own
    {1: 4}
    """

    table: str = ""
    own: Mapping[int, int | None] = field(default_factory=dict)
    shared: Mapping[int, int] = field(default_factory=dict)
    clears: bool = False

    def inverse(self, before: Mapping[int, int]) -> Effect:
        """Return the effect that undoes this one; ``before`` has the writer's own rows before it."""
        if self.clears:
            return Effect(
                self.table,
                dict(before),
                {key: -count for key, count in self.shared.items()},
                clears=True,
            )
        return Effect(
            self.table,
            {key: before.get(key) for key in self.own},
            {key: -count for key, count in self.shared.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the effect as JSON."""
        return {
            "table": self.table,
            "own": list(self.own.items()),
            "shared": list(self.shared.items()),
            "clears": self.clears,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Effect:
        """Return the effect written by `to_json`."""
        return Effect(value["table"], dict(value["own"]), dict(value["shared"]), value["clears"])


@dataclass(frozen=True)
class State:
    """The accumulated effects of a writer.

    Args:
        own: the writer's own rows, by table and key.
        shared: the writer's increments of shared counters.
    """

    own: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    shared: Mapping[int, int] = field(default_factory=dict)

    def rows(self, table: str) -> Mapping[int, int]:
        """Return the writer's own rows of a table."""
        return self.own.get(table, {})

    def after(self, effect: Effect) -> State:
        """Return the state after a successful statement.

        >>> State({"t": {1: 1, 2: 2}}).after(Effect("t", {2: None, 3: 7})).own
        {'t': {1: 1, 3: 7}}
        """
        if not effect.table:
            return self
        rows = {} if effect.clears else dict(self.rows(effect.table))
        for key, value in effect.own.items():
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
        shared = Counter(self.shared)
        shared.update(effect.shared)
        return State({**self.own, effect.table: rows}, dict(shared))


class Journal:
    """The journal of one writer: a line when a statement begins, and one when its outcome is known."""

    def __init__(self, path: Path) -> None:
        self._file: IO[str] = path.open("a", encoding="utf-8")

    def begin(self, kind: str, text: str, effect: Effect) -> None:
        """Record the begin of a statement."""
        self._write({"begin": kind, "text": text, "effect": effect.to_json()})

    def end(self, outcome: str, detail: str = "") -> None:
        """Record the outcome of the current statement."""
        self._write({"end": outcome, "detail": detail})

    def beside(self, kind: str, outcome: str) -> None:
        """Record an action of a neighbor during a statement."""
        self._write({"beside": kind, "outcome": outcome})

    def violation(self, text: str) -> None:
        """Record a violation."""
        self._write({"violation": text})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    @staticmethod
    def lines(path: Path) -> list[dict[str, Any]]:
        """Return the complete lines of a journal."""
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def states_between(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[State]:
    """Return the states that a reader may find.

    Args:
        before: the journal's lines before the read: their finished statements must be visible.
        after: the lines after the read: later statements must not be visible.

    >>> begin = {"begin": "INSERT", "effect": Effect("t", {1: 1}).to_json()}
    >>> [dict(state.rows("t")) for state in states_between([], [begin])]
    [{}, {1: 1}]
    >>> [dict(state.rows("t")) for state in states_between([begin, {"end": "ok"}], [begin, {"end": "ok"}])]
    [{1: 1}]
    """
    current = [State()]
    statements = list(_statements(after))
    definite = sum(1 for line in before if "end" in line)
    for effect, outcome in statements[:definite]:
        current = _ended(current, effect, outcome)
    candidates = list(current)
    for effect, outcome in statements[definite:]:
        if effect.table and outcome != FAILED:
            candidates += [state.after(effect) for state in current]
            current = _ended(current, effect, outcome)
    return candidates


def _statements(lines: list[dict[str, Any]]) -> Iterator[tuple[Effect, str]]:
    """Yield the effect and the outcome of every statement; the outcome of a running one is unknown."""
    effect: Effect | None = None
    for line in lines:
        if "begin" in line:
            effect = Effect.from_json(line["effect"])
        elif "end" in line and effect is not None:
            yield effect, line["end"]
            effect = None
    if effect is not None:
        yield effect, UNKNOWN


def _ended(current: list[State], effect: Effect, outcome: str) -> list[State]:
    changed = [state.after(effect) for state in current]
    return {OK: changed, FAILED: current, UNKNOWN: [*current, *changed]}[outcome]


def check_rows(table: str, rows: list[Row], states: Mapping[int, list[State]]) -> list[str]:
    """Return the problems of the rows that a reader found.

    Args:
        table: the table.
        rows: its rows.
        states: the possible states of every writer.

    >>> check_rows("t", [(1, -1, 2, "b"), (1, -1, 2, "b")], {0: [State({}, {1: 2})]})[0]
    "table 't' has keys more than once: [(1, 2)]"
    """
    problems: list[str] = []
    repeated = [(key, count) for key, count in Counter(row[0] for row in rows).items() if count > 1]
    if repeated:
        problems.append(f"table '{table}' has keys more than once: {repeated[:5]}")
    wrong = [row for row in rows if row[1] != (row[0] // KEYS - 1) or row[3] != name_of(row[0])]
    if wrong:
        problems.append(f"table '{table}' has rows that were never written: {wrong[:5]}")
    by_owner: dict[int, dict[int, int]] = {}
    for key, owner, value, _ in rows:
        by_owner.setdefault(owner, {})[key] = value
    for writer, possible in states.items():
        actual = by_owner.get(writer, {})
        if all(dict(state.rows(table)) != actual for state in possible):
            problems.append(
                f"table '{table}', writer {writer}:"
                f" {_difference(actual, dict(possible[-1].rows(table)))}"
            )
    return problems


def check_counters(rows: list[Row], states: Mapping[int, list[State]]) -> Iterator[str]:
    """Yield the problems of shared counters: each must be the number of successful increments."""
    actual = {row[0]: row[2] for row in rows if row[1] == -1}
    for key in range(SHARED):
        counts = [[state.shared.get(key, 0) for state in possible] for possible in states.values()]
        least, most = sum(map(min, counts)), sum(map(max, counts))
        if not least <= actual.get(key, -1) <= most:
            yield f"counter {key} is {actual.get(key)}, and must be {least} to {most}"


def _difference(actual: Mapping[int, int], expected: Mapping[int, int]) -> str:
    missing = sorted(expected.keys() - actual.keys())
    more = sorted(actual.keys() - expected.keys())
    other = [
        (key, actual[key], expected[key])
        for key in sorted(actual.keys() & expected.keys())
        if actual[key] != expected[key]
    ]
    return (
        f"lost {missing[:5]} ({len(missing)}), not expected {more[:5]} ({len(more)}), other values"
        f" (key, seen, expected) {other[:5]} ({len(other)})"
    )
