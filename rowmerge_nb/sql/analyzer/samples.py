"""Analyzes ``TABLESAMPLE BERNOULLI (p)`` and ``SYSTEM (p)``: which part of a relation's rows is read, by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import DOUBLE, UNKNOWN
from rowmerge_nb.sql.analyzer.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.constancy import refuse_subqueries
from rowmerge_nb.sql.analyzer.expressions import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import common_type

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context

_WHOLE: Final = 100.0


def sample_ratio(context: Context, node: s.Sampled) -> float:
    """Give the part of the rows that is read, 0 to 1.

    The percentage is computed while the statement is analyzed. SYSTEM, which may take or leave whole parts of a table, takes or leaves rows here.

    Raises:
        AnalysisError: EXPRESSION_NOT_CONSTANT, TYPE_MISMATCH for what is no number, INVALID_ARGUMENTS for NULL, NUMERIC_VALUE_OUT_OF_RANGE below
            0 and above 100; or one of the expression.
    """
    span = node.percentage.error_span
    if any(isinstance(part, s.Name) for part in s.walk(node.percentage)):
        context.error("EXPRESSION_NOT_CONSTANT", "Sample percentage cannot contain column references", span)
    refuse_subqueries(context, node.percentage)
    value = ExpressionAnalyzer(context, Scope(()), ExpressionSite("TABLESAMPLE")).analyze(node.percentage)
    if value.type != UNKNOWN and common_type(value.type, DOUBLE) != DOUBLE:
        context.error("TYPE_MISMATCH", "Sample percentage should be a numeric expression", span)
    if isinstance(value, e.Constant):
        # A number as it is written needs no Spark, which EXPLAIN would start for it.
        found = None if value.value is None else float(value.value)
    else:
        [found] = context.evaluate([e.Apply(DOUBLE, "cast", (value,))], node.percentage.span)
    if found is None:
        context.error("INVALID_ARGUMENTS", "Sample percentage cannot be NULL", span)
    if not found >= 0:
        context.error("NUMERIC_VALUE_OUT_OF_RANGE", "Sample percentage must be greater than or equal to 0", span)
    if found > _WHOLE:
        context.error("NUMERIC_VALUE_OUT_OF_RANGE", "Sample percentage must be less than or equal to 100", span)
    return float(found) / _WHOLE
