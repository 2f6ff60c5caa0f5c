"""Comparisons with all or any of the values of a query: ``x > ALL (query)`` by the query's counts and its extremes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.names import backquoted
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, Type, row_of
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.relations import QueryResult

EXTREMES_OF: Final = frozenset(
    {"tinyint", "smallint", "integer", "bigint", "decimal", "real", "double", "varchar", "char", "boolean", "varbinary"}
    | {"date", "time", "timestamp", "timestamp with time zone", "uuid", "interval day to second", "interval year to month"}
)
"""The types whose values Spark and Trino put in the same order, as MIN and MAX need it."""

_UNKNOWN: Final = e.Constant(BOOLEAN, None)


def quantified(operator: str, value: e.Typed, query: QueryResult, kind: Type, *, every: bool) -> e.Typed:
    """Return the meaning of ``value operator ALL (query)``, or with ``every`` false of ANY.

    Of no rows ALL is true and ANY is false. A NULL among the rows leaves open what the other rows do not decide.

    Args:
        operator: the comparison.
        value: the left side, already of the common type.
        query: the query, of one column.
        kind: the common type.
        every: ALL rather than ANY.
    """
    column = backquoted(query.fields[0].symbol)
    facts = ", ".join(
        f"'{name}', {fact}"
        for name, fact in (
            ("rows", "count(*)"),
            ("known", f"count({column})"),
            ("least", _extreme("min", column, kind)),
            ("most", _extreme("max", column, kind)),
        )
    )
    text = f"SELECT named_struct({facts}) AS facts FROM ({query.cast_to((kind,))})"
    shape = row_of((("rows", BIGINT), ("known", BIGINT), ("least", kind), ("most", kind)))
    # What is asked is more than the query: EXPLAIN leaves it in its expression.
    found = replace(query.as_subquery(shape, "scalar", text, aggregates=True), query=None)
    rows, known, least, most = (
        e.Apply(part, "field", (found,), index) for index, part in enumerate((BIGINT, BIGINT, kind, kind))
    )
    decisive = {
        "<": (least,) if every else (most,),
        "<=": (least,) if every else (most,),
        ">": (most,) if every else (least,),
        ">=": (most,) if every else (least,),
        "=": (least, most),
        "<>": (least, most),
    }[operator]
    none = e.Apply(BOOLEAN, "=" if every else "<>", (rows, e.Constant(BIGINT, "0")))
    compared = [e.Apply(BOOLEAN, operator, (value, bound)) for bound in decisive]
    if every:
        complete = e.Apply(BOOLEAN, "or", (e.Apply(BOOLEAN, "=", (known, rows)), _UNKNOWN))
        return e.Apply(BOOLEAN, "or", (none, e.Apply(BOOLEAN, "and", (*compared, complete))))
    incomplete = e.Apply(BOOLEAN, "and", (e.Apply(BOOLEAN, "<>", (known, rows)), _UNKNOWN))
    return e.Apply(BOOLEAN, "and", (none, e.Apply(BOOLEAN, "or", (*compared, incomplete))))


def _extreme(name: str, column: str, kind: Type) -> str:
    """MIN or MAX as Trino gives it: NaN only where there is nothing else."""
    if kind.base not in {"real", "double"} or name == "min":
        return f"{name}({column})"
    return f"coalesce(max({column}) FILTER (WHERE NOT isnan({column})), max({column}))"
