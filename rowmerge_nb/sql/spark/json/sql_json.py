"""Calls of SQL/JSON in Spark SQL."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT, BOOLEAN, DOUBLE, JSON, UNKNOWN, VARCHAR
from rowmerge_nb.sql.spark.casts.json_casts import to_json
from rowmerge_nb.sql.spark.casts.spark_casts import cast
from rowmerge_nb.sql.spark.json.sequences import json_text, sequence
from rowmerge_nb.sql.tree.json_paths import Document, JsonPath
from rowmerge_nb.sql.typed.cast_rules import can_cast
from rowmerge_nb.sql.typed.expressions import text_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.typed.expressions import Apply
    from rowmerge_nb.sql.typed.json_call_types import Constructed, Looked

    Failure: TypeAlias = Callable[..., str]

_WHOLE: Final = JsonPath(strict=False, root=Document())
_EMPTY: Final = {"EMPTY ARRAY": "'[]'", "EMPTY OBJECT": "'{}'"}
_RESULT: Final = "cannot extract SQL scalar from JSON: "
_OUTPUT: Final = "conversion from JSON failed: "
_INPUT: Final = "conversion to JSON failed: "


def _lookup(write: Callable[..., str]) -> Callable[..., str]:
    def write_call(node: Apply, failure: Failure, text: str, *rest: str) -> str:
        lookup: Looked = node.detail.key
        count = len(lookup.variables)
        inner = write(node, failure, *rest[count:])
        types = [argument.type for argument in node.arguments[1 : 1 + count]]
        variable_items = {
            name: _items(value, sql_type, is_json)
            for (name, is_json), value, sql_type in zip(
                lookup.variables, rest[:count], types, strict=True
            )
        }
        return (
            f"IF({text} IS NULL, NULL,"
            f" transform(array({sequence(text, lookup.path, variable_items)}), `$s` -> {inner})[0])"
        )

    return write_call


def _items(value: str, sql_type: Type, is_json: bool) -> str:
    """Write the items of a variable: NULL is JSON's null, or empty for a JSON variable."""
    if is_json:
        return f"IF({value} IS NULL, slice(array(''), 1, 0), {sequence(value, _WHOLE)})"
    item = (
        f"concat('\"', {value})"
        if sql_type.base == "varchar"
        else cast(value, sql_type, VARCHAR)
        if sql_type != UNKNOWN
        else value
    )
    return (
        f"array(coalesce({f'CAST({value} AS STRING)' if sql_type.base in {'real', 'double'} else item},"
        " 'null'))"
    )


_FAILED: Final = "size(`$s`) = 1 AND startswith(`$s`[0], '!')"


def _failures(failure: Callable[..., str]) -> tuple[str, str]:
    return failure("JSON_INPUT_CONVERSION_ERROR", text_literal(_INPUT)), failure(
        "PATH_EVALUATION_ERROR", "concat('path evaluation failed: ', substring(`$s`[0], 2))"
    )


def _exists(node: Apply, failure: Failure) -> str:
    word = node.detail.key.on_error
    plain = {"UNKNOWN": "NULL"}.get(word, word.lower())
    broken, wrong = (_failures(failure) if word == "ERROR" else (plain, plain))[:2]
    return (
        f"CASE WHEN `$s` IS NULL THEN {broken} WHEN {_FAILED} THEN {wrong} ELSE size(`$s`) > 0 END"
    )


# -- JSON_VALUE


def _value(node: Apply, failure: Failure, *texts: str) -> str:
    sql_type, lookup = node.type, node.detail.key
    defaults = list(texts)
    empty_result = defaults.pop(0) if lookup.on_empty == "DEFAULT" else "NULL"
    if lookup.on_empty == "ERROR":
        empty_result = failure(
            "JSON_VALUE_RESULT_ERROR", text_literal(f"{_RESULT}JSON path found no items")
        )
    fallback = defaults[0] if lookup.on_error == "DEFAULT" else "NULL"

    def result_failure(*message: str) -> str:
        return (
            failure("JSON_VALUE_RESULT_ERROR", *message) if lookup.on_error == "ERROR" else fallback
        )

    broken, wrong = _failures(failure) if lookup.on_error == "ERROR" else (fallback, fallback)
    several = result_failure(text_literal(f"{_RESULT}JSON path found multiple items"))
    return (
        f"CASE WHEN `$s` IS NULL THEN {broken} WHEN size(`$s`) = 0 THEN {empty_result} WHEN"
        f" {_FAILED} THEN {wrong} WHEN size(`$s`) > 1 THEN {several}"
        f" {_scalar(sql_type, result_failure)} END"
    )


def _scalar(target: Type, failure: Callable[..., str]) -> str:
    item = "`$s`[0]"
    no_value = failure(
        text_literal(f"{_RESULT}JSON path found an item that cannot be converted to an SQL value")
    )
    whole = f"try_cast({item} AS BIGINT)"
    small = f"{whole} BETWEEN -2147483648 AND 2147483647"

    def converted(text: str, source: Type, type_text: str) -> str:
        message = text_literal(f"{_RESULT}Cannot cast value of type ")
        ending = text_literal(f" to declared return type of function JSON_VALUE: {target}")
        refusal = failure(message, type_text, ending)
        if not can_cast(source, target):
            return refusal
        value = cast(text, source, target, safe=True)
        return value if refusal == "NULL" or source == target else f"coalesce({value}, {refusal})"

    return (
        f"WHEN {item} = 'null' THEN NULL WHEN {item} RLIKE '^[\\\\[{{]' THEN {no_value} WHEN"
        f" startswith({item}, '\"') THEN"
        f" {converted(f'substring({item}, 2)', VARCHAR, _SHOWN['varchar'])} WHEN {item} IN ('true',"
        f" 'false') THEN {converted(f'({item} = {_TRUE})', BOOLEAN, _SHOWN['boolean'])} WHEN {item}"
        f" RLIKE '[.EIN]' THEN {converted(f'CAST({item} AS DOUBLE)', DOUBLE, _SHOWN['double'])}"
        f" WHEN {whole} IS NULL THEN {no_value} ELSE {converted(whole, BIGINT, _integer(small))}"
    )


_TRUE: Final = "'true'"
_SHOWN: Final = {name: f"'{name}'" for name in ("varchar", "boolean", "double")}


def _integer(small: str) -> str:
    return f"IF({small}, 'integer', 'bigint')"


# -- JSON_QUERY


def _query(node: Apply, failure: Failure) -> str:
    lookup: Looked = node.detail.key

    def special(word: str, message: str) -> str:
        error = failure("JSON_OUTPUT_CONVERSION_ERROR", text_literal(f"{_OUTPUT}{message}"))
        return error if word == "ERROR" else _EMPTY.get(word, "NULL")

    fallback = _EMPTY.get(lookup.on_error, "NULL")
    broken, wrong = _failures(failure) if lookup.on_error == "ERROR" else (fallback, fallback)
    result = (
        f"CASE WHEN `$s` IS NULL THEN {broken} WHEN size(`$s`) = 0 THEN"
        f" {special(lookup.on_empty, 'JSON path found no items')} WHEN {_FAILED} THEN {wrong}"
        f" {_wrapped(lookup, special(lookup.on_error, 'JSON path found multiple items'))} END"
    )
    return _output(result, node.type)


def _wrapped(lookup: Looked, several: str) -> str:
    item = "`$s`[0]"
    whole = f"concat('[', array_join(transform(`$s`, `$x` -> {json_text('`$x`')}), ','), ']')"
    if lookup.wrapper == "UNCONDITIONAL":
        return f"ELSE {whole}"
    if lookup.wrapper == "CONDITIONAL":
        return (
            f"WHEN size(`$s`) = 1 AND {item} RLIKE '^[\\\\[{{]' THEN {json_text(item)} ELSE {whole}"
        )
    bare = (
        f"WHEN startswith({item}, '\"') THEN substring({item}, 2) "
        if lookup.quotes == "OMIT"
        else ""
    )
    return f"WHEN size(`$s`) > 1 THEN {several} {bare}ELSE {json_text(item)}"


def _output(text: str, sql_type: Type) -> str:
    if sql_type.base == "varbinary":
        return f"encode({text}, 'UTF-8')"
    return cast(text, VARCHAR, sql_type)


# -- JSON_OBJECT and JSON_ARRAY


def _values(node: Apply, failure: Failure, texts: Sequence[str]) -> list[str]:
    constructor: Constructed = node.detail.key
    types = [argument.type for argument in node.arguments[constructor.keys :]]
    parts = [
        _parsed(text, failure) if parsed else to_json(text, sql_type, JSON, False)
        for text, sql_type, parsed in zip(
            texts[constructor.keys :], types, constructor.read, strict=True
        )
    ]
    return [f"coalesce({part}, 'null')" for part in parts] if constructor.keeps_null else parts


def _array(node: Apply, failure: Failure, *texts: str) -> str:
    return _output(_joined("[", _values(node, failure, texts), "]"), node.type)


def _object(node: Apply, failure: Failure, *texts: str) -> str:
    constructor: Constructed = node.detail.key
    members_by_name = zip(texts[: constructor.keys], _values(node, failure, texts), strict=True)
    members = [f"concat({_key(name, failure)}, ':', {part})" for name, part in members_by_name]
    whole = _joined("{", [members[index] for index in constructor.order], "}")
    return _output(_unequal(node, texts[constructor.keys :], whole, failure), node.type)


def _parsed(text: str, failure: Callable[..., str]) -> str:
    broken = failure("JSON_INPUT_CONVERSION_ERROR", "'conversion to JSON failed: '")
    item = (
        f"transform(array({sequence(text, _WHOLE)}), `$s` -> coalesce({json_text('`$s`[0]')},"
        f" {broken}))[0]"
    )
    return f"IF({text} IS NULL, NULL, {item})"


def _key(text: str, failure: Callable[..., str]) -> str:
    missing = failure(
        "INVALID_FUNCTION_ARGUMENT",
        "'null value passed for JSON object key to JSON_OBJECT function'",
    )
    return f"coalesce({to_json(text, VARCHAR, JSON, False)}, {missing})"


def _joined(opening: str, parts: Sequence[str], closing: str) -> str:
    return (
        f"concat('{opening}', concat_ws(',', {', '.join(parts)}), '{closing}')"
        if parts
        else f"'{opening}{closing}'"
    )


def _unequal(node: Apply, values: Sequence[str], whole: str, failure: Failure) -> str:
    constructor: Constructed = node.detail.key
    keys = node.arguments[: constructor.keys]
    pairs = [(a, b) for a, b in combinations(range(constructor.keys), 2) if keys[a] == keys[b]]
    if not pairs:
        return whole
    message, code = "'cannot construct a JSON object with duplicate key'", "NOT_SUPPORTED"
    if constructor.unique:
        message = "'duplicate key passed to JSON_OBJECT function'"
        code = "INVALID_FUNCTION_ARGUMENT"
    if constructor.keeps_null:
        return f"CAST({failure(code, message)} AS STRING)"
    both = " OR ".join(f"({values[a]} IS NOT NULL AND {values[b]} IS NOT NULL)" for a, b in pairs)
    return f"CASE WHEN {both} THEN {failure(code, message)} ELSE {whole} END"


JSON_CALLS: Final[Mapping[str, Callable[..., str]]] = {
    "JSON_EXISTS": _lookup(_exists),
    "JSON_VALUE": _lookup(_value),
    "JSON_QUERY": _lookup(_query),
    "JSON_OBJECT": _object,
    "JSON_ARRAY": _array,
}
"""Writers by function; arguments: the call, a writer of failures, and the arguments' texts."""
