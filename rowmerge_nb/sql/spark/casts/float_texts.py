"""Texts of real and double values, as Trino and Java write them."""

from __future__ import annotations

from typing import Final

_SEVEN_DIGITS: Final = "'0.0#####E0'"
_ALL_DIGITS: Final = f"'0.0{'#' * 19}E0'"


def shown_double(text: str) -> str:
    """Write a double like Trino, which rounds by Java's DecimalFormat too: 1.0E0, 1.23456789E5."""
    return _shown(text, text, _ALL_DIGITS)


def _shown(text: str, double: str, digits: str) -> str:
    return (
        f"CASE WHEN {text} = 0 THEN replace(CAST({text} AS STRING), '.0', 'E0') WHEN abs({text}) <"
        f" DOUBLE('Infinity') THEN format_number({double}, {digits}) ELSE CAST({text} AS STRING) END"
    )


EXACT_REALS: Final = "{size} >= 1e-8D AND {size} < 1e7D"
"""The sizes of reals whose text in Java has the fewest digits; before Java 19, others may have more."""

_LEAST_NORMAL: Final = "1.17549435E-38D"
_LONE_REALS: Final = {
    "2.24E-44": "2.2E-44",
    "9.9E-44": "9.9E-44",
    "1.794E-43": "1.8E-43",
    "7.175E-43": "7.17E-43",
    "1.14794E-41": "1.148E-41",
    "9.18355E-41": "9.1835E-41",
}
"""The texts of reals below the normal ones that Java writes otherwise before Java 19."""
_LONE_POWERS: Final = {
    "1.26217745E-29": "1.2621775E-29",
    "1.54742505E26": "1.5474251E26",
    "1.23794004E27": "1.2379401E27",
}
"""Powers of two with nine digits, and their shortest texts: only the one above is near enough."""


def shown_real(text: str) -> str:
    """Write a real like Trino: its shortest text, as a double, rounded half-even to seven digits."""
    size, java = f"abs({text})", f"CAST({text} AS STRING)"
    number = f"CAST({java} AS DOUBLE)"
    lone = " ".join(
        f"WHEN {real}F THEN signum({text}) * {shortest}D" for real, shortest in _LONE_REALS.items()
    )
    double = (
        f"CASE WHEN {EXACT_REALS.format(size=size)} THEN {number} WHEN {size} < {_LEAST_NORMAL}"
        f" THEN CASE {size} {lone} ELSE {number} END ELSE CAST({shortest_real(text)} AS DOUBLE) END"
    )
    return _shown(text, double, _SEVEN_DIGITS)


def shortest_real(text: str) -> str:
    """Write the fewest digits that identify a normal real.

    Every shorter text is among those tried, from six digits. Of two equally near ones the even one
    is chosen.
    """

    def rounded(digits: int) -> str:
        return f"format_number({text}, '0.0{'#' * (digits - 2)}E0')"

    cases = " ".join(
        f"WHEN CAST({rounded(digits)} AS FLOAT) = {text} THEN {rounded(digits)}"
        for digits in (6, 7, 8)
    )
    last = rounded(9)
    for long, short in _LONE_POWERS.items():
        last = f"replace({last}, '{long}', '{short}')"
    return f"CASE {cases} ELSE {last} END"
