"""``%debug`` after an error from connector code stops at the connector's line, or names the reason why it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.notebook.debugging import connectors_error
from rowmerge_nb.replays.debugging import last_error
from tests.replays.shop import Shop

MERGE = """MERGE INTO shop.default.t t USING (VALUES (1, 7.0), (2, 8.0)) s (id, v) ON t.id = s.id
WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"""


def failed(spark: Any, bug: str, sql: str = MERGE) -> tuple[Engine, RowMergeError, Shop]:
    engine, shop = Engine(spark=spark), Shop(bug)
    engine.add_catalog("shop", shop)
    engine.run("CREATE TABLE shop.default.t (id bigint, v double)")
    engine.run("INSERT INTO shop.default.t VALUES (1, 1.0)")
    try:
        engine.run(sql)
    except RowMergeError as error:
        return engine, error, shop
    pytest.fail("it did not fail")


def innermost(error: BaseException) -> Any:
    found = error.__traceback__
    while found is not None and found.tb_next is not None:
        found = found.tb_next
    assert found is not None
    return found.tb_frame


@pytest.mark.spark
def test_a_call_that_failed_in_a_task_is_repeated_here_with_its_page(spark: Any) -> None:
    _, error, shop = failed(spark, "price 7 is refused")
    before = {name: dict(rows) for name, rows in shop.rows.items()}
    found, told = connectors_error(error)
    assert found is not None
    assert (
        told == "store_merged_rows of writer 0, repeated in this process with the recorded pages:"
    )
    frame = innermost(found)
    assert (frame.f_code.co_name, frame.f_locals["rows"]) == ("store_merged_rows", [(1, 7.0)])
    assert {name: dict(rows) for name, rows in shop.rows.items()} == before


@pytest.mark.spark
def test_a_finish_call_that_failed_has_its_own_line(spark: Any) -> None:
    _, error, _ = failed(spark, "typo in finish_merge")
    try:
        raise error from None
    except RowMergeError as raised:
        found, told = connectors_error(raised)
    assert told == ""
    assert found is not None
    assert innermost(found).f_code.co_name == "finish_merge"


@pytest.mark.spark
def test_an_error_of_the_statement_is_not_the_connectors(spark: Any) -> None:
    _, error, _ = failed(spark, "", "SELECT 1 / 0 FROM shop.default.t")
    assert connectors_error(error) == (None, "")
    _, error, _ = failed(spark, "", "SELECT nothing FROM shop.default.t")
    assert connectors_error(error) == (None, "")


@pytest.mark.spark
def test_a_split_that_cannot_be_read_is_read_again_here(spark: Any) -> None:
    _, error, _ = failed(spark, "cannot be read")
    found, told = connectors_error(error)
    assert found is not None
    assert told.startswith("create_page_source, repeated in this process")
    assert innermost(found).f_code.co_name == "create_page_source"


@pytest.mark.spark
def test_a_call_that_does_not_fail_here_is_reported(spark: Any) -> None:
    _, error, shop = failed(spark, "price 7 is refused")
    shop.bug = ""
    found, told = connectors_error(error)
    assert found is None
    assert told.startswith(
        "store_merged_rows of writer 0 failed in a task but does not fail when it is repeated here."
    )


@pytest.mark.spark
def test_a_vanished_table_is_reported(spark: Any) -> None:
    _, error, shop = failed(spark, "price 7 is refused")
    shop.tables.clear()
    shop.fixed = True
    found, told = connectors_error(error)
    assert found is None
    assert "cannot be repeated here: Shop has no table default.t" in told


def test_an_unrecorded_page_is_reported() -> None:
    from rowmerge_nb.base.errors import ExecutionError
    from rowmerge_nb.engine.api.result import Recording, Result
    from rowmerge_nb.trace.trace import Trace

    error = ExecutionError("store_merged_rows failed: KeyError: 1", step="store_merged_rows")
    trace = Trace(statement="MERGE", kind="MERGE", state="failed")  # type: ignore[arg-type]
    error.result = Result(trace, recording=Recording(None, missing="The store is away"))
    found, told = connectors_error(error)
    assert found is None
    assert (
        "cannot be repeated here: its page was not kept: The store is away. Run the"
        " cell again with --record FILE." in told
    )


def test_the_last_error_is_replaced_for_a_while_and_then_restored() -> None:
    first, second = ValueError(1), ValueError(2)
    with last_error(first):
        with last_error(second):
            assert sys.last_value is second
        assert sys.last_value is first


def test_the_debugger_is_restored_with_the_extension(notebook: Any) -> None:
    assert "debugger" in vars(notebook.shell)
    notebook.run("%unload_ext rowmerge_nb")
    assert "debugger" not in vars(notebook.shell)
    notebook.run("%load_ext rowmerge_nb")


def test_debug_of_an_error_of_the_users_own_cell_works_as_without_the_extension(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(
        type(notebook.shell), "debugger", lambda shell, force=False: opened.append(sys.last_value)
    )
    notebook.run("{}['no']")
    notebook.run("%debug")
    assert [type(error) for error in opened] == [KeyError]


def test_record_is_passed_on_and_refused_if_it_has_no_effect(notebook: Any) -> None:
    notebook.run("%%merge --record kept.record\nDROP TABLE t")
    assert notebook.engine.asked[-1][1]["record"] == "kept.record"
    for line, message in (
        ("%%merge --record f --dry-run\nDROP TABLE t", "--record and --dry-run cannot be combined"),
        (
            "%%merge --record f --compare flows\nDROP TABLE t",
            "--record and --compare cannot be combined",
        ),
        ("%%merge --record f\nDROP TABLE a; DROP TABLE b", "the cell has 2"),
        ("%%merge --record\nDROP TABLE t", "--record needs a value"),
    ):
        failure = notebook.run(line).failure
        assert failure.code == "INVALID_ARGUMENTS"
        assert message in failure.message


def test_a_fault_is_passed_on_and_refused_if_it_has_no_effect(notebook: Any) -> None:
    notebook.run("%%merge --fault store_merged_rows:2:after\nDROP TABLE t")
    assert notebook.engine.asked[-1][1]["fault"] == "store_merged_rows:2:after"
    for option in ("--explain", "--dry-run", "--compare flows", "--audit 1..2", "--verify"):
        failure = notebook.run(f"%%merge --fault finish {option}\nDELETE FROM t").failure
        assert failure.code == "INVALID_ARGUMENTS"
        assert f"--fault and {option.split()[0]} cannot be combined: " in failure.message
        assert failure.hint
    failure = notebook.run("%%merge --fault finish\nDELETE FROM a; DELETE FROM b").failure
    assert "--fault counts the calls of one statement, but the cell has 2" in failure.message
    assert "needs a value" in notebook.run("%%merge --fault\nDELETE FROM a").failure.message


CELLS = """\
%load_ext rowmerge_nb
import rowmerge_nb as rm
from tests.replays.shop import Shop
rm.default_engine().add_catalog("shop", Shop("price 7 is refused"))
get_ipython().run_cell_magic("merge", "", "CREATE TABLE shop.default.t (id bigint, v double); INSERT INTO shop.default.t VALUES (1, 1.0)")
get_ipython().run_cell_magic("merge", "", "UPDATE shop.default.t SET v = 7.0")
%debug
p "seen", rows
q
print("after", type(__import__("sys").last_value).__name__)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_debug_in_a_shell_stops_at_the_line(tmp_path: Any) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "IPYTHONDIR": str(tmp_path),
    }
    command = [
        sys.executable,
        "-m",
        "IPython",
        "--simple-prompt",
        "--no-banner",
        "--colors=NoColor",
    ]
    ran = subprocess.run(
        command,
        input=CELLS,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "store_merged_rows of writer 0, repeated in this process" in ran.stdout
    assert "shop.py" in ran.stdout
    assert 'raise ValueError("no price is 7")' in ran.stdout
    assert "('seen', [(1, 7.0)])" in ran.stdout
    assert "after ExecutionError" in ran.stdout
