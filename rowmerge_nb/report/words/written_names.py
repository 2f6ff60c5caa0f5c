"""Sides of a row by the names that the statement has for them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree.statements import Delete, Merge, Update
from rowmerge_nb.sql.tree.syntax import Aliased, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowmerge_nb.sql.tree.statements import Identifier
    from rowmerge_nb.sql.tree.syntax import Relation
    from rowmerge_nb.trace.journeys import Journey, TermTruth

_SIDES: Final = ("source", "target")


def with_written_names(journeys: Iterable[Journey], statement: str) -> tuple[Journey, ...]:
    names = written_names(statement)
    return tuple(_with_names(journey, names) for journey in journeys)


@lru_cache(maxsize=4)
def written_names(statement: str) -> Mapping[str, str]:
    """Return the name of each side in the statement: its alias, or the last part of its table's
    name. Without one, a side is ``source`` or ``target``.

    >>> written_names("MERGE INTO lake.accounts t USING news ON t.id = news.id WHEN MATCHED THEN DELETE")
    {'source': 'news', 'target': 't'}
    >>> written_names("DELETE FROM lake.accounts WHERE purchases > 5")["target"]
    'accounts'
    >>> written_names("UPDATE lake.accounts a SET purchases = 5")["target"]
    'a'
    """
    names = dict(zip(_SIDES, _SIDES, strict=True))
    try:
        # The larger dialect reads statements of both.
        tree = parse(statement, dialect="extended")
    except RowMergeError:
        return names
    if isinstance(tree, Merge):
        alias = tree.target_alias
        names["target"] = _in_sql(alias if alias is not None else tree.target.parts[-1])
        names["source"] = _name_of(tree.source)
    elif isinstance(tree, (Update, Delete)):
        names["target"] = _in_sql(tree.alias or tree.target.parts[-1])
    return names


def _name_of(relation: Relation) -> str:
    if isinstance(relation, Aliased):
        return _in_sql(relation.alias)
    if isinstance(relation, Table):
        return _in_sql(relation.name.parts[-1])
    return "source"


def _in_sql(name: Identifier) -> str:
    return visible(column_in_sql(name.value))


def _with_names(journey: Journey, names: Mapping[str, str]) -> Journey:
    return replace(
        journey,
        on=renamed(journey.on, names),
        barred=renamed(journey.barred, names),
        verdicts=tuple(
            replace(verdict, condition=renamed(verdict.condition, names))
            for verdict in journey.verdicts
        ),
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
