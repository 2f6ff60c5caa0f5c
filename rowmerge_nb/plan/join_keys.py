"""The keys of a join on pages: the equalities of ON that an index can decide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter, may_fail
from rowmerge_nb.sql.typed.domains import conjunction, conjuncts, key_column, same_values
from rowmerge_nb.sql.typed.expressions import (
    Apply,
    Column,
    Typed,
    has_subquery,
    is_deterministic,
    references,
)
from rowmerge_nb.sql.typed.type_rules import is_float, is_integer

if TYPE_CHECKING:
    from rowmerge_nb.plan.plan_nodes import Join
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.typed.expressions import Origin

NO_KEYS: Final = (
    "ON has no equality, without a subquery, between a value of the target and a"
    " value of the source"
)
SEVERAL_KEYS: Final = "ON joins by either of two keys, and no row goes to one task for both"

_KEY_TYPES: Final = frozenset(
    {
        "decimal",
        "varchar",
        "char",
        "varbinary",
        "uuid",
        "boolean",
        "date",
        "time",
        "timestamp",
        "timestamp with time zone",
    }
)


@dataclass(frozen=True)
class PageKey:
    """An equality of ON that an index decides.

    Args:
        nulls_meet: NULL equals NULL: IS NOT DISTINCT FROM.
    """

    term: Typed
    target: Typed
    source: Typed
    nulls_meet: bool

    @property
    def may_fail(self) -> bool:
        return may_fail(self.target) or may_fail(self.source)


def page_keys(join: Join) -> tuple[PageKey, ...]:
    """Return the keys of a join on pages; none if no index can decide ON.

    Keys are computed for all rows. A key that may fail is used only if ON has no other, and only
    for rows that meet the conditions of ON on their side. Trino also computes these conditions
    first.
    """
    keys = [
        key for key in (_key(term, join) for term in conjuncts(join.predicate)) if key is not None
    ]
    sure = tuple(key for key in keys if not key.may_fail)
    return sure or tuple(_guarded(key, join) for key in keys)


def key_sets(join: Join) -> tuple[tuple[PageKey, ...], ...]:
    """Return sets of keys: a pair of rows for which ON is true has equal values in at least one
    set.

    ``t.id = s.id OR t.mail = s.mail`` has two sets. Without a set, no index can decide ON.
    """
    keys = page_keys(join)
    if keys:
        return (keys,)
    for term in conjuncts(join.predicate):
        sets = [_sure_keys(part, join) for part in _disjuncts(term)]
        if len(sets) > 1 and all(sets):
            return tuple(sets)
    return ()


def _sure_keys(condition: Typed, join: Join) -> tuple[PageKey, ...]:
    keys = (_key(term, join) for term in conjuncts(condition))
    return tuple(key for key in keys if key is not None and not key.may_fail)


def _disjuncts(condition: Typed) -> list[Typed]:
    if isinstance(condition, Apply) and condition.name == "or":
        return [part for argument in condition.arguments for part in _disjuncts(argument)]
    return [condition]


def _key(term: Typed, join: Join) -> PageKey | None:
    target, source = (frozenset(symbol.name for symbol in side.outputs) for side in join.sources)
    return key_of(term, target, source, join.predicate.origin)


def key_of(
    term: Typed, target: frozenset[str], source: frozenset[str], origin: Origin | None
) -> PageKey | None:
    """Return the key that a condition is; None if it is no equality of both sides, or pages cannot
    compute it.

    Args:
        origin: that of the values.
    """
    equality = _equality_of(term)
    if equality is None:
        return None
    nulls_meet = equality != term or equality.name == "distinct"
    left, right = equality.arguments
    sides = [references(side) for side in (left, right)]
    if sides[0] and sides[1] and sides[0] <= source and sides[1] <= target:
        left, right = right, left
    elif not (sides[0] and sides[1] and sides[0] <= target and sides[1] <= source):
        return None
    if has_subquery(term) or not is_deterministic(term):
        return None
    left, right = _plain(left, right)
    if not _is_key_type(left.type) or not _is_key_type(right.type):
        return None
    try:
        for side in (left, right):
            PagePrinter().text(side, condition=False)
    except UnprintableError:
        return None
    return PageKey(
        term, replace(left, origin=origin), replace(right, origin=origin), nulls_meet=nulls_meet
    )


def _equality_of(term: Typed) -> Apply | None:
    """Return the equality in ``a = b``, ``a IS NOT DISTINCT FROM b`` or
    ``a = b OR (a IS NULL AND b IS NULL)``.
    """
    if not isinstance(term, Apply):
        return None
    if term.name == "=" or (term.name == "distinct" and term.detail):
        return term
    parts = _disjuncts(term)
    equality = next((part for part in parts if isinstance(part, Apply) and part.name == "="), None)
    if equality is None or len(parts) != 2:
        return None
    nulls = conjuncts(parts[0] if equality is parts[1] else parts[1])
    values = [
        null.arguments[0]
        for null in nulls
        if isinstance(null, Apply) and null.name == "is null" and not null.detail
    ]
    is_both = len(nulls) == len(values) == 2 and any(
        values == list(pair) for pair in (equality.arguments, equality.arguments[::-1])
    )
    return equality if is_both else None


def _plain(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Return the columns below lossless casts, if both store their values alike."""
    plain = key_column(left), key_column(right)
    if plain[0] is not None and plain[1] is not None and same_values(plain[0].type, plain[1].type):
        return plain[0], plain[1]
    return left, right


def _is_key_type(sql_type: Type) -> bool:
    if sql_type.base in {"row", "array"}:
        return all(_is_key_type(part) for part in sql_type.parameters)
    # Beside its instant, a value may have a zone of its own.
    return (
        is_integer(sql_type)
        or is_float(sql_type)
        or (sql_type.base in _KEY_TYPES and not sql_type.fields)
    )


def _guarded(key: PageKey, join: Join) -> PageKey:
    """Return a key that is NULL unless the row meets the conditions of ON on its side."""
    sides = []
    for value, side in zip((key.target, key.source), join.sources, strict=True):
        own = frozenset(symbol.name for symbol in side.outputs)
        terms = [
            term
            for term in conjuncts(join.predicate)
            if references(term) and references(term) <= own and not has_subquery(term)
        ]
        if isinstance(value, Column) or not may_fail(value) or not terms:
            sides.append(value)
            continue
        guarded = Apply(value.type, "case", (conjunction(terms), value))
        sides.append(replace(guarded, origin=value.origin))
    return replace(key, target=sides[0], source=sides[1])
