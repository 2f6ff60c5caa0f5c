"""From joined rows to what the pass of the processor takes: the page's channels, and the witness behind them."""

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
    """Makes of joined rows what the pass of the processor takes.

    Args:
        location: the symbols of the old redistribution columns.
        hashed: the channel ``hash`` stands behind them.
        row_id: the symbol of the row id.
        case: makes the merge row.
        numbered: ``unique_id`` stands behind the case number.
        marked: the mark of rows with a source row stands behind it; the join is a FULL one.
        returned: computes the row of RETURNING, which stands behind that; None without one.
        witness: the type of the witness; None if rows do not carry it.
        shown: of the target and of the source the symbols whose values the witness has.
    """

    location: tuple[str, ...]
    hashed: bool
    row_id: str
    case: PageCase
    numbered: bool
    marked: bool
    returned: ReturnedRows | None
    witness: pa.StructType | None
    shown: tuple[tuple[str, ...], tuple[str, ...]]

    def batch(self, rows: JoinedRows, evaluator: PageEvaluator, source_rows: pa.Array | None = None) -> pa.RecordBatch:
        """Return the channels.

        Args:
            rows: joined rows.
            evaluator: computes conditions and values.
            source_rows: the number of every row of the source's page.
        """
        location = [rows.column(name) for name in self.location]
        merge_row = self.case.merge_rows(rows, evaluator)
        # A NULL row has no number, so not the field itself, which has one.
        number = pc.struct_field(merge_row, [merge_row.type.num_fields - 1])
        arrays = [*location]
        if self.hashed:
            arrays.append(hashed(location, rows.count))
        arrays += [rows.column(self.row_id), merge_row, number]
        if self.numbered:
            arrays.append(rows.column(POSITION))
        if self.marked:
            there = rows.sides[1].is_there
            arrays.append(pa.array(there, mask=~there))
        if self.returned is not None:
            arrays.append(self.returned.of(rows, merge_row, evaluator))
        if self.witness is not None:
            arrays.append(_witness_of(rows, self.witness, self.shown, source_rows))
        return pa.RecordBatch.from_arrays(arrays, names=[f"c{index}" for index in range(len(arrays))])


@dataclass(frozen=True)
class DeleteChannels:
    """Makes of rows to delete the page of the writer, and the witness.

    Args:
        schema: the page's channels.
        kept: per table column the symbol of the value that is kept; None where there is NULL.
        row_id: the symbol of the row id.
        witness: the type of the witness; None if rows do not carry it.
        shown: the symbols whose values the witness has.
    """

    schema: pa.Schema
    kept: tuple[str | None, ...]
    row_id: str
    witness: pa.StructType | None
    shown: tuple[tuple[str, ...], tuple[str, ...]]

    def batch(self, rows: JoinedRows, _: PageEvaluator) -> pa.RecordBatch:
        """Return the channels."""
        known = dict(zip(self.schema.names[: len(self.kept)], self.kept, strict=True))
        arrays = []
        for index, channel in enumerate(self.schema):
            kept = known.get(channel.name) if index < len(self.kept) else None
            if kept is not None:
                arrays.append(rows.column(kept))
            elif index < len(self.kept):
                arrays.append(pa.nulls(rows.count, channel.type))
            else:
                arrays.append(self._control(channel, rows))
        if self.witness is not None:
            arrays.append(_witness_of(rows, self.witness, self.shown, None))
        return pa.RecordBatch.from_arrays(arrays, names=[f"c{index}" for index in range(len(arrays))])

    def _control(self, channel: pa.Field, rows: JoinedRows) -> pa.Array:
        if channel.name == self.row_id:
            return rows.column(self.row_id)
        value = int(Operation.DELETE) if channel.name == OPERATION else 0
        return pa.array(np.full(rows.count, value)).cast(channel.type)


def _witness_of(
    rows: JoinedRows, kind: pa.StructType, shown: tuple[tuple[str, ...], tuple[str, ...]], source_rows: pa.Array | None
) -> pa.StructArray:
    """Return both sides' values of joined rows; a side that a row does not have is NULL."""
    fields: dict[str, pa.Array] = {"source_row": pa.nulls(rows.count, pa.int64())}
    if source_rows is not None and len(rows.sides) > 1:
        fields["source_row"] = rows.sides[1].taken(source_rows)
    for name, side, symbols in zip(("target", "source"), rows.sides, shown, strict=False):
        if kind.get_field_index(name) >= 0:
            wanted = kind.field(name).type
            values = [conform(side.column(symbol), field.type) for symbol, field in zip(symbols, wanted, strict=True)]
            absent = None if side.is_there.all() else pa.array(~side.is_there)
            fields[name] = pa.StructArray.from_arrays(values, fields=list(wanted), mask=absent)
    return pa.StructArray.from_arrays([fields[field.name] for field in kind], fields=list(kind))
