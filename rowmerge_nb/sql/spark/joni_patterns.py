r"""Regular expressions: patterns of Trino's engine, Joni, as patterns of Java's, which Spark has.

Joni reads ``\w``, ``\d`` and ``\s`` as ASCII, ``\b`` and the classes of POSIX (``[[:alpha:]]``) as all of Unicode. Java's flag ``u`` compares letters
as Unicode does, ``d`` lets a line end at ``\n`` alone. Java counts in UTF-16: without a word on it, a match of nothing would stand between the two
halves of a character beyond the first 65536.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.functions.regexp_groups import EXTENDED, OUTSIDE, Structure, is_wrong, structure
from rowmerge_nb.sql.spark.text import fail, once
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAGS: Final = "(?ud)"
WHOLE: Final = r"(?![\x{DC00}-\x{DFFF}])"
"""What a match may begin with: not the second half of a character."""

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
"""The letters that mean the same behind a backslash in both engines; to Joni others are themselves."""
_SETS: Final = frozenset("wWdDsS")
_OCTAL: Final = re.compile("[0-7]{0,2}")
_HEXADECIMAL: Final = re.compile("[0-9A-Fa-f]{0,2}")
_LINES: Final = re.compile(r"\(\?[a-zA-Z]*m")


class _Reader:
    """Reads a pattern and writes it anew, and finds out whether it may match nothing."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.written: list[str] = []
        self.structure = Structure()
        self.captured = len(structure(pattern).groups)
        self.has_lines = _LINES.search(pattern) is not None

    def read(self) -> tuple[str, bool]:
        """Return the pattern for Java, and whether it may match nothing."""
        while self.place < len(self.pattern):
            if self.pattern[self.place] == "[":
                self.written.append(self.character_class())
                self.structure.atom()
                continue
            match = OUTSIDE.match(self.pattern, self.place)
            assert match is not None
            self.place = match.end()
            self.structure.part(match)
            self.written.append(self.token(match))
        return "".join(self.written), self.structure.may_be_empty

    def token(self, match: re.Match[str]) -> str:
        found = match[0]
        if match["quoted"] is not None:
            return "".join(map(_plain, match["quoted"]))
        if match["property"] is not None:
            return _property(match["property"])
        if match["escaped"] is not None:
            return self.escaped(match["escaped"])
        if match["comment"] is not None:
            return ""
        if match["flags"] is not None or (match["opening"] is not None and found.endswith(":")):
            return _flags(found)
        if found == "^" and self.has_lines:
            # With (?m) Java finds no line in an empty text; without it this is the same.
            return r"(?:\A|^)"
        # A brace that counts nothing is itself.
        return r"\{" if found == "{" else found

    def escaped(self, letter: str) -> str:
        if letter in "bB":
            return rf"(?U:\{letter})"
        if letter == "v":
            return r"\x0B"
        if letter == "x":
            digits = _HEXADECIMAL.match(self.pattern, self.place)
            assert digits is not None
            self.place = digits.end()
            return rf"\x{{{digits[0] or 0}}}"
        if letter == "0":
            digits = _OCTAL.match(self.pattern, self.place)
            assert digits is not None
            self.place = digits.end()
            return rf"\x{{{int(digits[0] or '0', 8):x}}}"
        if letter.isdecimal() and int(letter) > self.captured:
            return r"\k<missing>"
        return letter if letter.isalnum() and letter not in _KNOWN_ESCAPES else f"\\{letter}"

    def character_class(self) -> str:
        """Read a class of characters, and those within it."""
        opening = re.compile(r"\[\^?\]?").match(self.pattern, self.place)
        assert opening is not None
        found = opening[0]
        if found.endswith("]") and "]" not in self.pattern[opening.end() :]:
            found = found[:-1]
        self.place += len(found)
        written = found.replace("]", r"\]")
        # Behind a set or a range Joni has a further range begin with the last character before, or with the first of all.
        last, before = r"\x00", ""
        while self.place < len(self.pattern):
            if self.pattern[self.place] == "[" and not _is_posix(_INSIDE.match(self.pattern, self.place)):
                written += self.character_class()
                continue
            match = _INSIDE.match(self.pattern, self.place)
            assert match is not None
            self.place = match.end()
            if match[0] == "]":
                return f"{written}]"
            member = _member(match)
            if match[0] == "-" and before in {"character", "set"} and not self.pattern.startswith(("]", "[", "&&"), self.place):
                written += f"{last}-" if before == "set" else "-"
                before = "range"
                continue
            if match["property"] is not None or match["posix"] is not None or (match["escaped"] or "") in _SETS:
                before = "set"
            else:
                last, before = member, "set" if before == "range" else "character"
            written += member
        return written


def _is_posix(match: re.Match[str] | None) -> bool:
    return match is not None and match["posix"] is not None and match["posix"].removeprefix("^") in _POSIX


def _member(match: re.Match[str]) -> str:
    """What stands within a class of characters."""
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


def _flags(found: str) -> str:
    """Flags that Java alone has are none to Joni: let Java refuse them."""
    return re.sub("[duU]", "Z", found)


def _set(name: str) -> str:
    return f"[{'^' if name.startswith('^') else ''}{_POSIX[name.removeprefix('^')]}]"


def _property(found: str) -> str:
    """A property by its name: Joni knows those of POSIX as all of Unicode, and scripts without ``Is``."""
    name, negated = found[2:-1], found[0] == "P"
    known = re.sub(r"[ _-]", "", name).lower()
    if known in _POSIX:
        return _set(f"{'^' if negated else ''}{known}")
    # Those that begin with Is are Java's alone: twice it is none of Java's either.
    prefix = "" if len(name) <= 2 or re.match(r"(?i)in|java|\^", name) else "Is"
    return rf"\{'P' if negated else 'p'}{{{prefix}{name}}}"


def _plain(character: str) -> str:
    """A character that means itself."""
    return character if character.isalnum() or not character.isascii() else f"\\{character}"


def java_pattern(pattern: str) -> str:
    r"""Return the pattern with which Java's engine matches what Trino's matches with a pattern.

    >>> java_pattern(r"\w+"), java_pattern("[[:alpha:]]{2}")
    ('(?ud)\\w+', '(?ud)[[\\p{IsAlphabetic}]]{2}')
    >>> java_pattern("a*")
    '(?ud)(?![\\x{DC00}-\\x{DFFF}])(?:a*)'
    """
    if EXTENDED.search(pattern):
        return f"{FLAGS}{pattern}"
    written, may_be_empty = _Reader(pattern).read()
    return f"{FLAGS}{WHOLE}(?:{written})" if may_be_empty else f"{FLAGS}{written}"


_CLASS: Final = r"\[\^?+\]?+(?:\\.|[^\[\]\\]|\[(?:\\.|[^\[\]\\])*+\])*+\]"
_PART: Final = rf"\\Q(?:(?!\\E).)*+\\E|\\[pP]\{{[^}}]*+\}}|\\.|{_CLASS}|."
"""A part of a pattern within which nothing else begins; classes of characters may have others in them."""
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
"""What is written otherwise of a pattern that is no literal, outside of its classes of characters, one after another: what is sought, and its
replacement behind ``$1``."""
_ANY_REWRITTEN: Final = "(?s)" + "|".join([r"\\Q", *(sought for sought, _ in _REWRITTEN)])
"""Most patterns have none of it: looking once spares looking for each."""


_ANY_POSIX: Final = r"\[:\^?[a-z]+:\]"
_LEFT_POSIX: Final = rf"(?<!\\){_ANY_POSIX}"
_POSIX_OUTSIDE: Final = rf"(?s)\A(?:(?!{_ANY_POSIX})(?:{_PART}))*+{_ANY_POSIX}"
"""Outside of another class a class of POSIX is one of a colon and letters."""


def _with_posix(written: str) -> str:
    """Write the classes of POSIX within those of a pattern that is no literal as Java's."""
    for name in _POSIX:
        for sought in (name, f"^{name}"):
            found, java = rf"(?<!\\)\[:{re.escape(sought)}:\]", _set(sought).replace("\\", r"\\")
            written = f"regexp_replace({written}, {e.text_literal(found)}, {e.text_literal(java)})"
    unknown = fail("INVALID_FUNCTION_ARGUMENT", "'invalid POSIX bracket type'")
    return f"transform(array({written}), `$q` -> IF(`$q` RLIKE {e.text_literal(_LEFT_POSIX)}, {unknown}, `$q`))[0]"


def pattern_text(node: e.Typed, text: str, *, safe: bool = False) -> str:
    """Write a pattern in Spark SQL; one that is no literal is turned into Java's row by row, and has the classes of POSIX within others alone.

    Args:
        node: the pattern.
        text: what it is in Spark SQL.
        safe: give NULL for what is no pattern.
    """
    if isinstance(node, e.Constant):
        if safe and node.value is not None and is_wrong(node.value):
            return "CAST(NULL AS STRING)"
        return text if node.value is None else e.text_literal(java_pattern(node.value))
    # A quotation that nothing ends would take what follows for a part of it.
    written = f"regexp_replace({text}, {e.text_literal(_OPEN_QUOTATION)}, {e.text_literal(_CLOSED_QUOTATION)})"
    for sought, replacement in _REWRITTEN:
        found = rf"(?s)\G((?:(?!{sought})(?:{_PART}))*+){sought}"
        written = f"regexp_replace({written}, {e.text_literal(found)}, {e.text_literal(f'$1{replacement}')})"
    written = f"IF({text} RLIKE {e.text_literal(_ANY_REWRITTEN)}, {written}, {text})"
    outside = fail(
        "NOT_SUPPORTED", "'A class of POSIX outside of brackets in a pattern that is no literal is not supported by this engine'"
    )
    refused = f"IF({text} RLIKE {e.text_literal(_POSIX_OUTSIDE)}, {outside}, {_with_posix('`$p`')})"
    written = f"IF(instr({text}, '[:') > 0, transform(array({written}), `$p` -> {refused})[0], {written})"
    written = f"concat({e.text_literal(f'{FLAGS}{WHOLE}(?:')}, {written}, ')')"
    if not safe:
        return written
    return (
        f"transform(array({written}), `$p` -> IF(try_reflect('java.util.regex.Pattern', 'compile', `$p`) IS NULL, NULL, `$p`))[0]"
    )


# -- groups -----------------------------------------------------------------------------------------------------------


def with_missing(node: e.Apply, text: str) -> str:
    """Write what a group has matched: NULL where it took no part in the match, for which Spark has an empty text.

    Args:
        node: the call of REGEXP_EXTRACT or REGEXP_EXTRACT_ALL with a group.
        text: what Spark gives.
    """
    pattern, group = node.arguments[1:]
    while isinstance(group, e.Apply) and group.name == "cast":
        (group,) = group.arguments
    number = int(group.value or 0) if isinstance(group, e.Constant) else 0
    if not isinstance(pattern, e.Constant) or pattern.value is None or number < 1:
        return text
    if structure(pattern.value).groups[number - 1].certain:
        return text
    return f"transform({text}, `$g` -> nullif(`$g`, ''))" if node.type.base == "array" else f"nullif({text}, '')"


def replaced_by_lambda(pattern: str, texts: Sequence[str]) -> str:
    """Write REGEXP_REPLACE by a lambda, of a pattern that matches no empty text, whose groups do not either or take part in every match.

    Args:
        pattern: the pattern as it was written.
        texts: the text, the pattern for Java and the lambda, as Spark SQL.
    """
    text, regex, function = texts

    def write(value: str) -> str:
        found = [f"regexp_extract_all({value}, {regex}, {number})" for number in range(1, len(structure(pattern).groups) + 1)]
        parts = [
            f"{part}[`$i` - 1]" if group.certain else f"nullif({part}[`$i` - 1], '')"
            for part, group in zip(found, structure(pattern).groups, strict=True)
        ]
        made = f"transform(array(array({', '.join(parts)})), {function})[0]"
        pieces = f"transform(split({value}, {regex}, -1), (`$p`, `$i`) -> IF(`$i` = 0, `$p`, concat({made}, `$p`)))"
        return f"transform(array({pieces}), `$t` -> IF(exists(`$t`, `$p` -> `$p` IS NULL), NULL, array_join(`$t`, '')))[0]"

    return once(write, text)
