"""A process that uses a store at a chosen moment of another process's statement."""

from __future__ import annotations

import json
import os
import select
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

__all__ = ["Neighbour"]

Answers: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


class Neighbour:
    """A process that obeys orders.

    It is forked at once, so create it before this process opens anything.

    Args:
        prepare: called in the new process with the first order; returns the function that answers
            orders.
    """

    def __init__(self, prepare: Callable[[], Answers]) -> None:
        reading, self._orders = os.pipe()
        self._answers, writing = os.pipe()
        self._pending = 0
        self._rest = b""
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._orders)
            os.close(self._answers)
            _obey(prepare, reading, writing)
        os.close(reading)
        os.close(writing)

    def ask(self, order: dict[str, Any], seconds: float) -> list[dict[str, Any]]:
        """Send an order; return the answers after some seconds.

        There is none while the neighbor waits for a lock of this process; later answers may be to
        earlier orders.
        """
        os.write(self._orders, json.dumps(order).encode() + b"\n")
        self._pending += 1
        return self.answers(seconds)

    def answers(self, seconds: float) -> list[dict[str, Any]]:
        """Return the outstanding answers, after a wait of at most some seconds."""
        answers: list[dict[str, Any]] = []
        while self._pending and select.select([self._answers], [], [], seconds)[0]:
            piece = os.read(self._answers, 1 << 16)
            if not piece:
                self._pending = 0
                return [*answers, {"error": "the neighbour died"}]
            *lines, self._rest = (self._rest + piece).split(b"\n")
            answers += [json.loads(line) for line in lines]
            self._pending -= len(lines)
        return answers

    def close(self) -> None:
        """End the neighbor."""
        os.close(self._orders)
        os.close(self._answers)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _obey(prepare: Callable[[], Answers], reading: int, writing: int) -> None:
    """Answer orders until they end, and end the process."""
    try:
        answers: Answers | None = None
        with (
            os.fdopen(reading, "r", encoding="utf-8") as orders,
            os.fdopen(writing, "w", encoding="utf-8") as answer_file,
        ):
            for line in orders:
                answers = answers or prepare()
                answer_file.write(json.dumps(answers(json.loads(line))) + "\n")
                answer_file.flush()
    except BaseException:  # noqa: BLE001 - the other process sees the end
        traceback.print_exc()
    finally:
        os._exit(0)
