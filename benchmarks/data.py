"""The tables that all engines merge: N target rows, M source rows, of which 80 % match, 2 % of those delete, 20 % insert."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute

MERGE = """MERGE INTO target t USING source s ON t.id = s.id
WHEN MATCHED AND s.region = 'DEL' THEN DELETE
WHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount, name = s.name, updated_at = s.updated_at
WHEN NOT MATCHED THEN INSERT (id, region, name, amount, updated_at)
  VALUES (s.id, s.region, s.name, s.amount, s.updated_at)"""

DELETE = "DELETE FROM target WHERE id % 10 = 3"
UPDATE = "UPDATE target SET amount = amount + 1.00, name = 'changed' WHERE id % 10 = 3"

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("region", pa.string()),
        ("name", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("updated_at", pa.timestamp("us")),
    ]
)


def _rows(ids: np.ndarray, regions: np.ndarray, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    cents = pa.array(random.integers(0, 100_000_00, len(ids)), pa.int64()).cast(pa.decimal128(19, 0))
    amount = pa.compute.multiply(cents, pa.scalar(Decimal("0.01"), pa.decimal128(3, 2))).cast(pa.decimal128(12, 2))
    name = pa.compute.binary_join_element_wise("name-", pa.array(ids % 100_000).cast(pa.string()), "")
    when = pa.array(1_700_000_000_000_000 + random.integers(0, 10**12, len(ids)), pa.timestamp("us"))
    return pa.table([pa.array(ids), pa.array(regions), name, amount, when], schema=SCHEMA)


def target(count: int) -> pa.Table:
    """Make the target: ids 0 to count - 1."""
    regions = np.array(["EU", "US", "ASIA", "AFRICA"])
    return _rows(np.arange(count), regions[np.arange(count) % 4], 1)


def source(count: int, target_count: int) -> pa.Table:
    """Make the source: 80 % of its ids are in the target, each once."""
    random = np.random.default_rng(2)
    matching = int(count * 0.8)
    ids = np.concatenate(
        [random.choice(target_count, matching, replace=False), np.arange(target_count, target_count + count - matching)]
    )
    regions = np.array(["EU", "US", "ASIA", "AFRICA"])[ids % 4].astype("<U6")
    regions[: int(matching * 0.02)] = "DEL"
    order = random.permutation(count)
    return _rows(ids[order], regions[order], 3)


def fingerprint(table: pa.Table) -> tuple[int, int, str]:
    """Give count, sum of ids and sum of amounts: equal for all engines if they did the same."""
    compute = pa.compute
    amount = compute.sum(table.column("amount").cast(pa.decimal128(28, 2))).as_py()
    return table.num_rows, compute.sum(table.column("id")).as_py(), f"{amount:.2f}"
