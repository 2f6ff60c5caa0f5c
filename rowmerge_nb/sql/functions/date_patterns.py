"""Date patterns of MySQL (``%Y``) and Joda (``yyyy``) as tokens; Spark's own patterns differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


class PatternError(ValueError):
    """Trino refuses the pattern, with this message."""


@dataclass(frozen=True)
class PatternToken:
    """A part of a pattern.

    Args:
        field: its meaning, or ``"literal"``.
        width: the minimum width when formatted.
        most: the maximum number of digits when parsed.
    """

    field: str
    width: int = 1
    text: str = ""
    most: int = 2
    strict: bool = False

    @property
    def is_number(self) -> bool:
        return self.field not in _WORDS


_WORDS: Final = frozenset(
    {
        "literal",
        "era",
        "day name",
        "short day name",
        "month name",
        "short month name",
        "halfday",
        "zone name",
        "offset",
        "zone",
    }
)

_MYSQL: Final = {
    "a": (PatternToken("short day name"),),
    "b": (PatternToken("short month name"),),
    "c": (PatternToken("month", 1),),
    "d": (PatternToken("day", 2),),
    "e": (PatternToken("day", 1),),
    "f": (PatternToken("fraction", 6, most=9),),
    "H": (PatternToken("hour", 2),),
    "h": (PatternToken("clock hour of halfday", 2),),
    "I": (PatternToken("clock hour of halfday", 2),),
    "i": (PatternToken("minute", 2),),
    "j": (PatternToken("day of year", 3, most=3),),
    "k": (PatternToken("hour", 1),),
    "l": (PatternToken("clock hour of halfday", 1),),
    "M": (PatternToken("month name"),),
    "m": (PatternToken("month", 2),),
    "p": (PatternToken("halfday"),),
    "S": (PatternToken("second", 2),),
    "s": (PatternToken("second", 2),),
    "v": (PatternToken("week", 2),),
    "x": (PatternToken("week year", 4, most=4),),
    "W": (PatternToken("day name"),),
    "Y": (PatternToken("year", 4, most=4),),
    "y": (PatternToken("short year", 2, strict=True),),
    "%": (PatternToken("literal", text="%"),),
}
_COLON: Final = (PatternToken("literal", text=":"),)
_SPACE: Final = (PatternToken("literal", text=" "),)
_CLOCK: Final[dict[str, tuple[PatternToken, ...]]] = {
    "T": _MYSQL["H"] + _COLON + _MYSQL["i"] + _COLON + _MYSQL["s"]
}
_CLOCK["r"] = _MYSQL["h"] + _CLOCK["T"][1:] + _SPACE + _MYSQL["p"]
ISO_DATE: Final = "%Y-%m-%d"
"""A pattern that Trino parses specially, with its own errors about texts of ten characters."""
_MYSQL_REFUSED: Final = frozenset("wUuVXD")

_SLASH: Final = (PatternToken("literal", text="/"),)
CLOCK_CONVERSIONS: Final[dict[str, tuple[PatternToken, ...]]] = {
    **{letter: _MYSQL[letter] for letter in "HIklSp"},
    "M": _MYSQL["i"],
    "L": (PatternToken("fraction", 3),),
    "N": (PatternToken("fraction", 9),),
    "R": _CLOCK["T"][:3],
    "T": _CLOCK["T"],
    "r": _CLOCK["r"],
}
"""Java's formats of a time of day, by the letter after ``%t``."""
DATE_CONVERSIONS: Final[dict[str, tuple[PatternToken, ...]]] = {
    **{letter: _MYSQL[letter] for letter in "abdejmy"},
    "A": _MYSQL["W"],
    "B": _MYSQL["M"],
    "h": _MYSQL["b"],
    "C": (PatternToken("century of era", 2),),
    "Y": (PatternToken("year of era", 4),),
    "D": _MYSQL["m"] + _SLASH + _MYSQL["d"] + _SLASH + _MYSQL["y"],
}
"""Java's formats of a date, except for ``%tF``."""

_JODA: Final = {
    "G": "era",
    "C": "century",
    "x": "week year",
    "Y": "year",
    "y": "year",
    "w": "week",
    "e": "day of week",
    "D": "day of year",
    "d": "day",
    "a": "halfday",
    "K": "hour of halfday",
    "h": "clock hour of halfday",
    "H": "hour",
    "k": "clock hour",
    "m": "minute",
    "s": "second",
    "S": "fraction",
}
_NOTHING: Final = "Both printing and parsing not supported"
_YEARS: Final = frozenset({"year", "week year", "century"})
_MOST: Final = {"day of week": 1, "day of year": 3}


def mysql_tokens(pattern: str) -> tuple[PatternToken, ...]:
    """Parse a pattern of DATE_FORMAT and DATE_PARSE, or raise PatternError.

    >>> [token.field for token in mysql_tokens("%Y-%c")]
    ['year', 'literal', 'month']
    """
    tokens: list[PatternToken] = []
    for letter, text in re.findall(r"%(.)|([^%]+)", pattern, re.DOTALL):
        if letter in _MYSQL_REFUSED and letter:
            raise PatternError(f"%{letter} not supported in date format string")
        token = _MYSQL.get(letter) or _CLOCK.get(letter)
        tokens += token if letter and token else (PatternToken("literal", text=letter or text),)
    if not tokens:
        raise PatternError(_NOTHING)
    if pattern == ISO_DATE:
        # It parses longer years too.
        tokens[0] = PatternToken("year", 4, most=9)
    return tuple(tokens)


def joda_tokens(pattern: str) -> tuple[PatternToken, ...]:
    """Parse a pattern of FORMAT_DATETIME and PARSE_DATETIME, or raise PatternError.

    >>> [(token.field, token.width) for token in joda_tokens("yyyy'T'HH")]
    [('year', 4), ('literal', 1), ('hour', 2)]
    """
    if not pattern:
        raise PatternError("Invalid pattern specification: Pattern is null or empty")
    parts = re.findall(r"'((?:[^']|'')*)(?:'|$)|(([A-Za-z])\3*)|([^A-Za-z']+)", pattern)
    tokens = []
    for index, (quoted, run, letter, other) in enumerate(parts):
        following = parts[index + 1][2] if index + 1 < len(parts) else ""
        if run:
            tokens.append(
                _joda_token(
                    letter,
                    len(run),
                    before_number=bool(following) and _is_number(following, parts[index + 1][1]),
                )
            )
        else:
            text = other or quoted.replace("''", "'") or "'"
            tokens.append(PatternToken("literal", text=text))
    return tuple(tokens)


def _is_number(letter: str, run: str) -> bool:
    return letter in "CxYywedDFKhHkmsSc" or (letter == "M" and len(run) <= 2)


def _joda_token(letter: str, width: int, *, before_number: bool) -> PatternToken:
    if letter == "M":
        names = {
            1: PatternToken("month", width),
            2: PatternToken("month", width),
            3: PatternToken("short month name"),
        }
        return names.get(width, PatternToken("month name"))
    if letter == "E":
        return PatternToken("day name" if width >= 4 else "short day name")
    if letter == "z":
        return PatternToken("zone name", width)
    if letter == "Z":
        return PatternToken("zone" if width >= 3 else "offset", width)
    field = _JODA.get(letter)
    if field is None:
        raise PatternError(f"Illegal pattern component: {letter * width}")
    if field == "year" and width == 2:
        return PatternToken("short year", 2, strict=before_number)
    if field in _YEARS:
        return PatternToken(field, width, most=width if before_number or field == "century" else 9)
    return PatternToken(field, width, most=width if field == "fraction" else _MOST.get(field, 2))
