"""Outcomes of a statement under other options, derived from its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace


@dataclass(frozen=True)
class Variants:
    """Outcomes of the same rows under other options.

    Args:
        choices: the values of ``paradigm``, ``era`` and ``duplicates``.
        traces: the outcome per combination, except that of the run; without calls and fragments.
        why: why an option cannot vary.
    """

    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    traces: Mapping[tuple[str, ...], Trace] = field(default_factory=dict)
    why: str = ""
