"""The expressions of a plan as Spark SQL."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.engine.spark.spark_types import spark_type
from rowmerge_nb.engine.tasks.exchange import hash_expression
from rowmerge_nb.plan.keyed_subqueries import keyed
from rowmerge_nb.plan.plan_nodes import (
    CheckConstraints,
    Filter,
    Join,
    MergeWriter,
    Project,
    SemiJoin,
    Source,
)
from rowmerge_nb.plan.rules import chain
from rowmerge_nb.sql.spark.marks import marked
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.spark.query_printer import subquery_text
from rowmerge_nb.sql.typed.expressions import Apply, Subquery, walk
from rowmerge_nb.sql.typed.queries import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowmerge_nb.plan.plan_nodes import CaseBranch, PlanNode, SearchedCase
    from rowmerge_nb.sql.typed.expressions import Typed


def computed(node: Project) -> Mapping[str, str]:
    texts = {assignment.symbol.name: _text(assignment.value) for assignment in node.assignments}
    if node.case is not None:
        texts[node.case.symbol.name] = case_expression(node.case)
    return texts


def _text(value: Typed) -> str:
    if isinstance(value, Apply) and value.name == "hash":
        return hash_expression([print_spark(argument) for argument in value.arguments])
    return print_spark(value)


def case_expression(case: SearchedCase) -> str:
    """Print the searched CASE of the merge row, with positional field names; an ELSE without values
    is a NULL row.
    """
    types = [spark_type(sql_type.arrow).simpleString() for sql_type in case.symbol.type.parameters]
    if case.unconditional:
        return _row(case.branches[0], types)
    parts = [
        (
            f"WHEN {print_spark(branch.predicate)} THEN {_row(branch, types)}"
            if branch.predicate is not None
            else f"ELSE {_row(branch, types)}"
        )
        for branch in case.branches
        if branch.expressions
    ]
    return f"CASE {' '.join(parts)} END"


def _row(branch: CaseBranch, types: Sequence[str]) -> str:
    texts = [
        _stored(value, spark_name)
        for value, spark_name in zip(branch.expressions, types, strict=False)
    ]
    last = [print_spark(branch.is_present), str(int(branch.operation)), str(branch.number)]
    texts += [
        conformed(text, spark_name)
        for text, spark_name in zip(last, types[-len(last) :], strict=True)
    ]
    fields = (f"'f{index}', {text}" for index, text in enumerate(texts))
    return f"named_struct({', '.join(fields)})"


def _stored(value: Typed, spark_name: str) -> str:
    text = conformed(print_spark(replace(value, origin=None)), spark_name)
    return text if value.origin is None else marked(text, value.origin)


def conformed(value: str, spark_name: str) -> str:
    return f"CAST({value} AS {spark_name})"


def answer(query: Subquery, symbol: str) -> str:
    name = backquoted(symbol)
    if query.outer:
        rows = keyed(query).rows
        fields = (
            f"'{column.symbol}', {backquoted(column.symbol)}" for column in columns_of(rows.query)
        )
        collect = "collect_list" if query.kind == "scalar" else "collect_set"
        return (
            f"(SELECT {collect}(named_struct({', '.join(fields)})) FROM ({subquery_text(rows)})) AS"
            f" {name}"
        )
    text = subquery_text(query)
    if query.kind == "in":
        return (
            "(SELECT collect_set(named_struct('v',"
            f" {backquoted(columns_of(query.query)[0].symbol)})) FROM ({text})) AS {name}"
        )
    if query.kind == "exists":
        return f"(SELECT count(*) > 0 FROM (SELECT 1 FROM ({text}) LIMIT 1)) AS {name}"
    spark_name = spark_type(query.type.arrow).simpleString()
    return f"CAST(({text}) AS {spark_name}) AS {name}"


def sql_of(plan: PlanNode) -> Iterator[str]:
    """Yield all Spark SQL of a plan; for a row change within tasks, only that of the source query
    and subqueries.
    """
    nodes = chain(plan)
    in_task = any(
        isinstance(node, MergeWriter) and node.form is not None and node.form.in_task
        for node in nodes
    )
    for node in nodes:
        if isinstance(node, Source):
            yield node.spark
        elif in_task:
            yield from (
                answer(part, "")
                for tree in node.expressions
                for part in walk(tree)
                if isinstance(part, Subquery)
            )
        elif isinstance(node, Project):
            yield from computed(node).values()
        elif isinstance(node, CheckConstraints):
            yield from map(print_spark, node.expressions)
        elif isinstance(node, Filter | Join):
            yield print_spark(node.predicate)
            if isinstance(node, Join):
                yield from (print_spark(source) for _, source in node.equalities)
        elif isinstance(node, SemiJoin):
            yield from (print_spark(side) for pair in node.keys for side in pair)
