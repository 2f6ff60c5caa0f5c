"""What a connector tells about its tables, and how a statement begins and finishes (design documents, "ConnectorMetadata MERGE API")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from rowmerge_nb.spi.alterations import Alteration
    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorSession,
        ConnectorTableExecuteHandle,
        ConnectorTableHandle,
        ConnectorTableVersion,
        SchemaTableName,
    )
    from rowmerge_nb.spi.layout import ConnectorTableLayout
    from rowmerge_nb.spi.operations import RowChangeParadigm
    from rowmerge_nb.spi.output import ConnectorOutputMetadata
    from rowmerge_nb.spi.page_source import Constraint
    from rowmerge_nb.spi.procedures import ProcedureOutcome, TableExecution
    from rowmerge_nb.spi.types import Type


@dataclass(frozen=True)
class ColumnMetadata:
    """A column of a table.

    Args:
        name: its name as written.
        type: its type.
        nullable: whether it may hold NULL.
        default: what an INSERT that leaves the column out puts into it, as SQL text: a literal; None for NULL.
        comment: the comment on it.
        filled: the store puts a value of its own where a new row has NULL, such as a number, or the default of a column that may not be NULL.

    >>> from rowmerge_nb.spi.types import VARCHAR
    >>> ColumnMetadata("customer", VARCHAR).nullable
    True
    """

    name: str
    type: Type
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    filled: bool = False


@dataclass(frozen=True)
class ConnectorTableMetadata:
    """A table.

    Args:
        name: its schema and name.
        columns: its columns in table order.
        properties: those of ``CREATE TABLE ... WITH (...)``.
        comment: the comment on it.
        check_constraints: conditions over its columns as SQL text, such as ``"quantity > 0"``. The engine stores no row for which one is
            false, by whatever statement; a row for which one is unknown (NULL) passes. A store that checks its rows itself names none.
    """

    name: SchemaTableName
    columns: tuple[ColumnMetadata, ...]
    properties: Mapping[str, Any] = field(default_factory=dict)
    comment: str | None = None
    check_constraints: tuple[str, ...] = ()


@dataclass(frozen=True)
class SystemTable:
    """A table that a connector makes of what it knows, such as the versions of another table; it can be read, and not be changed.

    Args:
        columns: its columns.
        rows: its rows, whose columns have the Arrow types of those.
    """

    columns: tuple[ColumnMetadata, ...]
    rows: pa.Table


@dataclass(frozen=True)
class TableStatistics:
    """What a connector knows of a table's rows without reading them. By it the engine chooses how to execute a statement, not what it does.

    In Trino these are estimates; here they are bounds.

    Args:
        row_count: the table has at most so many rows; None if that is not known.
        data_size: the bytes of all its rows as they are stored; None if that is not known.

    >>> TableStatistics()
    TableStatistics(row_count=None, data_size=None)
    """

    row_count: int | None = None
    data_size: int | None = None


@dataclass(frozen=True)
class ConnectorViewDefinition:
    """A view: a query under a name, analyzed anew by every statement that reads it.

    Args:
        name: the view's schema and name.
        original_sql: the query as written.
        catalog: the default catalog that completed names when the view was made; it completes them ever after.
        schema: the default schema likewise.
        columns: what the query gave when the view was made; a query that gives something else by now makes the view stale.
        comment: the comment on it.
        run_as_invoker: SECURITY INVOKER was written; nobody logs in, so that it is shown and means nothing.
    """

    name: SchemaTableName
    original_sql: str
    catalog: str
    schema: str
    columns: tuple[ColumnMetadata, ...]
    comment: str | None = None
    run_as_invoker: bool = False


class ConnectorMetadata(ABC):
    """Tables and statements of one connector, within one transaction. Lives on the driver and never leaves it.

    The order of calls for a MERGE is: ``get_merge_row_id_column_handle``, ``get_row_change_paradigm``, ``get_insert_layout``,
    ``get_update_layout``, and ``begin_merge`` as the last step of planning; then sinks work in tasks; then ``finish_merge``,
    after which the engine commits the transaction. Explaining a statement never calls ``begin_merge``.

    In the older flow of DELETE and UPDATE it is ``get_delete_row_id_column_handle`` and ``begin_delete``, or
    ``get_update_row_id_column_handle`` and ``begin_update``; then updatable page sources work in tasks; then ``finish_delete`` or
    ``finish_update``. Nobody asks for paradigm or layouts: rows stay where they were read.
    """

    # -- tables ---------------------------------------------------------------------------------------------------

    @property
    def stores_comments(self) -> bool:
        """Whether tables and columns keep comments; where they do not, the engine refuses statements that make some."""
        return False

    @property
    def stores_defaults(self) -> bool:
        """Whether columns keep default values; where they do not, the engine refuses statements that make some."""
        return False

    @property
    def keeps_negative_zero(self) -> bool:
        """Whether -0.0 is read as -0.0. A store that reads 0.0, which SQL calls equal, says so; the contract kit then leaves -0.0 out."""
        return True

    supports_missing_columns_on_insert: ClassVar[bool] = False
    """Whether the store itself fills the columns that an INSERT leaves out: then ``begin_insert`` is told those that it names."""

    checks_reads: ClassVar[bool] = False
    """Whether the commit of a row change fails if others added or removed rows that the constraint of one of its scans admits.

    The engine then narrows the scan of a small target by the keys of a source whose rows it has at hand: fewer commits are in the way.
    """

    @abstractmethod
    def get_table_handle(self, session: ConnectorSession, name: SchemaTableName) -> ConnectorTableHandle | None:
        """Return a handle for the table, or None if there is none of that name (lower case)."""

    def wait_for_turn(self, session: ConnectorSession, name: SchemaTableName, seconds: float, *, appends: bool = False) -> bool:
        """Wait at most some seconds until no statement before this one changes a table; return whether the turn has come.

        The engine calls it before it looks up the target of MERGE, UPDATE, DELETE, TRUNCATE, ALTER TABLE, COMMENT or `restore`. For an INSERT it calls
        it before `finish_insert`. It repeats the call until the turn has come or ten minutes have passed. The turn ends with commit or rollback.

        A store that fails the later one of two changes queues them here, so that a slow statement does not lose every time against a fast one.
        Correctness does not depend on it. By default there is no queue. Trino has no such call.

        Args:
            session: the session.
            name: the table, which may be missing.
            seconds: how long to wait.
            appends: the statement is an INSERT.
        """
        return True

    def get_system_table(self, session: ConnectorSession, name: SchemaTableName) -> SystemTable | None:
        """Return a table that the connector makes of what it knows; it is asked for names with a ``$``, before the last method. None by default."""
        return None

    keeps_versions: ClassVar[bool] = False
    """Whether former versions of tables are kept: then the next three methods are there. In Trino the first is ``getTableHandle`` too."""

    def get_versioned_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> ConnectorTableHandle | None:
        """Return a handle for the table as it was in a version: one that `Connector.commit` gave, or one that a statement points at.

        None if there is no table of that name. What it gives is read only, in one transaction beside other versions of the same table.
        Raises ConnectorError INVALID_ARGUMENTS for a version that is not kept, NOT_SUPPORTED for a type of pointer that means nothing here,
        and for every one by default.
        """
        raise ConnectorError(
            "This connector does not support versioned tables",
            hint="Leave FOR ... AS OF out: only tables in memory and of Iceberg can be read as they were.",
        )

    def get_table_version(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableVersion | None:
        """Return the version that a handle reads; None (the default) where none is kept, as of a table that has never had rows.

        A store that keeps no versions may give one that `get_former_table_handle` finds as long as nobody has cleaned up.
        """
        return None

    def get_former_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> ConnectorTableHandle | None:
        """Return a handle for the table as it was, for an audit or a question about a statement's rows: what is read need not be there for long.

        By default what `get_versioned_table_handle` gives. A store that keeps no versions, and yet finds a former state as long as nobody has
        cleaned up, gives that here.
        """
        return self.get_versioned_table_handle(session, name, version)

    def get_version_time(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> dt.datetime | None:
        """Return the moment at which the version that a handle reads was committed, with a zone; None (the default) where that is not known."""
        return None

    def restore_table(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        version: ConnectorTableVersion | None,
        dropped: Sequence[str] = (),
    ) -> None:
        """Make a table's rows those of a former version with the commit; its columns stay what they are.

        Args:
            session: the statement's session.
            table_handle: the table as it is now; the commit refuses with TRANSACTION_CONFLICT if it is not any more.
            version: the version, or None for the time before the first one, when there were no rows.
            dropped: columns that go with the rows, since the statement that is taken back has added them; the engine names some only where
                ``evolves_tables`` says that there can be such a statement.

        Raises ConnectorError INVALID_ARGUMENTS for a version that is not kept, NOT_SUPPORTED by default.
        """
        raise ConnectorError(
            "This connector does not support restoring former versions of tables",
            hint="Take the change back by a statement of its own: only tables in memory and of Iceberg keep their former versions.",
        )

    @abstractmethod
    def get_table_metadata(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableMetadata:
        """Return the table's name, columns and properties."""

    def get_hidden_column_handles(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> tuple[ColumnHandle, ...]:
        """Return columns that can be read by their names and that ``*`` and DESCRIBE leave out, such as ``"$path"``; by default there are none.

        In Trino they are the table's columns that are ``hidden``. It is asked for statements alone in which a name begins with ``$``,
        before their splits; a constraint may be about them, too.
        """
        return ()

    def get_column_handles(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> tuple[ColumnHandle, ...]:
        """Return the handles of the table's columns in table order; by default made from the metadata."""
        from rowmerge_nb.spi.handles import ColumnHandle

        return tuple(ColumnHandle(c.name, c.type) for c in self.get_table_metadata(session, table_handle).columns)

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        """Return the names of all tables; by default none are listed."""
        return ()

    def row_count(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> int | None:
        """Return the exact number of rows if it is known without reading them, else None."""
        return None

    def get_table_statistics(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> TableStatistics:
        """Return what is known of a table's size at little cost; asked for when the size decides something that ``row_count`` leaves open.

        Nothing by default. A bound of the rows lets the engine execute a small statement in one task. By the bytes it sees that a table of
        few rows is large.
        """
        return TableStatistics()

    def create_table(self, session: ConnectorSession, metadata: ConnectorTableMetadata) -> None:
        """Make an empty table. Raises ConnectorError NOT_SUPPORTED by default.

        Of properties that cannot be it raises AnalysisError INVALID_TABLE_PROPERTY, whose ``properties`` names them.
        """
        self._refuse("creating tables", "create_table")

    replaces_tables: ClassVar[bool] = False
    """Whether CREATE OR REPLACE TABLE can take the place of a table: then the next method is there."""

    def replace_table(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, metadata: ConnectorTableMetadata
    ) -> None:
        """Make a table anew in place of one that is there: with other columns and properties, and empty.

        In Trino it is ``createTable`` too. Rows of CREATE OR REPLACE TABLE AS come by ``begin_insert`` with the handle that the new table has from
        then on; the query may read the table, which is the former one by its own handle. All of it is visible with the commit, which refuses with
        TRANSACTION_CONFLICT if the table has changed since. Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("replacing tables", "replace_table", "Write DROP TABLE IF EXISTS before it.")

    keeps_sizes: ClassVar[bool] = False
    """Whether CREATE TABLE AS keeps the lengths of ``varchar`` and the precisions of moments that its query has; else columns are ``varchar`` and ``timestamp(6)``."""

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        """Remove a table. Raises ConnectorError NOT_SUPPORTED by default."""
        self._refuse("dropping tables", "drop_table")

    def truncate_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        """Remove all rows of a table. Raises ConnectorError NOT_SUPPORTED by default."""
        self._refuse("truncating tables", "truncate_table", "DELETE FROM without WHERE removes all rows as well.")

    def alter_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle, alteration: Alteration) -> None:
        """Alter a table; the change is visible with the commit, which refuses with TRANSACTION_CONFLICT if the table has changed since.

        In Trino these are ``addColumn``, ``dropColumn``, ``renameColumn``, ``setColumnType``, ``dropNotNullConstraint`` and ``renameTable``.
        Raises ConnectorError NOT_SUPPORTED by default, and for what this store cannot do.
        """
        self._refuse("altering tables", "alter_table")

    def get_table_handle_for_execute(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        procedure: str,
        arguments: Mapping[str, Any],
        constraint: Constraint,
    ) -> ConnectorTableExecuteHandle:
        """Check what ``ALTER TABLE ... EXECUTE`` asks for, and give what the next calls get; nothing is done yet.

        Args:
            session: the session.
            table_handle: the table.
            procedure: the name of one of the connector's ``get_table_procedures``.
            arguments: the value of every argument.
            constraint: what WHERE says of columns; a file or partition that it is true for in part only may be rewritten as a whole.

        Raises ConnectorError NOT_SUPPORTED by default, and for a constraint that does not go along files; INVALID_PROCEDURE_ARGUMENT is
        the code of values that make no sense.
        """
        self._refuse("table procedures", "get_table_handle_for_execute")

    def execute_table_execute(
        self, session: ConnectorSession, execute_handle: ConnectorTableExecuteHandle
    ) -> ProcedureOutcome | None:
        """Run a procedure that rewrites no rows; its effect is visible with the commit.

        Returns:
            What it has done, once the commit has returned; None if there is nothing to say. In Trino these are metrics.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("table procedures", "execute_table_execute")

    def begin_table_execute(
        self, session: ConnectorSession, execute_handle: ConnectorTableExecuteHandle
    ) -> TableExecution | None:
        """Begin a procedure that rewrites rows: say what is read and where it goes; None where there is nothing to be done.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("table procedures", "begin_table_execute")

    def finish_table_execute(
        self, session: ConnectorSession, execute_handle: ConnectorTableExecuteHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata | None:
        """Put what was written in the place of what was read; a commit that took or deleted some of that meanwhile is a TRANSACTION_CONFLICT.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("table procedures", "finish_table_execute")

    alters_fields: ClassVar[bool] = False
    """Whether ``alter_table`` takes the alterations of fields of rows: `AddField`, `DropField`, `RenameField` and `SetFieldType`."""

    evolves_tables: ClassVar[bool] = False
    """Whether a MERGE can add columns to a table along with its changes: then the next method is there."""

    def get_evolved_table_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, columns: Sequence[ColumnMetadata]
    ) -> ConnectorTableHandle:
        """Return a handle for a table with new columns behind its own: those that ``MERGE WITH SCHEMA EVOLUTION`` adds.

        Nothing is changed by this call, which EXPLAIN makes too. A table that is read by the handle has NULL in the new columns.
        ``get_table_metadata`` tells of it how the store will have them; a type may become one that holds all values of the type that is
        asked for. What ``begin_merge`` begins with the handle adds the columns by the commit that makes its changes last, and by no other:
        who reads sees both or neither. The columns come even if no row is changed, and the commit refuses with TRANSACTION_CONFLICT if the
        table's columns were altered meanwhile.

        Args:
            session: the statement's session.
            table_handle: the table as it is.
            columns: the new columns, in order; each may hold NULL.

        Raises ConnectorError NOT_SUPPORTED by default, and for a name or type that the store cannot have.
        """
        self._refuse("adding columns in a MERGE", "get_evolved_table_handle")

    shows_own_changes: ClassVar[bool] = False
    """Whether a table handle asked for after ``finish_merge`` shows this transaction what it has changed, before the commit."""

    # -- schemas --------------------------------------------------------------------------------------------------

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        """Return whether there is a schema of this name (lower case); by default any name will do."""
        return True

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        """Return the names of all schemas, sorted; by default those that tables and views are listed in."""
        return sorted({name.schema for name in (*self.list_tables(session), *self.list_views(session))})

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        """Make an empty schema. Raises ConnectorError NOT_SUPPORTED by default."""
        self._refuse("creating schemas", "create_schema", "SHOW SCHEMAS lists those that there are.")

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        """Remove an empty schema; SCHEMA_NOT_EMPTY if it is not. Raises ConnectorError NOT_SUPPORTED by default."""
        self._refuse("dropping schemas", "drop_schema")

    cascades_schemas: ClassVar[bool] = False
    """Whether one transaction may drop all tables and views of a schema, and the schema: all of it is gone with the commit, or nothing."""

    # -- views ----------------------------------------------------------------------------------------------------

    stores_views: ClassVar[bool] = False
    """Whether this connector has the methods for views. The engine itself keeps the views of a catalog that has not."""

    def get_view(self, session: ConnectorSession, name: SchemaTableName) -> ConnectorViewDefinition | None:
        """Return the view of that name, or None if there is none."""
        return None

    def list_views(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        """Return the names of all views; by default there are none."""
        return ()

    def create_view(self, session: ConnectorSession, view: ConnectorViewDefinition) -> None:
        """Store a view, in place of one of the same name if there is one. Raises ConnectorError NOT_SUPPORTED by default."""
        self._refuse("creating views", "create_view")

    def drop_view(self, session: ConnectorSession, name: SchemaTableName) -> None:
        """Remove a view. Raises ConnectorError NOT_SUPPORTED by default."""
        self._refuse("dropping views", "drop_view")

    # -- INSERT ---------------------------------------------------------------------------------------------------

    def begin_insert(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, columns: Sequence[ColumnHandle]
    ) -> ConnectorInsertTableHandle:
        """Begin an INSERT. Raises ConnectorError NOT_SUPPORTED by default.

        Args:
            session: the statement's session.
            table_handle: the table.
            columns: all of its columns; where `supports_missing_columns_on_insert`, those that the statement fills. Pages carry all
                table columns either way, NULL in those that it leaves out.
        """
        self._refuse("inserts", "begin_insert")

    def finish_insert(
        self, session: ConnectorSession, insert_handle: ConnectorInsertTableHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata | None:
        """Take the rows that the fragments name; readers see them with the commit. Raises ConnectorError NOT_SUPPORTED by default.

        It may tell what was written, as the other three calls that finish a statement may.
        """
        self._refuse("inserts", "finish_insert")

    # -- MERGE ----------------------------------------------------------------------------------------------------

    def get_row_change_paradigm(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> RowChangeParadigm:
        """Return how this connector represents a changed row. Raises ConnectorError NOT_SUPPORTED by default."""
        self._refuse("modifying table rows", "get_row_change_paradigm")

    def get_merge_row_id_column_handle(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ColumnHandle:
        """Return the column that identifies a row, with whatever else of the row the connector needs to change it.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("modifying table rows", "get_merge_row_id_column_handle")

    def get_insert_layout(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableLayout | None:
        """Return the layout of inserted rows; None leaves their place to the engine."""
        return None

    def get_update_layout(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableLayout | None:
        """Return the layout of deleted and updated rows, whose only argument is the row id.

        None makes the engine use the insert layout (documents) or spread the rows evenly (current era).
        """
        return None

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> ConnectorMergeTableHandle:
        """Begin a MERGE; what a task needs to know goes into the handle. Raises ConnectorError NOT_SUPPORTED by default.

        Args:
            session: the statement's session.
            table_handle: the target.
            updated_columns: per case number the columns that its UPDATE assigns; only in the current era, else None.
        """
        self._refuse("modifying table rows", "begin_merge")

    def finish_merge(
        self, session: ConnectorSession, merge_handle: ConnectorMergeTableHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata | None:
        """Make one change of what the fragments name, which readers see with the commit, all of it or nothing; called also with no fragments.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("modifying table rows", "finish_merge")

    # -- the older flow of DELETE and UPDATE ----------------------------------------------------------------------

    def get_delete_row_id_column_handle(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ColumnHandle:
        """Return the column that identifies the rows to delete, with whatever else of them the connector needs.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("the older flow of DELETE", "get_delete_row_id_column_handle")

    def begin_delete(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableHandle:
        """Begin a DELETE, as the last step of planning.

        The handle that it gives is passed to the split manager, the page source provider and ``finish_delete``; it tells
        the provider to return an `UpdatablePageSource`. Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("the older flow of DELETE", "begin_delete")

    def finish_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata | None:
        """Make one change of the deletes, which readers see with the commit, all of them or nothing; called with the fragments of all splits, also with none.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("the older flow of DELETE", "finish_delete")

    def get_update_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, updated_columns: Sequence[ColumnHandle]
    ) -> ColumnHandle:
        """Return the column that identifies the rows to update, with whatever else of them the connector needs.

        Args:
            session: the statement's session.
            table_handle: the table.
            updated_columns: the columns that the UPDATE assigns, in table column order.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("the older flow of UPDATE", "get_update_row_id_column_handle")

    def begin_update(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, updated_columns: Sequence[ColumnHandle]
    ) -> ConnectorTableHandle:
        """Begin an UPDATE, as the last step of planning; the handle is used as that of ``begin_delete``.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("the older flow of UPDATE", "begin_update")

    def finish_update(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, fragments: Collection[bytes]
    ) -> ConnectorOutputMetadata | None:
        """Make one change of the updates, which readers see with the commit, all of them or nothing; called with the fragments of all splits, also with none.

        Raises ConnectorError NOT_SUPPORTED by default.
        """
        self._refuse("the older flow of UPDATE", "finish_update")

    def _refuse(self, what: str, method: str, hint: str | None = None) -> NoReturn:
        raise ConnectorError(f"This connector does not support {what} ({type(self).__name__} has no {method})", hint=hint)
