"""Window functions that DuckDB computes like Trino."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError

if TYPE_CHECKING:
    from rowmerge_nb.sql.typed.expressions import Windowed

ROW_NUMBER: Final = "row_number"
"""The function that also numbers peers."""
_NUMBERING: Final = frozenset({ROW_NUMBER, "rank", "dense_rank"})


def checked_rank(call: Windowed) -> str:
    """Return the name of a ranking function, or raise UnprintableError."""
    name: str = getattr(getattr(call.function, "detail", None), "name", "")
    if name not in _NUMBERING:
        raise UnprintableError("a function over a window")
    return name
