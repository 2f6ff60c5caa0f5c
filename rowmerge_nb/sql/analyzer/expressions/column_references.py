"""Analyzes names of columns and fields of rows, with hints on wrong ones."""

# Context.error and refuse never return.
# ruff: noqa: RET503

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.analyzer.expressions.subscripts import refuse_accessor
from rowmerge_nb.sql.functions.foreign_names import column_hint
from rowmerge_nb.sql.parser.column_names import column_in_sql, offer
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
    from rowmerge_nb.sql.analyzer.scope import Match, ScopeField
    from rowmerge_nb.sql.tree.statements import Identifier

_COMPARED: Final = re.compile(r"(?:=|<>)\s*\Z")
"""What precedes a value that may be text without its quotes."""
_DIFFERS: Final = re.compile(r"(?:<>|!=)\s*\Z")
_MISSING: Final = re.compile(r"(?i)(?:(?:pd|np|pandas|numpy|math)\s*\.\s*)?(?:nan|nat|na|none)")
"""How Python and pandas write a missing value."""
_OUTPUT_ROWS: Final = {"inserted": "new", "deleted": "old"}
"""The rows of SQL Server's OUTPUT as those of RETURNING."""
_LISTED: Final = 8
"""The columns listed for a name that does not exist."""


def column_reference(analyzer: ExpressionAnalyzer, node: s.Name) -> e.Typed:
    parts = [part.value for part in node.parts]
    if parts[0] in analyzer.variables:
        value = analyzer.variables[parts[0]]
        return value if len(parts) == 1 else _fields(analyzer, value, node, 1)
    if parts[0] in analyzer.outputs:
        return _fields(analyzer, _output(analyzer, node, parts[0]), node, 1)
    match = analyzer.scope.find(parts)
    full_name = ".".join(parts)
    if match is None:
        hint = (
            _output_hint(analyzer, node, parts)
            or analyzer.context.tables.frame_hint(parts[-1])
            or (column_hint(parts[0]) if len(parts) == 1 else None)
            or _table_hint(analyzer, parts)
            or _split_name_hint(node, analyzer.scope.fields, analyzer.context.text)
            or _near_hint(analyzer, node, parts)
        )
        analyzer.context.error(
            "COLUMN_NOT_FOUND", f"Column '{full_name}' cannot be resolved", node.span, hint
        )
    if analyzer.scope.blocked(match.depth):
        analyzer.context.refuse(
            f"Reference to column '{full_name}' from outer scope not allowed in this context",
            node.span,
        )
    field = (
        match.fields[0]
        if len(match.fields) == 1
        else _preferred_field(analyzer, node, match, full_name)
    )
    analyzer.context.check_read((field,), node.span)
    return _fields(analyzer, field.read(outer=match.depth > 0), node, match.used)


def _output_hint(analyzer: ExpressionAnalyzer, node: s.Name, parts: Sequence[str]) -> str | None:
    row = _OUTPUT_ROWS.get(parts[0])
    if row is None or len(parts) == 1:
        return None
    column = node.parts[-1].text
    if any(field.qualifier[-1:] == (row,) for field in analyzer.scope.fields):
        return f"Write {column_in_sql(column, row)} instead of {parts[0]}.{column}."
    return (
        f"Trino has no rows of OUTPUT. Write RETURNING {column_in_sql(column, row)} at the end,"
        " with --dialect extended."
    )


def _near_hint(analyzer: ExpressionAnalyzer, node: s.Name, parts: Sequence[str]) -> str | None:
    """Return the most similar column, or the columns; text without single quotes is noticed."""
    if _MISSING.fullmatch(node.span.of(analyzer.context.text)):
        literal = node.parts[-1].text
        differs = _DIFFERS.search(analyzer.context.text[: node.span.start])
        form = "IS NOT NULL" if differs else "IS NULL, or NULL for a value,"
        return f"Write {form} instead of {literal}; pandas' NaN is NULL here."
    near = analyzer.scope.like(parts)
    text = f"Text is written in single quotes: '{node.parts[0].text}'."
    columns = _columns_hint(analyzer, parts)
    if len(parts) == 1 and node.span.of(analyzer.context.text).startswith('"'):
        return f"{offer(near)} {text}" if near else text
    if near:
        return offer(near)
    is_compared = _COMPARED.search(analyzer.context.text[: node.span.start])
    return f"{text} {columns or ''}".rstrip() if len(parts) == 1 and is_compared else columns


def _columns_hint(analyzer: ExpressionAnalyzer, parts: Sequence[str]) -> str | None:
    names = dict.fromkeys(
        column_in_sql(field.name)
        for field in analyzer.scope.fields
        if field.name is not None
        and not field.is_hidden
        and (len(parts) == 1 or field.qualifier[-1:] == (parts[-2],))
    )
    if not names:
        return None
    rest = ", ..." if len(names) > _LISTED else ""
    return f"The columns are {', '.join([*names][:_LISTED])}{rest}."


def _table_hint(analyzer: ExpressionAnalyzer, parts: Sequence[str]) -> str | None:
    columns = [
        f"{parts[0]}.{field.name}"
        for field in analyzer.scope.fields
        if field.qualifier[-1:] == (parts[0],) and field.name is not None
    ]
    if len(parts) > 1:
        unnamed = [f for f in analyzer.scope.fields if f.name == parts[1] and not f.qualifier]
        return (
            f"A query within parentheses has no name; write one after it: (...) {parts[0]}."
            if len(parts) == 2 and unnamed and not columns
            else None
        )
    if columns:
        return f"{parts[0]} is a table; write one of its columns: {', '.join(columns[:4])}."
    if any(field.qualifier[-1:] == (parts[0],) for field in analyzer.scope.fields):
        return f"{parts[0]} is a table; name its column: AS {parts[0]} (x)."
    if re.search(rf"(?i)\bAS\s+{re.escape(parts[0])}\b", analyzer.context.text):
        return (
            f"{parts[0]} is a name of SELECT, which is computed later: repeat its expression, or"
            " write the query in parentheses in FROM."
        )
    return None


def _output(analyzer: ExpressionAnalyzer, node: s.Name, name: str) -> e.Typed:
    """Return an expression of the SELECT list; ORDER BY sees it before FROM, but an aggregate
    may not use it.
    """
    value = analyzer.outputs[name]
    if analyzer.inside_aggregate:
        analyzer.context.error(
            "COLUMN_NOT_FOUND",
            "Invalid reference to output projection attribute from ORDER BY aggregation",
            node.span,
        )
    if value is None:
        analyzer.context.error("AMBIGUOUS_NAME", f"Column '{name}' is ambiguous", node.span)
    return value


def _preferred_field(
    analyzer: ExpressionAnalyzer, node: s.Name, match: Match, full_name: str
) -> ScopeField:
    targets = [field for field in match.fields if field.target]
    is_bare = len(node.parts) == 1 and len(targets) == 1
    if (
        is_bare
        and analyzer.prefers_target is not None
        and analyzer.prefers_target(node.parts[0].value)
    ):
        analyzer.context.notice(
            f"Trino refuses the name '{node.parts[0].text}', which both sides have; here it"
            " means the target's column.",
            node.span,
        )
        return targets[0]
    hint = _qualified_names(match)
    analyzer.context.error("AMBIGUOUS_NAME", f"Column '{full_name}' is ambiguous", node.span, hint)


def _fields(analyzer: ExpressionAnalyzer, base: e.Typed, node: s.Name, used: int) -> e.Typed:
    for index, part in enumerate(node.parts[used:], used):
        prefix = ".".join(part.value for part in node.parts[:index])
        base = _field(analyzer, base, part, node, prefix, f"{prefix}.{part.value}")
    return base


def _field(
    analyzer: ExpressionAnalyzer,
    base: e.Typed,
    part: Identifier,
    node: s.Expression,
    row_text: str,
    field_text: str,
) -> e.Typed:
    """Return a field of a row; errors call the row ``row_text`` and the field ``field_text``."""
    if base.type.base == "json" and isinstance(base, e.Column):
        refuse_accessor(analyzer, f"{row_text}.{part.text}", f"{row_text}, '$.{part.text}'", node)
    if base.type.base != "row":
        analyzer.context.error(
            "TYPE_MISMATCH", f"Expression {row_text} is not of type ROW", node.span
        )
    names = [field.lower() if field else None for field in base.type.fields]
    if part.value not in names:
        analyzer.context.error(
            "INVALID_COLUMN_REFERENCE", f"Column reference '{field_text}' is invalid", node.span
        )
    if names.count(part.value) != 1:
        analyzer.context.error(
            "AMBIGUOUS_NAME", f"Ambiguous row field reference: {part.text}", part.span
        )
    index = names.index(part.value)
    return e.Apply(base.type.parameters[index], "field", (base,), index)


def dereference(analyzer: ExpressionAnalyzer, node: s.Dereference) -> e.Typed:
    base = analyzer.analyze(node.base)
    return _field(
        analyzer, base, node.field, node, node.base.span.of(analyzer.context.text), node.field.value
    )


def _qualified_names(match: Match) -> str | None:
    qualifiers = sorted({field.qualifier[-1] for field in match.fields if field.qualifier})
    if len(qualifiers) < 2:
        return None
    name = str(match.fields[0].name)
    return f"Write {' or '.join(column_in_sql(name, qualifier) for qualifier in qualifiers)}."


def _split_name_hint(node: s.Name, fields: Sequence[ScopeField], text: str) -> str | None:
    """Return a hint if the statement writes a column such as ``E-Mail`` without double quotes."""
    start = node.parts[-1].span.start
    for field in fields:
        name = field.name or ""
        if re.fullmatch(r"\w*", name):
            continue
        for match in re.finditer(re.escape(name.strip()), text, re.IGNORECASE):
            is_quoted = text[max(match.start() - 1, 0)] == '"'
            if match.start() <= start < match.end() and not is_quoted:
                qualifier = field.qualifier[-1] if len(node.parts) > 1 and field.qualifier else None
                column = column_in_sql(name, qualifier)
                return f"Is this one name? Write it in double quotes: {column}."
    return None
