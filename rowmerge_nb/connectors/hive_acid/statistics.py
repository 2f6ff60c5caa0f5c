"""What the tails of a table's files tell without its rows being read: how many there are at most, and what is in their columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.connectors.hive_acid.metastore.metastore import partition_texts
from rowmerge_nb.connectors.hive_acid.orc.reading import row_count
from rowmerge_nb.connectors.hive_acid.orc.tail import read_tail
from rowmerge_nb.connectors.hive_acid.state import acid_state, data_files
from rowmerge_nb.connectors.hive_acid.values import partition_value
from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.spi.metadata import ColumnStatistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rowmerge_nb.connectors.hive_acid.handles import HiveTableHandle
    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable
    from rowmerge_nb.connectors.hive_acid.orc.tail import OrcTail
    from rowmerge_nb.spi.types import Type

MOST_FILES: Final = 1000
"""Of a table with more files, or more partitions, nothing is told: looking would take longer than what is gained by it."""
_UNORDERED: Final = frozenset({"varchar", "char", "varbinary", "boolean"})
"""Types whose statistics have no bounds."""


def most_rows(handle: HiveTableHandle) -> int | None:
    """Give an upper bound of the rows that a statement sees: those of all files that it reads, deleted ones among them.

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
        stats = ((file.path, file.path.stat()) for file in files)
        return sum(_rows_in(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats)
    except (RowMergeError, OSError):
        return None


@dataclass(frozen=True)
class _File:
    """A file of rows: where it is, the partition that it belongs to, whether its columns are the table's, and whether some of its rows are deleted."""

    path: Path
    partition: str
    flat: bool
    deletes: bool


def _files(handle: HiveTableHandle) -> Iterator[_File]:
    for name in handle.snapshot.partitions:
        folder = Path(handle.table.location) / name
        state = acid_state(folder, handle.snapshot.write_ids)
        # Rows of deltas that overlap are in the files twice, and read once.
        deletes = bool(state.delete_deltas or state.overlaps)
        for directory in (state.base, *state.deltas):
            if directory is not None:
                yield from (_File(path, name, flat=False, deletes=deletes) for path in data_files(folder / directory.name))
        yield from (_File(path, name, flat=True, deletes=deletes) for path in state.originals)


@lru_cache(maxsize=1 << 16)
def _rows_in(path: Path, size: int, changed: int) -> int:
    """Read a file's footer, once as long as the file is the same; files of transactional tables never change."""
    del size, changed
    return row_count(path)


# -- columns ----------------------------------------------------------------------------------------------------------


def column_statistics(handle: HiveTableHandle) -> dict[str, ColumnStatistics]:
    """Give what the tails of a table's files tell of its columns, by their names, and what the folders tell of partitions.

    Args:
        handle: the table as the statement sees it.

    Returns:
        nothing where rows were deleted that are still in the files, where there are no rows, and where `most_rows` gives None.
    """
    if len(handle.snapshot.partitions) > MOST_FILES:
        return {}
    try:
        files = list(islice(_files(handle), MOST_FILES + 1))
    except (RowMergeError, OSError):
        return {}
    tails = [read_tail(file.path) for file in files] if len(files) <= MOST_FILES else [None]
    if None in tails or any(file.deletes for file in files):
        return {}
    known = [(file, tail) for file, tail in zip(files, tails, strict=True) if tail is not None and tail.stripes]
    if not known:
        return {}
    data = {column.name: _stored(known, index, column.type) for index, column in enumerate(handle.table.data_columns)}
    return {**data, **_partitioned(handle.table, known)}


def _stored(files: Sequence[tuple[_File, OrcTail]], index: int, kind: Type) -> ColumnStatistics:
    """Give what the stripes of all files tell of a column; nothing where one of them does not."""
    ranges, rows = [], 0
    for file, tail in files:
        number = tail.column(index) if file.flat else tail.column(5, index)
        for stripe in tail.stripes:
            ranges.append(tail.range(stripe.number, number, kind))
            rows += stripe.rows
    told = [found for found in ranges if found is not None]
    if len(told) < len(ranges):
        return ColumnStatistics()
    filled = [found for found in told if found.count]
    return ColumnStatistics(
        nulls_fraction=(rows - sum(found.count for found in filled)) / rows,
        low_value=None if kind.base in _UNORDERED else _bound(min, [found.low for found in filled]),
        high_value=None if kind.base in _UNORDERED else _bound(max, [found.high for found in filled]),
    )


def _bound(choose: Callable[[Iterable[Any]], Any], bounds: Sequence[Any]) -> Any:
    return choose(bounds) if bounds and None not in bounds else None


def _partitioned(table: HiveTable, files: Sequence[tuple[_File, OrcTail]]) -> dict[str, ColumnStatistics]:
    """Give what is known of partition columns, which is all: each partition has one value."""
    rows: Counter[str] = Counter()
    for file, tail in files:
        rows[file.partition] += sum(stripe.rows for stripe in tail.stripes)
    found = {}
    for index, column in enumerate(table.partition_columns):
        texts = [(partition_texts(name)[index], count) for name, count in rows.items()]
        given = {text for text, _ in texts if text is not None}
        try:
            values = [partition_value(text, column, table.name).as_py() for text in given]
        except (RowMergeError, OverflowError):
            # Not a value of the column's type, or a day that Python does not know.
            continue
        ordered = column.type.base not in _UNORDERED
        found[column.name] = ColumnStatistics(
            nulls_fraction=sum(count for text, count in texts if text is None) / rows.total(),
            distinct_values_count=float(len(set(values))),
            low_value=_bound(min, values) if ordered else None,
            high_value=_bound(max, values) if ordered else None,
        )
    return found
