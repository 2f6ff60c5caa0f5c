"""Calls that give another value each time, such as random(): what is written of them must be evaluated once.

Texts of Spark SQL repeat their arguments, and a statement's meaning repeats parts of the tree: the operand of CASE is in every comparison. A
lambda's parameter stands for a value that others repeat.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CALL: Final = re.compile(r"\b(?:rand|uuid|shuffle)\(")


def calls(text: str) -> int:
    """Count the calls in Spark SQL that give another value each time.

    >>> calls("IF(rand() < 0.5, rand(), `a`)"), calls("`operand` + 1")
    (2, 0)
    """
    return len(_CALL.findall(text))


def has_call(node: e.Typed) -> bool:
    """Return whether an expression has such a call, within its queries too.

    >>> has_call(e.Column(e.Type("double"), "a"))
    False
    """
    return any(_is_call(part) or (isinstance(part, e.Subquery) and not part.deterministic) for part in e.walk(node))


def _is_call(node: e.Typed) -> bool:
    return isinstance(node, e.Apply) and node.name == "function" and not node.detail.deterministic


def shared_call(node: e.Apply) -> e.Typed | None:
    """Return a call that was written once and is part of several arguments; None if there is none."""
    seen: dict[object, e.Typed] = {}
    for argument in node.arguments:
        found = {_written_as(part): part for part in _outer_calls(argument)}
        twice = next((part for index, part in found.items() if index in seen), None)
        if twice is not None:
            return twice
        seen |= found
    return None


def _outer_calls(node: e.Typed) -> Iterator[e.Typed]:
    """Yield the calls of an expression which are evaluated with it: not those in a lambda, a query or an aggregate function."""
    if _is_call(node):
        yield node
    if isinstance(node, e.Apply):
        for argument in node.arguments:
            yield from _outer_calls(argument)


def _written_as(call: e.Typed) -> object:
    """Return what tells a call from another one that was written alike: its place in the statement."""
    return call.origin.number if call.origin is not None else id(call)


def with_variable(node: e.Typed, call: e.Typed, variable: e.Variable) -> e.Typed:
    """Return an expression in which a variable stands for a call, wherever that is."""
    if _is_call(node) and _written_as(node) == _written_as(call):
        return variable
    if not isinstance(node, e.Apply):
        return node
    return replace(node, arguments=tuple(with_variable(argument, call, variable) for argument in node.arguments))


def unused_name(texts: Sequence[str]) -> str:
    """Return a name for a parameter that no text speaks of.

    >>> unused_name(["`$v0` + rand()"])
    '`$v1`'
    """
    number = 0
    while any(f"`$v{number}`" in text for text in texts):
        number += 1
    return f"`$v{number}`"


def bound(name: str, value: str, body: str) -> str:
    """Write Spark SQL in which a parameter stands for a value.

    >>> bound("`$v0`", "rand()", "`$v0` * `$v0`")
    'transform(array(rand()), `$v0` -> `$v0` * `$v0`)[0]'
    """
    return f"transform(array({value}), {name} -> {body})[0]"
