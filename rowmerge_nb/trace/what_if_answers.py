"""What a statement's rows would have become under other options, as plain data beside the trace of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace


@dataclass(frozen=True)
class Variants:
    """What the same rows would have become under other options.

    Args:
        choices: the options that can be set otherwise, each with its values: ``paradigm``, ``era``, ``duplicates``.
        traces: per value of ``choices``, in that order, what would have come of it; the run's own is not among them. It has pages, writers
            and an outcome, and neither calls nor fragments: nothing was run.
        why: a sentence about options that cannot be set otherwise; ``""`` if all can.
    """

    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    traces: Mapping[tuple[str, ...], Trace] = field(default_factory=dict)
    why: str = ""
