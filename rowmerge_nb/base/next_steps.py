"""Next steps of errors that several layers raise, and the error that rejects a value."""

from __future__ import annotations

from typing import Final, NamedTuple

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.base.words import code

NO_NULLS: Final = (
    "Exclude such rows with a condition, or give them other values; COALESCE replaces"
    " NULL with a value."
)
ONE_ROW_PER_KEY: Final = (
    f"Each key may occur only once. {code('MERGE')} updates a row whose key exists and"
    f" inserts the others; so does {code('INSERT ... ON CONFLICT (key) DO UPDATE')} with"
    f" {code('--dialect extended')}."
)
_STEPS_BY_PREFIX: Final = {
    "NULL value not allowed for NOT NULL column": NO_NULLS,
    "Cannot truncate non-space characters": (
        "ALTER TABLE ... ALTER COLUMN ... SET DATA TYPE varchar makes room for longer"
        " texts, and SUBSTR truncates them. CREATE TABLE AS takes the lengths from its query:"
        " VARCHAR 'a' or CAST(x AS varchar) makes a column without a length."
    ),
}
"""Next steps of errors that the SQL of Spark and DuckDB raises."""


class Refusal(NamedTuple):
    """The error that rejects a value.

    SQL that raises it has code and message only; `step_of_message` finds the next step of those.
    """

    code: str
    message: str
    next_step: str = ""

    def error(self, step: str) -> ExecutionError:
        """Build the error, raised in a step of the plan."""
        return ExecutionError(self.message, code=self.code, step=step, next_step=self.next_step)


def null_refusal(column: str, code: str = "CONSTRAINT_VIOLATION") -> Refusal:
    """Return the error of a NULL in a NOT NULL column.

    >>> null_refusal("name").message
    'NULL value not allowed for NOT NULL column: name'
    """
    return Refusal(code, f"NULL value not allowed for NOT NULL column: {column}", NO_NULLS)


def step_of_message(message: str) -> str:
    """Return the next step of an error that Spark or DuckDB raised as text, or ``""``.

    >>> step_of_message("Cannot truncate non-space characters when casting from ...")[:11]
    'ALTER TABLE'
    """
    return next(
        (step for prefix, step in _STEPS_BY_PREFIX.items() if message.startswith(prefix)), ""
    )
