"""What a task gives back: fragments and records, as rows."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

OUTCOME: Final = pa.schema([("kind", pa.int8()), ("writer", pa.int32()), ("payload", pa.binary())])
"""What the last pass of a statement gives the driver: records and fragments."""
RECORD_ROW, FRAGMENT_ROW = 0, 1
"""The kinds of its rows."""
MATCHED_ROW, PIECE_ROW, ANSWERS_ROW = 2, 3, 4
"""Kinds of rows that go to the stage of unmatched source rows, and no further: which rows of a piece have met a target row, as bits; a row
that has the piece itself joined to it; and the answers of subqueries. Their writer is the number of the piece, or of the task that gets them."""
RECORD: Final = "$record"
"""The column by which a record passes an exchange."""


def outcome(rows: list[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Return records and fragments in the form of ``OUTCOME``: kind, writer, payload."""
    kinds, writers, payloads = zip(*rows, strict=True)
    arrays = [pa.array(kinds, pa.int8()), pa.array(writers, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=OUTCOME)
