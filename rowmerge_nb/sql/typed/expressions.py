"""The typed tree of expressions, which is independent of engines.

Its meaning is decided where the tree is made. Printers only keep it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.types import BOOLEAN, Type
from rowmerge_nb.sql.typed.type_rules import entries_type, has_map

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.sql.typed.queries import Query


@dataclass(frozen=True)
class Origin:
    """Where an expression was written. Errors at run time find it by its number."""

    number: int
    span: Span
    words: str = ""


@dataclass(frozen=True)
class Typed:
    """Base of the tree.

    ``origin`` is set for whole expressions of a statement, and ignored in comparisons.
    """

    type: Type
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Column(Typed):
    """A column by its symbol; ``outer`` if it belongs to a surrounding query."""

    symbol: str
    outer: bool = False


@dataclass(frozen=True)
class Constant(Typed):
    """A constant; ``value`` is None for NULL, otherwise the text of the type's literal."""

    value: str | None


TRUE: Final = Constant(BOOLEAN, "true")


@dataclass(frozen=True)
class Parameter(Constant):
    """A ``?`` without a value, typed as NULL; ``place`` is its position in the text."""

    place: int


SO_FAR = "$so_far"
"""The variable by which a step of a chain speaks of the value of all that stands before it."""


@dataclass(frozen=True)
class Apply(Typed):
    """An operator or function over arguments; ``detail`` is anything else, such as a field's index.

    ``"chain"`` is a long run of operators as a list: each argument after the first computes the
    next value from the variable `SO_FAR`. Plans add ``"fail"`` (an error; the detail is code and
    message), ``"hash"`` (the number of a row's writer) and ``"renamed"`` (rows whose fields were
    named by position).
    """

    name: str
    arguments: tuple[Typed, ...]
    detail: Any = None


@dataclass(frozen=True)
class NamedOperation:
    """The detail of an `Apply` named ``"written"``: an operation that printers know by name; equal
    ``key`` means equal meaning.
    """

    name: str
    key: Any


@dataclass(frozen=True)
class Variable(Typed):
    """A lambda's parameter, or the value so far within a chain."""

    name: str


@dataclass(frozen=True)
class Function(Typed):
    parameters: tuple[str, ...]
    body: Typed


@dataclass(frozen=True)
class Sort:
    value: Typed
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Aggregate(Typed):
    name: str
    arguments: tuple[Typed, ...]
    distinct: bool = False
    filter: Typed | None = None
    order_by: tuple[Sort, ...] = ()


@dataclass(frozen=True)
class Frame:
    """The frame of a window function.

    Args:
        low: PRECEDING, FOLLOWING or ROW, and the offset; None is unbounded.
    """

    unit: str
    low: tuple[str, Typed | None]
    high: tuple[str, Typed | None]


@dataclass(frozen=True)
class Windowed(Typed):
    function: Typed
    partition_by: tuple[Typed, ...]
    order_by: tuple[Sort, ...]
    frame: Frame | None
    ignore_nulls: bool = False


@dataclass(frozen=True)
class Reads:
    """What a query reads.

    Args:
        views: the views of its tables, once per reference.
        row_factor: the product of the numbers of rows that it writes and computes.

    >>> Reads(("a",)) + Reads(("a", "b"), 3)
    Reads(views=('a', 'a', 'b'), row_factor=3, generates=False)
    """

    views: tuple[str, ...] = ()
    row_factor: int = 1
    generates: bool = False

    def __add__(self, other: Reads) -> Reads:
        return Reads(
            (*self.views, *other.views),
            self.row_factor * other.row_factor,
            self.generates or other.generates,
        )


NOTHING: Final = Reads()
"""What an expression without a query reads."""


@dataclass(frozen=True)
class Subquery(Typed):
    """A query as a value; `rowmerge_nb.sql.typed.readings.subquery` builds it.

    Args:
        value: the value that IN looks for. The query's column is cast to its type.
        outer: the columns of surrounding queries that it reads.
    """

    kind: str
    query: Query
    value: Typed | None = None
    outer: tuple[Column, ...] = ()
    deterministic: bool = True
    aggregates: bool = False
    reads: Reads = field(default=NOTHING, kw_only=True)
    origins: range = field(default=range(0), compare=False, repr=False, kw_only=True)


def chain_of(sql_type: Type, arguments: Sequence[Typed]) -> Typed:
    """Return the chain of a first value and its steps; concatenations alone become one."""
    first, *steps = arguments
    if not steps:
        return first
    operands = [
        step.arguments for step in steps if isinstance(step, Apply) and step.name == "concat"
    ]
    if len(operands) == len(steps) and all(isinstance(left, Variable) for left, _ in operands):
        return Apply(sql_type, "concat", (first, *(right for _, right in operands)))
    return Apply(sql_type, "chain", tuple(arguments))


def children(node: Typed) -> tuple[Typed, ...]:
    if isinstance(node, Apply):
        return node.arguments
    if isinstance(node, Function):
        return (node.body,)
    if isinstance(node, Subquery):
        return (*node.outer, *((node.value,) if node.value else ()))
    if isinstance(node, Aggregate):
        return (
            *node.arguments,
            *((node.filter,) if node.filter else ()),
            *(item.value for item in node.order_by),
        )
    if isinstance(node, Windowed):
        return (node.function, *node.partition_by, *(item.value for item in node.order_by))
    return ()


def walk(node: Typed) -> Iterator[Typed]:
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(children(part)))


def outside_windows(node: Typed) -> list[Typed]:
    """Return all parts of an expression except window functions themselves, whose arguments and
    keys are included.
    """
    if isinstance(node, Windowed):
        inner = (
            children(node.function) + node.partition_by + tuple(key.value for key in node.order_by)
        )
        return [part for child in inner for part in outside_windows(child)]
    return [node, *(part for child in children(node) for part in outside_windows(child))]


def is_aggregated(node: Typed) -> bool:
    return any(isinstance(part, Aggregate) for part in outside_windows(node))


def references(node: Typed) -> frozenset[str]:
    """Return the symbols of an expression, also within subqueries."""
    return frozenset(part.symbol for part in walk(node) if isinstance(part, Column))


def has_subquery(node: Typed) -> bool:
    return any(isinstance(part, Subquery) for part in walk(node))


def reads(node: Typed) -> Reads:
    return sum((part.reads for part in walk(node) if isinstance(part, Subquery)), NOTHING)


def as_entries(value: Typed) -> Typed:
    """Return a value with arrays of sorted entries in place of maps, which Spark cannot order or
    group.
    """
    return Apply(entries_type(value.type), "as entries", (value,)) if has_map(value.type) else value


def as_maps(value: Typed, sql_type: Type) -> Typed:
    """Undo `as_entries`; ``sql_type`` is the original type."""
    return Apply(sql_type, "as maps", (value,)) if has_map(sql_type) else value


def reflected_function(node: Typed) -> str | None:
    """Return the name of a Java function in an expression, or None.

    Spark calls it by reflection and takes it for non-deterministic.
    """
    calls = (
        part.detail for part in walk(node) if isinstance(part, Apply) and part.name == "function"
    )
    return next((function.name for function in calls if function.reflected), None)


def reflected_parts(node: Typed, symbols: frozenset[str]) -> list[Typed]:
    """Return the largest parts that call Java functions and read only certain columns."""
    if reflected_function(node) is None or isinstance(node, Function):
        return []
    if references(node) <= symbols:
        return [node]
    return [part for child in children(node) for part in reflected_parts(child, symbols)]


def is_opaque(node: Typed) -> bool:
    """Return whether an expression calls a function that Spark takes for non-deterministic, rightly
    or not.
    """
    return any(
        isinstance(part, Apply) and part.name == "function" and part.detail.opaque
        for part in walk(node)
    )


def replaced(node: Typed, pairs: Sequence[tuple[Typed, Typed]]) -> Typed:
    """Return an expression with its parts that equal the first of a pair replaced by the second."""
    replacement = next((new for old, new in pairs if old == node), None)
    if replacement is not None:
        return replacement

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
        condition = None if node.filter is None else change(node.filter)
        return replace(
            node,
            arguments=tuple(map(change, node.arguments)),
            filter=condition,
            order_by=changed(node.order_by),
        )
    if isinstance(node, Windowed):
        partition = tuple(map(change, node.partition_by))
        return replace(
            node,
            function=change(node.function),
            partition_by=partition,
            order_by=changed(node.order_by),
        )
    return node


def case_text(texts: list[str]) -> str:
    """Write CASE with the texts of its conditions and values, and of ELSE."""
    default = f" ELSE {texts.pop()}" if len(texts) % 2 else ""
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)}{default} END"


def text_literal(value: str) -> str:
    r"""Return a string literal of Spark SQL, with backslash escapes.

    >>> text_literal("it's a \\")
    "'it\\'s a \\\\'"
    """
    # Spark would put a setting's value in the place of ${name}, inside of a literal too.
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") + "'"


_VOLATILE = frozenset({"any_value", "arbitrary", "array_agg", "row_number"})


def is_constant(node: Typed) -> bool:
    """Return whether a value is independent of rows."""
    varying = (Column, Variable, Subquery, Aggregate, Windowed)
    return not any(isinstance(part, varying) for part in walk(node)) and is_deterministic(node)


def constant_last(node: Apply) -> Apply:
    """Return a sum or product with its constant last, as Trino's messages have it."""
    left, right = node.arguments
    turned = node.detail in {"+", "*"} and is_constant(left) and not is_constant(right)
    return replace(node, arguments=(right, left)) if turned else node


def is_null(node: Typed) -> bool:
    """Return whether a value is NULL, below any casts."""
    while isinstance(node, Apply) and node.name == "cast":
        (node,) = node.arguments
    return isinstance(node, Constant) and node.value is None


def is_deterministic(node: Typed) -> bool:
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
