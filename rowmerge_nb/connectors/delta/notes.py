"""Notes of running statements, by which the files of dead processes are found.

A note is a file ``_rowmerge_nb/<prefix>`` in the table's folder. It has the process and the version
that the statement read. The names of a statement's files begin with its prefix.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.connectors.shared.disk import writing
from rowmerge_nb.connectors.shared.orphans import has_died, orphaned_path, this_process

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rowmerge_nb.spi import Orphan

FOLDER: Final = "_rowmerge_nb"
LOG: Final = "_delta_log"


def begin(table: Path, prefix: str, query_id: str, version: int) -> None:
    note = {"process": this_process(), "statement": query_id, "version": version}
    with writing(f"Folder '{table}'", "DELTA_LAKE_BAD_WRITE"):
        (table / FOLDER).mkdir(parents=True, exist_ok=True)
        (table / FOLDER / prefix).write_text(json.dumps(note))


def is_running(table: Path, prefix: str) -> bool:
    return (table / FOLDER / prefix).exists()


def running(table: Path) -> set[str]:
    """Return the prefixes of statements that have not ended, in any process."""
    with suppress(OSError):
        return {path.name for path in (table / FOLDER).iterdir()}
    return set()


def end(table: Path, prefix: str, committed: Collection[str]) -> None:
    """Remove a statement's note, and its files that are not committed.

    Without committed files, nothing goes whose commit the log may have: an error may follow it.

    Folders stay, since another statement may be about to write to them, unless the table was never
    committed.
    """
    note = table / FOLDER / prefix
    if not committed and note.exists() and (table / LOG).exists():
        with suppress(OSError, ValueError, KeyError, TypeError):
            is_committed = _is_committed(
                table, prefix, int(json.loads(note.read_text())["version"])
            )
            if is_committed is None:
                # The note stays, for who looks for orphans.
                return
            if is_committed:
                note.unlink(missing_ok=True)
                return
    with suppress(OSError):
        note.unlink(missing_ok=True)
    for path in _files(table, prefix):
        if path.relative_to(table).as_posix() not in committed:
            with suppress(OSError):
                path.unlink(missing_ok=True)
    if not (table / LOG).exists():
        for folder, _, _ in os.walk(table, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()


def remove_leftover(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def orphans(table: Path) -> Iterator[Orphan]:
    """Yield what statements of dead processes have left in a table's folder."""
    for note in [table / FOLDER / prefix for prefix in sorted(running(table))]:
        try:
            content = json.loads(note.read_text())
            process, statement, version = (
                str(content["process"]),
                str(content["statement"]),
                int(content["version"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if not has_died(process):
            continue
        committed = _is_committed(table, note.name, version)
        if committed is None:
            continue
        if not committed:
            for path in _files(table, note.name):
                yield orphaned_path(path, statement, process)
        yield orphaned_path(note, statement, process)


def _is_committed(table: Path, prefix: str, version: int) -> bool | None:
    """Return whether a statement's files are in the log, None if the log begins later or cannot be
    read.
    """
    with suppress(OSError):
        commits = {int(p.stem): p for p in (table / LOG).glob("*.json") if p.stem.isdigit()}
        newer = [number for number in commits if number > version]
        if newer and min(newer) != version + 1:
            return None
        return any(prefix in commits[number].read_text() for number in newer)
    return None


def _files(table: Path, prefix: str) -> list[Path]:
    return [
        Path(folder) / name
        for folder, _, names in os.walk(table)
        for name in names
        if name.startswith(f"{prefix}-")
    ]
