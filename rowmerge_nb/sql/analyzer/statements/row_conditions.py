"""Conditions that choose rows of a statement to be told of, beside the statement: over the columns of its target and its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import AnalysisError, RowMergeError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
from rowmerge_nb.sql.analyzer.context import Context
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.constants import NoConstantError, constant
from rowmerge_nb.sql.parser.statement_reader import parse_expression
from rowmerge_nb.sql.typed.expressions import has_subquery, is_deterministic
from rowmerge_nb.sql.typed.type_rules import is_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.operations import Era
    from rowmerge_nb.sql.analyzer.analysis import Field, RowChangeAnalysis, Tables
    from rowmerge_nb.sql.typed.expressions import Typed

_BOOLEAN = "The condition of 'why' must evaluate to a boolean: actual type {}"


@dataclass(frozen=True)
class RowConditions:
    """Reads conditions on the rows of a statement.

    Args:
        analysis: the statement.
        tables: where its tables are looked up.
        era: whose rules names follow.
    """

    analysis: RowChangeAnalysis
    tables: Tables
    era: Era

    def read(self, text: str) -> Typed:
        """Return the meaning of a condition; a name without an alias that both sides have is the target's column.

        Raises:
            RowMergeError: it is wrong, at its place within the condition, which is the error's ``statement``; NOT_SUPPORTED for
                subqueries, and for what is another at every time.
        """
        alias = self.analysis.target_alias
        fields = [_scoped(f, f.name, f.relation or alias, target=True) for f in self.analysis.target_fields]
        fields += [_scoped(f, f.name, f.relation) for f in _source(self.analysis)]
        return self._read(text, tuple(fields))

    def like(self, columns: Mapping[str, Any], marks: Sequence[str]) -> Typed | None:
        """Return the condition that one of both sides has all these values; None where neither can.

        Args:
            columns: the values, by columns of either side. Each is compared as its column's type compares it, texts with other types by
                the text that these have in SQL.
            marks: of the target and of the source the symbol that is NULL where a joined row has no such side; ``""`` where each has one.
                That of the target alone asks for target rows.

        Raises:
            RowMergeError: NOT_SUPPORTED for values and types that SQL does not compare.
        """
        sides = []
        for side, mark in zip((self.analysis.target_fields, _source(self.analysis)), marks, strict=False):
            named = {(f.name or f.symbol).lower(): f for f in side}
            if all(name.lower() in named for name in columns):
                sides.append(([(named[name.lower()], value) for name, value in columns.items()], mark))
        if not sides:
            return None
        fields = {f.symbol: _scoped(f, f.symbol, None) for values, _ in sides for f, _ in values}
        marked = {mark: ScopeField(mark, mark, BOOLEAN) for _, mark in sides if mark}
        try:
            text = " OR ".join(_has_values(values, mark) for values, mark in sides)
            return self._read(text, (*fields.values(), *marked.values()))
        except (RowMergeError, NoConstantError) as error:
            wanted = ", ".join(f"{name} = {value!r}" for name, value in columns.items())
            said = error.message if isinstance(error, RowMergeError) else error
            raise AnalysisError(
                f"Rows cannot be looked for by {wanted}: {said}",
                code="NOT_SUPPORTED",
                hint="Give other columns, or the number of the source row.",
            ) from error

    def _read(self, text: str, fields: tuple[ScopeField, ...]) -> Typed:
        try:
            node = parse_expression(text)
            context = Context(text, self.tables, self.era)
            analyzer = ExpressionAnalyzer(
                context, Scope(fields), ExpressionSite("condition of 'why'"), prefers_target=lambda _: True
            )
            tree = analyzer.boolean(node, _BOOLEAN)
            if has_subquery(tree) or not is_deterministic(tree):
                what = "a subquery" if has_subquery(tree) else "what is another at every time"
                context.error(
                    "NOT_SUPPORTED", f"The condition of 'why' cannot have {what}", node.span, "Compare columns with values."
                )
        except RowMergeError as error:
            error.statement = text
            raise
        return tree


def names_of_sides(analysis: RowChangeAnalysis) -> tuple[Mapping[str, None], Mapping[str, None]]:
    """Return the names of the target's columns and of the source's, as rows have them."""
    target, source = (dict.fromkeys(f.name or f.symbol for f in side) for side in (analysis.target_fields, _source(analysis)))
    return target, source


def _source(analysis: RowChangeAnalysis) -> Sequence[Field]:
    return analysis.source.fields if isinstance(analysis, MergeAnalysis) else ()


def _scoped(field: Field, name: str | None, alias: str | None, *, target: bool = False) -> ScopeField:
    return ScopeField(field.symbol, name, field.type, (alias.lower(),) if alias else (), target=target)


def _has_values(values: Sequence[tuple[Field, Any]], mark: str) -> str:
    """Write that a side has some values: that it is there is asked where NULL could also stand for a side that is not."""
    there = [f"{quoted(mark)} IS NOT NULL"] if mark and any(value is None for _, value in values) else []
    return f"({' AND '.join([*there, *(_equals(field, value) for field, value in values)])})"


def _equals(field: Field, value: Any) -> str:
    """Write that a column has a value."""
    column = quoted(field.symbol)
    written = constant(value)
    if written == "NULL":
        return f"{column} IS NULL"
    if isinstance(value, str) and not is_text(field.type):
        column = f"CAST({column} AS varchar)"
    elif is_text(field.type) and not isinstance(value, str):
        written = constant(str(value))
    return f"{column} = {written}"
