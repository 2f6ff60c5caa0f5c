"""What the tests of extremes share."""

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
    """Give rows in the order in which `Store.rows` gives them."""
    return sorted(map(tuple, rows), key=repr)
