"""Text."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
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
uuid() -> uuid | uuid()
"""
