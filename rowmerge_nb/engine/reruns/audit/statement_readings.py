"""Variants of a statement, each written as another engine may have read it.

A known difference explains rows if the variant leaves the rows that the table holds. Variants only
replace text at the spans of the tree; analysis shows whether one is valid.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.sql.tree import statements as t
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.trace.audit import Cause

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Span

NO_COLUMNS: Final[Mapping[str, bool]] = MappingProxyType({})
MOST_PAIRS: Final = 10
"""The maximum number of clause pairs to swap."""
_INTEGERS: Final = frozenset({"tinyint", "smallint", "integer", "int", "bigint"})
_MOMENTARY: Final = frozenset(
    {
        "random",
        "rand",
        "uuid",
        "now",
        "shuffle",
        "current_timestamp",
        "localtimestamp",
        "current_date",
    }
)


@dataclass(frozen=True)
class Variant:
    cause: Cause
    sentence: str
    text: str
    changes: tuple[tuple[Span, str], ...]

    @property
    def statement(self) -> str:
        text = self.text
        for span, new in sorted(self.changes, key=lambda change: change[0].start, reverse=True):
            text = text[: span.start] + new + text[span.end :]
        return text

    @property
    def parts(self) -> tuple[Variant, ...]:
        return tuple(replace(self, changes=(change,)) for change in self.changes)


def variants_of(
    statement: t.Merge | t.Update | t.Delete, integers: Mapping[str, bool] = NO_COLUMNS
) -> Iterator[Variant]:
    """Yield a variant per known difference, the likelier ones first."""
    text = statement.text
    joining = (
        [statement.on]
        if isinstance(statement, t.Merge)
        else [statement.where]
        if statement.where is not None
        else []
    )
    equalities = [equality for condition in joining for equality in _equalities(condition)]
    yield from _keys(text, equalities)
    yield from _fractions(statement, integers)
    conditions = list(_conditions(statement))
    for name, condition in conditions:
        change = (condition.span, f"(({condition.span.of(text)}) IS DISTINCT FROM FALSE)")
        yield Variant(Cause.UNKNOWN, f"{name} is unknown and was treated as true", text, (change,))
    if isinstance(statement, t.Merge):
        yield from _orders(statement)
    for name, condition in conditions:
        yield Variant(Cause.CONDITION, f"{name} was not applied", text, ((condition.span, "TRUE"),))


def momentary(statement: t.Statement) -> list[str]:
    """Return the names of functions that depend on the time or on chance."""
    names = []
    for node in _walk(statement):
        name = (
            node.name
            if isinstance(node, s.FunctionCall)
            else node.word
            if isinstance(node, s.Special)
            else ""
        )
        if name.lower() in _MOMENTARY:
            names.append(name.lower())
    return list(dict.fromkeys(names))


def _keys(text: str, equalities: Sequence[s.Binary]) -> Iterator[Variant]:
    forms = (
        (
            Cause.NULL_KEYS,
            "NULL was treated as equal to NULL",
            "({left} IS NOT DISTINCT FROM {right})",
        ),
        (
            Cause.CASE,
            "texts were compared without case",
            "(lower({left}) = lower({right}))",
        ),
        (
            Cause.PADDING,
            "texts were compared without trailing blanks",
            "(rtrim({left}) = rtrim({right}))",
        ),
    )
    for cause, sentence, form in forms:
        sides = [(one.span, one.left.span.of(text), one.right.span.of(text)) for one in equalities]
        changes = tuple((span, form.format(left=left, right=right)) for span, left, right in sides)
        if changes:
            yield Variant(cause, sentence, text, changes)


def _fractions(
    statement: t.Merge | t.Update | t.Delete, integers: Mapping[str, bool]
) -> Iterator[Variant]:
    text = statement.text
    # It is rounded where it is stored, also what is one already: then the change says nothing.
    truncations = {
        value.span: f"truncate({value.span.of(text)})"
        for column, value in _assigned(statement, integers)
        if integers[column]
    }
    sentence = "a value for an integer column was truncated instead of rounded"
    if truncations:
        yield Variant(Cause.FRACTIONS, sentence, text, tuple(truncations.items()))
    casts: dict[Span, str] = {}
    for node in _walk(statement):
        if (
            isinstance(node, s.Cast)
            and node.type.text.lower() in _INTEGERS
            and not any(_within(node.value.span, span) for span in casts)
        ):
            casts[node.value.span] = f"truncate({node.value.span.of(text)})"
    if casts:
        yield Variant(
            Cause.FRACTIONS,
            "CAST to an integer truncated instead of rounding",
            text,
            tuple(casts.items()),
        )


def _assigned(
    statement: t.Merge | t.Update | t.Delete, columns: Mapping[str, bool]
) -> Iterator[tuple[str, s.Expression]]:
    if isinstance(statement, t.Delete):
        return
    for clause in statement.clauses if isinstance(statement, t.Merge) else (statement,):
        names = [column.value.lower() for column in clause.columns] or list(columns)
        yield from (
            (name, value)
            for name, value in zip(names, clause.values, strict=False)
            if name in columns
        )


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _equalities(condition: s.Expression) -> Iterator[s.Binary]:
    if isinstance(condition, s.Logical):
        for term in condition.terms:
            yield from _equalities(term)
    elif isinstance(condition, s.Binary) and condition.operator == "=":
        yield condition


def _conditions(statement: t.Merge | t.Update | t.Delete) -> Iterator[tuple[str, s.Expression]]:
    if isinstance(statement, t.Merge):
        for clause in statement.clauses:
            if clause.condition is not None:
                yield f"the condition of clause {clause.number}", clause.condition
    elif statement.where is not None:
        yield "the WHERE condition", statement.where


def _orders(statement: t.Merge) -> Iterator[Variant]:
    pairs = [
        (one, other)
        for one, other in itertools.combinations(statement.clauses, 2)
        if (one.matched, one.by_source) == (other.matched, other.by_source)
    ]
    for one, other in pairs[:MOST_PAIRS]:
        changes = (
            (one.span, other.span.of(statement.text)),
            (
                other.span,
                one.span.of(statement.text),
            ),
        )
        sentence = f"clause {other.number} was evaluated before clause {one.number}"
        yield Variant(Cause.ORDER, sentence, statement.text, changes)


def _walk(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for part in node:
            yield from _walk(part)
    elif is_dataclass(node):
        yield node
        for field in fields(node):
            yield from _walk(getattr(node, field.name))
