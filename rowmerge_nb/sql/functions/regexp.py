"""Regular expressions; see `rowmerge_nb.sql.spark.joni_patterns`."""

from __future__ import annotations

from typing import Final

ROWS: Final = r"""
regexp_like(varchar(x), varchar(y)) -> boolean | regexp_like({0}, {1}) | {pattern}
regexp_count(varchar(x), varchar(y)) -> bigint | CAST(regexp_count({0}, {1}) AS BIGINT)
regexp_extract(varchar(x), varchar(y)) -> varchar(x) | IF(regexp_like({0}, {1}), regexp_extract({0}, {1}, 0), NULL) | {pattern}
regexp_extract(varchar(x), varchar(y), bigint) -> varchar(x) | IF(regexp_like({0}, {1}), regexp_extract({0}, {1}, {int:2}), NULL) | {pattern}
regexp_extract_all(varchar(x), varchar(y)) -> array(varchar(x)) | regexp_extract_all({0}, {1}, 0) | {pattern}
regexp_extract_all(varchar(x), varchar(y), bigint) -> array(varchar(x)) | regexp_extract_all({0}, {1}, {int:2})
regexp_position(varchar(x), varchar(y)) -> integer | CASE WHEN {0} = '' OR regexp_instr({0}, {1}) = 0 THEN -1 ELSE regexp_instr({0}, {1}) END
regexp_position(varchar(x), varchar(y), integer) -> integer | CASE WHEN {2} < 1 THEN {fail:INVALID_FUNCTION_ARGUMENT:start position cannot be smaller than 1} WHEN {2} > char_length({0}) OR regexp_instr({0}, {from there}) = 0 THEN -1 ELSE regexp_instr({0}, {from there}) END
regexp_position(varchar(x), varchar(y), integer, integer) -> integer | CASE WHEN {2} < 1 THEN {fail:INVALID_FUNCTION_ARGUMENT:start position cannot be smaller than 1} WHEN {3} < 1 THEN {fail:INVALID_FUNCTION_ARGUMENT:occurrence cannot be smaller than 1} WHEN {2} > char_length({0}) OR regexp_count({0}, {from there}) < {3} THEN -1 ELSE char_length(substring_index(regexp_replace({0}, {from there}, '{mark}$0'), '{mark}', {3})) - {3} + 2 END
regexp_replace(varchar(x), varchar(y)) -> varchar(x) | regexp_replace({0}, {1}, '') | {pattern}
regexp_replace(varchar(x), varchar(y), varchar(z)) -> regexp replaced | regexp_replace({0}, {1}, {2}) | {pattern}
regexp_replace(varchar(x), varchar(y), function(array(varchar(x)),varchar)) -> varchar | {by lambda}
regexp_split(varchar(x), varchar(y)) -> array(varchar(x)) | IF(regexp_instr({0}, {1}) = 1 AND regexp_extract({0}, {1}, 0) = '', concat(array(''), split({0}, {1}, -1)), split({0}, {1}, -1))
"""

FRAGMENTS: Final = {
    # A private-use character that precedes every match.
    "mark": chr(0x10FEFF),
    # The text before a match is included, for \b and lookbehind.
    "from there": r"concat('(?s:(?<=\\A.{', {2} - 1, ',100000000}))(?:', {1}, ')')",
}
"""Parts that several templates share, as ``{name}``."""

_PATTERN: Final = "varchar(x), joniregexp"
SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("regexp_count", "regexp_like", "regexp_split"), (_PATTERN,)),
    **dict.fromkeys(("regexp_extract", "regexp_extract_all"), (_PATTERN, f"{_PATTERN}, bigint")),
    "regexp_position": (_PATTERN, f"{_PATTERN}, integer", f"{_PATTERN}, integer, integer"),
    "regexp_replace": (
        _PATTERN,
        f"{_PATTERN}, varchar(y)",
        "varchar, joniregexp, function(array(varchar),varchar(x))",
    ),
}
"""See `rowmerge_nb.sql.functions.all_functions.SIGNATURES`."""
