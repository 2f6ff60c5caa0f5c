"""Common user input around the magics, in a shell without a kernel."""

from __future__ import annotations

import re

import pytest

from rowmerge_nb.base.errors import RowMergeError


@pytest.mark.parametrize(
    ("cell", "statements"),
    [
        ("%merge\nDROP TABLE t", ["DROP TABLE t"]),
        ("%merge\n\n-- all of it\nDROP TABLE t;\nDROP TABLE u", ["DROP TABLE t", "DROP TABLE u"]),
        ("%merge SELECT *\nFROM t", ["SELECT *\nFROM t"]),
        ("%merge --era current\nSELECT *\nFROM t", ["SELECT *\nFROM t"]),
        ("%merge --era current SELECT *\nFROM t", ["SELECT *\nFROM t"]),
        ("%%merge SELECT *\nFROM t", ["SELECT *\nFROM t"]),
        ("%%merge -o x SELECT *\nFROM t", ["SELECT *\nFROM t"]),
        ("# the first\n%%merge\nDROP TABLE t", ["DROP TABLE t"]),
        ("\n\n# the first\n\n%%merge\nDROP TABLE t", ["DROP TABLE t"]),
        ("# the first\n%merge\nDROP TABLE t", ["DROP TABLE t"]),
        ("%merge DROP TABLE t\ny = 1", ["DROP TABLE t"]),
        ("%merge DROP TABLE t\n%merge DROP TABLE u", ["DROP TABLE t", "DROP TABLE u"]),
        ("z = 1\n%merge DROP TABLE t", ["DROP TABLE t"]),
        ("x = %merge DROP TABLE t", ["DROP TABLE t"]),
        ("x = %merge\nDROP TABLE t", ["DROP TABLE t"]),
        ("x = %%merge\nSELECT *\nFROM t", ["SELECT *\nFROM t"]),
        ("x = %merge SELECT *\nFROM t", ["SELECT *\nFROM t"]),
        ("x = %%merge DROP TABLE t\n", ["DROP TABLE t"]),
    ],
)
def test_a_cell_with_a_likely_mistake_runs_as_intended(notebook, cell, statements):
    done = notebook.run(cell)
    assert done.error is None
    assert [sql for sql, _ in notebook.engine.asked] == statements
    assert len(done.outputs) == len(statements)
    if cell.startswith(("x = ", "%%merge -o x")):
        assert notebook.shell.user_ns["x"] is notebook.shell.user_ns["_merge"]


def refusal(notebook, cell):
    """Run a cell that never reaches the magic; IPython keeps its error separately."""
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        error = notebook.shell.run_cell(cell).error_before_exec
    assert isinstance(error, RowMergeError)
    assert notebook.engine.asked == []
    # Without the frames of IPython.
    printed = f"RowMergeError: {error.code}: {error.message}\n{error.hint}"
    assert captured.stdout.strip() == printed
    return error


@pytest.mark.parametrize(
    ("cell", "message", "hint"),
    [
        ("y = 1\n%%merge\nDROP TABLE t", "on line 2 of its cell", "a cell of its own"),
        ("%load_ext rowmerge_nb\n\n%%merge\nDROP TABLE t", "on line 3", "a cell of its own"),
        ("%%sql\nSELECT 1", "The magic %%sql does not exist", "Write %%merge"),
        ("%sql SELECT 1", "The magic %sql does not exist", "Write %merge"),
    ],
)
def test_a_cell_that_can_only_be_a_mistake_is_answered(notebook, cell, message, hint):
    error = refusal(notebook, cell)
    assert error.code == "INVALID_ARGUMENTS"
    assert message in error.message
    assert hint in error.hint


def test_a_magic_of_another_extension_stays_its_own(notebook):
    notebook.shell.register_magic_function(lambda line, cell: None, "cell", "sql")
    assert notebook.run("%%sql\nSELECT 1").error is None


@pytest.mark.parametrize("cell", ["%merge tables\nprint(1", "%merge DROP TABLE t;\nif"])
def test_broken_python_below_a_line_is_pythons_error(notebook, cell):
    assert isinstance(notebook.shell.run_cell(cell).error_before_exec, SyntaxError)
    assert notebook.engine.asked == []


@pytest.mark.parametrize(
    "cell", ["# first\n%%merge\n\nSELECT\n  FAIL", "%merge\n\n\nSELECT\n  FAIL"]
)
def test_an_error_has_the_line_of_the_original_cell(notebook, cell):
    assert "line 5:3 of the cell" in notebook.run(cell).stdout


def test_a_line_returns_its_result_and_shows_it_once(notebook):
    done = notebook.run("x = %merge DROP TABLE t\nx.trace.kind")
    assert done.error is None
    assert [output["text/plain"] for output in done.outputs] == ["Table t dropped."]
    result = notebook.shell.run_cell("%merge DROP TABLE t").result
    # IPython would keep the result, with all its rows, in Out.
    assert result is None
    assert notebook.shell.run_line_magic("merge", "DROP TABLE t").trace.target.name == "t"


def test_commands_return_nothing_and_undo_its_result(notebook):
    assert notebook.shell.run_line_magic("merge", "tables") is None
    assert notebook.shell.run_line_magic("merge", "undo t").trace.kind == "UNDO"


def test_the_cell_that_loads_the_extension_shows_a_report_once(notebook) -> None:
    from IPython.utils.capture import capture_output

    shell, line = notebook.shell, "%merge DELETE FROM accounts"
    shell.run_line_magic("unload_ext", "rowmerge_nb")
    load = "%load_ext rowmerge_nb\n%config MergeMagic.engine = 'fake'"
    for cell, count in (
        (f"{load}\n{line}", 1),
        (line, 1),
        (f"%unload_ext rowmerge_nb\n{load}\nresult = {line}\nresult", 1),
        ("result", 1),
        (f"%unload_ext rowmerge_nb\n{load}\nresult = {line}\ndisplay(other)\nother", 3),
    ):
        shell.user_ns["other"] = shell.user_ns.get("result")
        with capture_output() as outputs:
            shell.run_cell(cell).raise_error()
        # A terminal has the prompt of the value anyway, a notebook has nothing.
        value = re.sub(r"Out\[\d+\]: ", "", outputs.stdout).strip()
        assert len(outputs.outputs) + bool(value) == count, cell
