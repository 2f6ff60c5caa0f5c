"""The functions that are known to mean the same in DuckDB, by Trino's signature.

In a template ``{0}`` is the first argument, ``{type}`` the result's type in DuckDB, ``{fail:CODE:message}`` Trino's error. A
signature that is not in the table is refused in the flow that computes on pages.
"""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.typed.casts import WHITE

_PRIVATE: Final = chr(0x10FE00)
_NULL_OR_EMPTY: Final = "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE '' END"
_TAIL: Final = f"CASE WHEN {{1}} = 0 OR {{1}} < -length({{0}}) THEN {_NULL_OR_EMPTY} ELSE substr({{0}}, CASE WHEN {{1}} > 2147483647 THEN 2147483647 ELSE {{1}} END) END"
_PART: Final = (
    "CASE WHEN {1} = 0 OR {1} < -length({0}) OR {2} <= 0 THEN CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL ELSE '' "
    "END ELSE substr({0}, CASE WHEN {1} > 2147483647 THEN 2147483647 ELSE {1} END, CASE WHEN {2} > 2147483647 THEN 2147483647 ELSE {2} END) END"
)
_PADDING: Final = (
    "CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL WHEN {{1}} NOT BETWEEN 0 AND 2147483647 THEN "
    "{{fail:INVALID_FUNCTION_ARGUMENT:Target length must be in the range [0..2147483647]}} WHEN {{2}} = '' THEN "
    "{{fail:INVALID_FUNCTION_ARGUMENT:Padding string must not be empty}} ELSE {}({{0}}, CAST({{1}} AS INTEGER), {{2}}) END"
)
_UPPER: Final = f"translate(upper(translate({{0}}, 'ß', '{_PRIVATE}')), '{_PRIVATE}', 'ß')"
# Rounded down, also before 1970.
_OF_MILLI: Final = "((epoch_us({0}) % 1000 + 1000) % 1000)"
_MILLIS: Final = f"((epoch_us({{0}}) - {_OF_MILLI}) // 1000)"
_NO_DELIMITER: Final = "{fail:INVALID_FUNCTION_ARGUMENT:The delimiter may not be the empty string}"
_BOTH: Final = "{0} IS NOT NULL AND {1} IS NOT NULL"
_HAS_NULL: Final = "list_count({0}) < len({0})"
_LARGE: Final = "abs({0}) >= 4503599627370496.0::DOUBLE OR isnan({0})"
_SCALE: Final = "pow(10.0::DOUBLE, {1})"


def _lowest(kind: str, value: int) -> str:
    message = f"{{fail:NUMERIC_VALUE_OUT_OF_RANGE:Value {value} is out of range for abs({kind})}}"
    return f"CASE WHEN {{0}} = CAST('{value}' AS {kind.upper()}) THEN {message} ELSE abs({{0}}) END"


def _remainder(kind: str) -> str:
    # DuckDB calls the remainder of the lowest number by -1 an overflow.
    zero = "{fail:DIVISION_BY_ZERO:Division by zero}"
    return (
        f"CASE WHEN {{1}} = 0 THEN CASE WHEN {{0}} IS NOT NULL THEN {zero} END "
        f"WHEN {{1}} = -1 THEN CAST({{0}} - {{0}} AS {kind}) ELSE CAST({{0}} % {{1}} AS {kind}) END"
    )


def _matched(decisive: str, otherwise: str, truths: str) -> str:
    """Write what the truths of an array's elements come to: one of them decides, else NULL leaves it open."""
    return (
        f"CASE WHEN list_contains({truths}, {decisive}) THEN {decisive} "
        f"WHEN list_count({truths}) = len({truths}) THEN {otherwise} END"
    )


_INTEGERS: Final = {"tinyint": -(2**7), "smallint": -(2**15), "integer": -(2**31), "bigint": -(2**63)}
_FIELDS: Final = {
    **{name: name for name in ("year", "quarter", "month", "day")},
    "day_of_month": "day",
    "week": "week",
    "week_of_year": "week",
    **dict.fromkeys(("year_of_week", "yow"), "isoyear"),
    **dict.fromkeys(("day_of_week", "dow"), "isodow"),
    **dict.fromkeys(("day_of_year", "doy"), "dayofyear"),
}

FUNCTIONS: Final[dict[str, str]] = {
    # Trino has no capital of ß. Letters that are younger than DuckDB's Unicode (16 and later) keep their case.
    "upper(varchar(x))": _UPPER,
    "lower(varchar(x))": "lower({0})",
    # text; lengths and positions count code points on both sides
    "length(varchar(x))": "length({0})",
    **dict.fromkeys(("substr(varchar(x), bigint)", "substring(varchar(x), bigint)"), _TAIL),
    **dict.fromkeys(("substr(varchar(x), bigint, bigint)", "substring(varchar(x), bigint, bigint)"), _PART),
    "strpos(varchar(x), varchar(y))": "CAST(instr({0}, {1}) AS BIGINT)",
    "starts_with(varchar(x), varchar(y))": "starts_with({0}, {1})",
    **{f"{trim}(varchar(x))": f"{trim}({{0}}, '{WHITE}')" for trim in ("trim", "ltrim", "rtrim")},
    **{f"{trim}(varchar(x), varchar(y))": f"{trim}({{0}}, {{1}})" for trim in ("trim", "ltrim", "rtrim")},
    **{f"{pad}(varchar(x), bigint, varchar(y))": _PADDING.format(pad) for pad in ("lpad", "rpad")},
    "replace(varchar(x), varchar(y))": "replace({0}, {1}, '')",
    # What is empty is found before and behind every letter.
    "replace(varchar(x), varchar(y), varchar(z))": (
        "CASE WHEN {1} <> '' THEN replace({0}, {1}, {2}) WHEN {1} IS NULL THEN NULL WHEN {0} = '' THEN {2} WHEN {2} IS NOT NULL THEN "
        "{2} || array_to_string(list_transform(string_split({0}, ''), lambda letter_: letter_ || {2}), '') END"
    ),
    "reverse(varchar(x))": "array_to_string(list_reverse(string_split({0}, '')), '')",
    "translate(varchar(x), varchar(y), varchar(z))": "translate({0}, {1}, {2})",
    "concat_ws(varchar, varchar)": "concat_ws({*})",
    "split(varchar(x), varchar(y))": f"CASE WHEN {{1}} = '' THEN {_NO_DELIMITER} WHEN {_BOTH} THEN string_split({{0}}, {{1}}) END",
    "split(varchar(x), varchar(y), bigint)": (
        "CASE WHEN {2} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Limit must be positive} WHEN {2} > 2147483647 THEN "
        f"{{fail:INVALID_FUNCTION_ARGUMENT:Limit is too large}} WHEN {{1}} = '' THEN {_NO_DELIMITER} "
        "WHEN {1} IS NULL OR {2} IS NULL THEN NULL WHEN len(string_split({0}, {1})) <= {2} THEN string_split({0}, {1}) "
        "WHEN {0} IS NOT NULL THEN list_append(list_slice("
        "string_split({0}, {1}), 1, {2} - 1), substr({0}, 1 + length({1}) * ({2} - 1) + coalesce(list_sum(list_transform(list_slice("
        "string_split({0}, {1}), 1, {2} - 1), lambda part_: length(part_))), 0)::BIGINT)) END"
    ),
    "split_part(varchar(x), varchar(y), bigint)": (
        "CASE WHEN {2} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Index must be greater than zero} WHEN {1} = '' THEN "
        "nullif(substr({0}, least({2}, 2147483647), 1), '') WHEN {1} IS NOT NULL THEN string_split({0}, {1})[{2}] END"
    ),
    "chr(bigint)": (
        "CASE WHEN {0} BETWEEN 0 AND 55295 OR {0} BETWEEN 57344 AND 1114111 THEN chr(CAST({0} AS INTEGER)) WHEN {0} IS NOT NULL THEN "
        "{fail:INVALID_FUNCTION_ARGUMENT:Not a valid Unicode code point: $0} END"
    ),
    "codepoint(varchar(1))": (
        "CASE WHEN {0} = '' THEN {fail:INVALID_FUNCTION_ARGUMENT:Input string must be a single character string} "
        "WHEN {0} IS NOT NULL THEN unicode({0}) END"
    ),
    # values of type char have all their spaces
    "upper(char(x))": _UPPER,
    "lower(char(x))": "lower({0})",
    "length(char(x))": "length({0})",
    "reverse(char(x))": "array_to_string(list_reverse(string_split({0}, '')), '')",
    **dict.fromkeys(("substr(char(x), bigint)", "substring(char(x), bigint)"), _TAIL),
    **dict.fromkeys(("substr(char(x), bigint, bigint)", "substring(char(x), bigint, bigint)"), _PART),
    "trim(char(x))": f"trim({{0}}, '{WHITE}')",
    "ltrim(char(x))": f"ltrim(rtrim({{0}}, ' '), '{WHITE}')",
    "rtrim(char(x))": f"rtrim({{0}}, '{WHITE}')",
    # bytes
    "length(varbinary)": "CAST(octet_length({0}) AS BIGINT)",
    **{f"to_utf8({kind})": "encode({0})" for kind in ("varchar(x)", "char(x)")},
    "to_hex(varbinary)": "hex({0})",
    "to_base64(varbinary)": "to_base64({0})",
    "to_base64url(varbinary)": "translate(to_base64({0}), '+/', '-_')",
    **{f"{digest}(varbinary)": f"unhex({digest}({{0}}))" for digest in ("md5", "sha1", "sha256")},
    # numbers
    **{f"abs({kind})": _lowest(kind, value) for kind, value in _INTEGERS.items()},
    **dict.fromkeys(("abs(decimal(p,s))", "abs(real)", "abs(double)"), "abs({0})"),
    **{f"{function}({kind})": "{0}" for function in ("round", "floor", "ceil", "ceiling") for kind in _INTEGERS},
    "round(decimal(p,s))": "CAST(round({0}, 0) AS {type})",
    **{f"{function}(decimal(p,s))": f"CAST({function}({{0}}) AS {{type}})" for function in ("floor", "ceil", "ceiling")},
    "round(double)": f"CASE WHEN {_LARGE} THEN {{0}} WHEN {{0}} = 0 THEN 0.0::DOUBLE ELSE round({{0}}) END",
    "round(double, integer)": (
        f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {_SCALE} = 0 AND isfinite({{0}}) THEN 'nan'::DOUBLE "
        f"WHEN NOT isfinite({{0}} * {_SCALE}) THEN {{0}} WHEN abs({{0}} * {_SCALE}) >= 4503599627370496.0::DOUBLE "
        f"THEN {{0}} * {_SCALE} / {_SCALE} WHEN {{0}} = 0 THEN 0.0::DOUBLE ELSE round({{0}} * {_SCALE}) / {_SCALE} END"
    ),
    **{f"{function}({kind})": f"{function}({{0}})" for function in ("floor", "ceil", "ceiling") for kind in ("real", "double")},
    "round(real)": "CASE WHEN isnan({0}) OR abs({0}) >= 4503599627370496.0::DOUBLE THEN {0} WHEN {0} = 0 THEN 0.0::FLOAT ELSE round({0}) END",
    "truncate(double)": "trunc({0})",
    "truncate(real)": "trunc({0})",
    "truncate(decimal(p,s))": "CAST(CASE WHEN {0} < 0 THEN ceil({0}) ELSE floor({0}) END AS {type})",
    **{f"sign({kind})": f"CAST(sign({{0}}) AS {kind.upper()})" for kind in _INTEGERS},
    "sign(decimal(p,s))": "CAST(sign({0}) AS DECIMAL(1,0))",
    **{
        f"sign({kind})": f"CASE WHEN isnan({{0}}) OR {{0}} = 0 THEN {{0}} ELSE CAST(sign({{0}}) AS {name}) END"
        for kind, name in (("real", "FLOAT"), ("double", "DOUBLE"))
    },
    "sqrt(double)": "CASE WHEN {0} < 0 THEN 'nan'::DOUBLE ELSE sqrt({0}) END",
    **{f"mod({kind}, {kind})": "({0} % {1})" for kind in ("real", "double")},
    "pi()": "3.141592653589793::DOUBLE",
    "e()": "2.718281828459045::DOUBLE",
    "nan()": "'nan'::DOUBLE",
    "infinity()": "'inf'::DOUBLE",
    "is_nan(double)": "isnan({0})",
    "is_infinite(double)": "isinf({0})",
    "is_finite(double)": "isfinite({0})",
    **{f"mod({kind}, {kind})": _remainder(kind.upper()) for kind in _INTEGERS},
    **{f"bitwise_{word}(bigint, bigint)": f"({{0}} {sign} {{1}})" for word, sign in (("and", "&"), ("or", "|"))},
    "bitwise_xor(bigint, bigint)": "xor({0}, {1})",
    "bitwise_not(bigint)": "(~{0})",
    # dates and timestamps
    **{
        f"{name}({kind})": f"CAST({field}({{0}}) AS BIGINT)"
        for name, field in _FIELDS.items()
        for kind in ("date", "timestamp(6)")
    },
    **{f"{name}(timestamp(6))": f"CAST({name}({{0}}) AS BIGINT)" for name in ("hour", "minute", "second")},
    "date(date)": "{0}",
    "date(timestamp(6))": "CAST({0} AS DATE)",
    **{f"{name}(time(6))": f"CAST({name}({{0}}) AS BIGINT)" for name in ("hour", "minute", "second")},
    "millisecond(time(6))": "(epoch_us({0}) // 1000 % 1000)",
    "millisecond(timestamp(6))": f"(({_MILLIS} % 1000 + 1000) % 1000)",
    **{
        f"to_unixtime({kind})": f"(CAST({_MILLIS} AS DOUBLE) / 1000.0::DOUBLE + CAST({_OF_MILLI} AS DOUBLE) / 1000000.0::DOUBLE)"
        for kind in ("timestamp(6)", "timestamp(6) with time zone")
    },
    "last_day_of_month(date)": "last_day({0})",
    "last_day_of_month(timestamp(6))": "last_day(CAST({0} AS DATE))",
    # arrays and maps
    "cardinality(array(E)) E": "CAST(len({0}) AS BIGINT)",
    "cardinality(map(K,V)) K, V": "CAST(cardinality({0}) AS BIGINT)",
    "element_at(array(E), bigint) E": "CASE WHEN {1} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:SQL array indices start at 1} ELSE {0}[{1}] END",
    "element_at(map(K,V), K) K, V": "{0}[{1}]",
    "map_keys(map(K,V)) K, V": "map_keys({0})",
    "map_values(map(K,V)) K, V": "map_values({0})",
    "contains(array(T), T) T:comparable": (
        f"CASE WHEN {_BOTH} THEN CASE WHEN list_contains({{0}}, {{1}}) THEN true WHEN NOT {_HAS_NULL} THEN false END END"
    ),
    "array_position(array(T), T) T:comparable": f"CASE WHEN {_BOTH} THEN CAST(coalesce(list_position({{0}}, {{1}}), 0) AS BIGINT) END",
    "array_sort(array(E)) E:orderable": "list_sort({0}, 'ASC', 'NULLS LAST')",
    "array_max(array(T)) T:orderable": f"CASE WHEN NOT {_HAS_NULL} THEN list_max({{0}}) END",
    "array_min(array(T)) T:orderable": f"CASE WHEN NOT {_HAS_NULL} THEN list_min({{0}}) END",
    "array_join(array(varchar), varchar)": f"CASE WHEN {_BOTH} THEN coalesce(array_to_string({{0}}, {{1}}), '') END",
    "reverse(array(E)) E": "list_reverse({0})",
    "slice(array(E), bigint, bigint) E": (
        "CASE WHEN {2} < 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:length must be greater than or equal to 0} WHEN {1} = 0 THEN "
        "{fail:INVALID_FUNCTION_ARGUMENT:SQL array indices start at 1} WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        "WHEN {2} = 0 OR {1} < -len({0}) OR {1} > len({0}) THEN list_filter({0}, lambda element_: false) ELSE list_slice({0}, "
        "CASE WHEN {1} < 0 THEN len({0}) + 1 ELSE 0 END + {1}, "
        "CASE WHEN {1} < 0 THEN len({0}) + 1 ELSE 0 END + {1} + least({2}, len({0})) - 1) END"
    ),
    "transform(array(T), function(T,U)) T, U": "list_transform({0}, {1})",
    "filter(array(T), function(T,boolean)) T": "list_filter({0}, {1})",
    "any_match(array(T), function(T,boolean)) T": _matched("true", "false", "list_transform({0}, {1})"),
    "all_match(array(T), function(T,boolean)) T": _matched("false", "true", "list_transform({0}, {1})"),
    "none_match(array(T), function(T,boolean)) T": (f"(NOT {_matched('true', 'false', 'list_transform({0}, {1})')})"),
}
"""Trino's signature, as `rowmerge_nb.sql.functions.overloads.Overload` writes it, to a template of DuckDB SQL."""

CONSTANT_ARGUMENTS: Final = {"array_join(array(varchar), varchar)": 1}
"""Which argument must be a constant that is not empty, for the template to mean the same."""

COMPARED_ELEMENTS: Final = frozenset(
    {"element_at(map(K,V), K) K, V", *(name for name in FUNCTIONS if name.endswith((":comparable", ":orderable")))}
)
"""The functions that compare elements of an array, or keys of a map: only of types whose values DuckDB compares as Trino does."""

PATTERN_FUNCTIONS: Final = frozenset(
    {
        "regexp_like(varchar(x), varchar(y))",
        "regexp_extract(varchar(x), varchar(y))",
        "regexp_extract(varchar(x), varchar(y), bigint)",
        "regexp_extract_all(varchar(x), varchar(y))",
        "regexp_replace(varchar(x), varchar(y))",
        "regexp_replace(varchar(x), varchar(y), varchar(z))",
    }
)
"""The functions of regular expressions that are written for the pattern that they are called with."""
