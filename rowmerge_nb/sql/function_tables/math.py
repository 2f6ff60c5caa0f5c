"""Numbers: rounding, logarithms, trigonometry, bits."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
abs(tinyint) -> tinyint | abs({0})
abs(smallint) -> smallint | abs({0})
abs(integer) -> integer | abs({0})
abs(bigint) -> bigint | abs({0})
abs(decimal(p,s)) -> first | abs({0})
abs(real) -> real | abs({0})
abs(double) -> double | abs({0})
sign(integer) -> integer | CAST(sign({0}) AS INT)
sign(bigint) -> bigint | CAST(sign({0}) AS BIGINT)
sign(decimal(p,s)) -> decimal(1,0) | CAST(sign({0}) AS DECIMAL(1,0))
sign(double) -> double | sign({0})
round(tinyint) -> tinyint | {0}
round(smallint) -> smallint | {0}
round(integer) -> integer | {0}
round(bigint) -> bigint | {0}
round(decimal(p,s)) -> rounded | CAST(round({0}) AS {type})
round(real) -> real | CAST(round({0}) AS FLOAT)
round(double) -> double | IF({0} < 0 AND {0} > -0.5, -0.0D, round({0}))
round(integer, integer) -> integer | round({0}, {1})
round(bigint, integer) -> bigint | round({0}, {1})
round(decimal(p,s), integer) -> rounded_to | CAST(round({0}, {1}) AS {type})
round(double, integer) -> double | IF({0} < 0 AND round({0}, {1}) = 0, -0.0D, round({0}, {1}))
floor(tinyint) -> tinyint | {0}
floor(smallint) -> smallint | {0}
floor(integer) -> integer | {0}
floor(bigint) -> bigint | {0}
floor(decimal(p,s)) -> rounded | CAST(floor({0}) AS {type})
floor(double) -> double | IF(isnan({0}) OR abs({0}) >= 4503599627370496D OR {0} = 0, {0}, CAST(floor({0}) AS DOUBLE))
ceil(tinyint) -> tinyint | {0}
ceil(smallint) -> smallint | {0}
ceil(integer) -> integer | {0}
ceil(bigint) -> bigint | {0}
ceil(decimal(p,s)) -> rounded | CAST(ceil({0}) AS {type})
ceil(double) -> double | CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496D OR {0} = 0 THEN {0} WHEN {0} < 0 AND {0} > -1 THEN -0.0D ELSE CAST(ceil({0}) AS DOUBLE) END
ceiling(integer) -> integer | {0}
ceiling(bigint) -> bigint | {0}
ceiling(decimal(p,s)) -> rounded | CAST(ceil({0}) AS {type})
ceiling(double) -> double | CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496D OR {0} = 0 THEN {0} WHEN {0} < 0 AND {0} > -1 THEN -0.0D ELSE CAST(ceil({0}) AS DOUBLE) END
truncate(decimal(p,s)) -> truncated | CAST(IF({0} < 0, ceil({0}), floor({0})) AS {type})
truncate(double) -> double | CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496D OR {0} = 0 THEN {0} WHEN {0} < 0 AND {0} > -1 THEN -0.0D WHEN {0} < 0 THEN CAST(ceil({0}) AS DOUBLE) ELSE CAST(floor({0}) AS DOUBLE) END
truncate(decimal(p,s), integer) -> first | CAST(IF({0} < 0, ceil({0}, {1}), floor({0}, {1})) AS {type})
mod(tinyint, tinyint) -> tinyint | ({0} % {1})
mod(smallint, smallint) -> smallint | ({0} % {1})
mod(integer, integer) -> integer | ({0} % {1})
mod(bigint, bigint) -> bigint | ({0} % {1})
mod(decimal(p,s), decimal(p,s)) -> remainder | CAST({0} % {1} AS {type})
mod(double, double) -> double | IF({1} = 0, CAST('NaN' AS DOUBLE) + {0}, {0} % {1})
power(double, double) -> double | power({0}, {1})
pow(double, double) -> double | power({0}, {1})
sqrt(double) -> double | sqrt({0})
cbrt(double) -> double | cbrt({0})
exp(double) -> double | exp({0})
ln(double) -> double | CASE WHEN {0} > 0 THEN ln({0}) WHEN {0} = 0 THEN CAST('-Infinity' AS DOUBLE) WHEN {0} IS NULL THEN NULL ELSE CAST('NaN' AS DOUBLE) END
log10(double) -> double | CASE WHEN {0} > 0 THEN log10({0}) WHEN {0} = 0 THEN CAST('-Infinity' AS DOUBLE) WHEN {0} IS NULL THEN NULL ELSE CAST('NaN' AS DOUBLE) END
log2(double) -> double | CASE WHEN {0} > 0 THEN log2({0}) WHEN {0} = 0 THEN CAST('-Infinity' AS DOUBLE) WHEN {0} IS NULL THEN NULL ELSE CAST('NaN' AS DOUBLE) END
log(double, double) -> double | log({0}, {1})
sin(double) -> double | sin({0})
cos(double) -> double | cos({0})
tan(double) -> double | tan({0})
asin(double) -> double | asin({0})
acos(double) -> double | acos({0})
atan(double) -> double | atan({0})
atan2(double, double) -> double | atan2({0}, {1})
degrees(double) -> double | degrees({0})
radians(double) -> double | radians({0})
pi() -> double | pi()
e() -> double | e()
nan() -> double | CAST('NaN' AS DOUBLE)
infinity() -> double | CAST('Infinity' AS DOUBLE)
is_nan(double) -> boolean | IF({0} IS NULL, NULL, isnan({0}))
is_infinite(double) -> boolean | (abs({0}) = CAST('Infinity' AS DOUBLE))
is_finite(double) -> boolean | (abs({0}) < CAST('Infinity' AS DOUBLE))
random() -> double | rand()
rand() -> double | rand()
bitwise_and(bigint, bigint) -> bigint | ({0} & {1})
bitwise_or(bigint, bigint) -> bigint | ({0} | {1})
bitwise_xor(bigint, bigint) -> bigint | ({0} ^ {1})
bitwise_not(bigint) -> bigint | (~{0})
bitwise_left_shift(integer, bigint) -> integer | shiftleft({0}, CAST({1} AS INT))
bitwise_left_shift(bigint, bigint) -> bigint | shiftleft({0}, CAST({1} AS INT))
bitwise_right_shift(integer, bigint) -> integer | shiftrightunsigned({0}, CAST({1} AS INT))
bitwise_right_shift(bigint, bigint) -> bigint | shiftrightunsigned({0}, CAST({1} AS INT))
"""
