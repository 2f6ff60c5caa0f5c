"""How many rows a query gives, as far as it is known without running it: tables, VALUES, LIMIT, and what is made of them.

Nobody is asked while a statement is analyzed: a `Size` asks when it is called, which a dry run and EXPLAIN do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rowmerge_nb.words import KnownRows

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.analysis import TableBinding
    from rowmerge_nb.sql.analyzer.values import Part
    from rowmerge_nb.sql.tree import syntax as s

Size: TypeAlias = Callable[[], KnownRows | None]
"""Tells how many rows there are; None where nothing is known of it."""


def unknown() -> KnownRows | None:
    """Tell nothing."""
    return None


def known(rows: int) -> Size:
    """Return the size of so many rows exactly.

    >>> known(2)()
    KnownRows(rows=2, exact=True)
    """
    return lambda: KnownRows(rows)


def written_size(parts: Sequence[Part]) -> Size:
    """Return the size of rows that are written in VALUES."""
    return known(sum(part.count for part in parts))


def scan_rows(table: TableBinding, *, constrained: bool = False) -> KnownRows | None:
    """Return what is known of a table's rows; the connector is asked for a bound where it does not know the number.

    Args:
        table: the table.
        constrained: the connector may leave out rows.
    """
    if table.row_count is not None:
        rows = KnownRows(table.row_count)
        return rows.bound if constrained else rows
    most = table.estimated_rows
    return None if most is None else KnownRows(most).bound


def some_of(size: Size) -> Size:
    """Return the size of what is left where some rows may have been dropped."""
    return lambda: rows.bound if (rows := size()) is not None else None


def table_size(table: TableBinding) -> Size:
    """Return the size of a table."""
    return lambda: scan_rows(table)


def select_size(relation: Size | None, node: s.Select, *, aggregates: bool) -> Size:
    """Return the size of a SELECT without its ORDER BY and LIMIT.

    Args:
        relation: the size of what stands in FROM; None without one.
        node: the SELECT.
        aggregates: it has an aggregate, and no GROUP BY.

    A GROUP BY of several sets gives rows per set, and may give more than it takes.
    """
    drops = node.where is not None or node.distinct or node.having is not None
    one_group = aggregates or node.group_by == () or (node.having is not None and not node.group_by)

    def size() -> KnownRows | None:
        if one_group and node.grouping is None:
            return KnownRows(1).bound if node.having is not None else KnownRows(1)
        if node.grouping is not None:
            return None
        rows = KnownRows(1) if relation is None else relation()
        if rows is None:
            return None
        return rows.bound if drops or node.group_by else rows

    return size


def tail_size(size: Size, node: s.QueryNode) -> Size:
    """Return the size of what OFFSET and LIMIT leave.

    >>> from rowmerge_nb.sql.parser.statements import parse_query
    >>> tail_size(known(5), parse_query("VALUES 1 OFFSET 1 LIMIT 2"))()
    KnownRows(rows=2, exact=True)
    >>> tail_size(unknown, parse_query("VALUES 1 LIMIT 2"))()
    KnownRows(rows=2, exact=False)
    """
    limit, offset = (node.limit if not node.ties else None), node.offset or 0
    if node.ties:
        return some_of(size)
    if limit is None and not offset:
        return size

    def cut() -> KnownRows | None:
        rows = size()
        if rows is None:
            return None if limit is None else KnownRows(limit).bound
        left = max(rows.rows - offset, 0)
        return KnownRows(left if limit is None else min(left, limit), rows.exact or left == 0)

    return cut


def set_size(node: s.SetOperation, left: Size, right: Size) -> Size:
    """Return the size of UNION, INTERSECT and EXCEPT."""

    def size() -> KnownRows | None:
        a, b = left(), right()
        if node.operator == "EXCEPT":
            return a and a.bound
        if node.operator == "INTERSECT":
            return min((rows.bound for rows in (a, b) if rows is not None), key=lambda rows: rows.rows, default=None)
        if a is None or b is None:
            return None
        both = KnownRows(a.rows + b.rows, a.exact and b.exact)
        return both.bound if node.distinct else both

    return size


def join_size(kind: str, left: Size, right: Size) -> Size:
    """Return the size of a join: at most all pairs, and the rows that stay without a partner.

    >>> join_size("CROSS", known(2), known(3))(), join_size("FULL", known(2), known(0))()
    (KnownRows(rows=6, exact=True), KnownRows(rows=2, exact=False))
    """

    def size() -> KnownRows | None:
        a, b = left(), right()
        if a is None or b is None:
            return None
        if kind == "CROSS":
            return KnownRows(a.rows * b.rows, a.exact and b.exact)
        # A row without a partner stands in place of the pairs that it might have had.
        most = {
            "INNER": a.rows * b.rows,
            "LEFT": a.rows * max(b.rows, 1),
            "RIGHT": max(a.rows, 1) * b.rows,
            "FULL": max(a.rows * b.rows, a.rows + b.rows),
        }
        return KnownRows(most[kind]).bound

    return size
