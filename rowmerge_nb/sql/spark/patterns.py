r"""Regular expressions: patterns of Trino's engine, Joni, as patterns of Java's, which Spark has.

Joni reads ``\w``, ``\d`` and ``\s`` as ASCII, ``\b`` and the classes of POSIX (``[[:alpha:]]``) as all of Unicode. Java's flag ``u`` compares letters
as Unicode does, ``d`` lets a line end at ``\n`` alone. Java counts in UTF-16: without a word on it, a match of nothing would stand between the two
halves of a character beyond the first 65536.
"""

from __future__ import annotations

import re
from typing import Final

from rowmerge_nb.sql.spark.text import fail
from rowmerge_nb.sql.typed import expressions as e

__all__ = ["FLAGS", "WHOLE", "java_pattern", "pattern_text"]

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
_OUTSIDE: Final = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
    | \\(?P<property>[pP]\{\^?[^}]*\})
    | \\(?P<escaped>.)
    | (?P<comment>\(\?\#(?:\\.|[^)])*\)?)
    | (?P<flags>\(\?[a-zA-Z-]*\))
    | (?P<opening>\((?:\?(?:<?[=!]|<\w+>|>|[a-zA-Z-]*:))?)
    | (?P<repeated>\{(?P<least>\d+)(?:,\d*)?\}|[*+?])
    | (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_INSIDE: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\(?P<property>[pP]\{\^?[^}]*\})|\\(?P<escaped>.)|\[:(?P<posix>\^?[a-z]+):\]|(?P<other>.)",
    re.DOTALL,
)
_KNOWN_ESCAPES: Final = frozenset("wWdDsStnrfaexucAZzGkpP0123456789")
"""The letters that mean the same behind a backslash in both engines; to Joni others are themselves."""
_LINES: Final = re.compile(r"\(\?[a-zA-Z]*m")
_EXTENDED: Final = re.compile(r"\(\?[a-zA-Z]*x")


class _Reader:
    """Reads a pattern and writes it anew, and finds out whether it may match nothing."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.written: list[str] = []
        # Per open group whether all alternatives so far need a character, whether this one does, and whether a match of it takes what it matches.
        self.groups: list[list[bool]] = [[True, False, True]]
        self.last = False
        self.was_repeated = False
        self.has_lines = _LINES.search(pattern) is not None

    def read(self) -> tuple[str, bool]:
        """Give the pattern for Java, and whether it may match nothing."""
        while self.place < len(self.pattern):
            if self.pattern[self.place] == "[":
                self.atom(self.character_class())
                continue
            match = _OUTSIDE.match(self.pattern, self.place)
            assert match is not None
            self.place = match.end()
            self.token(match)
        needed, this, _ = self.groups[0]
        return "".join(self.written), not (needed and (this or self.last))

    def atom(self, text: str, *, takes: bool = True) -> None:
        """Write what stands for a character, or for a place."""
        self.written.append(text)
        self.groups[-1][1] = self.groups[-1][1] or self.last
        self.last, self.was_repeated = takes, False

    def token(self, match: re.Match[str]) -> None:
        found = match[0]
        if match["quoted"] is not None:
            for character in match["quoted"]:
                self.atom(_plain(character))
        elif match["property"] is not None:
            self.atom(_property(match["property"]))
        elif match["escaped"] is not None:
            self.escaped(match["escaped"])
        elif match["comment"] is not None:
            return
        elif match["flags"] is not None:
            self.written.append(_flags(found))
        elif match["opening"] is not None:
            self.atom(_flags(found) if found.endswith(":") else found, takes=False)
            self.groups.append([True, False, not re.fullmatch(r"\(\?<?[=!]", found)])
        elif match["repeated"] is not None:
            self.written.append(found)
            if not self.was_repeated and (found in {"*", "?"} or match["least"] == "0"):
                self.last = False
            self.was_repeated = True
        else:
            self.other(found)

    def escaped(self, letter: str) -> None:
        if letter in "bB":
            self.atom(rf"(?U:\{letter})", takes=False)
        elif letter == "v":
            self.atom(r"\x0B")
        elif letter.isalnum() and letter not in _KNOWN_ESCAPES:
            self.atom(letter)
        else:
            self.atom(f"\\{letter}", takes=letter not in "AZzGk123456789")

    def other(self, found: str) -> None:
        if found == "|":
            self.written.append(found)
            group = self.groups[-1]
            group[0], group[1], self.last = group[0] and (group[1] or self.last), False, False
        elif found == ")" and len(self.groups) > 1:
            needed, this, takes = self.groups.pop()
            self.written.append(found)
            self.last, self.was_repeated = needed and (this or self.last) and takes, False
        elif found in "^$":
            # With (?m) Java finds no line in an empty text; without it this is the same.
            self.atom(r"(?:\A|^)" if found == "^" and self.has_lines else found, takes=False)
        else:
            # A brace that counts nothing is itself.
            self.atom(r"\{" if found == "{" else found)

    def character_class(self) -> str:
        """Read a class of characters, and those within it."""
        opening = re.compile(r"\[\^?\]?").match(self.pattern, self.place)
        assert opening is not None
        found = opening[0]
        if found.endswith("]") and "]" not in self.pattern[opening.end() :]:
            found = found[:-1]
        self.place += len(found)
        written = found.replace("]", r"\]")
        while self.place < len(self.pattern):
            if self.pattern[self.place] == "[" and not _is_posix(_INSIDE.match(self.pattern, self.place)):
                written += self.character_class()
                continue
            match = _INSIDE.match(self.pattern, self.place)
            assert match is not None
            self.place = match.end()
            if match[0] == "]":
                return f"{written}]"
            written += _member(match)
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
    name = found[2:-1]
    negated = (found[0] == "P") is not name.startswith("^")
    name = name.removeprefix("^")
    known = re.sub(r"[ _-]", "", name).lower()
    if known in _POSIX:
        return _set(f"{'^' if negated else ''}{known}")
    prefix = "" if len(name) <= 2 or re.match("(?i)is|in", name) else "Is"
    return rf"\{'P' if negated else 'p'}{{{prefix}{name}}}"


def _plain(character: str) -> str:
    """A character that means itself."""
    return character if character.isalnum() or not character.isascii() else f"\\{character}"


def java_pattern(pattern: str) -> str:
    r"""Give the pattern with which Java's engine matches what Trino's matches with a pattern.

    >>> java_pattern(r"\w+"), java_pattern("[[:alpha:]]{2}")
    ('(?ud)\\w+', '(?ud)[[\\p{IsAlphabetic}]]{2}')
    >>> java_pattern("a*")
    '(?ud)(?![\\x{DC00}-\\x{DFFF}])(?:a*)'
    """
    if _EXTENDED.search(pattern):
        return f"{FLAGS}{pattern}"
    written, may_be_empty = _Reader(pattern).read()
    return f"{FLAGS}{WHOLE}(?:{written})" if may_be_empty else f"{FLAGS}{written}"


def pattern_text(node: e.Typed, text: str) -> str:
    """Write a pattern in Spark SQL; one that is no literal is turned into Java's row by row, and cannot have the classes of POSIX.

    Args:
        node: the pattern.
        text: what it is in Spark SQL.
    """
    if isinstance(node, e.Constant):
        return text if node.value is None else e.text_literal(java_pattern(node.value))
    # A quotation that nothing ends would take what follows for a part of it.
    ended = rf"regexp_replace({text}, '(?s)(\\\\Q(?:(?!\\\\E).)*+)\\z', '$1\\\\E')"
    bounded = rf"regexp_replace({ended}, '(?s)\\G((?:[^\\\\]|\\\\[^bB])*+)(\\\\[bB])', '$1(?U:$2)')"
    posix = fail("NOT_SUPPORTED", "'The classes of POSIX in a pattern that is no literal are not supported by this engine'")
    return f"IF(instr({text}, '[:') > 0, {posix}, concat({e.text_literal(f'{FLAGS}{WHOLE}(?:')}, {bounded}, ')'))"
