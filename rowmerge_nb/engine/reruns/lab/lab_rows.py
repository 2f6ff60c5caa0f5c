"""The rows of the lab's tables, and those that its statements change."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from rowmerge_nb.trace.lab import LabPoint

CHANGES: Final = "changes"
"""The DataFrame of a statement's changes."""
MADE_TABLE: Final = ("memory", "default", "made_rows")
"""The name of the table of made rows."""
MADE_STATEMENT: Final = (
    f"MERGE INTO {MADE_TABLE[2]} t USING {CHANGES} s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount"
    " WHEN NOT MATCHED THEN INSERT (id, amount, note, month, region)"
    " VALUES (s.id, s.amount, s.note, s.month, s.region)"
)
"""The statement of a lab without one."""
SEED: Final = 20260101


@dataclass(frozen=True)
class LabRows:
    """The rows of a table, in the order of its key."""

    rows: pa.Table
    key: str

    @property
    def fingerprint(self) -> str:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.rows.schema) as stream:
            stream.write_table(self.rows.combine_chunks())
        return hashlib.sha256(sink.getvalue()).hexdigest()

    def loads(self, point: LabPoint) -> list[pa.Table]:
        import numpy as np

        count = self.rows.num_rows
        order = np.arange(count)
        if not point.sorted:
            np.random.default_rng(SEED).shuffle(order)
        return [self.rows.take(pa.array(part)) for part in np.array_split(order, point.files)]

    def changes(self, point: LabPoint, statement: int) -> pa.Table:
        """Return the rows that a statement changes: neighbors first, the others spread."""
        import numpy as np

        from rowmerge_nb.base.ordering import other_rows

        count = self.rows.num_rows
        generator = np.random.default_rng((SEED, statement))
        changed = max(1, round(count * point.share))
        neighbors = round(changed * point.locality)
        start = int(generator.integers(0, count - neighbors + 1))
        block = np.arange(start, start + neighbors)
        others = other_rows(count, block)
        spread = generator.choice(others, changed - neighbors, replace=False)
        return self.rows.take(pa.array(np.sort(np.concatenate([block, spread])).astype("int64")))


def made_rows(count: int) -> LabRows:
    """Return rows with a key, an amount, a note, a month that follows the key, and a region that does
    not.

    >>> made_rows(24).rows.column("month").to_pylist()[::6]
    [1, 4, 7, 10]
    """
    import numpy as np

    numbers = np.arange(count)
    generator = np.random.default_rng(SEED)
    notes = generator.integers(0, 10**12, count)
    rows = pa.table(
        {
            "id": numbers,
            "amount": generator.integers(0, 1000, count),
            "note": pc.binary_join_element_wise("note", pa.array(notes).cast(pa.string()), " "),
            "month": (numbers * 12 // max(count, 1) + 1).astype("int32"),
            "region": generator.integers(1, 9, count).astype("int32"),
        }
    )
    return LabRows(rows, "id")


def sampled_rows(table: pa.Table, key: str, count: int) -> LabRows:
    """Return at most ``count`` rows of a table with a key, in the order of the key."""
    import numpy as np

    rows = table.filter(pc.is_valid(table.column(key)))
    if rows.num_rows > count:
        positions = np.random.default_rng(SEED).choice(rows.num_rows, count, replace=False)
        rows = rows.take(pa.array(positions))
    return LabRows(rows.sort_by(key).combine_chunks(), key)
