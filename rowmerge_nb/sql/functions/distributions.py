"""Distributions of chance: what Trino asks of Apache Commons Math, asked of the same library, which Spark brings along."""

from __future__ import annotations

from typing import Final

ROWS: Final = r"""
normal_cdf(double, double, double) -> double | IF({1} > 0 AND NOT isnan({1}), 0.5D * (1D + {error function}), {fail:INVALID_FUNCTION_ARGUMENT:standardDeviation must be > 0})
inverse_normal_cdf(double, double, double) -> double | CASE WHEN NOT ({2} > 0 AND {2} < 1) THEN {fail:INVALID_FUNCTION_ARGUMENT:p must be 0 > p > 1} WHEN {1} > 0 AND NOT isnan({1}) THEN {0} + {1} * 1.4142135623730951D * {inverse error function} ELSE {fail:INVALID_FUNCTION_ARGUMENT:sd must be > 0} END
beta_cdf(double, double, double) -> double | CASE WHEN NOT ({2} >= 0 AND {2} <= 1) THEN {fail:INVALID_FUNCTION_ARGUMENT:value must be 0 >= v >= 1} WHEN isnan({0}) OR isnan({1}) OR {0} <= 0 OR {1} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:a, b must be > 0} WHEN {2} IN (0, 1) THEN {2} ELSE {beta} END
t_cdf(double, double) -> double | CASE WHEN {1} < 1 THEN {fail:INVALID_FUNCTION_ARGUMENT:degrees of freedom must be greater than or equal to 1} WHEN {0} = 0 THEN 0.5D WHEN {0} < 0 THEN 0.5D * {t tail} ELSE 1D - 0.5D * {t tail} END
t_pdf(double, double) -> double | IF({1} < 1, {fail:INVALID_FUNCTION_ARGUMENT:degrees of freedom must be greater than or equal to 1}, {t density})
"""


def _java(name: str, *arguments: str) -> str:
    """Call a function of Commons Math, which gives its number as the text that Java writes: no digit is lost.

    Spark may call it before it has looked at the condition that guards it, as where it groups by what is made of it: so no NULL gets there.
    """
    holder, method = name.split(".")
    package = "util" if holder == "FastMath" else "special"
    given = ", ".join(f"coalesce(CAST({argument} AS DOUBLE), 0.5D)" for argument in arguments)
    return f"CAST(java_method('org.apache.commons.math3.{package}.{holder}', '{method}', {given}) AS DOUBLE)"


def _log_gamma(text: str) -> str:
    return _java("Gamma.logGamma", text)


def _log(text: str) -> str:
    return _java("FastMath.log", text)


_FACTOR: Final = f"({_log_gamma('({1} + 1D) / 2D')} - 0.5D * ({_log('pi()')} + {_log('{1}')}) - {_log_gamma('{1} / 2D')})"

FRAGMENTS: Final = {
    "error function": _java("Erf.erf", "({2} - {0}) / ({1} * 1.4142135623730951D)"),
    "inverse error function": _java("Erf.erfInv", "2D * {2} - 1D"),
    "beta": _java("Beta.regularizedBeta", "{2}", "{0}", "{1}"),
    "t tail": _java("Beta.regularizedBeta", "{1} / ({1} + {0} * {0})", "0.5D * {1}", "0.5D"),
    "t density": _java("FastMath.exp", f"{_FACTOR} - ({{1}} + 1D) / 2D * {_log('1D + {0} * {0} / {1}')}"),
}
"""Parts that several templates share; ``{name}`` in a template stands for them."""
