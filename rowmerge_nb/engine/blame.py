"""Where in the statement a run-time error comes from: Spark's query context, brought back to the user's own text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.engine.lowering import case_expression, case_value, merge_row_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.plan.nodes import SearchedCase
    from rowmerge_nb.sql.analysis import RowChangeAnalysis, TypedExpression

__all__ = ["blame"]


def blame(
    failure: BaseException,
    analysis: RowChangeAnalysis,
    case: SearchedCase | None,
    condition: tuple[TypedExpression, str] | None,
) -> tuple[TypedExpression, str] | None:
    """Find the expression of a statement that an error of Spark comes from.

    Args:
        failure: what Spark raised, possibly wrapped.
        analysis: the statement.
        case: the CASE that Spark evaluated, if there was one.
        condition: the condition that chooses the rows, ON or WHERE, and words for where it stands.

    Returns:
        The expression and, in words, where it stands; None where Spark's error does not tell.
    """
    context = _context(failure)
    if context is None:
        return None
    start, fragment = context
    text = case_expression(case) if case is not None else ""
    if case is not None and text.startswith(fragment, start):
        for first, end, expression, words in _pieces(text, case, analysis):
            if first <= start < end:
                return expression, words
    return condition if condition is not None and condition[0].spark.startswith(fragment, start) else None


def _context(failure: BaseException | None) -> tuple[int, str] | None:
    """Give offset and text of the part of a Spark expression that failed."""
    while failure is not None:
        contexts: Any = getattr(failure, "getQueryContext", lambda: None)()
        if contexts:
            return contexts[0].startIndex(), contexts[0].fragment()
        failure = failure.__cause__
    return None


def _pieces(text: str, case: SearchedCase, analysis: RowChangeAnalysis) -> Iterator[tuple[int, int, TypedExpression, str]]:
    """Give the places of all clause expressions within the text of the CASE, in the order in which they were printed."""
    types = merge_row_types(case)
    columns = [column.name for column in analysis.target.columns]
    end = 0
    for branch, clause in zip(case.branches, analysis.clauses, strict=False):
        start = text.index(branch.spark_condition, end)
        end = start + len(branch.spark_condition)
        if clause.condition is not None:
            yield start, end, clause.condition, f"in the condition of clause {clause.number}"
        where = "" if case.unconditional else f" of clause {clause.number}"
        for value, kind, column, expression in zip(branch.spark_values, types, columns, clause.values, strict=False):
            printed = case_value(value, kind)
            start = text.index(printed, end)
            end = start + len(printed)
            if expression is not None:
                yield start, end, expression, f"in the value for column '{column}'{where}"
