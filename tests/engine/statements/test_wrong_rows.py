"""The wrong rows of a store are paired with the expected ones, and their calls and patterns are named.

A small store takes the pages of two writers; each test plants one fault in it. No test needs Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowmerge_nb.engine.statements.sink_changes import SinkChanges
from rowmerge_nb.engine.statements.wrong_rows import SHOWN, WrongRows
from rowmerge_nb.engine.tasks.handed import HandedPages, Keeping
from rowmerge_nb.spi import Operation
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.page import PageLayout
from rowmerge_nb.trace.bags import differing
from rowmerge_nb.trace.check_records import CommitCheck
from rowmerge_nb.trace.page_samples import PageSample, Placement

INS, D, UI, UD = (
    Operation.INSERT,
    Operation.DELETE,
    Operation.UPDATE_INSERT,
    Operation.UPDATE_DELETE,
)
NAMES = ("id", "name", "region", "n")
BEFORE = pa.table(
    {
        "0": pa.array(range(12), pa.int64()),
        "1": [f"old{i}" for i in range(12)],
        "2": ["EU", "US", "AS"] * 4,
        "3": pa.array(range(50, 62), pa.int64()),
    }
)
LAYOUT = PageLayout(4, (2,), Era.CURRENT)


def page(*rows: tuple[Operation, int]) -> pa.RecordBatch:
    """Return the page of changes of the rows with these ids; the row id is 100 + id."""
    regions = ["EU", "US", "AS"]
    columns = [
        pa.array([None if op in {D, UD} else i for op, i in rows], pa.int64()),
        pa.array([None if op in {D, UD} else f"new{i}" for op, i in rows], pa.string()),
        pa.array([regions[i % 3] for _, i in rows], pa.string()),
        pa.array([None if op in {D, UD} else 50 + i for op, i in rows], pa.int64()),
        pa.array([int(op) for op, _ in rows], pa.int8()),
        pa.array([0 for _ in rows], pa.int32()),
        pa.array([None if op in {INS, UI} else 100 + i for op, i in rows], pa.int64()),
        pa.array([int(op == UI) for op, _ in rows], pa.int8()),
    ]
    names = [*NAMES, "operation", "case_number", "row_id", "insert_from_update"]
    return pa.RecordBatch.from_arrays(columns, names=names)


def update(*ids: int) -> list[tuple[Operation, int]]:
    return [(op, i) for i in ids for op in (UD, UI)]


PAGES: list[tuple[int, pa.RecordBatch]] = [
    (0, page((INS, 20), *update(0, 1), (D, 2))),
    (0, page((INS, 21), *update(3, 4))),
    (1, page((INS, 22), *update(5, 6), (D, 7))),
    (1, page((INS, 23), (INS, 24), *update(8), (D, 9))),
]
"""Rows 10 and 11 are not touched."""


class Store:
    """A correct store; faults are subclasses."""

    def __init__(self) -> None:
        self.removed: list[int] = []
        self.added: list[pa.Table] = []
        self.calls: dict[int, int] = {}

    def store_merged_rows(self, writer: int, page: pa.RecordBatch) -> None:
        self.calls[writer] = self.calls.get(writer, 0) + 1
        self.store(writer, self.calls[writer], page)

    def store(self, writer: int, call: int, page: pa.RecordBatch) -> None:
        operation = page.column(4)
        old = pc.is_in(operation, pa.array([D, UD], pa.int8()))
        new = pa.Table.from_batches([page]).filter(pc.invert(old))
        self.removed += [row - 100 for row in page.column(6).filter(old).to_pylist()]
        self.added.append(self.new_rows(new.select(list(NAMES)).rename_columns(list("0123"))))

    def new_rows(self, rows: pa.Table) -> pa.Table:
        return rows

    def rows(self) -> pa.Table:
        stays = np.isin(np.arange(BEFORE.num_rows), self.removed, invert=True)
        return pa.concat_tables([BEFORE.filter(pa.array(stays)), *self.added])


def rows_of(store: Store, pages: Sequence[tuple[int, pa.RecordBatch]]) -> pa.Table:
    for writer, one in pages:
        store.store_merged_rows(writer, one)
    return store.rows()


def check_of(
    store: Store,
    pages: Sequence[tuple[int, pa.RecordBatch]] = PAGES,
    *,
    keys: tuple[int, ...] = (0,),
    numbers: Sequence[int] | None = None,
    most_bytes: int = 1 << 20,
) -> CommitCheck:
    after = pa.concat_batches([one for _, one in pages])
    sizes = [one.num_rows for _, one in pages]
    sample = PageSample(
        before=after,
        after=after,
        produced=(1,) * after.num_rows,
        writers=tuple(np.repeat([writer for writer, _ in pages], sizes).tolist()),
        witness=None,
        total_before=after.num_rows,
        total_after=after.num_rows,
        complete=True,
        layout=LAYOUT,
        transformed=False,
        placement=None if numbers is None else Placement(2, tuple(numbers)),
    )
    changes = SinkChanges.of_sample(sample)
    row_ids = pa.array(range(100, 112), pa.int64())
    old_rows = changes.old_rows(BEFORE.select(["2"]).append_column("row_id", row_ids))
    stays = np.ones(BEFORE.num_rows, np.bool_)
    stays[old_rows[old_rows >= 0]] = False
    streams = []
    for writer in dict(pages):
        handed = HandedPages(Keeping(most_bytes, always=True))
        for number, one in pages:
            if number == writer:
                handed.note(LAYOUT.stored_page(one))
        streams.append((writer, *handed.retained()))
    missing, extra = differing(rows_of(store, pages), rows_of(Store(), pages))
    wrong = WrongRows(NAMES, keys, BEFORE, stays, changes, old_rows, missing, extra, streams)
    return wrong.check()


class UpperCase(Store):
    def new_rows(self, rows: pa.Table) -> pa.Table:
        return rows.set_column(1, "1", pc.utf8_upper(rows.column(1)))


class ExchangesColumns(Store):
    def new_rows(self, rows: pa.Table) -> pa.Table:
        return rows.select(["3", "1", "2", "0"]).rename_columns(list("0123"))


class ShiftsPositions(Store):
    def new_rows(self, rows: pa.Table) -> pa.Table:
        names = pa.array(["?", *rows.column(1).to_pylist()[:-1]])
        return rows.set_column(1, "1", names)


class LosesPages(Store):
    lost: ClassVar[set[tuple[int, int]]] = set()

    def store(self, writer: int, call: int, page: pa.RecordBatch) -> None:
        if (writer, call) not in self.lost:
            super().store(writer, call, page)


class LosesTheLastPageOfEach(LosesPages):
    lost: ClassVar = {(0, 2), (1, 2)}


class LosesTheLastPageOfOne(LosesPages):
    lost: ClassVar = {(1, 2)}


class LosesAPage(LosesPages):
    lost: ClassVar = {(1, 1)}


class LosesAWriter(LosesPages):
    lost: ClassVar = {(1, 1), (1, 2)}


class LosesTheFirstRow(Store):
    def store(self, writer: int, call: int, page: pa.RecordBatch) -> None:
        super().store(writer, call, page.slice(1))


class LosesTheLastRow(Store):
    def store(self, writer: int, call: int, page: pa.RecordBatch) -> None:
        super().store(writer, call, page.slice(0, page.num_rows - 1))


class LosesARegion(Store):
    def store(self, writer: int, call: int, page: pa.RecordBatch) -> None:
        super().store(writer, call, page.filter(pc.not_equal(page.column(2), "AS")))


class Loses(Store):
    lost: ClassVar[list[Operation]] = []

    def store(self, writer: int, call: int, page: pa.RecordBatch) -> None:
        lost = pc.is_in(page.column(4), pa.array(self.lost, pa.int8()))
        super().store(writer, call, page.filter(pc.invert(lost)))


class LosesDeletes(Loses):
    lost: ClassVar = [D]


class LosesInserts(Loses):
    lost: ClassVar = [INS]


class LosesUpdates(Loses):
    lost: ClassVar = [UI, UD]


class KeepsOldRows(Loses):
    lost: ClassVar = [UD]


class RemovesNothing(Loses):
    lost: ClassVar = [D, UD]


class AddsNothing(Loses):
    lost: ClassVar = [INS, UI]


class LosesEverything(Loses):
    lost: ClassVar = [INS, D, UI, UD]


class StoresTwice(Store):
    def rows(self) -> pa.Table:
        return pa.concat_tables([super().rows(), *self.added])


class DeletesLast(Store):
    """Deletes by key, after it has inserted."""

    def rows(self) -> pa.Table:
        rows = pa.concat_tables([BEFORE, *self.added])
        return rows.filter(pc.invert(pc.is_in(rows.column(0), pa.array(self.removed, pa.int64()))))


class StoresAnEarlierStatement(Store):
    def rows(self) -> pa.Table:
        return pa.concat_tables([super().rows(), BEFORE.slice(10, 2)])


class StoresAFailedStatement(Store):
    def rows(self) -> pa.Table:
        row = pa.table([[77], ["gone"], ["EU"], [78]], list("0123"))
        return pa.concat_tables([super().rows(), row])


class CountsRowsFromOne(Store):
    def rows(self) -> pa.Table:
        self.removed = [row + 1 for row in self.removed]
        return super().rows()


class ReplacesTheTable(Store):
    def rows(self) -> pa.Table:
        return pa.concat_tables(self.added)


FAULTS: dict[type[Store], str] = {
    UpperCase: "Column 'name' differs in case only, in all 12 paired rows.",
    ExchangesColumns: "Columns 'id' and 'n' are exchanged, in all 12 paired rows.",
    LosesTheLastPageOfEach: "The wrong 10 changes are all of the last page of writers 0, 1, and no other change is wrong.",
    LosesTheLastPageOfOne: "The wrong 5 changes are all of the last page of writer 1, and no other change is wrong.",
    LosesAPage: "The wrong 6 changes are all of store_merged_rows, call 1 of writer 1, and no other change is wrong.",
    LosesAWriter: "The wrong 11 changes are all of writer 1, and no other change is wrong.",
    LosesTheLastRow: "The wrong 4 changes are the last row of each page, and no other change is wrong.",
    LosesARegion: "The wrong 7 changes are all of the rows with region 'AS', and no other change is wrong.",
    LosesDeletes: "Only deletes are wrong (3 of 3): their rows still exist.",
    LosesInserts: "Only inserts are wrong (5 of 5): their rows are missing.",
    LosesUpdates: "Only updates are wrong (7 of 7): their old rows exist instead of the new ones.",
    KeepsOldRows: "Only updates are wrong (7 of 7): their old rows still exist beside the new ones.",
    RemovesNothing: "All rows that the statement deletes or replaces still exist.",
    AddsNothing: "The table has no new row of the statement.",
    LosesEverything: "The table is unchanged by the statement.",
    DeletesLast: "The missing rows are the new rows with a key that the statement also deletes, as if deletes were applied after inserts, or UPDATE_INSERT (operation 4) were ignored.",
    StoresAnEarlierStatement: "The additional rows were in the table before, as if rows of an earlier statement were stored again.",
    StoresAFailedStatement: "The additional rows are neither from this statement nor were they in the table"
        " before, as if a sink had kept rows of an earlier statement.",
    ReplacesTheTable: "All rows that the statement does not touch are gone, as if its new rows had replaced the table.",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_named_by_one_pattern(fault: type[Store]) -> None:
    check = check_of(fault())
    assert check.patterns == (FAULTS[fault],)
    assert len(check.rows) == min(check.wrong, SHOWN)
    assert check.expected is not None
    assert check.actual is not None
    assert check.expected.num_rows == check.actual.num_rows == len(check.rows)


def test_the_first_rows_of_pages_are_named_with_their_operation() -> None:
    assert check_of(LosesTheFirstRow()).patterns == (
        "Only inserts are wrong (4 of 5): their rows are missing.",
        "The wrong 4 changes are the first row of each page, and no other change is wrong.",
    )


def test_a_store_that_doubles_rows_has_them_too_often() -> None:
    check = check_of(StoresTwice())
    assert check.wrong == 12
    assert {row.problem for row in check.rows} == {"too often"}


def test_a_shift_within_pages_is_named() -> None:
    check = check_of(ShiftsPositions(), [(0, page((INS, 20), (INS, 21), (INS, 22), (INS, 23)))])
    assert check.patterns == (
        "Column 'name' has the value of the row before it in the sinks' pages, in all 4 paired rows.",
    )


def test_row_ids_of_neighbors_are_named_with_their_distance() -> None:
    check = check_of(CountsRowsFromOne(), [(0, page((D, 2), (D, 5)))])
    assert check.patterns[0] == (
        "2 untouched rows are gone, and the same number of changed rows still exist:"
        " row ids were mistaken for other rows, each 1 row further on."
    )


def test_a_bucket_is_named_by_its_number() -> None:
    class LosesBucket(Store):
        def store(self, writer: int, call: int, page: pa.RecordBatch) -> None:
            ids = [
                (new if new is not None else old - 100) % 2
                for new, old in zip(
                    page.column(0).to_pylist(), page.column(6).to_pylist(), strict=True
                )
            ]
            super().store(writer, call, page.filter(pa.array([i == 0 for i in ids])))

    rows = [(INS, i) for i in range(20, 30)]
    check = check_of(LosesBucket(), [(0, page(*rows))], numbers=[i % 2 for _, i in rows])
    assert check.patterns == (
        "The inserts are wrong (5 of 10): their rows are missing.",
        "The wrong 5 changes are all of bucket 1, and no other change is wrong.",
    )


def test_a_pair_has_its_cells_and_the_call_of_its_change() -> None:
    check = check_of(UpperCase())
    first = check.rows[0]
    assert first.sentence == (
        "Row (20, 'new20', 'AS', 70) should have been inserted: name is 'NEW20' and"
        " must be 'new20'."
    )
    assert (first.problem, first.differing) == ("other values", (1,))
    assert (first.writer, first.call, first.row) == (0, 1, 0)
    assert check.expected is not None
    assert check.actual is not None
    assert check.expected.column("name").to_pylist()[0] == "new20"
    assert check.actual.column("name").to_pylist()[0] == "NEW20"
    assert check.message == "Read back: 12 rows are not as the statement should have left them."
    # The rows are in the order of the calls.
    assert [(row.call, row.row) for row in check.rows] == [(1, 0), (1, 2), (1, 4), (2, 0), (2, 2)]


def test_an_old_row_is_paired_with_the_row_that_must_replace_it() -> None:
    row = check_of(LosesUpdates()).rows[0]
    assert row.problem == "old values"
    assert row.sentence == (
        "Row (0, 'new0', 'EU', 50) was expected after an update, and an old row"
        " exists: name is 'old0' and must be 'new0'."
    )
    assert (row.writer, row.call, row.row) == (0, 1, 2)


def test_a_single_row_has_one_side() -> None:
    check = check_of(LosesDeletes())
    assert check.expected is not None
    assert check.actual is not None
    assert (
        check.rows[0].sentence == "Row (2, 'old2', 'AS', 52) should have been deleted but exists."
    )
    assert check.actual.column("id").to_pylist() == [2, 7, 9]
    assert check.expected.column("id").to_pylist() == [None] * 3
    assert [(row.writer, row.call, row.row) for row in check.rows] == [
        (0, 1, 5),
        (1, 1, 5),
        (1, 2, 4),
    ]


def test_rows_that_no_change_touches_have_no_call() -> None:
    rows = check_of(ReplacesTheTable()).rows
    assert [row.sentence for row in rows] == [
        "Row (10, 'old10', 'US', 60) is missing; the statement does not touch it.",
        "Row (11, 'old11', 'AS', 61) is missing; the statement does not touch it.",
    ]
    assert {row.writer for row in rows} == {None}


def test_the_numbers_of_calls_include_unrecorded_pages() -> None:
    pages = [(0, page((INS, i))) for i in range(20, 26)]
    check = check_of(LosesTheLastPage6(), pages, most_bytes=1)
    assert [(row.call, row.row) for row in check.rows] == [(6, 0)]
    # Not all calls are known, and nothing is reported about pages.
    assert check.patterns == ()


class LosesTheLastPage6(LosesPages):
    lost: ClassVar = {(0, 6)}


def test_a_row_of_nulls_is_named() -> None:
    class AddsNulls(Store):
        def rows(self) -> pa.Table:
            return pa.concat_tables([super().rows(), BEFORE.schema.empty_table(), _nulls()])

    assert check_of(AddsNulls()).rows[0].sentence == (
        "A row of NULLs exists that the statement does not add."
    )


def _nulls() -> pa.Table:
    return pa.table([pa.nulls(1, kind) for kind in BEFORE.schema.types], list("0123"))


def test_wide_rows_are_cut_in_sentences() -> None:
    sample: Any = pa.table({str(i): [i] for i in range(30)})
    changes = SinkChanges.of_inserted([(0, sample.to_batches()[0])])
    wrong = WrongRows(
        tuple(f"c{i}" for i in range(30)),
        (0,),
        sample.schema.empty_table(),
        np.zeros(0, np.bool_),
        changes,
        np.full(1, -1, np.int64),
        sample,
        pa.table({str(i): [i if i < 20 else -i] for i in range(30)}),
        (),
    ).check()
    assert wrong.rows[0].sentence == (
        "Row (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...) should have been inserted:"
        " c20 is -20 and must be 20, c21 is -21 and must be 21, c22 is -22 and must be 22, 7"
        " other columns differ."
    )
    assert len(wrong.patterns) == 10
