"""CHECK constraints on the rows of a table, as connectors report them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.context import Context
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.parser.statement_reader import parse_expression
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Span

_CLOCK: Final = frozenset(
    {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"}
)
_INVALID: Final = "INVALID_CHECK_CONSTRAINT"


def check_constraints(
    context: Context, table: a.TableBinding, span: Span, *, subqueries: bool = False
) -> tuple[a.CheckConstraint, ...]:
    texts = () if table.metadata is None else table.metadata.check_constraints
    return tuple(_Reader(context, table, span, text).read(subqueries=subqueries) for text in texts)


def read_constraints(
    text: str,
    tables: a.AnalyzerCatalogs,
    table: a.TableBinding,
    origins: tuple[e.Origin, ...] = (),
    about: Span | None = None,
) -> tuple[tuple[a.CheckConstraint, ...], tuple[e.Origin, ...], tuple[a.TableBinding, ...]]:
    context = Context(text, tables, Era.DOCUMENTS)
    context.origins += origins
    checks = check_constraints(context, table, context.statement_span(about), subqueries=True)
    return checks, tuple(context.origins), tuple(context.bindings.values())


class _Reader:
    def __init__(self, context: Context, table: a.TableBinding, span: Span, text: str) -> None:
        self.context = context
        self.table = table
        self.span = span
        self.text = text
        self.hint = f"The table has the constraint CHECK ({text})."

    def read(self, *, subqueries: bool) -> a.CheckConstraint:
        name = self.table.qualified
        node = self._parsed()
        if not subqueries and any(
            isinstance(part, s.ScalarQuery | s.Exists | s.InQuery | s.Quantified)
            for part in s.walk(node)
        ):
            self._refuse(
                "UNSUPPORTED_SUBQUERY",
                "Subqueries are not currently supported in CHECK constraints",
            )
        condition = self._condition(node)
        if not e.is_deterministic(condition):
            self._refuse(_INVALID, "Check constraint expression should be deterministic")
        if any(
            isinstance(part, s.Special) and part.word.upper() in _CLOCK for part in s.walk(node)
        ):
            self._refuse(
                _INVALID, "Check constraint expression should not contain temporal expression"
            )
        if condition.type not in {BOOLEAN, UNKNOWN}:
            self._refuse(
                "TYPE_MISMATCH",
                f"Expected check constraint for '{name}' to be of type BOOLEAN, but was"
                f" {condition.type}",
            )
        condition_text = formatted(node, self.text)
        value = refusing(condition, f"Check constraint violation: {condition_text}")
        return a.CheckConstraint(
            condition_text,
            self.context.placed(value, self.span, f"in a row for {self.table.display}"),
        )

    def _parsed(self) -> s.Expression:
        try:
            return parse_expression(self.text)
        except RowMergeError as error:
            self._refuse(
                _INVALID, f"Invalid check constraint for '{self.table.qualified}': {error.message}"
            )

    def _condition(self, node: s.Expression) -> e.Typed:
        catalog, schema, _ = self.table.name
        inner = self.context.apart(self.text, catalog, schema, self.span)
        fields = tuple(
            ScopeField(column.name, column.name, column.type) for column in self.table.columns
        )
        analyzer = ExpressionAnalyzer(
            inner, Scope(fields), ExpressionSite(f"Check constraint for '{self.table.qualified}'")
        )
        try:
            return analyzer.analyze(node)
        except RowMergeError as error:
            self._refuse(
                error.code,
                f"Invalid check constraint for '{self.table.qualified}': {error.message}",
            )

    def _refuse(self, code: str, message: str) -> NoReturn:
        self.context.error(code, message, self.span, self.hint)


def refusing(condition: e.Typed, message: str, *, allows_null: bool = True) -> e.Typed:
    """Return a value that fails if the condition is false; in the form of NOT NULL checks, which
    pages compute.
    """
    if condition.type == UNKNOWN:
        condition = e.Constant(BOOLEAN, None)
    if allows_null:
        condition = e.Apply(BOOLEAN, "coalesce", (condition, e.TRUE))
    holds = e.Apply(BOOLEAN, "case", (condition, e.TRUE))
    failure = e.Apply(BOOLEAN, "fail", (), Refusal("CONSTRAINT_VIOLATION", message))
    return e.Apply(BOOLEAN, "coalesce", (holds, failure))
