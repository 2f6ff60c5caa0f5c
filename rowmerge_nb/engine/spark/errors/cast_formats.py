"""The next step for texts that are dates or numbers in another format."""

from __future__ import annotations

import re
from typing import Final

from rowmerge_nb.sql.analyzer.expressions.date_texts import YEAR_LAST, layouts_of

_FAILURE: Final = re.compile(
    r"Value cannot be cast to (?P<dated>date|timestamp): (?P<text>.*)"
    r"|Cannot cast '(?P<number>.*)' to (?P<type>DOUBLE|REAL|BIGINT|INT|DECIMAL\(.*\))"
    r"|Cannot cast VARCHAR '(?P<digits>.*)' to (?P<decimal>DECIMAL\(.*\)).*",
    re.DOTALL,
)
_DATED: Final = re.compile(r"\s*(\S+?)(\s+\d{1,2}:\d{2}(:\d{2})?)?\s*")
_ISO: Final = re.compile(
    r"\s*\d{4}-\d{2}-\d{2}T\d{2}(?::\d{2}){0,2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?\s*"
)
_TRY: Final = "TRY_CAST returns NULL for such values, which loses them."


def format_hint(message: str) -> str | None:
    """Return how a text in another format is converted, from the message of a failed cast."""
    failure = _FAILURE.fullmatch(message)
    if failure is None:
        return None
    if failure["dated"]:
        step = _date_step(failure["text"], failure["dated"])
    else:
        step = _number_step(
            failure["number"] or failure["digits"] or "", failure["type"] or failure["decimal"]
        )
    return None if step is None else f"{step} {_TRY}"


def _date_step(text: str, type_name: str) -> str | None:
    if _ISO.fullmatch(text):
        return f"Write CAST(from_iso8601_timestamp(x) AS {type_name})."
    match = _DATED.fullmatch(text)
    layouts = () if match is None else layouts_of([match[1]], YEAR_LAST)
    if match is None or not layouts:
        return None
    clock = "" if match[2] is None else " %H:%i:%s" if match[3] else " %H:%i"
    step = f"Write CAST(date_parse(x, '{layouts[0]}{clock}') AS {type_name})"
    if len(layouts) == 1:
        return f"{step}."
    return f"{step} if the day is first, and '{layouts[1]}{clock}' if the month is."


def _number_step(text: str, type_name: str) -> str | None:
    name = "integer" if type_name == "INT" else type_name.lower()
    number = text.strip()
    if re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", number):
        return f"Write CAST(replace(x, ',', '') AS {name})."
    if re.fullmatch(r"[+-]?\d+,\d+", number):
        return f"Write CAST(replace(x, ',', '.') AS {name})."
    if re.fullmatch(r"[+-]?\d{1,3}(?:\.\d{3})+,\d+", number):
        return f"Write CAST(replace(replace(x, '.', ''), ',', '.') AS {name})."
    if re.fullmatch(r"[$€£]\s*[\d.,]+|[\d.,]+\s*[$€£%]", number):
        return f"Write CAST(regexp_replace(x, '[^0-9.-]') AS {name})."
    return None
