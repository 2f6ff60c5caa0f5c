"""Splits of databases that the older flow of UPDATE and DELETE changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcTableHandle, Stage
from rowmerge_nb.connectors.jdbc.staging import JdbcPageSink
from rowmerge_nb.spi import (
    ConnectorPageSource,
    Operation,
    Page,
    UpdatablePageSource,
    values_and_row_ids,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.jdbc.database import Store

ONLY_CASE: Final = 0
"""The case number of an UPDATE statement, which has one clause."""


@dataclass(frozen=True)
class JdbcUpdatableTableHandle(JdbcTableHandle):
    """A table whose rows are changed; ``updated`` is None for a DELETE."""

    stage: Stage = field(default_factory=lambda: Stage(""))
    updated: tuple[str, ...] | None = None


class JdbcUpdatablePageSource(UpdatablePageSource):
    """Stages keys of changed rows, and new values of updated ones."""

    def __init__(
        self, source: ConnectorPageSource, store: Store, handle: JdbcUpdatableTableHandle
    ) -> None:
        super().__init__(source)
        self._handle = handle
        self._sink = JdbcPageSink(store, handle, store.stage_writer(handle.stage))

    def delete_rows(self, row_ids: pa.Array) -> None:
        self._stage({}, Operation.DELETE, row_ids)

    def update_rows(self, page: Page, column_value_and_row_id_channels: Sequence[int]) -> None:
        values, row_ids = values_and_row_ids(page, column_value_and_row_id_channels)
        self._stage(
            dict(zip(self._handle.updated or (), values, strict=True)), Operation.UPDATE, row_ids
        )

    def _stage(self, values: dict[str, pa.Array], operation: Operation, row_ids: pa.Array) -> None:
        rows, columns = len(row_ids), self._handle.columns
        arrays = [values.get(column.name, pa.nulls(rows, column.type.arrow)) for column in columns]
        page = pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])
        cases = (
            pa.array(np.full(rows, ONLY_CASE, np.int32)) if operation is Operation.UPDATE else None
        )
        self._sink.stage(page, pa.array(np.full(rows, operation, np.int16)), cases, row_ids)

    def finish(self) -> list[bytes]:
        return self._sink.finish()

    def abort(self) -> None:
        self._sink.abort()
