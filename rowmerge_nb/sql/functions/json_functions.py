"""JSON functions; values are texts in Trino's canonical form."""

from __future__ import annotations

from typing import Final

ROWS: Final = r"""
json_parse(varchar(x)) -> json | {json parsed}
json_format(json) -> varchar | {0}
json_array_length(json) -> bigint | CAST(json_array_length({0}) AS BIGINT)
json_array_length(varchar(x)) -> bigint | CAST(json_array_length({0}) AS BIGINT)
json_array_contains(json, boolean) -> boolean | {has boolean}
json_array_contains(varchar(x), boolean) -> boolean | {has boolean}
json_array_contains(json, bigint) -> boolean | {has bigint}
json_array_contains(varchar(x), bigint) -> boolean | {has bigint}
json_array_contains(json, varchar(x)) -> boolean | {has string}
json_array_contains(varchar(x), varchar(y)) -> boolean | {has string}
json_array_contains(json, double) -> boolean | {has double}
json_array_contains(varchar(x), double) -> boolean | {has double}
json_array_get(json, bigint) -> json | {element}
json_array_get(varchar(x), bigint) -> json | {element}
is_json_scalar(json) -> boolean | (NOT {0} RLIKE {container})
is_json_scalar(varchar(x)) -> boolean | CASE WHEN {json read} IS NOT NULL THEN NOT {0} RLIKE {container} WHEN {0} IS NOT NULL THEN {fail:INVALID_FUNCTION_ARGUMENT:Invalid JSON value: $0} END
"""

_TEXT: Final = r'"(?:[^"\\\\]++|\\\\.)*+"'
_FLOATING: Final = r"-?[0-9]++(?:\\.[0-9]++)?[eE][+-]?[0-9]++"
_WHOLE: Final = r"-?[0-9]++(?![.eE])"
_DECIMAL: Final = r"-?[0-9]++\\.[0-9]++(?![eE])"
# Numbers with a decimal point are doubles in Trino, and in Spark decimals unless they have an
# exponent.
AS_DOUBLES: Final = (
    "IF(instr({0}, '.') = 0, {0},"
    f" regexp_replace({{0}}, '\\\\G((?:[^\"0-9-]++|{_TEXT}|{_FLOATING}|{_WHOLE})*+)({_DECIMAL})',"
    " '$1$2e0'))"
)
_READ: Final = f"try_variant_get(try_parse_json(concat('[', {AS_DOUBLES}, ']')), '$[0]', 'variant')"
_PARSED: Final = f"IF(json_array_length(concat('[', {{0}}, ']')) = 1, to_json({_READ}), NULL)"
"""The canonical text of a json value: no spaces, sorted keys; NULL if the text is not JSON."""
_LIST: Final = "from_json({}, 'ARRAY<STRING>')"
# As texts, numbers retain their digits.
_QUOTED_NUMBERS: Final = (
    "regexp_replace({0},"
    f" '\\\\G((?:[^\"0-9-]++|{_TEXT})*+)(-?[0-9]++(?:\\\\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)',"
    " '$1\"$2\"')"
)
_FAR: Final = r"[\\x{10000}-\\x{10FFFF}]"


def escaped(text: str, *, where: str = "") -> str:
    """Write characters beyond U+FFFF as two escapes; ``where`` is a shorter text to search."""
    units = "hex(encode(c, 'UTF-16BE'))"
    pair = rf"concat('\\u', left({units}, 4), '\\u', right({units}, 4))"
    far = (
        f"array_join(transform(split({text}, ''), c -> IF(char_length(c) < octet_length(c) - 2,"
        f" {pair}, c)), '')"
    )
    shorter = where or text
    is_possible = (
        rf"(octet_length({shorter}) > char_length({shorter}) OR instr({shorter}, '\\u') > 0)"
    )
    return rf"IF({is_possible} AND {shorter} RLIKE '{_FAR}|\\\\u[dD][89abAB]', {far}, {text})"


LITERAL: Final = escaped(_PARSED, where="{0}")
"""The text of a valid json literal."""

FRAGMENTS: Final = {
    "has boolean": "IF({1} IS NULL, NULL, exists({elements}, e -> schema_of_variant(e) = 'BOOLEAN' AND try_variant_get(e, '$', 'boolean') = {1}))",
    "has bigint": "IF({1} IS NULL, NULL, exists({elements}, e -> schema_of_variant(e) = 'BIGINT' AND try_variant_get(e, '$', 'bigint') = {1}))",
    "has string": "IF({1} IS NULL, NULL, exists({elements}, e -> schema_of_variant(e) = 'STRING' AND try_variant_get(e, '$', 'string') = {1}))",
    "has double": "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {1} - {1} = 0 THEN exists({floating}, e -> schema_of_variant(e) = 'DOUBLE' AND try_variant_get(e, '$', 'double') = {1}) ELSE false END",
    "json read": _PARSED,
    "json parsed": (
        f"CASE WHEN octet_length({{0}}) > 38 AND {{0}} RLIKE '{'[0-9]' * 39}' THEN {{fail:NOT_SUPPORTED:JSON numbers of more"
        f" than 38 digits are not supported by this engine}} ELSE coalesce({LITERAL}, IF({{0}} IS"
        " NOT NULL, {fail:INVALID_FUNCTION_ARGUMENT:Cannot convert value to JSON: '$0'}, NULL)) END"
    ),
    "elements": "from_json(concat('{\"v\":', {0}, '}'), 'v ARRAY<VARIANT>').v",
    "floating": f"from_json(concat('{{\"v\":', {AS_DOUBLES}, '}}'), 'v ARRAY<VARIANT>').v",
    # Trino unquotes strings too, although the result is not JSON.
    "element": (
        f"transform(array(IF({{0}} RLIKE '^\\\\s*\\\\[', struct({_LIST.format('{0}')} AS l,"
        f" {_LIST.format(_QUOTED_NUMBERS)} AS q), NULL)), s -> transform(array({{int:1}} + IF({{1}}"
        " < 0, size(s.l), 0)), i -> IF({1} BETWEEN -size(s.l) AND size(s.l) - 1, IF(get(s.l, i)"
        " RLIKE '^[\\\\[{]', get(s.l, i), get(s.q, i)), NULL))[0])[0]"
    ),
    "container": "'^\\\\s*[\\\\[{]'",
}
"""Parts that several templates share, as ``{name}``."""
