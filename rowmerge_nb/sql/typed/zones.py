"""Names of time zones as Trino knows them."""

from __future__ import annotations

import datetime as dt
import functools
import re
import zoneinfo
from typing import Final

__all__ = ["UTC_NAMES", "canonical_zone", "to_utc"]

_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)
_MOST_MINUTES: Final = 14 * 60


def canonical_zone(name: str) -> str | None:
    """Give a zone's name in the form in which Trino shows it; None if there is no such zone.

    >>> canonical_zone("europe/berlin"), canonical_zone("Z"), canonical_zone("-3:30"), canonical_zone("Nowhere")
    ('Europe/Berlin', 'UTC', '-03:30', None)
    """
    if name.lower() in UTC_NAMES:
        return "UTC"
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return _regions().get(name.lower())
    hours, minutes = int(offset[2]), int(offset[3] or 0)
    if minutes > 59 or hours * 60 + minutes > _MOST_MINUTES:
        return None
    return f"{offset[1]}{hours:02d}:{minutes:02d}" if hours or minutes else "UTC"


@functools.cache
def _regions() -> dict[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones() if name not in {"localtime", "posixrules"}}


def to_utc(moment: dt.datetime, zone: str) -> dt.datetime:
    """Give the instant of a wall clock in a zone of canonical name, in UTC; of a clock that shows twice, the first.

    Raises:
        ValueError: the zone's clocks skip this time.

    >>> to_utc(dt.datetime(2024, 3, 31, 3, 30), "Europe/Berlin")
    datetime.datetime(2024, 3, 31, 1, 30)
    """
    if zone[0] in "+-":
        minutes = int(zone[1:3]) * 60 + int(zone[4:])
        return moment - dt.timedelta(minutes=-minutes if zone[0] == "-" else minutes)
    info = zoneinfo.ZoneInfo(zone)
    found = moment.replace(tzinfo=info).astimezone(dt.UTC)
    if found.astimezone(info).replace(tzinfo=None) != moment:
        msg = f"The clocks of {zone} skip {moment}"
        raise ValueError(msg)
    return found.replace(tzinfo=None)


UTC_NAMES: Final = (
    *("utc", "z", "ut", "uct", "gmt", "gmt0", "greenwich", "universal", "zulu", "+00:00", "-00:00"),
    *(f"etc/{name}" for name in ("utc", "uct", "ut", "gmt", "gmt0", "greenwich", "universal", "zulu")),
)
"""Names, in lower case, that all mean the one zone that is shown as UTC."""
