"""Prints typed queries as Spark SQL; symbols are the column names."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.spi.types import BIGINT, BOOLEAN
from rowmerge_nb.sql.spark.columns import item, names, restored
from rowmerge_nb.sql.spark.limits import tail, with_ties
from rowmerge_nb.sql.spark.printer import print_join_condition, print_spark
from rowmerge_nb.sql.spark.selects import select_text
from rowmerge_nb.sql.spark.unnest import unnested_rows
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.type_rules import has_map

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.types import Type

_JOINS: Final = {
    "CROSS": "CROSS JOIN",
    "INNER": "JOIN",
    "LEFT": "LEFT JOIN",
    "RIGHT": "RIGHT JOIN",
    "FULL": "FULL JOIN",
}
_texts: Final[WeakKeyDictionary[q.Query, str]] = WeakKeyDictionary()
"""The texts of subqueries, which an expression may repeat."""


def print_query(query: q.Query, symbols: Sequence[str] | None = None) -> str:
    with room():
        printer = _QueryPrinter()
        if symbols is None or [column.symbol for column in q.columns_of(query)] == list(symbols):
            return printer.query(query)
        return f"SELECT {', '.join(map(backquoted, symbols))} FROM {printer.relation(query)}"


def subquery_text(node: e.Subquery) -> str:
    """Print a subquery: one column, or any number for EXISTS."""
    query = node.query
    if query not in _texts:
        _texts[query] = print_query(query)
    text, columns = _texts[query], q.columns_of(query)
    if node.value is not None:
        value_type = node.value.type
        return _entries(
            _cast(text, columns, (value_type,)), (e.Column(value_type, columns[0].symbol),)
        )
    if node.kind == "scalar" and len(columns) > 1:
        fields = zip(node.type.fields, columns, strict=True)
        pairs = (
            f"{e.text_literal(name or f'field{i}')}, {names([column])}"
            for i, (name, column) in enumerate(fields)
        )
        return f"SELECT named_struct({', '.join(pairs)}) FROM ({text})"
    return text


def _cast(text: str, columns: Sequence[e.Column], types: Sequence[Type]) -> str:
    if all(column.type == sql_type for column, sql_type in zip(columns, types, strict=True)):
        return text
    items = (
        item(print_spark(e.Apply(sql_type, "cast", (column,))), column.symbol)
        for column, sql_type in zip(columns, types, strict=True)
    )
    return f"SELECT {', '.join(items)} FROM ({text})"


def _entries(text: str, columns: Sequence[e.Column]) -> str:
    """Write a query with entries instead of maps; see `rowmerge_nb.sql.spark.maps`."""
    if not any(has_map(column.type) for column in columns):
        return text
    items = (item(print_spark(e.as_entries(column)), column.symbol) for column in columns)
    return f"SELECT {', '.join(items)} FROM ({text})"


class _QueryPrinter:
    """Prints one query; generated names begin with ``$``."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new_name(self, base: str) -> str:
        return f"${base}{next(self._numbers)}"

    def query(self, node: q.Query) -> str:
        match node:
            case q.Selected():
                relation = None if node.source is None else self.relation(node.source)
                return select_text(node, relation, self.new_name)
            case q.Valued():
                return self._values(node)
            case q.SetOperated():
                return self._set_operation(node)
            case q.Ordered():
                return self._ordered(node)
            case q.Coerced():
                items = (item(print_spark(value), column.symbol) for column, value in node.columns)
                return f"SELECT {', '.join(items)} FROM {self.relation(node.source)}"
            case q.Recursive():
                return self._recursive(node)
            case q.Stepped():
                # Spark moves nothing past a sample, even one of all rows.
                return (
                    f"SELECT {names(q.columns_of(node))} FROM ({self.query(node.source)})"
                    " TABLESAMPLE (100 PERCENT)"
                )
            case q.Failing():
                return self._failing(node)
            case q.Extremes():
                return self._extremes(node)
        return f"SELECT {names(q.columns_of(node))} FROM {self.relation(node)}"

    def relation(self, node: q.Query, *, outer: bool = False) -> str:
        """Write a query in FROM; with ``outer``, an empty UNNEST returns a row of NULL."""
        if isinstance(node, q.Joined):
            return self._join(node)
        alias = backquoted(self.new_name("r"))
        if isinstance(node, q.Unnested):
            return (
                f"{'inline_outer' if outer else 'inline'}({unnested_rows(node)}) AS"
                f" {alias}({names(node.columns)})"
            )
        if isinstance(node, q.Scanned):
            return f"({_view_rows(node.view, [column for column, _ in node.columns])}) AS {alias}"
        if isinstance(node, q.Generated):
            return f"({_sequence(node)}) AS {alias}"
        return f"({self.query(node)}) AS {alias}"

    # -- joins

    def _join(self, node: q.Joined) -> str:
        left, right, condition = self._sides(node)
        text = f"{left} {_JOINS[node.kind]} {'LATERAL ' if node.lateral else ''}{right}"
        if node.kind == "LEFT" and isinstance(node.right, q.Unnested):
            # UNNEST is joined only ON TRUE. Spark's outer join would read the left side twice, and
            # cannot read maps.
            text = f"{left} {_JOINS['CROSS']} {'LATERAL ' if node.lateral else ''}{right}"
        elif condition is not None:
            text += f" ON {print_join_condition(condition, _symbols(node.left))}"
        if not node.shared:
            return text
        items = [
            f"{print_spark(value)} AS {backquoted(column.symbol)}" for column, value in node.shared
        ]
        items += [backquoted(column.symbol) for column in node.rest]
        return f"(SELECT {', '.join(items)} FROM {text}) AS {backquoted(self.new_name('r'))}"

    def _sides(self, node: q.Joined) -> tuple[str, str, e.Typed | None]:
        """Return both sides and the condition; nondeterministic parts become columns of a side."""
        left = self.relation(node.left)
        right = self.relation(node.right, outer=node.kind == "LEFT")
        if isinstance(node.right, q.Joined) and not node.right.shared:
            right = f"({right})"
        condition = node.condition
        if condition is None or e.reflected_function(condition) is None:
            return left, right, condition
        texts, sides = [left, right], (node.left, node.right)
        for index, side in enumerate(sides):
            values = [] if index and node.lateral else e.reflected_parts(condition, _symbols(side))
            if values:
                texts[index], pairs = self._with_columns(texts[index], values)
                condition = e.replaced(condition, pairs)
        return texts[0], texts[1], condition

    def _with_columns(
        self, relation: str, values: Sequence[e.Typed]
    ) -> tuple[str, list[tuple[e.Typed, e.Typed]]]:
        pairs: list[tuple[e.Typed, e.Typed]] = []
        items = []
        for value in dict.fromkeys(values):
            entries = e.as_entries(value)
            column = e.Column(entries.type, self.new_name("value"))
            items.append(f"{print_spark(entries)} AS {backquoted(column.symbol)}")
            pairs.append((value, column))
        return (
            f"(SELECT *, {', '.join(items)} FROM {relation}) AS {backquoted(self.new_name('r'))}",
            pairs,
        )

    # -- queries

    def _values(self, node: q.Valued) -> str:
        texts = [_form(form, node) for form in node.forms]
        if not node.is_numbered:
            return " UNION ALL ".join(texts)
        return (
            f"SELECT {names(node.columns)} FROM ({_united(texts)}) ORDER BY"
            f" {backquoted(q.ROW_NUMBER)}"
        )

    def _set_operation(self, node: q.SetOperated) -> str:
        sides = [self.query(node.left), self.query(node.right)]
        old = q.columns_of(node.left)
        pairs = list(zip(old, node.columns, strict=True))
        items = [item(backquoted(column.symbol), new.symbol) for column, new in pairs]
        if node.distinct or node.operator != "UNION":
            columns = (old, q.columns_of(node.right))
            sides = [_entries(text, side) for text, side in zip(sides, columns, strict=True)]
            items = [restored(new, column.symbol) for column, new in pairs]
        word = f"{node.operator}{'' if node.distinct else ' ALL'}"
        return f"SELECT {', '.join(items)} FROM (({sides[0]}) {word} ({sides[1]}))"

    def _ordered(self, node: q.Ordered) -> str:
        columns = names(q.columns_of(node))
        if node.ties:
            return with_ties(self.query(node.source), columns, node.order_by, node, self.new_name)
        return f"SELECT {columns} FROM {self.relation(node.source)}{tail(node.order_by, node)}"

    def _recursive(self, node: q.Recursive) -> str:
        texts = []
        for level in node.levels:
            pairs = zip(q.columns_of(level), node.columns, strict=True)
            items = (item(backquoted(column.symbol), new.symbol) for column, new in pairs)
            texts.append(f"(SELECT {', '.join(items)} FROM {self.relation(level)})")
        return f"SELECT {'DISTINCT ' if node.distinct else ''}* FROM ({' UNION ALL '.join(texts)})"

    def _failing(self, node: q.Failing) -> str:
        """Count rows first: Spark would push down a condition without columns."""
        number = self.new_name("count")
        failure = e.Apply(BOOLEAN, "fail", (), Refusal(node.code, node.message))
        is_counted = e.Apply(BOOLEAN, ">=", (e.Column(BIGINT, number), e.Constant(BIGINT, "0")))
        condition = e.Apply(BOOLEAN, "case", (is_counted, failure, e.TRUE))
        columns = names(q.columns_of(node))
        inner = (
            f"SELECT {columns}, count(*) OVER () AS {backquoted(number)} FROM"
            f" {self.relation(node.source)}"
        )
        return f"SELECT {columns} FROM ({inner}) WHERE {print_spark(condition)}"

    def _extremes(self, node: q.Extremes) -> str:
        [source] = q.columns_of(node.source)
        [column] = node.columns
        value = backquoted(source.symbol)
        most = f"max({value})"
        if source.type.base in {"real", "double"}:
            # NaN is the greatest value only without others.
            most = f"coalesce(max({value}) FILTER (WHERE NOT isnan({value})), {most})"
        facts = zip(
            column.type.fields, ("count(*)", f"count({value})", f"min({value})", most), strict=True
        )
        fields = ", ".join(f"'{name}', {fact}" for name, fact in facts)
        return (
            f"SELECT named_struct({fields}) AS {backquoted(column.symbol)} FROM"
            f" {self.relation(node.source)}"
        )


def _symbols(query: q.Query) -> frozenset[str]:
    return frozenset(column.symbol for column in q.columns_of(query))


def _view_rows(view: str, columns: Sequence[e.Column]) -> str:
    items = ", ".join(
        f"c{index} AS {backquoted(column.symbol)}" for index, column in enumerate(columns)
    )
    return f"SELECT {items} FROM {backquoted(view)}"


def _sequence(node: q.Generated) -> str:
    [column] = node.columns
    start, stop, step = node.arguments
    # Spark's range excludes its end, and needs a step even for a single number.
    step = step or 1
    return (
        f"SELECT id AS {backquoted(column.symbol)} FROM range({start}L,"
        f" {stop + (1 if step > 0 else -1)}L, {step}L)"
    )


def _form(form: q.Form, node: q.Valued) -> str:
    if form.view and form.values == form.constants:
        return _view_rows(form.view, form.constants)
    items = [
        item(print_spark(value), column.symbol)
        for column, value in zip(node.columns, form.values, strict=True)
    ]
    if form.number is not None:
        items.append(f"{form.number}L AS {backquoted(q.ROW_NUMBER)}")
    elif form.view:
        items.append(backquoted(q.ROW_NUMBER))
    source = f" FROM ({_view_rows(form.view, form.constants)})" if form.view else ""
    return f"SELECT {', '.join(items)}{source}"


def _united(texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    middle = len(texts) // 2
    return f"({_united(texts[:middle])}) UNION ALL ({_united(texts[middle:])})"
