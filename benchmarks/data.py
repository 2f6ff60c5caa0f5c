"""The tables of the races: N target rows; M source rows, of which 80 % match, 1 in 64 of those deletes,
20 % insert.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.keys import KINDS, Keys, Side

VALUES: Final = (
    pa.field("region", pa.string()),
    pa.field("name", pa.string()),
    pa.field("amount", pa.decimal128(12, 2)),
    pa.field("updated_at", pa.timestamp("us")),
)
"""The columns besides the keys."""
REGIONS: Final = ("EU", "US", "ASIA", "AFRICA", "OCEANIA", "ARCTIC", "LATAM", "MENA")
CHUNK: Final = 5_000_000
"""The number of rows created at once, so that the texts of a chunk stay below two gigabytes."""

DELETE: Final = "DELETE FROM target WHERE id % 10 = 3"
UPDATE: Final = "UPDATE target SET amount = amount + 1.00, name = 'changed' WHERE id % 10 = 3"
SELECT: Final = "SELECT region, count(*) AS rows, sum(amount) AS total FROM target GROUP BY region"
INSERT: Final = "INSERT INTO target SELECT * FROM source"
LATEST: Final = """(SELECT * FROM (
  SELECT source.*, row_number() OVER (PARTITION BY {keys} ORDER BY updated_at DESC) AS number FROM source) WHERE number = 1)"""
GROUPED: Final = """(SELECT {keys}, max(region) AS region, max(name) AS name, max(amount) AS amount, max(updated_at) AS updated_at
  FROM source GROUP BY {keys})"""
DEDUPLICATED: Final = {"latest": LATEST, "grouped": GROUPED}
"""The sources of a MERGE that deduplicates its source: the latest row of each key, and a group of
each key.
"""
VERSIONS: Final = 3
"""Rows of each key in a source to deduplicate."""
CREATE: Final = "CREATE TABLE target AS SELECT * FROM source"


@dataclass(frozen=True)
class Case:
    """The tables of a race.

    Args:
        target_rows: rows of the target before the statement.
        source_rows: rows of the source.
        keys: the keys of the merge.
        regions: the number of values of ``region``, by which tables are partitioned.
        seed: the seed of the random numbers.
    """

    target_rows: int
    source_rows: int
    keys: Keys = KINDS["dense"]
    seed: int = 1
    regions: int = len(REGIONS)

    @cached_property
    def target(self) -> pa.Table:
        """The target's rows, numbered from 0."""
        return self._rows(self.keys.arrange(np.arange(self.target_rows)), "target")

    @cached_property
    def source(self) -> pa.Table:
        """The source's rows, each with a different number, in random order."""
        random = np.random.default_rng(self.seed)
        matching = min(int(self.source_rows * 0.8), self.target_rows)
        new = np.arange(self.target_rows, self.target_rows + self.source_rows - matching)
        numbers = np.concatenate([random.choice(self.target_rows, matching, replace=False), new])
        rows = self._rows(random.permutation(numbers), "source")
        deleting = pc.equal(pc.bit_wise_and(pc.cast(rows["updated_at"], pa.int64()), 63), 0)
        return rows.set_column(
            rows.schema.get_field_index("region"),
            VALUES[0],
            pc.if_else(deleting, pa.scalar("DEL"), rows["region"]),
        )

    @cached_property
    def history(self) -> pa.Table:
        """Several versions of each of the source's rows, in random order; the latest one has the
        largest amount.
        """
        rows, at = self.source, self.source.schema.get_field_index
        versions = []
        for number in range(VERSIONS):
            later = pc.add(rows["updated_at"], pa.scalar(number, pa.duration("us")))
            more = pc.add(rows["amount"], pa.scalar(Decimal(number), pa.decimal128(12, 2))).cast(
                pa.decimal128(12, 2)
            )
            versions.append(
                rows.set_column(at("updated_at"), VALUES[3], later).set_column(
                    at("amount"), VALUES[2], more
                )
            )
        order = np.random.default_rng(self.seed).permutation(rows.num_rows * VERSIONS)
        return pa.concat_tables(versions).take(pa.array(order))

    def source_of(self, work: str) -> pa.Table:
        """Return the source that a work reads."""
        return self.history if work in DEDUPLICATED else self.source

    def deduplicated(self, work: str) -> str:
        """Return the query that deduplicates the source."""
        return DEDUPLICATED[work].format(keys=", ".join(field.name for field in self.keys.fields()))

    @property
    def merge(self) -> str:
        """The MERGE for all engines but delta-rs."""
        return self.merge_from("source")

    def merge_from(self, source: str) -> str:
        """Return the MERGE of a table or query."""
        names = [field.name for field in (*self.keys.fields(), *VALUES)]
        return (
            f"MERGE INTO target t USING {source} s ON {self.keys.on}\nWHEN MATCHED AND s.region ="
            " 'DEL' THEN DELETE\nWHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount, name ="
            " s.name, updated_at = s.updated_at\nWHEN NOT MATCHED THEN INSERT"
            f" ({', '.join(names)})\n  VALUES ({', '.join(f's.{name}' for name in names)})"
        )

    def __str__(self) -> str:
        return (
            f"{self.target_rows:,} target rows, {self.source_rows:,} source rows, keys"
            f" {self.keys.name}"
        )

    def _rows(self, numbers: npt.NDArray[np.int64], side: Side) -> pa.Table:
        schema = pa.schema([*self.keys.fields(), *VALUES])
        starts = range(0, max(len(numbers), 1), CHUNK)
        return pa.concat_tables(
            pa.table(
                [
                    *self.keys.make(part, side),
                    *_values(
                        part,
                        self.seed * 1000 + start // CHUNK + (500 if side == "source" else 0),
                        self.regions,
                    ),
                ],
                schema=schema,
            )
            for start in starts
            for part in [numbers[start : start + CHUNK]]
        )


def _values(numbers: npt.NDArray[np.int64], seed: int, regions: int) -> list[pa.Array]:
    random = np.random.default_rng(seed)
    cents = pa.array(random.integers(0, 100_000_00, len(numbers)), pa.int64()).cast(
        pa.decimal128(19, 0)
    )
    amount = pc.multiply(cents, pa.scalar(Decimal("0.01"), pa.decimal128(3, 2))).cast(
        pa.decimal128(12, 2)
    )
    name = pc.binary_join_element_wise("name-", pa.array(numbers % 100_000).cast(pa.string()), "")
    when = pa.array(
        1_700_000_000_000_000 + random.integers(0, 10**12, len(numbers)), pa.timestamp("us")
    )
    names = (*REGIONS, *(f"R{number}" for number in range(len(REGIONS), regions)))
    region = pa.array(names[:regions]).take(pa.array(numbers % regions))
    return [region, name, amount, when]


def fingerprint(table: pa.Table) -> tuple[object, ...]:
    """Return the number of rows, and the sum of the hashes of whole rows: equal for all engines
    with the same result.
    """
    import duckdb

    fields = sorted(table.schema, key=lambda field: field.name)
    texts = [
        (
            f'epoch_us("{field.name}")'
            if pa.types.is_timestamp(field.type)
            else f'"{field.name}"::VARCHAR'
        )
        for field in fields
    ]
    with duckdb.connect() as connection:
        connection.register("content", table)
        found = connection.execute(
            f"SELECT count(*), sum(hash({', '.join(texts)})) FROM content"
        ).fetchone()
    assert found is not None
    return found
