"""What is known of a query's rows without running it, by Trino's rules: how many there are, and what is in their columns.

A rule of Trino's is followed only where it says something of one table's rows: conditions, computed columns, limits. Numbers are
floats as in Trino, NaN for what is not known, so that they come out alike.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.domains import conjuncts
from rowmerge_nb.sql.typed.expressions import (
    Aggregate,
    Apply,
    Column,
    Constant,
    Subquery,
    Typed,
    Windowed,
    references,
    walk,
)
from rowmerge_nb.sql.typed.types import is_integer

if TYPE_CHECKING:
    from rowmerge_nb.spi.metadata import ColumnStatistics
    from rowmerge_nb.spi.types import Type

_INDEPENDENCE: Final = 0.75
"""How far conditions on different columns count as independent: Trino's ``filter_conjunction_independence_factor``."""
_UNKNOWN_CONDITION: Final = 0.9
"""Which part of the rows Trino takes a condition to leave that it knows nothing of, beside one that it knows something of."""
_OF_INFINITE_TO_FINITE: Final = 0.25
_OF_INFINITE_TO_INFINITE: Final = 0.5
_FLIPPED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_DAY: Final = 86_400_000_000.0
"""Microseconds."""
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without a zone


class NotEstimatedError(Exception):
    """A query has a part for which there is no estimate; the message names it."""


@dataclass(frozen=True)
class ColumnEstimate:
    """What is known of a column: NaN, or infinity of a bound, for what is not.

    Args:
        low: no value is smaller; NaN where there is none.
        high: no value is greater.
        nulls: which part of the rows have NULL in it.
        size: how many bytes a value takes on average, of texts and bytes.
        distinct: how many different values there are.
    """

    low: float = -math.inf
    high: float = math.inf
    nulls: float = math.nan
    size: float = math.nan
    distinct: float = math.nan

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known."""
        return math.isinf(self.low) and math.isinf(self.high) and all(map(math.isnan, (self.nulls, self.size, self.distinct)))

    @property
    def is_single(self) -> bool:
        """Whether all rows have the same value."""
        return self.distinct == 1 and self.nulls == 0

    @property
    def is_empty(self) -> bool:
        """Whether there are no values between the bounds."""
        return math.isnan(self.low) and math.isnan(self.high)

    def same_range(self, other: ColumnEstimate) -> bool:
        """Tell whether bounds and number of values are the same, whatever else is known."""
        pairs = ((self.low, other.low), (self.high, other.high), (self.distinct, other.distinct))
        return all(one == two or (math.isnan(one) and math.isnan(two)) for one, two in pairs)

    def overlap(self, other: ColumnEstimate) -> float:
        """Give which part of the values lies within another range.

        >>> ColumnEstimate(0, 10, distinct=10).overlap(ColumnEstimate(5, 20))
        0.5
        """
        if self.is_empty or other.is_empty or self.distinct == 0 or other.distinct == 0:
            return 0.0
        if self.same_range(other):
            return 1.0
        length = _least(self.high, other.high) - _greatest(self.low, other.low)
        if math.isinf(length):
            if math.isfinite(self.distinct) and math.isfinite(other.distinct):
                return min(other.distinct / self.distinct, 1.0)
            return _OF_INFINITE_TO_INFINITE
        if length == 0:
            return 1 / _greatest(self.distinct, 1)
        if length < 0:
            return 0.0
        whole = self.high - self.low
        return _OF_INFINITE_TO_FINITE if math.isinf(whole) else length / whole

    def within(self, other: ColumnEstimate) -> ColumnEstimate:
        """Give the values that lie within another range as well; of all else nothing is known.

        >>> ColumnEstimate(0, 10).within(ColumnEstimate(5, 20))
        ColumnEstimate(low=5, high=10, nulls=nan, size=nan, distinct=nan)
        """
        low, high = _greatest(self.low, other.low), _least(self.high, other.high)
        if not low <= high:
            return replace(NOTHING, nulls=math.nan, size=math.nan)
        shared = _greatest_known(self.overlap(other) * self.distinct, other.overlap(self) * other.distinct)
        return ColumnEstimate(low, high, distinct=_least_known(_least_known(self.distinct, other.distinct), shared))


UNKNOWN: Final = ColumnEstimate()
NOTHING: Final = ColumnEstimate(math.nan, math.nan, 1.0, 0.0, 0.0)
"""A column without values."""


@dataclass(frozen=True)
class Estimate:
    """What is known of a query's rows.

    Args:
        rows: how many there are; NaN where that is not known.
        columns: what is known of columns; of those that are missing it is nothing.
    """

    rows: float = math.nan
    columns: Mapping[Column, ColumnEstimate] = field(default_factory=dict)

    @property
    def is_unknown(self) -> bool:
        """Whether the number of rows is not known."""
        return math.isnan(self.rows)

    def of(self, column: Typed) -> ColumnEstimate:
        """Give what is known of a column."""
        return self.columns.get(column, UNKNOWN) if isinstance(column, Column) else UNKNOWN

    def over(self, rows: float) -> Estimate:
        """Give the same columns in another number of rows."""
        return replace(self, rows=rows)

    def having(self, column: Column | None, known: ColumnEstimate, rows: float) -> Estimate:
        """Give the same with something else known of one column; of none where that is None."""
        return Estimate(rows, self.columns if column is None else {**self.columns, column: known})


def number_of(value: Any) -> float:
    """Give the number that stands for a value in statistics; NaN where there is none.

    >>> number_of(dt.date(1970, 1, 3)), number_of(True), number_of("a")
    (2.0, 1.0, nan)
    """
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) / dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return float((value - _EPOCH.date()).days)
    return float(value) if isinstance(value, bool | int | float | Decimal) else math.nan


def estimated(query: q.Query) -> Estimate:
    """Estimate a query's rows.

    Args:
        query: the query.

    Raises:
        NotEstimatedError: it has a part for which there is no estimate.
    """
    if isinstance(query, q.Scanned):
        return _scanned(query)
    if isinstance(query, q.Valued):
        return Estimate(float(query.count))
    if isinstance(query, q.Coerced):
        return _projected(estimated(query.source), query.columns)
    if isinstance(query, q.Selected):
        return _selected(query)
    if isinstance(query, q.Ordered):
        return _limited(estimated(query.source), query.limit, query.offset)
    raise NotEstimatedError(_PARTS[type(query)])


_PARTS: Final[Mapping[type, str]] = {
    q.Joined: "a join",
    q.SetOperated: "UNION, INTERSECT or EXCEPT",
    q.Unnested: "UNNEST",
    q.Generated: "a table function",
    q.Recursive: "WITH RECURSIVE",
}


# -- plan nodes -------------------------------------------------------------------------------------------------------


def _scanned(query: q.Scanned) -> Estimate:
    count, known = query.statistics()
    rows = math.nan if count is None else float(count)
    columns = {column: _kept(known[name], rows, column.type) for column, name in query.columns if name in known}
    missing = {column: UNKNOWN for column, name in query.columns if name not in known}
    return _normal(Estimate(rows, {**columns, **missing}))


def _kept(found: ColumnStatistics, rows: float, kind: Type) -> ColumnEstimate:
    """Give what a store keeps of a column in the form that is reckoned with."""
    nulls, total = (math.nan if value is None else float(value) for value in (found.nulls_fraction, found.data_size))
    filled = rows * (1 - nulls)
    size = 0.0 if filled == 0 else total / filled if kind.base in {"varchar", "char", "varbinary"} else math.nan
    low, high = number_of(found.low_value), number_of(found.high_value)
    return ColumnEstimate(
        -math.inf if math.isnan(low) else low,
        math.inf if math.isnan(high) else high,
        nulls,
        size,
        math.nan if found.distinct_values_count is None else float(found.distinct_values_count),
    )


def _selected(query: q.Selected) -> Estimate:
    values = [value for _, value in query.outputs] + [key.value for key in query.order_by]
    parts = [part for value in [*values, *((query.where,) if query.where else ())] for part in walk(value)]
    _check_parts(query, parts)
    found = Estimate(1.0) if query.source is None else estimated(query.source)
    if query.where is not None:
        found = _filtered(found, query.where)
    if query.keys is not None or any(isinstance(part, Aggregate) for part in parts):
        found = Estimate(1.0)
    return _limited(_projected(found, query.outputs), query.limit, query.offset)


def _check_parts(query: q.Selected, parts: Sequence[Typed]) -> None:
    """Refuse what is no condition, computed column or limit over a table's rows."""
    refused = {
        "DISTINCT": query.distinct,
        "GROUP BY": bool(query.keys or query.sets),
        "HAVING": query.having is not None,
        "a window function": any(isinstance(part, Windowed) for part in parts),
        "a subquery": any(isinstance(part, Subquery) for part in parts),
    }
    for what, found in refused.items():
        if found:
            raise NotEstimatedError(what)


def _projected(source: Estimate, outputs: Sequence[tuple[Column, Typed]]) -> Estimate:
    return _normal(Estimate(source.rows, {column: _value(value, source) for column, value in outputs}))


def _limited(source: Estimate, limit: int | None, offset: int) -> Estimate:
    if offset:
        what = "OFFSET"
        raise NotEstimatedError(what)
    return source if limit is None or source.rows <= limit else _normal(source.over(float(limit)))


def _value(node: Typed, source: Estimate) -> ColumnEstimate:
    """Give what is known of a computed column: of columns and constants, cast or not."""
    if isinstance(node, Column):
        return source.of(node)
    constant = _constant(node)
    if constant is not None:
        number = constant.number
        bounds = (number, number) if math.isfinite(number) else (-math.inf, math.inf)
        return NOTHING if constant.is_null else ColumnEstimate(*bounds, nulls=0.0, distinct=1.0)
    if isinstance(node, Apply) and node.name == "cast" and _is_number(node.type) and _is_number(node.arguments[0].type):
        found = _value(node.arguments[0], source)
        return _whole(found) if is_integer(node.type) else found
    return UNKNOWN


def _whole(found: ColumnEstimate) -> ColumnEstimate:
    low, high = _rounded(found.low), _rounded(found.high)
    most = high - low + 1
    return replace(found, low=low, high=high, distinct=most if math.isfinite(most) and found.distinct > most else found.distinct)


# -- conditions -------------------------------------------------------------------------------------------------------


def _filtered(source: Estimate, condition: Typed) -> Estimate:
    """Estimate the rows for which a condition is true."""
    return _normal(source if source.rows == 0 or source.is_unknown else _judged(source, condition))


def _judged(source: Estimate, node: Typed) -> Estimate:
    constant = _constant(node)
    if constant is not None:
        return source if constant.number == 1 else _none(source)
    if not isinstance(node, Apply) or node.name not in _RULES:
        return Estimate()
    return _RULES[node.name](source, node)


def _and(source: Estimate, node: Apply) -> Estimate:
    terms = conjuncts(node)
    found, unknown = [], False
    for group in _by_columns(terms):
        # Conditions on the same columns narrow each other; those on different ones count as partly independent.
        combined = Estimate()
        for term in group:
            narrowed = _filtered(source if combined.is_unknown else combined, term)
            unknown = unknown or narrowed.is_unknown
            combined = combined if narrowed.is_unknown else narrowed
        if not combined.is_unknown:
            found.append(combined)
    if not found:
        return Estimate()
    kept, weight = 1.0, 1.0
    for part in sorted(found, key=lambda estimate: estimate.rows):
        kept *= (part.rows / source.rows) ** weight
        weight *= _INDEPENDENCE
    everything = [*found, *([Estimate()] if unknown else [])]
    return Estimate(source.rows * kept * (_UNKNOWN_CONDITION if unknown else 1.0), _together(everything))


def _by_columns(terms: Sequence[Typed]) -> list[list[Typed]]:
    """Put together those conditions that speak of the same columns, if only by way of a third."""
    groups: list[tuple[frozenset[str], list[int]]] = []
    for index, term in enumerate(terms):
        names = references(term)
        near = [group for group in groups if group[0] & names or not (names or group[0])]
        far = [group for group in groups if not (group[0] & names or not (names or group[0]))]
        groups = [*far, (names.union(*(known for known, _ in near)), [index, *(i for _, members in near for i in members)])]
    return [[terms[index] for index in sorted(members)] for _, members in groups]


def _together(found: Sequence[Estimate]) -> Mapping[Column, ColumnEstimate]:
    """Give what is known of the columns of rows that meet several conditions."""
    if len(found) == 1:
        return found[0].columns
    columns: dict[Column, ColumnEstimate] = {}
    for column in dict.fromkeys(column for estimate in found for column in estimate.columns):
        known = [estimate.of(column) for estimate in found]
        columns[column] = replace(
            reduce(ColumnEstimate.within, known),
            nulls=reduce(_least_known, (one.nulls for one in known)),
            size=reduce(_average_known, (one.size for one in known)),
        )
    return columns


def _or(source: Estimate, node: Apply) -> Estimate:
    first, *others = node.arguments
    found = _filtered(source, first)
    for term in others:
        both = _added(found, _filtered(source, term))
        found = _capped(_without(both, _filtered(found, term)), source)
    return found


def _not(source: Estimate, node: Apply) -> Estimate:
    (inner,) = node.arguments
    if isinstance(inner, Apply) and inner.name in _NEGATED:
        return _filtered(source, replace(inner, name=_NEGATED[inner.name]))
    if isinstance(inner, Apply) and inner.name in {"and", "or"}:
        turned = tuple(Apply(inner.type, "not", (argument,)) for argument in inner.arguments)
        return _filtered(source, replace(inner, name="or" if inner.name == "and" else "and", arguments=turned))
    return _without(source, _filtered(source, inner))


def _is_null(source: Estimate, node: Apply) -> Estimate:
    (value,) = node.arguments
    if not isinstance(value, Column):
        return Estimate()
    known = source.of(value)
    if node.detail:
        return source.having(value, replace(known, nulls=0.0), source.rows * (1 - known.nulls))
    return source.having(value, ColumnEstimate(math.nan, math.nan, 1.0, math.nan, 0.0), source.rows * known.nulls)


def _in(source: Estimate, node: Apply) -> Estimate:
    value, *items = node.arguments
    found = _listed(source, value, [_against(source, value, item, "=") for item in items])
    return _without(source, _normal(found)) if node.detail else found


def _in_set(source: Estimate, node: Apply) -> Estimate:
    known, negated = node.detail
    value = node.arguments[0]
    found = _listed(source, value, [_against_constant(source, value, number_of(v), "=") for v in known.values.to_pylist()])
    return _without(source, _normal(found)) if negated else found


def _listed(source: Estimate, value: Typed, equal: Sequence[Estimate]) -> Estimate:
    """Estimate IN by what equals its items."""
    column, known = _bare(value), _value(value, source)
    if known.is_unknown or any(estimate.is_unknown for estimate in equal):
        return Estimate()
    narrowed = [Estimate(one.rows, {} if column is None else {column: one.of(column)}) for one in map(_normal, equal)]
    found = reduce(_added, narrowed)
    rows = _least(found.rows, source.rows * (1 - known.nulls))
    if column is None:
        return source.over(rows)
    distinct = _least(found.of(column).distinct, known.distinct)
    return source.having(column, replace(found.of(column), distinct=distinct), rows)


def _compared(source: Estimate, node: Apply) -> Estimate:
    left, right = node.arguments
    if isinstance(left, Column) and left == right:
        return _filtered(source, Apply(node.type, "is null", (left,), True))
    if _constant(left) is not None or (_bare(left) is None and _bare(right) is not None):
        return _against(source, right, left, _FLIPPED[node.name])
    return _against(source, left, right, node.name)


def _against(source: Estimate, left: Typed, right: Typed, operator: str) -> Estimate:
    constant = _constant(right)
    if constant is not None:
        return source.over(0.0) if constant.is_null else _against_constant(source, left, constant.number, operator)
    one, other = _value(_uncast(left), source), _value(_uncast(right), source)
    if operator not in {"=", "<>"} or math.isnan(one.distinct) or math.isnan(other.distinct):
        return Estimate()
    filled = source.rows * (1 - one.nulls) * (1 - other.nulls)
    equal = filled / max(one.distinct, other.distinct, 1)
    columns = [column for column in (_bare(left), _bare(right)) if column is not None]
    if operator == "<>":
        return Estimate(filled - equal, {**source.columns, **{c: replace(source.of(c), nulls=0.0) for c in columns}})
    size, distinct = _average_known(one.size, other.size), min(one.distinct, other.distinct)
    shared = replace(one.within(other), nulls=0.0, size=size, distinct=distinct)
    return Estimate(equal, {**source.columns, **dict.fromkeys(columns, shared)})


def _against_constant(source: Estimate, value: Typed, number: float, operator: str) -> Estimate:
    """Estimate the rows whose value compares with a number; with something that has none where that is NaN."""
    known, column = _value(_uncast(value), source), _bare(value)
    if operator in {"=", "<>"}:
        wanted = ColumnEstimate(distinct=1.0) if math.isnan(number) else ColumnEstimate(number, number, distinct=1.0)
    elif math.isnan(number):
        wanted = UNKNOWN
    else:
        wanted = ColumnEstimate(high=number) if operator in {"<", "<="} else ColumnEstimate(low=number)
    shared = known.within(wanted)
    part = known.overlap(shared)
    filled = source.rows * (1 - known.nulls)
    if operator == "<>":
        distinct = _greatest(known.distinct - 1, 0)
        return source.having(column, replace(known, nulls=0.0, distinct=distinct), filled * (1 - part))
    return source.having(column, replace(shared, nulls=0.0, size=known.size), filled * part)


_RULES: Final[Mapping[str, Callable[[Estimate, Apply], Estimate]]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "is null": _is_null,
    "in": _in,
    "in set": _in_set,
    **dict.fromkeys(_NEGATED, _compared),
}


@dataclass(frozen=True)
class _Literal:
    number: float
    is_null: bool = False


def _constant(node: Typed) -> _Literal | None:
    """Give the number of a constant, cast or not; None for what is no constant."""
    if isinstance(node, Apply) and node.name in {"cast", "negate"}:
        (inner,) = node.arguments
        found = _constant(inner)
        if found is None:
            return None
        return replace(found, number=-found.number if node.name == "negate" else _cast(found.number, inner.type, node.type))
    if not isinstance(node, Constant):
        return None
    return _Literal(math.nan, is_null=True) if node.value is None else _Literal(_read(node.type, node.value))


def _cast(number: float, source: Type, target: Type) -> float:
    if _is_number(source) and _is_number(target):
        return _rounded(number) if is_integer(target) else number
    if (source.base, target.base) == ("date", "timestamp"):
        return number * _DAY
    return number if source.base == target.base else math.nan


def _rounded(number: float) -> float:
    return float(math.floor(number + 0.5)) if math.isfinite(number) else number


def _read(kind: Type, text: str) -> float:
    try:
        if _is_number(kind):
            return float(text)
        if kind.base == "boolean":
            return float(text == "true")
        if kind.base == "date":
            return number_of(dt.date.fromisoformat(text))
        return number_of(dt.datetime.fromisoformat(text)) if kind.base == "timestamp" else math.nan
    except ValueError:
        # A year that Python's dates do not have.
        return math.nan


def _is_number(kind: Type) -> bool:
    return is_integer(kind) or kind.base in {"decimal", "real", "double"}


def _uncast(node: Typed) -> Typed:
    """Give what is cast from number to number: Trino's optimizer compares it with the constant as that type has it."""
    while isinstance(node, Apply) and node.name == "cast" and _is_number(node.type) and _is_number(node.arguments[0].type):
        node = node.arguments[0]
    return node


def _bare(node: Typed) -> Column | None:
    found = _uncast(node)
    return found if isinstance(found, Column) else None


# -- estimates put together -------------------------------------------------------------------------------------------


def _none(source: Estimate) -> Estimate:
    return Estimate(0.0, dict.fromkeys(source.columns, NOTHING))


def _without(whole: Estimate, part: Estimate) -> Estimate:
    """Give the rows that are left when some of them are taken away."""
    if whole.is_unknown or part.is_unknown:
        return Estimate()
    rows = max(whole.rows - part.rows, 0.0)
    if rows == 0:
        return _none(whole)
    columns = {}
    for column, known in whole.columns.items():
        gone = part.of(column)
        nulls = _greatest(known.nulls * whole.rows - gone.nulls * part.rows, 0.0)
        distinct = _distinct_left(known, whole.rows, gone, part.rows)
        columns[column] = replace(known, nulls=_least(nulls, rows) / rows, distinct=distinct)
    return Estimate(rows, columns)


def _distinct_left(known: ColumnEstimate, rows: float, gone: ColumnEstimate, gone_rows: float) -> float:
    if math.isnan(known.distinct) or math.isnan(gone.distinct):
        return math.nan
    if known.distinct == 0 or gone.distinct == 0:
        return known.distinct
    # A value goes away if the rows that are taken away have as many of it as all of them have.
    all_of_it = rows * (1 - known.nulls) / known.distinct <= gone_rows * (1 - gone.nulls) / gone.distinct
    return max(known.distinct - gone.distinct, 0.0) if all_of_it else known.distinct


def _capped(found: Estimate, most: Estimate) -> Estimate:
    """Let there be no more than the whole has."""
    if found.is_unknown or most.is_unknown:
        return Estimate()
    rows = min(found.rows, most.rows)
    columns = {}
    for column, known in found.columns.items():
        cap = most.of(column)
        nulls = _least(found.rows * known.nulls, most.rows * cap.nulls)
        columns[column] = replace(
            known,
            low=_greatest(known.low, cap.low),
            high=_least(known.high, cap.high),
            nulls=1.0 if rows == 0 else nulls / rows,
            distinct=_least(known.distinct, cap.distinct),
        )
    return Estimate(rows, columns)


def _added(one: Estimate, other: Estimate) -> Estimate:
    """Give the rows of both."""
    if one.is_unknown or other.is_unknown:
        return Estimate()
    rows = one.rows + other.rows
    columns = {}
    for column in dict.fromkeys((*one.columns, *other.columns)):
        left, right = one.of(column), other.of(column)
        if rows == 0:
            columns[column] = NOTHING
            continue
        nulls = (left.nulls * one.rows + right.nulls * other.rows) / rows
        filled = rows * (1 - nulls)
        total = one.rows * (1 - left.nulls) * left.size + other.rows * (1 - right.nulls) * right.size
        bounds = (_least_known(left.low, right.low), _greatest_known(left.high, right.high))
        columns[column] = ColumnEstimate(*bounds, nulls, 0.0 if filled == 0 else total / filled, left.distinct + right.distinct)
    return Estimate(rows, columns)


def _normal(found: Estimate) -> Estimate:
    """Take out of an estimate what contradicts itself, and columns of which nothing is known."""
    columns = {column: _consistent(column.type, known, found.rows) for column, known in found.columns.items()}
    return Estimate(found.rows, {column: known for column, known in columns.items() if not known.is_unknown})


def _consistent(kind: Type, known: ColumnEstimate, rows: float) -> ColumnEstimate:
    if rows == 0:
        return NOTHING
    distinct, nulls = known.distinct, known.nulls
    if known.is_unknown or math.isnan(distinct):
        return known
    most = _most_distinct(kind, known)
    distinct = min(distinct, most)
    if not math.isnan(rows):
        distinct = min(distinct, rows)
        filled = rows * (1 - nulls)
        if distinct > filled:
            spare = (distinct - filled) / 2
            distinct, nulls = distinct - spare, 1 - (filled + spare) / rows
    return NOTHING if distinct == 0 else replace(known, distinct=distinct, nulls=nulls)


def _most_distinct(kind: Type, known: ColumnEstimate) -> float:
    """Give how many values there can be between the bounds; NaN where there is no knowing."""
    length = known.high - known.low
    if length == 0:
        return 1.0
    if math.isnan(length) or not (is_integer(kind) or kind.base in {"boolean", "date", "decimal"}):
        return math.nan
    if kind.base == "decimal":
        length *= 10.0 ** kind.parameters[1]
    return math.floor(length + 1) if math.isfinite(length) else length


def _least(one: float, other: float) -> float:
    return math.nan if math.isnan(one) or math.isnan(other) else min(one, other)


def _greatest(one: float, other: float) -> float:
    return math.nan if math.isnan(one) or math.isnan(other) else max(one, other)


def _least_known(one: float, other: float) -> float:
    return other if math.isnan(one) else one if math.isnan(other) else min(one, other)


def _greatest_known(one: float, other: float) -> float:
    return other if math.isnan(one) else one if math.isnan(other) else max(one, other)


def _average_known(one: float, other: float) -> float:
    return other if math.isnan(one) else one if math.isnan(other) else (one + other) / 2
