"""A project's settings and catalogs, from pyproject.toml or rowmerge_nb.toml."""

from __future__ import annotations

import re
import warnings

import pytest

from rowmerge_nb import Engine, default
from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.notebook.magics import register, unregister
from rowmerge_nb.notebook.project_file import declared_catalogs, project_defaults

CATALOGS = """
[tool.rowmerge_nb.catalogs]
ice = { store = "iceberg", warehouse = "warehouse/", create = true }

[tool.rowmerge_nb.catalogs.s]
store = "sqlite"
path = "shop.db"
create = true
"""


@pytest.fixture(autouse=True)
def own_default(monkeypatch):
    """The default engine of only this test."""
    monkeypatch.setattr(default, "_engines", [])
    monkeypatch.setattr(default, "_sessions", [])
    monkeypatch.setattr(default, "_preparations", [])
    yield
    for engine in default._engines:
        engine.close()


def test_the_catalogs_of_the_file_are_those_of_the_default_engine(shell, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(CATALOGS)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    register(shell)
    assert default._engines == []
    connections = {each.name: each for each in default.default_engine().catalogs()}
    assert sorted(connections) == ["ice", "memory", "s"]
    # Paths are relative to the file, wherever the notebook is.
    assert connections["ice"].location == str(tmp_path / "warehouse")
    assert connections["s"].origin == str(tmp_path / "pyproject.toml")
    # An engine of the user has its own catalogs.
    with Engine() as engine:
        assert [each.name for each in engine.catalogs()] == ["memory"]


def test_an_engine_that_exists_gets_them_and_loading_again_changes_nothing(shell, tmp_path):
    engine = default.default_engine()
    (tmp_path / "pyproject.toml").write_text(CATALOGS)
    register(shell)
    first = engine.catalogs()
    register(shell)
    assert [each.name for each in first] == ["ice", "memory", "s"]
    assert engine.catalogs() == first


def test_a_new_default_engine_has_them_again_until_the_extension_is_unloaded(shell, tmp_path):
    (tmp_path / "pyproject.toml").write_text(CATALOGS)
    register(shell)
    default.default_engine().close()
    assert len(default.default_engine().catalogs()) == 3
    unregister(shell)
    default.default_engine().close()
    assert len(default.default_engine().catalogs()) == 1


def test_the_own_file_has_precedence_and_has_the_same_tables(shell, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.rowmerge_nb]\nera = "current"\n')
    (tmp_path / "rowmerge_nb.toml").write_text(
        'max-rows = 5\n[catalogs]\nm = { store = "memory", keep_versions = 2 }\n'
    )
    assert project_defaults(tmp_path / "below")[1] == tmp_path / "rowmerge_nb.toml"
    magic = register(shell)
    assert (magic.era, magic.max_rows) == ("documents", 5)
    assert [each.name for each in default.default_engine().catalogs()] == ["m", "memory"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("catalogs = 5", "catalogs is no table"),
        ("[catalogs]\nice = 'iceberg'", "It is not a table with a key 'store'"),
        ("[catalogs.ice]\nwarehouse = 'w'", "It is not a table with a key 'store'"),
        ("[catalogs.ice]\nstore = ''", "Its key 'store' is empty"),
        ("[catalogs.ice]\nstore = 'icebreg'", "There is no store 'icebreg'. Did you mean 'iceberg"),
        ("[catalogs.ice]\nstore = 'iceberg'\nwarehose = 'w'", "Its properties are: warehouse, cat"),
        ("[catalogs.pg]\nstore = 'postgresql'", "needs its property 'dsn'"),
        ("[catalog.ice]\nstore = 'iceberg'", "has no option 'catalog'. Options are: catalogs, "),
    ],
)
def test_a_wrong_table_is_a_warning_when_the_extension_is_loaded(shell, tmp_path, text, message):
    (tmp_path / "rowmerge_nb.toml").write_text(text)
    with pytest.warns(UserWarning, match=re.escape(message)) as caught:
        register(shell)
    (warning,) = [str(each.message) for each in caught]
    assert "rowmerge_nb.toml" in warning


def test_a_catalog_with_a_mistake_fails_only_where_it_is_named(shell, tmp_path):
    (tmp_path / "rowmerge_nb.toml").write_text(
        "[catalogs]\nbad = { store = 'iceberg', warehose = 'w' }\n"
        "gone = { store = 'sqlite', path = 'gone.db' }\nm = { store = 'memory' }\n"
    )
    with pytest.warns(UserWarning, match="'bad' of .* is not connected"):
        register(shell)
    with pytest.warns(UserWarning, match="'gone' of .* is not connected: NOT_FOUND: There is no"):
        engine = default.default_engine()
    with pytest.raises(AnalysisError, match="'bad' is not connected: The store iceberg has no"):
        engine.columns("bad", "a", "t")
    with pytest.raises(AnalysisError, match="'gone' is not connected: There is no file"):
        engine.columns("gone", "a", "t")
    assert ("default", "schema") in engine.names("m")


def test_a_store_that_does_not_answer_costs_no_time_at_the_start(shell, tmp_path):
    (tmp_path / "rowmerge_nb.toml").write_text(
        "[catalogs]\npg = { store = 'postgresql', dsn = 'postgresql://ann@127.0.0.1:1/shop' }\n"
    )
    register(shell)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [each.name for each in default.default_engine().catalogs()] == ["memory", "pg"]


def test_a_file_names_no_code(tmp_path):
    entry = {"store": "os:system", "warehouse": "w"}
    declared = declared_catalogs({"ice": entry}, tmp_path / "rowmerge_nb.toml")
    assert declared.requests == ()
    assert "There is no store 'os:system'" in declared.errors["ice"].message


def test_a_password_of_the_environment_is_in_no_warning(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "s3cret-pa55")
    (tmp_path / "rowmerge_nb.toml").write_text(
        "[catalogs.pg]\nstore = 'postgresql'\ndsn = 'postgresql://ann@127.0.0.1:1/shop'\n"
        "password = '${ENV:SHOP_PASSWORD}'\n"
        "[catalogs.other]\nstore = 'postgresql'\ndsn = 'host=x password=${ENV:NO_SUCH}'\n"
    )
    register(shell)
    with pytest.warns(UserWarning, match="uses the environment variable NO_SUCH") as caught:
        connections = default.default_engine().catalogs()
    assert "s3cret" not in repr([str(each.message) for each in caught]) + repr(connections)
