"""Which plans run on pages, in how many tasks, and why others do not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.plan.extended import returned_on_pages
from rowmerge_nb.plan.join_keys import NO_KEYS, SEVERAL_KEYS, key_sets
from rowmerge_nb.plan.keyed_subqueries import keyed
from rowmerge_nb.plan.plan_nodes import (
    AssignUniqueId,
    CheckConstraints,
    Filter,
    Join,
    PhysicalForm,
    PlanNode,
    Project,
    SemiJoin,
    Source,
    TableScan,
)
from rowmerge_nb.plan.range_keys import RANGE_TOO_LARGE, is_indexed
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.typed.domains import conjunction, conjuncts
from rowmerge_nb.sql.typed.expressions import Apply, Subquery, Typed, walk
from rowmerge_nb.sql.typed.queries import subqueries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.plan.rules import RuleSettings
    from rowmerge_nb.spi.types import Type


MOST_PAIRS = 1_000_000
"""Without equal columns in ON, all pairs of rows are compared: on pages, up to this many."""
TEXT_BYTES = 32
"""The size that is assumed for a value without a fixed width."""
TARGET_ROWS = 4
"""With at most this many target rows per source row, sending both sides by their keys is faster
than reading and indexing the source in two tasks.
"""
FILE_BYTES = 1 << 17
"""Opening a file takes as long as reading this many bytes of pages: half a millisecond."""


def form_of(
    below: Sequence[PlanNode],
    join: Join | None,
    rows: tuple[int | None, int | None],
    settings: RuleSettings,
    bound: Callable[[Subquery], int | None],
) -> PhysicalForm:
    """Choose what executes a plan from the scan of the target to the processor.

    Args:
        below: the nodes from the processor down.
        rows: the estimated numbers of rows of the target and of the source.
        bound: the maximum number of rows of a subquery; None if it has no bound.
    """
    for tree, is_condition in _computed_on_pages(below):
        try:
            PagePrinter().text(tree, condition=is_condition)
            _check_sizes(tree, settings.key_rows, bound)
        except UnprintableError as error:
            return PhysicalForm(f"pages do not support {error}")
    target, source = rows
    if join is None:
        return PhysicalForm(many_tasks=target is None or target > settings.small_rows)
    if target is not None and source is not None and max(target, source) <= settings.small_rows:
        if not is_indexed(join) and target * source > MOST_PAIRS:
            return PhysicalForm(NO_KEYS)
        return PhysicalForm()
    if target is not None and source is not None and is_indexed(join):
        both = sum(
            _size_of(side, rows) for side, rows in zip(join.sources, (target, source), strict=True)
        )
        if both <= settings.one_task_bytes:
            return PhysicalForm(paged=True)
    return _in_many_tasks(join, target, source, settings)


def _in_many_tasks(
    join: Join, target: int | None, source: int | None, settings: RuleSettings
) -> PhysicalForm:
    if not is_indexed(join):
        return PhysicalForm(NO_KEYS)
    sets = key_sets(join)
    form = _by_source(join, target, source, settings)
    if form.partitioned and not sets:
        return PhysicalForm(RANGE_TOO_LARGE)
    if form.partitioned and len(sets) > 1:
        return PhysicalForm(SEVERAL_KEYS)
    if form.many_tasks and len(sets) == 1 and target is not None and source is not None:
        return _partitioned_if_cheaper(join, target, source, settings) or form
    return form


def _partitioned_if_cheaper(
    join: Join, target: int, source: int, settings: RuleSettings
) -> PhysicalForm | None:
    if target > TARGET_ROWS * source or _size_of(join.right, source) <= settings.packed_bytes:
        return None
    return PhysicalForm(
        partitioned=(
            f"the target has {target:,} rows, not over {TARGET_ROWS} times the"
            f" {source:,} of the source, and a task is faster with the rows of its keys than"
            " with the whole source"
        )
    )


def _by_source(
    join: Join, target: int | None, source: int | None, settings: RuleSettings
) -> PhysicalForm:
    if source is None:
        unknown = "the size of the source is unknown"
        # For few rows, Spark writes fewer files, since it counts them first.
        few = target is not None and target <= settings.small_rows
        return PhysicalForm(unknown) if few else PhysicalForm(partitioned=unknown)
    read = without_mark(join.right)
    if isinstance(read, Source) and any(query.kind != "scalar" for query in subqueries(read.tree)):
        # The stage of unmatched rows asks for the source a second time.
        return PhysicalForm(
            partitioned=(
                "the source is a query with IN or EXISTS, which Spark would otherwise compute again"
            )
        )
    size, most = _size_of(join.right, source), settings.source_bytes
    packed = settings.packed_bytes if most is None else min(settings.packed_bytes, most)
    if size <= packed:
        return PhysicalForm(many_tasks=True)
    if most is None or not isinstance(read, TableScan) or not read.table.is_read_by_tasks():
        how, limit = "sent to", packed
        option = "packed_bytes" if packed == settings.packed_bytes else "source_bytes"
    elif size > most:
        how, limit, option = "read by", most, "source_bytes"
    else:
        return PhysicalForm(many_tasks=True)
    return PhysicalForm(
        partitioned=(
            f"the source, about {size >> 20} MiB, is not {how} every task: the limit"
            f" is {limit >> 20} MiB ({option})"
        )
    )


def without_mark(node: PlanNode) -> PlanNode:
    """Return what is below projections, such as the one that marks the rows of a source."""
    while isinstance(node, Project):
        node = node.source
    return node


def _size_of(side: PlanNode, rows: int) -> int:
    widths = [_width(symbol.type) for symbol in side.outputs]
    size = rows * sum(width or TEXT_BYTES for width in widths)
    scan = side
    while isinstance(scan, Project | AssignUniqueId | SemiJoin):
        scan = scan.sources[0]
    if not isinstance(scan, TableScan):
        return size
    if None in widths:
        # Values without a fixed width may be larger than assumed.
        size = max(size, scan.table.data_size or 0)
    return size + FILE_BYTES * (scan.table.file_count or 0)


def _width(sql_type: Type) -> int | None:
    """Return the bytes of a value in a page; None if they depend on the value."""
    try:
        return max(int(sql_type.arrow.bit_width) // 8, 1)
    except ValueError:
        return None


def _check_sizes(tree: Typed, most: int, bound: Callable[[Subquery], int | None]) -> None:
    for query in (part for part in walk(tree) if isinstance(part, Subquery)):
        rows: int | None = 1
        if query.outer:
            rows = bound(keyed(query).rows)
        elif query.kind == "in":
            rows = bound(query)
        if rows is None or rows > most:
            size = "of unknown size" if rows is None else f"of up to {rows:,} rows"
            raise UnprintableError(
                f"a list {size}: the result of a subquery is sent to every task up to"
                f" {most:,} rows (key_rows)"
            )


def _computed_on_pages(nodes: Sequence[PlanNode]) -> Iterator[tuple[Typed, bool]]:
    for node in nodes:
        if isinstance(node, Filter):
            yield node.predicate, True
        elif isinstance(node, CheckConstraints):
            yield from ((without_refusal(check.value)[0], False) for check in node.checks)
        elif isinstance(node, Join):
            rest = rest_of_on(node)
            if rest is not None:
                yield rest, True
        elif isinstance(node, Project) and node.case is not None:
            for branch in node.case.branches:
                if branch.test is not None:
                    yield branch.test, True
                yield from ((without_refusal(value)[0], False) for value in branch.expressions)
    returned = returned_on_pages(nodes)
    if returned is not None:
        yield from ((assignment.value, False) for assignment in returned.assignments)
        yield from ((value, False) for value in returned.values)


def without_refusal(value: Typed) -> tuple[Typed, Refusal | None]:
    """Split a value of a NOT NULL column into the value and its refusal."""
    if isinstance(value, Apply) and value.name == "coalesce":
        inner, last = value.arguments[0], value.arguments[-1]
        if isinstance(last, Apply) and last.name == "fail":
            return replace(inner, origin=value.origin), last.detail
    return value, None


def rest_of_on(join: Join) -> Typed | None:
    """Return what is to check on rows with equal keys; None if the keys are all of ON."""
    sets = key_sets(join)
    if len(sets) > 1:
        return join.predicate
    keys = [key.term for keys in sets for key in keys]
    terms = [term for term in conjuncts(join.predicate) if not any(term is key for key in keys)]
    if not terms:
        return None
    return replace(conjunction(terms), origin=join.predicate.origin)
