"""``{{ expression }}`` in a cell: the value of a Python expression as SQL."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.spark.frames import is_frame
from rowmerge_nb.sql.constants import constant_of

# Regions of SQL text in which braces have another meaning: comments are left alone, quoted text
# doubles its quotes.
_REGIONS: Final = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<quote>['\"])|(?P<open>\{\{)", re.DOTALL
)

_TRIES: Final = 100
"""The maximum number of closing braces tried, so that a long cell is not compiled for each."""


@dataclass(frozen=True)
class Rendered:
    """A cell with its expressions replaced.

    Args:
        pieces: (offset in ``text``, offset in ``source``) of each expression and of the text after
            it.
    """

    text: str
    source: str
    pieces: tuple[tuple[int, int], ...]

    def source_line(self, offset: int) -> int:
        r"""Return the line of the cell's body, from 1, of an offset.

        >>> rendered = render("a\n{{ lines }}\nb", {"lines": "1\n2\n3"})
        >>> rendered.source_line(rendered.text.index("b"))
        3
        """
        start, origin = self.pieces[self._piece(offset)]
        # The whole inserted value is at the expression's position.
        at = origin if self._is_value(origin) else origin + offset - start
        return bisect_right(self._line_starts, at)

    def inserted(self, start: int, end: int) -> bool:
        """Return whether a range of the text is within one inserted value.

        >>> rendered = render("{{ a }}; {{ b }} 2", {"a": "SELECT 1", "b": "SELECT"})
        >>> rendered.inserted(0, 8), rendered.inserted(10, 18)
        (True, False)
        """
        index = self._piece(start)
        stop = self._begins[index + 1] if index + 1 < len(self.pieces) else len(self.text)
        return end <= stop and self._is_value(self.pieces[index][1])

    def _piece(self, offset: int) -> int:
        return bisect_right(self._begins, offset) - 1

    def _is_value(self, origin: int) -> bool:
        return self.source.startswith("{{", origin)

    @cached_property
    def _begins(self) -> list[int]:
        return [begin for begin, _ in self.pieces]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.source))]


def render(source: str, namespace: Mapping[str, Any]) -> Rendered:
    """Replace the expressions of a cell.

    Outside of quotes, texts are inserted unchanged, other scalars as SQL literals, and collections
    as comma-separated literals. Inside quotes, the value's text is inserted with quotes doubled.
    Comments are unchanged. ``{{ "{{" }}`` yields two braces.

    Raises:
        RowMergeError: INVALID_ARGUMENTS, with the position, for an expression that fails or has no
            end.
    """
    if "{{" not in source:
        return Rendered(source, source, ((0, 0),))
    out: list[str] = []
    pieces = [(0, 0)]
    length = at = 0
    quote = ""

    def put(text: str) -> None:
        nonlocal length
        out.append(text)
        length += len(text)

    while match := (
        _REGIONS.search(source, at)
        if not quote
        else re.compile(rf"(?P<quote>{quote})|(?P<open>\{{\{{)").search(source, at)
    ):
        put(source[at : match.start()])
        at = match.end()
        if match["quote"]:
            # A doubled quote closes and reopens, to the same effect.
            quote = "" if quote else match["quote"]
            put(match[0])
        elif match["open"]:
            end, value = _evaluate(source, match.start(), namespace)
            pieces.append((length, match.start()))
            try:
                text = _quoted_text(value).replace(quote, quote * 2) if quote else sql_text(value)
            except _NotSqlError as failure:
                raise _error(source, match.start(), end - match.start(), str(failure)) from None
            put(text)
            pieces.append((length, end))
            at = end
        else:
            put(match[0])
    put(source[at:])
    return Rendered("".join(out), source, tuple(pieces))


def _evaluate(source: str, start: int, namespace: Mapping[str, Any]) -> tuple[int, Any]:
    end = source.find("}}", start + 2)
    if end < 0:
        raise _error(source, start, 2, "The expression that begins here has no closing braces")
    first, attempts = end, 0
    while end >= 0 and attempts < _TRIES:
        # The first closing braces may belong to a dict or a text within the expression, so further
        # ones are tried.
        attempts += 1
        text = source[start + 2 : end].strip()
        if not text:
            break
        try:
            code = compile(f"({text}\n)", "<expression>", "eval")
        except (SyntaxError, ValueError):
            end = source.find("}}", end + 1)
            continue
        try:
            return end + 2, eval(code, dict(namespace))  # noqa: S307 - the user's own expression in the user's own notebook
        except Exception as failure:
            raise _error(
                source,
                start,
                end + 2 - start,
                f"The expression {{{{ {text} }}}} failed: {error_text(failure)}",
                _hint(failure, namespace),
            ) from failure
    text = source[start + 2 : first].strip()
    raise _error(
        source,
        start,
        first + 2 - start,
        (
            f"{{{{ {text} }}}} is not a Python expression"
            if text
            else "There is no expression between the braces"
        ),
    )


def _hint(failure: Exception, namespace: Mapping[str, Any]) -> str | None:
    name = failure.name if isinstance(failure, NameError) else None
    if not name:
        return None
    if name in {"ref", "source", "this"}:
        return "Write the table's name; the functions of dbt do not exist in a cell."
    if name in {"config", "env_var", "is_incremental", "var"}:
        return "Remove it, or write its value; the functions of dbt do not exist in a cell."
    return (
        did_you_mean(name, [key for key in namespace if not key.startswith("_")])
        or f"Set {name} in a cell above."
    )


def _error(
    source: str, start: int, length: int, message: str, hint: str | None = None
) -> RowMergeError:
    line_start = source.rfind("\n", 0, start) + 1
    error = RowMergeError(
        message,
        code="INVALID_ARGUMENTS",
        hint=hint,
        line=source.count("\n", 0, start) + 1,
        column=start - line_start + 1,
        length=length,
    )
    error.statement = source
    return error


class _NotSqlError(Exception):
    """A value that cannot be written as SQL."""


def _quoted_text(value: Any) -> str:
    if is_frame(value):
        raise _NotSqlError(_FRAME)
    return str(value)


_FRAME: Final = (
    "DataFrames are not inserted with braces: name the frame in the statement without"
    " braces, as in USING frame s"
)


def sql_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if getattr(value, "ndim", 0) == 1 and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        if not value:
            raise _NotSqlError(
                f"An empty {type(value).__name__} has no values to insert, and SQL has no empty"
                " list"
            )
        return ", ".join(_literal(item) for item in value)
    return _literal(value)


def _literal(value: Any) -> str:
    if is_frame(value):
        raise _NotSqlError(_FRAME)
    if isinstance(value, Mapping):
        raise _NotSqlError(
            f"A value of type {type(value).__name__} cannot be written as SQL; insert"
            " its values individually, as in {{ name['key'] }}"
        )
    if isinstance(value, list | tuple):
        # A row within a list of rows.
        return f"({sql_text(value)})"
    if (constant := constant_of(value)) is not None:
        return constant
    text = str(value)
    if text.startswith("<"):
        raise _NotSqlError(f"A value of type {type(value).__name__} cannot be written as SQL")
    return text
