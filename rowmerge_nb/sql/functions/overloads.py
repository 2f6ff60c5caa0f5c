"""The functions that expressions may call, as data: Trino's signature, the result type, and the SQL that means the same.

A row of `rowmerge_nb.sql.functions` reads ``name(argument types) -> result type | Spark SQL | DuckDB SQL``. The last column is
missing if the flow that computes on pages refuses the signature.

In a signature one capital letter stands for any type, ``varchar(x)`` and ``decimal(p,s)`` for text and decimals of any size,
``function(T,R)`` for a lambda from T to R, ``T...`` for one or more; what Trino asks of type variables follows the parenthesis.
``! sentence`` in place of ``| Spark SQL`` refuses a signature that Trino has. A row that begins with ``~`` is one that
Trino does not list: it is taken for the very types that a listed one takes, or for arguments that none takes.

In a template ``{0}`` is the first argument, ``{*}`` all of them, ``{type}`` the result's Spark type, ``{int:0}`` the argument as
an INT (cut to its range), ``{divisor:0}`` as what is divided by (NULL for zero under TRY, where Spark would fail), ``{0 names}`` and ``{0 body}`` the parts of a lambda, ``{fail:CODE:message}`` Trino's error, in whose
message ``$0`` is the argument's text. In aggregates ``{distinct}`` and ``{rows}`` mark where DISTINCT, FILTER and OVER go.

A template of DuckDB SQL has the marks ``{0}``, ``{*}``, ``{type}`` with DuckDB's type, and ``{fail:CODE:message}``. It is ``{pattern}`` if
the SQL depends on the regular expression that the call has. A ``|`` between spaces separates columns: SQL that has it is in a fragment.

What is not in the table is refused: a name that Spark happens to know may mean something else there.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.functions.all_functions import AGGREGATES, DUCKDB_FRAGMENTS, FRAGMENTS, SCALARS, SIGNATURES, WINDOWS

if TYPE_CHECKING:
    from collections.abc import Mapping

_IN_CAPITALS: Final = frozenset(
    [
        *("map", "map_concat", "map_filter", "map_zip_with", "transform_keys", "transform_values"),
        *("flatten", "reduce", "reduce_agg", "transform", "zip", "zip_with"),
    ]
)
"""The functions whose type variables Trino's errors write in capitals."""
_VOLATILE: Final = frozenset({"random", "rand", "uuid", "shuffle"})


@dataclass(frozen=True)
class Overload:
    """One signature of a function.

    Args:
        name: Trino's name.
        parameters: type patterns as written in the table.
        result: the pattern of the result type.
        spark: the Spark SQL template; empty if this engine refuses the signature.
        variadic: the last parameter may repeat.
        constraints: what Trino asks of the type variables, as its errors show it.
        refusal: why the signature is refused; empty if it is not.
        special: a special case of a signature that follows; Trino does not list it.
        duckdb: the DuckDB SQL template; empty if pages cannot compute the signature.
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
        """Whether it always has the same value for the same arguments."""
        return self.name not in _VOLATILE

    @property
    def reflected(self) -> bool:
        """Whether Spark calls Java for it, and so takes it for one that has another value each time."""
        return "reflect(" in self.spark

    @property
    def opaque(self) -> bool:
        """Whether Spark takes it for one that has another value each time, rightly or not."""
        return self.reflected or not self.deterministic

    def __str__(self) -> str:
        """Write the signature as it stands in the table."""
        return f"{self.name}({', '.join(self.parameters)}) {self.constraints}".rstrip()

    @property
    def shown(self) -> str:
        """The signature as Trino's errors list it: type variables are in lower case, but for some functions."""
        constraints = self.constraints if self._in_capitals else ", ".join(sorted(self.constraints.split(", ")))
        return f"{self.name}({self.as_shown(', '.join(self.parameters))}) {constraints}".rstrip()

    def as_shown(self, types: str) -> str:
        """Return types of the signature as Trino lists them."""
        if not self._in_capitals:
            types = re.sub(r"\b[A-Z]\b", lambda variable: variable[0].lower(), types)
        return re.sub(r"\b(time|timestamp)\(6\)", r"\1(p)", types)

    @property
    def _in_capitals(self) -> bool:
        return self.name in _IN_CAPITALS or ", ".join(self.parameters).startswith("map(K,V), K")


@functools.cache
def _table(text: str) -> Mapping[str, tuple[Overload, ...]]:
    found: dict[str, list[Overload]] = {}
    for line in filter(None, text.splitlines()):
        overload = _row(line)
        found.setdefault(overload.name, []).append(overload)
    return {name: tuple(entries) for name, entries in found.items()}


def _row(line: str) -> Overload:
    match = re.fullmatch(r"(~?)(\w+)\((.*?)\)( [A-Z]\S*(?:, [A-Z]\S*)*)? -> (.*?) ([|!]) (.*)", line)
    assert match is not None, line
    special, name, arguments, constraints, result, mark, rest = match.groups()
    parameters = tuple(parts(arguments))
    variadic = bool(parameters) and parameters[-1].endswith("...")
    types = tuple(p.removesuffix("...") for p in parameters)
    refused = mark == "!"
    wanted = (constraints or "").strip()
    if refused:
        return Overload(name, types, result, "", variadic, wanted, rest.strip(), bool(special))
    spark, _, duckdb = rest.strip().partition(" | ")
    spark, duckdb = _expanded(spark, FRAGMENTS), _expanded(duckdb, DUCKDB_FRAGMENTS)
    return Overload(name, types, result, spark, variadic, wanted, special=bool(special), duckdb=duckdb)


def _expanded(template: str, fragments: Mapping[str, str]) -> str:
    """Put the shared parts in place of their names; parts hold parts."""
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
    """Return the signatures that a table's text has, in its order.

    >>> [str(row) for row in rows_of("pi() -> double | pi()")]
    ['pi()']
    """
    return tuple(entry for entries in _table(text).values() for entry in entries)


def overloads(name: str) -> tuple[Overload, ...]:
    """Return the signatures of a function of whatever kind; none if there is no such function.

    >>> [str(overload) for overload in overloads("starts_with")]
    ['starts_with(varchar(x), varchar(y))']
    """
    return tuple(entry for table in (SCALARS, AGGREGATES, WINDOWS) for entry in _table(table).get(name, ()))


def is_aggregate(name: str) -> bool:
    """Return whether it is an aggregate function.

    >>> is_aggregate("sum"), is_aggregate("abs")
    (True, False)
    """
    return name in _table(AGGREGATES)


def is_window(name: str) -> bool:
    """Return whether it is a function that only makes sense with OVER.

    >>> is_window("row_number")
    True
    """
    return name in _table(WINDOWS)


def known() -> tuple[str, ...]:
    """Return the names of all functions that this engine has.

    >>> "upper" in known()
    True
    """
    tables = (_table(text) for text in (SCALARS, AGGREGATES, WINDOWS))
    return tuple(name for table in tables for name, entries in table.items() if not all(entry.refusal for entry in entries))


def listed() -> list[tuple[str, Overload]]:
    """Return all signatures that are not refused, each with the kind of its function."""
    tables = (("scalar", SCALARS), ("aggregate", AGGREGATES), ("window", WINDOWS))
    found = ((kind, entry) for kind, table in tables for entries in _table(table).values() for entry in entries)
    return [(kind, entry) for kind, entry in found if not (entry.refusal or entry.special)]


def signatures(name: str) -> str:
    """List the signatures of a function as Trino does in its errors; there are none of what Trino does not know.

    >>> signatures("to_unixtime")
    'to_unixtime(timestamp(p) with time zone)'
    """
    if name in SIGNATURES:
        return ", ".join(f"{name}({listed}" + ("" if re.search(r"\) \S+$", listed) else ")") for listed in SIGNATURES[name])
    return ", ".join(sorted(overload.shown for overload in overloads(name) if not overload.special))
