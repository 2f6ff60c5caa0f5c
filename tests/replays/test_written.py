"""The file of a written replay: a self-contained test that fails on the broken connector and passes on the mended one."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import MemoryConnector, RowMergeError, replay
from rowmerge_nb.replays import case
from tests.replays import shop

COLUMNS = {"id": "bigint", "price": "double"}
UPDATES = case(
    table="default.prices",
    columns=COLUMNS,
    rows=[(i, 1.5) for i in range(20)],
    pages=[
        (0, [("UPDATE", i, (i, 7.0 if i == 13 else 2.5)) for i in range(20)]),
        (1, [("INSERT", None, (40, 3.0))]),
    ],
)
MENDED = """\
from tests.replays.shop import Shop


def make_connector():
    return Shop({bug!r})
"""


def pytest_on(folder: Path, file: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        f"--rootdir={folder}",
        str(file),
    ]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.not_quick
@pytest.mark.parametrize("bug", ["price 7 is refused", "new rows of updates twice"])
def test_the_test_fails_on_the_broken_connector_and_passes_on_the_mended_one(
    bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_shop.py").write_text(MENDED.format(bug=bug))
    sys.modules.pop("own_shop", None)
    done = replay(UPDATES, "own_shop:make_connector").shrink()
    file = done.to_test(tmp_path / "test_own_shop.py")

    broken = pytest_on(tmp_path, file)
    assert broken.returncode == 1, broken.stdout
    assert "1 failed" in broken.stdout

    (tmp_path / "own_shop.py").write_text(MENDED.format(bug=""))
    mended = pytest_on(tmp_path, file)
    assert mended.returncode == 0, mended.stdout
    assert "1 passed" in mended.stdout


def test_the_file_has_only_the_necessary_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop, "BUG", "price 7 is refused")
    done = replay(UPDATES, shop.broken).shrink()
    text = done.to_test(tmp_path / "test_shop.py").read_text()
    assert (
        text
        == '''\
"""Replay of MERGE default.prices on broken: store_merged_rows of writer 0 failed: ValueError: no price is 7."""

from rowmerge_nb.replays import case, replay

from tests.replays.shop import broken

CASE = case(
    table="default.prices",
    columns={"price": "double"},
    rows=[
        (None,),
    ],
    pages=[
        (0, [  # writer 0
            ("UPDATE", 0, (7.0,)),
        ]),
    ],
)


def test_store_merged_rows_takes_these_rows():
    done = replay(CASE, broken)
    assert not done.failed, done
'''
    )


def test_values_of_all_kinds_are_written_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datetime as dt
    from decimal import Decimal

    columns = {
        "a": "varchar",
        "b": "decimal(10, 2)",
        "c": "date",
        "d": "timestamp(6)",
        "e": "varbinary",
        "f": "array(bigint)",
        "g": "row(x bigint, y varchar)",
        "h": "map(varchar, double)",
        "i": "boolean",
        "j": "double",
    }
    values = (
        'it\'s """ \\ \n\x00 日本',
        Decimal("1.50"),
        dt.date(2024, 2, 29),
        dt.datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001 - a timestamp without a zone
        b"\x00'",
        [1, None],
        {"x": 1, "y": None},
        [("k", 1.5)],
        True,
        float("inf"),
    )
    record = case(
        columns=columns,
        rows=[values],
        pages=[(2, [("DELETE", 0, (None,) * 10), ("INSERT", None, values)])],
    )
    monkeypatch.setattr(shop, "BUG", "typo in store_merged_rows")
    file = replay(record, shop.broken).to_test(tmp_path / "test_values.py")
    scope: dict[str, Any] = {}
    exec(compile(ast.parse(file.read_text()), file.name, "exec"), scope)
    assert scope["CASE"].rows.equals(record.rows)
    assert scope["CASE"].pages[0].page.equals(record.pages[0].page)


def test_every_kind_of_record_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        case(
            kind="INSERT",
            columns=COLUMNS,
            rows=[(1, 1.0)],
            pages=[(0, [("INSERT", None, (2, 2.0))])],
        ),
        case(
            kind="DELETE",
            flow="updatable",
            columns=COLUMNS,
            rows=[(1, 1.0), (2, 2.0)],
            pages=[(0, [("DELETE", 1, ())])],
        ),
        case(
            kind="UPDATE",
            flow="updatable",
            columns=COLUMNS,
            rows=[(1, 1.0), (2, 2.0)],
            updated={0: ("price",)},
            channels=(1, 0),
            pages=[(0, [("UPDATE", 1, (5.0,))])],
        ),
        case(
            session={"era": "current"},
            updated={0: ("price",)},
            columns=COLUMNS,
            rows=[(1, 1.0)],
            pages=[(0, [("UPDATE_DELETE", 0, (1, 1.0), 0), ("UPDATE_INSERT", None, (1, 5.0), 0)])],
        ),
    ]
    for number, record in enumerate(records):
        done = replay(record, MemoryConnector)
        assert done.agrees, done
        scope: dict[str, Any] = {}
        exec(done.to_test(tmp_path / f"test_{number}.py").read_text(), scope)
        assert scope["CASE"] == record
        for name, test in scope.items():
            if name.startswith("test_"):
                test()


def test_a_connector_that_no_file_can_import_is_refused_with_what_to_write(tmp_path: Path) -> None:
    done = replay(UPDATES, partial(shop.Shop, "price 7 is refused"))
    with pytest.raises(RowMergeError, match="A file cannot import partial") as caught:
        done.to_test(tmp_path / "test_x.py")
    assert "def make_connector()" in str(caught.value.hint)
    assert not (tmp_path / "test_x.py").exists()
    there = replay(UPDATES, shop.Shop("price 7 is refused"))
    with pytest.raises(RowMergeError, match="A file cannot import Shop: it is a connector itself"):
        there.to_test(tmp_path / "test_x.py")
    assert there.to_test(tmp_path / "test_x.py", connector="tests.replays.shop:broken").exists()


def test_only_the_pages_of_one_writer_are_written_for_its_replay(tmp_path: Path) -> None:
    text = replay(UPDATES, shop.broken, writer=1).to_test(tmp_path / "test_one.py").read_text()
    assert "# writer 0" not in text
    assert 'replay(CASE, broken, call="finish")' in text


def test_make_table_is_named_too(tmp_path: Path) -> None:
    def make_table(connector: Any, metadata: Any, rows: Any) -> None:
        connector.tables[metadata.name], connector.rows[metadata.name] = (
            metadata,
            dict(enumerate(rows)),
        )

    done = replay(UPDATES, shop.broken, make_table=make_table, call="finish")
    with pytest.raises(RowMergeError, match="A file cannot import make_table"):
        done.to_test(tmp_path / "test_x.py")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("there.py", "already exists"),
        ("there.py/test_x.py", "cannot be written as .*: File exists"),
        ("folder", "is not the name of a Python or Java file"),
        ("test.txt", "is not the name of a Python or Java file"),
        (3, "path = 3"),
    ],
)
def test_existing_files_and_invalid_paths_are_refused(
    tmp_path: Path, path: Any, message: str
) -> None:
    (tmp_path / "there.py").write_text("mine")
    (tmp_path / "folder").mkdir()
    done = replay(UPDATES, shop.broken)
    with pytest.raises(RowMergeError, match=message) as caught:
        done.to_test(tmp_path / path if isinstance(path, str) else path)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert (tmp_path / "there.py").read_text() == "mine"


def test_missing_folders_are_created_and_a_second_test_is_refused(tmp_path: Path) -> None:
    done = replay(UPDATES, shop.broken)
    file = done.to_test(tmp_path / "tests" / "shop" / "test_shop.py")
    assert file.exists()
    with pytest.raises(RowMergeError, match="already exists") as caught:
        done.to_test(file)
    assert "another name" in str(caught.value.hint)


def test_a_test_of_thousands_of_rows_is_not_written(tmp_path: Path) -> None:
    rows = [(i, 1.5) for i in range(2_000)]
    record = case(columns=COLUMNS, rows=rows, pages=[(0, [("DELETE", 0, (None, None))])])
    with pytest.raises(RowMergeError, match=r"2,001 rows.*Shrink the replay first"):
        replay(record, shop.broken).to_test(tmp_path / "test_x.py")
