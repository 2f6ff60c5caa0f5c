"""Checks of a finished statement, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class VerificationRecord:
    """The result of another engine (option ``verify``).

    Args:
        state: ``agrees``, ``differs``, ``other rule`` (for repeated matches) or ``not compared``.
    """

    engine: str
    state: str
    message: str


@dataclass(frozen=True)
class WrongRow:
    """A row that the store should hold differently.

    Args:
        problem: ``other values``, ``old values`` (those before the statement), ``missing``, or of a
            row that must not be there ``too often``, ``still there`` or ``not requested``.
        differing: for a row with other or old values the indices of the columns that differ.
        joined_row: index in the sample ``before``; None for a row that the statement did not touch.
    """

    sentence: str
    problem: str
    differing: tuple[int, ...] = ()
    writer: int | None = None
    call: int | None = None
    row: int | None = None
    joined_row: int | None = None


@dataclass(frozen=True)
class CommitCheck:
    """The result of reading the table after the commit (option ``check``).

    Args:
        state: ``agrees``, ``differs`` or ``not compared``.
        wrong: the number of wrong rows; a stored row and the row that was meant count as one.
        expected: for each of ``rows`` the row that must be in the store, or NULLs.
        actual: for each of ``rows`` the row that is in the store, or NULLs.
        patterns: sentences about what all wrong rows have in common.
    """

    state: str
    message: str
    wrong: int = 0
    rows: tuple[WrongRow, ...] = ()
    expected: pa.RecordBatch | None = None
    actual: pa.RecordBatch | None = None
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What checked the outcome of a statement."""

    verification: VerificationRecord | None = None
    commit: CommitCheck | None = None
