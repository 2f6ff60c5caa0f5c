"""How many rows a table has at most, by the tails of its files."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.connectors.hive_acid.orc.reading import row_count
from rowmerge_nb.connectors.hive_acid.state import acid_state, data_files
from rowmerge_nb.errors import RowMergeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.connectors.hive_acid.handles import HiveTableHandle

MOST_FILES: Final = 1000
"""Of a table with more files, or more partitions, nothing is told: looking would take longer than what is gained by it."""


def most_rows(handle: HiveTableHandle) -> int | None:
    """Return an upper bound of the rows that a statement sees: those of all files that it reads, deleted ones among them.

    Args:
        handle: the table as the statement sees it.

    Returns:
        None where there are very many files, or some that cannot be read; the scan says then what is wrong with them.
    """
    if len(handle.snapshot.partitions) > MOST_FILES:
        return None
    try:
        files = list(islice(_files(handle), MOST_FILES + 1))
        if len(files) > MOST_FILES:
            return None
        stats = ((path, path.stat()) for path in files)
        return sum(_rows_in(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats)
    except (RowMergeError, OSError):
        return None


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
    """Read a file's footer, once as long as the file is the same; files of transactional tables never change."""
    del size, changed
    return row_count(path)
