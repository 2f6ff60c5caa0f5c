"""The embedded metastore: a SQLite file beside the warehouse, for all processes of one machine.

Every call opens the file, runs one SQLite transaction, and closes it. Committed transactions leave
no record.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote as percent

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.connectors.hive_acid.layout_names import BUCKET_LIMIT, escape, highest_visibility
from rowmerge_nb.connectors.hive_acid.metastore.metastore import (
    COMPACTION_PATIENCE_SECONDS,
    HiveTable,
    Metastore,
    MetastoreChanges,
    OpenTransaction,
    Snapshot,
    compaction_conflict,
    is_abandoned,
    schema_not_empty,
    schema_not_found,
    table_exists,
)
from rowmerge_nb.connectors.hive_acid.visible_deltas import (
    ValidTransactions,
    ValidWriteIds,
    folder_errors,
)
from rowmerge_nb.connectors.shared.folders import folder_name
from rowmerge_nb.connectors.shared.orphans import this_process
from rowmerge_nb.connectors.shared.sqlite_errors import is_full, is_read_only
from rowmerge_nb.spi import ColumnMetadata, SchemaTableName, parse_type

_FORMAT: Final = 1
_PATIENCE_SECONDS: Final = 60
_ELSEWHERE: Final = "elsewhere"
_AGAIN: Final = "Run the statement again."
_RESCUE: Final = (
    "Restore an intact copy of the file, or rescue its readable parts with .recover"
    " of the sqlite3 shell."
)

_TABLES: Final = """
CREATE TABLE databases (name TEXT PRIMARY KEY);
CREATE TABLE tables (id TEXT PRIMARY KEY, schema_name TEXT NOT NULL, name TEXT NOT NULL, location TEXT NOT NULL,
    managed INTEGER NOT NULL, transactional INTEGER NOT NULL, bucket_count INTEGER, bucketing_version INTEGER NOT NULL,
    UNIQUE (schema_name, name));
CREATE TABLE columns (table_id TEXT, position INTEGER, name TEXT NOT NULL, type TEXT NOT NULL, nullable INTEGER NOT NULL,
    partition_position INTEGER, bucket_position INTEGER, PRIMARY KEY (table_id, position));
CREATE TABLE partitions (table_id TEXT, name TEXT, PRIMARY KEY (table_id, name));
CREATE TABLE transactions (number INTEGER PRIMARY KEY AUTOINCREMENT, state TEXT NOT NULL, user TEXT, query_id TEXT, process TEXT,
    began REAL);
CREATE TABLE write_id_counters (table_id TEXT PRIMARY KEY, high_watermark INTEGER NOT NULL);
CREATE TABLE hidden_write_ids (table_id TEXT, write_id INTEGER, number INTEGER NOT NULL, PRIMARY KEY (table_id, write_id));
CREATE TABLE last_updates (table_id TEXT, partition TEXT, sequence INTEGER NOT NULL, PRIMARY KEY (table_id, partition));
CREATE TABLE commits (sequence INTEGER NOT NULL);
INSERT INTO commits VALUES (0);
INSERT INTO databases VALUES ('default');
"""
_COMMENTS: Final = """
CREATE TABLE IF NOT EXISTS comments (table_id TEXT, position INTEGER, text TEXT NOT NULL, PRIMARY KEY (table_id, position))
"""
"""Created when missing: files of older versions lack it, and those versions ignore it."""
_COMPACTIONS: Final = """
CREATE TABLE compactions (number INTEGER PRIMARY KEY, table_id TEXT NOT NULL)
"""
"""Open and aborted compactions; committed ones are removed."""
_PAUSE_SECONDS: Final = 0.02
_OF_TABLE: Final = -1
"""The position of the table's own comment among those of its columns."""
_OF_TABLES: Final = (
    "columns",
    "comments",
    "partitions",
    "hidden_write_ids",
    "write_id_counters",
    "last_updates",
    "compactions",
)
"""Tables with rows per Hive table, removed when it is dropped."""


class EmbeddedMetastore(Metastore):
    """A metastore in a file, created if missing. The tables are in ``warehouse`` beside it.

    Raises:
        ConnectorError: HIVE_METASTORE_ERROR if a warehouse has tables without a file, or the file
            is invalid; or an error of the disk.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        with folder_errors(file.parent):
            if not file.exists():
                self._require_no_tables()
        with self._writing(create=True) as connection:
            version = _first(connection, "PRAGMA user_version")[0]
            if version == 0:
                self._require_no_tables()
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            elif version != _FORMAT:
                raise ConnectorError(
                    f"The metastore '{file}' has format {version}, but this version"
                    f" supports format {_FORMAT}",
                    code="HIVE_METASTORE_ERROR",
                    hint="Use the version of rowmerge_nb that wrote it, or another directory.",
                )
            connection.execute(_COMMENTS)
            _add_compactions(connection)

    def _require_no_tables(self) -> None:
        warehouse = self._warehouse
        table_folder = next(_table_folders(warehouse), None) if warehouse.is_dir() else None
        if table_folder is not None:
            raise ConnectorError(
                f"The metastore '{self.file}' is missing, but there are tables in"
                f" '{warehouse}', such as '{table_folder.name}'",
                code="HIVE_METASTORE_ERROR",
                hint=(
                    "Restore the file. If it is lost, create a connector for a new"
                    " directory, and register each table's folder there:"
                    " HiveAcidConnector('new/').register_table(schema, name, folder,"
                    " columns=...)."
                ),
            )

    @property
    def _warehouse(self) -> Path:
        return self.file.parent / "warehouse"

    def schema_location(self, schema: str) -> Path:
        return _schema_folder(self._warehouse, schema)

    # -- reading

    def list_schemas(self) -> Sequence[str]:
        with self._reading() as connection:
            return [
                name for (name,) in connection.execute("SELECT name FROM databases ORDER BY name")
            ]

    def list_tables(self) -> Sequence[SchemaTableName]:
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT schema_name, name FROM tables ORDER BY schema_name, name"
            )
            return [SchemaTableName(schema, name) for schema, name in rows]

    def get_table(self, name: SchemaTableName) -> HiveTable | None:
        with self._reading() as connection:
            table_row = _first(
                connection,
                "SELECT id, location, managed, transactional, bucket_count, bucketing_version FROM"
                " tables WHERE schema_name = ? AND name = ?",
                name.schema,
                name.table,
            )
            if table_row is None:
                return None
            rows = connection.execute(
                "SELECT name, type, nullable, partition_position, bucket_position FROM columns"
                " WHERE table_id = ? ORDER BY position",
                (table_row[0],),
            ).fetchall()
            comments = dict(
                connection.execute(
                    "SELECT position, text FROM comments WHERE table_id = ?", (table_row[0],)
                )
            )
        try:
            return _require_sound(_table(name, self._warehouse, table_row, rows, comments))
        except (TypeError, ValueError, AttributeError, RecursionError, AnalysisError) as error:
            raise self._damaged(error) from error

    def snapshot(self, table: HiveTable, reader: Callable[[], int] | None = None) -> Snapshot:
        with self._reading() as connection:
            # Several queries need a transaction to read one snapshot.
            connection.execute("BEGIN")
            (sequence,) = _first(connection, "SELECT sequence FROM commits")
            high = _first(
                connection,
                "SELECT high_watermark FROM write_id_counters WHERE table_id = ?",
                table.id,
            )
            hidden_rows = connection.execute(
                "SELECT h.write_id, t.state FROM hidden_write_ids h JOIN transactions t USING"
                " (number) WHERE h.table_id = ?",
                (table.id,),
            ).fetchall()
            names = connection.execute(
                "SELECT name FROM partitions WHERE table_id = ? ORDER BY name", (table.id,)
            ).fetchall()
            newest = _first(
                connection, "SELECT seq FROM sqlite_sequence WHERE name = 'transactions'"
            )
            compactions = connection.execute(
                "SELECT number FROM compactions WHERE table_id = ?", (table.id,)
            ).fetchall()
        try:
            _require_numbers(
                [
                    sequence,
                    *(high or ()),
                    *(newest or ()),
                    *(row[0] for row in (*hidden_rows, *compactions)),
                ]
            )
            _require_partitions([name for (name,) in names], table)
        except (TypeError, ValueError) as error:
            raise self._damaged(error) from error
        by_state = {
            state: frozenset(number for number, of in hidden_rows if of == state)
            for state in ("open", "aborted")
        }
        transactions = ValidTransactions(
            newest[0] if newest else 0, frozenset(number for (number,) in compactions)
        )
        valid = ValidWriteIds(
            high[0] if high else 0, by_state["open"], by_state["aborted"], transactions
        )
        return Snapshot(
            valid, sequence, tuple(name for (name,) in names) if table.partitioned_by else ("",)
        )

    def open_transactions(self) -> Sequence[OpenTransaction]:
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT number, user, query_id, process, began FROM transactions WHERE state ="
                " 'open' ORDER BY number"
            )
            return [
                OpenTransaction(
                    int(number),
                    str(user),
                    str(query_id),
                    str(process),
                    began if isinstance(began, float) else 0.0,
                )
                for number, user, query_id, process, began in rows
            ]

    # -- transactions

    def open_transaction(self, user: str, query_id: str) -> int:
        with self._writing() as connection:
            return _new_transaction(connection, "open", user, query_id, this_process())

    def open_compaction(self, query_id: str, table: HiveTable) -> int:
        end = time.monotonic() + COMPACTION_PATIENCE_SECONDS
        while True:
            with self._writing() as connection:
                _require_table(connection, table.id)
                other = _running_compaction(connection, table.id)
                if other is None:
                    number = _new_transaction(
                        connection, "open", "compactor", query_id, this_process()
                    )
                    connection.execute("INSERT INTO compactions VALUES (?, ?)", (number, table.id))
                    return number
            if time.monotonic() >= end:
                raise compaction_conflict(
                    table, f"transaction {other.number} of process {other.process}"
                )
            time.sleep(_PAUSE_SECONDS)

    def allocate_write_id(self, transaction: int, table: HiveTable, *, updates: bool) -> int:
        with self._writing() as connection:
            _require_open(connection, transaction)
            row = _first(
                connection,
                "SELECT write_id FROM hidden_write_ids WHERE table_id = ? AND number = ?",
                table.id,
                transaction,
            )
            if row is not None:
                return int(row[0])
            (write_id,) = _first(
                connection,
                "INSERT INTO write_id_counters VALUES (?, 1) ON CONFLICT (table_id) DO UPDATE SET"
                " high_watermark = high_watermark + 1 RETURNING high_watermark",
                table.id,
            )
            connection.execute(
                "INSERT INTO hidden_write_ids VALUES (?, ?, ?)", (table.id, write_id, transaction)
            )
            return int(write_id)

    def while_open(
        self, transaction: int, table: HiveTable, action: Callable[[], None], *, is_new: bool
    ) -> None:
        with self._writing() as connection:
            _require_open(connection, transaction)
            if not is_new:
                _require_table(connection, table.id)
            action()

    def commit(self, transaction: int | None, changes: MetastoreChanges) -> None:
        """Make changes visible. If the disk fails at the end, check the outcome."""
        if transaction is None:
            self._commit_definitions(changes)
            return
        prepared = False
        try:
            with self._writing() as connection:
                _make_changes(connection, self._warehouse, transaction, changes)
                prepared = True
        except ConnectorError as error:
            if not prepared or not self._has_landed(transaction, error):
                raise

    def _commit_definitions(self, changes: MetastoreChanges) -> None:
        number = self.open_transaction("", "definitions")
        try:
            self.commit(number, changes)
        except BaseException as error:
            if getattr(error, "changed", False) is False:
                with suppress(ConnectorError):
                    self.abort(number)
            raise

    def _has_landed(self, transaction: int, error: ConnectorError) -> bool:
        try:
            with self._reading() as connection:
                query = (
                    "SELECT number FROM transactions WHERE number = ? UNION SELECT number FROM"
                    " compactions WHERE number = ?"
                )
                record = _first(connection, query, transaction, transaction)
        except ConnectorError as silent:
            raise ConnectorError(
                "The outcome is unknown: the metastore did not report whether"
                f" transaction {transaction} was committed. {error.message}",
                code=error.code,
                hint=(
                    "Once the file can be read, check the table before you run the statement again."
                ),
                changed=None,
            ) from silent
        return record is None

    def abort(self, transaction: int) -> bool:
        with self._writing() as connection:
            count = connection.execute(
                "UPDATE transactions SET state = 'aborted' WHERE number = ?", (transaction,)
            ).rowcount
            connection.execute(
                "DELETE FROM transactions WHERE number = ? AND number NOT IN (SELECT number FROM"
                " hidden_write_ids)",
                (transaction,),
            )
            compaction = _first(
                connection, "SELECT 1 FROM compactions WHERE number = ?", transaction
            )
        return bool(count) or compaction is not None

    # -- the file

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), closing(self._connect()) as connection:
            yield connection

    @contextmanager
    def _writing(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        # Closing rolls back an open transaction; SQLite has already done so if the disk is full.
        with self._errors(), closing(self._connect(create=create)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def _connect(self, *, create: bool = False) -> sqlite3.Connection:
        # Mode rw: a file that was removed must not be replaced by an empty one.
        address = f"file:{percent(str(self.file))}?mode={'rwc' if create else 'rw'}"
        return sqlite3.connect(address, timeout=_PATIENCE_SECONDS, isolation_level=None, uri=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._metastore_error(error) from error
        except (UnicodeDecodeError, OverflowError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ConnectorError:
        return ConnectorError(
            f"The metastore '{self.file}' has invalid contents: {error}",
            code="HIVE_METASTORE_ERROR",
            hint=_RESCUE,
        )

    def _metastore_error(self, error: sqlite3.Error) -> ConnectorError:
        msg = f"The metastore '{self.file}' does not respond: {error}"
        if is_full(error):
            return ConnectorError(
                msg,
                code="GENERIC_INSUFFICIENT_RESOURCES",
                hint="Free space on its disk, and run the statement again.",
            )
        if is_read_only(error):
            return ConnectorError(
                msg,
                code="PERMISSION_DENIED",
                hint="Give yourself write permission to the file and its folder.",
            )
        if isinstance(error, sqlite3.OperationalError) and self.file.exists():
            hint = (
                "Check that the file can be read and written, and that no other program locks it."
            )
        else:
            hint = _RESCUE
        return ConnectorError(msg, code="HIVE_METASTORE_ERROR", hint=hint)


def _first(connection: sqlite3.Connection, sql: str, *values: Any) -> Any:
    return connection.execute(sql, values).fetchone()


def _schema_folder(warehouse: Path, schema: str) -> Path:
    return warehouse if schema == "default" else warehouse / f"{folder_name(schema)}.db"


def _location(warehouse: Path, schema: str, location: str, managed: object) -> str:
    """Return a table's folder.

    Managed ones are in the warehouse, so that a copy of it never changes the original.
    """
    if not managed:
        return location
    name = Path(location).name
    if name in {"", ".."}:
        raise ValueError(f"{location!r} is not a folder of a table")
    return str(_schema_folder(warehouse, schema) / name)


def _table(
    name: SchemaTableName,
    warehouse: Path,
    row: tuple[Any, ...],
    rows: Sequence[tuple[Any, ...]],
    comments: Mapping[int, str],
) -> HiveTable:
    identity, location, managed, transactional, bucket_count, version = row
    columns = tuple(
        ColumnMetadata(
            column, parse_type(type_name), bool(nullable), comment=comments.get(position)
        )
        for position, (column, type_name, nullable, _, _) in enumerate(rows)
    )
    partitioned = sorted((index, column) for column, _, _, index, _ in rows if index is not None)
    bucketed = sorted((index, column) for column, _, _, _, index in rows if index is not None)
    return HiveTable(
        identity,
        name,
        _location(warehouse, name.schema, location, managed),
        columns,
        tuple(column for _, column in partitioned),
        tuple(column for _, column in bucketed),
        bucket_count,
        version,
        bool(managed),
        bool(transactional),
        comments.get(_OF_TABLE),
    )


def _require_sound(table: HiveTable) -> HiveTable:
    """Return the table after checking it: any program may write any value into the file."""
    folder = Path(table.location)
    count, version = table.bucket_count, table.bucketing_version
    names = [column.name for column in table.columns]
    unsound = {
        f"the folder {table.location!r}": (
            not folder.is_absolute() or ".." in folder.parts or "\0" in table.location
        ),
        f"the columns {names!r}": (
            not table.data_columns or not all(isinstance(name, str) for name in names)
        ),
        f"the partition columns {table.partitioned_by!r}": (
            tuple(names[len(table.data_columns) :]) != table.partitioned_by
        ),
        f"the buckets {count!r}, {version!r}": (
            (count is not None and (type(count) is not int or not 1 <= count <= BUCKET_LIMIT))
            or bool(table.bucketed_by) != (count is not None)
            or version not in {1, 2}
        ),
    }
    for defect, is_wrong in unsound.items():
        if is_wrong:
            raise ValueError(f"table '{table.name}' cannot have {defect}")
    return table


def _require_numbers(values: Sequence[Any]) -> None:
    for value in values:
        if type(value) is not int:
            raise ValueError(f"{value!r} is not the number of a transaction or write id")


def _require_partitions(names: Sequence[Any], table: HiveTable) -> None:
    """Raise for an invalid partition name, so that no folder elsewhere is changed."""
    columns = [escape(column.lower()) for column in table.partitioned_by]
    for name in names:
        steps = [step.partition("=") for step in str(name).split("/")]
        if (
            [column.lower() for column, _, _ in steps] != columns
            or not all(equals for _, equals, _ in steps)
            or "\0" in str(name)
        ):
            raise ValueError(f"{name!r} is not a partition of table '{table.name}'")


def _table_folders(warehouse: Path) -> Iterator[Path]:
    for entry in warehouse.iterdir():
        if entry.is_dir() and not entry.name.startswith(("_", ".")):
            if entry.suffix == ".db":
                yield from (
                    table
                    for table in entry.iterdir()
                    if table.is_dir() and not table.name.startswith(("_", "."))
                )
            else:
                yield entry


def _make_changes(
    connection: sqlite3.Connection,
    warehouse: Path,
    transaction: int | None,
    changes: MetastoreChanges,
) -> None:
    if transaction is not None:
        _require_open(connection, transaction)
    for schema, exists in changes.schemas.items():
        _change_schema(connection, schema, exists=exists)
    for table in changes.dropped:
        _require_table(connection, table.id)
        if table.id in changes.replaced:
            _require_unchanged(connection, table, changes.replaced[table.id])
        for dependent in _OF_TABLES:
            connection.execute(f"DELETE FROM {dependent} WHERE table_id = ?", (table.id,))
        connection.execute("DELETE FROM tables WHERE id = ?", (table.id,))
    # Records of aborted transactions, and of another metastore's open ones, are not needed after
    # their table is gone.
    connection.execute(
        "DELETE FROM transactions WHERE (state = 'aborted' OR process = ?)"
        " AND number NOT IN (SELECT number FROM hidden_write_ids)",
        (_ELSEWHERE,),
    )
    for table in changes.tables:
        _insert_table(connection, warehouse, table)
        if table.id in changes.adopted:
            _adopt_write_ids(connection, table, changes.adopted[table.id])
    for table in changes.commented:
        _require_table(connection, table.id)
        _write_comments(connection, table)
    for table_id in changes.sequences:
        _require_table(connection, table_id)
    (sequence,) = _first(
        connection, "UPDATE commits SET sequence = sequence + 1 RETURNING sequence"
    )
    for table_id, partitions in changes.updated.items():
        _record_updates(
            connection, table_id, partitions, changes.sequences.get(table_id, 0), sequence
        )
    for table_id, names in changes.partitions.items():
        rows = [(table_id, name) for name in sorted(names)]
        connection.executemany("INSERT OR IGNORE INTO partitions VALUES (?, ?)", rows)
    if transaction is not None:
        connection.execute("DELETE FROM hidden_write_ids WHERE number = ?", (transaction,))
        connection.execute("DELETE FROM compactions WHERE number = ?", (transaction,))
        connection.execute("DELETE FROM transactions WHERE number = ?", (transaction,))


def _new_transaction(
    connection: sqlite3.Connection, state: str, user: str, query_id: str, process: str
) -> int:
    row = (state, user, query_id, process, time.time())
    cursor = connection.execute(
        "INSERT INTO transactions (state, user, query_id, process, began) VALUES (?, ?, ?, ?, ?)",
        row,
    )
    return int(cursor.lastrowid or 0)


def _add_compactions(connection: sqlite3.Connection) -> None:
    """Add the table of compactions to an older file.

    New numbers begin above those of registered tables' compactions, which are of other metastores.
    """
    if _first(connection, "SELECT 1 FROM sqlite_master WHERE name = 'compactions'") is not None:
        return
    connection.execute(_COMPACTIONS)
    registered = connection.execute("SELECT location FROM tables WHERE NOT managed").fetchall()
    _begin_above(
        connection,
        max((highest_visibility(Path(location)) for (location,) in registered), default=0),
    )


def _begin_above(connection: sqlite3.Connection, number: int) -> None:
    if number:
        row = _first(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'transactions'")
        change = "INSERT INTO sqlite_sequence (seq, name) VALUES (?, 'transactions')"
        if row is not None:
            change = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'transactions'"
        connection.execute(change, (number,))


def _running_compaction(connection: sqlite3.Connection, table_id: str) -> OpenTransaction | None:
    query = (
        "SELECT t.number, t.user, t.query_id, t.process, t.began FROM compactions c JOIN"
        " transactions t USING (number) WHERE c.table_id = ? AND t.state = 'open'"
    )
    for transaction in [OpenTransaction(*row) for row in connection.execute(query, (table_id,))]:
        if not is_abandoned(transaction):
            return transaction
        connection.execute("DELETE FROM transactions WHERE number = ?", (transaction.number,))
    return None


def _require_open(connection: sqlite3.Connection, transaction: int) -> None:
    row = _first(connection, "SELECT state FROM transactions WHERE number = ?", transaction)
    if row is None or row[0] != "open":
        raise ConnectorError(
            f"Transaction txnid:{transaction} already aborted",
            code="TRANSACTION_CONFLICT",
            hint=_AGAIN,
        )


def _require_table(connection: sqlite3.Connection, table_id: str) -> None:
    if _first(connection, "SELECT 1 FROM tables WHERE id = ?", table_id) is None:
        raise ConnectorError(
            "The table was dropped or replaced while the statement ran",
            code="TRANSACTION_CONFLICT",
            hint=_AGAIN,
        )


def _require_unchanged(
    connection: sqlite3.Connection, table: HiveTable, visible_ids: ValidWriteIds
) -> None:
    high = _first(
        connection, "SELECT high_watermark FROM write_id_counters WHERE table_id = ?", table.id
    )
    hidden_rows = connection.execute(
        "SELECT write_id FROM hidden_write_ids WHERE table_id = ?", (table.id,)
    )
    hidden_ids = {number for (number,) in hidden_rows}
    later = range(visible_ids.high_watermark + 1, (high[0] if high else 0) + 1)
    if any(number not in hidden_ids for number in (*later, *visible_ids.open)):
        raise ConnectorError(
            f"Another statement changed rows of table '{table.name}' after this one"
            " began to replace it",
            code="TRANSACTION_CONFLICT",
            hint=_AGAIN,
        )


def _change_schema(connection: sqlite3.Connection, schema: str, *, exists: bool) -> None:
    if exists:
        connection.execute("INSERT OR IGNORE INTO databases VALUES (?)", (schema,))
        return
    if _first(connection, "SELECT 1 FROM tables WHERE schema_name = ?", schema) is not None:
        raise schema_not_empty(schema)
    connection.execute("DELETE FROM databases WHERE name = ?", (schema,))


def _insert_table(connection: sqlite3.Connection, warehouse: Path, table: HiveTable) -> None:
    name = table.name
    if _first(connection, "SELECT 1 FROM databases WHERE name = ?", name.schema) is None:
        raise schema_not_found(name.schema)
    row = (
        table.id,
        name.schema,
        name.table,
        table.location,
        table.managed,
        table.transactional,
        table.bucket_count,
    )
    try:
        connection.execute(
            "INSERT INTO tables VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, table.bucketing_version)
        )
    except sqlite3.IntegrityError:
        raise table_exists(name) from None
    _require_own_folder(connection, warehouse, table)
    positions = (
        {c: i for i, c in enumerate(table.partitioned_by)},
        {c: i for i, c in enumerate(table.bucketed_by)},
    )
    rows = [
        (
            table.id,
            i,
            c.name,
            str(c.type),
            c.nullable,
            positions[0].get(c.name),
            positions[1].get(c.name),
        )
        for i, c in enumerate(table.columns)
    ]
    connection.executemany("INSERT INTO columns VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    _write_comments(connection, table)


def _require_own_folder(connection: sqlite3.Connection, warehouse: Path, table: HiveTable) -> None:
    """Raise if a table shares files with another: write ids are unique per table only."""
    other = _table_at(connection, warehouse, Path(table.location), but=table.id)
    if other is not None:
        raise ConnectorError(
            f"Directory '{table.location}' of table '{table.name}' shares files with"
            f" table '{other}'",
            code="HIVE_PATH_ALREADY_EXISTS",
            hint=(
                "Each table needs its own folder. Name another folder, or first"
                f" unregister '{other}' with unregister_table."
            ),
        )


def _table_at(
    connection: sqlite3.Connection, warehouse: Path, folder: Path, but: str = ""
) -> SchemaTableName | None:
    folder = folder.resolve()
    query = "SELECT schema_name, name, location, managed FROM tables WHERE id <> ?"
    for schema, name, location, managed in connection.execute(query, (but,)):
        try:
            other = Path(_location(warehouse, schema, location, managed)).resolve()
        except (TypeError, ValueError):
            # The row is invalid; a statement that uses the table raises.
            continue
        if folder.is_relative_to(other) or other.is_relative_to(folder):
            return SchemaTableName(schema, name)
    return None


def other_owner(file: Path | None, folder: Path) -> tuple[Path, SchemaTableName] | None:
    """Return another embedded metastore, and its table that owns files of a folder."""
    folder = folder.resolve()
    for warehouse in folder.parents:
        other = warehouse.parent / "metastore.sqlite"
        if (
            warehouse.name != "warehouse"
            or not other.is_file()
            or (file is not None and other == file.resolve())
        ):
            continue
        # An unreadable file owns no table.
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(f"file:{percent(str(other))}?mode=ro", uri=True)) as connection,
        ):
            table = _table_at(connection, warehouse, folder)
            if table is not None:
                return other, table
    return None


def _write_comments(connection: sqlite3.Connection, table: HiveTable) -> None:
    comments = {
        _OF_TABLE: table.comment,
        **{position: column.comment for position, column in enumerate(table.columns)},
    }
    connection.execute("DELETE FROM comments WHERE table_id = ?", (table.id,))
    rows = [(table.id, position, text) for position, text in comments.items() if text is not None]
    connection.executemany("INSERT INTO comments VALUES (?, ?, ?)", rows)


def _adopt_write_ids(
    connection: sqlite3.Connection, table: HiveTable, write_ids: ValidWriteIds
) -> None:
    connection.execute(
        "INSERT INTO write_id_counters VALUES (?, ?)", (table.id, write_ids.high_watermark)
    )
    if write_ids.transactions is not None:
        _begin_above(connection, write_ids.transactions.high_watermark)
    for state, numbers in (("open", write_ids.open), ("aborted", write_ids.aborted)):
        if numbers:
            owner = _new_transaction(
                connection, state, "another metastore", f"registration of {table.name}", _ELSEWHERE
            )
            rows = [(table.id, number, owner) for number in sorted(numbers)]
            connection.executemany("INSERT INTO hidden_write_ids VALUES (?, ?, ?)", rows)


def _record_updates(
    connection: sqlite3.Connection, table_id: str, partitions: set[str], read: int, sequence: int
) -> None:
    for partition in sorted(partitions):
        last = _first(
            connection,
            "SELECT sequence FROM last_updates WHERE table_id = ? AND partition = ?",
            table_id,
            partition,
        )
        if last is not None and last[0] > read:
            where = f"partition '{partition}'" if partition else "the table"
            raise ConnectorError(
                f"Another statement changed rows of {where} after this one began to read it",
                code="TRANSACTION_CONFLICT",
                hint=_AGAIN,
            )
        connection.execute(
            "INSERT OR REPLACE INTO last_updates VALUES (?, ?, ?)", (table_id, partition, sequence)
        )
