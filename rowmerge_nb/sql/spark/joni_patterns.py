r"""Patterns of Joni, Trino's regular expressions, as patterns of Java, Spark's.

Joni reads ``\w``, ``\d`` and ``\s`` as ASCII, but ``\b`` and POSIX classes as Unicode. Java's flag
``u`` compares letters as Unicode, ``d`` makes ``\n`` the only line end. In Java's UTF-16, an empty
match could split a character beyond U+FFFF.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.functions.regexp_groups import (
    EXTENDED,
    OUTSIDE,
    Structure,
    is_wrong,
    structure,
)
from rowmerge_nb.sql.spark.text import fail, once
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAGS: Final = "(?ud)"
WHOLE: Final = r"(?![\x{DC00}-\x{DFFF}])"
"""The start of a match: not the second half of a surrogate pair."""

_ALPHABETIC: Final = r"\p{IsAlphabetic}"
_POSIX: Final = {
    "alnum": rf"{_ALPHABETIC}\p{{Nd}}",
    "alpha": _ALPHABETIC,
    "ascii": r"\x00-\x7F",
    "blank": r"\p{Zs}\t",
    "cntrl": r"\p{Cc}",
    "digit": r"\p{Nd}",
    "graph": r"[^\p{IsWhite_Space}\p{Cc}\p{Cs}\p{Cn}]",
    "lower": r"\p{IsLowercase}",
    "print": r"[^\p{Cc}\p{Cs}\p{Cn}\x{2028}\x{2029}]",
    "punct": r"\p{P}",
    "space": r"\p{IsWhite_Space}",
    "upper": r"\p{IsUppercase}",
    "word": rf"{_ALPHABETIC}\p{{M}}\p{{Nd}}\p{{Pc}}",
    "xdigit": "0-9A-Fa-f",
}
_INSIDE: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\(?P<property>[pP]\{\^?[^}]*\})|\\(?P<escaped>.)|\[:(?P<posix>\^?[a-z]+):\]|(?P<other>.)",
    re.DOTALL,
)
_KNOWN_ESCAPES: Final = frozenset("wWdDsStnrfaexucAZzGkpP0123456789")
"""Escaped letters with the same meaning in both engines; to Joni, others mean themselves."""
_SETS: Final = frozenset("wWdDsS")
_OCTAL: Final = re.compile("[0-7]{0,2}")
_HEXADECIMAL: Final = re.compile("[0-9A-Fa-f]{0,2}")
_LINES: Final = re.compile(r"\(\?[a-zA-Z]*m")


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.output: list[str] = []
        self.structure = Structure()
        self.captured = len(structure(pattern).groups)
        self.has_lines = _LINES.search(pattern) is not None

    def read(self) -> tuple[str, bool]:
        while self.position < len(self.pattern):
            if self.pattern[self.position] == "[":
                self.output.append(self.character_class())
                self.structure.atom()
                continue
            match = OUTSIDE.match(self.pattern, self.position)
            assert match is not None
            self.position = match.end()
            self.structure.part(match)
            self.output.append(self.token(match))
        return "".join(self.output), self.structure.may_be_empty

    def token(self, match: re.Match[str]) -> str:
        part = match[0]
        if match["quoted"] is not None:
            return "".join(map(_plain, match["quoted"]))
        if match["property"] is not None:
            return _property(match["property"])
        if match["escaped"] is not None:
            return self.escaped(match["escaped"])
        if match["comment"] is not None:
            return ""
        if match["flags"] is not None or (match["opening"] is not None and part.endswith(":")):
            return _flags(part)
        if part == "^" and self.has_lines:
            # With (?m) Java finds no line in an empty text; otherwise this is equivalent.
            return r"(?:\A|^)"
        # A brace without a count is itself.
        return r"\{" if part == "{" else part

    def escaped(self, letter: str) -> str:
        if letter in "bB":
            return rf"(?U:\{letter})"
        if letter == "v":
            return r"\x0B"
        if letter == "x":
            digits = _HEXADECIMAL.match(self.pattern, self.position)
            assert digits is not None
            self.position = digits.end()
            return rf"\x{{{digits[0] or 0}}}"
        if letter == "0":
            digits = _OCTAL.match(self.pattern, self.position)
            assert digits is not None
            self.position = digits.end()
            return rf"\x{{{int(digits[0] or '0', 8):x}}}"
        if letter.isdecimal() and int(letter) > self.captured:
            return r"\k<missing>"
        return letter if letter.isalnum() and letter not in _KNOWN_ESCAPES else f"\\{letter}"

    def character_class(self) -> str:
        opening = re.compile(r"\[\^?\]?").match(self.pattern, self.position)
        assert opening is not None
        start = opening[0]
        if start.endswith("]") and "]" not in self.pattern[opening.end() :]:
            start = start[:-1]
        self.position += len(start)
        class_text = start.replace("]", r"\]")
        # After a set or a range, Joni starts a new range with the last character before, or with
        # the first of all.
        last, before = r"\x00", ""
        while self.position < len(self.pattern):
            if self.pattern[self.position] == "[" and not _is_posix(
                _INSIDE.match(self.pattern, self.position)
            ):
                class_text += self.character_class()
                continue
            match = _INSIDE.match(self.pattern, self.position)
            assert match is not None
            self.position = match.end()
            if match[0] == "]":
                return f"{class_text}]"
            member = _member(match)
            if (
                match[0] == "-"
                and before in {"character", "set"}
                and not self.pattern.startswith(("]", "[", "&&"), self.position)
            ):
                class_text += f"{last}-" if before == "set" else "-"
                before = "range"
                continue
            if (
                match["property"] is not None
                or match["posix"] is not None
                or (match["escaped"] or "") in _SETS
            ):
                before = "set"
            else:
                last, before = member, "set" if before == "range" else "character"
            class_text += member
        return class_text


def _is_posix(match: re.Match[str] | None) -> bool:
    return (
        match is not None
        and match["posix"] is not None
        and match["posix"].removeprefix("^") in _POSIX
    )


def _member(match: re.Match[str]) -> str:
    if match["quoted"] is not None:
        return "".join(map(_plain, match["quoted"]))
    if match["property"] is not None:
        return _property(match["property"])
    if match["posix"] is not None:
        return _set(match["posix"])
    letter = match["escaped"]
    if letter is None:
        return match[0]
    if letter in "bv":
        return r"\x08" if letter == "b" else r"\x0B"
    return letter if letter.isalnum() and letter not in _KNOWN_ESCAPES else f"\\{letter}"


def _flags(flags: str) -> str:
    """Make Java refuse flags that only Java has."""
    return re.sub("[duU]", "Z", flags)


def _set(name: str) -> str:
    return f"[{'^' if name.startswith('^') else ''}{_POSIX[name.removeprefix('^')]}]"


def _property(property_text: str) -> str:
    """Translate a property: Joni's POSIX properties cover Unicode, and its scripts have no ``Is``."""
    name, negated = property_text[2:-1], property_text[0] == "P"
    posix_name = re.sub(r"[ _-]", "", name).lower()
    if posix_name in _POSIX:
        return _set(f"{'^' if negated else ''}{posix_name}")
    # Properties with Is exist in Java only; doubled, Java refuses them too.
    prefix = "" if len(name) <= 2 or re.match(r"(?i)in|java|\^", name) else "Is"
    return rf"\{'P' if negated else 'p'}{{{prefix}{name}}}"


def _plain(character: str) -> str:
    return character if character.isalnum() or not character.isascii() else f"\\{character}"


def java_pattern(pattern: str) -> str:
    r"""Return the Java pattern that matches like a Joni pattern.

    >>> java_pattern(r"\w+"), java_pattern("[[:alpha:]]{2}")
    ('(?ud)\\w+', '(?ud)[[\\p{IsAlphabetic}]]{2}')
    >>> java_pattern("a*")
    '(?ud)(?![\\x{DC00}-\\x{DFFF}])(?:a*)'
    """
    if EXTENDED.search(pattern):
        return f"{FLAGS}{pattern}"
    java, may_be_empty = _Reader(pattern).read()
    return f"{FLAGS}{WHOLE}(?:{java})" if may_be_empty else f"{FLAGS}{java}"


_CLASS: Final = r"\[\^?+\]?+(?:\\.|[^\[\]\\]|\[(?:\\.|[^\[\]\\])*+\])*+\]"
_PART: Final = rf"\\Q(?:(?!\\E).)*+\\E|\\[pP]\{{[^}}]*+\}}|\\.|{_CLASS}|."
"""A part of a pattern that contains no others, except for nested classes."""
_OPEN_QUOTATION: Final = r"(?s)(\\Q(?:(?!\\E).)*+)\z"
_CLOSED_QUOTATION: Final = r"$1\\E"
_REWRITTEN: Final = (
    (r"\(\?#(?:\\.|[^)])*+\)", ""),
    (r"(\(\?[a-zA-Z-]*)[duU]", "$2Z"),
    (r"\{(?!\d++(?:,\d*+)?\})", r"\\{"),
    (r"\\([bB])", r"(?U:\\$2)"),
    (r"\\([pP])\{(?!\^|(?i:in|java))([^}]{3,})\}", r"\\$2{Is$3}"),
    (rf"\\([pP])\{{Is(?i:({'|'.join(sorted(_POSIX.keys() - {'word'}))}))\}}", r"(?U:\\$2{$3})"),
    (r"\\v", r"\\x0B"),
    (r"\\x([0-9A-Fa-f]{0,2})", r"\\x{0$2}"),
    (r"\\0(?![0-7])", r"\\x00"),
    (r"\\([a-zA-Z&&[^wWdDsStnrfaexucAZzGkpPbBQEU]])", "$2"),
)
"""Replacements for patterns that are not literals, applied in order outside of character classes;
``$1`` precedes them.
"""
_ANY_REWRITTEN: Final = "(?s)" + "|".join([r"\\Q", *(regex for regex, _ in _REWRITTEN)])
"""A quick test, since most patterns need none of the replacements."""


_ANY_POSIX: Final = r"\[:\^?[a-z]+:\]"
_LEFT_POSIX: Final = rf"(?<!\\){_ANY_POSIX}"
_POSIX_OUTSIDE: Final = rf"(?s)\A(?:(?!{_ANY_POSIX})(?:{_PART}))*+{_ANY_POSIX}"
"""Outside of a class, a POSIX class is a class of a colon and letters."""


def _with_posix(pattern_sql: str) -> str:
    for name in _POSIX:
        for posix_name in (name, f"^{name}"):
            posix_regex = rf"(?<!\\)\[:{re.escape(posix_name)}:\]"
            java = _set(posix_name).replace("\\", r"\\")
            pattern_sql = (
                f"regexp_replace({pattern_sql}, {e.text_literal(posix_regex)},"
                f" {e.text_literal(java)})"
            )
    unknown = fail("INVALID_FUNCTION_ARGUMENT", "'invalid POSIX bracket type'")
    return (
        f"transform(array({pattern_sql}), `$q` -> IF(`$q` RLIKE {e.text_literal(_LEFT_POSIX)},"
        f" {unknown}, `$q`))[0]"
    )


def pattern_text(node: e.Typed, text: str, *, safe: bool = False) -> str:
    """Write a pattern; a computed one is translated per row, without POSIX classes outside of
    brackets.

    With ``safe``, an invalid pattern is NULL.
    """
    if isinstance(node, e.Constant):
        if safe and node.value is not None and is_wrong(node.value):
            return "CAST(NULL AS STRING)"
        return text if node.value is None else e.text_literal(java_pattern(node.value))
    # An unterminated quotation would include the text that follows.
    pattern_sql = (
        f"regexp_replace({text}, {e.text_literal(_OPEN_QUOTATION)},"
        f" {e.text_literal(_CLOSED_QUOTATION)})"
    )
    for regex, replacement in _REWRITTEN:
        full_regex = rf"(?s)\G((?:(?!{regex})(?:{_PART}))*+){regex}"
        pattern_sql = (
            f"regexp_replace({pattern_sql}, {e.text_literal(full_regex)},"
            f" {e.text_literal(f'$1{replacement}')})"
        )
    pattern_sql = f"IF({text} RLIKE {e.text_literal(_ANY_REWRITTEN)}, {pattern_sql}, {text})"
    outside = fail(
        "NOT_SUPPORTED",
        "'A class of POSIX outside of brackets in a pattern that is no literal is not supported by"
        " this engine'",
    )
    checked = f"IF({text} RLIKE {e.text_literal(_POSIX_OUTSIDE)}, {outside}, {_with_posix('`$p`')})"
    pattern_sql = (
        f"IF(instr({text}, '[:') > 0, transform(array({pattern_sql}), `$p` -> {checked})[0],"
        f" {pattern_sql})"
    )
    pattern_sql = f"concat({e.text_literal(f'{FLAGS}{WHOLE}(?:')}, {pattern_sql}, ')')"
    if not safe:
        return pattern_sql
    return (
        f"transform(array({pattern_sql}), `$p` -> IF(try_reflect('java.util.regex.Pattern',"
        " 'compile', `$p`) IS NULL, NULL, `$p`))[0]"
    )


# -- groups


def with_missing(node: e.Apply, text: str) -> str:
    """Write a group's match ``text``, with NULL instead of Spark's empty text if it took no part."""
    pattern, group = node.arguments[1:]
    while isinstance(group, e.Apply) and group.name == "cast":
        (group,) = group.arguments
    number = int(group.value or 0) if isinstance(group, e.Constant) else 0
    if not isinstance(pattern, e.Constant) or pattern.value is None or number < 1:
        return text
    if structure(pattern.value).groups[number - 1].certain:
        return text
    return (
        f"transform({text}, `$g` -> nullif(`$g`, ''))"
        if node.type.base == "array"
        else f"nullif({text}, '')"
    )


def replaced_by_lambda(pattern: str, texts: Sequence[str]) -> str:
    """Write REGEXP_REPLACE with a lambda; neither the pattern nor its optional groups may match
    nothing.
    """
    text, regex, function = texts

    def write(value: str) -> str:
        group_lists = [
            f"regexp_extract_all({value}, {regex}, {number})"
            for number in range(1, len(structure(pattern).groups) + 1)
        ]
        parts = [
            f"{part}[`$i` - 1]" if group.certain else f"nullif({part}[`$i` - 1], '')"
            for part, group in zip(group_lists, structure(pattern).groups, strict=True)
        ]
        replacement = f"transform(array(array({', '.join(parts)})), {function})[0]"
        pieces = (
            f"transform(split({value}, {regex}, -1), (`$p`, `$i`) -> IF(`$i` = 0, `$p`,"
            f" concat({replacement}, `$p`)))"
        )
        return (
            f"transform(array({pieces}), `$t` -> IF(exists(`$t`, `$p` -> `$p` IS NULL), NULL,"
            " array_join(`$t`, '')))[0]"
        )

    return once(write, text)
