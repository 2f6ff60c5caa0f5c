"""Wall clocks of a zone and instants, as columns."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.sql.typed.zones import at_clock, zone_info

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH: Final = pa.scalar(0, pa.timestamp("us"))
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_FIRST: Final = np.datetime64("0001-01-03", "us")
_LAST: Final = np.datetime64("9999-12-29", "us")
"""Between these Python can tell a zone's distance from UTC; before and after them it is taken to be
that of then.
"""


def instants_of(clocks: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """Return the instants (``timestamp[us, UTC]``) at which a zone's clocks (``timestamp[us]``)
    show a time; see `at_clock`. NULL stays NULL.

    >>> clocks = pa.array(["2024-10-27 02:30:00", None, "2050-07-01 00:00:00"]).cast(pa.timestamp("us"))
    >>> [str(moment) for moment in instants_of(clocks, "Europe/Berlin").to_pylist()]
    ['2024-10-27 01:30:00+00:00', 'None', '2050-06-30 22:00:00+00:00']
    >>> instants_of(pa.array(["0001-01-01"]).cast(pa.timestamp("us")), "+01:00").cast(pa.int64())[0].as_py()
    -62135600400000000
    """
    if zone == "UTC":
        return pc.assume_timezone(clocks, zone)
    info = zone_info(zone)
    offsets = _distances(clocks, lambda clock: clock - at_clock(clock, info).replace(tzinfo=None))
    return pc.assume_timezone(pc.subtract(clocks, offsets), "UTC")


def clocks_of(instants: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """Return what a zone's clocks show (``timestamp[us]``) at instants (``timestamp[us, UTC]``).

    NULL stays NULL.

    >>> instants = pa.array(["2024-10-27 01:30:00Z", None, "2050-06-30 22:00:00Z"]).cast(pa.timestamp("us", "UTC"))
    >>> [str(clock) for clock in clocks_of(instants, "Europe/Berlin").to_pylist()]
    ['2024-10-27 02:30:00', 'None', '2050-07-01 00:00:00']
    """
    read = instants.cast(pa.timestamp("us"))
    if zone == "UTC":
        return read
    info = zone_info(zone)
    return pc.add(
        read,
        _distances(read, lambda clock: info.utcoffset(info.fromutc(clock.replace(tzinfo=info)))),
    )


def _distances(
    times: pa.TimestampArray, distance: Callable[[dt.datetime], Any]
) -> pa.DurationArray:
    """Return a zone's UTC offsets at some times.

    Python is asked once per distinct time: Arrow knows rules up to 2037 only.
    """
    times_in_range = np.clip(times.fill_null(_EPOCH).to_numpy(zero_copy_only=False), _FIRST, _LAST)
    distinct_times, indexes = np.unique(times_in_range, return_inverse=True)
    distances = [distance(time) // _MICROSECOND for time in distinct_times.tolist()]
    return pa.array(np.array(distances, np.int64)[indexes], pa.duration("us"))
