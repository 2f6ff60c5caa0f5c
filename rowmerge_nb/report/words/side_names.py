"""Sides of a row by the names that the statement has for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.sql.parser.column_names import column_in_sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowmerge_nb.trace.journeys import Journey, TermTruth
    from rowmerge_nb.trace.trace import Trace


def side_names(target: str, source: str) -> Mapping[str, str]:
    """Return the display name of each side; a side without an alias is ``source`` or ``target``.

    >>> side_names("t", "new rows")
    {'source': '"new rows"', 'target': 't'}
    >>> side_names("accounts", "")["source"]
    'source'
    """
    return {
        side: visible(column_in_sql(alias)) if alias else side
        for side, alias in (("source", source), ("target", target))
    }


def names_in(trace: Trace) -> Mapping[str, str]:
    return side_names(trace.target.alias, trace.join.source_alias)


def with_side_names(journeys: Iterable[Journey], names: Mapping[str, str]) -> tuple[Journey, ...]:
    return tuple(
        replace(
            journey,
            on=renamed(journey.on, names),
            barred=renamed(journey.barred, names),
            verdicts=tuple(
                replace(verdict, condition=renamed(verdict.condition, names))
                for verdict in journey.verdicts
            ),
        )
        for journey in journeys
    )


def renamed(truth: TermTruth | None, names: Mapping[str, str]) -> TermTruth | None:
    """Return a condition's result with its values under these names of the sides."""
    if truth is None:
        return None
    return replace(
        truth,
        values=tuple((names.get(side, side), name, value) for side, name, value in truth.values),
        terms=tuple(part for term in truth.terms if (part := renamed(term, names)) is not None),
    )
