"""A store of rows in a file, whose bugs are about the moment at which its rows are stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from rowmerge_nb import spi
from rowmerge_nb.testing.examples import price_store

ROWS = [[1, 9.5], [2, 3.0], [3, 7.25]]
Changes = list[tuple[int, int, int, float]]


@dataclass(frozen=True)
class RowsFile:
    """The rows, each once per time that it was stored."""

    path: Path

    def read(self) -> list[list[Any]]:
        rows: list[list[Any]] = json.loads(self.path.read_text())
        return rows

    def change(self, changes: Changes, times: int = 1) -> None:
        removed = {
            row_id for operation, row_id, _, _ in changes if operation != spi.Operation.INSERT
        }
        rows = [row for row in self.read() if row[0] not in removed]
        new = [
            [key, price]
            for operation, _, key, price in changes
            if operation != spi.Operation.DELETE
        ]
        self.path.write_text(json.dumps(rows + new * times))


class Metadata(price_store.Metadata):
    def __init__(self, store: DirectStore) -> None:
        self.store = store

    def begin_merge(self, session, table, updated_columns=None):
        if self.store.bug == "begin fails":
            raise OSError("There is no transaction")
        return super().begin_merge(session, table, updated_columns)

    def finish_merge(self, session, handle, fragments):
        changes = [change for fragment in fragments for change in json.loads(fragment)]
        store = self.store
        if store.bug == "half" and len(changes) > 1:
            store.file.change(changes[: len(changes) // 2])
            raise OSError("The second half was not stored")
        if store.bug not in {"at the sink", "abort fails"}:
            store.file.change(changes, 2 if store.bug == "twice" else 1)
        if store.bug == "finish fails":
            raise OSError("The answer got lost")


@dataclass(frozen=True)
class Reader(spi.ConnectorSplitManager, spi.ConnectorPageSourceProvider):
    file: RowsFile
    bug: str

    def get_splits(self, transaction, session, table, constraint):
        return [self.file.read()]

    def create_page_source(self, transaction, session, split, table, columns):
        if self.bug == "scan fails":
            raise OSError("The file cannot be read")
        values = {
            "id": pa.array([row[0] for row in split], pa.int64()),
            "price": pa.array([row[1] for row in split], pa.float64()),
        }
        names = [column.name for column in columns]
        return spi.PagesSource(
            [pa.RecordBatch.from_arrays([values[name] for name in names], names=names)]
        )


@dataclass(frozen=True)
class Sinks(spi.ConnectorPageSinkProvider):
    file: RowsFile
    bug: str

    def create_merge_sink(self, transaction, session, handle):
        if self.bug == "no sink":
            raise OSError("There is no room")
        return Sink(self.file, self.bug)


class Sink(spi.ConnectorMergeSink):
    def __init__(self, file: RowsFile, bug: str) -> None:
        self.file, self.bug = file, bug
        self.changes: Changes = []

    def store_merged_rows(self, page):
        columns = [page.column(index).to_pylist() for index in (0, 1, 2, page.num_columns - 1)]
        changes = [
            (op, row_id, key, price) for key, price, op, row_id in zip(*columns, strict=True)
        ]
        if self.bug in {"at the sink", "abort fails"}:
            self.file.change(changes)
        else:
            self.changes += changes

    def finish(self):
        return [json.dumps(self.changes).encode()]

    def abort(self):
        if self.bug == "abort fails":
            raise OSError("The stored rows could not be removed")


class DirectStore(spi.Connector):
    """Args:
    bug: ``at the sink``, ``abort fails``, ``half``, ``twice``, ``finish fails``, ``begin fails``,
        ``scan fails``, ``no sink`` or ``""``.
    """

    name = "direct"

    def __init__(self, folder: Path, bug: str = "", *, commits_in_finish: bool = False) -> None:
        self.file, self.bug = RowsFile(folder / "rows"), bug
        self.commits_in_finish = commits_in_finish
        self.file.path.write_text(json.dumps(ROWS))

    def get_metadata(self, transaction_handle):
        return Metadata(self)

    def get_split_manager(self):
        return Reader(self.file, self.bug)

    def get_page_source_provider(self):
        return Reader(self.file, self.bug)

    def get_page_sink_provider(self):
        return Sinks(self.file, self.bug)
