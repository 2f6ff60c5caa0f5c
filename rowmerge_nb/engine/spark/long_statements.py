"""Settings for statements with very long expressions: less is made of them, since making it takes longer than evaluating them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.spark.settings import EXCLUDED_RULES, excluded_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LONG: Final = 20_000
_LONG_OF_MANY_ROWS: Final = 200_000

_UNCOMPILED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
}
"""Spark evaluates expressions as they are and makes no Java of them. To compile some hundred terms takes seconds, which only pay with many rows;
and methods above 64 kB, which Java does not take, are compiled in vain. Expressions that are not compiled are slower still when each is
looked up in a cache first; and what Spark infers from conditions it infers by comparing all with all."""
_SIMPLIFYING: Final = (
    "BooleanSimplification",
    "CombineConcats",
    "ConstantPropagation",
    "FoldablePropagation",
    "LikeSimplification",
    "NullDownPropagation",
    "NullPropagation",
    "OptimizeCsvJsonExprs",
    "OptimizeUpdateFields",
    "PushFoldableIntoBranches",
    "ReorderAssociativeOperator",
    "ReplaceNullWithFalseInPredicate",
    "SimplifyBinaryComparison",
    "SimplifyCaseConversionExpressions",
    "SimplifyCasts",
    "SimplifyConditionals",
    "SimplifyDateTimeConversions",
    "SimplifyExtractValueOps",
    "UnwrapCastInBinaryComparison",
)
"""Rules of Spark that only make expressions simpler. Each goes through all of them several times, and finds next to nothing in ours; some
compare all terms with all: a condition of 3,000 terms joined by AND takes ten times as long with them."""


_MANY_JOINS: Final = 12
_NOTHING_INFERRED: Final = {"spark.sql.constraintPropagation.enabled": "false"}


def is_long(length: int, *, small: bool) -> bool:
    """Return whether a statement's expressions are so long that it runs with `long_settings`.

    Args:
        length: of all Spark SQL of its plan.
        small: it reads few rows.

    >>> is_long(30_000, small=True), is_long(30_000, small=False)
    (True, False)
    """
    return length > (_LONG if small else _LONG_OF_MANY_ROWS)


def many_joins(texts: Iterable[str]) -> Mapping[str, str]:
    """Return the settings for a statement that joins many tables; none for one that does not.

    From what is equal Spark infers what else is, of which there is no end: sixty tables that are joined one to the next take it minutes.

    Args:
        texts: all Spark SQL of its plan.

    >>> many_joins(["SELECT 1 FROM a JOIN b ON a.x = b.x"])
    {}
    """
    return _NOTHING_INFERRED if sum(text.count(" JOIN ") for text in texts) > _MANY_JOINS else {}


def long_settings(spark: Any) -> Mapping[str, str]:
    """Return the settings for a long statement, those of the session's own that they add to included."""
    rules = [f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _SIMPLIFYING]
    return {**_UNCOMPILED, EXCLUDED_RULES: excluded_rules(spark.conf.get(EXCLUDED_RULES, None), *rules)}
