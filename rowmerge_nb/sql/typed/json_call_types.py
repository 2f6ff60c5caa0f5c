"""Details of the calls of SQL/JSON beside their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.json_paths import JsonPath


@dataclass(frozen=True)
class Looked:
    """JSON_EXISTS, JSON_VALUE or JSON_QUERY, with the names of the path's variables, and whether
    each is JSON.
    """

    path: JsonPath
    on_empty: str
    on_error: str
    wrapper: str = "WITHOUT"
    quotes: str | None = None
    variables: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class Constructed:
    """JSON_OBJECT or JSON_ARRAY over keys and values.

    Args:
        read: per value, whether it is JSON already.
        order: the indexes of members in the order of writing.
    """

    keys: int
    read: tuple[bool, ...]
    order: tuple[int, ...]
    keeps_null: bool
    unique: bool
