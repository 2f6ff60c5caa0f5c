"""Sentences as runs of text with a role, and words for operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from rowmerge_nb.base.words import plural
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.trace.words import letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Run:
    """A piece of a sentence.

    Args:
        style: ``""`` plain, ``I`` ``U`` ``D`` ``N`` an operation, ``code`` a name, ``err`` an
            alarm, ``b`` emphasis, ``nw`` unbroken.
    """

    text: str
    style: str = ""


Phrase: TypeAlias = tuple[Run, ...]


def phrase_text(phrase: Iterable[Run]) -> str:
    return "".join(run.text for run in phrase)


_STYLES: Final = {"·": "N"}
_WORDS: Final = {
    Operation.NONE: "none",
    Operation.INSERT: "INSERT",
    Operation.DELETE: "DELETE",
    Operation.UPDATE: "UPDATE",
    Operation.UPDATE_INSERT: "INSERT",
    Operation.UPDATE_DELETE: "DELETE",
}


def style_of(operation: Operation | int) -> str:
    """Return the style of an operation: I, U, D or N.

    >>> style_of(Operation.UPDATE_DELETE), style_of(-1)
    ('D', 'N')
    """
    letter = Operation(operation).letter
    return _STYLES.get(letter, letter)


def operation_word(operation: Operation | int) -> str:
    """Return the word for an operation; halves of an update are INSERT and DELETE.

    >>> operation_word(Operation.UPDATE_INSERT), operation_word(-1)
    ('INSERT', 'none')
    """
    return _WORDS[Operation(operation)]


def by_operation(total: int, rows: Mapping[str, int | None]) -> str:
    """Return a row count with its counts per operation.

    >>> by_operation(5, {"D": 3, "I": 2}), by_operation(0, {})
    ('5 rows: D 3, I 2', '0 rows')
    """
    return ": ".join(filter(None, [plural(total, "row"), letters(rows)]))
