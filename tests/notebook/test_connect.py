"""%merge connect: its words, its output, and passwords that are not kept."""

from __future__ import annotations

import getpass
import sqlite3

import pytest

from rowmerge_nb import Engine
from rowmerge_nb.engine.catalog.connecting import Connection
from rowmerge_nb.notebook.connect_command import connected_bundle, parse_connect
from rowmerge_nb.notebook.options_page import page
from tests.notebook.conftest import Notebook

SECRET = "s3cret-pa55"
ADDRESS = f"postgresql://ann:{SECRET}@127.0.0.1:1/shop"
BARE = "postgresql://ann@127.0.0.1:1/shop"


def test_a_plugin_of_trino_is_connected_with_a_word_on_the_era():
    text = connected_bundle(Connection("ice", "trino", "ice.properties"))["text/plain"]
    assert text.endswith('sends 5 and 4: %config MergeMagic.era = "current".')


@pytest.fixture
def cells(shell):
    """A shell whose default engine of cells is real, without Spark."""
    shell.run_line_magic("load_ext", "rowmerge_nb")
    with Engine() as engine:
        shell.user_ns["real"] = engine
        shell.run_line_magic("config", "MergeMagic.engine = 'real'")
        yield Notebook(shell, engine)


def test_a_store_is_connected_and_listed(cells, tmp_path):
    cell = cells.run("%merge connect iceberg warehouse/ create=true AS ice")
    assert cell.error is None
    assert cell.text == (
        f"Catalog ice is connected: iceberg {tmp_path / 'warehouse'}."
        " Its tables are ice.SCHEMA.TABLE, for example ice.default.orders; SHOW SCHEMAS FROM ice"
        " lists the schemas."
    )
    assert cells.run("%merge connect iceberg warehouse/ create=true AS ice").error is None
    cells.run("%merge connect sqlite 'my shop.db' create=true as s")
    cells.run("%merge connect memory keep_versions=2 AS m")
    cells.run("%merge connect hive_acid lake create=true")
    listing = cells.run("%merge connect").text
    assert [line.split()[:2] for line in listing.splitlines()[2:-1]] == [
        ["hive_acid", "hive_acid"],
        ["ice", "iceberg"],
        ["m", "memory"],
        ["memory", "memory"],
        ["s", "sqlite"],
    ]
    assert "my shop.db" in listing
    assert "5 catalogs." in listing
    assert "the stores are memory, hive_acid, iceberg, delta, sqlite, postgresql, trino" in listing


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("icebreg w AS i", "There is no store 'icebreg'", "Did you mean 'iceberg'?"),
        ("iceberg w AS", "AS must be at the end", "[AS NAME]"),
        ("iceberg w AS a b", "AS must be at the end", "[AS NAME]"),
        ("AS ice", "The store is missing", "%merge connect STORE LOCATION"),
        ("warehouse=w", "The store is missing", "%merge connect STORE LOCATION"),
        ("iceberg a b", "'b' is a second location", 'quotes: "a b"'),
        ("iceberg 'a", "cannot be read: No closing quotation", "%merge connect STORE"),
        ("sqlite x.db create=maybe", "create = 'maybe' is of type str", "true or false"),
        ("sqlite x.db create=true create=true", "'create' occurs twice", "Remove one"),
        ("memory keep_versions=many", "keep_versions = 'many' is of type str", "whole number"),
        ("iceberg w warehose=w", "no property 'warehose'", "Did you mean 'warehouse'?"),
        ("memory AS memory", "Catalog 'memory' already exists", "memory2"),
        ("memory AS m --dry-run", "--dry-run and %merge connect cannot be", "Omit --dry-run."),
        ("memory AS m --password", "The store memory takes no password", "Omit --password."),
        ("--password", "%merge connect without a store cannot be", "Omit --password."),
        ("memory --engine real x", "'x' follows the options", "Write options last."),
    ],
)
def test_a_wrong_line_is_refused_with_the_next_step(cells, line, message, hint):
    failure = cells.run(f"%merge connect {line}").failure
    assert message in failure.message
    assert hint in failure.hint
    assert [each.name for each in cells.engine.catalogs()] == ["memory"]


def test_the_option_belongs_to_the_command(cells):
    failure = cells.run("%merge --password SELECT 1").failure
    assert "--password is an option of %merge connect STORE LOCATION" in failure.message
    assert "%merge connect" in cells.run("%merge connect --help").text
    assert "%merge connect" in page()


def test_properties_of_a_table_are_written_with_a_dot():
    line = parse_connect("iceberg w properties.s3.endpoint=http://x properties.a=b=c --engine e")
    assert line.properties == (
        ("properties", "s3.endpoint", "http://x"),
        ("properties", "a", "b=c"),
    )
    assert line.options == {"engine": "e"}


def test_an_address_needs_no_store(cells):
    failure = cells.run(f"%merge connect {BARE} AS pg").failure
    assert failure.code == "JDBC_ERROR"
    assert "host=127.0.0.1 port=1 dbname=shop cannot be reached" in failure.message


def test_a_password_is_prompted_for(cells, monkeypatch):
    prompts = []
    monkeypatch.setattr(getpass, "getpass", lambda prompt: prompts.append(prompt) or SECRET)
    requests = []
    monkeypatch.setattr(cells.engine, "open_connection", requests.append)
    cells.run(f"%merge connect {BARE} AS pg --password")
    assert prompts == [f"Password for {BARE}: "]
    assert requests[0].properties == {"password": SECRET}
    assert SECRET not in repr(requests[0])
    monkeypatch.setattr(getpass, "getpass", lambda prompt: "")
    assert cells.run(f"%merge connect {BARE} --password").failure.message == "The password is empty"

    def nobody(prompt):
        raise RuntimeError("no input")

    monkeypatch.setattr(getpass, "getpass", nobody)
    failure = cells.run(f"%merge connect {BARE} --password").failure
    assert failure.message == "The password cannot be typed here: no input"
    assert "PGPASSWORD" in failure.hint


@pytest.fixture
def remembering(tmp_path, monkeypatch):
    """A shell that keeps its history in a file, like a kernel."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.hist_file = str(tmp_path / "history.sqlite")
    shell = InteractiveShell.instance(config=config, colors="nocolor")
    shell.run_line_magic("load_ext", "rowmerge_nb")
    with Engine() as engine:
        shell.user_ns["real"] = engine
        shell.run_line_magic("config", "MergeMagic.engine = 'real'")
        yield shell
    shell.history_manager.end_session()
    shell.restore_sys_module_state()
    InteractiveShell.clear_instance()


@pytest.mark.parametrize(
    "line",
    [
        f"{ADDRESS} AS pg",
        f"postgresql dsn='host=127.0.0.1 port=1 password={SECRET}' AS pg",
        f"postgresql {BARE} password={SECRET}",
        f"postgresql {BARE} pasword={SECRET}",
        f"iceberg w properties.s3.secret-access-key={SECRET} x y",
    ],
)
def test_a_password_in_a_line_stays_neither_in_the_output_nor_in_the_history(
    remembering, tmp_path, line, capsys
):
    shell = remembering
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        shell.run_cell("x = 1", store_history=True)
        shell.run_cell(f"%merge connect {line}", store_history=True)
        shell.run_cell("_merge = _i", store_history=True)
    shown = captured.stdout + captured.stderr + repr([o.data for o in captured.outputs])
    assert "The cell has a password. IPython's history shows it as ***." in shown
    assert SECRET not in shown
    assert not [name for name, value in shell.user_ns.items() if SECRET in repr(value)]
    history = shell.history_manager
    assert SECRET not in repr([history.input_hist_raw, history.input_hist_parsed])
    history.writeout_cache()
    with sqlite3.connect(tmp_path / "history.sqlite") as file:
        rows = file.execute("SELECT source, source_raw FROM history ORDER BY line").fetchall()
    file.close()
    assert [raw for _, raw in rows][::2] == ["x = 1", "_merge = _i"]
    assert "***" in rows[1][0]
    assert "***" in rows[1][1]
    assert SECRET not in repr(rows)


def test_a_line_without_a_password_changes_no_history(remembering):
    remembering.run_cell(f"%merge connect {BARE} password=${{ENV:NO_SUCH}}", store_history=True)
    assert remembering.history_manager.input_hist_raw[-1].endswith("${ENV:NO_SUCH}")


def test_a_front_end_that_replaces_cells_gets_the_cell_without_the_password(
    remembering, monkeypatch
):
    cells = []
    monkeypatch.setattr(remembering, "kernel", object(), raising=False)
    monkeypatch.setattr(
        remembering, "set_next_input", lambda text, replace: cells.append((text, replace))
    )
    remembering.run_cell(f"x = 1\n%merge connect {ADDRESS} AS pg", store_history=True)
    assert cells == [(f"x = 1\n%merge connect {BARE} AS pg --password", True)]
    # A terminal has one line, which stays unchanged.
    monkeypatch.undo()
    monkeypatch.setattr(remembering, "set_next_input", lambda *_, **__: cells.append(()))
    remembering.run_cell(f"%merge connect {ADDRESS} AS pg", store_history=True)
    assert len(cells) == 1


def test_the_variable_whose_engine_has_the_catalog_is_named(cells):
    other = Engine()
    other.connect("memory", name="mine")
    cells.shell.user_ns["other"] = other
    for sql in ("SELECT * FROM mine.default.t", "DELETE FROM mine.default.t"):
        failure = cells.run(f"%merge {sql}").failure
        assert failure.hint == (
            "The engine in the variable other has it: write %%merge --engine other."
        )
    assert "There are: memory" in cells.run("%merge SELECT * FROM your.default.t").failure.hint


def test_a_value_of_the_notebook_that_is_not_a_frame_is_answered_with_a_frame(cells):
    cells.shell.user_ns["rows"] = [{"id": 1}]
    cells.run("old = %merge SELECT 1 AS id")
    failure = cells.run("%merge SELECT * FROM rows").failure
    assert failure.hint.endswith("rows = pd.DataFrame(rows)")
    failure = cells.run("%%merge\nSELECT * FROM Old").failure
    assert failure.hint.endswith("old = old.to_pandas()")
