"""Operation numbers and row change paradigms (seed "Supporting MERGE", sections RowChangeParadigm and transformPage)."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class Operation(IntEnum):
    """What a row of a merge page asks for; the value is what the TINYINT channel ``operation`` holds.

    ``INSERT``, ``DELETE``, ``UPDATE`` and ``NONE`` (no WHEN clause fired; such a row never leaves ``transform_page``) are
    the documents'. ``UPDATE_INSERT`` and ``UPDATE_DELETE`` are how today's Trino marks the halves of an update
    (`Era.CURRENT`).

    >>> [int(Operation.INSERT), int(Operation.DELETE), int(Operation.UPDATE), int(Operation.NONE)]
    [1, 2, 3, -1]
    """

    NONE = -1
    INSERT = 1
    DELETE = 2
    UPDATE = 3
    UPDATE_INSERT = 4
    UPDATE_DELETE = 5

    @property
    def letter(self) -> str:
        """One letter for narrow places: I, D, U, or a dot for a row that does nothing.

        >>> Operation.UPDATE_DELETE.letter, Operation.NONE.letter
        ('D', '·')
        """
        return {1: "I", 2: "D", 3: "U", 4: "I", 5: "D"}.get(int(self), "·")


STORING: Final = (Operation.INSERT, Operation.UPDATE)
"""The operations of clauses that make a row to store."""


class RowChangeParadigm(StrEnum):
    """How a connector represents a changed row (design documents, "RowChangeParadigm").

    >>> RowChangeParadigm["CHANGE_ONLY_UPDATED_COLUMNS"].name
    'CHANGE_ONLY_UPDATED_COLUMNS'
    """

    CHANGE_ONLY_UPDATED_COLUMNS = "CHANGE_ONLY_UPDATED_COLUMNS"
    DELETE_ROW_AND_INSERT_ROW = "DELETE_ROW_AND_INSERT_ROW"


class Era(StrEnum):
    """Whose page layout is used: that of the documents, or that of today's Trino.

    >>> Era("documents") is Era.DOCUMENTS
    True
    """

    DOCUMENTS = "documents"
    CURRENT = "current"
