"""Types as they are written in statements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import AnalysisError, Hint
from rowmerge_nb.sql.functions.foreign_names import type_hint
from rowmerge_nb.sql.tree.formatted import formatted_type

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.tree import syntax as s

ABSENT_TYPES: Final = frozenset(
    [
        "ipaddress",
        "hyperloglog",
        "p4hyperloglog",
        "qdigest",
        "tdigest",
        "setdigest",
        "geometry",
        "sphericalgeography",
        "bingtile",
        "kdbtree",
        "color",
        "variant",
    ]
)
"""Trino's types that this engine lacks."""


def read_type(name: s.TypeName) -> Type:
    # Imported here: types load Arrow, which completion does not need.
    from rowmerge_nb.spi.types import TypeRangeError, parse_type

    # Names of fields are in lower case unless quoted; those of types may be quoted, too.
    text = re.sub(
        r"""("(?:[^"]|"")*")|--[^\r\n]*|/\*(?s:.*?)\*/|[^"/-]+|.""",
        lambda part: (
            (part[1] or " ") if part[0][:2] in {"--", "/*"} or part[1] else part[0].lower()
        ),
        name.text,
    ).strip()
    text = re.sub(r'^"(\w+)"', lambda base: base[1].lower(), text)
    try:
        return parse_type(
            re.sub(r"(?is)^(time|timestamp)(.*?)\s+without\s+time\s+zone$", r"\1\2", text)
        )
    except ValueError as error:
        code, message = "TYPE_MISMATCH", f"Unknown type: {formatted_type(name.text)}"
        absent = next(
            (word for word in re.findall(r"\w+", name.text.lower()) if word in ABSENT_TYPES), None
        )
        if re.search(r"\btime\s*(\(\s*\d+\s*\))?\s*with\s+time\s+zone\b", name.text.lower()):
            absent = "time with time zone"
        if absent is not None:
            code, message = "NOT_SUPPORTED", f"The type {absent} is not supported by this engine"
        hint: Hint | None = type_hint(name.text)
        if isinstance(error, TypeRangeError) and error.base == "decimal":
            code, message = "INVALID_FUNCTION_ARGUMENT", str(error)
        elif isinstance(error, TypeRangeError):
            hint = f"{error}."
        raise AnalysisError(message, code=code, hint=hint).at(name.span) from None
