"""The visible queries of WITH."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context


class NamedQueries(Mapping[str, "tuple[s.NamedQuery, NamedQueries]"]):
    """Queries of WITH by name, each with the visible ones before it.

    All views of one WITH share ``entries`` and differ in ``count``, so each query costs time and
    space once.
    """

    def __init__(
        self,
        around: NamedQueries | None = None,
        entries: Mapping[str, tuple[int, s.NamedQuery]] | None = None,
        count: int = 0,
    ) -> None:
        self._around = around
        self._entries = entries or {}
        self._count = count

    def __getitem__(self, name: str) -> tuple[s.NamedQuery, NamedQueries]:
        position, node = self._entries.get(name, (self._count, None))
        if node is not None and position < self._count:
            return node, NamedQueries(self._around, self._entries, position)
        if self._around is None:
            raise KeyError(name)
        return self._around[name]

    def __iter__(self) -> Iterator[str]:
        own = [name for name, (position, _) in self._entries.items() if position < self._count]
        yield from dict.fromkeys([*own, *(self._around or ())])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def check_columns(context: Context, entry: s.NamedQuery, count: int) -> None:
    if entry.columns and len(entry.columns) != count:
        context.error(
            "MISMATCHED_COLUMN_ALIASES",
            f"Column alias list has {len(entry.columns)} entries but relation has {count} columns",
            entry.columns[0].span,
        )
    names = set[str]()
    for column in entry.columns:
        if column.value in names:
            context.error(
                "DUPLICATE_COLUMN_NAME",
                f"Column name '{column.text}' specified more than once",
                column.span,
            )
        names.add(column.value)
