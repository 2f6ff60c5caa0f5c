"""Expressions in the format of Trino's messages: every operator in parentheses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted_text
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable


def formatted(node: s.Expression, text: str) -> str:
    """Format an expression of ``text`` as Trino does; rare forms stay as written."""
    return Formatter(text).write(node)


_KEYWORDS: Final = frozenset({"coalesce", "nullif", "if", "try"})


_TRIMS: Final = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
_UPPER: Final = frozenset({"CURRENT_USER", "CURRENT_CATALOG", "CURRENT_SCHEMA", "CURRENT_PATH"})


def formatted_type(text: str) -> str:
    """Format a type as Trino does.

    >>> formatted_type("row( a  nosuch,b varchar (10))")
    'ROW(a nosuch, b varchar(10))'
    """
    spaced = re.sub(
        r"\s*([(,)])\s*",
        lambda match: ", " if match[1] == "," else match[1],
        re.sub(r"\s+", " ", text),
    )
    # Restore the space after a closing parenthesis.
    return re.sub(r"(?i)\brow\(", "ROW(", re.sub(r"\)(?=\w)", ") ", spaced))


class Formatter:
    """Formats expressions; see `formatted`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def write(self, node: s.Expression) -> str:
        if isinstance(node, s.Literal):
            return self._literal(node)
        if isinstance(node, s.Name):
            return ".".join(part.span.of(self.text) for part in node.parts)
        if (
            isinstance(node, s.Unary)
            and node.operator == "-"
            and isinstance(node.operand, s.Literal)
            and node.operand.kind != "string"
        ):
            # Trino parses it as one literal.
            return self._literal(replace(node.operand, value=f"-{node.operand.value}"))
        if isinstance(node, s.Unary):
            operand = self.write(node.operand)
            return f"-({operand})" if node.operator == "-" else f"+{operand}"
        if isinstance(node, s.Binary):
            return self._operated(self.write(node.left), node.operator, self.write(node.right))
        if isinstance(node, s.Chain):
            text = self.write(node.first)
            for step in node.steps:
                text = self._operated(text, step.operator, self.write(step.operand))
            return text
        if isinstance(node, s.Logical):
            return f"({f' {node.operator} '.join(map(self.write, node.terms))})"
        if isinstance(node, s.Not):
            return f"(NOT {self.write(node.operand)})"
        if (
            isinstance(node, s.FunctionCall)
            and (node.arguments or node.star or node.window)
            and node.name != "listagg"
        ):
            return self._call(node)
        if isinstance(node, s.Cast):
            return (
                f"{'TRY_CAST' if node.safe else 'CAST'}({self.write(node.value)} AS"
                f" {formatted_type(node.type.text)})"
            )
        return self._constructed(node)

    @staticmethod
    def _operated(left: str, operator: str, right: str) -> str:
        return f"concat({left}, {right})" if operator == "||" else f"({left} {operator} {right})"

    def _constructed(self, node: s.Expression) -> str:
        if isinstance(node, s.Case):
            head = "CASE" if node.operand is None else f"CASE {self.write(node.operand)}"
            whens = "".join(
                f" WHEN {self._when(when)} THEN {self.write(then)}" for when, then in node.whens
            )
            return (
                f"({head}{whens}{'' if node.default is None else f' ELSE {self.write(node.default)}'}"
                " END)"
            )
        if isinstance(node, s.ArrayConstructor):
            return f"ARRAY[{','.join(map(self.write, node.items))}]"
        if isinstance(node, s.RowConstructor):
            return f"ROW ({self._fields(node)})"
        if isinstance(node, s.Subscript):
            return f"{self.write(node.base)}[{self.write(node.index)}]"
        if isinstance(node, s.Dereference):
            return f"{self.write(node.base)}.{node.field.span.of(self.text)}"
        if isinstance(node, s.AtTimeZone):
            return f"{self.write(node.value)} AT TIME ZONE {self.write(node.zone)}"
        if isinstance(node, s.Extract):
            return f"EXTRACT({node.field.text.upper()} FROM {self.write(node.value)})"
        if isinstance(node, s.Lambda):
            return (
                f"({', '.join(name.span.of(self.text) for name in node.parameters)}) ->"
                f" {self.write(node.body)}"
            )
        if isinstance(node, s.Special):
            word = node.word.upper() if node.word.upper() in _UPPER else node.word.lower()
            return word if node.precision is None else f"{word}({node.precision})"
        if isinstance(node, s.Interval):
            unit = node.first.upper() + ("" if node.last is None else f" TO {node.last.upper()}")
            return f"INTERVAL {'-' if node.negative else ''}'{node.value}' {unit}"
        return self._predicate(node)

    def _when(self, condition: s.Expression) -> str:
        """Format what is behind a WHEN: a predicate without the operand, which CASE names."""
        if not isinstance(condition, s.WhenPredicate):
            return self.write(condition)
        return condition.span.of(self.text)

    def _predicate(self, node: s.Expression) -> str:
        if isinstance(node, s.IsNull):
            return f"({self.write(node.value)} IS {'NOT ' if node.negated else ''}NULL)"
        if isinstance(node, s.IsTruth):
            return f"({self.write(node.value)} IS {'NOT ' if node.negated else ''}{node.truth})"
        if isinstance(node, s.Between):
            text = (
                f"{self.write(node.value)} BETWEEN {'SYMMETRIC ' if node.symmetric else ''}"
                f"{self.write(node.low)} AND {self.write(node.high)}"
            )
        elif isinstance(node, s.InList):
            text = f"{self.write(node.value)} IN ({self._listed(node.items)})"
        elif isinstance(node, s.Like):
            escape = "" if node.escape is None else f" ESCAPE {self.write(node.escape)}"
            text = f"{self.write(node.value)} LIKE {self.write(node.pattern)}{escape}"
        elif isinstance(node, s.IsDistinct):
            text = f"{self.write(node.value)} IS DISTINCT FROM {self.write(node.right)}"
        else:
            return " ".join(node.span.of(self.text).split())
        return f"(NOT ({text}))" if node.negated else f"({text})"

    def _literal(self, node: s.Literal) -> str:
        if node.kind == "string":
            return quoted_text(node.value)
        if node.kind == "binary":
            return f"X'{node.value.upper()}'"
        if node.kind == "decimal":
            return f"DECIMAL '{node.value}'"
        if node.kind in {"double", "null"}:
            return node.value.upper() if node.kind == "double" else "null"
        return (
            node.value.lower() if node.kind in {"integer", "boolean"} else node.span.of(self.text)
        )

    def _fields(self, row: s.RowConstructor) -> str:
        names = row.names or (None,) * len(row.items)
        return ", ".join(
            self.write(item) + ("" if name is None else f" AS {name}")
            for item, name in zip(row.items, names, strict=True)
        )

    def _listed(self, items: Iterable[s.Expression]) -> str:
        return ", ".join(map(self.write, items))

    def _called(self, node: s.FunctionCall) -> str:
        if node.name in _KEYWORDS and not node.qualifier:
            return node.name.upper()
        text = self.text[node.span.start :].split("(", 1)[0].strip()
        if node.name == "normalize":
            return f'"{node.name}"'
        # POSITION (a IN b) calls a function of another name.
        return text if text.lower().split(".")[-1].strip('" ') == node.name else node.name

    def _call(self, node: s.FunctionCall) -> str:
        if node.name == "grouping":
            return f"GROUPING ({self._listed(node.arguments)})"
        if (
            node.name in _TRIMS
            and self.text[node.span.start :].split("(", 1)[0].strip().lower() == "trim"
        ):
            value, *letters = map(self.write, node.arguments)
            return f"trim({' '.join([_TRIMS[node.name], *letters, 'FROM', value])})"
        arguments = (
            "*"
            if node.star
            else f"{'DISTINCT ' if node.distinct else ''}{self._listed(node.arguments)}"
        )
        text = f"{self._called(node)}({arguments}{self._ordered(' ', node.order_by)})"
        if node.filter is not None:
            text += f" FILTER (WHERE {self.write(node.filter)})"
        if node.nulls is not None:
            text += f" {node.nulls} NULLS"
        if node.window is not None:
            text += f" OVER {self._window(node.window)}"
        return text

    def _window(self, node: s.Window) -> str:
        name = "" if node.name is None else node.name.span.of(self.text)
        if node.span.of(self.text)[-1:] != ")":
            return name
        keys = f"PARTITION BY {self._listed(node.partition_by)}" if node.partition_by else ""
        frame = (
            "" if node.frame is None else " ".join(node.frame.span.of(self.text).upper().split())
        )
        return f"({' '.join(filter(None, [name, keys, self._ordered('', node.order_by), frame]))})"

    def _ordered(self, before: str, items: Iterable[s.SortItem]) -> str:
        sort_items = []
        for item in items:
            suffix = self.text[item.value.span.end : item.span.end].upper()
            nulls = next((f" NULLS {word}" for word in ("FIRST", "LAST") if word in suffix), "")
            sort_items.append(
                f"{self.write(item.value)} {'DESC' if item.descending else 'ASC'}{nulls}"
            )
        return f"{before}ORDER BY {', '.join(sort_items)}" if sort_items else ""
