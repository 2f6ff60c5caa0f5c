"""The SELECT list: what each of its columns is, what it is called, and what ``*`` stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.sql.analyzer.scope import ScopeField
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer

    Fields = tuple[ScopeField, ...]


@dataclass(frozen=True)
class Output:
    """A column of a SELECT list: its expression, the field it makes, and where it was written."""

    value: e.Typed
    field: ScopeField
    node: s.Node


def select_list(node: s.Select, analyzer: ExpressionAnalyzer, fields: Fields | None) -> list[Output]:
    """Return the columns of a SELECT list.

    Args:
        node: the SELECT.
        analyzer: analyzes expressions over the relation.
        fields: the columns of FROM; None without FROM.

    Raises:
        AnalysisError: as expressions and ``*`` do.
    """
    outputs: list[Output] = []
    used: set[str] = set()
    for item in node.items:
        if isinstance(item, s.AllColumns) and item.target is not None and not _is_table(item.target, analyzer, fields):
            outputs += _fields(item, item.target, analyzer, used)
            continue
        if isinstance(item, s.AllColumns):
            columns = expanded(analyzer.context, item, fields)
            passed = (ScopeField(c.symbol, c.name, c.type, c.qualifier, table=c.table) for c in columns)
            outputs += [_output(analyzer.context, e.Column(c.type, c.symbol), c, item, used) for c in passed]
            continue
        value = analyzer.analyze(item.value)
        outputs.append(_output(analyzer.context, value, output_field(item, analyzer, value), item.value, used))
    return outputs


def output_field(item: s.SelectItem, analyzer: ExpressionAnalyzer, value: e.Typed) -> ScopeField:
    """Return the column that an item of a SELECT list makes, but for its symbol.

    Args:
        item: the item.
        analyzer: has analyzed it.
        value: what it means.
    """
    found = analyzer.scope.find([part.value for part in item.value.parts]) if isinstance(item.value, s.Name) else None
    whole = found is not None and isinstance(item.value, s.Name) and found.used == len(item.value.parts)
    source = found.fields[0] if found is not None and whole else None
    table = source.table if source is not None and found is not None and found.depth == 0 else ()
    if item.alias is not None:
        return ScopeField("", item.alias.text, value.type, table=table, aliased=True)
    name = item.value.parts[-1].text if isinstance(item.value, s.Name) else None
    return ScopeField("", name, value.type, source.qualifier if source is not None else (), table=table)


def expanded(context: Context, item: s.AllColumns, fields: Fields | None) -> tuple[ScopeField, ...]:
    """Return the columns that ``*`` or ``t.*`` means.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND without FROM, TABLE_NOT_FOUND, MISMATCHED_COLUMN_ALIASES, and that of a column that is refused.
    """
    columns = _expanded(context, item, fields)
    context.check_read(columns, item.span)
    return columns


def _expanded(context: Context, item: s.AllColumns, fields: Fields | None) -> tuple[ScopeField, ...]:
    if fields is None:
        context.error("COLUMN_NOT_FOUND", "SELECT * not allowed in queries without FROM clause", item.span)
    if item.target is None:
        return tuple(f for f in fields if not (f.qualified_only or f.hidden))
    assert isinstance(item.target, s.Name)
    parts = tuple(part.value for part in item.target.parts)
    columns = tuple(f for f in fields if f.qualifier[-len(parts) :] == parts and not f.hidden)
    if not columns:
        row = next((f for f in fields if f.name == parts[0] and f.qualifier and f.type.base == "row"), None)
        hint = f"Write {row.qualifier[-1]}.{row.name}.* for the fields of the column {row.name}." if row else None
        context.error("TABLE_NOT_FOUND", f"Unable to resolve reference {'.'.join(parts)}", item.span, hint)
    if item.aliases:
        _check_aliases(context, item, len(columns))
        return tuple(
            replace(f, name=context.canonical(alias), qualifier=()) for f, alias in zip(columns, item.aliases, strict=True)
        )
    return columns


def numbered_output(context: Context, item: s.Expression, outputs: Sequence[Output], clause: str) -> Output | None:
    """Return the column that a number in GROUP BY or ORDER BY means; None for what is no number.

    Raises:
        AnalysisError: INVALID_COLUMN_REFERENCE, there is no such column.
    """
    place = _place(item)
    if place is not None and not 1 <= place <= len(outputs):
        context.error("INVALID_COLUMN_REFERENCE", f"{clause} position {place} is not in select list", item.span)
    return None if place is None else outputs[place - 1]


def _place(item: s.Expression) -> int | None:
    """Return the number that an expression is; with a minus before it, it is one too."""
    if isinstance(item, s.Unary) and item.operator == "-" and isinstance(item.operand, s.Literal):
        place = _place(item.operand)
        return None if place is None else -place
    return int(item.value) if isinstance(item, s.Literal) and item.kind == "integer" else None


def outputs_by_name(outputs: Sequence[Output]) -> dict[str, e.Typed | None]:
    """Return the expressions of a SELECT list by their names, None for a name that several have; a volatile one is read as a column."""
    found: dict[str, e.Typed | None] = {}
    for output in outputs:
        if output.field.name is not None:
            name, value = output.field.name.lower(), output.value
            if not e.is_deterministic(value):
                value = e.Column(output.field.type, output.field.symbol)
            found[name] = None if name in found else value
    return found


def _is_table(target: s.Expression, analyzer: ExpressionAnalyzer, fields: Fields | None) -> bool:
    """Does ``t`` of ``t.*`` mean a table, and no row? A name that means nothing is told as that of a table, and a column has its table's name before it."""
    if not isinstance(target, s.Name):
        return False
    parts = tuple(part.value for part in target.parts)
    if any(f.qualifier[-len(parts) :] == parts for f in fields or ()):
        return True
    found = analyzer.scope.find(parts)
    return found is None or found.used == 1 or all(field.type.base != "row" for field in found.fields)


def _fields(item: s.AllColumns, target: s.Expression, analyzer: ExpressionAnalyzer, used: set[str]) -> list[Output]:
    """Return the fields of a row as columns."""
    row = analyzer.analyze(target)
    if row.type.base != "row":
        span = replace(analyzer.select or item.span, about=item.span)
        analyzer.context.error("TYPE_MISMATCH", f"expected expression of type Row, but got {row.type}", span)
    names = list(row.type.fields)
    if item.aliases:
        _check_aliases(analyzer.context, item, len(names))
        names = [analyzer.context.canonical(alias) for alias in item.aliases]
    fields = [e.Apply(kind, "field", (row,), index) for index, kind in enumerate(row.type.parameters)]
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


def _output(context: Context, value: e.Typed, field: ScopeField, node: s.Node, used: set[str]) -> Output:
    """A column that is only passed on keeps its symbol."""
    passed = isinstance(value, e.Column) and not value.outer and value.symbol not in used
    symbol = value.symbol if passed and isinstance(value, e.Column) else context.symbols.new(field.name)
    used.add(symbol)
    return Output(value, replace(field, symbol=symbol), node)
