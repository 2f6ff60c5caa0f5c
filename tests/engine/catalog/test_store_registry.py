"""Stores of other packages, offered through entry points."""

from __future__ import annotations

import importlib
import shutil
import sys

import pytest

from rowmerge_nb import Engine
from rowmerge_nb.base.errors import RowMergeError, SetupError
from rowmerge_nb.engine.catalog.store_registry import OWN_STORES, store_factory, store_names

MODULE = """
from rowmerge_nb.spi.factory import ConnectorFactory, ConnectorProperty


def create(file):
    from rowmerge_nb import MemoryConnector

    return MemoryConnector(schemas=("default", file))


FACTORY = ConnectorFactory("{store}", "a shop", create, {{"file": ConnectorProperty("its file")}}, "file")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package with an entry point on the path, as pip does."""

    def put(package: str, store: str, target: str = "FACTORY", text: str = MODULE) -> None:
        folder = tmp_path / package
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{package}_module.py").write_text(text.format(store=store))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[rowmerge_nb.connectors]\n{store} = {package}_module:{target}\n"
        )
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()

    before = set(sys.modules)
    yield put
    for name in set(sys.modules) - before:
        if name.endswith("_module"):
            del sys.modules[name]


def test_a_store_of_another_package_is_connected_as_our_own_are(install):
    assert "parquet_shop" not in store_names()
    install("shoppkg", "parquet_shop")
    assert store_names() == [*OWN_STORES, "parquet_shop"]
    with Engine() as engine:
        connection = engine.connect("parquet_shop", "till", name="shop")
        assert (connection.store, connection.location) == ("parquet_shop", "till")
        assert ("till", "schema") in engine.names("shop")
        assert engine.table_properties("shop", "till", "t")
        with pytest.raises(RowMergeError, match=r"no property 'till'\. Its properties are: file"):
            engine.connect("parquet_shop", till="x")


def test_two_packages_with_one_store_are_named(install):
    install("onepkg", "wares")
    install("twopkg", "wares")
    with pytest.raises(SetupError, match=r"Several packages offer the store 'wares': ") as caught:
        store_factory("wares")
    assert "onepkg (onepkg_module:FACTORY)" in caught.value.message
    assert "twopkg (twopkg_module:FACTORY)" in caught.value.message
    assert caught.value.hint == "Uninstall all of them but one."


def test_another_package_does_not_take_the_name_of_a_store_of_ours_unnoticed(install):
    install("evilpkg", "iceberg")
    with pytest.raises(SetupError, match="evilpkg"):
        store_factory("iceberg")


@pytest.mark.parametrize(
    ("target", "text", "message"),
    [
        ("FACTORY", "import no_such_library", "cannot be loaded: ModuleNotFoundError"),
        ("MISSING", MODULE, "cannot be loaded: AttributeError"),
        ("create", MODULE, "is of type function"),
    ],
)
def test_a_broken_package_is_named_and_hides_no_other(install, target, text, message):
    install("brokenpkg", "broken", target, text)
    with pytest.raises(SetupError, match=message) as caught:
        store_factory("broken")
    assert "brokenpkg" in caught.value.message
    with Engine() as engine:
        with pytest.raises(RowMergeError, match="'nope://x' names no store"):
            engine.connect("", "nope://x")
        engine.connect("memory", name="m")


def test_a_package_that_is_on_the_path_twice_offers_its_stores_once(install, tmp_path):
    install("shoppkg", "wares")
    copy = shutil.copytree(tmp_path / "shoppkg", tmp_path / "copy")
    sys.path.insert(0, str(copy))
    try:
        importlib.invalidate_caches()
        assert store_factory("wares").name == "wares"
    finally:
        sys.path.remove(str(copy))
