"""The steps of a statement's run."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Steps:
    """The current step of a statement, and the durations of those before.

    Attributes:
        current: the step that errors name.
        has_acted: whether its tasks have begun.
    """

    current: str = "run"
    has_acted: bool = False
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = time.perf_counter() - started
