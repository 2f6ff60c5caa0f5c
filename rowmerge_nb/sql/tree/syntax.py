"""Expressions, relations and queries as they were written.

The tree is our own: errors have to point where Trino points (an operator, the first unfit operand, a clause), and the
grammar has to refuse exactly what Trino refuses, so the reader that checks the grammar also makes the tree.
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
    """Base of the tree: ``span`` is all of the node's text."""

    span: Span

    @property
    def error_span(self) -> Span:
        """Where an error about this node points; most nodes begin there."""
        return self.span


def walk(node: object) -> Iterator[Node]:
    """Yield a node and all nodes within it, those of queries left out."""
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
    """A type as written, in CAST or in a column definition."""

    text: str


@dataclass(frozen=True)
class Name(Expression):
    """``a``, ``t.a``, ``s.t.a``, ``a.field``: which part is what is decided when the name is resolved."""

    parts: tuple[Identifier, ...]


@dataclass(frozen=True)
class Dereference(Expression):
    """A field of a value that is not a plain name."""

    base: Expression
    field: Identifier


@dataclass(frozen=True)
class Literal(Expression):
    """A literal; ``kind`` is null, boolean, string, binary, integer, decimal or double, ``value`` its text without quotes."""

    kind: str
    value: str


@dataclass(frozen=True)
class Literals(Expression):
    """A long run of literals, or of rows of literals, within VALUES or IN: there is no node for each of them."""

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
        """The operator's place."""
        return self.operator_span


@dataclass(frozen=True)
class Step(Node):
    """An operator of a chain and what stands behind it; ``span`` reaches from the chain's begin, errors point at the operator."""

    operator: str
    operand: Expression
    operator_span: Span

    @property
    def error_span(self) -> Span:
        """The operator's place."""
        return self.operator_span


@dataclass(frozen=True)
class Chain(Expression):
    """A long run of operators that bind alike, from left to right: ``a + b - c``, ``a * b``, ``a || b``."""

    first: Expression
    steps: tuple[Step, ...]


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
        """The place of the predicate's first word."""
        return self.word


@dataclass(frozen=True)
class Between(_Predicate):
    """``x [NOT] BETWEEN low AND high``."""

    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True)
class InList(_Predicate):
    """``x [NOT] IN (a, b)``; an item may stand for a run of `Literals`."""

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
    """An item of ORDER BY; Trino sorts NULL last unless told otherwise."""

    value: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class FrameBound(Node):
    """``UNBOUNDED PRECEDING``, ``CURRENT ROW``, ``1 FOLLOWING``.

    Args:
        side: PRECEDING, FOLLOWING, or ROW of the current row.
        offset: how far away it is; None of UNBOUNDED and of the current row.
    """

    side: str
    offset: Expression | None = None


@dataclass(frozen=True)
class Frame(Node):
    """``ROWS BETWEEN low AND high``; without an end it ends at the current row. ``unit`` is ROWS, RANGE or GROUPS."""

    unit: str
    low: FrameBound
    high: FrameBound | None


@dataclass(frozen=True)
class Window(Node):
    """What stands behind OVER, and in WINDOW; ``name`` is that of the window that it is made of."""

    partition_by: tuple[Expression, ...]
    order_by: tuple[SortItem, ...]
    frame: Frame | None
    name: Identifier | None = None


@dataclass(frozen=True)
class Measure(Expression):
    """``name OVER (...)``: what MATCH_RECOGNIZE in a window counts under a name."""

    name: Identifier
    window: Window


@dataclass(frozen=True)
class Call(Expression):
    """A function call, special forms such as COALESCE and IF included."""

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
        """The call's begin, or the operator that stands for it."""
        return self.operator_span or self.span


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
    """Both forms of CASE; ``operand`` is None in the searched one."""

    operand: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    default: Expression | None


@dataclass(frozen=True)
class RowConstructor(Expression):
    """``ROW(a, b)`` or ``(a, b)``."""

    items: tuple[Expression, ...]


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
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAY_OF_MONTH", "DAY_OF_WEEK", "DOW", "DAY_OF_YEAR", "DOY", "YEAR_OF_WEEK"),
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
    """``CURRENT_DATE`` and its like, a word that is a value; ``CURRENT_TIMESTAMP(6)`` has a precision."""

    word: str
    precision: int | None = None


@dataclass(frozen=True)
class Parameter(Expression):
    """``?``."""


@dataclass(frozen=True)
class Unsupported(Expression):
    """A form that Trino has and this engine does not; ``what`` names it in the refusal."""

    what: str


# -- relations and queries --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relation(Node):
    """Base of what stands in FROM and USING."""


@dataclass(frozen=True)
class QueryPeriod(Node):
    """``FOR VERSION AS OF value`` or ``FOR TIMESTAMP AS OF value``: a table as it was.

    Args:
        kind: ``VERSION`` or ``TIMESTAMP``.
        end: which version, or which moment.
    """

    kind: str
    end: Expression

    @property
    def words(self) -> str:
        """What it begins with."""
        return f"FOR {self.kind} AS OF"


@dataclass(frozen=True)
class Table(Relation):
    """A table by name, and as of when; as it is now without ``period``."""

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
    """``DESCRIPTOR(a, b)`` as an argument of a table function; ``typed`` tells whether a column has a type."""

    columns: tuple[Identifier, ...]
    typed: bool


@dataclass(frozen=True)
class TableFunction(Relation):
    """``TABLE(name(a, parameter => b))``: each argument with the parameter it is for, None where it goes by position."""

    name: TableName
    arguments: tuple[tuple[Identifier | None, Expression], ...]


@dataclass(frozen=True)
class Join(Relation):
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
    """Base of what a query can be without WITH and ORDER BY."""


@dataclass(frozen=True)
class GroupingSets:
    """What ROLLUP, CUBE and GROUPING SETS make of the expressions of a GROUP BY.

    Args:
        sets: the sets, each the places of its expressions.
        columns: the places of those expressions that must be columns.
        distinct: each set counts once.
    """

    sets: tuple[tuple[int, ...], ...]
    columns: frozenset[int]
    distinct: bool = False


@dataclass(frozen=True)
class AutoKeys(Expression):
    """``AUTO`` among the keys of GROUP BY: all columns of the SELECT list that are keys."""


@dataclass(frozen=True)
class Select(QueryBody):
    """One SELECT; ``windows`` are those of its WINDOW clause, ``grouping`` is None where GROUP BY has expressions alone."""

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
    """``VALUES a, (b, c)``; a row may stand for a run of `Literals`."""

    rows: tuple[Expression, ...]


@dataclass(frozen=True)
class TableBody(QueryBody):
    """``TABLE t``."""

    name: TableName


@dataclass(frozen=True)
class SetOperation(QueryBody):
    """UNION, INTERSECT, EXCEPT; errors point at the word."""

    operator: str
    distinct: bool
    left: QueryBody
    right: QueryBody
    word: Span


@dataclass(frozen=True)
class NamedQuery(Node):
    """An entry of WITH."""

    name: Identifier
    columns: tuple[Identifier, ...]
    query: QueryNode


@dataclass(frozen=True)
class FunctionDefinition(Node):
    """``FUNCTION name(parameters) RETURNS type RETURN body``; where it is strict it gives NULL for a NULL. ``returns_span`` is the place of RETURNS."""

    name: Identifier
    parameters: tuple[tuple[Identifier, TypeName], ...]
    returns: TypeName
    returns_span: Span
    body: Expression
    strict: bool
    deterministic: bool


@dataclass(frozen=True)
class QueryNode(QueryBody):
    """A whole query; also a body where it stands in parentheses.

    ``fetch`` is the place of FETCH, which WITH TIES gives all rows like the last; ``functions`` are those that a statement brings along.
    """

    named: tuple[NamedQuery, ...]
    body: QueryBody
    order_by: tuple[SortItem, ...]
    offset: int | None
    limit: int | None
    recursive: bool = False
    fetch: Span | None = None
    ties: bool = False
    functions: tuple[FunctionDefinition, ...] = ()
