"""ALTER TABLE, COMMENT and CREATE TABLE AS through a plugin, on a host without Java."""

from __future__ import annotations

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from tests.connectors.trino.fake_connector import FakeTrinoConnector


@pytest.fixture
def engine(tmp_path):
    connector = FakeTrinoConnector(tmp_path, properties={"log": str(tmp_path / "log")})
    engine = rm.Engine()
    engine.add_catalog("shop", connector)
    engine.run("CREATE TABLE shop.default.accounts (id bigint, name varchar)")
    yield engine
    connector.close()


def described(engine, table="accounts"):
    rows = engine.run(f"DESCRIBE shop.default.{table}").to_pandas()
    return rows.to_numpy().tolist()


def calls(tmp_path):
    return (tmp_path / "log").read_text().split()


def test_each_alteration_is_a_call_of_the_plugin(engine, tmp_path):
    for alteration in (
        "ADD COLUMN price double COMMENT 'in euros' FIRST",
        "ADD COLUMN code varchar DEFAULT 'x' AFTER price",
        "RENAME COLUMN name TO label",
        "DROP COLUMN id",
        "ALTER COLUMN label SET DEFAULT 'new'",
        "SET PROPERTIES format = 'ORC'",
        "RENAME TO shop.default.clients",
    ):
        engine.run(f"ALTER TABLE shop.default.accounts {alteration}", dialect="extended")
    engine.run("COMMENT ON TABLE shop.default.clients IS 'who buys'")
    engine.run("COMMENT ON COLUMN shop.default.clients.label IS 'as printed'")

    assert described(engine, "clients") == [
        ["price", "double", "", "in euros"],
        ["code", "varchar", "", ""],
        ["label", "varchar", "", "as printed"],
    ]
    shown = engine.run("SHOW CREATE TABLE shop.default.clients").explained
    assert "label varchar DEFAULT 'new'" in shown
    assert "COMMENT 'who buys'" in shown
    assert "format = 'ORC'" in shown
    expected = [
        *("add_column", "rename_column", "drop_column", "set_default_value"),
        *("set_table_properties", "rename_table", "set_table_comment", "set_column_comment"),
    ]
    assert [call for call in dict.fromkeys(calls(tmp_path)) if call in expected] == expected


def test_what_the_plugin_does_not_offer_is_refused_in_its_words(engine):
    with pytest.raises(ConnectorError, match="does not support set_column_type") as caught:
        engine.run("ALTER TABLE shop.default.accounts ALTER COLUMN id SET DATA TYPE double")
    assert caught.value.code == "NOT_SUPPORTED"
    assert caught.value.changed is False
    assert described(engine)[0][:2] == ["id", "bigint"]


def test_an_unknown_property_is_an_error_at_its_name(engine):
    with pytest.raises(AnalysisError, match="no property colour") as caught:
        engine.run(
            "ALTER TABLE shop.default.accounts SET PROPERTIES format = 'ORC', colour = 'red'"
        )
    assert caught.value.code == "INVALID_TABLE_PROPERTY"
    assert caught.value.column == 66
