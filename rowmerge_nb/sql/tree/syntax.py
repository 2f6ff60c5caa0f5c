"""Syntax trees of expressions, relations and queries.

The grammar is our own, since errors must have Trino's positions, and exactly Trino's statements
must be rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.sql.tree.literal_runs import LiteralRun
    from rowmerge_nb.sql.tree.statements import Identifier, Span, TableName


@dataclass(frozen=True)
class Node:
    """Base of the tree; ``span`` covers the node's text."""

    span: Span

    @property
    def error_span(self) -> Span:
        return self.span


def walk(node: object) -> Iterator[Node]:
    """Yield a node and its descendants, except those in queries."""
    if isinstance(node, tuple):
        for part in node:
            yield from walk(part)
    elif isinstance(node, Node):
        yield node
        for name in node.__dataclass_fields__:
            value = getattr(node, name)
            if not isinstance(value, QueryBody) or not isinstance(node, Expression):
                yield from walk(value)


@dataclass(frozen=True)
class Expression(Node):
    """Base of expressions."""


@dataclass(frozen=True)
class TypeName(Node):
    """A type in CAST or a column definition."""

    text: str


@dataclass(frozen=True)
class Name(Expression):
    """``a``, ``t.a``, ``s.t.a``, ``a.field``; resolution decides the meaning of the parts."""

    parts: tuple[Identifier, ...]


@dataclass(frozen=True)
class Dereference(Expression):
    """A field of a value that is not a plain name."""

    base: Expression
    field: Identifier


@dataclass(frozen=True)
class Literal(Expression):
    """A literal: null, boolean, string, binary, integer, decimal or double; ``value`` is its text
    without quotes.
    """

    kind: str
    value: str


@dataclass(frozen=True)
class Literals(Expression):
    """A long run of literals, or rows of literals, in VALUES or IN."""

    run: LiteralRun


@dataclass(frozen=True)
class TypedLiteral(Expression):
    """``DATE '2024-02-29'``, ``BIGINT '5'``."""

    type: str
    value: str


@dataclass(frozen=True)
class Interval(Expression):
    """``INTERVAL -'1' DAY TO SECOND``."""

    negative: bool
    value: str
    first: str
    last: str | None


@dataclass(frozen=True)
class Unary(Expression):
    """``-x`` or ``+x``."""

    operator: str
    operand: Expression


@dataclass(frozen=True)
class Binary(Expression):
    """Arithmetic, ``||`` and comparisons; errors point at the operator."""

    operator: str
    left: Expression
    right: Expression
    operator_span: Span

    @property
    def error_span(self) -> Span:
        return self.operator_span


@dataclass(frozen=True)
class ChainStep(Node):
    """An operator of a chain and its operand; ``span`` starts at the chain's beginning."""

    operator: str
    operand: Expression
    operator_span: Span

    @property
    def error_span(self) -> Span:
        return self.operator_span


@dataclass(frozen=True)
class Chain(Expression):
    """A long run of left-associative operators of equal precedence: ``a + b - c``."""

    first: Expression
    steps: tuple[ChainStep, ...]


@dataclass(frozen=True)
class Logical(Expression):
    """``AND`` or ``OR`` of two or more terms."""

    operator: str
    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Not(Expression):
    """``NOT x``."""

    operand: Expression


@dataclass(frozen=True)
class _Predicate(Expression):
    value: Expression
    word: Span

    @property
    def error_span(self) -> Span:
        return self.word


@dataclass(frozen=True)
class Between(_Predicate):
    """``x [NOT] BETWEEN [SYMMETRIC] low AND high``."""

    low: Expression
    high: Expression
    negated: bool
    symmetric: bool = False


@dataclass(frozen=True)
class InList(_Predicate):
    """``x [NOT] IN (a, b)``; an item may be a run of `Literals`."""

    items: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True)
class InQuery(_Predicate):
    """``x [NOT] IN (query)``."""

    query: QueryNode
    negated: bool


@dataclass(frozen=True)
class Like(_Predicate):
    """``x [NOT] LIKE pattern [ESCAPE e]``."""

    pattern: Expression
    escape: Expression | None
    negated: bool


@dataclass(frozen=True)
class IsNull(_Predicate):
    """``x IS [NOT] NULL``."""

    negated: bool


@dataclass(frozen=True)
class IsTruth(_Predicate):
    """``x IS [NOT] TRUE``, FALSE or UNKNOWN."""

    truth: str
    negated: bool


@dataclass(frozen=True)
class IsDistinct(_Predicate):
    """``x IS [NOT] DISTINCT FROM y``."""

    right: Expression
    negated: bool


@dataclass(frozen=True)
class Quantified(_Predicate):
    """``x < ALL (query)``."""

    operator: str
    quantifier: str
    query: QueryNode


@dataclass(frozen=True)
class Exists(Expression):
    """``EXISTS (query)``."""

    query: QueryNode


@dataclass(frozen=True)
class ScalarQuery(Expression):
    """``(query)`` as a value."""

    query: QueryNode


@dataclass(frozen=True)
class SortItem(Node):
    """An item of ORDER BY; Trino sorts NULL last by default."""

    value: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class FrameBound(Node):
    """``UNBOUNDED PRECEDING``, ``CURRENT ROW``, ``1 FOLLOWING``; ``side`` is PRECEDING, FOLLOWING
    or ROW.
    """

    side: str
    offset: Expression | None = None


@dataclass(frozen=True)
class WindowFrame(Node):
    """``ROWS BETWEEN low AND high``; the end defaults to the current row."""

    unit: str
    low: FrameBound
    high: FrameBound | None


@dataclass(frozen=True)
class Window(Node):
    """The specification after OVER or in WINDOW; ``name`` is that of the window it extends."""

    partition_by: tuple[Expression, ...]
    order_by: tuple[SortItem, ...]
    frame: WindowFrame | None
    name: Identifier | None = None


@dataclass(frozen=True)
class Measure(Expression):
    """``name OVER (...)``: a measure of MATCH_RECOGNIZE in a window."""

    name: Identifier
    window: Window


@dataclass(frozen=True)
class FunctionCall(Expression):
    """A function call, or a special form such as COALESCE and IF."""

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    star: bool = False
    order_by: tuple[SortItem, ...] = ()
    filter: Expression | None = None
    nulls: str | None = None
    window: Window | None = None
    operator_span: Span | None = None
    qualifier: tuple[str, ...] = ()

    @property
    def error_span(self) -> Span:
        """The call's beginning, or the operator that was written instead."""
        return self.operator_span or self.span


@dataclass(frozen=True)
class MethodCall(Expression):
    """``t.listagg(x)``: behind a name, a reserved word can only be a method."""

    receiver: Name
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Lambda(Expression):
    """``x -> body``."""

    parameters: tuple[Identifier, ...]
    body: Expression


@dataclass(frozen=True)
class Cast(Expression):
    """``CAST(x AS type)`` and ``TRY_CAST``."""

    value: Expression
    type: TypeName
    safe: bool


@dataclass(frozen=True)
class Case(Expression):
    """CASE; ``operand`` is None in the searched form.

    Behind an operand, a WHEN has a value or a `WhenPredicate`.
    """

    operand: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    default: Expression | None


@dataclass(frozen=True)
class WhenPredicate(Expression):
    """``< 3`` or ``BETWEEN 1 AND 2`` behind a WHEN, with CASE's operand as its left side."""

    predicate: Expression


@dataclass(frozen=True)
class RowConstructor(Expression):
    """``ROW(a, b AS c)`` or ``(a, b)``.

    ``names`` is empty, or has a name or None for each item. As in Trino, a name without quotes is
    upper-case.
    """

    items: tuple[Expression, ...]
    names: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class ArrayConstructor(Expression):
    """``ARRAY[a, b]``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Subscript(Expression):
    """``a[i]``."""

    base: Expression
    index: Expression


@dataclass(frozen=True)
class AtTimeZone(Expression):
    """``x AT TIME ZONE zone``."""

    value: Expression
    zone: Expression


EXTRACT_FIELDS: Final = (
    *(
        "YEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "DAY_OF_MONTH",
        "DAY_OF_WEEK",
        "DOW",
        "DAY_OF_YEAR",
        "DOY",
        "YEAR_OF_WEEK",
    ),
    *("YOW", "HOUR", "MINUTE", "SECOND", "TIMEZONE_MINUTE", "TIMEZONE_HOUR"),
)
"""What EXTRACT takes, in the order in which Trino lists it."""


@dataclass(frozen=True)
class Extract(Expression):
    """``EXTRACT(field FROM x)``."""

    field: Identifier
    value: Expression


@dataclass(frozen=True)
class Special(Expression):
    """A keyword that is a value, such as ``CURRENT_DATE`` or ``CURRENT_TIMESTAMP(6)``."""

    word: str
    precision: int | None = None


@dataclass(frozen=True)
class ParameterMarker(Expression):
    """``?``."""


@dataclass(frozen=True)
class Default(Expression):
    """``DEFAULT`` as the value of a column (extended dialect)."""


@dataclass(frozen=True)
class FieldValues(Expression):
    """The value of a column from ``SET column.field = value, ...`` (extended dialect)."""

    column: Identifier
    fields: tuple[tuple[tuple[Identifier, ...], Expression], ...]


@dataclass(frozen=True)
class Unsupported(Expression):
    """A form that this engine does not support; ``what`` is its name in the error."""

    what: str


# -- relations and queries


@dataclass(frozen=True)
class Relation(Node):
    """Base of relations in FROM and USING."""


@dataclass(frozen=True)
class QueryPeriod(Node):
    """``FOR VERSION AS OF value`` or ``FOR TIMESTAMP AS OF value``."""

    kind: str
    end: Expression

    @property
    def words(self) -> str:
        return f"FOR {self.kind} AS OF"


@dataclass(frozen=True)
class Table(Relation):
    """A table by name, optionally in a version."""

    name: TableName
    period: QueryPeriod | None = None


@dataclass(frozen=True)
class Aliased(Relation):
    """``relation [AS] alias [(columns)]``."""

    relation: Relation
    alias: Identifier
    columns: tuple[Identifier, ...]


@dataclass(frozen=True)
class SubqueryRelation(Relation):
    """``(query)`` in FROM."""

    query: QueryNode


@dataclass(frozen=True)
class Lateral(Relation):
    """``LATERAL (query)``."""

    query: QueryNode


@dataclass(frozen=True)
class Unnest(Relation):
    """``UNNEST(a, b) [WITH ORDINALITY]``."""

    items: tuple[Expression, ...]
    ordinality: bool


@dataclass(frozen=True)
class TableArgument(Expression):
    """``TABLE(name)`` or ``TABLE(query)`` as an argument of a table function."""

    relation: Relation


@dataclass(frozen=True)
class Descriptor(Expression):
    """``DESCRIPTOR(a, b)``; ``typed`` if a column has a type."""

    columns: tuple[Identifier, ...]
    typed: bool


@dataclass(frozen=True)
class TableFunction(Relation):
    """``TABLE(name(a, parameter => b))``; positional arguments have no name."""

    name: TableName
    arguments: tuple[tuple[Identifier | None, Expression], ...]


@dataclass(frozen=True)
class JoinRelation(Relation):
    """A join; ``kind`` is CROSS, INNER, LEFT, RIGHT or FULL."""

    kind: str
    left: Relation
    right: Relation
    on: Expression | None = None
    using: tuple[Identifier, ...] = ()
    natural: bool = False


@dataclass(frozen=True)
class AllColumns(Node):
    """``*`` or ``t.*`` in a SELECT list."""

    target: Expression | None
    aliases: tuple[Identifier, ...]


@dataclass(frozen=True)
class SelectItem(Node):
    """``expression [AS] alias``."""

    value: Expression
    alias: Identifier | None


@dataclass(frozen=True)
class QueryBody(Node):
    """Base of queries without WITH and ORDER BY."""


@dataclass(frozen=True)
class GroupingSets:
    """The grouping sets of ROLLUP, CUBE and GROUPING SETS, as indices of expressions.

    ``columns`` are indices of expressions that must be columns.
    """

    sets: tuple[tuple[int, ...], ...]
    columns: frozenset[int]
    distinct: bool = False


@dataclass(frozen=True)
class AutoKeys(Expression):
    """``AUTO`` in GROUP BY: all non-aggregate columns of the SELECT list."""


@dataclass(frozen=True)
class Select(QueryBody):
    """A SELECT; ``windows`` is its WINDOW clause, ``grouping`` is None for plain GROUP BY."""

    distinct: bool
    items: tuple[SelectItem | AllColumns, ...]
    relation: Relation | None
    where: Expression | None
    group_by: tuple[Expression, ...] | None
    having: Expression | None
    windows: tuple[tuple[Identifier, Window], ...] = ()
    grouping: GroupingSets | None = None


@dataclass(frozen=True)
class Values(QueryBody):
    """``VALUES a, (b, c)``; a row may be a run of `Literals`."""

    rows: tuple[Expression, ...]


@dataclass(frozen=True)
class TableBody(QueryBody):
    """``TABLE t``."""

    name: TableName


@dataclass(frozen=True)
class SetOperation(QueryBody):
    """UNION, INTERSECT, EXCEPT; errors point at the keyword."""

    operator: str
    distinct: bool
    left: QueryBody
    right: QueryBody
    word: Span


@dataclass(frozen=True)
class NamedQuery(Node):
    name: Identifier
    columns: tuple[Identifier, ...]
    query: QueryNode


@dataclass(frozen=True)
class FunctionDefinition(Node):
    """``FUNCTION name(parameters) RETURNS type RETURN body``; ``strict`` means NULL for NULL
    arguments.
    """

    name: Identifier
    parameters: tuple[tuple[Identifier, TypeName], ...]
    returns: TypeName
    returns_span: Span
    body: Expression
    strict: bool
    deterministic: bool


@dataclass(frozen=True)
class QueryNode(QueryBody):
    """A whole query, or a body in parentheses.

    ``fetch`` is the span of FETCH; ``functions`` are inline definitions.
    """

    named_queries: tuple[NamedQuery, ...]
    body: QueryBody
    order_by: tuple[SortItem, ...]
    offset: int | None
    limit: int | None
    recursive: bool = False
    fetch: Span | None = None
    ties: bool = False
    functions: tuple[FunctionDefinition, ...] = ()
