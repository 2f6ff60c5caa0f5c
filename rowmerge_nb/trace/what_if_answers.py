"""Derived outcomes of a statement under other options, beside the trace of its run."""

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
        choices: the variable options ``paradigm``, ``era`` and ``duplicates``, each with its values.
        traces: the outcome per combination of ``choices``, except that of the run. Such a trace has pages, writers and an
            outcome, but no calls or fragments, since nothing ran.
        why: why an option cannot vary.
    """

    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    traces: Mapping[tuple[str, ...], Trace] = field(default_factory=dict)
    why: str = ""
