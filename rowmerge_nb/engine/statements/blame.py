"""Where in the statement a run-time error comes from: Spark's query context, brought back to the user's own text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.spark.lowering import case_expression, case_value, merge_row_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.plan.nodes import SearchedCase
    from rowmerge_nb.sql.analyzer.analysis import Returning, RowChangeAnalysis, TypedExpression
    from rowmerge_nb.sql.tree.statements import Span

__all__ = ["blame", "place_of", "place_of_message"]


def blame(
    failure: BaseException,
    analysis: RowChangeAnalysis,
    case: SearchedCase | None,
    condition: tuple[TypedExpression, str] | None,
    returned: tuple[str, Returning] | None = None,
) -> tuple[TypedExpression, str] | None:
    """Find the expression of a statement that an error of Spark comes from.

    Args:
        failure: what Spark raised, possibly wrapped.
        analysis: the statement.
        case: the CASE that Spark evaluated, if there was one.
        condition: the condition that chooses the rows, ON or WHERE, and words for where it stands.
        returned: the row of RETURNING as Spark evaluated it, and what it is made of; None without one.

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
    if returned is not None and returned[0].startswith(fragment, start):
        for first, end, expression in _returned_pieces(*returned):
            if first <= start < end:
                return expression, "in RETURNING"
    return condition if condition is not None and condition[0].spark.startswith(fragment, start) else None


def place_of(failure: BaseException, placed: Sequence[tuple[str, Span]]) -> Span | None:
    """Find where the user wrote the expression that an error of Spark comes from.

    Args:
        failure: what Spark raised, possibly wrapped.
        placed: Spark SQL of the statement's expressions, and where they were written.

    Returns:
        The place of the smallest expression that holds what failed; None where Spark's error does not tell.
    """
    context = _context(failure)
    if context is None:
        return None
    holding = [(len(text), span) for text, span in placed if context[1] in text]
    return min(holding, key=lambda pair: pair[0])[1] if holding else None


def place_of_message(code: str, message: str, placed: Sequence[tuple[str, Span]]) -> Span | None:
    """Find the one expression that can have said an error's message: Spark gives no context for errors that we raise ourselves.

    Returns:
        Its place; None where no expression or more than one can have said it.
    """
    found = {span for text, span in placed for begin in _beginnings(code, text) if message.startswith(begin)}
    return found.pop() if len(found) == 1 else None


def _beginnings(code: str, text: str) -> Iterator[str]:
    """Give what the messages of the failures in a Spark text begin with."""
    for written in re.findall(rf"'\[\[{code}\]\] ((?:[^'\\]|\\.)*)'", text):
        yield re.sub(r"\\(.)", r"\1", written)


def _context(failure: BaseException | None) -> tuple[int, str] | None:
    """Give offset and text of the part of a Spark expression that failed."""
    while failure is not None:
        contexts: Any = getattr(failure, "getQueryContext", lambda: None)()
        # What Spark refuses before it runs points at a line of Python, and knows no place within a text.
        if contexts and contexts[0].contextType().name == "SQL":
            return contexts[0].startIndex(), contexts[0].fragment()
        drawn = _DRAWN.search(str(failure)) if not contexts else None
        if drawn is not None:
            # What fails in a subquery reaches Python as text alone.
            position, line, blank, carets = drawn.groups()
            return int(position) - 1, line[len(blank) : len(blank) + len(carets)]
        failure = failure.__cause__
    return None


_DRAWN: Final = re.compile(r"== SQL \(line 1, position (\d+)\) ==\n(.*)\n( *)(\^+)")
"""How Spark draws the place of an error into its message."""


def _returned_pieces(text: str, returning: Returning) -> Iterator[tuple[int, int, TypedExpression]]:
    """Give the places of the expressions within the text of the row of RETURNING, in the order in which they were printed."""
    end = 0
    for column in returning.columns:
        start = text.index(column.expression.spark, end)
        end = start + len(column.expression.spark)
        yield start, end, column.expression


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
