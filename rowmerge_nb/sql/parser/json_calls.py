"""Parses JSON_EXISTS, JSON_VALUE, JSON_QUERY, JSON_OBJECT and JSON_ARRAY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.sql.parser.tokens import TokenKind
from rowmerge_nb.sql.tree import json_expressions as j

if TYPE_CHECKING:
    from rowmerge_nb.sql.parser.primaries import PrimaryReader
    from rowmerge_nb.sql.tree import syntax as s
    from rowmerge_nb.sql.tree.statements import Identifier


def json_lookup(reader: PrimaryReader, start: int) -> s.Expression:
    name = reader.take().word
    reader.expect("(")
    document = _input(reader)
    reader.expect(",")
    if reader.token.kind not in {TokenKind.STRING, TokenKind.UNICODE_STRING}:
        reader.note("<string>")
        reader.fail()
    path = reader.primary()
    path_name = reader.identifier() if reader.accept("AS") else None
    passing = _passing(reader)
    returning, output_format = (
        (None, None)
        if name == "JSON_EXISTS"
        else _returning(reader, with_format=name == "JSON_QUERY")
    )
    wrapper, quotes = _presentation(reader) if name == "JSON_QUERY" else ("WITHOUT", None)
    on_empty, on_error = _behaviors(reader, name)
    reader.expect(")")
    return j.JsonLookup(
        reader.span_from(start),
        name,
        document,
        path,
        path_name,
        passing,
        returning,
        output_format,
        wrapper,
        quotes,
        on_empty,
        on_error,
    )


def json_constructor(reader: PrimaryReader, start: int) -> s.Expression:
    name = reader.take().word
    reader.expect("(")
    keys: list[s.Expression] = []
    values: list[j.JsonInput] = []
    keeps_null, unique = name == "JSON_OBJECT", False
    if not reader.at(")", "RETURNING"):
        _member(reader, name, keys, values)
        while reader.accept(","):
            _member(reader, name, keys, values)
        word = reader.accept("NULL", "ABSENT")
        if word:
            keeps_null = word.word == "NULL"
            reader.expect("ON")
            reader.expect("NULL")
        if name == "JSON_OBJECT" and (with_word := reader.accept("WITH", "WITHOUT")):
            unique = with_word.word == "WITH"
            reader.expect("UNIQUE")
            reader.accept("KEYS")
    returning, output_format = _returning(reader, with_format=True)
    reader.expect(")")
    span = reader.span_from(start)
    return j.JsonConstructor(
        span, name, tuple(keys), tuple(values), keeps_null, unique, returning, output_format
    )


def _member(
    reader: PrimaryReader, name: str, keys: list[s.Expression], values: list[j.JsonInput]
) -> None:
    if name == "JSON_OBJECT":
        # KEY may be a name: JSON_OBJECT(key : 1) has a column's value as its key.
        if reader.token.word == "KEY" and reader.ahead().word not in {
            ":",
            "VALUE",
            ".",
            "(",
            "[",
            "||",
        }:
            reader.take()
            keys.append(reader.expression())
            reader.expect("VALUE")
        else:
            keys.append(reader.expression())
            reader.expect(":", "VALUE")
    values.append(_input(reader))


def _input(reader: PrimaryReader) -> j.JsonInput:
    value = reader.expression()
    return j.JsonInput(value, _format(reader))


def _format(reader: PrimaryReader) -> str | None:
    if not reader.accept("FORMAT"):
        return None
    reader.expect("JSON")
    return reader.expect("UTF8", "UTF16", "UTF32").word if reader.accept("ENCODING") else "JSON"


def _passing(reader: PrimaryReader) -> tuple[tuple[j.JsonInput, Identifier], ...]:
    variables: list[tuple[j.JsonInput, Identifier]] = []
    if reader.accept("PASSING"):
        while not variables or reader.accept(","):
            value = _input(reader)
            reader.expect("AS")
            variables.append((value, reader.identifier()))
    return tuple(variables)


def _returning(reader: PrimaryReader, *, with_format: bool) -> tuple[s.TypeName | None, str | None]:
    if not reader.accept("RETURNING"):
        return None, None
    type_name = reader.type_name()
    return type_name, _format(reader) if with_format else None


def _presentation(reader: PrimaryReader) -> tuple[str, str | None]:
    wrapper, quotes = "WITHOUT", None
    word = reader.accept("WITH", "WITHOUT")
    if word:
        if word.word == "WITH":
            condition_word = reader.accept("CONDITIONAL", "UNCONDITIONAL")
            wrapper = condition_word.word if condition_word else "UNCONDITIONAL"
        reader.accept("ARRAY")
        reader.expect("WRAPPER")
    word = reader.accept("KEEP", "OMIT")
    if word:
        quotes = word.word
        reader.expect("QUOTES")
        if reader.accept("ON"):
            reader.expect("SCALAR")
            reader.expect("STRING")
    return wrapper, quotes


def _behaviors(
    reader: PrimaryReader, name: str
) -> tuple[j.JsonBehavior | None, j.JsonBehavior | None]:
    words = {
        "JSON_EXISTS": ("TRUE", "FALSE", "UNKNOWN", "ERROR"),
        "JSON_VALUE": ("ERROR", "NULL", "DEFAULT"),
    }
    on_empty = None
    while behavior_word := reader.accept(*words.get(name, ("ERROR", "NULL", "EMPTY"))):
        word, default = behavior_word.word, None
        if word == "DEFAULT":
            default = reader.expression()
        elif word == "EMPTY":
            word = f"EMPTY {reader.expect('ARRAY', 'OBJECT').word}"
        reader.expect("ON")
        may_be_empty = name != "JSON_EXISTS" and on_empty is None
        if reader.expect(*(("EMPTY", "ERROR") if may_be_empty else ("ERROR",))).word == "ERROR":
            return on_empty, j.JsonBehavior(word, default)
        on_empty = j.JsonBehavior(word, default)
    return on_empty, None
