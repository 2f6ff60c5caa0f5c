"""A full or read-only disk: the error says so, old content stays, and the next statement works."""

from __future__ import annotations

import gc
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb import (
    ConnectorError,
    HiveAcidConnector,
    IcebergConnector,
    RowMergeError,
    SqliteConnector,
)
from rowmerge_nb.base.private import PrivateDirectory
from rowmerge_nb.connectors.hive_acid.metastore import embedded
from rowmerge_nb.connectors.shared.sqlite_errors import is_full, is_read_only
from tests.connectors.hive_acid import kit as hive_acid_kit
from tests.connectors.iceberg import kit as iceberg_kit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LINUX_ROOT = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root may mount a small disk"
)


def refused(code: str, action: Callable[[], Any]) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        action()
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    return caught.value


def refusing(monkeypatch: pytest.MonkeyPatch, word: str, number: int = 13) -> list[str]:
    """Let SQLite refuse statements that begin with a word like on a full disk: the transaction has ended by then."""
    said: list[str] = []

    class Refusing(sqlite3.Connection):
        def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
            said.append(sql.split(maxsplit=1)[0])
            if sql.startswith(word):
                if self.in_transaction:
                    super().execute("ROLLBACK")
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = number
                raise error
            return super().execute(sql, *more)

    true = sqlite3.connect
    monkeypatch.setattr(
        embedded.sqlite3, "connect", lambda *args, **more: true(*args, factory=Refusing, **more)
    )
    return said


@pytest.mark.parametrize("word", ["BEGIN", "SELECT", "UPDATE", "DELETE", "INSERT", "COMMIT"])
def test_every_statement_of_the_metastore_reports_a_full_disk_as_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    store = hive_acid_kit.make_table(tmp_path, partitioned_by=("p",))
    hive_acid_kit.merge(store, hive_acid_kit.inserted((1, "a", "x")))
    statement = hive_acid_kit.Statement(store)
    statement.stage([hive_acid_kit.inserted((2, "b", "y"))])
    statement.finish()
    refusing(monkeypatch, word)
    error = refused("GENERIC_INSUFFICIENT_RESOURCES", statement.commit)
    assert "database or disk is full" in error.message
    assert "cannot rollback" not in error.message
    assert "Free space" in str(error.hint)
    monkeypatch.undo()
    statement.rollback()
    assert store.open_transactions() == []
    assert hive_acid_kit.contents(store) == [(1, "a", "x")]
    hive_acid_kit.merge(store, hive_acid_kit.inserted((3, "c", "y")))
    assert hive_acid_kit.contents(store) == [(1, "a", "x"), (3, "c", "y")]


def test_a_rollback_makes_room_for_the_note_of_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = hive_acid_kit.make_table(tmp_path)
    statement = hive_acid_kit.Statement(store)
    statement.stage([hive_acid_kit.inserted((1, "a", "x"))])
    statement.finish()
    true = store.metastore.abort

    def abort(number: int) -> None:
        if list((tmp_path / "warehouse" / "t").rglob("bucket_*")):
            raise ConnectorError("full", code="GENERIC_INSUFFICIENT_RESOURCES", hint="Make room.")
        true(number)

    monkeypatch.setattr(store.metastore, "abort", abort)
    statement.rollback()
    assert store.open_transactions() == []
    assert hive_acid_kit.files(store) == set()


def test_files_of_a_transaction_with_another_outcome_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metastore may have committed it despite its answer."""
    store = hive_acid_kit.make_table(tmp_path)
    statement = hive_acid_kit.Statement(store)
    statement.stage([hive_acid_kit.inserted((1, "a", "x"))])
    statement.finish()
    transaction = store._transactions[statement.transaction.number]
    store.metastore.commit(transaction.number, transaction.changes)

    def abort(number: int) -> None:
        raise ConnectorError("gone", code="HIVE_METASTORE_ERROR", hint="Look at it.")

    monkeypatch.setattr(store.metastore, "abort", abort)
    refused("HIVE_METASTORE_ERROR", statement.rollback)
    monkeypatch.undo()
    assert hive_acid_kit.contents(store) == [(1, "a", "x")]


def test_errors_of_sqlite_are_found_within_those_of_a_library_around_it() -> None:
    inner = sqlite3.OperationalError("x")
    inner.sqlite_errorcode = sqlite3.SQLITE_FULL
    outer = RuntimeError("y")
    outer.orig = inner  # type: ignore[attr-defined]
    assert is_full(outer)
    assert not is_read_only(outer)
    assert not is_full(RuntimeError("disk is full"))
    inner.sqlite_errorcode = sqlite3.SQLITE_READONLY | 5 << 8
    outer.orig, outer.__cause__ = None, inner  # type: ignore[attr-defined]
    assert is_read_only(outer)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("no disk can be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path, *, leave: int = 0) -> Path:
    """Fill a disk up to some bytes."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    os.truncate(ballast, max(0, ballast.stat().st_size - leave))
    return ballast


ROWS = [(number, "v" * 20, "x") for number in range(2, 40)]


def hive(disk: Path, *, new: bool = True) -> tuple[Any, Callable[[], Any], Callable[[], Any]]:
    store = hive_acid_kit.make_table(disk) if new else HiveAcidConnector(disk)
    if new:
        hive_acid_kit.merge(store, hive_acid_kit.inserted((1, "a", "x")))

    def change() -> None:
        statement = hive_acid_kit.Statement(store)
        try:
            statement.stage([hive_acid_kit.inserted(*ROWS)])
            statement.finish()
            statement.commit()
        except BaseException:
            statement.rollback()
            raise

    return store, change, lambda: hive_acid_kit.contents(store)


def iceberg(disk: Path, *, new: bool = True) -> tuple[Any, Callable[[], Any], Callable[[], Any]]:
    store = iceberg_kit.make_table(disk) if new else IcebergConnector(disk)
    if new:
        iceberg_kit.insert(store, iceberg_kit.rows(1))

    def change() -> None:
        statement = iceberg_kit.Statement(store)
        try:
            statement.begin_merge()
            statement.stage([(1, None, *row) for row in ROWS])
            statement.finish()
            statement.commit()
        except BaseException:
            statement.rollback()
            raise

    return store, change, lambda: iceberg_kit.contents(store)


@LINUX_ROOT
@pytest.mark.parametrize("room", [0, 4096, 16384])
@pytest.mark.parametrize("make", [hive, iceberg])
def test_a_full_disk_is_reported_and_nothing_is_lost(
    small_disk: Path, make: Any, room: int
) -> None:
    store, change, rows = make(small_disk)
    before = rows()
    ballast = fill(small_disk, leave=room)
    with pytest.raises(RowMergeError) as caught:
        change()
    assert "cannot rollback" not in str(caught.value)
    assert caught.value.hint
    assert caught.value.code in {"GENERIC_INSUFFICIENT_RESOURCES", "ICEBERG_COMMIT_ERROR"}
    assert rows() == before
    ballast.unlink()
    change()
    assert len(rows()) == len(before) + len(ROWS)
    store.close()


@pytest.mark.not_quick
@LINUX_ROOT
@pytest.mark.parametrize(("make", "kit"), [(hive, hive_acid_kit), (iceberg, iceberg_kit)])
def test_a_disk_that_fills_up_within_a_file_is_reported_by_the_task_that_writes_it(
    small_disk: Path, make: Any, kit: Any
) -> None:
    store, _, rows = make(small_disk)
    before, statement = rows(), kit.Statement(store)
    if kit is iceberg_kit:
        statement.begin_merge()
    fill(small_disk, leave=65536)
    # Incompressible bytes.
    long = [(number, random.Random(number).randbytes(2048).hex(), "x") for number in range(2, 102)]
    pages = (
        [hive_acid_kit.inserted(*long)]
        if kit is hive_acid_kit
        else [(1, None, *row) for row in long]
    )
    error = refused("GENERIC_INSUFFICIENT_RESOURCES", lambda: statement.stage(pages))
    assert "Free space" in str(error.hint)
    assert "No space left" in error.message
    # A file that is still open would report here that it cannot be closed.
    del error
    gc.collect()
    statement.rollback()
    (small_disk / "ballast").unlink()
    assert rows() == before
    store.close()


@pytest.fixture
def read_only_disk(small_disk: Path) -> Callable[[], Path]:
    """Remount the disk read-only, and return it."""

    def remount() -> Path:
        done = subprocess.run(
            ["mount", "-o", "remount,ro", str(small_disk)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("the disk cannot be mounted anew here")
        return small_disk

    return remount


@LINUX_ROOT
@pytest.mark.parametrize("make", [hive, iceberg])
def test_a_read_only_disk_can_be_read_and_is_reported_on_the_first_write(
    small_disk: Path, read_only_disk: Callable[[], Path], make: Any
) -> None:
    store, change, rows = make(small_disk)
    before = rows()
    store.close()
    read_only_disk()
    store, change, rows = make(small_disk, new=False)
    refused("PERMISSION_DENIED", change)
    assert rows() == before
    store.close()


@LINUX_ROOT
@pytest.mark.parametrize("make", [HiveAcidConnector, IcebergConnector])
def test_a_store_on_a_read_only_disk_cannot_be_created(
    read_only_disk: Callable[[], Path], make: Callable[[Path], Any]
) -> None:
    disk = read_only_disk()
    refused("PERMISSION_DENIED", lambda: make(disk / "new"))
    with pytest.raises(RowMergeError) as caught:
        make(disk)
    assert caught.value.hint


@LINUX_ROOT
def test_a_database_on_a_read_only_disk_is_reported(
    small_disk: Path, read_only_disk: Callable[[], Path]
) -> None:
    file = small_disk / "shop.db"
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE t (a int PRIMARY KEY)")
    made.close()
    read_only_disk()
    refused("PERMISSION_DENIED", lambda: SqliteConnector(file).store.connect(writing=True))
    from rowmerge_nb.connectors.jdbc.sqlite.spool import Spool

    refused("PERMISSION_DENIED", lambda: Spool(str(file), "q"))


@LINUX_ROOT
@pytest.mark.parametrize("state", ["full", "read-only"])
def test_a_full_or_read_only_temporary_directory_is_reported(
    small_disk: Path,
    read_only_disk: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
    state: str,
) -> None:
    if state == "full":
        fill(small_disk)
    else:
        read_only_disk()
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    error = refused(
        "GENERIC_INSUFFICIENT_RESOURCES" if state == "full" else "PERMISSION_DENIED",
        PrivateDirectory,
    )
    assert str(small_disk) in error.message
    assert "TMPDIR" in str(error.hint)
    assert [entry.name for entry in small_disk.iterdir()] == (
        ["ballast"] if state == "full" else []
    )
