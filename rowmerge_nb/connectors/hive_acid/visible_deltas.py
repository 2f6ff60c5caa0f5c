"""Hive's rules of visibility: the directories that a reader uses, by write ids."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.connectors.hive_acid.layout_names import (
    COMPACTED_FILE,
    STREAM_LENGTH,
    VERSION_FILE,
    AcidDirectory,
    bucket_of_delta_file,
    bucket_of_original,
    parse_directory,
)
from rowmerge_nb.connectors.shared.arguments import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True)
class ValidTransactions:
    """The transactions whose compactions (``_vN``) a reader may use."""

    high_watermark: int
    uncommitted: frozenset[int] = field(default_factory=frozenset)

    def is_valid(self, transaction: int) -> bool:
        return transaction <= self.high_watermark and transaction not in self.uncommitted


@dataclass(frozen=True)
class ValidWriteIds:
    """The write ids that a reader of a table sees."""

    high_watermark: int
    open: frozenset[int] = field(default_factory=frozenset)
    aborted: frozenset[int] = field(default_factory=frozenset)
    transactions: ValidTransactions | None = field(default=None, repr=False)

    def is_visible(self, directory: AcidDirectory) -> bool:
        return (
            directory.visibility is None
            or self.transactions is None
            or self.transactions.is_valid(directory.visibility)
        )

    def is_valid(self, write_id: int) -> bool:
        return (
            write_id <= self.high_watermark
            and write_id not in self.open
            and write_id not in self.aborted
        )

    def any_valid(self, lowest: int, highest: int) -> bool:
        hidden_count = sum(
            1
            for number in self.open | self.aborted
            if lowest <= number <= min(highest, self.high_watermark)
        )
        return min(highest, self.high_watermark) - lowest + 1 > hidden_count

    def is_valid_base(self, directory: AcidDirectory, *, compacted: bool) -> bool:
        """Return whether a base is visible.

        A compacted base may span aborted ids, but no open ones.
        """
        if compacted:
            return directory.highest <= self.high_watermark and directory.highest < min(
                self.open, default=directory.highest + 1
            )
        return self.is_valid(directory.highest)


def stated_write_ids(value: Any) -> ValidWriteIds:
    """Parse the write ids that a program states, in the format of a metastore.

    >>> stated_write_ids({"highWatermark": 6, "open": [5], "aborted": [2]})
    ValidWriteIds(high_watermark=6, open=frozenset({5}), aborted=frozenset({2}))
    """
    form = (
        'write ids as their metastore reports them: {"highWatermark": 6, "open": [5], "aborted":'
        " [2]}, open and aborted only if there are any"
    )
    checked(value, "write_ids", Mapping, form)
    unknown = sorted(map(repr, value.keys() - {"highWatermark", "open", "aborted"}))
    if unknown or "highWatermark" not in value:
        raise RowMergeError.invalid(
            (
                f"write_ids has {unknown[0]}, which is not a known key"
                if unknown
                else "write_ids has no highWatermark"
            ),
            hint=f"Give {form}.",
        )
    highest = checked(
        value["highWatermark"],
        "write_ids['highWatermark']",
        _is_write_id,
        "the largest write id, a number from 0",
    )
    states = []
    for state in ("open", "aborted"):
        numbers = value.get(state) or ()
        checked(
            numbers,
            f"write_ids['{state}']",
            lambda ids: isinstance(ids, list | tuple | set | frozenset),
            "a list of write ids",
        )
        for number in numbers:
            checked(number, f"a write id in write_ids['{state}']", _is_write_id, "a number from 1")
        states.append(frozenset(numbers))
    still_open, aborted = states
    return ValidWriteIds(highest, still_open, aborted)


def _is_write_id(value: Any) -> bool:
    return is_number(value) and value < 1 << 63


@dataclass(frozen=True)
class AcidState:
    """The directories and files that a reader of one table or partition uses.

    Args:
        overlaps: for deltas that overlap, the largest write id whose rows another directory has.
    """

    base: AcidDirectory | None
    deltas: tuple[AcidDirectory, ...]
    delete_deltas: tuple[AcidDirectory, ...]
    originals: tuple[Path, ...]
    overlaps: Mapping[str, int] = field(default_factory=dict)


def acid_state(folder: Path, valid: ValidWriteIds) -> AcidState:
    """Read the state of a table's or partition's folder."""
    directories: list[AcidDirectory] = []
    originals: list[Path] = []
    for entry in _entries(folder):
        if entry.is_dir():
            directory = parse_directory(entry.name)
            if directory is not None:
                directories.append(directory)
        elif _size(entry):
            if bucket_of_original(entry.name) is None:
                raise ConnectorError(
                    f"Cannot read the bucket number from the name of file '{entry.path}'",
                    code="HIVE_INVALID_BUCKET_FILES",
                    hint="Files of a table are named 000000_0 or bucket_00000; move others away.",
                )
            originals.append(Path(entry.path))
    _require_known(folder, directories, valid, has_originals=bool(originals))
    directories = list(filter(valid.is_visible, directories))
    base = _base(folder, [d for d in directories if d.kind == "base"], valid)
    above = base.highest if base is not None else 0
    deltas = _whole(
        folder, [d for d in directories if d.kind != "base" and d.highest > above], valid
    )
    inserts = visible_deltas([d for d in deltas if d.kind == "delta"], valid, above)
    deletes = visible_deltas([d for d in deltas if d.kind == "delete_delta"], valid, above)
    return AcidState(
        base,
        tuple(d for d, _ in inserts),
        tuple(d for d, _ in deletes),
        () if base is not None else tuple(originals),
        {d.name: elsewhere for d, elsewhere in inserts if elsewhere},
    )


def _require_known(
    folder: Path, directories: Sequence[AcidDirectory], valid: ValidWriteIds, *, has_originals: bool
) -> None:
    """Raise if a compaction is newer than the metastore and what it replaced is gone: the metastore
    is an older copy.
    """
    newest = valid.transactions.high_watermark if valid.transactions is not None else None
    for directory in directories:
        if newest is None or directory.visibility is None or directory.visibility <= newest:
            continue
        if directory.kind == "base" and has_originals:
            continue
        others = (d for d in directories if d.visibility != directory.visibility)
        if directory.lowest <= valid.high_watermark and not any(
            directory.lowest <= d.highest <= directory.highest for d in others
        ):
            raise ConnectorError(
                f"'{folder / directory.name}' was written by transaction"
                f" {directory.visibility}, which is not in the metastore",
                code="HIVE_BAD_DATA",
                hint=(
                    "Restore the metastore's newest copy, or register the folder in"
                    " another metastore with register_table."
                ),
            )


def visible(folder: Path) -> list[Path]:
    return [folder / entry.name for entry in _entries(folder)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with folder_errors(folder), os.scandir(folder) as entries:
        return sorted(
            (entry for entry in entries if not entry.name.startswith(("_", "."))),
            key=lambda entry: entry.name,
        )


def _size(entry: os.DirEntry[str]) -> int:
    with folder_errors(Path(entry.path)), suppress(FileNotFoundError):
        return entry.stat().st_size
    return 0


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Raise HIVE_FILE_NOT_FOUND or HIVE_FILESYSTEM_ERROR for errors of the disk in a table's
    folder.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConnectorError(
            f"Directory '{error.filename or folder}' of a Hive table does not exist",
            code="HIVE_FILE_NOT_FOUND",
            hint="Restore it, or DROP TABLE and register the table where its files are.",
        ) from error
    except (OSError, RuntimeError) as error:
        # Before Python 3.13, a link to itself raises RuntimeError.
        raise ConnectorError(
            f"'{getattr(error, 'filename', None) or folder}' of a Hive table cannot be read:"
            f" {getattr(error, 'strerror', None) or error}",
            code="HIVE_FILESYSTEM_ERROR",
            hint="Check that driver and workers reach the directory and may read it.",
        ) from error


def data_files(folder: Path) -> list[Path]:
    entries = _entries(folder)
    lengths = {
        entry.name.removesuffix(STREAM_LENGTH)
        for entry in entries
        if entry.name.endswith(STREAM_LENGTH)
    }
    files = []
    for entry in entries:
        if entry.name.endswith(STREAM_LENGTH) or (
            entry.is_dir() and bucket_of_delta_file(entry.name) is None
        ):
            continue
        if not entry.is_file():
            _refuse(entry, "is no file")
        if _size(entry):
            files.append(Path(entry.path))
        elif entry.name not in lengths:
            _refuse(entry, "is empty")
    return files


def _refuse(entry: os.DirEntry[str], wrong: str) -> NoReturn:
    raise ConnectorError(
        f"'{entry.path}' should hold rows of a Hive table, but {wrong}",
        code="HIVE_BAD_DATA",
        hint="Restore the file, or remove it if it never held rows.",
    )


def _whole(
    folder: Path, deltas: Sequence[AcidDirectory], valid: ValidWriteIds
) -> list[AcidDirectory]:
    """Drop compacted deltas with rows after the snapshot, if what they replaced can be read."""

    def is_later(delta: AcidDirectory) -> bool:
        return delta.lowest <= valid.high_watermark < delta.highest

    def is_mixed(delta: AcidDirectory) -> bool:
        return delta.lowest < delta.highest and any(
            delta.lowest <= number <= delta.highest for number in valid.open
        )

    whole = [delta for delta in deltas if not is_later(delta) and not is_mixed(delta)]
    streams = []
    for delta in deltas:
        end = min(valid.high_watermark, delta.highest)
        if delta in whole or any(
            other.kind == delta.kind and delta.lowest <= other.highest <= end for other in whole
        ):
            continue
        if is_later(delta):
            raise ConnectorError(
                f"Not enough history available in '{folder}': {delta.name} also has"
                f" rows written after write id {valid.high_watermark}",
                code="HIVE_BAD_DATA",
                hint="A compaction has merged these rows; read the current table.",
            )
        streams.append(delta)
    return [*whole, *streams]


def _base(
    folder: Path, bases: Sequence[AcidDirectory], valid: ValidWriteIds
) -> AcidDirectory | None:
    usable = [
        base
        for base in bases
        if valid.is_valid_base(
            base, compacted=base.compacted or (folder / base.name / COMPACTED_FILE).exists()
        )
    ]
    if bases and not usable:
        names = ", ".join(base.name for base in bases)
        raise ConnectorError(
            f"Not enough history available in '{folder}': none of {names} can be read"
            f" up to write id {valid.high_watermark}",
            code="HIVE_BAD_DATA",
            hint="Run the statement again after the open transactions end.",
        )
    return max(usable, key=lambda base: base.highest, default=None)


def visible_deltas(
    directories: Iterable[AcidDirectory], valid: ValidWriteIds, above: int = 0
) -> list[tuple[AcidDirectory, int]]:
    """Select deltas of one kind so that each event is read once.

    Of overlapping directories the widest is read, and others for the write ids that it lacks. Kinds
    must be selected separately: events of one never replace those of the other.

    Returns:
        Directories, each with the largest write id to skip, or 0.
    """
    selection: list[tuple[AcidDirectory, int]] = []
    current = above
    last: AcidDirectory | None = None
    for directory in sorted(directories, key=_width):
        if not valid.any_valid(directory.lowest, directory.highest):
            continue
        if directory.highest > current:
            selection.append((directory, current if directory.lowest <= current else 0))
            current = directory.highest
        elif last is not None and _is_next_statement(last, directory):
            selection.append((directory, 0))
        else:
            continue
        last = directory
    return selection


def _width(directory: AcidDirectory) -> tuple[int, int, int, int, str]:
    statement = -1 if directory.statement is None else directory.statement
    return (
        directory.lowest,
        -directory.highest,
        statement,
        -(directory.visibility or 0),
        directory.name,
    )


def _is_next_statement(last: AcidDirectory, directory: AcidDirectory) -> bool:
    return (
        (last.lowest, last.highest) == (directory.lowest, directory.highest)
        and last.statement is not None
        and directory.statement != last.statement
    )


def declared_version(folder: Path) -> int | None:
    """Return the format version that a base or delta declares, if any."""
    file = folder / VERSION_FILE
    try:
        text = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConnectorError(
            f"'{file}' cannot be read: {error}",
            code="HIVE_BAD_DATA",
            hint="Restore it: it must contain only the digit 2.",
        ) from error
    if not text.isdigit():
        raise ConnectorError(
            f"'{file}' should hold the number of a format version but holds {text[:20]!r}",
            code="HIVE_BAD_DATA",
            hint="Restore it: it must contain only the digit 2.",
        )
    return int(text)
