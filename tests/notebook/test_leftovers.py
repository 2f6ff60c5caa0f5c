"""``%merge doctor --orphans`` over stores in which a process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from rowmerge_nb import Connector, Engine, HiveAcidConnector, PostgresConnector, SqliteConnector
from rowmerge_nb.connectors.shared.orphans import has_died, process_name
from rowmerge_nb.engine.catalog.leftovers import CatalogOrphans
from rowmerge_nb.notebook.orphan_report import orphans_bundle
from rowmerge_nb.spi import Orphan

BEGINS = """
import sys
from rowmerge_nb import HiveAcidConnector, SqliteConnector
from rowmerge_nb.spi import ColumnMetadata, ConnectorSession, ConnectorTableMetadata, SchemaTableName, parse_type

session, connector = ConnectorSession("query-of-the-dead"), eval(sys.argv[1])
schema = "main" if isinstance(connector, SqliteConnector) else "default"
def within(work):
    transaction = connector.begin_transaction()
    work(connector.get_metadata(transaction))
    return transaction
columns = (ColumnMetadata("id", parse_type("bigint")),)
keyed = {"primary_key": ("id",)} if schema == "main" else {}
table = ConnectorTableMetadata(SchemaTableName(schema, "t"), columns, keyed)
connector.commit(within(lambda metadata: metadata.create_table(session, table)))
def begin(metadata):
    global merge
    merge = metadata.begin_merge(session, metadata.get_table_handle(session, table.name))
transaction = within(begin)
sink = connector.get_page_sink_provider().create_merge_sink(
    transaction, ConnectorSession("query-of-the-dead", writer=0), merge)
import pyarrow as pa
metadata = connector.get_metadata(transaction)
kind = metadata.get_merge_row_id_column_handle(session, merge.table_handle).type.arrow
page = [pa.array([5]), pa.array([1], pa.int8()), pa.nulls(1, kind)]
sink.store_merged_rows(pa.RecordBatch.from_arrays(page, names=["id", "operation", "row_id"]))
sink.finish()
print("staged", flush=True)
sys.stdin.read()
"""


def begun(connector: str) -> subprocess.Popen[bytes]:
    """Start a process that has staged a row, and waits."""
    child = subprocess.Popen(
        [sys.executable, "-c", BEGINS, connector], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"staged\n"
    return child


def killed(child: subprocess.Popen[bytes]) -> str:
    name = process_name(child.pid)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return name


class Deaf(Connector):
    name = "deaf"
    get_metadata = get_split_manager = get_page_source_provider = Connector.get_page_sink_provider  # type: ignore[assignment]

    def orphans(self) -> Any:
        msg = "nobody at home"
        raise ValueError(msg)


@pytest.fixture
def stores(tmp_path: Any) -> Any:
    engine = Engine()
    engine.add_catalog("lite", SqliteConnector(tmp_path / "shop.db", create=True))
    engine.add_catalog("lake", HiveAcidConnector(tmp_path / "lake"))
    yield engine
    engine.close()


def test_leftovers_of_killed_processes_are_listed_and_removed_and_those_of_living_ones_stay(
    notebook: Any, stores: Any, tmp_path: Any
) -> None:
    notebook.shell.user_ns["fake"] = stores
    assert (
        "Nothing is left behind in the 3 catalogs: lake, lite, memory."
        in notebook.run("%merge doctor --orphans").text
    )
    children = [
        begun(connector)
        for connector in (
            f"SqliteConnector({str(tmp_path / 'shop.db')!r}, create=True)",
            f"HiveAcidConnector({str(tmp_path / 'lake')!r})",
        )
    ]
    assert "Nothing is left behind" in notebook.run("%merge doctor --orphans").text, (
        "both processes live"
    )
    names = [killed(child) for child in children]
    listed = notebook.run("%merge doctor --orphans")
    assert listed.error is None
    assert ".shop.db-rowmerge_nb-query-of-the-dead-" in listed.text
    assert "_tmp_query-of-the-dead" in listed.text
    assert "query-of-the-dead" in listed.outputs[0]["text/html"]
    assert "less than a minute ago" in listed.text
    assert (
        "2 leftovers of dead processes were found; %merge doctor --orphans --remove removes them"
        in listed.text
    )
    assert names[0] in listed.text
    # Hive's first call has ended the transaction; the process learns it from that call.
    found = {catalog.catalog: catalog.orphans for catalog in stores.orphans()}
    assert [len(found[name]) for name in ("lake", "lite", "memory")] == [1, 1, 0]
    assert all(orphan.bytes for name in ("lake", "lite") for orphan in found[name])
    removed = notebook.run("%merge doctor --orphans --remove").text
    assert "2 leftovers of dead processes were removed" in removed
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".shop")] == []
    assert "Nothing is left behind" in notebook.run("%merge doctor --orphans").text


def test_an_unresponsive_store_is_reported_and_hides_no_other(notebook: Any, stores: Any) -> None:
    notebook.shell.user_ns["fake"] = stores
    stores.add_catalog("deaf", Deaf())
    stores.add_catalog("pg", PostgresConnector("host=/nowhere user=ann password=s3same"))
    shown = notebook.run("%merge doctor --orphans")
    assert "ValueError: nobody at home" in shown.text
    assert "JDBC_ERROR: PostgreSQL at host=/nowhere cannot be reached" in shown.text
    assert "3 of 5 catalogs answered" in shown.text
    assert "s3same" not in shown.text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%merge --prepare SELECT 1", "--prepare is an option of %merge doctor"),
        ("%%merge --prepare\nSELECT 1", "--prepare is an option of %merge doctor"),
        ("%merge doctor --prepare --orphans", "--prepare and --orphans cannot be combined"),
        ("%merge --orphans SELECT 1", "--orphans is an option of %merge doctor"),
        ("%merge tables --orphans", "--orphans is an option of %merge doctor"),
        ("%merge doctor --remove", "--remove is an option of %merge doctor --orphans"),
        ("%%merge --remove\nSELECT 1", "--remove is an option of %merge doctor --orphans"),
    ],
)
def test_the_doctors_options_are_refused_in_other_commands(
    notebook: Any, line: str, message: str
) -> None:
    assert notebook.run(line).failure.message == message
    assert notebook.engine.asked == []


def test_a_missing_or_zombie_process_is_dead_and_an_unknown_one_is_not() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    name = process_name(child.pid)
    assert not has_died(name)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    if sys.platform == "linux":
        assert has_died(name)
    child.communicate()
    assert has_died(name)
    assert not has_died("another-host:1")


def test_one_leftover_and_one_catalog_are_reported_in_the_singular() -> None:
    orphan = Orphan("stage", 512, None, "q1", "here:1")
    shown = orphans_bundle([CatalogOrphans("lite", "sqlite", (orphan,))], removed=False)[
        "text/plain"
    ]
    assert shown.endswith(
        "1 leftover of dead processes was found; %merge doctor --orphans --remove removes it"
    )
    assert orphans_bundle([CatalogOrphans("lite", "sqlite", ())], removed=False)[
        "text/plain"
    ].endswith("in the catalog lite.")
