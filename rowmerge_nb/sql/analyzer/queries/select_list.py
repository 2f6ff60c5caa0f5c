"""The SELECT list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.sql.analyzer.scope import ScopeField
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer

    Fields = tuple[ScopeField, ...]


@dataclass(frozen=True)
class SelectedColumn:
    value: e.Typed
    field: ScopeField
    node: s.Node


def select_list(
    node: s.Select, analyzer: ExpressionAnalyzer, fields: Fields | None
) -> list[SelectedColumn]:
    """Return the columns of a SELECT list; ``fields`` is None without FROM."""
    outputs: list[SelectedColumn] = []
    used: set[str] = set()
    for item in node.items:
        if (
            isinstance(item, s.AllColumns)
            and item.target is not None
            and not _is_table(item.target, analyzer, fields)
        ):
            outputs += _fields(item, item.target, analyzer, used)
            continue
        if isinstance(item, s.AllColumns):
            columns = expanded(analyzer.context, item, fields)
            visible_columns = (
                ScopeField(c.symbol, c.name, c.type, c.qualifier, table=c.table) for c in columns
            )
            outputs += [
                _output(analyzer.context, e.Column(c.type, c.symbol), c, item, used)
                for c in visible_columns
            ]
            continue
        value = analyzer.analyze(item.value)
        outputs.append(
            _output(analyzer.context, value, output_field(item, analyzer, value), item.value, used)
        )
    return outputs


def output_field(item: s.SelectItem, analyzer: ExpressionAnalyzer, value: e.Typed) -> ScopeField:
    match = (
        analyzer.scope.find([part.value for part in item.value.parts])
        if isinstance(item.value, s.Name)
        else None
    )
    whole = (
        match is not None and isinstance(item.value, s.Name) and match.used == len(item.value.parts)
    )
    source = match.fields[0] if match is not None and whole else None
    table = source.table if source is not None and match is not None and match.depth == 0 else ()
    if item.alias is not None:
        return ScopeField("", item.alias.text, value.type, table=table, aliased=True)
    name = item.value.parts[-1].text if isinstance(item.value, s.Name) else None
    return ScopeField(
        "", name, value.type, source.qualifier if source is not None else (), table=table
    )


def expanded(context: Context, item: s.AllColumns, fields: Fields | None) -> tuple[ScopeField, ...]:
    columns = _expanded(context, item, fields)
    context.check_read(columns, item.span)
    return columns


def _expanded(
    context: Context, item: s.AllColumns, fields: Fields | None
) -> tuple[ScopeField, ...]:
    if fields is None:
        context.error(
            "COLUMN_NOT_FOUND", "SELECT * not allowed in queries without FROM clause", item.span
        )
    if item.target is None:
        return tuple(f for f in fields if not (f.qualified_only or f.is_hidden))
    assert isinstance(item.target, s.Name)
    parts = tuple(part.value for part in item.target.parts)
    columns = tuple(f for f in fields if f.qualifier[-len(parts) :] == parts and not f.is_hidden)
    if not columns:
        json = next((f for f in fields if f.name == parts[0] and f.type.base == "json"), None)
        if json is not None and len(parts) == 1:
            context.refuse(
                f"JSON accessors such as {parts[0]}.* are not supported by this engine",
                item.span,
                f"Write json_query({column_in_sql(parts[0])}, 'lax $.*' WITH ARRAY WRAPPER).",
            )
        row = next(
            (f for f in fields if f.name == parts[0] and f.qualifier and f.type.base == "row"), None
        )
        hint = (
            f"Write {column_in_sql(parts[0], row.qualifier[-1])}.* for the fields of the column {row.name}."
            if row
            else None
        )
        context.error(
            "TABLE_NOT_FOUND", f"Unable to resolve reference {'.'.join(parts)}", item.span, hint
        )
    if item.aliases:
        _check_aliases(context, item, len(columns))
        return tuple(
            replace(f, name=context.canonical(alias), qualifier=())
            for f, alias in zip(columns, item.aliases, strict=True)
        )
    return columns


def numbered_output(
    context: Context, item: s.Expression, outputs: Sequence[SelectedColumn], clause: str
) -> SelectedColumn | None:
    position = _position(item)
    if position is not None and not 1 <= position <= len(outputs):
        context.error(
            "INVALID_COLUMN_REFERENCE",
            f"{clause} position {position} is not in select list",
            item.span,
        )
    return None if position is None else outputs[position - 1]


def _position(item: s.Expression) -> int | None:
    if isinstance(item, s.Unary) and item.operator == "-" and isinstance(item.operand, s.Literal):
        position = _position(item.operand)
        return None if position is None else -position
    return int(item.value) if isinstance(item, s.Literal) and item.kind == "integer" else None


def outputs_by_name(outputs: Sequence[SelectedColumn]) -> dict[str, e.Typed | None]:
    """Return a SELECT list's expressions by name; None if ambiguous, a column reference if
    volatile.
    """
    by_name: dict[str, e.Typed | None] = {}
    for output in outputs:
        if output.field.name is not None:
            name, value = output.field.name.lower(), output.value
            if not e.is_deterministic(value):
                value = e.Column(output.field.type, output.field.symbol)
            by_name[name] = None if name in by_name else value
    return by_name


def _is_table(target: s.Expression, analyzer: ExpressionAnalyzer, fields: Fields | None) -> bool:
    """Return whether ``t`` in ``t.*`` is a table rather than a row; unknown names count as tables."""
    if not isinstance(target, s.Name):
        return False
    parts = tuple(part.value for part in target.parts)
    if any(f.qualifier[-len(parts) :] == parts for f in fields or ()):
        return True
    match = analyzer.scope.find(parts)
    return (
        match is None or match.used == 1 or all(field.type.base != "row" for field in match.fields)
    )


def _fields(
    item: s.AllColumns, target: s.Expression, analyzer: ExpressionAnalyzer, used: set[str]
) -> list[SelectedColumn]:
    row = analyzer.analyze(target)
    if row.type.base != "row":
        span = replace(analyzer.select or item.span, about=item.span)
        analyzer.context.error(
            "TYPE_MISMATCH", f"expected expression of type Row, but got {row.type}", span
        )
    names = list(row.type.fields)
    if item.aliases:
        _check_aliases(analyzer.context, item, len(names))
        names = [analyzer.context.canonical(alias) for alias in item.aliases]
    fields = [
        e.Apply(field_type, "field", (row,), index)
        for index, field_type in enumerate(row.type.parameters)
    ]
    return [
        _output(analyzer.context, field, ScopeField("", name, field.type), target, used)
        for field, name in zip(fields, names, strict=True)
    ]


def _check_aliases(context: Context, item: s.AllColumns, count: int) -> None:
    if len(item.aliases) != count:
        context.error(
            "MISMATCHED_COLUMN_ALIASES",
            f"Column alias list has {len(item.aliases)} entries but relation has {count} columns",
            item.aliases[0].span,
        )


def _output(
    context: Context, value: e.Typed, field: ScopeField, node: s.Node, used: set[str]
) -> SelectedColumn:
    is_passed = isinstance(value, e.Column) and not value.outer and value.symbol not in used
    symbol = (
        value.symbol
        if is_passed and isinstance(value, e.Column)
        else context.symbols.new(field.name)
    )
    used.add(symbol)
    return SelectedColumn(value, replace(field, symbol=symbol), node)
