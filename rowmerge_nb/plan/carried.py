"""Columns that a statement only carries along: no expression reads them, and the writer stores them
unchanged.

A store may hold a value that the column's type does not have. It fails only the statements that
read the column.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan.plan_nodes import Output, PlanNode, Project, Source, TableScan
from rowmerge_nb.plan.rules import chain, rewritten
from rowmerge_nb.sql.typed.expressions import Column, references

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rowmerge_nb.sql.typed.expressions import Typed

_READ: Final = re.compile(r"c(\d+) AS `(\w+)`")
_NAME: Final = re.compile(r"`(\w+)`")


def mark_carried(plan: Output, read: Collection[str] = ()) -> Output:
    """Return a plan whose scans name the columns that no expression reads; ``read`` are columns of
    the target that count as read.
    """
    nodes = chain(plan)
    target = next(
        (node for node in nodes if isinstance(node, TableScan) and node.row_id is not None), None
    )
    own = (
        {}
        if target is None
        else {c.name: s.name for c, s in zip(target.data_columns, target.data_outputs, strict=True)}
    )
    symbols = {
        symbol
        for node in nodes
        for tree in _trees(node, target, own)
        for symbol in references(tree)
    }

    def mark(node: PlanNode) -> PlanNode:
        if not isinstance(node, TableScan):
            return node
        pairs = zip(node.data_columns, node.data_outputs, strict=True)
        carried_columns = {column.name for column, symbol in pairs if symbol.name not in symbols}
        return replace(
            node,
            carried_columns=frozenset(
                carried_columns - set(read) if node.row_id is not None else carried_columns
            ),
        )

    return rewritten(plan, mark)


def _trees(node: PlanNode, target: TableScan | None, own: dict[str, str]) -> Iterator[Typed]:
    """Yield the expressions of a node, without values of a CASE that leave a column unchanged."""
    if not isinstance(node, Project) or node.case is None or target is None:
        yield from node.expressions
        return
    yield from (assignment.value for assignment in node.assignments)
    names = [column.name for column in target.table.columns]
    for branch in node.case.branches:
        if branch.predicate is not None:
            yield branch.predicate
        for name, tree in zip(names, branch.expressions, strict=False):
            if (
                name in branch.assigned
                or not isinstance(tree, Column)
                or tree.symbol != own.get(name)
            ):
                yield tree


def view_texts(plan: PlanNode, texts: Sequence[str]) -> tuple[str, ...]:
    return (
        *texts,
        *(
            f"`{symbol.name}`"
            for node in chain(plan)
            if isinstance(node, Source)
            for symbol in node.outputs
        ),
    )


def unread_columns(texts: Iterable[str], view: str, columns: Sequence[str]) -> frozenset[str]:
    """Return the columns of a view that Spark's texts mention only to name them.

    Args:
        view: the view; its columns are ``c0``, ``c1``, ...
    """
    mentioned: set[str] = set()
    symbols_by_index: dict[int, set[str]] = {}
    pattern = re.compile(r"\(SELECT ((?:c\d+ AS `\w+`(?:, )?)+) FROM `(\w+)`\) AS `\$?\w+`")
    for text in texts:
        for match in pattern.finditer(text):
            if match[2] == view:
                for index, symbol in _READ.findall(match[1]):
                    symbols_by_index.setdefault(int(index), set()).add(symbol)
        rest = pattern.sub(" ", text)
        if f"`{view}`" in rest:
            # The view is read in a way that is not known here.
            return frozenset()
        mentioned.update(_NAME.findall(rest))
    return frozenset(
        name
        for index, name in enumerate(columns)
        if index in symbols_by_index and not symbols_by_index[index] & mentioned
    )
