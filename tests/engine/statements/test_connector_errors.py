"""An error in a connector's code names its line, wherever it was raised."""

from __future__ import annotations

from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError, load_trace, save_trace
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.writing import MemoryMergeSink, MemoryPageSinkProvider
from rowmerge_nb.notebook.display import without_traceback
from rowmerge_nb.report.explorer.explorer_state import explorer_state
from rowmerge_nb.spi import ConnectorPageSourceProvider
from tests.contract.developers_bugs import BUGS

pytestmark = pytest.mark.spark

UPDATE = "UPDATE shop.default.t SET name = 'x'"


def failure(spark: Any, bug: str, folder: Path) -> RowMergeError:
    engine = Engine(spark=spark)
    engine.add_catalog("shop", BUGS[bug]().make_connector(folder))
    engine.run("CREATE TABLE shop.default.t (id bigint, name varchar)")
    engine.run("INSERT INTO shop.default.t VALUES (1, 'a')")
    with pytest.raises(RowMergeError) as failed:
        engine.run(UPDATE)
    assert engine.run("SELECT name FROM shop.default.t").table.to_pylist() == [{"name": "a"}]  # type: ignore[union-attr]
    return failed.value


@pytest.mark.parametrize(
    ("bug", "method"),
    [("ATypoInStoreMergedRows", "store_merged_rows"), ("ATypoInFinishMerge", "finish_merge")],
)
def test_the_line_of_the_connectors_own_code_is_reported(
    spark: Any, bug: str, method: str, tmp_path: Path
) -> None:
    error = failure(spark, bug, tmp_path)
    assert error.message.startswith(f"{method} failed: NameError")
    assert error.hint is not None
    assert (
        f"developers_bugs.py, line {line_of(BUGS[bug].line)}, in {method}: `{BUGS[bug].line}"
        in error.hint
    )
    assert " ".join(error.hint.split()) in " ".join(str(error.result).split())


def test_a_breakpoint_in_a_task_names_where_it_would_stop(spark: Any, tmp_path: Path) -> None:
    error = failure(spark, "ABreakpointInASink", tmp_path)
    assert (error.code, error.message.partition(":")[0]) == (
        "NOT_SUPPORTED",
        "breakpoint() cannot stop in a task",
    )
    assert "%debug" in str(error.hint)
    assert "rowmerge_nb.replay" in str(error.hint)


class Careless(MemoryMergeSink):
    def store_merged_rows(self, page: Any) -> None:
        if page.column(1)[0].as_py() == "x":
            raise KeyError("naem")

    def abort(self) -> None:
        raise OSError("the folder is gone")


class CarelessStore(MemoryConnector):
    """Its code does not clean up after an error."""

    def get_page_sink_provider(self) -> Any:
        return CarelessSinks()

    def rollback(self, transaction: Any) -> None:
        super().rollback(transaction)
        raise ConnectionError("the server is gone")


class CarelessSinks(MemoryPageSinkProvider):
    def create_merge_sink(self, transaction: Any, session: Any, handle: Any) -> Any:
        return Careless(2)


@pytest.fixture(scope="module")
def careless(spark: Any) -> RowMergeError:
    engine = Engine(spark=spark)
    engine.add_catalog("shop", CarelessStore())
    engine.run("CREATE TABLE shop.default.t (id bigint, name varchar)")
    engine.run("INSERT INTO shop.default.t VALUES (1, 'a'), (2, NULL)")
    with pytest.raises(RowMergeError) as failed:
        engine.run("UPDATE shop.default.t SET name = 'x'", paradigm="CHANGE_ONLY_UPDATED_COLUMNS")
    return failed.value


def test_failures_after_an_error_are_reported_in_order(careless: RowMergeError) -> None:
    told = [(one.method, one.where, one.what) for one in careless.raised]
    assert told == [
        ("store_merged_rows", "call 1 of writer 0", "KeyError: 'naem'"),
        ("abort", "call 1 of writer 0", "OSError: the folder is gone"),
        ("rollback", "call 1 of the coordinator", "ConnectionError: the server is gone"),
    ]
    assert careless.result.trace.error.raised == careless.raised
    text = str(careless.result)
    places = [
        text.index(words)
        for words in ("raised KeyError", "raised OSError", "raised ConnectionError")
    ]
    assert places == sorted(places)


def test_the_call_is_reported_with_its_line_its_page_and_its_handle(
    careless: RowMergeError, tmp_path: Path
) -> None:
    first = careless.raised[0]
    assert first.frames[-1].text == 'raise KeyError("naem")'
    assert [text.strip() for _, text in first.frames[-1].code][
        1
    ] == 'if page.column(1)[0].as_py() == "x":'
    assert (first.rows, first.page.column(0).to_pylist()) == (2, [1, 2])
    assert first.handle.startswith("MemoryMerge")
    text = str(careless.result)
    line = first.frames[-1].line
    (marked,) = [shown for shown in text.split("\n") if shown.startswith("  > ")][:1]
    assert marked.split() == [">", str(line), "raise", 'KeyError("naem")']
    assert "The page that it received: 2 rows" in text
    assert "Its handle: MemoryMerge" in " ".join(text.split())
    html = careless.result._repr_mimebundle_()["text/html"]
    assert "raise KeyError(&#34;naem&#34;)</b>" in html
    assert "The page that it received: 2 rows" in html
    save_trace(careless.result.trace, tmp_path / "trace.json")
    opened = load_trace(tmp_path / "trace.json")
    assert opened.error is not None
    assert opened.error.raised == careless.raised
    assert str(opened) == str(careless.result.trace)
    shown = explorer_state(opened)["raised"]
    assert [part["what"] for part in shown] == [one.what for one in careless.raised]
    assert [marked for _, _, marked in shown[0]["code"]].count(True) == 1


def test_the_traceback_has_the_lines_of_the_task(careless: RowMergeError) -> None:
    text = "".join(format_exception(careless))
    assert (
        f'File "{__file__}", line {careless.raised[0].frames[-1].line}, in store_merged_rows'
        in text
    )
    assert (
        text.index("KeyError: 'naem'")
        < text.index("The above exception was the direct cause")
        < text.index("ExecutionError")
    )
    shown = without_traceback(careless, 1)._render_traceback_  # type: ignore[attr-defined]
    assert len(shown()) == 1
    assert '    raise KeyError("naem")' in shown()


class Unreadable(MemoryConnector):
    def get_page_source_provider(self) -> Any:
        return UnreadableSources()


class UnreadableSources(ConnectorPageSourceProvider):
    def create_page_source(
        self, transaction: Any, session: Any, split: Any, table: Any, columns: Any
    ) -> Any:
        raise OSError("the split is gone")


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM shop.default.t", "DELETE FROM shop.default.t WHERE id = 1"]
)
def test_an_error_in_reading_has_its_line_too(spark: Any, sql: str) -> None:
    engine, store = Engine(spark=spark), Unreadable()
    engine.add_catalog("shop", store)
    engine.run("CREATE TABLE shop.default.t (id bigint, name varchar)")
    engine.run("INSERT INTO shop.default.t VALUES (1, 'a')")
    with pytest.raises(
        RowMergeError, match="create_page_source failed: OSError: the split is gone"
    ) as failed:
        engine.run(sql)
    (raised,) = failed.value.raised
    assert (raised.method, raised.where, raised.page) == (
        "create_page_source",
        "call 1 of split 0",
        None,
    )
    assert raised.frames[-1].text == 'raise OSError("the split is gone")'
    assert "in create_page_source" in str(failed.value.hint)


def line_of(text: str) -> int:
    file = Path(__file__).parents[2] / "contract" / "developers_bugs.py"
    return 1 + next(
        index
        for index, line in enumerate(file.read_text().splitlines())
        if line.strip().startswith(text)
    )
