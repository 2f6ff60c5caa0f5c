"""What a name may mean: fields, scopes around scopes, and the symbols that stand for columns in the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.base.errors import AnalysisError
    from rowmerge_nb.spi.types import Type

RESERVED_SYMBOLS: Final = frozenset(
    {
        "unique_id",
        "present",
        "source_present",
        "returning",
        "row_id",
        "merge_row",
        "case_number",
        "is_distinct",
        "hash",
        "operation",
        "insert_from_update",
    }
)
"""Names that the planner gives to its own columns."""
_UNSAFE: Final = re.compile(r"\W")


class Symbols:
    """Allocates the names of columns in the plan: like the column's name, unique whatever the letter case.

    They are made of letters, digits and underscores, so that no name of a user's can mean something to an engine that reads the plan's text.

    >>> symbols = Symbols()
    >>> symbols.new("customer"), symbols.new("Customer"), symbols.new("present"), symbols.new(None)
    ('customer', 'customer_0', 'present_0', 'expr')
    >>> symbols.new("${env:HOME}"), symbols.new("a.b"), symbols.new("größe")
    ('_env_home_', 'a_b', 'größe')
    """

    def __init__(self) -> None:
        """Begin with nothing given out but the planner's own names."""
        self._used: set[str] = set(RESERVED_SYMBOLS)
        self._counts: dict[str, int] = {}

    def new(self, name: str | None) -> str:
        """Return a symbol like this name that no other column of the statement has."""
        base = _UNSAFE.sub("_", (name or "expr").lower().lstrip("$")) or "expr"
        symbol, count = base, self._counts.get(base, 0)
        while symbol in self._used:
            symbol, count = f"{base}_{count}", count + 1
        self._counts[base] = count
        self._used.add(symbol)
        return symbol


@dataclass(frozen=True)
class ScopeField:
    """A column that names can find.

    Args:
        symbol: its symbol.
        name: its name as written; None if it has none, and then no name finds it.
        type: its type.
        qualifier: the parts that may stand before its name, lower case: an alias, or the table's name as written.
        target: it is a column of a MERGE's target.
        qualified_only: only a qualified name finds it (``old.id`` in RETURNING).
        table: catalog, schema and name of the table or view that it is a column of; empty for what is computed.
        aliased: it was given another name.
        hidden: ``*`` leaves it out.
        refused: the error of a column whose values no SQL type holds; raised where the statement reads the column.
    """

    symbol: str
    name: str | None
    type: Type
    qualifier: tuple[str, ...] = ()
    target: bool = False
    qualified_only: bool = False
    table: tuple[str, ...] = ()
    aliased: bool = False
    hidden: bool = False
    refused: AnalysisError | None = None

    def matches(self, parts: Sequence[str]) -> bool:
        """Do these parts name this field? What stands before the name must be the end of the qualifier."""
        if self.name is None or self.name.lower() != parts[-1]:
            return False
        prefix = tuple(parts[:-1])
        return not self.qualified_only if not prefix else self.qualifier[-len(prefix) :] == prefix


@dataclass(frozen=True)
class Found:
    """What a name was found to mean: candidates (more than one: ambiguous), how many parts they took, and how far out."""

    fields: tuple[ScopeField, ...]
    used: int
    depth: int


@dataclass(frozen=True)
class Scope:
    """The fields that an expression sees, and the scope of the query around.

    Args:
        fields: the fields.
        parent: the scope around; its fields are outer ones.
        barrier: the text of a clause from whose subqueries nothing outside may be referred to (ON of MERGE).
    """

    fields: tuple[ScopeField, ...]
    parent: Scope | None = None
    barrier: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[ScopeField]]:
        """The fields by their names in lower case: a wide table's columns are not looked through for every name."""
        found: dict[str, list[ScopeField]] = {}
        for field in self.fields:
            if field.name is not None:
                found.setdefault(field.name.lower(), []).append(field)
        return found

    def find(self, parts: Sequence[str]) -> Found | None:
        """Find the fields that the longest beginning of a dotted name means.

        The innermost scope decides in which the name or a beginning of it is a column: in a subquery whose table has a column ``s``,
        ``s.id`` is a field of that column, and the alias ``s`` of a table outside cannot be reached.
        """
        scope: Scope | None = self
        depth = 0
        while scope is not None:
            for used in range(len(parts), 0, -1):
                named = scope.by_name.get(parts[used - 1], ())
                matching = tuple(field for field in named if field.matches(parts[:used]))
                if matching:
                    return Found(matching, used, depth)
            scope, depth = scope.parent, depth + 1
        return None

    def blocked(self, depth: int) -> bool:
        """May a name not reach ``depth`` scopes out, because a barrier lies between?"""
        scope: Scope | None = self
        for _ in range(depth):
            assert scope is not None
            scope = scope.parent
        return depth > 0 and scope is not None and scope.barrier

    def like(self, parts: Sequence[str]) -> str | None:
        """Return the visible name most like this one, qualified where the parts are; None if none is near.

        Of a qualified name the column is compared with those of the same table; a column of just this name in another table
        comes after them.
        """
        fields: list[ScopeField] = []
        scope: Scope | None = self
        while scope is not None:
            fields += [field for field in scope.fields if field.name is not None]
            scope = scope.parent
        if len(parts) == 1:
            return _nearest(parts[0], {str(field.name).lower(): str(field.name) for field in reversed(fields)})
        qualified = [field for field in fields if field.qualifier]
        mine = [field for field in qualified if field.qualifier[-1] == parts[-2]]
        near = _nearest(parts[-1], {str(f.name).lower(): f"{f.qualifier[-1]}.{f.name}" for f in reversed(mine)}, 0.6)
        if near is not None:
            return near
        same = [f"{field.qualifier[-1]}.{field.name}" for field in qualified if str(field.name).lower() == parts[-1]]
        return same[0] if same else None


def _nearest(wanted: str, names: Mapping[str, str], cutoff: float = 0.5) -> str | None:
    near = nearest(wanted, names, cutoff)
    return None if near is None else names[near]
