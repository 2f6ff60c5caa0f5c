"""Which directories of a table a reader looks at: Hive's rules of visibility, told by write ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rowmerge_nb.connectors.hive_acid.names import (
    COMPACTED_FILE,
    STREAM_LENGTH,
    VERSION_FILE,
    AcidDirectory,
    bucket_of_delta_file,
    bucket_of_original,
    parse_directory,
)
from rowmerge_nb.connectors.shared.arguments import is_number
from rowmerge_nb.errors import ConnectorError, RowMergeError, checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "AcidState",
    "ValidWriteIds",
    "acid_state",
    "data_files",
    "declared_version",
    "stated_write_ids",
    "visible",
    "visible_deltas",
]


@dataclass(frozen=True)
class ValidWriteIds:
    """What a reader of a table may see.

    Args:
        high_watermark: the largest write id that was given out when the reader began.
        open: write ids of transactions that were still running.
        aborted: write ids of transactions that came to nothing.

    >>> ids = ValidWriteIds(5, frozenset({4}), frozenset({2}))
    >>> [number for number in range(1, 8) if ids.is_valid(number)]
    [1, 3, 5]
    """

    high_watermark: int
    open: frozenset[int] = field(default_factory=frozenset)
    aborted: frozenset[int] = field(default_factory=frozenset)

    def is_valid(self, write_id: int) -> bool:
        """Tell whether what was written under an id counts."""
        return write_id <= self.high_watermark and write_id not in self.open and write_id not in self.aborted

    def any_valid(self, lowest: int, highest: int) -> bool:
        """Tell whether an id of a range counts."""
        hidden = sum(1 for number in self.open | self.aborted if lowest <= number <= min(highest, self.high_watermark))
        return min(highest, self.high_watermark) - lowest + 1 > hidden

    def is_valid_base(self, directory: AcidDirectory, *, compacted: bool) -> bool:
        """Tell whether a base counts: a compacted one may hold aborted ids (left out of it), but none that was open."""
        if compacted:
            return directory.highest <= self.high_watermark and directory.highest < min(self.open, default=directory.highest + 1)
        return self.is_valid(directory.highest)


def stated_write_ids(given: Any) -> ValidWriteIds:
    """Give what a program states of a table's write ids, in the words of a metastore.

    Raises:
        RowMergeError: INVALID_ARGUMENTS.

    >>> stated_write_ids({"highWatermark": 6, "open": [5], "aborted": [2]})
    ValidWriteIds(high_watermark=6, open=frozenset({5}), aborted=frozenset({2}))
    """
    form = 'write ids as their metastore tells them: {"highWatermark": 6, "open": [5], "aborted": [2]}, open and aborted only if there are any'
    checked(given, "write_ids", Mapping, form)
    unknown = sorted(map(repr, given.keys() - {"highWatermark", "open", "aborted"}))
    if unknown or "highWatermark" not in given:
        msg = f"write_ids has {unknown[0]}, which means nothing" if unknown else "write_ids has no highWatermark"
        raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint=f"Give {form}.")
    highest = checked(given["highWatermark"], "write_ids['highWatermark']", is_number, "the largest write id, a number from 0 on")
    hidden = []
    for state in ("open", "aborted"):
        numbers = given.get(state) or ()
        checked(
            numbers, f"write_ids['{state}']", lambda ids: isinstance(ids, list | tuple | set | frozenset), "a list of write ids"
        )
        for number in numbers:
            checked(number, f"a write id in write_ids['{state}']", is_number, "a number from 1 on")
        hidden.append(frozenset(numbers))
    return ValidWriteIds(highest, *hidden)


@dataclass(frozen=True)
class AcidState:
    """What a reader of one table or partition reads.

    Args:
        base: the base, or None.
        deltas: the deltas with rows, in the order of their write ids.
        delete_deltas: the directories of delete events.
        originals: files without row ids of their own, by path.
    """

    base: AcidDirectory | None
    deltas: tuple[AcidDirectory, ...]
    delete_deltas: tuple[AcidDirectory, ...]
    originals: tuple[Path, ...]


def acid_state(folder: Path, valid: ValidWriteIds) -> AcidState:
    """Look at a table's or partition's folder.

    Raises:
        ConnectorError: HIVE_FILE_NOT_FOUND if the folder is gone; HIVE_INVALID_BUCKET_FILES if it holds a file that is no bucket;
            HIVE_BAD_DATA if it has bases and none of them may be seen, or a delta of which a part may.
    """
    directories: list[AcidDirectory] = []
    originals: list[Path] = []
    for entry in visible(folder):
        if entry.is_dir():
            directory = parse_directory(entry.name)
            if directory is not None:
                directories.append(directory)
        elif entry.stat().st_size:
            if bucket_of_original(entry.name) is None:
                msg = f"Cannot get the bucket number out of the name of file '{entry}'"
                raise ConnectorError(
                    msg,
                    code="HIVE_INVALID_BUCKET_FILES",
                    hint="Files of a table are named 000000_0 or bucket_00000; move others away.",
                )
            originals.append(entry)
    base = _base(folder, [d for d in directories if d.kind == "base"], valid)
    above = base.highest if base is not None else 0
    deltas = _whole(folder, [d for d in directories if d.kind != "base" and d.highest > above], valid)
    chosen = visible_deltas(deltas, valid)
    return AcidState(
        base,
        tuple(d for d in chosen if d.kind == "delta"),
        tuple(d for d in chosen if d.kind == "delete_delta"),
        () if base is not None else tuple(originals),
    )


def visible(folder: Path) -> list[Path]:
    """Give the entries of a folder that Hive does not call hidden, by name.

    Raises:
        ConnectorError: HIVE_FILE_NOT_FOUND if there is no such folder.
    """
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith(("_", ".")))
    except (FileNotFoundError, NotADirectoryError):
        msg = f"Directory '{folder}' of a Hive table does not exist"
        raise ConnectorError(
            msg, code="HIVE_FILE_NOT_FOUND", hint="Bring it back, or DROP TABLE and register the table where its files are."
        ) from None


def data_files(folder: Path) -> list[Path]:
    """Give the files of a base or delta: not hidden, and not in a folder below.

    Raises:
        ConnectorError: HIVE_BAD_DATA if one of them is empty, or is named like a bucket and no file. Every writer of transactional tables
            ends its files with a footer; only streams, which say in another file how far theirs have come, begin with an empty one.
    """
    entries = visible(folder)
    lengths = {entry.name.removesuffix(STREAM_LENGTH) for entry in entries if entry.name.endswith(STREAM_LENGTH)}
    files = []
    for entry in entries:
        if entry.name.endswith(STREAM_LENGTH) or (entry.is_dir() and bucket_of_delta_file(entry.name) is None):
            continue
        if not entry.is_file():
            _refuse(entry, "is no file")
        if entry.stat().st_size:
            files.append(entry)
        elif entry.name not in lengths:
            _refuse(entry, "is empty")
    return files


def _refuse(entry: Path, wrong: str) -> NoReturn:
    msg = f"'{entry}' should hold rows of a Hive table, and {wrong}"
    raise ConnectorError(msg, code="HIVE_BAD_DATA", hint="Bring the file back; if it never held rows, remove it.")


def _whole(folder: Path, deltas: Sequence[AcidDirectory], valid: ValidWriteIds) -> list[AcidDirectory]:
    """Leave out deltas in which a compaction has put together what may be read and what came after it: what they replace is read."""

    def is_whole(delta: AcidDirectory) -> bool:
        return not delta.lowest <= valid.high_watermark < delta.highest

    whole = list(filter(is_whole, deltas))
    for delta in deltas:
        replaced = (one.kind == delta.kind and delta.lowest <= one.highest <= valid.high_watermark for one in whole)
        if not is_whole(delta) and not any(replaced):
            msg = f"Not enough history available in '{folder}': {delta.name} has what was written after write id {valid.high_watermark} as well"
            raise ConnectorError(msg, code="HIVE_BAD_DATA", hint="A compaction has put it together; read the table as it is now.")
    return whole


def _base(folder: Path, bases: Sequence[AcidDirectory], valid: ValidWriteIds) -> AcidDirectory | None:
    usable = [
        base
        for base in bases
        if valid.is_valid_base(base, compacted=base.compacted or (folder / base.name / COMPACTED_FILE).exists())
    ]
    if bases and not usable:
        names = ", ".join(base.name for base in bases)
        msg = f"Not enough history available in '{folder}': none of {names} may be read up to write id {valid.high_watermark}"
        raise ConnectorError(msg, code="HIVE_BAD_DATA", hint="Run the statement again when the open transactions have ended.")
    return max(usable, key=lambda base: base.highest, default=None)


def visible_deltas(directories: Iterable[AcidDirectory], valid: ValidWriteIds) -> list[AcidDirectory]:
    """Choose among deltas: those of write ids that count, and of overlapping ones the widest.

    >>> names = ["delta_0000001_0000001", "delta_0000001_0000003", "delta_0000003_0000003", "delta_0000004_0000004"]
    >>> found = [d for d in map(parse_directory, names) if d is not None]
    >>> [d.name for d in visible_deltas(found, ValidWriteIds(4))]
    ['delta_0000001_0000003', 'delta_0000004_0000004']
    """
    chosen: list[AcidDirectory] = []
    current = 0
    for directory in sorted(
        directories, key=lambda d: (d.lowest, -d.highest, -1 if d.statement is None else d.statement, d.name)
    ):
        if not valid.any_valid(directory.lowest, directory.highest):
            continue
        last = chosen[-1] if chosen else None
        if directory.highest > current:
            current = directory.highest
        elif last is None or not (
            (directory.highest == current and last.statement is not None)
            or (last.lowest, last.highest, last.statement) == (directory.lowest, directory.highest, directory.statement)
        ):
            continue
        chosen.append(directory)
    return chosen


def declared_version(folder: Path) -> int | None:
    """Give the format version that a base or delta declares; None if it does not.

    Raises:
        ConnectorError: HIVE_BAD_DATA if what it declares is not a number.
    """
    file = folder / VERSION_FILE
    try:
        text = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"'{file}' cannot be read: {error}"
        raise ConnectorError(msg, code="HIVE_BAD_DATA", hint="It holds the one digit 2; restore it.") from error
    if not text.isdigit():
        msg = f"'{file}' should hold the number of a format version, and holds {text[:20]!r}"
        raise ConnectorError(msg, code="HIVE_BAD_DATA", hint="It holds the one digit 2; restore it.")
    return int(text)
