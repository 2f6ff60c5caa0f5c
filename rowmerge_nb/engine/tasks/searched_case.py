"""The searched CASE that makes the merge row, computed on pages within a task: clause by clause, each for the rows that reach it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.joined_rows import JoinedRows
    from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator, PageExpression


@dataclass(frozen=True)
class PageBranch:
    """One branch of the CASE, ELSE included.

    Args:
        number: the case number; -1 of ELSE.
        operation: what it asks for.
        sides: which sides a row must have for it: of the target and of the source True, False or, where it does not matter, None.
        condition: its AND condition; None without one.
        values: the table's columns in the merge row; none at all stand for a NULL row.
        checks: the table's CHECK constraints over these values, each refusing a row for which it is false.
    """

    number: int
    operation: Operation
    sides: tuple[bool | None, bool | None] = (None, None)
    condition: PageExpression | None = None
    values: tuple[AssignedColumn, ...] = ()
    checks: tuple[AssignedColumn, ...] = ()

    def reached(self, rows: JoinedRows, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return those of the rows that no branch has taken yet which have the sides that this one is about."""
        fits = np.ones(len(left), bool)
        for side, wanted in zip(rows.sides, self.sides, strict=False):
            if wanted is not None:
                fits &= side.is_there[left] == wanted
        return left[fits]


@dataclass(frozen=True)
class PageCase:
    """The CASE.

    Args:
        branches: its branches in their order.
        otherwise: the branch of rows that no other takes.
        type: the type of the merge row.
    """

    branches: tuple[PageBranch, ...]
    otherwise: PageBranch
    type: pa.StructType

    def merge_rows(self, rows: JoinedRows, evaluator: PageEvaluator) -> pa.StructArray:
        """Make the merge row of every joined row.

        Raises:
            ExecutionError: a condition or a value cannot be computed for a row that reaches it, or breaks a CHECK constraint; with its place.
        """
        taken = self._taken(rows, evaluator)
        made = [(branch, positions, rows.picked(positions)) for branch, positions in taken if len(positions)]
        values = [_values(branch, some, evaluator) for branch, _, some in made]
        if not made:
            return pa.array([], self.type)
        order = np.concatenate([positions for _, positions, _ in made])
        as_they_come = len(made) == 1
        inverse = None if as_they_come else pa.array(np.argsort(order, kind="stable"))

        def gathered(parts: Sequence[pa.Array]) -> pa.Array:
            return parts[0] if inverse is None else pa.concat_arrays(parts).take(inverse)

        columns = []
        for index in range(self.type.num_fields - 3):
            kind = self.type.field(index).type
            parts = [
                found[index] if found else pa.nulls(len(positions), kind)
                for found, (_, positions, _) in zip(values, made, strict=True)
            ]
            columns.append(gathered(parts))
        numbers, operations = np.empty(rows.count, np.int32), np.empty(rows.count, np.int8)
        absent = np.zeros(rows.count, bool)
        for branch, positions, _ in made:
            numbers[positions], operations[positions] = branch.number, branch.operation
            absent[positions] = not branch.values
        control = [pa.array(rows.target.is_there), pa.array(operations), pa.array(numbers)]
        return pa.StructArray.from_arrays(
            [*columns, *control], fields=list(self.type), mask=pa.array(absent) if absent.any() else None
        )

    def _taken(self, rows: JoinedRows, evaluator: PageEvaluator) -> list[tuple[PageBranch, npt.NDArray[np.int64]]]:
        """Return which rows each branch takes."""
        left, found = np.arange(rows.count), []
        for branch in self.branches:
            fired = branch.reached(rows, left)
            if branch.condition is not None and len(fired):
                asked = rows.picked(fired)
                fired = fired[evaluator.rows_where(branch.condition, asked.page(sorted(branch.condition.reads)), asked)]
            found.append((branch, fired))
            left = np.setdiff1d(left, fired, assume_unique=True)
        return [*found, (self.otherwise, left)]


def _values(branch: PageBranch, rows: JoinedRows, evaluator: PageEvaluator) -> list[pa.Array]:
    """Compute the columns of the rows that a branch takes, and have them checked."""
    values = evaluator.values_of(branch.values, rows.page(read_by(branch.values)), rows)
    if branch.checks:
        evaluator.values_of(branch.checks, pa.RecordBatch.from_arrays(values, names=[column.name for column in branch.values]))
    return values


def read_by(columns: Sequence[AssignedColumn]) -> list[str]:
    """Return the channels that the values of columns read."""
    return sorted({name for column in columns for name in column.expression.reads})
