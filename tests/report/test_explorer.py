"""The explorer: its state matches the trace, and in a browser it is operated by mouse, by keys and from Python alike."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.base.words import MINUS
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.api.what_if import variants_of
from rowmerge_nb.plan.rules import RuleSettings
from rowmerge_nb.report.explorer.explorer_file import explorer_page, saved_explorer
from rowmerge_nb.report.explorer.explorer_state import MOST_ROWS, explorer_state
from rowmerge_nb.report.explorer.otherwise import otherwise
from rowmerge_nb.report.explorer.widget import Explorer
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import INTEGER
from rowmerge_nb.testing.faults import Fault, FaultyConnector
from rowmerge_nb.trace.raised import CodeFrame, Raised, RaisedFrom
from rowmerge_nb.trace.saved.traces import load_trace, save_trace
from tests.report.building import merge_trace
from tests.report.explorer_browser import needs_browser, seen
from tests.trace.parts import with_parts

pytestmark = [pytest.mark.spark, pytest.mark.local_inserts]

ROWS = """VALUES (VARCHAR 'Aaron', 5, VARCHAR 'Antioch'), ('Bill', 7, 'Buena'), ('Carol', 3, 'Cambridge'), ('Dave', 11, 'Devon'),
    ('Ed', NULL, 'Etherville'), ('Gus', 4, 'Gilroy'), ('Joe', 12, 'Jamestown')"""
MERGE = """MERGE INTO accounts t USING (VALUES ('Aaron', 6, 'Arches'), ('Bill', 9, 'Berkeley'), ('Carol', 2, 'Centreville'),
    ('Ed', 8, 'Etherville'), ('gus', 3, 'Gilroy'), ('Dave ', NULL, 'Devon'), (NULL, 4, 'Nix')) s (customer, purchases, address)
ON t.customer = s.customer
WHEN MATCHED AND s.address = 'Berkeley' THEN DELETE
WHEN MATCHED AND s.purchases > t.purchases THEN UPDATE SET purchases = s.purchases + t.purchases, address = s.address
WHEN MATCHED AND (s.address <> t.address OR t.address IS NULL) THEN UPDATE SET address = s.address
WHEN NOT MATCHED AND s.purchases > 0 THEN INSERT VALUES (s.customer, s.purchases, s.address)"""


@pytest.fixture(scope="module")
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark, dialect="extended")
    engine.run(
        f"CREATE TABLE accounts WITH (partitioned_by = ARRAY['address']) AS SELECT * FROM ({ROWS}) AS v (customer, purchases, address)"
    )
    return engine


@pytest.fixture(scope="module")
def result(engine: Engine) -> Result:
    return engine.run(MERGE, rehearse=True)


@pytest.fixture(scope="module")
def page(engine: Engine) -> str:
    # Its own memory table: the last step of a committed statement shows the new version.
    engine.run(
        f"CREATE TABLE kept WITH (partitioned_by = ARRAY['address']) AS SELECT * FROM ({ROWS}) AS v (customer, purchases, address)"
    )
    trace = engine.run(MERGE.replace("INTO accounts", "INTO kept")).trace
    return explorer_page(trace, variants=variants_of(trace))


def legend_of(state: dict[str, Any], key: str) -> list[list[str]]:
    """Return the content beneath the page of a step; beneath two pages, of the latter."""
    names = next(step["legend"] for step in state["steps"] if step["key"] == key)
    pairs: list[list[str]] = state["legends"][names[-1][1]]
    return pairs


# -- the state


def test_the_state_has_every_joined_row_with_its_reasons(result: Result) -> None:
    state = explorer_state(result.trace)
    assert [(row["name"], row["fate"], row["clause"]) for row in state["rows"]] == [
        ("Aaron", "UPDATE", 1),
        ("Bill", "DELETE", 0),
        ("Carol", "UPDATE", 2),
        ("Ed", "none", -1),
        ("gus", "INSERT", 3),
        ("Dave ", "none", -1),
        (None, "INSERT", 3),
    ]
    assert state["untouched"] == 3
    assert [mark[0] for mark in state["rows"][3]["marks"]] == ["f", "?", "f", "–"]
    [_, unknown, false] = state["rows"][3]["verdicts"]
    assert unknown["condition"]["values"] == [
        ["s", "purchases", "8"],
        ["t", "purchases", None],
    ]
    assert [part["answer"] for part in false["condition"]["terms"]] == ["false", "false"]
    assert json.loads(json.dumps(state)) == state
    assert len(json.dumps(state)) < 200_000


def test_pages_and_writers_are_those_of_the_trace(result: Result) -> None:
    state, pages = explorer_state(result.trace), result.trace.samples.pages
    assert pages is not None
    assert len(state["before"]["rows"]) == pages.before.num_rows
    assert len(state["after"]["rows"]) == pages.after.num_rows
    assert [channel["number"] for channel in state["before"]["channels"]][:4] == [
        "0",
        "1",
        "2",
        "3.0",
    ]
    for half in state["after"]["rows"]:
        assert half["letter"] in state["rows"][half["of"]]["becomes"]
    stored = sum(sum(writer.rows.values()) for writer in result.trace.writers)
    assert (
        sum(len(writer["page"]) for writer in state["writers"])
        == stored
        == len(state["after"]["rows"])
    )


def test_steps_are_those_that_the_statement_has(engine: Engine, result: Result) -> None:
    def steps(statement: str, **options: Any) -> list[str]:
        return [
            step["name"]
            for step in explorer_state(engine.run(statement, rehearse=True, **options).trace)[
                "steps"
            ]
        ]

    names = [step["name"] for step in explorer_state(result.trace)["steps"]]
    assert names == [
        "read",
        "join",
        "CASE",
        "distinct",
        "transform_page",
        "exchange",
        "sinks",
        "finish_merge",
        "rollback",
    ]
    assert steps("UPDATE accounts SET purchases = 0 WHERE purchases > 5") == ["read", *names[4:]]
    assert steps("DELETE FROM accounts WHERE purchases > 5") == ["read", *names[5:]]
    assert steps(MERGE, era="current") == names


@pytest.mark.parametrize("era", ["documents", "current"])
def test_a_row_has_a_word_at_every_step(engine: Engine, era: str) -> None:
    state = explorer_state(engine.run(MERGE, rehearse=True, era=era).trace)
    of_page = {row["of"]: row["cells"] for row in state["before"]["rows"]}
    marked = [channel["name"] for channel in state["before"]["channels"]].index("is_distinct")
    for index, row in enumerate(state["rows"]):
        word, says = row["distinct"]
        assert word == (
            f"is_distinct {of_page[index][marked]}" if row["target"] else "does not count"
        )
        assert ("more than once" in says) == (word == "is_distinct 0")
        assert (row["finish"][0] == "nothing of it") == (not row["becomes"])
        assert all(str(writer) in row["finish"][1] for writer in row["writers"])


@pytest.mark.parametrize(
    ("statement", "options", "said"),
    [
        ("SELECT 1", {}, "nothing to show for this SELECT"),
        (MERGE, {"dry_run": True}, "nothing to show for this MERGE"),
        (MERGE, {"trace": "off", "rehearse": True}, "no rows with the values of both sides"),
        (
            "DELETE FROM accounts WHERE purchases > 5",
            {"flow": "updatable", "rehearse": True},
            "the flow 'updatable'",
        ),
    ],
)
def test_an_unexplorable_statement_names_the_reason(
    engine: Engine, statement: str, options: dict[str, Any], said: str
) -> None:
    told = engine.run(statement, **options)
    for ask in (told.explore, lambda: told.save_html("never.html")):
        with pytest.raises(RowMergeError, match=said) as raised:
            ask()
        assert raised.value.code == "NOT_SUPPORTED"
    assert not Path("never.html").exists()


def failure(engine: Engine, statement: str) -> Result:
    with pytest.raises(RowMergeError) as failed:
        engine.run(statement)
    assert failed.value.result is not None
    return failed.value.result


TWICE = "MERGE INTO accounts t USING (VALUES 1, 1) s (n) ON t.customer = 'Bill' WHEN MATCHED THEN DELETE"


@pytest.mark.parametrize(
    ("statement", "steps", "said", "numbers"),
    [
        (TWICE, ["read", "join", "case", "distinct"], "matched by source rows 0 and 1", [0, 1]),
        (
            MERGE.replace("s.purchases + t", "s.purchases / (t.purchases - 5) + t"),
            ["read", "join", "case"],
            "t.purchases = 5",
            [],
        ),
        (
            "UPDATE accounts SET purchases = 1 / (purchases - 7)",
            ["read"],
            "accounts.purchases = 7",
            [],
        ),
    ],
)
def test_the_last_step_of_a_failed_statement_is_the_failed_one(
    engine: Engine, statement: str, steps: list[str], said: str, numbers: list[int]
) -> None:
    result = failure(engine, statement)
    state = explorer_state(result.trace)
    assert [step["key"] for step in state["steps"]] == steps
    says = state["steps"][-1]["says"]
    assert says.startswith("It failed here. line ")
    assert said.replace("t.purchases = 5", "purchases = 5") in says
    assert [row["number"] for row in state["rows"]] == numbers
    assert state["before"]["rows"] == state["after"]["rows"] == []
    assert state["absent"][0].startswith("No page is shown")
    assert [call["method"] for call in state["calls"]][-1] == "rollback"
    assert result.explore().step == steps[-1]


def test_an_error_counts_lines_as_the_cell_does(engine: Engine) -> None:
    result = failure(engine, TWICE.replace(" USING", "\nUSING"))
    assert result.trace.error is not None
    line, column = result.trace.error.line, result.trace.error.column
    assert line is not None
    for first, where in (
        (1, f"line {line}:{column}: "),
        (3, f"line {line + 2}:{column} of the cell: "),
    ):
        assert (
            f"It failed here. {where}"
            in result.explore(first_line=first).state["steps"][-1]["says"]
        )
    for wrong in (0, True, "2"):
        with pytest.raises(RowMergeError, match="first_line") as raised:
            result.explore(first_line=wrong)  # type: ignore[arg-type]
        assert raised.value.code == "INVALID_ARGUMENTS"
    assert not result.explore(predict=True).predict, "what failed has no outcome to guess"


@pytest.mark.parametrize(
    ("into", "using", "reads"),
    [
        ("accounts t", "changes AS s", "s.n > t.purchases"),
        ("accounts", "changes", "changes.n > accounts.purchases"),
        ('accounts "T t"', "(SELECT * FROM changes) q", 'q.n > "T t".purchases'),
    ],
)
def test_reasons_name_the_sides_as_the_statement_does(
    engine: Engine, into: str, using: str, reads: str
) -> None:
    engine.run("DROP TABLE IF EXISTS changes")
    engine.run("CREATE TABLE changes AS SELECT 'Aaron' AS customer, 6 AS n")
    source, target = (side.rpartition(".")[0] for side in reads.split(" > "))
    statement = (
        f"MERGE INTO {into} USING {using} ON {target}.customer = {source}.customer"
        f" WHEN MATCHED AND {reads} THEN DELETE"
    )
    [row] = engine.run(statement, rehearse=True).explore().state["rows"]
    names = [source, target.lower()]
    assert [value[0] for value in row["verdicts"][0]["condition"]["values"]] == names
    assert f"({names[0]}.n = 6, {names[1]}.purchases = 5)" in row["gist"]
    engine.run("DROP TABLE changes")


def test_a_failed_finish_call_leaves_rows_pages_and_the_call_to_be_seen(spark: Any) -> None:
    engine = Engine(spark=spark)
    memory = MemoryConnector()
    engine.add_catalog("f", FaultyConnector(memory, Fault("finish_merge")))
    memory.put(
        ConnectorTableMetadata(
            SchemaTableName("default", "t"),
            (ColumnMetadata("id", INTEGER), ColumnMetadata("n", INTEGER)),
        ),
        pa.table({"id": pa.array([1, 2], pa.int32()), "n": pa.array([10, 20], pa.int32())}),
    )
    result = failure(
        engine,
        "MERGE INTO f.default.t t USING (VALUES (1, 5)) s (id, n) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n",
    )
    state = explorer_state(result.trace)
    assert state["steps"][-1]["key"] == "finish"
    assert "the disk is full" in state["steps"][-1]["says"]
    assert [(row["source"], row["fate"]) for row in state["rows"]] == [(["1", "5"], "UPDATE")]
    assert state["after"]["rows"]
    assert [call["method"] for call in state["calls"] if call["error"]] == ["finish_merge"]
    assert state["absent"] == []


@needs_browser
@pytest.mark.parametrize(
    "statement", [TWICE, MERGE.replace("s.purchases + t", "s.purchases / (t.purchases - 5) + t")]
)
def test_a_failed_statement_in_the_browser(engine: Engine, tmp_path: Path, statement: str) -> None:
    told = seen(
        explorer_page(failure(engine, statement).trace),
        """
        told.failed = text('.rx-failed'); told.says = text('.rx-says.rm-err'); told.predict = all('[data-key=predict]').length;
        told.rows = all('.rx-row').length;
        await click('[data-key=tab-calls]'); told.calls = all('.rx-panel tbody tr').length;
        for (const step of all('.rx-steps button').map((one) => one.dataset.key)) await click(`[data-key="${step}"]`);
        await click('[data-key=whatif]'); told.whatif = text('.rx-body').includes('run it again');
        """,
        tmp_path,
    )
    assert told["failed"].endswith("\u00d7")
    assert "It failed here" in told["says"]
    assert told["rows"] == (2 if statement == TWICE else 0)
    assert (told["predict"], told["calls"] > 4, told["whatif"]) == (0, True, True)


@needs_browser
def test_an_error_of_a_connector_is_shown_with_its_causes_in_the_browser(
    spark: Any, tmp_path: Path
) -> None:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE t (id integer, n integer)")
    trace = failure(
        engine,
        "MERGE INTO t USING (VALUES (1, 5)) s (id, n) ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1 / (s.n - 5))",
    ).trace
    line = CodeFrame(
        "shop.py",
        34,
        "store",
        ((33, "def store(page):"), (34, "    return <b>page</b>.rows"), (35, "")),
    )
    cause = RaisedFrom("KeyError", "<i>rows</i>", (replace(line, line=33, function="looked_up"),))
    page = pa.RecordBatch.from_pydict({"id": [1, None], "<u>n</u>": ["a", "b"]})
    raised = Raised(
        "store_merged_rows",
        "writer",
        0,
        1,
        "ValueError",
        "no such column",
        (line,),
        handle="Merge(t)",
        causes=(cause,),
        stack=("E: lost", "    at shop.Sink.finish(Sink.java:9)"),
    )
    told = seen(
        explorer_page(
            with_parts(
                trace,
                error={
                    "raised": (
                        replace(raised, page=page, rows=2),
                        replace(raised, method="abort", causes=(), stack=()),
                    )
                },
            )
        ),
        """
        told.calls = all('.rx-raised h4').map((one) => one.textContent); told.what = all('.rx-raised .rm-err').map((one) => one.textContent);
        told.code = text('.rx-raised pre'); told.marked = all('.rx-raised pre b').map((one) => one.textContent);
        told.stack = all('.rx-raised details > *').map((one) => one.textContent);
        told.cells = all('.rx-raised td').map((one) => one.textContent); told.handle = text('.rx-raised code'); told.markup = all('.rx-raised u, .rx-raised td b').length;
        """,
        tmp_path,
    )
    assert told == {
        "calls": ["store_merged_rows, call 1 of writer 0", "abort, call 1 of writer 0"],
        "what": [
            "ValueError: no such column",
            ">",
            "Raised from KeyError: <i>rows</i>",
            "ValueError: no such column",
            ">",
        ],
        "code": "  33  def store(page):\n> 34      return <b>page</b>.rows\n  35  ",
        "marked": [">", "    return <b>page</b>.rows"] * 2,
        "stack": ["The whole stack: 2 lines", "E: lost\n    at shop.Sink.finish(Sink.java:9)"],
        "cells": ["1", "a", "NULL", "b"],
        "handle": "Merge(t)",
        "markup": 0,
    }


def test_the_first_of_many_rows_are_shown_and_the_limit_is_stated(spark: Any) -> None:
    engine = Engine(spark=spark, rule_settings=RuleSettings())
    engine.run("CREATE TABLE t AS SELECT n AS id, n AS v FROM UNNEST(sequence(1, 100)) AS u (n)")
    state = explorer_state(
        engine.run(
            "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 0"
        ).trace
    )
    assert len(state["rows"]) == len(state["before"]["rows"]) == MOST_ROWS
    assert state["sample"] == "30 of 100 rows: the first that the trace holds"


# -- the widget and the file


def test_the_widget_can_be_set_and_watched_and_refuses_what_is_not_there(result: Result) -> None:
    widget = result.explore()
    assert isinstance(widget, Explorer)
    assert (widget.row, widget.step, widget.clause) == (0, "case", None)
    told: list[Any] = []
    widget.observe(lambda change: told.append(change.new), "row")
    widget.row, widget.step, widget.clause = 3, "transform", 1
    assert told == [3]
    for name, wrong, said in (
        ("row", 7, "a row from 0 to 6"),
        ("row", -2, "-1 for none"),
        ("step", "tea", "one of read, join"),
        ("clause", 9, "None for all"),
        ("row", "x", "a row from 0 to 6"),
        ("row", None, "-1 for none"),
        ("row", True, "-1 for none"),
        ("step", 3, "one of read, join"),
        ("clause", "x", "None for all"),
        ("clause", [1], "None for all"),
        ("paradigm", 1, "one of CHANGE_ONLY_UPDATED_COLUMNS"),
        ("era", None, "one of documents"),
        ("duplicates", ["trino"], "one of trino"),
        ("statement", 5, "the text of a statement"),
    ):
        with pytest.raises(RowMergeError, match=said) as raised:
            setattr(widget, name, wrong)
        assert raised.value.code == "INVALID_ARGUMENTS"
    assert (widget.row, widget.step, widget.clause) == (3, "transform", 1)


def test_the_report_is_shown_without_widgets(result: Result) -> None:
    data, _ = result.explore()._repr_mimebundle_()
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert "Row journeys" in data["text/html"]


def test_the_file_is_its_owners_and_errors_name_the_next_step(
    result: Result, tmp_path: Path
) -> None:
    result.save_html(tmp_path / "merge.html")
    assert oct((tmp_path / "merge.html").stat().st_mode & 0o777) == "0o600"
    result.save_html(str(tmp_path / "merge.html"))
    for path in (tmp_path / "none" / "merge.html", tmp_path, "a\0b", 7):
        with pytest.raises(RowMergeError) as raised:
            result.save_html(path)  # type: ignore[arg-type]
        assert raised.value.code == "INVALID_ARGUMENTS"
        assert raised.value.hint


def test_the_file_begins_with_hidden_outcomes_on_request(
    result: Result, engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "predict.html"
    result.save_html(path, predict=True)
    text = path.read_text("utf-8")
    assert "predict: true" in text
    assert "Row journeys" not in text, "the report without scripts has the outcomes"
    failure(engine, TWICE).save_html(path, predict=True)
    assert "predict: false" in path.read_text("utf-8"), "what failed has no outcome to guess"
    with pytest.raises(RowMergeError, match="predict") as raised:
        result.save_html(path, predict="yes")  # type: ignore[arg-type]
    assert raised.value.code == "INVALID_ARGUMENTS"


def test_the_file_asks_nothing_of_anybody(page: str) -> None:
    assert "default-src 'none'" in page
    asked = re.findall(
        r"""(?:src|href|url\(|import\s*\(|fetch\()\s*=?\s*["']?(https?:|//|\.)[^"']*""", page
    )
    assert asked == []


def test_data_that_looks_like_script_stays_data(engine: Engine, tmp_path: Path) -> None:
    evil = "</script><script>document.title=1</script>"
    engine.run(
        f"""CREATE TABLE evil AS SELECT * FROM (VALUES (1, VARCHAR '{evil}'), (2, '<img src=x onerror=alert(1)>')) AS v (id, "<b>n</b>")"""
    )
    trace = engine.run(
        """MERGE INTO evil USING (VALUES (1, '<i>')) AS s (id, "<u>") ON evil.id = s.id WHEN MATCHED AND "<b>n</b>" <> '<script>' THEN UPDATE SET "<b>n</b>" = "<u>" """
    ).trace
    text = explorer_page(trace)
    state = text.partition('id="state">')[2].partition("</script>")[0]
    assert json.loads(state)["rows"][0]["target"] == [
        "1",
        evil[:39] + "…" if len(evil) > 40 else evil,
    ]
    assert text.count("<script") == 2


# -- in a browser


@needs_browser
def test_rows_steps_and_tabs_by_mouse(page: str, tmp_path: Path) -> None:
    told = seen(
        page,
        """
        told.start = [text('[aria-current=step]'), text('.rx-row[aria-selected=true] .rx-name')];
        await click('[data-key=row-3]');
        told.ed = [text('.rx-gist'), all('.rx-blamed').filter((one) => one.offsetParent).length, text('.rx-live')];
        await click('[data-key=step-transform]');
        told.transform = [text('.rx-moment small'), ...all('.rx-pages > div').map((one) => [one.querySelector('h5').textContent, one.querySelectorAll('tbody tr').length]), text('.rx-station-words[open] summary')];
        await click('[data-key=row-0]');
        told.split = [all('.rx-thread.rx-chosen').length, all('.rx-moment tr.rx-mine').length];
        await click('[data-key=tab-writers]');
        told.writers = all('.rx-panel .rx-verdict').length;
        await click('[data-key=tab-calls]');
        told.calls = all('.rx-panel tbody tr').length;
        await click('[data-key=tab-clauses]');
        await click('[data-key=clause-3]');
        told.dim = all('.rx-row.rx-dim').length;
        await click('[data-key=step-commit]');
        told.reader = [text('.rx-reader h4 small'), all('.rx-reader tbody tr').map((row) => row.textContent)];
        """,
        tmp_path,
    )
    assert told["start"] == ["CASE", "Aaron"]
    gist, blamed, live = told["ed"]
    assert gist == "Clause 1 is unknown: s.purchases > t.purchases, since t.purchases is NULL."
    assert blamed == 1
    assert live.startswith("row 3 Ed: Clause 1 is unknown")
    title, before, after, station = told["transform"]
    assert title == "Page before and after transform_page"
    # Each row beside its outcome: two lines if it is split, and one if it changes nothing.
    assert (before, after) == (["before: 7 rows", 9], ["after: 7 rows", 9])
    assert station.startswith("transform_page")
    assert told["split"][1] == 4, "an UPDATE is two rows, and the page before has room for both"
    assert told["split"][0] > 6
    assert told["writers"] >= 2
    assert told["calls"] > 8
    assert told["dim"] == 5
    assert told["reader"][0] == "the new version"
    assert told["reader"][1] == [
        "~Aaron11Archesclause 1 UPDATE",
        "−Bill7Buenaclause 0 DELETE",
        "~Carol3Centrevilleclause 2 UPDATE",
        "EdNULLEthervilleno clause fires",
        "+gus3Gilroyclause 3 INSERT",
        "+NULL4Nixclause 3 INSERT",
        "Dave11Devonno partner",
        "Gus4Gilroyno partner",
        "Joe12Jamestownno partner",
    ]


@needs_browser
def test_everything_by_keys(page: str, tmp_path: Path) -> None:
    told = seen(
        page,
        """
        await press('ArrowDown', '[data-key=row-0]');
        told.second = [document.activeElement.dataset.key, text('.rx-row[aria-selected=true] .rx-name')];
        await press('ArrowRight'); told.right = text('[aria-current=step]');
        await press('End'); told.last = document.activeElement.dataset.key;
        await press('Home'); told.first = document.activeElement.dataset.key;
        await press('End', '[aria-current=step]'); told.end = [text('[aria-current=step]'), document.activeElement.dataset.key];
        await press('ArrowLeft'); told.left = document.activeElement.dataset.key;
        await press('Home'); told.home = text('[aria-current=step]');
        await press('End', '[data-key=tab-row]'); told.tabs = document.activeElement.dataset.key;
        await press('Home'); told.tabs += ' ' + document.activeElement.dataset.key;
        await press('2'); told.clause = [text('[role=tab][aria-selected=true]'), all('.rx-dim').length];
        await press('Escape'); told.escape = [text('[role=tab][aria-selected=true]'), all('.rx-dim').length];
        await press('ArrowRight', '[role=tab][aria-selected=true]'); told.tab = text('[role=tab][aria-selected=true]');
        await press('p', '[data-key=row-1]'); told.play = text('[data-key=play]');
        await press('p', '[data-key=row-1]'); told.pause = text('[data-key=play]');
        told.tabbable = all('[role=option][tabindex="0"]').length;
        """,
        tmp_path,
    )
    assert told == {
        "second": ["row-1", "Bill"],
        "right": "distinct",
        "last": "row-6",
        "first": "row-0",
        "end": ["commit", "step-commit"],
        "left": "step-finish",
        "home": "read",
        "tabs": "tab-calls tab-row",
        "clause": ["Clauses", 6],
        "escape": ["Row 0", 0],
        "tab": "Clauses",
        "play": "Pause",
        "pause": "Play",
        "tabbable": 1,
    }


@needs_browser
def test_predict_hides_what_becomes_of_rows_until_all_are_chosen(page: str, tmp_path: Path) -> None:
    told = seen(
        page,
        """
        await click('[data-key=predict]');
        told.hidden = [all('.rx-rows .rm-op').length, text('.rx-out, .rm-out'), text('[data-key=predict]'), all('.rx-station').length];
        for (let row = 0; row < 7; row++) {
          const select = one(`[data-key=pick-${row}]`);
          select.value = row === 0 ? 'UPDATE' : row === 1 ? 'DELETE' : 'none';
          select.dispatchEvent(new Event('change', { bubbles: true }));
          await wait();
        }
        told.ready = text('[data-key=predict]');
        await click('[data-key=predict]');
        told.score = text('.rx-rows .rx-says');
        told.wrong = all('.rx-values em').map((one) => one.textContent.trim());
        told.colours = all('.rx-values em').map((one) => one.className);
        """,
        tmp_path,
    )
    badges, outcome, button, stations = told["hidden"]
    assert (badges, outcome, button) == (0, "What becomes of each row?", "7 to choose")
    assert stations == 4, "nothing beyond the join is drawn"
    assert told["ready"] == "Reveal"
    assert told["score"] == "4 of 7 right."
    right, wrong = "\u2713 right", "\u00d7 you chose none"
    assert told["wrong"] == [right, right, wrong, right, wrong, right, wrong]
    assert told["colours"] == ["rx-right" if one == right else "rx-wrong" for one in told["wrong"]]


@needs_browser
def test_predict_can_be_ended_and_keeps_steps_and_play_until_then(
    page: str, tmp_path: Path
) -> None:
    told = seen(
        page,
        """
        const off = () => ['play', 'on', 'step-commit'].map((key) => one(`[data-key=${key}]`).disabled);
        one('[data-key=predict]').focus();
        await click('[data-key=predict]');
        told.focus = document.activeElement.tagName;
        told.off = off();
        await press('ArrowRight', '[data-key=row-0]'); await press('p'); told.step = text('[aria-current=step]');
        await press('Escape'); told.escaped = [text('[data-key=predict]'), off(), document.activeElement.dataset.key];
        await click('[data-key=predict]');
        await click('[data-key=cancel]');
        told.cancelled = [text('[data-key=predict]'), all('select').length, all('.rx-row > .rm-op').length];
        """,
        tmp_path,
    )
    assert told == {
        "focus": "SELECT",
        "off": [True, True, True],
        "step": "join",
        "escaped": ["Predict", [False, False, False], "predict"],
        "cancelled": ["Predict", 0, 7],
    }


@needs_browser
def test_a_saved_explorer_guesses_first_and_has_the_theme_and_height_of_its_page(
    result: Result, tmp_path: Path
) -> None:
    widget = result.explore(predict=True)
    assert (widget.predict, widget.row, widget.step) == (True, -1, "join")
    _, bundle = saved_explorer({**widget.state, "choices": None}, predict=True)
    told = seen(
        f'<!doctype html><body style="color:#eee">{bundle["text/html"]}</body>',
        """
        const frame = one('iframe');
        for (let tries = 0; tries < 100 && !frame.contentDocument?.querySelector('.rx-row'); tries += 1) await wait();
        const page = frame.contentDocument;
        told.still = one('.rx-still').offsetHeight;
        told.theme = page.documentElement.getAttribute('theme');
        told.selects = page.querySelectorAll('.rx-row select').length;
        told.answers = page.querySelectorAll('.rx-rows .rm-op, .rx-switches').length;
        told.text = page.querySelector('.rx').textContent;
        for (let tries = 0; tries < 100 && frame.offsetHeight < page.body.scrollHeight; tries += 1) await wait();
        told.height = frame.offsetHeight >= page.body.scrollHeight;
        """,
        tmp_path,
        width=918,
    )
    text = told.pop("text")
    assert told == {"still": 0, "theme": "dark", "selects": 7, "answers": 0, "height": True}
    assert "updated" not in text
    assert "What becomes of each row?" in text


def test_predict_is_true_or_false(result: Result) -> None:
    with pytest.raises(RowMergeError, match="predict") as raised:
        result.explore(predict="yes")  # type: ignore[arg-type]
    assert raised.value.code == "INVALID_ARGUMENTS"


@needs_browser
def test_the_mark_of_a_clause_is_shown_and_ends_with_its_tab(page: str, tmp_path: Path) -> None:
    told = seen(
        page,
        """
        await click('[data-key=tab-clauses]'); await click('[data-key=clause-1]');
        told.said = text('.rx-rows .rx-other');
        one('[data-key=all-rows]').focus(); await click('[data-key=all-rows]');
        told.cleared = [all('.rx-dim').length, document.activeElement.dataset.key];
        await click('[data-key=clause-1]'); await click('[data-key=tab-calls]');
        told.left = all('.rx-dim, .rx-rows .rx-other').length;
        await click('[data-key=tab-clauses]');
        told.back = all('.rx-dim').length;
        told.keys = text('.rx-keys');
        """,
        tmp_path,
    )
    assert told["said"] == "Marked: the rows of clause 1. All rows"
    assert told["cleared"] == [0, "clause-1"]
    assert (told["left"], told["back"]) == (0, 0)
    assert told["keys"].startswith("Keys, after a click in here: ")


@needs_browser
@pytest.mark.parametrize("width", [620, 918, 1100])
def test_a_chosen_row_is_in_sight_and_at_full_width_nothing_is_cut(
    page: str, tmp_path: Path, width: int
) -> None:
    told = seen(
        page,
        """
        told.cut = [];
        for (const step of all('.rx-steps button').map((one) => one.dataset.key)) {
          await click(`[data-key="${step}"]`);
          for (const tab of ['clauses', 'row', 'calls'])  {
            await click(`[data-key=tab-${tab}]`);
            told.cut.push(...all('.rx-moment .rm-scroll, .rx-panel .rm-scroll, .rx-panel pre').filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `${step} ${tab} ${one.dataset.key}`));
          }
        }
        const strips = all('.rx-strip').map((one) => one.getBoundingClientRect());
        told.left = new Set(strips.map(({ left }) => Math.round(left))).size;
        told.lanes = all('.rx-label').map((one) => one.textContent).filter((one) => one.includes('\u2026'));
        // The last row at the bottom of a small window, of 560 pixels.
        await click('[data-key=step-case]');
        document.body.style.paddingBottom = '2000px';
        window.scrollBy(0, one('[data-key=row-6]').getBoundingClientRect().bottom - 560);
        await click('[data-key=row-6]');
        const visible = all('.rx-gist, .rx-why').filter((one) => one.offsetHeight).map((one) => one.getBoundingClientRect());
        const row = one('[data-key=row-6]').getBoundingClientRect();
        told.count = visible.length;
        told.sight = visible[0].top >= 0 && visible[0].bottom <= 800;
        told.beside = visible[0].left >= row.right || (visible[0].top >= row.top && visible[0].bottom <= row.bottom);
        """,
        tmp_path,
        width=width,
    )
    assert told["left"] == 1, "the letters of a clause stand beneath each other"
    assert told["lanes"] == []
    assert told["sight"], "the reason is in the window"
    assert told["beside"], "beside the row or in it"
    if width == 1100:
        assert told["cut"] == []


@needs_browser
def test_links_start_from_calls_and_stations_and_keep_the_focus(page: str, tmp_path: Path) -> None:
    told = seen(
        page,
        """
        await click('[data-key=row-0]');
        await click('[data-key=step-sinks]');
        const link = one('[data-key^=to-writer-]'); link.focus(); await click(`[data-key=${link.dataset.key}]`);
        told.writers = [text('[role=tab][aria-selected=true]'), document.activeElement.dataset.key];
        await click('[data-key=tab-calls]');
        const call = all('[data-key^=call-]').find((one) => one.dataset.key.endsWith('-1')); call.focus(); await click(`[data-key=${call.dataset.key}]`);
        told.row = [text('[role=tab][aria-selected=true]'), text('.rx-who'), document.activeElement.dataset.key];
        one('[data-key=on]').focus(); await click('[data-key=step-finish]'); await click('[data-key=on]');
        told.end = document.activeElement.dataset.key;
        all('.rx-station')[0].dispatchEvent(new MouseEvent('click', { bubbles: true })); await wait();
        told.station = text('[aria-current=step]');
        """,
        tmp_path,
    )
    assert told == {
        "writers": ["Writers", "tabpanel"],
        "row": ["Row 1", "Bill DELETE", "tabpanel"],
        "end": "step-commit",
        "station": "read",
    }


@needs_browser
def test_the_reasons_of_a_writer_a_null_key_and_a_near_key_are_shown(
    page: str, tmp_path: Path
) -> None:
    told = seen(
        page,
        """
        await click('[data-key=step-exchange]'); await click('[data-key=row-0]');
        told.placed = all('.rx-station-words[open] p').map((one) => one.textContent);
        await click('[data-key=step-join]'); await click('[data-key=row-6]');
        told.barred = [text('.rx-station-words[open]'), all('.rx-station-words[open] .rx-blamed').length, all('.rx-values .rx-unknown').length];
        await click('[data-key=row-4]'); told.near = text('.rx-station-words[open]');
        await click('[data-key=step-distinct]'); told.rules = text('.rx-aside');
        await click('[data-key=step-read]'); told.tables = all('.rx-both tbody').map((one) => one.children.length);
        """,
        tmp_path,
    )
    old, new = told["placed"]
    assert re.fullmatch(r"D address = 'Antioch' → hash -?\d+ → mod \d+ = writer \d", old)
    assert re.fullmatch(r"I address = 'Arches' → hash -?\d+ → mod \d+ = writer \d", new)
    assert "this is unknown, since NULL equals nothing" in told["barred"][0]
    assert told["barred"][1:] == [1, 1]
    assert "('gus') would match target row 'Gus'" in told["near"]
    assert "the SQL standard fails if two source rows change one target row" in told["rules"]
    assert told["tables"] == [7, 7]


def test_addresses_of_placed_rows_match_the_writers_under_all_options(engine: Engine) -> None:
    trace = engine.run(MERGE, rehearse=True).trace
    for made in (trace, *variants_of(trace).traces.values()):
        assert made.samples.pages is not None
        state = explorer_state(made)
        if made.samples.pages.writers:
            assert made.samples.pages.placement is not None
            assert made.samples.pages.placement.chosen == made.samples.pages.writers
            told = [
                row["placed"].rpartition("writer ")[2]
                for row in state["after"]["rows"]
                if row["placed"].startswith("address")
            ]
            assert told
            assert set(told) <= {str(writer) for writer in made.samples.pages.writers}


def test_a_function_of_the_connector_and_even_spreading_are_named(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE cut WITH (partitioned_by = ARRAY['truncate(place, 1)']) AS SELECT 1 AS id, VARCHAR 'a' AS place"
    )
    merge = "MERGE INTO cut t USING (VALUES (1), (2)) s (id) ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'b')"

    def told(era: str) -> tuple[str, list[str]]:
        trace = engine.run(merge, rehearse=True, era=era).trace
        state = explorer_state(trace)
        says = next(step["says"] for step in state["steps"] if step["key"] == "exchange")
        return says, [
            re.sub(r" \d+ → mod \d+ = writer \d+$", "", row["placed"])
            for row in state["after"]["rows"]
        ]

    says, placed = told("documents")
    assert (
        "rows for which its function of place returns the same value: one place, one"
        " writer. A row goes to writer " in says
    )
    assert placed == [
        "place = 'a' → the connector's function",
        "place = 'b' → the connector's function",
    ]
    says, placed = told("current")
    assert says.endswith("a DELETE or UPDATE to the writers in turn, some thousand rows at a time.")
    assert placed == [
        "to the writers in turn, some thousand rows at a time: no value decides",
        "place = 'b' → the connector's function",
    ]


def test_steps_explain_the_paradigm_and_count_arriving_and_leaving_rows(engine: Engine) -> None:
    def step(key: str, **options: Any) -> dict[str, Any]:
        state = explorer_state(engine.run(MERGE, rehearse=True, **options).trace)
        return next(
            {**step, "legend": legend_of(state, key)}
            for step in state["steps"]
            if step["key"] == key
        )

    split, whole = (
        step("transform"),
        step("transform", paradigm="CHANGE_ONLY_UPDATED_COLUMNS", era="current"),
    )
    assert split["says"].endswith(f"7 rows {MINUS} 2 unchanged + 2 split = 7.")
    assert whole["says"].endswith(f"7 rows {MINUS} 2 unchanged = 5.")
    assert "an UPDATE is two rows" in split["aside"]
    assert "an UPDATE stays one row" in whole["aside"]
    assert ["operation", "1 INSERT, 2 DELETE, 3 UPDATE"] in whole["legend"]
    halves = dict(step("sinks", era="current")["legend"])
    assert "5 the DELETE of an UPDATE" in halves["operation"]
    assert halves["case_number"].startswith("0 throughout")
    assert "its values are not needed" in halves["a DELETE"]
    assert dict(whole["legend"])["case_number"] == "the clause that fired"
    assert "the old values accompany it" in dict(whole["legend"])["a DELETE"]
    assert "NULL no clause" in dict(step("case", era="current")["legend"])["operation"]
    assert (
        "insert_from_update" in dict(split["legend"]),
        "insert_from_update" in dict(step("sinks")["legend"]),
    ) == (True, False)
    assert "42 for NULL" in dict(step("case")["legend"])["hash"]
    assert "hash" not in dict(step("case", era="current")["legend"])
    assert (
        "The standard's rule decides here, since the option"
        in step("distinct", duplicates="standard")["aside"]
    )
    assert "Here no target row is matched twice." in step("distinct")["says"]
    evenly = step("exchange", era="current")["says"]
    assert "An INSERT goes to writer hash(address) mod" in evenly


@needs_browser
@pytest.mark.parametrize("width", [620, 1100])
def test_nothing_is_wider_than_the_window(page: str, tmp_path: Path, width: int) -> None:
    told = seen(
        page,
        "told.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;",
        tmp_path,
        width=width,
    )
    assert told["wide"] <= 0


@needs_browser
def test_names_and_values_with_markup_are_text_in_the_browser(
    engine: Engine, tmp_path: Path
) -> None:
    engine.run(
        """CREATE TABLE marked AS SELECT * FROM (VALUES (1, VARCHAR '<img src=x onerror="document.title=1">')) AS v (id, "<b>n</b>")"""
    )
    trace = engine.run(
        """MERGE INTO marked USING (VALUES (1, '<i>x</i>')) AS s (id, m) ON marked.id = s.id WHEN MATCHED AND "<b>n</b>" <> '</script>' THEN UPDATE SET "<b>n</b>" = m"""
    ).trace
    told = seen(
        explorer_page(trace),
        """
        for (const key of ['read', 'join', 'case', 'transform', 'commit']) await click(`[data-key=step-${key}]`);
        for (const key of ['clauses', 'writers', 'calls']) await click(`[data-key=tab-${key}]`);
        told.made = all('.rx img, .rx b b, .rx script').length;
        told.title = document.title;
        """,
        tmp_path,
    )
    assert told == {"made": 0, "title": "MERGE marked"}


def test_a_saved_trace_is_explored_without_an_engine(result: Result) -> None:
    alone = Result(replace(result.trace))
    assert explorer_state(alone.trace) == explorer_state(result.trace)
    assert alone.explore().row == 0


@needs_browser
@pytest.mark.parametrize(
    ("statement", "gist"),
    [
        (
            "UPDATE accounts SET purchases = 0 WHERE purchases > 5",
            "WHERE is true: purchases > 5 (accounts.purchases = 7).",
        ),
        (
            "UPDATE accounts SET purchases = purchases + 1",
            "There is no WHERE, so every row is chosen.",
        ),
        (
            "DELETE FROM accounts WHERE purchases > 5",
            "WHERE is true: purchases > 5 (accounts.purchases = 7).",
        ),
    ],
)
def test_update_and_delete_in_the_browser(
    engine: Engine, tmp_path: Path, statement: str, gist: str
) -> None:
    told = seen(
        explorer_page(engine.run(statement, rehearse=True).trace),
        """
        told.gist = all('[role=option]').map((row, index) => index);
        await click('[data-key=row-0]');
        told.gists = [];
        for (const row of told.gist) { await click(`[data-key=row-${row}]`); told.gists.push(text('.rx-gist')); }
        told.predict = all('[data-key=predict]').length;
        for (const key of ['clauses', 'writers', 'calls', 'row']) await click(`[data-key=tab-${key}]`);
        await press('End', '[aria-current=step]');
        told.end = [text('[aria-current=step]'), text('.rx-reader h4 small'), text('.rx-station-words[open] p')];
        """,
        tmp_path,
    )
    assert gist in told["gists"]
    assert told["predict"] == ("WHERE" in statement), "without WHERE there is nothing to guess"
    assert told["end"][:2] == ["rollback", "the old version"]
    assert "would be" in told["end"][2]


@needs_browser
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts SET purchases = 0 WHERE purchases > 5",
        "DELETE FROM accounts WHERE purchases > 5",
    ],
)
def test_update_and_delete_are_guessed_over_all_rows_of_the_table(
    engine: Engine, tmp_path: Path, statement: str
) -> None:
    result = engine.run(statement, rehearse=True)
    widget = result.explore(predict=True)
    assert (widget.predict, widget.row, widget.step) == (True, -1, "read")
    rows = engine.table("accounts").to_pylist()
    told = seen(
        explorer_page(result.trace, predict=True),
        """
        const names = () => all('.rx-rows .rx-row .rx-name').map((one) => one.textContent);
        told.names = names();
        told.text = one('.rx').textContent;
        told.choices = all('.rx-row:first-child option').map((one) => one.value);
        told.page = all('.rx-moment tbody tr').length;
        told.reader = all('.rx-reader tbody tr').map((one) => one.querySelector('td').textContent);
        for (const select of all('.rx-row select')) {
          const again = one(`[data-key="${select.dataset.key}"]`);
          again.value = 'none';
          again.dispatchEvent(new Event('change', { bubbles: true }));
          await wait();
        }
        await click('[data-key=predict]');
        told.score = text('.rx-rows .rx-says');
        told.marks = all('.rx-others .rx-right, .rx-row .rx-wrong').length;
        """,
        tmp_path,
    )
    assert told["names"] == told["reader"] == sorted(row["customer"] for row in rows)
    assert told["choices"] == ["", statement[:6], "none"]
    assert told["page"] == len(rows)
    for word in ("chosen", "not chosen", "row(s)"):
        assert word not in told["text"]
    chosen = sum((row["purchases"] or 0) > 5 for row in rows)
    assert told["score"] == f"{len(rows) - chosen} of {len(rows)} right."
    assert told["marks"] == len(rows)


@needs_browser
def test_predict_does_not_reveal_its_answers_and_tables_scroll_by_keys(
    page: str, tmp_path: Path
) -> None:
    told = seen(
        page,
        """
        await click('[data-key=tab-clauses]');
        await click('[data-key=clause-0]');
        told.before = all('.rx-dim').length;
        await click('[data-key=predict]');
        await press('1', '[data-key=row-0]');
        told.dim = all('.rx-dim').length;
        told.step = text('[aria-current=step]');
        await press('ArrowRight', '.rm-scroll');
        told.scrolled = text('[aria-current=step]');
        const keys = all('.rm-scroll').map((one) => one.dataset.key);
        told.unique = new Set(keys).size === keys.length;
        """,
        tmp_path,
    )
    assert told["before"] == 6
    assert told["dim"] == 0
    assert told["step"] == told["scrolled"]
    assert told["unique"]


@pytest.mark.parametrize(
    ("among", "said"),
    [
        (2, "2 writers hand 9 rows "),
        (5, "; a writer without rows makes no sink. They hand 9 rows "),
    ],
)
def test_writers_without_rows_are_reported_to_create_no_sink(among: int, said: str) -> None:
    trace = merge_trace()
    assert trace.samples.pages is not None
    assert trace.samples.pages.placement is not None
    placement = replace(trace.samples.pages.placement, writers=among)
    steps = explorer_state(
        with_parts(trace, samples={"pages": replace(trace.samples.pages, placement=placement)})
    )["steps"]
    (says,) = (step["says"] for step in steps if step["key"] == "sinks")
    assert said in says


def test_cells_of_the_source_are_edited_and_rows_with_another_outcome_are_listed(
    result: Result,
) -> None:
    explorer = result.explore()
    assert explorer.state["cells"]["columns"] == ["customer", "purchases", "address"]
    assert explorer.state["cells"]["rows"][1] == [1, ["Bill", "9", "Berkeley"]]
    explorer.cells = {1: {"address": "Boston"}, 6: {"customer": "Joe"}}
    assert explorer.trouble == ""
    moved = {row["row"]: (row["was"], row["is"]) for row in explorer.state["trial"]["moved"]}
    assert moved == {
        1: ("clause 0 DELETE", "clause 1 UPDATE"),
        6: ("clause 3 INSERT", "clause 2 UPDATE"),
    }
    assert explorer.state["cells"]["rows"][1] == [1, ["Bill", "9", "Berkeley"]]
    explorer.cells = {"1": {"purchases": "many"}}
    assert "'many' is no integer" in explorer.trouble
    explorer.cells = {1: {"adress": "x"}}
    assert "Did you mean 'address'?" in explorer.trouble
    with pytest.raises(RowMergeError, match="source row = -1"):
        explorer.cells = {-1: {}}
    explorer.cells = {}
    assert "trial" not in explorer.state


def test_a_reason_is_shown_if_cells_cannot_be_edited(engine: Engine) -> None:
    told = (
        engine.run(
            MERGE.replace("(VALUES", "(SELECT * FROM (VALUES").replace(") s (c", ")) s (c"),
            rehearse=True,
        )
        .explore()
        .state
    )
    assert "is a query" in told["cells"]["why"]


@needs_browser
def test_tabs_control_their_panel_and_a_guess_is_not_within_an_option(
    page: str, tmp_path: Path
) -> None:
    told = seen(
        page,
        """
        const tab = one('[role=tab][aria-selected=true]');
        told.controls = document.getElementById(tab.getAttribute('aria-controls'))?.getAttribute('role');
        told.labelled = document.getElementById(one('[role=tabpanel]').getAttribute('aria-labelledby')) === tab;
        told.ids = all('[id]').length === new Set(all('[id]').map((each) => each.id)).size;
        told.options = all('[role=listbox] [role=option]').length;
        await click('[data-key=predict]');
        told.selects = all('.rx-row select').length; told.within = all('[role=option] select').length; told.items = all('[role=list] [role=listitem]').length;
        """,
        tmp_path,
    )
    assert told == {
        "controls": "tabpanel",
        "labelled": True,
        "ids": True,
        "options": 7,
        "selects": 7,
        "within": 0,
        "items": 7,
    }


def test_the_requested_rows_of_a_large_statement_are_followed(engine: Engine) -> None:
    whole = engine.run(MERGE, rehearse=True).trace
    assert whole.samples.pages is not None
    chosen = engine.run(
        MERGE, rehearse=True, why="t.customer = 'Bill'"
    ).trace.samples.requested_rows
    assert chosen is not None
    trace = with_parts(
        whole,
        samples={"pages": None, "requested_rows": chosen, "untouched_rows": None},
        join={"rows": 1000},
    )
    state = explorer_state(trace)
    assert [row["name"] for row in state["rows"]] == ["Bill"]
    assert state["sample"] == "1 of 1,000 rows: those asked for by t.customer = 'Bill'"
    assert [row["of"] for row in state["before"]["rows"]] == [0]
    assert [(row["letter"], row["writer"]) for row in state["after"]["rows"]] == [("D", -1)]
    assert (state["untouched"], state["others"]) == (None, [])
    more = explorer_state(with_parts(trace, samples={"requested_rows": replace(chosen, more=True)}))
    assert "the first that were asked for by" in more["sample"]
    with pytest.raises(RowMergeError, match="NOT_SUPPORTED"):
        explorer_state(with_parts(trace, samples={"requested_rows": replace(chosen, pages=None)}))


def test_requested_rows_are_among_the_rows_of_a_full_trace(
    engine: Engine,
) -> None:
    result = engine.run(MERGE, rehearse=True, why="t.customer = 'Bill'")
    assert (
        explorer_state(result.trace)["rows"]
        == explorer_state(with_parts(result.trace, samples={"requested_rows": None}))["rows"]
    )


def test_a_saved_trace_names_the_rows_that_were_not_joined(engine: Engine, tmp_path: Path) -> None:
    save_trace(engine.run(MERGE, rehearse=True).trace, tmp_path / "merge.json")
    others = explorer_state(load_trace(tmp_path / "merge.json"))["others"]
    assert [row["cells"][0] for row in others] == ["Dave", "Gus", "Joe"]
    assert all("No source row matches it" in row["why"] for row in others)
    assert [row["near"].partition(":")[0] for row in others] == ["Near miss", "Near miss", ""]


@pytest.mark.parametrize("era", ["documents", "current"])
def test_the_case_shows_nothing_of_later_steps(engine: Engine, era: str) -> None:
    trace = engine.run(MERGE, rehearse=True, era=era).trace
    state = explorer_state(trace)
    channels = [channel["number"] for channel in state["before"]["channels"]][
        : state["before"]["decided"]
    ]
    merge_row = (
        trace.samples.pages.layout.before.merge_row if trace.samples.pages is not None else -1
    )
    assert channels[-1] == f"{merge_row}.5"
    assert "is_distinct" not in dict(legend_of(state, "case"))
    assert "is_distinct" in dict(legend_of(state, "distinct"))


@needs_browser
def test_each_step_shows_its_content_and_a_file_names_what_needs_a_kernel(
    page: str, tmp_path: Path
) -> None:
    told = seen(
        page,
        """
        told.case = text('.rx-moment thead'); await click('[data-key=step-distinct]'); told.distinct = text('.rx-moment thead');
        told.head = text('.rx-head'); told.label = one('.rx-strip[role=img]').getAttribute('aria-label');
        await click('[data-key=row-4]'); told.gus = all('.rx-gist').map((each) => each.textContent);
        one('[data-key=other-1]').click(); await wait(); told.other = text('.rx-others details[open]');
        told.whatif = text('[data-key=whatif]'); await click('[data-key=whatif]'); told.why = text('.rx-if');
        await click('[data-key=tab-calls]'); told.calls = all('.rx-panel tbody tr').map((row) => row.textContent);
        """,
        tmp_path,
    )
    assert ("is_distinct" in told["case"], "is_distinct" in told["distinct"]) == (False, True)
    assert "0123becomes" in told["head"]
    assert "(customer, purchases, address)" in told["head"]
    assert "clause 0: " in told["label"]
    assert told["gus"][1].startswith(
        "It has no partner: ON is true for no row of the target. Near miss: Source row 4 ('gus')"
    )
    assert "no clause applies to it" in told["other"]
    assert "Near miss: Target row ('Gus')" in told["other"]
    assert told["whatif"] == "What if (needs a kernel)"
    assert "result.explore()" in told["why"]
    assert "row change paradigm, page format, duplicate rule" in told["why"]
    for method, handed in (("begin_merge", "memory.default.kept"), ("commit", "transaction")):
        assert handed in next(
            call for call in told["calls"] if method in call.partition("coordinator")[0]
        )


@needs_browser
@pytest.mark.parametrize(("width", "beside"), [(1100, True), (620, False)])
def test_pages_are_side_by_side_with_aligned_rows_if_there_is_room(
    page: str, tmp_path: Path, width: int, beside: bool
) -> None:
    told = seen(
        page,
        """
        await click('[data-key=step-transform]');
        const tops = all('.rx-pages > div').map((each) => [...each.querySelectorAll('tbody tr')].map((row) => Math.round(row.getBoundingClientRect().top)));
        told.inline = tops[0].join() === tops[1].join(); told.below = tops[1][0] > tops[0].at(-1);
        const statement = one('pre.statement'); told.cut = statement.scrollWidth > statement.clientWidth;
        """,
        tmp_path,
        width=width,
    )
    assert told == {"inline": beside, "below": not beside, "cut": False}


# -- other options


@needs_browser
def test_a_file_switches_paradigm_era_and_rule_without_a_kernel(page: str, tmp_path: Path) -> None:
    told = seen(
        page,
        """
        const marks = () => all('.rx-differs').map((one) => one.closest('button').dataset.key.slice(5));
        const rows = () => all('.rx-pages > div:last-child tbody tr').map((row) => [...row.children].map((cell) => cell.textContent).join(' '));
        const asked = [];
        for (const name of ['fetch', 'XMLHttpRequest', 'WebSocket']) window[name] = new Proxy(window[name], { construct() { asked.push(name); }, apply() { asked.push(name); } });
        await click('[data-key=step-transform]');
        told.run = [rows(), marks(), all('.rx-other').length, all('[aria-pressed=true]').map((one) => one.dataset.key)];
        await click('[data-key=paradigm-CHANGE_ONLY_UPDATED_COLUMNS]');
        told.paradigm = [all('.rx-gone').length, all('.rx-changed').length, marks(), text('.rx-other'), rows()[0]]; told.headline = text('.rm-out'); told.tables = all('.rx-pages h5').map((one) => one.textContent);
        told.writers = text('[data-key=step-sinks]'); await click('[data-key=step-sinks]'); told.sinks = text('.rx-says'); told.handed = [text('.rx-moment h4'), text('.rx-moment thead')];
        await click('[data-key=tab-calls]'); told.calls = text('[role=tabpanel]');
        await click('[data-key=step-finish]'); told.finish = text('.rx-says');
        await click('[data-key=step-commit]'); told.commit = text('.rx-says');
        await click('[data-key=era-current]'); await click('[data-key=step-case]');
        told.era = [text('.rx-moment thead'), marks()];
        await click('[data-key=paradigm-DELETE_ROW_AND_INSERT_ROW]'); await click('[data-key=duplicates-standard]'); await click('[data-key=era-documents]');
        told.rule = [marks(), text('.rx-other')];
        await click('[data-key=if-back]'); await click('[data-key=step-transform]');
        told.back = [rows(), marks(), all('.rx-other').length, all('[aria-pressed=true]').map((one) => one.dataset.key)];
        told.asked = asked; told.loaded = performance.getEntriesByType('resource').length;
        """,
        tmp_path,
    )
    assert told["run"] == told["back"]
    assert told["run"][3] == [
        "paradigm-DELETE_ROW_AND_INSERT_ROW",
        "era-documents",
        "duplicates-trino",
    ]
    gone, changed, marks, says, first = told["paradigm"]
    assert (gone, changed, marks) == (
        4,
        12,
        ["distinct", "transform", "exchange", "sinks", "finish", "commit"],
    )
    assert told["tables"] == ["before: 7 rows", "after: 5 rows"]
    assert says.startswith(
        "not runDifferent from the run, and marked \u2260: the pages of"
        " transform_page, exchange, sinks, finish_merge and commit, and the explanations"
        " beside distinct. transform_page returns 5 rows, in the run 7. Differences are"
        " framed"
    )
    assert first == "─▸ 0 Aaron Aaron 11 Arches 3 0 0"
    assert told["headline"].startswith("With these options, not run; the same rows change: ")
    assert told["sinks"].startswith("Not run: ")
    assert told["handed"][0].endswith("What the sinks would get")
    assert "insert_from_update" not in told["handed"][1]
    assert told["sinks"].endswith("would get 5 rows.")
    assert told["calls"].startswith(
        "not runNo call was made. The calls would be those of the run, but that"
        " get_row_change_paradigm answers otherwise"
    )
    assert (
        "get_row_change_paradigm coordinatorwith the table handlegives CHANGE_ONLY_UPDATED_COLUMNS"
        in told["calls"]
    )
    assert told["finish"].startswith(
        "Not run. The connector would get fragments that name the rows"
    )
    assert "The table would have the same rows as after the run" in told["commit"]
    assert "hash" not in told["era"][0]
    assert told["era"][1] == [
        "case",
        "distinct",
        "transform",
        "exchange",
        "sinks",
        "finish",
        "commit",
    ]
    says = "not runDifferent from the run, and marked \u2260: the explanations beside distinct. Every page is as in the run. Back to the run"
    assert told["rule"] == [["distinct"], says]
    assert (told["asked"], told["loaded"]) == ([], 0)


@needs_browser
def test_the_statement_ends_where_another_rule_would_end_it(engine: Engine, tmp_path: Path) -> None:
    trace = engine.run(
        MERGE.replace("('Bill', 9", "('Aaron', 1, 'Alma'), ('Bill', 9"), rehearse=True
    ).trace
    told = seen(
        explorer_page(trace, variants=variants_of(trace)),
        """
        await click('[data-key=step-sinks]');
        await click('[data-key=duplicates-standard]');
        told.steps = all('.rx-steps button').map((one) => one.dataset.key.slice(5)); told.at = text('[aria-current=step]');
        told.outcome = text('.rm-out'); told.says = text('.rx-says'); told.rows = all('.rx-row').length;
        for (const key of ['clauses', 'writers', 'calls', 'row']) await click(`[data-key=tab-${key}]`);
        for (const key of told.steps) await click(`[data-key=step-${key}]`);
        await click('[data-key=duplicates-trino]');
        told.back = [all('.rx-steps button').length, text('.rm-out').includes('updated')];
        """,
        tmp_path,
    )
    assert told["steps"] == ["read", "join", "case", "distinct"]
    assert told["at"] == "distinct \u00d7 \u2260"
    assert told["outcome"].startswith(
        "With these options, not run, it would fail: MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    )
    assert "is matched by source rows 0 and 1 by clauses 1, 2." in told["says"]
    assert (told["rows"], told["back"]) == (8, [9, True])


@needs_browser
@pytest.mark.parametrize(
    ("statement", "switches"),
    [
        (
            "UPDATE accounts SET purchases = 0 WHERE purchases > 5",
            ["row change paradigm", "page format"],
        ),
        ("DELETE FROM accounts WHERE purchases > 5", ["page format"]),
    ],
)
def test_update_and_delete_have_the_switches_that_make_a_difference(
    engine: Engine, tmp_path: Path, statement: str, switches: list[str]
) -> None:
    trace = engine.run(statement, rehearse=True).trace
    told = seen(
        explorer_page(trace, variants=variants_of(trace)),
        """
        told.switches = all('.rx-switches > div').map((one) => one.getAttribute('aria-label'));
        await click('[data-key=era-current]'); await click('[data-key=step-sinks]');
        told.channels = text('.rx-moment thead').includes('case_number');
        """,
        tmp_path,
    )
    assert told == {"switches": switches, "channels": True}


@needs_browser
def test_a_reason_is_shown_without_other_options(engine: Engine, tmp_path: Path) -> None:
    trace = failure(engine, TWICE).trace
    told = seen(
        explorer_page(trace, variants=variants_of(trace)),
        "told.switches = all('.rx-switches').length; await click('[data-key=whatif]'); told.why = text('.rx-body');",
        tmp_path,
    )
    assert told["switches"] == 0
    assert "Only a run can show the result under another rule" in told["why"]


def test_thirty_rows_under_all_options_are_a_small_state(engine: Engine) -> None:
    def rows(first: int, last: int, price: float) -> str:
        return ", ".join(
            f"({n}, {n * price}, 'a name {n}', 'region {n % 4}', {n % 3})"
            for n in range(first, last)
        )

    engine.run(
        "CREATE TABLE stock WITH (partitioned_by = ARRAY['region', 'kind']) AS "
        f"SELECT id, price, CAST(name AS varchar) AS name, CAST(region AS varchar) AS region, kind "
        f"FROM (VALUES {rows(0, 25, 1.5)}) AS v (id, price, name, region, kind)"
    )
    trace = engine.run(
        f"""MERGE INTO stock t USING (VALUES {rows(0, 30, 2.5)}) AS s (id, price, name, region, kind) ON t.id = s.id
        WHEN MATCHED AND s.price < 10 AND t.region = 'region 1' THEN DELETE
        WHEN MATCHED AND s.price > t.price OR s.kind IS NULL THEN UPDATE SET price = s.price, name = s.name
        WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.price, s.name, s.region, s.kind)"""
    ).trace
    variants = variants_of(trace)
    assert (len(variants.traces), variants.why) == (7, "")
    state = explorer_state(trace)
    size = len(json.dumps({**state, "otherwise": otherwise(state, variants)}))
    assert len(state["rows"]) == 30
    assert size < 200_000


def test_halves_of_updates_are_counted_with_what_they_are(engine: Engine) -> None:
    state = explorer_state(engine.run(MERGE, rehearse=True, era="current").trace)
    assert any("I" in writer["rows"] for writer in state["writers"])
    for writer in state["writers"]:
        assert sum(int(part.split()[1]) for part in writer["rows"].split(", ")) == len(
            writer["page"]
        )


@pytest.mark.parametrize(("era", "decides"), [("documents", True), ("current", False)])
def test_the_legend_of_a_delete_mentions_its_partition_only_if_it_matters(
    engine: Engine, era: str, decides: bool
) -> None:
    state = explorer_state(engine.run(MERGE, rehearse=True, era=era).trace)
    assert ("which determines its writer" in dict(legend_of(state, "sinks"))["a DELETE"]) == decides
    assert any("in turn" in half["placed"] for half in state["after"]["rows"]) != decides


def test_the_fragments_of_a_row_are_unknown_under_options_that_were_not_run(engine: Engine) -> None:
    trace = engine.run(MERGE, rehearse=True).trace
    run = explorer_state(trace)
    changes = otherwise(run, variants_of(trace))["changes"]
    told = json.dumps(changes["CHANGE_ONLY_UPDATED_COLUMNS|documents|trino"])
    assert told.count("Not run. Fragments of ") >= sum(bool(row["becomes"]) for row in run["rows"])


def test_the_calls_that_there_would_be_are_those_of_a_run_with_these_options(
    engine: Engine,
) -> None:
    trace = engine.run(MERGE, rehearse=True).trace
    derived = engine.run(
        MERGE, rehearse=True, era="current", paradigm="CHANGE_ONLY_UPDATED_COLUMNS"
    ).trace
    run = explorer_state(trace)
    states = {"DELETE_ROW_AND_INSERT_ROW|documents|trino": run}
    changes = otherwise(run, variants_of(trace))["changes"]
    for name in (
        "CHANGE_ONLY_UPDATED_COLUMNS|documents|trino",
        "CHANGE_ONLY_UPDATED_COLUMNS|current|trino",
    ):
        based, change = changes[name]
        states[name] = _applied(states[based or next(iter(states))], change)
    ruled = _applied(
        states["CHANGE_ONLY_UPDATED_COLUMNS|current|trino"],
        changes["CHANGE_ONLY_UPDATED_COLUMNS|current|standard"][1],
    )
    says = {step["key"]: step["says"] for step in ruled["steps"]}
    assert "A target row that two source rows change" in says["distinct"]
    alone = _applied(run, changes["DELETE_ROW_AND_INSERT_ROW|documents|standard"][1])
    assert alone["no_calls"].startswith("No call was made. The calls would be those of the run. ")
    told, really = (
        states["CHANGE_ONLY_UPDATED_COLUMNS|current|trino"]["calls"],
        explorer_state(derived)["calls"],
    )
    # Only a run determines the content of fragments.
    counted = {"finish", "finish_merge"}
    assert [(one["order"], one["where"], one["method"], one["means"]) for one in told] == [
        (one["order"], one["where"], one["method"], one["means"]) for one in really
    ]
    assert [(one["given"], one["gave"]) for one in told if one["method"] not in counted] == [
        (one["given"], one["gave"]) for one in really if one["method"] not in counted
    ]


def _applied(old: Any, change: Any) -> Any:
    """Apply a difference to a state, like the front end."""
    if change is None:
        return old
    kind, parts, more = (*change, None)[:3]
    if kind == "=":
        return parts
    if kind == "[":
        return [
            _applied(old[at] if at < len(old) else None, parts.get(str(at))) for at in range(more)
        ]
    return {
        name: _applied(old.get(name), parts.get(name))
        for name in {*old, *parts}
        if name not in more
    }


@pytest.fixture(scope="module")
def explored(engine: Engine) -> dict[str, Any]:
    engine.run(
        "CREATE TABLE arrivals AS SELECT * FROM (VALUES (VARCHAR 'Aaron', 6), ('Bill ', 9), ('Zoe', 1), (NULL, 1)) AS v (name, more)"
    )
    engine.run(
        "CREATE TABLE visits WITH (partitioned_by = ARRAY['town']) AS SELECT * FROM (VALUES (VARCHAR 'Aaron', 5, VARCHAR 'Antioch'), ('Bill', 7, 'Buena')) AS v (name, number, town)"
    )
    trace = engine.run("""MERGE INTO visits v USING arrivals a ON v.name = a.name
        WHEN MATCHED AND a.more > 8 THEN DELETE WHEN MATCHED AND a.more > 5 THEN UPDATE SET number = a.more, town = 'Devon'
        WHEN NOT MATCHED AND a.more > 2 THEN INSERT VALUES (a.name, a.more, 'Buena')""").trace
    return {
        **(state := explorer_state(trace)),
        "otherwise": otherwise(state, variants_of(trace)),
        "page": explorer_page(trace, variants=variants_of(trace)),
    }


@needs_browser
def test_derived_options_are_consistent_and_both_tables_have_their_names(
    explored: dict[str, Any], tmp_path: Path
) -> None:
    state = explored
    assert state["tables"] == {"source": "arrivals a", "target": "visits v"}
    minus = [row["cells"] for row in state["before"]["rows"] if f"{MINUS}1" in row["cells"]]
    assert minus
    assert not any("-1" in row["cells"] for row in state["before"]["rows"])
    assert f"3 UPDATE, {MINUS}1 no clause" in dict(state["legends"]["before"])["operation"]
    assert {"hash", "present", "is_distinct"} <= dict(state["legends"]["before"]).keys()
    told = seen(
        state["page"],
        """
        told.lanes = all('.rx-label').map((one) => one.textContent).slice(0, 2);
        await click('[data-key=step-transform]'); told.legend = all('.rx-which, .rx-legend dt').map((one) => one.textContent);
        await click('[data-key="row-3"]'); told.doubled = all('.rx-gist').map((one) => one.textContent).join(' ').split('has no partner').length - 1;
        await click('[data-key=tab-calls]'); told.ran = text('[role=tabpanel]');
        await click('[data-key=step-commit]'); told.committed = text('.rx-says');
        told.ways = [];
        for (const paradigm of ['CHANGE_ONLY_UPDATED_COLUMNS', 'DELETE_ROW_AND_INSERT_ROW']) for (const rule of ['trino', 'standard']) {
          await click(`[data-key=paradigm-${paradigm}]`); await click(`[data-key=duplicates-${rule}]`); await click('[data-key=step-distinct]');
          told.ways.push({ paradigm, rule, marked: Boolean(one('.rx-now .rx-differs')), aside: text('.rx-aside'), examples: all('.rx-examples tbody tr').map((row) => row.children[1].textContent.split(':')[0]), calls: text('[role=tabpanel]'), other: text('.rx-other') });
        }
        """,
        tmp_path,
    )
    assert told["lanes"] == ["visits v", "arrivals a"]
    assert (
        told["legend"].index("After")
        > told["legend"].index("present")
        > told["legend"].index("Before")
    )
    assert told["doubled"] == 1
    version = re.search(r"gives version (\d+)", told["ran"])
    assert version is not None
    assert f"as version {version[1]} of the table" in told["committed"]
    for way in told["ways"]:
        own = (way["paradigm"], way["rule"]) == ("DELETE_ROW_AND_INSERT_ROW", "trino")
        in_place = way["paradigm"] == "CHANGE_ONLY_UPDATED_COLUMNS"
        assert way["marked"] == way["aside"].startswith("\u2260") == (not own)
        assert way["examples"] == ["fails", "fails" if in_place else "runs", "runs", "fails"]
        assert ("fail as well" in way["aside"]) == in_place
        assert ("The standard's rule decides here" in way["aside"]) == (way["rule"] == "standard")
        assert "pass in Trino alone" not in way["aside"]
        if not own:
            assert "In this run" not in way["aside"]
            assert "gives version" not in way["calls"]
            assert "gives a version that only a run shows" in way["calls"]


NAMELESS = """
    const named = (one) => Boolean((one.getAttribute('aria-label') || one.closest('label')?.textContent || one.getAttribute('title') || one.textContent || '').trim());
    const nameless = () => all('.rx button, .rx select, .rx input, .rx textarea, .rx summary, .rx [tabindex="0"], .rx [role], .rx table:not(.rx-turned), .rx ol, .rx th')
      .filter((one) => one.getAttribute('role') !== 'presentation' && one.getAttribute('role') !== 'status' && !named(one)).map((one) => one.outerHTML.slice(0, 120));
"""


@needs_browser
def test_nothing_is_without_a_name_and_choices_are_heard_once(page: str, tmp_path: Path) -> None:
    told = seen(
        page,
        NAMELESS
        + """
        told.nameless = []; told.heard = [];
        const hear = () => { told.heard.push(text('.rx-live')); };
        hear();
        for (const step of all('.rx-steps button').map((one) => one.dataset.key)) for (const tab of ['clauses', 'writers', 'calls', 'row']) {
          await click(`[data-key="${step}"]`); await click(`[data-key=tab-${tab}]`); told.nameless.push(...nameless());
        }
        await click('[data-key=whatif]'); told.nameless.push(...nameless());
        await click('[data-key=step-case]'); hear();
        await press('ArrowDown', '[data-key=row-0]'); hear();
        await click('[data-key=paradigm-CHANGE_ONLY_UPDATED_COLUMNS]'); hear();
        await click('[data-key=duplicates-standard]'); hear();
        await click('[data-key=if-back]'); hear();
        told.drawn = all('.rx svg [aria-hidden=true] rect').length === all('.rx svg rect').length;
        await click('[data-key=to-moment]'); told.led = document.activeElement.className;
        await click('[data-key=predict]'); told.nameless.push(...nameless());
        told.guess = document.activeElement.getAttribute('aria-label'); hear();
        await press('Escape'); told.left = [all('select').length, document.activeElement.dataset.key];
        """,
        tmp_path,
    )
    assert told["nameless"] == []
    first, step, row, paradigm, rule, back, guess = told["heard"]
    assert first == ""
    assert step.startswith("CASE. Tries the WHEN clauses")
    assert row.startswith("row 1 Bill: Clause 0 fires")
    assert paradigm.startswith("not run: CHANGE_ONLY_UPDATED_COLUMNS, pages of era documents")
    assert "repeated matches by the rule standard" in rule
    assert back == "As it ran."
    assert guess.startswith("Choose for every row")
    assert told["drawn"]
    assert "rx-moment" in told["led"]
    assert told["guess"] == "what becomes of row 0 Aaron"
    assert told["left"] == [0, "predict"]


@needs_browser
def test_the_page_is_whole_and_the_steps_stay_in_sight_in_a_narrow_window(
    explored: dict[str, Any], tmp_path: Path
) -> None:
    told = seen(
        explored["page"],
        """
        await click('[data-key=step-distinct]'); await click('[data-key=to-moment]');
        told.cut = all('.rx-moment .rm-scroll').filter((one) => one.scrollWidth > one.clientWidth + 1).length;
        const inside = (one) => one.getBoundingClientRect().bottom > 0 && one.getBoundingClientRect().top < window.innerHeight;
        told.sight = [inside(one('.rx-moment h4')), inside(one('[data-key=step-transform]'))];
        const top = (selector) => one(selector).getBoundingClientRect().top;
        told.order = top('.rx-panel') < top('.rx-moment') && top('.rx-moment') < top('.rx-way');
        """,
        tmp_path,
        width=620,
    )
    assert told == {"cut": 0, "sight": [True, True], "order": True}


@needs_browser
def test_a_rehearsal_under_other_options_is_shown_once_and_an_empty_tab_names_its_reason(
    engine: Engine, tmp_path: Path
) -> None:
    rehearsed = engine.run(MERGE, rehearse=True).trace
    told = seen(
        explorer_page(rehearsed, variants=variants_of(rehearsed)),
        """
        told.run = text('.rm-out');
        await click('[data-key=paradigm-CHANGE_ONLY_UPDATED_COLUMNS]'); await click('[data-key=step-commit]');
        told.other = [text('.rm-out'), text('.rx-says'), text('.rx-moment h4')];
        """,
        tmp_path,
    )
    assert told["run"].startswith("rehearsal, rolled back: ")
    head, says, title = told["other"]
    assert "rolled back" not in head
    assert says == "Not run. As the run was a rehearsal, all of it would be rolled back."
    assert title.endswith("What would be rolled back")
    idle = engine.run(
        MERGE.split("WHEN", maxsplit=1)[0] + "WHEN MATCHED AND s.purchases > 100 THEN DELETE",
        rehearse=True,
    ).trace
    assert seen(
        explorer_page(idle),
        "await click('[data-key=tab-writers]'); told.said = text('[role=tabpanel]');",
        tmp_path,
    ) == {"said": "No row left transform_page, so no writer got one."}


@needs_browser
def test_a_target_row_that_was_matched_twice_is_one_row_of_the_table(
    engine: Engine, tmp_path: Path
) -> None:
    merge = """MERGE INTO accounts t USING (VALUES ('Aaron', 'x'), ('Aaron', 'y'), ('Bill', 'z')) s (customer, what) ON t.customer = s.customer
        WHEN MATCHED AND s.what = 'x' THEN DO NOTHING WHEN MATCHED AND s.what = 'y' THEN UPDATE SET purchases = 1"""
    trace = engine.run(merge, rehearse=True).trace
    page = explorer_page(trace)
    assert 'data-clause="clauses 0\u20131"' in page
    script = """
        told.old = all('.rx-reader tbody tr').filter((row) => row.textContent.includes('Aaron')).length;
        await click('[data-key=step-distinct]'); told.rules = text('.rx-aside');
        told.lane = all('.rx-label').map((one) => one.textContent).filter((one) => one.includes('nothing'));
    """
    told = seen(page, script, tmp_path)
    assert (told["old"], told["lane"]) == (1, ["0 nothing"])
    # A row with DO NOTHING changes nothing, so the standard does not object to it, and neither does the engine.
    assert "Here both allow it." in told["rules"]
    assert engine.run(merge, rehearse=True, duplicates="standard").trace.state == "finished"
    kept = merge.replace("INTO accounts", "INTO twice")
    engine.run(f"CREATE TABLE twice AS SELECT * FROM ({ROWS}) AS v (customer, purchases, address)")
    new = "await click('[data-key=step-commit]'); told.new = all('.rx-reader tbody tr').map((row) => row.textContent).filter((row) => row.includes('Aaron'));"
    assert seen(explorer_page(engine.run(kept).trace), new, tmp_path)["new"] == [
        "~Aaron1Antiochclause 1 UPDATE"
    ]


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("UPDATE accounts SET purchases = 0", {"present", "is_distinct", "hash"}),
        ("DELETE FROM accounts", {"operation", "row_id"}),
    ],
)
def test_statements_without_clauses_have_legends_of_their_own(
    engine: Engine, statement: str, names: set[str]
) -> None:
    state = explorer_state(engine.run(f"{statement} WHERE purchases > 5", rehearse=True).trace)
    told = {name: dict(pairs) for name, pairs in state["legends"].items()}
    assert names <= (told["before"] if "before" in told else told["handed"]).keys()
    assert "no clause" not in json.dumps(state["legends"])
    assert "insert_from_update" in told["after"]
    assert "insert_from_update" not in told["handed"]
