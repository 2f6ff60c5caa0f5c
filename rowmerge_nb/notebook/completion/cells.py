"""The position of the cursor in a cell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_CELL: Final = re.compile(r"\s*%%merge(?=\s|$)")
_LINE: Final = re.compile(r"\s*(?:\w+\s*=\s*)?%merge(?=\s)\s*")
_CONNECT: Final = re.compile(r"(?i)connect\s")
_UNDO: Final = re.compile(r"(?i)undo\s+(?!-)")
_REGION: Final = re.compile(
    r"""(?P<comment>--[^\n]*(?P<comment_open>\Z)?|/\*.*?(?:\*/|(?P<block_open>\Z)))
    |(?P<braces>\{\{.*?(?:\}\}|(?P<braces_open>\Z)))
    |(?P<text>'(?:\{\{.*?\}\}|[^'])*(?:'|(?P<text_open>\Z)))
    |(?P<name>"(?:\{\{.*?\}\}|[^"])*(?:"|(?P<name_open>\Z)))
    |(?P<end>;)""",
    re.VERBOSE | re.DOTALL,
)
_PART: Final = r'(?:"(?:[^"]|"")*"|[A-Za-z_][\w@:]*)'
_QUALIFIER: Final = re.compile(rf"(?:{_PART}\s*\.\s*)*\Z")
_WORD: Final = re.compile(r"(?:[A-Za-z_][\w@:]*)?\Z")
_NUMBER: Final = re.compile(r"(?<![\w@:])[0-9][\w.]*\Z")


@dataclass(frozen=True)
class OptionLine:
    """The cursor is in the options, after ``line``."""

    line: str
    is_cell: bool


@dataclass(frozen=True)
class Braces:
    """The cursor is in the expression ``code`` between ``{{`` and ``}}``."""

    code: str


@dataclass(frozen=True)
class Text:
    """The cursor is in a literal, a number or a comment, without completion."""


@dataclass(frozen=True)
class Sql:
    """The cursor is in a statement, at a word or a name.

    Args:
        before: the statement up to the name; expressions in braces are replaced by the name ``x``.
        qualifier: the preceding parts of the name, as ``t`` of ``t.am``.
        word: the incomplete part, with its opening quote.
    """

    before: str
    qualifier: tuple[str, ...]
    word: str
    after: str
    options: str = ""
    is_closed: bool = False


def where(text: str, line: int, column: int) -> OptionLine | Braces | Text | Sql | None:
    r"""Return the position of the cursor; None outside of this project's magics.

    ``line`` is 0-based, ``column`` counts characters before the cursor.
    """
    lines = text.split("\n")
    first = next((number for number, content in enumerate(lines) if content.strip()), 0)
    here = lines[line][:column]
    if (cell := _CELL.match(lines[first])) is None:
        magic = _LINE.match(here)
        return None if magic is None else _behind(here[magic.end() :], lines[line][column:])
    if line <= first:
        return (
            OptionLine(here[cell.end() :].lstrip(), is_cell=True)
            if line == first and column > cell.end()
            else None
        )
    before = "\n".join([*lines[first + 1 : line], here])
    after = "\n".join([lines[line][column:], *lines[line + 1 :]])
    return _in_sql(before, after, lines[first][cell.end() :])


def _behind(before: str, after: str) -> OptionLine | Braces | Text | Sql:
    if _CONNECT.match(before):
        # Its properties may be named like statements, such as create=true.
        return OptionLine(before, is_cell=False)
    if undone := _UNDO.match(before):
        # Its argument is a table, as in TABLE t.
        return _in_sql(f"TABLE {before[undone.end() :]}", after, "")
    words = before.split(" ")
    words_of_statement = next((n for n, word in enumerate(words) if _begins(words, n, word)), None)
    if words_of_statement is None:
        return OptionLine(before, is_cell=False)
    options = " ".join(words[:words_of_statement])
    return _in_sql(before[len(options) :].lstrip(), after, options)


def _begins(words: list[str], number: int, word: str) -> bool:
    from rowmerge_nb.notebook.cell_options import STATEMENT

    return number < len(words) - 1 and STATEMENT.match(word) is not None


def _in_sql(before: str, after: str, options: str) -> Braces | Text | Sql:
    quoted = ""
    pieces: list[str] = []
    at = 0
    for region in _REGION.finditer(before):
        if region["braces_open"] is not None:
            return Braces(before[region.start() + 2 :])
        if region["comment_open"] is not None or region["block_open"] is not None:
            return Text()
        if region["text_open"] is not None or region["name_open"] is not None:
            inside = before[region.start() :]
            brace = inside.rfind("{{")
            if brace >= 0 and "}}" not in inside[brace:]:
                return Braces(inside[brace + 2 :])
            if region["text_open"] is not None:
                return Text()
            quoted = inside
            before = before[: region.start()]
            break
        if region["end"]:
            pieces, at = [], region.end()
        elif region["braces"]:
            pieces += [before[at : region.start()], "x"]
            at = region.end()
    statement = "".join([*pieces, before[at:]])
    if _NUMBER.search(statement) and not quoted:
        return Text()
    word = quoted or _end(_WORD, statement)
    head = statement if quoted else statement.removesuffix(word)
    qualifier = _end(_QUALIFIER, head)
    parts = tuple(_plain(part) for part in re.findall(_PART, qualifier))
    is_closed = bool(quoted) and '"' in after.partition("\n")[0]
    return Sql(
        head.removesuffix(qualifier).lstrip(),
        parts,
        word,
        _rest(after, quoted=is_closed),
        options.strip(),
        is_closed,
    )


def _end(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[0] if match is not None else ""


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _rest(after: str, *, quoted: bool) -> str:
    after = re.sub(r'\A[^"\n]*"' if quoted else r"\A[\w@:]*", "", after, count=1)
    pieces: list[str] = []
    at = 0
    for region in _REGION.finditer(after):
        if region["end"]:
            return "".join([*pieces, after[at : region.start()]])
        if region["braces"]:
            pieces += [after[at : region.start()], "x"]
            at = region.end()
    return "".join([*pieces, after[at:]])
