"""Texts of real and double values, as Trino and Java write them."""

from __future__ import annotations

from typing import Final

__all__ = ["EXACT_REALS", "shortest_real", "shown_double", "shown_real"]


def shown_double(text: str) -> str:
    """Write a double like Trino: 1.0E0, 1.23456789E5.

    From 10,000,000, and below 0.001, this is how Java writes it. The first condition and all
    values have Java's text, so Spark makes it once for each row.
    """
    size, java = f"abs({text})", f"CAST({text} AS STRING)"
    negative = f"IF({text} < 0, 1, 0)"
    powers = " ".join(f"WHEN {size} < 1e{power + 1}D THEN 'E{power}'" for power in range(6))
    whole = f"rtrim('0', replace({java}, '.0', ''))"
    broken = _pointed(f"replace({java}, '.', '')", negative)
    digits = (
        f"CASE WHEN {text} % 1D <> 0 THEN {broken} WHEN"
        f" char_length({whole}) = 1 + {negative} THEN concat({whole}, '.0') ELSE"
        f" {_pointed(whole, negative)} END"
    )
    places = f"CASE WHEN {size} >= 0.1D THEN 1 WHEN {size} >= 0.01D THEN 2 ELSE 3 END"
    first = f"({places} + {negative} + 2)"
    fraction = (
        f"concat(IF({text} < 0, '-', ''), substring({java}, {first}, 1), '.',"
        f" coalesce(nullif(substring({java}, {first} + 1), ''), '0'), 'E-', {places})"
    )
    return (
        f"CASE WHEN {java} IN ('0.0', '-0.0') THEN replace({java}, '.0', 'E0') WHEN {size} >= 1D"
        f" AND {size} < 1e7D THEN concat({digits}, CASE {powers} ELSE 'E6' END) WHEN {size} >="
        f" 0.001D AND {size} < 1D THEN {fraction} ELSE {java} END"
    )


def _pointed(digits: str, sign: str) -> str:
    """Write digits with a point behind the first one, which follows a ``sign`` of 0 or 1 letters."""
    return f"overlay({digits} PLACING '.' FROM 2 + {sign} FOR 0)"


EXACT_REALS: Final = "{size} >= 1e-8D AND {size} < 1e7D"
"""The sizes of reals whose text in Java has the fewest digits; before Java 19, others may have more."""

_SEVEN_DIGITS: Final = "'0.0#####E0'"
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
    """Write a real like Trino: its shortest text, as a double, rounded half-even to seven digits.

    Both engines round by Java's DecimalFormat.
    """
    size, java = f"abs({text})", f"CAST({text} AS STRING)"
    number = f"CAST({java} AS DOUBLE)"
    lone = " ".join(
        f"WHEN {real}F THEN signum({text}) * {shortest}D" for real, shortest in _LONE_REALS.items()
    )
    double = (
        f"CASE WHEN {EXACT_REALS.format(size=size)} THEN {number} WHEN {size} < {_LEAST_NORMAL}"
        f" THEN CASE {size} {lone} ELSE {number} END ELSE CAST({shortest_real(text)} AS DOUBLE) END"
    )
    return (
        f"CASE WHEN {java} IN ('0.0', '-0.0') THEN replace({java}, '.0', 'E0') WHEN {size} <"
        f" CAST('Infinity' AS FLOAT) THEN format_number({double}, {_SEVEN_DIGITS}) ELSE {java} END"
    )


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
