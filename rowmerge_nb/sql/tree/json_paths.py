"""Paths of SQL/JSON, as they were read."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["JsonPath", "Member", "Range", "Subscripts"]


@dataclass(frozen=True)
class Member:
    """The values of a key; of all keys if it is None."""

    key: str | None


@dataclass(frozen=True)
class Range:
    """Elements of an array, both ends included; an end is a number and whether it is added to the last index."""

    first: tuple[int, bool]
    last: tuple[int, bool]


@dataclass(frozen=True)
class Subscripts:
    """Elements of an array; all of them if there are no ranges."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class JsonPath:
    """A path: its mode, and its steps from the document inwards."""

    strict: bool
    steps: tuple[Member | Subscripts, ...]
