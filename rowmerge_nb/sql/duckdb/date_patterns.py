"""Formatting by pattern in DuckDB SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, bound, text_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.functions.date_patterns import PatternToken

_WORDS: Final = {
    "era": "CASE WHEN year({t}) > 0 THEN 'AD' ELSE 'BC' END",
    "short day name": "strftime({t}, '%a')",
    "day name": "strftime({t}, '%A')",
    "short month name": "strftime({t}, '%b')",
    "month name": "strftime({t}, '%B')",
    "halfday": "CASE WHEN hour({t}) < 12 THEN 'AM' ELSE 'PM' END",
    "short year": (
        "lpad(CAST((CASE WHEN year({t}) > 0 THEN year({t}) ELSE 1 - year({t}) END) % 100 AS"
        " VARCHAR), 2, '0')"
    ),
}
_NUMBERS: Final = {
    "year": "year({t})",
    "century": "year({t}) // 100",
    "week year": "isoyear({t})",
    "week": "week({t})",
    "day of week": "isodow({t})",
    "day": "day({t})",
    "month": "month({t})",
    "hour": "hour({t})",
    "clock hour": "CASE WHEN hour({t}) = 0 THEN 24 ELSE hour({t}) END",
    "hour of halfday": "hour({t}) % 12",
    "clock hour of halfday": "(hour({t}) + 11) % 12 + 1",
    "minute": "minute({t})",
    "second": "second({t})",
    "day of year": "dayofyear({t})",
}
_DECIMALS: Final = 9


def formatted(tokens: Sequence[PatternToken], clock: str) -> str:
    """Format a wall clock; UnprintableError for zones."""

    def write(moment: str) -> str:
        pieces = [_token_text(token, moment) for token in tokens]
        return f"CASE WHEN {moment} IS NOT NULL THEN {' || '.join(pieces) or chr(39) * 2} END"

    return bound(write, clock)


def _token_text(token: PatternToken, moment: str) -> str:
    if token.field == "literal":
        return text_literal(token.text)
    if token.field in _WORDS:
        return f"({_WORDS[token.field].format(t=moment)})"
    if token.field == "fraction" and token.width <= _DECIMALS:
        return f"rpad(substr(strftime({moment}, '%f'), 1, {token.width}), {token.width}, '0')"
    if token.field not in _NUMBERS:
        raise UnprintableError(f"a date pattern with a part '{token.field}'")
    number_text = f"CAST({_NUMBERS[token.field].format(t=moment)} AS VARCHAR)"
    return (
        number_text
        if token.width == 1
        else f"lpad({number_text}, greatest({token.width}, length({number_text}))::INTEGER, '0')"
    )
