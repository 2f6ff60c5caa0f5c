"""Pages of memory tables that the older flow of UPDATE and DELETE changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from rowmerge_nb.connectors.memory.memory_handles import MemoryTableHandle
from rowmerge_nb.connectors.memory.row_changes import encode, positions_of
from rowmerge_nb.spi import ConnectorPageSource, Page, UpdatablePageSource, values_and_row_ids


@dataclass(frozen=True)
class MemoryUpdatableTableHandle(MemoryTableHandle):
    """A version whose rows are changed; ``updated`` is None for a DELETE."""

    updated: tuple[str, ...] | None = None


class MemoryUpdatablePageSource(UpdatablePageSource):
    """Buffers positions of deleted rows, and positions and new values of updated rows."""

    def __init__(self, source: ConnectorPageSource, handle: MemoryUpdatableTableHandle) -> None:
        super().__init__(source)
        names = [column.name for column in handle.metadata.columns]
        self._columns = [str(names.index(name)) for name in handle.updated or ()]
        self._deleted: list[Page] = []
        self._updated: list[Page] = []

    def delete_rows(self, row_ids: pa.Array) -> None:
        self._deleted.append(
            pa.RecordBatch.from_arrays([positions_of(row_ids)], names=["position"])
        )

    def update_rows(self, page: Page, column_value_and_row_id_channels: Sequence[int]) -> None:
        """Buffer positions, and values named by column index."""
        values, row_ids = values_and_row_ids(page, column_value_and_row_id_channels)
        arrays = [*values, positions_of(row_ids)]
        self._updated.append(pa.RecordBatch.from_arrays(arrays, names=[*self._columns, "position"]))

    def finish(self) -> list[bytes]:
        return [*encode("delete", self._deleted), *encode("values", self._updated)]

    def abort(self) -> None:
        self._deleted.clear()
        self._updated.clear()
