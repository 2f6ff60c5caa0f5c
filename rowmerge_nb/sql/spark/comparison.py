"""Comparison in Spark SQL: NaN, NULL within rows, arrays and maps, and what cannot be put in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import is_float

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.types import Type

__all__ = ["compared", "distinct"]

_NESTED: Final = frozenset({"array", "map", "row"})


def compared(operator: str, left: str, right: str, kind: Type, fail: Callable[..., str]) -> str:
    """Write a comparison of two values of a type: true, false, or NULL where a NULL leaves it open."""
    value = f"({left} {operator} {right})"
    if is_float(kind):
        return _nan_aware(operator, left, right, value)
    if kind.base not in _NESTED:
        return value
    if operator == "<>":
        return f"(NOT {compared('=', left, right, kind, fail)})"
    if kind.base == "row":
        return _rows(operator, left, right, kind, fail)
    return _maps(left, right, kind, fail) if kind.base == "map" else _arrays(operator, left, right, kind, fail)


def _nan_aware(operator: str, left: str, right: str, value: str) -> str:
    """For Spark NaN equals NaN and is the largest number; for Trino every comparison with NaN is false, <> is true."""
    if operator in {"<", "<="}:
        return f"IF(isnan({right}) AND {left} IS NOT NULL, false, {value})"
    if operator in {">", ">="}:
        return f"IF(isnan({left}) AND {right} IS NOT NULL, false, {value})"
    return f"IF(isnan({left}) AND {right} IS NOT NULL, {'true' if operator == '<>' else 'false'}, {value})"


def _rows(operator: str, left: str, right: str, kind: Type, fail: Callable[..., str]) -> str:
    """Field by field; in an order the first fields that differ decide, and a NULL before them is an error."""
    names = [e.quote(name or f"field{i}") for i, name in enumerate(kind.fields)]
    pairs = [(f"{left}.{name}", f"{right}.{name}", part) for name, part in zip(names, kind.parameters, strict=True)]
    if operator == "=":
        return f"({' AND '.join(compared('=', a, b, part, fail) for a, b, part in pairs)})"
    message = fail("NOT_SUPPORTED", "'ROW comparison not supported for fields with null elements'")
    strict = operator[0]
    cases = " ".join(
        f"WHEN {a} IS NULL OR {b} IS NULL THEN {message} WHEN {compared('<>', a, b, part, fail)} "
        f"THEN {compared(strict, a, b, part, fail)}"
        for a, b, part in pairs
    )
    same = "true" if operator.endswith("=") else "false"
    return f"CASE WHEN {left} IS NULL OR {right} IS NULL THEN NULL {cases} ELSE {same} END"


def _arrays(operator: str, left: str, right: str, kind: Type, fail: Callable[..., str]) -> str:
    if operator == "=":
        same = compared("=", "x", "y", kind.parameters[0], fail)
        return f"IF(size({left}) <> size({right}), false, forall(zip_with({left}, {right}, (x, y) -> {same}), z -> z))"
    # The first pair that differs decides. A NULL up to there is an error, one behind it is not looked at.
    parts = tuple(f"slice({side}, 1, least(size({left}), size({right})))" for side in (left, right))
    first = f"filter(zip_with({', '.join(parts)}, (x, y) -> struct(x, y)), z -> z.x IS NULL OR z.y IS NULL OR z.x <> z.y)"
    message = fail("NOT_SUPPORTED", "'ARRAY comparison not supported for arrays with null elements'")
    return (
        f"CASE WHEN {left} IS NULL OR {right} IS NULL THEN NULL "
        f"WHEN exists(slice({first}, 1, 1), z -> z.x IS NULL OR z.y IS NULL) THEN {message} ELSE ({left} {operator} {right}) END"
    )


def _maps(left: str, right: str, kind: Type, fail: Callable[..., str]) -> str:
    same = compared("=", f"try_element_at({left}, k)", f"try_element_at({right}, k)", kind.parameters[1], fail)
    pair = f"IF(map_contains_key({right}, k), {same}, false)"
    same_keys = f"forall(transform(map_keys({left}), k -> {pair}), z -> z)"
    return f"CASE WHEN {left} IS NULL OR {right} IS NULL THEN NULL WHEN size({left}) <> size({right}) THEN false ELSE {same_keys} END"


def distinct(left: str, right: str, kind: Type, *, negated: bool) -> str:
    """Write IS DISTINCT FROM, or with ``negated`` IS NOT DISTINCT FROM."""
    if _has_map(kind):
        left, right = (f"to_json(struct({_sorted(side, kind)} AS v))" for side in (left, right))
    return f"({left} <=> {right})" if negated else f"(NOT ({left} <=> {right}))"


def _has_map(kind: Type) -> bool:
    return kind.base == "map" or (kind.base in {"array", "row"} and any(_has_map(part) for part in kind.parameters))


def _sorted(text: str, kind: Type) -> str:
    """Spark compares no maps: a map is told by its sorted entries."""
    return f"array_sort(map_entries({text}))" if kind.base == "map" else text
