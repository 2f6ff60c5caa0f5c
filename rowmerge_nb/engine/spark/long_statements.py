"""Settings for statements with very long expressions: less is made of them, since making it takes longer than evaluating them."""

from __future__ import annotations

from typing import Final

__all__ = ["UNCOMPILED", "is_long"]

_LONG: Final = 20_000
_LONG_OF_MANY_ROWS: Final = 200_000

UNCOMPILED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
}
"""Spark evaluates expressions as they are and makes no Java of them. To compile some hundred terms takes seconds, which only pay with many rows;
and methods above 64 kB, which Java does not take, are compiled in vain. Expressions that are not compiled are slower still when each is
looked up in a cache first; and what Spark infers from conditions it infers by comparing all with all."""


def is_long(length: int, *, small: bool) -> bool:
    """Tell whether a statement's expressions are so long that it runs with `UNCOMPILED`.

    Args:
        length: of all Spark SQL of its plan.
        small: it reads few rows.

    >>> is_long(30_000, small=True), is_long(30_000, small=False)
    (True, False)
    """
    return length > (_LONG if small else _LONG_OF_MANY_ROWS)
