"""The edits that hints ask for, by which a statement with several mistakes is offered whole.

Hints are made from tables of sentences, each of which says its edit once; so the edit is read back
from the sentence. A wrong edit costs an offer and nothing else: what is offered has been parsed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.parser.foreign_forms import SINGLE_QUOTES
from rowmerge_nb.sql.parser.split_names import without_brackets
from rowmerge_nb.sql.parser.tokens import TokenKind, tokenize

if TYPE_CHECKING:
    from rowmerge_nb.base.errors import RowMergeError

_WHOLE: Final = re.compile(
    r"(?:.*: (?=MERGE INTO )(?!.* t\.key = s\.key )|Write (?=ALTER TABLE )(?!.* (?:and|or|once) ))(.+?)\.?",
    re.DOTALL,
)
_OPERATORS: Final = tuple("|+-*/%")
_AT_END: Final = " at the end"
_EDITS: Final = (
    (r"Write (.+?) instead of (.+?)(?:[.,] |\.?\n)", r"\1", r"\2"),
    (r"Leave (?!it )(.+) out[;.]", "", r"\1"),
    (r"Write (THEN|END|UPDATE|AS|FROM|ON|WHEN(?: NOT)? MATCHED) before (\S+)[.;]", r"\1 \2", r"\2"),
    (r"Did you mean (\w+) instead of (\S+)\?", r"\1", r"\2"),
    (r"Did you mean (\w+)\?\n(\w+)", r"\1", r"\2"),
    (r"Write ((\w+) BY); a name such as", r"\1", r"\2"),
    (r"Use = for equality\.", "=", "=="),
    (r"Remove the comma before (\w+)\.", r" \1", r", \1"),
    (r"Remove the comma before \)\.", ")", ", )"),
    (r"Remove the comma at the end\.", "", ","),
    (
        r"Write (MERGE|INSERT|DELETE|TRUNCATE|DROP) (INTO|FROM|TABLE) (.+)\.\n",
        r"\1 \2 \3",
        r"\1 \3",
    ),
    (r"Write (OFFSET (\d+) LIMIT (\d+))\.", r"\1", r"LIMIT \2, \3"),
    (r"OFFSET comes before LIMIT: (OFFSET (\S+) (LIMIT \S+))\n", r"\1", r"\3 OFFSET \2"),
    (r"Double a quote within a text: ('.*')'(.*)'\.", r"\1'\2", r"\1\2"),
)
"""Patterns of hints, with the word at the error behind them: the new words, and the old ones."""


def follow_hint(text: str, error: RowMergeError) -> str | None:
    """Return the text after the edit that an error's hint asks for, or None."""
    hint = error.hint or ""
    lines = text.split("\n")[: (error.line or 1) - 1]
    at = sum(len(line) + 1 for line in lines) + (error.column or 1) - 1
    unknown = re.match(r"Unknown type '(.+)' for column '(.+)'$", error.message)
    if unknown is not None:
        match = re.compile(re.escape(unknown[1]), re.IGNORECASE).search(text, at + len(unknown[2]))
        at = match.start() if match else at
        hint = hint if " instead of " in hint else f"{hint[:-1]} instead of {unknown[1]}."
    whole = _WHOLE.fullmatch(hint)
    if whole is not None:
        return whole[1]
    if re.match(r"Leave \[|Write \S.* instead of \[", hint):
        return without_brackets(text)
    if hint.endswith("; write ' instead."):
        return "".join(_straight_quotes(text))
    word = re.match(r"\w*", text[at:])
    subject = f"{hint}\n{word[0] if word else ''}"
    for pattern, new, old in _EDITS:
        match = re.match(pattern, subject)
        if match is not None:
            return _replaced(text, at, match.expand(old), match.expand(new))
    return None


def _straight_quotes(text: str) -> list[str]:
    parts, end = [], 0
    for token in tokenize(text):
        if token.kind is TokenKind.UNKNOWN and token.text in SINGLE_QUOTES:
            parts += [text[end : token.span.start], "'"]
            end = token.span.start + 1
    return [*parts, text[end:]]


def _is_operand(before: str, behind: str) -> bool:
    """Return whether operators around a comparison may belong to its first or last value."""
    return before.rstrip()[-1:] in _OPERATORS or behind.lstrip()[:1] in _OPERATORS


def _replaced(text: str, at: int, old: str, new: str) -> str | None:
    words = r"\s*".join(re.escape(word) for word in re.findall(r"\w+|[^\w\s]", old))
    matches = list(re.finditer(rf"\b{words}" if old[:1].isalnum() else words, text, re.IGNORECASE))
    if not matches:
        return None
    match = [match for match in matches if match.start() <= at or match is matches[0]][-1]
    before, behind = text[: match.start()], text[match.end() :]
    if re.search(r"\w\(", new) and "::" not in old and _is_operand(before, behind):
        return None
    if not new:
        gap = " " if before[-1:].isalnum() and behind[:1].isalnum() else ""
        return f"{before.rstrip(' ')}{gap}{behind}"
    if not new.endswith(_AT_END):
        return f"{before}{new}{behind}"
    if before.count("(") > before.count(")") or re.search(
        r"(?i)\b(UNION|EXCEPT|INTERSECT)\b", text
    ):
        # The end of the query is not that of the statement.
        return None
    return f"{before}{behind.strip(' ;')} {new.removesuffix(_AT_END)}"
