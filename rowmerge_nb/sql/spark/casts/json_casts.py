"""Casts to JSON and from it. A JSON value is carried as its text, without spaces."""

# All writers of casts have one signature, whether they need all of it or not.
# ruff: noqa: ARG001

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.spi.types import BIGINT, DOUBLE, INTEGER, JSON, VARCHAR
from rowmerge_nb.sql.functions.json_functions import AS_DOUBLES, escaped
from rowmerge_nb.sql.spark.casts.text_casts import fitting, shown_date, shown_moment
from rowmerge_nb.sql.spark.text import fail, once
from rowmerge_nb.sql.typed.cast_rules import leaves
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import RANGES, is_float, is_integer, spark_type

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from rowmerge_nb.spi.types import Type

    Cast: TypeAlias = Callable[[str, Type, Type, bool], str]


def to_json(text: str, source: Type, target: Type, safe: bool) -> str:
    """Write the JSON text of a value; NULL of NULL."""
    if source.base == "json":
        return text
    if source.base == "array":
        inner = f"transform({text}, x -> {_or_null('x', source.parameters[0])})"
        return f"IF({text} IS NULL, NULL, concat('[', array_join({inner}, ','), ']'))"
    if source.base == "map":
        key, value = source.parameters
        pairs = f"transform(map_entries({text}), e -> named_struct('k', {_key('e.key', key)}, 'v', {_or_null('e.value', value)}))"
        fields = f"transform(array_sort({pairs}), e -> concat({_quoted('e.k')}, ':', e.v))"
        return f"IF({text} IS NULL, NULL, concat('{{', array_join({fields}, ','), '}}'))"
    if source.base == "row":
        named = [(name or "", f"{text}.{backquoted(name or f'field{i}')}") for i, name in enumerate(source.fields)]
        parts = [
            f"{text_literal(_name(name) + ':')}, {_or_null(value, kind)}"
            for (name, value), kind in zip(named, source.parameters, strict=True)
        ]
        separated = ", ',', ".join(parts)
        return f"IF({text} IS NULL, NULL, concat('{{', {separated}, '}}'))"
    return _scalar(text, source)


def _name(name: str) -> str:
    """A field's name as JSON text."""
    shown = json.dumps(name, ensure_ascii=False)
    return "".join(c if c <= "\uffff" else json.dumps(c)[1:-1].upper().replace("\\U", "\\u") for c in shown)


def _quoted(text: str) -> str:
    """A JSON string, written by Spark: of an array with it alone, what is between the brackets."""
    return escaped(f"regexp_replace(to_json(array({text})), '^.|.$', '')", where=text)


def _scalar(text: str, source: Type) -> str:
    shown = f"CAST({text} AS STRING)"
    if is_float(source):
        special = f"isnan({text}) OR abs({text}) = CAST('Infinity' AS DOUBLE)"
        return f"IF({special}, concat('\"', {shown}, '\"'), {shown})"
    if source.base in {"boolean", "decimal"} or is_integer(source):
        return shown
    if source.base == "unknown":
        return "CAST(NULL AS STRING)"
    value = shown
    if source.base.startswith("timestamp"):
        value = shown_moment(text, source)
    elif source.base == "date":
        value = shown_date(text)
    return f"IF({text} IS NULL, NULL, {_quoted(value)})"


def _or_null(text: str, kind: Type) -> str:
    return once(lambda value: f"coalesce({to_json(value, kind, JSON, False)}, 'null')", text)


def _key(text: str, kind: Type) -> str:
    return text if kind.base == "varchar" else f"CAST({text} AS STRING)"


@dataclass(frozen=True)
class _Cast:
    """A cast as errors name it: the type wanted, and the whole value."""

    target: Type
    text: str

    def refusal(self, why: str) -> str:
        """Write the failure of the whole for what is wrong with a part of it, said by Spark SQL."""
        return fail("INVALID_CAST_ARGUMENT", text_literal(f"Cannot cast to {self.target}."), why, r"'\n'", self.text)


def from_json(text: str, kind: Type, cast: Cast, *, safe: bool, around: _Cast | None = None) -> str | None:
    """Write the cast of a json value to another type.

    Args:
        text: the value.
        kind: the type wanted.
        cast: writes casts between other types; the last argument says whether it is NULL where it fails.
        safe: NULL where the cast fails.
        around: the cast that the value is a part of.

    Returns:
        None if this engine cannot cast json to the type as Trino does.
    """
    around = around or _Cast(kind, text)
    # What is shown as text is shown as a double if it has a decimal point.
    source = AS_DOUBLES.replace("{0}", text) if any(part.base == "varchar" for part in leaves(kind)) else text
    if kind.base == "row":
        return _row(text, source, kind, cast, safe=safe, around=around)
    read = f"from_json(concat('{{\"v\":', {source}, '}}'), 'v VARIANT').v"
    if kind.base == "array":
        elements = f"from_json(concat('{{\"v\":', {source}, '}}'), 'v ARRAY<VARIANT>').v"
        inner = _part(kind.parameters[0], cast, safe=safe, around=around)
        if inner is None:
            return None
        message = _unexpected(text, "array", around, safe=safe)
        lost = f"WHEN {text} LIKE '[%' AND exists({elements}, `$e` -> {_lost(inner)}) THEN NULL " if safe else ""
        return (
            f"CASE WHEN {text} IS NULL OR {text} = 'null' THEN NULL {lost}WHEN {text} LIKE '[%' THEN transform({elements}, `$e` -> {inner}) "
            f"ELSE {message} END"
        )
    if kind.base == "map":
        entries = f"from_json(concat('{{\"v\":', {source}, '}}'), 'v MAP<STRING, VARIANT>').v"
        inner = _part(kind.parameters[1], cast, safe=safe, around=around)
        if inner is None:
            return None
        message = _unexpected(text, "object", around, safe=safe)
        lost = f"WHEN {text} LIKE '{{%' AND exists(map_values({entries}), `$e` -> {_lost(inner)}) THEN NULL " if safe else ""
        made = f"transform_values({entries}, (`$k`, `$e`) -> {inner})"
        if kind.parameters[0] != VARCHAR:
            made = _with_keys(made, kind.parameters[0], cast, safe=safe, around=around)
        return (
            f"CASE WHEN {text} IS NULL OR {text} = 'null' THEN NULL {lost}WHEN {text} LIKE '{{%' THEN {made} ELSE {message} END"
        )
    inner = _from_variant("`$e`", kind, cast, safe=safe or kind.base == "decimal", around=around, document=text)
    if kind.base == "decimal" and not safe:
        form = "schema_of_variant(`$e`)"
        none = f"{form} LIKE 'OBJECT%' OR {form} LIKE 'ARRAY%' OR ({form} = 'STRING' AND NOT try_variant_get(`$e`, '$', 'string') RLIKE {_NUMBER})"
        unfit = fail("INVALID_CAST_ARGUMENT", text_literal(f"Cannot cast input json to {_shown(kind)}"))
        inner = f"coalesce({inner}, IF({form} <> 'VOID', IF({none}, {_failure(text, kind, safe=False)}, {unfit}), NULL))"
    return None if inner is None else f"transform(array({read}), `$e` -> {inner})[0]"


def _with_keys(entries: str, kind: Type, cast: Cast, *, safe: bool, around: _Cast) -> str:
    """A map whose keys are the names of members, cast as text is; two of them may come to the same."""
    key = cast("`$k`", VARCHAR, kind, True)
    twice = "NULL" if safe else around.refusal("' Duplicate map keys are not allowed'")
    none = "NULL" if safe else around.refusal(_no_such("get(filter(map_keys(`$m`), `$k` -> " + key + " IS NULL), 0)", kind))
    whole = f"IF(size(array_distinct(`$n`)) < size(`$n`), {twice}, map_from_arrays(`$n`, map_values(`$m`)))"
    whole = f"IF(exists(`$n`, `$k` -> `$k` IS NULL), {none}, {whole})"
    keys = f"transform(map_keys(`$m`), `$k` -> {key})"
    return f"transform(array({entries}), `$m` -> transform(array({keys}), `$n` -> {whole})[0])[0]"


def _lost(value: str) -> str:
    """Return the condition that a member, ``$e``, cannot be cast. One such member makes the whole NULL under TRY_CAST."""
    return f"coalesce(schema_of_variant(`$e`) <> 'VOID', false) AND {value} IS NULL"


def _row(text: str, source: str, kind: Type, cast: Cast, *, safe: bool, around: _Cast) -> str | None:
    """A row of an object's members by their names, letters of either case, or of an array's elements by their places."""
    members, elements, lost_members, lost_elements = [], [], [], []
    for place, (name, part) in enumerate(zip(kind.fields, kind.parameters, strict=True)):
        inner = _part(part, cast, safe=safe, around=around)
        if inner is None:
            return None
        member = f"get(map_values(map_filter(`$m`, (`$k`, `$x`) -> lower(`$k`) = {text_literal((name or '').lower())})), 0)"
        column = text_literal(name or f"field{place}")
        members.append(f"{column}, transform(array({member}), `$e` -> {inner})[0]")
        elements.append(f"{column}, transform(array(`$a`[{place}]), `$e` -> {inner})[0]")
        lost_members.append(f"transform(array({member}), `$e` -> {_lost(inner)})[0]")
        lost_elements.append(f"transform(array(get(`$a`, {place})), `$e` -> {_lost(inner)})[0]")
    message = _failure(text, kind, safe=safe)
    opened = f"from_json(concat('{{\"v\":', {source}, '}}'), 'v {{}}').v"
    as_map, as_array = (opened.replace("{}", form) for form in ("MAP<STRING, VARIANT>", "ARRAY<VARIANT>"))
    # An object has no members without a name.
    row, listed = (f"named_struct({', '.join(parts)})" for parts in (members, elements))
    if safe:
        row, listed = f"IF({' OR '.join(lost_members)}, NULL, {row})", f"IF({' OR '.join(lost_elements)}, NULL, {listed})"
    names = ", ".join(text_literal((name or "").lower()) for name in kind.fields)
    twice = f"filter(array({names}), `$f` -> size(filter(map_keys(`$m`), `$k` -> lower(`$k`) = `$f`)) > 1)"
    said = (text_literal(f"Cannot cast to {kind}. Duplicate field: "), f"get({twice}, 0)", r"'\n'", text)
    row = f"IF(size({twice}) > 0, {'NULL' if safe else fail('INVALID_CAST_ARGUMENT', *said)}, {row})"
    named = f"transform(array({as_map}), `$m` -> {row})[0]" if all(kind.fields) else message
    listed = f"transform(array({as_array}), `$a` -> IF(size(`$a`) = {len(elements)}, {listed}, {message}))[0]"
    return (
        f"CASE WHEN {text} IS NULL OR {text} = 'null' THEN NULL WHEN {text} LIKE '{{%' THEN {named} "
        f"WHEN {text} LIKE '[%' THEN {listed} ELSE {_unexpected(text, 'array or object', around, safe=safe)} END"
    )


def _unexpected(text: str, wanted: str, around: _Cast, *, safe: bool) -> str:
    """Return what stands where an array or an object should begin: a text without its quotation marks, of others what they begin with."""
    if safe:
        return "NULL"
    read = f"from_json(concat('{{\"v\":', {text}, '}}'), 'v STRING').v"
    found = f"CASE WHEN {text} LIKE '\"%' THEN {read} WHEN {text} RLIKE '^[\\\\[{{]' THEN left({text}, 1) ELSE {text} END"
    return fail(
        "INVALID_CAST_ARGUMENT",
        text_literal(f"Cannot cast to {around.target}. Expected a json {wanted}, but got "),
        found,
        r"'\n'",
        around.text,
    )


def _failure(text: str, kind: Type, *, safe: bool) -> str:
    shown = str(kind).upper() if kind.base == "decimal" else kind
    return "NULL" if safe else fail("INVALID_CAST_ARGUMENT", "'Cannot cast \\''", text, text_literal(f"' to {shown}"))


_WORDS: Final = {"smallint": "INT", "integer": "INT"}
_NUMBER: Final = "'^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$'"


def _no_such(text: str, kind: Type) -> str:
    """Return why a text is no value of a type, as the errors of nested casts do."""
    if kind.base == "decimal":
        return f"IF({text} RLIKE {_NUMBER}, {text_literal(f' Cannot cast input json to {_shown(kind)}')}, '')"
    return f"concat(' Cannot cast \\'', {text}, '\\' to {_WORDS.get(kind.base, kind.base.upper())}')"


def _shown(kind: Type) -> str:
    return str(kind).upper() if kind.base == "decimal" else "integer" if kind.base == "smallint" else kind.base


def _part(kind: Type, cast: Cast, *, safe: bool, around: _Cast) -> str | None:
    if safe or kind.base in {"array", "map", "row", "json"}:
        return _from_variant("`$e`", kind, cast, safe=safe, around=around)
    return _member("`$e`", kind, cast, around)


def _member(value: str, kind: Type, cast: Cast, around: _Cast) -> str | None:
    """A scalar within an array or an object, whose failure is one of the whole: it names the whole, and what it says of the part is less."""
    tried = _from_variant(value, kind, cast, safe=True, around=around)
    if tried is None:
        return None
    text = f"try_variant_get({value}, '$', 'string')"
    number = f"CAST(try_variant_get({value}, '$', 'double') AS STRING)"
    form = f"schema_of_variant({value})"
    opened = f"WHEN {form} LIKE 'OBJECT%' OR {form} LIKE 'ARRAY%' THEN concat(' Unexpected token when cast to {_shown(kind)}: ', IF({form} LIKE 'OBJECT%', '{{', '['))"
    said = f" WHEN {form} = 'STRING' THEN {_no_such(text, kind)}" if kind.base != "varchar" else ""
    if kind.base == "decimal":
        said += f" WHEN {form} <> 'BOOLEAN' THEN {text_literal(f' Cannot cast input json to {_shown(kind)}')}"
    elif is_integer(kind):
        words = (
            f"' Unable to cast ', {number}, ' to bigint'" if kind == BIGINT else f"' Out of range for {_shown(kind)}: ', {number}"
        )
        if kind.base == "smallint":
            whole = f"try_cast({text} AS INT)"
            said += f" WHEN {whole} > 32767 THEN concat(' Value ', {whole}, ' exceeds MAX_SHORT for type smallint')"
            said += f" WHEN {whole} < -32768 THEN concat(' Value ', {whole}, ' is less than MIN_SHORT for type smallint')"
        said += f" WHEN {form} <> 'BIGINT' AND {form} NOT LIKE 'DECIMAL(%,0)' THEN concat({words})"
    refusal = around.refusal(f"CASE {opened}{said} ELSE '' END")
    return f"coalesce({tried}, IF({form} <> 'VOID', {refusal}, NULL))"


def _from_variant(value: str, kind: Type, cast: Cast, *, safe: bool, around: _Cast, document: str = "") -> str | None:
    """A scalar of a document, as errors show that: text is read as CAST from varchar reads it, numbers are rounded, true is 1."""
    text = f"try_variant_get({value}, '$', 'string')"
    form = f"schema_of_variant({value})"
    container = f"{form} LIKE 'OBJECT%' OR {form} LIKE 'ARRAY%'"
    message = _failure(document or f"to_json({value})", kind, safe=safe)
    if kind.base in {"array", "map", "row"}:
        return from_json(f"to_json({value})", kind, cast, safe=safe, around=around)
    if kind.base == "json":
        return escaped(f"to_json({value})")
    if kind.base == "varchar":
        whole = fitting(text, JSON, kind, safe)
        floating = once(
            lambda shown: fitting(shown, JSON, kind, safe),
            cast(f"try_variant_get({value}, '$', 'double')", DOUBLE, VARCHAR, safe),
        )
        return (
            f"CASE WHEN {container} THEN {message} WHEN {form} = 'DOUBLE' THEN {floating} WHEN {form} <> 'VOID' THEN {whole} END"
        )
    if kind.base == "boolean":
        number = f"try_variant_get({value}, '$', 'double') <> 0"
        large = f"{form} LIKE 'DECIMAL(%,0)' AND abs(try_variant_get({value}, '$', 'double')) > 9223372036854775807D"
        return (
            f"CASE WHEN {container} THEN {message} WHEN {form} = 'BOOLEAN' THEN try_variant_get({value}, '$', 'boolean') "
            f"WHEN {form} = 'STRING' THEN {cast(text, VARCHAR, kind, safe)} WHEN {large} THEN {message} "
            f"WHEN {form} <> 'VOID' THEN {number} END"
        )
    if is_integer(kind) or is_float(kind) or kind.base == "decimal":
        number = f"try_variant_get({value}, '$', 'double')"
        floating, read = cast(number, DOUBLE, kind, safe), cast(text, VARCHAR, kind, safe)
        whole = read
        if is_integer(kind):
            whole = f"coalesce(try_cast({text} AS {spark_type(kind)}), {_failure(text, kind, safe=safe)})"
        if is_integer(kind) and kind != BIGINT:
            # Whatever integer is wanted, Trino says that the number is none.
            low, high = -RANGES[kind.base] - 0.5, RANGES[kind.base] - 0.5
            shown = f"CAST({number} AS STRING)"
            floating = f"IF({number} > {low}D AND {number} < {high}D, {floating}, {_failure(shown, INTEGER, safe=safe)})"
        one = f"CAST(IF(try_variant_get({value}, '$', 'boolean'), 1, 0) AS {spark_type(kind)})"
        return (
            f"CASE WHEN {container} THEN {message} WHEN {form} = 'BOOLEAN' THEN {one} WHEN {form} = 'STRING' THEN {read} "
            f"WHEN {form} = 'BIGINT' OR {form} LIKE 'DECIMAL(%,0)' THEN {whole} WHEN {form} <> 'VOID' THEN {floating} END"
        )
    return None
