"""A shell without a kernel, and an engine that answers without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb.base.errors import AnalysisError, RowMergeError
from rowmerge_nb.trace.target_record import TargetRecord

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class FakeEngine:
    """Records its requests, and answers with a trace.

    FAIL in a statement raises an error. STOP, LATE and AFTER interrupt it: at once, at its end, in
    its commit.
    """

    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    compared: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    undone: list[str | None] = field(default_factory=list)

    def translate(self, sql: str, *, dialect: str) -> Any:
        from rowmerge_nb.engine.sessions.foreign_translation import translate_statement

        return translate_statement(sql, dialect)

    def run(self, sql: str, **options: Any) -> Any:
        from rowmerge_nb.engine.api.result import Result
        from rowmerge_nb.engine.spark.interrupts import (
            guarded,
            interrupted_too_late,
            no_return,
            note_result,
        )
        from rowmerge_nb.trace.trace import Trace

        self.asked.append((sql, options))
        options["progress"]("run")
        if "PAUSE" in sql:
            import time

            time.sleep(0.8)
        if "STOP" in sql:
            raise KeyboardInterrupt
        done = Result(
            Trace(
                statement=sql,
                kind="DROP TABLE",
                state="finished",
                target=TargetRecord(name=sql.rsplit(maxsplit=1)[-1]),
            )
        )
        if "EXPLAIN" not in sql and "SELECT" not in sql:
            # Like a real engine at its commit.
            guarded(lambda: (no_return(lambda: True), note_result(done)))
        if "LATE" in sql:
            raise KeyboardInterrupt
        if "AFTER" in sql:
            raise interrupted_too_late(done)
        if "FAIL" in sql:
            at = sql[: sql.index("FAIL")]
            error = AnalysisError(
                "Column 'FAIL' cannot be resolved", code="COLUMN_NOT_FOUND", length=4,
                line=at.count("\n") + 1, column=len(at) - at.rfind("\n"),
            )  # fmt: skip
            error.statement = sql
            raise error
        return done

    def explain(self, sql: str, **options: Any) -> Any:
        from rowmerge_nb.engine.api.result import Result
        from rowmerge_nb.trace.trace import Trace

        self.asked.append((sql, options))
        return Result(Trace(statement=sql, kind="MERGE", state="explained"), explained="Output[]")

    def compare(self, sql: str, *, by: str, **options: Any) -> Any:
        import pyarrow as pa

        from rowmerge_nb.engine.api.result import Result
        from rowmerge_nb.trace.comparison import Comparison, Side
        from rowmerge_nb.trace.trace import Trace

        self.compared.append((by, sql, options))
        result = Result(
            Trace(statement=sql, kind="MERGE", state="finished", target=TargetRecord(name="t"))
        )
        left, right = (Side(name, result, pa.table({"id": [1]})) for name in ("one", "other"))
        return Comparison(by, sql, ["id"], left, right)

    def undo(self, table: str | None = None) -> Any:
        from rowmerge_nb.engine.api.result import Result
        from rowmerge_nb.trace.notice_record import NoticeRecord
        from rowmerge_nb.trace.trace import Trace

        self.undone.append(table)
        if table == "LATE":
            raise KeyboardInterrupt
        if table == "nope":
            msg = "Table 'memory.default.nope' does not exist"
            raise AnalysisError(msg, code="TABLE_NOT_FOUND")
        told = (NoticeRecord("Undone: DELETE of 2 rows: DELETE FROM t"),)
        return Result(
            Trace(
                statement="UNDO",
                kind="UNDO",
                state="finished",
                target=TargetRecord(name="t", version_after=7, rows_before=1, rows_after=3),
                notices=told,
            )
        )

    def tables(self) -> list[Any]:
        return [
            (
                "memory.default.accounts",
                "memory",
                ("a varchar", "b bigint"),
                3,
                "DELETE_ROW_AND_INSERT_ROW",
            )
        ]

    def names(self, *parts: str) -> list[tuple[str, str]]:
        at_home = [
            ("accounts", "table"),
            ("updates", "table"),
            ("2nd", "table"),
            ("default", "schema"),
            ("memory", "catalog"),
        ]
        return {
            (): at_home,
            ("memory",): [("default", "schema")],
            ("memory", "default"): at_home[:2],
        }.get(parts, [])

    def columns(self, *parts: str) -> list[tuple[str, str]] | None:
        columns = {
            "accounts": [
                ("id", "bigint"),
                ("amount", "double"),
                ("Odd name", "varchar"),
                ("order", "bigint"),
            ],
            "updates": [("id", "bigint"), ("delta", "double")],
        }
        return columns.get(parts[-1].lower())


@dataclass
class Notebook:
    """A shell with the extension loaded, and the output of its cells."""

    shell: Any
    engine: FakeEngine

    def run(self, cell: str) -> Any:
        """Run a cell; return its output and its error."""
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        return Cell(
            [output.data for output in captured.outputs], captured.stdout, result.error_in_exec
        )


@dataclass
class Cell:
    outputs: list[dict[str, str]]
    stdout: str
    error: BaseException | None

    @property
    def text(self) -> str:
        return "\n".join(output["text/plain"] for output in self.outputs)

    @property
    def failure(self) -> RowMergeError:
        assert isinstance(self.error, RowMergeError)
        return self.error


@pytest.fixture
def shell(tmp_path, monkeypatch) -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config, colors="nocolor")
    yield shell
    shell.restore_sys_module_state()
    InteractiveShell.clear_instance()


@pytest.fixture
def notebook(shell) -> Notebook:
    shell.run_line_magic("load_ext", "rowmerge_nb")
    engine = FakeEngine()
    shell.user_ns["fake"] = engine
    shell.run_line_magic("config", "MergeMagic.engine = 'fake'")
    return Notebook(shell, engine)
