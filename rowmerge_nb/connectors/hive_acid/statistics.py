"""Table sizes, read from the footers of files."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.hive_acid.orc.orc_reading import row_count
from rowmerge_nb.connectors.hive_acid.visible_deltas import acid_state, data_files
from rowmerge_nb.spi import TableStatistics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.connectors.hive_acid.hive_handles import HiveTableHandle

MOST_FILES: Final = 1000
"""The limit of files and of partitions beyond which no statistics are reported: reading them would
cost more than they gain.
"""


def table_size(handle: HiveTableHandle) -> TableStatistics:
    """Return rows (including deleted ones) and bytes of all files that a statement reads.

    Empty for more than `MOST_FILES` files, or if one cannot be read.
    """
    if len(handle.snapshot.partitions) > MOST_FILES:
        return TableStatistics()
    try:
        files = list(islice(_files(handle), MOST_FILES + 1))
        if len(files) > MOST_FILES:
            return TableStatistics()
        stats = [(path, path.stat()) for path in files]
        rows = sum(_rows_in(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats)
        return TableStatistics(rows, sum(stat.st_size for _, stat in stats), len(files))
    except (RowMergeError, OSError):
        return TableStatistics()


def _files(handle: HiveTableHandle) -> Iterator[Path]:
    for name in handle.snapshot.partitions:
        folder = Path(handle.table.location) / name
        state = acid_state(folder, handle.snapshot.write_ids)
        for directory in (state.base, *state.deltas):
            if directory is not None:
                yield from data_files(folder / directory.name)
        yield from state.originals


@lru_cache(maxsize=1 << 16)
def _rows_in(path: Path, size: int, changed: int) -> int:
    del size, changed
    return row_count(path)
