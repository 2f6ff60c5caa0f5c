"""Spark starts while the user types the first statement, and disturbs nothing else."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from jupyter_client.manager import KernelManager

from rowmerge_nb import default
from rowmerge_nb.notebook import prestart as module
from rowmerge_nb.notebook.prestart import _LINE, _LOADS_ONLY, _OWN_SPARK

ROOT = Path(__file__).parents[2]
SECONDS = 120


# -- without Spark


class Starts:
    """Replaces the default engine's session."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def end(self) -> None:
        self.calls.append("end")


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    calls = Starts()
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(module, "_has_session", lambda: False)
    monkeypatch.setattr(default, "prestart", calls.start)
    monkeypatch.setattr(default, "end_prestart", calls.end)
    return calls


@pytest.fixture
def kernel(shell: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A shell that looks like that of a kernel."""
    monkeypatch.setattr(shell, "kernel", object(), raising=False)
    yield shell
    shell.run_line_magic("unload_ext", "rowmerge_nb")


def after_idleness(starts: Starts) -> list[str]:
    """Return what was started or ended until a while after the last cell."""
    time.sleep(0.4)
    return starts.calls


def test_spark_starts_once_the_kernel_is_idle(kernel: Any, starts: Starts) -> None:
    kernel.run_cell("%load_ext rowmerge_nb")
    assert starts.calls == []
    assert after_idleness(starts) == ["start"]


def test_cells_without_a_pause_start_nothing(
    kernel: Any, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.3)
    kernel.run_cell("%load_ext rowmerge_nb")
    for _ in range(5):
        time.sleep(0.1)
        kernel.run_cell("1")
    assert starts.calls == []


def test_outside_of_a_kernel_nothing_starts(shell: Any, starts: Starts) -> None:
    shell.run_cell("%load_ext rowmerge_nb")
    assert after_idleness(starts) == []


def test_nbval_starts_nothing(kernel: Any, starts: Starts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "notebooks/00_start_here.ipynb::Cell 0 (setup)")
    kernel.run_cell("%load_ext rowmerge_nb")
    assert after_idleness(starts) == []


@pytest.mark.parametrize("cell", ["prestart = False", "engine = 'mine'"])
def test_a_setting_of_the_same_cell_counts(kernel: Any, starts: Starts, cell: str) -> None:
    kernel.run_cell(f"%load_ext rowmerge_nb\n%config MergeMagic.{cell}")
    assert "start" not in after_idleness(starts)


def test_a_project_turns_it_off(
    kernel: Any, starts: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.rowmerge_nb]\nprestart = false\n")
    monkeypatch.chdir(tmp_path)
    kernel.run_cell("%load_ext rowmerge_nb")
    assert "start" not in after_idleness(starts)


def test_turning_it_off_ends_an_unused_spark(kernel: Any, starts: Starts) -> None:
    kernel.run_cell("%load_ext rowmerge_nb")
    after_idleness(starts)
    kernel.run_cell("%config MergeMagic.prestart = False")
    assert after_idleness(starts) == ["start", "end"]


def test_a_session_that_exists_is_the_only_one(
    kernel: Any, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_has_session", lambda: True)
    kernel.run_cell("%load_ext rowmerge_nb")
    assert after_idleness(starts) == []


@pytest.mark.parametrize(
    ("modules", "variables", "exists"),
    [
        ({}, {}, False),
        ({"pyspark": SimpleNamespace()}, {}, False),
        (
            {"pyspark": SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=None))},
            {},
            False,
        ),
        (
            {"pyspark": SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=1))},
            {},
            True,
        ),
        ({"pyspark.sql.connect.session": SimpleNamespace()}, {}, True),
        ({}, {"SPARK_REMOTE": "sc://there"}, True),
    ],
)
def test_a_session_of_any_kind_is_seen(
    monkeypatch: pytest.MonkeyPatch,
    modules: dict[str, Any],
    variables: dict[str, str],
    exists: bool,
) -> None:
    for name in ("pyspark", "pyspark.sql.connect.session"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, value in modules.items():
        monkeypatch.setitem(sys.modules, name, value)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert module._has_session() is exists


@pytest.mark.parametrize(
    ("cell", "own"),
    [
        ("from pyspark.sql import SparkSession", True),
        ("spark = SparkSession.builder.getOrCreate()", True),
        ("engine = rm.Engine(cores=2)", True),
        ("engine = rm.Engine(catalog='x', spark = mine)", True),
        ("engine = rm.Engine()", False),
        ("import pandas as pd", False),
        ("%%merge\nSELECT 1", False),
    ],
)
def test_a_cell_with_a_spark_of_its_own_ends_an_unused_one(
    kernel: Any, starts: Starts, cell: str, own: bool
) -> None:
    assert bool(_OWN_SPARK.search(cell)) is own
    kernel.run_cell("%load_ext rowmerge_nb")
    after_idleness(starts)
    kernel.run_cell(f"'''{cell}'''")
    assert starts.calls == (["start", "end"] if own else ["start"])


def test_loading_again_starts_once_and_unloading_ends_the_watch(
    kernel: Any, starts: Starts
) -> None:
    kernel.run_cell("%load_ext rowmerge_nb\n%load_ext rowmerge_nb")
    kernel.run_cell("%reload_ext rowmerge_nb")
    watches = kernel.events.callbacks["post_run_cell"]
    assert [watch.__name__ for watch in watches].count("_after_cell") == 1
    kernel.run_cell("%unload_ext rowmerge_nb")
    assert "_after_cell" not in [watch.__name__ for watch in watches]
    assert after_idleness(starts) == []


@pytest.mark.parametrize(
    ("cell", "alone"),
    [
        ("%load_ext rowmerge_nb", True),
        ("# magics\n%load_ext rowmerge_nb\n\n%config MergeMagic.era = 'current'\n", True),
        ("%load_ext rowmerge_nb\nprint(1)", False),
        ("import pandas\n%load_ext rowmerge_nb", False),
    ],
)
def test_a_line_is_shown_only_where_it_can_be_removed(cell: str, alone: bool) -> None:
    assert (_LOADS_ONLY.fullmatch(cell) is not None) is alone


class EarlySession:
    """Replaces a session that starts in the background."""

    ended = 0

    def start(self) -> None: ...

    def end(self) -> None:
        EarlySession.ended += 1


def test_the_session_is_started_once_and_ended_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowmerge_nb.engine.spark.lazy_session.LazySession", EarlySession)
    monkeypatch.setattr(default, "_engines", [])
    monkeypatch.setattr(default, "_sessions", [])
    monkeypatch.setattr(EarlySession, "ended", 0)
    assert isinstance(default.prestart(), EarlySession)
    assert default.prestart() is None
    default.end_prestart()
    default.end_prestart()
    assert EarlySession.ended == 1
    monkeypatch.setattr(default, "_engines", [SimpleNamespace(closed=False)])
    assert default.prestart() is None


# -- with kernels


@dataclass
class Kernel:
    """A kernel without a front end, and the outputs of its cells so far."""

    manager: KernelManager
    client: Any
    shown: dict[str, list[str]] = field(default_factory=dict)

    def run(self, cell: str) -> str:
        """Run a cell; return the message that ran it."""
        message = self.client.execute(cell)
        self.shown[message] = []
        self.until(lambda: "idle" in self.shown[message])
        return message

    def until(self, is_so: Any, seconds: float = SECONDS) -> bool:
        """Read outputs until a condition is true."""
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                return False
            try:
                self._read(self.client.get_iopub_msg(timeout=0.2))
            except Exception:  # noqa: BLE001 - queue.Empty: nothing was sent
                continue
        return True

    def _read(self, message: dict[str, Any]) -> None:
        shown = self.shown.setdefault(message["parent_header"].get("msg_id", ""), [])
        content = message["content"]
        match message["msg_type"]:
            case "status":
                shown.append(content["execution_state"])
            case "display_data" | "update_display_data" | "execute_result":
                shown.append(content["data"]["text/plain"])
            case "stream":
                shown.append(content["text"])
            case "clear_output":
                shown.append("cleared")
            case "error":
                shown.append(f"{content['ename']}: {content['evalue']}")

    def java(self) -> list[psutil.Process]:
        """Return the Java processes of the kernel."""
        provisioner: Any = self.manager.provisioner
        children = psutil.Process(provisioner.pid).children(recursive=True)
        return [child for child in children if "java" in child.name()]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start kernels with environment variables."""
    kernels: list[Kernel] = []
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))

    def start(**variables: str) -> Kernel:
        manager = KernelManager(kernel_name="python3")
        manager.start_kernel(cwd=str(tmp_path), env={**os.environ, **variables})
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        kernels.append(Kernel(manager, client))
        return kernels[-1]

    yield start
    for kernel in kernels:
        kernel.client.stop_channels()
        kernel.manager.shutdown_kernel(now=True)


def has_ended(processes: list[psutil.Process]) -> bool:
    """Return whether processes end within some seconds."""
    _, alive = psutil.wait_procs(processes, timeout=20)
    return not alive


@pytest.mark.slow
def test_a_kernel_starts_one_spark_and_leaves_none_behind(started: Any) -> None:
    kernel = started()
    loaded = kernel.run("%load_ext rowmerge_nb")
    assert kernel.until(lambda: "cleared" in kernel.shown[loaded])
    outputs = [text for text in kernel.shown[loaded] if text not in {"busy", "idle"}]
    assert outputs == [_LINE, "", "cleared"]
    (java,) = kernel.java()
    kernel.run("%load_ext rowmerge_nb\n%reload_ext rowmerge_nb")
    time.sleep(2 * module.IDLE_SECONDS)
    statement = kernel.run("%merge CREATE TABLE t AS SELECT count(*) AS n FROM (VALUES 1, 2) v (x)")
    assert "Table t created with 1 row." in "\n".join(kernel.shown[statement])
    assert [process.pid for process in kernel.java()] == [java.pid]
    kernel.manager.restart_kernel(now=True)
    kernel.client.wait_for_ready(timeout=60)
    assert has_ended([java])
    # The second day: everything is loaded again.
    again = kernel.run("%load_ext rowmerge_nb")
    assert kernel.until(lambda: _LINE in kernel.shown[again])
    assert kernel.until(lambda: bool(kernel.java()), 60)
    starting = kernel.java()
    kernel.manager.shutdown_kernel(now=True)
    assert has_ended(starting)


@pytest.mark.long
def test_a_session_of_the_user_replaces_an_unused_spark(started: Any) -> None:
    kernel = started()
    loaded = kernel.run("%load_ext rowmerge_nb")
    assert kernel.until(lambda: _LINE in kernel.shown[loaded])
    own = kernel.run(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.appName('mine').config('spark.driver.memory', '700m')"
        ".getOrCreate()\n"
        "spark.sparkContext.appName, spark.sparkContext._jvm.Runtime.getRuntime().maxMemory() < 8e8"
    )
    assert "('mine', True)" in kernel.shown[own]
    assert len(kernel.java()) == 1


@pytest.mark.not_quick
def test_the_first_statement_shows_the_error_of_a_start_that_fails(started: Any) -> None:
    kernel = started(ROWMERGE_CORES="many")
    loaded = kernel.run("%load_ext rowmerge_nb")
    assert kernel.until(lambda: "cleared" in kernel.shown[loaded])
    assert not any("Error" in text for text in kernel.shown[loaded])
    statement = kernel.run("%merge SELECT count(*) AS n FROM UNNEST(sequence(1, 3)) AS u (a)")
    report = "\n".join(kernel.shown[statement])
    assert "ROWMERGE_CORES" in report
    assert "Traceback" not in report
