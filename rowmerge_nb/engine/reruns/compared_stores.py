"""Running a statement in several catalogs, on a copy of its target in each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import ConnectorError, RowMergeError, StatementInterrupted
from rowmerge_nb.base.names import did_you_mean, quoted
from rowmerge_nb.engine.observers.fragment_samples import FragmentKeeper
from rowmerge_nb.engine.reruns.rerun import with_copy
from rowmerge_nb.engine.reruns.scratch_copies import ScratchCopies, ScratchCopy
from rowmerge_nb.engine.result import Result
from rowmerge_nb.engine.spark.interrupts import guarded, interruptible
from rowmerge_nb.engine.statements.statement import error_record
from rowmerge_nb.trace.store_comparison import StoreComparison, StoreSide
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.spi.connector import Connector

CATALOGS: Final = "catalogs"
"""The name of the comparison."""
REFUSED: Final = ("dry_run", "fault", "record", "rehearse", "verify", "why")
"""Options that a comparison of catalogs does not have."""
_EXAMPLE: Final = "Name at least two: catalogs=['memory', 'ice']."


def compare_catalogs(
    engine: RunningEngine,
    connectors: Mapping[str, Connector],
    sql: str,
    catalogs: object,
    options: Mapping[str, Any],
) -> StoreComparison:
    """Run a statement in several catalogs; see `rowmerge_nb.engine.engine.Engine.compare`.

    Args:
        engine: the engine.
        connectors: its connectors by catalog.
        sql: the statement.
        catalogs: the names of the catalogs.
        options: the options of the statement.
    """
    names = checked_catalogs(catalogs, connectors)
    for name in REFUSED:
        if options.get(name):
            _refuse(
                f"A comparison of catalogs and the option {name} do not go together",
                f"Leave {name} out.",
            )
    # Each statement of the comparison has a guard of its own.
    return guarded(partial(_compared, engine, connectors, sql, names, options))


def checked_catalogs(catalogs: object, connectors: Mapping[str, Connector]) -> tuple[str, ...]:
    """Return the names of at least two different catalogs.

    Raises:
        RowMergeError: INVALID_ARGUMENTS or CATALOG_NOT_FOUND.
    """
    if not isinstance(catalogs, list | tuple) or not all(
        isinstance(name, str) for name in catalogs
    ):
        _refuse(f"catalogs = {catalogs!r} is not a list of names", _EXAMPLE)
    names = tuple(name.strip().lower() for name in catalogs)
    for name in names:
        if name not in connectors:
            known_names = f"There are: {', '.join(connectors)}."
            raise ConnectorError(
                f"Catalog '{name}' does not exist",
                code="CATALOG_NOT_FOUND",
                hint=did_you_mean(name, connectors) or known_names,
            )
        if names.count(name) > 1:
            _refuse(f"Catalog '{name}' is named twice", "Name each catalog once.")
    if len(names) < 2:
        _refuse(
            "A comparison of catalogs needs at least two, got "
            + (repr(names[0]) if names else "none"),
            _EXAMPLE,
        )
    return names


def _refuse(message: str, hint: str) -> NoReturn:
    raise RowMergeError(message, code="INVALID_ARGUMENTS", hint=hint)


def _compared(
    engine: RunningEngine,
    connectors: Mapping[str, Connector],
    sql: str,
    names: Sequence[str],
    options: Mapping[str, Any],
) -> StoreComparison:
    target, statement_kind = _target_of(engine, sql, options)
    metadata = engine.table_metadata(*target)
    if metadata is None:
        raise RowMergeError(
            f"Table '{'.'.join(target)}' does not exist",
            code="TABLE_NOT_FOUND",
            hint="SHOW TABLES lists the tables.",
        )
    # All copies have the same rows, whatever others commit meanwhile.
    source, _ = with_copy(engine.apart({}), target)
    copies = ScratchCopies(engine.apart({}), connectors, target, metadata)
    problems: list[str] = []
    sides: list[StoreSide] = []
    try:
        with interruptible("run"):
            tables = {name: copies.create(name) for name in names}
            for copy in tables.values():
                copies.fill(copy, source)
            sides += [
                replace(
                    _run(engine, sql, target, copy, options, statement_kind),
                    connector=connectors[name].name,
                    lasting_call="finish_merge" if connectors[name].commits_in_finish else "commit",
                )
                for name, copy in tables.items()
            ]
    except StatementInterrupted as interrupt:
        problems += copies.remove()
        raise StatementInterrupted(
            f"The comparison was interrupted. {' '.join(problems)}"
            if problems
            else "The comparison was interrupted; its copies were removed",
            step=interrupt.step or "run",
        ) from interrupt
    except RowMergeError as error:
        problems += copies.remove()
        # What has changed is a copy.
        error.changed = False
        error.hint = " ".join(filter(None, [error.hint, *problems])) or None
        raise
    finally:
        problems += copies.remove()
    columns = [column.name for column in metadata.columns]
    return StoreComparison(CATALOGS, sql, ".".join(target), columns, sides, problems)


def _target_of(
    engine: RunningEngine, sql: str, options: Mapping[str, Any]
) -> tuple[TableName, str]:
    """Return the full name of a statement's target, and the first word of the statement.

    Raises:
        RowMergeError: the statement is wrong; NOT_SUPPORTED for a statement that changes no rows.
    """
    from rowmerge_nb.sql.parser.statement_reader import parse
    from rowmerge_nb.sql.tree.statements import Delete, Merge, Update

    try:
        planned = engine.run(sql, **{**options, "dry_run": True}).trace
    except ConnectorError:
        # The store of the target may refuse the statement, in its own words.
        planned = None
    dialect = str(options.get("dialect") or engine.options.dialect)
    statement = None
    if planned is None or planned.state is StatementState.PLANNED:
        statement = parse(sql.rstrip().removesuffix(";"), dialect=dialect)
    if not isinstance(statement, Merge | Update | Delete):
        raise RowMergeError(
            f"{planned.kind if planned is not None else 'This statement'} cannot be compared: it"
            " changes no rows of a table",
            code="NOT_SUPPORTED",
            hint="MERGE, UPDATE and DELETE can.",
        )
    statement_kind = type(statement).__name__.upper()
    if planned is not None and len(planned.target.name_parts) == 3:
        catalog, schema, table = planned.target.name_parts
        return (catalog, schema, table), statement_kind
    return engine.full_name(".".join(part.value for part in statement.target.parts)), statement_kind


def _run(
    engine: RunningEngine,
    sql: str,
    target: TableName,
    copy: ScratchCopy,
    options: Mapping[str, Any],
    statement_kind: str,
) -> StoreSide:
    """Run the statement on a copy, and read what it leaves."""
    keeper, name = FragmentKeeper(), copy.name[0]
    try:
        result = engine.apart({target: copy.name}, keeper).run(sql, **{**options, "check": False})
    except StatementInterrupted:
        raise
    except RowMergeError as error:
        if isinstance(error.result, Result):
            failed_result = error.result
        else:
            trace = Trace(
                statement=sql,
                kind=statement_kind,
                state=StatementState.FAILED,
                error=error_record(error, ()),
            )
            failed_result = Result(trace)
        return StoreSide(name, failed_result, fragments=keeper.fragments, remarks=copy.remarks)
    # A rerun would need the copy.
    result.again = None
    rows, remarks = None, list(copy.remarks)
    try:
        rows = engine.apart({}).table(".".join(map(quoted, copy.name)))
    except StatementInterrupted:
        raise
    except RowMergeError as error:
        remarks.append(f"The rows in {name} cannot be read: {error.message}")
    return StoreSide(name, result, rows, fragments=keeper.fragments, remarks=tuple(remarks))
