"""Typed expressions as Trino's EXPLAIN prints them: ``(v > integer '8')``,
``$operator$add(val, integer '1')``.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.typed.expressions import (
    Aggregate,
    Apply,
    Column,
    Constant,
    Function,
    Subquery,
    Typed,
    Variable,
    Windowed,
)
from rowmerge_nb.sql.typed.type_rules import is_exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.typed.expressions import Frame, Sort

_ARITHMETIC: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulus"}
_CALLED: Final = {
    "subscript": "$operator$subscript",
    "negate": "$operator$negation",
    "array": "$array",
    "try": "$internal$try",
}
"""The operations that Trino prints as calls of functions of another name."""
_LONGEST: Final = 2_000
"""So many characters of an expression are printed at most."""


def printed(node: Typed) -> str:
    """Print an expression, cut after 2,000 characters.

    >>> from rowmerge_nb.spi.types import BOOLEAN, INTEGER
    >>> printed(Apply(BOOLEAN, ">", (Column(INTEGER, "v"), Constant(INTEGER, "8"))))
    "(v > integer '8')"
    """
    text = _text(node)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def printed_order(keys: Sequence[Sort]) -> str:
    """Print sort keys: ``[v DESC NULLS LAST]``."""
    return f"[{', '.join(_key(key) for key in keys)}]"


def printed_window(node: Windowed) -> str:
    """Print a window function with its frame, without its partition and order."""
    function = _text(node.function)
    nulls = " IGNORE NULLS" if node.ignore_nulls else ""
    return f"{function}{nulls} {_frame(node.frame)}"


def _key(key: Sort) -> str:
    return (
        f"{_text(key.value)} {'DESC' if key.descending else 'ASC'} NULLS"
        f" {'FIRST' if key.nulls_first else 'LAST'}"
    )


def _frame(frame: Frame | None) -> str:
    if frame is None:
        return "RANGE UNBOUNDED_PRECEDING CURRENT_ROW"
    return f"{frame.unit} {_bound(*frame.low)} {_bound(*frame.high)}"


def _bound(side: str, offset: Typed | None) -> str:
    if side == "ROW":
        return "CURRENT_ROW"
    return f"UNBOUNDED_{side}" if offset is None else f"{side} {_text(offset)}"


@singledispatch
def _text(node: Typed) -> str:
    raise AssertionError(node)


@_text.register
def _(node: Column) -> str:
    return node.symbol


@_text.register
def _(node: Variable) -> str:
    return node.name


@_text.register
def _(node: Constant) -> str:
    if node.value is None:
        return f"null::{node.type}"
    sql_type = node.type.base if node.type.base in {"varchar", "char"} else node.type
    return f"{sql_type} '{node.value}'"


@_text.register
def _(node: Function) -> str:
    return f"({', '.join(node.parameters)}) -> {_text(node.body)}"


@_text.register
def _(node: Subquery) -> str:
    words = {
        "exists": "EXISTS (query)",
        "in": f"({_text(node.value)} IN (query))" if node.value is not None else "",
    }
    return words.get(node.kind, "(query)")


@_text.register
def _(node: Aggregate) -> str:
    arguments = ", ".join(map(_text, node.arguments)) or ("*" if node.name == "count" else "")
    order = f" ORDER BY {', '.join(_key(key) for key in node.order_by)}" if node.order_by else ""
    filter_text = f" FILTER (WHERE {_text(node.filter)})" if node.filter is not None else ""
    return f"{node.name}({'DISTINCT ' if node.distinct else ''}{arguments}{order}){filter_text}"


@_text.register
def _(node: Windowed) -> str:
    partition = (
        f"PARTITION BY {', '.join(map(_text, node.partition_by))} " if node.partition_by else ""
    )
    order = f"ORDER BY {', '.join(_key(key) for key in node.order_by)} " if node.order_by else ""
    return f"{_text(node.function)} OVER ({partition}{order}{_frame(node.frame)})"


@_text.register
def _(node: Apply) -> str:
    name, parts = node.name, [_text(argument) for argument in node.arguments]
    if name in {"=", "<>", "<", "<=", ">", ">="}:
        return f"({parts[0]} {name} {parts[1]})"
    if name in {"and", "or"}:
        return f"({f' {name.upper()} '.join(parts)})"
    if name == "case":
        return _case(parts)
    if name == "cast":
        folded = _folded(node)
        if folded is not None:
            return _text(folded)
        return f"{'TRY_CAST' if node.detail == 'try' else 'CAST'}({parts[0]} AS {node.type})"
    if name == "field":
        return f"{parts[0]}.{node.detail}"
    if name == "row":
        return f"ROW ({', '.join(parts)})"
    if name == "in":
        return _negated(f"({parts[0]} IN ({', '.join(parts[1:])}))", node.detail)
    if name == "in set":
        return _negated(f"({parts[0]} IN ({len(node.detail[0].values)} values))", node.detail[1])
    if name == "is null":
        return _negated(f"({parts[0]} IS NULL)", node.detail)
    if name == "like":
        return _negated(f"$like({', '.join(parts)})", node.detail)
    if name == "distinct":
        identical = f"$operator$identical({', '.join(parts)})"
        return identical if node.detail else _negated(identical, True)
    if name == "not":
        return f"$not({parts[0]})"
    if name == "fail":
        return f"fail({node.detail[0]}, varchar '{node.detail[1]}')"
    if name == "nullif":
        return f"(CASE WHEN {parts[1]} THEN null ELSE {parts[0]} END)"
    if name == "coalesce":
        return f"COALESCE({', '.join(parts)})"
    if name == "renamed":
        return parts[0]
    return f"{_function(node)}({', '.join(parts)})"


def _folded(node: Apply) -> Constant | None:
    """Return a literal in the type it is coerced to, as Trino prints it; None if its text may
    change.
    """
    (value,) = node.arguments
    if not isinstance(value, Constant):
        return None
    alike = all(
        is_exact(sql_type) and not (sql_type.base == "decimal" and sql_type.parameters[1])
        for sql_type in (value.type, node.type)
    )
    texts = value.type.base == node.type.base == "varchar" and not node.type.parameters
    return Constant(node.type, value.value) if value.value is None or alike or texts else None


def _function(node: Apply) -> str:
    if node.name == "arithmetic":
        return f"$operator${_ARITHMETIC[node.detail]}"
    if node.name in {"function", "written"}:
        return str(node.detail.name)
    return _CALLED.get(node.name, node.name)


def _negated(text: str, negated: object) -> str:
    return f"$not({text})" if negated else text


def _case(parts: list[str]) -> str:
    default = f" ELSE {parts[-1]}" if len(parts) % 2 else ""
    pairs = zip(parts[0 : len(parts) - len(parts) % 2 : 2], parts[1::2], strict=False)
    return (
        f"(CASE {' '.join(f'WHEN {condition} THEN {value}' for condition, value in pairs)}{default}"
        " END)"
    )
