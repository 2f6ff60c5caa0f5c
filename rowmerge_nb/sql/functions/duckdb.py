"""The functions that are known to mean the same in DuckDB, by Trino's signature.

In a template ``{0}`` is the first argument, ``{type}`` the result's type in DuckDB, ``{fail:CODE:message}`` Trino's error. A
signature that is not in the table is refused in the flow that computes on pages.
"""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.typed.casts import WHITE

__all__ = ["CONSTANT_ARGUMENTS", "FUNCTIONS"]

_PRIVATE: Final = chr(0x10FE00)
_NULL_OR_EMPTY: Final = "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE '' END"
_TAIL: Final = f"CASE WHEN {{1}} = 0 OR {{1}} < -length({{0}}) THEN {_NULL_OR_EMPTY} ELSE substr({{0}}, {{1}}) END"
_PART: Final = (
    "CASE WHEN {1} = 0 OR {1} < -length({0}) OR {2} <= 0 THEN CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL ELSE '' "
    "END ELSE substr({0}, {1}, CASE WHEN {2} > 2147483647 THEN 2147483647 ELSE {2} END) END"
)
_PADDING: Final = (
    "CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL WHEN {{1}} NOT BETWEEN 0 AND 2147483647 THEN "
    "{{fail:INVALID_FUNCTION_ARGUMENT:Target length must be in the range [0..2147483647]}} WHEN {{2}} = '' THEN "
    "{{fail:INVALID_FUNCTION_ARGUMENT:Padding string must not be empty}} ELSE {}({{0}}, CAST({{1}} AS INTEGER), {{2}}) END"
)
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
    "upper(varchar(x))": f"translate(upper(translate({{0}}, 'ß', '{_PRIVATE}')), '{_PRIVATE}', 'ß')",
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
    "replace(varchar(x), varchar(y), varchar(z))": "replace({0}, {1}, {2})",
    "reverse(varchar(x))": "array_to_string(list_reverse(string_split({0}, '')), '')",
    # numbers
    **{f"abs({kind})": _lowest(kind, value) for kind, value in _INTEGERS.items()},
    **dict.fromkeys(("abs(decimal(p,s))", "abs(real)", "abs(double)"), "abs({0})"),
    **{f"{function}({kind})": "{0}" for function in ("round", "floor", "ceil", "ceiling") for kind in _INTEGERS},
    "round(decimal(p,s))": "CAST(round({0}, 0) AS {type})",
    **{f"{function}(decimal(p,s))": f"CAST({function}({{0}}) AS {{type}})" for function in ("floor", "ceil", "ceiling")},
    "round(double)": f"CASE WHEN {_LARGE} THEN {{0}} WHEN {{0}} = 0 THEN 0.0::DOUBLE ELSE round({{0}}) END",
    "round(double, integer)": (
        f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN isnan({{0}}) OR abs({{0}} * {_SCALE}) >= 4503599627370496.0::DOUBLE "
        f"THEN {{0}} WHEN {{0}} = 0 THEN 0.0::DOUBLE ELSE round({{0}} * {_SCALE}) / {_SCALE} END"
    ),
    **{f"{function}(double)": f"{function}({{0}})" for function in ("floor", "ceil", "ceiling")},
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
    "last_day_of_month(date)": "last_day({0})",
    "last_day_of_month(timestamp(6))": "last_day(CAST({0} AS DATE))",
}
"""Trino's signature, as `rowmerge_nb.sql.functions.signatures.Overload` writes it, to a template of DuckDB SQL."""

CONSTANT_ARGUMENTS: Final = dict.fromkeys(("replace(varchar(x), varchar(y))", "replace(varchar(x), varchar(y), varchar(z))"), 1)
"""Which argument must be a constant that is not empty, for the template to mean the same."""
