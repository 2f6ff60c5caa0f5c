"""The values of options and the states of statements; each equals its plain text, which saved
traces hold.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

ROW_CHANGES: Final = frozenset({"MERGE", "UPDATE", "DELETE"})
"""Statements that change rows in place, have full reports, and can be rerun."""


class Flow(StrEnum):
    """How UPDATE and DELETE run: as a MERGE, or with updatable page sources."""

    MERGE = "merge"
    UPDATABLE = "updatable"


class RepeatedMatches(StrEnum):
    """Which repeated matches fail a MERGE: of the same target row and clause, or any second change
    of a target row.

    >>> RepeatedMatches("trino") is RepeatedMatches.TRINO
    True
    """

    TRINO = "trino"
    STANDARD = "standard"
    NONE = "none"
    """No rule, for audits; not an option, see `CHOSEN_RULES`."""


CHOSEN_RULES: Final = (RepeatedMatches.TRINO, RepeatedMatches.STANDARD)
"""The rules that a user can choose."""


class Dialect(StrEnum):
    """The accepted SQL: Trino's, or also other engines' forms of MERGE."""

    TRINO = "trino"
    EXTENDED = "extended"


class ExplainType(StrEnum):
    """The output of EXPLAIN.

    >>> [str(kind) for kind in ExplainType]
    ['LOGICAL', 'DISTRIBUTED', 'VALIDATE', 'IO', 'ANALYZE']
    """

    LOGICAL = "LOGICAL"
    DISTRIBUTED = "DISTRIBUTED"
    VALIDATE = "VALIDATE"
    IO = "IO"
    """Input and output tables; rejected here."""
    ANALYZE = "ANALYZE"
    """The plan of a statement that runs, with statistics; rejected here."""


class ExplainFormat(StrEnum):
    """The format of a printed plan."""

    TEXT = "TEXT"
    JSON = "JSON"
    GRAPHVIZ = "GRAPHVIZ"


class TraceLevel(StrEnum):
    """The rows in a trace: some of large statements and all of others; all; or none."""

    AUTO = "auto"
    FULL = "full"
    OFF = "off"


class StatementState(StrEnum):
    """The outcome of a statement: finished, failed, planned but not begun, or explained."""

    FINISHED = "finished"
    FAILED = "failed"
    PLANNED = "planned"
    EXPLAINED = "explained"
