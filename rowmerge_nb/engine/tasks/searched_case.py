"""The searched CASE of the merge row: each clause runs on the rows that reach it."""

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
    """One branch of the CASE, or ELSE.

    Args:
        values: the table's columns in the merge row; empty for a NULL row.
    """

    number: int
    operation: Operation
    sides: tuple[bool | None, bool | None] = (None, None)
    condition: PageExpression | None = None
    values: tuple[AssignedColumn, ...] = ()
    checks: tuple[AssignedColumn, ...] = ()

    def reached(self, rows: JoinedRows, open_rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        fits = np.ones(len(open_rows), bool)
        for side, required in zip(rows.sides, self.sides, strict=False):
            if required is not None:
                fits &= side.is_there[open_rows] == required
        return open_rows[fits]


@dataclass(frozen=True)
class PageCase:
    branches: tuple[PageBranch, ...]
    else_branch: PageBranch
    type: pa.StructType

    def merge_rows(self, rows: JoinedRows, evaluator: PageEvaluator) -> pa.StructArray:
        rows_by_branch = self._rows_by_branch(rows, evaluator)
        parts = [
            (branch, positions, rows.picked(positions))
            for branch, positions in rows_by_branch
            if len(positions)
        ]
        values = [_values(branch, some, evaluator) for branch, _, some in parts]
        if not parts:
            return pa.array([], self.type)
        order = np.concatenate([positions for _, positions, _ in parts])
        has_one_part = len(parts) == 1
        inverse = None if has_one_part else pa.array(np.argsort(order, kind="stable"))

        def in_order(arrays: Sequence[pa.Array]) -> pa.Array:
            return arrays[0] if inverse is None else pa.concat_arrays(arrays).take(inverse)

        columns = []
        for index in range(self.type.num_fields - 3):
            arrow_type = self.type.field(index).type
            arrays = [
                branch_values[index] if branch_values else pa.nulls(len(positions), arrow_type)
                for branch_values, (_, positions, _) in zip(values, parts, strict=True)
            ]
            columns.append(in_order(arrays))
        numbers, operations = np.empty(rows.count, np.int32), np.empty(rows.count, np.int8)
        absent = np.zeros(rows.count, bool)
        for branch, positions, _ in parts:
            numbers[positions], operations[positions] = branch.number, branch.operation
            absent[positions] = not branch.values
        control = [pa.array(rows.target.is_there), pa.array(operations), pa.array(numbers)]
        return pa.StructArray.from_arrays(
            [*columns, *control],
            fields=list(self.type),
            mask=pa.array(absent) if absent.any() else None,
        )

    def _rows_by_branch(
        self, rows: JoinedRows, evaluator: PageEvaluator
    ) -> list[tuple[PageBranch, npt.NDArray[np.int64]]]:
        open_rows, rows_by_branch = np.arange(rows.count), []
        for branch in self.branches:
            fired = branch.reached(rows, open_rows)
            if branch.condition is not None and len(fired):
                candidates = rows.picked(fired)
                fired = fired[
                    evaluator.rows_where(
                        branch.condition,
                        candidates.page(sorted(branch.condition.reads)),
                        candidates,
                    )
                ]
            rows_by_branch.append((branch, fired))
            open_rows = np.setdiff1d(open_rows, fired, assume_unique=True)
        return [*rows_by_branch, (self.else_branch, open_rows)]


def _values(branch: PageBranch, rows: JoinedRows, evaluator: PageEvaluator) -> list[pa.Array]:
    values = evaluator.values_of(branch.values, rows.page(read_by(branch.values)), rows)
    if branch.checks:
        evaluator.values_of(
            branch.checks,
            pa.RecordBatch.from_arrays(values, names=[column.name for column in branch.values]),
        )
    return values


def read_by(columns: Sequence[AssignedColumn]) -> list[str]:
    return sorted({name for column in columns for name in column.expression.reads})
