"""The functions that expressions may call, as data: Trino's signature, the result type, and the Spark SQL that means the same.

A row of `rowmerge_nb.sql.functions` reads ``name(argument types) -> result type | Spark SQL``.

In a signature one capital letter stands for any type, ``varchar(x)`` and ``decimal(p,s)`` for text and decimals of any size,
``function(T,R)`` for a lambda from T to R, ``T...`` for one or more; what Trino asks of type variables follows the parenthesis.
``! sentence`` in place of ``| Spark SQL`` refuses a signature that Trino has. A row that begins with ``~`` is a special case of
one that follows.

In a template ``{0}`` is the first argument, ``{*}`` all of them, ``{type}`` the result's Spark type, ``{int:0}`` the argument as
an INT (cut to its range), ``{0 names}`` and ``{0 body}`` the parts of a lambda, ``{fail:CODE:message}`` Trino's error, in whose
message ``$0`` is the argument's text. In aggregates ``{distinct}`` and ``{rows}`` mark where DISTINCT, FILTER and OVER go.

What is not in the table is refused: a name that Spark happens to know may mean something else there.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import UNKNOWN, VARCHAR, Type, decimal_of, parse_type
from rowmerge_nb.sql.functions.tables import AGGREGATES, FRAGMENTS, SCALARS, WINDOWS
from rowmerge_nb.sql.typed.types import as_decimal, can_coerce, common_type, instant, is_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Overload",
    "Resolved",
    "is_aggregate",
    "is_window",
    "known",
    "lambda_parameters",
    "overloads",
    "resolve",
    "rows_of",
    "signatures",
]

_VARIABLE: Final = re.compile(r"[A-Z]\d?")
_LITERAL: Final = re.compile(r"(varchar|char|decimal)\([a-z](?:,[a-z])?\)")
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
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    spark: str
    variadic: bool
    constraints: str = ""
    refusal: str = ""
    special: bool = False

    @property
    def deterministic(self) -> bool:
        """Does it give the same value for the same arguments, always?"""
        return self.name not in _VOLATILE

    def __str__(self) -> str:
        """Write the signature as errors list it."""
        return f"{self.name}({', '.join(self.parameters)}) {self.constraints}".rstrip()


@dataclass(frozen=True)
class Resolved:
    """An overload that fits, with the types that the arguments are coerced to and the type of the result."""

    overload: Overload
    arguments: tuple[Type, ...]
    result: Type


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
    parameters = tuple(_split(arguments))
    variadic = bool(parameters) and parameters[-1].endswith("...")
    types = tuple(p.removesuffix("...") for p in parameters)
    refused = mark == "!"
    spark = "" if refused else _expanded(rest.strip())
    wanted = (constraints or "").strip()
    return Overload(name, types, result, spark, variadic, wanted, rest.strip() if refused else "", bool(special))


def _expanded(template: str) -> str:
    """Put the shared parts in place of their names; parts hold parts."""
    for _ in range(3):
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


def rows_of(text: str) -> tuple[Overload, ...]:
    """Give the signatures that a table's text has, in its order.

    >>> [str(row) for row in rows_of("pi() -> double | pi()")]
    ['pi()']
    """
    return tuple(entry for entries in _table(text).values() for entry in entries)


def overloads(name: str) -> tuple[Overload, ...]:
    """Give the signatures of a function of whatever kind; none if there is no such function.

    >>> [str(overload) for overload in overloads("starts_with")]
    ['starts_with(varchar(x), varchar(y))']
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


def known() -> tuple[str, ...]:
    """Give the names of all functions.

    >>> "upper" in known()
    True
    """
    return (*_table(SCALARS), *_table(AGGREGATES), *_table(WINDOWS))


def signatures(name: str) -> str:
    """List the signatures of a function as Trino does in its errors."""
    return ", ".join(sorted(str(overload) for overload in overloads(name) if not overload.special))


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


def lambda_parameters(name: str, arguments: Sequence[Type], index: int) -> Sequence[Type] | None:
    """Give the types of a lambda's parameters, which the other arguments decide.

    Args:
        name: the function's name.
        arguments: the types of all arguments; lambdas that are not analyzed yet are ``Type("function")``.
        index: which argument the lambda is.

    Returns:
        None if no signature has a lambda there.

    >>> from rowmerge_nb.spi.types import INTEGER, array_of
    >>> [str(kind) for kind in lambda_parameters("transform", [array_of(INTEGER), Type("function")], 1)]
    ['integer']
    """
    for overload in overloads(name):
        variables: dict[str, Type] = {}
        pairs = list(zip(overload.parameters, arguments, strict=False))
        base, inner = _open(overload.parameters[index]) if index < len(overload.parameters) else ("", [])
        fits = base == "function" and len(pairs) == len(arguments) == len(overload.parameters)
        if fits and all(_match(p, a, variables) for p, a in pairs):
            return [_substitute(part, variables, UNKNOWN) for part in inner[:-1]]
    return None


def _match(pattern: str, kind: Type, variables: dict[str, Type]) -> bool:
    """Bind the pattern's variables so that the type coerces to it."""
    if _VARIABLE.fullmatch(pattern):
        common = common_type(variables[pattern], kind) if pattern in variables else kind
        if common is None or kind.base == "function":
            return False
        variables[pattern] = common
        return True
    base, inner = _open(pattern)
    if base == "function":
        return kind.base == "function" and _match_lambda(inner[-1], kind, variables)
    if _LITERAL.fullmatch(pattern):
        if base == "decimal" and is_integer(kind):
            kind = as_decimal(kind)
        variables[pattern] = kind if kind != UNKNOWN else parse_type(base)
        return kind.base == base or kind == UNKNOWN
    if pattern == "any":
        return kind.base != "function"
    if base in {"array", "map", "row"}:
        if kind == UNKNOWN:
            return all(_match(part, UNKNOWN, variables) for part in inner)
        matches = kind.base == base and len(inner) == len(kind.parameters)
        return matches and all(_match(p, k, variables) for p, k in zip(inner, kind.parameters, strict=True))
    target = parse_type(pattern)
    return can_coerce(kind, target) or (kind.base == target.base and _is_lenient(target))


_PASSING_ON: Final = frozenset(
    [
        *("element_at", "slice", "reverse", "filter", "transform", "reduce", "flatten", "repeat", "zip_with", "map_values"),
        *("array_agg", "any_value", "arbitrary", "min", "max", "min_by", "max_by"),
        *("lag", "lead", "first_value", "last_value", "nth_value"),
    ]
)
"""Functions that give the values which they take, with the zones that they carry; others take instants alone."""


def _match_lambda(result: str, kind: Type, variables: dict[str, Type]) -> bool:
    """What a lambda gives must fit a variable that the other arguments have bound; it binds one that they have not."""
    if not kind.parameters:
        return True
    if result in variables:
        return can_coerce(kind.parameters[-1], variables[result])
    return _match(result, kind.parameters[-1], variables)


def _is_lenient(target: Type) -> bool:
    """Does every precision or length of the type serve? A length that is written out for varchar is meant."""
    return target.base in {"timestamp", "timestamp with time zone", "time"} or (
        target.base == "varchar" and not target.parameters
    )


def _open(pattern: str) -> tuple[str, list[str]]:
    if "(" not in pattern:
        return pattern, []
    base, rest = pattern.split("(", 1)
    return base, _split(rest.rsplit(")", 1)[0])


def _substitute(pattern: str, variables: Mapping[str, Type], kind: Type) -> Type:
    if _VARIABLE.fullmatch(pattern):
        return variables.get(pattern, UNKNOWN)
    base, inner = _open(pattern)
    if base == "function":
        return Type("function", (_substitute(inner[-1], variables, UNKNOWN),))
    if _LITERAL.fullmatch(pattern):
        return decimal_of(1) if base == "decimal" and kind == UNKNOWN else variables[pattern]
    if pattern == "any":
        return kind
    if base in {"array", "map", "row"}:
        inner_kinds = kind.parameters if kind.base == base else (UNKNOWN,) * len(inner)
        parts = tuple(_substitute(p, variables, k) for p, k in zip(inner, inner_kinds, strict=True))
        return Type(base, parts, (None,) * len(parts) if base == "row" else ())
    target = parse_type(pattern)
    return instant(kind) if kind.base == target.base and _is_lenient(target) else target


def _result(pattern: str, variables: Mapping[str, Type], arguments: Sequence[Type]) -> Type:
    if pattern in _RESULTS:
        return _RESULTS[pattern](arguments)
    if _VARIABLE.fullmatch(pattern) or _LITERAL.fullmatch(pattern):
        return variables.get(pattern, UNKNOWN)
    base, inner = _open(pattern)
    if base in {"array", "map", "row"}:
        parts = tuple(_result(part, variables, arguments) for part in inner)
        return Type(base, parts, (None,) * len(parts) if base == "row" else ())
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


_LONGEST: Final = 2**31 - 1


def _text_of(length: Callable[..., int]) -> Callable[[Sequence[Type]], Type]:
    """Make the rule for text whose longest length follows from the arguments' lengths; unbounded if one of them is."""

    def result(arguments: Sequence[Type]) -> Type:
        texts = [kind for kind in arguments if kind.base == "varchar"]
        if not all(kind.parameters for kind in texts):
            return VARCHAR
        bound = min(_LONGEST, length(*(kind.parameters[0] for kind in texts)))
        return VARCHAR if bound == _LONGEST else Type("varchar", (bound,))

    return result


_RESULTS: Final[dict[str, Callable[[Sequence[Type]], Type]]] = {
    "first": lambda arguments: arguments[0],
    "last": lambda arguments: arguments[-1],
    "rounded": _rounded,
    "rounded_to": _rounded_to,
    "truncated": lambda arguments: decimal_of(max(1, arguments[0].parameters[0] - arguments[0].parameters[1]), 0),
    "remainder": _remainder,
    "sum": lambda arguments: decimal_of(38, arguments[0].parameters[1]),
    "as long": lambda arguments: Type("varchar", arguments[0].parameters),
    "replaced": _text_of(lambda text, _search, by: text + by * (text + 1)),
    "regexp replaced": _text_of(lambda text, _pattern, by: text + max(text * by // 2, by) * (text + 1)),
    "url encoded": _text_of(lambda text: text * 12),
}
"""Rules for result types that are no patterns."""
