"""Limits for nested statements, and the stack that parsing them takes."""

from __future__ import annotations

import dataclasses
import gc
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST: Final = 400
"""The nesting limit of parentheses, calls, CASEs, types and queries."""
DEEPEST_TREE: Final = 800
"""The depth limit of a tree: a series of JOINs is as deep as it has relations."""
LONGEST_CHAIN: Final = 20_000
"""The limit of terms in one AND, OR, ``||``, sum or product, which is a list, not a depth."""
NESTED_CHAIN: Final = 100
"""Chains up to this length are nested, so that GROUP BY can match their beginnings."""
RECURSION: Final = 20_000
"""A level takes up to 25 calls of Python and, measured, up to 1 KiB of the C stack: 800 levels end
far within both bounds.
"""

_lock = threading.Lock()
_inside = {"count": 0, "before": 0, "collecting": False}


@contextmanager
def room() -> Iterator[None]:
    """Raise Python's recursion limit while statements are parsed.

    The limit is global: the first user raises it, and the last one restores it. Garbage collection
    is disabled meanwhile: trees have no cycles, and traversing a large growing tree repeatedly
    takes as long as parsing it.
    """
    with _lock:
        if not _inside["count"]:
            _inside["before"] = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_inside["before"], RECURSION))
            _inside["collecting"] = gc.isenabled()
            gc.disable()
        _inside["count"] += 1
    try:
        yield
    except RecursionError:
        raise too_deep() from None
    finally:
        with _lock:
            _inside["count"] -= 1
            if not _inside["count"]:
                sys.setrecursionlimit(_inside["before"])
                if _inside["collecting"]:
                    gc.enable()


def too_deep() -> ParseError:
    """Return the error of a too deeply nested statement, at its beginning as in Trino."""
    return ParseError(
        "The statement is nested too deeply to be read",
        line=1,
        column=1,
        hint=(
            "Split the statement; write IN lists, arrays or subqueries instead of long chains of"
            " operators."
        ),
    )


def check_tree(statement: Any) -> None:
    level = [statement]
    depth = 0
    while level:
        depth += 1
        if depth > DEEPEST_TREE:
            raise too_deep()
        level = [child for node in level for child in _children(node)]


def _children(node: Any) -> Iterator[Any]:
    for value in vars(node).values():
        for item in value if isinstance(value, tuple) else (value,):
            # Pairs of WHEN and THEN, or of an argument's name and value, where the name may be
            # missing.
            for part in item if isinstance(item, tuple) else (item,):
                if dataclasses.is_dataclass(part) and not isinstance(part, Span):
                    yield part
