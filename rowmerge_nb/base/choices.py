"""The words between which a user chooses, and those in which a trace says what became of a statement.

Each is a `StrEnum`: a plain text that is equal to one of them will do wherever one is compared, and a saved trace has the texts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

ROW_CHANGES: Final = frozenset({"MERGE", "UPDATE", "DELETE"})
"""The kinds of statements that change rows in place; they are reported in full, and can be run once more."""


class Flow(StrEnum):
    """How UPDATE and DELETE are executed: by the machinery of MERGE, or by the older flow of updatable page sources.

    >>> Flow.MERGE == "merge", f"{Flow.UPDATABLE}"
    (True, 'updatable')
    """

    MERGE = "merge"
    UPDATABLE = "updatable"


class RepeatedMatches(StrEnum):
    """Which repeated matches end a MERGE: a repeated target row and clause, or every second change of a target row.

    >>> RepeatedMatches("trino") is RepeatedMatches.TRINO
    True
    """

    TRINO = "trino"
    STANDARD = "standard"
    NONE = "none"
    """None of them: an audit asks what each would do. Nobody can choose it, see `CHOSEN_RULES`."""


CHOSEN_RULES: Final = (RepeatedMatches.TRINO, RepeatedMatches.STANDARD)
"""The rules for repeated matches that a user has."""


class Dialect(StrEnum):
    """Which SQL is accepted: Trino's, or forms of MERGE that other engines have as well.

    >>> Dialect.EXTENDED == "extended"
    True
    """

    TRINO = "trino"
    EXTENDED = "extended"


class ExplainType(StrEnum):
    """What an EXPLAIN shows: the plan as the documents have it, the plan in fragments, or only whether the statement is right.

    >>> [str(kind) for kind in ExplainType]
    ['LOGICAL', 'DISTRIBUTED', 'VALIDATE', 'IO', 'ANALYZE']
    """

    LOGICAL = "LOGICAL"
    DISTRIBUTED = "DISTRIBUTED"
    VALIDATE = "VALIDATE"
    IO = "IO"
    """What is read and written; Trino has it, and here it is refused."""
    ANALYZE = "ANALYZE"
    """The plan of a statement that is run, with numbers; likewise."""


class ExplainFormat(StrEnum):
    """How a plan is printed.

    >>> ExplainFormat("JSON") is ExplainFormat.JSON
    True
    """

    TEXT = "TEXT"
    JSON = "JSON"
    GRAPHVIZ = "GRAPHVIZ"


class TraceLevel(StrEnum):
    """How many rows a trace keeps: all of small statements and some of large ones, all, or none.

    >>> [str(level) for level in TraceLevel]
    ['auto', 'full', 'off']
    """

    AUTO = "auto"
    FULL = "full"
    OFF = "off"


class StatementState(StrEnum):
    """What became of a statement: it finished, it failed, it was planned and not begun, or its plan was asked for.

    >>> StatementState.FINISHED == "finished"
    True
    """

    FINISHED = "finished"
    FAILED = "failed"
    PLANNED = "planned"
    EXPLAINED = "explained"
