"""The steps of a statement, and all distinct orders of the steps of two."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Effect(Enum):
    """The effect of a step on the other statement."""

    READS = "reads"
    """It reads the store."""
    STORES = "stores"
    """It stores data that is invisible before the finish call."""
    CHANGES = "changes"
    """It changes visible data, or locks it."""


@dataclass(frozen=True)
class CallStep:
    """Contract calls that are not interleaved with the other statement's, named by one of them."""

    name: str
    effect: Effect

    def commutes(self, other: CallStep) -> bool:
        """Return whether the order of two steps does not matter.

        >>> begin, *_, commit = steps(commits_in_finish=False)
        >>> begin.commutes(begin), begin.commutes(commit)
        (True, False)
        """
        return Effect.CHANGES not in {self.effect, other.effect}


_STEPS: Final = (
    CallStep("begin_transaction", Effect.READS),
    CallStep("begin_merge", Effect.READS),
    CallStep("get_next_page", Effect.READS),
    CallStep("store_merged_rows", Effect.STORES),
    CallStep("finish_merge", Effect.CHANGES),
    CallStep("commit", Effect.CHANGES),
)


def steps(*, commits_in_finish: bool) -> tuple[CallStep, ...]:
    """Return the steps of a statement; none follows a finish call that commits."""
    return _STEPS[:-1] if commits_in_finish else _STEPS


def changes_of_turn(turns: Sequence[int]) -> int:
    """Count the changes of turn.

    >>> changes_of_turn((0, 0, 1, 1, 0))
    2
    """
    return sum(one != other for one, other in pairwise(turns))


def orders(own: Sequence[CallStep]) -> Iterator[tuple[int, ...]]:
    """Yield the distinct orders of two statements' steps as turns, 0 or 1, ignoring the order of
    commuting steps.
    """

    def further(turns: tuple[int, ...], counts: tuple[int, int]) -> Iterator[tuple[int, ...]]:
        if counts == (len(own), len(own)):
            yield turns
            return
        for side in (0, 1):
            if counts[side] == len(own):
                continue
            # Of two commuting neighbors, the first statement's comes first; the swapped order is
            # equivalent.
            if (
                side == 0
                and turns
                and turns[-1] == 1
                and own[counts[0]].commutes(own[counts[1] - 1])
            ):
                continue
            yield from further((*turns, side), (counts[0] + (side == 0), counts[1] + (side == 1)))

    return further((), (0, 0))
