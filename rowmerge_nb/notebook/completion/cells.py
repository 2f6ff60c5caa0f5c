"""Where the cursor stands in a cell: in the options, in SQL, in a name in quotes, in braces, or where nothing is to be offered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_CELL: Final = re.compile(r"\s*%%merge(?=\s|$)")
_LINE: Final = re.compile(r"\s*(?:\w+\s*=\s*)?%merge(?=\s)\s*")
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
class Options:
    """The cursor stands in the options.

    Args:
        line: what stands behind the magic, up to the cursor.
        is_cell: it is ``%%merge``, with the statement below.
    """

    line: str
    is_cell: bool


@dataclass(frozen=True)
class Braces:
    """The cursor stands between ``{{`` and ``}}``.

    Args:
        code: the expression up to the cursor.
    """

    code: str


@dataclass(frozen=True)
class Text:
    """The cursor stands in a literal, a number or a comment: nothing is offered, and no names of Python either."""


@dataclass(frozen=True)
class Sql:
    """The cursor stands in a statement, where a word or a name can be.

    Args:
        before: the statement up to the name that is being written; expressions in braces stand as the name ``x``.
        qualifier: the parts of the name that stand there, as ``t`` of ``t.am``.
        word: the part that is being written, with the quote that opens it.
        after: the statement behind the cursor.
        options: the line of options.
        is_closed: the quote that closes the name stands there already, as editors write it.
    """

    before: str
    qualifier: tuple[str, ...]
    word: str
    after: str
    options: str = ""
    is_closed: bool = False


def where(text: str, line: int, column: int) -> Options | Braces | Text | Sql | None:
    r"""Return where the cursor of a cell stands; None where the cell, or the line, is not this project's.

    Args:
        text: the cell.
        line: the line of the cursor, from 0.
        column: how many characters stand before it in its line.

    >>> where("%%merge --du", 0, 12)
    Options(line='--du', is_cell=True)
    >>> where("%%merge\nSELECT a.am FROM acc a", 1, 11)
    Sql(before='SELECT ', qualifier=('a',), word='am', after=' FROM acc a', options='', is_closed=False)
    >>> where("%%merge\nSELECT {{ li", 1, 12)
    Braces(code=' li')
    >>> where("SELECT a", 0, 8) is None
    True
    """
    lines = text.split("\n")
    first = next((number for number, content in enumerate(lines) if content.strip()), 0)
    here = lines[line][:column]
    if (cell := _CELL.match(lines[first])) is None:
        magic = _LINE.match(here)
        return None if magic is None else _behind(here[magic.end() :], lines[line][column:])
    if line <= first:
        return Options(here[cell.end() :].lstrip(), is_cell=True) if line == first and column > cell.end() else None
    before = "\n".join([*lines[first + 1 : line], here])
    after = "\n".join([lines[line][column:], *lines[line + 1 :]])
    return _in_sql(before, after, lines[first][cell.end() :])


def _behind(before: str, after: str) -> Options | Braces | Text | Sql:
    """Return what stands behind ``%merge``: a command, options, or a statement."""
    if undone := _UNDO.match(before):
        # Its argument is what a query of a whole table names.
        return _in_sql(f"TABLE {before[undone.end() :]}", after, "")
    words = before.split(" ")
    words_of_statement = next((n for n, word in enumerate(words) if _begins(words, n, word)), None)
    if words_of_statement is None:
        return Options(before, is_cell=False)
    options = " ".join(words[:words_of_statement])
    return _in_sql(before[len(options) :].lstrip(), after, options)


def _begins(words: list[str], number: int, word: str) -> bool:
    """Return whether a word of the line begins a statement: it is whole, and neither an option nor the value of one."""
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
            opened = inside.rfind("{{")
            if opened >= 0 and "}}" not in inside[opened:]:
                return Braces(inside[opened + 2 :])
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
    return Sql(head.removesuffix(qualifier).lstrip(), parts, word, _rest(after, quoted=is_closed), options.strip(), is_closed)


def _end(pattern: re.Pattern[str], text: str) -> str:
    """Return the longest end of a text that is of a form."""
    found = pattern.search(text)
    return found[0] if found is not None else ""


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _rest(after: str, *, quoted: bool) -> str:
    """Return what stands behind the cursor, up to the statement's end, without the rest of the name that it stands in."""
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
