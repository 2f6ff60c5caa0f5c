"""Which plans are executed on pages, in which tasks, and why others are not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.plan.extended import returned_on_pages
from rowmerge_nb.plan.join_keys import NO_KEYS, page_keys
from rowmerge_nb.plan.nodes import CheckConstraints, Filter, Join, PhysicalForm, PlanNode, Project, Source, TableScan
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.duckdb.text import UnprintableError
from rowmerge_nb.sql.typed.domains import conjuncts
from rowmerge_nb.sql.typed.expressions import Apply, Subquery, Typed, walk
from rowmerge_nb.sql.typed.queries import subqueries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.plan.rules import RuleSettings
    from rowmerge_nb.spi.types import Type


MOST_PAIRS = 1_000_000
"""Without equal columns in ON every row meets every other; so many pairs are made at most."""
TEXT_BYTES = 32
"""What a value of no fixed width is taken to need."""


def form_of(
    below: Sequence[PlanNode],
    join: Join | None,
    rows: tuple[int | None, int | None],
    settings: RuleSettings,
    answered: Callable[[Subquery], int | None],
) -> PhysicalForm:
    """Choose what executes a plan from the scan of the target to the processor.

    Args:
        below: the nodes below the writer.
        join: the join among them; None of an UPDATE or DELETE.
        rows: how many rows the target and the source have, where that is known; an UPDATE and a DELETE have no source.
        settings: up to where a task takes the whole of a table.
        answered: gives how many rows a subquery has at most, where that is known.
    """
    for tree, is_condition in _computed_on_pages(below):
        try:
            _check_printable(tree, condition=is_condition)
            _check_answers(tree, settings.key_rows, answered)
        except UnprintableError as error:
            return PhysicalForm(f"pages cannot be asked for {error}")
    target, source = rows
    if join is None:
        return PhysicalForm(many_tasks=target is None or target > settings.small_rows)
    if target is not None and source is not None and max(target, source) <= settings.small_rows:
        if not page_keys(join) and target * source > MOST_PAIRS:
            return PhysicalForm(NO_KEYS)
        return PhysicalForm()
    if target is not None and source is not None and page_keys(join):
        both = sum(rows * _width_of(side) for rows, side in zip((target, source), join.sources, strict=True))
        if both <= settings.one_task_bytes:
            return PhysicalForm(paged=True)
    return _in_many_tasks(join, target, source, settings)


def _in_many_tasks(join: Join, target: int | None, source: int | None, settings: RuleSettings) -> PhysicalForm:
    """Give every task all of the source, or where that is too much the rows of some keys of both sides."""
    if not page_keys(join):
        return PhysicalForm(NO_KEYS)
    if source is None:
        unknown = "nobody knows how large the source is"
        # Of few rows Spark makes few files, since it sees how few they are before it stores them.
        few = target is not None and target <= settings.small_rows
        return PhysicalForm(unknown) if few else PhysicalForm(partitioned=unknown)
    read = without_mark(join.right)
    if isinstance(read, Source) and any(query.kind != "scalar" for query in subqueries(read.tree)):
        # What Spark makes of some of them it does not know again when the stage of unmatched rows asks for the source's pieces.
        return PhysicalForm(partitioned="the source is a query with IN or EXISTS, which is made once only so")
    size, most = source * _width_of(join.right), settings.source_bytes
    packed = settings.packed_bytes if most is None else min(settings.packed_bytes, most)
    if size <= packed:
        return PhysicalForm(many_tasks=True)
    if most is None or not isinstance(read, TableScan) or not read.table.is_read_by_tasks():
        said = "not sent to every task", packed, "packed_bytes" if packed == settings.packed_bytes else "source_bytes"
    elif size > most:
        said = "not read by every task", most, "source_bytes"
    else:
        return PhysicalForm(many_tasks=True)
    how, bound, name = said
    return PhysicalForm(
        partitioned=f"the source, about {size >> 20} MiB, is {how}: that is done up to {bound >> 20} MiB ({name})"
    )


def without_mark(node: PlanNode) -> PlanNode:
    """Give the rows of a source without the mark that there is one, which a task knows by itself."""
    while isinstance(node, Project):
        node = node.source
    return node


def _width_of(node: PlanNode) -> int:
    return sum(_width(symbol.type) for symbol in node.outputs)


def _width(kind: Type) -> int:
    """Guess how many bytes a value takes in a page."""
    try:
        return max(int(kind.arrow.bit_width) // 8, 1)
    except ValueError:
        return TEXT_BYTES


def _check_printable(tree: Typed, *, condition: bool) -> None:
    """See that an expression can be computed on pages.

    Raises:
        UnprintableError: it cannot.
    """
    PagePrinter().text(tree, condition=condition)


def _check_answers(tree: Typed, most: int, answered: Callable[[Subquery], int | None]) -> None:
    """See that the answers of subqueries can be sent to every task.

    Raises:
        UnprintableError: they cannot.
    """
    for query in (part for part in walk(tree) if isinstance(part, Subquery)):
        rows = answered(query) if query.kind == "in" else 1
        if rows is None or rows > most:
            size = "of a size that nobody knows" if rows is None else f"of up to {rows:,} rows"
            raise UnprintableError(f"a list {size}: a subquery's is sent to every task up to {most:,} rows (key_rows)")


def _computed_on_pages(nodes: Sequence[PlanNode]) -> Iterator[tuple[Typed, bool]]:
    """Give the expressions that pages are asked for, and whether each is a condition that keeps rows."""
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
        yield from ((tree, False) for tree in (*(assignment.value for assignment in returned.known), *returned.values))


def without_refusal(value: Typed) -> tuple[Typed, tuple[str, str] | None]:
    """Take what refuses NULL off a value of a NOT NULL column: give the value, and the refusal's code and message."""
    if isinstance(value, Apply) and value.name == "coalesce":
        inner, last = value.arguments[0], value.arguments[-1]
        if isinstance(last, Apply) and last.name == "fail":
            return replace(inner, origin=value.origin), last.detail
    return value, None


def rest_of_on(join: Join) -> Typed | None:
    """Give what ON asks for beside equal values of the key columns; None if that is all."""
    keys = [key.term for key in page_keys(join)]
    terms = [term for term in conjuncts(join.predicate) if not any(term is key for key in keys)]
    if not terms:
        return None
    whole = terms[0] if len(terms) == 1 else Apply(join.predicate.type, "and", tuple(terms))
    return replace(whole, origin=join.predicate.origin)
