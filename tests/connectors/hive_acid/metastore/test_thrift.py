"""Tables of a real Hive Metastore through Thrift; `ROWMERGE_METASTORE=private` lets the tests start one."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.transport.TTransport import TTransportException

from rowmerge_nb import Engine, HiveAcidConnector
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.metastore import thrift_metastore
from rowmerge_nb.connectors.hive_acid.metastore.metastore import (
    HiveTable,
    MetastoreChanges,
    new_compaction,
)
from rowmerge_nb.connectors.hive_acid.metastore.thrift_tables import (
    folder_of,
    hive_table_of,
    thrift_table,
)
from rowmerge_nb.connectors.hive_acid.reader import splits_of
from rowmerge_nb.connectors.shared.orphans import this_process
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)
from rowmerge_nb.spi.alterations import SetColumnComment, SetTableComment
from tests.connectors.hive_acid.kit import (
    COLUMNS,
    NAME,
    Statement,
    contents,
    files,
    inserted,
    make_table,
    merge,
    row_ids,
)

PARTITIONED = {"partitioned_by": ("p",)}
BOTH = {"partitioned_by": ("p",), "bucketed_by": ("id",), "bucket_count": 3}


@pytest.fixture
def store(metastore: str) -> Iterator[HiveAcidConnector]:
    connector = HiveAcidConnector(metastore=metastore)
    yield connector
    for transaction in connector.open_transactions():
        connector.abort_transaction(transaction.number)
    with client(connector) as thrift:
        for schema in connector.metastore.list_schemas():
            for table in thrift.get_all_tables(schema):
                thrift.drop_table(schema, table, deleteData=True)
            if schema != "default":
                thrift.drop_database(schema, deleteData=True, cascade=False)
    shutil.rmtree(connector.warehouse, ignore_errors=True)


def client(store: HiveAcidConnector) -> Any:
    return store.metastore._clients.connected("do what a test wants")  # type: ignore[attr-defined]


def update(statement: Statement, key: int, value: str) -> None:
    """Let a statement assign another value to a row."""
    row = next(row for row in statement.rows(ids=True) if row["id"] == key)
    statement.stage([[(2, row["$row_id"], None, None, row["p"]), (1, None, key, value, row["p"])]])


@pytest.mark.parametrize(
    "properties", [{}, PARTITIONED, {"bucketed_by": ("id",), "bucket_count": 2}, BOTH]
)
def test_rows_are_inserted_changed_and_read_again(
    store: HiveAcidConnector, properties: dict[str, Any]
) -> None:
    make_table(store, **properties)
    merge(store, inserted((1, "a", "x"), (2, "b", None), (3, "c", "z a/b")))
    ids = row_ids(store)
    merge(
        store,
        [(2, ids[1], None, None, "x"), (1, None, 1, "new", "y"), (2, ids[3], None, None, "z a/b")],
    )
    assert contents(store) == [(1, "new", "y"), (2, "b", None)]
    assert store.open_transactions() == []


def test_comments_are_stored_where_other_engines_expect_them(store: HiveAcidConnector) -> None:
    transaction = store.begin_transaction()
    columns = tuple(
        ColumnMetadata(name, parse_type(kind), comment=f"the {name}") for name, kind in COLUMNS
    )
    made = ConnectorTableMetadata(NAME, columns, PARTITIONED, "a table")
    store.get_metadata(transaction).create_table(ConnectorSession("c"), made)
    store.commit(transaction)
    merge(store, inserted((1, "a", "x")))
    with client(store) as thrift:
        found = thrift.get_table("default", "t")
        fields = [*found.sd.cols, *found.partitionKeys]
        assert (found.parameters["comment"], [field.comment for field in fields]) == (
            "a table",
            ["the id", "the v", "the p"],
        )
    for alteration in (
        SetTableComment(None),
        SetColumnComment("v", "it's new"),
        SetColumnComment("p", None),
    ):
        statement = Statement(store)
        statement.metadata.alter_table(statement.session, statement.handle, alteration)
        statement.commit()
    told = Statement(store)
    metadata = told.metadata.get_table_metadata(told.session, told.handle)
    assert (metadata.comment, [column.comment for column in metadata.columns]) == (
        None,
        ["the id", "it's new", None],
    )
    assert told.rows() == [{"id": 1, "v": "a", "p": "x"}]
    told.commit()


def test_a_table_is_read_back_as_it_was_created(store: HiveAcidConnector) -> None:
    types = [
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double",
        "decimal(12,2)",
        "varchar",
        "varchar(7)",
        "char(3)",
    ]
    types += [
        "varbinary",
        "date",
        "timestamp(6)",
        "array(map(varchar, integer))",
        'row("a" integer, "b" array(decimal(5,1)))',
    ]
    columns = [(f"c{i}", kind) for i, kind in enumerate(types)]
    make_table(store, columns, bucketed_by=("c4", "c8"), bucket_count=5, bucketing_version=2)
    table = store.metastore.get_table(NAME)
    assert table is not None
    assert [(column.name, str(column.type)) for column in table.columns] == columns
    assert (table.bucketed_by, table.bucket_count, table.bucketing_version) == (("c4", "c8"), 5, 2)
    assert (table.managed, table.transactional, table.location) == (
        True,
        True,
        str(store.warehouse / "t"),
    )


def test_columns_that_must_not_be_null_stay_so(store: HiveAcidConnector) -> None:
    transaction = store.begin_transaction()
    columns = (
        ColumnMetadata("id", parse_type("bigint"), nullable=False),
        ColumnMetadata("v", parse_type("varchar")),
    )
    store.get_metadata(transaction).create_table(
        ConnectorSession("c"), ConnectorTableMetadata(NAME, columns)
    )
    store.commit(transaction)
    table = store.metastore.get_table(NAME)
    assert table is not None
    assert [column.nullable for column in table.columns] == [False, True]


def test_hive_and_trino_find_what_they_know_a_transactional_table_by(
    store: HiveAcidConnector,
) -> None:
    make_table(store, **BOTH)
    merge(store, inserted((1, "a", "x")))
    with client(store) as thrift:
        table = thrift.get_table("default", "t")
        assert thrift.get_partition_names("default", "t", -1) == ["p=x"]
    assert table.tableType == "MANAGED_TABLE"
    assert (
        table.parameters.items()
        >= {
            "transactional": "true",
            "transactional_properties": "default",
            "bucketing_version": "1",
        }.items()
    )
    assert table.sd.inputFormat == "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    assert [(column.name, column.type) for column in table.sd.cols] == [
        ("id", "bigint"),
        ("v", "string"),
    ]
    assert [(column.name, column.type) for column in table.partitionKeys] == [("p", "string")]


@pytest.mark.parametrize("properties", [{}, PARTITIONED])
def test_the_first_of_two_statements_to_commit_a_change_of_a_row_wins(
    store: HiveAcidConnector, properties: dict[str, Any]
) -> None:
    make_table(store, **properties)
    merge(store, inserted((1, "a", "x"), (2, "b", "y")))
    first, second = (
        Statement(store),
        Statement(HiveAcidConnector(metastore=store.metastore._clients.uri)),
    )  # type: ignore[attr-defined]
    update(first, 1, "first")
    update(second, 1, "second")
    first.finish()
    first.commit()
    second.finish()
    with pytest.raises(ConnectorError) as caught:
        second.commit()
    assert caught.value.code == "TRANSACTION_CONFLICT"
    second.rollback()
    assert contents(store) == [(1, "first", "x"), (2, "b", "y")]
    assert not [name for name in files(store) if "0000003" in name]


def test_changes_of_different_partitions_and_inserts_do_not_exclude_each_other(
    store: HiveAcidConnector,
) -> None:
    make_table(store, **PARTITIONED)
    merge(store, inserted((1, "a", "x"), (2, "b", "y")))
    first, second, third = Statement(store), Statement(store), Statement(store)
    update(first, 1, "first")
    update(second, 2, "second")
    handle = third.metadata.begin_insert(third.session, third.handle, ())
    sink = store.get_page_sink_provider().create_page_sink(third.transaction, third.session, handle)
    sink.append_page(third.page(inserted((3, "c", "x"))).select([0, 1, 2]))
    for statement in (first, second):
        statement.finish()
        statement.commit()
    third.metadata.finish_insert(third.session, handle, sink.finish())
    third.commit()
    assert contents(store) == [(1, "first", "x"), (2, "second", "y"), (3, "c", "x")]


def test_a_statement_sees_what_was_committed_when_it_began(store: HiveAcidConnector) -> None:
    make_table(store)
    merge(store, inserted((1, "a", "x")))
    reader, early = Statement(store), Statement(store)
    early.stage([inserted((2, "b", "x"))])
    late = Statement(store)
    early.finish()
    early.commit()
    assert [row["id"] for row in reader.rows()] == [row["id"] for row in late.rows()] == [1]
    reader.commit()
    late.commit()
    assert contents(store) == [(1, "a", "x"), (2, "b", "x")]


def test_rolled_back_rows_stay_hidden_and_leave_no_files(store: HiveAcidConnector) -> None:
    make_table(store, **PARTITIONED)
    merge(store, inserted((1, "a", "x")))
    before = files(store)
    statement = Statement(store)
    statement.stage([inserted((2, "b", "x"), (3, "c", "new"))])
    statement.finish()
    statement.rollback()
    merge(store, inserted((4, "d", "x")))
    assert contents(store) == [(1, "a", "x"), (4, "d", "x")]
    assert not [name for name in files(store) - before if "0000002" in name or "_tmp" in name]


def test_files_of_an_aborted_transaction_are_orphans(store: HiveAcidConnector) -> None:
    make_table(store)
    statement = Statement(store)
    statement.stage([inserted((1, "a", "x"))])
    statement.finish()
    (number,) = (transaction.number for transaction in store.open_transactions())
    store.abort_transaction(number)
    assert contents(store) == []
    assert {path.name.split("_")[1] for path in store.remove_orphans()} >= {"0000001"}
    with pytest.raises(ConnectorError, match="already aborted") as caught:
        statement.commit()
    assert caught.value.code == "TRANSACTION_CONFLICT"


def test_a_table_replaced_meanwhile_is_a_conflict(store: HiveAcidConnector) -> None:
    make_table(store)
    statement = Statement(store)
    statement.stage([inserted((1, "a", "x"))])
    dropping = Statement(store)
    dropping.metadata.drop_table(dropping.session, dropping.handle)
    dropping.commit()
    make_table(store)
    with pytest.raises(ConnectorError, match="dropped or replaced") as caught:
        statement.finish()
    assert caught.value.code == "TRANSACTION_CONFLICT"
    statement.rollback()
    assert contents(store) == []


def test_compacted_rows_are_in_directories_that_hive_3_reads(store: HiveAcidConnector) -> None:
    make_table(store)
    for number in range(3):
        merge(store, inserted((number, "a", "x")))
    merge(store, [(2, row_ids(store)[1], None, None, "x")])
    # Each directory counts as soon as it is moved: another one with write id 4 would hide the delete delta.
    assert [path.name for path in store.compact("default", "t", major=False)] == [
        "delta_0000001_0000003"
    ]
    assert contents(store) == [(0, "a", "x"), (2, "a", "x")]
    assert [path.name for path in store.compact("default", "t")] == ["base_0000004"]
    store.remove_obsolete("default", "t")
    assert contents(store) == [(0, "a", "x"), (2, "a", "x")]


def test_compactions_of_one_table_exclude_only_each_other(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(store)
    for number in range(2):
        merge(store, inserted((number, "a", "x")))
    table = store.metastore.get_table(NAME)
    assert table is not None
    monkeypatch.setattr(thrift_metastore, "COMPACTION_PATIENCE_SECONDS", 0.0)
    with new_compaction() as query_id:
        number = store.metastore.open_compaction(query_id, table)
        other = HiveAcidConnector(metastore=store.metastore._clients.uri)  # type: ignore[attr-defined]
        with pytest.raises(
            ConnectorError, match="is being compacted by another transaction"
        ) as caught:
            other.compact("default", "t")
        assert caught.value.code == "TRANSACTION_CONFLICT"
        merge(other, inserted((2, "a", "x")))
        assert [opened.number for opened in store.open_transactions()] == [number]
        store.abort_transaction(number)
    assert [path.name for path in other.compact("default", "t")] == ["base_0000003"]
    assert contents(store) == [(0, "a", "x"), (1, "a", "x"), (2, "a", "x")]


def test_an_interrupted_compaction_does_not_block_others(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(store)
    for number in range(2):
        merge(store, inserted((number, "a", "x")))
    table = store.metastore.get_table(NAME)
    assert table is not None
    with new_compaction() as query_id:
        number = store.metastore.open_compaction(query_id, table)
        (opened,) = store.open_transactions()
        assert (opened.number, opened.query_id, opened.process) == (
            number,
            query_id,
            this_process(),
        )
    assert [path.name for path in store.compact("default", "t")] == ["base_0000002"]
    assert store.open_transactions() == []


def test_a_compaction_of_hive_4_counts_once_its_transaction_is_committed(
    store: HiveAcidConnector,
) -> None:
    make_table(store)
    merge(store, inserted((1, "a", "x")))
    number = store.metastore.open_transaction("hive", "compactor")
    folder = store.warehouse / "t"
    shutil.copytree(
        folder / "delta_0000001_0000001_0000", folder / f"delta_0000001_0000001_v{number}"
    )
    statement = Statement(store)
    names = {split.path.parent.name for split in splits_of(statement.handle)}
    statement.commit()
    assert names == {"delta_0000001_0000001_0000"}
    store.metastore.commit(number, MetastoreChanges())
    assert contents(store) == [(1, "a", "x")]
    assert store.orphans() == []


@pytest.mark.parametrize("call", ["drop_table", "create_table", "commit_txn", "create_database"])
def test_a_lost_answer_is_looked_up(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    make_table(store)
    true = getattr(ThriftHiveMetastore.Client, call)

    def lost(self: Any, *arguments: Any, **more: Any) -> None:
        true(self, *arguments, **more)
        raise TTransportException(TTransportException.END_OF_FILE, "TSocket read 0 bytes")

    with monkeypatch.context() as patched:
        patched.setattr(ThriftHiveMetastore.Client, call, lost)
        if call == "drop_table":
            statement = Statement(store)
            statement.metadata.drop_table(statement.session, statement.handle)
            statement.commit()
            assert not (store.warehouse / "t").exists()
        elif call == "create_table":
            statement = Statement(store)
            columns = (ColumnMetadata("id", parse_type("bigint")),)
            made = ConnectorTableMetadata(SchemaTableName("default", "u"), columns)
            statement.metadata.create_table(statement.session, made)
            statement.commit()
        elif call == "create_database":
            store.metastore.commit(None, MetastoreChanges(schemas={"sales": True}))
        else:
            merge(store, inserted((1, "a", "x")))
    names = {name.table for name in store.metastore.list_tables()}
    assert names == {"drop_table": set(), "create_table": {"t", "u"}}.get(call, {"t"})
    assert ("sales" in store.metastore.list_schemas()) is (call == "create_database")
    if call == "commit_txn":
        assert contents(store) == [(1, "a", "x")]


def test_a_call_that_was_never_done_is_a_failure(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(store)
    statement = Statement(store)
    statement.metadata.drop_table(statement.session, statement.handle)

    def lost(*_: Any, **__: Any) -> None:
        raise TTransportException(TTransportException.END_OF_FILE, "TSocket read 0 bytes")

    with monkeypatch.context() as patched:
        patched.setattr(ThriftHiveMetastore.Client, "drop_table", lost)
        with pytest.raises(ConnectorError, match="does not answer") as caught:
            statement.commit()
    assert caught.value.changed is False
    statement.rollback()
    assert store.metastore.list_tables() == [NAME]
    assert (store.warehouse / "t").is_dir()


def test_a_managed_table_outside_of_its_schema_keeps_its_folder_when_it_is_dropped(
    store: HiveAcidConnector, tmp_path: Path
) -> None:
    make_table(store)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "notes").touch()
    with client(store) as thrift:
        table = thrift.get_table("default", "t")
        table.sd.location = f"file:{tmp_path}/elsewhere"
        thrift.alter_table("default", "t", table)
    statement = Statement(store)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()
    assert (tmp_path / "elsewhere" / "notes").exists()


def test_tables_that_trino_wrote_can_be_registered(
    store: HiveAcidConnector, tmp_path: Path
) -> None:
    sample = Path(__file__).parents[1] / "samples" / "aborted"
    folder = shutil.copytree(sample / "table", tmp_path / "table")
    expected = json.loads((sample / "expected.json").read_text())
    store.register_table(
        "default", "t", folder, columns=expected["columns"], write_ids=expected["writeIds"]
    )
    merge(store, inserted((9, "ours")))
    assert contents(store) == sorted([*map(tuple, expected["rows"]), (9, "ours")])
    statement = Statement(store)
    # Transactions open elsewhere will never be visible here.
    assert statement.handle.snapshot.write_ids.aborted == {2, 5}
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()
    assert (folder / "delta_0000001_0000001_0000").is_dir()


def test_schemas_are_those_of_the_metastore(store: HiveAcidConnector, tmp_path: Path) -> None:
    store.metastore.commit(None, MetastoreChanges(schemas={"sales": True}))
    assert store.metastore.list_schemas() == ["default", "sales"]
    assert store.metastore.schema_location("sales") == store.warehouse / "sales.db"
    name = SchemaTableName("sales", "t")
    transaction = store.begin_transaction()
    columns = tuple(ColumnMetadata(column, parse_type(kind)) for column, kind in COLUMNS)
    store.get_metadata(transaction).create_table(
        ConnectorSession("c"), ConnectorTableMetadata(name, columns)
    )
    store.commit(transaction)
    with pytest.raises(ConnectorError, match="Schema not empty: sales"):
        store.metastore.commit(None, MetastoreChanges(schemas={"sales": False}))
    statement = Statement(store, name)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()
    store.metastore.commit(None, MetastoreChanges(schemas={"sales": False}))
    assert store.metastore.list_schemas() == ["default"]
    with pytest.raises(ConnectorError, match="Schema 'sales' does not exist"):
        store.metastore.schema_location("sales")
    elsewhere = HiveAcidConnector(tmp_path, metastore=store.metastore._clients.uri)  # type: ignore[attr-defined]
    elsewhere.metastore.commit(None, MetastoreChanges(schemas={"sales": True}))
    assert store.metastore.schema_location("sales") == tmp_path / "sales.db"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda table: setattr(
                table.sd, "inputFormat", "org.apache.hadoop.mapred.TextInputFormat"
            ),
            "only ORC tables are read",
        ),
        (
            lambda table: table.sd.cols.append(
                ttypes.FieldSchema("w", "uniontype<int,string>", None)
            ),
            "'uniontype<int,string>'",
        ),
    ],
)
def test_unreadable_tables_name_the_reason(
    store: HiveAcidConnector, change: Any, words: str
) -> None:
    make_table(store, transactional=False)
    with client(store) as thrift:
        table = thrift.get_table("default", "t")
        change(table)
        thrift.alter_table("default", "t", table)
    with pytest.raises(ConnectorError, match=words) as caught:
        store.metastore.get_table(NAME)
    assert caught.value.code == "NOT_SUPPORTED"
    assert store.orphans() == []
    assert store.metastore.list_tables() == [NAME]


def test_a_statement_that_only_reads_leaves_no_aborted_transaction(
    store: HiveAcidConnector,
) -> None:
    make_table(store)
    for end in (Statement.commit, Statement.rollback):
        statement = Statement(store)
        (number,) = (transaction.number for transaction in store.open_transactions())
        end(statement)
        with client(store) as thrift:
            assert number not in {info.id for info in thrift.get_open_txns_info().open_txns}


def test_a_transaction_is_kept_alive_as_long_as_it_is_open(store: HiveAcidConnector) -> None:
    statement = None
    beaten = threading.Event()
    heartbeats = store.metastore._heartbeats  # type: ignore[attr-defined]
    heartbeats._seconds, beat = 0.05, heartbeats._beat
    heartbeats._beat = lambda number: (beat(number), beaten.set())
    make_table(store)
    statement = Statement(store)
    assert beaten.wait(10)
    statement.commit()
    assert heartbeats._alive == set()


def test_statements_run_on_tables_of_the_metastore(spark: Any, store: HiveAcidConnector) -> None:
    engine = Engine(spark=spark, catalog="lake", schema="default")
    engine.add_catalog("lake", store)
    engine.run(
        "CREATE TABLE accounts WITH (partitioned_by = ARRAY['town'], bucketed_by = ARRAY['name'], bucket_count = 2) AS "
        "SELECT * FROM (VALUES ('ann', 5, 'york'), ('bob', 7, 'bath'), ('eve', 1, 'bath')) AS v (name, money, town)"
    )
    engine.run(
        "MERGE INTO accounts t USING (VALUES ('ann', 10, 'bath'), ('zoe', 3, 'hull'), ('eve', 0, '')) AS s (name, money, town) "
        "ON t.name = s.name WHEN MATCHED AND s.money = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET money = t.money + s.money, town = s.town "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.name, s.money, s.town)"
    )
    engine.run("UPDATE accounts SET money = money + 1 WHERE town = 'bath'")
    assert engine.run(
        "SELECT name, money, town FROM accounts ORDER BY name"
    ).to_pandas().values.tolist() == [
        ["ann", 16, "bath"],
        ["bob", 8, "bath"],
        ["zoe", 3, "hull"],
    ]
    engine.run("DELETE FROM accounts")
    engine.run("DROP TABLE accounts")
    assert store.metastore.list_tables() == []
    assert store.open_transactions() == []
    assert not any(store.warehouse.iterdir())


@pytest.mark.parametrize(
    "location",
    [
        "s3://bucket/t",
        "hdfs://host/t",
        "http://host/t",
        "file://host/share/t",
        "FILE:/t",
        "t",
        "file:t",
        "",
        None,
    ],
)
def test_locations_of_other_schemes_and_hosts_are_refused_by_name(location: str | None) -> None:
    with pytest.raises(ConnectorError, match=rf"Table 's\.t' is at '{location}'") as caught:
        folder_of(location, "Table 's.t'")
    assert caught.value.code == "NOT_SUPPORTED"


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"bucketing_version": "x"}},
        {"parameters": {"bucketing_version": "7"}},
        {"sd": None},
        {"partitionKeys": [ttypes.FieldSchema("p", None, None)]},
        {"parameters": {"transactional": None}},
        {"sd.numBuckets": 1 << 20},
        {"sd.bucketCols": ["nope"]},
        {"sd.cols": [ttypes.FieldSchema("a", "array<" * 5000, None)]},
        {"sd.cols": [ttypes.FieldSchema("a", "decimal(99,1)", None)]},
        {"sd.cols": []},
    ],
)
def test_tables_that_a_metastore_cannot_describe_are_refused(change: dict[str, Any]) -> None:
    table = HiveTable(
        "1",
        NAME,
        "/t",
        (ColumnMetadata("id", parse_type("bigint")),),
        bucketed_by=("id",),
        bucket_count=2,
    )
    described = thrift_table(table, "me")
    for name, value in change.items():
        setattr(
            described.sd if name.startswith("sd.") else described, name.removeprefix("sd."), value
        )
    with pytest.raises(ConnectorError) as caught:
        hive_table_of(NAME, described, ())
    assert caught.value.code in {"HIVE_METASTORE_ERROR", "NOT_SUPPORTED"}
    assert caught.value.hint


def test_a_server_that_is_not_a_metastore_is_named_by_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            # The end of the test closes the server, perhaps before a second connection.
            with suppress(OSError):
                for _ in range(2):
                    with server.accept()[0] as connection:
                        connection.recv(1000)
                        connection.sendall(
                            b"\x80\x01\x00\x02\x00\x00\x00\x01x\x00\x00\x00\x00\x0b\x00\x00\x00\x00\x00\x02\xff\xff\x00"
                        )

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(
            ConnectorError, match=f"thrift://127.0.0.1:{server.getsockname()[1]}"
        ) as caught:
            HiveAcidConnector(metastore=f"thrift://127.0.0.1:{server.getsockname()[1]}")
    assert caught.value.code == "HIVE_METASTORE_ERROR"


def test_a_missing_metastore_is_reported_with_its_address() -> None:
    with pytest.raises(ConnectorError, match=r"thrift://127\.0\.0\.1:1 does not answer") as caught:
        HiveAcidConnector(metastore="thrift://127.0.0.1:1")
    assert caught.value.code == "HIVE_METASTORE_ERROR"
    with pytest.raises(ConnectorError, match="thrift://host:port"):
        HiveAcidConnector(metastore="127.0.0.1:9083")
    with pytest.raises(ConnectorError, match="needs a directory"):
        HiveAcidConnector()
