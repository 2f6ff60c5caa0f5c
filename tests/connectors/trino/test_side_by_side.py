"""A statement on a plugin compared with the stores of this project, and with another process of a plugin."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import rowmerge_nb as rm
from tests.connectors.trino.fake_connector import FakeTrinoConnector

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark

TARGET = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
MERGE = """MERGE INTO accounts t
USING (VALUES (1, 'new name'), (2, 'gone'), (9, 'new')) s(id, name) ON t.id = s.id
WHEN MATCHED AND s.name = 'gone' THEN DELETE
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)"""


@pytest.fixture
def engine(spark: Any) -> rm.Engine:
    engine = rm.Engine(spark=spark)
    engine.register("accounts", TARGET)
    return engine


def add_fake(engine: rm.Engine, name: str, folder: Path, **properties: str) -> FakeTrinoConnector:
    folder.mkdir()
    connector = FakeTrinoConnector(folder, properties=properties)
    engine.add_catalog(name, connector)
    return connector


def test_two_processes_of_a_plugin_are_compared_with_a_store(
    engine: rm.Engine, tmp_path: Path
) -> None:
    connectors = [add_fake(engine, name, tmp_path / name) for name in ("one", "two")]
    try:
        compared = engine.compare(MERGE, by="catalogs", catalogs=["memory", "one", "two"])
        assert compared.sentence == "memory, one and two leave the same 3 rows."
        assert len({connector.hosts.running[0].pid for connector in connectors}) == 2
        numbers = compared.to_pandas()
        assert numbers.loc["the change lasts"].tolist() == [
            "commit",
            "finish_merge",
            "finish_merge",
        ]
        assert numbers.loc["rows stored"].tolist() == ["D 2, I 2"] * 3
        assert numbers.loc["written"].tolist() == ["none reported"] * 3
        assert numbers.loc["fragments"].tolist()[1] == numbers.loc["fragments"].tolist()[2]
        assert 'row_id row("version" bigint, "position" bigint)' in str(compared).replace(
            "\n  ", " "
        )
        tables = [table[0] for table in engine.tables()]
        assert tables == ["memory.default.accounts"]
    finally:
        for connector in connectors:
            connector.close()


def test_a_refusal_of_a_plugin_is_shown_in_its_words(engine: rm.Engine, tmp_path: Path) -> None:
    error = '{"message": "This connector does not support modifying table rows", "code": "NOT_SUPPORTED"}'
    refusing = add_fake(
        engine, "old", tmp_path / "a", fail=f'{{"call": "row_change_paradigm", "error": {error}}}'
    )
    new = add_fake(engine, "new", tmp_path / "b")
    try:
        compared = engine.compare(MERGE, by="catalogs", catalogs=["old", "new"])
        assert compared.sentence == "new changes 3 rows; old fails."
        assert "This connector does not support modifying table rows" in str(compared)
        assert [table[0] for table in engine.tables()] == ["memory.default.accounts"]
        # The target itself may be the one that refuses the statement.
        engine.run("CREATE TABLE old.default.accounts AS SELECT * FROM accounts")
        sql = MERGE.replace("INTO accounts", "INTO old.default.accounts")
        compared = engine.compare(sql, by="catalogs", catalogs=["old", "memory"])
        assert compared.sentence == "memory changes 3 rows; old fails."
        assert engine.table("old.default.accounts").num_rows == 3
    finally:
        refusing.close()
        new.close()


def test_a_process_that_ends_fails_its_side_and_leaves_no_copy(
    engine: rm.Engine, tmp_path: Path
) -> None:
    ending = add_fake(engine, "ending", tmp_path / "a", exit="begin_merge")
    try:
        compared = engine.compare(MERGE, by="catalogs", catalogs=["ending", "memory"])
        assert compared.sentence == "memory changes 3 rows; ending fails."
        assert "out of coffee" in str(compared)
        assert [table[0] for table in engine.tables()] == ["memory.default.accounts"]
    finally:
        ending.close()


def test_the_error_of_an_ended_process_waits_for_no_other_process(
    engine: rm.Engine, tmp_path: Path
) -> None:
    ending = add_fake(engine, "ending", tmp_path / "a", exit="store_merged_rows")
    try:
        engine.run("CREATE TABLE ending.default.accounts AS SELECT * FROM accounts")
        with pytest.raises(rm.RowMergeError) as caught:
            engine.run(MERGE.replace("INTO accounts", "INTO ending.default.accounts"))
        assert caught.value.code == "HOST_TERMINATED"
        assert caught.value.result.recording.record.rows is None
        assert ending.hosts.running == []
    finally:
        ending.close()


# -- real plugins


@pytest.fixture(scope="module")
def plugins(trino_home: Path, java_home: Path, tmp_path_factory: Any) -> Iterator[dict[str, Any]]:
    def plugin(name: str, **properties: Any) -> rm.TrinoConnector:
        return rm.TrinoConnector(
            name,
            plugin=trino_home / "plugin" / name,
            trino=trino_home / "lib",
            properties={"bootstrap.quiet": True, **properties} if properties else {},
            java=java_home,
            java_options=["-Xmx700m"],
        )

    def iceberg() -> rm.TrinoConnector:
        return plugin(
            "iceberg",
            **{
                "iceberg.catalog.type": "TESTING_FILE_METASTORE",
                "hive.metastore.catalog.dir": "local:///warehouse",
                "fs.local.enabled": True,
                "local.location": str(tmp_path_factory.mktemp("warehouse")),
            },
        )

    connectors: dict[str, Any] = {
        "ice": iceberg(),
        "other": iceberg(),
        "mem": plugin("memory"),
        "ours": rm.IcebergConnector(tmp_path_factory.mktemp("ours")),
    }
    yield connectors
    for connector in connectors.values():
        connector.close()


def test_icebergs_plugin_is_compared_with_our_store_and_a_second_process(
    engine: rm.Engine, plugins: dict[str, Any]
) -> None:
    for name, connector in plugins.items():
        engine.add_catalog(name, connector)
    engine.run(
        "CREATE TABLE ours.default.accounts (id bigint NOT NULL, name varchar)"
        " WITH (partitioning = ARRAY['bucket(id, 2)'])"
    )
    engine.run("INSERT INTO ours.default.accounts SELECT * FROM accounts")
    sql = MERGE.replace("INTO accounts", "INTO ours.default.accounts")
    compared = engine.compare(sql, by="catalogs", catalogs=["ours", "ice", "other", "mem"])
    assert compared.sentence == "ours, ice and other leave the same 3 rows; mem fails."
    assert "This connector does not support" in str(compared)
    fragments = compared.fragments_to_pandas()
    files = fragments[fragments.side == "ice"].json.str.contains('"path"')
    assert files.all()
    assert len(files) == (fragments.side == "other").sum()
    assert not any(
        "partitioning" in remark for side in compared.sides[:3] for remark in side.remarks
    )
    # The plugin created a schema for the copies, and none remains.
    for name in ("ice", "other"):
        schemas = engine.run(f"SHOW SCHEMAS FROM {name}").table.column(0).to_pylist()
        assert not [schema for schema in schemas if schema.startswith("rowmerge")]
    assert engine.table("ours.default.accounts").num_rows == 3
    engine.run("DROP TABLE ours.default.accounts")


def test_two_versions_of_a_plugin(
    engine: rm.Engine, plugins: dict[str, Any], java_home: Path
) -> None:
    """ROWMERGE_TRINO_OTHER_HOME names a folder like ROWMERGE_TRINO_HOME, of another version."""
    home = os.environ.get("ROWMERGE_TRINO_OTHER_HOME", "")
    if not Path(home, "plugin", "memory").is_dir():
        pytest.skip("ROWMERGE_TRINO_OTHER_HOME names no folder with lib/ and plugin/memory")
    old = rm.TrinoConnector(
        "memory",
        plugin=Path(home, "plugin", "memory"),
        trino=Path(home, "lib"),
        java=java_home,
        java_options=["-Xmx700m"],
    )
    engine.add_catalog("old", old)
    engine.add_catalog("ice", plugins["ice"])
    try:
        compared = engine.compare(MERGE, by="catalogs", catalogs=["old", "ice"])
        assert compared.sentence == "ice changes 3 rows; old fails."
        assert re.search("old: NOT_SUPPORTED: This connector does not support", str(compared))
        assert [t[0] for t in engine.tables() if "rowmerge" in t[0]] == []
    finally:
        old.close()
