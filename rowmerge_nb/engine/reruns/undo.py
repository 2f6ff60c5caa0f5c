"""Undo and restore: a commit of its own returns a table to the rows of a former version."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.choices import ROW_CHANGES
from rowmerge_nb.base.errors import AnalysisError, ConnectorError, RowMergeError
from rowmerge_nb.base.front_end import either, engine_call, result_call, undo_command
from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.handles import ConnectorTableVersion, PointerType
from rowmerge_nb.sql.analyzer.analysis import Notice, RestoreAnalysis, TableBinding
from rowmerge_nb.sql.analyzer.context import dotted
from rowmerge_nb.sql.parser.column_names import name_in_sql, nearest_table
from rowmerge_nb.sql.parser.statement_reader import name_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.catalog.name_resolution import StatementTables
    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.observers.undo_log import UndoableChange, UndoLog
    from rowmerge_nb.engine.sessions.runner import StatementRunner
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTableHandle, SchemaTableName
    from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorMetadata
    from rowmerge_nb.spi.types import Type

_MOST_PARTS: Final = 3
_NAME: Final = "the name of a table, as 'accounts' or 'lake.default.accounts'"
_VERSION: Final = (
    "the number of a version, the name of a tag or a branch, or a date or datetime in the past"
)


def restore(runner: StatementRunner, table: str, version: int | str | dt.date) -> Result:
    checked(table, "table", lambda value: isinstance(value, str) and bool(value), _NAME)
    checked(
        version,
        "version",
        lambda value: isinstance(value, int | str | dt.date) and not isinstance(value, bool),
        _VERSION,
    )
    is_temporal = isinstance(version, dt.date)
    requested_version = ConnectorTableVersion(
        version, PointerType.TEMPORAL if is_temporal else PointerType.TARGET_ID
    )
    if is_temporal and requested_version.instant() >= dt.datetime.now(dt.UTC):
        raise ConnectorError.invalid(
            f"The moment {version} is not in the past",
            hint="Give a time at which the table had the rows that you want.",
        )
    text = f"RESTORE {table} {requested_version}"

    def restoration(_: StatementTransaction, tables: StatementTables) -> RestoreAnalysis:
        return RestoreAnalysis(
            text, (), (), "RESTORE", _existing_table(tables, table), requested_version
        )

    return runner.restore(text, restoration, name_parts(table))


def undo(runner: StatementRunner, table: str | None) -> Result:
    checked(
        table,
        "table",
        lambda value: value is None or (isinstance(value, str) and bool(value)),
        _NAME,
    )
    text = f"UNDO {table or ''}".strip()

    def restoration(transaction: StatementTransaction, tables: StatementTables) -> RestoreAnalysis:
        change = _change_of_current_version(
            runner.session.undo_log,
            _last_change(runner.session.undo_log, tables, table),
            transaction,
            tables,
        )
        target = _unchanged_table(change, transaction, tables)
        lasting = change.lasting_types
        notice = Notice(f"Undone: {change.words}: {change.text}{'.' if lasting else ''}{lasting}")
        return RestoreAnalysis(text, (), (notice,), "UNDO", target, change.before, change.added)

    return runner.restore(text, restoration)


def replaced_rows(runner: StatementRunner, name: SchemaTableName, version: int) -> str | None:
    """Return the warning about a table in memory whose version was replaced by a DataFrame, or None
    if no statement made that version.
    """
    table = ("memory", name.schema, name.table)
    change = runner.session.undo_log.that_made(table, ConnectorTableVersion(version))
    if change is None:
        return None
    tables = runner.session.catalogs.memory
    text = f"Table {name.table} was replaced by a DataFrame; the {change.words} is gone."
    try:
        tables.read(name, version)
    except RowMergeError:
        return f"{text} The DataFrame has other columns, so the previous rows are not kept."
    return f"{text} {engine_call(f'restore({dotted(table)!r}, {version})')} restores its rows."


def _existing_table(tables: StatementTables, name: str) -> TableBinding:
    parts = name_parts(name)
    if len(parts) > _MOST_PARTS:
        raise ConnectorError.invalid(
            f"'{name}' has {len(parts)} parts; a table's name has one to three:"
            " catalog.schema.table",
            hint="Remove the extra parts.",
        )
    if tables.view(parts) is not None:
        raise AnalysisError.unsupported(
            f"'{name}' is a view, which has no rows of its own",
            hint="Name the table that it reads.",
        )
    binding = tables.resolve(parts)
    if binding is None:
        qualified = dotted(tables.qualify(parts))
        raise AnalysisError(
            f"Table '{qualified}' does not exist",
            code="TABLE_NOT_FOUND",
            hint=nearest_table(parts[-1], tables.candidates(parts)),
        )
    return binding


def _last_change(changes: UndoLog, tables: StatementTables, name: str | None) -> UndoableChange:
    table = None if name is None else _existing_table(tables, name)
    change = changes.last(None if table is None else table.name)
    if change is None:
        what = (
            "changed no rows" if table is None else f"not changed the rows of '{table.qualified}'"
        )
        raise ConnectorError(
            f"There is nothing to undo: this engine has {what}, or has already undone all of it",
            code="NOT_FOUND",
            hint=(
                f"{engine_call('restore(table, version)')} restores any version that a store keeps."
            ),
        )
    if change.branch:
        table_name = dotted(change.table)
        raise ConnectorError(
            f"The last change was the {change.words} in branch '{change.branch}' of"
            f" '{table_name}', and undo does not change branches",
            hint=(
                f"CREATE OR REPLACE BRANCH {quoted(change.branch)} IN TABLE"
                f" {name_in_sql(change.table)} starts it again from the table."
                f" {undo_command(table_name)} undoes the last change of the table itself."
            ),
        )
    if not change.keeps:
        table_name = dotted(change.table)
        raise ConnectorError(
            f"The last change of '{table_name}' was the {change.words}, and connector"
            f" '{change.connector}' keeps no earlier versions",
            hint=_by_hand(change.kind),
        )
    return change


def _by_hand(statement_kind: str) -> str:
    remedy = (
        f"Write the old values back by a statement: {result_call('diff()')} of the"
        f" {statement_kind} has them."
        if statement_kind in ROW_CHANGES
        else "Undo it with a statement: a DELETE removes the new rows."
    )
    return f"{remedy} {either('rehearse=True', '--rehearse')} shows a change without storing it."


def _change_of_current_version(
    changes: UndoLog,
    change: UndoableChange,
    transaction: StatementTransaction,
    tables: StatementTables,
) -> UndoableChange:
    """Return the change that made the table's current version, if this engine made it; otherwise
    the last one in the log.
    """
    target = tables.resolve(change.table)
    if target is None or target.handle is None or not change.keeps:
        return change
    now = transaction.metadata(target.catalog).get_table_version(transaction.session, target.handle)
    return changes.that_made(change.table, now) or change


def _unchanged_table(
    change: UndoableChange, transaction: StatementTransaction, tables: StatementTables
) -> TableBinding:
    target = tables.resolve(change.table)
    if target is None or target.handle is None or target.metadata is None:
        _conflict(change, "the table was dropped")
    metadata, session = transaction.metadata(target.catalog), transaction.session
    current_version = metadata.get_table_version(session, target.handle)
    is_after_kept = change.after is not None and _is_kept(
        metadata, session, target.metadata.name, change.after
    )
    is_kept = change.before is not None and _is_kept(
        metadata, session, target.metadata.name, change.before
    )
    if current_version != change.after:
        made_version = None if change.after is None else change.after.version
        current = (
            "it now has no version"
            if current_version is None
            else f"version {current_version.version} is there now"
        )
        _conflict(
            change,
            f"that made version {made_version}, and {current}",
            is_kept=is_kept,
            is_after_kept=is_after_kept,
        )
    if _shape(target.columns) != _shape(change.columns) or not _has_same_columns(
        change, target.handle, metadata, session
    ):
        _conflict(change, "its columns were altered", is_kept=is_kept)
    return target


def _shape(columns: Sequence[ColumnMetadata]) -> list[tuple[str, Type, bool]]:
    """Return the columns without comments, which may change."""
    return [(column.name, column.type, column.nullable) for column in columns]


def _has_same_columns(
    change: UndoableChange,
    handle: ConnectorTableHandle,
    metadata: ConnectorMetadata,
    session: ConnectorSession,
) -> bool:
    """Return whether a table has the same columns as before: a column that was dropped and added
    again is another one.
    """
    if change.handle is None:
        return True
    return tuple(metadata.get_column_handles(session, change.handle)) == tuple(
        metadata.get_column_handles(session, handle)
    )


def _is_kept(
    metadata: ConnectorMetadata,
    session: ConnectorSession,
    name: SchemaTableName,
    version: ConnectorTableVersion,
) -> bool:
    with suppress(RowMergeError):
        return metadata.get_versioned_table_handle(session, name, version) is not None
    return False


def _conflict(
    change: UndoableChange, why: str, *, is_kept: bool = False, is_after_kept: bool = False
) -> NoReturn:
    table_name = dotted(change.table)
    hint = "Nothing was taken back."
    if is_kept and change.before is not None:
        hint += (
            f" {engine_call(f'restore({table_name!r}, {change.before.version!r})')}"
            " would restore the rows from before it and lose later changes."
        )
    if is_after_kept and change.after is not None:
        hint += (
            f" {engine_call(f'restore({table_name!r}, {change.after.version!r})')}"
            f" would restore the rows that the {change.kind} made."
        )
    raise ConnectorError(
        f"Table '{table_name}' was changed since the {change.words}: {why}",
        code="TRANSACTION_CONFLICT",
        hint=hint,
    )
