"""The connector of a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError
from rowmerge_nb.base.names import quoted, quoted_text
from rowmerge_nb.connectors.jdbc.altering import alteration_sql
from rowmerge_nb.connectors.jdbc.database import unsupported
from rowmerge_nb.connectors.jdbc.jdbc_handles import (
    JdbcColumn,
    JdbcInsertTableHandle,
    JdbcMergeTableHandle,
    JdbcOutputTableHandle,
    JdbcRowIdColumn,
    JdbcTableHandle,
    table_handle_of,
)
from rowmerge_nb.connectors.jdbc.split_reading import JdbcPageSourceProvider
from rowmerge_nb.connectors.jdbc.stage_changes import NO_CASE, StagedChanges, computed_error
from rowmerge_nb.connectors.jdbc.staging import JdbcPageSinkProvider, read_fragments
from rowmerge_nb.connectors.jdbc.updatable_source import (
    ONLY_CASE,
    JdbcUpdatableTableHandle,
)
from rowmerge_nb.connectors.shared.properties import (
    require_columns,
    require_known,
    spelled_names,
    wrong_columns,
)
from rowmerge_nb.connectors.shared.updatable_metadata import UpdatableMetadata
from rowmerge_nb.spi import (
    AddColumn,
    ColumnDomain,
    ColumnHandle,
    ColumnMetadata,
    Connector,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorOutputMetadata,
    ConnectorOutputTableHandle,
    ConnectorSession,
    ConnectorSplitManager,
    ConnectorTableHandle,
    ConnectorTableLayout,
    ConnectorTableMetadata,
    ConnectorTransactionHandle,
    Constraint,
    RenameColumn,
    RenameTable,
    RowChangeParadigm,
    SaveMode,
    SchemaTableName,
    Type,
    own,
)
from rowmerge_nb.spi.connector import always
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rowmerge_nb.connectors.jdbc.database import DatabaseSession, Store
    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcSplit, Stage
    from rowmerge_nb.spi.alterations import Alteration

PRIMARY_KEY = "primary_key"
TABLE_PROPERTIES = {
    PRIMARY_KEY: "columns that identify a row; MERGE, UPDATE and DELETE need them, ARRAY['...']"
}


class JdbcTransaction(ABC):
    """A transaction of the connector, with a session that reads and one that writes."""

    _store: Store

    @abstractmethod
    def reader(self) -> DatabaseSession:
        """Return a session that sees the snapshot and the transaction's own changes."""

    @abstractmethod
    def writer(self) -> DatabaseSession: ...

    def release(self) -> None:
        """End reads that would block DROP TABLE or ALTER TABLE."""

    @abstractmethod
    def find(self, name: SchemaTableName) -> JdbcTableHandle | None:
        """Return a table; NOT_SUPPORTED for a column of an unsupported type."""

    @abstractmethod
    def names(self) -> Sequence[SchemaTableName]: ...

    @abstractmethod
    def schemas(self) -> Sequence[str]: ...

    def longest_name(self) -> int | None:
        return None

    @abstractmethod
    def row_count(self, handle: JdbcTableHandle) -> int | None:
        """Return the number of rows; None if counting takes long."""

    @abstractmethod
    def splits(
        self, handle: JdbcTableHandle, domains: Mapping[str, ColumnDomain]
    ) -> Sequence[JdbcSplit]: ...

    def _count(self, source: str) -> int:
        return int(self.reader().value(f"SELECT count(*) AS n FROM {source}"))

    def declared(self, table: SchemaTableName, column: str, sql_type: Type) -> str:
        name = self._store.declared_type(sql_type)
        if name is None:
            raise unsupported(
                self._store,
                str(table),
                column,
                str(sql_type),
                self._store.undeclared,
                "Use another type.",
            )
        return name

    @abstractmethod
    def spelled_name(self, name: SchemaTableName) -> tuple[str, str]:
        """Return schema and table of a new table, as the database spells them."""

    @abstractmethod
    def create_table(self, metadata: ConnectorTableMetadata, key: Sequence[str]) -> None: ...

    def keep_others_out(self, handle: JdbcTableHandle) -> None:
        """Let others only read a table until the end; by default, `check_unchanged` detects their
        changes.
        """

    def _declare_table(
        self,
        table: str,
        metadata: ConnectorTableMetadata,
        key: Sequence[str],
        required: Sequence[str] = (),
    ) -> None:
        parts = []
        for column in metadata.columns:
            declared = self.declared(metadata.name, column.name, column.type)
            suffix = " NOT NULL" if not column.nullable or column.name in required else ""
            parts.append(f"{quoted(self._store.column_name(column.name))} {declared}{suffix}")
        if key:
            names = ", ".join(quoted(self._store.column_name(name)) for name in key)
            parts.append(f"PRIMARY KEY ({names})")
        self.writer().execute(
            f"CREATE TABLE {table} ({', '.join(parts)})", f"Creating table '{metadata.name}'"
        )

    def _single_match(
        self, name: SchemaTableName, matches: Sequence[Mapping[str, Any]], spellings: Iterable[str]
    ) -> Mapping[str, Any]:
        if len(matches) > 1:
            raise ConnectorError(
                f"{self._store.name} has several tables '{name}' that differ only in"
                f" case: {', '.join(spellings)}",
                code="AMBIGUOUS_NAME",
                hint="Rename all but one, or make a view of another name.",
            )
        return matches[0]

    @abstractmethod
    def begin_stage(self, session: ConnectorSession, handle: JdbcTableHandle) -> Stage:
        """Create a stage, removing orphans first."""

    @abstractmethod
    def collect(self, handle: JdbcTableHandle, stage: Stage, attempts: Mapping[int, int]) -> str:
        """Collect the valid attempts' rows; return the stage's SQL name."""

    def hold(self, handle: JdbcTableHandle) -> None:
        """Lock a table against ALTER TABLE; by default, the first change locks it."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise TRANSACTION_CONFLICT if what was read has changed."""

    @abstractmethod
    def commit(self) -> None:
        """Commit; `end` follows."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll back, and remove the stage."""

    @abstractmethod
    def end(self) -> None:
        """Remove the stage, and close all sessions."""


class JdbcConnector(Connector):
    commits_in_thread = True
    checked_after_commit = False

    get_table_properties = always(TABLE_PROPERTIES)

    def __init__(self, store: Store) -> None:
        self.store = store
        self._transactions = Transactions[JdbcTransaction]("jdbc")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store.shown})"

    @abstractmethod
    def new_transaction(self) -> JdbcTransaction: ...

    def begin_transaction(self) -> NumberedTransactionHandle:
        return self._transactions.begin(lambda _: self.new_transaction())

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> None:
        # After a failed commit, `rollback` needs the transaction.
        number = self._transactions.number(transaction_handle)
        self._transactions[number].commit()
        # The change is committed: `orphans` lists what cannot be removed now.
        with suppress(RowMergeError, OSError):
            self._transactions.pop(number).end()

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        transaction = self._transactions.pop(self._transactions.number(transaction_handle), None)
        if transaction is not None:
            transaction.rollback()

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> JdbcMetadata:
        return JdbcMetadata(self.store, self._transactions.of(transaction_handle))

    def get_split_manager(self) -> JdbcSplitManager:
        return JdbcSplitManager(self._transactions)

    def get_page_source_provider(self) -> JdbcPageSourceProvider:
        return JdbcPageSourceProvider(self.store)

    def get_page_sink_provider(self) -> JdbcPageSinkProvider:
        return JdbcPageSinkProvider(self.store)

    def close(self) -> None:
        while self._transactions:
            self._transactions.popitem()[1].rollback()


class JdbcSplitManager(ConnectorSplitManager):
    def __init__(self, transactions: Transactions[JdbcTransaction]) -> None:
        self._transactions = transactions

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[JdbcSplit]:
        return self._transactions.of(transaction_handle).splits(
            table_handle_of(table_handle), constraint.domains
        )


class JdbcMetadata(UpdatableMetadata):
    def __init__(self, store: Store, transaction: JdbcTransaction) -> None:
        self._store = store
        self._transaction = transaction

    # -- tables

    creates_filled_tables = True
    evolves_tables = True
    replaces_tables = True
    supports_missing_columns_on_insert = True

    @property
    def stores_comments(self) -> bool:
        return self._store.stores_comments

    @property
    def keeps_negative_zero(self) -> bool:
        return self._store.keeps_negative_zero

    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> JdbcTableHandle | None:
        # No name has a zero byte, which would end the text of the query.
        return None if "\0" in str(name) else self._transaction.find(name)

    def get_table_metadata(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableMetadata:
        return table_handle_of(table_handle).metadata

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        return self._transaction.names()

    def row_count(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> int | None:
        return self._transaction.row_count(table_handle_of(table_handle))

    def create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        save_mode: SaveMode = SaveMode.FAIL,
    ) -> None:
        key = self._checked_key(metadata)
        if save_mode is SaveMode.REPLACE:
            self._drop_old_table(self.get_table_handle(session, metadata.name))
        self._transaction.create_table(metadata, key)

    def _checked_key(self, metadata: ConnectorTableMetadata) -> tuple[str, ...]:
        require_known(metadata.properties, TABLE_PROPERTIES, self._store.name)
        require_columns(metadata)
        key = spelled_names(metadata.properties, PRIMARY_KEY, metadata.columns)
        if len(set(key)) != len(key):
            raise wrong_columns(PRIMARY_KEY, "names a column twice", metadata.columns)
        self._check_names("table", metadata.name.table)
        self._check_names("column", *(column.name for column in metadata.columns))
        self._store.check_room(metadata.name, len(metadata.columns), len(key))
        return key

    def _drop_old_table(self, old_table: JdbcTableHandle | None) -> None:
        if old_table is None:
            return
        old_handle, writer = self._begin_removal(old_table, "replaced")
        self._transaction.check_unchanged()
        writer.execute(
            f"DROP TABLE {self._store.table(old_handle)}", f"Replacing table '{old_handle.name}'"
        )

    def begin_create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        layout: ConnectorTableLayout | None,
        *,
        replace: bool = False,
    ) -> JdbcOutputTableHandle:
        """Create only a stage: the query may read the table that `finish_create_table` replaces."""
        key = self._checked_key(metadata)
        old_table = self.get_table_handle(session, metadata.name) if replace else None
        if old_table is not None:
            self._transaction.keep_others_out(self._base_table(old_table, "replaced"))
        columns = tuple(
            self._new_column(metadata.name, column, added=False) for column in metadata.columns
        )
        handle = JdbcTableHandle(
            metadata.name,
            self._transaction.spelled_name(metadata.name),
            columns,
            tuple(map(self._store.column_name, key)),
        )
        stage = self._transaction.begin_stage(session, handle)
        names = tuple(column.name for column in handle.columns)
        return JdbcOutputTableHandle(handle, stage, names, metadata, old_table)

    def finish_create_table(
        self,
        session: ConnectorSession,
        output_handle: ConnectorOutputTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        output = own(output_handle, JdbcOutputTableHandle)
        attempts = read_fragments(fragments)
        self._drop_old_table(output.old_table)
        self._transaction.create_table(output.metadata, output.table_handle.key)
        output_metadata = ConnectorOutputMetadata()
        if attempts:
            table = self._transaction.find(output.metadata.name)
            assert table is not None
            changes = self._collected(table, output.stage, attempts)
            output_metadata = replace(changes, step="finish_create_table").apply()
        if output.table_handle.key:
            return output_metadata
        notice = "The table has no primary key, so MERGE, UPDATE and DELETE reject it. " + _keyed(
            output.table_handle.name, output.table_handle.columns[0].name
        )
        return replace(output_metadata, notices=(*output_metadata.notices, notice))

    def _check_names(self, role: str, *names: str) -> None:
        longest = self._transaction.longest_name()
        for name in names:
            if "\0" in name:
                reason = "with a zero byte"
            elif longest is not None and len(name.encode()) > longest:
                reason = f"of {len(name.encode())} bytes, but names are truncated to {longest}"
            else:
                continue
            raise ConnectorError(
                f"{self._store.name} cannot have a {role} named {name!r}, {reason}",
                hint="Choose another name.",
            )

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        handle, writer = self._begin_removal(table_handle, "dropped")
        writer.execute(f"DROP TABLE {self._store.table(handle)}", f"Dropping table '{handle.name}'")

    def truncate_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        handle, writer = self._begin_removal(table_handle, "truncated")
        self._store.changed(
            writer,
            f"{self._store.truncating} {self._store.table(handle)}",
            f"Truncating table '{handle.name}'",
        )

    def _begin_removal(
        self, table_handle: ConnectorTableHandle, verb: str
    ) -> tuple[JdbcTableHandle, DatabaseSession]:
        handle = self._base_table(table_handle, verb)
        self._transaction.release()
        writer = self._transaction.writer()
        if other_tables := self._store.bound_tables(writer, handle):
            raise ConnectorError(
                f"{self._store.name} table '{handle.name}' cannot be {verb}: rows of"
                f" table '{other_tables[0]}' would be deleted or changed with its rows",
                hint="Drop that table first, or write DELETE, which its foreign key follows.",
            )
        return handle, writer

    def alter_table(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, alteration: Alteration
    ) -> None:
        handle = self._base_table(table_handle, "altered")
        if isinstance(alteration, AddColumn):
            self._check_names("column", alteration.column.name)
        elif isinstance(alteration, RenameColumn):
            self._check_names("column", alteration.name)
        elif isinstance(alteration, RenameTable):
            self._check_names("table", alteration.name.table)
        statements = self._alteration_sql(handle, alteration)
        self._transaction.release()
        for sql in statements:
            self._transaction.writer().execute(sql, f"Altering table '{handle.name}'")

    def _alteration_sql(self, handle: JdbcTableHandle, alteration: Alteration) -> list[str]:
        declared = partial(self._transaction.declared, handle.name)
        return alteration_sql(self._store, handle, alteration, declared)

    def get_evolved_table_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnMetadata],
    ) -> JdbcTableHandle:
        """Return a handle with columns that `finish_merge` adds."""
        handle = self._base_table(table_handle, "altered")
        self._check_names("column", *(column.name for column in columns))
        return replace(
            handle,
            columns=(
                *handle.columns,
                *(self._new_column(handle.name, column, added=True) for column in columns),
            ),
        )

    def _new_column(
        self, table: SchemaTableName, column: ColumnMetadata, *, added: bool
    ) -> JdbcColumn:
        declared = self._transaction.declared(table, column.name, column.type)
        return JdbcColumn(
            self._store.column_name(column.name),
            column.type,
            declared,
            cast=self._store.cast_of(declared),
            added=added,
        )

    def _add_columns(self, handle: JdbcTableHandle) -> None:
        new = [column for column in handle.columns if column.added]
        if not new:
            return
        self._transaction.release()
        self._transaction.hold(handle)
        current = self._transaction.find(handle.name)
        if current is None or current.columns != tuple(
            column for column in handle.columns if not column.added
        ):
            raise ExecutionError(
                f"The columns of {self._store.name} table '{handle.name}' have been altered by"
                " another session since they were read",
                code="TRANSACTION_CONFLICT",
                step="finish_merge",
                hint="Run the statement again.",
            )
        for column in new:
            adding = AddColumn(ColumnMetadata(column.name, column.type))
            for sql in self._alteration_sql(handle, adding):
                self._transaction.writer().execute(sql, f"Adding a column to table '{handle.name}'")

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        return schema in self.list_schemas(session)

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        return sorted(name.lower() for name in self._transaction.schemas())

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        if not self._store.has_schemas:
            self._refuse("creating schemas", "create_schema")
        self._check_names("schema", schema)
        self._transaction.writer().execute(
            f"CREATE SCHEMA {quoted(schema)}", f"Creating schema '{schema}'"
        )

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        if not self._store.has_schemas:
            self._refuse("dropping schemas", "drop_schema")
        self._transaction.release()
        spelled = next(
            (name for name in self._transaction.schemas() if name.lower() == schema), schema
        )
        self._transaction.writer().execute(
            f"DROP SCHEMA {quoted(spelled)}", f"Dropping schema '{schema}'"
        )

    # -- INSERT and MERGE

    def begin_insert(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> JdbcInsertTableHandle:
        handle, stage = self._begin(session, table_handle, "inserted into")
        return JdbcInsertTableHandle(handle, stage, _names(columns))

    def finish_insert(
        self,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        insert_handle = own(insert_handle, JdbcInsertTableHandle)
        handle, attempts = insert_handle.table_handle, read_fragments(fragments)
        if not attempts:
            return ConnectorOutputMetadata()
        changes = self._collected(handle, insert_handle.stage, attempts)
        return replace(
            changes, step="finish_insert", filled_columns=insert_handle.filled_columns
        ).apply()

    def _begin(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        verb: str,
        updated: Iterable[str] = (),
    ) -> tuple[JdbcTableHandle, Stage]:
        handle = self._base_table(table_handle, verb)
        self._store.check_room(handle.name, len(handle.columns), len(handle.key))
        for column in map(handle.column, updated):
            if column.generated or column.always:
                raise computed_error(self._store, handle, column)
        return handle, self._transaction.begin_stage(session, handle)

    def _collected(
        self, handle: JdbcTableHandle, stage: Stage, attempts: Mapping[int, int]
    ) -> StagedChanges:
        writer = self._transaction.writer()
        return StagedChanges(
            self._store, writer, handle, self._transaction.collect(handle, stage, attempts)
        )

    def get_row_change_paradigm(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> RowChangeParadigm:
        """Return CHANGE_ONLY_UPDATED_COLUMNS: databases update rows in place."""
        return RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS

    def get_merge_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> JdbcRowIdColumn:
        """Return the primary key, or raise NOT_SUPPORTED."""
        handle = self._base_table(table_handle, "changed")
        if not handle.key:
            raise ConnectorError(
                f"{self._store.name} table '{handle.name}' has no primary key, so its"
                " rows cannot be identified and changed",
                hint=f"{_keyed(handle.name, '...')} Reading and INSERT work without.",
            )
        return JdbcRowIdColumn("$row_id", self._store.row_id_type(handle))

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> JdbcMergeTableHandle:
        updated: dict[int, tuple[str, ...]] | None = None
        if updated_columns is not None:
            updated = {case: _names(columns) for case, columns in updated_columns.items()}
        elif "updated_columns" in session.properties:
            # In the era `documents`, a row does not have the number of its clause.
            updated = {NO_CASE: tuple(session.properties["updated_columns"])}
        names = {name for case_names in (updated or {}).values() for name in case_names}
        handle, stage = self._begin(session, table_handle, "changed", names)
        return JdbcMergeTableHandle(handle, stage, updated)

    def finish_merge(
        self,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata:
        merge_handle = own(merge_handle, JdbcMergeTableHandle)
        handle, attempts = merge_handle.table_handle, read_fragments(fragments)
        if not attempts and not any(column.added for column in handle.columns):
            return ConnectorOutputMetadata()
        self._transaction.writer()
        self._transaction.check_unchanged()
        self._add_columns(handle)
        if not attempts:
            return ConnectorOutputMetadata()
        changes = self._collected(handle, merge_handle.stage, attempts)
        return replace(changes, updated=merge_handle.updated).apply()

    # -- the older flow of UPDATE and DELETE

    def _begin_updatable(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle] | None,
    ) -> JdbcUpdatableTableHandle:
        self.get_merge_row_id_column_handle(session, table_handle)
        names = None if updated_columns is None else _names(updated_columns)
        handle, stage = self._begin(session, table_handle, "changed", names or ())
        parts = {name: getattr(handle, name) for name in handle.__dataclass_fields__}
        return JdbcUpdatableTableHandle(**parts, stage=stage, updated=names)

    def _finish_updatable(
        self, table_handle: ConnectorTableHandle, fragments: Collection[bytes], step: str
    ) -> ConnectorOutputMetadata:
        handle, attempts = own(table_handle, JdbcUpdatableTableHandle), read_fragments(fragments)
        if not attempts:
            return ConnectorOutputMetadata()
        self._transaction.writer()
        self._transaction.check_unchanged()
        changes = self._collected(handle, handle.stage, attempts)
        updated = {ONLY_CASE: handle.updated or ()}
        return replace(changes, updated=updated, step=step, whole_rows=False).apply()

    def _base_table(self, table_handle: ConnectorTableHandle, what: str) -> JdbcTableHandle:
        """Return the handle of a table, or raise NOT_SUPPORTED for a view."""
        handle = table_handle_of(table_handle)
        if handle.kind != "table":
            raise ConnectorError(
                f"'{handle.name}' is a {self._store.name} {handle.kind}; it can be"
                f" read but not {what}",
                hint="Name the underlying table.",
            )
        return handle


def _names(columns: Iterable[ColumnHandle]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def _keyed(name: SchemaTableName, column: str) -> str:
    return (
        f"This replaces it by a table with one: CREATE OR REPLACE TABLE {name} WITH"
        f" ({PRIMARY_KEY} = ARRAY[{quoted_text(column)}]) AS SELECT * FROM {name}."
    )
