"""Rows read by other programs: ``psql`` and Python's own SQLite."""

from __future__ import annotations

import csv
import datetime as dt
import io
import shutil
import sqlite3
import subprocess
from contextlib import closing
from decimal import Decimal
from functools import cache
from typing import Any

from proof.engines.postgresql import find_server
from rowmerge_nb.spi.types import Type
from tests.connectors.jdbc.support import Database

NULL = "<null>"

_FROM_TEXT: dict[str, Any] = {
    "tinyint": int,
    "smallint": int,
    "integer": int,
    "bigint": int,
    "real": float,
    "double": float,
    "decimal": Decimal,
    "boolean": lambda text: {"t": True, "f": False}[text],
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
}


def rows_of_others(
    database: Database, table: str, columns: list[tuple[str, Type]]
) -> list[tuple[Any, ...]]:
    """Read some columns of a table, in any order of rows, without any code under test."""
    if database.kind == "sqlite":
        return _by_sqlite3(database.connector.store.path, table, columns)  # type: ignore[attr-defined]
    return _by_psql(database.connector.store.dsn, f"{database.schema}.{table}", columns)  # type: ignore[attr-defined]


def _by_sqlite3(path: str, table: str, columns: list[tuple[str, Type]]) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            f"SELECT {', '.join(_quoted(name) for name, _ in columns)} FROM {table}"
        ).fetchall()
    kinds = [kind for _, kind in columns]
    return [
        tuple(_of_sqlite(kind, value) for kind, value in zip(kinds, row, strict=True))
        for row in rows
    ]


def _of_sqlite(kind: Type, value: Any) -> Any:
    if value is None:
        return None
    if kind.base == "decimal":
        return round(Decimal(str(value)), kind.parameters[1])
    if kind.base == "boolean":
        return bool(value)
    return _FROM_TEXT[kind.base](value) if kind.base in {"date", "timestamp"} else value


@cache
def _psql() -> str:
    beside = find_server() / "psql"
    program = str(beside) if beside.is_file() else shutil.which("psql")
    assert program is not None, "a server is installed, and psql is not"
    return program


def _by_psql(dsn: str, table: str, columns: list[tuple[str, Type]]) -> list[tuple[Any, ...]]:
    query = f"SELECT {', '.join(_quoted(name) for name, _ in columns)} FROM {table}"
    command = [
        _psql(),
        "-X",
        "--csv",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-P",
        f"null={NULL}",
        "-d",
        dsn,
        "-c",
        query,
    ]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [
        tuple(
            None if text == NULL else _FROM_TEXT.get(kind.base, str)(text)
            for (_, kind), text in zip(columns, row, strict=True)
        )
        for row in csv.reader(io.StringIO(told, newline=""))
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
