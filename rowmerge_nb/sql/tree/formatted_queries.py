"""Queries in Trino's format, for SHOW CREATE VIEW."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import Formatter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.sql.tree.statements import Identifier

_STEP: Final = "   "


class _NoForm(Exception):
    pass


def formatted_query(node: s.QueryNode, text: str) -> str:
    """Format a query of ``text`` as Trino does; one with grouping sets, whose text the tree does
    not hold, stays as written.
    """
    try:
        return _Queries(text).query(node, 0).strip()
    except _NoForm:
        return node.span.of(text)


class _Queries(Formatter):
    def write(self, node: s.Expression) -> str:
        if isinstance(node, s.ScalarQuery):
            return self._nested(node.query)
        if isinstance(node, s.Exists):
            return f"(EXISTS {self._nested(node.query)})"
        if isinstance(node, s.InQuery):
            text = f"({self.write(node.value)} IN {self._nested(node.query)})"
            return f"(NOT {text})" if node.negated else text
        if isinstance(node, s.Quantified):
            return (
                f"({self.write(node.value)} {node.operator} {node.quantifier}"
                f" {self._nested(node.query)})"
            )
        return super().write(node)

    def _nested(self, node: s.QueryNode) -> str:
        return f"({self.query(node, 0)})"

    # -- queries

    def query(self, node: s.QueryNode, depth: int) -> str:
        begin, lines = _STEP * depth, []
        if node.named_queries:
            named_queries = f"\n{begin}, ".join(
                self._named(one, depth) for one in node.named_queries
            )
            lines.append(
                f"{begin}WITH{' RECURSIVE' if node.recursive else ''}\n  {begin}{named_queries}\n"
            )
        lines.append(self._body(node.body, depth))
        if node.order_by:
            lines.append(f"{begin}{self._ordered('', node.order_by)}\n")
        if node.offset is not None:
            lines.append(f"{begin}OFFSET {node.offset} ROWS\n")
        if node.fetch is not None:
            match = re.match(r"(?is)FETCH\s+\w+\s+(\d+)\s", self.text[node.fetch.start :])
            count = "ROW" if match is None else f"{match[1]} ROWS"
            lines.append(f"{begin}FETCH FIRST {count} {'WITH TIES' if node.ties else 'ONLY'}\n")
        elif node.limit is not None:
            lines.append(f"{begin}LIMIT {node.limit}\n")
        return "".join(lines)

    def _named(self, node: s.NamedQuery, depth: int) -> str:
        return (
            f"{self._name(node.name)}{self._columns(node.columns)} AS"
            f" {self._subquery(node.query, depth)}"
        )

    def _subquery(self, node: s.QueryNode, depth: int) -> str:
        return f"(\n{self.query(node, depth + 1)}{_STEP * depth}) "

    def _body(self, node: s.QueryBody, depth: int) -> str:
        if isinstance(node, s.Select):
            return self._select(node, depth)
        if isinstance(node, s.Values):
            rows = f"\n{_STEP * depth}, ".join(map(self.write, node.rows))
            return f" VALUES \n{_STEP * depth}  {rows}\n"
        if isinstance(node, s.TableBody):
            return f"{_STEP * depth}TABLE {self._dotted(node.name.parts)}\n"
        if isinstance(node, s.SetOperation):
            words = f"{node.operator} {'' if node.distinct else 'ALL '}"
            return f"{self._body(node.left, depth)}{words}{self._body(node.right, depth)}"
        if isinstance(node, s.QueryNode):
            return self._subquery(node, depth)
        raise _NoForm

    def _select(self, node: s.Select, depth: int) -> str:
        begin = _STEP * depth
        if node.grouping is not None:
            raise _NoForm
        items = [self._item(item) for item in node.items]
        listed = f" {items[0]}" if len(items) == 1 else f"\n{begin}  " + f"\n{begin}, ".join(items)
        lines = [f"{begin}SELECT{' DISTINCT' if node.distinct else ''}{listed}\n"]
        if node.relation is not None:
            lines.append(f"{begin}FROM\n{begin}  {self._relation(node.relation, depth)}")
        lines.append("\n")
        if node.where is not None:
            lines.append(f"{begin}WHERE {self.write(node.where)}\n")
        if node.group_by is not None:
            lines.append(f"{begin}GROUP BY {self._listed(node.group_by)}\n")
        if node.having is not None:
            lines.append(f"{begin}HAVING {self.write(node.having)}\n")
        if node.windows:
            windows = (
                f"{self._name(name)} AS {self._window(window)}" for name, window in node.windows
            )
            lines.append(f"{begin}WINDOW {', '.join(windows)}\n")
        return "".join(lines)

    def _item(self, node: s.SelectItem | s.AllColumns) -> str:
        if isinstance(node, s.AllColumns):
            aliases = f" AS{self._columns(node.aliases)}" if node.aliases else ""
            return ("*" if node.target is None else f"{self.write(node.target)}.*") + aliases
        return self.write(node.value) + ("" if node.alias is None else f" {self._name(node.alias)}")

    # -- relations

    def _relation(self, node: s.Relation, depth: int) -> str:
        if isinstance(node, s.Table) and node.period is None:
            return self._dotted(node.name.parts)
        if isinstance(node, s.Aliased):
            return (
                f"{self._inner(node.relation, depth)}"
                f" {self._name(node.alias)}{self._columns(node.columns)}"
            )
        if isinstance(node, s.SubqueryRelation):
            return self._subquery(node.query, depth)
        if isinstance(node, s.Lateral):
            return f"LATERAL ({self.query(node.query, depth + 1)}{_STEP * depth})"
        if isinstance(node, s.Unnest):
            return (
                f"UNNEST({self._listed(node.items)}){' WITH ORDINALITY' if node.ordinality else ''}"
            )
        if isinstance(node, s.TableFunction):
            return self._function(node, depth)
        if isinstance(node, s.JoinRelation):
            return self._join(node, depth)
        return " ".join(node.span.of(self.text).split())

    def _inner(self, node: s.Relation, depth: int) -> str:
        text = self._relation(node, depth)
        return f"( {text}{_STEP * depth})" if isinstance(node, s.Aliased) else text

    def _function(self, node: s.TableFunction, depth: int) -> str:
        begin = "\n" + _STEP * (depth + 2)
        arguments = (
            ("" if name is None else f"{self._name(name)} => ") + self.write(value)
            for name, value in node.arguments
        )
        return f"TABLE({self._dotted(node.name.parts)}({','.join(begin + argument for argument in arguments)}))"

    def _join(self, node: s.JoinRelation, depth: int) -> str:
        begin = _STEP * depth
        left, right = self._relation(node.left, depth), self._relation(node.right, depth)
        if "," in self.text[node.left.span.end : node.right.span.start]:
            return f"{left}\n{begin}, {right}"
        condition = f" USING ({', '.join(map(self._name, node.using))})" if node.using else ""
        if node.on is not None:
            condition = f" ON {self.write(node.on)}"
        return (
            f"({left}\n{begin}{'NATURAL ' if node.natural else ''}{node.kind} JOIN"
            f" {right}{condition})"
        )

    # -- names

    def _name(self, name: Identifier) -> str:
        return name.span.of(self.text)

    def _dotted(self, parts: Iterable[Identifier]) -> str:
        return ".".join(map(self._name, parts))

    def _columns(self, names: Sequence[Identifier]) -> str:
        return f" ({', '.join(map(self._name, names))})" if names else ""
