"""The floor of the race: the time of the work itself, with Spark's tasks and Arrow, but without an
engine.

A task for every processor reads its Parquet files, joins their rows with the whole source, and
writes the positions of the old rows and the new rows; the driver inserts unmatched rows.
There is no SQL, no contract, no trace, no check for duplicates, and no commit.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from benchmarks.engines import Contestant

if TYPE_CHECKING:
    import numpy.typing as npt

    from benchmarks.data import Case
    from benchmarks.engines import Work

    Change = Callable[[pa.Table], tuple[npt.NDArray[np.int64], pa.Table, npt.NDArray[np.int64]]]
    """Gives of a file's rows the positions that go, the rows that come, and the source rows that
    were matched.
    """

FILES = 8
AMOUNT = pa.decimal128(12, 2)


class Floor(Contestant):
    """Spark's tasks and pyarrow."""

    below = True
    name = "floor: Spark tasks and pyarrow, no engine"
    keys = ("dense", "shuffled")
    folder: Path

    def __init__(self) -> None:
        from rowmerge_nb.engine.spark.spark_session import create_session

        self.folder = Path(tempfile.mkdtemp())
        self.spark = create_session()
        self.tasks = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)

    def prepare(self, case: Case, work: Work) -> None:
        """Write the target into as many files as a store of this project."""
        assert work in {"merge", "delete", "update"}, "the floor has no other work"
        target, source = case.target, case.source
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.source = source
        size = -(-target.num_rows // FILES)
        for number in range(FILES):
            parquet.write_table(
                target.slice(number * size, size),
                self.folder / f"{number}.parquet",
                compression="zstd",
            )
        parquet.write_table(source, self.folder / "source.parquet", compression="none")

    def run(self, work: Work) -> None:
        """Write positions and new rows; a MERGE joins in the tasks, then inserts the rest."""
        if work == "delete":
            self._in_tasks(_deleted, ["id"])
        elif work == "update":
            self._in_tasks(_updated, None)
        else:
            matched = self._in_tasks(partial(_merged, str(self.folder / "source.parquet")), None)
            alone = np.setdiff1d(np.arange(self.source.num_rows), matched)
            parquet.write_table(
                self.source.take(pa.array(alone)),
                self.folder / "new-rest.parquet",
                compression="zstd",
            )

    def _in_tasks(self, change: Change, columns: list[str] | None) -> npt.NDArray[np.int64]:
        task = partial(_task, str(self.folder), self.tasks, change, columns)
        matches = (
            self.spark.range(0, self.tasks, 1, self.tasks)
            .mapInArrow(task, "matched binary")
            .toArrow()
        )
        return np.concatenate(
            [np.frombuffer(cell, np.int64) for cell in matches["matched"].to_pylist()]
        )

    def content(self) -> pa.Table:
        """Combine the files."""
        parts = []
        for number in range(FILES):
            rows = parquet.read_table(self.folder / f"{number}.parquet")
            gone = parquet.read_table(self.folder / f"gone-{number}.parquet")["pos"].to_numpy()
            parts.append(rows.take(pa.array(np.setdiff1d(np.arange(rows.num_rows), gone))))
        parts += [parquet.read_table(path) for path in self.folder.glob("new-*.parquet")]
        return pa.concat_tables(parts)


def _task(
    folder: str,
    tasks: int,
    change: Change,
    columns: list[str] | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column(0).to_pylist():
            files = range(task, FILES, tasks)
            read = [
                parquet.read_table(f"{folder}/{number}.parquet", columns=columns, use_threads=False)
                for number in files
            ]
            gone, new, matched = change(pa.concat_tables(read).combine_chunks())
            first = 0
            for number, rows in zip(files, read, strict=True):
                own = (
                    gone[
                        np.searchsorted(gone, first) : np.searchsorted(gone, first + rows.num_rows)
                    ]
                    - first
                )
                paths = pa.DictionaryArray.from_arrays(np.zeros(len(own), np.int32), [folder])
                parquet.write_table(
                    pa.table({"file_path": paths, "pos": own}),
                    f"{folder}/gone-{number}.parquet",
                    compression="zstd",
                )
                first += rows.num_rows
            if new.num_rows:
                parquet.write_table(new, f"{folder}/new-{task}.parquet", compression="zstd")
            yield pa.record_batch({"matched": pa.array([matched.tobytes()], pa.binary())})


def _merged(
    path: str, rows: pa.Table
) -> tuple[npt.NDArray[np.int64], pa.Table, npt.NDArray[np.int64]]:
    source = parquet.read_table(path, use_threads=False).combine_chunks()
    # Dense whole numbers: a table of all of them is the fastest index.
    ids, keys = rows["id"].to_numpy(), source["id"].to_numpy()
    row_of = np.full(max(ids.max(), keys.max()) + 1, -1, np.int32)
    row_of[keys] = np.arange(len(keys))
    index = row_of[ids]
    met = np.flatnonzero(index >= 0)
    partners = index[met].astype(np.int64)
    old, given = rows.take(pa.array(met)), source.take(pa.array(partners))
    stays = pc.not_equal(given["region"], "DEL")
    old, given = old.filter(stays), given.filter(stays)
    amount = pc.add(old["amount"], given["amount"]).cast(AMOUNT)
    arrays: list[Any] = [old["id"], old["region"], given["name"], amount, given["updated_at"]]
    return met, pa.table(arrays, names=rows.column_names), partners


def _tenth(rows: pa.Table) -> npt.NDArray[np.int64]:
    return np.flatnonzero(rows["id"].to_numpy() % 10 == 3)


def _deleted(rows: pa.Table) -> tuple[npt.NDArray[np.int64], pa.Table, npt.NDArray[np.int64]]:
    return _tenth(rows), rows.slice(0, 0), np.zeros(0, np.int64)


def _updated(rows: pa.Table) -> tuple[npt.NDArray[np.int64], pa.Table, npt.NDArray[np.int64]]:
    gone = _tenth(rows)
    old = rows.take(pa.array(gone))
    amount = pc.add(old["amount"], pa.scalar(Decimal("1.00"), AMOUNT)).cast(AMOUNT)
    name = pa.array(["changed"]).take(pa.array(np.zeros(len(gone), np.int32)))
    arrays: list[Any] = [old["id"], old["region"], name, amount, old["updated_at"]]
    return gone, pa.table(arrays, names=rows.column_names), np.zeros(0, np.int64)
