"""Prints long runs of operators for Spark, whose reader and optimizer would go one level deeper with every operator.

Spark walks such a run in a loop at run time: `aggregate` over the numbers of its parts, each of some dozen operators, that hands the value so
far from part to part. So operators are applied from left to right, nothing behind a NULL is computed, and an error is the first one, as if
the run were written out. A loop's value has one type: where an operator changes it (decimals grow, an integer meets a double), one loop
ends and the next begins.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql import expressions as e
from rowmerge_nb.sql.depth import DEEPEST_TREE, too_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["chain_text"]

_PART: Final = 50
"""Operators that are written out in one part: Spark's reader takes the square of their number, the loop the square of the parts' number."""
_VALUE, _NUMBER = e.quote(e.SO_FAR), e.quote("$part")


def chain_text(node: e.Apply, write: Callable[[e.Typed, str, str], tuple[str, str]]) -> str:
    """Write a chain.

    Args:
        node: the chain.
        write: gives the text of an expression, and its text without checks, for two such texts of the value so far.

    Raises:
        ParseError: it has a subquery, which Spark allows in no loop, and is too long to be written out.
    """
    first, *steps = node.arguments
    texts = write(first, "", "")
    if any(isinstance(part, e.Subquery) for part in e.walk(node)):
        if len(steps) > DEEPEST_TREE:
            raise too_deep()
        return _written_out(texts, steps, write)[0]
    for _, run in groupby(steps, key=lambda step: step.type):
        opening, *rest = run
        texts = write(opening, *texts)
        texts = _looped(texts, rest, write) if len(rest) > _PART else _written_out(texts, rest, write)
    return texts[0]


def _written_out(
    texts: tuple[str, str], steps: Sequence[e.Typed], write: Callable[[e.Typed, str, str], tuple[str, str]]
) -> tuple[str, str]:
    for step in steps:
        texts = write(step, *texts)
    return texts


def _looped(
    texts: tuple[str, str], steps: Sequence[e.Typed], write: Callable[[e.Typed, str, str], tuple[str, str]]
) -> tuple[str, str]:
    parts = [_written_out((_VALUE, _VALUE), steps[start : start + _PART], write)[0] for start in range(0, len(steps), _PART)]
    chosen = " ".join(f"WHEN {number} THEN {part}" for number, part in enumerate(parts))
    numbers = f"sequence(0, {len(parts) - 1})"
    loop = f"aggregate({numbers}, {texts[0]}, ({_VALUE}, {_NUMBER}) -> CASE {_NUMBER} {chosen} END)"
    return loop, loop
