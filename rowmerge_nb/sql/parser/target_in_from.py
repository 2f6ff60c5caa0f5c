"""Finds the target of an UPDATE or DELETE in its FROM, where SQL Server and MySQL name it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree import statements as st
    from rowmerge_nb.sql.tree.statements import Identifier


@dataclass(frozen=True)
class TargetInFrom:
    """The target in FROM, and the rest of FROM.

    Args:
        source: the other relations; None if there are no others.
        conditions: the ON of the joins with the target.
        other_join: a join with the target that is neither INNER with an ON nor CROSS.
    """

    table: s.Table
    alias: Identifier | None
    source: s.Relation | None = None
    conditions: tuple[s.Expression, ...] = ()
    other_join: s.JoinRelation | None = None


def target_in_from(relation: s.Relation, target: st.TableName) -> TargetInFrom | None:
    if isinstance(relation, s.JoinRelation):
        for side, other in ((relation.left, relation.right), (relation.right, relation.left)):
            entry = target_in_from(side, target)
            if entry is not None:
                return _beside(entry, other, relation)
        return None
    names = [part.value for part in target.parts]
    if isinstance(relation, s.Table) and relation.period is None:
        is_target = [part.value for part in relation.name.parts] == names
        return TargetInFrom(relation, None) if is_target else None
    if (
        isinstance(relation, s.Aliased)
        and not relation.columns
        and [relation.alias.value] == names
        and isinstance(relation.relation, s.Table)
        and relation.relation.period is None
    ):
        return TargetInFrom(relation.relation, relation.alias)
    return None


def _beside(entry: TargetInFrom, other: s.Relation, join: s.JoinRelation) -> TargetInFrom:
    is_plain = join.kind == "CROSS" or (join.kind == "INNER" and join.on is not None)
    source = other
    if entry.source is not None:
        source = s.JoinRelation(join.span, "CROSS", entry.source, other)
    return replace(
        entry,
        source=source,
        conditions=(*entry.conditions, *([] if join.on is None else [join.on])),
        other_join=entry.other_join or (None if is_plain else join),
    )
