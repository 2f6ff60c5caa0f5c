"""From a text to results: each statement is read, resolved, and run by its kind of run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.choices import ExplainFormat, ExplainType, Flow, StatementState
from rowmerge_nb.base.errors import (
    MERGE_FLOW,
    AnalysisError,
    ConnectorError,
    ExecutionError,
    ParseError,
    RowMergeError,
    error_text,
)
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.catalog.explicit import TransactionManager
from rowmerge_nb.engine.catalog.inputs import statement_text
from rowmerge_nb.engine.errors.position import Executed, placed_in
from rowmerge_nb.engine.errors.translate import java_gone, with_next_step
from rowmerge_nb.engine.result import Result
from rowmerge_nb.engine.spark.interrupts import at_once, guarded, interruptible, note_result, to_its_end
from rowmerge_nb.engine.spark.java.making import idle_making
from rowmerge_nb.engine.spark.memory import room_for_source
from rowmerge_nb.engine.spark.quiet import quietly
from rowmerge_nb.engine.statements.asked import wanted_by_condition
from rowmerge_nb.engine.statements.dispatch import check_flow, kind_of_run
from rowmerge_nb.engine.statements.naming import kind_of, target_name
from rowmerge_nb.engine.statements.statement import StatementRun, error_record, not_rehearsed
from rowmerge_nb.engine.statements.table_turns import await_turn
from rowmerge_nb.engine.statements.undo_log import Changes
from rowmerge_nb.engine.verify.verification import begin_verification
from rowmerge_nb.plan.explain import explained_plan
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
from rowmerge_nb.sql.missing_catalog import unknown_catalog
from rowmerge_nb.sql.tree.statements import (
    AlterTable,
    Call,
    CommentOn,
    Commit,
    Deallocate,
    Delete,
    DescribePrepared,
    Execute,
    Explain,
    Merge,
    Prepare,
    Query,
    Rollback,
    Show,
    Span,
    StartTransaction,
    Statement,
    TableName,
    Truncate,
    Update,
    Use,
)
from rowmerge_nb.sql.typed.zones import in_session_zone
from rowmerge_nb.trace.trace import Consequence, Trace

if TYPE_CHECKING:
    from rowmerge_nb.engine.catalog.engine_catalogs import Catalogs
    from rowmerge_nb.engine.catalog.engine_catalogs import TableName as QualifiedName
    from rowmerge_nb.engine.catalog.name_resolution import StatementTables
    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.options import Options
    from rowmerge_nb.engine.spark.lazy_session import LazySession
    from rowmerge_nb.engine.statements.asked import Wanted
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.sql.analyzer.analysis import CheckConstraint, TableBinding
    from rowmerge_nb.sql.parser.parameters import Filled
    from rowmerge_nb.sql.tree.statements import Identifier
    from rowmerge_nb.sql.typed.expressions import Origin

    Looking = Callable[[StatementRun, RowConditions], Trace]

_READING: Final = (QueryAnalysis, ListingAnalysis, ExplainAnalysis)
"""What a transaction of several statements may have."""


_CONTROLS: Final[Mapping[type[Statement], str]] = {
    StartTransaction: "START TRANSACTION",
    Commit: "COMMIT",
    Rollback: "ROLLBACK",
}


_OF_THE_ENGINE: Final = (*_CONTROLS, Prepare, Deallocate, Use)
"""What changes the engine and no table."""


_LOOKING: Final = (Query, Show)
"""What is mostly answered without Spark, which is started only if it is needed."""


def _as_it_is(result: Result) -> Result:
    return result


@dataclass(frozen=True)
class StatementRunner:
    """Runs the statements of one engine.

    Args:
        catalogs: the engine's catalogs.
        session: its Spark session.
        defaults: its options, for what it asks of its own accord.
        sizes: sizes that decide which form of a plan is taken.
        running: the statements that run now, by the tags of their Spark work; what is set there cancels.
        changes: what was changed, so that it can be taken back.
        prepared: the texts of prepared statements by their names.
        transactions: the transaction of several statements, if there is one.
    """

    catalogs: Catalogs
    session: LazySession
    defaults: Options
    sizes: RuleSettings
    running: dict[str, threading.Event] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    prepared: dict[str, str] = field(default_factory=dict)
    transactions: TransactionManager = field(default_factory=TransactionManager)

    def run(self, sql: str, options: Options, ended: Callable[[Result], Result] = _as_it_is) -> Result:
        """Run one statement; see `rowmerge_nb.engine.engine.Engine.run`.

        Args:
            sql: the statement.
            options: how it is run.
            ended: completes its result; an interrupt meanwhile is told as one that came too late.
        """
        from rowmerge_nb.sql.parser.statement_reader import split_statements

        statement_text(sql)

        def work() -> Result:
            statements = split_statements(sql)
            with placed_in(sql, sql, 0):
                if not statements:
                    raise ParseError("run takes one statement; this text has 0", hint="Write a statement.").at(Span(0, 0, 1, 1))
                if len(statements) > 1:
                    _refuse_several(sql, statements, options)
            return self._run_placed(sql, *statements[0], options, ended)

        return guarded(work, partial(_complete, text=sql))

    def run_script(self, sql: str, options: Options, ended: Callable[[Result], Result] = _as_it_is) -> list[Result]:
        """Run several statements; see `rowmerge_nb.engine.engine.Engine.run_script`, and `run`."""
        from rowmerge_nb.sql.parser.statement_reader import split_statements

        with interruptible("parse"):
            statements = split_statements(statement_text(sql))
        results: list[Result] = []
        for number, (text, offset) in enumerate(statements, 1):
            work = partial(self._run_placed, sql, text, offset, options, ended)
            try:
                results.append(guarded(work, partial(_complete, text=text)))
            except RowMergeError as error:
                error.hint = " ".join(filter(None, [error.hint, _what_stays(number, len(statements), error.changed)])) or None
                raise
        return results

    def cancel(self) -> None:
        """Cancel the statements that run now, from another thread."""
        for tag, cancelled in list(self.running.items()):
            cancelled.set()
            self.session.cancel(tag)

    def _run_placed(self, sql: str, text: str, offset: int, options: Options, ended: Callable[[Result], Result]) -> Result:
        """Run one statement of a whole text."""
        executed: Execute | None = None
        places: AbstractContextManager[None] = nullcontext()
        if options.parameters or "?" in text or _begins(text, "EXECUTE"):
            with placed_in(sql, text, offset):
                filled, executed = self._with_values(text, options)
            # What is run, told and shown is the statement with its values.
            run_text = f"{sql[:offset]}{filled.text}{sql[offset + len(text) :]}"
            if executed is not None and executed.inner is not None:
                places = Executed(executed, filled, sql, offset).placed(run_text)
            sql, text = run_text, filled.text
        with places, placed_in(sql, text, offset), in_session_zone(self.catalogs.time_zone):
            result = ended(self._run(text, options))
        note_result(result)
        return result

    def _with_values(self, text: str, options: Options) -> tuple[Filled, Execute | None]:
        """Return a statement with the values of its parameters; of EXECUTE what it executes, and the EXECUTE."""
        from rowmerge_nb.sql.analyzer.queries.row_count_parameters import check_row_counts, computed_row_counts
        from rowmerge_nb.sql.parser.parameters import Filled, parameter, with_parameters
        from rowmerge_nb.sql.parser.statement_reader import parse

        try:
            with _looking("parse"):
                values = list(map(parameter, options.parameters))
                if _begins(text, "PREPARE") and not values:
                    return Filled(text, ((0, 0, None),)), None
                check_row_counts(text, values)
                try:
                    filled = with_parameters(text, values)
                except AnalysisError:
                    # What cannot be read at all is told before.
                    parse(text, dialect=options.dialect)
                    raise
                if not _begins(text, "EXECUTE"):
                    return filled, None
                text = filled.text
                statement = parse(text, dialect=options.dialect)
                assert isinstance(statement, Execute)
                known = partial(self._known, options)
                if statement.inner is None:
                    assert statement.name is not None
                    prepared = self._prepared(statement.name)
                    values = computed_row_counts(prepared, statement, known, options.era)
                    return with_parameters(prepared, values), statement
                values = computed_row_counts(statement.inner.value, statement, known, options.era)
                try:
                    return with_parameters(statement.inner.value, values), statement
                except AnalysisError as error:
                    span = statement.inner.span
                    raise error.at(replace(span, start=span.start + 1, column=span.column + 1)) from None
        except RowMergeError as error:
            _complete(error, text)
            raise

    @contextmanager
    def _known(self, options: Options) -> Iterator[StatementTables]:
        """Yield the object that looks up names and computes constants before a statement is parsed."""
        self.session.renew()
        transaction = self.catalogs.transaction(options)
        try:
            with in_session_zone(self.catalogs.time_zone):
                yield self.catalogs.tables(transaction, {})
        finally:
            transaction.rollback()

    def _prepared(self, name: Identifier) -> str:
        text = self.prepared.get(name.value)
        if text is None:
            raise AnalysisError(
                f"Prepared statement not found: {name.text}",
                code="NOT_FOUND",
                hint=did_you_mean(name.text, tuple(self.prepared))
                or "PREPARE name FROM ... makes one; it belongs to its engine.",
            ).at(name.span)
        return text

    def _read_prepared(self, name: Identifier, options: Options) -> Statement:
        """Read what was prepared under a name; the places of its errors are in its own text."""
        from rowmerge_nb.sql.parser.statement_reader import parse

        text = self._prepared(name)
        try:
            return parse(text, dialect=options.dialect)
        except RowMergeError as error:
            error.statement = text
            raise

    def _keep(self, statement: Prepare | Deallocate, options: Options) -> Result:
        """Keep a statement under a name, or forget it; a dry run looks only whether it is there to be forgotten."""
        kind = "PREPARE" if isinstance(statement, Prepare) else "DEALLOCATE PREPARE"
        if isinstance(statement, Deallocate):
            self._prepared(statement.name)
        if options.dry_run:
            return Result(Trace(statement=statement.text, kind=kind, target=statement.name.text, state=StatementState.PLANNED))
        if isinstance(statement, Prepare):
            at_once(partial(self.prepared.__setitem__, statement.name.value, statement.inner))
        else:
            at_once(partial(self.prepared.pop, statement.name.value, None))
        return Result(Trace(statement=statement.text, kind=kind, target=statement.name.text, state=StatementState.FINISHED))

    def _control(self, statement: StartTransaction | Commit | Rollback, options: Options) -> Result:
        """Begin or end a transaction of several statements; a dry run does neither."""
        self.session.check_open()
        kind = _CONTROLS[type(statement)]
        if options.dry_run:
            return Result(Trace(statement=statement.text, kind=kind, state=StatementState.PLANNED))
        if isinstance(statement, StartTransaction):
            at_once(partial(self.transactions.start, statement))
        else:
            at_once(self.transactions.commit if isinstance(statement, Commit) else self.transactions.rollback)
        return Result(Trace(statement=statement.text, kind=kind, state=StatementState.FINISHED))

    def _use(self, statement: Use, options: Options) -> Result:
        """Let names without a catalog or schema mean those of another one from now on; a dry run looks only whether it is there."""
        catalog = self.catalogs.default[0] if statement.catalog is None else statement.catalog.value
        schema = statement.schema.value
        transaction = self.catalogs.transaction(options)
        tables = self.catalogs.tables(transaction, {})
        with _looking("analyze"):
            try:
                if statement.catalog is not None and catalog not in tables.catalogs():
                    raise unknown_catalog(catalog, tables.catalogs()).at(statement.catalog.span)
                if not tables.has_schema(catalog, schema):
                    raise AnalysisError(
                        f"Schema does not exist: {catalog}.{schema}",
                        code="NOT_FOUND",
                        hint=did_you_mean(schema, tables.schemas(catalog)) or f"There are: {', '.join(tables.schemas(catalog))}.",
                    ).at(statement.schema.span)
            finally:
                transaction.rollback()
        state = StatementState.PLANNED if options.dry_run else StatementState.FINISHED
        if not options.dry_run:
            at_once(partial(setattr, self.catalogs, "default", (catalog, schema)))
        return Result(Trace(statement=statement.text, kind="USE", target=f"{catalog}.{schema}", state=state))

    def _check_transaction(self, statement: Statement, options: Options) -> None:
        """Refuse what a transaction of several statements does not have."""
        current = self.transactions.current
        if current is None:
            return
        current.check_open()
        if isinstance(statement, Call):
            raise ConnectorError(
                "Procedures cannot be called within a transaction (use autocommit mode)",
                code="NOT_SUPPORTED",
                hint="COMMIT or ROLLBACK ends the transaction.",
            )
        if options.fault is not None:
            raise ConnectorError(
                "A fault is put into a statement that has a transaction of its own",
                code="NOT_SUPPORTED",
                hint="COMMIT or ROLLBACK ends the transaction.",
            )

    def _run(self, text: str, options: Options) -> Result:
        from rowmerge_nb.sql.parser.statement_reader import parse

        try:
            options.step("parse")
            with _looking("parse"):
                statement = parse(text, dialect=options.dialect)
                if isinstance(statement, Execute):
                    raise AnalysisError(
                        f"Unsupported statement type: Execute{'' if statement.inner is None else 'Immediate'}",
                        code="NOT_SUPPORTED",
                        hint="Write EXECUTE once.",
                    ).at(statement.span)
                if isinstance(statement, _OF_THE_ENGINE) and options.rehearse and not options.dry_run:
                    raise not_rehearsed()
                if isinstance(statement, StartTransaction | Commit | Rollback):
                    return self._control(statement, options)
            try:
                self._check_transaction(statement, options)
                if isinstance(statement, Prepare | Deallocate):
                    return self._keep(statement, options)
                if isinstance(statement, DescribePrepared):
                    statement = replace(statement, prepared=self._read_prepared(statement.name, options))
                if isinstance(statement, Use):
                    return self._use(statement, options)
                if options.dry_run or isinstance(statement, Explain):
                    pass
                elif isinstance(statement, _LOOKING):
                    self.session.check_open()
                else:
                    # Java comes up while the statement is analyzed, and while a CREATE TABLE is answered without it.
                    self.session.start()
                return self._run_statement(statement, options)
            except BaseException:
                self.transactions.failed()
                raise
        except RowMergeError as error:
            _complete(error, text)
            raise

    def look(self, text: str, options: Options, versions: Mapping[QualifiedName, ConnectorTableVersion], look: Looking) -> Trace:
        """Plan a MERGE, UPDATE or DELETE once more on tables as they were, and look at its rows; nothing is begun, and all is rolled back.

        Args:
            text: the statement.
            options: how it was run.
            versions: the versions that it had of tables.
            look: looks, with the run of the statement and what reads conditions on its rows.
        """
        from rowmerge_nb.sql.parser.statement_reader import parse

        self.session.check_open()
        self.session.renew()
        transaction = self.catalogs.transaction(options)
        tables = self.catalogs.tables(transaction, options.namespace, versions)
        tag = transaction.session.query_id
        self.running[tag] = transaction.cancelled
        try:
            with (
                _looking("look at rows"),
                in_session_zone(self.catalogs.time_zone),
                quietly(),
                idle_making.statement(),
                self.session.adopted(),
            ):
                analysis = _analyzed(parse(text, dialect=options.dialect), transaction, tables, options)
                assert isinstance(analysis, RowChangeAnalysis)
                conditions = RowConditions(analysis, tables, options.era)
                return look(self._run_of(analysis, transaction, tables, options), conditions)
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
        """Put back a former version of a table.

        Args:
            text: what is done, in place of a statement.
            restoration: looks the table up, and says what is to be put back.
            table: the name of the table if statements before this one may change it first.
        """
        self.session.check_open()

        def looked_up(transaction: StatementTransaction, tables: StatementTables) -> RestoreAnalysis:
            if table:
                _wait_for_turn(table, transaction, tables, self.defaults)
            with _rolled_back_otherwise(transaction), _looking("analyze"):
                return restoration(transaction, tables)

        def run() -> Result:
            try:
                return self._run_analyzed(looked_up, self.defaults)
            except BaseException:
                self.transactions.failed()
                raise

        return guarded(run, partial(_complete, text=text))

    def _run_statement(self, statement: Statement, options: Options) -> Result:
        def analyzed(transaction: StatementTransaction, tables: StatementTables) -> Analysis:
            changed = _changed_table(statement)
            if changed is not None and not (options.dry_run or options.rehearse):
                _wait_for_turn([part.value for part in changed.parts], transaction, tables, options)
            return _analyzed(statement, transaction, tables, options)

        return self._run_analyzed(analyzed, options, self._changes(statement))

    def _changes(self, statement: Statement) -> str:
        """Return the catalog of the table that a statement names as what it changes or makes; ``""`` where it names none."""
        name = getattr(statement, "target", None) or getattr(statement, "name", None)
        if not isinstance(name, TableName):
            return ""
        return name.parts[0].value if len(name.parts) > 2 else self.catalogs.default[0]

    def _run_analyzed(
        self,
        analyzed: Callable[[StatementTransaction, StatementTables], Analysis],
        options: Options,
        changes: str = "",
    ) -> Result:
        """Run what comes out of an analysis, in a transaction of its own."""
        self.session.renew()
        explicit = self.transactions.current
        transaction = self.catalogs.transaction(options, changes, explicit)
        tables = self.catalogs.tables(transaction, options.namespace)
        transaction.notices += map(Notice, self.session.news())
        tag = transaction.session.query_id
        self.running[tag] = transaction.cancelled
        run: StatementRun | None = None
        try:
            with quietly(), idle_making.statement(), self.session.adopted():
                options.step("analyze")
                analysis = analyzed(transaction, tables)
                if explicit is not None and not isinstance(analysis, _READING):
                    catalog = (target_name(analysis) or ("",))[0]
                    # Of what is not there, and need not be, nothing is written.
                    if catalog in self.catalogs.connectors:
                        explicit.refuse_write(kind_of(analysis), catalog, self.catalogs.connectors[catalog])
                if isinstance(analysis, ExplainAnalysis):
                    return self._explain(analysis, transaction, tables, options)
                with _rolled_back_otherwise(transaction):
                    unknown = transaction.left_to_store(analysis)
                    verification = begin_verification(
                        options, analysis, self.catalogs.memory, partial(self.run, options=self.defaults), unknown
                    )
                # A statement rolls back by itself what fails, unless a second interrupt comes before it has come to that.
                with _rolled_back_otherwise(transaction):
                    run = self._run_of(analysis, transaction, tables, options)
                    result = run.run()
                if isinstance(analysis, SettingAnalysis) and not options.dry_run:
                    at_once(partial(self._set, analysis))
                return result if verification is None else verification.told(result)
        except RowMergeError as error:
            self.session.note_failure(error)
            raise
        except Exception as error:
            # Settings of a user's session are set before the statement's run, which translates what Spark raises.
            if (gone := java_gone(error, "run")) is None:
                raise
            self.session.note_failure(gone)
            raise gone from error
        finally:
            self.running.pop(tag, None)
            if run is not None:
                self.changes.note(run)

    def _set(self, setting: SettingAnalysis) -> None:
        """Let a property of the session have a value from now on."""
        others = {name: value for name, value in self.catalogs.settings.items() if name != setting.name}
        # Nothing is changed in what there is: results, which can run their statements once more, have it too.
        self.catalogs.settings = others if setting.value is None else {**others, setting.name: setting.value}

    def _source_bytes(self) -> int:
        told = self.sizes.source_bytes
        return max(room_for_source(), self.sizes.packed_bytes) if told is None else told

    def _settings(self, analysis: Analysis, options: Options) -> RuleSettings:
        reads = isinstance(analysis, QueryAnalysis | RowChangeAnalysis | InsertAnalysis | CreateTableAnalysis)
        remote = self.sizes.remote_executors or (reads and self.session.has_remote_executors)
        return replace(self.sizes, off=options.rules_off, source_bytes=self._source_bytes(), remote_executors=remote)

    def _explain(
        self, analysis: ExplainAnalysis, transaction: StatementTransaction, tables: StatementTables, options: Options
    ) -> Result:
        kind, form = ExplainType(analysis.statement.kind), ExplainFormat(analysis.statement.format)
        rules_off = frozenset(RULES) if kind is ExplainType.LOGICAL else options.rules_off
        planned = replace(options, dry_run=True, rules_off=rules_off)
        run = self._run_of(analysis.inner, transaction, tables, planned)
        trace, explained = run.run().trace, ""
        if kind is ExplainType.VALIDATE:
            explained = "true"
        elif run.plan is not None:
            distributed = kind is ExplainType.DISTRIBUTED
            explained = explained_plan(run.plan, form, distributed=distributed)
        # What is asked for in another form than that of people is not drawn.
        drawn = trace.plan if form is ExplainFormat.TEXT and kind is not ExplainType.VALIDATE else ()
        return Result(replace(trace, state=StatementState.EXPLAINED, plan=drawn), explained=explained)

    def _run_of(
        self, analysis: Analysis, transaction: StatementTransaction, tables: StatementTables, options: Options
    ) -> StatementRun:
        name = target_name(analysis)
        return kind_of_run(analysis, options)(
            analysis=analysis,
            transaction=transaction,
            options=options,
            connector=self.catalogs.store(name),
            spark=lambda: self.session.current,
            row_count=partial(self.catalogs.row_count, name, self.defaults),
            rows_in=partial(self.catalogs.rows, name, self.defaults),
            settings=self._settings(analysis, options),
            views=self.catalogs.views,
            read_constraints=partial(_constraints, analysis.text, tables),
            note_failure=self.session.note_failure,
            notices=tuple(tables.notices),
            wanted=_wanted(analysis, tables, options),
        )


def _constraints(
    text: str, tables: StatementTables, table: TableBinding, origins: tuple[Origin, ...], about: Span | None
) -> tuple[tuple[CheckConstraint, ...], tuple[Origin, ...], tuple[TableBinding, ...]]:
    """Read the CHECK constraints of a table; the analyzer is there by then."""
    from rowmerge_nb.sql.analyzer.statements.constraints import read_constraints

    return read_constraints(text, tables, table, origins, about)


def _begins(text: str, word: str) -> bool:
    return text[: len(word)].upper() == word and not text[len(word) : len(word) + 1].isalnum()


def _wanted(analysis: Analysis, tables: StatementTables, options: Options) -> Wanted | None:
    """Return the rows that are asked for with a statement; nothing of those that change no rows."""
    if not options.why or not isinstance(analysis, RowChangeAnalysis):
        return None
    if options.flow == Flow.UPDATABLE:
        raise ConnectorError(
            "Rows cannot be asked for with the older flow, in which page sources change the rows that they have read",
            hint=MERGE_FLOW,
        )
    return wanted_by_condition(RowConditions(analysis, tables, options.era), options.why)


def _changed_table(statement: Statement) -> TableName | None:
    """Return the table whose present state a statement reads and replaces; None for other statements, an INSERT among them."""
    match statement:
        case Merge() | Update() | Delete() | Truncate():
            return statement.target
        case AlterTable() | CommentOn():
            return statement.name
    return None


def _wait_for_turn(parts: Sequence[str], transaction: StatementTransaction, tables: StatementTables, options: Options) -> None:
    """Wait for the statements before this one that change the same table, if its store queues them."""
    with _rolled_back_otherwise(transaction), _looking("analyze"):
        await_turn(partial(tables.wait_for_turn, parts), transaction.cancelled, "analyze", options.step)


def _analyzed(statement: Statement, transaction: StatementTransaction, tables: StatementTables, options: Options) -> Analysis:
    """Resolve a statement; what a transaction has begun for one that is wrong is rolled back."""
    from rowmerge_nb.sql.analyzer.statements.statement import analyze

    with _rolled_back_otherwise(transaction):
        with _looking("analyze"):
            analysis = analyze(statement, tables, era=options.era, dialect=options.dialect)
        check_flow(analysis, options)
    return analysis


@contextmanager
def _rolled_back_otherwise(transaction: StatementTransaction) -> Iterator[None]:
    """Roll a transaction back if what is done in it fails; one that is over already stays as it is."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            to_its_end(transaction.rollback)
        raise


def _complete(error: RowMergeError, text: str) -> None:
    """Set the statement of an error, and its result as far as it is known."""
    with_next_step(error).statement = error.statement or text
    if error.result is None:
        told = (Consequence("nothing was read or written"),) if error.changed is False else ()
        record = error_record(error, told)
        kind = (text.split(None, 1) or [""])[0].upper()
        error.result = Result(Trace(statement=text, kind=kind, state=StatementState.FAILED, error=record))


@contextmanager
def _looking(step: str) -> Iterator[None]:
    """Make errors of ours of an interrupt, and of what a connector raises while a statement is looked at."""
    try:
        with interruptible(step):
            yield
    except RowMergeError:
        raise
    except Exception as error:
        if (gone := java_gone(error, step)) is not None:
            raise gone from error
        raise ExecutionError(f"The statement could not be looked at ({step}): {error_text(error)}", step=step) from error


def _refuse_several(sql: str, statements: Sequence[tuple[str, int]], options: Options) -> NoReturn:
    """Refuse a text with several statements at the semicolon behind the first, unless that one is wrong before it ends."""
    from rowmerge_nb.sql.parser.statement_reader import parse
    from rowmerge_nb.sql.parser.token_reader import is_mismatch

    (first, offset), *_ = statements
    place = sql.index(";", offset + len(first))
    semicolon = Span.within(sql, place, place + 1)
    try:
        parse(sql[:place], dialect=options.dialect)
    except ParseError as error:
        if (error.line or 0, error.column or 0) < (semicolon.line, semicolon.column) or not is_mismatch(error):
            raise
        raise ParseError(error.message.replace("'<EOF>'", "';'", 1), hint="Is this semicolon one too many?").at(
            semicolon
        ) from None
    raise ParseError(f"run takes one statement; this text has {len(statements)}", hint="Use run_script for several.").at(
        semicolon
    )


def _what_stays(number: int, count: int, changed: bool | None) -> str:
    """Return what of several statements is done after an error.

    Args:
        number: the statement that ended with the error, counted from 1.
        count: how many there are.
        changed: whether it has changed something all the same.

    >>> _what_stays(3, 5, changed=False)
    'Statements 1 to 2 stay done; statement 3 of 5 failed.'
    >>> _what_stays(1, 2, changed=True)
    'Statement 1 stays done; statement 2 was not run.'
    """
    done = number if changed else number - 1
    kept = "Statement 1 stays done" if done == 1 else f"Statements 1 to {done} stay done" if done else ""
    if changed:
        rest = (
            "" if number == count else f"statement {number + 1} was not run" if number + 1 == count else "the others were not run"
        )
    else:
        rest = f"statement {number} of {count} failed" if changed is False else f"of statement {number} of {count} nobody knows"
    if count == 1 or (not done and changed is False):
        return ""
    return "; ".join(filter(None, [kept, rest])) + "."
