"""Paths of SQL/JSON, as they were read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields


class Part:
    """Whatever a path is made of."""


@dataclass(frozen=True)
class Member(Part):
    """The values of a key; of all keys if it is None."""

    key: str | None


@dataclass(frozen=True)
class Descendants(Part):
    """The values of a key at every depth, those of an object before those of what is within it."""

    key: str


@dataclass(frozen=True)
class Range(Part):
    """Elements of an array, both ends included; an end is a number and whether it is added to the last index."""

    first: tuple[int, bool]
    last: tuple[int, bool]


@dataclass(frozen=True)
class Subscripts(Part):
    """Elements of an array; all of them if there are no ranges."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class Filter(Part):
    """The items for which a predicate is true."""

    predicate: Part


@dataclass(frozen=True)
class Method(Part):
    """What a method makes of each item: ``size``, ``type``, ``double`` ..."""

    name: str


@dataclass(frozen=True)
class Document(Part):
    """``$``: the document."""


@dataclass(frozen=True)
class Current(Part):
    """``@``: the item that the innermost filter looks at."""


@dataclass(frozen=True)
class Variable(Part):
    """A value of PASSING."""

    name: str


@dataclass(frozen=True)
class Literal(Part):
    """A value written in the path: JSON text, of a string the string itself behind a quotation mark."""

    item: str


@dataclass(frozen=True)
class Sign(Part):
    """Numbers as they are, or negated."""

    negative: bool
    operand: Part


@dataclass(frozen=True)
class Arithmetic(Part):
    """Two numbers and ``+``, ``-``, ``*``, ``/`` or ``%``."""

    operator: str
    left: Part
    right: Part


@dataclass(frozen=True)
class Walk(Part):
    """Steps from items inwards."""

    begin: Part
    steps: tuple[Part, ...]


@dataclass(frozen=True)
class Comparison(Part):
    """Whether an item on the left compares with one on the right."""

    operator: str
    left: Part
    right: Part


@dataclass(frozen=True)
class StartsWith(Part):
    """Whether there is a string that starts with another."""

    whole: Part
    initial: Part


@dataclass(frozen=True)
class Exists(Part):
    """Whether there are items."""

    items: Part


@dataclass(frozen=True)
class Not(Part):
    """The contrary."""

    predicate: Part


@dataclass(frozen=True)
class IsUnknown(Part):
    """Whether it is neither true nor false."""

    predicate: Part


@dataclass(frozen=True)
class Logical(Part):
    """Two predicates and ``AND`` or ``OR``."""

    operator: str
    left: Part
    right: Part


@dataclass(frozen=True)
class JsonPath:
    """A path: its mode, and what is sought."""

    strict: bool
    root: Part


def parts_of_path(part: Part) -> Iterator[Part]:
    """Yield a part and all parts within it.

    >>> [type(part).__name__ for part in parts_of_path(Walk(Document(), (Member("a"),)))]
    ['Walk', 'Document', 'Member']
    """
    yield part
    for field in fields(part):  # type: ignore[arg-type]
        value = getattr(part, field.name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Part):
                yield from parts_of_path(inner)
