"""The lab on Spark: its numbers compared with independent counts, its budget, its file, interrupts."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.base.errors import StatementInterrupted
from rowmerge_nb.base.private import PREFIX
from rowmerge_nb.engine.reruns.lab.grid import points_of
from rowmerge_nb.engine.reruns.lab.lab_rows import MADE_STATEMENT, MADE_TABLE, made_rows
from rowmerge_nb.engine.reruns.lab.lab_run import Bench, LabRequest, Subject
from rowmerge_nb.engine.reruns.temporary_stores import TemporaryStores

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

ROWS = 600
SMALL = {"store": ["delta", "hive"], "share": [0.1], "locality": [0.0]}


@pytest.fixture(autouse=True)
def temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    """Tests in other processes do not create private folders here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.fixture
def engine(spark: Any) -> Engine:
    return Engine(spark=spark)


def private_folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


class Watched(Bench):
    """A bench that counts files by other means before a table is dropped."""

    def _step(self, engine: Any, store: Any, table: str, point: Any, index: int) -> Any:
        step = super()._step(engine, store, table, point, index)
        count = {
            "delta": delta_files,
            "iceberg_merge_on_read": iceberg_files,
            "hive": hive_files,
        }[store.name]
        self.counts.append((step, count(store, table)))
        return step


def delta_files(store: Any, table: str) -> tuple[int, int, int]:
    from deltalake import DeltaTable

    folder = store.connector._directory / "default" / table
    actions = pa.table(DeltaTable(folder).get_add_actions(flatten=True))
    sizes = [(folder / unquote(path)).stat().st_size for path in actions.column("path").to_pylist()]
    assert sizes == actions.column("size_bytes").to_pylist()
    return len(sizes), sum(sizes), 0


def iceberg_files(store: Any, table: str) -> tuple[int, int, int]:
    scan = store.connector.catalog.load_table(("default", table)).scan()
    tasks = list(scan.plan_files())
    data = {task.file.file_path for task in tasks}
    deletes = {file.file_path for task in tasks for file in task.delete_files}
    sizes = [Path(urlparse(path).path).stat().st_size for path in data | deletes]
    return len(sizes), sum(sizes), len(deletes)


def hive_files(store: Any, table: str) -> tuple[int, int, int]:
    """Count all files of buckets: nothing is compacted, so all are live."""
    files = list((store._folder / "warehouse" / table).rglob("bucket_*"))
    deletes = [file for file in files if file.parent.name.startswith("delete_delta")]
    return len(files), sum(file.stat().st_size for file in files), len(deletes)


def test_its_numbers_are_those_of_logs_manifests_and_disks(engine: Engine) -> None:
    points = points_of(
        {"share": [0.05], "locality": [0.0], "statements": [2], "partitioned_by": ["", "month"]}
    )
    request = LabRequest(
        sql=None, grid=None, rows=ROWS, key=None, seconds=60, results=None, options={}
    )
    names = ["delta", "hive", "iceberg_merge_on_read"]
    stores = TemporaryStores(names, ("memory",))
    try:
        subject = Subject(MADE_STATEMENT, MADE_TABLE, made_rows(ROWS))
        bench = Watched(engine.with_copies(stores.connectors, {}), stores, subject, request)
        for point in (point for point in points if point.store in names):
            bench.counts = []
            run = bench.run(point)
            assert run.refusal == ""
            assert [step.rows_changed for step in run.steps] == [30, 30]
            previous = run.loaded_bytes
            assert len(bench.counts) == 2
            for step, (files, size, to_merge) in bench.counts:
                assert (step.full_read_files, step.full_read_bytes) == (files, size)
                assert step.files_to_merge == to_merge
                if point.store != "delta":
                    # Nothing is rewritten, so a statement adds exactly what it has written.
                    assert step.full_read_bytes - previous == step.bytes_written
                previous = step.full_read_bytes
            assert run.bytes_written == sum(step.bytes_written for step in run.steps)
            changed_bytes = 60 * run.loaded_bytes / ROWS
            assert run.write_amplification == pytest.approx(run.bytes_written / changed_bytes)
    finally:
        stores.remove()


def test_a_grid_yields_a_frame_a_page_and_advice_with_numbers(
    engine: Engine, tmp_path: Path
) -> None:
    folders = private_folders()
    steps: list[str] = []
    grid = {
        "store": ["delta", "iceberg_merge_on_read", "memory", "sqlite"],
        "share": [0.05, 0.5],
        "locality": [0.0],
    }
    lab = engine.lab(grid=grid, rows=ROWS, seconds=120, progress=steps.append)
    assert lab.is_complete
    frame = lab.to_pandas()
    assert len(frame) == 8
    assert lab.to_arrow().num_rows == 8
    assert frame.refusal.tolist() == [""] * 8
    assert frame.rows_changed.tolist() == [30] * 4 + [300] * 4
    assert frame[frame.store == "memory"].bytes_written.isna().all()
    assert (frame[frame.store == "iceberg_merge_on_read"].files_to_merge > 0).all()
    assert len(lab.steps_to_pandas()) == 8
    assert steps[0].startswith("run 1 of 8: ")
    [advice] = [sentence for sentence in lab.advice if "moves fewer bytes" in sentence]
    run = next(run for run in lab.runs if run.point.store == "delta")
    assert any(f"{r.bytes_written:,}" in advice for r in lab.runs if r.bytes_written), advice
    assert run.bytes_written is not None
    html = lab._repr_mimebundle_()["text/html"]
    assert "<svg" in html
    assert "var(--rm-fg)" in html
    assert "write amplification" in html
    assert [path.name for path in lab.save_pictures(tmp_path)] == ["lab-light.svg", "lab-dark.svg"]
    for path in tmp_path.iterdir():
        assert "#010101" not in path.read_text()
    assert "delta" in str(lab)
    assert private_folders() == folders
    assert [table[0] for table in engine.tables()] == []


@pytest.mark.on_spark
def test_your_statement_runs_on_rows_of_your_table(engine: Engine) -> None:
    engine.register("t", pa.table({"k": range(500), "v": [1] * 500, "p": [1, 2] * 250}))
    lab = engine.lab(
        "DELETE FROM t WHERE k IN (SELECT k FROM changes)",
        grid={**SMALL, "partitioned_by": ["p", "q"], "compact_every": [1]},
        rows=100,
    )
    assert lab.rows == 100
    hive = [run for run in lab.runs if run.point.store == "hive"]
    assert [run.rows_changed for run in hive] == [10, 0]
    assert hive[0].steps[0].compaction_bytes > 0
    assert hive[0].steps[0].files_to_merge == 0
    refusals = {run.point.store: run.refusal for run in lab.runs if run.point.partitioned_by == "q"}
    assert all(refusals.values())
    delta = next(run for run in lab.runs if run.point.store == "delta")
    assert delta.steps[0].compaction_bytes is not None
    memory = engine.lab(grid={**SMALL, "store": ["memory"], "compact_every": [1]}, rows=50)
    assert "Store 'memory' has no compaction here" in memory.runs[0].refusal
    assert engine.table("t").num_rows == 500
    engine.run("DROP TABLE t")


def test_a_second_call_continues_where_the_budget_ended(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "lab.jsonl"
    grid = {**SMALL, "share": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]}
    began = time.monotonic()
    # With the pauses, the budget ends before the grid on any machine.
    first = engine.lab(
        grid=grid, rows=ROWS, seconds=4, results=file, progress=lambda _: time.sleep(0.5)
    )
    assert time.monotonic() - began < 8
    assert not first.is_complete
    assert "The budget of 4 seconds ended after" in str(first)
    if first.runs:
        lines = file.read_text().splitlines()
        assert len(lines) == 1 + len(first.runs)
        # The last line of a killed process is incomplete.
        with file.open("a") as text:
            text.write('{"point": {"store"')
    smaller = {**SMALL, "share": [0.1, 0.2]}
    second = engine.lab(grid=smaller, rows=ROWS, results=str(file))
    assert second.is_complete
    known = {run.point: run for run in first.runs}
    for run in second.runs:
        assert run.point not in known or asdict(run) == asdict(known[run.point])
    began = time.monotonic()
    third = engine.lab(grid=smaller, rows=ROWS, results=file)
    assert time.monotonic() - began < 1
    assert third.runs == second.runs


def test_a_file_of_another_lab_is_refused(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "lab.jsonl"
    engine.lab(grid={**SMALL, "store": ["hive"]}, rows=50, results=file)
    with pytest.raises(RowMergeError, match="results of another lab: it differs in rows, data"):
        engine.lab(grid=SMALL, rows=60, results=file)
    file.write_text("something\n")
    with pytest.raises(RowMergeError, match="has no results of a lab"):
        engine.lab(grid=SMALL, rows=50, results=file)
    with pytest.raises(RowMergeError, match="cannot be written"):
        engine.lab(grid={**SMALL, "store": ["hive"]}, rows=50, results=tmp_path / "no" / "f")


def test_an_interrupt_leaves_the_runs_before_it(engine: Engine, tmp_path: Path) -> None:
    folders, file = private_folders(), tmp_path / "lab.jsonl"

    def interrupt(step: str) -> None:
        if step.startswith("run 2 "):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(StatementInterrupted, match="interrupted after 1 of 2 runs") as stopped:
        engine.lab(grid=SMALL, rows=ROWS, results=file, progress=interrupt)
    assert len(stopped.value.result.runs) == 1
    assert "to continue" in stopped.value.hint
    assert private_folders() == folders
    assert engine.lab(grid=SMALL, rows=ROWS, results=file).is_complete


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sql": 7}, "sql = 7 is of type int"),
        ({"rows": 0}, "rows = 0 is not possible"),
        ({"rows": True}, "rows = True is not possible"),
        ({"seconds": "soon"}, "seconds = 'soon' is not possible"),
        ({"seconds": -1}, "seconds = -1 is not possible"),
        ({"results": 7}, "results = 7 is of type int"),
        ({"key": "id"}, "without a statement takes no key"),
        ({"grid": [1]}, r"grid = \[1\] is not a mapping"),
        ({"grid": {"shar": [1]}}, "The grid has no dimension 'shar'"),
        ({"grid": {"share": [0]}}, r"share = \[0\] is not possible"),
        ({"grid": {"share": []}}, r"share = \[\] is not possible"),
        ({"grid": {"files": [1.5]}}, "files = .* is not possible"),
        ({"grid": {"store": ["detla"]}}, "There is no store 'detla'"),
        ({"shares": [0.1]}, "There is no option 'shares'"),
        ({"share": [0.1]}, "has no argument 'share', but a dimension"),
        ({"verify": "duckdb"}, "The lab and the option verify cannot be combined"),
        ({"sql": "DELETE FROM t"}, "does not read changes"),
        ({"sql": "SELECT * FROM changes"}, "statements that change rows"),
        ({"sql": "DELETE FROM none WHERE id IN (SELECT id FROM changes)"}, "does not exist"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(
    engine: Engine, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(RowMergeError, match=message) as refused:
        engine.lab(**arguments)
    assert refused.value.hint


def test_a_key_that_the_target_lacks_is_refused(engine: Engine) -> None:
    engine.register("t", pa.table({"k": [1], "v": [1]}))
    sql = "DELETE FROM t WHERE k IN (SELECT k FROM changes)"
    with pytest.raises(RowMergeError, match="has no column 'kk'"):
        engine.lab(sql, key="kk")
    engine.run("DELETE FROM t")
    with pytest.raises(RowMergeError, match="has no rows with a k"):
        engine.lab(sql)
    engine.run("DROP TABLE t")


def test_a_closed_engine_has_no_lab() -> None:
    engine = Engine()
    engine.close()
    with pytest.raises(RowMergeError, match="closed"):
        engine.lab()


def test_results_are_plain_data(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "lab.jsonl"
    engine.lab(grid={**SMALL, "store": ["hive"]}, rows=50, results=file)
    header, run = map(json.loads, file.read_text().splitlines())
    assert header["rows"] == 50
    assert run["point"]["store"] == "hive"
    assert run["steps"][0]["rows_changed"] == 5
