"""Catalogs by the names of their stores; no message, list or representation has a secret."""

from __future__ import annotations

import inspect
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, MemoryConnector
from rowmerge_nb.base.conninfo import masked, parameters, secrets_in
from rowmerge_nb.base.errors import AnalysisError, ConnectorError, RowMergeError, SetupError
from rowmerge_nb.connectors.factories import dsn_with_password
from rowmerge_nb.engine.catalog import store_registry
from rowmerge_nb.engine.catalog.connecting import ConnectionRequest
from rowmerge_nb.spi.factory import ConnectorFactory, ConnectorProperty, PropertyType

SECRET = "s3cret-pa55"
CLOSED_PORT = "127.0.0.1:1"


@pytest.fixture
def engine() -> Any:
    with Engine() as engine:
        yield engine


@pytest.fixture
def shop(monkeypatch):
    """A store of another package; `shop.calls` has the arguments of its factory."""
    shop = types.SimpleNamespace(calls=[], connector=MemoryConnector())

    def create(**properties: Any) -> Any:
        shop.calls.append(properties)
        if properties.get("text") == "broken":
            raise ValueError(f"no connection with {properties['pin']}")
        return shop.connector

    factory = ConnectorFactory(
        "shop",
        "a shop",
        create,
        {
            "folder": ConnectorProperty("its folder", PropertyType.PATH),
            "text": ConnectorProperty("any text"),
            "number": ConnectorProperty("a number", PropertyType.INTEGER),
            "flag": ConnectorProperty("a flag", PropertyType.BOOLEAN),
            "texts": ConnectorProperty("texts", PropertyType.TEXTS),
            "paths": ConnectorProperty("paths", PropertyType.PATHS),
            "table": ConnectorProperty("a table", PropertyType.TABLE),
            "pin": ConnectorProperty("the pin", secret=True),
        },
        "folder",
        {"shop": "text"},
    )
    monkeypatch.setitem(store_registry.OWN_STORES, "shop", "shop_module:FACTORY")
    monkeypatch.setitem(sys.modules, "shop_module", types.SimpleNamespace(FACTORY=factory))
    return shop


def test_the_stores_of_the_package_are_connected_by_their_names(engine, tmp_path):
    engine.connect("memory", name="m")
    engine.connect("sqlite", tmp_path / "shop.db", name="lite", create=True)
    engine.connect("iceberg", str(tmp_path / "warehouse"), name="ICE", create=True)
    engine.connect("hive-acid", tmp_path / "lake", create=True)
    assert [(each.name, each.store, each.location) for each in engine.catalogs()] == [
        ("hive_acid", "hive_acid", str(tmp_path / "lake")),
        ("ice", "iceberg", str(tmp_path / "warehouse")),
        ("lite", "sqlite", str(tmp_path / "shop.db")),
        ("m", "memory", ""),
        ("memory", "memory", ""),
    ]
    assert ("default", "schema") in engine.names("ice")
    # create=true changes nothing where the store exists.
    engine.connect("sqlite", tmp_path / "shop.db", name="lite")
    assert len(engine.catalogs()) == 5


def test_an_identical_connection_changes_nothing_and_another_one_is_an_error(engine, tmp_path):
    first = engine.connect("memory", name="m", keep_versions=2)
    assert engine.connect("memory", name="M", keep_versions=2) is first
    with pytest.raises(
        ConnectorError, match=r"already exists: memory\. Choose another name, such as m2"
    ):
        engine.connect("memory", name="m", keep_versions=3)
    engine.add_catalog("mine", MemoryConnector())
    with pytest.raises(ConnectorError) as caught:
        engine.connect("memory", name="mine")
    assert caught.value.code == "ALREADY_EXISTS"
    with pytest.raises(ConnectorError, match="'memory' already"):
        engine.connect("memory")


@pytest.mark.parametrize(
    ("store", "arguments", "message", "hint"),
    [
        ("icebreg", {}, "There is no store 'icebreg'", "Did you mean 'iceberg'?"),
        ("x", {}, "There is no store 'x'", "There are: memory, hive_acid, iceberg, delta, sqlite"),
        ("jdbc:postgresql://h/d", {}, "There is no store", "beginning: postgresql://h/d"),
        (5, {}, "store = 5 is of type int", "the name of a store"),
        ("", {}, "'' names no store", "engine.connect('iceberg', 'warehouse/', create=True, name='ice')"),
        ("sqlite", {}, "needs its property 'path'", "Its properties are: path, create."),
        ("sqlite", {"path": "a", "crate": True}, "has no property 'crate'", "'create'?"),
        ("sqlite", {"path": 5}, "path = 5 is of type int", "Give a path"),
        ("sqlite", {"path": "a", "create": "yes"}, "create = 'yes' is of type str", "true or false"),
        ("memory", {"keep_versions": True}, "keep_versions = True is", "a whole number"),
        ("memory", {"location": "x"}, "'x' follows the store memory", "keep_versions"),
        ("memory", {"name": " "}, "name = ' ' is not possible", "the name of a catalog"),
        ("memory", {"location": 7}, "location = 7 is of type int", "Give a path"),
        ("iceberg", {"location": "w", "warehouse": "w"}, "'warehouse' .* is given twice", "once"),
        ("iceberg", {"warehouse": "w", "properties": {"a": 1}}, "a value of properties", "texts"),
        ("sqlite", {"path": "no/such.db"}, "There is no file", "create=true"),
        ("iceberg", {"warehouse": "no"}, "There is no folder", "create=true"),
        ("hive_acid", {"directory": "no"}, "There is no folder", "create=true"),
        ("delta", {"directory": "no"}, "There is no folder", "create=true"),
        ("postgresql", {"dsn": "x", "password": 5}, "password is of type int", "Give a text"),
    ],
)  # fmt: skip
def test_a_wrong_connection_is_refused_with_its_values_and_the_next_step(
    engine, store, arguments, message, hint
):
    with pytest.raises(RowMergeError, match=message) as caught:
        engine.connect(store, **arguments)
    assert hint in (caught.value.hint or "")
    assert [each.name for each in engine.catalogs()] == ["memory"]


@pytest.mark.parametrize(
    ("store", "name"), [("iceberg", "catalog.sqlite"), ("hive_acid", "metastore.sqlite")]
)
def test_a_folder_without_a_catalog_stays_as_it_is(engine, tmp_path, store, name):
    folder = tmp_path / "a b"
    table = folder / "warehouse" / "t"
    table.mkdir(parents=True)
    with pytest.raises(ConnectorError, match=f"has no {name}, which lists .* create=true"):
        engine.connect(store, table)
    (folder / name).touch()
    with pytest.raises(ConnectorError, match=f"Connect the folder that has it: '{folder}'"):
        engine.connect(store, table)
    assert not list(table.iterdir())


def test_a_closed_engine_connects_nothing():
    engine = Engine()
    engine.close()
    with pytest.raises(RowMergeError, match="The engine is closed"):
        engine.connect("memory", name="m")


def test_values_reach_the_factory_with_paths_of_the_folder_of_the_file(engine, shop, tmp_path):
    properties = {
        "folder": "data",
        "paths": ["a", "/b", "io.trino:trino-iceberg:483"],
        "texts": ["x"],
        "table": {"k": "v"},
        "number": 3,
        "flag": False,
    }
    request = ConnectionRequest("shop", None, "s", properties, base=tmp_path, origin="x.toml")
    connection = engine.open_connection(request)
    assert shop.calls == [
        {
            **properties,
            "folder": tmp_path / "data",
            "paths": [tmp_path / "a", Path("/b"), "io.trino:trino-iceberg:483"],
        }
    ]
    assert (connection.location, connection.origin) == (str(tmp_path / "data"), "x.toml")


def test_an_address_implies_the_store_and_the_property(engine, shop):
    engine.connect("", "shop://here")
    assert shop.calls == [{"text": "shop://here"}]
    assert engine.catalogs()[-1].location == "shop://here"


def test_environment_variables_are_read_and_one_that_is_not_set_is_named(engine, shop, monkeypatch):
    monkeypatch.setenv("SHOP_PIN", SECRET)
    engine.connect("shop", pin="${ENV:SHOP_PIN}", texts=["${ENV:SHOP_PIN}/x"])
    assert shop.calls == [{"pin": SECRET, "texts": [f"{SECRET}/x"]}]
    with pytest.raises(SetupError, match="'pin' uses the environment variable SHOP_PIM, which"):
        engine.connect("shop", name="other", pin="${ENV:SHOP_PIM}")


def test_a_store_that_does_not_answer_is_not_added_and_is_closed(engine, shop, monkeypatch):
    closed = []
    monkeypatch.setattr(shop.connector, "get_metadata", lambda handle: 1 / 0)
    monkeypatch.setattr(shop.connector, "close", lambda: closed.append(True))
    with pytest.raises(ConnectorError, match="could not be connected: ZeroDivisionError"):
        engine.connect("shop")
    assert closed == [True]
    assert [each.name for each in engine.catalogs()] == ["memory"]
    # Without the check, as for a project's file, it is added.
    engine.open_connection(ConnectionRequest("shop"), check=False)
    monkeypatch.undo()


def test_no_error_has_the_secret(engine, shop):
    with pytest.raises(ConnectorError) as caught:
        engine.connect("shop", text="broken", pin=SECRET)
    assert "no connection with ***" in str(caught.value)
    assert caught.value.__cause__ is None
    for dsn in (
        f"postgresql://ann:{SECRET}@{CLOSED_PORT}/shop",
        f"host=127.0.0.1 port=1 password={SECRET}",
        f"postgresql://ann@{CLOSED_PORT}/shop?password={SECRET}",
        f"postgresql://ann:{SECRET}@[::1/shop",
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.connect("postgresql", dsn)
        assert SECRET not in f"{caught.value!r} {caught.value} {caught.value.hint}"


def test_no_list_or_representation_has_the_secret(engine, shop):
    address = f"shop://ann:{SECRET}@here/x"
    request = ConnectionRequest("shop", address, "s", {"pin": SECRET})
    connection = engine.open_connection(request, check=False)
    assert connection.location == "shop://ann:***@here/x"
    assert SECRET not in repr([connection, *engine.catalogs()])
    with pytest.raises(ConnectorError) as caught:
        engine.connect("shop", name="s")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "display", "secrets"),
    [
        ("postgresql://ann:a:b@c@db/x", "postgresql://ann:***@db/x", {"a:b@c", "a:b"}),
        ("postgresql://db/x", "postgresql://db/x", set()),
        ("host=h Password = 'a b' x=1", "host=h Password = *** x=1", {"a b"}),
        ("s3.secret-access-key=K1 AS ice", "s3.secret-access-key=*** AS ice", {"K1"}),
        ("io.trino:trino-iceberg:483", "io.trino:trino-iceberg:483", set()),
    ],
)
def test_secrets_of_connection_strings_are_masked(text, display, secrets):
    assert masked(text) == display
    assert secrets_in(text) >= secrets - {"a:b"}
    assert not any(secret in masked(text) for secret in secrets_in(text))


@pytest.mark.parametrize("dsn", ["postgresql://a@h/d", "postgresql://a:x@h/d?y=1", "host=h", "host=h password=x"])  # fmt: skip
@pytest.mark.parametrize("password", ["p", "a b'c\\d", "ü&=%@/"])
def test_a_password_is_added_to_an_address(dsn, password):
    fields = parameters(dsn_with_password(dsn, password))
    assert fields["password"] == password
    assert fields["host"] == "h"


def test_a_catalog_that_could_not_be_connected_is_named_with_the_reason(engine):
    engine.note_unconnected("Ice", SetupError("pyiceberg is missing", hint="Install it."))
    (failed, _) = engine.catalogs()
    assert (failed.name, failed.problem) == ("ice", "pyiceberg is missing")
    for ask in (lambda: engine.columns("ice", "a", "t"), lambda: engine.run("USE ice.a")):
        with pytest.raises(AnalysisError, match="'ice' is not connected: pyiceberg is") as caught:
            ask()
        assert (caught.value.code, caught.value.hint) == ("CATALOG_NOT_FOUND", "Install it.")
    with pytest.raises(AnalysisError, match="'ice' is not connected"):
        engine.table_metadata("ice", "a", "t")
    engine.connect("memory", name="ice")
    assert ("default", "schema") in engine.names("ice")


def test_a_plugin_of_trino_is_connected_by_its_catalog_file(engine, tmp_path, monkeypatch):
    from rowmerge_nb.connectors.trino.trino_connector import TrinoConnector

    calls = []

    def from_catalog_file(path: Any, **arguments: Any) -> Any:
        calls.append((path, arguments))
        return MemoryConnector()

    monkeypatch.setattr(TrinoConnector, "from_catalog_file", from_catalog_file)
    engine.open_connection(
        ConnectionRequest(
            "trino",
            "etc/ice.properties",
            "t",
            {"plugin": "plugin/iceberg", "trino": "io.trino:trino-main:483", "processes": 1},
            base=tmp_path,
        )
    )
    ((path, arguments),) = calls
    assert path == tmp_path / "etc" / "ice.properties"
    assert arguments["plugin"] == [tmp_path / "plugin" / "iceberg"]
    assert (arguments["trino"], arguments["processes"]) == ("io.trino:trino-main:483", 1)
    assert set(arguments) <= set(inspect.signature(TrinoConnector).parameters)


@pytest.mark.server
def test_a_server_is_contacted_when_it_is_connected(engine, postgresql):
    connection = engine.connect("postgresql", postgresql, name="pg")
    assert connection.store == "postgresql"
    assert ("public", "schema") in engine.names("pg")
    # A password does no harm on a server that trusts everyone.
    engine.connect("postgresql", postgresql, name="other", password=SECRET)
    assert SECRET not in repr(engine.catalogs())
