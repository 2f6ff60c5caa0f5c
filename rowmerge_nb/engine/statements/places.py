"""Which expression of a statement that changes rows an error is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.engine.errors.position import point_at
from rowmerge_nb.engine.statements.blame import place_of, place_of_message
from rowmerge_nb.errors import DuplicateMatchError, ExecutionError, RowMergeError
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.analyzer.analysis import RowChangeAnalysis, TypedExpression
    from rowmerge_nb.sql.tree.statements import Span

__all__ = ["Expressions"]


@dataclass(frozen=True)
class Expressions:
    """The expressions of a MERGE, an UPDATE or a DELETE: what an error can be about.

    Args:
        analysis: the statement.
        condition: the condition that chooses the rows, ON or WHERE; None without one.
        number: what errors of the condition carry in place of a clause's number; None where they carry none.
        words: where the condition stands.
        blamed: finds the expression that an error of Spark comes from, and says in words where it stands.
    """

    analysis: RowChangeAnalysis
    condition: TypedExpression | None
    number: int | None
    words: str
    blamed: Callable[[BaseException], tuple[TypedExpression, str] | None]

    def place(self, error: RowMergeError, failure: BaseException) -> None:
        """Say which expression a run-time error comes from, or which clause was matched twice.

        Args:
            error: the error that is raised.
            failure: what led to it.
        """
        span, found = None, None
        if isinstance(error, DuplicateMatchError) and error.groups:
            numbers = {source.case_number for source in error.groups[0].sources}
            clauses = [clause for clause in self.analysis.clauses if clause.number in numbers]
            span = clauses[-1].span if clauses else self._span(-1)
        elif isinstance(error, ExecutionError) and error.clause is not None:
            span = place_of_message(error.code, error.message, self._of_clause(error.clause)) or self._span(error.clause)
            found = self._marked(error.clause, error.assigned)
        else:
            found = self.blamed(failure)
            placed = self._placed()
            # Spark knows the place within its text of what failed in a subquery, too.
            span = place_of(failure, placed) or place_of_message(error.code, error.message, placed)
        if found is not None:
            expression, words = found
            span = expression.span
            error.hint = f"It happened {words}.{f' {error.hint}' if error.hint else ''}"
        point_at(error, span)

    def _marked(self, number: int, assigned: int | None) -> tuple[TypedExpression, str] | None:
        """Give the expression that an error of ours names by its clause and column, and say in words where it stands."""
        if number == self.number and self.condition is not None:
            return self.condition, self.words
        clause = next((clause for clause in self.analysis.clauses if clause.number == number), None)
        expression = None if clause is None else clause.condition if assigned is None else clause.values[assigned]
        if clause is None or expression is None:
            return None
        of_clause = f" of clause {number}" if isinstance(self.analysis, MergeAnalysis) else ""
        column = None if assigned is None else self.analysis.target.columns[assigned].name
        return expression, f"in the condition{of_clause}" if column is None else f"in the value for column '{column}'{of_clause}"

    def _span(self, number: int) -> Span:
        """Give the place of a clause; that of the condition where it is meant, or no clause."""
        if self.condition is not None and (number == self.number or number < 0):
            return self.condition.span
        return next((clause.span for clause in self.analysis.clauses if clause.number == number), self.analysis.clauses[0].span)

    def _of_clause(self, number: int) -> list[tuple[str, Span]]:
        """Give the condition and the values of a clause in Spark SQL, and where they were written."""
        clauses = [clause for clause in self.analysis.clauses if clause.number == number]
        parts = [part for clause in clauses for part in (clause.condition, *clause.values) if part is not None]
        return [(part.spark, part.span) for part in parts]

    def _placed(self) -> list[tuple[str, Span]]:
        """Give the statement's expressions in Spark SQL, and where they were written, those of its queries last."""
        clauses = self.analysis.clauses
        parts = (self.condition, *(part for clause in clauses for part in (clause.condition, *clause.values)))
        return [(part.spark, part.span) for part in parts if part is not None] + list(self.analysis.placed)
