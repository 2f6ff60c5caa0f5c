"""What ON demands, in parts: the keys, whose values are computed side by side, and the other conditions, asked of pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.spark.page_lowering import page_expression
from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator, PageProgram
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.typed.clocks import clocks_of, instants_of
from rowmerge_nb.sql.typed.domains import conjuncts
from rowmerge_nb.sql.typed.expressions import Apply, Column, Typed, has_subquery, is_deterministic, references
from rowmerge_nb.sql.typed.type_rules import is_float, is_zoned
from rowmerge_nb.sql.typed.zones import canonical_zone, session_zone
from rowmerge_nb.trace.near import NearTerm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.analysis import ConditionTerm, MergeAnalysis

TEXT: Final = frozenset({"varchar", "char"})
MOMENT: Final = "timestamp with time zone"
_PLAIN: Final = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint", "decimal", "varchar", "varbinary", "date", "time", "timestamp"}
)
"""Types whose values are equal just when Arrow has the same for them."""


class UnreadableError(Exception):
    """The keys of a statement cannot be looked at; the message is a sentence."""


@dataclass(frozen=True)
class Key:
    """An equality that ON demands.

    Args:
        target: the value of the target's row, and ``source`` that of the source's; both of the same type.
        place: where it is among the terms.
    """

    target: Typed
    source: Typed
    place: int

    @property
    def type(self) -> Type:
        """The type in which both are compared."""
        return self.target.type


@dataclass(frozen=True)
class Condition:
    """Anything else that ON demands, and where it is among the terms."""

    tree: Typed
    place: int


@dataclass(frozen=True)
class On:
    """An ON condition in parts, all of which must be true.

    Args:
        terms: the parts in their order.
        keys: those that are equalities of values that can be compared here.
        conditions: the others.
        uncompared: the type of an equality that is none of the keys, for a sentence; ``""`` if there is none.
    """

    terms: tuple[NearTerm, ...]
    keys: tuple[Key, ...]
    conditions: tuple[Condition, ...]
    uncompared: str = ""

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of the columns that ON reads."""
        trees = [*(side for key in self.keys for side in (key.target, key.source)), *(one.tree for one in self.conditions)]
        return frozenset().union(*map(references, trees))


def on_of(analysis: MergeAnalysis) -> On:
    """Take an ON condition apart."""
    terms: list[NearTerm] = []
    keys: list[Key] = []
    conditions: list[Condition] = []
    uncompared = ""
    for tree, text in _parts(analysis):
        pair = next((pair for pair in analysis.equalities if _demands(tree, pair)), None)
        place = len(terms)
        if pair is not None and _compared(pair[0].type):
            keys.append(Key(*pair, place))
            terms.append(NearTerm(text, padded=_padded(*pair)))
        else:
            uncompared = uncompared or (str(pair[0].type) if pair is not None else _floats(tree, analysis))
            conditions.append(Condition(tree, place))
            terms.append(NearTerm(text, key=False))
    return On(tuple(terms), tuple(keys), tuple(conditions), uncompared)


def _floats(tree: Typed, analysis: MergeAnalysis) -> str:
    """Return the type of an equality of floating-point numbers, one of each side, which the plan does not take for a key; ``""`` of others."""
    if not (isinstance(tree, Apply) and tree.name == "=" and is_float(tree.arguments[0].type)):
        return ""
    target, source = ({field.symbol for field in side} for side in (analysis.target_fields, analysis.source.fields))
    reads = [references(side) for side in tree.arguments]
    crossed = any(one & target and other & source for one, other in (reads, reads[::-1]))
    return str(tree.arguments[0].type) if crossed else ""


def _parts(analysis: MergeAnalysis) -> Iterator[tuple[Typed, str]]:
    """Yield the parts of ON with their texts; of one with many parts each has the text of the whole."""
    condition = analysis.on.condition
    if condition is None:
        yield from ((tree, analysis.on.text) for tree in conjuncts(analysis.on.tree))
        return
    for term in _terms(condition):
        yield from ((tree, term.text) for tree in conjuncts(term.tree))


def _terms(term: ConditionTerm) -> Iterator[ConditionTerm]:
    if term.operator == "AND":
        for part in term.terms:
            yield from _terms(part)
    else:
        yield term


def _demands(tree: Typed, pair: tuple[Typed, Typed]) -> bool:
    return isinstance(tree, Apply) and tree.name == "=" and tree.arguments in (pair, pair[::-1])


def _compared(kind: Type) -> bool:
    return kind.base in _PLAIN or kind.base in TEXT or kind.base == MOMENT


def _padded(target: Typed, source: Typed) -> str:
    """Return the side that is padded: a char that is compared as varchar, whose blanks count."""
    if target.type.base != "varchar":
        return ""
    sides = {"target": target, "source": source}
    padded = [side for side, tree in sides.items() if (column := _column(tree)) is not None and column.type.base == "char"]
    return padded[0] if len(padded) == 1 else ""


def _column(tree: Typed) -> Column | None:
    """Return the column that a side is, apart from casts."""
    while isinstance(tree, Apply) and tree.name == "cast":
        tree = tree.arguments[0]
    return tree if isinstance(tree, Column) and not tree.outer else None


# -- values of keys -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyValues:
    """The values of one key for the rows of one side.

    Args:
        values: those that are compared; of char without the blanks that pad them, of moments the instants.
        clocks: of moments what clocks show in the value's own time zone; None of other types.
        shown: the values as readers are to see them.
    """

    values: pa.Array
    clocks: pa.Array | None
    shown: pa.Array


def key_values(tree: Typed, rows: pa.RecordBatch) -> KeyValues:
    """Compute one side of a key.

    Args:
        tree: the side.
        rows: the rows, their columns under their symbols.

    Raises:
        UnreadableError: pages cannot be asked for it.
        RowMergeError: it cannot be computed for a row.
    """
    kind = tree.type
    if kind.base == MOMENT:
        return _moments(tree, rows)
    if kind.base == "char":
        return _padded_text(tree, rows)
    if kind.base == "varchar" and isinstance(tree, Apply) and tree.name == "cast" and isinstance(tree.arguments[0], Column):
        inner = tree.arguments[0]
        if inner.type.base == "char" and (not kind.parameters or kind.parameters[0] >= inner.type.parameters[0]):
            width = inner.type.parameters[0]
            padded = pc.utf8_rpad(rows.column(inner.symbol), width=width, padding=" ")
            return KeyValues(padded, None, padded)
    values = _computed(tree, rows)
    return KeyValues(values, None, values)


def _computed(tree: Typed, rows: pa.RecordBatch) -> pa.Array:
    if isinstance(tree, Column):
        return rows.column(tree.symbol)
    [values] = PageEvaluator(PageProgram()).values_of([_program(tree, tree.type.arrow, "a key")], rows)
    return values


def _program(tree: Typed, kind: pa.DataType, what: str) -> AssignedColumn:
    printer = PagePrinter()
    try:
        printed = page_expression(tree, printer, condition=False)
    except UnprintableError as error:
        raise UnreadableError(
            f"The nearest keys are not known: {what} cannot be computed on pages, which cannot be asked for {error}"
        ) from error
    if printer.subqueries or has_subquery(tree) or not is_deterministic(tree):
        raise UnreadableError(f"The nearest keys are not known: {what} has a subquery, or another value each time")
    return AssignedColumn("value", kind, replace(printed, span=None))


def _padded_text(tree: Typed, rows: pa.RecordBatch) -> KeyValues:
    """A char is compared without the blanks at its end, and a longer text becomes one by being cut."""
    column = tree.arguments[0] if isinstance(tree, Apply) and tree.name == "cast" else tree
    if not isinstance(column, Column) or column.type.base not in TEXT:
        raise UnreadableError(f"The nearest keys are not known: a key of type {tree.type} is computed")
    shown = rows.column(column.symbol)
    values = pc.utf8_rtrim(pc.utf8_slice_codeunits(shown, 0, tree.type.parameters[0]), characters=" ")
    return KeyValues(values, None, values)


def _moments(tree: Typed, rows: pa.RecordBatch) -> KeyValues:
    """A moment's instant decides; its clock is what people see."""
    column = tree.arguments[0] if isinstance(tree, Apply) and tree.name == "cast" else tree
    if not isinstance(column, Column):
        raise UnreadableError(f"The nearest keys are not known: a key of type {tree.type} is computed")
    values = rows.column(column.symbol)
    utc = pa.timestamp("us", tz="UTC")
    if column.type.base == "timestamp":
        clocks = values.cast(pa.timestamp("us"))
        return KeyValues(instants_of(clocks, session_zone()), clocks, values)
    if column.type.base != MOMENT:
        raise UnreadableError(f"The nearest keys are not known: a key is a {column.type} as a {tree.type}")
    if not is_zoned(column.type):
        return KeyValues(values.cast(utc), values.cast(pa.timestamp("us")), values)
    instants, zones = (pc.struct_field(values, index) for index in (0, 1))
    return KeyValues(instants.cast(utc), _clocks(instants.cast(utc), zones), values)


def _clocks(instants: pa.Array, zones: pa.Array) -> pa.Array:
    """Return what clocks show, zone by zone."""
    clocks = pa.nulls(len(instants), pa.timestamp("us"))
    for zone in pc.unique(zones).to_pylist():
        if zone is not None:
            there = pc.fill_null(pc.equal(zones, zone), fill_value=False)
            clocks = pc.replace_with_mask(clocks, there, clocks_of(instants.filter(there), canonical_zone(zone) or zone))
    return clocks


# -- conditions ---------------------------------------------------------------------------------------------------------


def answers_of(conditions: Sequence[Condition], pairs: pa.RecordBatch) -> list[pa.Array]:
    """Compute the other conditions of ON for pairs of rows.

    Args:
        conditions: the conditions.
        pairs: both rows of each pair, the columns under their symbols.

    Raises:
        UnreadableError: pages cannot be asked for one of them.
        RowMergeError: one cannot be computed for a pair.
    """
    programs = [_program(one.tree, pa.bool_(), "ON") for one in conditions]
    return PageEvaluator(PageProgram()).values_of(programs, pairs)
