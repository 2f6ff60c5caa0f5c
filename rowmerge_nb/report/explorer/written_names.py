"""Sides of a row by the names that the statement has for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree.statements import Merge
from rowmerge_nb.sql.tree.syntax import Aliased, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.sql.tree.syntax import Relation
    from rowmerge_nb.trace.journeys import Journey, TermTruth
    from rowmerge_nb.trace.trace import Trace

_SIDES: Final = ("source", "target")


def written_names(trace: Trace) -> Mapping[str, str]:
    """Return the name of each side in the statement: its alias, or the last part of its table's
    name. Without one, a side is ``source`` or ``target``.
    """
    names = dict(zip(_SIDES, _SIDES, strict=True))
    if trace.kind != "MERGE":
        return names
    try:
        # The larger dialect reads statements of both.
        statement = parse(trace.statement, dialect="extended")
    except RowMergeError:
        return names
    if not isinstance(statement, Merge):
        return names
    alias = statement.target_alias
    names["target"] = visible((alias if alias is not None else statement.target.parts[-1]).value)
    names["source"] = visible(_name_of(statement.source))
    return names


def _name_of(relation: Relation) -> str:
    if isinstance(relation, Aliased):
        return relation.alias.value
    if isinstance(relation, Table):
        return relation.name.parts[-1].value
    return "source"


def with_names(journey: Journey, names: Mapping[str, str]) -> Journey:
    """Return a journey whose conditions have their values under these names of the sides."""
    return replace(
        journey,
        on=_renamed(journey.on, names),
        barred=_renamed(journey.barred, names),
        verdicts=tuple(
            replace(verdict, condition=_renamed(verdict.condition, names))
            for verdict in journey.verdicts
        ),
    )


def _renamed(truth: TermTruth | None, names: Mapping[str, str]) -> TermTruth | None:
    if truth is None:
        return None
    return replace(
        truth,
        values=tuple((names.get(side, side), name, value) for side, name, value in truth.values),
        terms=tuple(part for term in truth.terms if (part := _renamed(term, names)) is not None),
    )
