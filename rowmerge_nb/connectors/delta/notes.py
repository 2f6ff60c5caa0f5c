"""Notes of running statements, by which the files of dead processes are found.

A note is a file ``_rowmerge_nb/<prefix>.<process>`` in the table's folder. It has the statement and
the version that it read. The names of a statement's files begin with its prefix.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from rowmerge_nb.connectors.shared.disk import reading, writing
from rowmerge_nb.connectors.shared.orphans import has_died, orphaned_path, this_process

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rowmerge_nb.spi import Orphan

FOLDER: Final = "_rowmerge_nb"
LOG: Final = "_delta_log"

_ENDED: Final[set[str]] = set()
"""The prefixes of this process's statements that ended, but whose notes could not be removed."""


def begin(table: Path, prefix: str, query_id: str, version: int) -> None:
    note = _own_note(table, prefix)
    content = json.dumps({"statement": query_id, "version": version})
    with writing(f"Folder '{table}'", "DELTA_LAKE_BAD_WRITE"):
        note.parent.mkdir(parents=True, exist_ok=True)
        try:
            note.write_text(content)
        except FileNotFoundError:
            # Who removes orphans may have taken the folder, which was empty.
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(content)


def is_running(table: Path, prefix: str) -> bool:
    return prefix in running(table)


def running(table: Path) -> set[str]:
    """Return the prefixes of statements that have not ended, in any process."""
    return {_prefix(note) for note in _notes(table)}


def end(table: Path, prefix: str, committed: Collection[str]) -> None:
    """Remove a statement's note, and its files that are not committed.

    Without committed files, nothing goes whose commit the log may have: an error may follow it.

    Folders stay, since another statement may be about to write to them, unless the table was never
    committed.
    """
    note = _own_note(table, prefix)
    is_committed, is_noted = bool(committed) or _fate(table, note)[1], True
    if is_committed is not None:
        with suppress(OSError):
            note.unlink(missing_ok=True)
            is_noted = False
    if is_noted:
        # For who looks for orphans.
        _ENDED.add(prefix)
        return
    if committed or not is_committed:
        for path in _files(table, prefix):
            if path.relative_to(table).as_posix() not in committed:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
    remove_empty(table)


def remove_empty(table: Path) -> None:
    """Remove the folders of a table that was never committed, if they have no files."""
    with suppress(OSError):
        if (table / LOG).exists() or not _is_empty(table):
            return
        for folder, _, _ in os.walk(table, topdown=False):
            Path(folder).rmdir()


def remove_leftover(path: Path) -> None:
    """Remove an orphan: a file, an empty folder, or the folder of a dropped table."""
    if path.name.startswith(".dropped-") and path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif path.is_dir():
        remove_empty(path)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def orphans(table: Path) -> Iterator[Orphan]:
    """Yield what statements of dead processes have left in a table's folder."""
    for note in _notes(table):
        prefix, process = _prefix(note), unquote(note.name.partition(".")[2])
        if not (has_died(process) or prefix in _ENDED):
            continue
        statement, is_committed = _fate(table, note)
        if is_committed is None:
            continue
        if not is_committed:
            for path in _files(table, prefix):
                yield orphaned_path(path, statement, process)
        yield orphaned_path(note, statement, process)
    if _is_empty(table):
        yield orphaned_path(table)


def _is_empty(table: Path) -> bool:
    with suppress(OSError):
        return not table.is_symlink() and not any(
            names for _, _, names in os.walk(table, onerror=_fail)
        )
    return False


def _fail(error: OSError) -> None:
    raise error


def _own_note(table: Path, prefix: str) -> Path:
    return table / FOLDER / f"{prefix}.{quote(this_process(), safe='')}"


def _prefix(note: Path) -> str:
    return note.name.partition(".")[0]


def _notes(table: Path) -> list[Path]:
    with (
        reading(f"Directory '{table / FOLDER}'", "DELTA_LAKE_FILESYSTEM_ERROR"),
        suppress(FileNotFoundError, NotADirectoryError),
    ):
        return sorted((table / FOLDER).iterdir())
    return []


def _fate(table: Path, note: Path) -> tuple[str, bool | None]:
    """Return a note's statement, and whether its files are in the log: None if the log begins later
    or cannot be read.
    """
    try:
        content = json.loads(note.read_text())
        statement, version = str(content["statement"]), int(content["version"])
    except FileNotFoundError:
        return "", False
    except OSError:
        return "", None
    except (ValueError, KeyError, TypeError):
        # The statement ended before its note was written, and has no files.
        return "", True
    with suppress(OSError):
        commits = {int(p.stem): p for p in (table / LOG).glob("*.json") if p.stem.isdigit()}
        newer = [number for number in commits if number > version]
        if newer and min(newer) != version + 1:
            return statement, None
        return statement, any(_prefix(note) in commits[number].read_text() for number in newer)
    return statement, None


def _files(table: Path, prefix: str) -> list[Path]:
    return [
        Path(folder) / name
        for folder, _, names in os.walk(table)
        for name in names
        if name.startswith(f"{prefix}-")
    ]
