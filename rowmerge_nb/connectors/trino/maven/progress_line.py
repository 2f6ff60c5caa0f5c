"""A line on standard error that is overwritten while a download runs."""

from __future__ import annotations

import sys
import time
from typing import Any, Final

_EVERY_SECONDS: Final = 0.2


class ProgressLine:
    """Shows what is done, on terminals and in notebooks; elsewhere announcements and the
    last line are written.
    """

    def __init__(self, subject: str, stream: Any = None) -> None:
        self._subject = subject
        self._stream = sys.stderr if stream is None else stream
        self._width = 0
        self._next = 0.0
        self.began = time.monotonic()

    def show(self, text: str) -> None:
        now = time.monotonic()
        if now >= self._next and self._overwrites():
            self._next = now + _EVERY_SECONDS
            self._write(text)

    def announce(self, text: str) -> None:
        """Write a line that must be seen also where lines are not overwritten."""
        if self._overwrites():
            self._write(text)
        elif self._stream is not None:
            self.end(text)

    def end(self, text: str = "") -> None:
        """Write the last line, or remove the line."""
        if self._stream is None:
            return
        if text:
            self._write(text)
            self._stream.write("\n")
        elif self._width:
            self._stream.write(f"\r{'':<{self._width}}\r")
        self._width = 0
        self._stream.flush()

    def _write(self, text: str) -> None:
        line = f"{self._subject}: {text}"
        start = "\r" if self._width else ""
        self._stream.write(f"{start}{line:<{self._width}}")
        self._stream.flush()
        self._width = len(line)

    def _overwrites(self) -> bool:
        stream = self._stream
        if stream is None:
            return False
        # The streams of a notebook's kernel replace a line at a carriage return, as terminals do.
        return bool(stream.isatty()) or type(stream).__module__.startswith("ipykernel.")
