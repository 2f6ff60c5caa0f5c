"""Questions to catalogs that may take long: asked in a thread, and waited for as long as a key press may take."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

PATIENCE: Final = 0.1
"""How many seconds all questions of one Tab are waited for."""


class Lookups:
    """Answers of catalogs. What comes too late is there at the next Tab, and until then that of the Tab before.

    A question is asked once at a time: a catalog that does not answer is asked by one thread, however often Tab is pressed.
    """

    def __init__(self) -> None:
        """Begin without answers."""
        self._answers: dict[Hashable, Any] = {}
        self._asking: dict[Hashable, threading.Event] = {}
        self._until = 0.0

    def begin(self) -> None:
        """Begin a Tab: from now on all questions have `PATIENCE` seconds together."""
        self._until = time.monotonic() + PATIENCE

    def ask(self, key: Hashable, question: Callable[[], T], otherwise: T) -> T:
        """Ask a question.

        Args:
            key: what the answer is known by.
            question: asks; what it raises is no answer.
            otherwise: what is given where no answer is known.
        """
        done = self._asking.get(key)
        if done is None:
            done = self._asking[key] = threading.Event()
            threading.Thread(target=self._answer, args=(key, question, done), name="rowmerge_nb-completion", daemon=True).start()
        done.wait(max(0.0, self._until - time.monotonic()))
        answer: T = self._answers.get(key, otherwise)
        return answer

    def _answer(self, key: Hashable, question: Callable[[], Any], done: threading.Event) -> None:
        try:
            self._answers[key] = question()
        except Exception:  # noqa: BLE001 - a catalog that fails offers no names; a statement tells what is wrong with it
            self._answers.pop(key, None)
        finally:
            del self._asking[key]
            done.set()
