"""Names of directories and files in transactional tables, and bucket numbers in row ids."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pathlib import Path

VERSION_FILE: Final = "_orc_acid_version"
COMPACTED_FILE: Final = "_metadata_acid"
STREAM_LENGTH: Final = "_flush_length"
"""The suffix of a side file that holds the flushed length of a streamed file."""
DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"

BUCKET_LIMIT: Final = 1 << 12
STATEMENT_LIMIT: Final = 1 << 12

_DIRECTORY: Final = re.compile(
    r"(?:(base)_(\d{1,18})|(delta|delete_delta)_(\d{1,18})_(\d{1,18})(?:_(\d{1,18}))?)(?:_v(\d{1,18}))?",
    re.ASCII,
)
"""At most 18 digits, so that numbers fit into Hive's 64 bits."""
_DELTA_FILE: Final = re.compile(r"bucket_(\d+)(_\d+)?")
_ORIGINAL: Final = re.compile(r"(\d+)_\d+.*|bucket_(\d+)(_\d+)?")
_UNSAFE: Final = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")


@dataclass(frozen=True)
class AcidDirectory:
    """The parsed name of a directory in a table or partition.

    Args:
        visibility: the compaction's transaction (``_v12``), or None.
    """

    name: str
    kind: str
    lowest: int
    highest: int
    statement: int | None = None
    visibility: int | None = None

    @property
    def compacted(self) -> bool:
        return self.visibility is not None


def parse_directory(name: str) -> AcidDirectory | None:
    """Parse a directory's name; None if it is not one of Hive's. Leading zeros do not matter.

    >>> parse_directory("delta_0000003_0000005_0001").highest, parse_directory("base_7_v12").compacted
    (5, True)
    >>> parse_directory("p=x") is None
    True
    """
    match = _DIRECTORY.fullmatch(name)
    if match is None:
        return None
    base, number, directory_kind, lowest, highest, statement, transaction = match.groups()
    visibility = int(transaction) if transaction is not None else None
    if base:
        return AcidDirectory(name, "base", 0, int(number), None, visibility)
    return AcidDirectory(
        name,
        directory_kind,
        int(lowest),
        int(highest),
        int(statement) if statement is not None else None,
        visibility,
    )


def highest_visibility(folder: Path) -> int:
    """Return the largest compaction transaction in names of directories, or 0.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "p=1" / "base_5_v12").mkdir(parents=True)
    >>> highest_visibility(folder)
    12
    """
    parsed = (parse_directory(name) for _, names, _ in os.walk(folder) for name in names)
    return max(
        (directory.visibility or 0 for directory in parsed if directory is not None), default=0
    )


def delta_directory(directory_kind: str, lowest: int, highest: int, statement: int | None) -> str:
    """Return the name of a delta or delete delta.

    >>> delta_directory("delete_delta", 3, 3, 0)
    'delete_delta_0000003_0000003_0000'
    """
    return f"{directory_kind}_{lowest:07d}_{highest:07d}" + (
        "" if statement is None else f"_{statement:04d}"
    )


def bucket_file(bucket: int) -> str:
    """Return the name of a bucket's file.

    >>> bucket_file(2)
    'bucket_00002'
    """
    return f"bucket_{bucket:05d}"


def bucket_of_delta_file(name: str) -> int | None:
    """Return the bucket of a file in a base or delta, or None.

    >>> bucket_of_delta_file("bucket_00003_0"), bucket_of_delta_file("foo.orc")
    (3, None)
    """
    match = _DELTA_FILE.fullmatch(name)
    return int(match[1]) if match else None


def bucket_of_original(name: str) -> int | None:
    """Return the bucket of a file without row ids, or None.

    >>> bucket_of_original("000001_0_copy_1"), bucket_of_original("notes.txt")
    (1, None)
    """
    match = _ORIGINAL.fullmatch(name)
    return int(match[1] or match[2]) if match else None


def encode_bucket(bucket: int, statement: int = 0) -> int:
    """Pack bucket and statement into a row's bucket number (Hive's codec version 1)."""
    return 1 << 29 | bucket << 16 | statement


def buckets_in(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Unpack buckets from rows' bucket numbers; in version 0 they are the numbers themselves.

    >>> buckets_in(np.array([536936448, 3], np.int32)).tolist()
    [1, 3]
    """
    return normalized_buckets(numbers) >> 16 & (BUCKET_LIMIT - 1)


def normalized_buckets(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Convert bucket numbers of both codec versions to version 1, so that they can be compared.

    >>> normalized_buckets(np.array([3, 536936448], np.int32)).tolist()
    [537067520, 536936448]
    """
    wide = numbers.astype(np.int64)
    return np.where(wide >> 29 == 0, 1 << 29 | wide << 16, wide)


def escape(text: str) -> str:
    """Escape a partition value for a directory's name.

    >>> escape("z a/b"), escape("x=1")
    ('z a%2Fb', 'x%3D1')
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """Unescape a partition value from a directory's name.

    >>> unescape("z a%2Fb")
    'z a/b'
    """
    return re.sub(r"%([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)
