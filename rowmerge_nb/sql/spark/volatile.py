"""Volatile calls such as random(), which must be evaluated once although texts and trees repeat
them.
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
    """Count the volatile calls in Spark SQL."""
    return len(_CALL.findall(text))


def has_call(node: e.Typed) -> bool:
    """Return whether an expression, or a subquery of it, has a volatile call.

    >>> has_call(e.Column(e.Type("double"), "a"))
    False
    """
    return any(
        _is_call(part) or (isinstance(part, e.Subquery) and not part.deterministic)
        for part in e.walk(node)
    )


def _is_call(node: e.Typed) -> bool:
    return isinstance(node, e.Apply) and node.name == "function" and not node.detail.deterministic


def shared_call(node: e.Apply) -> e.Typed | None:
    calls_by_id: dict[object, e.Typed] = {}
    for argument in node.arguments:
        argument_calls = {_identity(part): part for part in _outer_calls(argument)}
        twice = next((part for index, part in argument_calls.items() if index in calls_by_id), None)
        if twice is not None:
            return twice
        calls_by_id |= argument_calls
    return None


def _outer_calls(node: e.Typed) -> Iterator[e.Typed]:
    if _is_call(node):
        yield node
    if isinstance(node, e.Apply):
        for argument in node.arguments:
            yield from _outer_calls(argument)


def _identity(call: e.Typed) -> object:
    return call.origin.number if call.origin is not None else id(call)


def with_variable(node: e.Typed, call: e.Typed, variable: e.Variable) -> e.Typed:
    if _is_call(node) and _identity(node) == _identity(call):
        return variable
    if not isinstance(node, e.Apply):
        return node
    return replace(
        node,
        arguments=tuple(with_variable(argument, call, variable) for argument in node.arguments),
    )


def unused_name(texts: Sequence[str]) -> str:
    """Return an unused parameter name.

    >>> unused_name(["`$v0` + rand()"])
    '`$v1`'
    """
    number = 0
    while any(f"`$v{number}`" in text for text in texts):
        number += 1
    return f"`$v{number}`"


def bound(name: str, value: str, body: str) -> str:
    """Write Spark SQL with a parameter bound to a value."""
    return f"transform(array({value}), {name} -> {body})[0]"
