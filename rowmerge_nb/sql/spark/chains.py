"""Prints long runs of operators as loops, since Spark's parser and optimizer recurse per operator.

A loop is an `aggregate` over numbered parts of a few dozen operators each. Order, NULL and the
first error are those of the run. If an operator changes the type, a new loop begins.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.sql.tree.depth import DEEPEST_TREE, too_deep
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PART: Final = 50
"""Operators per part: Spark's parser takes quadratic time."""
MOST_TRIED: Final = 5
"""Nested operators with try_: Spark compares their operands, twice per level."""
_MOST_PARTS: Final = 100
"""Parts per loop: each is found by a linear search."""
_VALUE, _NUMBER = backquoted(e.SO_FAR), backquoted("$part")

Write: TypeAlias = "Callable[[e.Typed, str, str], tuple[str, str]]"


def chain_text(node: e.Apply, write: Write, *, is_tried: bool) -> str:
    first, *steps = node.arguments
    texts = write(first, "", "")
    if any(isinstance(part, e.Subquery) for part in e.walk(node)):
        if len(steps) > (MOST_TRIED if is_tried else DEEPEST_TREE):
            raise too_deep()
        return _written_out(texts, steps, write)[0]
    most = MOST_TRIED if is_tried else _PART
    for _, run in groupby(steps, key=lambda step: step.type):
        opening, *rest = run
        texts = write(opening, *texts)
        texts = (
            _looped(texts, rest, write, most)
            if len(rest) > most
            else _written_out(texts, rest, write)
        )
    return texts[0]


def unrolled(node: e.Apply) -> e.Apply:
    """Return nested operators as a chain."""
    steps: list[e.Typed] = []
    last = node
    while True:
        left, right = last.arguments
        cast = (
            left
            if isinstance(left, e.Apply) and left.name == "cast" and left.detail is None
            else None
        )
        inner = cast.arguments[0] if cast else left
        if not (isinstance(inner, e.Apply) and inner.name == last.name):
            return e.Apply(node.type, "chain", (last, *reversed(steps)))
        so_far: e.Typed = e.Variable(inner.type, e.SO_FAR)
        steps.append(
            replace(last, arguments=(replace(cast, arguments=(so_far,)) if cast else so_far, right))
        )
        last = inner


def _written_out(texts: tuple[str, str], steps: Sequence[e.Typed], write: Write) -> tuple[str, str]:
    for step in steps:
        texts = write(step, *texts)
    return texts


def _looped(
    texts: tuple[str, str], steps: Sequence[e.Typed], write: Write, most: int
) -> tuple[str, str]:
    """Write a loop over parts of ``most`` operators, nested if needed."""
    length = most if len(steps) <= most * _MOST_PARTS else _MOST_PARTS * most
    parts = [steps[start : start + length] for start in range(0, len(steps), length)]
    within = (_VALUE, _VALUE)
    part_texts = [
        (
            _written_out(within, part, write)[0]
            if length == most
            else _looped(within, part, write, most)[0]
        )
        for part in parts
    ]
    branches = " ".join(f"WHEN {number} THEN {text}" for number, text in enumerate(part_texts))
    loop = (
        f"aggregate(sequence(0, {len(parts) - 1}), {texts[0]}, ({_VALUE}, {_NUMBER}) -> CASE"
        f" {_NUMBER} {branches} END)"
    )
    return loop, loop
