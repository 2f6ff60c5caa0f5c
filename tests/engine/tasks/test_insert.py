"""The pass that sends rows of an INSERT to their writers, and the pass that receives them, without Spark."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.engine.tasks.exchange import Destination
from rowmerge_nb.engine.tasks.insert import (
    InsertedRows,
    InsertPass,
    InsertSenderPass,
    ReceivedInsertPass,
)
from rowmerge_nb.engine.tasks.outcome import RECORD_ROW
from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageExpression, PageProgram
from rowmerge_nb.engine.tasks.page_query import QueryRows
from rowmerge_nb.engine.tasks.scan import cell_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rowmerge_nb.spi.page import Page

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string())])


class ListSink:
    """Keeps the pages."""

    def __init__(self, pages: list[Page]) -> None:
        self.pages = pages

    def append_page(self, page: Page) -> None:
        self.pages.append(page)

    def finish(self) -> list[bytes]:
        return [b"end"]

    def abort(self) -> None:
        self.pages.clear()


def sender(folder: str | None, text: str = '"id"') -> InsertSenderPass:
    values = (
        AssignedColumn(
            "id",
            pa.int64(),
            PageExpression(text, None, "", reads=frozenset({"id"}), is_plain=text == '"id"'),
        ),
        AssignedColumn(
            "part",
            pa.string(),
            PageExpression('"part"', None, "", reads=frozenset({"part"}), is_plain=True),
        ),
    )
    rows = InsertedRows(
        None,
        1,
        QueryRows(PageProgram(), SCHEMA, values),
        (None, Refusal("CONSTRAINT_VIOLATION", "no NULL here")),
    )
    return InsertSenderPass(rows, Destination(None, (1,)), 3, folder)


def arriving(parts: list[str | None]) -> Iterator[pa.RecordBatch]:
    page = pa.record_batch({"id": np.arange(len(parts)), "part": pa.array(parts, pa.string())})
    yield pa.record_batch({"id": [0], "cell": pa.array([cell_of(page)], pa.binary())})


def received(
    sent: list[pa.RecordBatch], writer: int, *, in_files: bool
) -> tuple[list[Page], list[dict[str, Any]]]:
    pages: list[Page] = []
    insert = InsertPass(SCHEMA, (), lambda: ListSink(pages))  # type: ignore[arg-type,return-value]
    mine = [batch for batch in sent if batch.column(0)[0].as_py() == writer]
    return pages, [
        row for batch in ReceivedInsertPass(insert, in_files)(mine) for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("in_files", [True, False])
def test_every_writer_has_the_rows_of_its_partitions_in_their_order(
    tmp_path: Path, in_files: bool
) -> None:
    parts: list[str | None] = [f"p{n % 7}" for n in range(1000)]
    sent = list(sender(str(tmp_path) if in_files else None)(arriving(parts)))
    assert len(list(tmp_path.iterdir())) == in_files
    seen: dict[str, int] = {}
    total = 0
    for writer in range(3):
        pages, _ = received(sent, writer, in_files=in_files)
        for page in pages:
            ids = page.column("id").to_numpy()
            assert (np.diff(ids) > 0).all()
            assert page.column("part").to_pylist() == [parts[n] for n in ids]
            assert all(
                seen.setdefault(part, writer) == writer for part in page.column("part").to_pylist()
            )
            total += page.num_rows
    assert total == 1000
    assert len(set(seen.values())) > 1


@pytest.mark.parametrize(
    ("text", "parts", "code"),
    [
        ("error('[[DIVISION_BY_ZERO]] no')", ["a"], "DIVISION_BY_ZERO"),
        ('"id"', ["a", None], "CONSTRAINT_VIOLATION"),
    ],
)
def test_an_error_of_a_sender_reaches_the_driver_as_its_record(
    tmp_path: Path, text: str, parts: list[str | None], code: str
) -> None:
    sent = list(sender(str(tmp_path), text)(arriving(parts)))
    pages, rows = received(sent, 0, in_files=True)
    records = [pickle.loads(row["payload"]) for row in rows if row["kind"] == RECORD_ROW]
    assert [record.error.code for record in records if record.error is not None] == [code]
    assert not pages


def test_a_folder_that_cannot_be_written_is_an_error_of_the_sender(tmp_path: Path) -> None:
    sent = list(sender(str(tmp_path / "gone"))(arriving(["a"])))
    _, rows = received(sent, 0, in_files=True)
    [error] = [
        record.error
        for record in (pickle.loads(row["payload"]) for row in rows)
        if getattr(record, "error", None)
    ]
    assert "gone" in error.message
