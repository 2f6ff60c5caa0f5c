"""The notices of a statement, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CHANGED_TWICE: Final = "changed twice"
"""The kind of the notice that says of target rows that more than one clause has changed them."""


@dataclass(frozen=True)
class NoticeRecord:
    """A notice for the user; ``kind`` is `CHANGED_TWICE` or ``""``."""

    message: str
    line: int | None = None
    column: int | None = None
    kind: str = ""
