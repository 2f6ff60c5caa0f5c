"""Replay: repeat the calls of a recorded statement without Spark, so that a debugger works.

::

    import rowmerge_nb as rm

    done = rm.replay("merge.record", make_connector)   # pages into sinks, fragments into the finish call, rows compared
    done.debug()                                       # the debugger, at the line that failed
    done.shrink().to_test("test_shop.py")              # the fewest rows that still fail, as a test
"""

from __future__ import annotations

from rowmerge_nb.replays.case import case
from rowmerge_nb.replays.run import Replay, replay
from rowmerge_nb.replays.shrinking import shrink

__all__ = ["Replay", "case", "replay", "shrink"]
