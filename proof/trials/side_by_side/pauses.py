"""Pauses at random operations of some statements, so that others run in between."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from proof.trials.points.wrapping import watch_process

if TYPE_CHECKING:
    from proof.trials.points.watch import Operation

__all__ = ["Pauses"]

T = TypeVar("T")
_SHARE: Final = 0.6
_MET: Final = 0.7
_SHORTEST, _LONGEST = 0.5, 1.2
_USUAL: Final = 50
"""The assumed number of operations of an unknown kind of statement."""


class Pauses:
    """Pauses this process at operations on a directory's files and on databases, until it ends.

    Args:
        directory: the watched directory.
        seed: determines the pauses.
        meet: called in half of the pauses: another process uses the store.
    """

    database_words: Final = ""

    def __init__(self, directory: str, seed: str, meet: Callable[[], object]) -> None:
        self._meet = meet
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._operations: dict[str, int] = {}
        self._kind = ""
        self._last = "", ""
        self._count = 0
        self._at = 0
        self._inside = threading.local()
        watch_process(self, [directory])  # type: ignore[arg-type]

    def begin(self, kind: str) -> None:
        """Select the pause of the next statement, if any."""
        self._operations[self._kind] = max(self._count, 1)
        self._kind, self._count = kind, 0
        pauses = self._random.random() < _SHARE
        self._at = self._random.randint(1, self._operations.get(kind, _USUAL)) if pauses else 0

    def call(
        self, operation: Operation, function: Callable[..., T], *arguments: Any, **more: Any
    ) -> T:
        """Run an operation, after a pause if selected; nested operations are part of it."""
        if getattr(self._inside, "yes", False):
            return function(*arguments, **more)
        about = operation.name, operation.about
        # All writes to a file count as one operation.
        if about == self._last:
            return function(*arguments, **more)
        self._last = about
        self._count += 1
        if self._count == self._at:
            self._pause()
        self._inside.yes = True
        try:
            return function(*arguments, **more)
        finally:
            self._inside.yes = False

    def _pause(self) -> None:
        """Sleep for a moment, or let another process act now."""
        if self._random.random() > _MET:
            time.sleep(self._random.uniform(_SHORTEST, _LONGEST))
        else:
            self._meet()
