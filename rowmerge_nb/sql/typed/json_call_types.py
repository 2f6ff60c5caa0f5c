"""What the calls of SQL/JSON are beside their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.json_paths import JsonPath


@dataclass(frozen=True)
class Looked:
    """JSON_EXISTS, JSON_VALUE or JSON_QUERY: its arguments are the document, the path's variables, and the defaults that are values.

    Args:
        path: the path.
        on_empty: what an empty result gives: NULL, ERROR, DEFAULT, EMPTY ARRAY, EMPTY OBJECT.
        on_error: what a failure gives, of JSON_EXISTS TRUE, FALSE, UNKNOWN or ERROR.
        wrapper: WITHOUT, CONDITIONAL or UNCONDITIONAL.
        quotes: KEEP or OMIT.
        variables: the names of the path's variables, and whether each is read as JSON.
    """

    path: JsonPath
    on_empty: str
    on_error: str
    wrapper: str = "WITHOUT"
    quotes: str | None = None
    variables: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class Constructed:
    """JSON_OBJECT or JSON_ARRAY: its arguments are the keys of an object, and the values.

    Args:
        keys: how many keys there are.
        read: per value, whether it is JSON already.
        order: the order in which members are written, by their places.
        keeps_null: NULL ON NULL.
        unique: WITH UNIQUE KEYS.
    """

    keys: int
    read: tuple[bool, ...]
    order: tuple[int, ...]
    keeps_null: bool
    unique: bool
