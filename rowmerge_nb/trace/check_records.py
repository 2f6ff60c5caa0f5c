"""Checks of a finished statement, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VerificationRecord:
    """The result of another engine (option ``verify``).

    Args:
        engine: ``DuckDB`` or ``PostgreSQL``.
        state: ``agrees``, ``differs``, ``other rule`` (for repeated matches) or ``not compared``.
    """

    engine: str
    state: str
    message: str


@dataclass(frozen=True)
class WrongRow:
    """A row that the store should hold differently.

    Args:
        sentence: the difference, with values.
        writer: the writer whose sink got the change, if any.
        joined_row: index in the sample ``before``; None for a row that the statement did not touch.
    """

    sentence: str
    writer: int | None = None
    joined_row: int | None = None


@dataclass(frozen=True)
class CommitCheck:
    """The result of reading the table after the commit (option ``check``).

    Args:
        state: ``agrees``, ``differs`` or ``not compared``.
        rows: some of them.
    """

    state: str
    message: str
    wrong: int = 0
    rows: tuple[WrongRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What checked the outcome of a statement.

    Args:
        verification: the result of another engine (option ``verify``).
        commit: the result of reading the table after the commit (option ``check``).
    """

    verification: VerificationRecord | None = None
    commit: CommitCheck | None = None
