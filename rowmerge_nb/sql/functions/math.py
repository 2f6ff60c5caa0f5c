"""Numbers: rounding, logarithms, trigonometry, bases, bits."""

from __future__ import annotations

from typing import Final

ROWS: Final = r"""
abs(tinyint) -> tinyint | IF({0} = -128Y, {fail:NUMERIC_VALUE_OUT_OF_RANGE:Value -128 is out of range for abs(tinyint)}, abs({0})) | CASE WHEN {0} = CAST('-128' AS TINYINT) THEN {fail:NUMERIC_VALUE_OUT_OF_RANGE:Value -128 is out of range for abs(tinyint)} ELSE abs({0}) END
abs(smallint) -> smallint | IF({0} = -32768S, {fail:NUMERIC_VALUE_OUT_OF_RANGE:Value -32768 is out of range for abs(smallint)}, abs({0})) | CASE WHEN {0} = CAST('-32768' AS SMALLINT) THEN {fail:NUMERIC_VALUE_OUT_OF_RANGE:Value -32768 is out of range for abs(smallint)} ELSE abs({0}) END
abs(integer) -> integer | IF({0} = -2147483648, {fail:NUMERIC_VALUE_OUT_OF_RANGE:Value -2147483648 is out of range for abs(integer)}, abs({0})) | CASE WHEN {0} = CAST('-2147483648' AS INTEGER) THEN {fail:NUMERIC_VALUE_OUT_OF_RANGE:Value -2147483648 is out of range for abs(integer)} ELSE abs({0}) END
abs(bigint) -> bigint | IF({0} = -9223372036854775808BD, {fail:NUMERIC_VALUE_OUT_OF_RANGE:Value -9223372036854775808 is out of range for abs(bigint)}, abs({0})) | CASE WHEN {0} = CAST('-9223372036854775808' AS BIGINT) THEN {fail:NUMERIC_VALUE_OUT_OF_RANGE:Value -9223372036854775808 is out of range for abs(bigint)} ELSE abs({0}) END
abs(decimal(p,s)) -> decimal(p,s) | {absolute} | abs({0})
abs(real) -> real | abs({0}) | abs({0})
abs(double) -> double | abs({0}) | abs({0})
abs(number) -> number ! number has casts, equality and no other operation here
sign(tinyint) -> tinyint | CAST(sign({0}) AS TINYINT) | CAST(sign({0}) AS TINYINT)
sign(smallint) -> smallint | CAST(sign({0}) AS SMALLINT) | CAST(sign({0}) AS SMALLINT)
sign(integer) -> integer | CAST(sign({0}) AS INT) | CAST(sign({0}) AS INTEGER)
sign(bigint) -> bigint | CAST(sign({0}) AS BIGINT) | CAST(sign({0}) AS BIGINT)
sign(decimal(p,s)) -> decimal(1,0) | CAST(sign({0}) AS DECIMAL(1,0)) | CAST(sign({0}) AS DECIMAL(1,0))
sign(real) -> real | CAST(sign({0}) AS FLOAT) | CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS FLOAT) END
sign(double) -> double | sign({0}) | CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END
sign(number) -> number ! number has casts, equality and no other operation here
round(tinyint) -> tinyint | {0} | {0}
round(smallint) -> smallint | {0} | {0}
round(integer) -> integer | {0} | {0}
round(bigint) -> bigint | {0} | {0}
round(decimal(p,s)) -> rounded | CAST(round({0}) AS {type}) | CAST(round({0}, 0) AS {type})
round(real) -> real | CAST({rounded 0} AS FLOAT) | CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496.0::DOUBLE THEN {0} WHEN {0} = 0 THEN 0.0::FLOAT ELSE round({0}) END
round(double) -> double | {rounded 0} | {rounded}
round(number) -> number ! number has casts, equality and no other operation here
round(tinyint, integer) -> tinyint | {far rounding} -128BD AND 127BD THEN CAST({rounded far} AS TINYINT) ELSE {fail:NUMERIC_VALUE_OUT_OF_RANGE:Out of range for tinyint: $(round($0 / CAST(power(10D, -$1) AS DECIMAL(19,0))) * CAST(power(10D, -$1) AS DECIMAL(19,0)))} END
round(smallint, integer) -> smallint | {far rounding} -32768BD AND 32767BD THEN CAST({rounded far} AS SMALLINT) ELSE {fail:NUMERIC_VALUE_OUT_OF_RANGE:Out of range for smallint: $(round($0 / CAST(power(10D, -$1) AS DECIMAL(19,0))) * CAST(power(10D, -$1) AS DECIMAL(19,0)))} END
round(integer, integer) -> integer | {far rounding} -2147483648BD AND 2147483647BD THEN CAST({rounded far} AS INT) ELSE {fail:NUMERIC_VALUE_OUT_OF_RANGE:Out of range for integer: $(round($0 / CAST(power(10D, -$1) AS DECIMAL(19,0))) * CAST(power(10D, -$1) AS DECIMAL(19,0)))} END
round(bigint, integer) -> bigint | {far rounding} -9223372036854775808BD AND 9223372036854775807BD THEN CAST({rounded far} AS BIGINT) ELSE {fail:NUMERIC_VALUE_OUT_OF_RANGE:numerical overflow: $0} END
round(decimal(p,s), integer) -> rounded_to | {rounded decimal}
round(real, integer) -> real | CAST({rounded 0 to 1} AS FLOAT)
round(double, integer) -> double | {rounded 0 to 1} | {rounded to}
round(number, integer) -> number ! number has casts, equality and no other operation here
floor(tinyint) -> tinyint | {0} | {0}
floor(smallint) -> smallint | {0} | {0}
floor(integer) -> integer | {0} | {0}
floor(bigint) -> bigint | {0} | {0}
floor(decimal(p,s)) -> rounded | CAST(floor({0}) AS {type}) | CAST(floor({0}) AS {type})
floor(real) -> real | CAST({floor 0} AS FLOAT) | floor({0})
floor(double) -> double | {floor 0} | floor({0})
floor(number) -> number ! number has casts, equality and no other operation here
ceil(tinyint) -> tinyint | {0} | {0}
ceil(smallint) -> smallint | {0} | {0}
ceil(integer) -> integer | {0} | {0}
ceil(bigint) -> bigint | {0} | {0}
ceil(decimal(p,s)) -> rounded | CAST(ceil({0}) AS {type}) | CAST(ceil({0}) AS {type})
ceil(real) -> real | CAST({ceil 0} AS FLOAT) | ceil({0})
ceil(double) -> double | {ceil 0} | ceil({0})
ceil(number) -> number ! number has casts, equality and no other operation here
ceiling(tinyint) -> tinyint | {0} | {0}
ceiling(smallint) -> smallint | {0} | {0}
ceiling(integer) -> integer | {0} | {0}
ceiling(bigint) -> bigint | {0} | {0}
ceiling(decimal(p,s)) -> rounded | CAST(ceil({0}) AS {type}) | CAST(ceiling({0}) AS {type})
ceiling(real) -> real | CAST({ceil 0} AS FLOAT) | ceiling({0})
ceiling(double) -> double | {ceil 0} | ceiling({0})
ceiling(number) -> number ! number has casts, equality and no other operation here
truncate(decimal(p,s)) -> truncated | CAST(IF({0} < 0, ceil({0}), floor({0})) AS {type}) | CAST(CASE WHEN {0} < 0 THEN ceil({0}) ELSE floor({0}) END AS {type})
truncate(real) -> real | CAST({truncated 0} AS FLOAT) | trunc({0})
truncate(double) -> double | {truncated 0} | trunc({0})
truncate(number) -> number ! number has casts, equality and no other operation here
truncate(decimal(p,s), integer) -> decimal(p,s) | {truncated decimal}
mod(tinyint, tinyint) -> tinyint | ({0} % {divisor:1}) | {remainder}
mod(smallint, smallint) -> smallint | ({0} % {divisor:1}) | {remainder}
mod(integer, integer) -> integer | ({0} % {divisor:1}) | {remainder}
mod(bigint, bigint) -> bigint | ({0} % {divisor:1}) | {remainder}
mod(decimal(p,s), decimal(q,t)) -> remainder | CAST({0} % {divisor:1} AS {type})
mod(real, real) -> real | IF({1} = 0, CAST('NaN' AS FLOAT) + {0}, {0} % {1}) | ({0} % {1})
mod(double, double) -> double | IF({1} = 0, {nan} + {0}, {0} % {1}) | ({0} % {1})
mod(number, number) -> number ! number has casts, equality and no other operation here
power(double, double) -> double | power({0}, {1})
pow = power
sqrt(double) -> double | sqrt({0}) | CASE WHEN {0} < 0 THEN 'nan'::DOUBLE ELSE sqrt({0}) END
cbrt(double) -> double | cbrt({0})
exp(double) -> double | exp({0})
ln(double) -> double | CASE WHEN {0} > 0 THEN ln({0}) WHEN {0} = 0 THEN {-inf} WHEN {0} IS NOT NULL THEN {nan} END
log2(double) -> double | CASE WHEN {0} > 0 THEN log2({0}) WHEN {0} = 0 THEN {-inf} WHEN {0} IS NOT NULL THEN {nan} END
log10(double) -> double | CASE WHEN {0} > 0 THEN log10({0}) WHEN {0} = 0 THEN {-inf} WHEN {0} IS NOT NULL THEN {nan} END
log(double, double) -> double | CASE WHEN {0} > 0 AND {1} > 0 THEN log({0}, {1}) WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {0} < 0 OR {1} < 0 OR isnan({0}) OR isnan({1}) OR ({0} = 0 AND ({1} = 0 OR {1} = {inf})) OR ({1} = 0 AND {0} = {inf}) THEN {nan} WHEN {1} = 0 THEN IF({0} < 1, {inf}, {-inf}) WHEN {1} < 1 THEN 0D ELSE -0D END
sin(double) -> double | sin({0})
cos(double) -> double | cos({0})
tan(double) -> double | tan({0})
asin(double) -> double | asin({0})
acos(double) -> double | acos({0})
atan(double) -> double | atan({0})
sinh(double) -> double | sinh({0})
cosh(double) -> double | cosh({0})
tanh(double) -> double | tanh({0})
degrees(double) -> double | degrees({0})
radians(double) -> double | radians({0})
atan2(double, double) -> double | IF({0} = 0 AND {1} <= {inf}, {angle of zero}, atan2({0}, {1}))
great_circle_distance(double, double, double, double) -> double | CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL OR {3} IS NULL THEN NULL WHEN abs({0}) > 90 THEN {no latitude} WHEN abs({1}) > 180 THEN {no longitude} WHEN abs({2}) > 90 THEN {no latitude} WHEN abs({3}) > 180 THEN {no longitude} ELSE atan2(sqrt({to the east} * {to the east} + {to the north} * {to the north}), {towards}) * 6371.01D END
pi() -> double | pi() | 3.141592653589793::DOUBLE
e() -> double | e() | 2.718281828459045::DOUBLE
nan() -> double | {nan} | 'nan'::DOUBLE
infinity() -> double | {inf} | 'inf'::DOUBLE
is_nan(real) -> boolean | IF({0} IS NULL, NULL, isnan({0}))
is_nan(double) -> boolean | IF({0} IS NULL, NULL, isnan({0})) | isnan({0})
is_nan(number) -> boolean ! number has casts, equality and no other operation here
is_infinite(double) -> boolean | (abs({0}) = {inf}) | isinf({0})
is_infinite(number) -> boolean ! number has casts, equality and no other operation here
is_finite(double) -> boolean | (abs({0}) < {inf}) | isfinite({0})
is_finite(number) -> boolean ! number has casts, equality and no other operation here
random() -> double | rand()
random(tinyint) -> tinyint | {random below}
random(smallint) -> smallint | {random below}
random(integer) -> integer | {random below}
random(bigint) -> bigint | {random below}
random(tinyint, tinyint) -> tinyint | {random within}
random(smallint, smallint) -> smallint | {random within}
random(integer, integer) -> integer | {random within}
random(bigint, bigint) -> bigint | {random within}
rand = random
to_base(bigint, bigint) -> varchar(64) | IF({1} BETWEEN 2 AND 36, lower(conv(CAST({0} AS STRING), 10, {int:1} * -1)), IF({0} IS NULL OR {1} IS NULL, NULL, {fail:INVALID_FUNCTION_ARGUMENT:Radix must be between 2 and 36}))
from_base(varchar(x), bigint) -> bigint | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} NOT BETWEEN 2 AND 36 THEN {fail:INVALID_FUNCTION_ARGUMENT:Radix must be between 2 and 36} WHEN NOT {0} RLIKE '^[+-]?[0-9A-Za-z]+\\z' OR exists(split({digits}, ''), c -> instr({alphabet}, c) > {1}) OR {number} NOT BETWEEN -9223372036854775808BD AND 9223372036854775807BD THEN {fail:INVALID_FUNCTION_ARGUMENT:Not a valid base-$1 number: $0} ELSE CAST({number} AS BIGINT) END
width_bucket(double, double, double, bigint) -> bigint | CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL OR {3} IS NULL THEN NULL WHEN {3} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:bucketCount must be greater than 0} WHEN isnan({0}) THEN {fail:INVALID_FUNCTION_ARGUMENT:operand must not be NaN} WHEN isnan({1}) OR abs({1}) = {inf} THEN {fail:INVALID_FUNCTION_ARGUMENT:first bound must be finite} WHEN isnan({2}) OR abs({2}) = {inf} THEN {fail:INVALID_FUNCTION_ARGUMENT:second bound must be finite} WHEN {1} = {2} THEN {fail:INVALID_FUNCTION_ARGUMENT:bounds cannot equal each other} WHEN {0} < least({1}, {2}) THEN IF({1} > {2}, {3} + 1, 0L) WHEN {0} >= greatest({1}, {2}) THEN IF({1} > {2}, 0L, {3} + 1) WHEN {1} > {2} THEN {3} - {bucket} + 1 ELSE {bucket} END
width_bucket(double, array(double)) -> bigint | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN size({1}) = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Bins cannot be an empty array} WHEN isnan({0}) THEN {fail:INVALID_FUNCTION_ARGUMENT:Operand cannot be NaN} ELSE {searched bins} END
bit_count(bigint, bigint) -> bigint | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} = 64 THEN CAST(bit_count({0}) AS BIGINT) WHEN {1} NOT BETWEEN 2 AND 64 THEN {fail:INVALID_FUNCTION_ARGUMENT:Bits specified in bit_count must be between 2 and 64, got $1} WHEN {0} NOT BETWEEN -shiftleft(1L, {int:1} - 1) AND shiftleft(1L, {int:1} - 1) - 1 THEN {fail:INVALID_FUNCTION_ARGUMENT:Number must be representable with the bits specified. $0 cannot be represented with $1 bits} ELSE CAST(bit_count({0} & (shiftleft(1L, {int:1}) - 1)) AS BIGINT) END
bitwise_and(bigint, bigint) -> bigint | ({0} & {1}) | ({0} & {1})
bitwise_or(bigint, bigint) -> bigint | {either bit} | {either bit}
bitwise_xor(bigint, bigint) -> bigint | ({0} ^ {1}) | xor({0}, {1})
bitwise_not(bigint) -> bigint | (~{0}) | (~{0})
bitwise_left_shift(tinyint, integer) -> tinyint | IF({1} >= 64, {0} * 0Y, CAST(shiftright(shiftleft(shiftleft(CAST({0} AS BIGINT), {1}), 56), 56) AS TINYINT))
bitwise_right_shift(tinyint, integer) -> tinyint | CASE WHEN {1} >= 64 THEN {0} * 0Y WHEN {1} = 0 THEN {0} ELSE CAST(shiftrightunsigned(CAST({0} AS BIGINT) & 255L, {1}) AS TINYINT) END
bitwise_right_shift_arithmetic(tinyint, integer) -> tinyint | IF({1} >= 64, IF({0} >= 0, 0Y, IF({0} IS NULL, NULL, -1Y)), CAST(shiftright(CAST({0} AS BIGINT), {1}) AS TINYINT))
bitwise_left_shift(smallint, integer) -> smallint | IF({1} >= 64, {0} * 0S, CAST(shiftright(shiftleft(shiftleft(CAST({0} AS BIGINT), {1}), 48), 48) AS SMALLINT))
bitwise_right_shift(smallint, integer) -> smallint | CASE WHEN {1} >= 64 THEN {0} * 0S WHEN {1} = 0 THEN {0} ELSE CAST(shiftrightunsigned(CAST({0} AS BIGINT) & 65535L, {1}) AS SMALLINT) END
bitwise_right_shift_arithmetic(smallint, integer) -> smallint | IF({1} >= 64, IF({0} >= 0, 0S, IF({0} IS NULL, NULL, -1S)), CAST(shiftright(CAST({0} AS BIGINT), {1}) AS SMALLINT))
bitwise_left_shift(integer, integer) -> integer | IF({1} >= 64, {0} * 0, CAST(shiftright(shiftleft(shiftleft(CAST({0} AS BIGINT), {1}), 32), 32) AS INT))
bitwise_right_shift(integer, integer) -> integer | CASE WHEN {1} >= 64 THEN {0} * 0 WHEN {1} = 0 THEN {0} ELSE CAST(shiftrightunsigned(CAST({0} AS BIGINT) & 4294967295L, {1}) AS INT) END
bitwise_right_shift_arithmetic(integer, integer) -> integer | IF({1} >= 64, IF({0} >= 0, 0, IF({0} IS NULL, NULL, -1)), CAST(shiftright(CAST({0} AS BIGINT), {1}) AS INT))
bitwise_left_shift(bigint, integer) -> bigint | IF({1} >= 64, {0} * 0L, shiftleft({0}, {1}))
bitwise_right_shift(bigint, integer) -> bigint | IF({1} >= 64, {0} * 0L, shiftrightunsigned({0}, {1}))
bitwise_right_shift_arithmetic(bigint, integer) -> bigint | IF({1} >= 64, IF({0} >= 0, 0L, IF({0} IS NULL, NULL, -1L)), shiftright({0}, {1}))
"""


def half_up(number: str) -> str:
    """Write a positive float rounded half up, without Spark's `round`, which makes a BigDecimal.

    The difference from the nearest integer is exact.
    """
    return f"(rint({number}) + IF({number} - rint({number}) = 0.5D, 1D, 0D))"


FRAGMENTS: Final = {
    "far rounding": "CASE WHEN {1} >= 0 THEN {0} WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} <= -19 THEN {fail:NUMERIC_VALUE_OUT_OF_RANGE:numerical overflow: $0} WHEN {rounded far} BETWEEN",
    "random below": (
        "IF({0} <= 0, {fail:INVALID_FUNCTION_ARGUMENT:bound must be positive}, CAST(floor(rand() * {0}) AS {type}))"
    ),
    "random within": (
        "IF({0} >= {1}, {fail:INVALID_FUNCTION_ARGUMENT:start value must be less than stop value}, CAST(floor({0} + rand() * (CAST({1} AS DOUBLE) - {0})) AS {type}))"
    ),
    "either bit": "({0} | {1})",
    "rounded 0 to 1": (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {factor} = 0 AND abs({0}) < {inf} THEN"
        " {nan} WHEN abs({0} * {factor}) >= {inf} THEN {0} WHEN abs({0} * {factor}) >="
        " 4503599627370496D THEN {0} * {factor} / {factor} WHEN {0} < 0 THEN -("
        + half_up("(-{0} * {factor})")
        + " / {factor}) ELSE "
        + half_up("({0} * {factor})")
        + " / {factor} END"
    ),
    "factor": "power(10D, {1})",
    "rounded 0": (
        "CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496D THEN {0} WHEN {0} < 0 THEN -"
        + half_up("(-{0})")
        + " ELSE "
        + half_up("{0}")
        + " END"
    ),
    "rounded far": "(round({0} / {step}) * {step})",
    "step": "CAST(power(10D, -{1}) AS DECIMAL(19,0))",
    "rounded decimal": "CAST(round({0}, {1}) AS {type})",
    # Java cannot truncate two thousand million digits before the decimal point.
    "truncated decimal": (
        "IF({1} IS NULL, NULL, CAST(IF({0} < 0, ceil({0}, greatest({1}, -39)), floor({0},"
        " greatest({1}, -39))) AS {type}))"
    ),
    "floor 0": (
        "IF(isnan({0}) OR abs({0}) >= 4503599627370496D OR {0} = 0, {0}, CAST(floor({0}) AS"
        " DOUBLE))"
    ),
    "ceil 0": (
        "CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496D OR {0} = 0 THEN {0} WHEN {0} < 0 AND"
        " {0} > -1 THEN -0.0D ELSE CAST(ceil({0}) AS DOUBLE) END"
    ),
    "truncated 0": (
        "CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496D OR {0} = 0 THEN {0} WHEN {0} < 0 AND"
        " {0} > -1 THEN -0.0D WHEN {0} < 0 THEN CAST(ceil({0}) AS DOUBLE) ELSE CAST(floor({0}) AS"
        " DOUBLE) END"
    ),
    # Spark's function treats -0.0 as 0.0.
    "angle of zero": (
        "(IF(CAST({0} AS STRING) LIKE '-%', -1D, 1D) * IF(CAST({1} AS STRING) LIKE '-%', pi(), 0D))"
    ),
    "inf": "CAST('Infinity' AS DOUBLE)",
    "-inf": "CAST('-Infinity' AS DOUBLE)",
    "nan": "CAST('NaN' AS DOUBLE)",
    "alphabet": "'0123456789abcdefghijklmnopqrstuvwxyz'",
    "digits": "lower(regexp_replace({0}, '^[+-]', ''))",
    # Sums up to just above 64 bits: longer ones fail anyway.
    "number": (
        "(IF({0} LIKE '-%', -1, 1) * reduce(split({digits}, ''), CAST(0 AS DECIMAL(38,0)), (n, c)"
        " -> CAST(least(n * {1} + instr({alphabet}, c) - 1, 100000000000000000000BD) AS"
        " DECIMAL(38,0))))"
    ),
    "no latitude": "{fail:INVALID_FUNCTION_ARGUMENT:Latitude must be between -90 and 90}",
    "no longitude": "{fail:INVALID_FUNCTION_ARGUMENT:Longitude must be between -180 and 180}",
    # Three sides of a path on a sphere, between latitudes and longitudes.
    "to the east": "(cos(radians({2})) * sin(radians({1}) - radians({3})))",
    "to the north": (
        "(cos(radians({0})) * sin(radians({2})) - sin(radians({0})) * cos(radians({2})) *"
        " cos(radians({1}) - radians({3})))"
    ),
    "towards": (
        "(sin(radians({0})) * sin(radians({2})) + cos(radians({0})) * cos(radians({2})) *"
        " cos(radians({1}) - radians({3})))"
    ),
    "bucket": (
        "CAST(floor({3} * ({0} - least({1}, {2})) / (greatest({1}, {2}) - least({1}, {2})) + 1) AS"
        " BIGINT)"
    ),
    # Trino halves the bins until one remains, and checks only those visited: NULL counts as 0 and
    # as ordered.
    "searched bins": (
        "aggregate({1}, named_struct('low', 0L, 'high', CAST(size({1}) AS BIGINT)), (s, b) -> CASE"
        " WHEN s.low >= s.high THEN s WHEN {1}[s.low] > {1}[s.high - 1] AND NOT isnan({1}[s.low])"
        " THEN {fail:INVALID_FUNCTION_ARGUMENT:Bin values are not sorted in ascending order} WHEN"
        " isnan({halving bin}) OR abs({halving bin}) = {inf} THEN"
        " {fail:INVALID_FUNCTION_ARGUMENT:Bin value must be finite, got $($1[(s.low + s.high) div"
        " 2])} WHEN {0} < coalesce({halving bin}, 0D) THEN named_struct('low', s.low, 'high',"
        " (s.low + s.high) div 2) ELSE named_struct('low', (s.low + s.high) div 2 + 1, 'high',"
        " s.high) END, s -> s.low)"
    ),
    "halving bin": "{1}[(s.low + s.high) div 2]",
}
"""Parts that several templates share, as ``{name}``."""

DUCKDB_FRAGMENTS: Final = {
    "either bit": "({0} | {1})",
    "large": "abs({0}) >= 4503599627370496.0::DOUBLE OR isnan({0})",
    "rounded": "CASE WHEN {large} THEN {0} WHEN {0} = 0 THEN 0.0::DOUBLE ELSE round({0}) END",
    "scale": "pow(10.0::DOUBLE, {1})",
    "rounded to": (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {scale} = 0 AND isfinite({0}) THEN"
        " 'nan'::DOUBLE WHEN NOT isfinite({0} * {scale}) THEN {0} WHEN abs({0} * {scale}) >="
        " 4503599627370496.0::DOUBLE THEN {0} * {scale} / {scale} WHEN {0} = 0 THEN 0.0::DOUBLE"
        " ELSE round({0} * {scale}) / {scale} END"
    ),
    # In DuckDB, the remainder of the lowest number by -1 overflows.
    "remainder": (
        "CASE WHEN {1} = 0 THEN CASE WHEN {0} IS NOT NULL THEN {fail:DIVISION_BY_ZERO:Division by"
        " zero} END WHEN {1} = -1 THEN CAST({0} - {0} AS {type}) ELSE CAST({0} % {1} AS {type}) END"
    ),
}
"""Shared parts of DuckDB SQL templates."""
