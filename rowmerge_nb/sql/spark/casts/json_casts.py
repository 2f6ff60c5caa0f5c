"""Casts to and from JSON, a text without spaces."""

# All writers of casts have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.spi.types import BIGINT, DOUBLE, JSON, VARCHAR
from rowmerge_nb.sql.functions.json_functions import AS_DOUBLES, escaped
from rowmerge_nb.sql.spark.casts.text_casts import fitting, shown_date, shown_moment
from rowmerge_nb.sql.spark.text import fail, once
from rowmerge_nb.sql.typed.cast_rules import leaves
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import RANGES, is_float, is_integer, is_text, spark_type

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from rowmerge_nb.spi.types import Type

    Cast: TypeAlias = Callable[[str, Type, Type, bool], str]


def to_json(text: str, source: Type, target: Type, safe: bool) -> str:
    if source.base == "json":
        return text
    if source.base == "array":
        inner = f"transform({text}, x -> {_or_null('x', source.parameters[0])})"
        return f"IF({text} IS NULL, NULL, concat('[', array_join({inner}, ','), ']'))"
    if source.base == "map":
        key, value = source.parameters
        pairs = (
            f"transform(map_entries({text}), e -> named_struct('k', {_key('e.key', key)}, 'v',"
            f" {_or_null('e.value', value)}))"
        )
        fields = f"transform(array_sort({pairs}), e -> concat({_quoted('e.k')}, ':', e.v))"
        return f"IF({text} IS NULL, NULL, concat('{{', array_join({fields}, ','), '}}'))"
    if source.base == "row":
        members = [
            (name or "", f"{text}.{backquoted(name or f'field{i}')}")
            for i, name in enumerate(source.fields)
        ]
        parts = [
            f"{text_literal(_name(name) + ':')}, {_or_null(value, field_type)}"
            for (name, value), field_type in zip(members, source.parameters, strict=True)
        ]
        separated = ", ',', ".join(parts)
        return f"IF({text} IS NULL, NULL, concat('{{', {separated}, '}}'))"
    return _scalar(text, source)


def _name(name: str) -> str:
    quoted_name = json.dumps(name, ensure_ascii=False)
    return "".join(
        c if c <= "\uffff" else json.dumps(c)[1:-1].upper().replace("\\U", "\\u")
        for c in quoted_name
    )


def _quoted(text: str) -> str:
    return escaped(f"trim(BOTH '[]' FROM to_json(array({text})))", where=text)


def _scalar(text: str, source: Type) -> str:
    plain_text = f"CAST({text} AS STRING)"
    if is_float(source):
        special = f"isnan({text}) OR abs({text}) = CAST('Infinity' AS DOUBLE)"
        return f"IF({special}, concat('\"', {plain_text}, '\"'), {plain_text})"
    if source.base == "number":
        return (
            f"IF({text} IN ('NaN', '+Infinity', '-Infinity'), concat('\"', {text}, '\"'), {text})"
        )
    if source.base in {"boolean", "decimal"} or is_integer(source):
        return plain_text
    if source.base == "unknown":
        return "CAST(NULL AS STRING)"
    if is_text(source):
        return (
            f"CASE WHEN {text} RLIKE {_UNESCAPED} THEN concat('\"', {plain_text}, '\"') WHEN {text} IS NOT"
            f" NULL THEN {_quoted(plain_text)} END"
        )
    value = plain_text
    if source.base.startswith("timestamp"):
        value = shown_moment(text, source)
    elif source.base == "date":
        value = shown_date(text)
    return f"concat('\"', {value}, '\"')"


_UNESCAPED: Final = r"'^[ !#-Z^-~\\[\\]]*\\z'"
"""Texts of ASCII letters that JSON writes as they are."""


def _or_null(text: str, sql_type: Type) -> str:
    return once(lambda value: f"coalesce({to_json(value, sql_type, JSON, False)}, 'null')", text)


def _key(text: str, sql_type: Type) -> str:
    return text if sql_type.base == "varchar" else f"CAST({text} AS STRING)"


@dataclass(frozen=True)
class _Cast:
    target: Type
    text: str

    def refusal(self, why: str) -> str:
        return fail(
            "INVALID_CAST_ARGUMENT",
            text_literal(f"Cannot cast to {self.target}."),
            why,
            r"'\n'",
            self.text,
        )


def from_json(
    text: str, target: Type, cast: Cast, *, safe: bool, around: _Cast | None = None
) -> str | None:
    """Write the cast of JSON to another type, or return None if unsupported; ``cast`` writes other
    casts.
    """
    around = around or _Cast(target, text)
    # Text targets show numbers with a decimal point as doubles.
    source = (
        AS_DOUBLES.replace("{0}", text)
        if any(part.base == "varchar" for part in leaves(target))
        else text
    )
    write = {"array": _array, "map": _map, "row": _row}.get(target.base, _whole_scalar)
    return write(text, source, target, cast, safe=safe, around=around)


def _opened(source: str, form: str) -> str:
    return f"from_json(concat('{{\"v\":', {source}, '}}'), 'v {form}').v"


def _array(
    text: str, source: str, target: Type, cast: Cast, *, safe: bool, around: _Cast
) -> str | None:
    elements = _opened(source, "ARRAY<VARIANT>")
    inner = _part(target.parameters[0], cast, safe=safe, around=around)
    if inner is None:
        return None
    lost_test = f"exists({elements}, `$e` -> {_is_member_lost(inner)})" if safe else ""
    result = f"transform({elements}, `$e` -> {inner})"
    return _opening(text, "[", lost_test, result, _unexpected(text, "array", around, safe=safe))


def _map(
    text: str, source: str, target: Type, cast: Cast, *, safe: bool, around: _Cast
) -> str | None:
    entries = _opened(source, "MAP<STRING, VARIANT>")
    inner = _part(target.parameters[1], cast, safe=safe, around=around)
    if inner is None:
        return None
    lost_test = f"exists(map_values({entries}), `$e` -> {_is_member_lost(inner)})" if safe else ""
    result = f"transform_values({entries}, (`$k`, `$e`) -> {inner})"
    if target.parameters[0] != VARCHAR:
        result = _with_keys(result, target.parameters[0], cast, safe=safe, around=around)
    return _opening(text, "{", lost_test, result, _unexpected(text, "object", around, safe=safe))


def _opening(text: str, first: str, lost_test: str, result: str, message: str) -> str:
    null_branch = f"WHEN {text} LIKE '{first}%' AND {lost_test} THEN NULL " if lost_test else ""
    return (
        f"CASE WHEN {text} IS NULL OR {text} = 'null' THEN NULL {null_branch}WHEN {text} LIKE"
        f" '{first}%' THEN {result} ELSE {message} END"
    )


def _whole_scalar(
    text: str, source: str, target: Type, cast: Cast, *, safe: bool, around: _Cast
) -> str | None:
    read = _opened(source, "VARIANT")
    inner = _from_variant(
        "`$e`", target, cast, safe=safe or target.base == "decimal", around=around, document=text
    )
    if target.base == "decimal" and not safe:
        form = "schema_of_variant(`$e`)"
        none = (
            f"{form} LIKE 'OBJECT%' OR {form} LIKE 'ARRAY%' OR ({form} = 'STRING' AND NOT"
            f" try_variant_get(`$e`, '$', 'string') RLIKE {_NUMBER})"
        )
        unfit = fail(
            "NUMERIC_VALUE_OUT_OF_RANGE",
            text_literal(f"Cannot cast input json to {_type_text(target)}"),
        )
        inner = (
            f"coalesce({inner}, IF({form} <> 'VOID', IF({none},"
            f" {_failure(text, target, safe=False)}, {unfit}), NULL))"
        )
    return None if inner is None else f"transform(array({read}), `$e` -> {inner})[0]"


def _with_keys(entries: str, key_type: Type, cast: Cast, *, safe: bool, around: _Cast) -> str:
    """Write a map with its member names cast; two of them may become equal."""
    key = cast("`$k`", VARCHAR, key_type, True)
    twice = "NULL" if safe else around.refusal("' Duplicate map keys are not allowed'")
    none = (
        "NULL"
        if safe
        else around.refusal(
            _no_such("get(filter(map_keys(`$m`), `$k` -> " + key + " IS NULL), 0)", key_type)
        )
    )
    whole = (
        f"IF(size(array_distinct(`$n`)) < size(`$n`), {twice}, map_from_arrays(`$n`,"
        " map_values(`$m`)))"
    )
    whole = f"IF(exists(`$n`, `$k` -> `$k` IS NULL), {none}, {whole})"
    keys = f"transform(map_keys(`$m`), `$k` -> {key})"
    return f"transform(array({entries}), `$m` -> transform(array({keys}), `$n` -> {whole})[0])[0]"


def _is_member_lost(value: str) -> str:
    return f"coalesce(schema_of_variant(`$e`) <> 'VOID', false) AND {value} IS NULL"


def _row(
    text: str, source: str, row_type: Type, cast: Cast, *, safe: bool, around: _Cast
) -> str | None:
    """Write a row from an object's members by name (ignoring case), or an array."""
    members, elements, lost_members, lost_elements = [], [], [], []
    for index, (name, part) in enumerate(zip(row_type.fields, row_type.parameters, strict=True)):
        inner = _part(part, cast, safe=safe, around=around)
        if inner is None:
            return None
        member = (
            "get(map_values(map_filter(`$m`, (`$k`, `$x`) -> lower(`$k`) ="
            f" {text_literal((name or '').lower())})), 0)"
        )
        column = text_literal(name or f"field{index}")
        members.append(f"{column}, transform(array({member}), `$e` -> {inner})[0]")
        elements.append(f"{column}, transform(array(`$a`[{index}]), `$e` -> {inner})[0]")
        lost_members.append(f"transform(array({member}), `$e` -> {_is_member_lost(inner)})[0]")
        lost_elements.append(
            f"transform(array(get(`$a`, {index})), `$e` -> {_is_member_lost(inner)})[0]"
        )
    message = _failure(text, row_type, safe=safe)
    as_map, as_array = _opened(source, "MAP<STRING, VARIANT>"), _opened(source, "ARRAY<VARIANT>")
    # An object has no members without a name.
    row, listed = (f"named_struct({', '.join(parts)})" for parts in (members, elements))
    if safe:
        row = f"IF({' OR '.join(lost_members)}, NULL, {row})"
        listed = f"IF({' OR '.join(lost_elements)}, NULL, {listed})"
    names = ", ".join(text_literal((name or "").lower()) for name in row_type.fields)
    twice = (
        f"filter(array({names}), `$f` -> size(filter(map_keys(`$m`), `$k` -> lower(`$k`) = `$f`))"
        " > 1)"
    )
    duplicate = (
        text_literal(f"Cannot cast to {row_type}. Duplicate field: "),
        f"get({twice}, 0)",
        r"'\n'",
        text,
    )
    row = (
        f"IF(size({twice}) > 0, {'NULL' if safe else fail('INVALID_CAST_ARGUMENT', *duplicate)},"
        f" {row})"
    )
    from_object = (
        f"transform(array({as_map}), `$m` -> {row})[0]" if all(row_type.fields) else message
    )
    listed = (
        f"transform(array({as_array}), `$a` -> IF(size(`$a`) = {len(elements)}, {listed},"
        f" {message}))[0]"
    )
    return (
        f"CASE WHEN {text} IS NULL OR {text} = 'null' THEN NULL WHEN {text} LIKE '{{%' THEN"
        f" {from_object} WHEN {text} LIKE '[%' THEN {listed} ELSE"
        f" {_unexpected(text, 'array or object', around, safe=safe)} END"
    )


def _unexpected(text: str, expected: str, around: _Cast, *, safe: bool) -> str:
    if safe:
        return "NULL"
    read = f"from_json(concat('{{\"v\":', {text}, '}}'), 'v STRING').v"
    actual = (
        f"CASE WHEN {text} LIKE '\"%' THEN {read} WHEN {text} RLIKE '^[\\\\[{{]' THEN left({text},"
        f" 1) ELSE {text} END"
    )
    return fail(
        "INVALID_CAST_ARGUMENT",
        text_literal(f"Cannot cast to {around.target}. Expected a json {expected}, but got "),
        actual,
        r"'\n'",
        around.text,
    )


def _failure(text: str, target: Type, *, safe: bool) -> str:
    type_text = str(target).upper() if target.base == "decimal" else target
    return (
        "NULL"
        if safe
        else fail(
            "INVALID_CAST_ARGUMENT", "'Cannot cast \\''", text, text_literal(f"' to {type_text}")
        )
    )


_WORDS: Final = {"smallint": "INT", "integer": "INT"}
_NUMBER: Final = "'^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$'"


def _no_such(text: str, target: Type) -> str:
    if target.base == "decimal":
        return (
            f"IF({text} RLIKE {_NUMBER},"
            f" {text_literal(f' Cannot cast input json to {_type_text(target)}')}, '')"
        )
    return (
        f"concat(' Cannot cast \\'', {text}, '\\' to"
        f" {_WORDS.get(target.base, target.base.upper())}')"
    )


def _type_text(target: Type) -> str:
    return (
        str(target).upper()
        if target.base == "decimal"
        else "integer"
        if target.base == "smallint"
        else target.base
    )


def _part(target: Type, cast: Cast, *, safe: bool, around: _Cast) -> str | None:
    if safe or target.base in {"array", "map", "row", "json"}:
        return _from_variant("`$e`", target, cast, safe=safe, around=around)
    return _member("`$e`", target, cast, around)


def _member(value: str, target: Type, cast: Cast, around: _Cast) -> str | None:
    """Write a scalar within an array or object, which fails as the whole cast."""
    attempt = _from_variant(value, target, cast, safe=True, around=around)
    if attempt is None:
        return None
    text = f"try_variant_get({value}, '$', 'string')"
    number = f"CAST(try_variant_get({value}, '$', 'double') AS STRING)"
    form = f"schema_of_variant({value})"
    container_branch = (
        f"WHEN {form} LIKE 'OBJECT%' OR {form} LIKE 'ARRAY%' THEN concat(' Unexpected token when"
        f" cast to {_type_text(target)}: ', IF({form} LIKE 'OBJECT%', '{{', '['))"
    )
    branches = (
        f" WHEN {form} = 'STRING' THEN {_no_such(text, target)}" if target.base != "varchar" else ""
    )
    if target.base == "decimal":
        branches += (
            f" WHEN {form} <> 'BOOLEAN' THEN"
            f" {text_literal(f' Cannot cast input json to {_type_text(target)}')}"
        )
    elif is_integer(target):
        words = (
            f"' Unable to cast ', {number}, ' to bigint'"
            if target == BIGINT
            else f"' Out of range for {_type_text(target)}: ', {number}"
        )
        if target.base == "smallint":
            whole = f"try_cast({text} AS INT)"
            branches += (
                f" WHEN {whole} > 32767 THEN concat(' Value ', {whole}, ' exceeds MAX_SHORT for"
                " type smallint')"
            )
            branches += (
                f" WHEN {whole} < -32768 THEN concat(' Value ', {whole}, ' is less than MIN_SHORT"
                " for type smallint')"
            )
        branches += (
            f" WHEN {form} <> 'BIGINT' AND {form} NOT LIKE 'DECIMAL(%,0)' THEN concat({words})"
        )
    refusal = around.refusal(f"CASE {container_branch}{branches} ELSE '' END")
    return f"coalesce({attempt}, IF({form} <> 'VOID', {refusal}, NULL))"


@dataclass(frozen=True)
class _Variant:
    """Spark SQL about a scalar in a variant; ``failure`` refuses it."""

    value: str
    failure: str

    @property
    def text(self) -> str:
        return f"try_variant_get({self.value}, '$', 'string')"

    @property
    def double(self) -> str:
        return f"try_variant_get({self.value}, '$', 'double')"

    @property
    def boolean(self) -> str:
        return f"try_variant_get({self.value}, '$', 'boolean')"

    @property
    def form(self) -> str:
        return f"schema_of_variant({self.value})"

    def cases(self, *branches: tuple[str, str]) -> str:
        """Write a CASE of conditions and values, in which objects and arrays fail."""
        container = f"{self.form} LIKE 'OBJECT%' OR {self.form} LIKE 'ARRAY%'"
        cases = ((container, self.failure), *branches)
        return f"CASE {' '.join(f'WHEN {test} THEN {text}' for test, text in cases)} END"


def _from_variant(
    value: str, target: Type, cast: Cast, *, safe: bool, around: _Cast, document: str = ""
) -> str | None:
    """Write a scalar from a variant: text as from varchar, numbers rounded, true as 1."""
    if target.base in {"array", "map", "row"}:
        return from_json(f"to_json({value})", target, cast, safe=safe, around=around)
    if target.base == "json":
        return escaped(f"to_json({value})")
    variant = _Variant(value, _failure(document or f"to_json({value})", target, safe=safe))
    if target.base == "varchar":
        return _text_of_variant(variant, target, cast, safe=safe, in_document=bool(document))
    if target.base == "boolean":
        return _boolean_of_variant(variant, target, cast, safe=safe)
    if is_integer(target) or is_float(target) or target.base == "decimal":
        return _number_of_variant(variant, target, cast, safe=safe)
    return None


def _text_of_variant(
    variant: _Variant, target: Type, cast: Cast, *, safe: bool, in_document: bool
) -> str:
    def fit(text: str) -> str:
        if not (in_document and target.parameters):
            return fitting(text, JSON, target, safe)
        return (
            f"CASE WHEN {text} IS NULL OR char_length({text}) <= {target.parameters[0]} THEN"
            f" {text} ELSE {variant.failure} END"
        )

    floating = once(fit, cast(variant.double, DOUBLE, VARCHAR, safe))
    form = variant.form
    return variant.cases((f"{form} = 'DOUBLE'", floating), (f"{form} <> 'VOID'", fit(variant.text)))


def _boolean_of_variant(variant: _Variant, target: Type, cast: Cast, *, safe: bool) -> str:
    form = variant.form
    large = f"{form} LIKE 'DECIMAL(%,0)' AND abs({variant.double}) > 9223372036854775807D"
    return variant.cases(
        (f"{form} = 'BOOLEAN'", variant.boolean),
        (f"{form} = 'STRING'", cast(variant.text, VARCHAR, target, safe)),
        (large, variant.failure),
        (f"{form} <> 'VOID'", f"{variant.double} <> 0"),
    )


def _number_of_variant(variant: _Variant, target: Type, cast: Cast, *, safe: bool) -> str:
    text, number = variant.text, variant.double
    floating, read = cast(number, DOUBLE, target, safe), cast(text, VARCHAR, target, safe)
    whole = read
    if is_integer(target):
        whole = (
            f"coalesce(try_cast({text} AS {spark_type(target)}),"
            f" {_failure(text, target, safe=safe)})"
        )
    if is_integer(target) and target != BIGINT:
        low, high = -RANGES[target.base] - 0.5, RANGES[target.base] - 0.5
        far = fail(
            "NUMERIC_VALUE_OUT_OF_RANGE",
            text_literal(f"Out of range for {target.base}: "),
            f"CAST({number} AS STRING)",
        )
        floating = (
            f"IF({number} > {low}D AND {number} < {high}D, {floating}, {'NULL' if safe else far})"
        )
    form = variant.form
    return variant.cases(
        (f"{form} = 'BOOLEAN'", f"CAST(IF({variant.boolean}, 1, 0) AS {spark_type(target)})"),
        (f"{form} = 'STRING'", read),
        (f"{form} = 'BIGINT' OR {form} LIKE 'DECIMAL(%,0)'", whole),
        (f"{form} <> 'VOID'", floating),
    )
