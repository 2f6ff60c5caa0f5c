"""The parts of a row change within a task: joins of pages, pieces of a source, the searched CASE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.engine.tasks import replicated
from rowmerge_nb.engine.tasks.exchange import PartitionFunction
from rowmerge_nb.engine.tasks.join_keys import JoinKeys
from rowmerge_nb.engine.tasks.key_index import MOST_PAIRS
from rowmerge_nb.engine.tasks.merge_passes import ChangedRows
from rowmerge_nb.engine.tasks.page_join import KeyJoin
from rowmerge_nb.engine.tasks.page_program import (
    AssignedColumn,
    PageEvaluator,
    PageExpression,
    PageProgram,
    PageQuery,
)
from rowmerge_nb.engine.tasks.recorder import TaskRecord
from rowmerge_nb.engine.tasks.replicated import (
    MESSAGES,
    PIECE_ROWS,
    PIECES,
    PackPass,
    ReplicatedSource,
    UnmatchedRows,
    UnmatchedWriterPass,
)
from rowmerge_nb.engine.tasks.returned_rows import ReturnedRows
from rowmerge_nb.engine.tasks.scan import POSITION, cell_of
from rowmerge_nb.engine.tasks.searched_case import PageBranch, PageCase
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.tree.statements import Span

TARGET = pa.RecordBatch.from_pydict(
    {"k": [1, 2, 3, None], "v": [10, 20, 30, 40], POSITION: [0, 1, 2, 3]}
)
SOURCE = pa.RecordBatch.from_pydict({"s": [2, 3, 3, 9], "w": [1, 2, 3, 4]})


def expression(text: str, *reads: str) -> PageExpression:
    return PageExpression(
        text,
        Span(0, 1, 1, 1),
        "in a test",
        reads=frozenset(reads),
        is_plain=text in {f'"{r}"' for r in reads},
    )


def evaluator() -> PageEvaluator:
    return PageEvaluator(PageProgram())


def key(name: str) -> JoinKeys:
    return JoinKeys(
        (
            AssignedColumn(
                name,
                pa.int64(),
                PageExpression(f'"{name}"', None, "", reads=frozenset({name}), is_plain=True),
            ),
        ),
        (False,),
    )


@pytest.mark.parametrize("full", [False, True])
def test_a_small_join_follows_the_source_and_ends_with_the_rest_of_a_full_join(full: bool) -> None:
    (rows,) = KeyJoin(((key("k"), key("s")),), expression('"w" <> 3', "w"), full).joined(
        TARGET, SOURCE, evaluator()
    )
    met = [(20, 1), (30, 2), (None, 3), (None, 4)]
    assert list(
        zip(rows.column("v").to_pylist(), rows.column("w").to_pylist(), strict=True)
    ) == met + ([(10, None), (40, None)] if full else [])


@pytest.mark.parametrize("full", [False, True])
def test_a_join_page_by_page_omits_source_rows_without_a_partner(full: bool) -> None:
    join = KeyJoin(((key("k"), key("s")),), expression('"w" > 2', "w"), full)
    pages = [TARGET.slice(0, 2), TARGET.slice(2, 2)]
    found = [
        pair
        for rows in join.matches(pages, SOURCE, join.index(SOURCE, evaluator()), evaluator())
        for pair in zip(rows.column("v").to_pylist(), rows.column("w").to_pylist(), strict=True)
    ]
    assert found == [(30, 3), *([(10, None), (20, None), (40, None)] if full else [])]


@pytest.mark.not_quick
@pytest.mark.each_value
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("rest", [None, '"w" % 2 = 0'])
def test_very_many_matches_arrive_in_pieces_with_each_target_row_in_one_piece(
    full: bool, rest: str | None
) -> None:
    target = pa.RecordBatch.from_pydict(
        {"k": [n % 5 for n in range(500)], POSITION: list(range(500))}
    )
    source = pa.RecordBatch.from_pydict(
        {"s": [n % 7 for n in range(9_000)], "w": list(range(9_000))}
    )
    join = KeyJoin(((key("k"), key("s")),), expression(rest, "w") if rest else None, full)
    pieces = list(join.joined(target, source, evaluator()))
    assert len(pieces) > 2
    assert max(rows.count for rows in pieces) <= 2 * MOST_PAIRS
    met = [set(rows.column(POSITION).drop_null().to_pylist()) for rows in pieces]
    assert sum(map(len, met)) == len(set.union(*met)) == 500
    pairs = {
        pair
        for rows in pieces
        for pair in zip(
            rows.column(POSITION).to_pylist(), rows.column("w").to_pylist(), strict=True
        )
    }
    wanted = {
        (t, w)
        for t in range(500)
        for w in range(9_000)
        if t % 5 == w % 7 and (rest is None or w % 2 == 0)
    }
    alone = set(range(9_000)) - {w for _, w in wanted}
    assert pairs == wanted | {(None, w) for w in alone}
    assert sum(rows.count for rows in pieces) == len(pairs)


@pytest.mark.parametrize("count", [0, 1, PIECE_ROWS, PIECE_ROWS + 1, 3 * PIECE_ROWS - 1])
def test_a_source_is_packed_into_pieces_of_one_size(count: int) -> None:
    schema = pa.schema([("a", pa.int64())])
    rows = pa.record_batch([pa.array(range(count), pa.int64())], schema=schema)
    batches = [rows.slice(start, 50_000) for start in range(0, count, 50_000)]
    packed = pa.Table.from_batches(list(PackPass(None, schema)(batches)), PIECES)
    assert packed["piece"].to_pylist() == list(range(max(1, -(-count // PIECE_ROWS))))
    values: list[int] = []
    for cell in packed["cell"].to_pylist():
        with pa.ipc.open_stream(cell[16:]) as stream:
            values += stream.read_all()["a"].to_pylist()
    assert values == list(range(count))


def test_a_source_that_is_larger_than_it_seemed_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replicated, "MOST_BYTES", 1 << 20)
    schema = pa.schema([("a", pa.string())])
    with pytest.raises(
        RuntimeError, match=r"EXCEEDED_LOCAL_MEMORY_LIMIT.*larger than 1 MiB.*rules_off"
    ):
        list(PackPass(None, schema)([pa.record_batch([["x" * (2 << 20)]], schema=schema)]))


@pytest.mark.parametrize(
    ("writer", "error", "told"),
    [(0, None, 1), (1, None, 0), (1, ExecutionError("out of memory"), 1)],
)
def test_the_first_writer_reports_unmatched_rows_and_another_one_only_its_own_error(
    monkeypatch: pytest.MonkeyPatch, writer: int, error: ExecutionError | None, told: int
) -> None:
    monkeypatch.setattr(replicated, "task_partition", lambda: writer)
    schema = pa.schema([("c0", pa.int64())])
    record = TaskRecord(7, error=error)

    def rows(*values: int) -> ChangedRows:
        page = pa.record_batch([pa.array(values)], schema=schema)
        return ChangedRows(page, pa.array([value % 10 for value in values], pa.int32()))

    class Above:
        def changed(self, batches: Iterator[pa.RecordBatch], number: int) -> Iterator[Any]:
            assert (list(batches), number) == ([], 7)
            yield from (rows(10), rows(11), record)

    class Writers:
        in_files = False

        def store(
            self, pages: Iterator[pa.RecordBatch], reports: list[bytes], number: int
        ) -> Iterator[pa.RecordBatch]:
            assert number == writer
            yield from pages
            stored_reports.extend(reports)

    stored_reports: list[bytes] = []
    unmatched = UnmatchedRows(
        schema, ReplicatedSource(schema, None), PageProgram(), cast("Any", None)
    )
    task = UnmatchedWriterPass(
        7,
        unmatched,
        cast("Any", Above()),
        PartitionFunction(2, (0,), None, 0),
        cast("Any", Writers()),
    )
    cell = cell_of(rows(1, 2).page)
    sent = pa.record_batch(
        [pa.array([writer], pa.int32()), [cell], pa.nulls(1, pa.int32()), pa.nulls(1, pa.binary())],
        schema=MESSAGES,
    )
    stored = pa.Table.from_batches(list(task([sent])))
    assert stored["c0"].to_pylist() == [1, 2, 10 + writer]
    assert len(stored_reports) == told


def test_writers_refuse_two_packings_of_a_source() -> None:
    schema = pa.schema([("a", pa.int64())])
    told = replicated._Messages()
    for number in range(2):
        told.take_matched(0, bytes([number] * 16))
    with pytest.raises(ExecutionError, match="was read twice, and its rows may have changed"):
        list(
            UnmatchedRows(
                schema, ReplicatedSource(schema, None), PageProgram(), cast("Any", None)
            ).batches(told)
        )


def test_a_task_of_the_next_stage_computes_with_the_answers_it_received() -> None:
    answers = pa.RecordBatch.from_pydict({"$q0": [3], "$q1": [[{"v": 1}, {"v": 4}]]})
    told = replicated._Messages()
    told.take_matched(0, bytes(16) + np.packbits([True, False, False, False]).tobytes())
    told.take_piece(0, pa.scalar(bytes(16) + cell_of(SOURCE)))
    told.take_answers(cell_of(answers))
    program = PageProgram(
        queries=(PageQuery("$q0", "scalar", pa.int64()), PageQuery("$q1", "in", pa.int64()))
    )

    class Channels:
        def batch(self, rows: Any, evaluator: PageEvaluator, numbers: pa.Array) -> pa.RecordBatch:
            page = rows.page(["w"])
            kept = evaluator.rows_where(
                expression('"w" >= "$q0" AND "w" IN (SELECT v FROM "$q1")', "w"), page
            )
            return page.take(pa.array(kept))

    unmatched = UnmatchedRows(
        TARGET.schema, ReplicatedSource(SOURCE.schema, None), program, cast("Any", Channels())
    )
    assert pa.Table.from_batches(unmatched.batches(told)).to_pydict() == {"w": [4]}


def test_rows_of_returning_are_computed_for_the_rows_that_change() -> None:
    kind = pa.struct(
        [
            ("v", pa.int64()),
            ("present", pa.bool_()),
            ("operation", pa.int8()),
            ("case_number", pa.int32()),
        ]
    )
    made = [
        None,
        {"v": 7, "present": True, "operation": 3, "case_number": 0},
        None,
        {"v": None, "operation": Operation.NONE},
    ]
    (rows,) = KeyJoin(((key("k"), key("s")),), None, full=False).joined(TARGET, SOURCE, evaluator())
    failing = expression(
        'CASE WHEN "w" <> 2 THEN error(\'[[DIVISION_BY_ZERO]] no\') ELSE "new_v" + "w" END',
        "w",
        "new_v",
    )
    returned = ReturnedRows(
        ("m.0", "m.1", "m.2", "m.3"),
        (AssignedColumn("new_v", pa.int64(), expression('"m.0"', "m.0")),),
        (
            AssignedColumn("f0", pa.int64(), failing),
            AssignedColumn("f1", pa.int64(), expression('"v"', "v")),
        ),
    )
    found = returned.of(rows, pa.array(made, kind), evaluator())
    assert found.to_pylist() == [None, {"f0": 9, "f1": 30}, None, None]
    assert returned.of(rows, pa.array([None] * 4, kind), evaluator()).equals(
        pa.nulls(4, found.type)
    )


def test_each_branch_is_computed_for_the_rows_that_reach_it() -> None:
    kind = pa.struct(
        [
            ("v", pa.int64()),
            ("present", pa.bool_()),
            ("operation", pa.int8()),
            ("case_number", pa.int32()),
        ]
    )
    failing = expression(
        'CASE WHEN "w" = 1 THEN error(\'[[DIVISION_BY_ZERO]] no\') ELSE "w" END', "w"
    )
    case = PageCase(
        (
            PageBranch(
                0,
                Operation.DELETE,
                (True, True),
                expression('"w" = 1', "w"),
                (AssignedColumn("v", pa.int64(), expression("NULL")),),
            ),
            PageBranch(
                1, Operation.UPDATE, (True, True), None, (AssignedColumn("v", pa.int64(), failing),)
            ),
            PageBranch(
                2,
                Operation.INSERT,
                (False, True),
                expression('"w" > 3', "w"),
                (AssignedColumn("v", pa.int64(), expression('"w"', "w")),),
            ),
        ),
        PageBranch(-1, Operation.NONE),
        kind,
    )
    (rows,) = KeyJoin(((key("k"), key("s")),), None, full=True).joined(TARGET, SOURCE, evaluator())
    made = case.merge_rows(rows, evaluator()).to_pylist()
    assert made == [
        {"v": None, "present": True, "operation": 2, "case_number": 0},
        {"v": 2, "present": True, "operation": 3, "case_number": 1},
        {"v": 3, "present": True, "operation": 3, "case_number": 1},
        {"v": 4, "present": False, "operation": 1, "case_number": 2},
        None,
        None,
    ]
