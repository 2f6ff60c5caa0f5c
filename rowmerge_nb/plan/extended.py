"""What the extended dialect adds to the plan of a MERGE: the source's mark under a FULL join, and the rows of RETURNING."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan.nodes import Assignment, Project, Symbol
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import CASE_NUMBER, MERGE_ROW, PRESENT, PageLayout
from rowmerge_nb.spi.types import BOOLEAN, row_of
from rowmerge_nb.sql.typed.expressions import Subquery, quote, walk
from rowmerge_nb.sql.typed.types import parts_of, spark_type
from rowmerge_nb.trace.nodes import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.plan.nodes import PlanNode
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.analysis import ClauseAnalysis, Field, Returning, TypedExpression

__all__ = [
    "RETURNING",
    "SOURCE_MARK",
    "SOURCE_PRESENT",
    "has_subquery",
    "mark_source",
    "passed_for",
    "plan_returning",
    "returned_row",
    "returned_symbols",
    "which_rows",
]

SOURCE_PRESENT: Final = "source_present"
RETURNING: Final = "returning"
SOURCE_MARK: Final = Symbol(SOURCE_PRESENT, BOOLEAN)


def has_subquery(expression: TypedExpression) -> bool:
    """Tell whether an expression has a subquery."""
    return any(isinstance(part, Subquery) for part in walk(expression.tree))


# -- WHEN NOT MATCHED BY SOURCE -----------------------------------------------------------------------------------------


def mark_source(source: PlanNode, identity: str) -> Project:
    """Mark the source's rows, so that a target row without one can be told from a match with a row of NULLs."""
    assignment = Assignment(SOURCE_MARK, "true", "true")
    return Project(id=identity, outputs=(*source.outputs, SOURCE_MARK), source=source, assignments=(assignment,))


def which_rows(clause: ClauseAnalysis, join: JoinType) -> tuple[str, str]:
    """Say which joined rows a clause is about, as text and as Spark text.

    Args:
        clause: the clause.
        join: which rows without a partner the join keeps.
    """
    if clause.by_source:
        text = f"{SOURCE_PRESENT} IS NULL"
        return text, text
    if not clause.matched:
        text = f"{PRESENT} IS NULL"
        return text, text
    if join is JoinType.FULL:
        return f"{PRESENT} AND {SOURCE_PRESENT}", f"{PRESENT} IS NOT NULL AND {SOURCE_PRESENT} IS NOT NULL"
    return PRESENT, f"{PRESENT} IS NOT NULL"


# -- RETURNING ----------------------------------------------------------------------------------------------------------


def returned_symbols(returning: Returning) -> tuple[Symbol, ...]:
    """Give the columns that RETURNING gives."""
    return tuple(Symbol(column.name, column.expression.type) for column in returning.columns)


def passed_for(returning: Returning | None, joined: Sequence[Symbol], outputs: Sequence[Symbol]) -> tuple[Symbol, ...]:
    """Give the joined columns that RETURNING reads, so that they go along with the merge row; without those that do so anyway."""
    if returning is None:
        return ()
    read = _read(returning)
    # The old value of a deleted row is the joined column of the same place: the target's columns come first.
    for place, field in enumerate(returning.current):
        if field.symbol in read:
            read = read | {joined[place].name}
    return tuple(symbol for symbol in joined if symbol.name in read and symbol not in outputs)


def plan_returning(numbered: Project, returning: Returning, target: Sequence[Field], ids: Iterator[str]) -> Project:
    """Compute the row that RETURNING gives of every joined row for which a clause changes something; NULL of others.

    Below it, in the Project of the case number, become known what the row is after the change, and which action it was.

    Args:
        numbered: the Project that takes the case number out of the merge row.
        returning: what is returned.
        target: the target's columns, whose symbols hold the old values.
        ids: gives ids of nodes.
    """
    changed = tuple(_changed(returning, target))
    names = [symbol.name for symbol in numbered.outputs]
    # What stands behind the merge row and is none of the plan's own columns was passed on for RETURNING alone.
    behind = names.index(MERGE_ROW) + 1
    own = {SOURCE_PRESENT, CASE_NUMBER}
    kept = tuple(symbol for place, symbol in enumerate(numbered.outputs) if place < behind or symbol.name in own)
    known = Project(
        id=numbered.id,
        outputs=(*numbered.outputs, *(assignment.symbol for assignment in changed)),
        source=numbered.source,
        assignments=(*numbered.assignments, *changed),
    )
    symbol = Symbol(RETURNING, row_of((column.name, column.expression.type) for column in returning.columns))
    fields = ", ".join(f"'f{place}', {column.expression.spark}" for place, column in enumerate(returning.columns))
    row = Assignment(
        symbol,
        f"CASE WHEN {_field(PageLayout(len(target)).merge_row.operation)} > 0 THEN named_struct({fields}) END",
        f"row({', '.join(column.expression.text for column in returning.columns)})",
        subquery=any(has_subquery(column.expression) for column in returning.columns),
    )
    return Project(id=next(ids), outputs=(*kept, symbol), source=known, assignments=(row,))


def returned_row(plan: PlanNode) -> str | None:
    """Give the Spark text of the row that RETURNING gives; None if the plan has none."""
    here = getattr(plan, "assignments", ())
    found = next((assignment.spark for assignment in here if assignment.symbol.name == RETURNING), None)
    return found or next((text for source in plan.sources if (text := returned_row(source))), None)


def _read(returning: Returning) -> frozenset[str]:
    return frozenset(symbol for column in returning.columns for symbol in column.expression.references)


def _changed(returning: Returning, target: Sequence[Field]) -> Iterator[Assignment]:
    """Compute those of the symbols about the change that are read."""
    read, merge_row = _read(returning), PageLayout(len(target)).merge_row
    operation = _field(merge_row.operation)
    for place, (old, new, current) in enumerate(zip(target, returning.new, returning.current, strict=True)):
        if new.symbol in read:
            written = f"{int(Operation.INSERT)}, {int(Operation.UPDATE)}"
            spark = f"CASE WHEN {operation} IN ({written}) THEN {_value(place, new.type)} END"
            yield Assignment(Symbol(new.symbol, new.type), spark, f"new {new.name}")
        if current.symbol in read:
            value = _value(place, current.type)
            spark = f"CASE WHEN {operation} = {int(Operation.DELETE)} THEN {quote(old.symbol)} ELSE {value} END"
            yield Assignment(Symbol(current.symbol, current.type), spark, f"new {current.name}, or old if deleted")
    if returning.action.symbol in read:
        words = " ".join(f"WHEN {int(o)} THEN '{o.name}'" for o in (Operation.INSERT, Operation.DELETE, Operation.UPDATE))
        symbol = Symbol(returning.action.symbol, returning.action.type)
        yield Assignment(symbol, f"CASE {operation} {words} END", f"name of {MERGE_ROW}.operation")
    if returning.clause.symbol in read:
        symbol = Symbol(returning.clause.symbol, returning.clause.type)
        yield Assignment(symbol, f"{_field(merge_row.case_number)} + 1", f"{MERGE_ROW}.{CASE_NUMBER} + 1")


def _value(place: int, kind: Type) -> str:
    """A table column in the merge row; rows within it get the names of their fields back, which pages have by position."""
    nested = any(part.base == "row" for part in parts_of(kind))
    return f"CAST({_field(place)} AS {spark_type(kind)})" if nested else _field(place)


def _field(place: int) -> str:
    """Fields of the merge row are named by position where Spark computes it."""
    return f"{MERGE_ROW}.f{place}"
