"""Errors of the Python API as printed by a cell."""

from __future__ import annotations


def test_a_wrong_argument_prints_message_hint_and_the_line_of_the_cell(shell, capsys):
    shell.run_cell("import rowmerge_nb as rm\n\nrm.save_trace(1, 'trace.json')")
    assert capsys.readouterr().out.rstrip().split("\n") == [
        "RowMergeError: INVALID_ARGUMENTS: A value of type int is not a trace",
        "Give result.trace.",
        "",
        "Line 3 of the cell: rm.save_trace(1, 'trace.json')",
        "%tb shows the traceback.",
    ]
    shell.run_cell("%tb")
    assert "in save_trace" in capsys.readouterr().out


def test_a_wrong_statement_is_marked_and_each_own_function_named(shell, capsys, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import rowmerge_nb as rm\ndef count():\n    return rm.run('SELECT nam')\n"
    )
    shell.run_cell(
        "import sys; sys.path.insert(0, '.')\nimport mine\ndef f():\n    mine.count()\nf()"
    )
    sys_path = shell.user_ns["sys"].path
    sys_path.remove(".")
    lines = capsys.readouterr().out.rstrip().split("\n")
    assert lines[:3] == [
        "AnalysisError: COLUMN_NOT_FOUND: line 1:8: Column 'nam' cannot be resolved",
        "1  SELECT nam",
        "          ^^^",
    ]
    assert lines[-4:-2] == ["Line 5 of the cell: f()", "Line 4 of the cell: mine.count()"]
    assert lines[-2].endswith("mine.py, line 3: return rm.run('SELECT nam')")
