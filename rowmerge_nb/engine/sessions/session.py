"""What an engine remembers between statements: prepared statements, the current catalog and schema,
the time zone, the open transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import AnalysisError, ConnectorError, RowMergeError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.catalog.explicit import TransactionManager
from rowmerge_nb.engine.observers.undo_log import UndoLog
from rowmerge_nb.engine.sessions.step_errors import complete_error, reporting_step
from rowmerge_nb.engine.spark.interrupts import at_once
from rowmerge_nb.sql.missing_catalog import unknown_catalog
from rowmerge_nb.sql.tree.statements import (
    CallStatement,
    Commit,
    Deallocate,
    Execute,
    Prepare,
    Rollback,
    StartTransaction,
    Statement,
    Use,
)
from rowmerge_nb.sql.typed.zones import in_session_zone
from rowmerge_nb.trace.target_record import TargetRecord
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.statement_options import Options
    from rowmerge_nb.engine.catalog.engine_catalogs import Catalogs
    from rowmerge_nb.engine.catalog.name_resolution import StatementTables
    from rowmerge_nb.engine.spark.lazy_session import LazySession
    from rowmerge_nb.sql.analyzer.analysis import SettingAnalysis
    from rowmerge_nb.sql.parser.parameters import Filled
    from rowmerge_nb.sql.tree.statements import Identifier

_CONTROLS: Final[Mapping[type[Statement], str]] = {
    StartTransaction: "START TRANSACTION",
    Commit: "COMMIT",
    Rollback: "ROLLBACK",
}

CONTROLS: Final = tuple(_CONTROLS)
"""Statements that begin or end a transaction of several statements."""
SESSION_STATEMENTS: Final = (*CONTROLS, Prepare, Deallocate, Use)
"""Statements that change the session and no table."""


@dataclass(frozen=True)
class Session:
    catalogs: Catalogs
    spark_session: LazySession
    prepared: dict[str, str] = field(default_factory=dict)
    transactions: TransactionManager = field(default_factory=TransactionManager)
    undo_log: UndoLog = field(default_factory=UndoLog)

    # -- statements of the session

    def run(self, statement: Statement, options: Options) -> Result | None:
        """Run a statement that changes the session and no table; return None for all others."""
        if isinstance(statement, StartTransaction | Commit | Rollback):
            return self._control(statement, options)
        if isinstance(statement, Prepare | Deallocate):
            return self._prepare(statement, options)
        return self._use(statement, options) if isinstance(statement, Use) else None

    def _control(self, statement: StartTransaction | Commit | Rollback, options: Options) -> Result:
        self.spark_session.check_open()
        statement_kind = _CONTROLS[type(statement)]
        if options.dry_run:
            return Result(
                Trace(statement=statement.text, kind=statement_kind, state=StatementState.PLANNED)
            )
        if isinstance(statement, StartTransaction):
            at_once(partial(self.transactions.start, statement))
        else:
            at_once(
                self.transactions.commit
                if isinstance(statement, Commit)
                else self.transactions.rollback
            )
        return Result(
            Trace(statement=statement.text, kind=statement_kind, state=StatementState.FINISHED)
        )

    def _prepare(self, statement: Prepare | Deallocate, options: Options) -> Result:
        statement_kind = "PREPARE" if isinstance(statement, Prepare) else "DEALLOCATE PREPARE"
        if isinstance(statement, Deallocate):
            self.prepared_text(statement.name)
        state = StatementState.PLANNED if options.dry_run else StatementState.FINISHED
        if not options.dry_run:
            if isinstance(statement, Prepare):
                at_once(partial(self.prepared.__setitem__, statement.name.value, statement.inner))
            else:
                at_once(partial(self.prepared.pop, statement.name.value, None))
        return Result(
            Trace(
                statement=statement.text,
                kind=statement_kind,
                state=state,
                target=TargetRecord(name=statement.name.text),
            )
        )

    def _use(self, statement: Use, options: Options) -> Result:
        catalog = self.catalogs.default[0] if statement.catalog is None else statement.catalog.value
        schema = statement.schema.value
        transaction = self.catalogs.transaction(options)
        tables = self.catalogs.tables(transaction, {})
        with reporting_step("analyze"):
            try:
                if statement.catalog is not None and catalog not in tables.catalogs():
                    raise unknown_catalog(catalog, tables.catalogs(), tables.failures).at(
                        statement.catalog.span
                    )
                if not tables.has_schema(catalog, schema):
                    raise AnalysisError(
                        f"Schema does not exist: {catalog}.{schema}",
                        code="NOT_FOUND",
                        hint=did_you_mean(schema, tables.schemas(catalog))
                        or f"There are: {', '.join(tables.schemas(catalog))}.",
                    ).at(statement.schema.span)
            finally:
                transaction.rollback()
        state = StatementState.PLANNED if options.dry_run else StatementState.FINISHED
        if not options.dry_run:
            at_once(partial(setattr, self.catalogs, "default", (catalog, schema)))
        return Result(
            Trace(
                statement=statement.text,
                kind="USE",
                state=state,
                target=TargetRecord(name=f"{catalog}.{schema}"),
            )
        )

    def set_property(self, setting: SettingAnalysis) -> None:
        others = {
            name: value for name, value in self.catalogs.settings.items() if name != setting.name
        }
        # A new dictionary, because results that can run their statement again hold the old one.
        self.catalogs.settings = (
            others if setting.value is None else {**others, setting.name: setting.value}
        )

    def check_transaction(self, statement: Statement, options: Options) -> None:
        current = self.transactions.current
        if current is None:
            return
        current.check_open()
        if isinstance(statement, CallStatement):
            raise ConnectorError.unsupported(
                "Procedures cannot be called within a transaction (use autocommit mode)",
                hint="COMMIT or ROLLBACK ends the transaction.",
            )
        if options.fault is not None:
            raise ConnectorError.unsupported(
                "A fault needs a statement with a transaction of its own",
                hint="COMMIT or ROLLBACK ends the transaction.",
            )

    # -- prepared statements

    def prepared_text(self, name: Identifier) -> str:
        text = self.prepared.get(name.value)
        if text is None:
            raise AnalysisError(
                f"Prepared statement not found: {name.text}",
                code="NOT_FOUND",
                hint=did_you_mean(name.text, tuple(self.prepared))
                or "PREPARE name FROM ... creates one; it belongs to its engine.",
            ).at(name.span)
        return text

    def parse_prepared(self, name: Identifier, options: Options) -> Statement:
        """Parse a prepared statement; positions of its errors are in its own text."""
        from rowmerge_nb.sql.parser.statement_reader import parse

        text = self.prepared_text(name)
        try:
            return parse(text, dialect=options.dialect)
        except RowMergeError as error:
            error.statement = text
            raise

    def with_values(self, text: str, options: Options) -> tuple[Filled, Execute | None]:
        """Return a statement with the values of its parameters, for EXECUTE the prepared statement
        and the EXECUTE.
        """
        from rowmerge_nb.sql.analyzer.queries.row_count_parameters import check_row_counts
        from rowmerge_nb.sql.parser.parameters import Filled, parameter, with_parameters
        from rowmerge_nb.sql.parser.statement_reader import parse

        try:
            with reporting_step("parse"):
                values = list(map(parameter, options.parameters))
                if begins_with(text, "PREPARE") and not values:
                    return Filled(text, ((0, 0, None),)), None
                check_row_counts(text, values)
                try:
                    filled_statement = with_parameters(text, values)
                except AnalysisError:
                    # A syntax error comes first.
                    parse(text, dialect=options.dialect)
                    raise
                if not begins_with(text, "EXECUTE"):
                    return filled_statement, None
                text = filled_statement.text
                statement = parse(text, dialect=options.dialect)
                assert isinstance(statement, Execute)
                return self._executed(statement, options), statement
        except RowMergeError as error:
            complete_error(error, text)
            raise

    def _executed(self, statement: Execute, options: Options) -> Filled:
        from rowmerge_nb.sql.analyzer.queries.row_count_parameters import computed_row_counts
        from rowmerge_nb.sql.parser.parameters import with_parameters

        tables = partial(self.tables_before_parsing, options)
        if statement.inner is None:
            assert statement.name is not None
            prepared = self.prepared_text(statement.name)
            return with_parameters(
                prepared, computed_row_counts(prepared, statement, tables, options.era)
            )
        values = computed_row_counts(statement.inner.value, statement, tables, options.era)
        try:
            return with_parameters(statement.inner.value, values)
        except AnalysisError as error:
            span = statement.inner.span
            raise error.at(replace(span, start=span.start + 1, column=span.column + 1)) from None

    @contextmanager
    def tables_before_parsing(self, options: Options) -> Iterator[StatementTables]:
        """Yield the object that looks up names before a statement is parsed."""
        self.spark_session.renew()
        transaction = self.catalogs.transaction(options)
        try:
            with in_session_zone(self.catalogs.time_zone):
                yield self.catalogs.tables(transaction, {})
        finally:
            transaction.rollback()


def begins_with(text: str, word: str) -> bool:
    """Return whether a statement begins with a keyword, in any case.

    >>> begins_with("execute p", "EXECUTE"), begins_with("executed", "EXECUTE")
    (True, False)
    """
    return text[: len(word)].upper() == word and not text[len(word) : len(word) + 1].isalnum()
