"""The state of one statement's analysis."""

# Context.error never returns.
# ruff: noqa: RET503

from __future__ import annotations

import datetime as dt
import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from rowmerge_nb.base.errors import AnalysisError, Hint, RowMergeError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.handles import ConnectorTableVersion, PointerType
from rowmerge_nb.spi.information_schema import INFORMATION_SCHEMA
from rowmerge_nb.spi.types import NUMBER
from rowmerge_nb.sql.analyzer.analysis import Notice
from rowmerge_nb.sql.analyzer.rows.constant_rows import bound
from rowmerge_nb.sql.analyzer.scope import Symbols
from rowmerge_nb.sql.functions.foreign_names import table_hint
from rowmerge_nb.sql.parser.column_names import nearest_table
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed.expressions import Apply, Origin, Parameter, Subquery, walk
from rowmerge_nb.sql.typed.type_rules import parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.operations import Era
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.analysis import AnalyzerCatalogs, TableBinding, ViewBinding
    from rowmerge_nb.sql.analyzer.expressions.inline_functions import InlineFunction
    from rowmerge_nb.sql.analyzer.rows.constant_rows import ConstantRows
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.tree.statements import Identifier, TableName
    from rowmerge_nb.sql.typed.expressions import Typed

_MAX_PARTS = 3
_HIDDEN_TABLES = frozenset(
    {"entries", "files", "history", "manifests", "partitions", "properties", "refs", "snapshots"}
)
"""Tables about a table that Spark writes as a fourth part of its name."""

EXPANSIONS = 2_000


class Context:
    """Tables, symbols, notices and errors of one statement's analysis."""

    creates: str | None = None
    """The full name of the view that the statement makes."""

    extended = False
    """Whether the dialect is the extended one."""

    stores = False
    """Whether the statement stores rows, so that a surprise may remain unseen."""

    def __init__(self, text: str, tables: AnalyzerCatalogs, era: Era) -> None:
        self.text = text
        self.tables = tables
        self.era = era
        self.symbols = Symbols()
        self._expansions = 0
        self.bindings: dict[str, TableBinding] = {}
        self.notices: dict[Notice, None] = {}
        """An ordered set."""
        self.views: tuple[str, ...] = ()
        self.functions: tuple[InlineFunction, ...] = ()
        """The functions that the statement defines."""
        self.origins: list[Origin] = []
        """The places of the expressions, by number: run-time errors are located by them."""
        self._use: Span | None = None
        self.refusals: list[AnalysisError] | None = None
        """Errors about features that this engine lacks, in order; the analysis goes on to find
        Trino's own errors first.
        """
        self.parameters: dict[int, Type] | None = None
        """The types of parameters without values, by index; None if every parameter has a value."""
        self.now = dt.datetime.now(dt.UTC)
        """The moment of all of the statement's clock functions."""

    def origin(self, span: Span, words: str = "") -> Origin:
        """Number an expression; those of a view are located at its name."""
        self.origins.append(Origin(len(self.origins), self._use or span, words))
        return self.origins[-1]

    def placed(self, value: Typed, span: Span, words: str = "") -> Typed:
        """Return an expression with its origin, also for failures of its subqueries."""
        origin = self.origin(span, words)
        for part in walk(value):
            if isinstance(part, Subquery):
                for number in part.origins:
                    self.origins[number] = replace(origin, number=number)
        return replace(value, origin=origin)

    def note_parameter(self, value: Typed, sql_type: Type) -> None:
        if self.parameters is not None and isinstance(value, Parameter):
            self.parameters[value.place] = sql_type

    def stored(self, value: Typed, sql_type: Type) -> Typed:
        self.note_parameter(value, sql_type)
        return value if value.type == sql_type else Apply(sql_type, "cast", (value,), "store")

    def within(self, view: ViewBinding, span: Span) -> Context:
        definition = view.definition
        inner = self.apart(definition.original_sql, definition.catalog, definition.schema, span)
        inner.views = (*self.views, view.qualified)
        return inner

    def apart(self, text: str, catalog: str, schema: str, span: Span) -> Context:
        """Return the context of another text, named at ``span``, with its own default schema."""
        inner = Context(text, _InView(self.tables, catalog, schema), self.era)
        inner.symbols, inner.bindings, inner.notices = self.symbols, self.bindings, self.notices
        inner.creates, inner.views, inner.refusals = self.creates, self.views, self.refusals
        inner.origins, inner._use, inner.now = self.origins, self._use or span, self.now
        inner.extended = self.extended
        return inner

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        hint: Hint | None = None,
        missing_catalog: str | None = None,
    ) -> NoReturn:
        error = AnalysisError(message, code=code, hint=hint, missing_catalog=missing_catalog)
        raise error if span is None else error.at(span)

    def refuse(self, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        self.error("NOT_SUPPORTED", message, span, hint)

    def refuse_number(self, types: Iterable[Type], span: Span | None) -> None:
        """Refuse what Trino does with the type number beyond casts and equality."""
        if any(part == NUMBER for sql_type in types for part in parts_of(sql_type)):
            self.refuse(
                "number is supported in casts and equality only by this engine",
                span,
                "Write CAST(x AS decimal(38, 10)), or another type that holds the values.",
            )

    def check_read(self, fields: Iterable[ScopeField], span: Span) -> None:
        """Raise the error of the first column without an SQL type."""
        for field in fields:
            if field.refusal is not None:
                self.error(field.refusal.code, field.refusal.message, span, field.refusal.hint)

    def refuse_later(self, error: AnalysisError) -> bool:
        """Record the error of a missing feature; return False if it must be raised now."""
        if self.refusals is None:
            return False
        self.refusals.append(error)
        return True

    def check_refusals(self) -> None:
        if self.refusals:
            raise self.refusals[0]

    def expand(self, span: Span) -> None:
        """Count a use of a WITH query, since nested uses multiply; AnalysisError NOT_SUPPORTED
        above `EXPANSIONS`.
        """
        self._expansions += 1
        if self._expansions > EXPANSIONS:
            self.error(
                "NOT_SUPPORTED",
                "The queries of WITH refer to each other so often that they would be read more"
                f" than {EXPANSIONS} times",
                span,
                "Create a table from a query that others use often: CREATE TABLE ... AS.",
            )

    def notice(self, message: str, span: Span | None) -> None:
        self.notices.setdefault(Notice(message, self._use or span))

    def statement_span(self, about: Span | None = None) -> Span:
        """Return the first character, the place of Trino's errors about the whole statement;
        readers are shown ``about``.
        """
        return Span(0, 1, 1, 1, about)

    def lookup(
        self, name: TableName, version: ConnectorTableVersion | None = None
    ) -> TableBinding | None:
        """Return a table; DataFrames are found by their exact name."""
        self.check_parts(name)
        values = [part.value for part in name.parts]
        exact = [part.text for part in name.parts]
        table = self.tables.resolve(exact, version)
        if table is None and exact != values:
            table = self.tables.resolve(values, version)
        if table is None:
            return None
        if '"$' in self.text:
            table = replace(table, hidden_columns=self.tables.hidden(table))
        return self.bindings.setdefault(table.shown(table.qualified), table)

    def check_parts(self, name: TableName) -> None:
        if len(name.parts) > _MAX_PARTS:
            self.error(
                "SYNTAX_ERROR",
                f"Too many dots in table name: {'.'.join(p.value for p in name.parts)}",
                name.span,
                _hidden_table_hint([part.text for part in name.parts]),
            )

    def canonical(self, name: Identifier) -> str:
        return name.text if name.span.of(self.text).startswith('"') else name.text.upper()

    def has_catalog(self, name: TableName) -> bool:
        """Return whether the name's catalog, if any, exists."""
        self.check_parts(name)
        return len(name.parts) < _MAX_PARTS or name.parts[0].value in self.tables.catalogs()

    def known_table(self, name: TableName) -> TableBinding | None:
        """Return a table, or None, even if its catalog does not exist."""
        return self.lookup(name) if self.has_catalog(name) else None

    def known_view(self, name: TableName) -> ViewBinding | None:
        return self.view(name, self.statement_span(name.span)) if self.has_catalog(name) else None

    def completed(self, name: TableName) -> tuple[str, str, str]:
        """Complete a table's name without checks."""
        catalog, schema, table = (
            *self.tables.default()[: _MAX_PARTS - len(name.parts)],
            *(part.value for part in name.parts),
        )
        return catalog, schema, table

    def bind(self, rows: ConstantRows) -> TableBinding:
        binding = bound(rows)
        self.bindings[binding.qualified] = binding
        return binding

    def view(self, name: TableName, span: Span) -> ViewBinding | None:
        if len(name.parts) > _MAX_PARTS:
            return None
        with _placed(span):
            return self.tables.view([part.value for part in name.parts])

    def refuse_frame(self, target: TableBinding, limit: str, span: Span) -> None:
        if target.dataframe is not None:
            message = f"'{target.display}' is {target.kind}; {limit}"
            self.error("NOT_SUPPORTED", message, span, target.remedy)

    def seen_view(self, name: TableName, span: Span) -> ViewBinding | None:
        """Return the view of a name; None also if its catalog does not exist."""
        try:
            return self.view(name, span)
        except RowMergeError as error:
            if error.code != "CATALOG_NOT_FOUND":
                raise
            return None

    def refuse_view(self, name: TableName, message: str) -> None:
        span = self.statement_span(name.span)
        if self.seen_view(name, span) is not None:
            self.error("NOT_SUPPORTED", message, span, "Change the table that the view reads.")

    def qualified(self, name: TableName, span: Span) -> tuple[str, str, str]:
        with _placed(span):
            return self.tables.qualify([part.value for part in name.parts])

    def place(self, name: TableName, span: Span) -> tuple[str, str, str]:
        self.check_parts(name)
        try:
            full = self.qualified(name, span)
        except RowMergeError as error:
            if error.code != "SCHEMA_NOT_FOUND":
                raise
            full = self.completed(name)
            # Trino looks for the schema only when it creates something in it, so other errors come
            # first.
            missing = AnalysisError(
                f"Schema {full[1]} not found", code="NOT_FOUND", hint=error.hint
            ).at(span)
            if not self.refuse_later(missing):
                raise missing from error
        if full[1] == INFORMATION_SCHEMA:
            self.error(
                "NOT_SUPPORTED",
                f"Nothing can be created in schema '{INFORMATION_SCHEMA}': the engine"
                " provides its tables",
                span,
                "Choose another schema.",
            )
        return full

    def renamed(self, name: TableName, span: Span) -> tuple[str, str, str]:
        """Complete an object's new name."""
        try:
            return self.place(name, span)
        except RowMergeError as error:
            if error.code != "CATALOG_NOT_FOUND":
                raise
            self.error(
                "CATALOG_NOT_FOUND",
                f"Target catalog '{name.parts[0].value}' not found",
                span,
                error.hint,
            )

    def evaluate(self, values: Sequence[Typed], span: Span) -> Sequence[Any]:
        self.check_refusals()
        with _placed(span):
            return self.tables.evaluate(values)

    def target(self, name: TableName, span: Span) -> TableBinding:
        """Return a table to change; Trino reports a missing table even if its schema is missing."""
        try:
            table = self.table(name, span)
            if name.branch is not None and self.keeps_branches(table):
                self.bindings.pop(table.qualified, None)
                branch = ConnectorTableVersion(name.branch.value, PointerType.BRANCH)
                return self.table(name, span, branch)
        except RowMergeError as error:
            if error.code not in {"CATALOG_NOT_FOUND", "SCHEMA_NOT_FOUND"}:
                raise
            self.error(
                "TABLE_NOT_FOUND",
                f"Table '{dotted(self.completed(name))}' does not exist",
                span,
                f"{error.message}. {error.hint or ''}".rstrip(),
                error.missing_catalog if isinstance(error, AnalysisError) else None,
            )
        if name.branch is not None:
            self.error(
                "BRANCH_NOT_FOUND",
                f"Branch '{name.branch.value}' does not exist",
                span,
                (
                    f"Catalog '{table.catalog}' has no branches; remove it."
                    if self.extended
                    else "No connector of Trino has branches. For branches of Iceberg"
                    " tables, use --dialect extended."
                ),
            )
        return table

    def keeps_branches(self, table: TableBinding) -> bool:
        """Return whether a table's branches can be changed: in the extended dialect alone."""
        if not self.extended or table.handle is None:
            return False
        return self.tables.store(table.catalog).keeps_branches

    def evolved(
        self, table: TableBinding, columns: Sequence[ColumnMetadata], span: Span
    ) -> TableBinding:
        with _placed(span):
            return self.tables.evolved(table, columns)

    def table(
        self, name: TableName, span: Span, version: ConnectorTableVersion | None = None
    ) -> TableBinding:
        with _placed(span):
            binding = self.lookup(name, version)
        if binding is not None:
            return binding
        qualified = dotted(self.qualified(name, span))
        before = " ".join(self.text[: span.start].split()[-1:])
        hint = (
            table_hint(f"{before} {name.parts[0].value}")
            or table_hint(name.parts[0].value)
            or self.tables.source_hint(name.parts[0].value)
            if len(name.parts) == 1
            else None
        ) or nearest_table(
            name.parts[-1].value, self.tables.candidates([part.value for part in name.parts])
        )
        self.error("TABLE_NOT_FOUND", f"Table '{qualified}' does not exist", span, hint)


def _hidden_table_hint(parts: Sequence[str]) -> str | None:
    """Return the form of a name as Spark has it: ``catalog.schema.table.snapshots``."""
    *table, word = parts
    if len(table) != _MAX_PARTS or word.lower() not in _HIDDEN_TABLES:
        return None
    return f'Write {".".join(table[:-1])}."{table[-1]}${word.lower()}".'


def dotted(parts: Sequence[str]) -> str:
    """Format a full name as Trino's errors do: unusual parts are quoted.

    >>> dotted(("memory", "no such", "t"))
    'memory."no such".t'
    """
    return ".".join(part if re.fullmatch("[A-Za-z0-9_]+", part) else quoted(part) for part in parts)


@contextmanager
def _placed(span: Span) -> Iterator[None]:
    try:
        yield
    except RowMergeError as error:
        if error.line is None and error.code != "SYNTAX_ERROR":
            error.at(span)
        raise


class _InView:
    def __init__(self, tables: AnalyzerCatalogs, catalog: str, schema: str) -> None:
        self._tables = tables
        self._default = (catalog, schema)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def _completed(self, parts: Sequence[str]) -> tuple[str, ...]:
        return (*self._default[: _MAX_PARTS - len(parts)], *parts)

    def resolve(
        self, parts: Sequence[str], version: ConnectorTableVersion | None = None
    ) -> TableBinding | None:
        table = self._tables.resolve(self._completed(parts), version)
        if table is None and len(parts) == 1:
            table = self._tables.resolve(parts, version)
            table = table if table is not None and table.dataframe is not None else None
        return table

    def view(self, parts: Sequence[str]) -> ViewBinding | None:
        return self._tables.view(self._completed(parts))

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        return self._tables.qualify(self._completed(parts))
