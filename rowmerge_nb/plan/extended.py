"""MERGE beyond the standard: the source's mark under a FULL join, and the rows of RETURNING."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan.plan_nodes import Assignment, Project, Symbol
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import CASE_NUMBER, MERGE_ROW, PRESENT, PageLayout
from rowmerge_nb.spi.types import BOOLEAN, INTEGER, TINYINT, VARCHAR, row_of
from rowmerge_nb.sql.typed.expressions import TRUE, Apply, Column, Constant, children, replaced
from rowmerge_nb.sql.typed.type_rules import parts_of
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rowmerge_nb.plan.plan_nodes import PlanNode
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.analysis import ClauseAnalysis, Field, Returning
    from rowmerge_nb.sql.typed.expressions import Typed

SOURCE_PRESENT: Final = "source_present"
RETURNING: Final = "returning"
SOURCE_MARK: Final = Symbol(SOURCE_PRESENT, BOOLEAN)


# -- WHEN NOT MATCHED BY SOURCE


def mark_source(source: PlanNode, identity: str) -> Project:
    """Mark the source's rows: a target row without a partner differs from a match with a row of
    NULLs.
    """
    assignment = Assignment(SOURCE_MARK, TRUE, "true")
    return Project(
        id=identity,
        outputs=(*source.outputs, SOURCE_MARK),
        source=source,
        assignments=(assignment,),
    )


def which_rows(clause: ClauseAnalysis, join: JoinType) -> tuple[str, Typed]:
    if clause.by_source:
        return f"{SOURCE_PRESENT} IS NULL", _is_null(SOURCE_PRESENT)
    if not clause.matched:
        return f"{PRESENT} IS NULL", _is_null(PRESENT)
    there = _is_null(PRESENT, negated=True)
    if join is JoinType.FULL:
        both = Apply(BOOLEAN, "and", (there, _is_null(SOURCE_PRESENT, negated=True)))
        return f"{PRESENT} AND {SOURCE_PRESENT}", both
    return PRESENT, there


def _is_null(name: str, *, negated: bool = False) -> Typed:
    return Apply(BOOLEAN, "is null", (Column(BOOLEAN, name),), negated)


# -- RETURNING


def returned_symbols(returning: Returning) -> tuple[Symbol, ...]:
    return tuple(Symbol(column.name, column.expression.type) for column in returning.columns)


def passed_for(
    returning: Returning | None, joined: Sequence[Symbol], outputs: Sequence[Symbol]
) -> tuple[Symbol, ...]:
    """Return the joined columns that RETURNING reads and the merge row lacks."""
    if returning is None:
        return ()
    read = returned_references(returning)
    # The old value of a deleted row is the joined column of the same place: the target's columns
    # come first.
    for index, field in enumerate(returning.current):
        if field.symbol in read:
            read = read | {joined[index].name}
    return tuple(symbol for symbol in joined if symbol.name in read and symbol not in outputs)


def plan_returning(
    numbered: Project, returning: Returning, target: Sequence[Field], ids: Iterator[str]
) -> Project:
    """Compute the row of RETURNING for every joined row that a clause changes; NULL for others.

    Args:
        numbered: the Project that extracts the case number. The new values and the action become
            columns of it.
    """
    merge_row = MergeRow(numbered.outputs)
    changed = tuple(_changed(returning, target, merge_row))
    names = [symbol.name for symbol in numbered.outputs]
    # Columns behind the merge row are for RETURNING alone, except the plan's own.
    behind = names.index(MERGE_ROW) + 1
    own = {SOURCE_PRESENT, CASE_NUMBER}
    outputs = tuple(
        symbol
        for index, symbol in enumerate(numbered.outputs)
        if index < behind or symbol.name in own
    )
    source = Project(
        id=numbered.id,
        outputs=(*numbered.outputs, *(assignment.symbol for assignment in changed)),
        source=numbered.source,
        assignments=(*numbered.assignments, *changed),
    )
    symbol = Symbol(
        RETURNING, row_of((column.name, column.expression.type) for column in returning.columns)
    )
    row, text = _row(returning)
    changes = Apply(BOOLEAN, ">", (merge_row.operation, Constant(TINYINT, "0")))
    assignment = Assignment(symbol, Apply(row.type, "case", (changes, row)), text)
    return Project(
        id=next(ids), outputs=(*outputs, symbol), source=source, assignments=(assignment,)
    )


@dataclass(frozen=True)
class ReturnedOnPages:
    """RETURNING as tasks compute it for changed rows.

    Args:
        fields: the channels of the merge row's fields.
        assignments: the new values and the action, over these and the joined columns.
    """

    fields: tuple[str, ...]
    assignments: tuple[Assignment, ...]
    values: tuple[Typed, ...]


def returned_on_pages(below: Iterable[PlanNode]) -> ReturnedOnPages | None:
    """Return what tasks compute for RETURNING, from the nodes below the writer."""
    for node in below:
        values = (
            [part.value for part in node.assignments if part.symbol.name == RETURNING]
            if isinstance(node, Project)
            else []
        )
        if values:
            _, row = children(values[0])
            numbered = node.sources[0]
            assert isinstance(numbered, Project)
            merge_row = MergeRow(numbered.outputs)
            changed = (
                assignment
                for assignment in numbered.assignments
                if assignment.symbol.name != CASE_NUMBER
            )
            assignments = tuple(
                replace(assignment, value=merge_row.on_page(assignment.value))
                for assignment in changed
            )
            return ReturnedOnPages(merge_row.channels, assignments, children(row))
    return None


def plan_inserted(source: PlanNode, returning: Returning, ids: Iterator[str]) -> Project:
    row, text = _row(returning)
    source_names, name = {symbol.name.lower() for symbol in source.outputs}, RETURNING
    while name in source_names:
        # The rows have the names that users give columns.
        name += "_"
    symbol = Symbol(
        name, row_of((column.name, column.expression.type) for column in returning.columns)
    )
    return Project(
        id=next(ids),
        outputs=(*source.outputs, symbol),
        source=source,
        assignments=(Assignment(symbol, row, text),),
    )


def _row(returning: Returning) -> tuple[Apply, str]:
    values = tuple(column.expression.tree for column in returning.columns)
    text = f"row({', '.join(column.expression.text for column in returning.columns)})"
    return Apply(by_position(value.type for value in values), "row", values), text


def returned_references(returning: Returning) -> frozenset[str]:
    return frozenset(
        symbol for column in returning.columns for symbol in column.expression.references
    )


def _changed(
    returning: Returning, target: Sequence[Field], merge_row: MergeRow
) -> Iterator[Assignment]:
    read = returned_references(returning)

    def is_one_of(*operations: Operation) -> Typed:
        numbers = (Constant(TINYINT, str(int(operation))) for operation in operations)
        return Apply(BOOLEAN, "in", (merge_row.operation, *numbers), False)

    for index, (old, new, current) in enumerate(
        zip(target, returning.new, returning.current, strict=True)
    ):
        if new.symbol in read:
            value = Apply(
                new.type,
                "case",
                (is_one_of(Operation.INSERT, Operation.UPDATE), merge_row.value(index)),
            )
            yield Assignment(Symbol(new.symbol, new.type), value, f"new {new.name}")
        if current.symbol in read:
            parts = (
                is_one_of(Operation.DELETE),
                Column(old.type, old.symbol),
                merge_row.value(index),
            )
            value = Apply(current.type, "case", parts)
            yield Assignment(
                Symbol(current.symbol, current.type),
                value,
                f"new {current.name}, or old if deleted",
            )
    if returning.action.symbol in read:
        symbol = Symbol(returning.action.symbol, returning.action.type)
        words = (
            (is_one_of(o), Constant(VARCHAR, o.name))
            for o in (Operation.INSERT, Operation.DELETE, Operation.UPDATE)
        )
        value = Apply(VARCHAR, "case", tuple(part for pair in words for part in pair))
        yield Assignment(symbol, value, f"name of {MERGE_ROW}.operation")
    if returning.clause.symbol in read:
        symbol = Symbol(returning.clause.symbol, returning.clause.type)
        value = Apply(INTEGER, "arithmetic", (merge_row.case_number, Constant(INTEGER, "1")), "+")
        yield Assignment(symbol, value, f"{MERGE_ROW}.{CASE_NUMBER} + 1")


def by_position(types: Iterable[Type]) -> Type:
    """Return a row type whose fields are named by position, so that no names clash."""
    return row_of((f"f{index}", sql_type) for index, sql_type in enumerate(types))


class MergeRow:
    """The merge row as the nodes above its Project see it."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._types = next(symbol.type for symbol in symbols if symbol.name == MERGE_ROW).parameters
        *columns, _, _, _ = self._types
        self._fields = PageLayout(len(columns)).merge_row

    @property
    def operation(self) -> Typed:
        return self.field(self._fields.operation)

    @property
    def case_number(self) -> Typed:
        return self.field(self._fields.case_number)

    def field(self, index: int) -> Typed:
        return Apply(
            self._types[index], "field", (Column(by_position(self._types), MERGE_ROW),), index
        )

    def value(self, index: int) -> Typed:
        """Return a table column.

        Fields of nested rows get their names back; pages have them by position.
        """
        sql_type = self._types[index]
        nested = any(part.base == "row" for part in parts_of(sql_type))
        return Apply(sql_type, "renamed", (self.field(index),)) if nested else self.field(index)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the fields' channels; no symbol has such a name."""
        return tuple(f"{MERGE_ROW}.{index}" for index in range(len(self._types)))

    def on_page(self, tree: Typed) -> Typed:
        columns = enumerate(map(Column, self._types, self.channels))
        return replaced(
            tree,
            [
                (read, column)
                for index, column in columns
                for read in (self.value(index), self.field(index))
            ],
        )
