"""Conditions on a statement's rows, passed besides the statement."""

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
    from rowmerge_nb.sql.analyzer.analysis import AnalyzerCatalogs, Field, RowChangeAnalysis
    from rowmerge_nb.sql.typed.expressions import Typed

_BOOLEAN = "The condition of 'why' must evaluate to a boolean: actual type {}"


@dataclass(frozen=True)
class RowConditions:
    analysis: RowChangeAnalysis
    tables: AnalyzerCatalogs
    era: Era

    def read(self, text: str) -> Typed:
        """Return the typed condition; an ambiguous bare name is the target's column."""
        alias = self.analysis.target_alias
        fields = [
            _scoped(f, f.name, f.relation or alias, target=True)
            for f in self.analysis.target_fields
        ]
        fields += [_scoped(f, f.name, f.relation) for f in _source(self.analysis)]
        return self._read(text, tuple(fields))

    def like(self, columns: Mapping[str, Any], marks: Sequence[str]) -> Typed | None:
        """Return the condition that either side has all these values, or None if neither has the
        columns.

        Args:
            marks: for target and source, the symbol that is NULL if a joined row lacks the side, or
                ``""``. One mark selects the target.
        """
        sides = []
        for side, mark in zip(
            (self.analysis.target_fields, _source(self.analysis)), marks, strict=False
        ):
            by_name = {(f.name or f.symbol).lower(): f for f in side}
            if all(name.lower() in by_name for name in columns):
                sides.append(
                    ([(by_name[name.lower()], value) for name, value in columns.items()], mark)
                )
        if not sides:
            return None
        fields = {f.symbol: _scoped(f, f.symbol, None) for values, _ in sides for f, _ in values}
        marked = {mark: ScopeField(mark, mark, BOOLEAN) for _, mark in sides if mark}
        try:
            text = " OR ".join(_has_values(values, mark) for values, mark in sides)
            return self._read(text, (*fields.values(), *marked.values()))
        except (RowMergeError, NoConstantError) as error:
            equations = ", ".join(f"{name} = {value!r}" for name, value in columns.items())
            reason = error.message if isinstance(error, RowMergeError) else error
            raise AnalysisError.unsupported(
                f"Rows cannot be selected by {equations}: {reason}",
                hint="Name other columns, or the number of the source row.",
            ) from error

    def _read(self, text: str, fields: tuple[ScopeField, ...]) -> Typed:
        try:
            node = parse_expression(text)
            context = Context(text, self.tables, self.era)
            analyzer = ExpressionAnalyzer(
                context,
                Scope(fields),
                ExpressionSite("condition of 'why'"),
                prefers_target=lambda _: True,
            )
            tree = analyzer.boolean(node, _BOOLEAN)
            if has_subquery(tree) or not is_deterministic(tree):
                construct = "a subquery" if has_subquery(tree) else "a nondeterministic function"
                context.refuse(
                    f"The condition of 'why' cannot have {construct}",
                    node.span,
                    "Compare columns with values.",
                )
        except RowMergeError as error:
            error.statement = text
            raise
        return tree


def names_of_sides(analysis: RowChangeAnalysis) -> tuple[Mapping[str, None], Mapping[str, None]]:
    target, source = (
        dict.fromkeys(f.name or f.symbol for f in side)
        for side in (analysis.target_fields, _source(analysis))
    )
    return target, source


def _source(analysis: RowChangeAnalysis) -> Sequence[Field]:
    return analysis.source.fields if isinstance(analysis, MergeAnalysis) else ()


def _scoped(
    field: Field, name: str | None, alias: str | None, *, target: bool = False
) -> ScopeField:
    return ScopeField(
        field.symbol, name, field.type, (alias.lower(),) if alias else (), target=target
    )


def _has_values(values: Sequence[tuple[Field, Any]], mark: str) -> str:
    presence = (
        [f"{quoted(mark)} IS NOT NULL"]
        if mark and any(value is None for _, value in values)
        else []
    )
    return f"({' AND '.join([*presence, *(_equals(field, value) for field, value in values)])})"


def _equals(field: Field, value: Any) -> str:
    column = quoted(field.symbol)
    literal = constant(value)
    if literal == "NULL":
        return f"{column} IS NULL"
    if isinstance(value, str) and not is_text(field.type):
        column = f"CAST({column} AS varchar)"
    elif is_text(field.type) and not isinstance(value, str):
        literal = constant(str(value))
    return f"{column} = {literal}"
