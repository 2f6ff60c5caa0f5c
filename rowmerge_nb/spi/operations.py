"""Operation numbers and row change paradigms ("Supporting MERGE", sections RowChangeParadigm and
transformPage).
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class Operation(IntEnum):
    """The operation of a merge page's row, the value of the TINYINT channel ``operation``.

    ``NONE`` means that no clause fired; such rows do not leave ``transform_page``.
    ``UPDATE_INSERT`` and ``UPDATE_DELETE`` are the halves of an update in today's Trino
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
        """An abbreviation: I, D, U, or a dot for NONE.

        >>> Operation.UPDATE_DELETE.letter, Operation.NONE.letter
        ('D', '·')
        """
        return {1: "I", 2: "D", 3: "U", 4: "I", 5: "D"}.get(int(self), "·")


class SaveMode(StrEnum):
    """What ``create_table`` does if a table of that name exists: raise TABLE_ALREADY_EXISTS, or
    replace it.

    Trino's IGNORE is missing: the engine answers IF NOT EXISTS without the connector.

    >>> str(SaveMode.REPLACE)
    'REPLACE'
    """

    FAIL = "FAIL"
    REPLACE = "REPLACE"


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
    """The page layout: that of the documents, or of today's Trino.

    >>> Era("documents") is Era.DOCUMENTS
    True
    """

    DOCUMENTS = "documents"
    CURRENT = "current"
