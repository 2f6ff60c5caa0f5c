from __future__ import annotations

import subprocess
import sys
import threading
import time

import pandas as pd
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.notebook.completion.lookups import PATIENCE, Lookups
from rowmerge_nb.spi.procedures import Procedure, ProcedureArgument
from rowmerge_nb.spi.types import INTEGER, VARCHAR
from rowmerge_nb.sql.analyzer.expressions import calls
from rowmerge_nb.sql.functions.all_functions import FORMS

MERGE = "%%merge\nMERGE INTO accounts a USING updates u ON a.id = u.id "


@pytest.fixture
def tab(notebook):
    """Press Tab at the position of the bar; return the offers, and the text that each would replace."""
    from IPython.core.completer import provisionalcompleter

    def press(cell):
        at = cell.index("|")
        text = cell[:at] + cell[at + 1 :]
        with provisionalcompleter():
            found = list(notebook.shell.Completer.completions(text, at))
        press.kinds = {completion.text: completion.type for completion in found}
        press.replaced = {text[completion.start : completion.end] for completion in found}
        return [completion.text for completion in found]

    notebook.shell.user_ns.update(
        frame=pd.DataFrame({"id": [1], "zeta": [2]}), limit=3, name="accounts", prices={"a": 1}
    )
    return press


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("%%merge --d|", ["--delete-pushdown", "--duplicates", "--dialect", "--dry-run"]),
        ("%%merge --explain s|", ["svg"]),
        ("%%merge -o x --paradigm |", ["CHANGE_ONLY_UPDATED_COLUMNS", "DELETE_ROW_AND_INSERT_ROW"]),
        ("%%merge --show jo|", ["journeys"]),
        ("%%merge --show plan,di|", ["diff"]),
        ("%%merge --show=plan,p|", ["pages"]),
        ("%%merge --era=cu|", ["current"]),
        ("%%merge --verify |", ["duckdb", "postgresql"]),
        ("%%merge ta|", []),
        ("%%merge -o nam|", []),
        ("%merge ta|", ["tables"]),
        ("%merge doctor --pre|", ["--predict", "--prepare"]),
        ("%merge con|", ["connect"]),
        ("%merge connect s|", ["sqlite"]),
        ("%merge connect sqlite shop.db |", ["path=", "create="]),
        ("%merge connect sqlite shop.db create=true pa|", ["path="]),
        ("%merge connect icebreg |", []),
        ("%merge connect memory --p|", ["--password"]),
    ],
)
def test_options_and_their_values_are_offered_in_the_line_of_the_magic(tab, cell, offered):
    assert tab(cell) == offered


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("%%merge\nMER|", ["MERGE"]),
        ("%%merge\nmer|", ["merge"]),
        ("%%merge\nMERGE |", ["INTO"]),
        ("%%merge --dialect extended\nMERGE |", ["INTO", "WITH"]),
        ("%%merge --dialect extended\nMERGE WITH |", ["SCHEMA"]),
        ("%%merge --dialect extended\nmerge with schema e|", ["evolution"]),
        ("%%merge\nMERGE INTO accounts |", ["AS", "USING"]),
        (f"{MERGE}WHEN |", ["MATCHED", "NOT"]),
        (f"{MERGE}WHEN MATCHED |", ["AND", "THEN"]),
        (f"{MERGE}WHEN MATCHED THEN |", ["DELETE", "UPDATE"]),
        (f"{MERGE}WHEN NOT MATCHED THEN |", ["INSERT"]),
        (f"{MERGE}WHEN MATCHED THEN D|", ["DELETE"]),
        (
            MERGE.replace("%%merge", "%%merge --dialect extended") + "WHEN MATCHED THEN D|",
            ["DELETE", "DO"],
        ),
        ("%%merge\nSELECT 1; DROP |", ["BRANCH", "SCHEMA", "TABLE", "VIEW"]),
        ("%%merge\nSELECT a FROM t ORDER |", ["BY"]),
        ("%%merge\nselect * from accounts wh|", ["where"]),
        ("%%merge\nSELECT * FROM accounts TABLES|", []),
        ("%%merge\nSHOW RO|", []),
        ("%%merge\nSHOW SE|", []),
    ],
)
def test_keywords_are_those_that_the_grammar_allows_there_in_the_case_in_which_they_are_begun(
    tab, cell, offered
):
    assert [word for word in tab(cell) if word != "FUNCTION"] == offered


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("%%merge\nMERGE INTO |", ["accounts", "updates", '"2nd"', "default", "memory"]),
        ("%%merge\nMERGE INTO AC|", ["accounts"]),
        ("%%merge\nMERGE INTO memory.|", ["default"]),
        ("%%merge\nMERGE INTO memory.default.up|", ["updates"]),
        ('%%merge\nMERGE INTO "memory" . default.up|', ["updates"]),
        ("%%merge\nMERGE INTO accounts a USING f|", ["frame"]),
        ("%%merge\nDROP TABLE IF EXISTS up|", ["updates"]),
        ('%%merge\nDROP TABLE "2|', ['"2nd"']),
        ("%%merge\nWITH w AS (SELECT 1 AS a) SELECT * FROM w|", ["w"]),
        ("%merge SELECT * FROM AC|", ["accounts"]),
        ("x = 1\nfound = %merge --era current SELECT * FROM ac|", ["accounts"]),
        (
            "%%merge\nMERGE INTO accounts a USING updates u ON a.id = u.id WHEN MATCHED THEN DELETE; DROP TABLE u|",
            ["updates"],
        ),
        ("%merge undo ac|", ["accounts"]),
    ],
)
def test_tables_are_offered_where_a_table_fits_and_dataframes_only_where_one_is_read(
    tab, cell, offered
):
    assert tab(cell) == offered


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        (
            "%%merge\nMERGE INTO accounts a USING updates u ON a.|",
            ["id", "amount", '"Odd name"', '"order"'],
        ),
        ("%%merge\nMERGE INTO accounts a USING updates u ON A.AM|", ["amount"]),
        ("%%merge\nMERGE INTO accounts USING updates ON accounts.am|", ["amount"]),
        (f"{MERGE}WHEN MATCHED AND u.|", ["id", "delta"]),
        (f"{MERGE}WHEN MATCHED THEN UPDATE SET |", ["id", "amount", '"Odd name"', '"order"']),
        (f"{MERGE}WHEN MATCHED THEN UPDATE SET amount = u.de|", ["delta"]),
        (f"{MERGE}WHEN MATCHED THEN UPDATE SET amount = u.delta, od|", ['"Odd name"']),
        (f"{MERGE}WHEN NOT MATCHED THEN INSERT (id, am|", ["amount"]),
        (f"{MERGE}WHEN NOT MATCHED THEN INSERT (id) VALUES (a.|", []),
        (f"{MERGE}WHEN NOT MATCHED THEN INSERT (id) VALUES (u.|", ["id", "delta"]),
        ("%%merge\nINSERT INTO accounts (id, or|", ['"order"']),
        (
            "%%merge --dialect extended\nINSERT INTO accounts SELECT * FROM updates RETURNING id, am|",
            ["amount"],
        ),
        (
            "%%merge --dialect extended\nINSERT INTO accounts SELECT * FROM updates RETU|",
            ["RETURNING"],
        ),
        ("%%merge --dialect extended\nCREATE TABLE t (a bigint D|", ["DEFAULT"]),
        ("%%merge --dialect extended\nCREATE TABLE t (a bigint DEFAULT 1 N|", ["NOT"]),
        (
            "%%merge --dialect extended\nALTER TABLE accounts ALTER COLUMN id SET D|",
            ["DATA", "DEFAULT"],
        ),
        ("%%merge\nALTER TABLE accounts ALTER COLUMN id SET D|", ["DATA", "DEFAULT"]),
        ("%%merge\nCOMMENT ON COL|", ["COLUMN"]),
        ("%%merge\nSHOW S|", ["SCHEMAS"]),
        ("%%merge\nSHOW CREATE |", ["SCHEMA", "TABLE", "VIEW"]),
        ("%%merge\nDESCRIBE I|", ["INPUT"]),
        ("%%merge\nUPDATE accounts SET am|", ["amount"]),
        ("%%merge\nSELECT a.am| FROM accounts a", ["amount"]),
        (
            "%%merge\nSELECT a.| FROM accounts a; SELECT 1",
            ["id", "amount", '"Odd name"', '"order"'],
        ),
        ("%%merge\nSELECT a.am|ount FROM accounts a", ["amount"]),
        ('%%merge\nSELECT a."o| FROM accounts a', ['"Odd name"', '"order"']),
        ('%%merge\nSELECT * FROM accounts a WHERE a."o|', ['"Odd name"', '"order"']),
        ('%%merge\nSELECT a."o|" FROM accounts a', ['"Odd name', '"order']),
        ("%%merge\nSELECT frame.z| FROM frame", ["zeta"]),
        ("%%merge\nSELECT u.| FROM (SELECT id AS key, delta FROM updates) u", ["key", "delta"]),
        ("%%merge\nSELECT u.| FROM (SELECT * FROM updates) u", ["id", "delta"]),
        ("%%merge\nSELECT v.| FROM (VALUES (1, 2)) v (one, two)", ["one", "two"]),
        ("%%merge\nWITH w AS (SELECT delta AS d FROM updates) SELECT w.| FROM w", ["d"]),
        ("%%merge\nWITH RECURSIVE w AS (SELECT * FROM w) SELECT w.| FROM w", []),
        ("%%merge\nSELECT * FROM accounts a JOIN updates u USING (de|", ["delta"]),
        ("%%merge\nSELECT * FROM accounts a JOIN (SELECT a.| FROM updates u) x", []),
        (
            "%%merge\nDELETE FROM accounts WHERE id IN (SELECT accounts.am| FROM updates)",
            ["amount"],
        ),
        (
            "%%merge\nSELECT a.| FROM {{ name }} x, accounts a WHERE x = '{{ name }}'",
            ["id", "amount", '"Odd name"', '"order"'],
        ),
    ],
)
def test_columns_are_those_of_what_can_be_named_there(tab, cell, offered):
    assert tab(cell) == offered


def test_an_expression_is_offered_columns_then_keywords_then_functions_with_their_types_and_signatures(
    tab,
):
    offered = tab("%%merge\nSELECT * FROM accounts WHERE a|")
    assert offered == ["amount", "accounts", "array", *offered[3:]]
    assert "abs" in offered[3:]
    assert (tab.kinds["amount"], tab.kinds["accounts"], tab.kinds["array"]) == (
        "double",
        "table",
        "keyword",
    )
    assert tab.kinds["abs"].startswith("abs(tinyint) -> tinyint, ")
    assert tab("%%merge\nSELECT coal|") == ["coalesce"]
    assert tab("%%merge\nSELECT CAST(1 AS big|") == ["bigint"]


def test_functions_offered_are_those_known_to_the_analyzer():
    assert set(FORMS) == calls._WITHOUT_SCHEMA


@pytest.mark.parametrize(
    "cell",
    [
        "%%merge\nSELECT lim|",
        "%%merge\nSELECT '|lim",
        "%%merge\nSELECT 'lim|'",
        "%%merge\nSELECT 1 -- lim|",
        "%%merge\nSELECT /* lim|",
        "%%merge\nSELECT prices.ke|",
        "%%merge\nSELECT 1.|",
        "%%merge\nMERGE INTO pri|",
        "%%merge\nnonsense pri|",
        "%%merge\nSELECT {{ name }} + pri|",
        "%merge SELECT * FROM pri|",
        "%%merge lim|",
    ],
)
def test_no_names_of_python_are_offered_in_sql(tab, cell):
    assert tab(cell) == []


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("%%merge\nSELECT {{ lim|", "limit"),
        ("%%merge\nSELECT '{{ lim|' FROM t", "limit"),
        ('%%merge\nSELECT "{{ nam|', "name"),
        ("%%merge\nSELECT {{ prices.ke| }}", "keys"),
        ("%merge SELECT {{ limit + lim|", "limit"),
    ],
)
def test_names_of_python_are_offered_in_braces_and_no_columns(tab, cell, offered):
    found = tab(cell)
    assert offered in found
    assert "amount" not in found


@pytest.mark.not_quick
def test_other_cells_are_not_completed(tab):
    assert "limit" in tab("lim|")
    assert tab("%%merged\nMERGE INTO acc|") != ["accounts"]
    assert tab("MERGE INTO acc|") != ["accounts"]


def test_the_option_engine_decides_whose_tables_are_offered(notebook, tab):
    class Other:
        def names(self, *_):
            return [("elsewhere", "table")]

        def columns(self, *_):
            return None

    notebook.shell.user_ns["other"] = Other()
    assert tab("%%merge --engine other\nMERGE INTO |") == ["elsewhere"]


def test_completion_creates_no_engine(notebook, tab, monkeypatch):
    from rowmerge_nb import default

    monkeypatch.setattr(default, "_engines", [])
    notebook.run("%config MergeMagic.engine = ''")
    assert tab("%%merge\nMERGE INTO acc|") == []
    assert default._engines == []


def test_an_unresponsive_catalog_is_asked_once_and_not_awaited(notebook, tab):
    asked, answer = [], threading.Event()

    class Slow:
        def names(self, *parts):
            asked.append(parts)
            answer.wait(10)
            return [("late", "table")]

        def columns(self, *_):
            raise ValueError

    notebook.shell.user_ns["fake"] = Slow()
    began = time.perf_counter()
    assert tab("%%merge\nMERGE INTO |") == []
    assert tab("%%merge\nMERGE INTO |") == []
    assert time.perf_counter() - began < 10 * PATIENCE
    assert asked == [()]
    answer.set()
    assert tab("%%merge\nMERGE INTO |") == ["late"]
    assert tab("%%merge\nSELECT t.| FROM t") == []


def test_a_late_answer_is_available_at_the_next_tab():
    lookups, answer = Lookups(), threading.Event()
    lookups.begin()
    assert lookups.ask("key", lambda: answer.wait(10) and "new", "none") == "none"
    waiting = lookups._asking["key"]
    answer.set()
    waiting.wait(10)
    lookups._until = 0.0
    assert lookups.ask("key", lambda: time.sleep(0.2) or "newer", "none") == "new"


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        (
            "%%merge\nCREATE TABLE t (a integer) WITH (|",
            [
                "bucket_count",
                "bucketed_by",
                "check_constraints",
                "paradigm",
                "partitioned_by",
                "primary_key",
            ],
        ),
        (
            "%%merge\nALTER TABLE t SET PROPERTIES bucket_count = 2, p|",
            ["paradigm", "partitioned_by", "primary_key"],
        ),
        (
            "%%merge\nCREATE TABLE t WITH (bucketed_by = ARRAY['a'], bucket_c|) AS SELECT 1 AS a",
            ["bucket_count"],
        ),
        ("%%merge\nCREATE TABLE lake.main.t (a integer) WITH (pri|", ["primary_key"]),
        ("%%merge\nCREATE TABLE nowhere.main.t (a integer) WITH (|", []),
        ("%%merge\nCALL |", ["lake"]),
        ("%%merge\nCALL lake.|", ["system"]),
        ("%%merge\nCALL lake.system.gr|", ["greet"]),
        ("%%merge\nCALL lake.system.greet(w|", ["who"]),
        ("%%merge\nCALL lake.system.greet(who => 'x', tim|", ["times"]),
        ("%%merge\nCALL lake.other.|", []),
    ],
)
def test_procedures_their_arguments_and_table_properties_are_those_of_the_catalog(
    notebook, tab, cell, offered
):
    class Lake(MemoryConnector):
        def get_procedures(self):
            arguments = (
                ProcedureArgument("who", VARCHAR),
                ProcedureArgument("times", INTEGER, required=False),
            )
            return [Procedure("system", "greet", arguments, lambda *_, **__: None)]

        def get_table_properties(self):
            return {"primary_key": "columns that identify a row"}

    engine = Engine()
    engine.add_catalog("lake", Lake())
    notebook.shell.user_ns["lakes"] = engine
    found = tab(cell.replace("%%merge", "%%merge --engine lakes"))
    # Arguments are values as well: words and functions that may begin one are not names of these.
    assert [
        name for name in found if tab.kinds[name] != "keyword" and "->" not in tab.kinds[name]
    ] == offered


IN_A_NEW_PROCESS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.completer import provisionalcompleter
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "rowmerge_nb")
text = "%%merge\\nMERGE INTO t USING s ON t.id = s.id AND ab"
with provisionalcompleter():
    found = [completion.text for completion in shell.Completer.completions(text, len(text))]
print(found, [name for name in ("pyspark", "pyarrow", "pandas", "jedi.api") if name in sys.modules])
"""


def test_the_first_tab_of_a_process_loads_nothing_heavy():
    told = subprocess.run(
        [sys.executable, "-c", IN_A_NEW_PROCESS], capture_output=True, text=True, check=True
    ).stdout
    assert told == "['abs'] []\n"


@pytest.mark.slow
def test_a_kernel_completes_a_cell(tmp_path):
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        client.execute_interactive("%load_ext rowmerge_nb\nlimit = 3", timeout=60)
        for code, matches, start in (
            (
                "%%merge\nMERGE INTO t USING s ON true WHEN MA",
                ["MATCHED"],
                len("%%merge\nMERGE INTO t USING s ON true WHEN "),
            ),
            ("%%merge\nSELECT lim", [], len("%%merge\nSELECT lim")),
            ("%%merge\nSELECT {{ lim", ["limit"], len("%%merge\nSELECT {{ ")),
        ):
            client.complete(code, len(code))
            content = client.get_shell_msg(timeout=30)["content"]
            assert (content["matches"], content["cursor_start"]) == (matches, start)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_functions_with_units_patterns_and_zones_are_those_of_the_analyzer() -> None:
    from rowmerge_nb.sql.analyzer.expressions.moment_calls import _MAKERS
    from rowmerge_nb.sql.functions.all_functions import MOMENTS
    from rowmerge_nb.sql.functions.overloads import overloads

    by_itself = {name for name in _MAKERS if not overloads(name) and not name.endswith("_nanos")}
    assert set(MOMENTS) == by_itself
