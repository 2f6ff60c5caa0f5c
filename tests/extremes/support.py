"""Helpers of the tests of extremes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def quoted(name: str) -> str:
    """Write a name in Trino's SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """Write a text in Trino's SQL."""
    return "'" + value.replace("'", "''") + "'"


def tuples(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows in the order of `Store.rows`."""
    return sorted(map(tuple, rows), key=repr)
