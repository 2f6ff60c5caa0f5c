"""Snapshot files next to the tests: set ROWMERGE_UPDATE_SNAPSHOTS=1 to rewrite them, and read the difference before committing."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).with_name("snapshots")


def check(name: str, text: str) -> None:
    """Compare a text with the snapshot of that name."""
    path = FOLDER / name
    if os.environ.get("ROWMERGE_UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text("utf-8")
