"""Rewrites that make a plan fast: functions plan → plan, each visible in the drawn plan and
switched off by name.

None changes a statement's meaning. Finding duplicates depends on `co_locate_matches`: it drops
MarkDistinct's exchange only if all matches of a target row meet in one task, whatever Spark's
adaptive execution does.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.plan.older_flow import prune_updatable_scan
from rowmerge_nb.plan.page_execution import form_of, without_mark
from rowmerge_nb.plan.page_query import page_query
from rowmerge_nb.plan.page_rows import page_rows, page_source, reads_table
from rowmerge_nb.plan.plan_nodes import (
    AnsweredQuery,
    AssignUniqueId,
    Exchange,
    Filter,
    Join,
    MarkDistinct,
    MergeWriter,
    Output,
    PageRows,
    PhysicalForm,
    PlanNode,
    Project,
    SemiJoin,
    Source,
    TableScan,
    TableWriter,
)
from rowmerge_nb.plan.source_answer import answered_query
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.typed.expressions import has_subquery, reads, references
from rowmerge_nb.sql.typed.readings import is_deterministic, row_bound
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowmerge_nb.sql.analyzer.analysis import TableBinding
    from rowmerge_nb.sql.typed.expressions import Reads
    from rowmerge_nb.sql.typed.queries import Query


Node = TypeVar("Node", bound=PlanNode)


@dataclass(frozen=True)
class RuleSettings:
    """Sizes that decide the form of a plan.

    Args:
        small_rows: a table of up to this many rows is sent whole to every task, or read in one.
        key_rows: a source of up to this many rows sends its join keys to all tasks, to prune the
            target.
        few_tasks_rows: up to this many rows Spark's operators change in few tasks.
        source_bytes: a source of up to this many bytes is read by every task that reads the target,
            if each can; None for an eighth of the machine's memory, shared by concurrent tasks.
            Larger sources make both sides travel by their keys.
        packed_bytes: a source of up to this many bytes that one task must read is sent to these
            tasks; at most ``source_bytes``.
        one_task_bytes: one task does a MERGE whose tables together have up to this many bytes.
        remote_executors: Spark's executors may run on other machines, so DuckDB does not answer
            queries here. Detected for sessions that the engine has started.
    """

    small_rows: int = 10_000
    key_rows: int = 2_000_000
    off: frozenset[str] = frozenset()
    few_tasks_rows: int = 4_000_000
    source_bytes: int | None = None
    packed_bytes: int = 1 << 27
    one_task_bytes: int = 1 << 27
    remote_executors: bool = False

    def __post_init__(self) -> None:
        for size in ("small_rows", "key_rows", "few_tasks_rows", "packed_bytes", "one_task_bytes"):
            checked(getattr(self, size), size, _is_size, "a whole number from 0")
        usual = "a whole number from 0, or None for the capacity of the machine"
        checked(
            self.remote_executors,
            "remote_executors",
            lambda value: isinstance(value, bool),
            "True or False",
        )
        checked(
            self.source_bytes, "source_bytes", lambda size: size is None or _is_size(size), usual
        )


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def apply_rules(plan: Output, settings: RuleSettings) -> Output:
    for name, rule in RULES.items():
        if name not in settings.off:
            plan = rule(plan, settings)
    return plan


_MOST_BOUND: Final = 10**12
"""A bound that is higher says nothing."""
_FEW_COMBINATIONS: Final = 1_000_000


def estimated_rows(node: PlanNode) -> int | None:
    """Return an upper bound of a node's rows, if known."""
    if isinstance(node, TableScan):
        return node.table.estimated_rows
    if isinstance(node, Source):
        return smaller_bound(most_rows(node.reads, node.tables), node.tree)
    return estimated_rows(node.sources[0]) if node.sources else None


def most_rows(reads: Reads, tables: Sequence[TableBinding]) -> int | None:
    """Return the product of the sizes of all table references, which no combination of joins and
    unions exceeds.

    None if a query makes rows of values, or the product is too large to mean anything.
    """
    sizes = {table.view: table.estimated_rows for table in tables}
    rows = [sizes.get(view) for view in reads.views]
    if reads.generates or None in rows:
        return None
    bound = prod((max(size or 0, 2) for size in rows), start=reads.row_factor)
    return bound if bound <= _MOST_BOUND else None


def smaller_bound(bound: int | None, tree: Query | None) -> int | None:
    of_tree = None if tree is None else row_bound(tree)
    bounds = [rows for rows in (bound, of_tree) if rows is not None and rows <= _MOST_BOUND]
    return min(bounds, default=None)


def is_small(plan: PlanNode, rows: int = RuleSettings.small_rows) -> bool:
    sizes = [estimated_rows(node) for node in chain(plan) if not node.sources]
    return all(size is not None and size <= rows for size in sizes)


def has_few_combinations(plan: PlanNode) -> bool:
    """Return whether no joins of all rows that a plan reads have more than a million rows."""
    sizes = [
        most_rows(leaf.reads, leaf.tables) if isinstance(leaf, Source) else estimated_rows(leaf)
        for leaf in chain(plan)
        if not leaf.sources
    ]
    return None not in sizes and prod(max(size or 0, 1) for size in sizes) <= _FEW_COMBINATIONS


def _measured_rows(node: PlanNode) -> int | None:
    """Return an estimate of a node's rows: the bound or, for large queries, the sum of the tables."""
    rows = estimated_rows(node)
    leaf = chain(node)[-1]
    if rows is None or rows <= RuleSettings.small_rows or not isinstance(leaf, Source):
        return rows
    sizes = {table.view: table.estimated_rows or 0 for table in leaf.tables}
    together = leaf.reads.row_factor + sum(sizes[view] for view in leaf.reads.views)
    return max(RuleSettings.small_rows + 1, min(rows, together))


def joined_rows(join: Join) -> int | None:
    """Return an estimate of a join's rows, assuming few matches per row."""
    sides = [
        _measured_rows(side)
        for side in ([join.left, join.right] if join.type is JoinType.FULL else [join.right])
    ]
    return None if None in sides else sum(rows for rows in sides if rows is not None)


def prune_source_columns(plan: Output, _: RuleSettings) -> Output:
    if any(isinstance(node, TableWriter) for node in chain(plan)):
        # The writer of an INSERT takes all columns.
        return plan
    needed_symbols = read_symbols(plan)

    def prune(node: PlanNode) -> PlanNode:
        if (
            isinstance(node, Project)
            and isinstance(node.source, TableScan)
            and node.source.row_id is None
        ):
            assigned_symbols = {assignment.symbol for assignment in node.assignments}
            return replace(
                node,
                outputs=tuple(
                    o for o in node.outputs if o in assigned_symbols or o in node.source.outputs
                ),
            )
        if not isinstance(node, TableScan) or node.row_id is not None:
            return node
        indexes = [i for i, symbol in enumerate(node.outputs) if symbol.name in needed_symbols]
        indexes = indexes or [0]
        return node.narrowed(indexes)

    return rewritten(plan, prune)


def _first(plan: PlanNode, node_type: type[Node]) -> Node | None:
    return next((node for node in chain(plan) if isinstance(node, node_type)), None)


def prune_target_columns(plan: Output, settings: RuleSettings) -> Output:
    """Read only the target columns that conditions, values and the writer need.

    Very small statements read all, because their old rows are shown.
    """
    writer = _first(plan, MergeWriter)
    below = chain(writer) if writer is not None else []
    scan = next(
        (node for node in below if isinstance(node, TableScan) and node.row_id is not None), None
    )
    rows = _changing_rows(plan)
    if scan is None or (rows is not None and rows <= settings.small_rows):
        return plan
    # What decides a row's old place goes through to the processor, whether an expression reads it
    # or not.
    through = {
        symbol
        for node in below
        if isinstance(node, Project) and node.case is not None
        for symbol in node.outputs
    }
    needed_symbols = read_symbols(plan) | {symbol.name for symbol in through}
    dropped = {
        symbol
        for symbol in scan.outputs
        if symbol != scan.row_id and symbol.name not in needed_symbols
    }

    def prune(node: PlanNode) -> PlanNode:
        if node is scan:
            indexes = [i for i, symbol in enumerate(scan.outputs) if symbol not in dropped]
            return scan.narrowed(indexes)
        if isinstance(node, Filter | AssignUniqueId | Join) or (
            isinstance(node, Project) and node.case is None
        ):
            return replace(
                node, outputs=tuple(symbol for symbol in node.outputs if symbol not in dropped)
            )
        return node

    return rewritten(plan, prune)


def _changing_rows(plan: PlanNode) -> int | None:
    join = join_of(plan)
    return joined_rows(join) if join is not None else estimated_rows(plan)


def prune_target(plan: Output, settings: RuleSettings) -> Output:
    """Drop target rows without a match before they are numbered and joined.

    Only if the source can be read twice and its keys are few, the target is not small, and the join
    is not FULL. If the commit checks what was read, a small target is narrowed too by keys that are
    at hand.
    """

    def prune(node: PlanNode) -> PlanNode:
        if not isinstance(node, Join) or not node.equalities or node.type is JoinType.FULL:
            return node
        rows, target_rows = estimated_rows(node.right), estimated_rows(node.left)
        if rows is None or rows > settings.key_rows or not _repeatable(node.right):
            return node
        is_small = node.replicate_target or (
            target_rows is not None and target_rows <= max(rows, settings.small_rows)
        )
        if is_small and not _narrows_reads(node):
            return node

        def insert(inner: PlanNode) -> PlanNode:
            if not isinstance(inner, AssignUniqueId):
                return inner
            scan = inner.source
            semi = SemiJoin(
                id=f"{scan.id}s",
                outputs=scan.outputs,
                source=scan,
                filtering_source=node.right,
                keys=node.equalities,
                key_columns=node.key_columns if isinstance(node.right, TableScan) else (),
            )
            return replace(inner, source=semi)

        return replace(node, left=rewritten(node.left, insert))

    return rewritten(plan, prune)


def _narrows_reads(join: Join) -> bool:
    target = next(node for node in chain(join.left) if isinstance(node, TableScan))
    at_hand = isinstance(join.right, TableScan) and join.right.table.has_rows_at_hand
    return at_hand and bool(join.key_columns) and target.table.checks_reads


def replicate_small_target(plan: Output, settings: RuleSettings) -> Output:
    """Send a small target to every task, so that the join needs no exchange.

    Spark cannot do that in a FULL join by equality.
    """

    def choose(node: PlanNode) -> PlanNode:
        if isinstance(node, Join) and not (node.type is JoinType.FULL and node.equalities):
            rows = estimated_rows(node.left)
            return replace(node, replicate_target=rows is not None and rows <= settings.small_rows)
        return node

    return rewritten(plan, choose)


def co_locate_matches(plan: Output, settings: RuleSettings) -> Output:
    """Send all matches of a target row to one task by the join itself, and drop MarkDistinct's
    exchange.

    A small source is read as one partition while every task has the whole target. Another source is
    repartitioned by its keys into a fixed number of partitions, which adaptive execution neither
    splits nor reads locally.

    Under a FULL join a small source needs no replicated target. By equality, rows of both sides go
    to the task of their keys, which adaptive execution does not split. Without an equality, the
    source is sent to the target's tasks.
    """

    def choose(node: PlanNode) -> PlanNode:
        if isinstance(node, Join):
            rows = estimated_rows(node.right)
            small = rows is not None and rows <= settings.small_rows
            full = node.type is JoinType.FULL
            if small and (node.replicate_target or (full and node.equalities)):
                return replace(node, distribution="SINGLE")
            if small and full:
                return replace(node, distribution="REPLICATED")
            return replace(node, distribution="PARTITIONED") if node.equalities else node
        if isinstance(node, MarkDistinct):
            # Spark plans a subquery of a condition or value as a join of its own, which may send
            # the rows anywhere.
            join = join_of(node)
            assert join is not None
            scattered = join.distribution == "AUTOMATIC" or any(
                has_subquery(part) for inner in chain(node) for part in inner.expressions
            )
            return replace(node, exchange=scattered)
        return node

    return rewritten(plan, choose)


def change_in_task(plan: Output, settings: RuleSettings) -> Output:
    """Execute everything from the target's scan to the processor in tasks on pages, if pages can
    evaluate all expressions.

    UPDATE and DELETE of any size, and MERGE by equal columns. The tasks are those that read the
    target, unless they cannot have the source.
    """
    writer = _first(plan, MergeWriter)
    if writer is None:
        return plan
    join = join_of(writer)
    target, source = join.sources if join is not None else (writer, None)
    rows = (estimated_rows(target), estimated_rows(source) if source is not None else None)
    form = form_of(
        chain(writer.source),
        join,
        rows,
        settings,
        lambda query: smaller_bound(most_rows(query.reads, writer.tables), query.query),
    )

    def choose(node: PlanNode) -> PlanNode:
        if isinstance(node, Join) and form.partitioned:
            return replace(node, distribution="PARTITIONED", replicate_target=False)
        if isinstance(node, Join) and (form.many_tasks or form.paged):
            return replace(node, distribution="REPLICATED", replicate_target=False)
        if isinstance(node, MarkDistinct) and form.in_task:
            # A task has all matches of a target row, whatever Spark would make of a subquery.
            return replace(node, exchange=False)
        return replace(node, form=form) if isinstance(node, MergeWriter) else node

    return rewritten(plan, choose)


def write_where_rows_are(plan: Output, settings: RuleSettings) -> Output:
    """Drop the writers' exchange if the connector allows it and no partitions are to be kept
    together.

    Sending every row costs more than the few files that it saves. It stays if Spark's operators
    have many tasks, each with files of its own, and in small statements, where it shows the
    placement of rows.
    """
    rows = _changing_rows(plan)
    small = rows is not None and rows <= settings.small_rows
    few = rows is not None and rows <= settings.few_tasks_rows

    def stay(node: PlanNode) -> PlanNode:
        if (
            not isinstance(node, MergeWriter)
            or not isinstance(node.source, Exchange)
            or not _is_dispensable(node.source)
        ):
            return node
        many, in_task = (
            (node.form.many_tasks, node.form.in_task) if node.form is not None else (False, False)
        )
        return (
            replace(node, source=node.source.source)
            if many or (not small and (few or in_task))
            else node
        )

    return rewritten(plan, stay)


def _is_dispensable(exchange: Exchange) -> bool:
    layouts = [
        layout for layout in (exchange.insert_layout, exchange.update_layout) if layout is not None
    ]
    return all(
        layout.multiple_writers_per_partition_supported and not layout.partition_columns
        for layout in layouts
    )


def fuse_processor_and_writer(plan: Output, _: RuleSettings) -> Output:
    def fuse(node: PlanNode) -> PlanNode:
        return (
            replace(node, fused=not isinstance(node.source, Exchange))
            if isinstance(node, MergeWriter)
            else node
        )

    return rewritten(plan, fuse)


def insert_few_rows_at_once(plan: Output, settings: RuleSettings) -> Output:
    """Let one writer take all rows of a small INSERT."""

    def gather(node: PlanNode) -> PlanNode:
        if isinstance(node, TableWriter) and isinstance(node.source, Exchange):
            rows = estimated_rows(node.source)
            if rows is not None and rows <= settings.small_rows:
                return replace(node, source=node.source.source)
        return node

    return rewritten(plan, gather)


def answer_source(plan: Output, settings: RuleSettings) -> Output:
    """Let DuckDB answer the source query of a MERGE or INSERT before the tasks begin.

    Queries of only conditions and values are left to the tasks. So is an INSERT that Spark stores
    row by row.
    """
    writer = _first(plan, MergeWriter) or _first(plan, TableWriter)
    inserts = isinstance(writer, TableWriter)
    below = writer if inserts or writer is None else join_of(writer)
    source = None if below is None else chain(below)[-1]
    if not isinstance(source, Source) or not reads_table(source) or settings.remote_executors:
        return plan
    if _rows_in_tasks(source) is not None or (inserts and "insert_on_pages" in settings.off):
        return plan
    try:
        answer = answered_query(source)
        if isinstance(writer, TableWriter):
            page_rows([*chain(writer)[1:-1], answer])
    except UnprintableError:
        return plan
    return rewritten(plan, lambda node: answer if node is source else node)


def _rows_in_tasks(source: Source) -> PageRows | None:
    try:
        return page_source(source)
    except UnprintableError:
        return None


def insert_on_pages(plan: Output, _: RuleSettings) -> Output:
    """Compute the rows of an INSERT in the tasks that read its table, if possible.

    Passing rows through Java costs more than all the rest.
    """
    writer = _first(plan, TableWriter)
    source = chain(writer)[-1] if writer is not None else None
    if writer is None or not (
        isinstance(source, AnsweredQuery) or (isinstance(source, Source) and reads_table(source))
    ):
        return plan
    try:
        pages, form = page_rows(chain(writer)[1:]), PhysicalForm()
    except UnprintableError as error:
        pages, form = None, PhysicalForm(f"pages do not support {error}")

    def choose(node: PlanNode) -> PlanNode:
        if isinstance(node, Source | AnsweredQuery):
            return replace(node, pages=pages)
        return replace(node, form=form) if isinstance(node, TableWriter) else node

    return rewritten(plan, choose)


def source_on_pages(plan: Output, _: RuleSettings) -> Output:
    """Compute the query of a MERGE in the tasks that join it, if they have the whole source and
    pages can evaluate it.
    """
    writer = _first(plan, MergeWriter)
    join = join_of(writer) if writer is not None else None
    if (
        writer is None
        or join is None
        or writer.form is None
        or not writer.form.in_task
        or writer.form.partitioned
    ):
        return plan
    source = without_mark(join.right)
    if not isinstance(source, Source) or not reads_table(source):
        return plan
    pages = _rows_in_tasks(source)
    if pages is None or not pages.scan.table.is_read_by_tasks():
        return plan
    return rewritten(plan, lambda node: replace(node, pages=pages) if node is source else node)


def query_on_pages(plan: Output, settings: RuleSettings) -> Output:
    """Let DuckDB answer a query from pages, if it can."""
    if not isinstance(plan.source, Source):
        return plan
    try:
        if settings.remote_executors:
            return replace(
                plan,
                form=PhysicalForm(
                    "its executors may run on other machines and read more at a time"
                    " than this machine"
                ),
            )
        pages = page_query(plan.source)
        source = replace(plan.source, by_spark=False, planned=pages.root)
        return replace(plan, form=PhysicalForm(), pages=pages, source=source)
    except UnprintableError as error:
        return replace(plan, form=PhysicalForm(f"pages do not support {error}"))


ANSWER_SOURCE: Final = "answer_source"
"""The name of the rule that has DuckDB answer source queries."""

RULES: Final[Mapping[str, Callable[[Output, RuleSettings], Output]]] = {
    ANSWER_SOURCE: answer_source,
    "prune_source_columns": prune_source_columns,
    "prune_target_columns": prune_target_columns,
    "prune_updatable_scan": prune_updatable_scan,
    "replicate_small_target": replicate_small_target,
    "prune_target": prune_target,
    "co_locate_matches": co_locate_matches,
    "change_in_task": change_in_task,
    "write_where_rows_are": write_where_rows_are,
    "fuse_processor_and_writer": fuse_processor_and_writer,
    "insert_few_rows_at_once": insert_few_rows_at_once,
    "insert_on_pages": insert_on_pages,
    "source_on_pages": source_on_pages,
    "query_on_pages": query_on_pages,
}
"""All rules by name, in the order in which they are applied."""


def rewritten(node: Node, change: Callable[[PlanNode], PlanNode]) -> Node:
    children: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, PlanNode) and field.name in {"source", "left", "right"}:
            changed = rewritten(value, change)
            if changed is not value:
                children[field.name] = changed
    changed_node: Any = replace(node, **children) if children else node
    return cast("Node", change(changed_node))


def chain(node: PlanNode) -> list[PlanNode]:
    """Return a node and all nodes below it, depth first."""
    return [node, *(inner for source in node.sources for inner in chain(source))]


def join_of(node: PlanNode) -> Join | None:
    return next((inner for inner in chain(node) if isinstance(inner, Join)), None)


def _repeatable(node: PlanNode) -> bool:
    if isinstance(node, TableScan):
        return node.table.deterministic
    return (
        isinstance(node, Source)
        and is_deterministic(node.tree)
        and all(table.deterministic for table in node.tables)
    )


def read_symbols(plan: PlanNode) -> frozenset[str]:
    return frozenset(
        symbol for node in chain(plan) for part in node.expressions for symbol in references(part)
    )


def read_views(plan: PlanNode) -> frozenset[str]:
    nodes = chain(plan)
    # The query of a MERGE is asked again by Spark where a statement is explained.
    only_inserted = any(isinstance(node, TableWriter) for node in nodes)
    read = [
        node.reads
        for node in nodes
        if isinstance(node, Source) and not (only_inserted and node.pages is not None)
    ]
    read += [reads(part) for node in nodes for part in node.expressions]
    return frozenset(view for one in read for view in one.views)
