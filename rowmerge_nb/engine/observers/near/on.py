"""The parts of ON: keys, whose values are computed per side, and other conditions, computed for
pairs of rows.
"""

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
from rowmerge_nb.sql.typed.expressions import (
    Apply,
    Column,
    Typed,
    has_subquery,
    is_deterministic,
    references,
)
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
    {
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "decimal",
        "varchar",
        "varbinary",
        "date",
        "time",
        "timestamp",
    }
)
"""Types whose SQL equality is that of Arrow values."""


class UnreadableError(Exception):
    """The keys of a statement cannot be examined; the message is a sentence."""


@dataclass(frozen=True)
class Key:
    target: Typed
    source: Typed
    position: int

    @property
    def type(self) -> Type:
        return self.target.type


@dataclass(frozen=True)
class Condition:
    """Any other part of ON."""

    tree: Typed
    position: int


@dataclass(frozen=True)
class On:
    """The conjuncts of an ON condition.

    Args:
        uncompared: the type of an equality that is not among the keys, for a message, or ``""``.
    """

    terms: tuple[NearTerm, ...]
    keys: tuple[Key, ...]
    conditions: tuple[Condition, ...]
    uncompared: str = ""

    @property
    def symbols(self) -> frozenset[str]:
        trees = [
            *(side for key in self.keys for side in (key.target, key.source)),
            *(one.tree for one in self.conditions),
        ]
        return frozenset().union(*map(references, trees))


def on_of(analysis: MergeAnalysis) -> On:
    terms: list[NearTerm] = []
    keys: list[Key] = []
    conditions: list[Condition] = []
    uncompared = ""
    for tree, text in _parts(analysis):
        pair = next((pair for pair in analysis.equalities if _demands(tree, pair)), None)
        index = len(terms)
        if pair is not None and _compared(pair[0].type):
            keys.append(Key(*pair, index))
            terms.append(NearTerm(text))
        else:
            uncompared = uncompared or (
                str(pair[0].type) if pair is not None else _floats(tree, analysis)
            )
            conditions.append(Condition(tree, index))
            terms.append(NearTerm(text, key=False))
    return On(tuple(terms), tuple(keys), tuple(conditions), uncompared)


def _floats(tree: Typed, analysis: MergeAnalysis) -> str:
    """Return the type of an equality of floating-point columns of both sides, which is not a key of
    the plan; otherwise ``""``.
    """
    if not (isinstance(tree, Apply) and tree.name == "=" and is_float(tree.arguments[0].type)):
        return ""
    target, source = (
        {field.symbol for field in side}
        for side in (analysis.target_fields, analysis.source.fields)
    )
    reads = [references(side) for side in tree.arguments]
    crossed = any(one & target and other & source for one, other in (reads, reads[::-1]))
    return str(tree.arguments[0].type) if crossed else ""


def _parts(analysis: MergeAnalysis) -> Iterator[tuple[Typed, str]]:
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


def _compared(sql_type: Type) -> bool:
    return sql_type.base in _PLAIN or sql_type.base in TEXT or sql_type.base == MOMENT


# -- values of keys


@dataclass(frozen=True)
class KeyValues:
    """The values of one key for the rows of one side.

    Args:
        values: the compared values: char without padding, timestamps with zone as instants.
        clocks: local times of timestamps with zone; None for other types.
    """

    values: pa.Array
    clocks: pa.Array | None
    display_values: pa.Array


def key_values(tree: Typed, rows: pa.RecordBatch) -> KeyValues:
    sql_type = tree.type
    if sql_type.base == MOMENT:
        return _moments(tree, rows)
    if sql_type.base == "char":
        return _padded_text(tree, rows)
    values = _computed(tree, rows)
    return KeyValues(values, None, values)


def _computed(tree: Typed, rows: pa.RecordBatch) -> pa.Array:
    if isinstance(tree, Column):
        return rows.column(tree.symbol)
    [values] = PageEvaluator(PageProgram()).values_of(
        [_program(tree, tree.type.arrow, "a key")], rows
    )
    return values


def _program(tree: Typed, arrow_type: pa.DataType, what: str) -> AssignedColumn:
    printer = PagePrinter()
    try:
        printed = page_expression(tree, printer, condition=False)
    except UnprintableError as error:
        raise UnreadableError(
            f"The nearest keys are unknown: {what} cannot be computed on pages, which"
            f" do not support {error}"
        ) from error
    if printer.subqueries or has_subquery(tree) or not is_deterministic(tree):
        raise UnreadableError(
            f"The nearest keys are unknown: {what} has a subquery, or a different"
            " value on each evaluation"
        )
    return AssignedColumn("value", arrow_type, replace(printed, span=None))


def _padded_text(tree: Typed, rows: pa.RecordBatch) -> KeyValues:
    """Compute a char key: trailing blanks are ignored, and longer texts are truncated."""
    column = tree.arguments[0] if isinstance(tree, Apply) and tree.name == "cast" else tree
    if not isinstance(column, Column) or column.type.base not in TEXT:
        raise UnreadableError(
            f"The nearest keys are unknown: a key of type {tree.type} is computed"
        )
    display_values = rows.column(column.symbol)
    values = pc.utf8_rtrim(
        pc.utf8_slice_codeunits(display_values, 0, tree.type.parameters[0]), characters=" "
    )
    return KeyValues(values, None, values)


def _moments(tree: Typed, rows: pa.RecordBatch) -> KeyValues:
    """Compute a key of timestamps with zone: instants are compared, local times displayed."""
    column = tree.arguments[0] if isinstance(tree, Apply) and tree.name == "cast" else tree
    if not isinstance(column, Column):
        raise UnreadableError(
            f"The nearest keys are unknown: a key of type {tree.type} is computed"
        )
    values = rows.column(column.symbol)
    utc = pa.timestamp("us", tz="UTC")
    if column.type.base == "timestamp":
        clocks = values.cast(pa.timestamp("us"))
        return KeyValues(instants_of(clocks, session_zone()), clocks, values)
    if column.type.base != MOMENT:
        raise UnreadableError(
            f"The nearest keys are unknown: a key is a {column.type} as a {tree.type}"
        )
    if not is_zoned(column.type):
        return KeyValues(values.cast(utc), values.cast(pa.timestamp("us")), values)
    instants, zones = (pc.struct_field(values, index) for index in (0, 1))
    return KeyValues(instants.cast(utc), _clocks(instants.cast(utc), zones), values)


def _clocks(instants: pa.Array, zones: pa.Array) -> pa.Array:
    clocks = pa.nulls(len(instants), pa.timestamp("us"))
    for zone in pc.unique(zones).to_pylist():
        if zone is not None:
            in_zone = pc.fill_null(pc.equal(zones, zone), fill_value=False)
            clocks = pc.replace_with_mask(
                clocks, in_zone, clocks_of(instants.filter(in_zone), canonical_zone(zone) or zone)
            )
    return clocks


# -- conditions


def answers_of(conditions: Sequence[Condition], pairs: pa.RecordBatch) -> list[pa.Array]:
    programs = [_program(one.tree, pa.bool_(), "ON") for one in conditions]
    return PageEvaluator(PageProgram()).values_of(programs, pairs)
