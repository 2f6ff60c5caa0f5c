"""The steps of a statement, and every order in which those of two can come that is not the same as another one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Effect(Enum):
    """What a step means to the other statement."""

    READS = "reads"
    """It looks at the store."""
    STORES = "stores"
    """It stores what by the contract nobody sees before the finish call."""
    CHANGES = "changes"
    """It changes what others may see, or locks it."""


@dataclass(frozen=True)
class Step:
    """A step of a statement: calls of the contract between which nothing of the other statement is tried.

    Args:
        name: the call that gives it its name.
        effect: what it means to the other statement.
    """

    name: str
    effect: Effect

    def commutes(self, other: Step) -> bool:
        """Return whether it is the same which of the two comes first.

        >>> begin, *_, commit = steps(commits_in_finish=False)
        >>> begin.commutes(begin), begin.commutes(commit)
        (True, False)
        """
        return Effect.CHANGES not in {self.effect, other.effect}


_STEPS: Final = (
    Step("begin_transaction", Effect.READS),
    Step("begin_merge", Effect.READS),
    Step("get_next_page", Effect.READS),
    Step("store_merged_rows", Effect.STORES),
    Step("finish_merge", Effect.CHANGES),
    Step("commit", Effect.CHANGES),
)


def steps(*, commits_in_finish: bool) -> tuple[Step, ...]:
    """Return the steps of a statement; where the finish call commits there is no further one."""
    return _STEPS[:-1] if commits_in_finish else _STEPS


def changes_of_turn(turns: Sequence[int]) -> int:
    """Count how often another statement's turn comes.

    >>> changes_of_turn((0, 0, 1, 1, 0))
    2
    """
    return sum(one != other for one, other in pairwise(turns))


def orders(own: Sequence[Step]) -> Iterator[tuple[int, ...]]:
    """Return every order of the steps of two statements, as whose turn it is: 0 or 1; of those that are the same by what commutes one.

    >>> sum(1 for _ in orders(steps(commits_in_finish=False))), sum(1 for _ in orders(steps(commits_in_finish=True)))
    (50, 10)
    >>> list(orders([Step("commit", Effect.CHANGES)]))
    [(0, 1), (1, 0)]
    """

    def further(turns: tuple[int, ...], done: tuple[int, int]) -> Iterator[tuple[int, ...]]:
        if done == (len(own), len(own)):
            yield turns
            return
        for side in (0, 1):
            if done[side] == len(own):
                continue
            # Of two neighbours that commute the first statement's comes first: the order with them exchanged is this one again.
            if side == 0 and turns and turns[-1] == 1 and own[done[0]].commutes(own[done[1] - 1]):
                continue
            yield from further((*turns, side), (done[0] + (side == 0), done[1] + (side == 1)))

    return further((), (0, 0))
