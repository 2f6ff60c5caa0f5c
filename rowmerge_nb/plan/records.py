"""Plans as plain records: what reports draw and saved traces keep."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.plan.numbered_sides import SOURCE_UNIQUE_ID
from rowmerge_nb.plan.older_flow import DeleteRows, QueryJoin, UpdateRows
from rowmerge_nb.plan.plan_nodes import (
    AnsweredQuery,
    AssignUniqueId,
    CaseBranch,
    CheckConstraints,
    DeleteProject,
    DuplicateCheck,
    Exchange,
    Filter,
    Join,
    MarkDistinct,
    MergeProcessor,
    MergeWriter,
    Output,
    PlanNode,
    Project,
    SearchedCase,
    SemiJoin,
    Source,
    TableDelete,
    TableFinish,
    TableScan,
    TableWriter,
)
from rowmerge_nb.plan.query_nodes import Descriptor, QueryPlanNode, ValuesNode
from rowmerge_nb.plan.rules import chain, join_of
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import CASE_NUMBER, HASH, INSERT_FROM_UPDATE, MERGE_ROW, OPERATION
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.typed.domains import described
from rowmerge_nb.trace.node_records import (
    BranchRecord,
    ExchangeFacts,
    JoinFacts,
    JoinType,
    MarkDistinctFacts,
    NodeFacts,
    NodeRecord,
    ProcessorFacts,
    ProjectFacts,
    QueryFacts,
    ScanFacts,
    WriterFacts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.base.words import KnownRows
    from rowmerge_nb.spi.layout import ConnectorTableLayout


def describe(
    plan: PlanNode,
    would: Mapping[str, KnownRows] | None = None,
    row_counts: Mapping[str, int] | None = None,
) -> tuple[NodeRecord, ...]:
    """Return the records of a plan, the root first, depth first."""
    record = record_of(plan, would or {}, row_counts or {})
    return (
        record,
        *(inner for source in plan.sources for inner in describe(source, would, row_counts)),
    )


def record_of(
    plan: PlanNode,
    would: Mapping[str, KnownRows] | None = None,
    row_counts: Mapping[str, int] | None = None,
) -> NodeRecord:
    return NodeRecord(
        id=plan.id,
        kind=type(plan.query if isinstance(plan, AnsweredQuery) else plan).__name__,
        name=plan.name,
        arguments=_arguments(plan),
        details=_details(plan),
        layout=tuple((symbol.name, str(symbol.type)) for symbol in plan.outputs),
        sources=tuple(source.id for source in plan.sources),
        meaning=_meaning(plan),
        branches=(
            tuple(map(_branch, plan.case.branches))
            if isinstance(plan, Project) and plan.case
            else ()
        ),
        facts=_facts(plan, row_counts or {}),
        trino=", ".join(f"{key} = {value}" if key else value for key, value in descriptor_of(plan)),
        would=(would or {}).get(plan.id),
        rows=(row_counts or {}).get(plan.id),
    )


def _branch(branch: CaseBranch) -> BranchRecord:
    return BranchRecord(
        number=branch.number,
        operation=branch.operation,
        matched=branch.matched,
        condition=branch.condition,
        values=branch.values,
        present=branch.present,
        by_source=branch.by_source,
        assigned=branch.assigned,
    )


def _numbers_source(node: PlanNode) -> bool:
    return isinstance(node, AssignUniqueId) and node.symbol.name == SOURCE_UNIQUE_ID


def _meaning(plan: PlanNode) -> str:
    if isinstance(plan, Join) and plan.type is JoinType.FULL:
        return _FULL_MEANING
    if isinstance(plan, Source) and plan.pages is not None:
        return _PAGES_MEANING
    if isinstance(plan, Source) and not plan.by_spark:
        return _ANSWERED_MEANING
    if _numbers_source(plan):
        return _SOURCE_NUMBER_MEANING
    return plan.meaning.format(call=plan.call) if isinstance(plan, TableFinish) else plan.meaning


@singledispatch
def _arguments(_: PlanNode) -> str:
    return ""


@_arguments.register
def _(node: TableScan) -> str:
    table_name, alias = node.table.shown(node.table.display), column_in_sql(node.alias or "")
    is_other = node.alias and alias.lower() != node.table.display.lower()
    return f"{table_name} {alias}" if is_other else table_name


@_arguments.register
def _(node: QueryPlanNode) -> str:
    return ", ".join([*(value for _, value in node.descriptor), *node.details])


@_arguments.register
def _(node: Source) -> str:
    return " ".join(node.text.split())


@_arguments.register
def _(node: AnsweredQuery) -> str:
    return _arguments(node.query)


@_arguments.register
def _(node: AssignUniqueId) -> str:
    return node.symbol.name


@_arguments.register
def _(node: Project) -> str:
    return ", ".join(
        f"{a.symbol.name} := {a.text}" for a in node.assignments if a.symbol.name != HASH
    )


@_arguments.register(Filter)
@_arguments.register(Join)
def _(node: Filter | Join) -> str:
    return node.text


@_arguments.register
def _(node: SemiJoin) -> str:
    pairs = ((print_spark(replace(side, origin=None)) for side in pair) for pair in node.keys)
    return ", ".join(f"{target} = {source}" for target, source in pairs).replace("`", "")


@_arguments.register
def _(_: DeleteProject) -> str:
    return f"{OPERATION} := {int(Operation.DELETE)}"


@_arguments.register
def _(node: MarkDistinct) -> str:
    return f"({', '.join(key.name for key in node.keys)})"


@_arguments.register
def _(node: DuplicateCheck) -> str:
    return (
        "is_distinct"
        if node.rule == RepeatedMatches.TRINO
        else "at most one acting source row per target row"
    )


@_arguments.register
def _(node: CheckConstraints) -> str:
    return " AND ".join(check.text for check in node.checks)


@_arguments.register
def _(node: MergeProcessor) -> str:
    return node.paradigm.name


@_arguments.register
def _(node: Exchange) -> str:
    return node.text


@_arguments.register(MergeWriter)
@_arguments.register(DeleteRows)
def _(node: MergeWriter | DeleteRows) -> str:
    return node.table.display


@_arguments.register
def _(node: UpdateRows) -> str:
    return f"{node.table.display} ({', '.join(column.name for column in node.columns)})"


@_arguments.register
def _(node: QueryJoin) -> str:
    return f"{node.symbol.name}: {_QUERY_WORDS[node.query.kind]}"


@_arguments.register
def _(node: TableDelete) -> str:
    return node.table.display


@_arguments.register(TableWriter)
@_arguments.register(TableFinish)
def _(node: TableWriter | TableFinish) -> str:
    return node.table


@singledispatch
def descriptor_of(_: PlanNode) -> Descriptor:
    """Return the arguments of a node as Trino prints them; a whole text has no name."""
    return ()


@descriptor_of.register
def _(node: QueryPlanNode) -> Descriptor:
    return node.descriptor


@descriptor_of.register
def _(node: Output) -> Descriptor:
    return (
        ("columnNames", f"[{', '.join(node.names or (symbol.name for symbol in node.outputs))}]"),
    )


@descriptor_of.register
def _(node: TableDelete) -> Descriptor:
    return (("target", node.table.shown(node.table.qualified)),)


@descriptor_of.register
def _(node: TableFinish) -> Descriptor:
    return (("target", node.table),)


@descriptor_of.register(MergeWriter)
@descriptor_of.register(DeleteRows)
@descriptor_of.register(UpdateRows)
@descriptor_of.register(TableScan)
def _(node: MergeWriter | DeleteRows | UpdateRows | TableScan) -> Descriptor:
    return (("table", node.table.shown(node.table.qualified)),)


@descriptor_of.register
def _(node: TableWriter) -> Descriptor:
    return (("table", node.table),)


@descriptor_of.register
def _(node: Exchange) -> Descriptor:
    return (("partitioning", f"MERGE [{node.text}]"),)


@descriptor_of.register
def _(node: DuplicateCheck) -> Descriptor:
    # Where both sides are numbered, as in Trino's plan, every row has a number.
    has_numbers = node.rule == RepeatedMatches.TRINO and any(map(_numbers_source, chain(node)))
    predicate = _NUMBERED_PREDICATE if has_numbers else _DUPLICATE_PREDICATES[node.rule]
    return (("filterPredicate", predicate),)


@descriptor_of.register
def _(node: CheckConstraints) -> Descriptor:
    failing = (
        f"CASE WHEN COALESCE({check.text}, true) THEN true ELSE fail(CONSTRAINT_VIOLATION) END"
        for check in node.checks
    )
    return (("filterPredicate", " AND ".join(failing)),)


@descriptor_of.register
def _(node: Filter) -> Descriptor:
    return (("filterPredicate", node.text),)


@descriptor_of.register
def _(node: MarkDistinct) -> Descriptor:
    return (
        ("distinct", f"[{', '.join(f'{key.name}:{key.type}' for key in node.keys)}]"),
        ("marker", node.marker.name),
    )


@descriptor_of.register
def _(node: Join) -> Descriptor:
    word = "criteria" if node.equalities else "filter"
    if not node.distribution:
        return ((word, node.text),) if node.text else ()
    return (
        (word, f"({node.text})"),
        *((("distribution", _distribution(node)),) if _distribution(node) else ()),
    )


@descriptor_of.register
def _(node: SemiJoin) -> Descriptor:
    return (("criteria", _arguments(node)),)


@descriptor_of.register
def _(node: QueryJoin) -> Descriptor:
    return (("", _arguments(node)),)


@descriptor_of.register
def _(node: Source) -> Descriptor:
    return (("query", _arguments(node)),)


@descriptor_of.register
def _(node: AnsweredQuery) -> Descriptor:
    return descriptor_of(node.query)


def _distribution(node: Join) -> str:
    if node.replicate_target:
        return "REPLICATED"
    return {"PARTITIONED": "PARTITIONED", "REPLICATED": "REPLICATED"}.get(node.distribution, "")


_REPLICATED_SIDES = {
    "SINGLE": "the source is read in one piece",
    "PARTITIONED": "both sides go to the task of their keys",
    "REPLICATED": "every task that reads the target gets the whole source",
    "AUTOMATIC": "Spark decides while it runs",
}


@singledispatch
def _details(_: PlanNode) -> tuple[str, ...]:
    return ()


@_details.register
def _(node: QueryPlanNode) -> tuple[str, ...]:
    return node.details


@_details.register
def _(node: AssignUniqueId) -> tuple[str, ...]:
    return ("Here only target rows are numbered",) if _numbers_source(node) else ()


@_details.register
def _(node: Project) -> tuple[str, ...]:
    assigned = tuple(f"{a.symbol.name} := {a.text}" for a in node.assignments)
    if node.case is None:
        return assigned
    return (*assigned, f"{node.case.symbol.name} := {_case_text(node.case)}")


@_details.register
def _(node: DeleteProject) -> tuple[str, ...]:
    kept_columns = dict(zip(node.redistribution_columns, node.kept_columns, strict=True))
    data = [
        f"{c.name} := {kept_columns[c.name].name if c.name in kept_columns else f'null::{c.type}'}"
        for c in node.columns
    ]
    number = [f"{CASE_NUMBER} := 0"] if node.layout.after.case_number is not None else []
    return (
        *data,
        f"{OPERATION} := {int(Operation.DELETE)}",
        *number,
        f"{INSERT_FROM_UPDATE} := 0",
    )


@_details.register
def _(node: UpdateRows) -> tuple[str, ...]:
    columns = ", ".join(column.name for column in node.columns)
    return (
        f"updated columns: [{columns}]",
        f"column value and row id channels: {list(node.channels)}",
    )


@_details.register
def _(node: MergeProcessor) -> tuple[str, ...]:
    return (
        f"target: {node.table}",
        f"merge row column: {MERGE_ROW}",
        f"row id column: {node.row_id.name}",
        f"redistribution columns: [{', '.join(node.redistribution_columns)}]",
        f"data columns: [{', '.join(column.name for column in node.columns)}]",
        f"paradigm: {node.paradigm.name}",
    )


@_details.register
def _(node: AnsweredQuery) -> tuple[str, ...]:
    return (source_executed_by(node),)


@_details.register
def _(node: Source) -> tuple[str, ...]:
    return (source_executed_by(node),) if node.refusal else ()


@_details.register
def _(node: TableScan) -> tuple[str, ...]:
    if not node.constraint.domains:
        return ()
    return (f"Constraint, which the connector may use: {described(node.constraint)}",)


@_details.register
def _(node: SemiJoin) -> tuple[str, ...]:
    where = "where the rows are read" if node.key_columns else "by Spark"
    return (f"Rows are skipped {where}",)


@_details.register
def _(node: Join) -> tuple[str, ...]:
    if not node.distribution:
        return ()
    source = _REPLICATED_SIDES[node.distribution]
    if not node.replicate_target:
        return (f"Distribution: {_distribution(node) or node.distribution}: {source}",)
    return (f"Distribution: REPLICATED: every task gets all of the target; {source}",)


@_details.register
def _(node: MarkDistinct) -> tuple[str, ...]:
    if node.exchange:
        return (f"Rows are sent by {node.keys[0].name}",)
    return ("Here no rows are sent: all matches of a target row are in one task anyway",)


@_details.register
def _(node: TableDelete) -> tuple[str, ...]:
    return (f"The connector takes: [{node.text}]",) if node.text else ()


@_details.register
def _(node: TableFinish) -> tuple[str, ...]:
    added = ", ".join(f"{column.name}:{column.type}" for column in node.added)
    changes = ", ".join(
        f"{path}:{f'{old} to {new}' if old else new}" for path, old, new in node.type_changes
    )
    return (
        *((f"Adds the columns: [{added}]",) if added else ()),
        *((f"Changes the types: [{changes}]",) if changes else ()),
    )


@_details.register
def _(node: MergeWriter) -> tuple[str, ...]:
    below = (
        "the Project below it" if isinstance(node.source, DeleteProject) else "the MergeProcessor"
    )
    return (*((f"Runs in one pass with {below}",) if node.fused else ()), *_form(node))


@_details.register
def _(node: TableWriter) -> tuple[str, ...]:
    return _form(node)


def query_of(node: Source | AnsweredQuery) -> PlanNode:
    """Return the last node of a query, as its engine executes it."""
    return node.paged.root if isinstance(node, AnsweredQuery) else node.nodes


def source_executed_by(node: Source | AnsweredQuery) -> str:
    if isinstance(node, AnsweredQuery):
        return (
            "Here DuckDB executes the query, on the pages that this process reads, before the tasks"
            " begin"
        )
    if node.pages is not None:
        return "Here tasks execute the query, on the pages of its one table"
    reason = f": DuckDB leaves it to Spark: {node.refusal}" if node.refusal else ""
    return f"Here Spark executes the query{reason}"


@_details.register
def executed_by(node: Output) -> tuple[str, ...]:
    if node.form is None:
        return ()
    if node.form.by_spark:
        return (f"Here Spark executes the query: {node.form.by_spark}",)
    return ("Here DuckDB executes the query, on the pages that this process reads",)


def _form(node: MergeWriter | TableWriter) -> tuple[str, ...]:
    form = node.form
    if form is None:
        return ()
    if form.by_spark:
        return (f"Spark's operators execute the nodes below: {form.by_spark}",)
    if isinstance(node, TableWriter):
        read = (
            "the answer of the query"
            if isinstance(chain(node)[-1], AnsweredQuery)
            else "the query's table"
        )
        return (f"The nodes below run in the tasks that read {read}, on pages",)
    if form.partitioned:
        return (
            (
                "The nodes below run on pages, in tasks that get the rows of both"
                f" sides by their keys: {form.partitioned}"
            ),
        )
    reading = "the tasks that read" if form.many_tasks else "the task that reads"
    if not form.many_tasks or join_of(node) is None:
        return (f"The nodes below run in {reading} the target, on pages",)
    rest = (
        "; each writer takes its share of the unmatched source rows"
        if isinstance(node.source, Exchange)
        else ""
    )
    return (
        (
            f"The nodes below run in {reading} the target, each of which gets the"
            f" whole source, on pages{rest}"
        ),
    )


def _case_text(case: SearchedCase) -> str:
    if case.unconditional:
        return f"ROW ({_row_text(case.branches[0])})"
    parts = [
        (
            f"WHEN {branch.condition} THEN ROW ({_row_text(branch)})"
            if branch.matched is not None
            else f"ELSE ROW ({_row_text(branch)})"
            if branch.values
            else "ELSE NULL"
        )
        for branch in case.branches
    ]
    return f"CASE {' '.join(parts)} END"


def _row_text(branch: CaseBranch) -> str:
    return ", ".join(
        [*branch.values, branch.present, str(int(branch.operation)), str(branch.number)]
    )


def _facts(node: PlanNode, row_counts: Mapping[str, int]) -> NodeFacts | None:
    if isinstance(node, Source | AnsweredQuery):
        return _query_facts(node, row_counts)
    if isinstance(node, TableScan):
        return ScanFacts(node.row_id is not None, node.alias or node.table.display)
    if isinstance(node, Project):
        return ProjectFacts(tuple(assigned.symbol.name for assigned in node.assignments))
    if isinstance(node, Join):
        return JoinFacts(node.distribution, node.replicate_target, node.type)
    if isinstance(node, MarkDistinct):
        return MarkDistinctFacts(node.exchange)
    if isinstance(node, MergeProcessor):
        return ProcessorFacts(node.paradigm.name, node.redistribution_columns)
    if isinstance(node, Exchange):
        kinds = (_placed_by(node.insert_layout), _placed_by(node.update_layout))
        return ExchangeFacts(node.inserts, node.others, *kinds)
    return WriterFacts(node.fused) if isinstance(node, MergeWriter) else None


def _query_facts(node: Source | AnsweredQuery, row_counts: Mapping[str, int]) -> QueryFacts | None:
    root = query_of(node)
    return (
        None if isinstance(root, ValuesNode) else QueryFacts(describe(root, row_counts=row_counts))
    )


def _placed_by(layout: ConnectorTableLayout | None) -> str:
    if layout is None:
        return ""
    return "hash" if layout.partitioning is None else "function"


_QUERY_WORDS = {
    "in": "the values of a query",
    "scalar": "the one row of a query",
    "exists": "whether a query has rows",
}
_FULL_MEANING = (
    "Pairs every source row with the target rows it matches; a row of either side without a partner"
    " stays, with NULLs."
)
_SOURCE_NUMBER_MEANING = (
    "Numbers the source rows, so that a row without a target row is distinct by its own number."
    " Here only target rows are numbered when the statement runs."
)
_PAGES_MEANING = (
    "Runs the source query, whose nodes have Trino's names here; tasks compute it on the pages of"
    " its one table."
)
_ANSWERED_MEANING = (
    "Runs the query, whose nodes have Trino's names here; DuckDB executes it on the pages of its"
    " one table."
)
_NUMBERED_PREDICATE = (
    "CASE WHEN not(is_distinct) THEN fail(MERGE_TARGET_ROW_MULTIPLE_MATCHES) ELSE true END"
)
_DUPLICATE_PREDICATES = {
    RepeatedMatches.TRINO: (
        "CASE WHEN not(is_distinct) AND unique_id IS NOT NULL THEN"
        " fail(MERGE_TARGET_ROW_MULTIPLE_MATCHES) ELSE true END"
    ),
    RepeatedMatches.STANDARD: (
        "CASE WHEN count(case_number >= 0) OVER (unique_id) > 1 THEN"
        " fail(MERGE_TARGET_ROW_MULTIPLE_MATCHES) ELSE true END"
    ),
    RepeatedMatches.NONE: "true",
}
