"""Injected faults that struck in this process without an error."""

from __future__ import annotations

from typing import Final

STRIKES: Final[list[str]] = []


def noted() -> str:
    """Return and clear this process's faults that struck without an error.

    >>> noted()
    ''
    """
    faults = ", ".join(STRIKES)
    STRIKES.clear()
    return faults
