"""Rows sent by their keys: each goes to one task, all rows of one key to the same one, for any type of the key on either side."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.engine.tasks import partitioned
from rowmerge_nb.engine.tasks.join_keys import JoinKeys
from rowmerge_nb.engine.tasks.page_join import KeyJoin
from rowmerge_nb.engine.tasks.page_program import (
    AssignedColumn,
    PageExpression,
    PageProgram,
    PageQuery,
)
from rowmerge_nb.engine.tasks.partitioned import (
    CELLS,
    SOURCE,
    TARGET,
    AnswersOutputPass,
    PartitionedJoinTask,
    PartitionedOutputPass,
)
from rowmerge_nb.engine.tasks.scan import POSITION
from rowmerge_nb.engine.tasks.sent_pages import received_pages

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 7


def keys_of(schema: pa.Schema, *names: str) -> JoinKeys:
    read = [
        PageExpression(f'"{name}"', None, "", reads=frozenset({name}), is_plain=True)
        for name in names
    ]
    columns = zip(names, read, strict=True)
    return JoinKeys(
        tuple(AssignedColumn(name, schema.field(name).type, tree) for name, tree in columns),
        (False,) * len(names),
    )


def sent(
    columns: dict[str, Any],
    keys: tuple[str, ...],
    *,
    alone: bool = True,
    batches: int = 3,
    folder: str | None = None,
) -> dict[int, list[dict[str, Any]]]:
    """Send the rows of a query; return the rows of each task."""
    table = pa.table(columns)
    arriving = [
        batch.rename_columns([f"c{i}" for i in range(len(columns))])
        for batch in table.to_batches(max_chunksize=-(-table.num_rows // batches))
    ]
    schema = table.schema.append(pa.field(POSITION, pa.int64()))
    task = PartitionedOutputPass(
        SOURCE,
        None,
        0,
        schema,
        keys_of(schema, *keys),
        PARTITIONS,
        spreads_nulls=alone,
        folder=folder,
    )
    found: dict[int, list[dict[str, Any]]] = {}
    # All first: the task completes its file at its end.
    for batch in list(task(arriving)):
        assert batch.schema.equals(CELLS)
        (partition,) = batch.column(0).to_pylist()
        pages = received_pages([batch.select([0, 2])], in_files=folder is not None)
        found.setdefault(partition, []).extend(row for page in pages for row in page.to_pylist())
    return found


@pytest.mark.parametrize("in_files", [False, True])
def test_every_row_is_sent_once_and_counted(tmp_path: Path, *, in_files: bool) -> None:
    found = sent(
        {"k": range(1000), "v": [str(n) for n in range(1000)]},
        ("k",),
        folder=str(tmp_path) if in_files else None,
    )
    assert sorted(found) == list(range(PARTITIONS))
    rows = [row for rows in found.values() for row in rows]
    assert sorted(row["k"] for row in rows) == list(range(1000))
    assert all(row == {"k": row["k"], "v": str(row["k"]), POSITION: row["k"]} for row in rows)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array(range(-50, 50), pa.int8()), pa.array(range(-50, 50), pa.int64())),
        (
            pa.array([f"é{n}" for n in range(100)]),
            pa.array([f"é{n}" for n in range(100)], pa.large_string()),
        ),
        (
            pa.array([f"x{n}" for n in range(100)]),
            pa.array([f"x{n}" for n in range(100)]).dictionary_encode(),
        ),
        (pa.array(range(100), pa.decimal128(5, 2)), pa.array(range(100), pa.decimal128(38, 2))),
        (pa.array(range(100), pa.timestamp("us")), pa.array(range(100), pa.timestamp("us"))),
        (pa.array([b"%d" % n for n in range(100)]), pa.array([b"%d" % n for n in range(100)])),
    ],
    ids=lambda column: str(column.type),
)
def test_equal_keys_go_to_the_same_task(one: pa.Array, other: pa.Array) -> None:
    places = []
    for column in (one, other):
        found = sent({"n": range(100), "k": column}, ("k",))
        places.append({row["n"]: partition for partition, rows in found.items() for row in rows})
    assert places[0] == places[1]
    assert len(set(places[0].values())) > 1


@pytest.mark.parametrize("alone", [False, True])
def test_unmatched_rows_are_spread_or_stay(*, alone: bool) -> None:
    found = sent({"a": [None] * 700, "b": range(700)}, ("a", "b"), alone=alone)
    assert {partition: len(rows) for partition, rows in found.items()} == (
        dict.fromkeys(range(PARTITIONS), 100) if alone else {}
    )


def test_a_row_with_a_null_among_its_keys_matches_nothing() -> None:
    found = sent({"a": [1, None, 1, None], "b": [None, None, 2, 2]}, ("a", "b"), alone=False)
    assert [(row["a"], row["b"]) for rows in found.values() for row in rows] == [(1, 2)]


def test_rows_are_parted_together_and_pages_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task sends few cells even if arriving pages are small."""
    monkeypatch.setattr(partitioned, "_SENT_ROWS", 400)
    keys = pa.table({"c0": np.arange(1000)}).to_batches(max_chunksize=10)
    schema = pa.schema([("k", pa.int64()), (POSITION, pa.int64())])
    cells = list(
        PartitionedOutputPass(
            SOURCE, None, 0, schema, keys_of(schema, "k"), PARTITIONS, spreads_nulls=True
        )(keys)
    )
    assert Counter(cell.column(4)[0].as_py() for cell in cells) == {
        0: PARTITIONS,
        1: PARTITIONS,
        2: PARTITIONS,
    }


@pytest.mark.parametrize("in_files", [False, True])
def test_every_task_gets_the_answers_of_subqueries_before_any_row(
    tmp_path: Path, *, in_files: bool
) -> None:
    schema = pa.schema([("k", pa.int64()), (POSITION, pa.int64())])
    rows = pa.record_batch([pa.array([1, 2, 3])], names=["c0"])
    answers = list(AnswersOutputPass(2)([pa.record_batch({"$q0": pa.array([7], pa.int32())})]))
    assert [cell.column(0)[0].as_py() for cell in answers] == [0, 1]
    folder = str(tmp_path) if in_files else None
    sides = [
        PartitionedOutputPass(
            side, None, 0, schema, keys_of(schema, "k"), 1, spreads_nulls=True, folder=folder
        )([rows])
        for side in (SOURCE, TARGET)
    ]
    cells = pa.Table.from_batches([*sides[1], answers[0], *sides[0]]).sort_by(
        [("side", "ascending")]
    )
    seen: list[Any] = []

    class Channels:
        def batch(self, joined: Any, evaluator: Any, numbers: pa.Array) -> pa.RecordBatch:
            seen.append((joined.count, [answer.to_pylist() for answer in evaluator.answers]))
            return rows

    def above(batches: Any) -> Any:
        return batches

    program = PageProgram(queries=(PageQuery("$q0", "scalar", pa.int64()),))
    join = KeyJoin(((keys_of(schema, "k"), keys_of(schema, "k")),), None, full=False)
    task = PartitionedJoinTask(
        schema, schema, join, program, cast("Any", Channels()), cast("Any", above), in_files
    )
    assert list(task(cells.to_batches()))
    assert seen == [(3, [[7]])]


def test_a_key_that_cannot_be_computed_ends_the_task_with_the_number_of_on() -> None:
    failing = PageExpression(
        "error('[[DIVISION_BY_ZERO]] Division by zero')", None, "", reads=frozenset({"k"})
    )
    keys = JoinKeys((AssignedColumn("k", pa.int64(), failing),), (False,))
    rows = pa.RecordBatch.from_pydict({"k": [1]})
    schema = rows.schema.append(pa.field(POSITION, pa.int64()))
    with pytest.raises(RuntimeError, match=r"\[\[DIVISION_BY_ZERO@4\]\] Division by zero"):
        list(
            PartitionedOutputPass(SOURCE, None, 0, schema, keys, 2, on=4, spreads_nulls=True)(
                [rows]
            )
        )


def test_a_disk_that_cannot_be_written_ends_the_task_with_a_code(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"\[\[PERMISSION_DENIED\]\] The temporary directory"):
        sent({"k": [1]}, ("k",), folder=str(tmp_path / "gone"))
