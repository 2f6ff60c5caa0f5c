"""Settings for small statements, and for very long ones, which Spark evaluates in less time than
it takes to optimize and compile them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.spark.settings import EXCLUDED_RULES, excluded_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LONG: Final = 20_000
_LONG_OF_MANY_ROWS: Final = 200_000

_INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_LONG_INTERPRETED: Final = {
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
}
"""Interpreted expressions are slower with the subexpression cache, and constraint propagation
compares all pairs of conditions.
"""
_INITIALIZED: Final = re.compile(r"\b(?:rand|reflect|shuffle|try_reflect|uuid)\(")
"""Calls that Spark initializes for a partition, but not within a lambda that it interprets."""
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
"""Rules that only simplify expressions, and find little in ours.

Some compare all pairs of terms: a condition of 3,000 terms joined by AND
takes ten times as long with them.
"""


_MANY_JOINS: Final = 12
_NOTHING_INFERRED: Final = {"spark.sql.constraintPropagation.enabled": "false"}


def is_long(length: int, *, small: bool) -> bool:
    """Return whether a statement needs `long_settings`, by the `length` of its Spark SQL; `small`
    ones read few rows.

    >>> is_long(30_000, small=True), is_long(30_000, small=False)
    (True, False)
    """
    return length > (_LONG if small else _LONG_OF_MANY_ROWS)


def many_joins(texts: Iterable[str]) -> Mapping[str, str]:
    """Return the settings for a statement with many joins, otherwise none.

    Constraint propagation is unbounded: for sixty tables joined in a chain it takes minutes.

    >>> many_joins(["SELECT 1 FROM a JOIN b ON a.x = b.x"])
    {}
    """
    return _NOTHING_INFERRED if sum(text.count(" JOIN ") for text in texts) > _MANY_JOINS else {}


def interpreted(texts: Iterable[str]) -> Mapping[str, str]:
    """Return the settings by which Spark interprets a statement's expressions, if it can.

    A small statement is computed sooner than compiled. Compiling some hundred terms takes seconds,
    and is wasted for methods above 64 kB, Java's limit.

    >>> interpreted(["SELECT transform(x, y -> y * rand()) FROM a"])
    {}
    """
    return {} if any(map(_INITIALIZED.search, texts)) else _INTERPRETED


def long_settings(spark: Any) -> Mapping[str, str]:
    rules = [f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _SIMPLIFYING]
    return {
        **_LONG_INTERPRETED,
        EXCLUDED_RULES: excluded_rules(spark.conf.get(EXCLUDED_RULES, None), *rules),
    }
