"""The signatures of functions and their equivalents, as data.

A row reads ``name(argument types) -> result type | Spark SQL | DuckDB SQL``; without the last
column, pages cannot compute it.

In a signature, a capital letter is any type, ``varchar(x)`` and ``decimal(p,s)`` have any size,
``function(T,R)`` is a lambda, ``T...`` repeats; constraints follow the parenthesis. ``! sentence``
refuses a signature. ``~`` marks a row that Trino does not list: for exactly the types of a listed
one, or for arguments that none accepts. A line ``rand = random`` names another function with the
same rows, which precede it.

A template of Spark SQL has these marks:

- ``{0}`` an argument, ``{*}`` all, ``{type}`` the result's Spark type
- ``{int:0}`` clamped to INT, ``{divisor:0}`` a divisor (NULL for zero under TRY)
- ``{0 names}`` and ``{0 body}`` the parts of a lambda
- ``{fail:CODE:message}`` Trino's error; ``$0`` is the argument's text
- ``{distinct}`` and ``{rows}`` DISTINCT, FILTER and OVER

The name of a special form, such as OVERLAY, begins with ``$``: it is neither listed nor proposed.

A template of DuckDB SQL has ``{0}``, ``{*}``, ``{type}`` and ``{fail:CODE:message}``, or is
``{pattern}`` for regular expressions. SQL with ``|`` between spaces must be in a fragment.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.functions.all_functions import (
    AGGREGATES,
    DUCKDB_FRAGMENTS,
    FRAGMENTS,
    SCALARS,
    SIGNATURES,
    WINDOWS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_IN_ORDER: Final = frozenset(
    [
        *("map", "map_concat", "map_filter", "map_zip_with", "transform_keys", "transform_values"),
        *("flatten", "reduce", "reduce_agg", "transform", "zip", "zip_with"),
    ]
)
"""Functions whose type variables Trino's errors list in the order of their declaration."""
_VOLATILE: Final = frozenset({"random", "rand", "uuid", "shuffle"})


@dataclass(frozen=True)
class Overload:
    """One signature of a function.

    Args:
        spark: the Spark SQL template, unless refused.
        constraints: Trino's constraints, as in its errors.
        special: Trino does not list it; it precedes the general signature.
        duckdb: the DuckDB SQL template, if pages can compute it.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    spark: str
    variadic: bool
    constraints: str = ""
    refusal: str = ""
    special: bool = False
    duckdb: str = ""

    @property
    def deterministic(self) -> bool:
        """Whether equal arguments imply equal results."""
        return self.name not in _VOLATILE

    @property
    def reflected(self) -> bool:
        return "reflect(" in self.spark

    @property
    def opaque(self) -> bool:
        return self.reflected or not self.deterministic

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters)}) {self.constraints}".rstrip()

    @property
    def shown(self) -> str:
        """The signature as in Trino's errors."""
        constraints = (
            self.constraints
            if self.name in _IN_ORDER or ", ".join(self.parameters).startswith("map(K,V), K")
            else ", ".join(sorted(self.constraints.split(", ")))
        )
        return f"{self.name}({self.as_shown(', '.join(self.parameters))}) {constraints}".rstrip()

    def as_shown(self, types: str) -> str:
        return re.sub(r"\b(time|timestamp)\(6\)", r"\1(p)", types)


@functools.cache
def _table(text: str) -> Mapping[str, tuple[Overload, ...]]:
    by_name: dict[str, list[Overload]] = {}
    for line in filter(None, text.splitlines()):
        if alias := re.fullmatch(r"(\w+) = (\w+)", line):
            name, function = alias.groups()
            by_name[name] = [replace(overload, name=name) for overload in by_name[function]]
            continue
        overload = _row(line)
        by_name.setdefault(overload.name, []).append(overload)
    return {name: tuple(entries) for name, entries in by_name.items()}


def _row(line: str) -> Overload:
    match = re.fullmatch(
        r"(~?)([$\w]+)\((.*?)\)( [A-Z]\S*(?:, [A-Z]\S*)*)? -> (.*?) ([|!]) (.*)", line
    )
    assert match is not None, line
    special, name, arguments, constraints, result, mark, rest = match.groups()
    parameters = tuple(parts(arguments))
    variadic = bool(parameters) and parameters[-1].endswith("...")
    types = tuple(p.removesuffix("...") for p in parameters)
    is_refused = mark == "!"
    constraint_text = (constraints or "").strip()
    if is_refused:
        return Overload(
            name, types, result, "", variadic, constraint_text, rest.strip(), bool(special)
        )
    spark, _, duckdb = rest.strip().partition(" | ")
    spark, duckdb = _expanded(spark, FRAGMENTS), _expanded(duckdb, DUCKDB_FRAGMENTS)
    return Overload(
        name, types, result, spark, variadic, constraint_text, special=bool(special), duckdb=duckdb
    )


def _expanded(template: str, fragments: Mapping[str, str]) -> str:
    for _ in range(3):
        for name, part in fragments.items():
            template = template.replace(f"{{{name}}}", part)
    return template


def parts(text: str) -> list[str]:
    """Split a list of types at its commas.

    >>> parts("array(T), function(T,R)")
    ['array(T)', 'function(T,R)']
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def rows_of(text: str) -> tuple[Overload, ...]:
    r"""Parse the signatures of a table.

    >>> [str(row) for row in rows_of("rand() -> double | rand()\nrandom = rand")]
    ['rand()', 'random()']
    """
    return tuple(entry for entries in _table(text).values() for entry in entries)


def overloads(name: str) -> tuple[Overload, ...]:
    """Return the signatures of a function.

    >>> [str(overload) for overload in overloads("starts_with")]
    ['starts_with(varchar(x), varchar(y))']
    """
    return tuple(
        entry for table in (SCALARS, AGGREGATES, WINDOWS) for entry in _table(table).get(name, ())
    )


def is_aggregate(name: str) -> bool:
    """Return whether it is an aggregate.

    >>> is_aggregate("sum"), is_aggregate("abs")
    (True, False)
    """
    return name in _table(AGGREGATES)


def is_window(name: str) -> bool:
    """Return whether it requires OVER.

    >>> is_window("row_number")
    True
    """
    return name in _table(WINDOWS)


def known() -> tuple[str, ...]:
    """Return the names of all supported functions.

    >>> "upper" in known()
    True
    """
    tables = (_table(text) for text in (SCALARS, AGGREGATES, WINDOWS))
    return tuple(
        name
        for table in tables
        for name, entries in table.items()
        if not all(entry.refusal for entry in entries) and not name.startswith("$")
    )


def listed() -> list[tuple[str, Overload]]:
    """Return all supported signatures with their functions' kinds."""
    tables = (("scalar", SCALARS), ("aggregate", AGGREGATES), ("window", WINDOWS))
    entries = (
        (function_kind, entry)
        for function_kind, table in tables
        for entries in _table(table).values()
        for entry in entries
    )
    return [
        (function_kind, entry)
        for function_kind, entry in entries
        if not (entry.refusal or entry.special or entry.name.startswith("$"))
    ]


def signatures(name: str) -> str:
    """List a function's signatures as Trino's errors do.

    >>> signatures("to_unixtime")
    'to_unixtime(timestamp(p) with time zone)'
    """
    if name in SIGNATURES:
        return ", ".join(
            f"{name}({listed}" + ("" if re.search(r"\) \S+$", listed) else ")")
            for listed in SIGNATURES[name]
        )
    return ", ".join(sorted(overload.shown for overload in overloads(name) if not overload.special))
