"""Comparisons with all or any values of a query, computed from its counts and extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT, BOOLEAN, Type, row_of
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.readings import subquery

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.queries.relation import QueryResult

EXTREMES_OF: Final = frozenset(
    {
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "decimal",
        "real",
        "double",
        "varchar",
        "char",
        "boolean",
        "varbinary",
    }
    | {
        "date",
        "time",
        "timestamp",
        "timestamp with time zone",
        "uuid",
        "interval day to second",
        "interval year to month",
    }
)
"""The types whose values Spark and Trino put in the same order, as MIN and MAX need it."""

_UNKNOWN: Final = e.Constant(BOOLEAN, None)


def quantified(
    operator: str, value: e.Typed, query: QueryResult, sql_type: Type, *, every: bool
) -> e.Typed:
    """Return ``value operator ALL (query)`` or, unless ``every``, ``ANY``.

    Without rows ALL is true and ANY is false. With a NULL among the rows the result is unknown
    unless the others decide it. The value and the only column have the common type ``sql_type``.
    """
    shape = row_of((("rows", BIGINT), ("known", BIGINT), ("least", sql_type), ("most", sql_type)))
    facts = q.Extremes(query.coerced_tree((sql_type,)), (e.Column(shape, "$facts"),))
    extremes = subquery(shape, "scalar", facts, origins=query.origins, of=query.tree)
    rows, value_count, least, most = (
        e.Apply(part, "field", (extremes,), index)
        for index, part in enumerate((BIGINT, BIGINT, sql_type, sql_type))
    )
    decisive = {
        "<": (least,) if every else (most,),
        "<=": (least,) if every else (most,),
        ">": (most,) if every else (least,),
        ">=": (most,) if every else (least,),
    }.get(operator, (most,))
    none = e.Apply(BOOLEAN, "=" if every else "<>", (rows, e.Constant(BIGINT, "0")))
    compared = [e.Apply(BOOLEAN, operator, (value, bound)) for bound in decisive]
    if operator in {"=", "<>"}:
        # As in Trino, different rows decide it even for a NULL.
        compared.append(e.Apply(BOOLEAN, operator, (least, most)))
    if every:
        complete = e.Apply(BOOLEAN, "or", (e.Apply(BOOLEAN, "=", (value_count, rows)), _UNKNOWN))
        return e.Apply(BOOLEAN, "or", (none, e.Apply(BOOLEAN, "and", (*compared, complete))))
    incomplete = e.Apply(BOOLEAN, "and", (e.Apply(BOOLEAN, "<>", (value_count, rows)), _UNKNOWN))
    return e.Apply(BOOLEAN, "and", (none, e.Apply(BOOLEAN, "or", (*compared, incomplete))))
