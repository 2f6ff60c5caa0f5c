"""Functions over windows that DuckDB computes as Trino does: the number of a row and its rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.duckdb.aggregates import check_grouped
from rowmerge_nb.sql.duckdb.text import UnprintableError

if TYPE_CHECKING:
    from rowmerge_nb.sql.typed.expressions import Windowed

_RANKS: Final = frozenset({"rank", "dense_rank"})


def checked_rank(call: Windowed) -> str:
    """Return the name of a function that numbers the rows of a window.

    Rows that are equal by the order share a rank. So a rank asks for an order by values that are equal for both engines.

    Raises:
        UnprintableError: it is another function, or the engines may not agree on which rows are equal.
    """
    name = getattr(getattr(call.function, "detail", None), "name", "")
    if name in _RANKS:
        for key in call.order_by:
            check_grouped(key.value.type)
    elif name != "row_number":
        raise UnprintableError("a function over a window")
    return name
