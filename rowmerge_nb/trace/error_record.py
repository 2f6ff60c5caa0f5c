"""The error that ended a statement, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from rowmerge_nb.trace.raised import Raised


@dataclass(frozen=True)
class Consequence:
    """A fact about the state of a failed statement.

    Args:
        text: the fact, a predicate of ``method`` if that is set: ``was not called``.
        method: the contract method, or ``""``.
    """

    text: str
    method: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.text}".lstrip()


@dataclass(frozen=True)
class ErrorRecord:
    """The error that ended the statement.

    Args:
        consequences: what had happened by then: open sinks, the rollback.
        changed: whether the change persists; None if unknown.
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
