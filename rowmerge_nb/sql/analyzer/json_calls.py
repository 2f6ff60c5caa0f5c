"""Gives JSON_EXISTS, JSON_VALUE and JSON_QUERY their meaning: their types, and what they are in Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.errors import AnalysisError
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, DOUBLE, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.parser.statements import read_type
from rowmerge_nb.sql.spark.casts.casts import cast
from rowmerge_nb.sql.spark.json.sequences import PathRefusedError, PathSyntaxError, json_text, parse_path, sequence
from rowmerge_nb.sql.tree import json as j
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.casts import can_cast
from rowmerge_nb.sql.typed.types import can_coerce, is_numeric, is_text, too_precise

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.analyzer.calls import CallAnalyzer
    from rowmerge_nb.sql.tree import syntax as s

__all__ = ["json_lookup", "json_output", "output_type", "read_as_json"]

_DATETIME: Final = frozenset({"date", "time", "time with time zone", "timestamp", "timestamp with time zone"})
_EMPTY: Final = {"EMPTY ARRAY": "'[]'", "EMPTY OBJECT": "'{}'"}
_RESULT: Final = "cannot extract SQL scalar from JSON: "
_OUTPUT: Final = "conversion from JSON failed: "
_INPUT: Final = "conversion to JSON failed: "
_FORMATS: Final = {"JSON": "JSON", **{f"UTF{bits}": f"JSON ENCODING UTF{bits}" for bits in (8, 16, 32)}}


def json_lookup(analyzer: CallAnalyzer, node: j.JsonLookup) -> e.Typed:
    """Analyze JSON_EXISTS, JSON_VALUE or JSON_QUERY.

    Raises:
        AnalysisError: with Trino's words where Trino refuses the call, with NOT_SUPPORTED where only this engine does.
    """
    if node.path_name is not None:
        analyzer.context.error("INVALID_PATH", f"JSON path name is not allowed in {node.name} function", node.path_name.span)
    document = read_as_json(analyzer, node.input, f"{node.name} function input argument")
    if node.passing is not None:
        analyzer.refuse(f"PASSING in {node.name} is not supported by this engine", node.passing.value)
    path = _path(analyzer, node)
    writer = {"JSON_EXISTS": _exists, "JSON_VALUE": _value, "JSON_QUERY": _query}[node.name]
    kind, defaults, write = writer(analyzer, node)
    arguments = (document, *defaults)
    _without_queries(analyzer, node, node.name, arguments)

    def written(failure: Callable[..., str], text: str, *rest: str) -> str:
        inner = write(failure, *rest)
        return f"IF({text} IS NULL, NULL, transform(array({sequence(text, parse_path(path))}), `$s` -> {inner})[0])"

    # What is not an argument tells one call from another, GROUP BY compares by it.
    returned = node.returning.text if node.returning else None
    words = tuple(behavior.word if behavior else None for behavior in (node.on_empty, node.on_error))
    key = (path, returned, node.output_format, node.wrapper, node.quotes, words, len(defaults))
    return e.Apply(kind, "written", arguments, e.Written(node.name, key, written))


def _without_queries(analyzer: CallAnalyzer, node: s.Expression, name: str, values: tuple[e.Typed, ...]) -> None:
    if any(isinstance(part, e.Subquery) for value in values for part in e.walk(value)):
        analyzer.refuse(f"{name} over a subquery is not supported by this engine", node)


def read_as_json(analyzer: CallAnalyzer, given: j.JsonInput, what: str) -> e.Typed:
    """Analyze a value that is read as JSON; it must be text. ``what`` names it in a refusal.

    Raises:
        AnalysisError: TYPE_MISMATCH where Trino reads no JSON from the type, NOT_SUPPORTED where only this engine does not.
    """
    value = analyzer.analyze(given.value)
    form = given.format or "JSON"
    fits = is_text(value.type) if form == "JSON" else False
    if not (fits or value.type in {UNKNOWN, Type("varbinary")}):
        said = f"Cannot read input of type {value.type} as JSON using formatting {_FORMATS[form]}"
        hint = "Write json_format(...) around a value of type json." if value.type.base == "json" else None
        analyzer.context.error("TYPE_MISMATCH", said, given.value.place, hint)
    if value.type.base == "varbinary":
        analyzer.refuse(f"{what} of type varbinary is not supported by this engine; write from_utf8(...)", given.value)
    return analyzer.coerce(value, VARCHAR)


def _path(analyzer: CallAnalyzer, node: j.JsonLookup) -> str:
    literal = analyzer.analyze(node.path)
    assert isinstance(literal, e.Constant)
    assert literal.value is not None
    try:
        parse_path(literal.value)
    except PathSyntaxError as error:
        span, place = node.path.span, error.offset
        line, before = span.line + literal.value.count("\n", 0, place), literal.value.rfind("\n", 0, place)
        column = place - before if line > span.line else span.column + 1 + place
        begin = min(span.start + 1 + place, span.end)
        analyzer.context.error("SYNTAX_ERROR", error.message, Span(begin, span.end, line, column))
    except PathRefusedError as error:
        analyzer.refuse(f"{error} in the JSON path '{literal.value}' is not supported by this engine", node.path)
    return literal.value


def _returned(analyzer: CallAnalyzer, node: j.JsonLookup | j.JsonConstructor) -> Type:
    if node.returning is None:
        return VARCHAR
    try:
        kind = read_type(node.returning)
    except AnalysisError:
        analyzer.context.error("TYPE_MISMATCH", f"Unknown type: {node.returning.text}", node.place)
    if too_precise(kind):
        analyzer.refuse(f"The type {kind} is not supported by this engine: its values have microseconds", node)
    return kind


# -- JSON_EXISTS ------------------------------------------------------------------------------------------------------

_Part = tuple[Type, list[e.Typed], "Callable[..., str]"]


def _exists(_analyzer: CallAnalyzer, node: j.JsonLookup) -> _Part:
    word = node.on_error.word if node.on_error else "FALSE"

    def write(failure: Callable[..., str]) -> str:
        plain = {"UNKNOWN": "NULL"}.get(word, word.lower())
        broken, wrong = (_failures(failure) if word == "ERROR" else (plain, plain))[:2]
        return f"CASE WHEN `$s` IS NULL THEN {broken} WHEN {_FAILED} THEN {wrong} ELSE size(`$s`) > 0 END"

    return BOOLEAN, [], write


_FAILED: Final = "size(`$s`) = 1 AND startswith(`$s`[0], '!')"


def _failures(failure: Callable[..., str]) -> tuple[str, str]:
    """The errors of a text that is no JSON, and of a path that cannot be followed."""
    said = "concat('path evaluation failed: ', substring(`$s`[0], 2))"
    return failure("JSON_INPUT_CONVERSION_ERROR", e.text_literal(_INPUT)), failure("PATH_EVALUATION_ERROR", said)


# -- JSON_VALUE -------------------------------------------------------------------------------------------------------


def _value(analyzer: CallAnalyzer, node: j.JsonLookup) -> _Part:
    kind = _returned(analyzer, node)
    if not (is_text(kind) or is_numeric(kind) or kind == BOOLEAN or kind.base in _DATETIME):
        shown = node.returning.text if node.returning else kind
        analyzer.context.error("TYPE_MISMATCH", f"Invalid return type of function JSON_VALUE: {shown}", node.place)
    empty, error = (
        _default(analyzer, behavior, kind, when) for behavior, when in ((node.on_empty, "EMPTY"), (node.on_error, "ERROR"))
    )
    on_empty, on_error = (behavior.word if behavior else "NULL" for behavior in (node.on_empty, node.on_error))

    def write(failure: Callable[..., str], *texts: str) -> str:
        defaults = list(texts)
        otherwise = defaults.pop(0) if empty else "NULL"
        if on_empty == "ERROR":
            otherwise = failure("JSON_VALUE_RESULT_ERROR", e.text_literal(f"{_RESULT}JSON path found no items"))
        fallback = defaults[0] if error else "NULL"

        def failed(*message: str) -> str:
            return failure("JSON_VALUE_RESULT_ERROR", *message) if on_error == "ERROR" else fallback

        broken, wrong = _failures(failure) if on_error == "ERROR" else (fallback, fallback)
        several = failed(e.text_literal(f"{_RESULT}JSON path found multiple items"))
        return (
            f"CASE WHEN `$s` IS NULL THEN {broken} WHEN size(`$s`) = 0 THEN {otherwise} WHEN {_FAILED} THEN {wrong} "
            f"WHEN size(`$s`) > 1 THEN {several} {_scalar(kind, failed)} END"
        )

    return kind, [default for default in (empty, error) if default is not None], write


def _default(analyzer: CallAnalyzer, behavior: j.JsonBehavior | None, kind: Type, when: str) -> e.Typed | None:
    if behavior is None or behavior.default is None:
        return None
    value = analyzer.analyze(behavior.default)
    if not can_coerce(value.type, kind):
        said = f"Function JSON_VALUE default ON {when} result must evaluate to a {kind} (actual: {value.type})"
        analyzer.context.error("TYPE_MISMATCH", said, behavior.default.place)
    return analyzer.coerce(value, kind)


def _scalar(kind: Type, failed: Callable[..., str]) -> str:
    """The branches for one item: as boolean, varchar, bigint or double, and from that by CAST to the type wanted."""
    item = "`$s`[0]"
    no_value = failed(e.text_literal(f"{_RESULT}JSON path found an item that cannot be converted to an SQL value"))
    whole = f"try_cast({item} AS BIGINT)"
    small = f"{whole} BETWEEN -2147483648 AND 2147483647"

    def converted(text: str, source: Type, shown: str) -> str:
        said = e.text_literal(f"{_RESULT}Cannot cast value of type ")
        target = e.text_literal(f" to declared return type of function JSON_VALUE: {kind}")
        refused = failed(said, shown, target)
        if not can_cast(source, kind):
            return refused
        found = cast(text, source, kind, safe=True)
        return found if refused == "NULL" or source == kind else f"coalesce({found}, {refused})"

    return (
        f"WHEN {item} = 'null' THEN NULL WHEN {item} RLIKE '^[\\\\[{{]' THEN {no_value} "
        f"WHEN startswith({item}, '\"') THEN {converted(f'substring({item}, 2)', VARCHAR, _SHOWN['varchar'])} "
        f"WHEN {item} IN ('true', 'false') THEN {converted(f'({item} = {_TRUE})', BOOLEAN, _SHOWN['boolean'])} "
        f"WHEN {item} RLIKE '[.EI]' THEN {converted(f'CAST({item} AS DOUBLE)', DOUBLE, _SHOWN['double'])} "
        f"WHEN {whole} IS NULL THEN {no_value} ELSE {converted(whole, BIGINT, _integer(small))}"
    )


_TRUE: Final = "'true'"
_SHOWN: Final = {name: f"'{name}'" for name in ("varchar", "boolean", "double")}


def _integer(small: str) -> str:
    return f"IF({small}, 'integer', 'bigint')"


# -- JSON_QUERY -------------------------------------------------------------------------------------------------------


def _query(analyzer: CallAnalyzer, node: j.JsonLookup) -> _Part:
    if node.wrapper != "WITHOUT" and node.quotes is not None:
        said = f"{node.quotes} QUOTES behavior specified with WITH {node.wrapper} ARRAY WRAPPER behavior"
        analyzer.context.error("INVALID_FUNCTION_ARGUMENT", said, node.place)
    kind = output_type(analyzer, node)
    on_empty, on_error = (behavior.word if behavior else "NULL" for behavior in (node.on_empty, node.on_error))

    def write(failure: Callable[..., str]) -> str:
        def special(word: str, message: str) -> str:
            error = failure("JSON_OUTPUT_CONVERSION_ERROR", e.text_literal(f"{_OUTPUT}{message}"))
            return error if word == "ERROR" else _EMPTY.get(word, "NULL")

        fallback = _EMPTY.get(on_error, "NULL")
        broken, wrong = _failures(failure) if on_error == "ERROR" else (fallback, fallback)
        found = (
            f"CASE WHEN `$s` IS NULL THEN {broken} WHEN size(`$s`) = 0 THEN {special(on_empty, 'JSON path found no items')} "
            f"WHEN {_FAILED} THEN {wrong} {_wrapped(node, special(on_error, 'JSON path found multiple items'))} END"
        )
        return json_output(found, kind)

    return kind, [], write


def _wrapped(node: j.JsonLookup, several: str) -> str:
    item = "`$s`[0]"
    whole = f"concat('[', array_join(transform(`$s`, `$x` -> {json_text('`$x`')}), ','), ']')"
    if node.wrapper == "UNCONDITIONAL":
        return f"ELSE {whole}"
    if node.wrapper == "CONDITIONAL":
        return f"WHEN size(`$s`) = 1 AND {item} RLIKE '^[\\\\[{{]' THEN {json_text(item)} ELSE {whole}"
    bare = f"WHEN startswith({item}, '\"') THEN substring({item}, 2) " if node.quotes == "OMIT" else ""
    return f"WHEN size(`$s`) > 1 THEN {several} {bare}ELSE {json_text(item)}"


def output_type(analyzer: CallAnalyzer, node: j.JsonLookup | j.JsonConstructor) -> Type:
    """Give the type that a call returns JSON text as.

    Raises:
        AnalysisError: TYPE_MISMATCH where Trino does not write JSON as the type, NOT_SUPPORTED where only this engine does not.
    """
    kind = _returned(analyzer, node)
    form = node.output_format or "JSON"
    binary = kind.base == "varbinary"
    if not (binary or (form == "JSON" and is_text(kind))):
        said = f"Cannot output JSON value as {kind} using formatting {_FORMATS[form]}"
        analyzer.context.error("TYPE_MISMATCH", said, node.place)
    if form in {"UTF16", "UTF32"}:
        analyzer.refuse(f"{node.name} with ENCODING {form} is not supported by this engine", node)
    return kind


def json_output(text: str, kind: Type) -> str:
    """Write JSON text as the type that a call returns."""
    if kind.base == "varbinary":
        return f"encode({text}, 'UTF-8')"
    return cast(text, VARCHAR, kind)
