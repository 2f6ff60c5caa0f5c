"""Adoption of other engines' directories, and detection of orphans."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.layout_names import parse_directory
from rowmerge_nb.connectors.hive_acid.metastore.metastore import partition_texts
from rowmerge_nb.connectors.hive_acid.orc_values import partition_value
from rowmerge_nb.connectors.hive_acid.visible_deltas import ValidWriteIds, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable

_IN_THE_MAKING: Final = "_in_the_making"
"""The file that marks a folder as that of a table being created or dropped."""
_DROPPED: Final = re.compile(r"_dropped_([0-9a-f]{32}|[0-9a-f]{12})")
_ATTEMPT: Final = re.compile(
    r"_tmp_(?P<old_query>.+)_(?P<old_number>\d+)_[0-9a-f]{12}|_tmp_(?P<query>.+)_(?P<number>\d{1,11})"
)
"""Folders of statements, while they run and while they are removed.

The latter form was once that of single attempts.
"""


def note_creation(folder: Path) -> None:
    (folder / _IN_THE_MAKING).touch()


def creation_notes(folder: Path) -> list[Path]:
    note = folder / _IN_THE_MAKING
    return [note] if os.path.lexists(note) else []


def forget_creation(folder: Path) -> None:
    with suppress(OSError):
        (folder / _IN_THE_MAKING).unlink()


def dropped_folder(folder: Path, identity: str) -> Path:
    """Return the temporary path of a dropped table's folder.

    >>> dropped_folder(Path("w/t"), "0" * 32).name
    '_dropped_00000000000000000000000000000000'
    """
    return folder.with_name(f"_dropped_{identity}")


def is_uncommitted(folder: Path) -> bool:
    """Return whether a folder has a creation note, is that of a dropped table, or has no files."""
    return (
        os.path.lexists(folder / _IN_THE_MAKING)
        or _DROPPED.fullmatch(folder.name) is not None
        or not any(files for _, _, files in os.walk(folder))
    )


def adopted_partitions(table: HiveTable) -> list[str]:
    """Return the names of a directory's partitions; ``[""]`` without partition columns."""
    names = list(_partitions(Path(table.location), table.partitioned_by))
    for name in names:
        for column, text in zip(table.partition_columns, partition_texts(name), strict=True):
            partition_value(text, column, table.name)
    return names


def _partitions(folder: Path, columns: Sequence[str], above: str = "") -> Iterator[str]:
    if not columns:
        yield above
        return
    for entry in visible(folder):
        column, equals, _ = entry.name.partition("=")
        if not entry.is_dir() or not equals or column.lower() != columns[0].lower():
            raise ConnectorError(
                f"'{entry}' should be the folder of a partition by {columns[0]}, named"
                f" '{columns[0]}=...'",
                code="HIVE_INVALID_PARTITION_VALUE",
                hint="Name the partition columns in the order of the folders.",
            )
        yield from _partitions(entry, columns[1:], f"{above}/{entry.name}" if above else entry.name)


def adopted_write_ids(table: HiveTable, partitions: Sequence[str]) -> ValidWriteIds:
    """Return write ids up to the largest in the directories' names, all committed."""
    directories = [
        parse_directory(entry.name)
        for name in partitions
        for entry in visible(Path(table.location) / name)
    ]
    return ValidWriteIds(
        max((directory.highest for directory in directories if directory is not None), default=0)
    )


def orphan_candidates(table: HiveTable) -> list[Path]:
    """Return a table's directories of single transactions."""
    root = Path(table.location)
    attempts = [entry for entry in folders_in(root) if _ATTEMPT.fullmatch(entry.name)]
    deltas = [
        entry
        for folder in _partition_folders(root, len(table.partitioned_by))
        for entry in folders_in(folder)
    ]
    return [*attempts, *(entry for entry in deltas if parse_directory(entry.name) is not None)]


def is_orphan(candidate: Path, write_ids: ValidWriteIds, running: Collection[int]) -> bool:
    """Return whether no reader will ever see a candidate.

    List the candidates first, then running transactions, then write ids.
    """
    directory = parse_directory(candidate.name)
    if directory is None:
        return statement_of(candidate)[1] not in running
    if directory.visibility is not None and write_ids.transactions is not None:
        number = directory.visibility
        if number in write_ids.transactions.uncommitted:
            return number not in running
    return directory.kind != "base" and all(
        number in write_ids.aborted for number in range(directory.lowest, directory.highest + 1)
    )


def _partition_folders(folder: Path, depth: int) -> Iterator[Path]:
    if not depth:
        yield folder
        return
    for entry in folders_in(folder):
        if not entry.name.startswith(("_", ".")):
            yield from _partition_folders(entry, depth - 1)


def folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def statement_of(attempt: Path) -> tuple[str, int]:
    """Return query id and transaction from the name of an attempt's folder; ``("", 0)`` for other
    names.

    >>> statement_of(Path("t/_tmp_q7_12")), statement_of(Path("t/_tmp_q7_12_0123456789ab")), statement_of(Path("t/delta_1_1"))
    (('q7', 12), ('q7', 12), ('', 0))
    """
    match = _ATTEMPT.fullmatch(attempt.name)
    if match is None:
        return "", 0
    parts = match.groupdict()
    return parts["old_query"] or parts["query"], int(parts["old_number"] or parts["number"])
