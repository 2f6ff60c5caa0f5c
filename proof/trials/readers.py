"""Independent readers: the content of tables, without code of the connectors under test."""

from __future__ import annotations

import csv
import io
import re
import shutil
import sqlite3
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from proof.engines.postgresql import find_server

__all__ = [
    "READERS",
    "MissingTableError",
    "read_delta",
    "read_hive",
    "read_iceberg",
    "read_postgresql",
    "read_sqlite",
    "unreadable_snapshots",
]

_DIRECTORY: Final = re.compile(r"(base|delta|delete_delta)_(\d+)(?:_(\d+))?(?:_(\d+))?(?:_v(\d+))?")
_COLUMNS: Final = ("id", "owner", "n", "name")
Rows: TypeAlias = list[tuple[Any, ...]]


class MissingTableError(Exception):
    """The table does not exist."""


def read_sqlite(where: str, table: str, columns: Sequence[str] = _COLUMNS) -> Rows:
    """Read a table of a file with Python's own SQLite.

    Raises:
        MissingTableError: the table does not exist.
    """
    with closing(
        sqlite3.connect(f"file:{where}/shop.db?mode=ro", uri=True, timeout=30)
    ) as connection:
        if (
            connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
            is None
        ):
            raise MissingTableError
        return connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()


def read_postgresql(where: str, table: str, columns: Sequence[str] = _COLUMNS) -> Rows:
    """Read a table with ``psql``."""
    psql = find_server() / "psql"
    program = str(psql) if psql.is_file() else str(shutil.which("psql"))
    command = [
        program,
        "-X",
        "--csv",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        where,
        "-c",
        f"SELECT {', '.join(columns)} FROM {table}",
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [(*map(int, row[:-1]), row[-1]) for row in csv.reader(io.StringIO(text))]


# -- Iceberg


def read_iceberg(where: str, table: str, columns: Sequence[str] = _COLUMNS) -> Rows:
    """Read a table with pyiceberg, from the catalog's current metadata file.

    Raises:
        MissingTableError: the table does not exist.
    """
    return [
        tuple(row[name] for name in columns)
        for row in _iceberg(where, table).scan().to_arrow().to_pylist()
    ]


def unreadable_snapshots(where: str, table: str) -> list[str]:
    """Return problems of the snapshots in the table's metadata, each of which must be readable."""
    current, problems = _iceberg(where, table), []
    for snapshot in current.metadata.snapshots:
        try:
            current.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        except Exception as error:  # noqa: BLE001 - whatever it is, the snapshot cannot be read
            problems.append(f"table '{table}', snapshot {snapshot.snapshot_id}: {error!r}"[:500])
    return problems


def _iceberg(where: str, table: str) -> Any:
    from pyiceberg.table import StaticTable

    with closing(
        sqlite3.connect(f"file:{where}/catalog.sqlite?mode=ro", uri=True, timeout=30)
    ) as connection:
        entry = connection.execute(
            "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = 'default' AND"
            " table_name = ?",
            (table,),
        ).fetchone()
    if entry is None:
        raise MissingTableError
    return StaticTable.from_metadata(entry[0])


# -- Hive


def read_hive(where: str, table: str, columns: Sequence[str] = _COLUMNS) -> Rows:
    """Read a transactional table with pyorc, by Hive's rules for valid directories; a partition
    column is the last one.

    Raises:
        MissingTableError: the table does not exist.
    """
    with closing(
        sqlite3.connect(
            f"file:{where}/metastore.sqlite?mode=ro", uri=True, timeout=30, isolation_level=None
        )
    ) as connection:
        connection.execute("BEGIN")
        entry = connection.execute(
            "SELECT id, location FROM tables WHERE name = ?", (table,)
        ).fetchone()
        if entry is None:
            raise MissingTableError
        identity, location = entry
        high = connection.execute(
            "SELECT high_watermark FROM write_id_counters WHERE table_id = ?", (identity,)
        ).fetchone()
        states = dict(connection.execute("SELECT number, state FROM transactions"))
        query = "SELECT write_id, number FROM hidden_write_ids WHERE table_id = ?"
        hidden = {
            number: states.get(transaction, "")
            for number, transaction in connection.execute(query, (identity,))
        }
        partitions = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM partitions WHERE table_id = ?", (identity,)
            )
        ]
    ids = _WriteIds(
        high[0] if high else 0,
        frozenset(k for k, state in hidden.items() if state == "open"),
        frozenset(hidden),
    )
    width = len(columns)
    return [
        row[:width]
        for partition in partitions or [""]
        for row in _hive_partition(Path(location) / partition, partition, ids, states)
    ]


@dataclass(frozen=True)
class _WriteIds:
    """Valid write ids.

    Args:
        high: the largest one.
        open: those of running transactions.
        hidden: those, and those of aborted transactions.
    """

    high: int
    open: frozenset[int]
    hidden: frozenset[int]

    def is_valid(self, number: int) -> bool:
        """Return whether rows of a write id are visible."""
        return number <= self.high and number not in self.hidden

    def is_valid_base(self, number: int, *, compacted: bool) -> bool:
        """Return whether a base is valid: a compacted one may span aborted write ids, but no open
        one.
        """
        if compacted:
            return number <= self.high and all(number < running for running in self.open)
        return self.is_valid(number)


def _hive_partition(
    folder: Path, partition: str, ids: _WriteIds, states: dict[int, str]
) -> Iterator[tuple[Any, ...]]:
    import pyorc

    directories = _directories(folder, states)
    compacted = {path for *_, path in directories if "_v" in path.name}
    bases = [
        (lowest, path)
        for directory_kind, lowest, _, path in directories
        if directory_kind == "base" and ids.is_valid_base(lowest, compacted=path in compacted)
    ]
    base, base_path = max(bases, default=(0, None))
    deltas = _chosen([d for d in directories if d[0] == "delta"], base, ids)
    deletes = _chosen([d for d in directories if d[0] == "delete_delta"], base, ids)
    deleted = {
        row[1:4] for path in deletes for row in _orc_rows(pyorc, path) if ids.is_valid(row[4])
    }
    name = urllib.parse.unquote(partition.partition("=")[2])
    for path in [*([base_path] if base_path is not None else []), *deltas]:
        for row in _orc_rows(pyorc, path):
            if row[1:4] not in deleted and (path == base_path or ids.is_valid(row[4])):
                yield (*row[5], name) if partition else row[5]


def _directories(folder: Path, states: dict[int, str]) -> list[tuple[str, int, int, Path]]:
    """Return directories of committed compactions: kind, lowest and highest write id, and path."""
    directories = []
    for path in folder.iterdir():
        name = _DIRECTORY.fullmatch(path.name)
        # A transaction that ended without a trace was committed.
        if name is not None and (
            name[5] is None or states.get(int(name[5]), "committed") == "committed"
        ):
            directories.append((name[1], int(name[2]), int(name[3] or name[2]), path))
    return directories


def _chosen(directories: list[tuple[str, int, int, Path]], base: int, ids: _WriteIds) -> list[Path]:
    """Select the widest of overlapping deltas, as Hive does."""
    selected: list[Path] = []
    current = base
    last = (0, 0)
    for _, lowest, highest, path in sorted(directories, key=lambda d: (d[1], -d[2], d[3].name)):
        if not any(map(ids.is_valid, range(lowest, highest + 1))):
            continue
        if highest > current:
            current, last = highest, (lowest, highest)
            selected.append(path)
        elif (lowest, highest) == last and lowest == highest:
            # Another statement of the same transaction.
            selected.append(path)
    return selected


def _orc_rows(pyorc: Any, directory: Path) -> Iterator[tuple[Any, ...]]:
    for path in sorted(directory.glob("bucket_*")):
        if path.stat().st_size:
            with path.open("rb") as file:
                yield from pyorc.Reader(file)


def read_delta(where: str, table: str, columns: Sequence[str] = _COLUMNS) -> Rows:
    """Read a table with delta-rs.

    Raises:
        MissingTableError: the table does not exist.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        rows = DeltaTable(f"{where}/default/{table}").to_pyarrow_table()
    except TableNotFoundError as error:
        raise MissingTableError(table) from error
    return list(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))


READERS: Final[dict[str, Callable[..., Rows]]] = {
    "iceberg": read_iceberg,
    "delta": read_delta,
    "hive": read_hive,
    "sqlite": read_sqlite,
    "postgresql": read_postgresql,
}
"""The independent readers of persistent stores."""
