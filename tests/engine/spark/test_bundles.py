from __future__ import annotations

import importlib
import io
import sys
import zipfile

import pytest

from rowmerge_nb.connectors.memory.reading import MemoryPageSourceProvider
from rowmerge_nb.engine.spark.bundles import PACKAGE, bundle, pickled


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Modules of a user: a connector's, one that it imports within a function, and one that is never imported."""
    (tmp_path / "orders_store").mkdir()
    (tmp_path / "orders_store" / "__init__.py").write_text(
        "class Provider:\n    def read(self):\n        import orders_rows\n"
    )
    (tmp_path / "orders_store" / "words.json").write_text("{}")
    (tmp_path / "orders_rows.py").write_text("import json, numpy\n")
    (tmp_path / "orders_other.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    for name in ("orders_store", "orders_rows"):
        sys.modules.pop(name, None)


def names(content: bytes) -> list[str]:
    return sorted(zipfile.ZipFile(io.BytesIO(content)).namelist())


def test_a_pickle_names_the_modules_of_the_user_that_it_refers_to(modules):
    provider = importlib.import_module("orders_store").Provider()
    content, spoken = pickled({"provider": provider, "ours": MemoryPageSourceProvider()})
    assert content
    assert spoken == {"orders_store"}


def test_a_module_travels_with_what_it_imports_and_nothing_that_is_installed(modules):
    made = bundle(["orders_store"])
    assert made.modules == ("orders_rows", "orders_store")
    assert names(made.content()) == [
        "orders_rows.py",
        "orders_store/__init__.py",
        "orders_store/words.json",
    ]


def test_the_same_files_make_the_same_archive_and_changed_files_another(modules):
    made = bundle(["orders_store"])
    before, state = made.content(), made.state()
    assert bundle(["orders_store"]).content() == before
    (modules / "orders_rows.py").write_text("import json\n")
    assert made.content() != before
    assert made.state() != state


def test_the_package_travels_whole():
    inside = names(bundle([PACKAGE]).content())
    assert {
        "rowmerge_nb/__init__.py",
        "rowmerge_nb/engine/tasks/merge_passes.py",
        "rowmerge_nb/testing/faults.py",
    } <= set(inside)
    assert not [name for name in inside if name.endswith(".pyc")]
