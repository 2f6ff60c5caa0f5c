"""Sizes and durations as arguments of table procedures, with the rules of Trino's connectors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import ConnectorError

_NUMBER: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")
_SIZES: Final = {
    unit: 1 << 10 * power for power, unit in enumerate(("B", "kB", "MB", "GB", "TB", "PB"))
}
_TIMES: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Retention:
    """A duration with its unit.

    >>> str(Retention(25, "h")), Retention(25, "h") < Retention(7, "d")
    ('25.00h', True)
    """

    number: float
    unit: str

    @classmethod
    def of(cls, min_retention: timedelta) -> Retention:
        """Return a connector's checked argument in days."""
        checked(
            min_retention,
            "min_retention",
            lambda value: isinstance(value, timedelta) and value >= timedelta(0),
            "a datetime.timedelta that is not negative",
        )
        return cls(min_retention / timedelta(days=1), "d")

    @property
    def time(self) -> timedelta:
        """The duration, capped at `timedelta.max`."""
        try:
            return timedelta(seconds=self.number * _TIMES[self.unit])
        except OverflowError:
            return timedelta.max

    def __str__(self) -> str:
        return f"{self.number:.2f}{self.unit}"

    def __lt__(self, other: Retention) -> bool:
        return self.time < other.time


def parse_size(text: str) -> int:
    """Parse a size as Trino does.

    >>> parse_size("1.5kB")
    1536
    >>> parse_size("1XB")
    Traceback (most recent call last):
    ValueError: Unknown unit: XB
    """
    number, unit = _measured(text, "size", "size is not a valid data size string: ")
    if unit not in _SIZES:
        raise ValueError(f"Unknown unit: {unit}")
    return int(number * _SIZES[unit])


def parse_retention(text: str) -> Retention:
    """Parse a duration as Trino does.

    >>> str(parse_retention(" 7 d"))
    '7.00d'
    """
    number, unit = _measured(text, "duration", "duration is not a valid data duration string: ")
    if unit not in _TIMES:
        raise ValueError(f"Unknown time unit: {unit}")
    return Retention(number, unit)


def _measured(text: str, what: str, invalid_text: str) -> tuple[float, str]:
    if not text:
        raise ValueError(f"{what} is empty")
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(invalid_text + text)
    return float(match[1]), match[2]


WEEK: Final = Retention(7, "d")
"""The default and minimum retention."""


def check_retention(procedure: str, requested: Retention, least: Retention, store: str) -> None:
    """Raise INVALID_PROCEDURE_ARGUMENT below the minimum retention, since concurrent statements
    need files for a while.
    """
    if requested < least:
        name = procedure.lower()
        raise ConnectorError(
            f"Retention specified ({requested}) is shorter than the minimum retention configured in"
            f" the system ({least}). Minimum retention can be changed with"
            f" {store}.{name.replace('_', '-')}.min-retention configuration property or"
            f" {store}.{name}_min_retention session property",
            code="INVALID_PROCEDURE_ARGUMENT",
            hint=(
                "Here it is the argument min_retention of the connector: no running"
                " statement may need newer files."
            ),
        )
