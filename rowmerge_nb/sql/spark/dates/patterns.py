"""Patterns of dates: MySQL's (``%Y``) and Joda's (``yyyy``), read into tokens, and turned into Spark SQL that formats or parses.

Nothing of a pattern is handed to Spark as it stands: its letters mean other things there, and its parser takes other texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rowmerge_nb.sql.typed.expressions import text_literal

__all__ = ["PatternError", "Token", "formatting", "joda_tokens", "mysql_tokens"]


class PatternError(ValueError):
    """A pattern that Trino refuses; the message is Trino's."""


@dataclass(frozen=True)
class Token:
    """A part of a pattern.

    Args:
        field: what it stands for, ``"literal"`` for plain text.
        width: digits or letters: how many at least when it is written.
        text: of plain text the text itself.
        most: the most digits when it is read.
        strict: of a year of two digits: no other number of digits is read.
    """

    field: str
    width: int = 1
    text: str = ""
    most: int = 2
    strict: bool = False

    @property
    def is_number(self) -> bool:
        """Is it written in digits?"""
        return self.field not in _WORDS


_WORDS: Final = frozenset(
    {"literal", "era", "day name", "short day name", "month name", "short month name", "halfday", "zone name", "offset", "zone"}
)

_MYSQL: Final = {
    "a": (Token("short day name"),),
    "b": (Token("short month name"),),
    "c": (Token("month", 1),),
    "d": (Token("day", 2),),
    "e": (Token("day", 1),),
    "f": (Token("fraction", 6, most=9),),
    "H": (Token("hour", 2),),
    "h": (Token("clock hour of halfday", 2),),
    "I": (Token("clock hour of halfday", 2),),
    "i": (Token("minute", 2),),
    "j": (Token("day of year", 3, most=3),),
    "k": (Token("hour", 1),),
    "l": (Token("clock hour of halfday", 1),),
    "M": (Token("month name"),),
    "m": (Token("month", 2),),
    "p": (Token("halfday"),),
    "S": (Token("second", 2),),
    "s": (Token("second", 2),),
    "v": (Token("week", 2),),
    "x": (Token("week year", 4, most=4),),
    "W": (Token("day name"),),
    "Y": (Token("year", 4, most=4),),
    "y": (Token("short year", 2, strict=True),),
    "%": (Token("literal", text="%"),),
}
_COLON: Final = (Token("literal", text=":"),)
_SPACE: Final = (Token("literal", text=" "),)
_CLOCK: Final[dict[str, tuple[Token, ...]]] = {"T": _MYSQL["H"] + _COLON + _MYSQL["i"] + _COLON + _MYSQL["s"]}
_CLOCK["r"] = _MYSQL["h"] + _CLOCK["T"][1:] + _SPACE + _MYSQL["p"]
_MYSQL_REFUSED: Final = frozenset("wUuVXD")

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
_YEARS: Final = frozenset({"year", "week year", "century"})
_MOST: Final = {"day of week": 1, "day of year": 3}


def mysql_tokens(pattern: str) -> tuple[Token, ...]:
    """Read a pattern of DATE_FORMAT and DATE_PARSE.

    Raises:
        PatternError: a letter that Trino does not support.

    >>> [token.field for token in mysql_tokens("%Y-%c")]
    ['year', 'literal', 'month']
    """
    tokens: list[Token] = []
    for letter, text in re.findall(r"%(.)|([^%]+)", pattern, re.DOTALL):
        if letter in _MYSQL_REFUSED and letter:
            msg = f"%{letter} not supported in date format string"
            raise PatternError(msg)
        known = _MYSQL.get(letter) or _CLOCK.get(letter)
        tokens += known if letter and known else (Token("literal", text=letter or text),)
    return tuple(tokens)


def joda_tokens(pattern: str) -> tuple[Token, ...]:
    """Read a pattern of FORMAT_DATETIME and PARSE_DATETIME.

    Raises:
        PatternError: a letter that Joda does not know.

    >>> [(token.field, token.width) for token in joda_tokens("yyyy'T'HH")]
    [('year', 4), ('literal', 1), ('hour', 2)]
    """
    if not pattern:
        msg = "Invalid pattern specification"
        raise PatternError(msg)
    parts = re.findall(r"'((?:[^']|'')*)(?:'|$)|(([A-Za-z])\3*)|([^A-Za-z']+)", pattern)
    tokens = []
    for index, (quoted, run, letter, other) in enumerate(parts):
        following = parts[index + 1][2] if index + 1 < len(parts) else ""
        if run:
            tokens.append(
                _joda_token(letter, len(run), before_number=bool(following) and _is_number(following, parts[index + 1][1]))
            )
        else:
            text = other or quoted.replace("''", "'") or "'"
            tokens.append(Token("literal", text=text))
    return tuple(tokens)


def _is_number(letter: str, run: str) -> bool:
    return letter in "CxYywedDFKhHkmsSc" or (letter == "M" and len(run) <= 2)


def _joda_token(letter: str, width: int, *, before_number: bool) -> Token:
    if letter == "M":
        names = {1: Token("month", width), 2: Token("month", width), 3: Token("short month name")}
        return names.get(width, Token("month name"))
    if letter == "E":
        return Token("day name" if width >= 4 else "short day name")
    if letter == "z":
        return Token("zone name", width)
    if letter == "Z":
        return Token("zone" if width >= 3 else "offset", width)
    field = _JODA.get(letter)
    if field is None:
        msg = f"Illegal pattern component: {letter * width}"
        raise PatternError(msg)
    if field == "year" and width == 2:
        return Token("short year", 2, strict=before_number)
    if field in _YEARS:
        return Token(field, width, most=width if before_number else 9)
    return Token(field, width, most=width if field == "fraction" else _MOST.get(field, 2))


# -- formatting -------------------------------------------------------------------------------------------------------

_JAVA: Final = {
    "era": "G",
    "short day name": "EEE",
    "day name": "EEEE",
    "short month name": "MMM",
    "month name": "MMMM",
    "halfday": "a",
    "short year": "yy",
    "day": "dd",
    "month": "MM",
    "hour": "HH",
    "clock hour": "kk",
    "hour of halfday": "KK",
    "clock hour of halfday": "hh",
    "minute": "mm",
    "second": "ss",
    "day of year": "DDD",
}
"""What Spark's pattern has under the same meaning; of numbers the padded form."""

_COMPUTED: Final = {
    "year": "year({t})",
    "century": "year({t}) div 100",
    "week year": "extract(YEAROFWEEK FROM {t})",
    "week": "weekofyear({t})",
    "day of week": "weekday({t}) + 1",
}


def formatting(tokens: tuple[Token, ...], clock: str, zone: str, offset: str) -> str:
    """Write Spark SQL that formats a timestamp.

    Args:
        tokens: the pattern.
        clock: Spark SQL of the wall clock.
        zone: Spark SQL of the zone's name.
        offset: Spark SQL of the minutes between the wall clock and UTC.

    Raises:
        KeyError: the pattern asks for the name of a zone other than UTC, which nothing here knows.
    """
    pieces: list[str] = []
    java = ""
    for token in (*_joined(tokens), None):
        simple = _java(token) if token is not None else None
        if simple is not None:
            java += simple
            continue
        if java:
            pieces.append(f"date_format({clock}, {text_literal(java)})")
            java = ""
        if token is not None:
            pieces.append(_written(token, clock, zone, offset))
    return pieces[0] if len(pieces) == 1 else f"concat({', '.join(pieces)})" if pieces else f"IF({clock} IS NULL, NULL, '')"


def _joined(tokens: tuple[Token, ...]) -> list[Token]:
    """Literals side by side as one: two that end and begin with quotes would be read as one with a quote in it."""
    joined: list[Token] = []
    for token in tokens:
        if joined and token.field == joined[-1].field == "literal":
            joined[-1] = Token("literal", text=joined[-1].text + token.text)
        else:
            joined.append(token)
    return joined


def _java(token: Token) -> str | None:
    if token.field == "literal":
        quoted = token.text.replace("'", "''")
        return f"'{quoted}'" if re.search(r"[^\W\d_]|[\[\]{}#']", token.text) else quoted
    if token.field == "fraction":
        return "S" * token.width if token.width <= 9 else None
    java = _JAVA.get(token.field)
    if java is None or not token.is_number or token.field == "short year":
        return java
    return java if token.width == len(java) else java[0] if token.width == 1 else None


def _written(token: Token, clock: str, zone: str, offset: str) -> str:
    if token.field in _COMPUTED or token.is_number:
        value = _COMPUTED.get(token.field, "")
        number = value.format(t=clock) if value else f"CAST(date_format({clock}, '{_JAVA[token.field][0]}') AS INT)"
        shown = f"CAST({number} AS STRING)"
        return shown if token.width == 1 else f"IF(length({shown}) < {token.width}, lpad({shown}, {token.width}, '0'), {shown})"
    if token.field == "zone":
        return zone
    if token.field == "offset":
        colon = ":" if token.width == 2 else ""
        sign = f"IF({offset} < 0, '-', '+')"
        return f"concat({sign}, format_string('%02d{colon}%02d', abs({offset}) div 60, abs({offset}) % 60))"
    if zone != "'UTC'":
        raise KeyError(token.field)
    return f"IF({clock} IS NULL, NULL, '{'UTC' if token.width < 4 else 'Coordinated Universal Time'}')"
