"""How a statement waits for the statements before it that change the same table, if the store
queues them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import StatementInterrupted

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

TURN_SECONDS: Final = 600.0
"""A statement waits at most this long. Then it goes on, and the commits decide."""
_LOOK_SECONDS: Final = 0.2
"""How often a waiting statement checks whether it was canceled."""


def await_turn(
    has_come: Callable[[float], bool],
    cancelled: threading.Event,
    step: str,
    begin_step: Callable[[str], object],
) -> None:
    """Wait until the turn of a statement has come, or `TURN_SECONDS` have passed.

    Args:
        has_come: waits for some seconds and returns whether the turn has come.

    >>> import threading
    >>> await_turn(lambda seconds: True, threading.Event(), "analyze", print)
    """
    if has_come(0):
        return
    begin_step("wait")
    end = time.monotonic() + TURN_SECONDS
    while not has_come(_LOOK_SECONDS) and time.monotonic() < end:
        if cancelled.is_set():
            raise StatementInterrupted("The statement was cancelled", step=step)
    begin_step(step)
