"""Catalog lookups in threads, for which completion waits briefly."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

PATIENCE: Final = 0.1
"""Seconds to wait for all lookups of one Tab."""


class Lookups:
    """Answers of catalogs, by at most one thread per question; a late answer is available at the
    next Tab.
    """

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}
        self._asking: dict[Hashable, threading.Event] = {}
        self._until = 0.0

    def begin(self) -> None:
        """Start a Tab: its lookups have `PATIENCE` seconds together."""
        self._until = time.monotonic() + PATIENCE

    def ask(self, key: Hashable, question: Callable[[], T], default: T) -> T:
        """Return the latest answer for ``key``, or ``default``; exceptions of ``question`` count as
        no answer.
        """
        finished = self._asking.get(key)
        if finished is None:
            finished = self._asking[key] = threading.Event()
            threading.Thread(
                target=self._answer,
                args=(key, question, finished),
                name="rowmerge_nb-completion",
                daemon=True,
            ).start()
        finished.wait(max(0.0, self._until - time.monotonic()))
        answer: T = self._answers.get(key, default)
        return answer

    def _answer(
        self, key: Hashable, question: Callable[[], Any], finished: threading.Event
    ) -> None:
        try:
            self._answers[key] = question()
        except Exception:  # noqa: BLE001 - a failing catalog has no names to complete; a statement reports the error
            self._answers.pop(key, None)
        finally:
            del self._asking[key]
            finished.set()
