"""Trino's Iceberg plugin in two host processes: tables, writes, a MERGE, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.connectors.trino.support import (
    SESSION,
    Connection,
    Host,
    HostError,
    iceberg_properties,
    start_host,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

REAL_PLUGIN = "iceberg"
COLUMNS = [
    {"name": "id", "type": "bigint"},
    {"name": "name", "type": "varchar", "comment": "of a thing"},
    {"name": "price", "type": "double"},
]
TYPES = ["bigint", "varchar", "double"]


@pytest.fixture(scope="module")
def hosts(
    trino_home: Path, java_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Host, Host]]:
    """The coordinator's host and the tasks' host, which start concurrently."""
    folder = tmp_path_factory.mktemp("hosts")
    properties = iceberg_properties(folder / "warehouse")
    both = [
        start_host(folder / name, trino_home, java_home, "iceberg", properties=properties)
        for name in ("coordinator", "tasks")
    ]
    for host in both:
        assert "ready" in host.wait()
    yield both[0], both[1]
    assert [host.close() for host in both] == [0, 0]


@pytest.fixture
def driver(hosts: tuple[Host, Host]) -> Iterator[Connection]:
    connection = hosts[0].connect()
    transaction = begin(connection)
    if "s" not in connection.call("list_schemas", transaction=transaction):
        connection.call("create_schema", transaction=transaction, schema="s")
    connection.call("commit", transaction=transaction)
    yield connection
    for host in hosts:
        host.disconnect()


def begin(driver: Connection) -> int:
    return driver.call("begin_transaction", session=SESSION)["transaction"]


def create(driver: Connection, table: str, columns: Any = None, **properties: Any) -> None:
    transaction = begin(driver)
    driver.call(
        "create_table",
        transaction=transaction,
        schema="s",
        table=table,
        columns=columns or COLUMNS,
        properties=properties,
    )
    driver.call("commit", transaction=transaction)


def open_table(driver: Connection, table: str) -> tuple[int, dict[str, Any], Any, Any]:
    """Begin a transaction; return its number, its handle, the table and the columns."""
    begun = driver.call("begin_transaction", session=SESSION)
    number = begun["transaction"]
    handle = driver.call("table_handle", transaction=number, schema="s", table=table)["handle"]
    columns = driver.call("column_handles", transaction=number, table=handle)
    return number, begun["handle"], handle, columns


def without_number(handle: dict[str, Any] | None) -> dict[str, Any] | None:
    """A task has the class and the JSON of a handle, and not the coordinator's number."""
    return handle and {key: value for key, value in handle.items() if key != "number"}


def insert(
    driver: Connection, task: Connection, table: str, batch: pa.RecordBatch, types: Any
) -> None:
    number, transaction, handle, columns = open_table(driver, table)
    begun = driver.call(
        "begin_insert",
        transaction=number,
        table=handle,
        columns=[columns[name] for name in batch.schema.names],
    )
    task.call(
        "create_page_sink",
        transaction=transaction,
        session=SESSION,
        handle=without_number(begun["handle"]),
        credentials=without_number(begun["credentials"]),
        types=types,
    )
    for start in range(0, batch.num_rows, 10_000):
        task.store("append_page", batch.slice(start, 10_000))
    driver.finish_write("finish_insert", number, begun["handle"], task.finish_sink())
    driver.call("commit", transaction=number)


def read(
    driver: Connection, task: Connection, table: str, names: list[str], types: Any, **more: Any
) -> pa.Table:
    number, transaction, handle, columns = open_table(driver, table)
    scan = driver.call("splits", transaction=number, table=handle, **more)
    batches = [
        page
        for split in scan["splits"]
        for page in task.pages(
            transaction=transaction,
            split=without_number(split),
            table=without_number(scan["table"]),
            credentials=without_number(scan["credentials"]),
            columns=[without_number(columns[name]) for name in names],
            types=types,
        )
    ]
    driver.call("commit", transaction=number)
    schema = pa.schema(
        [(f"c{i}", b.type) for i, b in enumerate(batches[0].schema)] if batches else []
    )
    return pa.Table.from_batches(batches, schema) if batches else pa.table({})


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


def test_a_host_describes_itself(hosts: tuple[Host, Host]) -> None:
    ready = hosts[0].ready["ready"]
    assert ready["trino"].isdigit()
    assert ready["connector"] == "iceberg"
    assert ready["class"] == "io.trino.plugin.iceberg.IcebergPlugin"
    assert "format" in {each["name"] for each in ready["table_properties"]}
    assert "idle_writer_min_file_size" in {each["name"] for each in ready["session_properties"]}
    assert ready["vector"] is True
    assert ready["pid"] == hosts[0].process.pid
    assert hosts[0].connect().call("hello") == ready
    hosts[0].disconnect()


def test_a_table_is_created_described_and_dropped(driver: Connection) -> None:
    create(driver, "described", format="ORC")
    number, _, handle, columns = open_table(driver, "described")
    metadata = driver.call("table_metadata", transaction=number, table=handle)
    visible = [c for c in metadata["columns"] if not c["hidden"]]
    assert [(c["name"], c["type"], c["comment"]) for c in visible] == [
        ("id", "bigint", None),
        ("name", "varchar", "of a thing"),
        ("price", "double", None),
    ]
    assert metadata["properties"]["format"] == "ORC"
    assert {"id", "name", "price"} <= set(columns)
    assert columns["id"]["class"] == "io.trino.plugin.iceberg.IcebergColumnHandle"
    assert {"schema": "s", "table": "described"} in driver.call(
        "list_tables", transaction=number, schema="s"
    )
    assert driver.call("row_change_paradigm", transaction=number, table=handle) == (
        "DELETE_ROW_AND_INSERT_ROW"
    )
    driver.call("drop_table", transaction=number, table=handle)
    driver.call("commit", transaction=number)
    number = begin(driver)
    gone = driver.call("table_handle", transaction=number, schema="s", table="described")
    assert gone == {"handle": None}
    driver.call("rollback", transaction=number)


def test_rows_are_written_by_a_page_sink_and_read_back(
    driver: Connection, hosts: tuple[Host, Host]
) -> None:
    create(driver, "written")
    task = hosts[1].connect()
    count = 25_000
    batch = pa.record_batch(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": [None if i % 7 == 0 else f"name {i}" for i in range(count)],
            "price": [None if i % 5 == 0 else i / 3 for i in range(count)],
        }
    )
    insert(driver, task, "written", batch, TYPES)
    back = read(driver, task, "written", ["id", "name", "price"], TYPES)
    assert back.sort_by("c0").to_pydict() == {
        f"c{i}": column.to_pylist() for i, column in enumerate(batch.columns)
    }
    few = read(driver, task, "written", ["id"], ["bigint"], constraint={"id": {"values": [-5]}})
    assert few.num_rows == 0


def test_all_types_of_iceberg_are_read_back_from_a_table(
    driver: Connection, hosts: tuple[Host, Host]
) -> None:
    from rowmerge_nb.spi.types import parse_type
    from tests.connectors.trino.test_blocks import VALUES

    types = [
        "boolean",
        "integer",
        "bigint",
        "real",
        "double",
        "decimal(5,2)",
        "decimal(38,10)",
        "varchar",
        "varbinary",
        "date",
        "time(6)",
        "timestamp(6)",
        "timestamp(6) with time zone",
        "uuid",
        "array(integer)",
        "map(varchar, bigint)",
        "row(a bigint, b varchar)",
        "array(row(a varchar, b map(bigint, double)))",
    ]
    columns = [{"name": f"c{i}", "type": sql_type} for i, sql_type in enumerate(types)]
    create(driver, "types", columns)
    batch = pa.record_batch(
        {
            f"c{i}": pa.array([*VALUES[sql_type][0], None], parse_type(sql_type).arrow)
            for i, sql_type in enumerate(types)
        }
    )
    task = hosts[1].connect()
    insert(driver, task, "types", batch, types)
    back = read(driver, task, "types", batch.schema.names, types)
    assert back.to_pylist() == batch.to_pylist()


def test_a_merge_through_a_sink_in_the_tasks_host(
    driver: Connection, hosts: tuple[Host, Host]
) -> None:
    create(driver, "merged", partitioning=["bucket(id, 4)"])
    task = hosts[1].connect()
    ids = list(range(100))
    batch = pa.record_batch(
        {"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids], "price": [1.5] * 100}
    )
    insert(driver, task, "merged", batch, TYPES)

    number, transaction, handle, columns = open_table(driver, "merged")
    row_id = driver.call("merge_row_id", transaction=number, table=handle)
    assert row_id["handle"]["interface"] == "io.trino.spi.connector.ColumnHandle"
    begun = driver.call(
        "begin_merge", transaction=number, table=handle, updated={"0": [columns["name"]]}
    )
    scan = driver.call("splits", transaction=number, table=begun["table"])
    target = pa.Table.from_batches(
        [
            page
            for split in scan["splits"]
            for page in task.pages(
                transaction=transaction,
                split=without_number(split),
                table=without_number(scan["table"]),
                credentials=without_number(scan["credentials"]),
                columns=[
                    *(without_number(columns[name]) for name in ("id", "name", "price")),
                    without_number(row_id["handle"]),
                ],
                types=[*TYPES, row_id["type"]],
            )
        ]
    ).combine_chunks()
    assert target.num_rows == 100
    sink = task.call(
        "create_merge_sink",
        transaction=transaction,
        session=SESSION,
        handle=without_number(begun["handle"]),
        credentials=without_number(begun["credentials"]),
        types=[*TYPES, "tinyint", "integer", row_id["type"]],
        number=7,
    )
    assert sink["class"].endswith("MergeSink")
    pages = _merged_pages(target)
    for page in pages:
        task.store("store_merged_rows", page)
    fragments = task.finish_sink()
    assert fragments
    driver.finish_write(
        "finish_merge", number, begun["handle"], fragments, sources=[begun["table"]]
    )
    driver.call("commit", transaction=number)

    expected = [(i, f"new {i}" if i % 10 == 0 else f"n{i}", 1.5) for i in ids if i % 10 != 1]
    expected += [(1000, "inserted", None)]
    back = read(driver, task, "merged", ["id", "name", "price"], TYPES)
    assert rows_of(back) == sorted(expected, key=str)


def _merged_pages(target: pa.Table) -> list[pa.RecordBatch]:
    """The pages of an UPDATE of ids that end with 0, a DELETE of those with 1, and an INSERT."""
    import pyarrow.compute as pc

    def page(rows: pa.Table, operation: int, row_ids: Any, names: Any = None) -> pa.RecordBatch:
        count = rows.num_rows
        return pa.record_batch(
            [
                rows.column(0).combine_chunks(),
                rows.column(1).combine_chunks() if names is None else names,
                rows.column(2).combine_chunks(),
                pa.array([operation] * count, pa.int8()),
                pa.array([0] * count, pa.int32()),
                row_ids,
            ],
            names=[f"c{i}" for i in range(6)],
        )

    row_id_type = target.schema.field(3).type
    ids = target.column(0).to_pylist()
    updated = target.filter(pa.array([i % 10 == 0 for i in ids]))
    deleted = target.filter(pa.array([i % 10 == 1 for i in ids]))
    names = pc.binary_join_element_wise("new", updated.column(0).cast(pa.string()), " ")
    new = pa.table(
        {"a": pa.array([1000], pa.int64()), "b": ["inserted"], "c": pa.array([None], pa.float64())}
    )
    return [
        page(updated, 5, updated.column(3).combine_chunks()),
        page(updated, 4, pa.nulls(updated.num_rows, row_id_type), names.combine_chunks()),
        page(deleted, 2, deleted.column(3).combine_chunks()),
        page(new, 1, pa.nulls(1, row_id_type)),
    ]


def test_session_properties_are_decoded_by_the_plugin(
    driver: Connection, hosts: tuple[Host, Host]
) -> None:
    create(driver, "compressed", format="PARQUET")
    number, transaction, handle, columns = open_table(driver, "compressed")
    begun = driver.call(
        "begin_insert",
        transaction=number,
        table=handle,
        columns=[columns[name] for name in ("id", "name", "price")],
    )
    task = hosts[1].connect()
    arguments = {
        "transaction": transaction,
        "handle": without_number(begun["handle"]),
        "credentials": without_number(begun["credentials"]),
        "types": TYPES,
    }
    size = {"parquet_writer_page_size": "4MB"}
    task.call("create_page_sink", session={**SESSION, "properties": size}, **arguments)
    row = {"id": pa.array([1] * 9, pa.int64()), "name": ["a"] * 9, "price": [1.5] * 9}
    task.store("append_page", pa.record_batch(row))
    assert task.finish_sink()
    large = {"parquet_writer_page_size": "1GB"}
    with pytest.raises(HostError, match="must be at most 8MB") as error:
        task.call("create_page_sink", session={**SESSION, "properties": large}, **arguments)
    assert error.value.described["code"] == "INVALID_SESSION_PROPERTY"
    driver.call("rollback", transaction=number)


def test_buckets_of_a_layout_are_numbers_below_the_count(
    driver: Connection, hosts: tuple[Host, Host]
) -> None:
    create(driver, "bucketed", partitioning=["bucket(id, 4)"])
    number, transaction, handle, _ = open_table(driver, "bucketed")
    layout = driver.call("insert_layout", transaction=number, table=handle)
    update = driver.call("update_layout", transaction=number, table=handle)
    assert layout["columns"] == ["id"]
    assert update["partitioning"]["class"].startswith("io.trino.plugin.iceberg.")
    task = hosts[1].connect()
    task.call(
        "bucket_function",
        transaction=transaction,
        session=SESSION,
        partitioning=without_number(layout["partitioning"]),
        types=["bigint"],
        count=4,
    )
    from rowmerge_nb.connectors.trino.host_channel import pack_batch, unpack_batch

    ids = pa.record_batch({"id": pa.array(range(100), pa.int64())})
    _, payload = task.ask("buckets", pack_batch(ids))
    buckets = unpack_batch(payload).column(0).to_pylist()
    assert set(buckets) == {0, 1, 2, 3}
    driver.call("rollback", transaction=number)


def test_a_handle_is_compared_with_itself_after_json(driver: Connection) -> None:
    create(driver, "reported")
    number, _, handle, _ = open_table(driver, "reported")
    begun = driver.call("begin_merge", transaction=number, table=handle, updated={})
    report = driver.call("json_report", transaction=number, handle=begun["handle"])
    assert report["class"] == "io.trino.plugin.iceberg.IcebergMergeTableHandle"
    assert report["json"] == report["json_after"]
    assert all(
        {"class", "field", "before", "after", "ignored"} == set(d) for d in report["differences"]
    )
    driver.call("rollback", transaction=number)


def test_errors_of_the_plugin_keep_code_class_and_frames(driver: Connection) -> None:
    create(driver, "twice")
    with pytest.raises(HostError) as error:
        create(driver, "twice")
    described = error.value.described
    # Trino's engine looks up the table before it asks the plugin.
    assert described["code"] == "ICEBERG_COMMIT_ERROR"
    assert described["type"] == "EXTERNAL"
    assert described["class"] == "io.trino.plugin.iceberg.CreateTableException"
    assert "Table already exists" in str(described["causes"])
    assert any("io.trino.plugin.iceberg" in frame for frame in described["frames"])
    assert any(".java:" in frame for frame in described["frames"])


def test_wrong_properties_and_calls_are_errors_with_the_next_step(
    driver: Connection, hosts: tuple[Host, Host]
) -> None:
    with pytest.raises(HostError) as error:
        create(driver, "wrong", colour="red")
    assert error.value.described["code"] == "INVALID_TABLE_PROPERTY"
    assert "format" in error.value.described["hint"]
    with pytest.raises(HostError) as error:
        create(driver, "wrong", format="PAPER")
    assert "format" in error.value.described["message"]
    with pytest.raises(HostError) as error:
        driver.call("begin_transaction", session={**SESSION, "properties": {"speed": 1}})
    assert error.value.described["code"] == "INVALID_SESSION_PROPERTY"
    assert "idle_writer_min_file_size" in error.value.described["hint"]
    with pytest.raises(HostError, match="no call nonsense"):
        driver.call("nonsense")
    with pytest.raises(HostError, match="not open"):
        driver.call("commit", transaction=10**6)
    with pytest.raises(HostError, match="no open sink"):
        hosts[1].connect().call("finish")


def test_a_connection_that_closes_aborts_its_sink(
    driver: Connection, hosts: tuple[Host, Host]
) -> None:
    create(driver, "aborted")
    number, transaction, handle, columns = open_table(driver, "aborted")
    begun = driver.call(
        "begin_insert",
        transaction=number,
        table=handle,
        columns=[columns[name] for name in ("id", "name", "price")],
    )
    task = hosts[1].connect()
    task.call(
        "create_page_sink",
        transaction=transaction,
        session=SESSION,
        handle=without_number(begun["handle"]),
        credentials=without_number(begun["credentials"]),
        types=TYPES,
    )
    row = {"id": pa.array([1], pa.int64()), "name": ["a"], "price": [1.5]}
    task.store("append_page", pa.record_batch(row))
    task.channel.close()
    driver.call("rollback", transaction=number)
    assert read(driver, hosts[1].connect(), "aborted", ["id"], ["bigint"]).num_rows == 0
