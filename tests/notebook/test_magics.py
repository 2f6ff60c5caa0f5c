from __future__ import annotations

import dataclasses
import datetime as dt
import re
import signal

import pandas as pd
import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import AnalysisError, RowMergeError, StatementInterrupted
from rowmerge_nb.base.front_end import engine_call, result_call, undo_command
from rowmerge_nb.engine.api.statement_options import Options
from rowmerge_nb.engine.spark.interrupts import StatementGuard
from rowmerge_nb.notebook import magics
from rowmerge_nb.notebook.cell_options import OPTIONS
from rowmerge_nb.notebook.magics import project_defaults, register
from rowmerge_nb.notebook.transformer import CellTransformer, ShownOnce
from rowmerge_nb.trace.audit import Audit, AuditCounts
from rowmerge_nb.trace.target_record import TargetRecord

ENGINE_OPTIONS = {field.name for field in dataclasses.fields(Options)}


def test_a_cell_runs_its_statement_and_shows_the_report(notebook):
    cell = notebook.run("%%merge\nDROP TABLE t")
    assert cell.text == "Table t dropped."
    assert sorted(cell.outputs[0]) == ["text/html", "text/plain"]
    assert [sql for sql, _ in notebook.engine.asked] == ["DROP TABLE t"]


def test_the_last_result_is_in_the_namespace(notebook):
    notebook.run("%%merge\nDROP TABLE t")
    assert notebook.shell.user_ns["_merge"].trace.target.name == "t"


def test_statements_run_in_turn_and_each_is_shown(notebook):
    cell = notebook.run("%%merge\nDROP TABLE a;\nDROP TABLE b;")
    assert [output["text/plain"] for output in cell.outputs] == [
        "Table a dropped.",
        "Table b dropped.",
    ]


def test_output_keeps_the_result_and_shows_it(notebook):
    cell = notebook.run("%%merge -o kept\nDROP TABLE a; DROP TABLE b")
    assert len(cell.outputs) == 2
    assert notebook.shell.user_ns["kept"].trace.target.name == "b"


def test_the_arrow_keeps_the_result_and_shows_nothing(notebook):
    cell = notebook.run("%%merge kept <<\nDROP TABLE a")
    assert cell.outputs == []
    assert notebook.shell.user_ns["kept"].trace.target.name == "a"


def test_options_of_the_line_win_over_those_of_the_configuration(notebook):
    notebook.run('%config MergeMagic.era = "current"')
    notebook.run('%config MergeMagic.trace = "off"')
    notebook.run(
        "%%merge --era documents --paradigm change_only_updated_columns --dry-run\nDROP TABLE t"
    )
    options = notebook.engine.asked[0][1]
    assert (options["era"], options["trace"], options["duplicates"]) == ("documents", "off", None)
    assert options["paradigm"] == "CHANGE_ONLY_UPDATED_COLUMNS"
    assert options["dry_run"] is True


@pytest.mark.parametrize(
    "option",
    [option for option in OPTIONS if option.name in ENGINE_OPTIONS and option.choices],
    ids=lambda option: option.name,
)
def test_every_option_that_the_engine_knows_reaches_it(notebook, option):
    value = option.choices[-1]
    notebook.run(f"%%merge --{option.name} {value}\nDROP TABLE t")
    assert notebook.engine.asked[0][1][option.name] == value


def test_frames_of_the_notebook_are_handed_to_the_engine(notebook):
    notebook.shell.user_ns.update(
        pandas_one=pd.DataFrame({"a": [1]}),
        arrow_one=pa.table({"a": [1]}),
        _hidden=pa.table({"a": [1]}),
        number=3,
    )
    notebook.run("%%merge\nDROP TABLE t")
    assert sorted(notebook.engine.asked[0][1]["namespace"]) == ["arrow_one", "pandas_one"]


def test_expressions_are_inserted(notebook):
    notebook.run("name = 'accounts'")
    notebook.run("%%merge\nDROP TABLE {{ name }}")
    assert notebook.engine.asked[0][0] == "DROP TABLE accounts"


def test_a_dollar_sign_and_single_braces_stay_as_they_are(notebook):
    notebook.run("x = 1")
    notebook.run("%%merge\nSELECT '$x {x}'")
    assert notebook.engine.asked[0][0] == "SELECT '$x {x}'"


def test_an_error_is_shown_with_the_line_of_the_cell_and_fails_the_cell_without_traceback(notebook):
    cell = notebook.run("%%merge\n\nSELECT\n  FAIL FROM t")
    assert "Line 4:3 of the cell." in cell.text
    assert "4    FAIL FROM t\n     ^^^^" in cell.text
    assert cell.failure.line == 2
    # Front ends, nbconvert and saved notebooks show the error's text, too.
    assert str(cell.failure).startswith("COLUMN_NOT_FOUND: line 4:3 of the cell: Column 'FAIL'")
    assert (
        cell.stdout.strip()
        == "AnalysisError: COLUMN_NOT_FOUND: line 4:3 of the cell: Column 'FAIL' cannot be resolved"
    )


def test_hints_have_the_words_of_a_cell(notebook, monkeypatch):
    def undo(table: str | None = None) -> None:
        restore, difference = engine_call("restore('t', 3)"), result_call("diff()")
        hint = f"{undo_command('t')} or {restore} puts it back; {difference} has the rows."
        raise AnalysisError("No", code="NOT_FOUND", hint=hint)

    monkeypatch.setattr(notebook.engine, "undo", undo)
    text = " ".join(notebook.run("%merge undo t").text.split())
    assert "%merge undo t or fake.restore('t', 3) puts it back; _merge.diff() has the rows." in text


def test_an_error_names_what_ran_before_it_and_what_did_not_run(notebook):
    cell = notebook.run("%%merge\nDROP TABLE a; DROP TABLE b;\nSELECT FAIL; DROP TABLE c")
    text = " ".join(cell.text.split())
    assert "Statements 1 to 2 of this cell ran and stay; statement 4 did not run." in text
    assert [sql for sql, _ in notebook.engine.asked] == [
        "DROP TABLE a",
        "DROP TABLE b",
        "SELECT FAIL",
    ]


def test_the_line_of_an_error_is_right_below_an_inserted_value_of_several_lines(notebook):
    notebook.run("columns = 'a,\\nb,\\nc'")
    cell = notebook.run("%%merge\nSELECT {{ columns }},\n  FAIL")
    assert cell.failure.line == 4
    assert "line 3:3 of the cell" in cell.stdout


def test_a_failed_expression_is_shown_at_its_position(notebook):
    cell = notebook.run("%%merge\nSELECT 1;\nSELECT {{ 1 / 0 }}")
    assert "ZeroDivisionError" in cell.text
    assert "line 3:8 of the cell" in cell.stdout
    assert notebook.engine.asked == []


def test_an_unknown_option_names_the_nearest_one(notebook):
    cell = notebook.run("%%merge --duplicats standard\nDROP TABLE t")
    assert cell.failure.code == "INVALID_ARGUMENTS"
    assert "Did you mean --duplicates?" in cell.text


def test_an_unknown_part_is_refused_before_anything_runs(notebook):
    cell = notebook.run("%%merge --show plans\nDROP TABLE t")
    assert "--show has no part 'plans'" in cell.text
    assert "Did you mean 'plan'? The parts are: outcome," in " ".join(cell.text.split())
    assert "the part plan shows them" in " ".join(
        notebook.run("%%merge --show sql\nX").text.split()
    )
    assert notebook.engine.asked == []


def test_text_after_the_options_of_a_cell_is_refused(notebook):
    assert "follows the options" in notebook.run("%%merge nonsense\nDROP TABLE t").text
    assert notebook.engine.asked == []


def test_a_cell_without_a_statement_is_reported(notebook):
    assert "The cell has no statement" in notebook.run("%%merge\n-- nothing").text


def test_an_interrupt_becomes_an_error_of_its_own(notebook):
    cell = notebook.run("%%merge\nSELECT STOP")
    assert isinstance(cell.failure, StatementInterrupted)
    assert "interrupted" in cell.text


@pytest.mark.parametrize("word", ["LATE", "AFTER"])
def test_a_late_interrupt_is_reported_with_what_remains(notebook, word):
    cell = notebook.run(f"%%merge\nDROP TABLE a;\nDROP TABLE {word};\nDROP TABLE c")
    assert isinstance(cell.failure, StatementInterrupted)
    assert (cell.failure.code, cell.failure.changed) == ("USER_CANCELED", True)
    assert "change was committed" in cell.failure.message
    assert "Statements 1 to 2 of this cell ran and stay; statement 3 did not run." in " ".join(
        cell.text.split()
    )
    assert len(notebook.engine.asked) == 2
    assert "is unchanged" not in cell.text


def strike_in(monkeypatch, name, strike, *, before=True):
    """Let a function of the magics strike at its first call, before or after its work."""
    function, calls = getattr(magics, name), []

    def striking(*arguments, **options):
        calls.append(name)
        if before and len(calls) == 1:
            strike()
        given = function(*arguments, **options)
        if not before and len(calls) == 1:
            strike()
        return given

    monkeypatch.setattr(magics, name, striking)


def interrupt_twice():
    for _ in range(2):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("name", ["result_bundle", "show"])
def test_an_interrupt_while_a_report_is_shown_reports_the_change(
    notebook, monkeypatch, name, before
):
    strike_in(monkeypatch, name, interrupt_twice, before=before)
    cell = notebook.run("%%merge\nDROP TABLE a;\nDROP TABLE b")
    assert isinstance(cell.failure, StatementInterrupted)
    assert cell.failure.changed is True
    assert cell.failure.result.trace.target.name == "a"
    assert "Table a dropped." in cell.text, "the report is shown as a whole"
    assert "Statement 1 of this cell ran and stays; statement 2 did not run." in " ".join(
        cell.text.split()
    )
    assert [sql for sql, _ in notebook.engine.asked] == ["DROP TABLE a"]


@pytest.mark.parametrize("name", ["result_bundle", "show"])
def test_an_error_in_a_report_reports_the_change(notebook, monkeypatch, name):
    def fail():
        raise ValueError("no font")

    strike_in(monkeypatch, name, fail)
    cell = notebook.run("%%merge\nDROP TABLE a;\nDROP TABLE b")
    assert isinstance(cell.failure, RowMergeError)
    assert cell.failure.changed is True
    assert (
        cell.failure.message
        == "The change was committed, but a later step failed: ValueError: no font"
    )
    assert "no font" in cell.text
    assert "statement 2 did not run" in " ".join(cell.text.split())


def test_an_error_whose_report_cannot_be_drawn_is_shown_in_words(notebook, monkeypatch):
    def fail(*_, **__):
        raise ValueError("no font")

    monkeypatch.setattr(magics, "error_bundle", fail)
    cell = notebook.run("%%merge\nDROP TABLE LATE")
    assert cell.failure.changed is True
    assert "the change was committed" in cell.text
    assert "The report could not be drawn: ValueError: no font" in cell.text


def test_an_interrupt_while_an_error_is_shown_does_not_hide_it(notebook, monkeypatch):
    strike_in(monkeypatch, "show", interrupt_twice)
    cell = notebook.run("%%merge\nSELECT FAIL")
    assert cell.failure.code == "COLUMN_NOT_FOUND"
    assert "cannot be resolved" in cell.text


def test_an_interrupt_between_statements_names_those_that_have_run(notebook, monkeypatch):
    for strike_first in (True, False):
        begin = StatementGuard.next_statement

        def interrupted_there(guard, begin=begin, strike_first=strike_first):
            if strike_first:
                signal.raise_signal(signal.SIGINT)
            begin(guard)
            if not strike_first:
                signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(StatementGuard, "next_statement", interrupted_there)
            cell = notebook.run("%%merge\nDROP TABLE a;\nDROP TABLE b")
        assert isinstance(cell.failure, StatementInterrupted)
        assert cell.failure.changed is False
        assert "Statement 1 of this cell ran and stays" in " ".join(cell.text.split())
    assert [sql for sql, _ in notebook.engine.asked] == ["DROP TABLE a"] * 2


def test_a_cell_with_a_late_interrupt_leaves_the_handler_unchanged(notebook):
    before = signal.getsignal(signal.SIGINT)
    notebook.run("%%merge\nDROP TABLE LATE")
    notebook.run("%%merge\nDROP TABLE a")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("form", "keys"), [("text", {"text/plain", "text/html"}), ("json", {"text/plain", "text/html"})]
)
def test_explain_shows_the_plan_and_runs_nothing(notebook, form, keys):
    cell = notebook.run(f"%%merge --explain {form}\nMERGE INTO t")
    assert set(cell.outputs[0]) == keys
    assert cell.text == "Output[]"


def test_the_line_magic_runs_one_statement(notebook):
    assert notebook.run("%merge DROP TABLE t").text == "Table t dropped."


def test_the_line_magic_lists_tables(notebook):
    assert (
        "memory.default.accounts  memory     3  DELETE_ROW_AND_INSERT_ROW  a varchar, b bigint"
        in notebook.run("%merge tables").text
    )


def test_the_line_magic_lists_options_with_their_values(notebook):
    notebook.run('%config MergeMagic.era = "current"')
    assert "era              current  documents" in notebook.run("%merge options").text


@pytest.mark.parametrize("line", ["%merge", "%merge help", "%merge --help", "%%merge --help\nx"])
def test_help_lists_every_option(notebook, line):
    text = notebook.run(line).text
    assert "--paradigm CHANGE_ONLY_UPDATED_COLUMNS|DELETE_ROW_AND_INSERT_ROW" in text
    assert "%merge doctor" in text


def test_an_invalid_engine_is_refused_with_the_available_ones(notebook):
    cell = notebook.run("%%merge --engine nothing\nDROP TABLE t")
    assert "The variable 'nothing' does not hold an engine" in cell.text
    assert "Make one: nothing = rowmerge_nb.Engine()" in cell.text


def test_defaults_are_read_from_the_nearest_project_file(shell, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.rowmerge_nb]\nera = "current"\nmax-rows = 5\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    magic = register(shell)
    assert (magic.era, magic.max_rows) == ("current", 5)
    assert project_defaults(tmp_path)[1] == tmp_path / "pyproject.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.rowmerge_nb]\neras = "current"\n', "has no option 'eras'"),
        ('[tool.rowmerge_nb]\nera = "trino"\n', "era = 'trino' is not possible"),
        ("[tool.rowmerge_nb\n", "cannot be read"),
    ],
)
def test_a_wrong_project_file_is_named_and_ignored(shell, tmp_path, text, message):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.warns(UserWarning, match=message):
        magic = register(shell)
    assert magic.era == "documents"
    assert shell.find_line_magic("merge") is not None


def test_a_wrong_value_does_not_affect_the_others(shell, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.rowmerge_nb]\nera = "trino"\nmax-rows = 5\n')
    with pytest.warns(UserWarning, match="is ignored"):
        assert register(shell).max_rows == 5


def test_errors_can_be_caught_by_their_class(notebook):
    with pytest.raises(RowMergeError, match="COLUMN_NOT_FOUND"):
        notebook.shell.run_cell_magic("merge", "", "SELECT FAIL")


@pytest.mark.parametrize(
    "cell", ["%%merge --compare flows", "%%merge --dry-run\n\n", "%merge -o kept", "%merge kept <<"]
)
def test_options_without_a_statement_are_not_mistaken_for_a_call_for_help(notebook, cell):
    assert "The cell has no statement" in notebook.run(cell).text


@pytest.mark.parametrize(
    "cell", ["%%merge --help", "%%merge --help\n", "%%merge\n\n  \n", "\n%%merge -h\n"]
)
def test_a_cell_of_nothing_but_its_first_line_shows_the_help(notebook, cell):
    notebook.shell.run_line_magic("reload_ext", "rowmerge_nb")
    shown = notebook.run(cell)
    assert shown.error is None
    assert shown.text.count("%merge doctor") == 1


def test_unloading_removes_everything(notebook):
    def registered():
        shell = notebook.shell
        both = [*shell.input_transformers_cleanup, *shell.ast_transformers]
        return sum(isinstance(one, CellTransformer | ShownOnce) for one in both)

    assert registered() == 2
    notebook.shell.run_line_magic("unload_ext", "rowmerge_nb")
    assert registered() == 0
    assert notebook.shell.find_cell_magic("merge") is None
    assert notebook.shell.find_line_magic("merge") is None


def test_settings_reach_the_magics_that_were_loaded_last(notebook):
    notebook.shell.run_line_magic("reload_ext", "rowmerge_nb")
    notebook.shell.run_line_magic("config", "MergeMagic.show = 'outcome'")
    assert notebook.shell.magics_manager.registry["MergeMagic"].show == "outcome"


@pytest.mark.parametrize("option", ["--dry-run", "--explain"])
def test_an_error_of_a_plan_does_not_mention_executed_statements(notebook, option):
    cell = notebook.run(f"%%merge {option}\nDROP TABLE a; SELECT FAIL")
    if option == "--dry-run":
        assert "cannot be resolved" in cell.text
    assert "ran and stay" not in cell.text


def test_show_holds_for_a_statement_that_fails(notebook, monkeypatch):
    from rowmerge_nb.base.errors import DuplicateMatchError
    from rowmerge_nb.engine.api.result import Result
    from tests.report import traces

    def fail(sql, **options):
        trace = traces.duplicate_trace()
        error = DuplicateMatchError(trace.error.message, groups=trace.join.duplicate_groups)
        error.result = Result(trace)
        raise error

    monkeypatch.setattr(notebook.engine, "run", fail)
    assert "Connector calls" in notebook.run("%%merge\nMERGE INTO t").text
    shown = notebook.run("%%merge --show outcome\nMERGE INTO t").text
    assert "MERGE_TARGET_ROW_MULTIPLE_MATCHES" in shown
    assert "Connector calls" not in shown


def test_a_failed_statement_does_not_leave_the_result_of_an_earlier_one(notebook, monkeypatch):
    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.engine.api.result import Result
    from tests.report import traces

    notebook.run("%%merge -o named\nDROP TABLE a")
    notebook.run("%%merge quiet <<\nDROP TABLE a")
    failed = Result(traces.duplicate_trace())

    def fail(sql, **options):
        error = RowMergeError("No column", code="COLUMN_NOT_FOUND")
        error.result = failed
        raise error

    monkeypatch.setattr(notebook.engine, "run", fail)
    notebook.run("%%merge -o named\nMERGE INTO t")
    notebook.run("%%merge quiet <<\nMERGE INTO t")
    names = notebook.shell.user_ns
    assert names["named"] is names["quiet"] is names["_merge"] is failed


def test_a_refused_undo_leaves_the_result_that_has_the_old_values(notebook, monkeypatch):
    from rowmerge_nb.base.errors import ConnectorError

    notebook.run("%%merge\nDROP TABLE a")
    before = notebook.shell.user_ns["_merge"]
    refused = notebook.engine.undo("t")

    def undo(table: str | None = None) -> None:
        error = ConnectorError("connector 'sqlite' keeps no earlier versions", code="NOT_SUPPORTED")
        error.result = refused
        raise error

    monkeypatch.setattr(notebook.engine, "undo", undo)
    assert "keeps no earlier versions" in notebook.run("%merge undo t").text
    assert notebook.shell.user_ns["_merge"] is before


def test_an_unknown_word_of_the_line_magic_names_the_nearest_command(notebook):
    for line in ("%merge tabels", "%merge table"):
        assert "Did you mean `%merge tables`?" in notebook.run(line).text
    assert "The commands are `%merge tables`" in notebook.run("%merge frobnicate").text
    assert notebook.engine.asked == []


def test_a_misspelt_statement_is_the_parsers(notebook):
    notebook.run("%merge SELEC 1")
    notebook.run("%merge OPTIMIZE t")
    notebook.run('%merge DESCRIBE HISTORY lake."rd-work".t')
    assert [asked[0] for asked in notebook.engine.asked] == [
        "SELEC 1",
        "OPTIMIZE t",
        'DESCRIBE HISTORY lake."rd-work".t',
    ]


def test_options_may_follow_a_command(notebook):
    assert "--paradigm CHANGE_ONLY" in notebook.run("%merge tables --help").text
    assert "memory.default.accounts" in notebook.run("%merge tables --engine fake").text
    assert "takes options only" in notebook.run("%merge tables accounts").text


def test_undo_undoes_a_change_and_shows_it(notebook):
    for line, table in (
        ("%merge undo", None),
        ("%merge undo accounts", "accounts"),
        ('%merge undo lake."rd work".t', 'lake."rd work".t'),
        ('%merge undo "a b" --engine fake', '"a b"'),
        ("%merge UNDO lake.default.t --engine fake", "lake.default.t"),
        ("%merge undo --engine fake t", "t"),
        ("%merge --engine fake undo t", "t"),
    ):
        shown = notebook.run(line).text
        assert notebook.engine.undone[-1] == table
        assert "Table t has its earlier rows again, in version 7. t 1 → 3 rows." in shown
        assert "Undone: DELETE of 2 rows: DELETE FROM t" in shown
    assert notebook.shell.user_ns["_merge"].version_after == 7
    assert notebook.run("%merge kept << undo").outputs == []
    assert notebook.shell.user_ns["kept"].trace.kind == "UNDO"


def test_undo_accepts_one_name_and_no_options(notebook):
    for line, said in (
        ("%merge undo a b", "follows %merge undo"),
        ("%merge undo --dry-run", "--dry-run and %merge undo cannot be combined"),
        ("%merge --rehearse undo t", "--rehearse and %merge undo cannot be combined"),
        ("%merge undo -o x", "--output and %merge undo cannot be combined"),
    ):
        assert said in notebook.run(line).text
    assert notebook.engine.undone == []
    assert (
        "undoes the last change"
        in notebook.run("%merge undo --help").text + notebook.run("%merge help").text
    )


def test_a_failed_or_interrupted_undo_names_the_reason(notebook):
    assert notebook.run("%merge undo nope").failure.code == "TABLE_NOT_FOUND"
    failure = notebook.run("%merge undo LATE").failure
    assert (failure.code, failure.changed) == ("USER_CANCELED", False)


def test_lines_of_an_inserted_statement_are_its_own(notebook):
    notebook.run("statement = 'SELECT\\n FAIL'")
    cell = notebook.run("%%merge\n\n\n{{ statement }}")
    assert "Line 2:2." in cell.text
    assert "line 2:2" in cell.stdout
    assert "ell line" not in cell.text + cell.stdout


def rows(notebook, table):
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.trace.trace import Trace

    notebook.engine.run = lambda sql, **options: Result(
        Trace(statement=sql, kind="SELECT", state="finished"), table
    )
    return notebook.run("%%merge\nSELECT")


def test_columns_of_one_name_are_shown_by_position(notebook):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert rows(notebook, table).text == "a  a\n-  -\n1  2\n1 row"


def test_values_are_written_as_sql_does(notebook):
    table = pa.table(
        {
            "n": pa.array([1.5, None]),
            "t": pa.array(["NULL", None]),
            "b": pa.array([True, False]),
            "x": pa.array([b"\x0f", b""]),
            "a": pa.array([["it's", None], []]),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            "long": pa.array([1, 1000]),
        }
    )
    cell = rows(notebook, table)
    assert cell.text.split("\n") == [
        "   n  t       b      x      a                     m                          long",
        "----  ------  -----  -----  --------------------  -------------------------  ----",
        " 1.5  'NULL'  true   X'0F'  ARRAY['it''s', NULL]  MAP(ARRAY['k'], ARRAY[1])     1",
        "NULL  NULL    false  X''    ARRAY[]               NULL                       1000",
        "2 rows",
    ]
    html = cell.outputs[0]["text/html"]
    assert "<td>NULL</td><td>true</td>" in html
    assert '<td class="rm-r"><i>NULL</i></td><td><i>NULL</i></td>' in html
    assert re.match(r'<div class="rm rm-[0-9a-f]{6}"><style>', html)


def test_a_query_without_rows_shows_its_columns(notebook):
    assert rows(notebook, pa.table({"a": pa.array([], pa.int64())})).text == "a\n-\n0 rows"


def test_the_rows_of_returning_are_above_the_report(notebook):
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.trace.trace import Trace

    trace = Trace(
        statement="MERGE",
        kind="MERGE",
        state="finished",
        target=TargetRecord(name="t"),
        count=1,
        returned=1,
    )
    notebook.engine.run = lambda sql, **options: Result(trace, pa.table({"a": [7]}))
    cell = notebook.run("%%merge --dialect extended\nMERGE")
    assert cell.text.startswith("a\n-\n7\n1 row\n\nMERGE INTO t: 1 row changed")
    html = cell.outputs[0]["text/html"]
    assert html.index(">7</td>") < html.index("1 row changed")


def test_times_and_their_zones_are_written_as_sql_does(notebook):
    at = dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert "2020-01-02 03:04:05 UTC\n" in rows(notebook, pa.table({"z": [at]})).text
    assert "ARRAY[DATE '2020-01-02']" in rows(notebook, pa.table({"d": [[at.date()]]})).text


def test_a_default_engine_that_was_closed_is_replaced(monkeypatch):
    from rowmerge_nb import default

    monkeypatch.setattr(default, "_engines", [])
    engine = default.default_engine()
    assert default.default_engine() is engine
    engine.close()
    assert engine.closed
    assert default.default_engine() is not engine
    assert not default.default_engine().closed


@pytest.mark.parametrize(
    ("cell", "starts"),
    [
        ("%%merge\n-- a note\n/* and\nanother */ Select 1", True),
        ("%merge MERGE INTO t", True),
        ("%%merge\nMERG INTO t", False),
        ("%merge EXPLAIN SELECT 1", False),
        ("%%merge --dry-run\nSELECT 1", False),
        ("%%merge --show nonsense\nSELECT 1", False),
        ("%%merge\nSELECT {{ nothing }}", False),
        ("%%merge", False),
    ],
)
def test_java_is_started_for_what_begins_as_a_statement_that_runs(
    notebook, monkeypatch, cell, starts
):
    from rowmerge_nb import default

    begun = []
    notebook.run('%config MergeMagic.engine = ""')
    monkeypatch.setattr(
        default, "default_engine", lambda *, start=False: begun.append(start) or notebook.engine
    )
    notebook.run(cell)
    assert any(begun) == starts


def test_a_comparison_is_requested_without_the_default_of_the_compared_option(notebook):
    notebook.run('%config MergeMagic.duplicates = "standard"')
    notebook.run('%config MergeMagic.era = "current"')
    cell = notebook.run("%%merge --compare duplicates -o both\nMERGE INTO t")
    by, sql, options = notebook.engine.compared[0]
    assert (by, sql, options["era"]) == ("duplicates", "MERGE INTO t", "current")
    assert "duplicates" not in options
    assert cell.text.startswith("Both ways would leave the same 1 row")
    assert sorted(cell.outputs[0]) == ["text/html", "text/plain"]
    assert notebook.shell.user_ns["both"].by == "duplicates"
    assert notebook.shell.user_ns["_merge"] is notebook.shell.user_ns["both"]


def test_a_comparison_of_catalogs_names_them_after_the_equals_sign(notebook):
    for written, names in (
        ("--compare catalogs=ours,ice483", ["ours", "ice483"]),
        ("--compare=catalogs=ours,ice483", ["ours", "ice483"]),
        ("--compare 'catalogs=Ours, ICE'", ["Ours", "ICE"]),
    ):
        assert notebook.run(f"%%merge {written}\nDELETE FROM t").error is None
        by, sql, options = notebook.engine.compared.pop()
        assert (by, sql, options["catalogs"]) == ("catalogs", "DELETE FROM t", names)
    for written in ("--compare catalogs", "--compare catalogs="):
        shown = notebook.run(f"%%merge {written}\nDELETE FROM t")
        assert "--compare catalogs needs a value" in shown.text
        assert "Write --compare catalogs=NAME,NAME" in shown.text
    assert "Did you mean catalogs" in notebook.run("%%merge --compare catalog\nDELETE FROM t").text
    assert notebook.engine.compared == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--lab --compare flows", "--lab and --compare cannot be combined"),
        ("--lab --rehearse", "--lab and --rehearse cannot be combined"),
        ("--lab --explain", "--lab and --explain cannot be combined"),
        ("--lab=share", "--lab cannot be 'share'"),
        ("--lab 'share=1 share=2'", "--lab has share twice"),
        ("--layouts --lab", "--layouts and --lab cannot be combined"),
        ("--layouts region --check", "--layouts and --check cannot be combined"),
    ],
)
def test_a_lab_and_layouts_have_no_other_output(notebook, options, message):
    assert message in notebook.run(f"%%merge {options}\nDELETE FROM t").text


def test_a_lab_of_two_statements_is_refused(notebook):
    shown = notebook.run("%%merge --lab\nDELETE FROM t;\nDELETE FROM t")
    assert "--lab runs one statement, but the cell has 2" in shown.text


def test_a_lab_gets_its_arguments_from_the_cell(notebook, monkeypatch):
    calls = []

    def lab(sql, **arguments):
        calls.append((sql, arguments))
        return notebook.engine.compare(sql, by="flows")

    monkeypatch.setattr(notebook.engine, "lab", lab, raising=False)
    for written, grid in (("--lab 'share=0.1,1 rows=50'", {"share": [0.1, 1]}), ("--lab", None)):
        assert notebook.run(f"%%merge {written}\nDELETE FROM t").error is None
        sql, arguments = calls.pop()
        assert (sql, arguments.get("grid")) == ("DELETE FROM t", grid)
        assert "verify" not in arguments


def test_layouts_are_compared_by_all_statements_of_the_cell(notebook, monkeypatch):
    calls = []

    def layouts(table, statements, **arguments):
        calls.append((table, statements, arguments))
        return notebook.engine.compare(statements, by="flows")

    monkeypatch.setattr(notebook.engine, "layouts", layouts, raising=False)
    for written, names in (
        ("--layouts", None),
        ("--layouts region", ["region"]),
        ("--layouts month(day)", ["month(day)"]),
        ("--layouts 'region; bucket(id, 16)'", ["region", "bucket(id, 16)"]),
        ('--layouts="month(day), region"', ["month(day), region"]),
    ):
        assert notebook.run(f"%%merge {written}\nDELETE FROM t;\nDELETE FROM t").error is None
        table, statements, arguments = calls.pop()
        assert (table, statements.strip()) == (None, "DELETE FROM t;\nDELETE FROM t")
        assert arguments["layouts"] == names
        assert "verify" not in arguments


def test_an_error_among_statements_for_layouts_has_the_line_of_its_own(notebook, monkeypatch):
    def layouts(table, statements, **arguments):
        notebook.engine.run("DELETE FROM t WHERE\nFAIL", **arguments)

    monkeypatch.setattr(notebook.engine, "layouts", layouts, raising=False)
    shown = notebook.run("%%merge --layouts\nDELETE FROM t;\nDELETE FROM t WHERE\nFAIL")
    assert "4  FAIL" in shown.text
    assert "did not run" not in shown.text


def test_a_comparison_of_stores_needs_no_names(notebook):
    for written, names in (
        ("--compare stores", None),
        ("--compare stores=delta,hive", ["delta", "hive"]),
        ("--compare Stores", None),
    ):
        assert notebook.run(f"%%merge {written}\nDELETE FROM t").error is None
        by, sql, options = notebook.engine.compared.pop()
        assert (by, sql, options.get("stores")) == ("stores", "DELETE FROM t", names)
    assert "needs a value" in notebook.run("%%merge --compare stores=\nDELETE FROM t").text
    assert notebook.engine.compared == []


@pytest.mark.parametrize(
    "option", ["--explain", "--dry-run", "--show plan", "--explore", "--predict"]
)
def test_a_comparison_and_options_of_another_output_are_mutually_exclusive(notebook, option):
    cell = notebook.run(f"%%merge --compare flows {option}\nDELETE FROM t")
    assert f"--compare and {option.split()[0]} cannot be combined" in cell.text
    assert notebook.engine.compared == []


def test_an_unexplorable_statement_is_noted_beneath_the_report_without_an_error(
    notebook, monkeypatch
):
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.trace.trace import Trace

    assert "No explorer" not in notebook.run("%%merge --explore\nDROP TABLE t").text
    monkeypatch.setattr(
        notebook.engine,
        "run",
        lambda sql, **_: Result(
            Trace(statement=sql, kind="MERGE", state="finished", target=TargetRecord(name="t"))
        ),
    )
    cell = notebook.run("%%merge --explore\nMERGE INTO t")
    assert (
        "No explorer: The trace of this MERGE has no rows with the values of both sides"
        in cell.text
    )
    assert "trace='full'" in cell.text


def test_a_statement_whose_target_is_unknown_has_no_explorer_and_no_word_about_it(notebook):
    from rowmerge_nb import Engine

    notebook.shell.user_ns["mine"] = Engine()
    cell = notebook.run("%%merge --engine mine --explore\nDELETE FROM nowhere WHERE id = 1")
    assert cell.failure.code == "TABLE_NOT_FOUND"
    assert "explorer" not in cell.text.lower()
    with pytest.raises(RowMergeError, match="nothing to show for this DELETE"):
        cell.failure.result.explore()


def test_the_explorer_beneath_a_report_does_not_repeat_it(notebook, monkeypatch):
    from rowmerge_nb.engine.api.result import Result
    from tests.report.traces import Setup, merge_trace

    monkeypatch.setattr(notebook.engine, "run", lambda sql, **_: Result(merge_trace(Setup())))
    report, explorer, saved = notebook.run("%%merge --explore\nMERGE INTO t").outputs
    assert "Row journeys" in report["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in explorer
    assert explorer["text/plain"] == ""
    assert "text/html" not in explorer
    assert "result.save_html" in saved["text/plain"]
    assert saved["text/html"].count("<iframe") == 1


def test_a_saved_explorer_is_small_and_the_same_each_time(notebook, monkeypatch):
    from rowmerge_nb.engine.api.result import Result
    from tests.report.traces import Setup, merge_trace

    monkeypatch.setattr(notebook.engine, "run", lambda sql, **_: Result(merge_trace(Setup())))
    first, second = (
        notebook.run("%%merge --explore\nMERGE INTO t").outputs[2]["text/html"] for _ in range(2)
    )
    assert first == second
    assert len(first.encode()) < 60_000
    # Viewers without frames have a table of the rows.
    table = first.replace(' style="text-align:left"', "")
    assert "<tr><td>Bill, 9, Berkeley</td><td>DELETE</td>" in table


def test_predict_shows_the_explorer_before_a_folded_report(notebook, monkeypatch):
    from rowmerge_nb.engine.api.result import Result
    from tests.report.traces import Setup, merge_trace

    monkeypatch.setattr(notebook.engine, "run", lambda sql, **_: Result(merge_trace(Setup())))
    explorer, saved, report = notebook.run("%%merge --predict\nMERGE INTO t").outputs
    assert "application/vnd.jupyter.widget-view+json" in explorer
    assert "<td>DELETE</td>" not in saved["text/html"], "the table would answer"
    assert report["text/html"].startswith("<details><summary>The report, with the answers")
    assert "Row journeys" in report["text/html"]
    both = notebook.run("%%merge --predict --explore\nMERGE INTO t").outputs
    assert len(both) == len([explorer, saved, report])


@pytest.mark.parametrize("kind", ["UPDATE", "DELETE"])
def test_predict_folds_the_report_of_every_row_change(notebook, monkeypatch, kind):
    from rowmerge_nb.engine.api.result import Result
    from tests.report.traces import Setup, merge_trace

    trace = dataclasses.replace(merge_trace(Setup()), kind=kind)
    monkeypatch.setattr(notebook.engine, "run", lambda sql, **_: Result(trace))
    explorer, _, report = notebook.run(f"%%merge --explore --predict\n{kind} t").outputs
    assert "application/vnd.jupyter.widget-view+json" in explorer
    assert report["text/html"].startswith("<details><summary>The report, with the answers")


def test_predict_folds_the_report_of_a_failed_merge(notebook, monkeypatch):
    from rowmerge_nb.base.errors import DuplicateMatchError
    from rowmerge_nb.engine.api.result import Result
    from tests.report.traces import duplicate_trace

    def fail(sql: str, **_: object) -> None:
        error = DuplicateMatchError("One MERGE target table row matched more than one source row")
        error.result = Result(duplicate_trace())
        raise error

    monkeypatch.setattr(notebook.engine, "run", fail)
    explorer, _, report = notebook.run("%%merge --predict\nMERGE INTO t").outputs
    assert "application/vnd.jupyter.widget-view+json" in explorer
    assert report["text/html"].startswith("<details><summary>The report, with the answers")
    assert "MERGE_TARGET_ROW_MULTIPLE_MATCHES" in report["text/plain"]


def test_predict_of_what_has_no_outcome_to_guess_is_the_usual_report(notebook, monkeypatch):
    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.trace.trace import Trace

    assert len(notebook.run("%%merge --predict\nDROP TABLE t").outputs) == 1
    monkeypatch.setattr(
        notebook.engine,
        "run",
        lambda sql, **_: Result(
            Trace(statement=sql, kind="MERGE", state="finished", target=TargetRecord(name="t"))
        ),
    )
    report, why = notebook.run("%%merge --predict\nMERGE INTO t").outputs
    assert "<details><summary>The report" not in report["text/html"]
    assert "No explorer" in why["text/plain"]


def test_a_rehearsal_is_requested_from_the_engine(notebook):
    notebook.run("%%merge --rehearse\nMERGE INTO t")
    assert notebook.engine.asked[-1][1]["rehearse"] is True
    notebook.run("%%merge\nMERGE INTO t")
    assert "rehearse" not in notebook.engine.asked[-1][1]


def test_near_keys_are_requested_from_the_engine_and_not_from_a_comparison(notebook):
    notebook.run("%%merge --near\nMERGE INTO t")
    assert notebook.engine.asked[-1][1]["near"] is True
    notebook.run("%%merge\nMERGE INTO t")
    assert "near" not in notebook.engine.asked[-1][1]
    asked = len(notebook.engine.asked)
    assert (
        "--compare and --near cannot be combined"
        in notebook.run("%%merge --near --compare duplicates\nMERGE INTO t").text
    )
    assert len(notebook.engine.asked) == asked


@pytest.mark.parametrize("option", ["--explain", "--dry-run", "--compare flows"])
def test_statements_that_do_not_run_are_not_rehearsed(notebook, option):
    cell = notebook.run(f"%%merge --rehearse {option}\nDELETE FROM t")
    assert f"--rehearse and {option.split()[0]} cannot be combined" in cell.text
    assert not notebook.engine.asked


@pytest.mark.parametrize("parts", ["short", "learn", "connector", "short,calls"])
def test_presets_are_parts(notebook, parts):
    assert "no part" not in notebook.run(f"%%merge --show {parts}\nDROP TABLE t").text


def test_an_audit_is_requested_without_inapplicable_defaults(notebook, monkeypatch):
    asked = []
    counts = AuditCounts(3, 2, 1, 0, 1, 0, 0, 0)

    def audit(*, before, after, statement, **options):
        asked.append((before, after, options))
        return Audit(
            statement, "DELETE", "t", "version 3", "version 5", counts, (), (("id", "bigint"),)
        )

    monkeypatch.setattr(notebook.engine, "audit", audit, raising=False)
    notebook.run('%config MergeMagic.duplicates = "standard"')
    notebook.run('%config MergeMagic.dialect = "extended"')
    cell = notebook.run("%%merge --audit 3..5 -o kept\nDELETE FROM t")
    [(before, after, options)] = asked
    assert (before, after, options["dialect"]) == (3, 5, "extended")
    assert not {"duplicates", "era", "trace"} & {name for name, value in options.items() if value}
    assert cell.text.startswith("AGREES: t holds the 2 rows that this DELETE leaves.")
    assert notebook.shell.user_ns["kept"] is notebook.shell.user_ns["_merge"]
    notebook.run("%%merge --audit before-may..\nDELETE FROM t")
    assert asked[1][:2] == ("before-may", None)


@pytest.mark.parametrize(
    "option",
    [
        "--explain",
        "--dry-run",
        "--show plan",
        "--explore",
        "--predict",
        "--near",
        "--compare flows",
        "--rehearse",
    ],
)
def test_an_audit_and_options_of_another_output_are_mutually_exclusive(notebook, option):
    cell = notebook.run(f"%%merge --audit 1..2 {option}\nDELETE FROM t")
    assert "cannot be combined" in cell.text
    assert not notebook.engine.asked


@pytest.mark.parametrize("states", ["3", "..5", "1..2..3"])
def test_an_audit_needs_two_states(notebook, states):
    cell = notebook.run(f"%%merge --audit {states}\nDELETE FROM t")
    assert f"--audit needs two states but got '{states}'" in cell.text
    assert "Write --audit BEFORE..AFTER" in cell.text


def test_rows_are_requested_by_a_condition_from_the_engine_and_not_from_a_comparison(notebook):
    notebook.run("""%%merge --why "t.customer = 'Dave'"\nMERGE INTO t""")
    assert notebook.engine.asked[-1][1]["why"] == "t.customer = 'Dave'"
    notebook.run("%%merge\nMERGE INTO t")
    assert "why" not in notebook.engine.asked[-1][1]
    assert (
        "--compare and --why cannot be combined"
        in notebook.run("%%merge --why a=1 --compare duplicates\nMERGE INTO t").text
    )
    assert "--why needs a value" in notebook.run("%%merge --why\nMERGE INTO t").text


def test_an_error_in_the_text_of_an_option_is_in_the_first_line(notebook, monkeypatch):
    def refuse(sql, **_):
        error = RowMergeError("no such column", code="COLUMN_NOT_FOUND", line=1, column=1, length=3)
        error.statement = "idd = 3"
        raise error

    monkeypatch.setattr(notebook.engine, "run", refuse)
    text = notebook.run("%%merge --why 'idd = 3'\n\n\nMERGE INTO t").text
    assert "Line 1:1." in text
    assert "1  idd = 3\n   ^^^" in text


@pytest.mark.parametrize(
    "cell",
    [
        "%merge translate PostgreSQL UPDATE t SET v = s.v::int FROM s WHERE t.id = s.id",
        "%%merge translate postgresql\nUPDATE t SET v = s.v::int\nFROM s WHERE t.id = s.id",
    ],
)
def test_a_statement_of_another_engine_is_shown_in_trinos_words(notebook, cell):
    shown = notebook.run(cell).text
    assert "MERGE INTO t USING s ON t.id = s.id" in shown
    assert "\n- " in shown
    assert notebook.engine.asked == []


def test_a_translation_is_kept_in_a_variable(notebook):
    assert not notebook.run("%merge words << translate duckdb DELETE FROM t").text
    assert notebook.shell.user_ns["words"].sql == "DELETE FROM t"


@pytest.mark.parametrize(
    "cell",
    [
        "%%merge translate snowflake -o words\nDELETE FROM t",
        "%%merge translate -o words snowflake\nDELETE FROM t",
        "%%merge translate snowflake words <<\nDELETE FROM t",
        "%merge translate snowflake --output words DELETE FROM t",
    ],
)
def test_options_may_follow_the_dialect(notebook, cell):
    notebook.run(cell)
    assert notebook.shell.user_ns["words"].sql == "DELETE FROM t"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%merge translate", "%merge translate has no dialect"),
        ("%merge translate delta", "%merge translate has no statement"),
        ("%merge translate mysql DELETE FROM t", "There is no dialect 'mysql'"),
        ("%merge --explain translate delta DELETE FROM t", "cannot be combined"),
    ],
)
def test_a_translation_needs_a_known_dialect_and_only_a_statement(notebook, line, message):
    assert message in notebook.run(line).text


def test_an_unknown_part_is_refused_when_it_is_set(notebook, caplog):
    notebook.run('%config MergeMagic.show = "short, plan"')
    assert not caplog.records
    notebook.run('%config MergeMagic.show = "tiny"')
    assert "has no part 'tiny'" in caplog.text  # IPython writes errors of %config to its log
    notebook.run("shown = get_ipython().run_line_magic('config', 'MergeMagic.show')")
    assert notebook.shell.user_ns["shown"] == "short, plan"
