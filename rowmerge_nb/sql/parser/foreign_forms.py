"""Hints on forms of other engines' SQL: what to write instead, with the statement's own names."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import Edit, Hint
from rowmerge_nb.base.front_end import connect_command
from rowmerge_nb.base.names import quoted
from rowmerge_nb.sql.functions.foreign_names import trino_type
from rowmerge_nb.sql.parser.tokens import RESERVED, TokenKind, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from rowmerge_nb.sql.parser.tokens import Token

_SINGLE_QUOTES: Final = "\u2018\u2019\u201a\u2039\u203a\u00b4"
_DOUBLE_QUOTES: Final = "\u201c\u201d\u201e\u00ab\u00bb"
STRUCTURE: Final = frozenset(
    "FROM WHERE SELECT ON AND OR NOT THEN WHEN SET INTO USING AS JOIN BY VALUES WITH IN IS"  # noqa: SIM905
    " LIKE BETWEEN CASE ELSE HAVING UNION EXCEPT INTERSECT NULL TRUE FALSE EXISTS DELETE"
    " INSERT UPDATE CREATE DROP DISTINCT".split()
)
"""Reserved words that hardly name a column."""
_KEY: Final = "..."
WRITE: Final = "Write {new}."
_INSTEAD: Final[dict[str, Hint]] = {
    "ILIKE": "Write lower(a) LIKE lower(b) instead of a ILIKE b.",
    "PIVOT": "Write one aggregate with FILTER (WHERE ...) for each column instead of PIVOT.",
    "AUTO_INCREMENT": "There are no generated keys; write the key's values.",
    "UNSIGNED": "There are no unsigned types; take the next larger type.",
    "DATABASES": Edit("SHOW DATABASES", "SHOW SCHEMAS"),
    **dict.fromkeys(
        ("TEMPORARY", "TEMP"),
        "There are no temporary tables; DataFrames of the notebook are sources by name.",
    ),
}
"""Words of other engines that hardly name anything."""


def put_before(new: str, old: str, more: str = ".") -> Edit:
    return Edit(old, f"{new} {old}", f"Write {new} before {{old}}{more}")


def edit_at_end(old: str, new: str) -> Edit:
    return Edit(old, "", "Write {end} at the end instead of {old}.", new)


def foreign_form_hint(
    text: str, tokens: Sequence[Token], index: int, expected: AbstractSet[str]
) -> Hint | None:
    token = tokens[index]
    return (
        _character(text, token)
        or _whole_statement(text, tokens, index)
        or _part(text, tokens, index, expected)
        or _reserved(tokens, index, expected)
    )


def name_hint(token: Token) -> Hint | None:
    if token.kind is TokenKind.DIGITS_FIRST:
        number = re.fullmatch(r"(?i)(\d+)[lsyd]", token.text)
        return f"Write {number[1]}." if number else f'Write "{token.text}".'
    if token.kind is not TokenKind.BACKQUOTED:
        return None
    if "/" in token.text:
        command = connect_command("delta", "FOLDER", "lake")
        return f"Connect the folder of the tables: {command}; then write its names."
    # BigQuery writes one pair of backquotes around a full name.
    whole = token.text.strip("`")
    parts = [whole] if re.search(r"\.(?!\S)", whole) else whole.split(".")
    name = ".".join(
        part
        if re.fullmatch("[a-z_][a-z0-9_]*", part) and part.upper() not in RESERVED
        else f'"{part}"'
        for part in parts
    )
    return Edit(token.text, name)


def _character(text: str, token: Token) -> Hint | None:
    character = token.text[:1]
    if token.kind is not TokenKind.UNKNOWN or not character or character.isascii():
        return None
    name = unicodedata.name(character, "a character without a name")
    code = f"U+{ord(character):04X}"
    if character.isalnum():
        word = _word_around(text, token)
        return (
            f"The character {code} ({name}) is not part of a plain name; quote the name:"
            f" {quoted(word)}."
        )
    if character in _SINGLE_QUOTES:
        remedy = "write ' instead"
    elif character in _DOUBLE_QUOTES:
        # Word processors put these around texts and around names.
        remedy = "write ' around a text, and \" around a name"
    elif character.isspace():
        remedy = "write a blank instead"
    else:
        remedy = "remove it"
    hint = f"The character {code} ({name}) is not part of SQL; {remedy}."
    return Edit("", _straight(text), hint) if character in _SINGLE_QUOTES else hint


def _straight(text: str) -> str:
    """Return the text with straight quotes around its literals."""
    characters = list(text)
    for token in tokenize(text):
        if token.kind is TokenKind.UNKNOWN and token.text in _SINGLE_QUOTES:
            characters[token.span.start] = "'"
    return "".join(characters)


def _word_around(text: str, token: Token) -> str:
    """Return the whole word: a plain name ends where another letter follows."""
    start, end = token.span.start, token.span.start + 1
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[start:end]


def _between(text: str, tokens: Sequence[Token], start: int, end: int) -> str:
    if end <= start:
        return ""
    return " ".join(text[tokens[start].span.start : tokens[end - 1].span.end].split())


def _find(tokens: Sequence[Token], words: AbstractSet[str], start: int) -> int:
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
        elif depth <= 0 and token.word in words:
            return index
    return len(tokens) - 1


def _whole_statement(text: str, tokens: Sequence[Token], index: int) -> Hint | None:
    first, second, word = tokens[0].word, tokens[min(1, len(tokens) - 1)].word, tokens[index].word
    if first == "UPDATE":
        return _updates_from(text, tokens)
    if first == "DELETE":
        return _deletes_from(text, tokens, index)
    if first == "MERGE" and (word in {"", "WHEN"} or tokens[index].text == ";"):
        return _insert_without_values(text, tokens, index)
    if first == "INSERT" and word in {"ON", "AS"}:
        return _on_conflict(text, tokens, index)
    if (first, second) == ("INSERT", "OVERWRITE"):
        return "Write TRUNCATE TABLE and then INSERT INTO; MERGE replaces rows by their key."
    if first in {"REPLACE", "UPSERT"} or (first, second) == ("INSERT", "OR"):
        return Edit(
            None,
            "MERGE INTO t USING s ON t.key = s.key WHEN MATCHED THEN UPDATE SET column = s.column"
            " WHEN NOT MATCHED THEN INSERT VALUES (s.key, s.column)",
            "MERGE replaces rows by their key, and inserts the others: {new}",
        )
    return None


def _insert_without_values(text: str, tokens: Sequence[Token], index: int) -> str | None:
    """Return the INSERT of a MERGE with VALUES, from its list or the columns that it compares."""
    insert_at = max(at for at in range(index + 1) if tokens[at].word in {"INSERT", "MERGE"})
    source = tokens[max(_find(tokens, {"ON"}, 1) - 1, 0)].text
    if tokens[insert_at].word != "INSERT" or any(
        token.word == "VALUES" for token in tokens[insert_at:index]
    ):
        return None
    values: dict[str, str] = {}
    if tokens[insert_at + 1].text == "(":
        names = tokens[insert_at + 2 : index - 1]
        values = {token.text: f"{source}.{token.text}" for token in names if token.text != ","}
    else:
        for at in range(2, len(tokens) - 2):
            if (tokens[at].text, tokens[at + 1].text) == (source, "."):
                assigns = tokens[at - 1].text == "=" and tokens[at - 2].kind is TokenKind.WORD
                column = tokens[at - 2 if assigns else at + 2].text
                values.setdefault(column, _between(text, tokens, at, at + 3))
        if len(values) < 2:
            # The key alone is hardly the whole row.
            values["..."] = "..."
    return f"Write INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})."


def _updates_from(text: str, tokens: Sequence[Token]) -> Hint | None:
    end = len(tokens) - 1
    set_at = _find(tokens, {"SET"}, 1)
    from_at = _find(tokens, {"FROM"}, set_at)
    join_at = _find(tokens, {"JOIN"}, 1)
    where_at = _find(tokens, {"WHERE"}, set_at)
    comma_at = next((at for at in range(1, set_at) if tokens[at].text == ","), set_at)
    if _is_outer(tokens, join_at):
        return (
            "UPDATE reads one table in Trino. Write a MERGE: its WHEN MATCHED has the rows with a"
            " match. The extended dialect has WHEN NOT MATCHED BY SOURCE for the others."
        )
    condition = _between(text, tokens, where_at + 1, end)
    if join_at < end and (join_at < set_at or from_at < join_at):
        target, source, on = _joined(
            text, tokens, 1 if join_at < set_at else from_at + 1, join_at, set_at
        )
        condition = f"{on} AND {condition}" if condition else on
    elif from_at < end:
        target = _between(text, tokens, 1, set_at)
        source = _between(text, tokens, from_at + 1, where_at)
    elif comma_at < set_at < end:
        target = _between(text, tokens, 1, comma_at)
        source = _between(text, tokens, comma_at + 1, set_at)
    else:
        return None
    itself = re.fullmatch(rf"([\w.\"]+?)(?: (?:AS )?{re.escape(target)})?", source, re.IGNORECASE)
    if itself is not None and source.split()[-1] == target:
        return f"Leave FROM out; name the table behind UPDATE alone: UPDATE {itself[1]}."
    changes = _between(text, tokens, set_at + 1, min(from_at, where_at))
    # MERGE assigns to columns without the table's name.
    changes = re.sub(r"(^|, )\w+\.(\w+)(?= =)", r"\1\2", changes)
    return Edit(
        "",
        f"MERGE INTO {target} USING {source} ON {condition or _KEY} WHEN MATCHED THEN UPDATE SET"
        f" {changes}",
        "UPDATE reads one table in Trino; MERGE updates the rows that a source matches: {new}",
    )


def _deletes_from(text: str, tokens: Sequence[Token], index: int) -> Hint | None:
    end = len(tokens) - 1
    where_at = _find(tokens, {"WHERE"}, 1)
    join_at = _find(tokens, {"JOIN"}, 1)
    if join_at < end:
        from_at = max(at for at in range(join_at) if tokens[at].word in {"FROM", "DELETE"})
        if _is_outer(tokens, join_at):
            return (
                "DELETE reads one table in Trino. For rows without a match, write DELETE FROM"
                f" {tokens[from_at + 1].text} WHERE NOT EXISTS (SELECT 1 FROM ... WHERE ...)."
            )
        target, source, on = _joined(text, tokens, from_at + 1, join_at, where_at)
    elif tokens[index].word == "USING":
        target = _between(text, tokens, 2, index)
        source = _between(text, tokens, index + 1, where_at)
        on, where_at = _between(text, tokens, where_at + 1, end) or _KEY, end
    else:
        return None
    condition = _between(text, tokens, where_at + 1, end)
    return Edit(
        "",
        f"MERGE INTO {target} USING {source} ON {on} WHEN"
        f" MATCHED{f' AND {condition}' if condition else ''} THEN DELETE",
        "DELETE reads one table in Trino; MERGE deletes the rows that a source matches: {new}",
    )


def _is_outer(tokens: Sequence[Token], join_at: int) -> bool:
    return tokens[join_at - 1].word in {"LEFT", "RIGHT", "FULL", "OUTER"}


def _joined(
    text: str, tokens: Sequence[Token], start: int, join_at: int, end: int
) -> tuple[str, str, str]:
    left_end = join_at
    while tokens[left_end - 1].word in {"INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS"}:
        left_end -= 1
    on_at = _find(tokens, {"ON"}, join_at)
    stop = end if end > on_at else _find(tokens, {"WHERE"}, on_at)
    return (
        _between(text, tokens, start, left_end),
        _between(text, tokens, join_at + 1, on_at),
        _between(text, tokens, on_at + 1, stop) or _KEY,
    )


def _on_conflict(text: str, tokens: Sequence[Token], index: int) -> Edit | None:
    row = "EXCLUDED"
    rows_end = index
    if tokens[index].word == "AS":
        # MySQL names the new rows.
        row, index = tokens[index + 1].text, min(index + 2, len(tokens) - 2)
    if tokens[index + 1].word not in {"CONFLICT", "DUPLICATE"}:
        return None
    # INSERT INTO name parts, until the rows begin.
    rows_at = _find(tokens, {"VALUES", "SELECT", "TABLE", "WITH"}, 2)
    columns_at = next((at for at in range(2, rows_at) if tokens[at].text == "("), rows_at)
    target = _between(text, tokens, 2, columns_at)
    columns = _between(text, tokens, columns_at, rows_at) or "(...)"
    rows = _between(text, tokens, rows_at, rows_end)
    keys = (
        [
            token.text
            for token in tokens[index + 3 : _closed(tokens, index + 2)]
            if token.text != ","
        ]
        if tokens[index + 2].text == "("
        else []
    )
    on = " AND ".join(f"t.{key} = s.{key}" for key in keys) or "t.key = s.key"
    update_at = _find(tokens, {"UPDATE"}, index)
    where_at = _find(tokens, {"WHERE"}, update_at)
    set_at = update_at + (tokens[min(update_at + 1, len(tokens) - 1)].word == "SET")
    changes, condition = (
        re.sub(rf"\b{re.escape(target)}\.", "t.", _new_values(part, row))
        for part in (
            _between(text, tokens, set_at + 1, where_at),
            _between(text, tokens, where_at + 1, len(tokens) - 1),
        )
    )
    condition = f" AND {condition}" if condition else ""
    updates = f" WHEN MATCHED{condition} THEN UPDATE SET {changes}" if changes else ""
    values = ", ".join(
        f"s.{name.strip()}" for name in columns.strip("()").split(",") if name != "..."
    )
    key = "" if keys else ", and key is the column of its key"
    return Edit(
        "" if keys else None,
        f"MERGE INTO {target} t USING ({rows}) s {columns} ON {on}{updates} WHEN NOT MATCHED THEN"
        f" INSERT {columns} VALUES ({values or '...'})",
        f"MERGE does this in Trino; s has the new rows{key}: {{new}}",
    )


def _new_values(text: str, row: str) -> str:
    """Return a text with s for the new rows of ON CONFLICT or ON DUPLICATE KEY."""
    text = re.sub(r"(?i)\bVALUES\s*\(\s*(\w+)\s*\)", r"s.\1", text)
    return re.sub(rf"(?i)\b{re.escape(row)}\s*\.\s*", "s.", text)


def _closed(tokens: Sequence[Token], index: int) -> int:
    return next((at for at in range(index, len(tokens)) if tokens[at].text == ")"), len(tokens) - 1)


def operand_before(text: str, tokens: Sequence[Token], index: int) -> str:
    """Return the value before an operator: a name, a literal, a call, or parentheses."""
    start, depth = index - 1, 0
    for at in range(index - 1, -1, -1):
        depth += tokens[at].text in {")", "]"}
        depth -= tokens[at].text in {"(", "["}
        start = at
        if depth == 0 and not _continues(tokens, at):
            break
    return _between(text, tokens, start, index)


def cast_hint(text: str, tokens: Sequence[Token], index: int) -> Edit:
    end = min(index + 2, len(tokens) - 1)
    if tokens[end].text == "(":
        end = _closed(tokens, end) + 1
    operand = operand_before(text, tokens, index)
    type_text = _between(text, tokens, index + 1, end)
    return Edit(f"{operand}::{type_text}", f"CAST({operand} AS {trino_type(type_text)})")


def _continues(tokens: Sequence[Token], at: int) -> bool:
    token, before = tokens[at], tokens[at - 1] if at else tokens[at]
    if token.text == "." or before.text == "." or token.text == "[":
        return at > 0
    return (
        token.text == "("
        and before.kind is TokenKind.WORD
        and before.word not in STRUCTURE
        and before.span.end == token.span.start
    )


def _part(
    text: str, tokens: Sequence[Token], index: int, expected: AbstractSet[str]
) -> Hint | None:
    token, first = tokens[index], tokens[0].word
    before = tokens[max(index - 1, 0)]
    following = tokens[min(index + 1, len(tokens) - 1)]
    for at in range(index, max(index - 3, 0), -1):
        if tokens[at].text == "::" and at + 1 < len(tokens) - 1:
            return cast_hint(text, tokens, at)
    if token.word == "OFFSET" and any(one.word == "LIMIT" for one in tokens[:index]):
        limit, offset = f"LIMIT {tokens[index - 1].text}", f"OFFSET {following.text}"
        return Edit(f"{limit} {offset}", f"{offset} {limit}", "OFFSET comes before LIMIT: {new}")
    if before.word == "LIMIT" and following.text == ",":
        return None
    if token.text == "," and index > 1 and tokens[index - 2].word == "LIMIT":
        skipped, count = tokens[index - 1].text, following.text
        return Edit(f"LIMIT {skipped}, {count}", f"OFFSET {skipped} LIMIT {count}", WRITE)
    if before.word == "TOP" and tokens[index - 2].word == "SELECT":
        return edit_at_end(f"TOP {token.text}", f"LIMIT {token.text}")
    if "'INTO'" in expected and before.word in {"MERGE", "INSERT"}:
        return _with_word(before.word, "INTO", token)
    if "'FROM'" in expected and before.word == first == "DELETE":
        return _with_word(first, "FROM", token)
    if first == "TRUNCATE" and index == 1:
        return _with_word(first, "TABLE", token)
    if first == "INSERT" and token.word == "DEFAULT" and following.word == "VALUES":
        return "Write VALUES with a value for each column; NULL where you have none."
    if token.text == ")" and not any(one.text == "(" for one in tokens[:index]):
        return Edit(")", "", "Leave ) out; no parenthesis is open.")
    if token.kind is TokenKind.END and "')'" in expected:
        return "Write ) where the parenthesis closes."
    if "'END'" in expected and not any(one.word == "END" for one in tokens[index:]):
        return put_before("END", token.text, "; CASE needs it.") if token.text else "Write END."
    if "'THEN'" in expected and token.word in {"UPDATE", "DELETE", "INSERT"}:
        return put_before("THEN", token.text)
    if (
        before.kind is TokenKind.STRING
        and token.kind is TokenKind.WORD
        and before.span.end == token.span.start
    ):
        return Edit(
            f"{before.text}{token.text}",
            f"{before.text}'{token.text}",
            "Double a quote within a text: {new}'.",
        )
    if "'SET'" in expected and first == "UPDATE" and token.kind is TokenKind.WORD:
        return "UPDATE takes no alias in Trino; write the table's name before its columns, or none."
    if first == "DELETE" and "'WHERE'" in expected and token.kind is TokenKind.WORD:
        return "DELETE takes no alias in Trino; remove it, also before the columns."
    if before.word == "INTERVAL" and token.kind is TokenKind.INTEGER:
        return f"Write the number in quotes: INTERVAL '{token.text}' {following.text}."
    return _INSTEAD.get(token.word)


def _with_word(first: str, word: str, token: Token) -> Edit:
    return Edit(f"{first} {token.text}", f"{first} {word} {token.text}", WRITE)


def _reserved(tokens: Sequence[Token], index: int, expected: AbstractSet[str]) -> str | None:
    token, following = tokens[index], tokens[min(index + 1, len(tokens) - 1)]
    if (
        token.word in RESERVED
        and token.word not in STRUCTURE
        and following.word != "BY"
        and not {"<identifier>", "<expression>"}.isdisjoint(expected)
    ):
        is_half = following.kind is TokenKind.WORD and following.word not in RESERVED
        longer = f' or "{token.text} {following.text}"' if is_half else ""
        return (
            f'{token.word} is a reserved word; as a name, write it in double quotes: "{token.text}"'
            f"{longer}"
        )
    return None
