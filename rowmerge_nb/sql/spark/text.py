"""Helpers of printers."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from rowmerge_nb.sql.tree.depth import too_deep

if TYPE_CHECKING:
    from collections.abc import Callable

_LONG = 80
"""Texts up to this length are repeated: Spark detects equal expressions, and the text stays
readable.
"""
_LONGEST = 1_000_000
_SIMPLE = re.compile(r"`(?:[^`]|``)+`|[\w.]+|\(- [\w.]+\)")
"""Columns, parameters and constants; some Spark functions require visible constants."""


def once(write: Callable[..., str], *texts: str) -> str:
    """Write Spark SQL with long, repeated arguments bound to lambda parameters."""
    sql = write(*texts)
    if not any(len(text) > _LONG and sql.count(text) > 1 for text in texts):
        return sql
    if any("(SELECT " in text for text in texts):
        # Spark allows no subquery within a lambda function; repeated at every level, the text would
        # grow exponentially.
        if len(sql) > _LONGEST:
            raise too_deep()
        return sql
    # Symbols never begin with $, so parameters hide no column; they must not hide those of an outer
    # call either.
    free = (f"`${index}`" for index in count() if f"`${index}`" not in sql)
    short_texts = [text if _SIMPLE.fullmatch(text) else next(free) for text in texts]
    body = write(*short_texts)
    for name, text in reversed(list(zip(short_texts, texts, strict=True))):
        if name != text:
            body = f"transform(array({text}), {name} -> {body})[0]"
    return body


def groups(text: str, regex: str, count: int, write: Callable[[list[str]], str]) -> str:
    """Write Spark SQL over the groups of a regular expression, which is matched once."""
    marks = "\\u001F".join(f"${number}" for number in range(1, count + 1))
    parts = f"split(regexp_replace({text}, {regex}, '{marks}'), '\\u001F', {count})"
    if "(SELECT " in text:
        return write([f"{parts}[{index}]" for index in range(count)])
    return (
        f"transform(array({parts}), `$g` ->"
        f" {write([f'`$g`[{index}]' for index in range(count)])})[0]"
    )


def fail(code: str, *message: str) -> str:
    """Write Spark SQL that raises an error with Trino's code and a message of SQL parts."""
    mark = f"[[{code}]] "
    if message and message[0].startswith("'"):
        first = f"'{mark}{message[0][1:]}"
        return (
            f"raise_error({first})"
            if len(message) == 1
            else f"raise_error(concat({first}, {', '.join(message[1:])}))"
        )
    return f"raise_error(concat('{mark}', {', '.join(message)}))"


def null_or_fail(safe: bool, code: str, *message: str) -> str:
    return "NULL" if safe else fail(code, *message)
