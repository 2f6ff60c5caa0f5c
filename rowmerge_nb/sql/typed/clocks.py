"""Clocks that name no zone as instants, a column of them at once."""

from __future__ import annotations

import datetime as dt
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.sql.typed.zones import at_clock, zone_info

__all__ = ["instants_of"]

_EPOCH: Final = pa.scalar(0, pa.timestamp("us"))
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_FIRST: Final = np.datetime64("0001-01-03", "us")
_LAST: Final = np.datetime64("9999-12-29", "us")
"""Between these Python can tell a zone's distance from UTC; before and after them it is taken to be that of then."""


def instants_of(clocks: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """Give the instants at which the clocks of a zone show these; see `at_clock`.

    Each clock that is there is asked once: Arrow knows the rules of a zone for the years up to 2037 only.

    Args:
        clocks: ``timestamp[us]``.
        zone: the zone's canonical name.

    Returns:
        ``timestamp[us, UTC]``; NULL where there is no clock.

    >>> clocks = pa.array(["2024-10-27 02:30:00", None, "2050-07-01 00:00:00"]).cast(pa.timestamp("us"))
    >>> [str(moment) for moment in instants_of(clocks, "Europe/Berlin").to_pylist()]
    ['2024-10-27 01:30:00+00:00', 'None', '2050-06-30 22:00:00+00:00']
    >>> instants_of(pa.array(["0001-01-01"]).cast(pa.timestamp("us")), "+01:00").cast(pa.int64())[0].as_py()
    -62135600400000000
    """
    if zone == "UTC":
        return pc.assume_timezone(clocks, zone)
    asked = np.clip(clocks.fill_null(_EPOCH).to_numpy(zero_copy_only=False), _FIRST, _LAST)
    shown, places = np.unique(asked, return_inverse=True)
    info = zone_info(zone)
    distances = [(clock - at_clock(clock, info).replace(tzinfo=None)) // _MICROSECOND for clock in shown.tolist()]
    taken = pa.array(np.array(distances, np.int64)[places], pa.duration("us"))
    return pc.assume_timezone(pc.subtract(clocks, taken), "UTC")
