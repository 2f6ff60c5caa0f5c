"""The log of a host process: everything that Java and the plugin print."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.connectors.trino.java_stack import plugin_frames

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LINES: Final = 3
_BYTES: Final = 16_384
_LONGEST: Final = 16 * 1024 * 1024
_REASON: Final = re.compile(
    r"OutOfMemoryError|Runtime\.exit\(\) called|fatal error has been detected"
)
"""What Java prints when it ends the process."""
_FRAME: Final = re.compile(r"\s*at (?:[\w.@]*/+)*(\S+\(.*\))")
OUT_OF_MEMORY: Final = "OutOfMemoryError"


class HostLog:
    """A file that the process appends to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def shorten(self) -> None:
        """Empty the log if it is long: a plugin may print without end."""
        with contextlib.suppress(OSError):
            if self.path.stat().st_size > _LONGEST:
                self.clear()

    def clear(self) -> None:
        """Empty the log, such as after the start, whose messages explain no later end."""
        with contextlib.suppress(OSError):
            os.truncate(self.path, 0)

    def last_words(self) -> str:
        """Return why Java ended, if the log has it, otherwise the last lines."""
        try:
            with self.path.open("rb") as log:
                log.seek(max(0, self.path.stat().st_size - _BYTES))
                lines = log.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        return " / ".join(telling_lines([line.strip() for line in lines if line.strip()]))


def telling_lines(lines: Sequence[str]) -> list[str]:
    """Return the line with the reason of an end, and the plugin's first frame after it."""
    index = next((i for i in reversed(range(len(lines))) if _REASON.search(lines[i])), None)
    if index is None:
        return list(lines[-_LINES:])
    matches = (_FRAME.fullmatch(line) for line in lines[index + 1 :])
    frames = plugin_frames([match[1] for match in matches if match])
    return [lines[index], *(f"at {frame}" for frame in frames[:1])]
