"""Leftovers are listed while other processes remove them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb.connectors.shared import orphans
from rowmerge_nb.connectors.shared.orphans import (
    has_died,
    orphaned_path,
    process_name,
    this_process,
)


def test_a_folder_removed_while_it_is_listed_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, scandir = tmp_path / "stage", os.scandir
    path.mkdir()

    def late(place: Any) -> Any:
        # pytest removes folders by their numbers, maybe before this ends.
        if place == path:
            path.rmdir()
        return scandir(place)

    monkeypatch.setattr(os, "scandir", late)
    found = orphaned_path(path, "q1")
    assert (found.name, found.statement) == (str(path), "q1")


def test_all_files_below_a_folder_count(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "rows").write_bytes(b"123")
    (tmp_path / "rows").write_bytes(b"4567")
    assert orphaned_path(tmp_path).bytes == 7 + tmp_path.stat().st_size


@pytest.fixture
def dead() -> str:
    """Return the name of an ended process."""
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as child:
        return process_name(child.pid)


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")


@linux
def test_a_process_of_this_namespace_is_dead_if_its_number_is_free_or_reused(dead: str) -> None:
    assert has_died(dead)
    assert not has_died(this_process())
    later = re.sub(r"\d+$", lambda start: str(int(start[0]) - 1), this_process())
    assert has_died(later), "the number is that of a later process"


@linux
@pytest.mark.parametrize("readable", [True, False])
def test_a_process_of_another_container_with_this_host_name_may_live(
    dead: str, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    monkeypatch.setattr(orphans, "_space", lambda: "0" * 16 if readable else "")
    assert not has_died(dead)
    assert has_died(process_name(2**22 + 1)) is False
    assert process_name(os.getpid()).startswith(f"{socket.gethostname()}:{os.getpid()}")


def test_the_number_of_a_process_proves_nothing_by_itself(dead: str) -> None:
    assert not has_died(dead.partition("/")[0])


@linux
def test_a_process_hidden_by_proc_is_not_taken_for_dead(
    dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = this_process()
    monkeypatch.setattr(orphans, "_status", lambda _: None)
    assert has_died(dead)
    assert not has_died(hidden)


@linux
def test_the_name_of_a_process_fits_into_the_columns_of_a_metastore() -> None:
    assert len(this_process()) - len(socket.gethostname()) < 64
