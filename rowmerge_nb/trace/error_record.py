"""The error that ended a statement, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rowmerge_nb.trace.raised import Raised

if TYPE_CHECKING:
    from rowmerge_nb.base.errors import RowMergeError


@dataclass(frozen=True)
class Consequence:
    """A fact about the state of a failed statement.

    Args:
        text: the fact, a predicate of ``method`` if that is set: ``was not called``.
    """

    text: str
    method: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.text}".lstrip()


class StateEvidence(StrEnum):
    """How it is known that a failed statement has left its table alone."""

    NO_SINK = "no sink"
    """No call that could store a row was made."""
    VERSION = "version"
    """The table has the version that the statement read."""
    ROWS = "rows"
    """The table has the rows that it had before."""


@dataclass(frozen=True)
class ErrorRecord:
    """The error that ended the statement.

    Args:
        consequences: what had happened by then: open sinks, the rollback.
        changed: whether the change persists; None if unknown.
        evidence: how it is known that the table is as before; None if it was not looked at.
        raised: errors of the connector's code: the one that ended the statement, then those of the
            cleanup.
    """

    code: str
    message: str
    line: int | None
    column: int | None
    length: int
    hint: str | None
    step: str
    consequences: tuple[Consequence, ...] = ()
    changed: bool | None = False
    raised: tuple[Raised, ...] = ()
    evidence: StateEvidence | None = None


def error_record(error: RowMergeError, consequences: tuple[Consequence, ...]) -> ErrorRecord:
    step = getattr(error, "step", "")
    return ErrorRecord(
        error.code,
        error.message,
        *error.shown,
        error.hint,
        step,
        consequences,
        error.changed,
        error.raised,
    )
