"""Metadata of tables, and the calls that begin and finish statements (design documents,
"ConnectorMetadata MERGE API").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi.operations import SaveMode

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from rowmerge_nb.spi.alterations import Alteration
    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorOutputTableHandle,
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
        default: a literal as SQL text; None for NULL.
        filled: the store replaces NULL in new rows, for example by a number or a default.
        insert_default: SQL of the store's own default, which an INSERT without the column stores
            and a MERGE does not.

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
    insert_default: str | None = None


@dataclass(frozen=True)
class ConnectorTableMetadata:
    """A table.

    Args:
        properties: those of ``CREATE TABLE ... WITH (...)``.
        check_constraints: SQL conditions over its columns, such as ``"quantity > 0"``. The engine
            rejects rows for which one is false; NULL passes. A store that checks its rows itself
            returns none.
    """

    name: SchemaTableName
    columns: tuple[ColumnMetadata, ...]
    properties: Mapping[str, Any] = field(default_factory=dict)
    comment: str | None = None
    check_constraints: tuple[str, ...] = ()


@dataclass(frozen=True)
class SystemTable:
    """A read-only table about the store, such as a table's versions.

    Args:
        rows: its rows, with the columns' Arrow types.
    """

    columns: tuple[ColumnMetadata, ...]
    rows: pa.Table


@dataclass(frozen=True)
class IndependentRows:
    """A table as another library reads it, see `ConnectorMetadata.read_independently`.

    Args:
        reader: the library and its version: ``"PyIceberg 0.12.0"``.
        rows: the rows, with the columns' Arrow types; None if there are too many.
    """

    reader: str
    rows: pa.Table | None


@dataclass(frozen=True)
class TableStatistics:
    """Upper bounds of a table's size, known without reading rows; in Trino these are estimates.

    They affect how the engine runs a statement, not its result.

    Args:
        data_size: the maximum stored bytes of all rows.
        file_count: the files to open for a scan; each costs about as much as reading 100 kB.

    >>> TableStatistics()
    TableStatistics(row_count=None, data_size=None, file_count=None)
    """

    row_count: int | None = None
    data_size: int | None = None
    file_count: int | None = None


@dataclass(frozen=True)
class ConnectorViewDefinition:
    """A view: a named query that each reading statement analyzes anew.

    Args:
        catalog: the default catalog for names in the query, like ``schema``.
        columns: the query's columns at the view's creation; if they differ now, the view is stale.
        run_as_invoker: SECURITY INVOKER, which has no effect.
        check_option: ``CASCADED`` or ``LOCAL`` of a view WITH CHECK OPTION.
    """

    name: SchemaTableName
    original_sql: str
    catalog: str
    schema: str
    columns: tuple[ColumnMetadata, ...]
    comment: str | None = None
    run_as_invoker: bool = False
    check_option: str | None = None


class ConnectorMetadata(ABC):
    """Tables and statements of one connector, within one transaction. It stays on the driver.

    Methods for statements raise ConnectorError NOT_SUPPORTED by default.

    A MERGE calls ``get_merge_row_id_column_handle``, ``get_row_change_paradigm``,
    ``get_insert_layout``, ``get_update_layout``, and ``begin_merge`` as the last step of planning,
    except for EXPLAIN. Then sinks work in tasks, and ``finish_merge`` precedes the commit.

    The older flow calls the row id and begin methods of DELETE or UPDATE, then updatable page
    sources in tasks, then the finish method. It has no paradigm and no layouts.
    """

    # -- tables

    @property
    def stores_comments(self) -> bool:
        """Whether tables and columns keep comments; otherwise the engine rejects statements that
        add them.
        """
        return False

    @property
    def stores_defaults(self) -> bool:
        """Whether columns keep default values; otherwise the engine rejects statements that set
        them.
        """
        return False

    @property
    def keeps_negative_zero(self) -> bool:
        """Whether -0.0 is read back as -0.0; otherwise the contract kit does not test it."""
        return True

    supports_missing_columns_on_insert: ClassVar[bool] = False
    """Whether the store fills columns that an INSERT omits; ``begin_insert`` then gets only the
    listed columns.
    """

    checks_reads: ClassVar[bool] = False
    """Whether the commit of a row change fails if others added or removed rows that satisfy the
    constraint of one of its scans.

    The engine then narrows the scan of a small target by the keys of the source, if it has these
    rows, to avoid conflicts.
    """

    @abstractmethod
    def get_table_handle(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> ConnectorTableHandle | None:
        """Return a handle for the table (lower-case name), or None if it does not exist."""

    def wait_for_turn(
        self,
        session: ConnectorSession,
        name: SchemaTableName,
        seconds: float,
        *,
        appends: bool = False,
    ) -> bool:
        """Wait up to ``seconds`` until no earlier statement changes the table, and return whether
        the turn has come.

        The engine calls it before it looks up a statement's target, which may not exist, or for an
        INSERT (``appends``) before `finish_insert`. It repeats the call for up to ten minutes. The
        turn ends with commit or rollback.

        A store that fails the later of two changes can queue them here, so that slow statements do
        not always lose. By default there is no queue. Trino has no such call.
        """
        return True

    def get_system_table(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> SystemTable | None:
        """Return a system table or None.

        Called for names with a ``$``, before ``get_table_handle``.
        """
        return None

    def read_independently(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, most: int
    ) -> IndependentRows | None:
        """Read a table's columns by a library that shares no code with the connector, for the
        option ``check``; None if there is no such library.

        Args:
            table_handle: the table, after the commit.
            most: the row limit.

        Raises:
            Exception: the library cannot read the table; the check reports that, and reads by the
                connector.
        """
        return None

    keeps_versions: ClassVar[bool] = False
    """Whether former versions of tables are kept, and the next three methods implemented.

    Trino's first one is ``getTableHandle``.
    """

    def get_versioned_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> ConnectorTableHandle | None:
        """Return a read-only handle for a version: one that `Connector.commit` returned, or one of
        a statement; None without such a table.

        Raises ConnectorError INVALID_ARGUMENTS for an unavailable version, NOT_SUPPORTED for an
        unsupported pointer type, and by default.
        """
        raise ConnectorError(
            "This connector does not support versioned tables",
            hint=(
                "Remove FOR ... AS OF: only earlier versions of tables in memory and"
                " of Iceberg can be read."
            ),
        )

    def get_table_version(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableVersion | None:
        """Return the version that a handle reads, if any.

        A store without permanent versions may return one that `get_former_table_handle` can read
        until a cleanup.
        """
        return None

    def get_former_table_handle(
        self, session: ConnectorSession, name: SchemaTableName, version: ConnectorTableVersion
    ) -> ConnectorTableHandle | None:
        """Return a handle for a version, for an audit or for questions about a statement's rows.

        The default is `get_versioned_table_handle`. A store without permanent versions may return
        states that a cleanup removes.
        """
        return self.get_versioned_table_handle(session, name, version)

    def get_version_time(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> dt.datetime | None:
        """Return the commit time, with a zone, of the handle's version, if known."""
        return None

    def restore_table(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        version: ConnectorTableVersion | None,
        dropped: Sequence[str] = (),
    ) -> None:
        """Restore a former version's rows with the commit; the columns stay.

        Args:
            table_handle: the current table; the commit raises TRANSACTION_CONFLICT if it has
                changed.
            version: the version; None for the empty state before the first one.
            dropped: columns to drop as well, if ``evolves_tables``: those that the undone statement
                added.

        Raises ConnectorError INVALID_ARGUMENTS for an unavailable version.
        """
        raise ConnectorError(
            "This connector does not support restoring earlier versions of tables",
            hint=(
                "Undo the change with another statement: only tables in memory and of"
                " Iceberg keep earlier versions."
            ),
        )

    @abstractmethod
    def get_table_metadata(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableMetadata:
        """Return the table's name, columns and properties."""

    def get_hidden_column_handles(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> tuple[ColumnHandle, ...]:
        """Return columns such as ``"$path"``, which can be read by name but are omitted from ``*``
        and DESCRIBE (Trino: ``hidden``).

        Called before the splits, only for statements with a name that begins with ``$``.
        Constraints may refer to these columns.
        """
        return ()

    def get_column_handles(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> tuple[ColumnHandle, ...]:
        """Return the column handles in table order."""
        from rowmerge_nb.spi.handles import ColumnHandle

        return tuple(
            ColumnHandle(c.name, c.type)
            for c in self.get_table_metadata(session, table_handle).columns
        )

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        """Return the names of all tables."""
        return ()

    def row_count(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> int | None:
        """Return the exact number of rows if known without reading them, else None."""
        return None

    def get_table_statistics(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> TableStatistics:
        """Return inexpensive bounds of the table's size, used if ``row_count`` is None.

        A row bound lets the engine run a small statement in one task. The byte bound reveals large
        tables of few rows.
        """
        return TableStatistics()

    def create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        save_mode: SaveMode = SaveMode.FAIL,
    ) -> None:
        """Create an empty table.

        With ``SaveMode.REPLACE``, it takes the place of a table of that name, with other columns
        and properties. The former table stays until the commit, and after a rollback. Rows of
        CREATE OR REPLACE TABLE AS follow by ``begin_insert``; its query may read the former table
        by its own handle. If others change that table meanwhile, the commit raises
        TRANSACTION_CONFLICT, unless the store keeps them out.

        Invalid properties raise AnalysisError INVALID_TABLE_PROPERTY, with their names in
        ``properties``.
        """
        self._refuse("creating tables", "create_table")

    @property
    def replaces_tables(self) -> bool:
        """Whether ``create_table`` implements ``SaveMode.REPLACE``; otherwise the engine passes
        two arguments only, and refuses CREATE OR REPLACE TABLE.
        """
        return False

    creates_filled_tables: ClassVar[bool] = False
    """Whether ``begin_create_table`` and ``finish_create_table`` are implemented.

    CREATE TABLE AS then is one change. Otherwise the engine calls ``create_table``, and inserts.
    """

    def get_new_table_layout(
        self, session: ConnectorSession, metadata: ConnectorTableMetadata
    ) -> ConnectorTableLayout | None:
        """Return the layout of the rows of CREATE TABLE AS; None lets the engine choose."""
        return None

    def begin_create_table(
        self,
        session: ConnectorSession,
        metadata: ConnectorTableMetadata,
        layout: ConnectorTableLayout | None,
        *,
        replace: bool = False,
    ) -> ConnectorOutputTableHandle:
        """Begin a CREATE TABLE AS, without effects that others see.

        ``layout`` is the one of ``get_new_table_layout``. ``replace`` is set for CREATE OR REPLACE,
        whose query may read the former table, as in `create_table`.
        """
        self._refuse("creating tables with data", "begin_create_table")

    def finish_create_table(
        self,
        session: ConnectorSession,
        output_handle: ConnectorOutputTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata | None:
        """Create the table with the rows of the fragments, possibly none, with the commit."""
        self._refuse("creating tables with data", "finish_create_table")

    keeps_sizes: ClassVar[bool] = False
    """Whether CREATE TABLE AS keeps the query's ``varchar`` lengths and timestamp precisions; else
    columns are ``varchar`` and ``timestamp(6)``.
    """

    def drop_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        """Drop a table."""
        self._refuse("dropping tables", "drop_table")

    def truncate_table(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> None:
        """Remove all rows of a table."""
        self._refuse(
            "truncating tables",
            "truncate_table",
            "DELETE FROM without WHERE removes all rows as well.",
        )

    def alter_table(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, alteration: Alteration
    ) -> None:
        """Alter a table with the commit, which raises TRANSACTION_CONFLICT if the table has changed
        since.

        Trino has one method per alteration. Raises ConnectorError NOT_SUPPORTED for unsupported
        alterations.
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
        """Check the call of a table procedure, and return a handle for the next calls, without
        effects.

        ``arguments`` has the value of every argument. Files or partitions that match ``constraint``
        partially may be rewritten as a whole.

        Raises ConnectorError NOT_SUPPORTED for a constraint that does not select whole files;
        INVALID_PROCEDURE_ARGUMENT for invalid values.
        """
        self._refuse("table procedures", "get_table_handle_for_execute")

    def execute_table_execute(
        self, session: ConnectorSession, execute_handle: ConnectorTableExecuteHandle
    ) -> ProcedureOutcome | None:
        """Run a procedure that rewrites no rows; its effect is visible with the commit.

        Returns:
            The outcome (Trino's metrics), complete once the commit has returned.
        """
        self._refuse("table procedures", "execute_table_execute")

    def begin_table_execute(
        self, session: ConnectorSession, execute_handle: ConnectorTableExecuteHandle
    ) -> TableExecution | None:
        """Begin a procedure that rewrites rows, and return its input and output; None without work."""
        self._refuse("table procedures", "begin_table_execute")

    def finish_table_execute(
        self,
        session: ConnectorSession,
        execute_handle: ConnectorTableExecuteHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata | None:
        """Replace the read rows by the written ones; the commit raises TRANSACTION_CONFLICT if
        others removed some.
        """
        self._refuse("table procedures", "finish_table_execute")

    alters_fields: ClassVar[bool] = False
    """Whether ``alter_table`` supports `AddField`, `DropField`, `RenameField` and `SetFieldType`.
    """

    keeps_branches: ClassVar[bool] = False
    """Whether tables have branches.

    ``get_versioned_table_handle`` then takes ``PointerType.BRANCH``: its handle can be changed, and
    the commit moves that branch alone; a missing branch is BRANCH_NOT_FOUND. ``alter_table``
    supports `CreateBranch`, `DropBranch` and `FastForwardBranch`, and ``list_branches`` is
    implemented.
    """

    def list_branches(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> Sequence[str]:
        """Return the names of a table's branches, in order, for ``SHOW BRANCHES``."""
        self._refuse("listing branches", "list_branches")

    evolves_tables: ClassVar[bool] = False
    """Whether ``get_evolved_table_handle`` is implemented, so that a MERGE can add columns."""

    evolves_types: ClassVar[bool] = False
    """Whether ``get_evolved_table_handle`` takes new types of existing columns."""

    def get_evolved_table_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnMetadata],
    ) -> ConnectorTableHandle:
        """Return a handle for the table with additional last columns, for
        ``MERGE WITH SCHEMA EVOLUTION``.

        This call, which EXPLAIN makes too, changes nothing. Reads through the handle return NULL
        for the new columns, which may hold NULL; ``get_table_metadata`` may show a wider type. A
        merge begun with the handle adds the columns in its own commit, even if no row changes. The
        commit raises TRANSACTION_CONFLICT if the table's columns were altered meanwhile.

        If ``evolves_types``, a column that the table has may be among the columns, with further
        fields of its rows or a wider number (bigint, double, more digits of a decimal). Old rows
        have NULL in new fields. A column that the store cannot change keeps its type.

        Raises ConnectorError NOT_SUPPORTED for an unsupported name or type.
        """
        self._refuse("adding columns in a MERGE", "get_evolved_table_handle")

    shows_own_changes: ClassVar[bool] = False
    """Whether a table handle obtained between ``finish_merge`` and the commit reads this
    transaction's changes.
    """

    # -- schemas

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        """Return whether the schema (lower-case name) exists; always by default."""
        return True

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        """Return the sorted names of all schemas."""
        return sorted(
            {name.schema for name in (*self.list_tables(session), *self.list_views(session))}
        )

    def create_schema(self, session: ConnectorSession, schema: str) -> None:
        """Create an empty schema."""
        self._refuse("creating schemas", "create_schema", "SHOW SCHEMAS lists the schemas.")

    def drop_schema(self, session: ConnectorSession, schema: str) -> None:
        """Drop an empty schema; raises SCHEMA_NOT_EMPTY otherwise."""
        self._refuse("dropping schemas", "drop_schema")

    cascades_schemas: ClassVar[bool] = False
    """Whether one transaction can drop a schema with all its tables and views atomically."""

    # -- views

    stores_views: ClassVar[bool] = False
    """Whether the methods for views are implemented.

    Otherwise the engine keeps the catalog's views.
    """

    def get_view(
        self, session: ConnectorSession, name: SchemaTableName
    ) -> ConnectorViewDefinition | None:
        """Return the view of that name, or None."""
        return None

    def list_views(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        """Return the names of all views."""
        return ()

    def create_view(self, session: ConnectorSession, view: ConnectorViewDefinition) -> None:
        """Create or replace a view."""
        self._refuse("creating views", "create_view")

    def drop_view(self, session: ConnectorSession, name: SchemaTableName) -> None:
        """Drop a view."""
        self._refuse("dropping views", "drop_view")

    # -- INSERT

    def begin_insert(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorInsertTableHandle:
        """Begin an INSERT.

        ``columns`` are all columns, or under `supports_missing_columns_on_insert` the listed ones.
        Pages always have all table columns, with NULL in the others.
        """
        self._refuse("inserts", "begin_insert")

    def finish_insert(
        self,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata | None:
        """Add the rows of the fragments with the commit."""
        self._refuse("inserts", "finish_insert")

    # -- MERGE

    def get_row_change_paradigm(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> RowChangeParadigm:
        """Return how this connector represents a changed row."""
        self._refuse("modifying table rows", "get_row_change_paradigm")

    def get_merge_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ColumnHandle:
        """Return the column that identifies a row, with any values that the connector needs to
        change it.
        """
        self._refuse("modifying table rows", "get_merge_row_id_column_handle")

    def get_insert_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        """Return the layout of inserted rows; None lets the engine choose."""
        return None

    def get_update_layout(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableLayout | None:
        """Return the layout of deleted and updated rows, by the row id.

        With None the engine uses the insert layout (documents), or distributes rows evenly (current
        era).
        """
        return None

    def begin_merge(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Mapping[int, Sequence[ColumnHandle]] | None = None,
    ) -> ConnectorMergeTableHandle:
        """Begin a MERGE; the handle holds what tasks need.

        ``updated_columns`` are the columns that UPDATE assigns, per case number; None in the era of
        the documents.
        """
        self._refuse("modifying table rows", "begin_merge")

    def finish_merge(
        self,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata | None:
        """Apply all fragments, possibly none, as one atomic change that is visible with the commit."""
        self._refuse("modifying table rows", "finish_merge")

    # -- DELETE by the connector itself

    def apply_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle, constraint: Constraint
    ) -> ConnectorTableHandle | None:
        """Return a handle for ``execute_delete``, or None if the connector cannot delete exactly
        the rows of the constraint.

        Called for the option ``delete_pushdown``, without effects. Here the constraint is the whole
        condition. In Trino, ``applyFilter`` leaves no filter, and ``applyDelete`` follows.
        """
        return None

    def execute_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> int | None:
        """Delete the rows with the commit, and return their number, or None if it is unknown."""
        self._refuse("deleting rows itself", "execute_delete")

    # -- the older flow of DELETE and UPDATE

    def get_delete_row_id_column_handle(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ColumnHandle:
        """Return the column that identifies rows to delete."""
        self._refuse("the older flow of DELETE", "get_delete_row_id_column_handle")

    def begin_delete(
        self, session: ConnectorSession, table_handle: ConnectorTableHandle
    ) -> ConnectorTableHandle:
        """Begin a DELETE, as the last step of planning.

        For the returned handle, the page source provider returns an `UpdatablePageSource`.
        """
        self._refuse("the older flow of DELETE", "begin_delete")

    def finish_delete(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata | None:
        """Apply the fragments of all splits; see ``finish_merge``."""
        self._refuse("the older flow of DELETE", "finish_delete")

    def get_update_row_id_column_handle(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ColumnHandle:
        """Return the column that identifies rows to update; ``updated_columns`` are in table order."""
        self._refuse("the older flow of UPDATE", "get_update_row_id_column_handle")

    def begin_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        updated_columns: Sequence[ColumnHandle],
    ) -> ConnectorTableHandle:
        """Begin an UPDATE, as the last step of planning; see ``begin_delete``."""
        self._refuse("the older flow of UPDATE", "begin_update")

    def finish_update(
        self,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        fragments: Collection[bytes],
    ) -> ConnectorOutputMetadata | None:
        """Apply the fragments of all splits; see ``finish_merge``."""
        self._refuse("the older flow of UPDATE", "finish_update")

    def _refuse(self, what: str, method: str, hint: str | None = None) -> NoReturn:
        raise ConnectorError(
            f"This connector does not support {what} ({type(self).__name__} has no {method})",
            hint=hint,
        )
