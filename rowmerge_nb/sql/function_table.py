"""The table behind `rowmerge_nb.sql.functions`: nothing but data."""

from __future__ import annotations

from typing import Final

__all__ = ["AGGREGATES", "FRAGMENTS", "SCALARS", "WINDOWS"]

SCALARS: Final = r"""
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
upper(varchar) -> varchar | translate(upper(translate({0}, 'ß', '\uE0DF')), '\uE0DF', 'ß')
upper(char(x)) -> first | upper({0})
lower(varchar) -> varchar | lower(translate({0}, 'İ', 'i'))
lower(char(x)) -> first | lower({0})
length(varchar) -> bigint | CAST(char_length({0}) AS BIGINT)
length(char(x)) -> bigint | CAST(char_length({0}) AS BIGINT)
length(varbinary) -> bigint | CAST(octet_length({0}) AS BIGINT)
substr(varchar, bigint) -> varchar | CASE WHEN {1} = 0 OR {1} < -char_length({0}) THEN IF({0} IS NULL, NULL, '') ELSE substring({0}, CAST({1} AS INT)) END
substr(varchar, bigint, bigint) -> varchar | CASE WHEN {1} = 0 OR {1} < -char_length({0}) OR {2} <= 0 THEN IF({0} IS NULL OR {1} IS NULL OR {2} IS NULL, NULL, '') ELSE substring({0}, CAST({1} AS INT), CAST({2} AS INT)) END
strpos(varchar, varchar) -> bigint | CAST(instr({0}, {1}) AS BIGINT)
strpos(varchar, varchar, bigint) -> bigint | CASE WHEN {2} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:'instance' must not be 0} WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {1} = '' THEN 1L ELSE coalesce(CAST(try_element_at(filter(sequence(1, greatest(char_length({0}), 1)), p -> substring({0}, p, char_length({1})) = {1}), CAST({2} AS INT)) AS BIGINT), 0L) END
hamming_distance(varchar, varchar) -> bigint | IF(char_length({0}) <> char_length({1}), {fail:INVALID_FUNCTION_ARGUMENT:The input strings to hamming_distance function must have the same length}, CAST(size(filter(zip_with(split({0}, ''), split({1}, ''), (x, y) -> x <> y), z -> z)) AS BIGINT))
trim(varchar) -> varchar | regexp_replace({0}, '^[\\s\\u0085\\u2000-\\u200A\\u2028\\u2029\\u205F\\u3000\\u1680]+|[\\s\\u0085\\u2000-\\u200A\\u2028\\u2029\\u205F\\u3000\\u1680]+$', '')
ltrim(varchar) -> varchar | regexp_replace({0}, '^[\\s\\u0085\\u2000-\\u200A\\u2028\\u2029\\u205F\\u3000\\u1680]+', '')
rtrim(varchar) -> varchar | regexp_replace({0}, '[\\s\\u0085\\u2000-\\u200A\\u2028\\u2029\\u205F\\u3000\\u1680]+$', '')
trim(varchar, varchar) -> varchar | trim(BOTH {1} FROM {0})
ltrim(varchar, varchar) -> varchar | trim(LEADING {1} FROM {0})
rtrim(varchar, varchar) -> varchar | trim(TRAILING {1} FROM {0})
lpad(varchar, bigint, varchar) -> varchar | lpad({0}, CAST({1} AS INT), {2})
rpad(varchar, bigint, varchar) -> varchar | rpad({0}, CAST({1} AS INT), {2})
replace(varchar, varchar) -> varchar | replace({0}, {1}, '')
replace(varchar, varchar, varchar) -> varchar | CASE WHEN {1} <> '' THEN replace({0}, {1}, {2}) WHEN {0} = '' THEN {2} WHEN {1} = '' THEN concat({2}, array_join(split({0}, ''), {2}), {2}) END
reverse(varchar) -> varchar | reverse({0})
reverse(array(T)) -> array(T) | reverse({0})
translate(varchar, varchar, varchar) -> varchar | translate({0}, {1}, {2})
starts_with(varchar, varchar) -> boolean | startswith({0}, {1})
split(varchar, varchar) -> array(varchar) | split({0}, concat('\\Q', {1}, '\\E'), -1)
split(varchar, varchar, bigint) -> array(varchar) | split({0}, concat('\\Q', {1}, '\\E'), CAST({2} AS INT))
split_part(varchar, varchar, bigint) -> varchar | IF({2} < 1, {fail:INVALID_FUNCTION_ARGUMENT:Index must be greater than zero}, get(split({0}, concat('\\Q', {1}, '\\E'), -1), CAST({2} - 1 AS INT)))
format(varchar, any...) -> varchar | format_string({*})
concat_ws(varchar, varchar...) -> varchar | concat_ws({*})
concat_ws(varchar, array(varchar)) -> varchar | concat_ws({*})
chr(bigint) -> varchar | decode(unhex(lpad(hex({0}), 8, '0')), 'UTF-32')
codepoint(varchar(x)) -> integer | CAST(conv(hex(encode({0}, 'UTF-32')), 16, 10) AS INT)
levenshtein_distance(varchar, varchar) -> bigint | CAST(levenshtein({0}, {1}) AS BIGINT)
regexp_like(varchar, varchar) -> boolean | regexp_like({0}, {1})
regexp_extract(varchar, varchar) -> varchar | IF(regexp_like({0}, {1}), regexp_extract({0}, {1}, 0), NULL)
regexp_extract(varchar, varchar, bigint) -> varchar | IF(regexp_like({0}, {1}), regexp_extract({0}, {1}, CAST({2} AS INT)), NULL)
regexp_extract_all(varchar, varchar) -> array(varchar) | regexp_extract_all({0}, {1}, 0)
regexp_replace(varchar, varchar) -> varchar | regexp_replace({0}, {1}, '')
regexp_replace(varchar, varchar, varchar) -> varchar | regexp_replace({0}, {1}, {2})
regexp_count(varchar, varchar) -> bigint | CAST(regexp_count({0}, {1}) AS BIGINT)
to_utf8(varchar) -> varbinary | encode({0}, 'UTF-8')
from_utf8(varbinary) -> varchar | decode({0}, 'UTF-8')
to_hex(varbinary) -> varchar | hex({0})
from_hex(varchar) -> varbinary | unhex({0})
to_base64(varbinary) -> varchar | base64({0})
from_base64(varchar) -> varbinary | unbase64({0})
md5(varbinary) -> varbinary | unhex(md5({0}))
sha1(varbinary) -> varbinary | unhex(sha1({0}))
sha256(varbinary) -> varbinary | unhex(sha2({0}, 256))
sha512(varbinary) -> varbinary | unhex(sha2({0}, 512))
crc32(varbinary) -> bigint | crc32({0})
uuid() -> uuid | uuid()
now() -> timestamp(6) with time zone | current_timestamp()
year(date) -> bigint | CAST(year({0}) AS BIGINT)
year(timestamp(6)) -> bigint | CAST(year({0}) AS BIGINT)
year(timestamp(6) with time zone) -> bigint | CAST(year({0}) AS BIGINT)
quarter(date) -> bigint | CAST(quarter({0}) AS BIGINT)
quarter(timestamp(6)) -> bigint | CAST(quarter({0}) AS BIGINT)
month(date) -> bigint | CAST(month({0}) AS BIGINT)
month(timestamp(6)) -> bigint | CAST(month({0}) AS BIGINT)
week(date) -> bigint | CAST(weekofyear({0}) AS BIGINT)
week(timestamp(6)) -> bigint | CAST(weekofyear({0}) AS BIGINT)
week_of_year(date) -> bigint | CAST(weekofyear({0}) AS BIGINT)
week_of_year(timestamp(6)) -> bigint | CAST(weekofyear({0}) AS BIGINT)
year_of_week(date) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)
year_of_week(timestamp(6)) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)
yow(date) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)
yow(timestamp(6)) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)
day(date) -> bigint | CAST(day({0}) AS BIGINT)
day(timestamp(6)) -> bigint | CAST(day({0}) AS BIGINT)
day_of_month(date) -> bigint | CAST(day({0}) AS BIGINT)
day_of_month(timestamp(6)) -> bigint | CAST(day({0}) AS BIGINT)
day_of_week(date) -> bigint | CAST(weekday({0}) + 1 AS BIGINT)
day_of_week(timestamp(6)) -> bigint | CAST(weekday({0}) + 1 AS BIGINT)
dow(date) -> bigint | CAST(weekday({0}) + 1 AS BIGINT)
dow(timestamp(6)) -> bigint | CAST(weekday({0}) + 1 AS BIGINT)
day_of_year(date) -> bigint | CAST(dayofyear({0}) AS BIGINT)
day_of_year(timestamp(6)) -> bigint | CAST(dayofyear({0}) AS BIGINT)
doy(date) -> bigint | CAST(dayofyear({0}) AS BIGINT)
doy(timestamp(6)) -> bigint | CAST(dayofyear({0}) AS BIGINT)
hour(timestamp(6)) -> bigint | CAST(hour({0}) AS BIGINT)
hour(timestamp(6) with time zone) -> bigint | CAST(hour({0}) AS BIGINT)
minute(timestamp(6)) -> bigint | CAST(minute({0}) AS BIGINT)
minute(timestamp(6) with time zone) -> bigint | CAST(minute({0}) AS BIGINT)
second(timestamp(6)) -> bigint | CAST(second({0}) AS BIGINT)
second(timestamp(6) with time zone) -> bigint | CAST(second({0}) AS BIGINT)
millisecond(timestamp(6)) -> bigint | CAST(floor(extract(SECOND FROM {0}) * 1000) % 1000 AS BIGINT)
date_trunc(varchar, date) -> last | IF(lower({0}) IN ('day', 'week', 'month', 'quarter', 'year'), CAST(date_trunc({0}, {1}) AS DATE), {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid DATE field})
date_trunc(varchar, timestamp(6)) -> last | IF(lower({0}) IN ('millisecond', 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'), CAST(date_trunc({0}, {1}) AS {type}), {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid TIMESTAMP field})
date_trunc(varchar, timestamp(6) with time zone) -> last | IF(lower({0}) IN ('millisecond', 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'), CAST(date_trunc({0}, {1}) AS {type}), {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid TIMESTAMP field})
date_add(varchar, bigint, date) -> last | CASE lower({0}) WHEN 'day' THEN date_add({2}, CAST({1} AS INT)) WHEN 'week' THEN date_add({2}, CAST({1} * 7 AS INT)) WHEN 'month' THEN add_months({2}, CAST({1} AS INT)) WHEN 'quarter' THEN add_months({2}, CAST({1} * 3 AS INT)) WHEN 'year' THEN add_months({2}, CAST({1} * 12 AS INT)) ELSE {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid DATE field} END
date_add(varchar, bigint, timestamp(6)) -> last | {moved}
date_add(varchar, bigint, timestamp(6) with time zone) -> last | {moved}
date_diff(varchar, timestamp(6), timestamp(6)) -> bigint | {between}
date_diff(varchar, timestamp(6) with time zone, timestamp(6) with time zone) -> bigint | {between}
format_datetime(timestamp(6), varchar) -> varchar | date_format({0 to milliseconds}, {1})
format_datetime(timestamp(6) with time zone, varchar) -> varchar | date_format({0 to milliseconds}, {1})
date_format(timestamp(6), varchar) -> varchar | date_format({0 to milliseconds}, {1})
date_format(timestamp(6) with time zone, varchar) -> varchar | date_format({0 to milliseconds}, {1})
date_parse(varchar, varchar) -> timestamp(3) | to_timestamp_ntz({0}, {1})
parse_datetime(varchar, varchar) -> timestamp(3) with time zone | to_timestamp({0}, {1})
to_iso8601(date) -> varchar | CAST({0} AS STRING)
to_iso8601(timestamp(6)) -> varchar | date_format({0}, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
last_day_of_month(date) -> date | last_day({0})
last_day_of_month(timestamp(6)) -> date | last_day(CAST({0} AS DATE))
date(date) -> date | {0}
date(timestamp(6)) -> date | CAST({0} AS DATE)
to_unixtime(timestamp(6)) -> double | CAST(unix_micros(CAST({0} AS TIMESTAMP)) AS DOUBLE) / 1000000D
from_unixtime(double) -> timestamp(3) with time zone | timestamp_micros(CAST(round({0} * 1000) * 1000 AS BIGINT))
from_iso8601_date(varchar) -> date | CAST({0} AS DATE)
cardinality(array(T)) -> bigint | IF({0} IS NULL, NULL, CAST(size({0}) AS BIGINT))
cardinality(map(K,V)) -> bigint | IF({0} IS NULL, NULL, CAST(size({0}) AS BIGINT))
element_at(array(T), bigint) -> T | CASE WHEN {1} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:SQL array indices start at 1} ELSE try_element_at({0}, CAST({1} AS INT)) END
element_at(map(K,V), K) -> V | try_element_at({0}, {1})
contains(array(T), T) -> boolean | array_contains({0}, {1})
array_sort(array(T)) -> array(T) | array_sort({0})
array_distinct(array(T)) -> array(T) | array_distinct({0})
array_position(array(T), T) -> bigint | array_position({0}, {1})
array_remove(array(T), T) -> array(T) | array_remove({0}, {1})
array_join(array(T), varchar) -> varchar | array_join({0}, {1})
array_join(array(T), varchar, varchar) -> varchar | array_join({0}, {1}, {2})
array_max(array(T)) -> T | IF(exists({0}, x -> x IS NULL), NULL, array_max({0}))
array_min(array(T)) -> T | IF(exists({0}, x -> x IS NULL), NULL, array_min({0}))
array_union(array(T), array(T)) -> array(T) | array_union({0}, {1})
array_intersect(array(T), array(T)) -> array(T) | array_intersect({0}, {1})
array_except(array(T), array(T)) -> array(T) | array_except({0}, {1})
flatten(array(array(T))) -> array(T) | flatten({0})
sequence(bigint, bigint) -> array(bigint) | sequence({0}, {1})
sequence(bigint, bigint, bigint) -> array(bigint) | sequence({0}, {1}, {2})
sequence(date, date) -> array(date) | sequence({0}, {1})
repeat(T, bigint) -> array(T) | array_repeat({0}, CAST({1} AS INT))
slice(array(T), bigint, bigint) -> array(T) | IF({1} < -size({0}), filter({0}, x -> false), slice({0}, CAST({1} AS INT), CAST({2} AS INT)))
map(array(K), array(V)) -> map(K,V) | map_from_arrays({0}, {1})
map() -> map(unknown,unknown) | map()
map_keys(map(K,V)) -> array(K) | map_keys({0})
map_values(map(K,V)) -> array(V) | map_values({0})
map_concat(map(K,V), map(K,V)...) -> map(K,V) | reduce(array({*}), CAST(map() AS {type}), (acc, m) -> map_concat(map_filter(acc, (k, v) -> NOT map_contains_key(m, k)), m))
transform(array(T), lambda) -> array of lambda result | transform({0}, {1})
filter(array(T), lambda) -> array(T) | filter({0}, {1})
reduce(array(T), R, lambda, lambda) -> lambda result | reduce({0}, {1}, {2}, {3})
any_match(array(T), lambda) -> boolean | exists({0}, {1})
all_match(array(T), lambda) -> boolean | forall({0}, {1})
none_match(array(T), lambda) -> boolean | (NOT exists({0}, {1}))
zip_with(array(T), array(U), lambda) -> array of lambda result | zip_with({0}, {1}, {2})
map_filter(map(K,V), lambda) -> map(K,V) | map_filter({0}, {1})
transform_values(map(K,V), lambda) -> map of lambda result | transform_values({0}, {1})
"""

AGGREGATES: Final = r"""
count() -> bigint | count(1)
count(T) -> bigint | count({0})
sum(tinyint) -> bigint | sum(CAST({0} AS BIGINT))
sum(smallint) -> bigint | sum(CAST({0} AS BIGINT))
sum(integer) -> bigint | sum(CAST({0} AS BIGINT))
sum(bigint) -> bigint | sum({0})
sum(decimal(p,s)) -> sum | sum({0})
sum(real) -> real | CAST(sum({0}) AS FLOAT)
sum(double) -> double | sum({0})
avg(bigint) -> double | avg({0})
avg(decimal(p,s)) -> first | avg({0})
avg(real) -> real | CAST(avg({0}) AS FLOAT)
avg(double) -> double | avg({0})
min(T) -> T | min({0})
max(T) -> T | max({0})
any_value(T) -> T | any_value({0}, true)
arbitrary(T) -> T | any_value({0}, true)
array_agg(T) -> array(T) | array_agg({0})
count_if(boolean) -> bigint | count_if({0})
bool_and(boolean) -> boolean | bool_and({0})
bool_or(boolean) -> boolean | bool_or({0})
every(boolean) -> boolean | bool_and({0})
max_by(T, U) -> T | max_by({0}, {1})
min_by(T, U) -> T | min_by({0}, {1})
stddev(double) -> double | stddev_samp({0})
stddev_samp(double) -> double | stddev_samp({0})
stddev_pop(double) -> double | stddev_pop({0})
variance(double) -> double | var_samp({0})
var_samp(double) -> double | var_samp({0})
var_pop(double) -> double | var_pop({0})
approx_distinct(T) -> bigint | count(DISTINCT {0})
"""

WINDOWS: Final = r"""
row_number() -> bigint | CAST(row_number() OVER_ AS BIGINT)
rank() -> bigint | CAST(rank() OVER_ AS BIGINT)
dense_rank() -> bigint | CAST(dense_rank() OVER_ AS BIGINT)
percent_rank() -> double | percent_rank() OVER_
cume_dist() -> double | cume_dist() OVER_
ntile(bigint) -> bigint | CAST(ntile({0}) OVER_ AS BIGINT)
lag(T) -> T | lag({0}) OVER_
lag(T, bigint) -> T | lag({0}, CAST({1} AS INT)) OVER_
lag(T, bigint, T) -> T | lag({0}, CAST({1} AS INT), {2}) OVER_
lead(T) -> T | lead({0}) OVER_
lead(T, bigint) -> T | lead({0}, CAST({1} AS INT)) OVER_
lead(T, bigint, T) -> T | lead({0}, CAST({1} AS INT), {2}) OVER_
first_value(T) -> T | first_value({0}) OVER_
last_value(T) -> T | last_value({0}) OVER_
nth_value(T, bigint) -> T | nth_value({0}, CAST({1} AS INT)) OVER_
"""

FRAGMENTS: Final = {
    "moved": (
        "CASE lower({0}) WHEN 'millisecond' THEN {2} + make_dt_interval(0, 0, 0, CAST({1} AS DECIMAL(18,6)) / 1000) "
        "WHEN 'second' THEN {2} + make_dt_interval(0, 0, 0, {1}) WHEN 'minute' THEN {2} + make_dt_interval(0, 0, CAST({1} AS INT)) "
        "WHEN 'hour' THEN {2} + make_dt_interval(0, CAST({1} AS INT)) WHEN 'day' THEN {2} + make_dt_interval(CAST({1} AS INT)) "
        "WHEN 'week' THEN {2} + make_dt_interval(CAST({1} * 7 AS INT)) WHEN 'month' THEN {2} + make_ym_interval(0, CAST({1} AS INT)) "
        "WHEN 'quarter' THEN {2} + make_ym_interval(0, CAST({1} * 3 AS INT)) WHEN 'year' THEN {2} + make_ym_interval(CAST({1} AS INT)) "
        "ELSE {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid TIMESTAMP field} END"
    ),
    "between": (
        "CASE lower({0}) WHEN 'millisecond' THEN {micros} div 1000 WHEN 'second' THEN {micros} div 1000000 "
        "WHEN 'minute' THEN {micros} div 60000000 WHEN 'hour' THEN {micros} div 3600000000 WHEN 'day' THEN {micros} div 86400000000 "
        "WHEN 'week' THEN {micros} div 604800000000 WHEN 'month' THEN {months} div 1 WHEN 'quarter' THEN {months} div 3 "
        "WHEN 'year' THEN {months} div 12 ELSE {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid TIMESTAMP field} END"
    ),
    "micros": "(unix_micros(CAST({2} AS TIMESTAMP)) - unix_micros(CAST({1} AS TIMESTAMP)))",
    "months": (
        "({apart} + CASE WHEN {1} <= {2} AND {1} + make_ym_interval(0, {apart}) > {2} THEN -1 "
        "WHEN {1} > {2} AND {1} + make_ym_interval(0, {apart}) < {2} THEN 1 ELSE 0 END)"
    ),
    "apart": "((year({2}) - year({1})) * 12 + month({2}) - month({1}))",
    "0 to milliseconds": "CAST(timestamp_micros(CAST(round(unix_micros(CAST({0} AS TIMESTAMP)) / 1000) * 1000 AS BIGINT)) AS TIMESTAMP_NTZ)",
}
"""Parts that templates of several signatures share; ``{name}`` in a template stands for them."""
