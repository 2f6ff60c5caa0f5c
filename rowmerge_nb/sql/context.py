"""What one statement's analysis carries along: tables looked up, symbols given out, notices, and how errors are raised."""

# Context.error never returns.
# ruff: noqa: RET503

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NoReturn

from rowmerge_nb.errors import AnalysisError, RowMergeError
from rowmerge_nb.sql.analysis import Notice
from rowmerge_nb.sql.scope import Symbols
from rowmerge_nb.sql.statements import Span

if TYPE_CHECKING:
    from rowmerge_nb.spi.operations import Era
    from rowmerge_nb.sql.analysis import TableBinding, Tables
    from rowmerge_nb.sql.statements import TableName

__all__ = ["Context"]

_MAX_PARTS = 3

EXPANSIONS = 2_000


class Context:
    """The state of one statement's analysis."""

    def __init__(self, text: str, tables: Tables, era: Era) -> None:
        """Begin the analysis of one statement's text."""
        self.text = text
        self.tables = tables
        self.era = era
        self.symbols = Symbols()
        self._expansions = 0
        self.bindings: dict[str, TableBinding] = {}
        self.notices: list[Notice] = []

    def error(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        """Raise an AnalysisError at a place; without one it has no position."""
        if span is None:
            raise AnalysisError(message, code=code, hint=hint)
        raise AnalysisError(message, code=code, line=span.line, column=span.column, length=span.end - span.start, hint=hint)

    def expand(self, span: Span) -> None:
        """Count one more use of a query of WITH: each use is analyzed anew, and uses of uses multiply.

        Raises:
            AnalysisError: NOT_SUPPORTED if there are too many.
        """
        self._expansions += 1
        if self._expansions > EXPANSIONS:
            said = f"The queries of WITH refer to each other so often that they would be read more than {EXPANSIONS} times"
            self.error("NOT_SUPPORTED", said, span, "Make a table of a query that others use often: CREATE TABLE ... AS.")

    def notice(self, message: str, span: Span | None) -> None:
        """Add a notice, once."""
        notice = Notice(message, span)
        if notice not in self.notices:
            self.notices.append(notice)

    def statement_span(self) -> Span:
        """The place that Trino names for errors about the statement as a whole: its first character."""
        return Span(0, 1, 1, 1)

    def lookup(self, name: TableName) -> TableBinding | None:
        """Find a table; DataFrames of the notebook are found by their name as written, tables without regard to case."""
        if len(name.parts) > _MAX_PARTS:
            self.error("SYNTAX_ERROR", f"Too many dots in table name: {'.'.join(p.value for p in name.parts)}", None)
        values = [part.value for part in name.parts]
        written = [part.text for part in name.parts]
        found = self.tables.resolve(values)
        if found is None and written != values:
            found = self.tables.resolve(written)
        if found is None:
            return None
        return self.bindings.setdefault(found.qualified, found)

    def qualified(self, name: TableName, span: Span) -> tuple[str, str, str]:
        """Complete a table's name; the error about a missing catalog or schema gets the place."""
        try:
            return self.tables.qualify([part.value for part in name.parts])
        except RowMergeError as error:
            if error.line is None:
                error.line, error.column, error.length = span.line, span.column, max(span.end - span.start, 1)
            raise

    def table(self, name: TableName, span: Span) -> TableBinding:
        """Find a table that must be there; the error points at ``span``."""
        found = self.lookup(name)
        if found is not None:
            return found
        qualified = ".".join(self.qualified(name, span))
        near = difflib.get_close_matches(name.parts[-1].value, list(self.tables.names()), n=1)
        hint = f"Did you mean '{near[0]}'?" if near else None
        self.error("TABLE_NOT_FOUND", f"Table '{qualified}' does not exist", span, hint)
