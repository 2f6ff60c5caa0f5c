from __future__ import annotations

import sys

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FAKE = """
import sys, time
sys.path.insert(0, {path!r})
from tests.notebook.conftest import FakeEngine
fake = FakeEngine()
%load_ext rowmerge_nb
%config MergeMagic.engine = "fake"
"""


def execute(tmp_path, *cells, allow_errors=False):
    from pathlib import Path

    root = str(Path(__file__).resolve().parents[2])
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in (FAKE.format(path=root), *cells)]
    client = NotebookClient(
        notebook,
        timeout=60,
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    return [cell.outputs for cell in notebook.cells[1:]]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Outputs of the cells of one notebook."""
    cells = {
        "shown": "%%merge\nDROP TABLE a; DROP TABLE PAUSE",
        "kept": "%%merge kept <<\nDROP TABLE PAUSE",
        "lines": "print('before')\n%merge DROP TABLE a\n%merge DROP TABLE PAUSE\nprint('after')",
        "called": "print('before')\nget_ipython().run_cell_magic('merge', '', 'DROP TABLE PAUSE')",
    }
    return dict(
        zip(cells, execute(tmp_path_factory.mktemp("notebook"), *cells.values()), strict=True)
    )


@pytest.mark.slow
def test_progress_leaves_no_trace_in_the_saved_output(shown):
    assert [output["data"]["text/plain"] for output in shown["shown"]] == [
        "Table a dropped.",
        "Table PAUSE dropped.",
    ]


@pytest.mark.not_quick
def test_progress_leaves_no_trace_if_nothing_is_shown(shown):
    assert shown["kept"] == []


def test_outputs_of_the_user_stay(shown):
    assert [output.get("text") or output["data"]["text/plain"] for output in shown["lines"]] == [
        "before\n", "Table a dropped.", "Table PAUSE dropped.", "after\n",
    ]  # fmt: skip
    assert [output.get("text") or output["data"]["text/plain"] for output in shown["called"]] == [
        "before\n",
        "Table PAUSE dropped.",
    ]


@pytest.mark.slow
def test_a_failed_cell_stops_the_notebook_and_shows_the_report_and_one_line(tmp_path):
    with pytest.raises(CellExecutionError):
        execute(tmp_path, "%%merge\nSELECT FAIL PAUSE", "print('never')")
    outputs, after = execute(tmp_path, "%%merge\nSELECT FAIL PAUSE", "1 + 1", allow_errors=True)
    assert [output["output_type"] for output in outputs] == ["display_data", "error"]
    assert outputs[1]["ename"] == "AnalysisError"
    assert outputs[1]["traceback"] == [
        "AnalysisError: COLUMN_NOT_FOUND: line 2:8 of the cell: Column 'FAIL' cannot be resolved"
    ]
    assert after[0]["data"]["text/plain"] == "2"


@pytest.mark.parametrize(
    ("test", "is_nbval"),
    [
        ("notebooks/00_start_here.ipynb::Cell 0 (setup)", True),
        ("tests/notebook/test_progress.py::test_a[x] (call)", False),
        (None, False),
    ],
)
def test_a_kernel_of_nbval_shows_no_progress_since_cleared_outputs_are_compared(
    monkeypatch, test, is_nbval
):
    from types import SimpleNamespace

    from rowmerge_nb.notebook import progress

    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    if test is not None:
        monkeypatch.setenv("PYTEST_CURRENT_TEST", test)
    kernel = SimpleNamespace(
        kernel=1, get_parent=lambda: {"content": {"code": "%%merge\nSELECT 1"}}
    )
    painter = progress._painter(kernel, lambda: None, whole_cell=True)
    assert isinstance(painter, progress._NotebookPainter) is not is_nbval


def test_the_terminal_output_is_erased_again(monkeypatch, capsys):
    from rowmerge_nb.notebook.progress import CellProgress

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with CellProgress(object(), lambda: None) as progress:
        progress("start Spark")
        progress._thread.join(0.7)
    told = capsys.readouterr().err
    waits = "\rwaiting for Java and Spark, which start once"
    assert told.startswith((f"{waits}, 0 s", f"{waits}, 1 s"))
    assert told.endswith(" \r")


def test_a_quick_statement_shows_nothing(capsys):
    from rowmerge_nb.notebook.progress import CellProgress

    with CellProgress(object(), lambda: None) as progress:
        progress("run")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("step", "tasks", "rows", "line"),
    [
        ("run", (3, 8), None, "running on Spark, 3 of 8 tasks done, "),
        ("run", (3, 8), 1_234_567, "running on Spark, 3 of 8 tasks done, 1,234,567 rows, "),
        ("run", None, 5, "running on Spark, "),
        ("plan", (3, 8), 5, "planning, "),
    ],
)
def test_the_line_shows_finished_tasks_and_rows_reported_while_they_run(
    monkeypatch, capsys, step, tasks, rows, line
):
    from rowmerge_nb.notebook.progress import CellProgress

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with CellProgress(object(), lambda: None, tasks=lambda: tasks, rows=lambda: rows) as progress:
        progress(step)
        progress._thread.join(0.7)
    assert capsys.readouterr().err.startswith((f"\r{line}0 s", f"\r{line}1 s"))


def test_without_a_session_no_tasks_are_reported_and_no_session_starts():
    from rowmerge_nb import Engine

    with Engine() as engine:
        assert engine.running_tasks() is None
        assert engine.running_rows() is None
        assert engine._session._future is None


def told_while_running(job, tell, wanted, path):
    """Return the reports of a job while it runs.

    Its tasks wait for the file at `path`, which is written once `wanted` is true of a report, so that
    no time is measured.
    """
    import threading
    import time

    running = threading.Thread(target=job)
    running.start()
    told = []
    until = time.monotonic() + 120
    while running.is_alive():
        told.append(tell())
        if wanted(told[-1]) or time.monotonic() > until:
            path.touch()
        time.sleep(0.05)
    running.join()
    return told


def waiting(path):
    """Return once a file exists at `path`."""
    import time
    from pathlib import Path

    while not Path(path).exists():
        time.sleep(0.05)


@pytest.mark.spark
def test_the_tasks_of_a_running_job_are_reported(spark, tmp_path):
    from rowmerge_nb import Engine

    path = tmp_path / "told"
    name = str(path)

    def slow(pages):
        waiting(name)
        yield from pages

    def two_tasks(found):
        return found is not None and found[1] == 2

    engine = Engine(spark=spark)
    told = told_while_running(
        lambda: spark.range(0, 4, 1, 2).mapInArrow(slow, "id long").toArrow(),
        engine.running_tasks,
        two_tasks,
        path,
    )
    assert any(two_tasks(found) for found in told)
    assert engine.running_tasks() is None


@pytest.mark.spark
def test_rows_read_or_passed_on_by_finished_tasks_are_reported(spark, tmp_path):
    from rowmerge_nb import Engine

    path = tmp_path / "told"
    name = str(path)

    def slow(pages):
        import pyarrow as pa

        for page in pages:
            # The second task still runs when the first has reported its rows.
            if pa.compute.max(page.column(0)).as_py() > 50:
                waiting(name)
            yield page

    engine = Engine(spark=spark)
    rows = spark.range(0, 100, 1, 2).mapInArrow(slow, "id long").repartition(3)
    told = told_while_running(rows.toArrow, engine.running_rows, lambda found: found == 50, path)
    assert 50 in told
    assert engine.running_rows() is None
