"""Copy-on-write: files that lose rows are replaced by files with their other rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.shared.file_positions import FilePositions
from rowmerge_nb.spi import (
    ConnectorMergeSink,
    Operation,
    Page,
    row_ids_of,
    split_page,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.connectors.shared.partitioned_sink import PartitionedSink


class CopyOnWriteSink(ConnectorMergeSink):
    """Writes inserted rows, and the remaining rows of each file that loses some.

    All changes of a file must reach one sink: with two, each would copy the rows that the other one
    deletes.

    Args:
        read: yields the pages of a file by its number; their last column is the row id.
        insertions: adds columns to the insertions of a page, which it gets too.
    """

    def __init__(
        self,
        rows: PartitionedSink[Any],
        width: int,
        files: int,
        read: Callable[[int], Iterator[Page]],
        insertions: Callable[[Page, Page], Page] = lambda _, rows: rows,
    ) -> None:
        self._rows, self._width, self._read = rows, width, read
        self._insertions = insertions
        self._deletes = FilePositions(files)
        self._counts = {"inserted": 0, "updated": 0, "deleted": 0}

    def store_merged_rows(self, page: Page) -> None:
        parts = split_page(page, self._width)
        if parts.deletions is not None:
            self._deletes.add(row_ids_of(parts.deletions))
        if parts.insertions is not None:
            self._rows.append_page(self._insertions(page, parts.insertions))
        operations = page.column("operation")
        for word, operation in (
            ("inserted", Operation.INSERT),
            ("deleted", Operation.DELETE),
            ("updated", Operation.UPDATE_INSERT),
        ):
            self._counts[word] += pc.sum(pc.equal(operations, operation)).as_py() or 0

    def finish(self) -> list[bytes]:
        if not self._deletes and not any(self._counts.values()):
            return []
        removals: list[dict[str, Any]] = [
            {"kind": "remove", "file": number, "copied": self._copy_rest(number, positions)}
            for number, positions in self._deletes.by_file()
        ]
        self._deletes.clear()
        counts = {"kind": "counts", **self._counts}
        self._counts = dict.fromkeys(self._counts, 0)
        fragments = [json.dumps(entry).encode() for entry in [*removals, counts]]
        return [*self._rows.finish(), *fragments]

    def _copy_rest(self, number: int, deleted: npt.NDArray[np.int64]) -> int:
        copied = matches = 0
        for page in self._read(number):
            rest, count = _without(page, deleted)
            matches += count
            copied += rest.num_rows
            if rest.num_rows:
                self._rows.append_page(rest.select(range(rest.num_columns - 1)))
        if matches != len(deleted):
            raise ValueError(
                f"Row ids name {len(deleted)} rows of file {number}, at positions"
                f" {deleted[0]} to {deleted[-1]}, but the file has {matches} of them"
            )
        return copied

    def abort(self) -> None:
        self._rows.abort()
        self._deletes.clear()


def _without(page: Page, deleted: npt.NDArray[np.int64]) -> tuple[Page, int]:
    ids = page.column(page.num_columns - 1)
    positions = pc.struct_field(ids, [1]).to_numpy(zero_copy_only=False)
    if not len(positions):
        return page, 0
    low, high = np.searchsorted(deleted, [positions[0], positions[-1] + 1])
    indexes = np.searchsorted(positions, deleted[low:high])
    indexes = indexes[positions[indexes] == deleted[low:high]]
    if not len(indexes):
        return page, 0
    alive = np.ones(page.num_rows, bool)
    alive[indexes] = False
    return page.filter(pa.array(alive)), len(indexes)


@dataclass(frozen=True)
class Rewrite:
    """The fragments of all sinks of a statement.

    Args:
        added: those of new files.
        removed: the numbers of the files that are replaced.
    """

    added: Sequence[dict[str, Any]]
    removed: Sequence[int]
    copied: int
    inserted: int
    updated: int
    deleted: int


def rewrite_of(fragments: Collection[bytes], table: str) -> Rewrite:
    """Gather the fragments of `CopyOnWriteSink`; GENERIC_INTERNAL_ERROR if two sinks have rewritten
    one file.
    """
    entries = [json.loads(fragment) for fragment in fragments]
    removals = [entry for entry in entries if entry["kind"] == "remove"]
    counts = [entry for entry in entries if entry["kind"] == "counts"]
    numbers = [entry["file"] for entry in removals]
    if len(set(numbers)) < len(numbers):
        raise ConnectorError(
            f"Two writers rewrote one file of {table}, so deleted rows would reappear",
            code="GENERIC_INTERNAL_ERROR",
            hint="All changes of a file must go to one writer: use the update layout.",
        )
    return Rewrite(
        [entry for entry in entries if entry["kind"] not in {"remove", "counts"}],
        numbers,
        sum(entry["copied"] for entry in removals),
        **{
            word: sum(entry[word] for entry in counts)
            for word in ("inserted", "updated", "deleted")
        },
    )
