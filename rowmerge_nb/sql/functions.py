"""The functions that expressions may call, as data: Trino's signature, the result type, and the Spark SQL that means the same.

A line reads ``name(argument types) -> result type | Spark SQL``; ``{0}`` is the first argument, ``{*}`` all of them. In a
signature ``T``, ``K``, ``V`` and ``E`` stand for any type, ``decimal(p,s)`` for any decimal, ``T...`` for one or more. What
is not in here is refused: a name that Spark happens to know may mean something else there.
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import UNKNOWN, Type, decimal_of, parse_type
from rowmerge_nb.sql.function_tables import AGGREGATES, FRAGMENTS, SCALARS, WINDOWS
from rowmerge_nb.sql.types import can_coerce, common_type, instant, is_numeric

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Overload", "Resolved", "is_aggregate", "is_window", "nearest", "overloads", "resolve", "signatures"]

_VARIABLES: Final = frozenset("TKVEUR")
_VOLATILE: Final = frozenset({"random", "rand", "uuid", "shuffle", "now"})


@dataclass(frozen=True)
class Overload:
    """One signature of a function.

    Args:
        name: Trino's name.
        parameters: type patterns as written in the table.
        result: the pattern of the result type.
        spark: the Spark SQL template.
        variadic: the last parameter may repeat.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    spark: str
    variadic: bool

    @property
    def deterministic(self) -> bool:
        """Does it give the same value for the same arguments, always?"""
        return self.name not in _VOLATILE

    def __str__(self) -> str:
        """Write the signature as errors list it."""
        return f"{self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True)
class Resolved:
    """An overload that fits, with the types that the arguments are coerced to and the type of the result."""

    overload: Overload
    arguments: tuple[Type, ...]
    result: Type


@functools.cache
def _table(text: str) -> Mapping[str, tuple[Overload, ...]]:
    found: dict[str, list[Overload]] = {}
    for line in text.strip().splitlines():
        if not line.strip():
            continue
        signature, template = line.split(" | ", 1)
        match = re.fullmatch(r"\s*(\w+)\((.*)\) -> (.*?)\s*", signature)
        assert match is not None, line
        name, arguments, result = match.groups()
        parameters = tuple(_split(arguments))
        variadic = bool(parameters) and parameters[-1].endswith("...")
        types = tuple(p.removesuffix("...") for p in parameters)
        overload = Overload(name, types, result, _expanded(template.strip()), variadic)
        found.setdefault(name, []).append(overload)
    return {name: tuple(entries) for name, entries in found.items()}


def _expanded(template: str) -> str:
    """Put the shared parts in place of their names; parts hold parts."""
    for name, part in FRAGMENTS.items():
        template = template.replace(f"{{{name}}}", part)
    return template


def _split(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def overloads(name: str) -> tuple[Overload, ...]:
    """Give the signatures of a function of whatever kind; none if there is no such function.

    >>> [str(overload) for overload in overloads("starts_with")]
    ['starts_with(varchar, varchar)']
    """
    return tuple(entry for table in (SCALARS, AGGREGATES, WINDOWS) for entry in _table(table).get(name, ()))


def is_aggregate(name: str) -> bool:
    """Is it an aggregate function?

    >>> is_aggregate("sum"), is_aggregate("abs")
    (True, False)
    """
    return name in _table(AGGREGATES)


def is_window(name: str) -> bool:
    """Is it a function that only makes sense with OVER?

    >>> is_window("row_number")
    True
    """
    return name in _table(WINDOWS)


def nearest(name: str, extra: Sequence[str] = ()) -> str | None:
    """Give the known name most like this one, or None.

    >>> nearest("uper")
    'upper'
    """
    known = [*_table(SCALARS), *_table(AGGREGATES), *_table(WINDOWS), *extra]
    found = difflib.get_close_matches(name, known, n=1)
    return found[0] if found else None


def signatures(name: str) -> str:
    """List the signatures of a function as Trino does in its errors."""
    return ", ".join(sorted(str(overload) for overload in overloads(name)))


def resolve(name: str, arguments: Sequence[Type]) -> Resolved | None:
    """Choose the signature that fits: one without coercions first, else the first one that coercions reach.

    Args:
        name: the function's name in lower case.
        arguments: the arguments' types; a lambda's is ``Type("function")``.

    >>> from rowmerge_nb.spi.types import INTEGER
    >>> str(resolve("abs", [INTEGER]).result), resolve("upper", [INTEGER])
    ('integer', None)
    """
    fitting = []
    for overload in overloads(name):
        bound = _bind(overload, arguments)
        if bound is not None:
            if bound.arguments == tuple(arguments):
                return bound
            fitting.append(bound)
    return fitting[0] if fitting else None


def _bind(overload: Overload, arguments: Sequence[Type]) -> Resolved | None:
    patterns = list(overload.parameters)
    if overload.variadic and len(arguments) >= len(patterns):
        patterns += [patterns[-1]] * (len(arguments) - len(patterns))
    if len(patterns) != len(arguments):
        return None
    variables: dict[str, Type] = {}
    if overload.name not in _PASSING_ON:
        arguments = [instant(argument) for argument in arguments]
    if not all(_match(p, a, variables) for p, a in zip(patterns, arguments, strict=True)):
        return None
    targets = tuple(_substitute(p, variables, a) for p, a in zip(patterns, arguments, strict=True))
    if not all(can_coerce(a, t) for a, t in zip(arguments, targets, strict=True)):
        return None
    return Resolved(overload, targets, _result(overload.result, variables, targets))


def _match(pattern: str, kind: Type, variables: dict[str, Type]) -> bool:
    """Bind the pattern's variables so that the type coerces to it."""
    if pattern in _VARIABLES:
        common = common_type(variables[pattern], kind) if pattern in variables else kind
        if common is None:
            return False
        variables[pattern] = common
        return True
    base, inner = _open(pattern)
    if pattern == "decimal(p,s)":
        return kind.base == "decimal" or kind == UNKNOWN
    if pattern == "lambda":
        return kind.base == "function"
    if pattern == "any":
        return kind.base != "function"
    if pattern in {"varchar(x)", "char(x)"}:
        return kind.base == base or kind == UNKNOWN
    if base in {"array", "map", "row"}:
        if kind == UNKNOWN:
            return all(_match(part, UNKNOWN, variables) for part in inner)
        matches = kind.base == base and (base == "row" or len(inner) == len(kind.parameters))
        return matches and all(_match(p, k, variables) for p, k in zip(inner, kind.parameters, strict=False))
    target = parse_type(pattern)
    return can_coerce(kind, target) or (kind.base == target.base and kind.base in _LENIENT)


_PASSING_ON: Final = frozenset(
    [
        *("element_at", "slice", "reverse", "filter", "transform", "reduce", "flatten", "repeat", "zip_with", "map_values"),
        *("array_agg", "any_value", "arbitrary", "min", "max", "min_by", "max_by"),
        *("lag", "lead", "first_value", "last_value", "nth_value"),
    ]
)
"""Functions that give the values which they take, with the zones that they carry; others take instants alone."""

_LENIENT: Final = frozenset({"timestamp", "timestamp with time zone", "time", "varchar"})


def _open(pattern: str) -> tuple[str, list[str]]:
    if "(" not in pattern:
        return pattern, []
    base, rest = pattern.split("(", 1)
    return base, _split(rest.rsplit(")", 1)[0])


def _substitute(pattern: str, variables: Mapping[str, Type], kind: Type) -> Type:
    if pattern in _VARIABLES:
        return variables[pattern]
    base, inner = _open(pattern)
    if pattern in {"decimal(p,s)", "varchar(x)", "char(x)", "lambda", "any"}:
        return decimal_of(1) if pattern == "decimal(p,s)" and kind == UNKNOWN else kind
    if base == "row":
        return kind
    if base in {"array", "map"}:
        inner_kinds = kind.parameters if kind.base == base else (UNKNOWN,) * len(inner)
        return Type(base, tuple(_substitute(p, variables, k) for p, k in zip(inner, inner_kinds, strict=True)))
    target = parse_type(pattern)
    return instant(kind) if kind.base == target.base and kind.base in _LENIENT else target


def _result(pattern: str, variables: Mapping[str, Type], arguments: Sequence[Type]) -> Type:
    if pattern in _RESULTS:
        return _RESULTS[pattern](arguments)
    if pattern in _VARIABLES:
        return variables.get(pattern, UNKNOWN)
    base, inner = _open(pattern)
    if base in {"array", "map"}:
        return Type(base, tuple(_result(part, variables, arguments) for part in inner))
    return parse_type(pattern)


def _rounded(arguments: Sequence[Type]) -> Type:
    precision, scale = arguments[0].parameters
    return decimal_of(max(1, precision - scale + min(1, scale)), 0)


def _rounded_to(arguments: Sequence[Type]) -> Type:
    precision, scale = arguments[0].parameters
    return decimal_of(min(38, precision + 1), scale)


def _remainder(arguments: Sequence[Type]) -> Type:
    (p1, s1), (p2, s2) = arguments[0].parameters, arguments[1].parameters
    scale = max(s1, s2)
    return decimal_of(min(38, min(p1 - s1, p2 - s2) + scale), scale)


_RESULTS: Final[dict[str, Callable[[Sequence[Type]], Type]]] = {
    "first": lambda arguments: arguments[0],
    "last": lambda arguments: arguments[-1],
    "second": lambda arguments: arguments[1],
    "rounded": _rounded,
    "rounded_to": _rounded_to,
    "truncated": lambda arguments: decimal_of(max(1, arguments[0].parameters[0] - arguments[0].parameters[1]), 0),
    "remainder": _remainder,
    "sum": lambda arguments: decimal_of(38, arguments[0].parameters[1]),
    "element": lambda arguments: arguments[0].parameters[0],
    "lambda result": lambda arguments: next(
        (a.parameters[0] for a in arguments if a.base == "function" and a.parameters), UNKNOWN
    ),
    "array of lambda result": lambda arguments: Type(
        "array", (next((a.parameters[0] for a in arguments if a.base == "function" and a.parameters), UNKNOWN),)
    ),
    "map of lambda result": lambda arguments: Type("map", (arguments[0].parameters[0], arguments[-1].parameters[0])),
    "number": lambda arguments: arguments[0] if is_numeric(arguments[0]) else UNKNOWN,
}
