"""The output rows of tasks."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

OUTCOME: Final = pa.schema([("kind", pa.int8()), ("writer", pa.int32()), ("payload", pa.binary())])
"""The output of a statement's last pass."""
RECORD_ROW, FRAGMENT_ROW = 0, 1
"""Values of its column ``kind``."""
MATCHED_ROW, PIECE_ROW, ANSWERS_ROW = 2, 3, 4
"""Rows for the stage of unmatched source rows only: a bitmap of the matched rows of a piece; a row
to which the piece is joined; and the
answers of subqueries. ``writer`` is the number of the piece, or of the receiving task.
"""
RECORD: Final = "$record"
"""The column of records in an exchange."""


def outcome(rows: list[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Build a batch of ``OUTCOME`` from tuples (kind, writer, payload)."""
    kinds, writers, payloads = zip(*rows, strict=True)
    arrays = [
        pa.array(kinds, pa.int8()),
        pa.array(writers, pa.int32()),
        pa.array(payloads, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=OUTCOME)
