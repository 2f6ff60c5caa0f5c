"""What one statement's analysis carries along: tables looked up, symbols given out, notices, and how errors are raised."""

# Context.error never returns.
# ruff: noqa: RET503

from __future__ import annotations

import datetime as dt
import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from rowmerge_nb.base.errors import AnalysisError, RowMergeError
from rowmerge_nb.base.names import did_you_mean, quoted
from rowmerge_nb.spi.information_schema import INFORMATION_SCHEMA
from rowmerge_nb.sql.analyzer.analysis import Notice
from rowmerge_nb.sql.analyzer.rows.constant_rows import bound
from rowmerge_nb.sql.analyzer.scope import Symbols
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed.expressions import Apply, Origin, Parameter, Subquery, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.operations import Era
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.analysis import TableBinding, Tables, ViewBinding
    from rowmerge_nb.sql.analyzer.expressions.inline_functions import InlineFunction
    from rowmerge_nb.sql.analyzer.rows.constant_rows import ConstantRows
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.tree.statements import Identifier, TableName
    from rowmerge_nb.sql.typed.expressions import Typed

_MAX_PARTS = 3

EXPANSIONS = 2_000


class Context:
    """The state of one statement's analysis."""

    creates: str | None = None
    """The full name of the view that the statement makes."""

    def __init__(self, text: str, tables: Tables, era: Era) -> None:
        """Begin the analysis of one statement's text."""
        self.text = text
        self.tables = tables
        self.era = era
        self.symbols = Symbols()
        self._expansions = 0
        self.bindings: dict[str, TableBinding] = {}
        self.notices: dict[Notice, None] = {}
        """In the order in which they were given, each once."""
        self.views: tuple[str, ...] = ()
        self.functions: tuple[InlineFunction, ...] = ()
        """Those that the statement brings along and that can be called."""
        self.origins: list[Origin] = []
        """Where the expressions were written, by their numbers: by these run-time errors find their places."""
        self._use: Span | None = None
        self.refusals: list[AnalysisError] | None = None
        """What this engine has not, in the order in which it was found, where the analysis goes on to what Trino would say."""
        self.parameters: dict[int, Type] | None = None
        """The types that parameters without values are given, by their places; None where every parameter has a value."""
        self.now = dt.datetime.now(dt.UTC)
        """What the statement's clock shows, wherever it is asked."""

    def origin(self, span: Span, words: str = "") -> Origin:
        """Return the next number to an expression; those of a view's query stand where the statement names the view."""
        self.origins.append(Origin(len(self.origins), self._use or span, words))
        return self.origins[-1]

    def placed(self, value: Typed, span: Span, words: str = "") -> Typed:
        """Return an analyzed expression with its origin; what fails in its subqueries is told as a failure of the whole."""
        origin = self.origin(span, words)
        for part in walk(value):
            if isinstance(part, Subquery):
                for number in part.origins:
                    self.origins[number] = replace(origin, number=number)
        return replace(value, origin=origin)

    def note_parameter(self, value: Typed, kind: Type) -> None:
        """Note the type that something is coerced to, if it is a parameter without a value."""
        if self.parameters is not None and isinstance(value, Parameter):
            self.parameters[value.place] = kind

    def stored(self, value: Typed, kind: Type) -> Typed:
        """Return a value as it is stored in a column of a type."""
        self.note_parameter(value, kind)
        return value if value.type == kind else Apply(kind, "cast", (value,), "store")

    def within(self, view: ViewBinding, span: Span) -> Context:
        """Return the context in which a view's query is analyzed: its own text and default schema, all else shared.

        Args:
            view: the view.
            span: where it is named.
        """
        definition = view.definition
        inner = self.apart(definition.original_sql, definition.catalog, definition.schema, span)
        inner.views = (*self.views, view.qualified)
        return inner

    def apart(self, text: str, catalog: str, schema: str, span: Span) -> Context:
        """Return the context of a text that stands somewhere else, with a default schema of its own, all else shared.

        Args:
            text: the text.
            catalog: completes the names in it.
            schema: likewise.
            span: where the statement names what the text belongs to.
        """
        inner = Context(text, _InView(self.tables, catalog, schema), self.era)
        inner.symbols, inner.bindings, inner.notices = self.symbols, self.bindings, self.notices
        inner.creates, inner.views, inner.refusals = self.creates, self.views, self.refusals
        inner.origins, inner._use, inner.now = self.origins, self._use or span, self.now
        return inner

    def error(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        """Raise an AnalysisError at a place; without one it has no position."""
        if span is None:
            raise AnalysisError(message, code=code, hint=hint)
        raise AnalysisError(message, code=code, hint=hint).at(span)

    def check_read(self, fields: Iterable[ScopeField], span: Span) -> None:
        """Raise the error of the first column whose values no SQL type holds, at the place where the statement reads it."""
        for field in fields:
            if field.refused is not None:
                self.error(field.refused.code, field.refused.message, span, field.refused.hint)

    def refuse_later(self, error: AnalysisError) -> bool:
        """Keep an error about what this engine has not until all else is understood; False where it cannot wait."""
        if self.refusals is None:
            return False
        self.refusals.append(error)
        return True

    def check_refusals(self) -> None:
        """Raise the first error that was kept."""
        if self.refusals:
            raise self.refusals[0]

    def expand(self, span: Span) -> None:
        """Count one more use of a query of WITH: each use is analyzed anew, and uses of uses multiply.

        Raises:
            AnalysisError: NOT_SUPPORTED if there are too many.
        """
        self._expansions += 1
        if self._expansions > EXPANSIONS:
            self.error(
                "NOT_SUPPORTED",
                f"The queries of WITH refer to each other so often that they would be read more than {EXPANSIONS} times",
                span,
                "Make a table of a query that others use often: CREATE TABLE ... AS.",
            )

    def notice(self, message: str, span: Span | None) -> None:
        """Add a notice, once."""
        self.notices.setdefault(Notice(message, span))

    def statement_span(self, about: Span | None = None) -> Span:
        """The place that Trino names for errors about the statement as a whole: its first character.

        Args:
            about: where the word stands that the error is about, which readers are shown.
        """
        return Span(0, 1, 1, 1, about)

    def lookup(self, name: TableName, version: ConnectorTableVersion | None = None) -> TableBinding | None:
        """Find a table, as it was in a version if one is given.

        DataFrames of the notebook are found by their name as written, tables without regard to case.
        """
        self.check_parts(name)
        values = [part.value for part in name.parts]
        written = [part.text for part in name.parts]
        found = self.tables.resolve(written, version)
        if found is None and written != values:
            found = self.tables.resolve(values, version)
        if found is None:
            return None
        if '"$' in self.text:
            found = replace(found, hidden=self.tables.hidden(found))
        return self.bindings.setdefault(found.shown(found.qualified), found)

    def check_parts(self, name: TableName) -> None:
        """Refuse a table's name with too many parts."""
        if len(name.parts) > _MAX_PARTS:
            self.error("SYNTAX_ERROR", f"Too many dots in table name: {'.'.join(p.value for p in name.parts)}", name.span)

    def canonical(self, name: Identifier) -> str:
        """Return a name as the standard compares it: in capitals, unless it has quotes."""
        return name.text if name.span.of(self.text).startswith('"') else name.text.upper()

    def has_catalog(self, name: TableName) -> bool:
        """Return whether there is the catalog that a table's name begins with, if it begins with one."""
        self.check_parts(name)
        return len(name.parts) < _MAX_PARTS or name.parts[0].value in self.tables.catalogs()

    def known_table(self, name: TableName) -> TableBinding | None:
        """Find a table as a statement does that makes, alters or drops one: where there is no such catalog, there is no such table."""
        return self.lookup(name) if self.has_catalog(name) else None

    def known_view(self, name: TableName) -> ViewBinding | None:
        """Find a view likewise."""
        return self.view(name, self.statement_span(name.span)) if self.has_catalog(name) else None

    def completed(self, name: TableName) -> tuple[str, str, str]:
        """Complete a table's name, whether there are such a catalog and schema or not."""
        catalog, schema, table = (*self.tables.default()[: _MAX_PARTS - len(name.parts)], *(part.value for part in name.parts))
        return catalog, schema, table

    def bind(self, rows: ConstantRows) -> TableBinding:
        """Let the statement read rows of constants, as it reads a table."""
        found = bound(rows)
        self.bindings[found.qualified] = found
        return found

    def view(self, name: TableName, span: Span) -> ViewBinding | None:
        """Find a view; None if there is none of that name."""
        if len(name.parts) > _MAX_PARTS:
            return None
        with _placed(span):
            return self.tables.view([part.value for part in name.parts])

    def refuse_view(self, name: TableName, message: str) -> None:
        """Refuse a statement that would change a view."""
        span = self.statement_span(name.span)
        try:
            found = self.view(name, span)
        except RowMergeError as error:
            if error.code != "CATALOG_NOT_FOUND":
                raise
            return
        if found is not None:
            self.error("NOT_SUPPORTED", message, span, "Change the table that the view reads.")

    def qualified(self, name: TableName, span: Span) -> tuple[str, str, str]:
        """Complete a table's name; the error about a missing catalog or schema gets the place."""
        with _placed(span):
            return self.tables.qualify([part.value for part in name.parts])

    def place(self, name: TableName, span: Span) -> tuple[str, str, str]:
        """Complete the name of what is to be made."""
        self.check_parts(name)
        try:
            full = self.qualified(name, span)
        except RowMergeError as error:
            if error.code != "SCHEMA_NOT_FOUND":
                raise
            full = self.completed(name)
            # What is wrong with the statement otherwise is told before: Trino looks for the schema when it makes something in it.
            missing = AnalysisError(f"Schema {full[1]} not found", code="NOT_FOUND", hint=error.hint).at(span)
            if not self.refuse_later(missing):
                raise missing from error
        if full[1] == INFORMATION_SCHEMA:
            self.error(
                "NOT_SUPPORTED",
                f"Nothing can be made in schema '{INFORMATION_SCHEMA}': the engine makes its tables",
                span,
                "Choose another schema.",
            )
        return full

    def renamed(self, name: TableName, span: Span) -> tuple[str, str, str]:
        """Complete the name that something is to have instead of its own."""
        try:
            return self.place(name, span)
        except RowMergeError as error:
            if error.code != "CATALOG_NOT_FOUND":
                raise
            self.error("CATALOG_NOT_FOUND", f"Target catalog '{name.parts[0].value}' not found", span, error.hint)

    def evaluate(self, values: Sequence[Typed], span: Span) -> Sequence[Any]:
        """Compute constant expressions, all at the same moment; what goes wrong is told at their place."""
        self.check_refusals()
        with _placed(span):
            return self.tables.evaluate(values)

    def target(self, name: TableName, span: Span) -> TableBinding:
        """Find a table that is to be changed: where there is no such catalog or schema, Trino says that there is no such table."""
        try:
            return self.table(name, span)
        except RowMergeError as error:
            if error.code not in {"CATALOG_NOT_FOUND", "SCHEMA_NOT_FOUND"}:
                raise
            self.error(
                "TABLE_NOT_FOUND",
                f"Table '{dotted(self.completed(name))}' does not exist",
                span,
                f"{error.message}. {error.hint or ''}".rstrip(),
            )

    def evolved(self, table: TableBinding, columns: Sequence[ColumnMetadata], span: Span) -> TableBinding:
        """Return a table as it will be with new columns; what the store says against them is told at the place of the words that ask for them."""
        with _placed(span):
            return self.tables.evolved(table, columns)

    def table(self, name: TableName, span: Span, version: ConnectorTableVersion | None = None) -> TableBinding:
        """Find a table that must be there, as it was in a version if one is given; the error points at ``span``."""
        with _placed(span):
            found = self.lookup(name, version)
        if found is not None:
            return found
        qualified = dotted(self.qualified(name, span))
        hint = did_you_mean(name.parts[-1].value, self.tables.names())
        self.error("TABLE_NOT_FOUND", f"Table '{qualified}' does not exist", span, hint)


def dotted(parts: Sequence[str]) -> str:
    """Write a full name as Trino's errors do: parts of other characters than letters, digits and _ in quotes.

    >>> dotted(("memory", "no such", "t"))
    'memory."no such".t'
    """
    return ".".join(part if re.fullmatch("[A-Za-z0-9_]+", part) else quoted(part) for part in parts)


@contextmanager
def _placed(span: Span) -> Iterator[None]:
    """Give errors that do not know where they happened a place."""
    try:
        yield
    except RowMergeError as error:
        if error.line is None and error.code != "SYNTAX_ERROR":
            error.at(span)
        raise


class _InView:
    """Looks names up as they were meant when a view was made: completed by the catalog and schema of that time.

    A DataFrame of the notebook is found by its name alone, as everywhere.
    """

    def __init__(self, tables: Tables, catalog: str, schema: str) -> None:
        self._tables = tables
        self._default = (catalog, schema)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def _completed(self, parts: Sequence[str]) -> tuple[str, ...]:
        return (*self._default[: _MAX_PARTS - len(parts)], *parts)

    def resolve(self, parts: Sequence[str], version: ConnectorTableVersion | None = None) -> TableBinding | None:
        found = self._tables.resolve(self._completed(parts), version)
        if found is None and len(parts) == 1:
            found = self._tables.resolve(parts, version)
            found = found if found is not None and found.dataframe is not None else None
        return found

    def view(self, parts: Sequence[str]) -> ViewBinding | None:
        return self._tables.view(self._completed(parts))

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        return self._tables.qualify(self._completed(parts))
