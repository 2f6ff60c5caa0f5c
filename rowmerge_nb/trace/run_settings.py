"""The settings that a statement ran with, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from rowmerge_nb.base.choices import Flow, RepeatedMatches, TraceLevel


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings that a statement ran with: those of its options, and the connector's paradigm.

    Args:
        paradigm: the connector's row change paradigm; ``""`` for other statements.
        era: ``documents`` or ``current``.
    """

    paradigm: str = ""
    era: str = "documents"
    duplicates: RepeatedMatches = RepeatedMatches.TRINO
    flow: Flow = Flow.MERGE
    trace_level: TraceLevel = TraceLevel.AUTO
