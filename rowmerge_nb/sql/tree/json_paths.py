"""Syntax trees of SQL/JSON paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields


class Part:
    """Base of the parts of a path."""


@dataclass(frozen=True)
class Member(Part):
    """The values of a key, or of all keys (None)."""

    key: str | None


@dataclass(frozen=True)
class Descendants(Part):
    """The values of a key at every depth, outer ones first."""

    key: str


@dataclass(frozen=True)
class Range(Part):
    """Elements of an array, both ends included; an end is a number, and whether it counts from the
    last index.
    """

    first: tuple[int, bool]
    last: tuple[int, bool]


@dataclass(frozen=True)
class Subscripts(Part):
    """Elements of an array; all of them without ranges."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class PathFilter(Part):
    """The items for which a predicate is true."""

    predicate: Part


@dataclass(frozen=True)
class Method(Part):
    """A method applied to each item: ``size``, ``type``, ``double`` ..."""

    name: str


@dataclass(frozen=True)
class Document(Part):
    """``$``: the document."""


@dataclass(frozen=True)
class Current(Part):
    """``@``: the current item of the innermost filter."""


@dataclass(frozen=True)
class PathVariable(Part):
    name: str


@dataclass(frozen=True)
class PathLiteral(Part):
    """A literal as JSON text; a string as itself after a quotation mark."""

    item: str


@dataclass(frozen=True)
class Sign(Part):
    """Numbers, unchanged or negated."""

    negative: bool
    operand: Part


@dataclass(frozen=True)
class Arithmetic(Part):
    """``+``, ``-``, ``*``, ``/`` or ``%`` of two numbers."""

    operator: str
    left: Part
    right: Part


@dataclass(frozen=True)
class Walk(Part):
    begin: Part
    steps: tuple[Part, ...]


@dataclass(frozen=True)
class PathComparison(Part):
    """A comparison that holds for some pair of items."""

    operator: str
    left: Part
    right: Part


@dataclass(frozen=True)
class StartsWith(Part):
    """Whether a string starts with another."""

    whole: Part
    initial: Part


@dataclass(frozen=True)
class PathExists(Part):
    """Whether there are items."""

    items: Part


@dataclass(frozen=True)
class PathNot(Part):
    predicate: Part


@dataclass(frozen=True)
class IsUnknown(Part):
    predicate: Part


@dataclass(frozen=True)
class PathLogical(Part):
    """``AND`` or ``OR`` of two predicates."""

    operator: str
    left: Part
    right: Part


@dataclass(frozen=True)
class JsonPath:
    strict: bool
    root: Part


def parts_of_path(part: Part) -> Iterator[Part]:
    """Yield a part and its descendants.

    >>> [type(part).__name__ for part in parts_of_path(Walk(Document(), (Member("a"),)))]
    ['Walk', 'Document', 'Member']
    """
    yield part
    for field in fields(part):  # type: ignore[arg-type]
        value = getattr(part, field.name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Part):
                yield from parts_of_path(inner)
