"""The commands of ``%merge``, and the options around and behind them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import nearest
from rowmerge_nb.notebook.cell_options import COMMANDS, FIRST_WORDS, MagicUse, parse_line
from rowmerge_nb.sql.parser.foreign_patterns import pattern_hint
from rowmerge_nb.sql.parser.tokens import Runs, tokenize

_OPTION_BEGINS: Final = re.compile(r"--?[A-Za-z]|\w+\s*<<")
_TABLE_NAME: Final = re.compile(r'((?:"[^"]*"|\S)*) ?(.*)', re.DOTALL)
"""The name of a table, of which quoted parts may have blanks, and what follows it."""
_SQL_BEGINS: Final = re.compile(r"""(?i)[^a-z]|(?:select|with|values|table)\b""")


def is_translation(use: MagicUse) -> bool:
    words = use.rest.split(None, 1)
    return bool(words) and words[0].lower() == "translate"


def translation_use(use: MagicUse) -> tuple[MagicUse, str]:
    """Return a translation's options, which may be before and behind its dialect, and the dialect;
    the rest is the statement's text.
    """
    dialect, rest = "", use.rest.partition(" ")[2].strip()
    while True:
        if _OPTION_BEGINS.match(rest):
            behind = parse_line(rest)
            use = MagicUse(
                {**use.values, **behind.values}, behind.quiet_name or use.quiet_name, behind.rest
            )
            rest = behind.rest
        if dialect or not rest:
            return replace(use, rest=rest), dialect
        dialect, rest = (*rest.split(None, 1), "")[:2]


def command_of(rest: str) -> str:
    """Return the command that a line names, or ``""`` for a statement or nothing.

    Raises:
        RowMergeError: INVALID_ARGUMENTS, for a word that is neither.
    """
    word, _, more = rest.partition(" ")
    if word.lower() in COMMANDS:
        return word.lower()
    if word.lower() == "table" and not more.strip():
        near: str | None = "tables"
    elif not word or _SQL_BEGINS.match(word) or word.lower() in FIRST_WORDS:
        return ""
    else:
        # The parser says what to write instead of another engine's statement.
        if pattern_hint(rest, tokenize(rest, Runs.TOKENS), 0) is not None:
            return ""
        near = nearest(word.lower(), [*COMMANDS, *FIRST_WORDS], 0.7)
        # A misspelled statement: the parser reports its position.
        if near and near not in COMMANDS:
            return ""
    msg = f"There is no command '{word}'"
    commands = (
        f"The commands are {', '.join(f'`%merge {name}`' for name in COMMANDS)}; everything else is"
        " a statement."
    )
    raise RowMergeError(
        msg, code="INVALID_ARGUMENTS", hint=f"Did you mean `%merge {near}`?" if near else commands
    )


def with_options_behind(use: MagicUse) -> MagicUse:
    command, _, more = use.rest.partition(" ")
    table = ""
    if command.lower() == "undo" and not more.startswith("-"):
        table, more = _TABLE_NAME.fullmatch(more).groups()  # type: ignore[union-attr]
    behind = parse_line(more)
    if command.lower() == "undo" and not table and len(behind.rest.split()) == 1:
        table, behind = behind.rest, replace(behind, rest="")
    if behind.rest or behind.quiet_name:
        takes = "the name of a table, and options" if command.lower() == "undo" else "options only"
        raise RowMergeError(
            f"'{more.strip()}' follows %merge {command}, which takes {takes}",
            code="INVALID_ARGUMENTS",
            hint="%merge help lists the options.",
        )
    return MagicUse(
        {**use.values, **behind.values},
        use.quiet_name,
        f"{command} {table}" if command.lower() == "undo" else use.rest,
    )
