"""Resolution of function calls."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import UNKNOWN, VARCHAR, Type, decimal_of, parse_type
from rowmerge_nb.sql.functions.all_functions import LISTED, UNLISTED
from rowmerge_nb.sql.functions.overloads import Overload, listed, overloads, parts
from rowmerge_nb.sql.typed.type_rules import (
    as_decimal,
    can_coerce,
    common_type,
    instant,
    is_integer,
    is_orderable,
    is_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_VARIABLE: Final = re.compile(r"[A-Z]\d?")
_LITERAL: Final = re.compile(r"(varchar|char|decimal)\([a-z](?:,[a-z])?\)")


@dataclass(frozen=True)
class Resolved:
    """A matching overload with concrete types."""

    overload: Overload
    arguments: tuple[Type, ...]
    result: Type


def resolve(name: str, arguments: Sequence[Type]) -> Resolved | None:
    """Return the matching signature: an exact one, else the first that coercions reach.

    Lambdas have the type ``Type("function")``.

    >>> from rowmerge_nb.spi.types import INTEGER
    >>> str(resolve("abs", [INTEGER]).result), resolve("upper", [INTEGER])
    ('integer', None)
    """
    for overload in overloads(name):
        resolved = _bind(overload, arguments) if overload.special else None
        if resolved is not None and resolved.arguments == tuple(arguments):
            return resolved
    fitting = []
    general = [overload for overload in overloads(name) if not overload.special]
    for overload in general:
        resolved = _bind(overload, arguments)
        if resolved is not None:
            if resolved.arguments == tuple(arguments):
                return _special(name, resolved)
            fitting.append(resolved)
    if fitting:
        return _special(name, min(fitting, key=lambda match: _cut_texts(match, arguments)))
    # Arguments that no listed signature accepts.
    others = (_bind(overload, arguments) for overload in overloads(name) if overload.special)
    return next((resolved for resolved in others if resolved is not None), None)


def _cut_texts(resolved: Resolved, arguments: Sequence[Type]) -> int:
    return sum(
        (argument.base, target.base) == ("char", "varchar")
        for argument, target in zip(arguments, resolved.arguments, strict=True)
    )


def _special(name: str, general: Resolved) -> Resolved:
    for overload in overloads(name):
        resolved = _bind(overload, general.arguments) if overload.special else None
        if resolved is not None and resolved.arguments == general.arguments:
            return resolved
    return general


def candidates(name: str, arguments: Sequence[Type]) -> list[Resolved]:
    """Return the signatures with different results that match an untyped NULL.

    A signature is preferred to others that its arguments coerce to, char to varchar.

    >>> [str(found.result) for found in candidates("reverse", [UNKNOWN])], candidates("abs", [UNKNOWN])
    (['varchar(0)', 'char(0)', 'varbinary', 'array(unknown)'], [])
    """
    if UNKNOWN not in arguments:
        return []
    fitting = [
        match
        for match in (_bind(entry, arguments) for entry in overloads(name) if not entry.special)
        if match is not None
    ]
    preferred = [
        match for match in fitting if not any(_is_narrower(other, match) for other in fitting)
    ]
    several = len({VARCHAR if is_text(match.result) else match.result for match in preferred}) > 1
    if not several:
        return []
    exact = [
        match
        for match in fitting
        if all(a in {UNKNOWN, b} for a, b in zip(arguments, match.arguments, strict=True))
    ]
    return exact or preferred


def _is_narrower(first: Resolved, second: Resolved) -> bool:
    return (
        _bind(second.overload, first.arguments) is not None
        and _bind(first.overload, second.arguments) is None
    )


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
    if not all(_reaches(a, t) for a, t in zip(arguments, targets, strict=True)):
        return None
    if not all(
        is_orderable(variables.get(name, UNKNOWN)) for name in _ordered(overload.constraints)
    ):
        return None
    return Resolved(overload, targets, _result(overload.result, variables, targets))


def _reaches(source: Type, target: Type) -> bool:
    """Return whether a type coerces; a lambda by its result, except for an untyped NULL."""
    if source.base == "function" and source.parameters and target.parameters:
        source_result, target_result = source.parameters[-1], target.parameters[-1]
        return can_coerce(source_result, target_result) and (
            source_result != UNKNOWN or target_result == UNKNOWN
        )
    return can_coerce(source, target)


@functools.cache
def _ordered(constraints: str) -> tuple[str, ...]:
    return tuple(
        part.split(":")[0] for part in constraints.split(", ") if part.endswith(":orderable")
    )


def lambda_parameters(name: str, arguments: Sequence[Type], index: int) -> Sequence[Type] | None:
    """Return the types of a lambda's parameters, determined by the other arguments.

    >>> from rowmerge_nb.spi.types import INTEGER, array_of
    >>> [str(kind) for kind in lambda_parameters("transform", [array_of(INTEGER), Type("function")], 1)]
    ['integer']
    """
    for overload in overloads(name):
        variables: dict[str, Type] = {}
        pairs = list(zip(overload.parameters, arguments, strict=False))
        base, inner = (
            _open(overload.parameters[index]) if index < len(overload.parameters) else ("", [])
        )
        fits = base == "function" and len(pairs) == len(arguments) == len(overload.parameters)
        if fits and all(_match(p, a, variables) for p, a in pairs):
            return [_substitute(part, variables, UNKNOWN) for part in inner[:-1]]
    return None


def _match(pattern: str, sql_type: Type, variables: dict[str, Type]) -> bool:
    if _VARIABLE.fullmatch(pattern):
        common = common_type(variables[pattern], sql_type) if pattern in variables else sql_type
        if common is None or sql_type.base == "function":
            return False
        variables[pattern] = common
        return True
    base, inner = _open(pattern)
    if base == "function":
        return sql_type.base == "function" and _match_lambda(inner[-1], sql_type, variables)
    if _LITERAL.fullmatch(pattern):
        if base == "decimal" and is_integer(sql_type):
            sql_type = as_decimal(sql_type)
        if base == "varchar" and sql_type.base == "char":
            sql_type = Type(base, sql_type.parameters)
        # An untyped NULL is an empty text.
        nothing = decimal_of(1) if base == "decimal" else Type(base, (0,))
        variables[pattern] = sql_type if sql_type != UNKNOWN else nothing
        return sql_type.base == base or sql_type == UNKNOWN
    if pattern == "any":
        return sql_type.base != "function"
    if base in {"array", "map", "row"}:
        if sql_type == UNKNOWN:
            return all(_match(part, UNKNOWN, variables) for part in inner)
        matches = sql_type.base == base and len(inner) == len(sql_type.parameters)
        return matches and all(
            _match(p, k, variables) for p, k in zip(inner, sql_type.parameters, strict=True)
        )
    target = _named(pattern)
    return can_coerce(sql_type, target) or (sql_type.base == target.base and _is_lenient(target))


_PASSING_ON: Final = frozenset(
    [
        *(
            "element_at",
            "slice",
            "reverse",
            "filter",
            "transform",
            "reduce",
            "flatten",
            "repeat",
            "zip_with",
            "map_values",
        ),
        *("array_agg", "any_value", "arbitrary", "min", "max", "min_by", "max_by"),
        *("lag", "lead", "first_value", "last_value", "nth_value"),
    ]
)
"""Functions that return their arguments with their zones; others require instants."""


def _match_lambda(result: str, sql_type: Type, variables: dict[str, Type]) -> bool:
    if not sql_type.parameters:
        return True
    if result in variables:
        return can_coerce(sql_type.parameters[-1], variables[result])
    return _match(result, sql_type.parameters[-1], variables)


def _is_lenient(target: Type) -> bool:
    return target.base in {"timestamp", "timestamp with time zone", "time"} or (
        target.base == "varchar" and not target.parameters
    )


def _open(pattern: str) -> tuple[str, list[str]]:
    if "(" not in pattern:
        return pattern, []
    base, rest = pattern.split("(", 1)
    return base, parts(rest.rsplit(")", 1)[0])


def _substitute(pattern: str, variables: Mapping[str, Type], default: Type) -> Type:
    if _VARIABLE.fullmatch(pattern):
        return variables.get(pattern, UNKNOWN)
    base, inner = _open(pattern)
    if base == "function":
        return Type("function", (_substitute(inner[-1], variables, UNKNOWN),))
    if _LITERAL.fullmatch(pattern):
        return decimal_of(1) if base == "decimal" and default == UNKNOWN else variables[pattern]
    if pattern == "any":
        return default
    if base in {"array", "map", "row"}:
        inner_kinds = default.parameters if default.base == base else (UNKNOWN,) * len(inner)
        parts = tuple(_substitute(p, variables, k) for p, k in zip(inner, inner_kinds, strict=True))
        return Type(base, parts, (None,) * len(parts) if base == "row" else ())
    target = _named(pattern)
    return instant(default) if default.base == target.base and _is_lenient(target) else target


def _result(pattern: str, variables: Mapping[str, Type], arguments: Sequence[Type]) -> Type:
    if pattern in _RESULTS:
        return _RESULTS[pattern](arguments)
    if _VARIABLE.fullmatch(pattern) or _LITERAL.fullmatch(pattern):
        return variables.get(pattern, UNKNOWN)
    base, inner = _open(pattern)
    if base in {"array", "map", "row"}:
        parts = tuple(_result(part, variables, arguments) for part in inner)
        return Type(base, parts, (None,) * len(parts) if base == "row" else ())
    return _named(pattern)


@functools.cache
def _named(pattern: str) -> Type:
    """Return the type of a name; an unsupported one is only its name."""
    try:
        return parse_type(pattern)
    except ValueError:
        return Type(pattern)


def is_absent(sql_type: Type) -> bool:
    """Return whether the type contains one that only Trino has.

    >>> is_absent(Type("geometry")), is_absent(VARCHAR)
    (True, False)
    """
    try:
        parse_type(str(sql_type))
    except ValueError:
        return True
    return False


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
    def result(arguments: Sequence[Type]) -> Type:
        lengths = [
            sql_type.parameters[0] if sql_type.parameters else _LONGEST
            for sql_type in arguments
            if sql_type.base == "varchar"
        ]
        longest = min(_LONGEST, length(*lengths))
        return VARCHAR if longest == _LONGEST else Type("varchar", (longest,))

    return result


_RESULTS: Final[dict[str, Callable[[Sequence[Type]], Type]]] = {
    "first": lambda arguments: arguments[0],
    "last": lambda arguments: arguments[-1],
    "array of moments": lambda arguments: Type("array", (common_type(*arguments[:2]) or UNKNOWN,)),
    "rounded": _rounded,
    "rounded_to": _rounded_to,
    "truncated": lambda arguments: decimal_of(
        max(1, arguments[0].parameters[0] - arguments[0].parameters[1]), 0
    ),
    "remainder": _remainder,
    "sum": lambda arguments: decimal_of(38, arguments[0].parameters[1]),
    "as long": lambda arguments: Type("varchar", arguments[0].parameters),
    "overlaid": _text_of(lambda text, by, *_: text + by),
    "replaced": _text_of(lambda text, _search, by: text + by * (text + 1)),
    "regexp replaced": _text_of(
        lambda text, _pattern, by: text + max(text * by // 2, by) * (text + 1)
    ),
    "url encoded": _text_of(lambda text: text * 12),
}
"""Rules of result types that are not patterns."""


_SHOWN_RESULTS: Final = {
    "rounded": "decimal(rp,0)",
    "rounded_to": "decimal(rp,s)",
    "truncated": "decimal(rp,0)",
    "remainder": "decimal(r_precision,r_scale)",
    "sum": "decimal(38,s)",
    "as long": "varchar(x)",
    "overlaid": "varchar(u)",
    "replaced": "varchar(u)",
    "regexp replaced": "varchar(z)",
    "url encoded": "varchar(y)",
    "array of moments": "array(timestamp(p))",
}
"""Results of rules as Trino lists them; the default is the type of the first or last argument."""


def _shown_result(entry: Overload) -> str:
    if entry.result not in _RESULTS:
        return entry.as_shown(entry.result)
    if (entry.name, entry.result) == ("round", "rounded"):
        return "decimal(rp,rs)"
    return _SHOWN_RESULTS.get(entry.result) or entry.as_shown(
        entry.parameters[0 if entry.result == "first" else -1]
    )


def listed_functions() -> list[tuple[str, str, str, str, bool, str]]:
    """Return the rows of SHOW FUNCTIONS."""
    rows = []
    for line in LISTED.strip().splitlines():
        function_kind, _, row = line.partition(" ")
        name, _, rest = row.partition("(")
        arguments, _, result = rest.partition(") -> ")
        rows.append((name, result, arguments, function_kind, function_kind != "table", ""))
    for function_kind, entry in listed():
        if entry.name in UNLISTED:
            continue
        arguments = entry.as_shown(", ".join(entry.parameters))
        rows.append(
            (entry.name, _shown_result(entry), arguments, function_kind, entry.deterministic, "")
        )
    return sorted(rows)
