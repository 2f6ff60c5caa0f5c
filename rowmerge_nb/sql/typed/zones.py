"""Names of time zones as Trino knows them."""

from __future__ import annotations

import datetime as dt
import functools
import re
import zoneinfo
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

DISTANCE: Final = (
    "^(UTC|GMT|UT)?[+-]([0-9]|(0[0-9]|1[0-7])(:?[0-5][0-9]|:[0-5][0-9]:00)?|18(:?00|:00:00)?)$"
)
"""What tells a zone by its distance from UTC, as a regular expression: Java reads up to 18 hours,
of which Trino takes 14.
"""

_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?|\d\d:?[0-5]\d|\d\d:[0-5]\d:00)", re.ASCII)
_OF_GMT: Final = re.compile(r"Etc/GMT([+-])(\d\d?)", re.ASCII)
_FARTHEST: Final = "14:00"
_ABSENT: Final = frozenset({"localtime", "posixrules", "Factory", "EST", "MST", "HST", "ROC"})
"""Names of files of zones that Java, and so Trino, has no zones for."""

UNKNOWN_ZONES: Final = {
    "zone": ("INVALID_FUNCTION_ARGUMENT", "'", "' is not a valid time zone"),
    "unsupported zone": ("NOT_SUPPORTED", "Time zone not supported: ", ""),
}
"""By what checks the name of a zone: the code of an unknown one, and what is said before and behind
its name.
"""

_SESSION: Final = ContextVar("session_zone", default="UTC")

EMPTY_ZONE: Final = ("GENERIC_INTERNAL_ERROR", "Zone id is an empty string")
"""The code and the words of a name without a letter."""


def session_zone() -> str:
    """Return the canonical zone of the running statement's session."""
    return _SESSION.get()


@contextmanager
def in_session_zone(zone: str) -> Iterator[None]:
    """Use a canonical zone as the session's within the block.

    >>> with in_session_zone("Asia/Tokyo"):
    ...     session_zone()
    'Asia/Tokyo'
    """
    token = _SESSION.set(zone)
    try:
        yield
    finally:
        _SESSION.reset(token)


def canonical_zone(name: str) -> str | None:
    """Return a zone's name as Trino shows it, or None if there is no such zone. Case matters.

    >>> canonical_zone("Europe/Berlin"), canonical_zone("Z"), canonical_zone("UTC-03:30"), canonical_zone("Etc/GMT-5")
    ('Europe/Berlin', 'UTC', '-03:30', '+05:00')
    >>> canonical_zone("europe/berlin"), canonical_zone("+1:00"), canonical_zone("+14:01"), canonical_zone("PST")
    (None, None, None, None)
    """
    offset = _offset(name)
    if offset is None:
        return name if name in _regions() else None
    return offset if offset == "UTC" or offset[1:] <= _FARTHEST else None


def _offset(name: str) -> str | None:
    if name in UTC_NAMES:
        return "UTC"
    if match := _OF_GMT.fullmatch(name):
        # What is east of Greenwich has a minus in these names.
        return (
            f"{'-' if match[1] == '+' else '+'}{int(match[2]):02d}:00"
            if name in _regions()
            else None
        )
    match = _OFFSET.fullmatch(name)
    if match is None:
        return None
    digits = match[2].replace(":", "")
    clock = f"{digits.zfill(2)[:2]}:{digits[2:4] or '00'}"
    return "UTC" if clock == "00:00" else match[1] + clock


@functools.cache
def names_of_zones() -> str:
    return ", ".join(f"'{name}'" for name in sorted(_regions() | set(UTC_NAMES)))


@functools.cache
def _regions() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - _ABSENT)


def to_utc(moment: dt.datetime, zone: str) -> dt.datetime:
    """Return the instant of a wall clock in a canonical zone; the first of two.

    Raises:
        ValueError: the zone's clocks skip this time.

    >>> to_utc(dt.datetime(2024, 3, 31, 3, 30), "Europe/Berlin")
    datetime.datetime(2024, 3, 31, 1, 30)
    """
    info = zone_info(zone)
    instant = moment.replace(tzinfo=info).astimezone(dt.UTC)
    if instant.astimezone(info).replace(tzinfo=None) != moment:
        raise ValueError(f"The clocks of {zone} skip {moment}")
    return instant.replace(tzinfo=None)


def at_clock(clock: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """Return the instant of a wall clock as casts have it.

    Of two instants it is the second in zones east of Greenwich and the first west of it. Skipped
    times are moved forward.

    >>> at_clock(dt.datetime(2024, 10, 27, 2, 30), zone_info("Europe/Berlin")).isoformat()
    '2024-10-27T01:30:00+00:00'
    >>> at_clock(dt.datetime(2024, 11, 3, 1, 30), zone_info("America/New_York")).isoformat()
    '2024-11-03T05:30:00+00:00'
    """
    as_utc = clock.replace(tzinfo=dt.UTC)
    instant = as_utc - (as_utc.astimezone(zone).utcoffset() or dt.timedelta())
    return (
        instant
        if instant.astimezone(zone).replace(tzinfo=None) == clock
        else clock.replace(tzinfo=zone).astimezone(dt.UTC)
    )


def zone_info(zone: str) -> dt.tzinfo:
    """Return a canonical zone as Python has it."""
    if zone[0] not in "+-":
        return zoneinfo.ZoneInfo(zone)
    minutes = int(zone[1:3]) * 60 + int(zone[4:])
    return dt.timezone(dt.timedelta(minutes=-minutes if zone[0] == "-" else minutes), zone)


UTC_NAMES: Final = (
    *("UTC", "Z", "UT", "UCT", "GMT", "GMT0", "Greenwich", "Universal", "Zulu"),
    *(
        f"Etc/{name}"
        for name in (
            "UTC",
            "UCT",
            "GMT",
            "GMT0",
            "GMT+0",
            "GMT-0",
            "Greenwich",
            "Universal",
            "Zulu",
        )
    ),
)
"""Names that all mean the one zone that is shown as UTC."""
