"""Text; positions and lengths count code points."""

from __future__ import annotations

import re
from typing import Final

from rowmerge_nb.sql.functions.maps import ALL_VALUES, grouped
from rowmerge_nb.sql.typed.characters import WHITE

ROWS: Final = r"""
upper(varchar(x)) -> varchar(x) | {upper} | {upper}
upper(char(x)) -> char(x) | {upper} | {upper}
lower(varchar(x)) -> varchar(x) | {lower} | lower({0})
lower(char(x)) -> char(x) | {lower} | lower({0})
length(varchar(x)) -> bigint | CAST(char_length({0}) AS BIGINT) | length({0})
length(char(x)) -> bigint | CAST(char_length({0}) AS BIGINT) | length({0})
substr(varchar(x), bigint) -> varchar(x) | {tail} | {tail}
substr(char(x), bigint) -> as long | {tail} | {tail}
substr(varchar(x), bigint, bigint) -> varchar(x) | {part} | {part}
substr(char(x), bigint, bigint) -> as long | {part} | {part}
substring = substr
strpos(varchar(x), varchar(y)) -> bigint | CAST(instr({0}, {1}) AS BIGINT) | CAST(instr({0}, {1}) AS BIGINT)
index(varchar, varchar) -> bigint | CAST(instr({0}, {1}) AS BIGINT)
strpos(varchar(x), varchar(y), bigint) -> bigint | CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {2} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:'instance' must be a positive or negative number.} WHEN {1} = '' THEN 1L ELSE CAST({found} AS BIGINT) END
hamming_distance(varchar(x), varchar(y)) -> bigint | IF(char_length({0}) <> char_length({1}), {fail:INVALID_FUNCTION_ARGUMENT:The input strings to hamming_distance function must have the same length}, CAST(size(filter(zip_with(split({0}, ''), split({1}, ''), (x, y) -> x <> y), z -> z)) AS BIGINT))
levenshtein_distance(varchar(x), varchar(y)) -> bigint | IF(greatest(char_length({0}), char_length({1})) * (least(char_length({0}), char_length({1})) - 1L) > 1000000, {fail:INVALID_FUNCTION_ARGUMENT:The combined inputs for Levenshtein distance are too large}, CAST(levenshtein({0}, {1}) AS BIGINT))
trim(varchar(x)) -> varchar(x) | regexp_replace({0}, '^\\p{javaWhitespace}+|\\p{javaWhitespace}+\\z', '') | trim({0}, {white})
trim(char(x)) -> as long | regexp_replace({0}, '^\\p{javaWhitespace}+|\\p{javaWhitespace}+\\z', '') | trim({0}, {white})
ltrim(varchar(x)) -> varchar(x) | regexp_replace({0}, '^\\p{javaWhitespace}+', '') | ltrim({0}, {white})
ltrim(char(x)) -> as long | regexp_replace(rtrim({0}), '^\\p{javaWhitespace}+', '') | ltrim(rtrim({0}, ' '), {white})
rtrim(varchar(x)) -> varchar(x) | regexp_replace({0}, '\\p{javaWhitespace}+\\z', '') | rtrim({0}, {white})
rtrim(char(x)) -> as long | regexp_replace({0}, '\\p{javaWhitespace}+\\z', '') | rtrim({0}, {white})
trim(varchar(x), varchar(y)) -> varchar(x) | trim(BOTH {1} FROM {0}) | trim({0}, {1})
~trim(varchar(x), char(y)) -> varchar(x) | trim(BOTH {1} FROM {0})
trim(char(x), varchar(y)) -> as long | rtrim(trim(BOTH {1} FROM rtrim({0})))
~trim(char(x), char(y)) -> as long | rtrim(trim(BOTH {1} FROM rtrim({0})))
ltrim(varchar(x), varchar(y)) -> varchar(x) | trim(LEADING {1} FROM {0}) | ltrim({0}, {1})
~ltrim(varchar(x), char(y)) -> varchar(x) | trim(LEADING {1} FROM {0})
ltrim(char(x), varchar(y)) -> as long | trim(LEADING {1} FROM rtrim({0}))
~ltrim(char(x), char(y)) -> as long | trim(LEADING {1} FROM rtrim({0}))
rtrim(varchar(x), varchar(y)) -> varchar(x) | trim(TRAILING {1} FROM {0}) | rtrim({0}, {1})
~rtrim(varchar(x), char(y)) -> varchar(x) | trim(TRAILING {1} FROM {0})
rtrim(char(x), varchar(y)) -> as long | rtrim(trim(TRAILING {1} FROM rtrim({0})))
~rtrim(char(x), char(y)) -> as long | rtrim(trim(TRAILING {1} FROM rtrim({0})))
lpad(varchar(x), bigint, varchar(y)) -> varchar | {padding checked} ELSE lpad({0}, {padded to}, {2}) END | {padding checked} ELSE lpad({0}, CAST({1} AS INTEGER), {2}) END
lpad(char(x), bigint, varchar(y)) -> varchar | {padding checked} ELSE lpad({0}, {padded to}, {2}) END
rpad(varchar(x), bigint, varchar(y)) -> varchar | {padding checked} ELSE rpad({0}, {padded to}, {2}) END | {padding checked} ELSE rpad({0}, CAST({1} AS INTEGER), {2}) END
replace(varchar(x), varchar(y)) -> varchar(x) | replace({0}, {1}, '') | replace({0}, {1}, '')
replace(varchar(x), varchar(y), varchar(z)) -> replaced | CASE WHEN {1} <> '' THEN replace({0}, {1}, {2}) WHEN {0} = '' AND {1} = '' THEN {2} WHEN {1} = '' THEN concat({2}, array_join(split({0}, ''), {2}), {2}) END | {replaced}
reverse(varchar(x)) -> varchar(x) | reverse({0}) | {reversed}
reverse(char(x)) -> char(x) | reverse({0}) | {reversed}
translate(varchar(x), varchar(y), varchar(z)) -> varchar | translate({0}, {1}, {2}) | translate({0}, {1}, {2})
title_case(varchar(x)) -> varchar(x) | {title}
title_case(char(x)) -> char(x) | {title}
$overlay(varchar(x), varchar(y), bigint) -> overlaid | {overlay checked} concat(substring({0}, 1, {int:2} - 1), {1}, substring({0}, CAST(least(least({2}, 2147483647) + char_length({1}), 2147483647) AS INT))))
$overlay(varchar(x), varchar(y), bigint, bigint) -> overlaid | {overlay checked} concat(substring({0}, 1, {int:2} - 1), {1}, substring({0}, CAST(least(least({2}, 2147483647) + least(greatest({3}, 0), 2147483647), 2147483647) AS INT))))
starts_with(varchar(x), varchar(y)) -> boolean | startswith({0}, {1}) | starts_with({0}, {1})
ends_with(varchar(x), varchar(y)) -> boolean | endswith({0}, {1}) | ends_with({0}, {1})
split(varchar(x), varchar(y)) -> array(varchar(x)) | IF({1} = '', {fail:INVALID_FUNCTION_ARGUMENT:The delimiter may not be the empty string}, split({0}, {quoted 1}, -1)) | CASE WHEN {1} = '' THEN {no delimiter} WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN {parts} END
split(varchar(x), varchar(y), bigint) -> array(varchar(x)) | CASE WHEN {2} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Limit must be positive} WHEN {2} > 2147483647 THEN {fail:INVALID_FUNCTION_ARGUMENT:Limit is too large} WHEN {1} = '' THEN {fail:INVALID_FUNCTION_ARGUMENT:The delimiter may not be the empty string} ELSE split({0}, {quoted 1}, {int:2}) END | {limited parts}
split_part(varchar(x), varchar(y), bigint) -> varchar(x) | CASE WHEN {2} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Index must be greater than zero} WHEN {1} = '' THEN nullif(substring({0}, {int:2}, 1), '') ELSE get(split({0}, {quoted 1}, -1), {int:2} - 1) END | {one part}
split_to_multimap(varchar, varchar, varchar) -> map(varchar,array(varchar)) | {delimiters checked} exists({pairs}, p -> size(p) <> 2) THEN {fail several} WHEN size({pairs}) = 0 THEN CAST(map() AS {type}) ELSE {values of pairs} END
split_to_map(varchar, varchar, varchar) -> map(varchar,varchar) | {delimiters checked} exists({pairs}, p -> size(p) <> 2) THEN {fail entry} WHEN size(array_distinct({pair keys})) < size({pairs}) THEN {fail key} ELSE map_from_entries(transform({pairs}, p -> named_struct('k', p[0], 'v', p[1]))) END
~concat_ws(varchar) -> varchar | IF({0} IS NULL, {0}, {fail:INVALID_FUNCTION_ARGUMENT:There must be two or more arguments})
concat_ws(varchar, varchar...) -> varchar | concat_ws({*}) | concat_ws({*})
concat_ws(varchar, array(varchar)) -> varchar | IF({1} IS NULL, NULL, concat_ws({*}))
chr(bigint) -> varchar(1) | IF({0} BETWEEN 0 AND 55295 OR {0} BETWEEN 57344 AND 1114111, decode(unhex(lpad(hex({0}), 8, '0')), 'UTF-32'), IF({0} IS NULL, NULL, {fail:INVALID_FUNCTION_ARGUMENT:Not a valid Unicode code point: $0})) | {letter}
char2hexint(varchar) -> varchar | hex(encode({0}, 'UTF-16BE'))
format_number(bigint) -> varchar | {number formatted}
format_number(double) -> varchar | {double formatted}
codepoint(varchar(1)) -> integer | IF({0} = '', {fail:INVALID_FUNCTION_ARGUMENT:Input string must be a single character string}, ascii({0})) | {code point}
format(varchar, any...) -> varchar | format_string({*})
luhn_check(varchar) -> boolean | IF({0} RLIKE '[^0-9]', {fail:INVALID_FUNCTION_ARGUMENT:Input contains non-digit character}, {0} <> '' AND luhn_check({0}))
soundex(varchar) -> varchar(4) | IF({unmapped} <> '' AND (soundex({letters before}) LIKE '%0' OR {letters before} = ''), {fail unmapped}, IF({letters} = '', '', soundex(upper({letters}))))
normalize(varchar(x), varchar(y)) -> varchar | CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} IN ('NFC', 'NFKC') THEN reflect('com.ibm.icu.text.Normalizer', 'compose', {0}, {1} = 'NFKC') WHEN {1} IN ('NFD', 'NFKD') THEN reflect('com.ibm.icu.text.Normalizer', 'decompose', {0}, {1} = 'NFKD') ELSE {fail:INVALID_FUNCTION_ARGUMENT:Normalization form must be one of [NFD, NFC, NFKD, NFKC]} END
uuid() -> uuid | uuid()
url_extract_protocol(varchar(x)) -> varchar(x) | {url checked} ELSE coalesce(try_parse_url({0}, 'PROTOCOL'), '') END
url_extract_host(varchar(x)) -> varchar(x) | {url checked} ELSE coalesce(try_parse_url({0}, 'HOST'), '') END
url_extract_port(varchar(x)) -> bigint | CAST(nullif(regexp_extract(try_parse_url({0}, 'AUTHORITY'), ':([0-9]+)$', 1), '') AS BIGINT)
url_extract_path(varchar(x)) -> varchar(x) | {url checked} ELSE coalesce(url_decode(replace(try_parse_url({0}, 'PATH'), '+', '%2B')), '') END
url_extract_query(varchar(x)) -> varchar(x) | {url checked} ELSE coalesce(url_decode(replace(try_parse_url({0}, 'QUERY'), '+', '%2B')), '') END
url_extract_fragment(varchar(x)) -> varchar(x) | {url checked} ELSE coalesce(url_decode(replace(try_parse_url({0}, 'REF'), '+', '%2B')), '') END
url_extract_parameter(varchar(x), varchar(y)) -> varchar(x) | url_decode(get(transform(filter(split(try_parse_url({0}, 'QUERY'), '&', -1), p -> split(p, '=', 2)[0] = {1}), p -> IF(instr(p, '=') > 0, substring(p, instr(p, '=') + 1), '')), 0))
url_encode(varchar(x)) -> url encoded | url_encode({0})
url_decode(varchar(x)) -> varchar(x) | IF({0} RLIKE {bad escape}, {fail escape}, url_decode({0}))
"""


def _quoted(argument: int) -> str:
    return rf"concat('\\Q', replace({{{argument}}}, '\\E', '\\E\\\\E\\Q'), '\\E')"


def _in_message(template: str) -> str:
    return template.replace("{0}", "$0").replace("{1}", "$1").replace("{2}", "$2")


def _shortened(number: str) -> str:
    branches, value = [], f"CAST({number} AS DOUBLE)"
    for unit in ("", "K", "M", "B", "T", "Q"):
        rounded_number = (
            f"format_number({value}, CASE WHEN {value} < 10 THEN '#.##' WHEN {value} < 100 THEN"
            " '#.#' ELSE '#' END)"
        )
        branches.append(
            f"WHEN abs({value}) < 1000 THEN concat({rounded_number}, '{unit}')"
            if unit != "Q"
            else f"ELSE concat({rounded_number}, 'Q')"
        )
        value = f"({value} / 1000)"
    return f"CASE {' '.join(branches)} END"


# Letters whose capital is several letters, as SS for ß; Trino retains them or uses a single
# capital.
_UPPER_IN_MANY: Final = (
    "\u00df\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9a\u1f50\u1f52\u1f54\u1f56"
    "\u1f80-\u1faf\u1fb2-\u1fb4\u1fb6-\u1fb7\u1fbc\u1fc2-\u1fc4\u1fc6-\u1fc7\u1fcc\u1fd2-\u1fd3\u1fd6-\u1fd7\u1fe2-\u1fe4\u1fe6-\u1fe7\u1ff2-\u1ff4\u1ff6-\u1ff7\u1ffc\ufb00-\ufb06\ufb13-\ufb17"
)
_SMALL: Final = "ᾀᾁᾂᾃᾄᾅᾆᾇᾐᾑᾒᾓᾔᾕᾖᾗᾠᾡᾢᾣᾤᾥᾦᾧᾳῃῳ"
_CAPITAL: Final = "ᾈᾉᾊᾋᾌᾍᾎᾏᾘᾙᾚᾛᾜᾝᾞᾟᾨᾩᾪᾫᾬᾭᾮᾯᾼῌῼ"
_KEPT: Final = "".join(
    chr(code)
    for first, last in re.findall("(.)(?:-(.))?", _UPPER_IN_MANY)
    for code in range(ord(first), ord(last or first) + 1)
)
_STANDING_IN: Final = "".join(chr(0x10FE00 + index) for index in range(len(_KEPT)))
"""Private-use characters that replace letters which Spark's upper must not change."""
_UTF_32: Final = "'UTF-32'"
# A delimiter at the very end begins no entry.
_PARTS: Final = f"split({{0}}, {_quoted(1)}, -1)"
_ENTRIES: Final = f"filter({_PARTS}, (p, i) -> p <> '' OR i < size({_PARTS}) - 1)"
_KEYS: Final = f"transform({_ENTRIES}, p -> split(p, {_quoted(2)}, -1)[0])"
_LETTERS: Final = r"regexp_replace({0}, '[^\\pL]', '')"
_UNMAPPED: Final = f"regexp_extract(upper({_LETTERS}), '[^A-Z]', 0)"
# The first invalid escape, and its part that is not a digit.
_BAD_ESCAPE: Final = "(?s)^(?:[^%]|%[0-9A-Fa-f][0-9A-Fa-f])*+%"
_NO_DIGIT: Final = f"regexp_extract($0, '{_BAD_ESCAPE}[0-9A-Fa-f]?([^0-9A-Fa-f])', 1)"

# Trino maps single code points; Spark maps ß to SS, and a final Σ to ς. No lambda, so that
# subqueries are possible.
_UPPER: Final = (
    f"IF(octet_length({{0}}) > char_length({{0}}) AND {{0}} RLIKE '[{_UPPER_IN_MANY}]', translate(upper(translate({{0}}, '{_KEPT}',"
    f" '{_STANDING_IN}')), '{_STANDING_IN}',"
    f" '{_KEPT.translate(str.maketrans(_SMALL, _CAPITAL))}'), upper({{0}}))"
)
_LOWER: Final = "lower(translate({0}, 'İΣ', 'iσ'))"

FRAGMENTS: Final = {
    "delimiters checked": "CASE WHEN {1} = '' THEN {fail:INVALID_FUNCTION_ARGUMENT:entryDelimiter is empty} WHEN {2} = '' THEN {fail:INVALID_FUNCTION_ARGUMENT:keyValueDelimiter is empty} WHEN {1} = {2} THEN {fail:INVALID_FUNCTION_ARGUMENT:entryDelimiter and keyValueDelimiter must not be the same} WHEN",
    "upper": _UPPER,
    "lower": _LOWER,
    "title": (
        r"array_join(transform(split({0}, '(?<=\\p{javaWhitespace})', -1), w -> "
        f"IF(octet_length(w) > char_length(w) AND w RLIKE '[{_UPPER_IN_MANY}İΣς]', concat("
        f"{_UPPER.replace('{0}', 'left(w, 1)')}, {_LOWER.replace('{0}', 'substring(w, 2)')}),"
        " initcap(w))), '')"
    ),
    "overlay checked": "IF({2} <= 0, {fail:INVALID_FUNCTION_ARGUMENT:OVERLAY start position must be greater than 0, got: $2},",
    "tail": (
        "CASE WHEN {1} = 0 OR {1} < -char_length({0}) THEN IF({0} IS NULL, NULL, '') ELSE"
        " substring({0}, {int:1}) END"
    ),
    "part": (
        "CASE WHEN {1} = 0 OR {1} < -char_length({0}) OR {2} <= 0 THEN IF({0} IS NULL OR {1} IS"
        " NULL OR {2} IS NULL, NULL, '') ELSE substring({0}, {int:1}, {int:2}) END"
    ),
    # Occurrences may overlap.
    "found": (
        "CASE WHEN octet_length(substring_index({0}, {1}, {int:2})) = octet_length({0}) THEN 0 WHEN"
        " {2} > 0 THEN char_length(substring_index({0}, {1}, {int:2})) + 1 ELSE char_length({0}) -"
        " char_length(substring_index({0}, {1}, {int:2})) - char_length({1}) + 1 END"
    ),
    "padding checked": (
        "CASE WHEN {1} NOT BETWEEN 0 AND 2147483647 THEN {fail:INVALID_FUNCTION_ARGUMENT:Target"
        " length must be in the range [0..2147483647]} WHEN {2} = '' THEN"
        " {fail:INVALID_FUNCTION_ARGUMENT:Padding string must not be empty}"
    ),
    # Spark computes constants even in an unreachable CASE branch.
    "padded to": "IF({1} BETWEEN 0 AND 2147483647, {int:1}, 0)",
    "quoted 1": _quoted(1),
    "pairs": f"transform({_ENTRIES}, p -> split(p, {_quoted(2)}, -1))",
    "pair keys": f"transform({_ENTRIES}, p -> split(p, {_quoted(2)}, -1)[0])",
    "fail entry": (
        "{fail:INVALID_FUNCTION_ARGUMENT:Key-value delimiter must appear exactly once in each"
        " entry. Bad input: '"
        f"$({_in_message(f'filter({_ENTRIES}, p -> size(split(p, {_quoted(2)}, -1)) <> 2)[0]')})'}}"
    ),
    "fail several": (
        "{fail:INVALID_FUNCTION_ARGUMENT:Key-value delimiter must appear exactly once in each"
        " entry. Bad input:"
        f" $({_in_message(f'filter({_ENTRIES}, p -> size(split(p, {_quoted(2)}, -1)) <> 2)[0]')})}}"
    ),
    "values of pairs": grouped(
        f"transform({_ENTRIES}, p -> named_struct('k', split(p, {_quoted(2)}, -1)[0], 'v', split(p,"
        f" {_quoted(2)}, -1)[1]))",
        ALL_VALUES,
    ),
    "number formatted": _shortened("{0}"),
    "double formatted": _shortened(
        "CASE WHEN isnan({0}) THEN 0L WHEN {0} >= 9223372036854775808D THEN 9223372036854775807L"
        " WHEN {0} <= -9223372036854775808D THEN -9223372036854775807L - 1L ELSE CAST({0} AS"
        " BIGINT) END"
    ),
    "fail key": (
        "{fail:INVALID_FUNCTION_ARGUMENT:Duplicate keys"
        f" ($({_in_message(f'filter({_KEYS}, (k, i) -> array_position({_KEYS}, k) <= i)[0]')})) are"
        " not allowed}"
    ),
    "letters": _LETTERS,
    "unmapped": _UNMAPPED,
    "letters before": f"regexp_extract(upper({_LETTERS}), '^[A-Z]*', 0)",
    "fail unmapped": (
        "{fail:INVALID_FUNCTION_ARGUMENT:The character is not mapped:"
        f" $({_in_message(_UNMAPPED)}) "
        f"(index=$({_in_message(f'CAST(conv(hex(encode({_UNMAPPED}, {_UTF_32})), 16, 10) - 65 AS INT)')}))}}"
    ),
    "bad escape": "'%(?![0-9A-Fa-f][0-9A-Fa-f])'",
    "fail escape": (
        f"IF({{0}} RLIKE '{_BAD_ESCAPE}..', {{fail:INVALID_FUNCTION_ARGUMENT:URLDecoder: Illegal"
        f' hex characters in escape (%) pattern - not a hexadecimal digit: "$({_NO_DIGIT})" ='
        f" $(conv(hex(encode({_NO_DIGIT}, 'UTF-32')), 16, 10))}},"
        " {fail:INVALID_FUNCTION_ARGUMENT:URLDecoder: Incomplete trailing escape (%) pattern})"
    ),
    "url checked": (
        "CASE WHEN {0} IS NULL OR try_parse_url({0}, 'PATH') IS NULL AND try_parse_url({0},"
        " 'PROTOCOL') IS NULL THEN NULL"
    ),
}
"""Parts that several templates share, as ``{name}``."""

_PRIVATE: Final = chr(0x10FE00)

DUCKDB_FRAGMENTS: Final = {
    # Trino has no capital of ß. Letters newer than DuckDB's Unicode (16 and later) are unchanged.
    "upper": f"translate(upper(translate({{0}}, 'ß', '{_PRIVATE}')), '{_PRIVATE}', 'ß')",
    "white": f"'{WHITE}'",
    "begin": "CASE WHEN {1} > 2147483647 THEN 2147483647 ELSE {1} END",
    "tail": (
        "CASE WHEN {1} = 0 OR {1} < -length({0}) THEN CASE WHEN {0} IS NULL OR {1} IS NULL THEN"
        " NULL ELSE '' END ELSE substr({0}, {begin}) END"
    ),
    "part": (
        "CASE WHEN {1} = 0 OR {1} < -length({0}) OR {2} <= 0 THEN CASE WHEN {0} IS NULL OR {1} IS"
        " NULL OR {2} IS NULL THEN NULL ELSE '' END ELSE substr({0}, {begin}, CASE WHEN {2} >"
        " 2147483647 THEN 2147483647 ELSE {2} END) END"
    ),
    "padding checked": (
        "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {1} NOT BETWEEN 0 AND"
        " 2147483647 THEN {fail:INVALID_FUNCTION_ARGUMENT:Target length must be in the range"
        " [0..2147483647]} WHEN {2} = '' THEN {fail:INVALID_FUNCTION_ARGUMENT:Padding string must"
        " not be empty}"
    ),
    # Trino finds an empty text around every letter.
    "replaced": (
        "CASE WHEN {1} <> '' THEN replace({0}, {1}, {2}) WHEN {1} IS NULL THEN NULL WHEN {0} = ''"
        " THEN {2} WHEN {2} IS NOT NULL THEN {2} ||"
        " array_to_string(list_transform(string_split({0}, ''), lambda letter_: letter_ || {2}),"
        " '') END"
    ),
    "reversed": "array_to_string(list_reverse(string_split({0}, '')), '')",
    "parts": "string_split({0}, {1})",
    "first parts": "list_slice({parts}, 1, {2} - 1)",
    "no delimiter": "{fail:INVALID_FUNCTION_ARGUMENT:The delimiter may not be the empty string}",
    "limited parts": (
        "CASE WHEN {2} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Limit must be positive} WHEN {2} >"
        " 2147483647 THEN {fail:INVALID_FUNCTION_ARGUMENT:Limit is too large} WHEN {1} = '' THEN"
        " {no delimiter} WHEN {1} IS NULL OR {2} IS NULL THEN NULL WHEN len({parts}) <= {2} THEN"
        " {parts} WHEN {0} IS NOT NULL THEN list_append({first parts}, substr({0}, 1 + length({1})"
        " * ({2} - 1) + coalesce(list_sum(list_transform({first parts}, lambda part_:"
        " length(part_))), 0)::BIGINT)) END"
    ),
    "one part": (
        "CASE WHEN {2} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Index must be greater than zero}"
        " WHEN {1} = '' THEN nullif(substr({0}, least({2}, 2147483647), 1), '') WHEN {1} IS NOT"
        " NULL THEN {parts}[{2}] END"
    ),
    "letter": (
        "CASE WHEN {0} BETWEEN 0 AND 55295 OR {0} BETWEEN 57344 AND 1114111 THEN chr(CAST({0} AS"
        " INTEGER)) WHEN {0} IS NOT NULL THEN {fail:INVALID_FUNCTION_ARGUMENT:Not a valid Unicode"
        " code point: $0} END"
    ),
    "code point": (
        "CASE WHEN {0} = '' THEN {fail:INVALID_FUNCTION_ARGUMENT:Input string must be a single"
        " character string} WHEN {0} IS NOT NULL THEN unicode({0}) END"
    ),
}
"""Shared parts of DuckDB SQL templates."""
