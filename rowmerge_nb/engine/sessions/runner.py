"""Running statements: from a text through parsing and analysis to the result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.choices import ExplainFormat, ExplainType, Flow, StatementState
from rowmerge_nb.base.errors import (
    MERGE_FLOW,
    AnalysisError,
    ConnectorError,
    ParseError,
    RowMergeError,
)
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.catalog.inputs import statement_text
from rowmerge_nb.engine.observers.registry import observers_of
from rowmerge_nb.engine.observers.requested_rows import request_by_condition
from rowmerge_nb.engine.observers.user_observers import ObserverRegistry, refuse_in_hook
from rowmerge_nb.engine.observers.verify.verification import begin_verification
from rowmerge_nb.engine.sessions.error_positions import Executed, placed_in
from rowmerge_nb.engine.sessions.session import CONTROLS, SESSION_STATEMENTS, Session, begins_with
from rowmerge_nb.engine.sessions.step_errors import (
    complete_error,
    reporting_step,
    rolling_back_on_error,
)
from rowmerge_nb.engine.spark.errors.translate import java_gone
from rowmerge_nb.engine.spark.interrupts import (
    at_once,
    guarded,
    interruptible,
    note_result,
    to_its_end,
)
from rowmerge_nb.engine.spark.java.making import idle_making
from rowmerge_nb.engine.spark.memory import room_for_source
from rowmerge_nb.engine.spark.quiet import quietly
from rowmerge_nb.engine.statements.dispatch import check_flow, kind_of_run
from rowmerge_nb.engine.statements.naming import kind_of, target_name
from rowmerge_nb.engine.statements.services import Services
from rowmerge_nb.engine.statements.statement import StatementRun, not_rehearsed
from rowmerge_nb.engine.statements.table_turns import await_turn
from rowmerge_nb.plan.explain import explained_plan
from rowmerge_nb.plan.numbered_sides import number_both_sides
from rowmerge_nb.plan.records import describe
from rowmerge_nb.plan.rules import RULES, RuleSettings
from rowmerge_nb.sql.analyzer.analysis import (
    Analysis,
    CreateTableAnalysis,
    ExplainAnalysis,
    InsertAnalysis,
    ListingAnalysis,
    Notice,
    QueryAnalysis,
    RestoreAnalysis,
    RowChangeAnalysis,
    SettingAnalysis,
)
from rowmerge_nb.sql.analyzer.statements.row_conditions import RowConditions
from rowmerge_nb.sql.tree.statements import (
    AlterTable,
    CommentOn,
    Delete,
    DescribePrepared,
    Execute,
    Explain,
    Merge,
    Query,
    Show,
    Span,
    Statement,
    TableName,
    Truncate,
    Update,
)
from rowmerge_nb.sql.typed.zones import in_session_zone
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.statement_options import Options
    from rowmerge_nb.engine.catalog.engine_catalogs import Catalogs
    from rowmerge_nb.engine.catalog.engine_catalogs import TableName as QualifiedName
    from rowmerge_nb.engine.catalog.name_resolution import StatementTables
    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.observers.requested_rows import RowRequest
    from rowmerge_nb.engine.observers.verify.verification import Verification
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.sql.analyzer.analysis import CheckConstraint, TableBinding
    from rowmerge_nb.sql.typed.expressions import Origin

    RowReader = Callable[[StatementRun, RowConditions], Trace]

_READING: Final = (QueryAnalysis, ListingAnalysis, ExplainAnalysis)
"""The statements that a transaction of several statements may have."""


_LAZY: Final = (Query, Show)
"""Statements that are mostly answered without Spark, which starts only if it is needed."""


def _unchanged(result: Result) -> Result:
    return result


@dataclass(frozen=True)
class StatementRunner:
    """Runs the statements of one engine.

    Args:
        running: the statements that run now, by the tags of their Spark jobs; setting an event
            cancels.
    """

    session: Session
    defaults: Options
    sizes: RuleSettings
    observers: ObserverRegistry = field(default_factory=ObserverRegistry)
    running: dict[str, threading.Event] = field(default_factory=dict)

    @property
    def catalogs(self) -> Catalogs:
        return self.session.catalogs

    def over(self, catalogs: Catalogs) -> StatementRunner:
        return replace(
            self, session=replace(self.session, catalogs=catalogs), observers=ObserverRegistry()
        )

    def apart(self, observers: ObserverRegistry) -> StatementRunner:
        """Return a runner with these observers, and with an undo log and transactions of its own."""
        session = Session(self.catalogs, self.session.spark_session, self.session.prepared)
        return replace(self, session=session, observers=observers)

    def run(
        self, sql: str, options: Options, complete: Callable[[Result], Result] = _unchanged
    ) -> Result:
        from rowmerge_nb.sql.parser.statement_reader import split_statements

        statement_text(sql)

        def work() -> Result:
            refuse_in_hook()
            statements = split_statements(sql)
            with placed_in(sql, sql, 0):
                if not statements:
                    raise ParseError(
                        "run takes one statement; this text has 0", hint="Write a statement."
                    ).at(Span(0, 0, 1, 1))
                if len(statements) > 1:
                    _refuse_several(sql, statements, options)
            return self._run_placed(sql, *statements[0], options, complete)

        return guarded(work, partial(complete_error, text=sql))

    def run_script(
        self, sql: str, options: Options, complete: Callable[[Result], Result] = _unchanged
    ) -> list[Result]:
        from rowmerge_nb.sql.parser.statement_reader import split_statements

        refuse_in_hook()
        with interruptible("parse"):
            statements = split_statements(statement_text(sql))
        results: list[Result] = []
        for number, (text, offset) in enumerate(statements, 1):
            work = partial(self._run_placed, sql, text, offset, options, complete)
            try:
                results.append(guarded(work, partial(complete_error, text=text)))
            except RowMergeError as error:
                error.hint = (
                    " ".join(
                        filter(
                            None, [error.hint, _what_stays(number, len(statements), error.changed)]
                        )
                    )
                    or None
                )
                raise
        return results

    def cancel(self) -> None:
        for tag, cancelled in list(self.running.items()):
            cancelled.set()
            self.session.spark_session.cancel(tag)

    def _run_placed(
        self,
        sql: str,
        text: str,
        offset: int,
        options: Options,
        complete: Callable[[Result], Result],
    ) -> Result:
        executed: Execute | None = None
        positions: AbstractContextManager[None] = nullcontext()
        if options.parameters or "?" in text or begins_with(text, "EXECUTE"):
            with placed_in(sql, text, offset):
                filled_statement, executed = self.session.with_values(text, options)
            # The statement with its values is what runs, and what reports show.
            run_text = f"{sql[:offset]}{filled_statement.text}{sql[offset + len(text) :]}"
            if executed is not None and executed.inner is not None:
                positions = Executed(executed, filled_statement, sql, offset).placed(run_text)
            sql, text = run_text, filled_statement.text
        with positions, placed_in(sql, text, offset), in_session_zone(self.catalogs.time_zone):
            result = complete(self._run(text, options))
        note_result(result)
        return result

    def _run(self, text: str, options: Options) -> Result:
        from rowmerge_nb.sql.parser.statement_reader import parse

        try:
            options.step("parse")
            with reporting_step("parse"):
                statement = parse(text, dialect=options.dialect)
                if isinstance(statement, Execute):
                    raise AnalysisError.unsupported(
                        "Unsupported statement type:"
                        f" Execute{'' if statement.inner is None else 'Immediate'}",
                        hint="Write EXECUTE once.",
                    ).at(statement.span)
                if (
                    isinstance(statement, SESSION_STATEMENTS)
                    and options.rehearse
                    and not options.dry_run
                ):
                    raise not_rehearsed()
                if (
                    isinstance(statement, CONTROLS)
                    and (control := self.session.run(statement, options)) is not None
                ):
                    return control
            try:
                return self._run_parsed(statement, options)
            except BaseException:
                self.session.transactions.failed()
                raise
        except RowMergeError as error:
            complete_error(error, text)
            raise

    def _run_parsed(self, statement: Statement, options: Options) -> Result:
        self.session.check_transaction(statement, options)
        if (result := self.session.run(statement, options)) is not None:
            return result
        if isinstance(statement, DescribePrepared):
            statement = replace(
                statement, prepared=self.session.parse_prepared(statement.name, options)
            )
        if options.dry_run or isinstance(statement, Explain):
            pass
        elif isinstance(statement, _LAZY):
            self.session.spark_session.check_open()
        else:
            # Java starts while the statement is analyzed, and while a CREATE TABLE is answered
            # without it.
            self.session.spark_session.start()
        return self._run_statement(statement, options)

    def read_rows(
        self,
        text: str,
        options: Options,
        versions: Mapping[QualifiedName, ConnectorTableVersion],
        read: RowReader,
    ) -> Trace:
        """Plan a MERGE, UPDATE or DELETE again on tables as they were, and read its rows; nothing
        begins, and all is rolled back.
        """
        from rowmerge_nb.sql.parser.statement_reader import parse

        refuse_in_hook()
        self.session.spark_session.check_open()
        self.session.spark_session.renew()
        transaction = self.catalogs.transaction(options)
        tables = self.catalogs.tables(transaction, options.namespace, versions)
        tag = transaction.session.query_id
        self.running[tag] = transaction.cancelled
        try:
            with (
                reporting_step("look at rows"),
                in_session_zone(self.catalogs.time_zone),
                quietly(),
                idle_making.statement(),
                self.session.spark_session.adopted(),
            ):
                analysis = _analyzed(
                    parse(text, dialect=options.dialect), transaction, tables, options
                )
                assert isinstance(analysis, RowChangeAnalysis)
                conditions = RowConditions(analysis, tables, options.era)
                return read(self._run_of(analysis, transaction, tables, options), conditions)
        finally:
            self.running.pop(tag, None)
            with suppress(Exception):
                to_its_end(transaction.rollback)

    def restore(
        self,
        text: str,
        restoration: Callable[[StatementTransaction, StatementTables], RestoreAnalysis],
        table: Sequence[str] = (),
    ) -> Result:
        """Restore a former version of a table.

        Args:
            restoration: looks the table up, and returns what is to be restored.
        """
        refuse_in_hook()
        self.session.spark_session.check_open()

        def resolved(transaction: StatementTransaction, tables: StatementTables) -> RestoreAnalysis:
            if table:
                _wait_for_turn(table, transaction, tables, self.defaults)
            with rolling_back_on_error(transaction), reporting_step("analyze"):
                return restoration(transaction, tables)

        def run() -> Result:
            try:
                return self._run_analyzed(resolved, self.defaults)
            except BaseException:
                self.session.transactions.failed()
                raise

        return guarded(run, partial(complete_error, text=text))

    def _run_statement(self, statement: Statement, options: Options) -> Result:
        def analyzed(transaction: StatementTransaction, tables: StatementTables) -> Analysis:
            target = _changed_table(statement)
            if target is not None and not (options.dry_run or options.rehearse):
                _wait_for_turn([part.value for part in target.parts], transaction, tables, options)
            return _analyzed(statement, transaction, tables, options)

        return self._run_analyzed(analyzed, options, self._target_catalog(statement))

    def _target_catalog(self, statement: Statement) -> str:
        name = getattr(statement, "target", None) or getattr(statement, "name", None)
        if not isinstance(name, TableName):
            return ""
        return name.parts[0].value if len(name.parts) > 2 else self.catalogs.default[0]

    def _run_analyzed(
        self,
        analyzed: Callable[[StatementTransaction, StatementTables], Analysis],
        options: Options,
        target_catalog: str = "",
    ) -> Result:
        self.session.spark_session.renew()
        explicit = self.session.transactions.current
        transaction = self.catalogs.transaction(options, target_catalog, explicit)
        tables = self.catalogs.tables(transaction, options.namespace)
        transaction.notices += map(Notice, self.session.spark_session.news())
        tag = transaction.session.query_id
        self.running[tag] = transaction.cancelled
        try:
            with quietly(), idle_making.statement(), self.session.spark_session.adopted():
                options.step("analyze")
                analysis = analyzed(transaction, tables)
                if explicit is not None and not isinstance(analysis, _READING):
                    catalog = (target_name(analysis) or ("",))[0]
                    # A target without a catalog, as of DROP ... IF EXISTS, is not written.
                    if catalog in self.catalogs.connectors:
                        explicit.refuse_write(
                            kind_of(analysis), catalog, self.catalogs.connectors[catalog]
                        )
                if isinstance(analysis, ExplainAnalysis):
                    return self._explain(analysis, transaction, tables, options)
                with rolling_back_on_error(transaction):
                    unknown = transaction.left_to_store(analysis)
                    unobserved = self.over(self.catalogs)
                    verification = begin_verification(
                        options,
                        analysis,
                        self.catalogs.memory,
                        partial(unobserved.run, options=self.defaults),
                        unknown,
                    )
                # A statement rolls its own failures back, unless a second interrupt comes first.
                with rolling_back_on_error(transaction):
                    result = self._run_of(
                        analysis, transaction, tables, options, verification
                    ).run()
                if isinstance(analysis, SettingAnalysis) and not options.dry_run:
                    at_once(partial(self.session.set_property, analysis))
                return result
        except RowMergeError as error:
            self.session.spark_session.note_failure(error)
            raise
        except Exception as error:
            # A user's session is set up before the run, which translates Spark's errors.
            if (java_error := java_gone(error, "run")) is None:
                raise
            self.session.spark_session.note_failure(java_error)
            raise java_error from error
        finally:
            self.running.pop(tag, None)

    def _source_bytes(self) -> int:
        chosen_bytes = self.sizes.source_bytes
        return (
            max(room_for_source(), self.sizes.packed_bytes)
            if chosen_bytes is None
            else chosen_bytes
        )

    def _settings(self, analysis: Analysis, options: Options) -> RuleSettings:
        reads = isinstance(
            analysis, QueryAnalysis | RowChangeAnalysis | InsertAnalysis | CreateTableAnalysis
        )
        remote = self.sizes.remote_executors or (
            reads and self.session.spark_session.has_remote_executors
        )
        return replace(
            self.sizes,
            off=options.rules_off,
            source_bytes=self._source_bytes(),
            remote_executors=remote,
        )

    def _explain(
        self,
        analysis: ExplainAnalysis,
        transaction: StatementTransaction,
        tables: StatementTables,
        options: Options,
    ) -> Result:
        explain_type = ExplainType(analysis.statement.kind)
        form = ExplainFormat(analysis.statement.format)
        rules_off = frozenset(RULES) if explain_type is ExplainType.LOGICAL else options.rules_off
        planned = replace(options, dry_run=True, rules_off=rules_off)
        run = self._run_of(analysis.inner, transaction, tables, planned)
        trace, explained = run.run().trace, ""
        if explain_type is ExplainType.VALIDATE:
            explained = "true"
        elif run.plan is not None:
            distributed = explain_type is ExplainType.DISTRIBUTED
            plan = number_both_sides(run.plan)
            explained = explained_plan(plan, form, distributed=distributed)
            if plan is not run.plan:
                would = {record.id: record.would for record in trace.plan if record.would}
                trace = replace(trace, plan=describe(plan, would))
        # Only the form for people is drawn.
        nodes = (
            trace.plan
            if form is ExplainFormat.TEXT and explain_type is not ExplainType.VALIDATE
            else ()
        )
        return Result(
            replace(trace, state=StatementState.EXPLAINED, plan=nodes), explained=explained
        )

    def _run_of(
        self,
        analysis: Analysis,
        transaction: StatementTransaction,
        tables: StatementTables,
        options: Options,
        verification: Verification | None = None,
    ) -> StatementRun:
        name = target_name(analysis)
        services = Services(
            connector=self.catalogs.store(name),
            spark=lambda: self.session.spark_session.current,
            row_count=partial(self.catalogs.row_count, name, self.defaults),
            read_version=partial(self.catalogs.version, name, self.defaults),
            settings=self._settings(analysis, options),
            views=self.catalogs.views,
            read_constraints=partial(_constraints, analysis.text, tables),
            note_failure=self.session.spark_session.note_failure,
            notices=tuple(tables.notices),
        )
        observers = observers_of(
            analysis,
            options,
            read_rows=partial(self.catalogs.rows, name, self.defaults),
            read_independently=partial(self.catalogs.independent_rows, name, self.defaults),
            undo_log=self.session.undo_log,
            user_observers=self.observers,
            request=_row_request(analysis, tables, options),
            verification=verification,
        )
        return kind_of_run(analysis, options)(
            analysis=analysis,
            transaction=transaction,
            options=options,
            services=services,
            observers=observers,
        )


def _constraints(
    text: str,
    tables: StatementTables,
    table: TableBinding,
    origins: tuple[Origin, ...],
    about: Span | None,
) -> tuple[tuple[CheckConstraint, ...], tuple[Origin, ...], tuple[TableBinding, ...]]:
    from rowmerge_nb.sql.analyzer.statements.constraints import read_constraints

    return read_constraints(text, tables, table, origins, about)


def _row_request(
    analysis: Analysis, tables: StatementTables, options: Options
) -> RowRequest | None:
    if not options.why or not isinstance(analysis, RowChangeAnalysis):
        return None
    if options.flow == Flow.UPDATABLE:
        raise ConnectorError(
            "Rows cannot be requested with the older flow, in which page sources"
            " change the rows that they have read",
            hint=MERGE_FLOW,
        )
    return request_by_condition(RowConditions(analysis, tables, options.era), options.why)


def _changed_table(statement: Statement) -> TableName | None:
    """Return the table whose current state a statement reads and replaces; None for INSERT and
    other statements.
    """
    match statement:
        case Merge() | Update() | Delete() | Truncate():
            return statement.target
        case AlterTable() | CommentOn():
            return statement.name
    return None


def _wait_for_turn(
    parts: Sequence[str],
    transaction: StatementTransaction,
    tables: StatementTables,
    options: Options,
) -> None:
    def _await(name: Sequence[str]) -> None:
        await_turn(
            partial(tables.wait_for_turn, name), transaction.cancelled, "analyze", options.step
        )

    with rolling_back_on_error(transaction), reporting_step("analyze"):
        _await(parts)
        if options.dialect == "extended" and (table := tables.viewed(parts)) is not None:
            _await(table)


def _analyzed(
    statement: Statement,
    transaction: StatementTransaction,
    tables: StatementTables,
    options: Options,
) -> Analysis:
    from rowmerge_nb.sql.analyzer.statements.statement import analyze

    with rolling_back_on_error(transaction):
        with reporting_step("analyze"):
            analysis = analyze(statement, tables, era=options.era, dialect=options.dialect)
        check_flow(analysis, options)
    return analysis


def _refuse_several(sql: str, statements: Sequence[tuple[str, int]], options: Options) -> NoReturn:
    """Refuse a text with several statements at the first semicolon, unless the first statement has
    an earlier error.
    """
    from rowmerge_nb.sql.parser.statement_reader import parse

    (first, offset), *_ = statements
    index = sql.index(";", offset + len(first))
    semicolon = Span.within(sql, index, index + 1)
    try:
        parse(sql[:index], dialect=options.dialect)
    except ParseError as error:
        if (error.line or 0, error.column or 0) < (
            semicolon.line,
            semicolon.column,
        ) or not error.is_mismatch:
            raise
        raise ParseError(
            error.message.replace("'<EOF>'", "';'", 1),
            is_mismatch=True,
            hint="Is this semicolon one too many?",
        ).at(semicolon) from None
    raise ParseError(
        f"run takes one statement; this text has {len(statements)}",
        hint="Use run_script for several.",
    ).at(semicolon)


def _what_stays(number: int, count: int, changed: bool | None) -> str:
    """Return which of several statements stay done after an error.

    >>> _what_stays(3, 5, changed=False)
    'Statements 1 to 2 stay done; statement 3 of 5 failed.'
    >>> _what_stays(1, 2, changed=True)
    'Statement 1 stays done; statement 2 was not run.'
    """
    finished = number if changed else number - 1
    first = (
        "Statement 1 stays done"
        if finished == 1
        else f"Statements 1 to {finished} stay done"
        if finished
        else ""
    )
    if changed:
        rest = (
            ""
            if number == count
            else (
                f"statement {number + 1} was not run"
                if number + 1 == count
                else "the others were not run"
            )
        )
    else:
        rest = (
            f"statement {number} of {count} failed"
            if changed is False
            else f"the outcome of statement {number} of {count} is unknown"
        )
    if count == 1 or (not finished and changed is False):
        return ""
    return "; ".join(filter(None, [first, rest])) + "."
