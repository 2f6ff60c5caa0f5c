"""A record is replayed without Spark: calls made, rows compared, errors with their tracebacks, and nothing left behind."""

from __future__ import annotations

import bdb
import dataclasses
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import MemoryConnector, RowMergeError, replay
from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector
from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector
from rowmerge_nb.connectors.jdbc.sqlite.sqlite_connector import SqliteConnector
from rowmerge_nb.replays import case
from rowmerge_nb.spi import ConnectorSession, SchemaTableName
from rowmerge_nb.testing.faults import Fault, FaultyConnector
from tests.replays.shop import BUGS, FixedShop, Shop

COLUMNS = {"id": "bigint", "price": "double"}
CHANGES = case(
    table="default.prices",
    columns=COLUMNS,
    rows=[(1, 9.5), (2, 3.0), (3, 4.25), (3, 4.25)],
    pages=[
        (0, [("UPDATE", 0, (1, 8.0)), ("DELETE", 1, (None, None))]),
        (0, [("UPDATE", 3, (3, 7.0))]),
        (1, [("INSERT", None, (4, 1.5))]),
    ],
)
HALVES = case(
    table="default.prices",
    columns=COLUMNS,
    rows=[(1, 9.5), (2, 3.0), (3, None)],
    pages=[
        (0, [("DELETE", 0, (None, None)), ("INSERT", None, (1, 8.0)), ("DELETE", 1, (None, None))]),
        (1, [("INSERT", None, (4, None))]),
    ],
)


def sqlite(folder: Path) -> SqliteConnector:
    return SqliteConnector(folder / "shop.db", create=True)


def rows(page: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in page.columns), strict=True), key=repr)


@pytest.mark.parametrize("bug", ["", *BUGS])
def test_a_connector_with_a_bug_fails_and_one_without_does_not(bug: str) -> None:
    done = replay(CHANGES, partial(Shop, bug))
    assert done.failed == bool(bug), done
    assert done.agrees == (not bug)


def test_missing_and_unexpected_rows_are_named() -> None:
    done = replay(CHANGES, partial(Shop, "new rows of updates twice"))
    assert (rows(done.missing), rows(done.extra)) == ([], [(1, 8.0), (3, 7.0)])
    assert str(done).splitlines()[0].endswith("on partial: 2 rows are unexpected")
    lost = replay(CHANGES, partial(Shop, "last page lost"))
    assert (rows(lost.missing), rows(lost.extra)) == ([(3, 7.0), (4, 1.5)], [(3, 4.25)])


def test_an_error_keeps_the_line_of_the_connector_that_raised_it() -> None:
    done = replay(CHANGES, partial(Shop, "price 7 is refused"))
    assert (done.step, done.number, str(done.error)) == ("store_merged_rows", 0, "no price is 7")
    assert (
        done.traceback.splitlines()[1]
        .strip()
        .startswith(f'File "{Path(__file__).parent / "shop.py"}"')
    )
    assert "rowmerge_nb/engine" not in done.traceback
    assert [call.method for call in done.calls if call.error] == ["store_merged_rows"]
    assert done._repr_html_().startswith("<pre")


def test_an_error_of_the_finish_call_has_its_line_too() -> None:
    done = replay(CHANGES, partial(Shop, "typo in finish_merge"))
    assert (done.step, type(done.error)) == ("finish_merge", AttributeError)
    assert "fragments.sorted()" in done.traceback


def iceberg(folder: Path) -> IcebergConnector:
    return IcebergConnector(folder / "lake")


def hive(folder: Path) -> HiveAcidConnector:
    return HiveAcidConnector(folder / "lake")


@pytest.mark.parametrize("make", [MemoryConnector, iceberg, hive], ids=lambda make: make.__name__)
def test_every_store_leaves_the_expected_rows(make: Any) -> None:
    done = replay(HALVES, make)
    assert done.agrees, done


def test_a_database_leaves_them_too() -> None:
    # A key distinguishes its tables' rows, so no two rows are equal.
    record = dataclasses.replace(
        CHANGES,
        rows=CHANGES.rows.slice(0, 3),
        row_count=3,
        pages=CHANGES.pages[:1],
        properties={"primary_key": ("id",)},
    )
    done = replay(record, sqlite)
    assert done.agrees, done


def test_a_record_does_not_name_the_location_of_a_tables_data(tmp_path: Path) -> None:
    record = dataclasses.replace(
        HALVES, properties={"location": str(tmp_path / "theirs"), "format_version": 2}
    )
    done = replay(record, iceberg)
    assert done.agrees, done
    assert list(tmp_path.iterdir()) == []


def test_one_writer_is_replayed_up_to_its_fragments() -> None:
    done = replay(CHANGES, Shop, writer=1)
    assert (done.numbers, [writer for writer, _ in done.fragments], done.compared) == (
        (1,),
        [1],
        False,
    )
    assert [call.method for call in done.calls if call.number == 1] == [
        "create_merge_sink",
        "store_merged_rows",
        "finish",
    ]
    assert "finish_merge" not in {call.method for call in done.calls}


def test_the_finish_call_gets_the_fragments_of_all_writers() -> None:
    done = replay(CHANGES, Shop, call="finish_merge")
    assert [writer for writer, _ in done.fragments] == [0, 1]
    assert done.agrees


def test_a_split_can_be_read_separately() -> None:
    done = replay(CHANGES, Shop, split=0)
    assert done.notices == ("Split 0 was read: 4 rows",)
    assert not done.failed
    assert "create_merge_sink" not in {call.method for call in done.calls}


def test_an_existing_connector_keeps_no_table_of_the_replay() -> None:
    memory = MemoryConnector()
    done = replay(HALVES, memory)
    assert done.agrees, done
    metadata = memory.get_metadata(memory.begin_transaction())
    assert list(metadata.list_tables(ConnectorSession("q"))) == []


def test_a_table_that_cannot_be_filled_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop()
    monkeypatch.setattr("tests.replays.shop.NewRows.append_page", lambda *_: 1 / 0)
    with pytest.raises(RowMergeError, match="it cannot be created: ZeroDivisionError"):
        replay(CHANGES, shop)
    assert shop.tables == {}


def test_a_replay_that_is_quit_in_the_debugger_leaves_no_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop("breakpoint() in finish")

    def quitting() -> None:
        raise bdb.BdbQuit

    monkeypatch.setattr(sys, "breakpointhook", quitting)
    monkeypatch.setattr("rowmerge_nb.replays.run.has_keyboard", lambda: True)
    with pytest.raises(bdb.BdbQuit):
        replay(CHANGES, shop)
    assert shop.tables == {}


def test_a_breakpoint_without_a_terminal_names_how_to_replay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import io
    import pdb  # noqa: T100 - as Python has it; pytest has a hook of its own

    shop = Shop("breakpoint() in finish")
    monkeypatch.setattr(
        sys,
        "breakpointhook",
        lambda: pdb.Pdb(nosigint=True, readrc=False).set_trace(sys._getframe(1)),
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(
        RowMergeError,
        match=r"breakpoint\(\) in .*shop\.py, line \d+, cannot stop here: this process has no keyboard",
    ) as failed:
        replay(CHANGES, shop)
    assert failed.value.code == "NOT_SUPPORTED"
    assert "pytest -s" in str(failed.value.hint)
    assert shop.tables == {}


def test_an_existing_table_with_these_rows_is_used_and_rolled_back() -> None:
    shop = FixedShop()
    record = case(
        table="default.prices",
        columns=COLUMNS,
        rows=[(1, 9.5), (2, 3.0)],
        pages=[(0, [("DELETE", 0, (None, None))])],
    )
    done = replay(record, shop)
    assert shop.rows[SchemaTableName("default", "prices")] == {1: (1, 9.5), 2: (2, 3.0)}
    assert not done.compared
    assert done.notices[-1].startswith("finish_merge was not called: the connector commits in it")


def test_a_connector_that_creates_no_tables_is_filled_by_a_merge_if_it_is_the_replays_own() -> None:
    done = replay(CHANGES, FixedShop)
    assert done.agrees, done


def test_a_connector_that_cannot_be_filled_is_replayed_up_to_the_sink_with_a_notice() -> None:
    done = replay(CHANGES, FixedShop(""))
    assert not done.has_rows
    assert not done.compared
    assert (
        "has other rows than that of the record, and a table cannot be created" in done.notices[0]
    )
    assert [call.method for call in done.calls if call.number == 0] == [
        "create_merge_sink",
        "store_merged_rows",
        "store_merged_rows",
        "finish",
    ]


def test_make_table_fills_tables_that_cannot_be_filled_otherwise() -> None:
    def make_table(connector: Any, metadata: Any, rows: Any) -> None:
        connector.rows[metadata.name] = dict(enumerate(rows, 40))

    make = partial(FixedShop, "operation ignored")
    assert not replay(CHANGES, make).has_rows
    done = replay(CHANGES, make, make_table=make_table)
    assert (done.has_rows, rows(done.extra)) == (
        True,
        [(1, 9.5), (2, 3.0), (3, 4.25), (None, None)],
    )


def test_a_connector_without_the_table_that_creates_none_is_refused() -> None:
    record = dataclasses.replace(CHANGES, name=("", "default", "others"))
    with pytest.raises(
        RowMergeError,
        match=r"FixedShop has no table default\.others, and it cannot be created: .*Pass make_table",
    ) as caught:
        replay(record, FixedShop)
    assert caught.value.code == "NOT_SUPPORTED"


def test_a_failed_rollback_is_reported_beside_the_error() -> None:
    done = replay(HALVES, lambda: FaultyConnector(MemoryConnector(), Fault("rollback")))
    assert done.agrees
    assert done.notices == ("The rollback failed: OSError: the disk is full",)


def test_rows_of_pages_without_a_recorded_target_are_omitted_with_a_notice() -> None:
    record = dataclasses.replace(CHANGES, rows=CHANGES.rows.slice(1), row_count=3)
    done = replay(record, Shop)
    assert done.notices == ("The record lacks rows of the target: 1 row of the pages skipped",)
    assert done.agrees, done


def test_a_sample_and_a_missing_page_are_reported() -> None:
    record = dataclasses.replace(CHANGES, every=10, left_out={0: 3})
    assert replay(record, Shop).notices == (
        "3 pages of writer 0 are not in the record, before its last one",
        "The record is a sample: one row of 10 was kept",
    )


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"writer": 7}, "The record has no pages of writer 7. There are: 0, 1."),
        ({"writer": -1}, "writer = -1 is not possible"),
        ({"writer": "0"}, "writer = '0' is not possible"),
        ({"writer": 0, "split": 0}, "writer and split cannot be combined"),
        (
            {"call": "finish_merg"},
            "call = 'finish_merg' is not possible. Did you mean 'finish_merge'",
        ),
        ({"split": 9}, "The table has no split 9: it has 1 split here"),
        ({"make_table": 3}, "make_table = 3 is not possible"),
    ],
)
def test_parts_missing_from_the_record_are_refused(chosen: Any, message: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        replay(CHANGES, Shop, **chosen)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("connector", "message"),
    [
        (3, "connector is of type int"),
        ("shop", "connector = 'shop' is not possible"),
        ("no_such_module:make", "connector = 'no_such_module:make' cannot be imported"),
        ("tests.replays.shop:nothing", "cannot be imported"),
        (lambda: 5, "returned int; it must return a rowmerge_nb.Connector"),
    ],
)
def test_a_factory_that_makes_no_connector_is_refused(connector: Any, message: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        replay(CHANGES, connector)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert message in str(caught.value)


def test_the_debugger_has_no_stop_without_a_failure() -> None:
    with pytest.raises(RowMergeError, match="No call failed in this replay"):
        replay(CHANGES, Shop).debug()


def test_the_debugger_opens_at_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr("pdb.post_mortem", opened.append)
    monkeypatch.setattr("rowmerge_nb.replays.debugging._shell", lambda: None)
    done = replay(CHANGES, partial(Shop, "price 7 is refused"))
    done.debug()
    frame = opened[0]
    while frame.tb_next is not None:
        frame = frame.tb_next
    assert (frame.tb_frame.f_code.co_name, frame.tb_frame.f_locals["rows"]) == (
        "store_merged_rows",
        [(3, 7.0)],
    )


def test_breakpoint_works_in_a_sink_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(
        sys, "breakpointhook", lambda: stopped.append(sys._getframe(1).f_code.co_name)
    )
    replay(CHANGES, partial(Shop, "breakpoint() in finish"))
    assert stopped == ["finish", "finish"]


def test_a_saved_record_is_replayed_on_a_machine_without_java(tmp_path: Path) -> None:
    CHANGES.save(tmp_path / "prices.record")
    code = (
        "import sys, rowmerge_nb as rm\n"
        f"done = rm.replay({str(tmp_path / 'prices.record')!r}, 'tests.replays.shop:Shop')\n"
        "assert done.agrees, done\n"
        "print('py4j.java_gateway' in sys.modules)\n"
    )
    bare = {
        "PATH": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(tmp_path),
    }
    ran = subprocess.run(
        [sys.executable, "-c", code], env=bare, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
