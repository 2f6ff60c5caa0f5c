"""The typed tree of expressions: every node has its type, and nothing in it is text of one engine.

Printers turn the tree into text: `rowmerge_nb.sql.spark.printer` for Spark SQL. What an expression means is decided where the
tree is made; a printer only has to keep that meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.types import Type
from rowmerge_nb.sql.typed.type_rules import entries_type, has_map

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.sql.typed.queries import Query


@dataclass(frozen=True)
class Origin:
    """Where an expression was written. What fails at run time is brought back to it by its number, which printers put into what they write.

    Args:
        number: the number of the expression within its statement.
        span: its place.
        words: what it is there, for people: ``in the ON condition``; ``""`` for an expression of a query.
    """

    number: int
    span: Span
    words: str = ""


@dataclass(frozen=True)
class Typed:
    """Base of the tree. Where expressions were written does not count when two of them are compared, as GROUP BY does.

    Args:
        type: the type of its value.
        origin: where it was written, if it is a whole expression of a statement and not a part of one.
    """

    type: Type
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Column(Typed):
    """A column by its symbol; ``outer`` if it belongs to a query around the one that it stands in."""

    symbol: str
    outer: bool = False


@dataclass(frozen=True)
class Constant(Typed):
    """A constant; ``value`` is None for NULL, otherwise plain text in the form that the type's literal has."""

    value: str | None


@dataclass(frozen=True)
class Parameter(Constant):
    """A ``?`` that has no value yet, as what it is while its type is asked for: NULL.

    Args:
        place: where it stands in the statement's text.
    """

    place: int


SO_FAR = "$so_far"
"""The variable by which a step of a chain speaks of the value of all that stands before it."""


@dataclass(frozen=True)
class Apply(Typed):
    """An operator or a function over arguments; ``detail`` is what is not an argument, such as a field's index.

    One named ``"chain"`` is a long run of operators, as a list: its first argument is the first value, each further one makes the next value
    out of the variable `SO_FAR`. What no statement writes, and plans need: ``"fail"`` is an error, its detail Trino's code and the message;
    ``"hash"`` is the number by which rows are sent to writers; ``"renamed"`` is a value whose rows had their fields by position.
    """

    name: str
    arguments: tuple[Typed, ...]
    detail: Any = None


@dataclass(frozen=True)
class Written:
    """An operation that has neither an operator nor a template: the detail of an `Apply` named ``"written"``. Printers know it by its name.

    Args:
        name: what it is.
        key: what it is beside its arguments: two of the same name and key mean the same.
    """

    name: str
    key: Any


@dataclass(frozen=True)
class Variable(Typed):
    """A lambda's parameter, or the value so far within a chain."""

    name: str


@dataclass(frozen=True)
class Function(Typed):
    """A lambda."""

    parameters: tuple[str, ...]
    body: Typed


@dataclass(frozen=True)
class Sort:
    """A key to sort by."""

    value: Typed
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Aggregate(Typed):
    """An aggregate function over the rows of a group."""

    name: str
    arguments: tuple[Typed, ...]
    distinct: bool = False
    filter: Typed | None = None
    order_by: tuple[Sort, ...] = ()


@dataclass(frozen=True)
class Frame:
    """The rows around a row that a function over a window looks at.

    Args:
        unit: ROWS, RANGE or GROUPS.
        low: where it begins: PRECEDING, FOLLOWING, or ROW for the current row, and how far away; None is without a bound.
        high: where it ends.
    """

    unit: str
    low: tuple[str, Typed | None]
    high: tuple[str, Typed | None]


@dataclass(frozen=True)
class Windowed(Typed):
    """A function over a window of rows."""

    function: Typed
    partition_by: tuple[Typed, ...]
    order_by: tuple[Sort, ...]
    frame: Frame | None
    ignore_nulls: bool = False


@dataclass(frozen=True)
class Reads:
    """What a query reads: what is to be known of it beside its text.

    Args:
        views: the names of the tables' views, each as often as the query reads it.
        written: the product of the numbers of rows that are written in it and computed.
        generates: it makes rows out of values.

    >>> Reads(("a",)) + Reads(("a", "b"), 3)
    Reads(views=('a', 'a', 'b'), written=3, generates=False)
    """

    views: tuple[str, ...] = ()
    written: int = 1
    generates: bool = False

    def __add__(self, other: Reads) -> Reads:
        """Return what a query reads that is made of two."""
        return Reads((*self.views, *other.views), self.written * other.written, self.generates or other.generates)


NOTHING: Final = Reads()
"""What an expression without a query reads."""


@dataclass(frozen=True)
class Subquery(Typed):
    """A query as a value; `rowmerge_nb.sql.typed.readings.subquery` builds it.

    Args:
        kind: ``"scalar"``, ``"exists"`` or ``"in"``.
        query: the query. If it has several columns, a scalar is a row of them.
        value: the value to look for, of kind ``"in"``. The query's one column is cast to its type.
        outer: the columns of queries around it that it reads.
        deterministic: it has the same rows each time.
        aggregates: it is an aggregation without groups, and so always one row.
        reads: what it reads.
        origins: the numbers of the expressions that were written in it.
    """

    kind: str
    query: Query
    value: Typed | None = None
    outer: tuple[Column, ...] = ()
    deterministic: bool = True
    aggregates: bool = False
    reads: Reads = field(default=NOTHING, kw_only=True)
    origins: range = field(default=range(0), compare=False, repr=False, kw_only=True)


def chain_of(kind: Type, arguments: Sequence[Typed]) -> Typed:
    """Return the chain of a first value and its steps; one of concatenations alone is a single concatenation.

    >>> a, kind = Column(Type("varchar"), "a"), Type("varchar")
    >>> step = Apply(kind, "concat", (Variable(kind, SO_FAR), a))
    >>> chain_of(kind, [a, step, step]) == Apply(kind, "concat", (a, a, a))
    True
    """
    first, *steps = arguments
    if not steps:
        return first
    operands = [step.arguments for step in steps if isinstance(step, Apply) and step.name == "concat"]
    if len(operands) == len(steps) and all(isinstance(left, Variable) for left, _ in operands):
        return Apply(kind, "concat", (first, *(right for _, right in operands)))
    return Apply(kind, "chain", tuple(arguments))


def children(node: Typed) -> tuple[Typed, ...]:
    """Return the expressions directly below a node."""
    if isinstance(node, Apply):
        return node.arguments
    if isinstance(node, Function):
        return (node.body,)
    if isinstance(node, Subquery):
        return (*node.outer, *((node.value,) if node.value else ()))
    if isinstance(node, Aggregate):
        return (*node.arguments, *((node.filter,) if node.filter else ()), *(item.value for item in node.order_by))
    if isinstance(node, Windowed):
        return (node.function, *node.partition_by, *(item.value for item in node.order_by))
    return ()


def walk(node: Typed) -> Iterator[Typed]:
    """Yield the node and everything below it, outside in."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(children(found)))


def outside_windows(node: Typed) -> list[Typed]:
    """Return everything in an expression; of a function over a window its arguments and keys, but not the function itself."""
    if isinstance(node, Windowed):
        inner = children(node.function) + node.partition_by + tuple(key.value for key in node.order_by)
        return [part for child in inner for part in outside_windows(child)]
    return [node, *(part for child in children(node) for part in outside_windows(child))]


def is_aggregated(node: Typed) -> bool:
    """Return whether an expression has an aggregate over groups, beside those over windows."""
    return any(isinstance(part, Aggregate) for part in outside_windows(node))


def references(node: Typed) -> frozenset[str]:
    """Return the symbols that an expression reads, those its subqueries read from outside included.

    >>> sorted(references(Apply(Type("boolean"), "=", (Column(Type("date"), "a"), Column(Type("date"), "b")))))
    ['a', 'b']
    """
    return frozenset(part.symbol for part in walk(node) if isinstance(part, Column))


def has_subquery(node: Typed) -> bool:
    """Return whether a query is in an expression."""
    return any(isinstance(part, Subquery) for part in walk(node))


def reads(node: Typed) -> Reads:
    """Return what the queries in an expression read."""
    return sum((part.reads for part in walk(node) if isinstance(part, Subquery)), NOTHING)


def exchanged(node: Typed, parts: Sequence[Typed]) -> Typed:
    """Return an expression in which those of its parts that equal one of ``parts`` are that one, its origin included.

    >>> a = Column(Type("date"), "a")
    >>> exchanged(Apply(Type("date"), "coalesce", (a,)), [a]).arguments[0] is a
    True
    """
    return replaced(node, [(part, part) for part in parts])


def as_entries(value: Typed) -> Typed:
    """Return a value as it is grouped and told apart: with arrays of sorted entries in place of maps, of which Spark has no order.

    >>> a = Column(Type("date"), "a")
    >>> as_entries(a) is a
    True
    """
    return Apply(entries_type(value.type), "as entries", (value,)) if has_map(value.type) else value


def as_maps(value: Typed, kind: Type) -> Typed:
    """Return the value of a type that `as_entries` was given.

    >>> a = Column(Type("date"), "a")
    >>> as_maps(a, a.type) is a
    True
    """
    return Apply(kind, "as maps", (value,)) if has_map(kind) else value


def reflected_function(node: Typed) -> str | None:
    """Name a function of Java's that it calls, if any: Spark does so by reflection, and takes it for one that gives another value each time.

    >>> reflected_function(Column(Type("date"), "a")) is None
    True
    """
    calls = (part.detail for part in walk(node) if isinstance(part, Apply) and part.name == "function")
    return next((function.name for function in calls if function.reflected), None)


def reflected_parts(node: Typed, symbols: frozenset[str]) -> list[Typed]:
    """Return the largest parts of an expression that call functions of Java and read nothing but certain columns.

    Args:
        node: the expression.
        symbols: the columns.
    """
    if reflected_function(node) is None or isinstance(node, Function):
        return []
    if references(node) <= symbols:
        return [node]
    return [part for child in children(node) for part in reflected_parts(child, symbols)]


def is_opaque(node: Typed) -> bool:
    """Return whether it calls a function that Spark takes for one with another value each time, rightly or not.

    >>> is_opaque(Column(Type("date"), "a"))
    False
    """
    return any(isinstance(part, Apply) and part.name == "function" and part.detail.opaque for part in walk(node))


def replaced(node: Typed, pairs: Sequence[tuple[Typed, Typed]]) -> Typed:
    """Return an expression in which those of its parts that equal the first of a pair are the second.

    >>> a, b = Column(Type("date"), "a"), Column(Type("date"), "b")
    >>> replaced(Apply(Type("date"), "coalesce", (a,)), [(a, b)]).arguments[0] is b
    True
    """
    found = next((new for old, new in pairs if old == node), None)
    if found is not None:
        return found

    def change(part: Typed) -> Typed:
        return replaced(part, pairs)

    def changed(keys: tuple[Sort, ...]) -> tuple[Sort, ...]:
        return tuple(replace(key, value=change(key.value)) for key in keys)

    if isinstance(node, Apply):
        return replace(node, arguments=tuple(map(change, node.arguments)))
    if isinstance(node, Function):
        return replace(node, body=change(node.body))
    if isinstance(node, Subquery):
        return replace(node, value=None if node.value is None else change(node.value))
    if isinstance(node, Aggregate):
        kept = None if node.filter is None else change(node.filter)
        return replace(node, arguments=tuple(map(change, node.arguments)), filter=kept, order_by=changed(node.order_by))
    if isinstance(node, Windowed):
        partition = tuple(map(change, node.partition_by))
        return replace(node, function=change(node.function), partition_by=partition, order_by=changed(node.order_by))
    return node


def text_literal(value: str) -> str:
    r"""Write a string literal for Spark SQL, whose literals know backslash escapes.

    >>> text_literal("it's a \\")
    "'it\\'s a \\\\'"
    """
    # Spark would put a setting's value in the place of ${name}, inside of a literal too.
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") + "'"


_VOLATILE = frozenset({"any_value", "arbitrary", "array_agg", "row_number"})


def is_constant(node: Typed) -> bool:
    """Return whether it is the same whatever the row, so that it can be computed before there is one.

    >>> one = Constant(Type("integer"), "1")
    >>> is_constant(Apply(Type("integer"), "arithmetic", (one, one), "+")), is_constant(Column(Type("integer"), "a"))
    (True, False)
    """
    varying = (Column, Variable, Subquery, Aggregate, Windowed)
    return not any(isinstance(part, varying) for part in walk(node)) and is_deterministic(node)


def constant_last(node: Apply) -> Apply:
    """Return a sum or a product with its constant behind what varies, as Trino's optimizer writes it: so the errors of overflows say it.

    >>> one, a = Constant(Type("integer"), "1"), Column(Type("integer"), "a")
    >>> constant_last(Apply(Type("integer"), "arithmetic", (one, a), "+")).arguments == (a, one)
    True
    """
    left, right = node.arguments
    turned = node.detail in {"+", "*"} and is_constant(left) and not is_constant(right)
    return replace(node, arguments=(right, left)) if turned else node


def is_null(node: Typed) -> bool:
    """Return whether it is NULL, whatever it was cast to."""
    while isinstance(node, Apply) and node.name == "cast":
        (node,) = node.arguments
    return isinstance(node, Constant) and node.value is None


def may_exceed_integer(node: Typed) -> bool:
    """Can a bigint be beyond the range of integer? One that is made of a smaller type cannot.

    >>> may_exceed_integer(Apply(Type("bigint"), "cast", (Column(Type("smallint"), "a"),)))
    False
    """
    made_of = node.arguments[0] if isinstance(node, Apply) and node.name == "cast" else node
    return made_of.type.base not in {"tinyint", "smallint", "integer"}


def is_deterministic(node: Typed) -> bool:
    """Return whether the expression has the same value for the same row, however often it is evaluated.

    >>> is_deterministic(Column(Type("date"), "a"))
    True
    """
    for part in walk(node):
        if isinstance(part, Subquery) and not part.deterministic:
            return False
        if isinstance(part, Aggregate) and part.name in _VOLATILE:
            return False
        if (
            isinstance(part, Apply)
            and part.name in {"function", "written"}
            and (part.detail.name in _VOLATILE or not getattr(part.detail, "deterministic", True))
        ):
            return False
    return True
