"""The client of a Hive Metastore."""

from __future__ import annotations

import getpass
import re
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pymetastore.hive_metastore import ttypes

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.layout_names import DEFAULT_PARTITION
from rowmerge_nb.connectors.hive_acid.metastore.metastore import (
    COMPACTION_PATIENCE_SECONDS,
    HiveTable,
    Metastore,
    OpenTransaction,
    Snapshot,
    compaction_conflict,
    is_abandoned,
    is_compaction,
    partition_name,
    schema_not_empty,
    schema_not_found,
    table_exists,
)
from rowmerge_nb.connectors.hive_acid.metastore.thrift_client import (
    AGAIN,
    LOST,
    Heartbeats,
    MetastoreClients,
    conflict,
)
from rowmerge_nb.connectors.hive_acid.metastore.thrift_tables import (
    constraints_of,
    folder_of,
    hive_table_of,
    set_comments,
    thrift_partition,
    thrift_table,
)
from rowmerge_nb.connectors.hive_acid.visible_deltas import ValidTransactions, ValidWriteIds
from rowmerge_nb.connectors.shared.orphans import this_process
from rowmerge_nb.spi import SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rowmerge_nb.connectors.hive_acid.metastore.metastore import MetastoreChanges

_SELECT, _INSERT, _UPDATE = 1, 2, 3
"""Operations in locks and new partitions; UPDATE covers DELETE and MERGE."""
_ALL: Final = -1
_HOST_CHARACTERS: Final = 128
_PATIENCE_SECONDS: Final = 60.0
_LONGEST_SILENCE: Final = 60.0
_UNITS: Final = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


class ThriftMetastore(Metastore):
    shared: ClassVar[bool] = True

    def __init__(self, uri: str, folder: Path | None = None) -> None:
        self._folder = folder
        self._clients = MetastoreClients(uri)
        self._user = getpass.getuser()
        self._process = this_process()
        with self._clients.connected("return the timeout of its transactions") as client:
            patience = _seconds(client.get_config_value("metastore.txn.timeout", "300s"))
        self._heartbeats = Heartbeats(self._beat, min(patience / 3, _LONGEST_SILENCE))

    def __repr__(self) -> str:
        return f"ThriftMetastore({self._clients.uri!r})"

    # -- reading

    def list_schemas(self) -> Sequence[str]:
        with self._clients.connected("list its databases") as client:
            return sorted(client.get_all_databases())

    def schema_location(self, schema: str) -> Path:
        with self._clients.connected(f"describe database '{schema}'") as client:
            try:
                return folder_of(client.get_database(schema).locationUri, f"Schema '{schema}'")
            except ttypes.NoSuchObjectException as error:
                raise schema_not_found(schema) from error

    def list_tables(self) -> Sequence[SchemaTableName]:
        """Return all tables, including those that cannot be read here."""
        with self._clients.connected("list its tables") as client:
            metas = client.get_table_meta("*", "*", ["MANAGED_TABLE", "EXTERNAL_TABLE"])
        return [
            SchemaTableName(schema, name)
            for schema, name in sorted((meta.dbName, meta.tableName) for meta in metas)
        ]

    def get_table(self, name: SchemaTableName) -> HiveTable | None:
        with self._clients.connected(f"describe table '{name}'") as client:
            return _table(client, name)

    def snapshot(self, table: HiveTable, reader: Callable[[], int] | None = None) -> Snapshot:
        """Return the snapshot; a read lock keeps Hive from removing files."""
        transaction = None
        if reader is not None and table.transactional:
            transaction = reader()
            self._lock(transaction, table, _SELECT)
        with self._clients.connected(
            f"return the readable write ids of table '{table.name}'"
        ) as client:
            valid = ValidWriteIds(0)
            if table.transactional:
                state = client.get_open_txns()
                request = ttypes.GetValidWriteIdsRequest(
                    [str(table.name)], _transactions(state, transaction)
                )
                valid = _write_ids(client.get_valid_write_ids(request).tblValidWriteIds[0])
                valid = replace(valid, transactions=_compactions(state, transaction))
            return Snapshot(
                valid, 0, tuple(_partitions(client, table)) if table.partitioned_by else ("",)
            )

    def open_transactions(self) -> Sequence[OpenTransaction]:
        """Return the open transactions, including Hive's and Trino's."""
        with self._clients.connected("list its transactions") as client:
            infos = client.get_open_txns_info().open_txns
        transactions = []
        for info in sorted(infos, key=lambda info: int(info.id)):
            if info.state == ttypes.TxnState.OPEN:
                process, _, query_id = (info.hostname or "").partition(" ")
                agent = info.agentInfo or ""
                transactions.append(
                    OpenTransaction(
                        info.id,
                        info.user,
                        query_id or agent,
                        process,
                        (info.startedTime or 0) / 1000,
                    )
                )
        return transactions

    # -- transactions

    def open_transaction(self, user: str, query_id: str) -> int:
        with self._clients.connected("begin a transaction") as client:
            # Hive 3 drops the agent and keeps the host, up to 128 characters.
            host = f"{self._process} {query_id}"[:_HOST_CHARACTERS]
            request = ttypes.OpenTxnRequest(1, user or self._user, host, f"rowmerge_nb {query_id}")
            number = int(client.open_txns(request).txn_ids[0])
        self._heartbeats.begin(number)
        return number

    def open_compaction(self, query_id: str, table: HiveTable) -> int:
        """Begin a compaction's transaction, with an exclusive lock on a name that no table has."""
        for transaction in self.open_transactions():
            if is_compaction(transaction) and is_abandoned(transaction):
                self.abort(transaction.number)
        number = self.open_transaction("compactor", query_id)
        try:
            self._lock_compactions(number, table)
        except BaseException:
            self.abort(number)
            raise
        return number

    def _lock_compactions(self, transaction: int, table: HiveTable) -> None:
        component = ttypes.LockComponent(
            type=ttypes.LockType.EXCLUSIVE,
            level=ttypes.LockLevel.TABLE,
            dbname=table.name.schema,
            tablename=f"{table.name.table}/compaction",
            operationType=ttypes.DataOperationType.NO_TXN,
            isTransactional=False,
        )
        if not self._has_lock(transaction, component, COMPACTION_PATIENCE_SECONDS):
            raise compaction_conflict(table, "another transaction")
        with self._clients.connected("list its compactions") as client:
            queue = client.show_compact(ttypes.ShowCompactRequest()).compacts or ()
        for entry in queue:
            if (entry.dbname, entry.tablename, entry.state) == (
                table.name.schema,
                table.name.table,
                "working",
            ):
                raise compaction_conflict(table, f"Hive's worker {entry.workerid}")

    def allocate_write_id(self, transaction: int, table: HiveTable, *, updates: bool) -> int:
        self._lock(transaction, table, _UPDATE if updates else _INSERT)
        with self._clients.connected(f"assign a write id for table '{table.name}'") as client:
            return _write_id(client, transaction, table)

    def while_open(
        self, transaction: int, table: HiveTable, action: Callable[[], None], *, is_new: bool
    ) -> None:
        """Change a table's files; the commit detects conflicts."""
        self._beat(transaction)
        if not is_new:
            with self._clients.connected(f"describe table '{table.name}'") as client:
                _require_table(client, table)
        action()

    def commit(self, transaction: int | None, changes: MetastoreChanges) -> None:
        """Make definitions visible one by one, then all rows at once."""
        for schema, exists in changes.schemas.items():
            self._change(
                f"database '{schema}' was changed",
                partial(_change_schema, schema=schema, folder=self._folder, exists=exists),
                partial(_is_schema_changed, schema=schema, exists=exists),
            )
        for table in changes.dropped:
            self._change(
                f"table '{table.name}' was dropped",
                partial(_drop, table=table),
                partial(_is_gone, table=table),
            )
        for table in changes.commented:
            self._change(
                f"the comments of table '{table.name}' were changed",
                partial(_comment, table=table),
                partial(_is_commented, table=table),
            )
        new: list[HiveTable] = []
        try:
            for table in changes.tables:
                create = partial(_create, table=table, owner=self._user)
                self._change(
                    f"table '{table.name}' was created", create, partial(_is_created, table=table)
                )
                new.append(table)
                if table.id in changes.adopted:
                    with self._clients.connected(f"take over table '{table.name}'") as client:
                        self._adopt(client, table, changes.adopted[table.id])
            for table in changes.changed_tables:
                with self._clients.connected(
                    f"record the partitions of table '{table.name}'"
                ) as client:
                    self._record_partitions(client, transaction, table, changes)
            if transaction is not None:
                self._commit_rows(transaction)
        except BaseException as error:
            if getattr(error, "changed", False) is not None:
                self._drop_new(new)
            raise

    def _commit_rows(self, transaction: int) -> None:
        try:
            self._change(
                f"transaction {transaction} was committed",
                lambda client: client.commit_txn(ttypes.CommitTxnRequest(transaction)),
                # A transaction that is neither open nor aborted was committed.
                lambda client: transaction not in client.get_open_txns().open_txns,
            )
        finally:
            self._heartbeats.end(transaction)

    def _change(
        self, change: str, call: Callable[[Any], Any], has_landed: Callable[[Any], bool]
    ) -> None:
        """Make a changing call; if the answer is lost, ask for the outcome."""
        was_sent = False
        try:
            with self._clients.connected("commit") as client:
                was_sent = True
                call(client)
        except ConnectorError as error:
            if not was_sent or not isinstance(error.__cause__, LOST):
                raise
            if not self._has_landed(change, has_landed, error):
                raise

    def _has_landed(
        self, change: str, has_landed: Callable[[Any], bool], error: ConnectorError
    ) -> bool:
        try:
            with self._clients.connected("report what it did") as client:
                return has_landed(client)
        except ConnectorError as silent:
            raise ConnectorError(
                f"The outcome is unknown: it is unclear whether {change}. {error.message}",
                code="HIVE_METASTORE_ERROR",
                hint=(
                    "Once the metastore runs, check the table before you run the statement again."
                ),
                changed=None,
            ) from silent

    def _drop_new(self, tables: Sequence[HiveTable]) -> None:
        for table in tables:
            with suppress(ConnectorError), self._clients.connected("drop a table") as client:
                _drop(client, table)

    def abort(self, transaction: int) -> bool:
        self._heartbeats.end(transaction)
        with self._clients.connected(f"abort transaction {transaction}") as client:
            try:
                client.abort_txn(ttypes.AbortTxnRequest(transaction))
            except ttypes.TxnAbortedException:
                return True
            except ttypes.NoSuchTxnException:
                # Committed, or aborted so long ago that no record is left.
                return False
        return True

    # -- parts of them

    def _beat(self, transaction: int) -> None:
        with self._clients.connected("accept the heartbeat of a transaction") as client:
            client.heartbeat(ttypes.HeartbeatRequest(0, transaction))

    def _lock(self, transaction: int, table: HiveTable, operation: int) -> None:
        """Take a shared lock, which registers writers so that their commits conflict."""
        component = ttypes.LockComponent(
            type=ttypes.LockType.SHARED_READ,
            level=ttypes.LockLevel.TABLE,
            dbname=table.name.schema,
            tablename=table.name.table,
            operationType=operation,
            isTransactional=True,
            isDynamicPartitionWrite=bool(table.partitioned_by) and operation != _SELECT,
        )
        if not self._has_lock(transaction, component, _PATIENCE_SECONDS):
            raise ConnectorError(
                f"Another transaction has locked table '{table.name}' for"
                f" {_PATIENCE_SECONDS:.0f} seconds",
                code="HIVE_TABLE_LOCK_NOT_ACQUIRED",
                hint="SHOW LOCKS in Hive shows which one. " + AGAIN,
            )

    def _has_lock(self, transaction: int, component: Any, patience: float) -> bool:
        request = ttypes.LockRequest([component], transaction, self._user, self._process)
        with self._clients.connected(f"lock '{component.dbname}.{component.tablename}'") as client:
            answer = client.lock(request)
            end, pause = time.monotonic() + patience, 0.05
            while answer.state == ttypes.LockState.WAITING and time.monotonic() < end:
                time.sleep(pause)
                pause = min(2 * pause, 1.0)
                answer = client.check_lock(ttypes.CheckLockRequest(answer.lockid, transaction))
            return bool(answer.state == ttypes.LockState.ACQUIRED)

    def _record_partitions(
        self, client: Any, transaction: int | None, table: HiveTable, changes: MetastoreChanges
    ) -> None:
        """Record new and changed partitions, so that commits of writers conflict."""
        names = changes.partitions.get(table.id, set())
        if not names:
            return
        new = sorted(names - set(_partitions(client, table)))
        if new:
            parts = [thrift_partition(table, name) for name in new]
            request = ttypes.AddPartitionsRequest(
                table.name.schema, table.name.table, parts, ifNotExists=True, needResult=False
            )
            client.add_partitions_req(request)
        if transaction is None:
            return
        changed = changes.updated.get(table.id, set())
        write_id = _write_id(client, transaction, table)
        for operation, partitions in ((_UPDATE, names & changed), (_INSERT, names - changed)):
            if partitions:
                request = ttypes.AddDynamicPartitions(
                    transaction,
                    write_id,
                    table.name.schema,
                    table.name.table,
                    sorted(partitions),
                    operation,
                )
                client.add_dynamic_partitions(request)

    def _adopt(self, client: Any, table: HiveTable, write_ids: ValidWriteIds) -> None:
        if not write_ids.high_watermark:
            return
        hidden_ids = sorted(
            number
            for number in write_ids.open | write_ids.aborted
            if number <= write_ids.high_watermark
        )
        listed = (
            f"{table.name}:{write_ids.high_watermark}:{1 << 62}::{','.join(map(str, hidden_ids))}"
        )
        request = ttypes.ReplTblWriteIdStateRequest(
            listed,
            self._user,
            self._process,
            table.name.schema,
            table.name.table,
            [] if table.partitioned_by else None,
        )
        client.repl_tbl_writeid_state(request)
        # Readers see up to the last write id of a transaction, and the adopted ids have no
        # transactions here.
        number = client.open_txns(ttypes.OpenTxnRequest(1, self._user, self._process)).txn_ids[0]
        _write_id(client, number, table)
        client.commit_txn(ttypes.CommitTxnRequest(number))


def _drop(client: Any, table: HiveTable) -> None:
    _require_table(client, table)
    client.drop_table(table.name.schema, table.name.table, deleteData=False)


def _is_gone(client: Any, table: HiveTable) -> bool:
    current = _table(client, table.name)
    return current is None or current.id != table.id


def _is_created(client: Any, table: HiveTable) -> bool:
    return not _is_gone(client, table)


def _is_commented(client: Any, table: HiveTable) -> bool:
    current = _table(client, table.name)
    return current is not None and _comments(current) == _comments(table)


def _comments(table: HiveTable) -> tuple[str | None, ...]:
    return table.comment, *(column.comment for column in table.columns)


def _is_schema_changed(client: Any, schema: str, *, exists: bool) -> bool:
    return (schema in client.get_all_databases()) is exists


def _seconds(text: str) -> float:
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    return int(match[1]) * _UNITS.get(match[2], 1.0) if match else 300.0


def _describe(client: Any, name: SchemaTableName) -> Any:
    able = ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES])
    return client.get_table_req(ttypes.GetTableRequest(name.schema, name.table, able)).table


def _comment(client: Any, table: HiveTable) -> None:
    _require_table(client, table)
    description = _describe(client, table.name)
    set_comments(description, table)
    context = ttypes.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
    client.alter_table_with_environment_context(
        table.name.schema, table.name.table, description, context
    )


def _table(client: Any, name: SchemaTableName) -> HiveTable | None:
    try:
        description = _describe(client, name)
    except ttypes.NoSuchObjectException:
        return None
    request = ttypes.NotNullConstraintsRequest("hive", name.schema, name.table)
    constraints = client.get_not_null_constraints(request).notNullConstraints or ()
    return hive_table_of(name, description, {constraint.column_name for constraint in constraints})


def _require_table(client: Any, table: HiveTable) -> None:
    current = _table(client, table.name)
    if current is None or current.id != table.id:
        raise conflict(f"Table '{table.name}' was dropped or replaced while the statement ran")


def _partitions(client: Any, table: HiveTable) -> list[str]:
    names = []
    for partition in client.get_partitions(table.name.schema, table.name.table, _ALL):
        texts = [None if value == DEFAULT_PARTITION else value for value in partition.values]
        name = partition_name(table.partitioned_by, texts)
        folder = folder_of(partition.sd.location, f"Partition '{name}' of table '{table.name}'")
        if folder.as_posix() != f"{table.location}/{name}":
            raise ConnectorError(
                f"Partition '{name}' of table '{table.name}' is at '{folder}', but"
                " partitions are read only in their table's folder",
                hint=(
                    f"Move it to '{table.location}/{name}', and record that with ALTER"
                    " TABLE ... SET LOCATION."
                ),
            )
        names.append(name)
    return sorted(names)


def _transactions(state: Any, own: int | None) -> str:
    numbers = list(state.open_txns)
    aborted = {number for i, number in enumerate(numbers) if _bit(state.abortedBits, i)}
    high = (
        int(state.txn_high_water_mark) if own is None else min(own, int(state.txn_high_water_mark))
    )
    open_ids = sorted(
        number for number in numbers if number not in aborted and number <= high and number != own
    )
    aborted_ids = sorted(number for number in aborted if number <= high)
    return f"{high}:{open_ids[0] if open_ids else (1 << 63) - 1}:{','.join(map(str, open_ids))}:{','.join(map(str, aborted_ids))}"


def _compactions(state: Any, own: int | None) -> ValidTransactions:
    high = int(state.txn_high_water_mark)
    return ValidTransactions(
        high if own is None else min(own, high), frozenset(map(int, state.open_txns))
    )


def _write_ids(response: Any) -> ValidWriteIds:
    aborted = frozenset(
        int(number)
        for i, number in enumerate(response.invalidWriteIds)
        if _bit(response.abortedBits, i)
    )
    open_ids = frozenset(map(int, response.invalidWriteIds)) - aborted
    return ValidWriteIds(int(response.writeIdHighWaterMark), open_ids, aborted)


def _bit(packed: bytes | None, index: int) -> bool:
    return (
        packed is not None
        and index >> 3 < len(packed)
        and bool(packed[index >> 3] >> (index & 7) & 1)
    )


def _write_id(client: Any, transaction: int, table: HiveTable) -> int:
    request = ttypes.AllocateTableWriteIdsRequest(
        table.name.schema, table.name.table, [transaction]
    )
    return int(client.allocate_table_write_ids(request).txnToWriteIds[0].writeId)


def _change_schema(client: Any, schema: str, folder: Path | None, *, exists: bool) -> None:
    location = None if folder is None else f"file:{folder / schema}.db"
    try:
        if exists:
            client.create_database(ttypes.Database(name=schema, locationUri=location))
        else:
            client.drop_database(schema, deleteData=False, cascade=False)
    except (ttypes.AlreadyExistsException, ttypes.NoSuchObjectException):
        return
    except ttypes.InvalidOperationException as error:
        raise schema_not_empty(schema) from error


def _create(client: Any, table: HiveTable, owner: str) -> None:
    name, not_null = table.name, constraints_of(table)
    try:
        if not_null:
            client.create_table_with_constraints(
                thrift_table(table, owner), [], [], [], not_null, [], []
            )
        else:
            client.create_table(thrift_table(table, owner))
    except ttypes.AlreadyExistsException as error:
        raise table_exists(name) from error
    except (ttypes.InvalidObjectException, ttypes.NoSuchObjectException) as error:
        if name.schema in client.get_all_databases():
            raise
        raise schema_not_found(name.schema) from error
