"""The files of a target that hold each row that a statement reads, for evidence about layouts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.engine.observers.user_observers import ObserverRegistry
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.engine.tasks.identity import row_keys
from rowmerge_nb.engine.tasks.scan import POSITION
from rowmerge_nb.engine.tasks.task_faults import unwatched

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rowmerge_nb.engine.spark.lowering_context import TableRead
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.spi.handles import ReadFile
    from rowmerge_nb.spi.page_source import Constraint


@dataclass(frozen=True)
class TargetReads:
    """What a statement has read of its target.

    Args:
        constraints: the condition of each scan.
        keys: a hash of each row id.
        paths: the file of each row id, as an index of ``files``; -1 for none, or several.
    """

    constraints: tuple[Constraint, ...]
    files: dict[str, ReadFile]
    keys: npt.NDArray[np.int64]
    paths: npt.NDArray[np.int64]


class TargetReadsKeeper(ObserverRegistry):
    """Keeps the reads of the last statement of an engine, in place of the observers of its user.

    Attributes:
        reads: the reads; None before the finish call of a statement.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads: TargetReads | None = None

    def of_run(self) -> RunObserver:
        self.reads = None
        return _KeptReads(self)


class _KeptReads(RunObserver):
    def __init__(self, keeper: TargetReadsKeeper) -> None:
        self._keeper = keeper

    def before_finish(self, run: StatementRun) -> None:
        target = run.transaction.target
        if target is None or target.metadata is None:
            return
        name = (target.catalog, target.metadata.name)
        reads = [
            read
            for read in run.transaction.scans.reads
            if read.binding.metadata is not None
            and (read.binding.catalog, read.binding.metadata.name) == name
        ]
        files = {f.path: f for read in reads for s in read.task.splits for f in s.read_files}
        numbers = {path: index for index, path in enumerate(files)}
        with unwatched():
            parts = [part for read in reads for part in _row_files(read, numbers)]
        empty = np.zeros(0, np.int64)
        self._keeper.reads = TargetReads(
            tuple(read.constraint for read in reads),
            files,
            np.concatenate([empty, *(keys for keys, _ in parts)]),
            np.concatenate([empty, *(np.full(len(keys), file) for keys, file in parts)]),
        )


def _row_files(
    read: TableRead, numbers: dict[str, int]
) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
    if read.row_id is None:
        return
    schema = pa.schema([("row_id", read.row_id.type.arrow), (POSITION, pa.int64())])
    task = replace(
        read.task,
        session=replace(read.task.session, is_observation=True),
        columns=[read.row_id],
        schema=schema,
        keys=None,
    )
    for index, split in enumerate(task.splits):
        data = [file.path for file in split.read_files if not file.deletes]
        number = numbers[data[0]] if len(data) == 1 else -1
        for page in task.read([index]):
            yield row_keys([page.column(0)], page.num_rows), number
