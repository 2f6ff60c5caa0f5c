"""The properties of a session that have an effect: SET TIME ZONE and SET SESSION set them."""

from __future__ import annotations

from typing import Final

TIME_ZONE: Final = "time_zone_id"
"""The time zone of the session, which SET TIME ZONE also sets."""

RECURSION: Final = "max_recursion_depth"
"""The most steps of WITH RECURSIVE."""
MOST_STEPS: Final = "10"
"""Their number where no statement has set it."""

SESSION_HINT: Final = (
    "SET TIME ZONE sets the time zone; options of a cell, or arguments of run, set how a statement"
    " runs."
)
"""The next step after a statement about other properties."""
