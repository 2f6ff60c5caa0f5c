"""Names: fields, nested scopes, and the symbols of columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import nearest
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.base.errors import AnalysisError
    from rowmerge_nb.spi.types import Type

RESERVED_SYMBOLS: Final = frozenset(
    {
        "unique_id",
        "target_unique_id",
        "source_unique_id",
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
    """Allocates unique, case-insensitive names of columns in the plan.

    They consist of letters, digits and underscores, so that no engine interprets a user's name.

    >>> symbols = Symbols()
    >>> symbols.new("customer"), symbols.new("Customer"), symbols.new("present"), symbols.new(None)
    ('customer', 'customer_0', 'present_0', 'expr')
    >>> symbols.new("${env:HOME}"), symbols.new("a.b"), symbols.new("größe")
    ('_env_home_', 'a_b', 'größe')
    """

    def __init__(self) -> None:
        self._used: set[str] = set(RESERVED_SYMBOLS)
        self._counts: dict[str, int] = {}

    def new(self, name: str | None) -> str:
        base = _UNSAFE.sub("_", (name or "expr").lower().lstrip("$")) or "expr"
        symbol, count = base, self._counts.get(base, 0)
        while symbol in self._used:
            symbol, count = f"{base}_{count}", count + 1
        self._counts[base] = count
        self._used.add(symbol)
        return symbol


@dataclass(frozen=True)
class ScopeField:
    """A column that names can refer to.

    Args:
        name: None if it cannot be named.
        qualified_only: only qualified names refer to it (``old.id`` in RETURNING).
        refusal: the error of a column without an SQL type.
        value: what a computed column of a view is, in columns of its table.
    """

    symbol: str
    name: str | None
    type: Type
    qualifier: tuple[str, ...] = ()
    target: bool = False
    qualified_only: bool = False
    table: tuple[str, ...] = ()
    aliased: bool = False
    is_hidden: bool = False
    refusal: AnalysisError | None = None
    value: e.Typed | None = None

    def read(self, *, outer: bool = False) -> e.Typed:
        """Return the column, or its value; ``outer`` for a subquery's reference to it."""
        if self.value is None:
            return e.Column(self.type, self.symbol, outer)
        columns = {part for part in e.walk(self.value) if isinstance(part, e.Column)}
        pairs = [(column, replace(column, outer=outer)) for column in columns]
        return e.replaced(self.value, pairs)

    def matches(self, parts: Sequence[str]) -> bool:
        if self.name is None or self.name.lower() != parts[-1]:
            return False
        prefix = tuple(parts[:-1])
        return not self.qualified_only if not prefix else self.qualifier[-len(prefix) :] == prefix


@dataclass(frozen=True)
class Match:
    """The candidates for a name, the number of parts used."""

    fields: tuple[ScopeField, ...]
    used: int
    depth: int


@dataclass(frozen=True)
class Scope:
    """The fields that an expression sees; a barrier keeps subqueries from outer names (ON of
    MERGE).
    """

    fields: tuple[ScopeField, ...]
    parent: Scope | None = None
    barrier: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[ScopeField]]:
        """The fields by lower-case name, since tables can be wide."""
        fields: dict[str, list[ScopeField]] = {}
        for field in self.fields:
            if field.name is not None:
                fields.setdefault(field.name.lower(), []).append(field)
        return fields

    def find(self, parts: Sequence[str]) -> Match | None:
        """Return the fields that the longest prefix of a dotted name refers to.

        The innermost scope with a match decides: a column ``s`` of a subquery's table hides an
        outer alias ``s``.
        """
        scope: Scope | None = self
        depth = 0
        while scope is not None:
            for used in range(len(parts), 0, -1):
                candidates = scope.by_name.get(parts[used - 1], ())
                matching = tuple(field for field in candidates if field.matches(parts[:used]))
                if matching:
                    return Match(matching, used, depth)
            scope, depth = scope.parent, depth + 1
        return None

    def blocked(self, depth: int) -> bool:
        scope: Scope | None = self
        for _ in range(depth):
            assert scope is not None
            scope = scope.parent
        return depth > 0 and scope is not None and scope.barrier

    def like(self, parts: Sequence[str]) -> str | None:
        """Return the most similar visible name, qualified if the parts are; columns of the same
        table come first.
        """
        fields: list[ScopeField] = []
        scope: Scope | None = self
        while scope is not None:
            fields += [field for field in scope.fields if field.name is not None]
            scope = scope.parent
        if len(parts) == 1:
            return _nearest(
                parts[0],
                {str(f.name).lower(): column_in_sql(str(f.name)) for f in reversed(fields)},
            )
        qualified = [field for field in fields if field.qualifier]
        mine = [field for field in qualified if field.qualifier[-1] == parts[-2]]
        near = _nearest(
            parts[-1],
            {str(f.name).lower(): _qualified(f) for f in reversed(mine)},
            0.6,
        )
        if near is not None:
            return near
        same = [_qualified(field) for field in qualified if str(field.name).lower() == parts[-1]]
        return same[0] if same else None


def _qualified(field: ScopeField) -> str:
    return column_in_sql(str(field.name), field.qualifier[-1])


def _nearest(name: str, names: Mapping[str, str], cutoff: float = 0.5) -> str | None:
    near = nearest(name, names, cutoff)
    return None if near is None else names[near]
