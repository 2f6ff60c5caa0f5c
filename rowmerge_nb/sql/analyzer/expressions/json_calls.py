"""Analyzes JSON_EXISTS, JSON_VALUE and JSON_QUERY."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.parser.json_path_reader import PathRefusedError, PathSyntaxError, parse_path
from rowmerge_nb.sql.parser.type_names import read_type
from rowmerge_nb.sql.tree import json_expressions as j
from rowmerge_nb.sql.tree.json_paths import PathVariable, parts_of_path
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.json_call_types import Looked
from rowmerge_nb.sql.typed.type_rules import can_coerce, is_numeric, is_text, too_precise

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.tree import syntax as s
    from rowmerge_nb.sql.tree.json_paths import JsonPath

_DATETIME: Final = frozenset(
    {"date", "time", "time with time zone", "timestamp", "timestamp with time zone"}
)
_FORMATS: Final = {
    "JSON": "JSON",
    **{f"UTF{bits}": f"JSON ENCODING UTF{bits}" for bits in (8, 16, 32)},
}


def json_lookup(analyzer: CallAnalyzer, node: j.JsonLookup) -> e.Typed:
    if node.path_name is not None:
        analyzer.context.error(
            "INVALID_PATH",
            f"JSON path name is not allowed in {node.name} function",
            node.path_name.span,
        )
    document = read_as_json(analyzer, node.input, f"{node.name} function input argument")
    path = _path(analyzer, node)
    variables, values = _passing(analyzer, node, path)
    sql_type, defaults = {"JSON_EXISTS": _exists, "JSON_VALUE": _value, "JSON_QUERY": _query}[
        node.name
    ](analyzer, node)
    arguments = (document, *values, *defaults)
    _without_queries(analyzer, node, node.name, arguments)
    missing = "FALSE" if node.name == "JSON_EXISTS" else "NULL"
    on_empty, on_error = (
        behavior.word if behavior else missing for behavior in (node.on_empty, node.on_error)
    )
    lookup = Looked(path, on_empty, on_error, node.wrapper, node.quotes, variables)
    return e.Apply(sql_type, "written", arguments, e.NamedOperation(node.name, lookup))


def _without_queries(
    analyzer: CallAnalyzer, node: s.Expression, name: str, values: tuple[e.Typed, ...]
) -> None:
    if any(isinstance(part, e.Subquery) for value in values for part in e.walk(value)):
        analyzer.refuse(f"{name} over a subquery is not supported by this engine", node)


def read_as_json(analyzer: CallAnalyzer, json_input: j.JsonInput, what: str) -> e.Typed:
    value = analyzer.analyze(json_input.value)
    form = json_input.format or "JSON"
    fits = value.type.base == "varchar" and form == "JSON"
    if not (fits or value.type in {UNKNOWN, Type("varbinary")}):
        message = (
            f"Cannot read input of type {value.type} as JSON using formatting {_FORMATS[form]}"
        )
        hint = (
            "Write json_format(...) around a value of type json."
            if value.type.base == "json"
            else None
        )
        analyzer.context.error("TYPE_MISMATCH", message, json_input.value.error_span, hint)
    if value.type.base == "varbinary":
        analyzer.refuse(
            f"{what} of type varbinary is not supported by this engine; write from_utf8(...)",
            json_input.value,
        )
    return analyzer.coerce(value, VARCHAR)


_PASSED: Final = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint", "real", "double", "varchar", "unknown"}
)


def _passing(
    analyzer: CallAnalyzer, node: j.JsonLookup, path: JsonPath
) -> tuple[tuple[tuple[str, bool], ...], tuple[e.Typed, ...]]:
    values_by_name: dict[str, tuple[bool, e.Typed]] = {}
    for json_input, name in node.passing:
        canonical_name = analyzer.context.canonical(name)
        if canonical_name in values_by_name:
            analyzer.context.error(
                "DUPLICATE_PARAMETER_NAME",
                f"{canonical_name} JSON path parameter is specified more than once",
                name.span,
            )
        if json_input.format:
            values_by_name[canonical_name] = (
                True,
                read_as_json(analyzer, json_input, f"{node.name} function JSON path parameter"),
            )
            continue
        value = analyzer.analyze(json_input.value)
        if value.type.base not in _PASSED:
            analyzer.refuse(
                f"A parameter of a JSON path of type {value.type} is not supported by this engine",
                json_input.value,
            )
        values_by_name[canonical_name] = False, value
    for part in parts_of_path(path.root):
        if isinstance(part, PathVariable) and part.name not in values_by_name:
            hint = (
                f'. Try quoting "{part.name}" in the PASSING clause to match case'
                if part.name.upper() in values_by_name
                else ""
            )
            analyzer.context.error(
                "INVALID_PATH", f"no value passed for parameter {part.name}{hint}", node.path.span
            )
    return tuple((name, is_json) for name, (is_json, _) in values_by_name.items()), tuple(
        value for _, value in values_by_name.values()
    )


def _path(analyzer: CallAnalyzer, node: j.JsonLookup) -> JsonPath:
    literal = analyzer.analyze(node.path)
    assert isinstance(literal, e.Constant)
    assert literal.value is not None
    try:
        return parse_path(literal.value)
    except PathSyntaxError as error:
        span, index = node.path.span, error.offset
        line = span.line + literal.value.count("\n", 0, index)
        before = literal.value.rfind("\n", 0, index)
        column = index - before if line > span.line else span.column + 1 + index
        begin = min(span.start + 1 + index, span.end)
        analyzer.context.error("SYNTAX_ERROR", error.message, Span(begin, span.end, line, column))
    except PathRefusedError as error:
        here = (
            ""
            if error.by_trino
            else f" in the JSON path '{literal.value}' is not supported by this engine"
        )
        analyzer.refuse(f"{error}{here}", node.path)


def _returning(analyzer: CallAnalyzer, node: j.JsonLookup | j.JsonConstructor) -> Type:
    if node.returning is None:
        return VARCHAR
    try:
        sql_type = read_type(node.returning)
    except AnalysisError:
        analyzer.context.error(
            "TYPE_MISMATCH", f"Unknown type: {node.returning.text}", node.error_span
        )
    if too_precise(sql_type):
        analyzer.refuse(
            f"The type {sql_type} is not supported by this engine: its values have microseconds",
            node,
        )
    return sql_type


# -- JSON_EXISTS

_Part = tuple[Type, list[e.Typed]]


def _exists(_analyzer: CallAnalyzer, _node: j.JsonLookup) -> _Part:
    return BOOLEAN, []


# -- JSON_VALUE


def _value(analyzer: CallAnalyzer, node: j.JsonLookup) -> _Part:
    sql_type = _returning(analyzer, node)
    if not (
        is_text(sql_type)
        or is_numeric(sql_type)
        or sql_type == BOOLEAN
        or sql_type.base in _DATETIME
    ):
        type_text = node.returning.text if node.returning else sql_type
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Invalid return type of function JSON_VALUE: {type_text}",
            node.error_span,
        )
    empty, error = (
        _default(analyzer, behavior, sql_type, when)
        for behavior, when in ((node.on_empty, "EMPTY"), (node.on_error, "ERROR"))
    )
    return sql_type, [default for default in (empty, error) if default is not None]


def _default(
    analyzer: CallAnalyzer, behavior: j.JsonBehavior | None, sql_type: Type, when: str
) -> e.Typed | None:
    if behavior is None or behavior.default is None:
        return None
    value = analyzer.analyze(behavior.default)
    if not can_coerce(value.type, sql_type):
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Function JSON_VALUE default ON {when} result must evaluate to a {sql_type} (actual:"
            f" {value.type})",
            behavior.default.error_span,
        )
    return analyzer.coerce(value, sql_type)


# -- JSON_QUERY


def _query(analyzer: CallAnalyzer, node: j.JsonLookup) -> _Part:
    if node.wrapper != "WITHOUT" and node.quotes is not None:
        analyzer.context.error(
            "INVALID_FUNCTION_ARGUMENT",
            f"{node.quotes} QUOTES behavior specified with WITH {node.wrapper} ARRAY WRAPPER"
            " behavior",
            node.error_span,
        )
    return output_type(analyzer, node), []


def output_type(analyzer: CallAnalyzer, node: j.JsonLookup | j.JsonConstructor) -> Type:
    sql_type = _returning(analyzer, node)
    form = node.output_format or "JSON"
    binary = sql_type.base == "varbinary"
    if not (binary or (form == "JSON" and is_text(sql_type))):
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Cannot output JSON value as {sql_type} using formatting {_FORMATS[form]}",
            node.error_span,
        )
    if form in {"UTF16", "UTF32"}:
        analyzer.refuse(f"{node.name} with ENCODING {form} is not supported by this engine", node)
    return sql_type
