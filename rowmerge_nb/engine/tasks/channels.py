"""Joined rows as input of the processor's pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.exchange import hashed
from rowmerge_nb.engine.tasks.scan import POSITION
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import OPERATION

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.joined_rows import JoinedRows
    from rowmerge_nb.engine.tasks.page_program import PageEvaluator
    from rowmerge_nb.engine.tasks.returned_rows import ReturnedRows
    from rowmerge_nb.engine.tasks.searched_case import PageCase


@dataclass(frozen=True)
class ChangeChannels:
    """Converts joined rows to the input of the processor's pass.

    Args:
        location: symbols of the old redistribution columns.
        marked: add the flag of rows with a source row (FULL join).
        returned: computes the row of RETURNING, the next channel.
    """

    location: tuple[str, ...]
    hashed: bool
    row_id: str
    case: PageCase
    numbered: bool
    marked: bool
    returned: ReturnedRows | None
    witness: pa.StructType | None
    display_columns: tuple[tuple[str, ...], tuple[str, ...]]

    def batch(
        self, rows: JoinedRows, evaluator: PageEvaluator, source_rows: pa.Array | None = None
    ) -> pa.RecordBatch:
        location = [rows.column(name) for name in self.location]
        merge_row = self.case.merge_rows(rows, evaluator)
        # struct_field applies the null mask of the row, which the child array ignores.
        number = pc.struct_field(merge_row, [merge_row.type.num_fields - 1])
        arrays = [*location]
        if self.hashed:
            arrays.append(hashed(location, rows.count))
        arrays += [rows.column(self.row_id), merge_row, number]
        if self.numbered:
            arrays.append(rows.column(POSITION))
        if self.marked:
            present = rows.sides[1].is_there
            arrays.append(pa.array(present, mask=~present))
        if self.returned is not None:
            arrays.append(self.returned.of(rows, merge_row, evaluator))
        if self.witness is not None:
            arrays.append(_witness_of(rows, self.witness, self.display_columns, source_rows))
        return pa.RecordBatch.from_arrays(
            arrays, names=[f"c{index}" for index in range(len(arrays))]
        )


@dataclass(frozen=True)
class DeleteChannels:
    """Converts rows to delete to the writer's page and the witness."""

    schema: pa.Schema
    old_symbols: tuple[str | None, ...]
    row_id: str
    witness: pa.StructType | None
    display_columns: tuple[tuple[str, ...], tuple[str, ...]]

    def batch(self, rows: JoinedRows, _: PageEvaluator) -> pa.RecordBatch:
        symbols = dict(
            zip(self.schema.names[: len(self.old_symbols)], self.old_symbols, strict=True)
        )
        arrays = []
        for index, channel in enumerate(self.schema):
            symbol = symbols.get(channel.name) if index < len(self.old_symbols) else None
            if symbol is not None:
                arrays.append(rows.column(symbol))
            elif index < len(self.old_symbols):
                arrays.append(pa.nulls(rows.count, channel.type))
            else:
                arrays.append(self._control(channel, rows))
        if self.witness is not None:
            arrays.append(_witness_of(rows, self.witness, self.display_columns, None))
        return pa.RecordBatch.from_arrays(
            arrays, names=[f"c{index}" for index in range(len(arrays))]
        )

    def _control(self, channel: pa.Field, rows: JoinedRows) -> pa.Array:
        if channel.name == self.row_id:
            return rows.column(self.row_id)
        value = int(Operation.DELETE) if channel.name == OPERATION else 0
        return pa.array(np.full(rows.count, value)).cast(channel.type)


def _witness_of(
    rows: JoinedRows,
    witness_type: pa.StructType,
    symbols_by_side: tuple[tuple[str, ...], tuple[str, ...]],
    source_rows: pa.Array | None,
) -> pa.StructArray:
    fields: dict[str, pa.Array] = {"source_row": pa.nulls(rows.count, pa.int64())}
    if source_rows is not None and len(rows.sides) > 1:
        fields["source_row"] = rows.sides[1].taken(source_rows)
    for name, side, symbols in zip(("target", "source"), rows.sides, symbols_by_side, strict=False):
        if witness_type.get_field_index(name) >= 0:
            side_type = witness_type.field(name).type
            values = [
                conform(side.column(symbol), field.type)
                for symbol, field in zip(symbols, side_type, strict=True)
            ]
            absent = None if side.is_there.all() else pa.array(~side.is_there)
            fields[name] = pa.StructArray.from_arrays(values, fields=list(side_type), mask=absent)
    return pa.StructArray.from_arrays(
        [fields[field.name] for field in witness_type], fields=list(witness_type)
    )
