"""Leftovers are described while others remove them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb.connectors.shared.orphans import orphaned_path


def test_a_folder_that_is_removed_while_it_is_looked_at_has_nothing_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, scandir = tmp_path / "stage", os.scandir
    path.mkdir()

    def late(place: Any) -> Any:
        Path(place).rmdir()
        return scandir(place)

    monkeypatch.setattr(os, "scandir", late)
    found = orphaned_path(path, "q1")
    assert (found.name, found.statement) == (str(path), "q1")


def test_all_files_below_a_folder_count(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "rows").write_bytes(b"123")
    (tmp_path / "rows").write_bytes(b"4567")
    assert orphaned_path(tmp_path).bytes == 7 + tmp_path.stat().st_size
