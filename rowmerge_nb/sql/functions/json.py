"""JSON: a value of type json is its text, in the form that Trino's JSON_PARSE gives it."""

from __future__ import annotations

from typing import Final

__all__ = ["FRAGMENTS", "PARSED", "ROWS"]

ROWS: Final = r"""
json_parse(varchar(x)) -> json | {json parsed}
json_format(json) -> varchar | {0}
json_array_length(json) -> bigint | CAST(json_array_length({0}) AS BIGINT)
json_array_length(varchar(x)) -> bigint | CAST(json_array_length({0}) AS BIGINT)
json_array_contains(json, boolean) -> boolean | exists({elements}, e -> schema_of_variant(e) = 'BOOLEAN' AND try_variant_get(e, '$', 'boolean') = {1})
json_array_contains(varchar(x), boolean) -> boolean | exists({elements}, e -> schema_of_variant(e) = 'BOOLEAN' AND try_variant_get(e, '$', 'boolean') = {1})
json_array_contains(json, bigint) -> boolean | exists({elements}, e -> schema_of_variant(e) = 'BIGINT' AND try_variant_get(e, '$', 'bigint') = {1})
json_array_contains(varchar(x), bigint) -> boolean | exists({elements}, e -> schema_of_variant(e) = 'BIGINT' AND try_variant_get(e, '$', 'bigint') = {1})
json_array_contains(json, varchar(x)) -> boolean | exists({elements}, e -> schema_of_variant(e) = 'STRING' AND try_variant_get(e, '$', 'string') = {1})
json_array_contains(varchar(x), varchar(y)) -> boolean | exists({elements}, e -> schema_of_variant(e) = 'STRING' AND try_variant_get(e, '$', 'string') = {1})
json_array_contains(json, double) -> boolean ! Spark does not tell whether a number was written with a decimal point
is_json_scalar(json) -> boolean | (NOT {0} RLIKE {container})
is_json_scalar(varchar(x)) -> boolean | CASE WHEN {json read} IS NOT NULL THEN NOT {0} RLIKE {container} WHEN {0} IS NOT NULL THEN {fail:INVALID_FUNCTION_ARGUMENT:Invalid JSON value: $0} END
"""

_TEXT: Final = r'"(?:[^"\\\\]++|\\\\.)*+"'
_FLOATING: Final = r"-?[0-9]++(?:\\.[0-9]++)?[eE][+-]?[0-9]++"
_WHOLE: Final = r"-?[0-9]++(?![.eE])"
_DECIMAL: Final = r"-?[0-9]++\\.[0-9]++(?![eE])"
# Numbers with a decimal point are doubles for Trino and decimals for Spark, unless they have an exponent.
_AS_DOUBLES: Final = f"regexp_replace({{0}}, '\\\\G((?:[^\"0-9-]++|{_TEXT}|{_FLOATING}|{_WHOLE})*+)({_DECIMAL})', '$1$2e0')"
_READ: Final = f"try_variant_get(try_parse_json(concat('[', {_AS_DOUBLES}, ']')), '$[0]', 'variant')"
PARSED: Final = f"IF(json_array_length(concat('[', {{0}}, ']')) = 1, to_json({_READ}), NULL)"
"""The text of a json value in canonical form: no spaces, keys in order; NULL where it is no JSON."""

FRAGMENTS: Final = {
    "json read": PARSED,
    "json parsed": (
        f"CASE WHEN {{0}} RLIKE '{'[0-9]' * 39}' THEN {{fail:NOT_SUPPORTED:JSON numbers of more than 38 digits are not supported by this engine}} "
        f"WHEN {PARSED} IS NOT NULL THEN {PARSED} WHEN {{0}} IS NOT NULL "
        "THEN {fail:INVALID_FUNCTION_ARGUMENT:Cannot convert value to JSON: '$0'} END"
    ),
    "elements": "from_json(concat('{\"v\":', {0}, '}'), 'v ARRAY<VARIANT>').v",
    "container": "'^\\\\s*[\\\\[{]'",
}
"""Parts that several templates share; ``{name}`` in a template stands for them."""
