"""Statements on Trino's memory plugin: its features, and its refusals in its own words."""

from __future__ import annotations

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError


@pytest.fixture(scope="module")
def memory(spark, trino_home, java_home):
    connector = rm.TrinoConnector(
        "memory",
        plugin=trino_home / "plugin" / "memory",
        trino=trino_home / "lib",
        java=java_home,
        java_options=["-Xmx400m"],
    )
    engine = rm.Engine(spark=spark)
    engine.add_catalog("mem", connector)
    yield engine
    connector.close()


def rows(engine, query):
    frame = engine.run(query).to_pandas()
    return [tuple(row) for row in frame.itertuples(index=False)]


@pytest.mark.spark
def test_tables_are_created_with_rows_and_altered(memory):
    memory.run(
        "CREATE TABLE mem.default.t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(id, name)"
    )
    try:
        for alteration in (
            "ADD COLUMN price double",
            "RENAME COLUMN name TO label",
            "RENAME TO mem.default.u",
        ):
            memory.run(f"ALTER TABLE mem.default.t {alteration}")
    finally:
        tables = [table for (table,) in rows(memory, "SHOW TABLES FROM mem.default")]
    memory.run("COMMENT ON TABLE mem.default.u IS 'in memory'")
    assert tables == ["u"]
    described = [row[:2] for row in rows(memory, "DESCRIBE mem.default.u")]
    assert described == [("id", "integer"), ("label", "varchar"), ("price", "double")]
    assert rows(memory, "SELECT id, label, price IS NULL FROM mem.default.u ORDER BY id") == [
        (1, "a", True),
        (2, "b", True),
    ]
    assert rows(memory, "SELECT id FROM mem.default.u WHERE label >= 'b'") == [(2,)]
    memory.run("TRUNCATE TABLE mem.default.u")
    assert rows(memory, "SELECT count(*) FROM mem.default.u") == [(0,)]
    memory.run("DROP TABLE mem.default.u")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("ALTER TABLE mem.default.r DROP COLUMN name", "does not support dropping columns"),
        (
            "ALTER TABLE mem.default.r ALTER COLUMN id SET DATA TYPE bigint",
            "does not support setting column types",
        ),
        ("DELETE FROM mem.default.r WHERE id = 1", "does not support modifying table rows"),
        ("SELECT * FROM mem.default.r FOR VERSION AS OF 1", "does not support versioned tables"),
    ],
)
def test_operations_that_it_lacks_are_refused_in_its_words(memory, statement, words):
    memory.run("CREATE TABLE mem.default.r (id integer, name varchar)")
    try:
        with pytest.raises(ConnectorError, match=f"This connector {words}") as caught:
            memory.run(statement, delete_pushdown=True)
        assert caught.value.code == "NOT_SUPPORTED"
    finally:
        memory.run("DROP TABLE mem.default.r")
