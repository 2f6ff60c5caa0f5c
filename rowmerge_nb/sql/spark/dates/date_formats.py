"""Formatting by pattern in Spark SQL."""

from __future__ import annotations

import re
from typing import Final

from rowmerge_nb.sql.functions.date_patterns import PatternToken
from rowmerge_nb.sql.typed.expressions import text_literal

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
"""Equivalents in Spark's patterns; padded forms of numbers."""

_SHORT: Final = 2
_COMPUTED: Final = {
    "year": "year({t})",
    "century": "year({t}) div 100",
    "year of era": "IF(year({t}) > 0, year({t}), 1 - year({t}))",
    "century of era": "IF(year({t}) > 0, year({t}), 1 - year({t})) div 100",
    "week year": "extract(YEAROFWEEK FROM {t})",
    "week": "weekofyear({t})",
    "day of week": "weekday({t}) + 1",
}


def formatting(tokens: tuple[PatternToken, ...], clock: str, zone: str, offset: str) -> str:
    """Format a timestamp, given Spark SQL of its wall clock, zone, and offset in minutes."""
    pieces: list[str] = []
    java = ""
    for token in (*_joined(tokens), None):
        simple = _java(token) if token is not None else None
        runs_on = simple and java[-1:] == simple[0] and simple[0].isalpha()
        if simple is not None and not runs_on:
            java += simple
            continue
        if java:
            pieces.append(f"date_format({clock}, {text_literal(java)})")
            java = ""
        if simple is not None:
            # The same letter would extend the preceding part.
            java = simple
        elif token is not None:
            pieces.append(_computed(token, clock, zone, offset))
    return (
        pieces[0]
        if len(pieces) == 1
        else f"concat({', '.join(pieces)})"
        if pieces
        else f"IF({clock} IS NULL, NULL, '')"
    )


def _joined(tokens: tuple[PatternToken, ...]) -> list[PatternToken]:
    """Join adjacent literals, since adjacent quotes mean a quote character."""
    result: list[PatternToken] = []
    for token in tokens:
        if result and token.field == result[-1].field == "literal":
            result[-1] = PatternToken("literal", text=result[-1].text + token.text)
        else:
            result.append(token)
    return result


def _java(token: PatternToken) -> str | None:
    if token.field == "literal":
        quoted = token.text.replace("'", "''")
        return f"'{quoted}'" if re.search(r"[^\W\d_]|[\[\]{}#']", token.text) else quoted
    if token.field == "fraction":
        return "S" * token.width if token.width <= 9 else None
    java = _JAVA.get(token.field)
    if java is None or not token.is_number or token.field == "short year":
        return java
    return java if token.width == len(java) else java[0] if token.width == 1 else None


def _computed(token: PatternToken, clock: str, zone: str, offset: str) -> str:
    if token.field in _COMPUTED or token.is_number:
        value = _COMPUTED.get(token.field, "")
        if token.field == "week year" and token.width == _SHORT:
            return f"lpad(abs({value.format(t=clock)}) % 100, 2, '0')"
        number = (
            value.format(t=clock)
            if value
            else f"CAST(date_format({clock}, '{_JAVA[token.field][0]}') AS INT)"
        )
        number_text = f"CAST({number} AS STRING)"
        return (
            number_text
            if token.width == 1
            else (
                f"IF(length({number_text}) < {token.width}, lpad({number_text}, {token.width},"
                f" '0'), {number_text})"
            )
        )
    if token.field == "zone":
        return zone
    if token.field == "offset":
        colon = ":" if token.width == 2 else ""
        sign = f"IF({offset} < 0, '-', '+')"
        offset_text = (
            f"concat({sign}, format_string('%02d{colon}%02d', abs({offset}) div 60, abs({offset}) %"
            " 60))"
        )
        return f"IF({clock} IS NULL, NULL, {offset_text})"
    if zone != "'UTC'":
        raise KeyError(token.field)
    return (
        f"IF({clock} IS NULL, NULL, '{'UTC' if token.width < 4 else 'Coordinated Universal Time'}')"
    )
