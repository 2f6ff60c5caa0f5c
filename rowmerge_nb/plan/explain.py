"""EXPLAIN: the nodes of a statement and of the queries that it reads.

A distributed plan has exchanges where Trino has them. Lines that begin with "Here" name what this
engine does otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan.plan_nodes import (
    AnsweredQuery,
    AssignUniqueId,
    Exchange,
    Join,
    MarkDistinct,
    MergeWriter,
    Output,
    Source,
    TableDelete,
    TableFinish,
    TableScan,
    TableWriter,
)
from rowmerge_nb.plan.query_nodes import ValuesNode
from rowmerge_nb.plan.query_planner import plan_query_tree
from rowmerge_nb.plan.records import (
    descriptor_of,
    executed_by,
    query_of,
    record_of,
    source_executed_by,
)
from rowmerge_nb.plan.steps import (
    SINGLE,
    SOURCE,
    Partitioning,
    Spread,
    Step,
    explained,
    local_exchange,
    remote_exchange,
    single,
)
from rowmerge_nb.spi.page import OPERATION, ROW_ID
from rowmerge_nb.sql.typed.expressions import Column
from rowmerge_nb.sql.typed.queries import columns_of
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from rowmerge_nb.base.choices import ExplainFormat
    from rowmerge_nb.plan.plan_nodes import PlanNode
    from rowmerge_nb.spi.layout import ConnectorTableLayout

ROUND_ROBIN: Final = "ROUND_ROBIN"


def explained_plan(plan: PlanNode, form: ExplainFormat, *, distributed: bool) -> str:
    return explained(_Steps(exchanges=distributed).spread(plan).step, form, distributed=distributed)


class _Steps:
    def __init__(self, *, exchanges: bool) -> None:
        self.exchanges = exchanges

    def spread(self, node: PlanNode) -> Spread:
        if isinstance(node, Output) and isinstance(node.source, Source):
            return self._query(node, node.source)
        if isinstance(node, Source | AnsweredQuery):
            return self._source(node)
        if isinstance(node, TableDelete):
            return Spread(self._step(node), SINGLE)
        if not node.sources:
            return Spread(self._step(node), SOURCE)
        if (
            isinstance(node, MergeWriter | TableWriter)
            and isinstance(node.source, Exchange)
            and not self.exchanges
        ):
            scheme, keys = self._placing(node.source, node)
            descriptor = (
                ("partitioning", scheme),
                *((("arguments", f"[{', '.join(keys)}]"),) if keys else ()),
            )
            exchange = self._step(node.source, self.spread(node.source.source).step)
            return Spread(self._step(node, replace(exchange, descriptor=descriptor)), SINGLE)
        if not self.exchanges:
            return Spread(
                self._step(node, *(self.spread(source).step for source in node.sources)), SINGLE
            )
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, MergeWriter | TableWriter):
            return self._writer(node)
        below = self.spread(node.sources[0])
        if isinstance(node, MarkDistinct):
            below = self._by(below, [key.name for key in node.keys])
        if isinstance(node, TableFinish):
            below = single(below)
            below = below.under(local_exchange(below.step, SINGLE))
        if isinstance(node, Output):
            below = single(below)
        return below.under(
            self._step(node, below.step, *(self.spread(source).step for source in node.sources[1:]))
        )

    def _step(self, node: PlanNode, *sources: Step) -> Step:
        record = record_of(node)
        details = record.details
        if isinstance(node, TableScan):
            handles = zip(node.outputs, node.columns, strict=True)
            details = (
                *details,
                *(f"{symbol.name} := {handle.name}:{handle.type}" for symbol, handle in handles),
            )
        return Step(record.name, descriptor_of(node), record.layout, details, sources)

    def _query(self, node: Output, source: Source) -> Spread:
        below = self._inner(source.nodes)
        # DuckDB runs in this process. Spark spreads a query over tasks by itself.
        spread = Spread(below, SOURCE if source.by_spark else SINGLE)
        if self.exchanges:
            spread = single(spread)
        layout = tuple(
            (column.symbol, str(column.type)) for column in plan_query_tree(source).columns
        )
        details = tuple(
            f"{name} := {symbol}"
            for name, (symbol, _) in zip(node.names, layout, strict=True)
            if name != symbol
        )
        step = Step(
            "Output", descriptor_of(node), layout, (*details, *executed_by(node)), (spread.step,)
        )
        return spread.under(step)

    def _source(self, node: Source | AnsweredQuery) -> Spread:
        root, query = query_of(node), node if isinstance(node, Source) else node.query
        step = self._inner(root)
        if self.exchanges and not isinstance(root, ValuesNode):
            step = replace(step, details=(*step.details, source_executed_by(node)))
        # The nodes above read the columns under their own symbols.
        pairs = zip(columns_of(query.tree), plan_query_tree(query).columns, strict=True)
        symbols = {column.symbol: now.symbol for column, now in pairs}
        renamed = tuple(
            f"{s.name} := {symbols[s.name]}" for s in node.outputs if s.name != symbols[s.name]
        )
        layout = tuple((symbol.name, str(symbol.type)) for symbol in node.outputs)
        return Spread(Step("Project", (), layout, renamed, (step,)) if renamed else step, SOURCE)

    def _inner(self, node: PlanNode) -> Step:
        return self._step(node, *map(self._inner, node.sources))

    def _by(self, below: Spread, keys: list[str]) -> Spread:
        remote = remote_exchange(below.step, below.scheme, Partitioning("HASH", tuple(keys)))
        return Spread(local_exchange(remote, "HASH", keys), "HASH", tuple(keys))

    def _join(self, node: Join) -> Spread:
        """Print the join of a MERGE. The side that every task gets is on the right, as in Trino."""
        left, right = self.spread(node.left), self.spread(node.right)
        step = self._step(node)
        if node.replicate_target and node.type is JoinType.RIGHT:
            target = local_exchange(
                remote_exchange(left.step, left.scheme, Partitioning("BROADCAST")), SINGLE
            )
            return right.under(replace(step, name="LeftJoin", sources=(right.step, target)))
        if node.distribution in {"PARTITIONED", "AUTOMATIC"} or (
            node.type is JoinType.FULL and node.equalities
        ):
            return self._partitioned(node, step, left, right)
        source = local_exchange(
            remote_exchange(right.step, right.scheme, Partitioning("BROADCAST")), SINGLE
        )
        return left.under(replace(step, sources=(left.step, source)))

    def _partitioned(self, node: Join, step: Step, left: Spread, right: Spread) -> Spread:
        pairs = [[side for side in pair if isinstance(side, Column)] for pair in node.equalities]
        keys = [
            tuple(pair[at].symbol for pair in pairs if len(pair) == len(node.sources))
            for at in (0, 1)
        ]
        target = remote_exchange(left.step, left.scheme, Partitioning("HASH", keys[0]))
        spread = Partitioning("HASH", keys[1])
        if isinstance(node.right, AssignUniqueId):
            # As in Trino, rows are numbered where they meet.
            (rows,) = right.step.sources
            source_step = replace(
                right.step, sources=(remote_exchange(rows, right.scheme, spread),)
            )
            source = local_exchange(source_step, SINGLE)
        else:
            source = local_exchange(remote_exchange(right.step, right.scheme, spread), SINGLE)
        return Spread(replace(step, sources=(target, source)), "HASH", keys[0])

    # -- writers

    def _writer(self, node: MergeWriter | TableWriter) -> Spread:
        exchange = node.source if isinstance(node.source, Exchange) else None
        below = self.spread(exchange.source if exchange is not None else node.source)
        step = self._step(node)
        scheme, columns = self._placing(exchange, node)
        remote = remote_exchange(below.step, below.scheme, Partitioning(scheme, tuple(columns)))
        local = local_exchange(remote, scheme if columns else SINGLE, columns)
        return Spread(
            replace(step, details=(*step.details, *_placed(exchange, node)), sources=(local,)),
            scheme,
        )

    def _placing(
        self, exchange: Exchange | None, node: MergeWriter | TableWriter
    ) -> tuple[str, list[str]]:
        layout = (
            node.layout
            if isinstance(node, TableWriter)
            else exchange.insert_layout
            if exchange is not None
            else None
        )
        if layout is None:
            return ROUND_ROBIN, []
        insert, columns = _partitioning(layout), list(layout.partition_columns)
        if exchange is None or isinstance(node, TableWriter):
            return insert, columns
        update = exchange.update_layout
        scheme = (
            "MERGE [insert ="
            f" {insert}{'' if update is None else f', update = {_partitioning(update)}'}]"
        )
        return scheme, [OPERATION, *columns, *([] if update is None else [ROW_ID])]


def _partitioning(layout: ConnectorTableLayout) -> str:
    handle = layout.partitioning
    if handle is None:
        return "HASH"
    return (
        handle.described
        or f"{type(handle).__name__}[{', '.join(layout.partition_columns) or ROW_ID}]"
    )


def _placed(exchange: Exchange | None, node: MergeWriter | TableWriter) -> tuple[str, ...]:
    if exchange is None:
        return ("Here the tasks that make rows also store them: nothing is sent",)
    if (
        isinstance(node, MergeWriter)
        and exchange.insert_layout is None
        and exchange.update_layout is not None
    ):
        return (
            (
                "Here deleted rows go to the writer of their row id's place, so only"
                " one writer deletes rows of a file"
            ),
        )
    return ()
